"""Models from inputs and outputs: what belongs to them, how they run, their configs."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model
from tapewright.layers import LSTM, Add, Concatenate, Dense, Dropout, Embedding, Layer

from .two_inputs import two_inputs


def by_hand(model, a, b):
    hidden, first, second = (model.get_layer(n) for n in ("hidden", "first", "second"))
    joined = np.concatenate(
        [np.tanh(a @ hidden.kernel.numpy() + hidden.bias.numpy()), b], 1
    )
    return (
        joined @ first.kernel.numpy() + first.bias.numpy(),
        2 * joined @ second.kernel.numpy() + second.bias.numpy(),
    )


def test_inputs_have_a_shape_without_values():
    x = Input((3, None), batch_size=2, dtype="int32", name="ids")
    assert x.shape == (2, 3, None) and x.dtype == "int32" and x.name == "ids"
    with pytest.raises(TypeError, match=r"condition .*\(2, 3, None\) and dtype int32"):
        bool(x)
    with pytest.raises(
        TypeError,
        match=r"NumPy function .*KerasTensor, .*\(None, 3\) and dtype float32",
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
        ({"tensor": Input((2,)), "dtype": "int32"}, "must match the tensor"),
        ({"tensor": Input((2,)), "shape": (3,)}, "must match the tensor"),
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
    with pytest.raises(ValueError, match=r"for each of \['a', 'b'\], got 1"):
        model(data[0])
    with pytest.raises(ValueError, match=r"without \['b'\]"):
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


def test_a_layer_traces_its_output_shape():
    class Halves(Layer):
        def call(self, inputs):
            n = inputs.shape[-1] // 2
            return inputs[..., :n], tw.cast(inputs[..., n:], "int32")

    a, b = Halves()(Input((None, 6)))
    assert a.shape == (None, None, 3) == b.shape and b.dtype == "int32"
    assert Halves().compute_output_shape((None, 4)) == ((None, 2), (None, 2))


# --------------------------------------------------------------- structures and configs


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
        UserWarning, match="'join' .* constant of the model, and is not trained"
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
