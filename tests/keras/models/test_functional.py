"""Models from inputs and outputs: what belongs to them, how they run, their configs."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model
from tapewright.layers import (
    LSTM,
    Add,
    BatchNormalization,
    Concatenate,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GlobalMaxPooling2D,
    Layer,
)


def two_inputs():
    """A model with two inputs, two outputs and an op between layers."""
    a, b = Input((3,), name="a"), Input((2,), name="b")
    hidden = Dense(4, activation="tanh", name="hidden")(a)
    joined = tw.concat([hidden, b], 1)
    first = Dense(1, name="first")(joined)
    second = Dense(2, name="second")(joined * 2.0)
    return Model([a, b], [first, second], name="two")


def by_hand(model, a, b):
    hidden, first, second = (model.get_layer(n) for n in ("hidden", "first", "second"))
    joined = np.concatenate(
        [np.tanh(a @ hidden.kernel.numpy() + hidden.bias.numpy()), b], 1
    )
    return (
        joined @ first.kernel.numpy() + first.bias.numpy(),
        2 * joined @ second.kernel.numpy() + second.bias.numpy(),
    )


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    return random.normal(size=(5, 3)).astype("f4"), random.normal(size=(5, 2)).astype(
        "f4"
    )


def test_inputs_have_a_shape_without_values():
    x = Input((3, None), batch_size=2, dtype="int32", name="ids")
    assert x.shape == (2, 3, None) and x.dtype == "int32" and x.name == "ids"
    with pytest.raises(TypeError, match=r"condition .*\(2, 3, None\) int32"):
        bool(x)
    with pytest.raises(
        TypeError, match=r"NumPy function .*KerasTensor, \(None, 3\) float32"
    ):
        np.sin(Input((3,)))


def test_an_input_needs_a_shape():
    with pytest.raises(ValueError, match="pass shape, without the batch"):
        Input()
    with pytest.raises(ValueError, match=r"shape .*\(3,\).*3.*got 3"):
        Input(3)


def test_several_inputs_and_outputs(data):
    model = two_inputs()
    for given in (list(data), dict(zip("ab", data))):
        for answer, expected in zip(model(given), by_hand(model, *data)):
            np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


def test_inputs_and_outputs_may_be_dicts(data):
    a, b = Input((3,), name="left"), Input((2,), name="right")
    outputs = {"sum": tw.concat([a, b], 1), "first": a + 0.0}
    model = Model({"x": a, "y": b}, outputs)
    answer = model({"x": data[0], "y": data[1]})
    assert sorted(answer) == ["first", "sum"] == model.output_names
    np.testing.assert_array_equal(answer["sum"], np.concatenate(data, 1))


def test_layers_stand_in_the_order_of_keras():
    # recorded: keras.Model of the same calls
    model = two_inputs()
    assert [layer.name for layer in model.layers] == [
        "a",
        "hidden",
        "b",
        "first",
        "second",
    ]
    assert [v.path for v in model.weights] == [
        "hidden/kernel",
        "hidden/bias",
        "first/kernel",
        "first/bias",
        "second/kernel",
        "second/bias",
    ]


def test_a_shared_layer_is_called_twice_and_counted_once(data):
    shared = Dense(2)
    a, b = Input((3,)), Input((3,))
    model = Model([a, b], shared(a) - shared(b))
    assert model.count_params() == 8 and len(model.layers) == 3
    np.testing.assert_allclose(
        model([data[0], data[0] + 1]),
        np.repeat(-shared.kernel.numpy().sum(0, keepdims=True), 5, 0),
        atol=1e-6,
    )


def test_models_nest(data):
    inner = two_inputs()
    x = Input((5,))
    first, second = inner([x[:, :3], x[:, 3:]])
    model = Model(x, tw.concat([first, second], 1))
    expected = np.concatenate(by_hand(inner, *data), 1)
    np.testing.assert_allclose(
        model(np.concatenate(data, 1)), expected, rtol=1e-5, atol=1e-6
    )
    assert inner in model.layers and model.count_params() == inner.count_params()


def test_a_list_of_one_output_is_that_output(data):
    x = Input((3,))
    model = Model([x], [Dense(2)(x)])
    assert isinstance(model.predict(data[0], verbose=0), np.ndarray)
    assert model(data[0]).shape == (5, 2) and model.output_shape == (None, 2)


def test_ends_are_in_the_containers_that_were_given():
    x = Input((3,))
    y = Dense(2)(x)
    for inputs, outputs in (([x], (y,)), ((x,), [y]), (x, [y])):
        model = Model(inputs, outputs)
        for each in (model, Model.from_config(model.get_config())):
            assert type(each.input) is type(inputs)
            assert type(each.output) is type(outputs)
    assert model.output[0] is y and model.inputs == [x]


def test_containers_of_a_call_may_change_afterwards():
    class Double(Layer):
        def call(self, inputs):
            return {name: x * 2.0 for name, x in inputs.items()}

    x = Input((1,))
    grown = [x, x]
    for _ in range(2):
        grown.append(Concatenate()(grown))
    ends = Model(x, [x, x])(x)
    ends[-1] = Add()(ends)
    named = {"a": x}
    doubled = Double()(named)
    named["a"] = doubled["a"]
    doubled["a"] = doubled["a"] + 1.0
    outputs = [grown[-1], ends[-1], doubled["a"]]
    model = Model(x, outputs)
    outputs.clear()
    first, second, third = model(np.ones((1, 1), "float32"))
    assert first.shape == (1, 4)
    assert second.numpy() == 2.0 and third.numpy() == 3.0


def test_layers_see_masks_while_a_model_is_put_together():
    seen = []

    class Softmax(Layer):
        supports_masking = True

        def call(self, inputs, mask=None):
            seen.append(mask is not None)
            weights = tw.exp(inputs) * tw.cast(mask, "float32")[:, :, None]
            return weights / tw.reduce_sum(weights, axis=1, keepdims=True)

    ids = Input((None,), dtype="int32")
    hidden = Dropout(0.5)(Embedding(9, 2, mask_zero=True)(ids))
    model = Model(ids, Softmax()(hidden))
    assert model.output_shape == (None, None, 2)
    outputs = model.predict(np.array([[3, 4, 0], [1, 0, 0]]), verbose=0)
    assert all(seen) and not outputs[0, 2].any() and (outputs[1, 0] == 1).all()


def test_a_mask_given_to_a_model_counts_for_one_call():
    inputs = Input((3, 2))
    models = [
        Model(inputs, LSTM(2)(inputs)),
        tw.Sequential([Input((3, 2)), LSTM(2)]),
    ]
    x = tw.constant(np.random.default_rng(0).normal(size=(2, 3, 2)), "float32")
    for model in models:
        for steps in (1, 2, 3):
            mask = tw.constant(np.arange(3) < steps)[None] | np.zeros((2, 1), bool)
            expected = model.layers[-1](x[:, :steps])
            np.testing.assert_allclose(model(x, mask=mask), expected, atol=1e-6)


def test_a_part_of_a_model_is_a_model(data):
    model = two_inputs()
    part = Model(model.input, model.get_layer("hidden").output)
    answer = part.predict(list(data), verbose=0)
    hidden = model.get_layer("hidden")
    expected = np.tanh(data[0] @ hidden.kernel.numpy() + hidden.bias.numpy())
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


def test_a_model_may_begin_at_inner_tensors():
    x = Input((3,))
    hidden = Dense(4)(x)
    outputs = Dense(2)(hidden)
    tail = Model(hidden, outputs)
    assert tail(tw.ones([1, 4])).shape == (1, 2)
    assert tail.count_params() == 10
    assert [layer.name for layer in tail.layers[1:]] == [outputs._keras_history[0].name]
    assert tail.input_shape == (None, 4) and len(tail.get_config()["layers"]) == 2


def test_an_inner_tensor_may_be_input_and_output():
    hidden = Dense(4)(Input((3,)))
    model = Model(hidden, [hidden, Dense(2)(hidden)])
    x = tw.ones([1, 4])
    same, outputs = model(x)
    assert same.numpy().tolist() == x.numpy().tolist() and outputs.shape == (1, 2)
    assert model.count_params() == 10


def test_an_inner_tensor_may_become_an_input():
    hidden = Dense(2)(Input((3,)))
    outputs = Dense(1, name="last")(Input(tensor=hidden))
    model = Model(hidden, outputs)
    assert [layer.name for layer in model.layers[1:]] == ["last"]
    x = np.ones((4, 2), np.float32)
    last = model.get_layer("last")
    assert model(x).numpy().tolist() == last(x).numpy().tolist()


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"tensor": np.ones((1, 2), np.float32)}, "tensor .*symbolic.*got ndarray"),
        ({"tensor": Input((2,)), "dtype": "int32"}, "which differ"),
        ({"tensor": Input((2,)), "shape": (3,)}, "which differ"),
    ],
)
def test_an_input_made_of_a_tensor_has_its_shape_and_dtype(arguments, said):
    with pytest.raises(ValueError, match=said):
        Input(**arguments)


def test_training_reaches_the_layers():
    x = Input((50,))
    model = Model(x, Dropout(0.5)(x))
    inputs = tw.ones([2, 50])
    assert (model(inputs).numpy() == 1).all()
    assert 0 in model(inputs, training=True).numpy()


class Sampler(Model):
    def call(self, inputs, training=None, mask=None):
        return super().call(inputs, training=True)


def test_training_given_to_call_itself_reaches_the_layers():
    x = Input((3, 4))
    inputs = tw.ones([2, 3, 4])
    cells = tw.layers.StackedRNNCells([tw.layers.SimpleRNNCell(2, dropout=1.0)])
    for layer in (
        Model(x, Dropout(1.0)(x)),
        tw.Sequential([Dropout(1.0)]),
        tw.Sequential([Input((3, 4)), Dropout(1.0)]),
        tw.layers.Pipeline([Dropout(1.0)]),
        tw.layers.Bidirectional(tw.layers.SimpleRNN(2, dropout=1.0)),
        tw.layers.RNN(cells),
    ):
        assert layer(inputs, training=False).numpy().any(), layer
        assert not layer.call(inputs, training=True).numpy().any(), layer
    sampler = Sampler(x, Dropout(1.0)(x))
    assert not sampler(inputs, training=False).numpy().any()
    assert not sampler.predict(inputs, verbose=0).any()


def test_layers_called_by_call_itself_keep_the_losses_of_the_last_call():
    model = tw.Sequential([tw.layers.ActivityRegularization(l2=1.0)])
    for _ in range(2):
        model.call(tw.ones([1, 3]), training=True)
    assert [float(x) for x in model.losses] == [3.0]


def test_a_training_given_in_the_model_counts_in_every_call():
    x = Input((50,))
    model = Model(x, Dropout(0.5)(x, training=True))
    assert 0 in model(tw.ones([2, 50]), training=False).numpy()


def test_inputs_of_one_rank_less_or_more_are_fitted():
    x = Input((1,))
    model = Model(x, x * 2.0)
    np.testing.assert_array_equal(model(np.float32([1, 2])), [[2], [4]])
    flat = Input(())
    double = Model(flat, flat * 2.0)
    np.testing.assert_array_equal(double(np.float32([[1], [2]])), [2, 4])


def test_a_last_axis_of_1_takes_any_size_as_in_keras():
    x = Input((None, 1))
    model = Model(x, x * 2.0)
    np.testing.assert_array_equal(model(np.float32([[[1, 2]]])), [[[2, 4]]])
    assert model.predict(np.ones((2, 4, 3), "float32"), verbose=0).shape == (2, 4, 3)
    fixed = Input((4, 1))
    with pytest.raises(ValueError, match=r"must have shape \(None, 4, 1\)"):
        Model(fixed, fixed * 2.0)(np.ones((2, 5, 3)))


def test_an_inner_model_may_know_sizes_that_its_inputs_do_not():
    inside = Input((2, 3))
    inner = Model(inside, tw.layers.Flatten()(inside) * 2.0)
    x = Input((None, 3))
    model = Model(x, tw.layers.Dense(1)(inner(x)))
    assert inner(x).shape == (None, 6) and model(np.ones((4, 2, 3))).shape == (4, 1)
    with pytest.raises(ValueError, match=r"must have shape \(None, 2, 3\)"):
        model(np.ones((4, 5, 3)))


def test_inputs_that_do_not_fit_are_named(data):
    model = two_inputs()
    with pytest.raises(ValueError, match=r"'a'.*shape \(None, 3\)"):
        model([data[1], data[0]])
    with pytest.raises(ValueError, match=r"2 inputs, \['a', 'b'\]; got 1"):
        model(data[0])
    with pytest.raises(ValueError, match=r"a dict without \['b'\]"):
        model({"a": data[0], "c": data[1]})


def test_outputs_must_follow_from_the_inputs():
    a, b = Input((3,), name="a"), Input((3,), name="b")
    with pytest.raises(ValueError, match=r"input 'b'.*\(a\)"):
        Model(a, Dense(2)(a) + Dense(2)(b))
    with pytest.raises(ValueError, match="outputs .*Input"):
        Model(a, tw.ones([2]))
    with pytest.raises(TypeError, match="inputs and outputs.*together"):
        Model(inputs=a)


def test_two_layers_of_one_name_are_refused():
    x = Input((3,))
    with pytest.raises(ValueError, match="2 layers .*'same'"):
        Model(x, Dense(2, name="same")(Dense(2, name="same")(x)))


def test_a_variable_in_an_op_between_layers_is_refused():
    with pytest.raises(TypeError, match="variable 'scale'.*constant"):
        Input((3,)) * tw.Variable(2.0, name="scale")


def test_a_constant_in_an_op_between_layers_stays():
    x = Input((2,))
    model = Model(x, x * tw.constant([1.0, 10.0]))
    np.testing.assert_array_equal(model(tw.ones([1, 2])), [[1, 10]])


def test_an_unused_input_belongs_to_the_model():
    a, b = Input((3,), name="a"), Input((2,), name="b")
    model = Model([a, b], Dense(1)(a))
    assert [layer.name for layer in model.layers if layer.name in "ab"] == ["a", "b"]
    assert model([tw.ones([1, 3]), tw.ones([1, 2])]).shape == (1, 1)


def test_the_config_makes_a_model_that_gives_the_same(data):
    model = two_inputs()
    twin = Model.from_config(model.get_config())
    twin.set_weights(model.get_weights())
    for mine, other in zip(model(list(data)), twin(list(data))):
        np.testing.assert_array_equal(mine, other)
    assert twin.get_config() == model.get_config()


def test_the_config_holds_shared_and_nested_models(data):
    inner = two_inputs()
    x = Input((5,), name="x")
    shared = Dense(2, name="shared")
    first, second = inner([x[:, :3], x[:, 3:]])
    model = Model(x, shared(second) + shared(tw.concat([first, first], 1)))
    twin = Model.from_config(model.get_config())
    twin.set_weights(model.get_weights())
    inputs = np.concatenate(data, 1)
    np.testing.assert_array_equal(model(inputs), twin(inputs))


def test_a_config_of_keras_2_is_read():
    config = {
        "name": "old",
        "layers": [
            {
                "class_name": "InputLayer",
                "config": {"batch_shape": [None, 3], "dtype": "float32", "name": "i"},
                "name": "i",
                "inbound_nodes": [],
            },
            {
                "class_name": "Dense",
                "config": {"name": "d", "units": 2},
                "name": "d",
                "inbound_nodes": [[["i", 0, 0, {}]]],
            },
        ],
        "input_layers": [["i", 0, 0]],
        "output_layers": [["d", 0, 0]],
    }
    model = Model.from_config(config)
    assert model.get_layer("d").units == 2 and model.input_names == ["i"]


def test_a_config_whose_layers_wait_for_each_other_is_refused():
    model = two_inputs()
    config = model.get_config()
    config["layers"] = [x for x in config["layers"] if x["name"] != "b"]
    with pytest.raises(ValueError, match="there is no layer 'b'"):
        Model.from_config(config)


def test_a_subclass_made_of_inputs_and_outputs_keeps_its_own_methods(data):
    class Doubled(Model):
        def doubled(self, x):
            return 2 * self(x)

    x = Input((3,))
    model = Doubled(x, Dense(2)(x))
    np.testing.assert_allclose(model.doubled(data[0]), 2 * model(data[0]).numpy())

    class Own(Model):
        def __init__(self, units, **kwargs):
            x = Input((3,))
            super().__init__(inputs=x, outputs=Dense(units)(x), **kwargs)
            self.units = units

    assert Own(4)(data[0]).shape == (5, 4)


def test_layers_of_a_subclass_are_found_and_built(data):
    class Two(Model):
        def __init__(self):
            super().__init__()
            self.flatten = Flatten()
            self.blocks = [Dense(4), BatchNormalization()]

        def call(self, inputs, training=None):
            x = self.flatten(inputs)
            for block in self.blocks:
                x = block(x, training=training)
            return x

    model = Two()
    model.build((None, 3))
    assert model.built and model.count_params() == 3 * 4 + 4 + 16
    assert [type(layer).__name__ for layer in model.layers] == [
        "Flatten",
        "Dense",
        "BatchNormalization",
    ]
    with pytest.raises(AttributeError, match="no symbolic inputs"):
        _ = model.inputs


def test_get_layer_names_what_there_is():
    model = two_inputs()
    assert model.get_layer(index=1).name == "hidden"
    with pytest.raises(ValueError, match="no layer 'x'; there are a, hidden"):
        model.get_layer("x")
    with pytest.raises(ValueError, match="either name or index"):
        model.get_layer()


def test_the_summary_shows_what_is_connected_to_what(capsys):
    two_inputs().summary(show_trainable=True)
    text = capsys.readouterr().out
    assert (
        "Connected to" in text and "hidden[0][0]" in text and "Total params: 37" in text
    )


@pytest.mark.parametrize(
    "loss, expected",
    [
        ("mse", [5.0, 4.0, 1.0]),
        ({"b": "mse", "a": "mse"}, [5.0, 4.0, 1.0]),
        ({"a": "mse", "b": "mse"}, [5.0, 1.0, 4.0]),
    ],
)
def test_losses_of_a_dict_are_listed_as_it_was_written(loss, expected):
    x = Input((1,))
    model = Model(x, {"b": x * 2.0, "a": x * 1.0})
    model.compile("sgd", loss)
    zeros = np.zeros((4, 1), "float32")
    found = model.evaluate(zeros + 1, {"a": zeros, "b": zeros}, verbose=0)
    assert found == expected


def test_the_summary_shows_all_output_shapes_of_a_layer(capsys):
    x = Input((5, 3))
    outputs, h, c = LSTM(4, return_state=True)(x)
    model = Model(x, {"last": outputs, "states": [h, c]}, name="inner")
    model.summary()
    assert "((None, 4)," in capsys.readouterr().out
    y = Input((5, 3))
    Model(y, model(y)).summary()
    assert "{last: (None, 4)," in capsys.readouterr().out


def test_the_summary_lists_a_tensor_as_often_as_it_is_an_argument(capsys):
    x = Input((5, 4), name="x")
    Model(x, tw.layers.MultiHeadAttention(1, 2)(x, x)).summary()
    assert capsys.readouterr().out.count("x[0][0]") == 2


def test_the_summary_of_a_line_of_layers_has_three_columns(capsys):
    x = Input((3,))
    Model(x, Dense(2)(x), name="line").summary()
    text = capsys.readouterr().out
    assert 'Model: "line"' in text and "Connected" not in text


def test_the_summary_fits_a_line_of_80(capsys):
    """Rows as Keras prints them."""
    x = Input((8, 8, 3), name="image")
    y = GlobalMaxPooling2D(name="a_name_of_some_length")(x)
    inner = Model(x, y, name="inner")
    a, b = Input((8, 8, 3), name="a"), Input((8, 8, 3), name="b")
    model = Model([a, b], tw.keras.layers.Add(name="sum")([inner(a), inner(b)]))
    model.summary(expand_nested=True)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for row in (
        "│ inner (Functional)  │ (None, 3)         │          0 │ a[0][0], b[0][0]  │",
        "│    └ image          │ (None, 8, 8, 3)   │          0 │ -                 │",
        "│ a_name_of_some_len… │                   │            │                   │",
        "│ sum (Add)           │ (None, 3)         │          0 │ inner[0][0],      │",
        "│                     │                   │            │ inner[1][0]       │",
    ):
        assert row in text


def test_the_summary_may_tell_what_trains_and_what_is_inside():
    inner = tw.Sequential([Input((3,)), Dense(2, name="inside")], name="inner")
    inner.trainable = False
    model = tw.Sequential([Input((3,)), inner, Dense(1, name="last")])
    said = []
    model.summary(print_fn=said.append, show_trainable=True, expand_nested=True)
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in said[0].splitlines()
        if line.startswith("│")
    ]
    assert [(row[0].split(" (")[0].strip("└ "), row[3]) for row in rows] == [
        ("inner", "N"),
        ("inside", "N"),
        ("last", "Y"),
    ]
    assert "Trainable" in said[0].splitlines()[2]


def test_a_layer_traces_its_output_shape():
    class Halves(Layer):
        def call(self, inputs):
            n = inputs.shape[-1] // 2
            return inputs[..., :n], tw.cast(inputs[..., n:], "int32")

    a, b = Halves()(Input((None, 6)))
    assert a.shape == (None, None, 3) == b.shape and b.dtype == "int32"
    assert Halves().compute_output_shape((None, 4)) == ((None, 2), (None, 2))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_copies_have_layers_and_tensors_of_their_own(data, copied):
    model = two_inputs()
    outer = Model(model.inputs, model(model.inputs), name="outer")
    outer.compile("adam", "mse")
    outer.fit(data, [np.zeros((5, 1)), np.zeros((5, 2))], verbose=0)
    expected = outer.predict(data, verbose=0)
    twin = copied(outer)
    outer.set_weights([np.zeros(v.shape) for v in outer.weights])
    for a, b in zip(twin.predict(data, verbose=0), expected):
        np.testing.assert_array_equal(a, b)
    assert twin.get_config() == outer.get_config()
    hidden = twin.get_layer("two").get_layer("hidden")
    assert Model(hidden.input, hidden.output).layers[-1] is hidden
    twin.fit(data, [np.zeros((5, 1)), np.zeros((5, 2))], verbose=0)
    assert twin.optimizer.iterations == 2 and not outer.get_weights()[0].any()


def test_models_of_many_layers_can_be_copied():
    x = y = Input((1,))
    for _ in range(300):
        y = Flatten()(y)
    assert len(copy.deepcopy(Model(x, y)).layers) == 301


def test_a_copy_of_a_layer_leaves_the_model_behind():
    x = Input((3,))
    layer = Dense(2, kernel_constraint="non_neg")
    Model(x, layer(x))
    twin = pickle.loads(pickle.dumps(layer))
    assert type(twin.kernel.constraint) is type(layer.kernel.constraint)
    with pytest.raises(AttributeError, match="never called"):
        print(twin.output)


def test_a_clone_has_weights_of_its_own(data):
    model = two_inputs()
    clone = tw.keras.models.clone_model(model)
    assert [v.shape for v in clone.weights] == [v.shape for v in model.weights]
    assert clone.get_layer("hidden") is not model.get_layer("hidden")
    clone.set_weights(model.get_weights())
    for mine, other in zip(model(list(data)), clone(list(data))):
        np.testing.assert_array_equal(mine, other)


def test_a_clone_may_have_other_layers(data):
    def wider(layer):
        config = layer.get_config()
        if layer.name == "hidden":
            config["units"] = 7
        return type(layer).from_config(config)

    clone = tw.keras.models.clone_model(two_inputs(), clone_function=wider)
    assert clone.get_layer("hidden").units == 7
    assert clone.get_layer("first").kernel.shape == (9, 1)


def test_a_clone_of_a_frozen_model_is_frozen():
    model = tw.Sequential([Dense(2)], trainable=False)
    model.build((None, 3))

    def again(layer):
        return type(layer).from_config(layer.get_config())

    for function in (None, again):
        clone = tw.keras.models.clone_model(model, clone_function=function)
        clone.build((None, 3))
        assert not clone.trainable and not clone.trainable_weights


class Own(Model):
    def __init__(self, units=2, **kwargs):
        super().__init__(**kwargs)
        self.units, self.dense = units, Dense(units)

    def call(self, x):
        return self.dense(x)


def test_a_model_defined_by_its_call_is_cloned_from_its_config():
    model, x = Own(3), np.ones((2, 4), "float32")
    clone = tw.keras.models.clone_model(model)
    assert type(clone) is Own and clone.units == 3
    model(x), clone(x)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(x), model(x))
    for arguments in (
        {"clone_function": lambda layer: layer},
        {"call_function": lambda layer, *a, **k: layer(*a, **k)},
        {"input_tensors": Input((4,))},
    ):
        with pytest.raises(ValueError, match="Own is defined by its own call"):
            tw.keras.models.clone_model(model, **arguments)


def dense_chain():
    x = Input((3,), name="x")
    return Model(x, Dense(2, name="b")(Dense(4, name="a")(x)))


def test_a_clone_calls_layers_by_the_call_function():
    def with_dropout(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        return Dropout(0.5)(outputs) if isinstance(layer, Dense) else outputs

    model, x = dense_chain(), np.ones((2, 3), "float32")
    clone = tw.keras.models.clone_model(
        model, clone_function=lambda layer: layer, call_function=with_dropout
    )
    kinds = [type(layer).__name__ for layer in clone.layers]
    assert kinds == ["InputLayer", "Dense", "Dropout", "Dense", "Dropout"]
    np.testing.assert_array_equal(clone(x), model(x))  # the layers themselves
    with pytest.raises(ValueError, match="call_function .*Model"):
        tw.keras.models.clone_model(tw.Sequential([Dense(1)]), call_function=len)
    with pytest.raises(ValueError, match="clone_model: model must be a Model, got 3"):
        tw.keras.models.clone_model(3)


def test_a_clone_may_be_built_on_given_tensors():
    x, y = Input((3,)), Input((3,))
    model = Model({"x": x, "y": y}, {"sum": x + y, "out": Dense(2)(x)})
    given = {"x": Input((3,)), "y": Input((3,))}
    clone = tw.keras.models.clone_model(model, input_tensors=given)
    assert clone.input["x"] is given["x"] and set(clone.output) == {"sum", "out"}
    with pytest.raises(ValueError, match=r"input_tensors .*model\.input"):
        tw.keras.models.clone_model(model, input_tensors=(x, y))
    sequential = tw.Sequential([Input((3,)), Dense(2)])
    start = Input((3,), name="start")
    clone = tw.keras.models.clone_model(sequential, input_tensors=[start])
    assert clone.inputs[0] is start and clone.output_shape == (None, 2)
    for each in (sequential, model):
        with pytest.raises(ValueError, match="input_tensors"):
            tw.keras.models.clone_model(each, input_tensors=np.ones((2, 3)))


def test_a_recursive_clone_reaches_the_layers_of_models_inside():
    def flagged(layer):
        layer = type(layer).from_config(layer.get_config())
        layer.flag = True
        return layer

    x, inner = Input((3,)), tw.Sequential([tw.Sequential([Dense(4)]), Dense(3)])
    for model in (
        Model(x, dense_chain()(inner(x))), tw.Sequential([Input((3,)), inner])
    ):  # fmt: skip
        clone = tw.keras.models.clone_model(
            model, clone_function=flagged, recursive=True
        )
        dense = [layer for layer in clone.submodules if isinstance(layer, Dense)]
        assert dense and all(layer.flag for layer in dense)
        clone.set_weights(model.get_weights())
        data = np.ones((2, 3), "float32")
        np.testing.assert_array_equal(clone(data), model(data))


@pytest.mark.parametrize("recursive", [False, True])
def test_a_clone_is_compiled_as_the_model_is(recursive):
    x, y = np.ones((4, 3), "float32"), np.zeros((4, 2), "float32")
    for model in (dense_chain(), tw.Sequential([Input((3,)), Dense(2)])):
        metric = tw.keras.metrics.MeanAbsoluteError()
        loss = tw.keras.losses.Huber(0.5)
        model.compile(
            tw.keras.optimizers.Adam(0.5), loss, metrics=[metric, lambda t, p: t - p]
        )
        clone = tw.keras.models.clone_model(model, recursive=recursive)
        assert clone.compiled and clone.optimizer is not model.optimizer
        assert float(clone.optimizer.learning_rate) == 0.5
        assert clone.loss.delta == 0.5
        clone.set_weights(model.get_weights())
        assert clone.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)
        clone.fit(x, y, verbose=0)
        assert metric is not clone._tw_compiled.metrics.metrics[0]
    assert not tw.keras.models.clone_model(dense_chain()).compiled


# ------------------------------------------------------------- structures and configs


def outputs_in(structure):
    """A model whose outputs are ``structure`` with the names replaced by tensors."""
    x = Input((3,), name="x")
    made = {}

    def tensor(name):
        made.setdefault(name, Dense(2, name=name)(x))
        return made[name]

    return Model(x, tw.nest.map_structure(tensor, structure))


@pytest.mark.parametrize(
    "structure",
    [("a", "b"), ["a", "b"], {"p": "a", "q": ("b", ["c"])}, (("a", "b"), ["c"]), "a"],
)
def test_a_model_from_a_config_has_the_structure_of_the_outputs(structure):
    model, x = outputs_in(structure), np.ones((1, 3), "float32")
    twin = Model.from_config(model.get_config())
    shapes = tw.nest.map_structure(lambda _: (1, 2), structure)
    for each in (model, twin, tw.keras.models.clone_model(model)):
        assert tw.nest.map_structure(lambda y: tuple(y.shape), each(x)) == shapes
        predicted = each.predict(x, verbose=0)
        assert tw.nest.map_structure(lambda y: y.shape, predicted) == shapes


def test_a_model_from_a_config_has_the_structure_of_the_inputs():
    x, y = Input((3,), name="x"), Input((3,), name="y")
    for inputs in ((x, y), [x, (y,)], {"x": x, "y": [y]}):
        model = Model(inputs, x + y)
        twin = Model.from_config(model.get_config())
        names = [
            tw.nest.map_structure(lambda t: t.name, m.input) for m in (model, twin)
        ]
        assert names[0] == names[1]


def test_one_output_in_a_list_or_tuple_is_the_tensor():
    for structure in (["a"], ("a",)):
        model = outputs_in(structure)
        assert model(np.ones((1, 3), "float32")).shape == (1, 2)
        assert model.predict(np.ones((1, 3), "float32"), verbose=0).shape == (1, 2)


def test_an_input_that_is_not_optional_must_be_given():
    class Sum(Layer):
        def call(self, x, y=None):
            return x if y is None else x + y

    x, data = Input((2,), name="x"), np.ones((3, 2), "float32")
    for optional in (False, True):
        y = Input((2,), name="y", optional=optional)
        model = Model({"x": x, "y": y}, Sum()(x, y))
        if optional:
            np.testing.assert_array_equal(model({"x": data, "y": None}), data)
            continue
        for inputs in ({"x": data, "y": None}, [data, None]):
            with pytest.raises(ValueError, match="'y'.*None"):
                model(inputs)


def test_what_was_computed_from_weights_before_is_a_constant_of_the_model():
    inputs, positions = Input((4, 2)), Embedding(4, 2, name="positions")
    with pytest.warns(UserWarning, match="computed from the variable 'positions/emb"):
        by_op = inputs + positions(tw.range(4))
    with pytest.warns(
        UserWarning, match="'join' .* as a constant, which is not trained"
    ):
        by_layer = Add(name="join")([inputs, positions(tw.range(4))[None]])
    model = Model(inputs, [by_op, by_layer])
    assert not model.weights
    table, x = positions.embeddings.numpy(), np.ones([1, 4, 2], np.float32)
    positions.embeddings.assign(table + 1.0)
    for out in model(x):
        np.testing.assert_array_equal(out, x + table)
    twin = Model.from_config(model.get_config())
    np.testing.assert_array_equal(twin(x)[0], x + table)
    with pytest.raises(TypeError, match="the variable 'positions/embeddings' would"):
        inputs + positions.embeddings


def test_build_of_a_subclass_may_go_on_to_that_of_the_model():
    class Built(Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(2)

        def build(self, input_shape):
            super().build(input_shape)
            self.shape = input_shape

        def call(self, inputs):
            return self.dense(inputs)

    model = Built()
    assert model(np.ones((4, 3))).shape == (4, 2) and len(model.weights) == 2
    assert model.shape == (4, 3) and model.built
    with pytest.raises(ValueError, match="input"):
        Built().build((None, None))


def test_a_model_whose_build_ends_in_that_of_its_base_has_its_weights():
    class Shifted(Model):
        def build(self, input_shape):
            self.shift = self.add_weight(shape=(input_shape[-1],), initializer="ones")
            self.dense = tw.keras.layers.Dense(2)
            super().build(input_shape)

        def call(self, inputs):
            return self.dense(inputs + self.shift)

    model = Shifted()
    assert model(tw.ones([3, 4])).shape == (3, 2) and model.built
    assert len(model.trainable_variables) == 3
    model = Shifted()
    model.build((None, 4))
    assert model.built and model(tw.ones([3, 4])).shape == (3, 2)
