"""Normalization: the op table, and derivatives through mean and variance, to the third."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.passes.map_fusion import buffers_in_other_order
from tapewright.core.op_definition.op_registry import list_ops
from tapewright.ops.nn import normalization, normalization_parts
from tapewright.test import case, check_gradients, check_op, floats


def standard(x, axes, epsilon=1e-3):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon), mean, variance


def by_mean_square(x, axes, epsilon=1e-3):
    square = (x * x).mean(axes, keepdims=True)
    return x / np.sqrt(square + epsilon), 0 * square, square


def projected(g, n, inverse, slope, shift, axes, centred=1):
    g_mean = g.mean(axes, keepdims=True) * centred
    along = (g * n).mean(axes, keepdims=True)
    return inverse * (g - g_mean - n * along) + n * slope + shift


def batch(x, scale, offset, axes, epsilon=1e-3):
    normal, mean, variance = standard(x, axes, epsilon)
    outputs = normal * scale.reshape(mean.shape) + offset.reshape(mean.shape)
    return outputs, mean.reshape(scale.shape), variance.reshape(scale.shape)


def standardize(shape, axes, expect=standard, **options):
    back = tuple(a - len(shape) for a in axes)
    return case("standardize", floats(*shape), axes=back, **options,
                expect=lambda x: expect(x, axes, options.get("epsilon", 1e-3)))  # fmt: skip


def gradient(shape, small, axes, **options):
    back = tuple(a - len(shape) for a in axes)
    smalls = floats(*small, low=0.5), floats(*small), floats(*small)
    return case("standardize_grad", floats(*shape), floats(*shape), *smalls, axes=back,
                expect=lambda *a: projected(*a, axes, options.get("centred", True)),
                **options)  # fmt: skip


def fused(shape, kept, axes, **options):
    return case(
        tw.nn.fused_batch_norm, floats(*shape), floats(*kept), floats(*kept), axes=axes,
        expect=lambda x, s, o: batch(x, s, o, axes, options.get("epsilon", 1e-3)),
        **options,
    )  # fmt: skip


def by_groups(x, groups, axis):
    shape = x.shape[:axis] + (groups, -1) + x.shape[axis + 1 :]
    x = x.reshape(shape)
    return standard(x, tuple(i for i in range(1, x.ndim) if i != axis))[0]


def nearby(x, radius, bias, alpha, beta):
    total = np.zeros_like(x)
    for i in range(x.shape[-1]):
        near = x[..., max(i - radius, 0) : i + radius + 1]
        total[..., i] = (near**2).sum(-1)
    return x / (bias + alpha * total) ** beta


CASES = [
    standardize((4, 3), (0,)),
    standardize((3, 4), (1,), epsilon=0.1),
    standardize((2, 3, 2), (0, 2), epsilon=0.01),
    standardize((5,), (0,)),
    standardize((0, 3), (1,)),
    standardize((3, 4), (1,), by_mean_square, centred=False),
    gradient((3, 2), (1, 2), (0,)),
    gradient((2, 3), (2, 1), (1,)),
    gradient((2, 2, 2), (1, 2, 1), (0, 2)),
    gradient((2, 3), (2, 1), (1,), centred=False),
    # composed of these
    fused((4, 3), (3,), (0,)),
    fused((2, 2, 3), (3,), (0, 1)),
    fused((3, 2), (3,), (1,), epsilon=0.1),
    fused((2, 3, 2), (3,), (0, 2), epsilon=0.01),
    case(tw.nn.layer_normalization, floats(3, 4), floats(4), floats(4), epsilon=0.01,
         expect=lambda x, g, b: standard(x, 1, 0.01)[0] * g + b),
    case(lambda x, g, b: tw.nn.layer_normalization(x, g, b, [-1, 1], 0.01), floats(2, 2, 2),
         floats(2, 2), floats(2, 2), label="layer_normalization, two axes",
         expect=lambda x, g, b: standard(x, (1, 2), 0.01)[0] * g + b),
    case(lambda x, g, b: tw.nn.layer_normalization(x, g, b, 1, 0.01), floats(2, 3, 2),
         floats(3), floats(3), label="layer_normalization, an inner axis",
         expect=lambda x, g, b: standard(x, 1, 0.01)[0] * g[:, None] + b[:, None]),
    case(tw.nn.layer_normalization, floats(3, 4), epsilon=0.01,
         expect=lambda x: standard(x, 1, 0.01)[0]),
    case(lambda x, g: tw.nn.layer_normalization(x, g, epsilon=0.01), floats(2, 3), floats(3),
         label="layer_normalization, gamma", expect=lambda x, g: standard(x, 1, 0.01)[0] * g),
    case(lambda x, b: tw.nn.layer_normalization(x, beta=b, epsilon=0.01), floats(2, 3),
         floats(3), label="layer_normalization, beta",
         expect=lambda x, b: standard(x, 1, 0.01)[0] + b),
    case(tw.nn.rms_normalization, floats(3, 4), floats(4), epsilon=0.01,
         expect=lambda x, s: by_mean_square(x, 1, 0.01)[0] * s),
    case(tw.nn.instance_normalization, floats(2, 3, 2), floats(2), floats(2),
         expect=lambda x, g, b: standard(x, 1)[0] * g + b),
    case(tw.nn.instance_normalization, floats(2, 2, 3), axis=1,
         expect=lambda x: standard(x, 2)[0]),
    case(lambda x, g, b: tw.nn.group_normalization(x, 2, g, b), floats(2, 2, 4), floats(4),
         floats(4), label="group_normalization",
         expect=lambda x, g, b: by_groups(x, 2, 2).reshape(x.shape) * g + b),
    case(tw.nn.group_normalization, floats(2, 4, 2), groups=2, axis=1,
         expect=lambda x: by_groups(x, 2, 1).reshape(x.shape)),
    case(tw.nn.batch_normalization, floats(3, 2), floats(2), floats(2, low=0.4), floats(2),
         floats(2), variance_epsilon=0.01,
         expect=lambda x, m, v, o, s: (x - m) / np.sqrt(v + 0.01) * s + o),
    case(lambda x, m, v: tw.nn.batch_normalization(x, m, v, None, None, 0.1), floats(3, 2),
         floats(2), floats(2, low=0.4), label="batch_normalization, plain",
         expect=lambda x, m, v: (x - m) / np.sqrt(v + 0.1)),
    case(tw.nn.l2_normalize, floats(2, 3), axis=1,
         expect=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)),
    case(tw.nn.local_response_normalization, floats(1, 2, 1, 4), depth_radius=1, bias=2,
         alpha=0.5, beta=0.75, expect=lambda x: nearby(x, 1, 2, 0.5, 0.75)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# ------------------------------------------------------ exact at every order


def by_moments(h, scale, offset):
    mean, variance = tw.nn.moments(h, [0, 1])
    return tw.nn.batch_normalization(h, mean, variance, offset, scale, 1e-3)


def by_batch(h, scale, offset):
    return tw.nn.fused_batch_norm(h, scale, offset, [0, 1])[0]


def by_layer(h, scale, offset):
    return tw.nn.layer_normalization(h, scale, offset, epsilon=1e-3)


def by_instance(h, scale, offset):
    return tw.nn.instance_normalization(h, scale, offset)


def by_group(h, scale, offset):
    return tw.nn.group_normalization(h, 2, scale, offset)


def by_root_mean_square(h, scale, offset):
    return tw.nn.rms_normalization(h, scale, epsilon=1e-3) + offset


KINDS = [by_moments, by_batch, by_layer, by_instance, by_group, by_root_mean_square]


@pytest.mark.parametrize("normalize", KINDS)
def test_the_gradient_penalty_of_a_normalized_network_is_exact(normalize):
    # The gradient of the penalty holds second derivatives, and its gradient third ones.
    rng = np.random.default_rng(0)
    scale, offset = tw.constant(rng.normal(size=4)), tw.constant(rng.normal(size=4))

    def penalty(x, kernel):
        with tw.GradientTape() as tape:
            tape.watch(x)
            h = tw.reshape(tw.matmul(tw.tanh(x), kernel), [3, 2, 4])
            loss = tw.reduce_sum(normalize(h, scale, offset) ** 3.0)
        return tw.reduce_sum(tw.square(tape.gradient(loss, x)))

    args = [rng.normal(size=(6, 2)), rng.normal(size=(2, 4))]
    check_gradients(penalty, args, order=2, rtol=1e-6, delta=1e-6)


@pytest.mark.parametrize("normalize", KINDS[:-1])
def test_a_constant_added_to_the_inputs_changes_nothing(normalize):
    x = tw.constant(np.random.default_rng(0).normal(size=(4, 2, 4)))
    scale, offset = tw.ones(4, tw.float64), tw.zeros(4, tw.float64)
    shift = tw.constant(0.5, tw.float64)
    with tw.GradientTape() as tape:
        tape.watch(shift)
        y = tw.reduce_sum(normalize(x + shift, scale, offset) ** 3.0)
    np.testing.assert_allclose(tape.gradient(y, shift).numpy(), 0, atol=1e-12)


@pytest.mark.parametrize("normalize", KINDS)
def test_constant_inputs_have_finite_gradients(normalize):
    x = tw.ones([2, 2, 4])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = normalize(x, tw.ones(4), tw.zeros(4))
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_layer_normalization_keeps_the_jacobian_of_each_row_apart():
    x = tw.constant(np.random.default_rng(0).normal(size=(3, 4)))
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tw.nn.layer_normalization(x)
    full = tape.jacobian(y, x).numpy()
    rows = tape.batch_jacobian(y, x).numpy()
    for i in range(3):
        np.testing.assert_allclose(rows[i], full[i, :, i], rtol=1e-12)
        assert not full[i][:, np.arange(3) != i].any()


@pytest.mark.parametrize("normalize", KINDS)
def test_the_gradient_of_a_jacobian_equals_that_of_the_sequential_one(normalize):
    x = tw.constant(np.random.default_rng(0).normal(size=(1, 2, 4)))

    def slope(use_pfor):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape(persistent=True) as inner:
                inner.watch(x)
                y = normalize(x, np.arange(1.0, 5.0), np.ones(4)) ** 2.0
            j = inner.jacobian(y, x, experimental_use_pfor=use_pfor)
        return outer.gradient(j, x, output_gradients=tw.sin(j)).numpy()

    np.testing.assert_allclose(slope(True), slope(False), rtol=1e-8, atol=1e-10)


# -------------------------------------------------------------------- edges


def test_a_large_mean_does_not_spoil_the_result():
    x = np.array([[10000.0, 10001.0, 10002.0]], np.float32)
    expected = np.array([[-1, 0, 1]]) * np.sqrt(1.5)
    np.testing.assert_allclose(tw.nn.layer_normalization(x), expected, rtol=1e-6)


@pytest.mark.parametrize("normalize", KINDS)
def test_half_precision_is_computed_in_single(normalize):
    x = np.random.default_rng(0).normal(300, 100, (2, 3, 4)).astype(np.float16)
    scale, offset = np.ones(4, np.float16), np.zeros(4, np.float16)
    got = normalize(tw.constant(x), scale, offset)
    assert got.dtype == tw.float16
    exact = normalize(tw.constant(x.astype("d")), scale.astype("d"), offset.astype("d"))
    np.testing.assert_allclose(got, exact.numpy(), atol=4e-3)


def test_the_default_epsilon_is_that_of_keras():
    x = np.array([[0.0, 2e-4]])  # variance 1e-8
    np.testing.assert_allclose(
        tw.nn.layer_normalization(x), [[-1e-4, 1e-4]] / np.sqrt(1.1e-7)
    )
    np.testing.assert_allclose(
        tw.nn.rms_normalization(x), [[0.0, 2e-4]] / np.sqrt(1.2e-7)
    )


def test_groups_of_minus_one_are_the_channels():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    got = tw.nn.group_normalization(x, -1).numpy()
    np.testing.assert_allclose(got, standard(x, 1)[0])


@pytest.mark.parametrize("target", [None, "numpy", "native"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_l2_normalize_of_a_row_of_zeros_is_zero_in_all_dtypes(dtype, target):
    function = tw.nn.l2_normalize if target is None else tw.function(tw.nn.l2_normalize)
    with tw.config.use_target(target or "numpy"):
        found = function(tw.zeros((1, 3), dtype))
    assert not np.asarray(tw.cast(found, "float32")).any()


def test_l2_normalize_of_zero_is_zero_with_finite_gradients():
    x = tw.constant([0.0, 0.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.l2_normalize(x)
    assert y.numpy().tolist() == [0.0, 0.0]
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_l2_normalize_takes_the_modulus_of_complex_numbers():
    y = tw.nn.l2_normalize(np.array([3.0, 4.0j])).numpy()
    np.testing.assert_allclose(y, [0.6, 0.8j])


def test_a_scale_of_the_wrong_shape_is_explained():
    with pytest.raises(tw.errors.ShapeError, match=r"scale .*shape \(3,\)"):
        tw.nn.fused_batch_norm(tw.zeros((2, 3)), tw.ones(2), tw.zeros(3), [0])


def test_a_beta_of_the_wrong_shape_is_explained():
    with pytest.raises(
        tw.errors.ShapeError, match=r"layer_normalization: beta must .* \(3,\)"
    ):
        tw.nn.layer_normalization(tw.zeros((2, 3)), beta=tw.zeros((2, 3)))


def test_groups_that_do_not_divide_the_channels_are_refused():
    with pytest.raises(ValueError, match="groups .*4, got 3"):
        tw.nn.group_normalization(tw.zeros((2, 4)), 3)


def test_channels_on_the_batch_axis_are_refused():
    with pytest.raises(ValueError, match="axis .*axis 0.*got 0"):
        tw.nn.instance_normalization(tw.zeros((2, 4)), axis=0)


def test_integers_are_refused():
    with pytest.raises(
        tw.errors.DTypeError, match="layer_normalization: x must be floating"
    ):
        tw.nn.layer_normalization([[1, 2]])


def test_local_response_normalization_takes_images():
    with pytest.raises(tw.errors.ShapeError, match="height, width, channels"):
        tw.nn.local_response_normalization(tw.zeros((2, 4)))


def test_arrays_beside_a_tensor_take_its_dtype():
    zeros, ones = np.zeros(2), np.ones(2)
    for x, mean in ((tw.zeros((3, 2)), zeros), (np.zeros((3, 2)), tw.zeros(2))):
        y = tw.nn.batch_normalization(x, mean, ones, ones, ones, 1e-3)
        assert y.dtype == tw.float32 and y.numpy().tolist() == [[1.0, 1.0]] * 3


# --------------------------------------------------------------------- part by part


ORDERS = [None, (3, 2, 1, 0), (1, 3, 0, 2)]
AXES = [(-1,), (-2,), (-3, -2), (-4, -3, -2), (-4, -2, -1), (-3, -1), (-3, -2, -1)]


@pytest.fixture(params=[(1, 1), (40, 12), (200, 30), (1 << 16, 1 << 12)])
def small_parts(request, monkeypatch):
    """Parts and rows of these sizes, of arrays of all sizes."""
    part, wide = request.param
    sizes = dict(LEAST=1, PART=part, WIDE=wide, DOT=6, SHORT=1)
    for name, value in sizes.items():
        monkeypatch.setattr(normalization_parts, name, value)
    normalization_parts._layout.cache_clear()
    yield
    normalization_parts._layout.cache_clear()


def lying(x, order):
    """``x`` with its axes in memory in an order, from the outermost one."""
    if order is None:
        return x
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axes", AXES)
def test_parts_agree_with_the_definition(axes, order, dtype, small_parts, threads):
    shape, allowed = (4, 6, 5, 8), 2e-6 if dtype == "float32" else 1e-13
    rng = np.random.default_rng(7)
    x, g = [lying(rng.normal(3, 2, shape).astype(dtype), order) for _ in range(2)]
    for centred in (True, False):
        found = normalization_parts.standardize_parts(x, axes, 1e-3, centred)
        if (axes, order) == ((-3, -1), (3, 2, 1, 0)):  # over every other one in memory
            assert found is None
            return
        reference = standard if centred else by_mean_square
        wanted = reference(x.astype("float64"), axes)
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=allowed, atol=10 * allowed)
        smalls = [rng.normal(size=wanted[1].shape).astype(dtype) for _ in range(3)]
        for h in (g, np.ascontiguousarray(g)):  # in either order
            arrays = h, found[0], *smalls
            back = normalization_parts.standardize_parts_grad(*arrays, axes, centred)
            wide = [a.astype("float64") for a in arrays]
            expected = projected(*wide, axes, centred)
            assert back.dtype == dtype
            np.testing.assert_allclose(back, expected, rtol=allowed, atol=10 * allowed)


@pytest.mark.parametrize("axes", AXES)
def test_parts_keep_nan_and_infinity_where_they_are(axes, small_parts):
    x = np.random.default_rng(1).normal(size=(4, 6, 5, 8)).astype("float32")
    x[1, 2, 3, 4], x[3, 5, 4, 7] = np.nan, np.inf
    kernel = normalization._standardize.primitive.kernel
    with np.errstate(all="ignore"):
        wanted = kernel(np, x, axes=axes, epsilon=1e-3)
        found = normalization_parts.standardize_parts(x, axes, 1e-3, True)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_matrix_is_normalized_in_one_way_however_it_lies():
    x = np.random.default_rng(2).normal(size=(700, 400)).astype("float32")
    for axes in [(-1,), (-2,)]:
        parts = normalization_parts.standardize_parts
        found = [parts(a, axes, 1e-3, True) for a in (x, np.asfortranarray(x))]
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)


LARGE = {
    "layer": ((80, 60, 64), lambda x: tw.nn.layer_normalization(x)),
    "batch": (
        (9, 80, 60, 8),
        lambda x: tw.nn.fused_batch_norm(x, np.ones(8), np.zeros(8), [0, 1, 2])[0],
    ),
    "group": ((9, 80, 60, 8), lambda x: tw.nn.group_normalization(x, 4)),
}


@pytest.mark.parametrize("kind", LARGE)
def test_derivatives_of_large_arrays_are_exact_to_the_second(kind):
    shape, normalize = LARGE[kind]
    rng = np.random.default_rng(3)
    x, g, c = [rng.normal(size=shape) for _ in range(3)]

    @tw.function
    def twice(x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = tw.sin(normalize(x))
            first = inner.gradient(y, x, output_gradients=tw.constant(g))
        return y, first, outer.gradient(first, x, output_gradients=tw.constant(c))

    assert x.size >= normalization_parts.LEAST
    y, first, second = [a.numpy() for a in twice(tw.constant(x))]
    step, total = 1e-4, lambda a, by: float((a * by).sum())
    ahead, behind = [twice(tw.constant(x + s * step * c)) for s in (1, -1)]
    slope = (total(ahead[0].numpy(), g) - total(behind[0].numpy(), g)) / (2 * step)
    np.testing.assert_allclose(total(first, c), slope, rtol=1e-6)
    slope = (total(ahead[1].numpy(), c) - total(behind[1].numpy(), c)) / (2 * step)
    np.testing.assert_allclose(total(second, c), slope, rtol=1e-5)
    eager = twice.python_function(tw.constant(x))
    if tw.config.target() == "numpy":
        for a, b in zip(eager, (y, first, second), strict=True):
            np.testing.assert_array_equal(a.numpy(), b)


@pytest.mark.parametrize("axes", AXES)
def test_results_are_in_c_order_if_the_inputs_are(axes):
    promised = {op.name for op in list_ops() if op.keeps_c_order and not op.collective}
    assert promised == {"standardize", "standardize_grad"}
    rng = np.random.default_rng(8)
    for shape in [(4, 3, 5, 2), (16, 32, 32, 16)]:
        x, g = rng.normal(size=(2, *shape)).astype("float32")
        standardize = normalization._standardize.primitive.kernels.plain(np.ndarray)
        normal, mean, variance = standardize(x, axes=axes, epsilon=1e-3)
        gradient = normalization._standardize_grad.primitive.kernels.plain(np.ndarray)
        back = gradient(g, normal, variance, variance, mean, axes=axes)
        for out in (normal, mean, variance, back):
            assert out.flags.c_contiguous


def test_scale_and_offset_join_one_block_with_each_other(numpy_target):
    @tw.function
    def call(x):
        return tw.nn.fused_batch_norm(x, np.full(64, 2.0), np.ones(64), [0, 1, 2])[0]

    shape = (32, 32, 32, 64)
    x = np.random.default_rng(9).normal(size=shape).astype("float32")
    executable = call.get_concrete_function(tw.constant(x)).executable
    assert "block_of_multiply_add" in [i.name for i in executable.program.instructions]
    found, plain = call(tw.constant(x)), call.python_function(tw.constant(x))
    np.testing.assert_array_equal(found.numpy(), plain.numpy())
    turned = np.asfortranarray(x)
    found, plain = call(tw.constant(turned)), call.python_function(tw.constant(turned))
    np.testing.assert_array_equal(found.numpy(), plain.numpy())


def test_the_order_of_a_convolution_is_that_of_what_follows(numpy_target):
    @tw.function
    def call(x, filters):
        x = tw.nn.conv2d(x, filters, 1, "SAME")
        return tw.nn.fused_batch_norm(x, np.full(16, 2.0), np.ones(16), [0, 1, 2])[0]

    rng = np.random.default_rng(9)
    x, filters = rng.normal(size=(16, 32, 32, 16)), rng.normal(size=(3, 3, 16, 16))
    arguments = tw.constant(x, "float32"), tw.constant(filters, "float32")
    program = call.get_concrete_function(*arguments).executable.program
    (made,) = [i for i in program.instructions if i.node.name == "standardize"]
    assert set(made.outputs) <= buffers_in_other_order(program)
    found, plain = call(*arguments).numpy(), call.python_function(*arguments).numpy()
    np.testing.assert_array_equal(found, plain)
    assert found.strides == plain.strides
