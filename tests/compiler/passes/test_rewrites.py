"""Every rewrite and fusion rule: one line a rule, tried on special values in every role.

A line names a rule and the programs that it rewrites, or that it must leave alone. Each
program runs eagerly and traced, with operands that hold every pair of special values of a
dtype, and that come from everywhere: an input, an intermediate result, one that is also
returned, a variable that is written to afterwards, a view, a constant, the other operand.
The rules themselves are counted, so that a line fails where its rule does not fire, and
fires where it should not; a rule without a line fails, too.

Exact rules keep every bit but the sign of a NaN. The others keep NaN, infinities and the
signs of zeros in their places and round otherwise. `TAPEWRIGHT_TRY_ALL=1 pytest` tries
every program, dtype and size in every two roles.
"""

import functools
import itertools
import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler import pipeline
from tapewright.compiler.control_flow import loop_node
from tapewright.compiler.passes import algebra
from tapewright.compiler.passes.patterns import Rule
from tapewright.compiler.program.lowering_rules import LOOP_RULES, LOWERING_RULES
from tapewright.ops.array.scatter import put_row
from tapewright.ops.array.shape import sum_to_shape
from tapewright.ops.math.comparison import where_positive

from ...rounding import same_calls, without_overflow

TRY_ALL = os.environ.get("TAPEWRIGHT_TRY_ALL", "") not in ("", "0")

# Sides of the square operands: 4 kB at most; beyond the 16 kB of BLAS; beyond the 2^15
# entries from which masks are bytes; beyond the 4 MiB from which rows go in blocks.
SMALL, BLAS, BYTES, BLOCKS = 15, 75, 195, 1050

# -------------------------------------------------------------------------- counting


@pytest.fixture
def fired(monkeypatch):
    """Counts how often each rule changed something, by its name."""
    counts = Counter()

    def counted(name, function, changed):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            before = changed(*args) if changed is written else None
            result = function(*args, **kwargs)
            after = changed(*args) if changed is written else changed(result, *args)
            counts[name] += bool(after != before if changed is written else after)
            return result

        return wrapper

    def replaced(result, *args):
        return result is not None

    def another(result, graph):
        return result is not graph

    def applied(rule, *args, inner=Rule.apply):
        return counted(rule.name, inner, replaced)(rule, *args)

    monkeypatch.setattr(Rule, "apply", applied)
    for table, changed in (("GRAPH_PASSES", another), ("PROGRAM_PASSES", written)):
        passes = getattr(pipeline, table)
        passes = [counted(each.__name__, each, changed) for each in passes]
        monkeypatch.setattr(pipeline, table, passes)
    for rules in (LOWERING_RULES, LOOP_RULES):
        for op, rule in list(rules.items()):
            monkeypatch.setitem(rules, op, counted(op.name, rule, replaced))

    def in_place(node, body, inner=loop_node.writing_body):
        body, owned, sparse = inner(node, body)
        counts["owned"] += len(owned)
        counts["sparse"] += len(sparse)
        return body, owned, sparse

    monkeypatch.setattr(loop_node, "writing_body", in_place)
    return counts


def written(program):
    """What a program says, to see whether a step changes it."""
    return [
        (type(each), each.name, each.operands, [id(step) for step in each.steps])
        for each in program.instructions
    ]


def every_rule():
    passes = (*pipeline.GRAPH_PASSES, *pipeline.PROGRAM_PASSES)
    names = {each.__name__ for each in passes}
    rules = algebra.RULES.names() | {op.name for op in LOWERING_RULES}
    return rules | names | {"owned", "sparse"}


# ---------------------------------------------------------------------------- values


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


# ----------------------------------------------------------------------------- roles


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


# ------------------------------------------------------------------------- comparing


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
    optimizers = [tw.optimizers.SGD(0.5) for _ in roles]

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
            np.testing.assert_array_equal(tensor.numpy(), array, "an input was changed")
    found = [r if isinstance(r, type) else arrays_of(r) for r in results]
    if any([isinstance(r, type) for r in found]):  # a traced call does all or nothing
        return found
    return [*found, arrays_of([v for v in variables if v is not None])]


def assert_same(found, wanted, exact, rtol, what):
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
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

# ----------------------------------------------------------------------------- lines

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


ALGEBRA = {
    "narrower": Line(
        [
            lambda x, y: x + tw.broadcast_to(y[:1], x.shape),
            lambda x, y: tw.broadcast_to(x[:1], y.shape) * y,
            lambda x, y: tw.equal(tw.broadcast_to(x[:, :1], y.shape), y),
        ],
        [lambda x, y: x + y[:1], lambda x, y: tw.atan2(tw.broadcast_to(x[:1], y.shape), y)],
        also=[
            lambda x, y: tw.broadcast_to(x[:1], x.shape) + tw.broadcast_to(y[:1], x.shape),
            lambda x, y: tw.broadcast_to(x[:1], x.shape) + tw.broadcast_to(y[:, :1], x.shape),
        ],
        operands=2,
        sides=(SMALL, BLAS),
    ),
    "narrower, of one number": Line(
        [lambda x: x * full(3, x) - full(1, x), lambda x: tw.less(x, full(0, x))],
        [lambda x: x * all_but_one(3, x), lambda x: x + all_but_one(0, x)],
        also=[lambda x: x + full(np.nan, x), lambda x: full(-0.0, x) * x],
        dtypes=REAL,
    ),
    "times_one": Line(
        [lambda x: x * number(1, x), lambda x: number(1, x) * x, lambda x: full(1, x) * x],
        [
            lambda x: x * number(0, x),
            lambda x: x[:1, :1] * full(1, x),
            lambda x: tw.ones([2, 1, 1], x.dtype) * x,
        ],
        dtypes=(*FLOATS, *WHOLE),
    ),
    "over_constant": Line(
        [
            lambda x: x / number(1, x),
            lambda x: x / number(4, x),
            lambda x: x / full(0.5, x),
            lambda x: x / number(-1024, x),
            lambda x: x / number(2.0**-14, x),
        ],
        [
            lambda x: x / number(3, x),
            lambda x: x / number(0, x),
            lambda x: x / number(np.inf, x),
            lambda x: x / number(np.nan, x),
            lambda x: number(2, x) / x,
        ],
        also=[
            lambda x: x / number(2.0**-24, x),
            lambda x: x / number(np.finfo(x.dtype.name).tiny / 4, x),
            lambda x: x / number(np.finfo(x.dtype.name).tiny, x),
            lambda x: x / number(float(np.finfo(x.dtype.name).max), x),
        ],
        dtypes=FLOATS,
    ),
    "plus_nothing": Line(
        [
            lambda x: x - number(0, x),
            lambda x: x - full(0, x),
        ],
        [
            lambda x: number(0, x) - x,
            lambda x: x[:1] - full(0, x),
            lambda x: x - number(1, x),
        ],
        dtypes=(*FLOATS, *WHOLE),
    ),
    "plus_nothing, signed": Line(
        [lambda x: x + number(-0.0, x), lambda x: number(-0.0, x) + x],
        [
            lambda x: x + number(0, x),
            lambda x: x - number(-0.0, x),
            lambda x: number(0.0, x) + x,
        ],
        dtypes=FLOATS,
    ),
    "plus_negative": Line(
        [lambda x, y: x + (-y), lambda x, y: (-x) + y, lambda x, y: (-x) + (-y)],
        [lambda x, y: x + y, lambda x, y: -(x + y)],
        operands=2,
    ),
    "minus_negative": Line(
        [lambda x, y: x - (-y), lambda x, y: (-x) - (-y)],
        [lambda x, y: (-x) - y, lambda x, y: -(x - y)],
        operands=2,
    ),
    "two_negatives": Line(
        [
            lambda x, y: (-x) * (-y),
            lambda x, y: (-x) / (-y),
            lambda x, y: (-x) * number(3, x) + number(3, y) * (-y),
            lambda x, y: (-x) / number(3, x),
            lambda x, y: number(3, x) / (-x),
            lambda x, y: (-x) * full(0, x),
            lambda x, y: full(np.inf, x) / (-x),
        ],
        [lambda x, y: (-x) * y, lambda x, y: x / (-y), lambda x, y: (-x) * tw.abs(y)],
        operands=2,
        dtypes=FLOATS,
    ),
    "two_negatives, of whole numbers": Line(
        [],
        [lambda x, y: (-x) * (-y), lambda x, y: (-x) * number(3, x)],
        operands=2,
        dtypes=WHOLE,
    ),
    "double_negative": Line(
        [lambda x: -tw.negative(x), lambda x: tw.tanh(-tw.negative(x))], [tw.negative]
    ),
    "passed_on": Line(
        [tw.identity, tw.stop_gradient, lambda x: tw.identity(x) * number(2, x)]
    ),
    "cast_back": Line(
        [
            lambda x: tw.cast(tw.cast(x, wider(x)), x.dtype),
            lambda x: tw.cast(tw.cast(x, wider(x)), x.dtype) + x,
        ],
        [
            lambda x: tw.cast(tw.cast(x, "float16"), x.dtype),
            lambda x: tw.cast(tw.cast(x, "int8"), x.dtype),
            lambda x: tw.cast(tw.cast(x, "bool"), x.dtype),
            lambda x: tw.cast(tw.cast(x, wider(x)), "int16"),
        ],
        dtypes=("float16", "float32", "int32", "uint8"),
    ),
    "known_condition": Line(
        [
            lambda x, y: tw.where(tw.constant(True), x, y),
            lambda x, y: tw.where(tw.fill(x.shape, False), x, y),
            lambda x, y: tw.where(tw.fill(x.shape, True), x, y) + y,
        ],
        [
            lambda x, y: tw.where(tw.constant(True), x[:1], y),
            lambda x, y: tw.where(tw.equal(x, y), x, y),
            lambda x, y: tw.where(tw.constant([True] + [False] * 14), x, y),
        ],
        operands=2,
    ),
    "sum_of_nothing": Line(
        [lambda x: sum_to_shape(x, tuple(x.shape))],
        [lambda x: sum_to_shape(x, (1, *x.shape[1:]))],
        dtypes=REAL,
    ),
    "broadcast_of_broadcast": Line(
        [
            lambda x: tw.broadcast_to(tw.broadcast_to(x, [2, *x.shape]), [3, 2, *x.shape]),
            lambda x: tw.broadcast_to(x, x.shape),
            lambda x: tw.broadcast_to(tw.broadcast_to(x[:, :1], x.shape), [2, *x.shape]),
        ],
        [lambda x: tw.broadcast_to(x, [2, *x.shape])],
    ),
    "concat_of_one": Line(
        [lambda x: tw.concat([x], 0), lambda x: tw.concat([x], 1) * x],
        [lambda x: tw.concat([x, x], 0)],
    ),
    "one_reshape": Line(
        [
            lambda x: tw.reshape(tw.reshape(x, [-1]), [5, -1]),
            lambda x: tw.reshape(x, x.shape),
            lambda x: tw.squeeze(tw.expand_dims(tw.reshape(x, [3, -1]), 1)),
            lambda x: tw.expand_dims(tw.reshape(x, [-1]), 0) * number(2, x),
        ],
        [lambda x: tw.reshape(x, [-1]), lambda x: tw.reshape(tw.transpose(x), [-1])],
    ),
    "one_transpose": Line(
        [
            lambda x: tw.transpose(tw.transpose(x)),
            lambda x: tw.transpose(x, [0, 1]),
            lambda x: turned(tw.reshape(x, [3, 5, 15]), [1, 2, 0], [1, 2, 0]),
            lambda x: turned(tw.reshape(x, [5, 3, 15]), [0, 2, 1], [2, 1, 0]),
        ],
        [lambda x: tw.transpose(x)],
    ),
    "one_transpose, conjugated": Line(
        [],
        [
            lambda x: tw.transpose(tw.transpose(x, conjugate=True)),
            lambda x: tw.transpose(tw.transpose(x), conjugate=True),
            lambda x: tw.transpose(x, [0, 1], conjugate=True),
        ],
        dtypes=("complex64",),
    ),
    "product_of_transposed": Line(
        [
            lambda x, y: tw.transpose(x) @ y,
            lambda x, y: x @ tw.transpose(y),
            lambda x, y: tw.transpose(x) @ tw.transpose(y),
            lambda x, y: tw.matmul(tw.transpose(x), y, transpose_a=True),
            lambda x, y: tw.transpose(x) @ x + y @ tw.transpose(y),
            lambda x, y: tw.transpose(tw.stack([x, y]), [0, 2, 1]) @ tw.stack([y, -x]),
        ],
        [
            lambda x, y: x @ y,
            lambda x, y: tw.transpose(tw.stack([x, y]), [1, 0, 2]) @ x[:, :2],
        ],
        also=[lambda x, y: tw.transpose(x, conjugate=True) @ y],
        operands=2,
        dtypes=(*FLOATS, "int32", "complex64"),
        make=(sparse_specials,),
    ),
}  # fmt: skip


def gated(x, y):
    """The gradient of relu, which is a `where_positive`."""
    return gradient(lambda x: tw.nn.relu(x) * y, x)


CELLS, UPDATE = {}, tw.optimizers.SGD(0.5)


def cell(x):
    """A variable for values like ``x``, the same in each call."""
    key = x.dtype.name, tuple(x.shape)
    if key not in CELLS:
        with tw.init_scope():
            CELLS[key] = tw.Variable(tw.zeros(x.shape, x.dtype))
    return CELLS[key]


def stored_unchanged(x):
    cell(x).assign(cell(x).read_value())
    return x * number(2, x)


def stored_twice(x):
    cell(x).assign(x)
    first = cell(x).read_value()
    cell(x).assign(first * number(2, x))
    return first, cell(x).read_value()


def stored_after_an_update(x):
    before = cell(x).read_value()
    UPDATE.apply_gradients([(x, cell(x))])
    cell(x).assign(before)
    return before * number(2, x)


def folded(function):
    """A function of a constant that no trace knows, but algebra finds."""

    def run(x):
        c = tw.where(tw.constant(True), number(-0.0, x), x[0, 0])
        return x * function(c)

    return run


def unused(x):
    tw.sin(x)
    return x * number(2, x)


def layers(x, w, activation=tw.nn.relu, depth=1):
    v = w[:, :3]
    for _ in range(depth):
        x = activation(activation(x @ w) @ v) @ tw.transpose(v)
    return x


PASSES = {
    "dead_nodes": Line([unused, lambda x: [x + x, tw.square(x)][0]], [lambda x: x + x]),
    "algebra": Line([lambda x: -tw.negative(x)], [tw.square]),
    "dead_stores": Line(
        [stored_unchanged, lambda x: [stored_unchanged(x), cell(x) + x][1]],
        [stored_twice],
        also=[stored_after_an_update],
        dtypes=REAL,
    ),
    "constant_folding": Line(
        [
            *[folded(op) for op in (tw.exp, tw.negative, tw.math.reciprocal)],
            folded(lambda c: tw.sqrt(c - tw.exp(c))),
            folded(lambda c: tw.stack([c / c, c] + 13 * [c])),
        ],
        [
            lambda x: x * number(2, x),
            folded(lambda c: tw.fill([999, 999], c + c)[0, :15]),
        ],
        dtypes=FLOATS,
    ),
    "constant_folding, of whole numbers": Line(
        [folded(lambda c: (c + number(100, c)) * number(100, c))],
        also=[
            folded(lambda c: number(7, c) // c),
            folded(lambda c: tw.gather(tw.constant([1, 2]), c + number(5, c))),
            folded(lambda c: c - number(1, c)),
        ],
        dtypes=WHOLE,
    ),
    "common_subexpressions": Line(
        [
            lambda x, y: (x + y) * (y + x),
            lambda x, y: x * y - y * x,
            lambda x, y: (tw.square(x) + y) / (tw.square(x) - y),
        ],
        [
            lambda x, y: (x - y, y - x),
            lambda x, y: (x / y, y / x),
            lambda x, y: (x * number(0.0, x), y * number(-0.0, x)),
            lambda x, y: (tw.reduce_max(x, 0), tw.reduce_max(x, 1)),
        ],
        also=[lambda x, y: (x * number(0.0, x), x * number(-0.0, x))],
        operands=2,
        dtypes=FLOATS,
    ),
    "common_subexpressions, of complex numbers": Line(
        [lambda x, y: tw.square(x + y) / (x + y)],
        [lambda x, y: (x * y, y * x)],  # their parts are rounded in another order
        operands=2,
        dtypes=("complex64",),
    ),
    "shared_weights": Line(
        [
            lambda x, y, w: (layers(x, w), layers(y, w)),
            lambda x, y, w: (layers(x, w), layers(y[:7], w)),
            lambda x, y, w: layers(y[:1], w, tw.tanh) + layers(x, w, tw.tanh),
            lambda x, y, w: gradient(
                lambda w: tw.reduce_sum(layers(x, w)) + tw.reduce_sum(layers(y, w)), w
            ),
        ],
        [
            lambda x, y, w: (x @ w, y @ tw.abs(w)),
            lambda x, y, w: (w @ x, w @ y),
        ],
        also=[
            lambda x, y, w: layers(x, w),
            lambda x, y, w: (
                tw.tanh(tw.nn.relu(x @ w) @ w[:, :3]),
                tw.tanh(tw.nn.relu(y @ w) @ w[:, 3:6]),
            ),
            lambda x, y, w: layers(x, w, tw.tanh) + layers(y, w, tw.abs),
        ],
        operands=3,
        dtypes=SINGLE,
        sides=(SMALL, BLAS),
        exact=False,
        make=(rows_and_weights,),
    ),
}


def pooled(x, b, size=2):
    return tw.nn.max_pool2d(tw.nn.relu(x + b), size, size, "VALID")


def images(dtype, side, count, special=(np.nan, np.inf, -np.inf, -0.0), last=np.inf):
    """Images and a bias for each channel, special values among whole numbers."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (4, side // 2, 7, 3)).astype(dtype)
    for k, value in enumerate(special):
        x[k % 4, k : 2 * k + 1, :3, k % 3] = value
    return [x, np.array([1, -np.inf, last], dtype)][:count]


def filters_and_images(dtype, side, count):
    """Images, filters and a cotangent, with an infinity and a NaN."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (4, 9, 8, 2)).astype(dtype)
    x[0, 2, 2], x[1, 3, 3, 0], x[2] = np.inf, np.nan, -0.0
    return [x, rng.integers(-2, 3, (3, 3, 2, 4)).astype(dtype)][:count]


def convolved(x, f, padding="VALID", **options):
    return tw.nn.conv2d(x, f, 1, padding, **options)


def cotangent_of_convolution(x, f):
    with tw.GradientTape() as tape:
        tape.watch([x, f])
        y = convolved(x, f)
        out = tw.nn.max_pool2d(y, 2, 2, "VALID")
    return tape.gradient(out, [y, x, f])


OF_IMAGES = tuple([name for name in ROLES if name != "broadcast"])
CONVOLUTION = dict(
    operands=2,
    dtypes=REAL,
    make=(filters_and_images,),
    roles=OF_IMAGES,
)

FORMS = {
    "where_positive": Line(
        [
            lambda x, y: where_positive(x, y),
            lambda x, y: where_positive(x, y) + where_positive(y, x),
            gated,
        ],
        also=[lambda x, y: where_positive(x, full(1, y))],
        operands=2,
        dtypes=REAL,
        sides=(SMALL, BYTES),
    ),
    "where_positive, of one row": Line(
        [],
        also=[
            lambda x, y: where_positive(x, y[:1]),
            lambda x, y: where_positive(x[:0], y[:0]),
        ],
        operands=2,
        dtypes=("float16", "float32"),
    ),
    "clip_by_norm": Line(
        [
            *[lambda x, c=c: tw.clip_by_norm(x, c) for c in (3.0, 1e30, 0.0, -1.0)],
            *[lambda x, c=c: tw.clip_by_norm(x, c) for c in (np.nan, np.inf, 1e-30)],
            lambda x: tw.clip_by_norm(tw.where(tw.math.is_finite(x), x, full(1, x)), 2.0),
            lambda x: tw.clip_by_norm(tw.fill([4], x[3, 0]), x[7, 0]),
        ],
        [lambda x: tw.clip_by_norm(x, 3.0, axes=1)],
        dtypes=REAL,
        make=(pairs, tame_pairs),
        sides=(SMALL, BLAS),
    ),
    "concat": Line(
        [
            lambda x, y: tw.concat([x, y], 0),
            lambda x, y: tw.concat([x, y, x], 1),
            lambda x, y: tw.concat([x[:0], y], -2) * number(2, x),
        ],
        operands=2,
        dtypes=(*NUMBERS, "bool"),
    ),
    "convolution": Line([convolved], also=[lambda x, f: convolved(x[:0], f)], **CONVOLUTION),
    "convolution_input_gradient": Line(
        [lambda x, f: gradient(lambda x: convolved(x, f), x)[1]], **CONVOLUTION
    ),
    "convolution_filter_gradient": Line(
        [lambda x, f: gradient(lambda f: convolved(x, f, "SAME"), f)[1]], **CONVOLUTION
    ),
    "relu": Line(
        [
            lambda x: tw.nn.relu(tw.reshape(x, [5, -1, x.shape[-1]])),
            lambda x: tw.nn.relu(tw.transpose(tw.reshape(x, [5, -1, x.shape[-1]]))),
            lambda x: tw.nn.relu(tw.reshape(x, [-1, 1, 5, 3])),
        ],
        [lambda x: tw.nn.relu(x)],
        dtypes=FLOATS,
        sides=(SMALL, BLAS),
    ),
    "add_to_maxima": Line(
        [pooled, lambda x, b: pooled(tw.transpose(x, [0, 2, 1, 3]), b, 3)],
        [lambda x, b: tw.nn.max_pool2d(x + b, 2, 2, "VALID")],
        operands=2,
        dtypes=REAL,
        make=(images,),
        roles=OF_IMAGES,
    ),
    "spread_to_maxima": Line(
        [
            lambda x: gradient(lambda x: tw.nn.max_pool2d(x, 2, 2, "VALID"), x),
        ],
        dtypes=REAL,
        make=(lambda dtype, side, count: [images(dtype, 28, 2)[0][:, :6, :6].copy()],),
        roles=OF_IMAGES,
    ),
    "sum_to_shape": Line(
        [
            lambda x, f: gradient(
                lambda b: tw.tanh(convolved(x, f, "SAME") + b), tw.ones([4], x.dtype)
            )
        ],
        [
            lambda x, f: gradient(
                lambda b: tw.tanh(convolved(x, f, "SAME") + b), tw.ones([8, 1], x.dtype)
            )
        ],
        operands=2,
        dtypes=REAL,
        exact=False,
        make=(lambda *given: [np.repeat(filters_and_images(*given)[0], 4, 0),
                              filters_and_images(*given)[1]],),
        roles=OF_IMAGES,
    ),
}  # fmt: skip

IMAGES = {
    "pool_first": Line(
        [
            pooled,
            lambda x, b: tw.nn.max_pool2d(tw.nn.relu(b + x), (2, 1), (2, 1), "VALID"),
            lambda x, b: pooled(tw.transpose(x, [0, 2, 1, 3]), b, 3),
        ],
        [
            lambda x, b: tw.nn.max_pool2d(x + b, 2, 2, "VALID"),
            lambda x, b: tw.nn.avg_pool2d(tw.nn.relu(x + b), 2, 2, "VALID"),
            lambda x, b: (pooled(x, b), tw.nn.relu(x + b)),
        ],
        also=[
            lambda x, b: pooled(x, x),
            lambda x, b: pooled(-x, tw.reshape(b[:1], [1, 1, 1, 1])),
        ],
        operands=2,
        dtypes=REAL,
        make=(images,),
        roles=OF_IMAGES,
    ),
    "pool_first, backward": Line(
        [
            lambda x, b: gradient(pooled, x, b),
            lambda x, b: gradient(functools.partial(pooled, size=3), x, b),
            lambda x, b: gradient(lambda x, c: pooled(x + c, b), x, x[:1, :, :1, :1])[2],
        ],
        operands=2,
        dtypes=REAL,
        exact=False,
        sides=(28, 180),
        make=(functools.partial(images, special=(np.inf, -np.inf, -0.0), last=-2),),
        roles=OF_IMAGES,
    ),
    "cropped_convolutions": Line(
        [
            lambda x, f: tw.nn.max_pool2d(convolved(x, f), 2, 2, "VALID"),
            lambda x, f: gradient(
                lambda x, f: tw.nn.max_pool2d(convolved(x, f), 2, 2, "VALID"), x, f
            ),
            lambda x, f: tw.nn.max_pool2d(convolved(x, f, "SAME"), 2, 2, "VALID"),
        ],
        [
            cotangent_of_convolution,
            lambda x, f: tw.nn.max_pool2d(convolved(x[:, :8], f), 2, 2, "VALID"),
            lambda x, f: (
                tw.nn.max_pool2d(convolved(x, f), 2, 2, "VALID"), convolved(x, f)
            ),
        ],
        **CONVOLUTION | {"exact": False},
    ),
}  # fmt: skip

STEPS = {
    "merge_equal": Line(
        [
            lambda x, y: (tw.sin(x) + y) * tw.sin(x),
            lambda x, y: (tw.transpose(tw.sin(x)) - tw.sin(x), tw.sin(x)),
            lambda x, y: (x * number(0, x)) + (x * number(0, x)) * y,
        ],
        [
            lambda x, y: tw.reduce_max(x, 0) + tw.reduce_max(x, 1),
            lambda x, y: (x - y, y - x),
            lambda x, y: (x * number(0.0, x), x * number(-0.0, x)),
        ],
        operands=2,
        dtypes=REAL,
        off=("common_subexpressions",),
    ),
    "uniform_constants": Line(
        [
            lambda x: x * tw.broadcast_to(number(3, x), x.shape),
            lambda x: tw.broadcast_to(number(np.nan, x), x.shape) + x,
            lambda x: where_positive(tw.broadcast_to(number(-0.0, x), x.shape), x),
        ],
        [
            lambda x: x * number(3, x),
            lambda x: x * all_but_one(3, x),
            lambda x: x[:1] * tw.broadcast_to(number(3, x), x.shape),
        ],
        dtypes=REAL,
        sides=(SMALL, BYTES),
        off=("algebra",),
    ),
    "drop_unused": Line(
        [lambda x, f: tw.tanh(convolved(x, f)) + number(1, x)],
        [lambda x, f: tw.tanh(x) * number(2, x)],
        **CONVOLUTION,
    ),
    **{
        f"gelu{name}": Line(
            [function],
            dtypes=SINGLE,
            sides=(BLAS, BLOCKS),
            least=1 << 22,
            roles=("made", "transposed result"),
        )
        for name, function in {
            "": tw.nn.gelu,
            "_slope": lambda x: gradient(tw.nn.gelu, x),
            "_by_tanh": lambda x: tw.nn.gelu(x, True),
            "_by_tanh_slope": lambda x: gradient(lambda x: tw.nn.gelu(x, True), x),
        }.items()
    },
    "row_blocks": Line(
        [
            lambda x, y: tw.tanh(x * y + y[:1]) - x[:, :1],
            lambda x, y: [[z, z * y, tw.reduce_max(z, 0)] for z in [tw.maximum(x, y) - x]][0],
            lambda x, y: tw.maximum(x, y) * y[0] - tw.abs(x),
            lambda x, y: tw.nn.softmax(x) * y,
        ],
        operands=2,
        dtypes=SINGLE,
        sides=(BLAS, BLOCKS),
        least=1 << 22,
        roles=("made", "variable, updated in place afterwards", "transposed result"),
    ),
}  # fmt: skip


def steps(step, x, *carried):
    """A loop of five steps, over numbers that no trace knows."""
    start = tw.cast(tw.not_equal(x[0, 0], x[0, 0]), "int32") * 0
    return tw.while_loop(lambda i, *_: i < 5, step, [start, *carried])[1:]


def written_rows(x, start=None):
    """A carried matrix of which each step replaces a row."""

    def step(i, rows):
        return i + 1, put_row(rows, i, tw.gather(rows, i) + x[0])

    return steps(step, x, x if start is None else start)[0]


def last_rows(x):
    """Rows that are read, then replaced, and returned."""

    def step(i, rows, last):
        return i + 1, put_row(rows, i, last), tw.gather(rows, i)

    return steps(step, x, x, x[0])


def states(x):
    array = tw.TensorArray(x.dtype, size=5).unstack(x[:5])

    def step(i, state, array):
        state = tw.tanh(state * x[1]) - array.read(i)
        return i + 1, state, array.write(i, state)

    return steps(step, x, x[0], array)[1].stack()


def read_afterwards(x):
    """Steps that look at the matrix as it was before a row of it is replaced."""

    def step(i, rows, total):
        new = put_row(rows, i, tw.gather(rows, i) * number(2, x))
        return i + 1, new, total + tw.reduce_max(rows, 0) + new[0]

    return steps(step, x, x, x[0])


def handed_on(x):
    """Steps that carry the matrix before a row of it is replaced as well as after."""

    def step(i, rows, before):
        return i + 1, put_row(rows, i, tw.gather(rows, i) + x[0]), rows

    return steps(step, x, x, x)


def exchanged(x):
    def step(i, a, b):
        return i + 1, b, put_row(a, i, tw.gather(b, i))

    return steps(step, x, x, -x)


def stacked(x):
    """The matrix before each step, all of them."""
    picks = tw.range(5) + tw.cast(tw.not_equal(x[0, 0], x[0, 0]), "int32") * 0
    return tw.scan(lambda a, i: put_row(a, i, tw.gather(a, i) + x[0]), picks, x)


def branches(x):
    return tw.cond(
        x[3, 3] > 0,
        lambda: (x + x, x * x),
        lambda: (x - number(1, x), tw.square(x[0]) * x),
    )


def picked_rows(x):
    picks = tw.constant([3, 1, 3, 0, 4])
    return tw.foldl(lambda a, i: a * number(0.5, x) + tw.gather(x, i), picks, x[0] * 0)


def picked_twice(x):
    picks = tw.constant([[3, 3], [1, 0], [2, 2], [4, 1], [3, 0]])

    def step(a, i):
        return a * number(0.5, x) + tw.reduce_sum(tw.gather(x, i), 0)

    return tw.foldl(step, picks, x[0] * 0)


LOOPS = {
    "owned": Line(
        [written_rows, last_rows, states, lambda x: (written_rows(x), x)],
        [read_afterwards, handed_on, exchanged, stacked],
        also=[lambda x: written_rows(x, tw.broadcast_to(x[:1], x.shape))],
        dtypes=REAL,
    ),
    "sparse": Line(
        [lambda x: gradient(picked_rows, x), lambda x: gradient(picked_twice, x)],
        also=[lambda x: gradient(lambda x: tw.square(picked_rows(x)), x)],
        dtypes=REAL,
        exact=False,
        make=(tame_pairs,),
    ),
    "narrow_control": Line(
        [
            lambda x: read_afterwards(x)[0],
            lambda x: branches(x)[0],
            lambda x: gradient(written_rows, x)[1],
        ],
        [branches, last_rows],
        dtypes=REAL,
        exact=False,
        make=(tame_pairs,),
    ),
}

TABLE = ALGEBRA | PASSES | IMAGES | FORMS | STEPS | LOOPS


# ----------------------------------------------------------------------------- tests


def combinations(line):
    """Roles of the operands: each in turn beside made ones; all, if asked for."""
    if TRY_ALL:
        found = [*itertools.product(line.roles, repeat=line.operands)]
    else:
        plain = ["made"] * line.operands
        found = [
            (*plain[:at], name, *plain[at + 1 :])
            for at, name in itertools.product(range(line.operands), line.roles)
        ]
    found = [names for names in found if not ROLES[names[0]].shared]
    return sorted(set(found), key=lambda names: [n != "made" for n in names])


@pytest.mark.parametrize("name", TABLE)
def test_a_rule_fires_where_it_should_and_changes_no_number(name, fired):
    line, rule = TABLE[name], name.partition(",")[0]
    problems = []
    own = rule == "row_blocks" or rule.startswith("gelu")  # of one target
    target = "numpy" if own else tw.config.target()
    passes = tw.config.graph_passes(True, **dict.fromkeys(line.off, False))
    with passes, tw.config.use_target(target):
        for dtype, side, make in itertools.product(line.dtypes, line.sides, line.make):
            arrays = make(dtype, side, line.operands)
            is_large = arrays[0].nbytes >= line.least
            for kind in ("fires", "stays", "also"):
                for k, program in enumerate(getattr(line, kind)):
                    where = f"{kind}[{k}] of {dtype}, side {side}"
                    largest = side == line.sides[-1] and dtype == line.dtypes[0]
                    in_all = TRY_ALL or (kind == "fires" and largest)
                    found, can_run = tried(line, program, arrays, fired, in_all)
                    problems += [f"{where}{problem}" for problem in found]
                    wanted = kind == "fires" and is_large
                    if kind != "also" and can_run and (fired[rule] > 0) != wanted:
                        problems.append(f"{where} fired {fired[rule]} times")
    assert not problems, "\n".join(problems)


def tried(line, program, arrays, fired, in_all):
    """What goes wrong; whether it can be run. Counts where all operands are made ones."""
    plain, *others = combinations(line)
    problems, can_run = [], False
    for names in (*(others if in_all else ()), plain):
        fired.clear()
        try:
            can_run = check(program, arrays, [ROLES[n] for n in names], line.exact)
        except AssertionError as error:
            problems.append(f", operands {', '.join(names)}: {error}")
    return problems, can_run


def test_every_rule_has_a_line():
    of_several_processes = {"overlap_all_reduces"}  # see `test_overlapping`
    tabled = {name.partition(",")[0] for name in TABLE}
    assert tabled == every_rule() - of_several_processes
