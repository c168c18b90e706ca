"""`Sequential`: building, calling, changing, describing."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Sequential
from tapewright.layers import BatchNormalization, Dense, Dropout, Flatten, Layer


def classifier(**kwargs):
    return Sequential(
        [Flatten(), Dense(4, activation="relu", name="hidden"), Dense(2, name="out")],
        **kwargs,
    )


def test_outputs_are_those_of_the_layers_in_turn():
    model, x = classifier(), np.random.normal(size=(5, 2, 3))
    y = model(x)
    k1, b1, k2, b2 = model.get_weights()
    hidden = np.maximum(x.reshape(5, 6) @ k1 + b1, 0)
    np.testing.assert_allclose(y, hidden @ k2 + b2, rtol=1e-5, atol=1e-6)


def test_inputs_of_one_rank_less_are_columns_where_the_input_says_so():
    model = Sequential([tw.Input((1,)), Dense(2)])
    np.testing.assert_array_equal(model(np.ones(3)), model(np.ones((3, 1))))
    assert model.predict(np.ones(3), verbose=0).shape == (3, 2)


def test_a_model_built_by_a_call_keeps_the_rank_of_its_inputs():
    column = Sequential([Dense(2)])
    expected = column(np.ones((3, 1)))
    for run in (column, tw.function(column), column.predict_on_batch):
        for shape in (3,), (3, 1), (3, 1, 1):
            np.testing.assert_array_equal(run(tw.ones(shape)), expected)
    embedding = Sequential([tw.layers.Embedding(4, 5)])
    embedding(np.zeros((3, 2), "int32"))
    assert embedding(np.zeros((3, 2, 1), "int32")).shape == (3, 2, 5)
    flat = classifier()
    flat(np.ones((1, 2, 3)))
    with pytest.raises(tw.errors.ShapeError, match="None, 2, 3.*x\\[None"):
        flat(np.ones((2, 3)))


@pytest.mark.parametrize("shape", [(2, 784), (28, 28), (2, 28, 28, 2), (28,)])
def test_inputs_of_another_rank_than_the_input_are_refused(shape):
    # `Flatten` would take (2, 784) without a word.
    model = Sequential([tw.Input((28, 28), name="images"), Flatten(), Dense(2)])
    for run in (model, lambda x: model.predict(x, verbose=0)):
        with pytest.raises(tw.errors.ShapeError, match="'images'.*28, 28") as caught:
            run(np.ones(shape))
        assert ("x[None]" in str(caught.value)) == (shape == (28, 28))


def test_a_list_or_dict_of_one_input_is_that_input():
    data = np.ones((3, 4))
    model = Sequential([tw.Input((4,), name="x"), Dense(2)])
    for inputs in ([data], (data,), {"x": data}):
        np.testing.assert_array_equal(model.predict(inputs, verbose=0), model(data))
    with pytest.raises(ValueError, match="one tensor for each of .*'x'.*, got 2"):
        model([data, data])


def test_gradients_of_a_model_agree_with_differences():
    model = Sequential([Dense(3, "tanh", dtype="float64"), Dense(1, dtype="float64")])
    x = tw.constant(np.random.normal(size=(4, 2)))
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
        value, step = variable.numpy(), np.zeros(variable.shape)
        step.flat[0] = 1e-6
        sums = []
        for moved in (value + step, value - step):
            variable.assign(moved)
            sums.append(float(tw.reduce_sum(model(x))))
        variable.assign(value)
        slope = (sums[0] - sums[1]) / 2e-6
        assert gradient.numpy().flat[0] == pytest.approx(slope, rel=1e-5)


def test_build_makes_the_weights_for_any_batch_size():
    model = classifier(name="model")
    model.build((None, 2, 3))
    assert [(v.path, tuple(v.shape)) for v in model.weights] == [
        ("model/hidden/kernel", (6, 4)),
        ("model/hidden/bias", (4,)),
        ("model/out/kernel", (4, 2)),
        ("model/out/bias", (2,)),
    ]
    assert model.built and model.compute_output_shape((None, 2, 3)) == (None, 2)


def test_a_model_whose_first_layer_knows_its_input_is_built():
    base = Sequential([tw.Input((4,)), Dense(3)])
    model = Sequential([base, Dense(2)])
    assert model.built and model.count_params() == 15 + 8


def test_the_first_call_gives_the_same_paths():
    model = classifier(name="model")
    model(tw.ones([1, 2, 3]))
    assert model.weights[0].path == "model/hidden/kernel"


def test_training_reaches_every_layer():
    model = Sequential([Sequential([Dropout(1.0)]), BatchNormalization()])
    model(tw.ones([2, 2]))
    np.testing.assert_array_equal(model.layers[1].moving_mean, [0, 0])
    y = model(tw.ones([2, 2]), training=True)
    assert not y.numpy().any()
    np.testing.assert_allclose(model.layers[1].moving_variance, [0.99, 0.99])


def test_layers_can_be_added_and_popped():
    model = Sequential()
    model.add(Dense(3, kernel_initializer="ones"))
    assert model([[1.0, 1.0]]).numpy().tolist() == [[2, 2, 2]]
    kernel = model.layers[0].kernel
    model.add(Dense(1, kernel_initializer="ones"))
    assert model([[1.0, 1.0]]).numpy().tolist() == [[6.0]]
    assert model.layers[0].kernel is kernel
    popped = model.pop()
    assert popped.units == 1 and model([[1.0, 1.0]]).shape == (1, 3)
    assert len(model.weights) == 2


def test_an_empty_model_has_nothing_to_call():
    data, model = np.ones((2, 3), "float32"), Sequential(name="empty")
    model.compile("sgd", "mse")
    for use in (
        lambda: model(data),
        lambda: model(Input((3,))),
        lambda: model.build((None, 3)),
        lambda: model.predict(data, verbose=0),
        lambda: model.fit(data, data, verbose=0),
    ):
        with pytest.raises(ValueError, match="'empty'"):
            use()
    assert model.layers == [] and model.weights == []
    model.summary(print_fn=lambda line: None)
    assert Sequential.from_config(model.get_config()).layers == []
    model.add(Dense(2))
    assert model(data).shape == (2, 2)


def test_a_model_of_an_input_alone_is_the_identity():
    data = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(Sequential([Input((3,))])(data), data)


def test_what_is_no_layer_cannot_be_added():
    with pytest.raises(ValueError, match="only layers can be added, got <function"):
        Sequential([lambda x: x])
    with pytest.raises(ValueError, match="wrap a function in layers.Lambda"):
        Sequential([tw.nn.relu])


@pytest.mark.parametrize("before", [[Input((3,))], [Dense(2, name="first")]])
def test_an_input_comes_first_and_once(before):
    with pytest.raises(ValueError, match="Input.*(one|first) already"):
        Sequential([*before, Input((3,))])


def test_two_layers_cannot_share_a_name():
    with pytest.raises(ValueError, match="names .*'d'"):
        Sequential([Dense(1, name="d"), Dense(1, name="d")])


@pytest.mark.parametrize("start", [[], [Input((3,))]])
def test_a_layer_may_stand_in_several_places(start):
    d = Dense(3, name="d", kernel_initializer="identity")
    other = Dense(3, name="m", activation="relu", kernel_initializer="ones")
    last = Dense(1, name="o", kernel_initializer="ones")
    model = Sequential([*start, d, other])
    model.add(d)
    model.add(last)
    model.compile("sgd", "mse")
    x = np.arange(6, dtype="float32").reshape(2, 3) / 6
    losses = model.fit(x, np.ones((2, 1)), epochs=3, verbose=0).history["loss"]
    assert losses == pytest.approx([12.625, 2.6770840, 1.8684914], rel=1e-6)  # Keras
    assert [layer.name for layer in model.layers] == ["d", "m", "d", "o"]
    assert len(model.weights) == 6
    assert model.pop() is last and model.pop() is d
    assert [layer.name for layer in model.layers] == ["d", "m"]
    with pytest.raises(ValueError, match="names .*'d'"):
        model.add(Dense(3, name="d"))


def test_there_must_be_a_layer_to_pop():
    with pytest.raises(IndexError, match="no layer to pop"):
        Sequential().pop()


def test_the_list_of_layers_is_a_copy():
    model = classifier()
    model.layers.clear()
    assert len(model.layers) == 3


def test_the_config_makes_a_model_that_takes_the_weights():
    model = Sequential([Flatten(), Sequential([Dense(2), BatchNormalization()])])
    x = np.random.normal(size=(3, 2, 2))
    y = model(x)
    twin = Sequential.from_config(model.get_config())
    assert twin.get_config() == model.get_config()
    twin.set_weights(model.get_weights())
    np.testing.assert_array_equal(twin(x), y)


def test_a_model_not_yet_built_comes_back_unbuilt():
    twin = Sequential.from_config(classifier().get_config())
    assert not twin.built and twin.weights == []


def test_layers_of_the_users_are_built_by_build_too():
    class Twice(Layer):
        def build(self, input_shape):
            self.shape = input_shape

        def call(self, inputs):
            return tw.concat([inputs, inputs], -1)

    model = Sequential([Twice(), Dense(1)])
    model.build((None, 3))
    assert model.layers[0].shape == (None, 3)
    assert model.layers[1].kernel.shape == (6, 1)
