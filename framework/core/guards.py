"""The assumptions of a trace for all sizes: example sizes, and conditions on them."""

from .symbolic_dim import NeedsSize, Size, is_size, value_of

__all__ = ["Guards"]


class Guards:
    """Example sizes, and what was answered for them: conditions of the trace.

    ``examples`` maps each `Size` to a number. ``conditions`` maps a relation of a formula to
    zero, ``("==", expression)`` or ``("<", expression)``, to whether it holds.
    """

    def __init__(self, examples, line=None, sizes=None):
        self.examples, self.conditions = examples, {}
        self._sizes = sizes  # those with which the trace is called, if they are known
        self.reason = None  # why the trace came to an end, if a size was missing
        self.closed = False  # the trace is over: nothing is assumed any more
        self._line = line  # a function that names the user's line

    def decide(self, relation, value):
        """Return whether ``value``, a number or formula, stands in this relation to 0."""
        if not is_size(value):
            return value == 0 if relation == "==" else value < 0
        expression = value.expression
        known = _always(relation, expression)
        if known is not None:
            return known
        answer = self.conditions.get((relation, expression))
        if answer is None and self.closed:
            if relation == "==":
                return False
            raise self.missing("a comparison after the trace")
        if answer is None:
            number = value_of(expression, self.examples)
            answer = number == 0 if relation == "==" else number < 0
            self.conditions[relation, expression] = answer
        return answer

    def symbols(self):
        """The sizes of which there are examples."""
        return [symbol for symbol in self.examples if type(symbol) is Size]

    def same_shape(self, symbol, other):
        """Return whether a shape of unknown rank is that of another (a `Size`), or this one."""
        condition = "shape", (symbol, other)
        answer = self.conditions.get(condition)
        if answer is None:
            if self.closed:
                return False
            answer = _same_shape(condition[1], self._sizes or self.examples)
            self.conditions[condition] = answer
        return answer

    def unify(self, difference):
        """Return whether this may be zero, as it must; change the examples if that helps.

        Two sizes that have to be equal are so from here on; a size that has to be a
        certain number is that number.
        """
        if not is_size(difference):
            return difference == 0
        condition = "==", difference.expression
        if condition in self.conditions or self.closed or self.decide("==", difference):
            return self.decide("==", difference)
        if condition in self.conditions:  # and not a matter of all sizes
            for example in self.solved(difference.expression):
                del self.conditions[condition]
                if self.broken_by(example) is None:
                    self.examples, self.conditions[condition] = example, True
                    return True
                self.conditions[condition] = False
        return False

    def allow(self, remainder):
        """As `unify`, but what no example meets is left to the sizes that come.

        Every op checks them when numbers are put in.
        """
        condition = "==", remainder.expression
        if condition in self.conditions or self.closed:
            return self.conditions.get(condition, True)
        if not self.unify(remainder):
            self.conditions.pop(condition, None)
        return True

    def solved(self, expression):
        """Examples like these in which an expression is zero, if a size or two are changed.

        Sizes that are known from the call are respected.
        """
        terms = dict(expression[1]) if expression[0] == "poly" else {}
        remainder = next(iter(terms), ())
        if len(terms) == 1 and len(remainder) == 1 and remainder[0][0] == "%":
            return self._multiples(expression, *remainder[0][1:])
        constant = terms.pop((), 0)
        symbols = [m[0] for m in terms if len(m) == 1 and type(m[0]) is Size]
        if len(symbols) != len(terms) or len(symbols) not in (1, 2):
            return []
        first, last, known = symbols[0], symbols[-1], self._sizes
        if first is last:
            size, rest = divmod(-constant, terms[(first,)])
            possible = not rest and size >= 0 and (not known or known[first] == size)
        else:
            size = self.examples[first]
            possible = not constant and sum(terms.values()) == 0
            possible = possible and (not known or known[first] == known[last])
        if not possible:
            return []
        alike = [a for a in self.symbols() if self.examples[a] == self.examples[last]]
        if known:
            alike = [a for a in alike if known[a] == known[last]]
        changes = [last], alike  # those that were found equal to it must change with it
        return [{**self.examples, **dict.fromkeys(each, size)} for each in changes]

    def _multiples(self, expression, dividend, divisor):
        """Examples in which this remainder, of a division by a number, is zero."""
        known, factor = self._sizes, dict(divisor[1]).get(())
        if (
            len(divisor[1]) != 1
            or not factor
            or (known and value_of(expression, known))
        ):
            return []
        inside = {a for m, _ in dividend[1] for a in m if type(a) is Size}
        alike = [
            [b for b in self.symbols() if self.examples[b] == self.examples[a]]
            for a in sorted(inside, key=repr)
        ]
        changes = [*[[a] for a in sorted(inside, key=repr)], *alike, list(inside)]
        found = [
            {**self.examples, **{a: self.examples[a] * abs(factor) for a in each}}
            for each in changes
        ]
        return [example for example in found if value_of(expression, example) == 0]

    def broken_by(self, sizes):
        """The first condition that does not hold for these sizes (`Size` -> number), or None.

        Sizes may be formulas of another trace, which then notes what is asked of them.
        """
        for (relation, expression), answer in self.conditions.items():
            if relation == "shape":
                if _same_shape(expression, sizes) is not answer:
                    return relation, expression, answer
                continue
            number = value_of(expression, sizes)
            holds = number == 0 if relation == "==" else number < 0
            if bool(holds) is not answer:
                return relation, expression, answer
        return None

    def missing(self, what, rank=False):
        """The error for code that needs the number, or the rank."""
        line = f"{self._line()}: " if self._line else ""
        if rank:
            text = "is asked for, which a trace for all ranks does not have"
        else:
            text = (
                "needs the size of an unknown dimension (None) as a number, which a trace "
                "for all sizes does not have. tw.reshape, tw.range, tw.zeros, slices and "
                "the like take tw.shape(x)[i] as it is"
            )
        error = NeedsSize(f"{line}{what} {text}")
        self.reason = self.reason or str(error)
        return error


def _same_shape(pair, sizes):
    """Return whether both are one shape; two inputs of unknown shapes share theirs."""
    symbol, other = pair
    own = sizes.get((symbol.input, "shape"))
    if own is None:
        return type(other) is Size
    return own == (sizes[other.input, "shape"] if type(other) is Size else other)


def _always(relation, expression):
    """The answer that holds for all sizes, which are 0 or more; None if there is none."""
    if expression[0] != "poly":
        return None
    terms = expression[1]
    plain = all(type(symbol) is Size for monomial, _ in terms for symbol in monomial)
    if plain and relation == "<" and all(c >= 0 for _, c in terms):
        return False
    constant = dict(terms).get((), 0)
    if plain and constant and len({c > 0 for _, c in terms}) == 1:
        return relation == "<" and constant < 0  # all of one sign, and never zero
    return None
