"""What a trace for all sizes assumes of them: example sizes, and facts that must hold."""

from .symbolic_dim import NeedsSize, Size, is_size, value_of

__all__ = ["Assumptions"]


class Assumptions:
    """Example sizes, and what was answered for them: facts of the trace.

    ``examples`` maps each `Size` to a number. ``facts`` maps a relation of a formula to
    zero, ``("==", form)`` or ``("<", form)``, to whether it holds.
    """

    def __init__(self, examples, line=None, sizes=None):
        self.examples, self.facts = examples, {}
        self._sizes = sizes  # those with which the trace is called, if they are known
        self.reason = None  # why the trace came to an end, if a size was missing
        self.closed = False  # the trace is over: nothing is assumed any more
        self._line = line  # a function that names the user's line

    def decide(self, relation, value):
        """Whether ``value`` (a number, a `Dim` or a `Real`) stands in this relation to 0."""
        if not is_size(value):
            return value == 0 if relation == "==" else value < 0
        form = value.form
        known = _always(relation, form)
        if known is not None:
            return known
        answer = self.facts.get((relation, form))
        if answer is None and self.closed:
            if relation == "==":
                return False
            raise self.missing("a comparison after the trace")
        if answer is None:
            number = value_of(form, self.examples)
            answer = number == 0 if relation == "==" else number < 0
            self.facts[relation, form] = answer
        return answer

    def atoms(self):
        """The sizes of which there are examples."""
        return [atom for atom in self.examples if type(atom) is Size]

    def same_shape(self, atom, other):
        """Whether a shape of unknown rank is that of another one (a `Size`), or this one."""
        fact = "shape", (atom, other)
        answer = self.facts.get(fact)
        if answer is None:
            if self.closed:
                return False
            answer = _same_shape(fact[1], self._sizes or self.examples)
            self.facts[fact] = answer
        return answer

    def settle(self, difference):
        """Whether this may be zero, as it must: the examples change if that helps.

        Two sizes that have to be equal are so from here on; a size that has to be a
        certain number is that number.
        """
        if not is_size(difference):
            return difference == 0
        fact = "==", difference.form
        if fact in self.facts or self.closed or self.decide("==", difference):
            return self.decide("==", difference)
        if fact in self.facts:  # and not a matter of all sizes
            for example in self.solved(difference.form):
                del self.facts[fact]
                if self.broken_by(example) is None:
                    self.examples, self.facts[fact] = example, True
                    return True
                self.facts[fact] = False
        return False

    def allow(self, remainder):
        """As `settle`, but what no example meets is left to the sizes that come.

        Every op checks them when numbers are put in.
        """
        fact = "==", remainder.form
        if fact in self.facts or self.closed:
            return self.facts.get(fact, True)
        if not self.settle(remainder):
            self.facts.pop(fact, None)
        return True

    def solved(self, form):
        """Examples like these in which a form is zero, if a size or two are changed.

        Sizes that are known from the call are respected.
        """
        terms = dict(form[1]) if form[0] == "poly" else {}
        remainder = next(iter(terms), ())
        if len(terms) == 1 and len(remainder) == 1 and remainder[0][0] == "%":
            return self._multiples(form, *remainder[0][1:])
        constant = terms.pop((), 0)
        atoms = [m[0] for m in terms if len(m) == 1 and type(m[0]) is Size]
        if len(atoms) != len(terms) or len(atoms) not in (1, 2):
            return []
        first, last, known = atoms[0], atoms[-1], self._sizes
        if first is last:
            size, rest = divmod(-constant, terms[(first,)])
            possible = not rest and size >= 0 and (not known or known[first] == size)
        else:
            size = self.examples[first]
            possible = not constant and sum(terms.values()) == 0
            possible = possible and (not known or known[first] == known[last])
        if not possible:
            return []
        alike = [a for a in self.atoms() if self.examples[a] == self.examples[last]]
        if known:
            alike = [a for a in alike if known[a] == known[last]]
        changes = [last], alike  # those that were found equal to it must change with it
        return [{**self.examples, **dict.fromkeys(each, size)} for each in changes]

    def _multiples(self, form, dividend, divisor):
        """Examples in which this remainder, of a division by a number, is zero."""
        known, factor = self._sizes, dict(divisor[1]).get(())
        if len(divisor[1]) != 1 or not factor or (known and value_of(form, known)):
            return []
        inside = {a for m, _ in dividend[1] for a in m if type(a) is Size}
        alike = [
            [b for b in self.atoms() if self.examples[b] == self.examples[a]]
            for a in sorted(inside, key=repr)
        ]
        changes = [*[[a] for a in sorted(inside, key=repr)], *alike, list(inside)]
        found = [
            {**self.examples, **{a: self.examples[a] * abs(factor) for a in each}}
            for each in changes
        ]
        return [example for example in found if value_of(form, example) == 0]

    def broken_by(self, sizes):
        """The first fact that does not hold for these sizes (`Size` -> number), or None.

        Sizes may be formulas of another trace, which then notes what is asked of them.
        """
        for (relation, form), answer in self.facts.items():
            if relation == "shape":
                if _same_shape(form, sizes) is not answer:
                    return relation, form, answer
                continue
            number = value_of(form, sizes)
            holds = number == 0 if relation == "==" else number < 0
            if bool(holds) is not answer:
                return relation, form, answer
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
    """Whether both are the same shape; without shapes at hand two inputs have the same."""
    atom, other = pair
    own = sizes.get((atom.input, "shape"))
    if own is None:
        return type(other) is Size
    return own == (sizes[other.input, "shape"] if type(other) is Size else other)


def _always(relation, form):
    """The answer that holds for all sizes, which are 0 or more; None if there is none."""
    if form[0] != "poly":
        return None
    terms = form[1]
    plain = all(type(atom) is Size for monomial, _ in terms for atom in monomial)
    if plain and relation == "<" and all(c >= 0 for _, c in terms):
        return False
    constant = dict(terms).get((), 0)
    if plain and constant and len({c > 0 for _, c in terms}) == 1:
        return relation == "<" and constant < 0  # all of one sign, and never zero
    return None
