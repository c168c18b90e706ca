"""Guards: the conditions on sizes under which a trace for all sizes is valid."""

from .symbolic_dim import DimSymbol, NeedsSize, evaluate, is_symbolic


class Guards:
    """Example sizes and the conditions that they satisfy: the guards of a trace.

    ``examples`` maps each `DimSymbol` to a number. ``conditions`` maps a relation of a
    formula to zero, ``("==", expression)`` or ``("<", expression)``, to whether it
    holds.
    """

    def __init__(self, examples, line=None, sizes=None):
        self.examples, self.conditions = examples, {}
        self._sizes = sizes  # of the call for which the function is traced, if known
        self.reason = None  # the message of the first `missing`
        self.closed = False  # the trace is over: no guard is added any more
        self._line = line  # a function that returns the user's line

    def decide(self, relation, value):
        """Return whether ``value``, a number or formula, has this relation to 0."""
        if not is_symbolic(value):
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
            number = evaluate(expression, self.examples)
            answer = number == 0 if relation == "==" else number < 0
            self.conditions[relation, expression] = answer
        return answer

    def symbols(self):
        """Return the symbols of sizes that have an example."""
        return [symbol for symbol in self.examples if type(symbol) is DimSymbol]

    def same_shape(self, symbol, other):
        """Return whether a shape of unknown rank equals another: a `DimSymbol` or a tuple."""
        condition = "shape", (symbol, other)
        answer = self.conditions.get(condition)
        if answer is None:
            if self.closed:
                return False
            answer = _same_shape(condition[1], self._sizes or self.examples)
            self.conditions[condition] = answer
        return answer

    def unify(self, difference):
        """Return whether a difference can be zero, as it must; add that as a guard.

        If it is not zero for the examples, search for other examples: two sizes that
        must be equal get one example, and a size that must be a certain number gets
        that number.
        """
        if not is_symbolic(difference):
            return difference == 0
        condition = "==", difference.expression
        final = condition in self.conditions or self.closed
        equal = self.decide("==", difference)
        # An expression that is never zero needs no condition.
        if equal or final or condition not in self.conditions:
            return equal
        for example in self.solutions(difference.expression):
            del self.conditions[condition]
            if self.broken_by(example) is None:
                self.examples, self.conditions[condition] = example, True
                return True
            self.conditions[condition] = False
        return False

    def allow(self, remainder):
        """Like `unify`, but return True if no example is found, without adding a guard.

        Every op checks its sizes again when it runs with numbers.
        """
        condition = "==", remainder.expression
        if condition in self.conditions or self.closed:
            return self.conditions.get(condition, True)
        if not self.unify(remainder):
            self.conditions.pop(condition, None)
        return True

    def solutions(self, expression):
        """Return examples for which an expression is zero, by changing one or two sizes.

        They agree with the sizes of the call, if these are known.
        """
        terms = dict(expression[1]) if expression[0] == "poly" else {}
        remainder = next(iter(terms), ())
        if len(terms) == 1 and len(remainder) == 1 and remainder[0][0] == "%":
            return self._multiples(expression, *remainder[0][1:])
        constant = terms.pop((), 0)
        symbols = [m[0] for m in terms if len(m) == 1 and type(m[0]) is DimSymbol]
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
        changes = [last], alike  # sizes found equal to it may have to change with it
        return [{**self.examples, **dict.fromkeys(each, size)} for each in changes]

    def _multiples(self, expression, dividend, divisor):
        """Return examples for which the remainder of a division by a number is zero."""
        known, factor = self._sizes, dict(divisor[1]).get(())
        if (
            len(divisor[1]) != 1
            or not factor
            or (known and evaluate(expression, known))
        ):
            return []
        inside = {a for m, _ in dividend[1] for a in m if type(a) is DimSymbol}
        alike = [
            [b for b in self.symbols() if self.examples[b] == self.examples[a]]
            for a in sorted(inside, key=repr)
        ]
        changes = [*[[a] for a in sorted(inside, key=repr)], *alike, list(inside)]
        candidates = [
            {**self.examples, **{a: self.examples[a] * abs(factor) for a in each}}
            for each in changes
        ]
        return [example for example in candidates if evaluate(expression, example) == 0]

    def broken_by(self, sizes):
        """Return the first condition that sizes (`DimSymbol` -> number) violate, or None.

        Sizes may be formulas of another trace, which then adds guards to that trace.
        """
        for (relation, expression), answer in self.conditions.items():
            if relation == "shape":
                if _same_shape(expression, sizes) is not answer:
                    return relation, expression, answer
                continue
            number = evaluate(expression, sizes)
            holds = number == 0 if relation == "==" else number < 0
            if bool(holds) is not answer:
                return relation, expression, answer
        return None

    def missing(self, what, rank=False):
        """Return the error for code that needs a size, or the rank, as a number."""
        line = f"{self._line()}: " if self._line else ""
        if rank:
            text = "is needed as a number, but unknown in a trace for all ranks"
        else:
            text = (
                "needs the size of an unknown dimension (None) as a number, which a trace "
                "for all sizes does not have. Pass tw.shape(x)[i] to tw.reshape, tw.range, "
                "tw.zeros, slices and other ops"
            )
        error = NeedsSize(f"{line}{what} {text}")
        self.reason = self.reason or str(error)
        return error


def _same_shape(pair, sizes):
    """Return whether both are the same shape; if unknown, whether inputs share it."""
    symbol, other = pair
    own = sizes.get((symbol.input, "shape"))
    if own is None:
        return type(other) is DimSymbol
    return own == (sizes[other.input, "shape"] if type(other) is DimSymbol else other)


def _always(relation, expression):
    """Return the answer if it is the same for all sizes from 0, else None."""
    if expression[0] != "poly":
        return None
    terms = expression[1]
    plain = all(
        type(symbol) is DimSymbol for monomial, _ in terms for symbol in monomial
    )
    if plain and relation == "<" and all(c >= 0 for _, c in terms):
        return False
    constant = dict(terms).get((), 0)
    if plain and constant and len({c > 0 for _, c in terms}) == 1:
        return relation == "<" and constant < 0  # all of one sign, and never zero
    return None
