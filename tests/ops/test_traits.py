"""Traits of ops, each held by what kernels do: a wrong or missing one fails here."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.guards import Guards
from tapewright.core.primitive import list_ops, primitive, wrap_kernels
from tapewright.core.symbolic_dim import Dim, Size, is_size, value_of

MANY = 12  # calls of one op that are tried
CASTS = ("uint8", "int32", "int64", "float64", "complex128")
SAMPLES = {"b": "bool", "i": "int32", "u": "uint8", "f": "float32", "c": "complex64"}


def calls_of_kernels(table):
    """The arrays and attributes with which the op table calls each kernel."""
    calls = defaultdict(list)

    def noted(op, kernel):
        def run(*arrays, **attributes):
            plain = all([isinstance(a, np.ndarray) for a in arrays])
            if plain and len(calls[op]) < MANY:
                calls[op].append(([np.array(a) for a in arrays], attributes))
            return kernel(*arrays, **attributes)

        return run

    wrap_kernels(noted)
    try:
        for each in table:
            run_with_gradients(each)
    finally:
        wrap_kernels(None)
    return calls


def run_with_gradients(case):
    inputs = [tw.constant(a) for a in case.inputs]
    with tw.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([x for x in inputs if x.dtype.is_differentiable])
        outputs = case(*inputs)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    if case.order:
        tape.gradient([y for y in outputs if y.dtype.is_differentiable], inputs)


def bad(array):
    """Arrays like this one of values that suit nobody."""
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        values = (0, 1, -1, -2, 7, 100, info.max, info.min)
        return [np.full_like(array, v) for v in values if info.min <= v <= info.max]
    if array.dtype.kind in "fc":
        values = (0, -1, 0.5, 1e30, np.nan, np.inf, -np.inf)
        one_nan, one_infinity = np.array(array), np.array(array)
        one_nan.flat[:1], one_infinity.flat[-1:] = np.nan, np.inf
        return [*[np.full_like(array, v) for v in values], one_nan, one_infinity]
    return [np.zeros_like(array), np.ones_like(array)]


def variants(op, arrays):
    """The arrays, and the same of other dtypes where these are taken."""
    names = op.names(arrays)
    for dtype in (None, *CASTS):
        found = [
            a.astype(dtype) if dtype and n in op.alike and a.dtype.kind in "iufc" else a
            for a, n in zip(arrays, names)
        ]
        if not (op.kinds and found and found[0].dtype.kind not in op.kinds):
            yield found


def raises(op, arrays, attributes):
    kernel = op.kernels.plain(np.ndarray)
    try:
        with np.errstate(all="ignore"):
            kernel(*[a.copy() for a in arrays], **attributes)
    except Exception:
        return True
    return False


@pytest.mark.filterwarnings("ignore")
def test_may_raise_is_said_of_just_those_ops_that_raise_for_some_values(table):
    raised = defaultdict(set)
    for op, calls in calls_of_kernels(table).items():
        for arrays, attributes in calls:
            for given in variants(op, arrays):
                if raises(op, given, attributes):
                    continue  # no dtype for it
                for i, array in enumerate(given):
                    trials = [[*given[:i], b, *given[i + 1 :]] for b in bad(array)]
                    if any([raises(op, trial, attributes) for trial in trials]):
                        raised[op.name].add(given[0].dtype.kind)
    ops = {op.name: op for op in list_ops()}
    ours = {n: op for n, op in ops.items() if op.kernel.__module__.startswith("tapew")}
    missing = {
        (name, kind)
        for name in raised.keys() & ours
        for kind in raised[name]
        if not ours[name].raises_on_values(np.dtype(SAMPLES[kind]))
    }
    assert not missing
    never = sorted({name for name, op in ours.items() if op.may_raise} - raised.keys())
    assert not never


def test_an_op_of_the_users_own_may_raise_unless_it_says_otherwise():
    careless = primitive(lambda xp, x: x, name="tests_careless").primitive
    careful = primitive(lambda xp, x: x, name="tests_careful", may_raise=False)
    assert careless.raises_on_values(np.dtype("float32"))
    assert not careful.primitive.raises_on_values(np.dtype("float32"))


# ------------------------------------------------------------------------------ sizes


def formulas_of(array, scope):
    """The integers of an array as formulas of one size, which is 5."""
    size = Dim.of(Size(0, 0), scope)
    formula = np.frompyfunc(lambda n: size + (int(n) - 5), 1, 1)
    return np.asarray(formula(array.astype(object)), object)


def evaluated(result):
    values = np.frompyfunc(
        lambda n: value_of(n.expression, {Size(0, 0): 5}) if is_size(n) else n, 1, 1
    )
    return values(np.asarray(result, object))


# These inputs are picked with, or say how often: numbers, no formulas.
NUMBERS = {("gather", "indices"), ("put_rows", "indices"), ("power", "y")}


def test_ops_with_sizes_do_with_formulas_what_they_do_with_integers(table):
    ops = {op.name: op for op in list_ops() if op.sizes}
    calls = {op: c for op, c in calls_of_kernels(table).items() if op.sizes}
    for op in ops.values():
        if op.elementwise:  # numbers, too: NumPy then returns no array
            scalars = [np.array(7), *[np.array(2)] * (len(op.inputs) - 1)]
            kept = {n: "int32" for n in op.attributes}
            calls.setdefault(op, []).append((scalars, kept))
    tried = set()
    for op, given in calls.items():
        for arrays, attributes in given:
            if any([a.dtype.kind not in "iufc" or not a.size for a in arrays]):
                continue  # without entries there are no formulas
            if not all([np.isfinite(a).all() for a in arrays]):
                continue  # no integers
            arrays = [
                (a if a.dtype.kind in "iu" else np.rint(a.real * 3)).astype("int32")
                for a in arrays
            ]
            if op.name == "power":
                arrays = [abs(a) for a in arrays]
            if raises(op, arrays, attributes):
                continue
            wanted = op.kernels.plain(np.ndarray)(*arrays, **attributes)
            scope = Guards({Size(0, 0): 5})
            objects = [
                a.astype(object) if (op.name, n) in NUMBERS else formulas_of(a, scope)
                for a, n in zip(arrays, op.names(arrays))
            ]
            kernel = op.device_kernels.get("formulas", op.kernel)
            found = kernel(np, *objects, **attributes)
            pairs = zip(found, wanted) if op.multiple else [(found, wanted)]
            for result, numbers in pairs:
                np.testing.assert_array_equal(evaluated(result), numbers, op.name)
            tried.add(op.name)
    assert tried == ops.keys()


# --------------------------------------------------------------- linear


def floating(op, arrays):
    """The positions of the inputs with numbers that a derivative can be of."""
    return [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]


def drawn(rng, array):
    values = rng.uniform(-2, 2, array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * rng.uniform(-2, 2, array.shape)
    return values.astype(array.dtype)


def outputs_of(op, arrays, attributes):
    """The floating outputs of a kernel; None if it raises or there are none."""
    try:
        with np.errstate(all="ignore"):
            outputs = op.kernels.plain(np.ndarray)(*map(np.array, arrays), **attributes)
    except Exception:  # no matrix that can be decomposed, say
        return None
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    outputs = [np.asarray(out) for out in outputs]
    return outputs if all([out.dtype.kind in "fc" for out in outputs]) else None


def is_linear(op, arrays, attributes, group):
    """``f(a x + b y) = a f(x) + b f(y)`` in these inputs together, the others fixed."""
    rng, a, b = np.random.default_rng(3), 1.7, -0.6
    for _ in range(3):
        rows = [list(arrays), list(arrays), list(arrays)]
        for i in group:
            x, y = drawn(rng, arrays[i]), drawn(rng, arrays[i])
            rows[0][i], rows[1][i], rows[2][i] = x, y, (a * x + b * y).astype(x.dtype)
        of_x, of_y, of_both = (outputs_of(op, row, attributes) for row in rows)
        if of_x is None or of_y is None or of_both is None:
            return False
        for x, y, both in zip(of_x, of_y, of_both, strict=True):
            digits = 1e-4 if both.dtype.itemsize < 8 else 1e-9
            if not np.allclose(a * x + b * y, both, rtol=digits, atol=digits):
                return False
    zeros = [np.zeros_like(x) if i in group else x for i, x in enumerate(arrays)]
    return not any([out.any() for out in outputs_of(op, zeros, attributes)])


def linear_calls(op, calls):
    """The calls that can tell whether an op is linear."""
    for arrays, attributes in calls:
        if all([a.size and np.isfinite(a).all() for a in arrays]):
            outputs = outputs_of(op, arrays, attributes)
            if floating(op, arrays) and outputs and all([out.size for out in outputs]):
                yield arrays, attributes


def open_groups(op, arrays):
    """``(name, positions)`` of sets of inputs in which the op may be linear."""
    names = op.names(arrays)
    at = [i for i in floating(op, arrays) if names[i] not in op.flat]
    if op.variadic:
        together = [("together", at)] if len(at) > 1 else []
        return together + [("each", [i]) for i in at if len(at) > 1]
    counts = range(1, len(at) + 1)
    groups = [group for n in counts for group in itertools.combinations(at, n)]
    return [(tuple([names[i] for i in group]), group) for group in groups]


@pytest.mark.filterwarnings("ignore")
def test_linear_names_just_the_inputs_in_which_an_op_is_linear(table):
    wrong, missing, tried = set(), set(), set()
    for op, calls in calls_of_kernels(table).items():
        if op.name.startswith("random_"):
            continue  # drawn numbers, in which nothing is linear
        found = defaultdict(list)
        for arrays, attributes in linear_calls(op, calls):
            tried.add(op)
            declared = op.linear_groups(arrays)
            for group in declared:
                group = [i for i in floating(op, arrays) if i in group]
                if group and not is_linear(op, arrays, attributes, group):
                    wrong.add(op.name)
            for name, group in open_groups(op, arrays):
                if not any([known.issuperset(group) for known in declared]):
                    found[name].append(is_linear(op, arrays, attributes, group))
        missing |= {(op.name, name) for name, linear in found.items() if all(linear)}
    assert not wrong
    assert not missing
    assert {op for op in list_ops() if op.linear and op.is_own} <= tried
