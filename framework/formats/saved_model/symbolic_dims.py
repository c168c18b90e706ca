"""Sizes that are formulas as JSON: shapes, numbers, and the guards of a trace.

A formula (see `symbolic_dim`) is a list: ``["poly", [[[symbol, ...], coefficient], ...]]``
for a polynomial, ``[operation, left, right]`` for a floating number. A symbol is
``[input, axis]``, the size of an axis of an input (null for the axis: its number of
entries), or ``["//", left, right]``, ``["%", left, right]``.
"""

import math

from tapewright.core.shapes.guards import Guards
from tapewright.core.shapes.symbolic_dim import (
    DimSymbol,
    SymbolicReal,
    UnknownSize,
    evaluate,
    is_symbolic,
)
from tapewright.core.shapes.symbolic_shape import SymbolicShape
from tapewright.core.shapes.tensor_shape import UnrankedShape

is_open = is_symbolic

LARGEST = 2**63
DEEPEST = 20
HIGHEST = 4096
MANY = 100_000
INPUTS, AXES = 100_000, 64


def encode_number(n):
    """Return an int unchanged, a formula as a list."""
    return _expression(n.expression) if is_symbolic(n) else int(n)


def decode_number(value, scope):
    """Return the int, or the formula of ``scope``, the `Guards` of the trace."""
    if type(value) is int:
        return _whole(value)
    expression = _read_formula(value)
    if scope is None or not isinstance(expression, tuple):
        raise ValueError("a formula of sizes is not allowed without open sizes")
    for symbol in _sizes_of(expression):
        if symbol not in scope.examples:
            raise ValueError(f"{symbol} is not a size of this function")
    evaluate(expression, scope.examples)  # as it will be for other sizes
    return (
        UnknownSize(expression, scope)
        if expression[0] == "poly"
        else SymbolicReal(expression, scope)
    )


def encode_shape(shape):
    """Return ints and formulas; ``{"any": input}`` for a shape of unknown rank."""
    if isinstance(shape, UnrankedShape):
        return {"any": shape.shape_symbol.input}
    return [None if n is None else encode_number(n) for n in shape]


def decode_shape(value, scope=None):
    """Return a shape as in graphs: a tuple."""
    if isinstance(value, dict):
        number = _whole(value.get("any"), INPUTS)
        if scope is None or DimSymbol(number, None) not in scope.examples:
            raise ValueError(f"input {number} is not of unknown rank")
        return UnrankedShape(number, scope)
    if not isinstance(value, list) or len(value) > AXES:
        raise ValueError(f"a shape must be a list of at most {AXES} sizes")
    dims = [decode_number(n, scope) for n in value]
    if any(type(n) is int and n < 0 for n in dims):
        raise ValueError(f"a shape must have non-negative sizes, got {dims}")
    open_ = any(is_symbolic(n) for n in dims)
    return SymbolicShape(dims) if open_ else tuple(dims)


# ------------------------------------------------------------------------- formulas


def _expression(expression):
    if not isinstance(expression, tuple):
        return {"number": repr(expression)} if type(expression) is float else expression
    if expression[0] != "poly":
        operation, left, right = expression
        if operation == "**":
            _check_exponent(right)
        return [operation, _expression(left), _expression(right)]
    terms = [
        [[_symbol(symbol) for symbol in monomial], c] for monomial, c in expression[1]
    ]
    return ["poly", terms]


def _symbol(symbol):
    if type(symbol) is DimSymbol:
        return [symbol.input, symbol.axis]
    return [symbol[0], _expression(symbol[1]), _expression(symbol[2])]


def _read_formula(value):
    """Return a formula, after checking that its value is small enough to compute."""
    expression = _read_expression(value)
    if _degree(expression) > HIGHEST:
        raise ValueError(f"a formula of sizes has a degree above {HIGHEST}")
    return expression


def _degree(expression):
    """Return the power of sizes and coefficients with which a value can grow."""
    if not isinstance(expression, tuple):
        return 1
    if expression[0] == "poly":
        return max(
            [1 + sum(map(_degree_of_symbol, m)) for m, _ in expression[1]], default=1
        )
    operation, left, right = expression[0], _degree(expression[1]), expression[2]
    if operation == "**":
        return left * _exponent(right)
    return left + _degree(right) if operation in "*/" else max(left, _degree(right))


def _degree_of_symbol(symbol):
    return (
        1 if type(symbol) is DimSymbol else max(_degree(symbol[1]), _degree(symbol[2]))
    )


def _read_expression(value, depth=0):
    if depth > DEEPEST:
        raise ValueError(f"formulas are nested deeper than {DEEPEST}")
    if isinstance(value, dict):
        number = float(value["number"])
        if not math.isfinite(number):
            raise ValueError(f"a formula contains {number}")
        return number
    if type(value) is int:
        return _whole(value)
    operation, *rest = value
    if operation == "poly":
        return "poly", _read_terms(*rest, depth)
    left, right = [_read_expression(each, depth + 1) for each in rest]
    if operation == "**":
        _check_exponent(right)
    if operation not in ("+", "-", "*", "/", "**"):
        raise ValueError(f"{operation!r} is not an operation of a formula")
    return operation, left, right


def _exponent(expression):
    """Return the size of a constant exponent; None for other expressions."""
    if isinstance(expression, tuple) and expression[0] == "poly":
        terms = dict(expression[1])
        expression = terms.get((), 0) if set(terms) <= {()} else None
    return (
        None if expression is None or isinstance(expression, tuple) else abs(expression)
    )


def _check_exponent(expression):
    """Check the exponent: a power of integers can have any number of digits."""
    exponent = _exponent(expression)
    if exponent is None or exponent > 64:
        raise ValueError("a power in a formula of sizes must have a small exponent")


def _read_terms(terms, depth):
    if len(terms) > MANY:
        raise ValueError(f"a formula has more than {MANY} terms")
    polynomial = []
    for monomial, c in terms:
        if len(monomial) > AXES:
            raise ValueError(f"a term of a formula has more than {AXES} factors")
        polynomial.append(
            (tuple([_read_symbol(a, depth + 1) for a in monomial]), _whole(c))
        )
    return tuple(polynomial)


def _read_symbol(value, depth):
    if len(value) == 2:
        number, axis = value
        axis = axis if axis is None else _whole(axis, AXES)
        return DimSymbol(_whole(number, INPUTS), axis)
    operation, left, right = value
    if operation not in ("//", "%"):
        raise ValueError(f"{operation!r} is not a part of a formula")
    return operation, _read_expression(left, depth), _read_expression(right, depth)


def _whole(n, below=LARGEST):
    low = -LARGEST if below is LARGEST else 0
    if type(n) is not int or not low <= n < below:
        raise ValueError(f"{n!r} is not an integer, or is too large")
    return n


def _sizes_of(expression):
    """Yield the `DimSymbol` symbols of a formula."""
    if not isinstance(expression, tuple):
        return
    if expression[0] != "poly":
        yield from _sizes_of(expression[1])
        yield from _sizes_of(expression[2])
        return
    for monomial, _ in expression[1]:
        for symbol in monomial:
            if type(symbol) is DimSymbol:
                yield symbol
            else:
                yield from _sizes_of(symbol[1])
                yield from _sizes_of(symbol[2])


# --------------------------------------------------------------------------- guards


def encode_guards(guards):
    """Return example sizes, and the conditions on which a trace depends."""
    examples, shapes, conditions = [], [], []
    for symbol, n in guards.examples.items():
        if type(symbol) is DimSymbol:
            examples.append([*symbol, int(n)])
        else:
            shapes.append([symbol[0], [int(size) for size in n]])
    for (relation, expression), answer in guards.conditions.items():
        if relation == "shape":
            symbol, other = expression
            other = (
                [*other]
                if type(other) is DimSymbol
                else {"shape": [int(n) for n in other]}
            )
            conditions.append([relation, [[*symbol], other], answer])
        else:
            conditions.append([relation, _expression(expression), answer])
    return {"examples": examples, "shapes": shapes, "facts": conditions}


def decode_guards(value, pattern):
    """Return the `Guards` of a trace for shapes like ``pattern``, None where open."""
    examples = {}
    for number, axis, n in value["examples"]:
        examples[_read_symbol([number, axis], 0)] = _whole(n)
    for number, shape in value["shapes"]:
        examples[_whole(number, INPUTS), "shape"] = decode_shape(shape)
    wanted = {*_open_sizes(pattern)}
    if {symbol for symbol in examples if type(symbol) is DimSymbol} != wanted:
        raise ValueError("there must be one example for each open size")
    guards = Guards(examples)
    for relation, expression, answer in value["facts"]:
        if type(answer) is not bool or relation not in ("==", "<", "shape"):
            raise ValueError(f"{relation!r} is not a condition on sizes")
        if relation == "shape":
            symbol, other = _read_symbol(expression[0], 0), expression[1]
            is_size_ = isinstance(other, list)
            other = _read_symbol(other, 0) if is_size_ else decode_shape(other["shape"])
            symbols = [symbol, other] if is_size_ else [symbol]
            expression = (symbol, other)
        else:
            expression = _read_formula(expression)
            symbols = list(_sizes_of(expression))
            evaluate(expression, examples)
        if not wanted.issuperset(symbols):
            raise ValueError("a condition is about a size that is not open")
        guards.conditions[relation, expression] = answer
    return guards


def _open_sizes(pattern):
    for i, shape in enumerate(pattern):
        if shape is None:
            yield DimSymbol(i, None)
        else:
            yield from (DimSymbol(i, axis) for axis, n in enumerate(shape) if n is None)
