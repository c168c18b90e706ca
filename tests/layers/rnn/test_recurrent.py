"""`SimpleRNN`, `LSTM`, `GRU`: recordings of Keras, traces, dropout, configs."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers

from ..recorded_recurrent import ALL, KINDS, REFERENCE, record, some

with np.load(REFERENCE / "recurrent.npz") as _file:
    KERAS = dict(_file)


def outputs_and_gradients(layer, call, x, more):
    """As the recording has them, flat and one after the other."""
    with tw.GradientTape() as tape:
        if x.dtype.is_floating:
            tape.watch(x)
        outputs = record.flat(call(x, **more))
        total = sum(
            tw.reduce_sum(y * record.numbers(*y.shape, start=i))
            for i, y in enumerate(outputs)
        )
    sources = [x] if x.dtype.is_floating else []
    gradients = tape.gradient(total, [*sources, *layer.trainable_variables])
    gradients = [tw.convert_to_tensor(g) for g in gradients]
    return np.concatenate([np.ravel(y.numpy()) for y in [*outputs, *gradients]])


def prepared(name):
    batches, more = record.inputs_of(name)
    layer = record.make(layers, name)
    more = {
        k: [tw.constant(x) for x in v] if isinstance(v, list) else tw.constant(v)
        for k, v in more.items()
    }
    layer(tw.constant(batches[0]), **more)
    record.fill(layer)
    if getattr(layer, "stateful", False):
        layer.reset_state()
    return layer, [tw.constant(batch) for batch in batches], more


@pytest.mark.parametrize("name", record.CASES)
def test_outputs_and_gradients_are_those_of_keras(name):
    layer, batches, more = prepared(name)
    for x in batches:
        found = outputs_and_gradients(layer, layer, x, more)
    np.testing.assert_allclose(found, KERAS[name], rtol=1e-5, atol=1e-5)


TRACED = [name for name in record.CASES if "unrolled" not in name]


@pytest.mark.parametrize("name", TRACED)
def test_a_trace_for_any_batch_and_length_gives_the_same(name):
    layer, batches, more = prepared(name)
    spec = [None, None, *batches[0].shape[2:]]
    if getattr(layer, "stateful", False):
        spec[0] = batches[0].shape[0]
    signature = [tw.TensorSpec(spec, batches[0].dtype)]
    traced = tw.function(lambda x: layer(x, **more), input_signature=signature)
    if more:  # then the sizes are those of the masks and states
        traced = tw.function(lambda x: layer(x, **more))
    for x in batches:
        found = outputs_and_gradients(layer, traced, x, {})
    np.testing.assert_allclose(found, KERAS[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_the_op_for_all_steps_gives_what_the_cell_gives_step_by_step(kind, masked):
    mask = tw.constant(np.array(record.MASK, bool)) if masked else None
    layer, x = kind(4, **ALL), some(*record.SHAPE)
    layer(x)
    record.fill(layer)
    by_cell = layers.RNN(layer.cell, **ALL)
    for a, b in zip(layer(x, mask=mask), by_cell(x, mask=mask)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_traced_loop_can_be_taken_inside_the_trace():
    cell = layers.LSTMCell(3)
    layer = layers.RNN(cell, return_sequences=True)
    layer(some(2, 3, 2))
    record.fill(layer)

    def gradient(x):
        mask = tw.ones(tw.shape(x)[:2], tw.bool)
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.square(layer(x, mask=mask)))
        return tape.gradient(y, cell.recurrent_kernel)

    traced = tw.function(gradient, input_signature=[tw.TensorSpec([None, None, 2])])
    for count in (2, 9):
        x = some(2, count, 2)
        np.testing.assert_allclose(traced(x).numpy(), gradient(x).numpy(), atol=1e-5)


def test_an_embedding_with_mask_zero_makes_a_network_skip_the_padding():
    embedding = layers.Embedding(5, 3, mask_zero=True)
    network = layers.LSTM(4)
    padded = network(embedding(np.array([[1, 2, 3, 0, 0]])))
    plain = network(embedding(np.array([[1, 2, 3]])))
    np.testing.assert_allclose(padded.numpy(), plain.numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["dropout", "recurrent_dropout"])
def test_dropout_acts_in_training_alone(kind, which):
    layer, x = kind(8, seed=1, **{which: 0.5}), some(4, 5, 6)
    quiet = layer(x).numpy()
    np.testing.assert_array_equal(layer(x).numpy(), quiet)
    loud = [layer(x, training=True).numpy() for _ in range(2)]
    assert (loud[0] != quiet).any() and (loud[0] != loud[1]).any()


def test_dropout_in_front_of_convolutions_has_one_mask_for_all_steps_of_a_gate():
    layer = layers.ConvLSTM1D(
        2, 1, kernel_initializer="ones", recurrent_initializer="zeros", dropout=0.5,
        recurrent_dropout=0.5, unit_forget_bias=False, recurrent_activation="linear",
        activation="linear", return_state=True, seed=3,
    )  # fmt: skip
    x = tw.ones((64, 1, 3, 1))
    h, _, c = layer(x, training=True)
    # c = i * n and h = o * c, where i, n and o are 0 or 2 at each entry
    assert set(np.unique(c.numpy())) == {0.0, 4.0}
    assert set(np.unique(h.numpy())) == {0.0, 8.0}
    assert (layer(x)[0].numpy() == 1).all()


def test_dropout_in_the_op_has_one_mask_for_all_steps():
    layer = layers.SimpleRNN(
        3,
        activation="linear",
        kernel_initializer="identity",
        recurrent_initializer="zeros",
        return_sequences=True,
        dropout=0.5,
    )
    y = layer(tw.ones((4, 6, 3)), training=True).numpy()
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0.0, 2.0}


def test_a_seed_gives_the_same_masks_again():
    x = some(4, 5, 6)
    found = [
        layers.LSTM(3, dropout=0.5, recurrent_dropout=0.3, seed=7, kernel_initializer="ones",
                    recurrent_initializer="ones")(x, training=True).numpy()
        for _ in range(2)
    ]  # fmt: skip
    np.testing.assert_array_equal(*found)


KERAS_KEYS = """name trainable dtype return_sequences return_state go_backwards stateful
    unroll zero_output_for_mask units activation use_bias kernel_initializer
    recurrent_initializer bias_initializer kernel_regularizer recurrent_regularizer
    bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout
    recurrent_dropout seed""".split()


@pytest.mark.parametrize("kind", KINDS)
def test_the_config_has_the_keys_of_keras_and_makes_the_layer_again(kind):
    layer = kind(3, activation="relu", go_backwards=True, dropout=0.25, name="net",
                 kernel_constraint="max_norm", bias_regularizer="l2")  # fmt: skip
    config = layer.get_config()
    more = {
        layers.LSTM: {"recurrent_activation", "unit_forget_bias"},
        layers.GRU: {"recurrent_activation", "reset_after"},
    }
    assert set(config) == set(KERAS_KEYS) | more.get(kind, set())
    assert kind.from_config(config).get_config() == config


def test_layers_of_convolutions_say_what_is_wrong():
    layer = layers.ConvLSTM2D(2, 3)
    with pytest.raises(
        ValueError, match=r"must have known sizes.*\(None, 4, None, 3\)"
    ):
        layer.build((None, 5, 4, None, 3))
    states = [tw.zeros((1, 4, 4, 2))] * 2
    with pytest.raises(
        ValueError, match=r"must be two states of shape \(None, 2, 2, 2\)"
    ):
        layer(tw.zeros((1, 2, 4, 4, 3)), initial_state=states)
    with pytest.raises(ValueError, match="strides and dilation_rate cannot both"):
        layers.ConvLSTM1D(2, 3, strides=2, dilation_rate=2)
    shapes = layers.ConvLSTM1D(2, 3, **ALL).compute_output_shape((None, None, 8, 3))
    assert shapes == ((None, None, 6, 2), (None, 6, 2), (None, 6, 2))


@pytest.mark.parametrize(
    "layer",
    [
        layers.ConvLSTM2D(2, (3, 1), padding="same", stateful=True, dropout=0.5),
        layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)], return_state=True),
        layers.Bidirectional(layers.GRU(2, return_sequences=True), merge_mode="sum"),
        layers.TimeDistributed(layers.Dense(3)),
        layers.Embedding(4, 2, mask_zero=True, embeddings_regularizer="l2"),
        layers.Masking(2.0),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_layer_is_made_again_from_its_config(layer):
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config


@pytest.mark.parametrize(
    "layer, shapes",
    [
        (layers.SimpleRNN(3), [(2, 3), (3, 3), (3,)]),
        (layers.LSTM(3), [(2, 12), (3, 12), (12,)]),
        (layers.GRU(3), [(2, 9), (3, 9), (2, 9)]),
        (layers.GRU(3, reset_after=False), [(2, 9), (3, 9), (9,)]),
        (layers.LSTM(3, use_bias=False), [(2, 12), (3, 12)]),
    ],
    ids=["SimpleRNN", "LSTM", "GRU", "GRU before", "LSTM no bias"],
)
def test_the_weights_are_those_of_keras(layer, shapes):
    layer.build((None, None, 2))
    assert [tuple(w.shape) for w in layer.weights] == shapes
    names = ["kernel", "recurrent_kernel", "bias"][: len(shapes)]
    assert [w.name for w in layer.weights] == names
    cell = layer.cell.name
    assert [w.path for w in layer.weights] == [
        f"{layer.name}/{cell}/{n}" for n in names
    ]


def test_shapes_are_known_before_a_call():
    lstm = layers.LSTM(4, **ALL)
    assert lstm.compute_output_shape((None, None, 3)) == (
        (None, None, 4), (None, 4), (None, 4))  # fmt: skip
    both = layers.Bidirectional(layers.LSTM(4, return_sequences=True))
    assert both.compute_output_shape((None, 7, 3)) == (None, 7, 8)
    each = layers.TimeDistributed(layers.Dense(5))
    assert each.compute_output_shape((None, 7, 3)) == (None, 7, 5)


def test_use_cudnn_true_is_refused_where_it_cannot_be():
    layers.LSTM(3, use_cudnn=True)
    with pytest.raises(ValueError, match="use_cudnn .*'auto'.*got True"):
        layers.LSTM(3, activation="relu", use_cudnn=True)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
@pytest.mark.parametrize(
    "layer",
    [
        layers.LSTM(2),
        layers.GRU(2, activation="relu"),
        layers.RNN(layers.SimpleRNNCell(2)),
    ],
    ids=["one op", "steps", "cell"],
)
def test_whole_numbers_and_truth_values_are_inputs_too(layer, dtype):
    x = np.random.randint(0, 2, (2, 4, 3)).astype(dtype)
    np.testing.assert_array_equal(layer(x), layer(x.astype("float32")))
