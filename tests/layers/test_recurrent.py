"""Recurrent layers: against recordings of Keras, traced and eager, states, configs."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.core.errors import ShapeError

REFERENCE = Path(__file__).parent / "reference"


def _script():
    path = REFERENCE / "record_recurrent.py"
    spec = importlib.util.spec_from_file_location("record_recurrent", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = _script()
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
        spec[0] = 3
    signature = [tw.TensorSpec(spec, batches[0].dtype)]
    traced = tw.function(lambda x: layer(x, **more), input_signature=signature)
    if more:  # then the sizes are those of the masks and states
        traced = tw.function(lambda x: layer(x, **more))
    for x in batches:
        found = outputs_and_gradients(layer, traced, x, {})
    np.testing.assert_allclose(found, KERAS[name], rtol=1e-5, atol=1e-5)


ALL = {"return_sequences": True, "return_state": True}
KINDS = [layers.SimpleRNN, layers.LSTM, layers.GRU]


def some(*shape):
    return tw.constant(record.numbers(*shape))


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


def test_a_cell_is_traced_once_for_all_lengths():
    layer = layers.RNN(layers.LSTMCell(3), return_sequences=True)
    layer(some(2, 3, 2))
    record.fill(layer)
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, None, 2])])
    for count in (1, 2, 7, 30):
        x = some(2, count, 2)
        np.testing.assert_allclose(traced(x).numpy(), layer(x).numpy(), atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


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


# ------------------------------------------------------------------- states and masks


def test_a_stateful_layer_goes_on_where_it_ended_and_can_be_reset():
    x = some(2, 6, 3)
    whole, parts = layers.LSTM(4, **ALL), layers.LSTM(4, stateful=True, **ALL)
    whole(x)
    parts(x[:, :3])
    record.fill(whole)
    record.fill(parts)
    for _ in range(2):
        parts.reset_states()
        first, last = parts(x[:, :3])[0], parts(x[:, 3:])[0]
        found = tw.concat([first, last], 1)
        np.testing.assert_allclose(found.numpy(), whole(x)[0].numpy(), atol=1e-6)
    assert [tuple(s.shape) for s in parts.states] == [(2, 4)] * 2
    assert len(parts.weights) == 3  # the states are none of them


def test_a_stateful_layer_refuses_a_batch_of_another_size():
    layer = layers.GRU(4, stateful=True)
    layer(some(2, 3, 3))
    with pytest.raises(ValueError, match="keeps states for 2 examples, and got 5"):
        layer(some(5, 3, 3))


def test_a_stateful_layer_needs_a_batch_size():
    with pytest.raises(ValueError, match="the batch size must be known"):
        layers.LSTM(4, stateful=True).build((None, 5, 3))


def test_a_traced_stateful_layer_keeps_its_states():
    layer, x = layers.GRU(4, stateful=True), some(2, 3, 3)
    layer(x)
    layer.reset_state()
    wanted = [layer(x).numpy() for _ in range(2)]
    layer.reset_state()
    traced = tw.function(layer)
    for value in wanted:
        np.testing.assert_allclose(traced(x).numpy(), value, atol=1e-6)


def test_an_embedding_with_mask_zero_makes_a_network_skip_the_padding():
    embedding = layers.Embedding(5, 3, mask_zero=True)
    network = layers.LSTM(4)
    padded = network(embedding(np.array([[1, 2, 3, 0, 0]])))
    plain = network(embedding(np.array([[1, 2, 3]])))
    np.testing.assert_allclose(padded.numpy(), plain.numpy(), atol=1e-6)


def test_nan_in_steps_that_do_not_count_harms_nothing():
    x = np.array(record.numbers(1, 3, 2))
    x[:, 1:] = np.nan
    x = tw.constant(x)
    for kind in KINDS:
        layer = kind(3)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=tw.constant([[True, False, False]]))
        g = tape.gradient(y, [x, *layer.trainable_variables[1:]])
        assert np.isfinite(y.numpy()).all()
        assert all(np.isfinite(part.numpy()).all() for part in g)
        assert not g[0].numpy()[:, 1:].any()


def test_the_mask_goes_on_where_outputs_are_sequences():
    x = layers.Masking()(some(2, 3, 2))
    assert layers.LSTM(4, return_sequences=True)(x)._keras_mask is x._keras_mask
    assert getattr(layers.LSTM(4)(x), "_keras_mask", None) is None
    both = layers.Bidirectional(layers.LSTM(4, return_sequences=True))
    assert both(x)._keras_mask is x._keras_mask


# -------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["dropout", "recurrent_dropout"])
def test_dropout_acts_in_training_alone(kind, which):
    layer, x = kind(8, seed=1, **{which: 0.5}), some(4, 5, 6)
    quiet = layer(x).numpy()
    np.testing.assert_array_equal(layer(x).numpy(), quiet)
    loud = [layer(x, training=True).numpy() for _ in range(2)]
    assert (loud[0] != quiet).any() and (loud[0] != loud[1]).any()


@pytest.mark.parametrize("implementation", [1, 2])
def test_one_mask_serves_all_steps(implementation):
    cell = layers.SimpleRNNCell(
        3,
        activation="linear",
        kernel_initializer="identity",
        recurrent_initializer="zeros",
        dropout=0.5,
        implementation=implementation,
    )
    layer = layers.RNN(cell, return_sequences=True)
    y = layer(tw.ones((4, 6, 3)), training=True).numpy()
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0.0, 2.0}
    traced = tw.function(layer)(tw.ones((4, 6, 3)), training=True).numpy()
    assert (traced == traced[:, :1]).all() and set(np.unique(traced)) == {0.0, 2.0}


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


# ------------------------------------------------------------------------ custom cells


class Accumulator(layers.Layer):
    """Two states of different sizes; the outputs have a size of their own."""

    state_size = [2, 3]
    output_size = 5

    def call(self, inputs, states):
        a, b = states
        a, b = a + inputs, b * 0.5 + 1.0
        return tw.concat([a, b], 1), [a, b]


def test_a_cell_of_ones_own_is_run():
    layer = layers.RNN(Accumulator(), **ALL)
    y, a, b = layer(tw.ones((1, 3, 2)))
    np.testing.assert_allclose(y[0, :, 0].numpy(), [1, 2, 3])
    np.testing.assert_allclose(a.numpy(), [[3, 3]])
    np.testing.assert_allclose(b.numpy(), [[1.75] * 3])
    assert layer.compute_output_shape((1, 3, 2)) == ((1, 3, 5), (1, 2), (1, 3))


class Plain:
    """A cell that is no layer, and whose state is no list."""

    state_size = 2

    def call(self, inputs, states):
        total = states[0] + inputs
        return total, total


def test_a_cell_need_not_be_a_layer():
    y = layers.RNN(Plain())(tw.ones((1, 4, 2)))
    np.testing.assert_allclose(y.numpy(), [[4, 4]])


def test_what_is_no_cell_is_refused():
    with pytest.raises(ValueError, match="must have 'state_size'"):
        layers.RNN(layers.Dense(3))
    with pytest.raises(ValueError, match="must have 'state_size'"):
        layers.StackedRNNCells([layers.Dense(3)])


# ------------------------------------------------------------------- configs, weights

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


@pytest.mark.parametrize(
    "layer",
    [
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


def test_the_forget_gate_starts_open():
    layer = layers.LSTM(2)
    layer.build((None, None, 3))
    assert layer.cell.bias.numpy().tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    layer = layers.LSTM(2, unit_forget_bias=False)
    layer.build((None, None, 3))
    assert not layer.cell.bias.numpy().any()


def test_the_weights_of_both_ways_are_the_forward_ones_first():
    layer = layers.Bidirectional(layers.LSTM(2, name="lstm"), name="both")
    layer.build((None, None, 3))
    paths = [w.path for w in layer.weights]
    assert paths[0] == "both/forward_lstm/lstm_cell/kernel"
    assert paths[3] == "both/backward_lstm/lstm_cell/kernel" and len(paths) == 6


def test_both_ways_can_start_with_weights():
    first = layers.Bidirectional(layers.GRU(2))
    first.build((None, None, 3))
    second = layers.Bidirectional(layers.GRU(2), weights=first.get_weights())
    x = some(2, 4, 3)
    np.testing.assert_array_equal(first(x).numpy(), second(x).numpy())


def test_shapes_are_known_before_a_call():
    lstm = layers.LSTM(4, **ALL)
    assert lstm.compute_output_shape((None, None, 3)) == (
        (None, None, 4), (None, 4), (None, 4))  # fmt: skip
    both = layers.Bidirectional(layers.LSTM(4, return_sequences=True))
    assert both.compute_output_shape((None, 7, 3)) == (None, 7, 8)
    each = layers.TimeDistributed(layers.Dense(5))
    assert each.compute_output_shape((None, 7, 3)) == (None, 7, 5)


# ------------------------------------------------------------------------- embedding


def test_the_gradient_of_an_embedding_is_sparse():
    layer = layers.Embedding(100, 3)
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(layer(np.array([[3, 5, 3]])))
    gradient = tape.gradient(y, layer.embeddings)
    assert isinstance(gradient, tw.IndexedSlices)
    dense = tw.convert_to_tensor(gradient).numpy()
    assert dense[3].tolist() == [2, 2, 2] and dense.sum() == 9


def test_an_embedding_takes_floating_whole_numbers():
    layer = layers.Embedding(5, 2)
    np.testing.assert_array_equal(layer([[1.0, 3.0]]).numpy(), layer([[1, 3]]).numpy())


def test_an_embedding_refuses_a_number_that_it_does_not_have():
    with pytest.raises((IndexError, ValueError)):
        layers.Embedding(5, 2)(np.array([[5]]))


@pytest.mark.parametrize("size", [0, -1, 2.5, True, None])
def test_the_sizes_of_an_embedding_must_be_positive_whole_numbers(size):
    with pytest.raises(ValueError, match="input_dim must be a positive integer"):
        layers.Embedding(size, 2)


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("units", [0, -3, 2.5, None])
def test_units_must_be_positive(units):
    with pytest.raises(ValueError, match="units must be a positive integer"):
        layers.LSTM(units)


def test_inputs_of_another_rank_are_refused():
    with pytest.raises(ShapeError, match="expected inputs of rank 3"):
        layers.LSTM(3)(some(2, 3))


def test_a_merge_mode_must_be_known():
    with pytest.raises(ValueError, match="merge_mode must be one of"):
        layers.Bidirectional(layers.LSTM(2), merge_mode="max")


def test_layers_that_go_both_the_same_way_are_refused():
    with pytest.raises(ValueError, match="one must have go_backwards=True"):
        layers.Bidirectional(layers.LSTM(2), backward_layer=layers.LSTM(2))


def test_layers_both_ways_must_return_alike():
    other = layers.LSTM(2, go_backwards=True, return_sequences=True)
    with pytest.raises(ValueError, match="the same return_sequences"):
        layers.Bidirectional(layers.LSTM(2), backward_layer=other)


def test_a_wrapper_wraps_layers():
    with pytest.raises(ValueError, match="layer must be a Layer"):
        layers.TimeDistributed(tw.tanh)


def test_each_step_needs_three_axes():
    with pytest.raises(ValueError, match=r"\[batch, time, ...\]"):
        layers.TimeDistributed(layers.Dense(2))(some(2, 3))


def test_a_mask_for_each_step_must_fit():
    layer = layers.TimeDistributed(layers.Dense(2))
    with pytest.raises(ValueError, match="the mask must be"):
        layer(some(2, 3, 4), mask=tw.ones((2, 4), tw.bool))


def test_use_cudnn_true_is_refused_where_it_cannot_be():
    layers.LSTM(3, use_cudnn=True)
    with pytest.raises(ValueError, match="use_cudnn must be"):
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


@pytest.mark.parametrize("merge_mode", ["concat", "sum", None])
@pytest.mark.parametrize("return_state", [False, True])
def test_both_ways_tell_the_shapes_and_masks_of_all_outputs(merge_mode, return_state):
    one_way = layers.GRU(3, return_sequences=True, return_state=return_state)
    layer = layers.Bidirectional(one_way, merge_mode)
    outputs = layer(layers.Masking()(np.ones((2, 4, 5), np.float32)))
    shapes = layer.compute_output_shape((2, 4, 5))
    if not isinstance(outputs, tuple):
        outputs, shapes = (outputs,), (shapes,)
    assert [tuple(y.shape) for y in outputs] == list(shapes)
    masked = [getattr(y, "_keras_mask", None) is not None for y in outputs]
    count = 2 if merge_mode is None else 1
    assert masked == [True] * count + [False] * (2 if return_state else 0)


def test_both_ways_keep_the_states_of_both():
    layer = layers.Bidirectional(layers.GRU(3, stateful=True))
    assert layer.states is None
    layer(np.ones((2, 4, 5), np.float32))
    assert [tuple(state.shape) for state in layer.states] == [(2, 3), (2, 3)]
