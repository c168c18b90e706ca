"""Sizes that are unknown while a function is traced: integers as formulas.

An `UnknownSize` is a polynomial with integer coefficients over sizes of inputs (and
over quotients and remainders of inexact divisions). It computes and compares like an
int, but has no value: a comparison is answered for example sizes, and the answer is
kept as a *guard* of the trace (`guards`). The trace is the same for all sizes that
satisfy its guards, so nothing is assumed silently. In a shape it looks like None to
code written for TensorFlow: converted code evaluates ``n is None`` to True, and copies
in files have None. Code that needs a number (``range(n)``, ``int(n)``) raises
`NeedsSize`.
"""

import math
from operator import add, mul, sub, truediv
from typing import NamedTuple

import numpy as np

from ..errors import TracingError


class NeedsSize(TracingError):
    """Raised when code needs the number of an unknown size while a function is traced."""


class NeedsValue(TracingError):
    """Raised when a shape depends on the value of a tensor, which a trace lacks.

    The traced function then runs eagerly, unless the enclosing code has an alternative,
    such as a loop that Python runs step by step.
    """


class DimSymbol(NamedTuple):
    """The size of axis ``axis`` of input ``input`` of a traced function.

    If the axis is None, it is the number of elements of an input of unknown rank. A
    dict of sizes then also has its shape, under ``(input, "shape")``.
    """

    input: int
    axis: int | None


# ------------------------------------------------------------------------ formulas

# The expression of an `UnknownSize` is a polynomial ``("poly", ((monomial, coefficient),
# ...))``. A monomial is a sorted tuple of symbols; a symbol is a `DimSymbol` or ``("//" or
# "%", polynomial, polynomial)``. The expression of a `SymbolicReal` is ``(operation, left,
# right)`` over expressions and numbers.
_REAL = {"+": add, "-": sub, "*": mul, "/": truediv, "**": pow}


def _terms(x):
    return dict(x.expression[1]) if type(x) is UnknownSize else ({(): x} if x else {})


def _from_terms(terms, scope):
    """Return the `UnknownSize` of terms, or a plain int if they contain no symbol."""
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    return UnknownSize(("poly", tuple(sorted(kept, key=repr))), scope)


def _sum(x, y, sign, scope):
    terms = _terms(x)
    for monomial, c in _terms(y).items():
        terms[monomial] = terms.get(monomial, 0) + sign * c
    return _from_terms(terms, scope)


def _product(x, y, scope):
    terms = {}
    for m, c in _terms(x).items():
        for n, d in _terms(y).items():
            monomial = tuple(sorted((*m, *n), key=repr))
            terms[monomial] = terms.get(monomial, 0) + c * d
    return _from_terms(terms, scope)


def _without(monomial, divisor):
    """Return the monomial divided by another, or None."""
    left = list(monomial)
    for symbol in divisor:
        if symbol not in left:
            return None
        left.remove(symbol)
    return tuple(left)


def _exact_quotient(x, y, scope):
    """Return ``x / y`` if the division is exact for all sizes, or None."""
    rest, divisor = _terms(x), _terms(y)
    result = {}
    lead = max(divisor, key=lambda m: (len(m), repr(m)))
    while rest:
        top = max(rest, key=lambda m: (len(m), repr(m)))
        monomial = _without(top, lead)
        if monomial is None or rest[top] % divisor[lead]:
            return None
        factor = rest[top] // divisor[lead]
        result[monomial] = factor
        for m, c in divisor.items():
            m = tuple(sorted((*m, *monomial), key=repr))
            rest[m] = rest.get(m, 0) - factor * c
            if not rest[m]:
                del rest[m]
    return _from_terms(result, scope)


def _divmod(x, y, scope):
    if scope.decide("==", y):
        raise ZeroDivisionError("division of a dimension by zero")
    even = _exact_quotient(x, y, scope)
    if even is not None:
        return even, 0
    if type(y) is not UnknownSize:  # (n * q + r) // n == q + r // n
        terms = _terms(x)
        even = _from_terms({m: c // y for m, c in terms.items() if not c % y}, scope)
        x = _from_terms({m: c for m, c in terms.items() if c % y}, scope)
        if type(x) is not UnknownSize:
            return even + x // y, x % y
    else:
        even = 0
    expressions = _expression(x), _expression(y)
    quotient = _from_terms({(("//", *expressions),): 1}, scope)
    return even + quotient, _from_terms({(("%", *expressions),): 1}, scope)


def _expression(x):
    if is_symbolic(x):
        return x.expression
    return x if type(x) is float else ("poly", (((), x),) if x else ())


def evaluate(expression, sizes):
    """Evaluate an expression for sizes: numbers, or formulas of another trace."""
    if not isinstance(expression, tuple):
        return expression
    if expression[0] != "poly":
        operation, left, right = expression
        return _REAL[operation](evaluate(left, sizes), evaluate(right, sizes))
    total = 0
    for monomial, c in expression[1]:
        for symbol in monomial:
            if type(symbol) is DimSymbol:
                c = c * sizes[symbol]
            else:
                left, right = evaluate(symbol[1], sizes), evaluate(symbol[2], sizes)
                c = c * (left // right if symbol[0] == "//" else left % right)
        total = total + c
    return total


# -------------------------------------------------------------------------- numbers


class _Formula:
    """An expression, and the `Guards` of its trace."""

    __slots__ = ("expression", "scope")
    __array_ufunc__ = None  # NumPy scalars leave arithmetic with a formula to it

    def __init__(self, expression, scope):
        self.expression, self.scope = expression, scope

    def _needs(self, what):
        raise self.scope.missing(what)

    def __index__(self):
        self._needs("an index, range() or an array's shape")

    def __int__(self):
        self._needs("int()")

    def __float__(self):
        self._needs("float()")

    def __complex__(self):
        self._needs("complex()")

    def __hash__(self):
        self._needs("a set, a dict key or a cache")

    def __reduce__(self):  # what keeps a size has None in its copy, as in TensorFlow
        return _unknown, ()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __pos__(self):
        return self

    def __bool__(self):
        return not self.scope.decide("==", self)

    def _compare(self, relation, other, swapped=False):
        other = _operand(other)
        if other is None:
            return NotImplemented
        difference = other - self if swapped else self - other
        return self.scope.decide(relation, difference)

    def __eq__(self, other):
        if other is None:  # TensorFlow shows an unknown dimension as None
            return True
        return self._compare("==", other)

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other):
        return self._compare("<", other)

    def __gt__(self, other):
        return self._compare("<", other, swapped=True)

    def __le__(self, other):
        greater = self.__gt__(other)
        return greater if greater is NotImplemented else not greater

    def __ge__(self, other):
        less = self.__lt__(other)
        return less if less is NotImplemented else not less

    def __abs__(self):
        return -self if self < 0 else self

    def __truediv__(self, other):
        return _real("/", self, other)

    def __rtruediv__(self, other):
        return _real("/", other, self)

    def __repr__(self):
        return "None"


def _unknown():
    return None


def _operand(x):
    """Return an operand as an int, float or formula; None if it is not a number."""
    if is_symbolic(x) or type(x) in (int, float):
        return x
    if isinstance(x, np.generic):
        x = x.item()
    for kind in (int, float):  # True, too
        if isinstance(x, kind):
            return kind(x)
    return None


def _real(operation, left, right):
    left, right = _operand(left), _operand(right)
    if left is None or right is None:
        return NotImplemented
    scope = _scope_of(left, right)
    return SymbolicReal((operation, _expression(left), _expression(right)), scope)


def _scope_of(left, right):
    """Return the `Guards` of two operands; formulas of two traces do not mix."""
    if not is_symbolic(left):
        return right.scope
    if is_symbolic(right) and right.scope is not left.scope:
        raise left.scope.missing("an expression with a size of another trace")
    return left.scope


class SymbolicReal(_Formula):
    """A floating number computed from unknown sizes, such as ``1 / n``."""

    __slots__ = ()
    __hash__ = _Formula.__hash__

    def __ceil__(self):
        return -math.floor(-self)

    def __floor__(self):
        operation, left, right = self.expression
        parts = [f for f in (left, right) if isinstance(f, tuple) and f[0] == "poly"]
        if operation != "/" or len(parts) != 2:
            self._needs("rounding")
        a, b = [_from_terms(dict(f[1]), self.scope) for f in parts]
        return a // b

    def __round__(self, ndigits=None):
        self._needs("rounding")

    def __neg__(self):
        operation, left, right = self.expression
        if operation == "/" and isinstance(left, tuple) and left[0] == "poly":
            left = tuple([(m, -c) for m, c in left[1]])
            return SymbolicReal(("/", ("poly", left), right), self.scope)
        return _real("*", self, -1.0)


class UnknownSize(_Formula):
    """An unknown size, or an integer computed from unknown sizes.

    Example:
        >>> from tapewright.core.shapes.guards import Guards
        >>> from tapewright.core.shapes.symbolic_dim import UnknownSize, DimSymbol
        >>> n = UnknownSize.of(DimSymbol(0, 0), Guards({DimSymbol(0, 0): 1009}))
        >>> (n * 784) // 784 - n, n // 3 * 3 + n % 3 == n, 2 * n > n, max(n, 1) is n
        (0, True, True, True)
    """

    # `is_dimension`: of a shape, not computed from one; None in TensorFlow.
    __slots__ = ("is_dimension",)
    __hash__ = _Formula.__hash__

    def __init__(self, expression, scope, is_dimension=False):
        super().__init__(expression, scope)
        self.is_dimension = is_dimension

    @classmethod
    def of(cls, symbol, scope):
        return cls(("poly", (((symbol,), 1),)), scope)

    def as_dimension(self):
        """Return the size as an entry of a shape, for which ``is None`` is True."""
        return self if self.is_dimension else type(self)(*self._parts, True)

    def as_number(self):
        """Return the size as a derived number, which is never None."""
        return type(self)(*self._parts)

    @property
    def _parts(self):
        return self.expression, self.scope

    def _combine(self, other, compute, real=None):
        if type(other) is not int:
            other = _operand(other)
        if type(other) is int:
            return compute(self, other, self.scope)
        if type(other) is UnknownSize:
            return compute(self, other, _scope_of(self, other))
        if other is None:
            return NotImplemented
        return _real(real, self, other) if real else self._needs("//, % with a float")

    def __add__(self, other):
        return self._combine(other, lambda x, y, s: _sum(x, y, 1, s), "+")

    def __radd__(self, other):
        return self.__add__(other)

    def __sub__(self, other):
        return self._combine(other, lambda x, y, s: _sum(x, y, -1, s), "-")

    def __rsub__(self, other):
        return (-self).__add__(other)

    def __mul__(self, other):
        return self._combine(other, _product, "*")

    def __rmul__(self, other):
        return self.__mul__(other)

    def __neg__(self):
        return _product(self, -1, self.scope)

    def __divmod__(self, other):
        return self._combine(other, _divmod)

    def __rdivmod__(self, other):
        return self._combine(other, lambda x, y, s: _divmod(y, x, s))

    def __floordiv__(self, other):
        return self._combine(other, lambda x, y, s: _divmod(x, y, s)[0])

    def __rfloordiv__(self, other):
        return self._combine(other, lambda x, y, s: _divmod(y, x, s)[0])

    def __mod__(self, other):
        return self._combine(other, lambda x, y, s: _divmod(x, y, s)[1])

    def __rmod__(self, other):
        return self._combine(other, lambda x, y, s: _divmod(y, x, s)[1])

    def __pow__(self, other):
        if type(other) is int and other >= 0:
            return math.prod([self] * other)
        return _real("**", self, other)

    def __ceil__(self):
        return self

    __floor__ = __trunc__ = __ceil__

    def __round__(self, ndigits=None):
        return self


def _arithmetic(name, operation):
    def operator(self, other):
        return _real(operation, self, other)

    def reflected(self, other):
        return _real(operation, other, self)

    setattr(SymbolicReal, f"__{name}__", operator)
    setattr(SymbolicReal, f"__r{name}__", reflected)


for _name, _operation in {"add": "+", "sub": "-", "mul": "*", "pow": "**"}.items():
    _arithmetic(_name, _operation)
UnknownSize.__rpow__ = lambda self, other: _real("**", other, self)


def is_symbolic(x):
    """Return whether a number is a formula over unknown sizes."""
    return type(x) is UnknownSize or type(x) is SymbolicReal
