"""Every line of the op table in a traced function: value and gradient as in eager mode.

Bit for bit where a replay makes the very calls of NumPy that the kernels make; machine code
rounds otherwise. So it is for inputs of other dtypes, shapes and layouts, valid or not: a
line of each op is tried on all of them, with ``TAPEWRIGHT_TRY_ALL=1`` every line. As LLVM
takes most of the time of machine code, there each op is tried on a sixth of them.
"""

import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.op_check import SINGLE
from tapewright.core.op_definition.op_registry import list_ops
from tapewright.core.primitive import get_primitive
from tapewright.test import (
    booleans,
    case,
    complexes,
    floats,
    integers,
)

from ..op_table import op_table, with_gradients
from ..rounding import same_calls


def table():
    """All cases of the op table, by the name of what is called."""
    found = {}
    for each in op_table():
        found.setdefault(str(each).partition("(")[0], []).append(each)
    return found


TABLE = table()
ROUNDED = {"float64": 1e-12, "complex128": 1e-12, "float32": 2e-6, "complex64": 2e-6}
COMPILED = ROUNDED | {"float32": 2e-5, "complex64": 2e-5, "float16": 2e-3}


def turned(arrays):
    """Other inputs in the same range: the floating ones back to front."""
    return [
        a.ravel()[::-1].reshape(a.shape) if a.dtype.kind in "fc" else a for a in arrays
    ]


def in_single_precision(arrays):
    return [a.astype(SINGLE.get(a.dtype.name, a.dtype)) for a in arrays]


def arrays_of(outputs):
    return [np.array(x) for x in outputs]


def assert_same(found, wanted, what, exactly=True, given=()):
    """``given``: inputs, whose dtypes round results that are then widened."""
    rounded = max([COMPILED.get(a.dtype.name, 0) for a in given], default=0)
    assert len(found) == len(wanted), what
    for a, b in zip(found, wanted):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        bounds = ROUNDED if same_calls() else COMPILED
        if exactly and same_calls() or a.dtype.name not in bounds:
            np.testing.assert_array_equal(a, b, err_msg=what)
        else:
            rtol = bounds[a.dtype.name]
            rtol = rtol if same_calls() else max(rtol, rounded)
            size = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            np.testing.assert_allclose(a, b, rtol, rtol * max(size, 1e-3), err_msg=what)


# They are given an input with its own maxima.
OF_MAXIMA = {"pick_at_maxima", "spread_to_maxima"}


def check(case, arrays):
    run = with_gradients(case)
    traced, kept = tw.function(run), []
    others = arrays if str(case).partition("(")[0] in OF_MAXIMA else turned(arrays)
    for values in (arrays, others, arrays):
        tensors = [tw.constant(a) for a in values]
        try:
            wanted = arrays_of(run(*tensors))
        except Exception:
            if values is arrays:
                raise
            continue  # these are not in its domain
        outputs = traced(*tensors)
        kept.append((outputs, wanted))
        for tensor, value in zip(tensors, values):
            np.testing.assert_array_equal(tensor, value)  # is not written to
    for outputs, wanted in kept:  # those of the first call are as they were
        assert_same(arrays_of(outputs), wanted, str(case))
    assert traced.experimental_get_tracing_count() == 1


# The size of what these give depends on values.
SIZED_BY_VALUES = {
    "boolean_mask", "dynamic_partition", "flatnonzero", "non_max_suppression", "nonzero",
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
    "set_operation", "unique",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TABLE.keys() - SIZED_BY_VALUES))
def test_every_op_gives_the_same_bits_traced_and_eager(name):
    for each in TABLE[name]:
        check(each, each.inputs)
        if each.single and any(a.dtype.name in SINGLE for a in each.inputs):
            check(each, in_single_precision(each.inputs))


@pytest.mark.parametrize("name", sorted(SIZED_BY_VALUES))
def test_a_function_of_an_op_whose_size_depends_on_values_runs_eagerly(name):
    for each in TABLE[name]:
        traced, tensors = tw.function(each), [*map(tw.constant, each.inputs)]
        for _ in range(2):
            assert_same(arrays_of(traced(*tensors)), arrays_of(each(*tensors)), name)
        assert traced._eager and traced.experimental_get_tracing_count() == 1


# ------------------------------------------------- functions that are made of ops

X, UNIT = floats(2, 3), floats(2, 3, low=0.1, high=0.9)
IMAGES = floats(2, 6, 5, 3, low=0.1, high=0.9)
ONE_HOT = np.eye(3)[[0, 2]]

FUNCTIONS = {
    "accumulate_n": case(lambda x, y: tw.math.accumulate_n([x, y]), X, X),
    "add_n": case(lambda x, y: tw.add_n([x, y, x]), X, X),
    "argmax": case(lambda x: (tw.argmax(x, 1), tw.argmin(x), tw.argsort(x, 1)), X),
    "broadcast shapes": case(lambda x, y: tw.broadcast_to(
        x, tw.broadcast_dynamic_shape(tw.shape(x), tw.shape(y))), floats(3), X),
    "cast": case(lambda x: tw.cast(x, tw.float16), X),
    "case": case(lambda x: tw.case([(tw.reduce_sum(x) > 0.0, lambda: x * 2.0)],
                                   default=lambda: x - 1.0), X),
    "clip_by_global_norm": case(lambda x, y: tw.clip_by_global_norm([x, y], 0.7)[0], X, X),
    "clip_by_norm": case(lambda x: tw.clip_by_norm(x, 0.7, axes=1), X),
    "complex": case(lambda x, y: tw.math.abs(tw.complex(x, y)) + tw.math.imag(
        tw.math.conj(tw.complex(x, y))), X, X),
    "cond": case(lambda x: tw.cond(tw.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x), X),
    "count_nonzero": case(lambda x: tw.math.count_nonzero(x > 0.0, axis=1), X),
    "dynamic_stitch": case(lambda x: tw.dynamic_stitch([[0, 2], [1]], [x, x[:1]]), X),
    "ensure_shape": case(lambda x: tw.ensure_shape(x, [None, 3]) * 2.0, X),
    "eye": case(lambda x: x @ tw.eye(3, dtype=x.dtype), X),
    "fill": case(lambda x: tw.fill([2, 3], x[0, 0]) * x, X),
    "histogram": case(lambda x: tw.histogram_fixed_width(x, [-1.0, 1.0], 4), X, order=0,
                      single=False),
    "identity_n": case(lambda x, y: tw.identity_n([x, y]), X, X),
    "iteration": case(lambda x: [row * 2.0 for row in x], X),
    "linspace": case(lambda x: tw.linspace(x[0], x[1], 5), X),
    "meshgrid": case(lambda x, y: tw.meshgrid(x, y), floats(3), floats(2)),
    "ordered": case(lambda x: (tw.math.is_non_decreasing(x),
                               tw.math.is_strictly_increasing(x)), floats(4)),
    "polyval": case(lambda x, y: tw.math.polyval([x[0], x[1]], y), X, floats(3)),
    "pow": case(lambda x: tw.pow(x, 2) + x ** 3.0 + 2.0 ** x, UNIT),
    "rank": case(lambda x: x * tw.cast(tw.rank(x) + tw.size(x), x.dtype), X),
    "range": case(lambda x: tw.range(0.0, 3.0, dtype=x.dtype) * x, X),
    "recompute_grad": case(lambda x: tw.recompute_grad(lambda x: tw.tanh(x) * x)(x), X),
    "searchsorted": case(lambda x, y: tw.searchsorted(tw.sort(x), y), floats(5), floats(3)),
    "sequence_mask": case(lambda n: tw.sequence_mask(n, 4), integers(3)),
    "shape": case(lambda x: tw.reshape(x, [tw.shape(x)[1], -1]) * 2.0, X),
    "softmax": case(lambda x: tw.nn.softmax(x) * tw.nn.log_softmax(x, 0), X),
    "switch_case": case(lambda x, n: tw.switch_case(n, [lambda: x, lambda: -x]), X,
                        np.array(1)),
    "top_k": case(lambda x: tw.math.top_k(x, 2)[0], X),
    "unstack": case(lambda x: tw.unstack(x, axis=1), X),
    "vectorized_map": case(lambda x: tw.vectorized_map(lambda r: r * tw.reduce_sum(r), x), X),
    "where": case(lambda c, x, y: tw.where(c, x, y), booleans(3), X, X),
    "zeros_like": case(lambda x: tw.zeros_like(x) + tw.ones_like(x) + tw.ones([3], x.dtype), X),
    "operators": case(lambda x, y: (-x + y * 2.0 - x / y) // 0.3 + abs(x) % 0.4, UNIT, UNIT),
    "comparisons": case(lambda x, y: (x > y) & ~(x == y) | (x <= 0.1), X, X),
    "indexing": case(lambda x, i: x[..., 0] + x[1, None, 1:][0, 0] + x[i][0, 1], X,
                     np.array([1, 0])),
    "mask": case(lambda x: x[np.array([True, False])], X),
    "jacobian": case(lambda x: jacobian(x), X),
    "hessian": case(lambda x: hessian(x), floats(3)),
    "stop_gradient": case(lambda x: x * tw.stop_gradient(tw.exp(x)), X),
    # neural networks
    "conv1d": case(lambda x, k: tw.nn.conv1d(x, k, 1, "SAME"), floats(2, 5, 3),
                   floats(3, 3, 2)),
    "conv1d_transpose": case(lambda x, k: tw.nn.conv1d_transpose(x, k, [2, 10, 2], 2),
                             floats(2, 5, 3), floats(3, 2, 3)),
    "conv2d_transpose": case(
        lambda x, k: tw.nn.conv2d_transpose(x, k, [2, 12, 10, 2], 2), IMAGES,
        floats(3, 3, 2, 3)),
    "conv3d": case(lambda x, k: tw.nn.conv3d(x, k, [1] * 5, "VALID"), floats(1, 3, 4, 3, 2),
                   floats(2, 2, 2, 2, 2)),
    "atrous_conv2d": case(lambda x, k: tw.nn.atrous_conv2d(x, k, 2, "VALID"), IMAGES,
                          floats(2, 2, 3, 2)),
    "depthwise_conv2d": case(
        lambda x, k: tw.nn.depthwise_conv2d(x, k, [1] * 4, "SAME"), IMAGES,
        floats(3, 3, 3, 2)),
    "pools": case(lambda x: tw.nn.max_pool2d(x, 2, 2, "SAME") + tw.nn.avg_pool(
        x, 2, 2, "SAME"), IMAGES),
    "pool1d": case(lambda x: tw.nn.max_pool1d(x, 2, 2, "VALID") + tw.nn.avg_pool1d(
        x, 2, 2, "VALID"), floats(2, 6, 3)),
    "pool3d": case(lambda x: tw.nn.max_pool3d(x, 2, 2, "VALID") + tw.nn.avg_pool3d(
        x, 2, 2, "VALID"), floats(1, 4, 4, 2, 2)),
    "max_pool_with_argmax": case(lambda x: tw.nn.max_pool_with_argmax(
        x, 2, 2, "VALID")[0], IMAGES),
    "moments": case(lambda x, w: tw.nn.weighted_moments(x, 0, w), X, UNIT),
    "statistics": case(lambda x: tw.nn.normalize_moments(
        *tw.nn.sufficient_statistics(x, [0])[:3], None), X),
    "zero_fraction": case(tw.nn.zero_fraction, X, order=0),
    "dropout": case(lambda x: tw.nn.experimental.stateless_dropout(x, 0.5, [1, 2]), X),
    "losses": case(lambda x: tw.losses.binary_crossentropy(
        ONE_HOT, x) + tw.losses.huber(ONE_HOT, x) + tw.losses.mean_squared_error(
        ONE_HOT, x) + tw.losses.categorical_crossentropy(ONE_HOT, x), UNIT, single=False),
    "sparse loss": case(lambda x: tw.losses.sparse_categorical_crossentropy(
        np.array([0, 2]), x, from_logits=True), X),
    # matrices
    "svd": case(lambda x: tw.linalg.svd(x)[0], X),
    "eigh": case(lambda x: tw.linalg.eigh(x @ tw.transpose(x))[0], X),
    "qr": case(lambda x: tw.linalg.qr(tw.transpose(x))[1], X),
    "slogdet": case(lambda x: tw.linalg.slogdet(x @ tw.transpose(x))[1], X),
    "norms": case(lambda x: tw.linalg.global_norm([x, x]) + tw.norm(x, 1) + tw.norm(x), X),
    "einsum": case(lambda x, y: tw.einsum("ij,kj->ik", x, y), X, X),
    # images
    "colours": case(lambda x: tw.image.yuv_to_rgb(tw.image.rgb_to_yuv(x))
                    + tw.image.yiq_to_rgb(tw.image.rgb_to_yiq(x))
                    + tw.image.grayscale_to_rgb(tw.image.rgb_to_grayscale(x)), IMAGES),
    "adjusted": case(lambda x: tw.image.adjust_gamma(tw.image.adjust_brightness(
        x, 0.1), 0.7), IMAGES),
    "cropped": case(lambda x: tw.image.central_crop(x, 0.5), IMAGES),
    "padded": case(lambda x: tw.image.resize_with_crop_or_pad(x, 8, 3)
                   + tw.image.pad_to_bounding_box(x[:, :, :3], 1, 0, 8, 3), IMAGES),
    "boxes": case(lambda x: tw.image.crop_to_bounding_box(x, 1, 1, 3, 2), IMAGES),
    "resized": case(lambda x: tw.image.resize_with_pad(x, 4, 4), IMAGES, order=1),
    "flipped": case(lambda x: tw.image.flip_left_right(tw.image.flip_up_down(x))
                    + tw.image.rot90(x, 2), IMAGES),
    "patches": case(lambda x: tw.image.extract_patches(
        x, [1, 2, 2, 1], [1, 2, 2, 1], [1] * 4, "VALID"), IMAGES),
    "edges": case(lambda x: (tw.image.sobel_edges(x), *tw.image.image_gradients(x)), IMAGES),
    "likeness": case(lambda x, y: (tw.image.psnr(x, y, 1.0),
                                   tw.image.ssim(x, y, 1.0, filter_size=3)), IMAGES, IMAGES),
    "types": case(lambda x: tw.image.convert_image_dtype(x, tw.uint8), IMAGES, order=0),
    # signals
    "idct": case(lambda x: tw.signal.idct(tw.signal.dct(x)), X),
    "windows": case(lambda x: x * tw.signal.hann_window(3, dtype=x.dtype)
                    + tw.signal.hamming_window(3, dtype=x.dtype), X),
    "spectrum": case(lambda z: tw.math.real(tw.signal.ifft(tw.signal.fft(z))), complexes(4)),
}  # fmt: skip


def jacobian(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.tanh(x) * tw.reduce_sum(x, axis=1, keepdims=True)
    return tape.jacobian(y, x)


def hessian(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        with tw.GradientTape() as inner:
            inner.watch(x)
            y = tw.reduce_sum(tw.exp(x) * x[::-1])
        g = inner.gradient(y, x)
    return tape.jacobian(g, x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_made_of_ops_give_the_same_bits_traced_and_eager(name):
    made = FUNCTIONS[name]
    check(made, made.inputs)
    if made.single:
        check(made, in_single_precision(made.inputs))


X = np.arange(24.0).reshape(2, 3, 4)
NEW_MEMORY = {  # op -> inputs and attributes for which a view might do
    "gather": [
        ((x, np.array(i)), {"axis": axis})
        for x in (X, X.T, X[:, ::2])
        for i in (0, [0, 1], [[0], [1]], [])
        for axis in (0, 1, -1)
    ],
    "all_reduce_sum": [((x,), {"reduction": "sum"}) for x in (X, X.T, X[:, ::2])],
    "all_reduce_extreme": [((x,), {"reduction": "max"}) for x in (X, X.T, X[:, ::2])],
}


def test_what_ops_that_promise_new_memory_give_shares_none():
    ops = [op for op in list_ops() if ".ops.strings." not in op.kernel.__module__]
    promised = {op.name for op in ops if op.new_memory}
    assert promised == NEW_MEMORY.keys()  # strings are made anew, entry by entry
    for name, calls in NEW_MEMORY.items():
        kernel = get_primitive(name).kernels.plain(np.ndarray)
        for inputs, attributes in calls:
            inputs = [a.astype(int) if not a.size else a for a in inputs]
            out = np.asarray(kernel(*inputs, **attributes))
            assert not any([np.may_share_memory(out, a) for a in inputs]), name


# ------------------------------------------- other dtypes, shapes and layouts of inputs

SHARE = 6  # of the lines, on machine code
TRY_ALL = os.environ.get("TAPEWRIGHT_TRY_ALL", "") not in ("", "0")
NAMESPACES = tw, tw.math, tw.nn, tw.linalg, tw.signal, tw.image, tw.bitwise
PUBLIC = {id(getattr(space, name)) for space in NAMESPACES for name in dir(space)}
MAY_NOT_BE_TRACED = {*SIZED_BY_VALUES, "mask"}


def each_line():
    """``(name, case)``: one of each name, or all."""
    lines = [(name, made) for name, found in TABLE.items() for made in found]
    lines += FUNCTIONS.items()
    return lines if TRY_ALL else list({line[0]: line for line in lines}.values())


def lines_for(kind, kinds):
    """Those lines of `each_line` that are tried on one of several kinds of inputs."""
    every, first = TRY_ALL or same_calls(), list(kinds).index(kind) % SHARE
    return each_line() if every else each_line()[first::SHARE]


def as_dtype(dtype, kinds="fc"):
    """Casts the inputs of these kinds, others to single precision."""
    dtype = np.dtype(dtype)

    def cast(a):
        if a.dtype.kind not in kinds:
            return in_single_precision([a])[0]
        a = a.real if dtype.kind != "c" else a
        if a.dtype.kind in "fc" and dtype.kind in "iub":
            a = np.nan_to_num(np.abs(np.round(a * 3)), posinf=9)
        return a.astype(dtype)

    return lambda arrays: [cast(a) for a in arrays]


def by_rank(change):
    return lambda arrays: [
        change(a) if a.ndim else a for a in in_single_precision(arrays)
    ]


def with_specials(arrays):
    """NaN, infinities, zeros of both signs, the smallest and the largest number."""
    arrays = [np.array(a) for a in in_single_precision(arrays)]
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 3.4e38], "f4")
    for a in arrays:
        if a.dtype.kind in "fc":
            count = min(a.size // 2, len(values))
            a.reshape(-1)[:count] = values[:count]
    return arrays


def values_for(op, name, made):
    """The inputs of a line for one of `VALUES`.

    Of convolutions images alone are special: there machine code adds margins of zeros up
    where NumPy leaves them out, and zero times an infinite filter is NaN.
    """
    arrays = [np.asarray(a) for a in VALUES[name](made.inputs)]
    if name == "special values" and "conv" in op:
        arrays[1:] = in_single_precision(made.inputs)[1:]
    return arrays


VALUES = {
    **{dtype: as_dtype(dtype) for dtype in ("float16", "float32", "float64", "int32",
                                            "int64", "uint8", "bool", "complex64")},
    "indices of int64": as_dtype("int64", "i"),
    "indices of uint8": as_dtype("uint8", "i"),
    "scalars": by_rank(lambda a: a.reshape(-1)[0] if a.size else a),
    "no entries": by_rank(lambda a: a[:0]),
    "no entries in the last axis": by_rank(lambda a: a[..., :0]),
    "one entry": by_rank(lambda a: a[:1]),
    "an axis more": by_rank(lambda a: a[None]),
    "special values": with_specials,
}  # fmt: skip


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


# How an array is fed, and what a program makes of the tensor: the array again.
LAYOUTS = {
    "read-only": (read_only, lambda x: x),
    "in Fortran's order": (lambda a: a.copy(order="F"), lambda x: x),
    "strided array": (lambda a: np.repeat(a, 2, -1)[..., ::2], lambda x: x),
    "transposed": (lambda a: a.T.copy(), lambda x: tw.transpose(x)),
    "reversed": (lambda a: a[::-1].copy(), lambda x: x[::-1]),
    "strided": (lambda a: np.repeat(a, 2, -1), lambda x: x[..., ::2]),
    "overlapping": (lambda a: np.concatenate([a, a[:1]]), lambda x: x[1:]),
}


def outcome(function, arrays):
    """What a function gives for tensors of these arrays, or the error that it raises."""
    try:
        with np.errstate(all="ignore"):
            return function(*[tw.convert_to_tensor(a) for a in arrays])
    except Exception as error:
        return error


def numbers_of(result):
    return (
        result if isinstance(result, Exception) else arrays_of(tw.nest.flatten(result))
    )


def difference(name, run, arrays, exactly=True):
    """How a traced function departs from the eager one, or None.

    Results are looked at after another call, and after the caller overwrote his arrays.
    """
    unknown = name in MAY_NOT_BE_TRACED
    others = [np.array(a) for a in turned(arrays)]
    given = [np.array(a) for a in arrays]
    wanted = [numbers_of(outcome(run, each)) for each in (arrays, others)]
    traced = tw.function(run)
    results = [outcome(traced, each) for each in (arrays, others)]
    results += [outcome(run, arrays)]
    for a, b in zip(arrays, given, strict=True):
        if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            return "an input was changed"
    for a in (*arrays, *others):
        if a.flags.writeable:
            a[...] = 1
    for found, expected in zip(results, [*wanted, wanted[0]], strict=True):
        if isinstance(found, Exception) or isinstance(expected, Exception):
            classes = type(found), type(expected)
            alike = issubclass(*classes) or issubclass(*classes[::-1])
            if not (alike or (unknown and isinstance(found, tw.errors.TracingError))):
                return f"traced: {found!r:.200}\neager: {expected!r:.200}"
            continue
        try:
            with np.errstate(all="ignore"):
                assert_same(numbers_of(found), expected, name, exactly, given)
        except AssertionError as error:
            return str(error)
    return None


def is_internal(made):
    """Whether it is called by other ops alone, which check what they are given."""
    return made.primitive is not None and id(made.function) not in PUBLIC


def problems_of(lines, exactly=True):
    found = []
    for name, made, run, arrays in lines:
        problem = difference(name, run, arrays, exactly)
        refused = problem is not None and problem.startswith("traced: ")
        if problem is not None and not (refused and is_internal(made)):
            found.append(f"{made}: {problem}")
    return "\n".join(found)


@pytest.mark.parametrize("name", VALUES)
@np.errstate(all="ignore")
def test_every_op_does_the_same_traced_and_eager_on(name):
    lines = [
        (op, made, made, values_for(op, name, made))
        for op, made in lines_for(name, VALUES)
    ]
    problems = problems_of(lines, exactly=name != "complex64")
    assert not problems, problems


@pytest.mark.parametrize("name", LAYOUTS)
@np.errstate(all="ignore")
def test_every_op_does_the_same_traced_and_eager_on_inputs_that_are(name):
    feed, use = LAYOUTS[name]

    def on_views(made):
        return lambda *inputs: made(*[use(x) if x.shape.rank else x for x in inputs])

    lines = []
    for op, made in lines_for(name, LAYOUTS):
        arrays = in_single_precision(made.inputs)
        fed = [feed(a) if a.ndim and a.size else a for a in arrays]
        if all(a.size for a in arrays):
            lines.append((op, made, on_views(made), fed))
    problems = problems_of(lines, exactly=False)  # sums follow the order of memory
    assert not problems, problems


PADDED = {("special values", "cupy"), ("special values", "strict")}


GRADIENTS = ["float32", "float64", "special values"]


@pytest.mark.parametrize("name", GRADIENTS)
@np.errstate(all="ignore")
def test_every_gradient_is_the_same_traced_and_eager_on(name, device):
    # On a GPU eager mode adds margins of zeros up, times an infinite image, here.
    left_out = ("_transpose",) if (name, device) in PADDED else ()
    lines = [
        (
            op,
            made,
            with_gradients(made),
            values_for(op, name, made),
        )
        for op, made in lines_for(name, GRADIENTS)
        if not ("conv" in op and op.endswith(left_out))
    ]
    problems = problems_of(lines)
    assert not problems, problems
