"""`tw.onnx.save`: names, sizes, control flow, gradients, errors."""

import os

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.errors import SavingError
from tapewright.formats.onnx import save as saving

from .runtime import load, onnx, run, same_as_eager

RNG = np.random.default_rng(5)


def ops_of(model):
    return [node.op_type for node in model.graph.node]


def draws(*shapes):
    return [RNG.standard_normal(shape, "f4") for shape in shapes]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


# ------------------------------------------------------------------- names and sizes


def test_names_and_open_sizes_are_declared(path):
    def function(image, weights):
        return {"b": image * 2, "a": image + weights}

    signature = [
        tw.TensorSpec([None, None, 3], name="image"),
        tw.TensorSpec([None, None, 3], name="weights"),
    ]
    tw.onnx.save(function, signature, path)
    model = load(path)

    def shown(values):
        return {
            v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in values
        }

    sizes = ["batch", "image_1", 3]  # both inputs must have them
    assert shown(model.graph.input) == {"image": sizes, "weights": sizes}
    assert shown(model.graph.output) == {"a": sizes, "b": sizes}
    x, y = draws((2, 4, 3), (2, 4, 3))
    a, b = run(path, x, y)
    np.testing.assert_array_equal(a, x + y)
    np.testing.assert_array_equal(b, x * 2)


def test_outputs_may_get_names(path):
    signature = [tw.TensorSpec([2])]
    tw.onnx.save(lambda x: (x, x + 1), signature, path, output_names=["same", "next"])
    assert [v.name for v in load(path).graph.output] == ["same", "next"]
    for wrong in (["same"], ["same", "same"], ["x", "next"], ["same", 3]):
        with pytest.raises(ValueError, match="output_names must have 2 names"):
            tw.onnx.save(lambda x: (x, x + 1), signature, path, output_names=wrong)


def test_outputs_have_the_names_of_the_structure(path):
    def function(x):
        return {"loss": x, "parts": [x + 1, {"last": x + 2}]}

    tw.onnx.save(function, [tw.TensorSpec([2])], path)
    names = [v.name for v in load(path).graph.output]
    assert names == ["loss", "parts_0", "parts_1_last"]
    tw.onnx.save(lambda x: x + 1, [tw.TensorSpec([2])], path)
    assert [v.name for v in load(path).graph.output] == ["output_0"]


def test_weights_have_their_paths(path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="out")])
    model.export(path)
    names = [tensor.name for tensor in load(path).graph.initializer]
    assert [name.rpartition("out/")[2] for name in names] == ["kernel", "bias"]


def test_a_size_that_must_be_a_number_is_declared_as_one(path):
    table = tw.constant(draws((5, 3))[0])
    tw.onnx.save(lambda x: x + table, [tw.TensorSpec([None, 3])], path)
    (dim, _) = load(path).graph.input[0].type.tensor_type.shape.dim
    assert dim.dim_value == 5


def test_a_run_with_sizes_that_the_trace_excludes_fails(path):
    layer = keras.layers.CenterCrop(3, 4)
    same_as_eager(layer, [tw.TensorSpec([None, None, None, 1])], draws((2, 8, 9, 1)),
                  path=path)  # fmt: skip
    (entry,) = load(path).metadata_props
    assert entry.key == "tapewright.sizes"
    assert "inputs_1" in entry.value
    with pytest.raises(Exception, match="sizes must satisfy"):
        run(path, *draws((2, 2, 2, 1)))


def test_sizes_that_must_be_equal_are_compared(path):
    def function(x, y):
        return tw.range(tw.shape(x + y)[0])

    signature = [tw.TensorSpec([None, 3], name=name) for name in "xy"]
    same_as_eager(function, signature, draws((2, 3), (2, 3)), path=path)
    with pytest.raises(Exception, match="sizes must satisfy .*_0 == ._0"):
        run(path, *draws((1, 3), (2, 3)))


def test_conditions_of_sizes_of_the_same_name(path):
    def function(x, y):
        rolled = [tw.range(n) for n in (x.shape[0], y.shape[0]) if n > 2]
        return x + y, rolled

    signature = [tw.TensorSpec([None])] * 2
    same_as_eager(function, signature, draws((3,), (3,)), path=path)


def test_results_that_depend_on_sizes_alone_are_checked_too(path):
    def function(x):
        size = x.shape[0]
        return tw.range(size) if size > 3 else tw.range(2 * size)

    same_as_eager(function, [tw.TensorSpec([None])], path=path)
    found = 0
    for n in (2, 7):
        try:
            (got,) = run(path, *draws((n,)))
        except Exception as error:
            assert "sizes must satisfy" in str(error)
            continue
        found += 1
        np.testing.assert_array_equal(got, function(np.ones(n)))
    assert found == 1


def test_code_that_needs_a_size_is_refused(path):
    def function(x):
        return tw.add_n([x[i] for i in range(int(x.shape[0]))])

    with pytest.raises(SavingError, match="give the size in the signature"):
        tw.onnx.save(function, [tw.TensorSpec([None, 3])], path)
    assert not path.exists()


def test_a_shape_computed_from_open_sizes(path):
    def function(x):
        n, m = tw.shape(x)[0], tw.shape(x)[1]
        rows = tw.reshape(x, [m, n])
        both = tw.concat([rows, tw.zeros([m, 2])], 1)
        return (
            tw.reshape(both, [-1]),
            tw.range(n * m // 2),
            tw.cast(n, tw.float32) / 2.0,
        )

    signature = [tw.TensorSpec([None, None])]
    same_as_eager(function, signature, draws((3, 5)), draws((1, 2)), path=path)


# ----------------------------------------------------------------------- what is saved


def test_a_concrete_function_and_an_input_signature(path):
    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def function(x):
        return tw.tanh(x)

    (x,) = draws((3, 2))
    for given in (function, function.get_concrete_function()):
        tw.onnx.save(given, None, path)
        np.testing.assert_allclose(run(path, x)[0], np.tanh(x), rtol=1e-5)


def test_constants_are_folded(path):
    weight = tw.Variable(draws((3, 3))[0])

    def function(x):
        return tw.matmul(x, tw.transpose(weight * 2.0) + 1.0)

    model = same_as_eager(function, [tw.TensorSpec([2, 3])], draws((2, 3)), path=path)
    assert ops_of(model) == ["MatMul", "Identity"]


def test_convolutions_stay_with_channels_first(path):
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.MaxPooling2D(2),
            keras.layers.ZeroPadding2D(1),
            keras.layers.DepthwiseConv2D(3, strides=2),
            keras.layers.GlobalAveragePooling2D(),
        ]
    )
    model.export(path)
    saved = load(path)
    assert ops_of(saved) == [
        "Transpose", "Conv", "Mul", "Add", "Relu", "MaxPool", "Pad", "Conv", "ReduceMean",
        "Identity",
    ]  # fmt: skip
    (x,) = draws((2, 16, 16, 3))
    wanted = model(x, training=False).numpy()
    np.testing.assert_allclose(run(path, x)[0], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, 3, (1, 2), (0, 3), (2, 3), (0, 1, 2)])
def test_reductions_of_images_over_any_axes(axis, keepdims, path):
    layer = keras.layers.Conv2D(4, 3)

    def function(x):
        return tw.reduce_max(layer(x), axis, keepdims)

    signature = [tw.TensorSpec([None, 6, 7, 2])]
    same_as_eager(function, signature, draws((3, 6, 7, 2)), path=path)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_recurrent_layers(kind, mask, path):
    layer = getattr(keras.layers, kind)(5, return_sequences=True, return_state=True)
    embedding = keras.layers.Embedding(9, 4, mask_zero=mask)
    calls = [[RNG.integers(0, 4, s).astype("i4")] for s in ((3, 6), (1, 2))]
    signature = [tw.TensorSpec([None, None], tw.int32)]
    model = same_as_eager(lambda x: layer(embedding(x)), signature, *calls, path=path)
    found = {"LSTM", "GRU", "RNN", "Scan"} & {*ops_of(model)}
    assert found == {"Scan" if mask else kind.removeprefix("Simple")}


def test_control_flow(path):
    @tw.function
    def function(x, n):
        y = x * 2 if tw.reduce_sum(x) > 0 else x - 1
        for i in tw.range(n):
            y = tw.tanh(y) + tw.cast(i, tw.float32)
        while tw.reduce_sum(y) < 50.0:
            y = y * 1.5 + 1
        choice = tw.switch_case(n, [lambda: x, lambda: x + 1, lambda: x * 3])
        return y, choice

    signature = [tw.TensorSpec([4, 3]), tw.TensorSpec([], tw.int32)]
    (x,) = draws((4, 3))
    calls = [(abs(x), np.int32(3)), (-abs(x), np.int32(1)), (x, np.int32(0))]
    model = same_as_eager(function, signature, *calls, path=path)
    assert {"If", "Loop"} <= {*ops_of(model)}


def test_loops_over_rows_of_an_open_size(path):
    weight = tw.Variable(draws((3, 3))[0])

    @tw.function
    def function(rows):
        squares = tw.map_fn(lambda row: row * row, rows)
        sums = tw.scan(lambda a, b: tw.tanh(a + b @ weight), rows[:, None])
        back = tw.scan(lambda a, b: 0.5 * a + b, rows, reverse=True)
        return squares, sums, back, tw.foldr(lambda a, b: 0.5 * a + b, rows)

    calls = [draws((5, 3)), draws((2, 3))]
    same_as_eager(function, [tw.TensorSpec([None, 3])], *calls, path=path)


def test_a_shape_with_an_unknown_and_an_open_size(path):
    def function(x):
        return tw.reshape(x, [-1, tw.shape(x)[-1]])

    signature = [tw.TensorSpec([None, None, None])]
    same_as_eager(function, signature, draws((2, 3, 5)), draws((1, 2, 4)), path=path)


def test_reshaping_to_open_sizes_of_which_one_is_zero(path):
    def function(x):
        return tw.reshape(x, tw.shape(x)[::-1]), tw.tile(x, [1, 2])

    signature = [tw.TensorSpec([None, None])]
    calls = [draws((2, 3)), draws((2, 0)), draws((0, 3))]
    same_as_eager(function, signature, *calls, path=path)


@pytest.mark.parametrize("shift", [5, -5, 1])
def test_rolling_an_axis_of_an_open_size(shift, path):
    calls = [draws((n,)) for n in (0, 1, 2, 3, 5, 7)]
    signature = [tw.TensorSpec([None])]
    same_as_eager(lambda x: tw.roll(x, shift, 0), signature, *calls, path=path)


@pytest.mark.parametrize("start", [-1, -3, -9, None, 2])
@pytest.mark.parametrize("stop", [None, 0, 1, -2, -3, -6, -8])
def test_slices_with_negative_steps(start, stop, path):
    def function(x):
        return x[start:stop:-1], x[:, start:stop:-2]

    same_as_eager(function, [tw.TensorSpec([5, 5])], draws((5, 5)), path=path)


def test_a_negative_start_outside_of_an_open_size(path):
    calls = [draws((n,)) for n in (2, 3, 6)]
    same_as_eager(lambda x: x[-3::-1], [tw.TensorSpec([None])], *calls, path=path)


def test_means_of_integers(path):
    def function(x):
        return tw.reduce_mean(x, 0), tw.reduce_mean(x), tw.reduce_mean(x, [])

    large = np.full((3, 2), 1 << 30, "i4")
    calls = [[large], [np.array([[-3, 1], [-2, 0], [-2, 0]], "i4")]]
    signature = [tw.TensorSpec([None, 2], tw.int32)]
    same_as_eager(function, signature, *calls, path=path)


def test_reductions_over_no_axes(path):
    def function(x):
        return tw.math.count_nonzero(x, []), tw.clip_by_norm(x, 1.0, [])

    same_as_eager(function, [tw.TensorSpec([2, 3])], draws((2, 3)), path=path)


def test_recurrent_layers_of_other_kinds(path):
    layers = [
        keras.layers.GRU(
            3, reset_after=False, return_sequences=True, go_backwards=True
        ),
        keras.layers.LSTM(3, activation="relu", recurrent_activation="hard_sigmoid"),
    ]
    signature = [tw.TensorSpec([None, None, 4])]
    calls = [draws((2, 5, 4)), draws((1, 3, 4))]
    for layer in layers:
        same_as_eager(layer, signature, *calls, path=path)


def test_gradients_are_part_of_a_function(path):
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(8, activation="gelu"),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(8, activation="silu"),
            keras.layers.Dense(4, activation="softplus"),
            keras.layers.Dense(1, activation="tanh"),
        ]
    )

    def forces(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            energy = tw.reduce_sum(model(x)) + tw.reduce_sum(tw.nn.softmax(x) ** 2)
        return energy, -tape.gradient(energy, x)

    calls = [draws((5, 3)), draws((1, 3))]
    same_as_eager(forces, [tw.TensorSpec([None, 3])], *calls, path=path)


def test_custom_gradients_and_layers_are_their_ops(path):
    @tw.custom_gradient
    def clipped(x):
        return tw.tanh(x), lambda g: tw.clip_by_value(g, -1.0, 1.0)

    class Scale(keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

        def call(self, x):
            return clipped(x) * self.scale

    layer = Scale()
    layer(np.ones((1, 3), "f4"))
    model = same_as_eager(layer, [tw.TensorSpec([None, 3])], draws((2, 3)), path=path)
    assert ops_of(model) == ["Tanh", "Mul", "Identity"]


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int64", "bool"])
def test_other_dtypes(dtype, path):
    x = RNG.integers(0, 2, (3, 4)).astype(dtype)
    signature = [tw.TensorSpec([None, 4], dtype)]
    same_as_eager(lambda x: tw.concat([x, x], 0)[::-1], signature, [x], path=path)


def test_choices_of_truths(path):
    def function(x, y):
        return tw.where(x > y, x < 0, y < 0), tw.where(x[0] > 0, True, y < 0)

    signature = [tw.TensorSpec([None, 4])] * 2
    same_as_eager(function, signature, draws((3, 4), (3, 4)), path=path)


# ------------------------------------------------------------------------ what is not


def test_all_ops_without_an_equivalent_are_named(path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="near")])

    def function(x):
        return tw.math.lgamma(model(x)), tw.signal.rfft(x)

    with pytest.raises(SavingError) as error:
        tw.onnx.save(function, [tw.TensorSpec([2, 4])], path)
    text = str(error.value)
    assert "lgamma (" in text and "rfft (" in text
    assert "test_save.py:" in text and "near/bias" in text
    assert not path.exists()


def test_assigned_variables_are_refused(path):
    counter = tw.Variable(0.0)

    def function(x):
        counter.assign_add(1.0)
        return x + counter

    with pytest.raises(SavingError, match="assigns the variable"):
        tw.onnx.save(function, [tw.TensorSpec([2])], path)


def test_prints_and_assertions_are_left_out_with_a_warning(path):
    @tw.function
    def function(x):
        tw.print(x)
        tw.debugging.assert_greater(x, -100.0)
        return x + 1

    with pytest.warns(UserWarning, match=r"print .*test_save.*, assert_greater"):
        tw.onnx.save(function, [tw.TensorSpec([2])], path)
    np.testing.assert_array_equal(run(path, np.ones(2, "f4"))[0], [2, 2])


def test_complex_tensors_are_refused(path):
    with pytest.raises(SavingError, match="is complex"):
        tw.onnx.save(lambda x: x, [tw.TensorSpec([2], tw.complex64)], path)


def test_functions_without_results_are_refused(path):
    with pytest.raises(SavingError, match="returns no tensors"):
        tw.onnx.save(lambda x: None, [tw.TensorSpec([2])], path)


def test_dtypes_that_an_op_of_onnx_lacks_are_refused(path):
    with pytest.raises(SavingError, match=r"(?s)ONNX does not allow.*ReduceSum.*uint8"):
        tw.onnx.save(tw.reduce_sum, [tw.TensorSpec([2], tw.uint8)], path)


def test_inputs_of_unknown_rank_are_refused(path):
    with pytest.raises(SavingError, match="unknown rank"):
        tw.onnx.save(lambda x: x + 1, [tw.TensorSpec(None)], path)


def test_an_error_keeps_the_older_file(path):
    tw.onnx.save(lambda x: x + 1, [tw.TensorSpec([2])], path)
    before = path.read_bytes()
    with pytest.raises(SavingError):
        tw.onnx.save(tw.math.lgamma, [tw.TensorSpec([2])], path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_large_constants_are_stored_beside_the_model(path, monkeypatch):
    monkeypatch.setattr(saving, "LARGEST", 1 << 12)
    weight = tw.Variable(draws((40, 50))[0])
    function, (x,) = lambda x: x @ weight + 1.0, draws((2, 40))
    tw.onnx.save(function, [tw.TensorSpec([None, 40])], path)
    assert sorted(os.listdir(path.parent)) == ["model.onnx", "model.onnx.data"]
    np.testing.assert_allclose(run(path, x)[0], function(x), rtol=1e-5, atol=1e-6)
    stored = onnx.load(str(path))
    np.testing.assert_array_equal(
        onnx.numpy_helper.to_array(stored.graph.initializer[0]), weight
    )


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("size", [(14, 9), (5, 4), (7, 12)])
@pytest.mark.parametrize(
    "method", "nearest bilinear bicubic area lanczos3 gaussian mitchellcubic".split()
)
def test_resizing(method, size, antialias, path):
    def function(x):
        return tw.image.resize(x, size, method, antialias=antialias)

    signature = [tw.TensorSpec([None, 7, 6, 2])]
    same_as_eager(function, signature, draws((2, 7, 6, 2)), path=path)


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_resizing_to_an_open_size(method, path):
    def function(x):
        return tw.image.resize(x, 2 * tw.shape(x)[1:3], method)

    signature = [tw.TensorSpec([None, None, None, 2])]
    calls = [draws((2, 7, 6, 2)), draws((1, 3, 8, 2))]
    same_as_eager(function, signature, *calls, path=path)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size", [9, 10, 11, 12])
def test_transposed_convolutions_of_all_sizes(size, padding, path):
    (filters,) = draws((3, 3, 2, 4))  # [..., outputs, inputs]
    count = -(-size // 3) if padding == "SAME" else (size - 3) // 3 + 1

    def function(x):
        shape = [2, size, size, 2]
        return tw.nn.conv2d_transpose(x, filters, shape, strides=3, padding=padding)

    images = (2, count, count, 4)
    same_as_eager(function, [tw.TensorSpec(images)], draws(images), path=path)


def test_steps_of_different_pools_are_not_joined(path):
    layers = [
        keras.layers.MaxPooling2D((2, 1)),
        keras.layers.AveragePooling2D((1, 2)),
        keras.layers.AveragePooling2D((2, 1), padding="same"),
        keras.layers.MaxPooling2D((2, 1)),
        keras.layers.UpSampling2D((1, 2)),
        keras.layers.UpSampling2D((2, 1), interpolation="bilinear"),
    ]
    model = keras.Sequential([keras.Input((11, 9, 2)), *layers])
    signature = [tw.TensorSpec([None, 11, 9, 2])]
    same_as_eager(model, signature, draws((2, 11, 9, 2)), path=path)


def test_what_is_no_bias_is_added(path):
    signature = [tw.TensorSpec([None, 6, 6, 2])]
    for kind in (keras.layers.Conv2D, keras.layers.Conv2DTranspose):
        for filters, count in ((4, 1), (1, 5)):
            layer, (offset,) = kind(filters, 3, use_bias=False), draws((count,))
            model = keras.Sequential(
                [layer, keras.layers.Lambda(tw.constant(offset).__radd__)]
            )
            same_as_eager(model, signature, draws((2, 6, 6, 2)), path=path)


@pytest.mark.parametrize("size", [2, (3, 2), (1, 2), 1])
@pytest.mark.parametrize("kind", ["Max", "Average"])
def test_same_padding_of_pools_of_which_one_axis_is_open(kind, size, path):
    layer = getattr(keras.layers, f"{kind}Pooling2D")(size, 2, padding="same")
    sizes = (5, 7) if size == 1 else (4, 5, 6)  # all odd, for margins of zero
    calls = [draws((2, 7, n, 2)) for n in sizes]
    for rows in (7, None):
        signature = [tw.TensorSpec([None, rows, None, 2])]
        same_as_eager(layer, signature, *calls, path=path)


def test_pools_of_an_axis_beside_those_of_images(path):
    layer = keras.layers.MaxPooling2D(1, 2, "same", data_format="channels_first")
    signature = [tw.TensorSpec([None, 3, None, None])]
    same_as_eager(layer, signature, draws((2, 3, 7, 5)), path=path)


def test_filters_of_a_shared_layer_are_stored_once(path):
    layer = keras.layers.Conv2D(8, 3, padding="same")
    image = keras.Input((6, 6, 8))
    keras.Model(image, layer(layer(image))).export(path)
    assert len([t for t in load(path).graph.initializer if len(t.dims) == 4]) == 1


def test_convolutions_of_an_open_number_of_channels_are_refused(path):
    layer = keras.layers.Conv2D(2, 3)
    layer(draws((1, 6, 6, 3))[0])
    with pytest.raises(SavingError, match="open number of channels"):
        tw.onnx.save(layer, [tw.TensorSpec([None, 6, 6, None])], path)


def test_pools_that_follow_each_other(path):
    layers = [keras.layers.MaxPooling2D(2), keras.layers.MaxPooling2D(2, strides=1)]
    layers += [keras.layers.UpSampling2D(2), keras.layers.UpSampling2D(3)]
    model = keras.Sequential([keras.Input((11, 9, 2)), *layers])
    signature = [tw.TensorSpec([None, 11, 9, 2])]
    saved = same_as_eager(model, signature, draws((2, 11, 9, 2)), path=path)
    assert ops_of(saved).count("MaxPool") == ops_of(saved).count("Resize") == 2


def test_a_normalization_takes_over_what_has_its_shape_alone(path):
    scale, offset = draws((4,), (3, 4))
    layer = keras.layers.LayerNormalization(axis=[1, 2], center=False, scale=False)
    signature = [tw.TensorSpec([None, 3, 4])]
    cases = {
        lambda x: layer(x) * scale + offset: "Mul",
        lambda x: (layer(x) + offset) * offset: "Mul",
        lambda x: (layer(x) * offset + offset) * scale + scale: "Mul",
        lambda x: layer(x) * offset + offset: "LayerNormalization",
    }
    for function, op in cases.items():
        model = same_as_eager(function, signature, draws((2, 3, 4)), path=path)
        assert "LayerNormalization" in ops_of(model) and op in ops_of(model)
        assert ("Mul" in ops_of(model)) == (op == "Mul")


def test_large_results_of_constants_are_not_stored(path):
    row = tw.Variable(draws((1000,))[0])

    def function(x):
        return x + tw.broadcast_to(row, [1000, 1000])

    tw.onnx.save(function, [tw.TensorSpec([1000, 1000])], path)
    assert path.stat().st_size < 1 << 17


def test_a_constant_that_sizes_choose_is_checked(path):
    def function(x):
        return tw.constant(1.0) if x.shape[0] > 3 else tw.constant(2.0)

    tw.onnx.save(function, [tw.TensorSpec([None])], path)
    assert run(path, *draws((5,))) == [1.0]
    with pytest.raises(Exception, match="sizes must satisfy"):
        run(path, *draws((2,)))


def test_convolutions_of_one_entry_with_strides_allow_all_sizes(path):
    layer = keras.layers.Conv2D(2, 1, strides=2, padding="same")
    signature = [tw.TensorSpec([None, None, None, 3])]
    calls = [draws((2, h, w, 3)) for h, w in ((4, 4), (5, 6), (7, 9))]
    same_as_eager(layer, signature, *calls, path=path)
