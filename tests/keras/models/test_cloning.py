"""Copies and clones of models: layers, weights and tensors of their own."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model
from tapewright.layers import Dense, Dropout, Flatten

from .two_inputs import two_inputs

# ------------------------------------------------------------------------------- copies


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


# ------------------------------------------------------------------------------- clones


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
        with pytest.raises(ValueError, match="Own defines its own call"):
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
