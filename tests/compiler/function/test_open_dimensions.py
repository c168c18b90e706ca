"""Open dimensions of a trace: what is computed from them, and how they show."""

import json
import pickle

import numpy as np
import pytest

import tapewright as tw

# ------------------------------------------------------------------ arithmetic on sizes


# Integer arithmetic on sizes, and the same of NumPy on ``s``, the shape as an array.
ARITHMETIC = {
    "square": (lambda s: s[0] * s[0], lambda s: s[0] ** 2),
    "powers": (lambda s: s**3, lambda s: s**3),
    "squared difference": (
        lambda s: tw.math.squared_difference(s[0], s[1]),
        lambda s: (s[0] - s[1]) ** 2,
    ),
    "sums": (lambda s: 3 - s[0] + 2 * s[1] - -s, lambda s: 3 - s[0] + 2 * s[1] + s),
    "add_n": (lambda s: tw.add_n([s, [1, 2], s]), lambda s: s + [1, 2] + s),
    "quotients": (lambda s: s // 2 + s % 3, lambda s: s // 2 + s % 3),
    "towards zero": (
        lambda s: tw.truncatediv(3 - s, 2) * 10 + tw.truncatemod(3 - s, 2),
        lambda s: np.trunc((3 - s) / 2) * 10 + np.fmod(3 - s, 2),
    ),
    "bounds": (
        lambda s: tw.maximum(s, 3) + tw.minimum(s[0], s[1]) + tw.abs(s - 4),
        lambda s: np.maximum(s, 3) + min(s) + abs(s - 4),
    ),
    "clipped": (
        lambda s: tw.clip_by_value(s[0], 2, s[1]),
        lambda s: min(max(s[0], 2), s[1]),
    ),
    "product": (lambda s: tw.reduce_prod(s) + tw.size(s), lambda s: s.prod() + 2),
    "extremes": (lambda s: tw.reduce_max(s) - tw.reduce_min(s), np.ptp),
    "scans": (
        lambda s: tw.cumsum(s) * tw.math.cumprod(s),
        lambda s: s.cumsum() * s.cumprod(),
    ),
    "matmul": (lambda s: tw.matmul(s[None], [[1], [3]]), lambda s: [[s[0] + 3 * s[1]]]),
    "tensordot": (lambda s: tw.tensordot(s, [3, 1], 1), lambda s: 3 * s[0] + s[1]),
    "gathered": (lambda s: tw.gather(s, [1, 0, 1]), lambda s: s[[1, 0, 1]]),
    "one by one": (lambda s: tw.gather_nd(s, [[1], [0]]), lambda s: s[::-1]),
    "scattered": (
        lambda s: tw.tensor_scatter_nd_update(s, [[0]], s[1:] + 1),
        lambda s: [s[1] + 1, s[1]],
    ),
    "moved": (
        lambda s: tw.roll(tw.reverse(s, [0]), 1, 0) + tw.transpose(s[None])[:, 0],
        lambda s: 2 * s,
    ),
    "joined": (
        lambda s: tw.concat([s[:1], [2], tw.stack([s[1], 4])], 0),
        lambda s: [s[0], 2, s[1], 4],
    ),
    "taken apart": (
        lambda s: tw.split(s, 2)[0] * tw.unstack(s)[1],
        lambda s: s[:1] * s[1],
    ),
    "repeated": (
        lambda s: tw.tile(s, [2]) + tw.broadcast_to(s[0], [4]),
        lambda s: np.tile(s, 2) + s[0],
    ),
    "padded": (lambda s: tw.pad(s, [[1, 0]], constant_values=7), lambda s: [7, *s]),
    "int64": (lambda s: tw.cast(s, "int64") * 2, lambda s: s * 2),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_integer_arithmetic_on_sizes_gives_sizes(name):
    expression, numpys = ARITHMETIC[name]
    known = []

    def f(x):
        y = expression(tw.shape(x))
        known.append(getattr(y, "known_sizes", lambda: None)())
        return y, tw.zeros(tw.reshape(tw.abs(y), [-1])[:1])

    concrete = tw.function(f).get_concrete_function(tw.TensorSpec([None, None]))
    assert known[-1] is not None
    for shape in ((5, 4), (1, 3), (2, 7)):
        y, filled = concrete(tw.zeros(shape))
        wanted = np.asarray(numpys(np.array(shape)))
        np.testing.assert_array_equal(y, wanted)
        assert filled.shape == (abs(int(wanted.flat[0])),)


def test_sizes_in_narrow_integers_wrap_around_as_in_eager_mode():
    def f(x):
        return tw.cast(tw.shape(x), "uint8") - tw.constant(3, "uint8")

    concrete = tw.function(f).get_concrete_function(tw.TensorSpec([None]))
    assert concrete(tw.zeros(1)).numpy().tolist() == [254]


def test_reshape_of_several_unknown_sizes_needs_a_multiple_only():
    concrete = tw.function(lambda x: tw.reshape(x, [-1, 784])).get_concrete_function(
        tw.TensorSpec([None, None, None])
    )
    for shape, rows in (((3, 28, 28), 3), ((4, 14, 28), 2), ((0, 28, 28), 0)):
        assert concrete(tw.zeros(shape)).shape == (rows, 784)
    with pytest.raises(ValueError, match="784"):
        concrete(tw.zeros((3, 5, 5)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tw.reshape(tw.reshape(x, [-1, 6]), tw.shape(x)),
        lambda x: tw.reshape(x, [tw.shape(x)[1], -1, 2]),
        lambda x: tw.nn.space_to_depth(x[None, :, :, None], 2),
    ],
)
def test_what_must_be_a_multiple_is_one_in_a_trace_for_all_sizes(f):
    concrete = tw.function(f).get_concrete_function(tw.TensorSpec([None, None]))
    for shape in ((6, 4), (2, 6), (12, 2)):
        x = tw.random.normal(shape)
        np.testing.assert_array_equal(concrete(x), f(x))
    with pytest.raises(ValueError):
        concrete(tw.zeros((5, 5)))


# -------------------------------------------------------- one concrete function for all


def square(x):
    return tw.matmul(x, x, transpose_b=True)


# Functions of a matrix, some of which need its rank or its sizes as numbers.
OF_A_MATRIX = {
    **{
        f"dct of type {n}": (lambda x, n=n: tw.signal.dct(x, type=n))
        for n in range(1, 5)
    },
    "dct of 7": lambda x: tw.signal.dct(x, n=7, norm="ortho"),
    "idct": lambda x: tw.signal.idct(x, type=3),
    "rfft and back": lambda x: tw.signal.irfft(tw.signal.rfft(x), tw.shape(x)[1:]),
    "rfft2d": tw.signal.rfft2d,
    "fftshift": tw.signal.fftshift,
    "frame": lambda x: tw.signal.frame(x, 3, 2, pad_end=True),
    "stft": lambda x: tw.signal.stft(x, 4, 2),
    "window": lambda x: tw.signal.hann_window(tw.shape(x)[1]),
    "svd": lambda x: tw.linalg.svd(x)[0],
    "qr": lambda x: tw.abs(tw.linalg.qr(x)[1]),
    "det": lambda x: tw.linalg.det(square(x)),
    "pinv": tw.linalg.pinv,
    "matrix_rank": tw.linalg.matrix_rank,
    "diag_part": tw.linalg.diag_part,
    "band_part": lambda x: tw.linalg.band_part(x, 1, 0),
    "matmul": square,
    "transpose": lambda x: tw.transpose(x),
    "einsum": lambda x: tw.einsum("...i->...", x),
    "softmax": tw.nn.softmax,
    "l2_normalize": lambda x: tw.nn.l2_normalize(x, -1),
    "crelu": tw.nn.crelu,
    "standardized": lambda x: tw.image.per_image_standardization(x[..., None]),
    "resized": lambda x: tw.image.resize(x[..., None], [3, 5]),
    "cropped": lambda x: tw.image.central_crop(x[..., None], 0.5),
    "padded": lambda x: tw.image.resize_with_pad(x[..., None], 9, 9),
    "stacked": lambda x: tw.stack([x, x], 1),
    "expanded": lambda x: tw.expand_dims(x, 1),
    "one_hot": lambda x: tw.one_hot(tw.argmax(x, -1), 4),
    "reshaped": lambda x: tw.reshape(x, [-1, 2]) * tw.ones([tw.size(x) // 2, 2]),
    "linspace": lambda x: tw.linspace(0.0, 1.0, tw.shape(x)[0]),
    "segments": lambda x: tw.math.unsorted_segment_sum(
        x, tw.zeros([tw.shape(x)[0]], "int32"), 2
    ),
    "rows": lambda x: sum([row for row in x]),  # noqa: C416
    "mapped": lambda x: tw.map_fn(lambda row: row * 2.0, x),
}


@pytest.mark.parametrize("spec", [[None, None], None], ids=["sizes", "rank"])
@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_a_concrete_function_serves_all_sizes_and_ranks(name, spec):
    f = OF_A_MATRIX[name]
    spec = tw.TensorSpec(spec)
    concrete = tw.function(f).get_concrete_function(spec)
    nested = tw.function(lambda x: concrete(x) * 1).get_concrete_function(spec)
    for shape in ((6, 4), (2, 6)):
        x = tw.random.normal(shape)
        for call in (concrete, tw.function(lambda x: concrete(x) * 1), nested):
            np.testing.assert_allclose(call(x), f(x), rtol=1e-5, atol=1e-5)


def test_a_constant_that_a_tape_watches_in_a_loop_stays_one_for_each_size():
    w = tw.Variable([1.0, 2.0, 3.0])

    @tw.function(input_signature=[tw.TensorSpec([None]), tw.TensorSpec([], "int32")])
    def step(x, count):
        def body(i, total):
            zeros = tw.zeros([3])
            distance = tw.reduce_mean(tw.square(w - zeros))
            with tw.GradientTape() as tape:
                tape.watch(zeros)
                w.assign(2.0 * w + zeros)
            return i + 1, total + distance

        total = tw.while_loop(lambda i, _: i < count, body, [0, 0.0])[1]
        return total + tw.reduce_sum(x)

    for size in (2, 5):
        w.assign([1.0, 2.0, 3.0])
        found = step(tw.ones([size]), tw.constant(2))
        np.testing.assert_allclose(found, 5 * 14 / 3 + size, rtol=1e-6)
        np.testing.assert_array_equal(w, [4.0, 8.0, 12.0])


# ------------------------------------------------------------------------- as they show


def test_an_open_dimension_is_none_in_what_is_left_of_a_trace():
    kept = []

    @tw.function(input_signature=[tw.TensorSpec([None, 3])])
    def f(x):
        kept.extend([x, x.shape, x.shape[0], 1 / x.shape[0]])
        return {"a": tw.concat([x, x], 0), "b": [tw.reduce_sum(x, 1)]}

    f(np.ones((4, 3), "float32"))
    concrete = f.get_concrete_function()
    outputs = concrete.structured_outputs
    shapes = [outputs["a"].shape, outputs["b"][0].shape, kept[0].shape]
    shapes += [x.shape for x in (*concrete.inputs, *concrete.outputs)]
    assert [type(shape[0]) for shape in shapes] == [type(None)] * len(shapes)
    assert hash(outputs["a"]) == hash(tw.TensorSpec([None, 3]))
    tensor_shape, size, real = pickle.loads(pickle.dumps(kept[1:]))
    assert tensor_shape[0] is size is real is None


def test_elements_of_an_open_batch_have_none_in_their_spec():
    rows = tw.data.Dataset.from_tensor_slices(np.ones((8, 3), "float32")).batch(3)
    for changed in rows, rows.map(lambda x: tw.concat([x, x], 0)):
        assert type(changed.element_spec.shape[0]) is type(None)


def test_errors_do_not_name_the_class_of_an_open_dimension():
    messages = []

    @tw.function(input_signature=[tw.TensorSpec([None, 3])])
    def f(x):
        n = x.shape[0]
        wrong = [
            lambda: tw.constant([n, 2]),
            lambda: json.dumps({"n": n}),
            lambda: n + "a",
            lambda: len(n),
            lambda: tw.ensure_shape(x, (n, 4)),
            lambda: tw.keras.layers.Dense(n),
        ]
        for each in wrong:
            with pytest.raises((TypeError, ValueError)) as error:
                each()
            messages.append(str(error.value))
        return x

    f.get_concrete_function()
    assert "tw.shape(x)[axis]" in messages[0]
    assert not any(["Dim" in each for each in messages])


def test_a_static_value_is_known_of_constants_and_sizes():
    value = tw.get_static_value
    assert value(tw.constant(10)) == 10 and value(tw.constant("a")) == b"a"
    assert value(tw.constant([1, 2])).tolist() == [1, 2]
    assert value(tw.Variable(3)) is value(tw.sparse.eye(2)) is value(None) is None
    assert value(5) == 5 and value([1, 2]) == [1, 2]
    found = []

    @tw.function
    def f(x):
        s = tw.shape(x)
        found.extend([value(x), value(s), value(s[0]), value(tw.stack([s[0], 3]))])
        found.extend([value(s[1]).tolist(), value(tw.range(3)).tolist()])
        found.append(value(s, partial=True).tolist())
        return x

    f.get_concrete_function(tw.TensorSpec([None, 4]))
    assert found == [None, None, None, None, 4, [0, 1, 2], [None, 4]]
