"""Sizes that are formulas as JSON: shapes, numbers, and what a trace assumes of them.

A formula (see `dimension`) is a list: ``["poly", [[[atom, ...], coefficient], ...]]`` for a
polynomial, ``[operation, left, right]`` for a floating number. An atom is ``[input, axis]``,
the size of an axis of an input (null for the axis: its number of entries), or
``["//", left, right]``, ``["%", left, right]``.
"""

import math

from tapewright.core.guards import Assumptions
from tapewright.core.symbolic_dim import Dim, Real, Size, is_size, value_of
from tapewright.core.symbolic_shape import Sizes
from tapewright.core.tensor_shape import AnyShape

__all__ = [
    "decode_assumptions",
    "decode_number",
    "decode_shape",
    "encode_assumptions",
    "encode_number",
    "encode_shape",
    "is_open",
]

is_open = is_size

LARGEST = 2**63
DEEPEST = 20
HIGHEST = 4096
MANY = 100_000
INPUTS, AXES = 100_000, 64


def encode_number(n):
    """An int as it is, a formula as a list."""
    return _form(n.form) if is_size(n) else int(n)


def decode_number(value, scope):
    """The int or formula; one of ``scope``, the `Assumptions` of the trace."""
    if type(value) is int:
        return _whole(value)
    form = _read_formula(value)
    if scope is None or not isinstance(form, tuple):
        raise ValueError("a formula of sizes stands where there are no open sizes")
    for atom in _sizes_of(form):
        if atom not in scope.examples:
            raise ValueError(f"{atom} is no size of this function")
    value_of(form, scope.examples)  # as it will be for other sizes
    return Dim(form, scope) if form[0] == "poly" else Real(form, scope)


def encode_shape(shape):
    """A list of ints and formulas; ``{"any": input}`` for a shape of unknown rank."""
    if hasattr(shape, "atom"):
        return {"any": shape.atom.input}
    return [None if n is None else encode_number(n) for n in shape]


def decode_shape(value, scope=None):
    """A shape as graphs have it: a tuple."""
    if isinstance(value, dict):
        number = _whole(value.get("any"), INPUTS)
        if scope is None or Size(number, None) not in scope.examples:
            raise ValueError(f"input {number} is not of unknown rank")
        return AnyShape(number, scope)
    if not isinstance(value, list) or len(value) > AXES:
        raise ValueError(f"a shape must be a list of at most {AXES} sizes")
    dims = [decode_number(n, scope) for n in value]
    if any(type(n) is int and n < 0 for n in dims):
        raise ValueError(f"a shape must have sizes from 0 on, has {dims}")
    open_ = any(is_size(n) for n in dims)
    return Sizes(dims) if open_ else tuple(dims)


# ------------------------------------------------------------------------- formulas


def _form(form):
    if not isinstance(form, tuple):
        return {"number": repr(form)} if type(form) is float else form
    if form[0] != "poly":
        operation, left, right = form
        if operation == "**":
            _check_exponent(right)
        return [operation, _form(left), _form(right)]
    terms = [[[_atom(atom) for atom in monomial], c] for monomial, c in form[1]]
    return ["poly", terms]


def _atom(atom):
    if type(atom) is Size:
        return [atom.input, atom.axis]
    return [atom[0], _form(atom[1]), _form(atom[2])]


def _read_formula(value):
    """A form whose value is of a size that can be computed."""
    form = _read_form(value)
    if _degree(form) > HIGHEST:
        raise ValueError(f"a formula of sizes has a degree above {HIGHEST}")
    return form


def _degree(form):
    """The power of sizes and coefficients with which a value may grow."""
    if not isinstance(form, tuple):
        return 1
    if form[0] == "poly":
        return max([1 + sum(map(_degree_of_atom, m)) for m, _ in form[1]], default=1)
    operation, left, right = form[0], _degree(form[1]), form[2]
    if operation == "**":
        return left * _exponent(right)
    return left + _degree(right) if operation in "*/" else max(left, _degree(right))


def _degree_of_atom(atom):
    return 1 if type(atom) is Size else max(_degree(atom[1]), _degree(atom[2]))


def _read_form(value, depth=0):
    if depth > DEEPEST:
        raise ValueError(f"formulas are nested deeper than {DEEPEST}")
    if isinstance(value, dict):
        number = float(value["number"])
        if not math.isfinite(number):
            raise ValueError(f"{number} stands in a formula")
        return number
    if type(value) is int:
        return _whole(value)
    operation, *rest = value
    if operation == "poly":
        return "poly", _read_terms(*rest, depth)
    left, right = [_read_form(each, depth + 1) for each in rest]
    if operation == "**":
        _check_exponent(right)
    if operation not in ("+", "-", "*", "/", "**"):
        raise ValueError(f"{operation!r} is no operation of a formula")
    return operation, left, right


def _exponent(form):
    """The size of a constant exponent; None for what is none."""
    if isinstance(form, tuple) and form[0] == "poly":
        terms = dict(form[1])
        form = terms.get((), 0) if set(terms) <= {()} else None
    return None if form is None or isinstance(form, tuple) else abs(form)


def _check_exponent(form):
    """Whole numbers to the power of whole numbers could be of any size."""
    exponent = _exponent(form)
    if exponent is None or exponent > 64:
        raise ValueError("a power in a formula of sizes must have a small exponent")


def _read_terms(terms, depth):
    if len(terms) > MANY:
        raise ValueError(f"a formula has more than {MANY} terms")
    found = []
    for monomial, c in terms:
        if len(monomial) > AXES:
            raise ValueError(f"a term of a formula has more than {AXES} factors")
        found.append((tuple([_read_atom(a, depth + 1) for a in monomial]), _whole(c)))
    return tuple(found)


def _read_atom(value, depth):
    if len(value) == 2:
        number, axis = value
        axis = axis if axis is None else _whole(axis, AXES)
        return Size(_whole(number, INPUTS), axis)
    operation, left, right = value
    if operation not in ("//", "%"):
        raise ValueError(f"{operation!r} is no part of a formula")
    return operation, _read_form(left, depth), _read_form(right, depth)


def _whole(n, below=LARGEST):
    low = -LARGEST if below is LARGEST else 0
    if type(n) is not int or not low <= n < below:
        raise ValueError(f"{n!r} is no whole number, or too large a one")
    return n


def _sizes_of(form):
    """The `Size` atoms of a formula."""
    if not isinstance(form, tuple):
        return
    if form[0] != "poly":
        yield from _sizes_of(form[1])
        yield from _sizes_of(form[2])
        return
    for monomial, _ in form[1]:
        for atom in monomial:
            if type(atom) is Size:
                yield atom
            else:
                yield from _sizes_of(atom[1])
                yield from _sizes_of(atom[2])


# ---------------------------------------------------------------------- assumptions


def encode_assumptions(assumptions):
    """Examples of sizes, and the facts on which a trace depends."""
    examples, shapes, facts = [], [], []
    for atom, n in assumptions.examples.items():
        if type(atom) is Size:
            examples.append([*atom, int(n)])
        else:
            shapes.append([atom[0], [int(size) for size in n]])
    for (relation, form), answer in assumptions.facts.items():
        if relation == "shape":
            atom, other = form
            other = (
                [*other] if type(other) is Size else {"shape": [int(n) for n in other]}
            )
            facts.append([relation, [[*atom], other], answer])
        else:
            facts.append([relation, _form(form), answer])
    return {"examples": examples, "shapes": shapes, "facts": facts}


def decode_assumptions(value, pattern):
    """The `Assumptions` of a trace for shapes like ``pattern``, None where unknown."""
    examples = {}
    for number, axis, n in value["examples"]:
        examples[_read_atom([number, axis], 0)] = _whole(n)
    for number, shape in value["shapes"]:
        examples[_whole(number, INPUTS), "shape"] = decode_shape(shape)
    wanted = {*_open_sizes(pattern)}
    if {atom for atom in examples if type(atom) is Size} != wanted:
        raise ValueError("there must be one example for each open size")
    found = Assumptions(examples)
    for relation, form, answer in value["facts"]:
        if type(answer) is not bool or relation not in ("==", "<", "shape"):
            raise ValueError(f"{relation!r} is no fact about sizes")
        if relation == "shape":
            atom, other = _read_atom(form[0], 0), form[1]
            is_size_ = isinstance(other, list)
            other = _read_atom(other, 0) if is_size_ else decode_shape(other["shape"])
            atoms, form = [atom, other] if is_size_ else [atom], (atom, other)
        else:
            form = _read_formula(form)
            atoms = list(_sizes_of(form))
            value_of(form, examples)
        if not wanted.issuperset(atoms):
            raise ValueError("a fact is about a size that is not open")
        found.facts[relation, form] = answer
    return found


def _open_sizes(pattern):
    for i, shape in enumerate(pattern):
        if shape is None:
            yield Size(i, None)
        else:
            yield from (Size(i, axis) for axis, n in enumerate(shape) if n is None)
