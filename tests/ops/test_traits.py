"""Traits of ops, each held by what kernels do: a wrong or missing one fails here."""

import itertools
import warnings
from collections import defaultdict

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.op_definition.op_registry import list_ops
from tapewright.core.primitive import primitive, wrap_kernels
from tapewright.core.shapes.guards import Guards
from tapewright.core.shapes.symbolic_dim import (
    DimSymbol,
    UnknownSize,
    evaluate,
    is_symbolic,
)
from tapewright.core.tensor import new_tensor
from tapewright.core.text import make_text, use_text

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


@pytest.fixture(scope="module")
def kernel_calls(table):
    return calls_of_kernels(table)


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
        values = (0, -1, 0.5, 1e5, np.nan, np.inf, -np.inf)
        one_nan, one_infinity = np.array(array), np.array(array)
        one_nan.flat[:1], one_infinity.flat[-1:] = np.nan, np.inf
        return [*[np.full_like(array, v) for v in values], one_nan, one_infinity]
    return [np.zeros_like(array), np.ones_like(array)]


def variants(op, arrays):
    """The arrays, and the same of other dtypes where these are taken, each once."""
    names, tried = op.names(arrays), set()
    for dtype in (None, *CASTS):
        found = [
            a.astype(dtype)
            if dtype and n in op.same_dtype and a.dtype.kind in "iufc"
            else a
            for a, n in zip(arrays, names)
        ]
        dtypes = tuple([a.dtype for a in found])
        refused = op.kinds and found and found[0].dtype.kind not in op.kinds
        if not refused and dtypes not in tried:
            tried.add(dtypes)
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
def test_may_raise_is_said_of_just_those_ops_that_raise_for_some_values(kernel_calls):
    raised = defaultdict(set)
    for op, calls in kernel_calls.items():
        for arrays, attributes in calls:
            for given in variants(op, arrays):
                if given and given[0].dtype.kind in raised.get(op.name, ()):
                    continue  # known
                if raises(op, given, attributes):
                    continue  # no dtype for it
                for i, array in enumerate(given):
                    trials = [[*given[:i], b, *given[i + 1 :]] for b in bad(array)]
                    if any([raises(op, trial, attributes) for trial in trials]):
                        raised[op.name].add(given[0].dtype.kind)
    ops = {op.name: op for op in list_ops()}
    ours = {  # the op table has numbers alone
        name: op
        for name, op in ops.items()
        if op.kernel.__module__.startswith("tapewright.")
        and not op.kernel.__module__.startswith("tapewright.ops.strings.")
    }
    missing = {
        (name, kind)
        for name in raised.keys() & ours
        for kind in raised[name]
        if not ours[name].raises_on_values(np.dtype(SAMPLES[kind]))
    }
    assert not missing
    never = sorted({name for name, op in ours.items() if op.may_raise} - raised.keys())
    assert not never


@pytest.mark.filterwarnings("ignore")
def test_ops_that_move_entries_give_in_bfloat16_what_they_give_in_float32(kernel_calls):
    narrow, tried = tw.bfloat16.dtype, set()
    for op, calls in kernel_calls.items():
        for arrays, attributes in calls if op.moves else ():
            converts = {"dtype", "type"} & attributes.keys()
            if converts or not any(a.dtype.kind == "f" for a in arrays):
                continue
            given = [a.astype(narrow) if a.dtype.kind == "f" else a for a in arrays]
            wide = [a.astype("f4") if a.dtype == narrow else a for a in given]
            kernel = op.kernels.plain(np.ndarray)
            found, expected = (kernel(*each, **attributes) for each in (given, wide))
            many = type(found) is tuple
            for a, b in zip(*((found, expected) if many else ([found], [expected]))):
                assert a.dtype == (narrow if b.dtype == np.float32 else b.dtype)
                np.testing.assert_array_equal(a.astype(b.dtype), b, op.name)
            tried.add(op.name)
    assert len(tried) > 20


def in_words(array):
    """Numbers as strings, zeros as empty ones; other arrays as they are."""
    if array.dtype.kind not in "fc":
        return array
    words = [str(x).encode() if x else b"" for x in array.ravel().tolist()]
    return make_text(words, array.shape)


@pytest.mark.filterwarnings("ignore")
def test_ops_move_strings_as_they_move_numbers_or_refuse_them(kernel_calls):
    use_text()
    tried, refused = set(), set()
    for op, calls in kernel_calls.items():
        for arrays, attributes in calls:
            converts = {"dtype", "type"} & attributes.keys()
            if converts or not arrays or arrays[0].dtype.kind not in "fb":
                continue
            given = [in_words(a) for a in arrays]
            if not any(a.dtype == object for a in given):
                continue
            if given[0].dtype == object and op.kinds and "O" not in op.kinds:
                with pytest.raises(tw.errors.DTypeError, match=op.inputs[0]):
                    op.run([new_tensor(a) for a in given], attributes)
                refused.add(op.name)
                continue
            kernel = op.kernels.plain(np.ndarray)
            try:
                found = kernel(*given, **attributes)
            except Exception:  # no strings for it
                refused.add(op.name)
                continue
            assert op.moves or op.name in TAKE_STRINGS, op.name
            if op.moves:
                expected = kernel(*arrays, **attributes)
                many = type(found) is tuple
                for a, b in zip(
                    *((found, expected) if many else ([found], [expected]))
                ):
                    np.testing.assert_array_equal(a, in_words(np.asarray(b)), op.name)
            tried.add(op.name)
    assert {*TAKE_STRINGS, "gather", "concat", "where", "reshape"} <= tried
    assert len(refused) > 100


# Ops that do something else with strings than to move them.
TAKE_STRINGS = {
    "add",
    "argsort",
    "count_nonzero",
    "equal",
    "not_equal",
    "sort",
    "unique",
}


def test_an_op_of_the_users_own_may_raise_unless_it_says_otherwise():
    careless = primitive(lambda xp, x: x, name="tests_careless").primitive
    careful = primitive(lambda xp, x: x, name="tests_careful", may_raise=False)
    assert careless.raises_on_values(np.dtype("float32"))
    assert not careful.primitive.raises_on_values(np.dtype("float32"))


# ------------------------------------------------------------------------------ sizes


def formulas_of(array, scope):
    """The integers of an array as formulas of one size, which is 5."""
    size = UnknownSize.of(DimSymbol(0, 0), scope)
    formula = np.frompyfunc(lambda n: size + (int(n) - 5), 1, 1)
    return np.asarray(formula(array.astype(object)), object)


def evaluated(result):
    values = np.frompyfunc(
        lambda n: evaluate(n.expression, {DimSymbol(0, 0): 5}) if is_symbolic(n) else n,
        1,
        1,
    )
    return values(np.asarray(result, object))


# These inputs are picked with, or say how often: numbers, no formulas.
NUMBERS = {("gather", "indices"), ("put_rows", "indices"), ("power", "y")}


def test_ops_with_sizes_do_with_formulas_what_they_do_with_integers(kernel_calls):
    ops = {op.name: op for op in list_ops() if op.sizes}
    calls = {op: list(c) for op, c in kernel_calls.items() if op.sizes}
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
            scope = Guards({DimSymbol(0, 0): 5})
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
    at = [i for i in floating(op, arrays) if names[i] not in op.non_differentiable]
    if op.variadic:
        together = [("together", at)] if len(at) > 1 else []
        return together + [("each", [i]) for i in at if len(at) > 1]
    counts = range(1, len(at) + 1)
    groups = [group for n in counts for group in itertools.combinations(at, n)]
    return [(tuple([names[i] for i in group]), group) for group in groups]


@pytest.mark.filterwarnings("ignore")
def test_linear_names_just_the_inputs_in_which_an_op_is_linear(kernel_calls, device):
    if device != "cpu":
        pytest.skip("it computes with NumPy's arrays")
    wrong, missing, tried = set(), set(), set()
    for op, calls in kernel_calls.items():
        if op.name.startswith("random_"):
            continue  # drawn numbers, in which nothing is linear
        if op.name == "all_reduce_extreme":
            continue  # linear in a job of one process only
        if op.name in ("over_gaps", "unknown_order"):
            continue  # they refuse what linearity would give
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


# ------------------------------------------------- exchange, exact bits, shared memory

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -3.7, 1e-40, -1e-40, 1e30, -1e30, np.inf, -np.inf,
           np.nan, 2.5, 7.0, -1e-3]  # fmt: skip
PAIRS = {
    "float32": SPECIAL, "float64": SPECIAL, "int32": range(-8, 9), "uint8": range(1, 17),
    "bool": [True, False],
}  # fmt: skip


def bits(array):
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def result(op, arrays, attributes=None):
    """The output of a kernel; None if it raises."""
    try:
        with np.errstate(all="ignore"):
            return op.kernels.plain(np.ndarray)(*arrays, **(attributes or op.defaults))
    except Exception:  # no dtype for it
        return None


def own_elementwise(count):
    """The ops of tapewright that work entry by entry on so many inputs."""
    ops = [op for op in list_ops() if op.is_own and op.elementwise]
    # Random ops have loops that may not end.
    ops = [op for op in ops if not op.name.startswith("random_")]
    return [op for op in ops if len(op.inputs) == count and not op.variadic]


@pytest.mark.filterwarnings("ignore")
def test_commutative_are_just_the_ops_whose_inputs_may_be_exchanged():
    found = {}
    for op in own_elementwise(2):
        for dtype, values in PAIRS.items():
            values = np.array(values, dtype)
            x, y = np.repeat(values, len(values)), np.tile(values, len(values))
            there, back = result(op, [x, y]), result(op, [y, x])
            if there is not None and back is not None:
                same = bits(there) == bits(back)
                found[op.name] = found.get(op.name, True) and same
    marked = {op.name for op in list_ops() if op.is_own and op.commutative}
    assert marked == {name for name, same in found.items() if same}


class Noted(np.ndarray):
    """An array that notes which functions of NumPy see it, and on how many entries."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [np.asarray(x) if isinstance(x, Noted) else x for x in inputs]
        if out is not None:
            kwargs["out"] = tuple(
                [np.asarray(o) if isinstance(o, Noted) else o for o in out]
            )
        made = getattr(ufunc, method)(*plain, **kwargs)
        self.note(ufunc, method, plain, made)
        return self.wrapped(made)

    def __array_function__(self, function, types, args, kwargs):
        self.notes.append((function.__name__, None, 0))
        return self.wrapped(super().__array_function__(function, types, args, kwargs))

    def __array_finalize__(self, source):
        self.notes = getattr(source, "notes", None)

    def wrapped(self, made):
        if not isinstance(made, np.ndarray):
            return made
        made = made.view(Noted)
        made.notes = self.notes
        return made

    def note(self, ufunc, method, inputs, made):
        floats = any([getattr(x, "dtype", np.dtype(int)).kind in "fc" for x in inputs])
        count = np.size(made) if method == "__call__" else np.size(inputs[0])
        if ufunc is np.matmul:
            count *= 2 * inputs[0].shape[-1]
        self.notes.append((ufunc.__name__, floats, count))


def noted(op, arrays, attributes):
    """The notes of a kernel's call: ``(function, of floats, entries)``; None if it raises."""
    notes, given = [], []
    for array in arrays:
        given.append(np.array(array).view(Noted))
        given[-1].notes = notes
    return None if result(op, given, attributes) is None else notes


SPACES = (tw, tw.math, tw.bitwise)
PUBLIC = {id(getattr(space, name)) for space in SPACES for name in dir(space)}
IEEE = {
    "add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_exact_are_just_the_ops_of_several_inputs_that_are_made_of_ieee_arithmetic():
    made_of_it = set()
    for count in (2, 3):
        for op in own_elementwise(count):
            for dtype in ("float32", "int32"):
                notes = noted(op, [np.arange(1, 5).astype(dtype)] * count, None)
                names = {name for name, *_ in notes or ()}
                if names and names <= IEEE:
                    made_of_it.add(op.name)
    marked = {op.name for op in list_ops() if op.is_own and op.exact}
    assert marked <= made_of_it
    public = {op.name for op in list_ops() if id(getattr(op, "entry", None)) in PUBLIC}
    assert made_of_it & public <= marked


def test_exact_ops_give_the_same_bits_whatever_the_strides():
    rng = np.random.default_rng(0)
    for op in list_ops():
        for dtype, values in PAIRS.items() if op.exact else ():
            full = [rng.choice(np.array(values, dtype), (17, 37)) for _ in op.inputs]
            for i, x in enumerate(full):
                for narrow in (x[:1], x[:, :1], x[:1, :1]):
                    row, repeated = list(full), np.broadcast_to(narrow, x.shape)
                    row[i] = np.ascontiguousarray(repeated)
                    wanted = result(op, row)
                    for other in (narrow, repeated):
                        row[i] = other
                        found = result(op, row)
                        assert wanted is found is None or bits(wanted) == bits(found), (
                            op
                        )


def test_view_is_said_of_just_the_ops_whose_outputs_share_the_memory_of_inputs(
    kernel_calls,
):
    shared = defaultdict(set)
    for op, calls in kernel_calls.items():
        for arrays, attributes in calls:
            out = result(op, arrays, attributes)
            for each in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(each, np.ndarray) and each.size:
                    alike = [np.may_share_memory(each, a) for a in arrays]
                    shared[op].add(any(alike))
    views = {op.name for op, found in shared.items() if found == {True}}
    assert {op.name for op in list_ops() if op.is_own and op.view} == views


# ----------------------------------------------------------- infinities and NaN

MODEST = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 100.0, -100.0]
WILD = [1000.0, -1000.0, 1e30, -1e30, np.inf, -np.inf, np.nan]


def trials(calls, values):
    """Calls with each floating input full of one value, and of a mixture of them."""
    rng = np.random.default_rng(0)
    for arrays, attributes in calls[:4]:
        for i, x in enumerate(arrays):
            if x.dtype.kind not in "fc":
                continue
            mixtures = [rng.choice(values, x.shape).astype(x.dtype)]
            for dtype in (
                {x.dtype, np.dtype("float32")} if x.dtype.kind == "f" else {x.dtype}
            ):
                with np.errstate(all="ignore"):
                    row = [a.astype(dtype) if a.dtype == x.dtype else a for a in arrays]
                for full in [*[np.full(x.shape, v) for v in values], *mixtures]:
                    with np.errstate(all="ignore"):
                        row[i] = full.astype(dtype)
                    yield row, attributes


def warns(op, row, attributes):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            op.kernels.plain(np.ndarray)(*map(np.array, row), **attributes)
        except Exception:
            return False
    return any([issubclass(each.category, RuntimeWarning) for each in caught])


# Factors of derivatives, which run where all errors are ignored: the setting would cost a
# small array as much as the arithmetic.
IN_DERIVATIVES_ALONE = {"tanh_slope", "sigmoid_minus"}


def test_ops_ignore_float_errors_that_raise_some_for_modest_numbers(kernel_calls):
    noisy = {
        op.name
        for op, calls in kernel_calls.items()
        if not (op.ignores_float_errors or op.name.startswith("random_"))
        and any([warns(op, *trial) for trial in trials(calls, MODEST)])
    }
    assert noisy == IN_DERIVATIVES_ALONE


@pytest.mark.parametrize("function", [tw.tanh, tw.sigmoid, tw.nn.softplus, tw.nn.silu,
    lambda x: tw.nn.sigmoid_cross_entropy_with_logits(tw.zeros_like(x), x)])  # fmt: skip
def test_derivatives_do_not_warn(function):
    """In tapes, forward mode, replays, and graphs that run op by op."""
    x = tw.constant([100.0, -200.0, 3.0])

    def derivatives(x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            slope = inner.gradient(y, x)
        return slope, outer.gradient(slope, x)

    replayed = tw.function(derivatives)
    expected = derivatives(x)
    with tw.autodiff.ForwardAccumulator(x, tw.ones_like(x)) as accumulator:
        y = function(x)
    found = [accumulator.jvp(y), expected[0]], replayed(x), expected
    concrete = replayed.get_concrete_function(x)
    found = *found, concrete.interpreted([x])
    for each in found:
        assert np.isfinite(np.concatenate([v.numpy() for v in each])).all()


def makes_nan(op, calls, values):
    """Whether numbers make an infinity or a NaN."""
    for row, attributes in trials(calls, values):
        made = result(op, row, attributes)
        if isinstance(made, np.ndarray) and made.dtype.kind == "f":
            if row[0].dtype.kind == "f" and not np.isfinite(made).all():
                return True
    return False


def test_stable_form_is_for_just_the_ops_that_make_infinities_or_nan(kernel_calls):
    idle, missing = set(), set()
    for op in list_ops():
        if not op.is_own or op.name.startswith("random_"):
            continue
        if op.stable_form:
            if not makes_nan(op, kernel_calls[op], [*MODEST, 1e30, np.inf]):
                idle.add(op.name)
        elif op.elementwise and id(getattr(op, "entry", None)) in PUBLIC:
            if makes_nan(op, kernel_calls[op], [*MODEST, 1000.0]):
                missing.add(op.name)
    assert not idle and not missing


# ------------------------------------------------------------------- zeros


def zero_sets(op, calls):
    """The sets of inputs which, if they alone are zero, make the output zero."""
    found, rng = {}, np.random.default_rng(0)
    for arrays, attributes in calls:
        at = [
            i for i in floating(op, arrays) if op.inputs[i] not in op.non_differentiable
        ]
        if not all([a.size for a in arrays]):
            continue
        row = [drawn(rng, a) if a.dtype.kind in "fc" else a for a in arrays]
        counts = range(1, len(at) + 1)
        for group in [g for n in counts for g in itertools.combinations(at, n)]:
            zeroed = [np.zeros_like(a) if i in group else a for i, a in enumerate(row)]
            out = result(
                op, [np.asarray(a, b.dtype) for a, b in zip(zeroed, row)], attributes
            )
            if out is not None:
                names = frozenset([op.inputs[i] for i in group])
                found[names] = found.get(names, True) and not np.any(out)
    return {names for names, zero in found.items() if zero}


# Zero for the values of the table, or for 0.0 and not for -0.0, or not over a zero.
BY_CHANCE = {"angle", "clip_by_value", "floormod", "random_gamma_grad", "truncatemod"}


def test_zero_when_names_just_the_inputs_that_make_an_op_zero(kernel_calls):
    calls, wrong = kernel_calls, []
    for op in list_ops():
        if op.is_own and op.elementwise and not op.variadic and op.rules and calls[op]:
            floats = {op.inputs[i] for row, _ in calls[op] for i in floating(op, row)}
            floats -= op.non_differentiable
            declared = {names for names in op.zero_when if names <= floats}
            zero = zero_sets(op, calls[op])
            if not declared <= zero or zero - declared and op.name not in BY_CHANCE:
                wrong.append((op.name, declared, zero))
    assert not wrong


# -------------------------------------------------------------------- size and cost


def test_ops_grow_whose_attributes_may_ask_for_much(table):
    grown = set()
    for each in table:
        op = each.primitive
        if op is None or op.variadic or id(op.entry) not in PUBLIC:
            continue
        specs = [tw.TensorSpec(a.shape, a.dtype) for a in each.inputs]
        given = op.bind(each.inputs, each.attributes)[1]
        for name, value in given.items():
            for larger in (
                10**9,
                (10**9,) * len(value) if isinstance(value, tuple) else None,
            ):
                try:
                    out = op.output_specs(specs, {**given, name: larger})
                except Exception:
                    continue
                shapes = [
                    each.shape for each in (out if isinstance(out, tuple) else [out])
                ]
                sizes = [np.prod([float(n or 1) for n in shape]) for shape in shapes]
                if max(sizes) > 1e8:
                    grown.add(op.name)
    marked = {op.name for op in list_ops() if op.is_own and op.grows and op.inputs}
    assert not grown - marked
