"""A line for a rule, and the programs of a line run eagerly and traced.

A line names programs that a rule rewrites, and those that it must leave alone. Each program
runs eagerly and traced, with operands that hold every pair of special values of a dtype, and
that come from everywhere: an input, an intermediate result, one that is also returned, a
variable that is written to afterwards, a view, a constant, the other operand.

Exact rules keep every bit but the sign of a NaN. The others keep NaN, infinities and the
signs of zeros in their places and round otherwise.
"""

import functools
from dataclasses import dataclass

import numpy as np

import tapewright as tw

from ...rounding import same_calls, without_overflow

# Sides of the square operands: 4 kB at most; beyond the 16 kB of BLAS; beyond the 2^15
# entries from which masks are bytes; beyond the 4 MiB from which rows go in blocks.
SMALL, BLAS, BYTES, BLOCKS = 15, 75, 195, 1050


# ------------------------------------------------------------------------------- values


def special(dtype, without=()):
    """The values of a dtype at which rules break, ``without`` those of these kinds."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        listed = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 3, 7]
        return np.array(listed, dtype)
    if dtype.kind == "c":
        parts = special(dtype.type().real.dtype, without)
        return parts + parts[::-1] * dtype.type(1j)
    info = np.finfo(dtype)
    listed = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, 2.5, -0.3, 7]
    if "denormal" not in without:
        listed += [info.smallest_subnormal, -info.smallest_subnormal, info.tiny]
    if "huge" not in without:
        listed += [info.max, -info.max]
    return np.array(listed, dtype)


def pairs(dtype, side, count, without=()):
    """Square operands in which every two of the special values meet, and more."""
    with np.errstate(all="ignore"):
        values = np.resize(special(dtype, without), SMALL)
    i, j = np.indices((side, side)) % SMALL
    if side >= 2 * SMALL:  # among numbers of every day, so that sums are finite, too
        i, j = (i + j // SMALL) % SMALL, j
    return [np.ascontiguousarray(values[at]) for at in (i, j, (i + 2 * j) % SMALL)][
        :count
    ]


# For what rounds elsewhere: products that underflow are zeros of either sign, ...
# ... and beside the largest numbers an error of any other is nothing.
tame_pairs = functools.partial(pairs, without=("denormal", "huge"))


def sparse_specials(dtype, side, count):
    """Operands of products: numbers of every day, a special one here and there."""
    rng = np.random.default_rng(0)
    found = []
    for k in range(count):
        x = rng.integers(-3, 4, (side, side)).astype(dtype)
        listed = [np.nan, np.inf, -np.inf, -0.0] if x.dtype.kind in "fc" else []
        for row, value in enumerate(listed):
            x[2 * row + k, (5 * row + k) % side] = value
        found.append(x)
    return found


def rows_and_weights(dtype, side, count):
    """Rows, some of them with special values, and weights without."""
    *rows, weights = sparse_specials(dtype, side, count)
    return [*rows, np.nan_to_num(weights, posinf=1, neginf=2)]


# -------------------------------------------------------------------------------- roles


def made(x):
    """The result of an op, which keeps every special value."""
    if x.dtype.is_complex:
        return tw.math.conj(x)
    return tw.logical_not(x) if x.dtype == tw.bool else tw.maximum(x, x)


@dataclass
class Role:
    """Where an operand comes from: what is fed, and what the program makes of it."""

    feed: callable = lambda x: x
    use: callable = lambda x: x
    returned: bool = False
    after: callable = None  # what is done to the variable that it is
    held: bool = False  # by the program, as a constant
    shared: bool = False  # it is the first operand


def assigned(variable, optimizer):
    variable.assign(tw.zeros_like(variable))


def updated(variable, optimizer):
    optimizer.apply_gradients([(tw.ones_like(variable), variable)])


def repeated(x):
    return tw.broadcast_to(x, [x.shape[-1], *x.shape[1:]])


ROLES = {
    "input": Role(),
    "made": Role(use=made),
    "made and returned": Role(use=made, returned=True),
    "returned": Role(returned=True),
    "variable, assigned afterwards": Role(after=assigned),
    "variable, updated in place afterwards": Role(after=updated),
    "transposed": Role(lambda x: x.T.copy(), lambda x: tw.transpose(x)),
    "transposed result": Role(lambda x: x.T.copy(), lambda x: tw.transpose(made(x))),
    "reversed": Role(lambda x: x[::-1].copy(), lambda x: x[::-1]),
    "strided": Role(lambda x: np.repeat(x, 2, 0), lambda x: x[::2]),
    "broadcast": Role(lambda x: x[:1], repeated),
    "constant": Role(held=True),
    "the first operand again": Role(shared=True),
}


# ---------------------------------------------------------------------------- comparing


def arrays_of(outputs):
    return [np.array(x) for x in outputs if x is not None]


def check(program, arrays, roles, exact, rtol=1e-5):
    """Runs a program eagerly and traced, twice each, on operands in these roles.

    Returns whether it can be run; if not, both ways raise the same.
    """
    fed = [role.feed(a) for role, a in zip(roles, arrays, strict=True)]
    again = [np.ascontiguousarray(a[::-1]) for a in fed]
    outcomes = []
    for wrap in (lambda f: f, tw.function):
        with np.errstate(all="ignore"):
            outcomes.append(run_twice(program, roles, fed, again, wrap))
    for wanted, found in zip(*outcomes, strict=True):
        if isinstance(wanted, type) or isinstance(found, type):
            assert wanted is found, "an error in one of the two ways only"
            continue
        assert len(wanted) == len(found)
        for k, (a, b) in enumerate(zip(found, wanted)):
            assert_same(a, b, exact, rtol, f"output {k}")
    return not isinstance(outcomes[0][0], type)


def run_twice(program, roles, fed, again, wrap):
    """What two calls give, the first looked at after the second; or the error's class."""
    variables = [tw.Variable(a) if r.after else None for r, a in zip(roles, fed)]
    optimizers = [tw.optimizers.SGD(0.5) if r.after else None for r in roles]

    def run(*inputs):
        given, kept = [], []
        for role, x, variable, array in zip(roles, inputs, variables, fed):
            x = tw.constant(array) if role.held else x
            x = x if variable is None else variable.read_value()
            given.append(given[0] if role.shared else role.use(x))
            if role.returned:
                kept.append(given[-1])
        outputs = program(*given)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        for role, variable, optimizer in zip(roles, variables, optimizers):
            if role.after:
                role.after(variable, optimizer)
        return outputs + kept

    for variable in CELLS.values():
        variable.assign(tw.ones_like(variable))
    function, results = wrap(run), []
    for arrays in (fed, again):
        tensors = [tw.constant(a) for a in arrays]
        try:
            results.append(function(*tensors))
        except Exception as error:
            results.append(type(error))
        for tensor, array in zip(tensors, arrays):
            assert tensor.numpy().tobytes() == array.tobytes(), "an input was changed"
    found = [r if isinstance(r, type) else arrays_of(r) for r in results]
    if any([isinstance(r, type) for r in found]):  # a traced call does all or nothing
        return found
    return [*found, arrays_of([v for v in variables if v is not None])]


def assert_same(found, wanted, exact, rtol, what):
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    if found.tobytes() == wanted.tobytes():
        return
    if not same_calls() and found.dtype.kind == "f":
        exact, rtol = False, max(rtol, 16 * np.finfo(found.dtype).eps)
        found = without_overflow(found, wanted)
    if found.dtype.kind == "c":
        assert_same(found.real, wanted.real, exact, rtol, f"{what}, real part")
        found, wanted = found.imag, wanted.imag
    marks = MARKS if found.dtype.kind == "f" else {}
    for name, mark in marks.items():
        differ = mark(found) != mark(wanted)
        if name == "sign of zero" and not exact:  # what cancels may leave a little
            differ &= found == wanted
        assert_none(differ, name, found, wanted, what)
    found, wanted = np.atleast_1d(found, wanted)
    differ = found != wanted
    if marks:
        differ &= np.isfinite(wanted)
    if marks and not exact:
        found_there, wanted_there = found[differ], wanted[differ]
        size = np.abs(wanted[np.isfinite(wanted)], dtype="f8").max(initial=0)
        differ[differ] = np.abs(found_there - wanted_there) > rtol * size
    assert_none(differ, "values", found, wanted, what)


def assert_none(differ, name, found, wanted, what):
    for at in map(tuple, np.argwhere(differ)[:1].tolist()):
        raise AssertionError(
            f"{what}: {name} at {differ.sum()} places, first {at}: {found[at]!r}, "
            f"eager {wanted[at]!r}"
        )


MARKS = {
    "NaN": np.isnan,
    "infinity": lambda x: np.where(np.isinf(x), np.sign(x), 0),
    "sign of zero": lambda x: np.where(x == 0, 1 - 2.0 * np.signbit(x), 0),
}


# -------------------------------------------------------------------------------- lines


SINGLE = ("float32",)
REAL = ("float32", "float64")
FLOATS = ("float16", "float32", "float64")
WHOLE = ("int32", "int64", "uint8")
NUMBERS = (*FLOATS, *WHOLE, "complex64")


@dataclass
class Line:
    """A rule, programs that it rewrites, programs that it must leave alone.

    ``also``: programs of which only the results are compared.
    """

    fires: list
    stays: tuple = ()
    also: tuple = ()
    operands: int = 1
    dtypes: tuple = NUMBERS
    sides: tuple = (SMALL,)
    least: int = 0  # bytes of an operand below which it stays
    exact: bool = True
    make: tuple = (pairs,)
    roles: tuple = tuple(ROLES)  # those that the programs have a meaning in
    off: tuple = ()  # passes that would be sooner


def number(value, x):
    return tw.constant(value, x.dtype)


def full(value, x):
    return tw.fill(x.shape, number(value, x))


def all_but_one(value, x):
    """A constant of one number, but for its second entry."""
    array = np.full(x.shape, value, x.dtype.name)
    array[0, 1] = 5
    return tw.constant(array)


def wider(x):
    kinds = {"float16": "float32", "float32": "float64", "int32": "int64"}
    return kinds.get(x.dtype.name, "complex128" if x.dtype.is_complex else "uint64")


def gradient(function, *inputs):
    with tw.GradientTape() as tape:
        tape.watch(inputs)
        out = function(*inputs)
    return [out, *tape.gradient(out, inputs, unconnected_gradients="zero")]


def turned(x, *orders):
    for order in orders:
        x = tw.transpose(x, order)
    return x


CELLS, UPDATE = {}, tw.optimizers.SGD(0.5)


def cell(x):
    """A variable for values like ``x``, the same in each call."""
    key = x.dtype.name, tuple(x.shape)
    if key not in CELLS:
        with tw.init_scope():
            CELLS[key] = tw.Variable(tw.zeros(x.shape, x.dtype))
    return CELLS[key]
