"""Sizes that are unknown where a layer is built or traced: users get None, as in Keras."""

import copy
import json
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import Input, Model, Sequential, layers, models, saving

X, Y = np.ones((8, 3), "float32"), np.ones((8, 2), "float32")
OPEN = tw.TensorSpec([None, 3])


def is_static(nest):
    """Whether the leaves of shapes are ints and None, as JSON knows them."""
    if isinstance(nest, dict):
        return all(map(is_static, nest.values()))
    if isinstance(nest, (tuple, list)):
        return all(map(is_static, nest))
    return nest is None or type(nest) is int


@saving.register_keras_serializable("test_unknown_sizes")
class Wrapper(layers.Layer):
    """The wrapper of Keras' guide: its config has that of the layer inside, as built."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def build(self, input_shape):
        self.shape_of_build = input_shape
        self.inner.build(input_shape)

    def call(self, inputs):
        return self.inner(inputs)

    def get_config(self):
        inner = saving.serialize_keras_object(self.inner)
        return {**super().get_config(), "inner": inner}

    @classmethod
    def from_config(cls, config):
        inner = saving.deserialize_keras_object(config.pop("inner"))
        return cls(inner, **config)


def fitted():
    """A model that a traced function builds, for batches of any size."""
    model = Sequential([Wrapper(layers.Dense(2))])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=3, verbose=0)
    return model


def test_build_gets_None_for_the_batch_in_fit():
    wrapper = fitted().layers[0]
    assert wrapper.shape_of_build == (None, 3) and is_static(wrapper.shape_of_build)
    for layer in (wrapper, wrapper.inner):
        assert json.loads(json.dumps(layer.get_build_config())) == {
            "input_shape": [None, 3]
        }


@pytest.mark.parametrize("ending", [".keras", ".h5"])
def test_a_wrapper_that_serializes_its_layer_is_saved_after_fit(ending, tmp_path):
    model = fitted()
    model.save(tmp_path / f"m{ending}")
    twin = models.load_model(tmp_path / f"m{ending}")
    np.testing.assert_array_equal(twin(X), model(X))


def test_a_wrapper_that_serializes_its_layer_is_copied_after_fit():
    model = fitted()
    copies = [
        models.clone_model(model),
        models.model_from_json(model.to_json()),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    for twin in copies:
        twin.build((None, 3))
        twin.set_weights(model.get_weights())
        np.testing.assert_array_equal(twin(X), model(X))


def test_a_checkpoint_of_whole_models_is_written_in_fit(tmp_path):
    model = Sequential([Wrapper(layers.Dense(2))])
    model.compile("sgd", "mse")
    path = str(tmp_path / "m.keras")
    keep = keras.callbacks.ModelCheckpoint(path)
    model.fit(X, Y, batch_size=3, verbose=0, callbacks=[keep])
    np.testing.assert_array_equal(models.load_model(path)(X), model(X))


def test_shapes_of_several_inputs_are_static_in_a_function_for_all_sizes():
    class Pair(layers.Layer):
        def build(self, query_shape, value_shape):
            self.shapes = query_shape, value_shape

        def call(self, query, value):
            return query + value

    class Nest(layers.Layer):
        def build(self, input_shape):
            self.shapes = input_shape

        def call(self, inputs):
            return inputs["a"] + inputs["b"][0]

    pair, nest = Pair(), Nest()

    @tw.function(input_signature=[OPEN, OPEN])
    def run(x, y):
        return pair(x, y) + nest({"a": x, "b": [y]})

    run(X, X)
    assert pair.shapes == ((None, 3), (None, 3)) and is_static(pair.shapes)
    assert nest.shapes == {"a": (None, 3), "b": [(None, 3)]} and is_static(nest.shapes)
    assert pair.get_build_config() == {
        "shapes_dict": {"query_shape": (None, 3), "value_shape": (None, 3)}
    }


def test_build_by_hand_in_a_function_gets_None():
    wrapper = Wrapper(layers.Dense(2))

    @tw.function(input_signature=[OPEN])
    def run(x):
        if not wrapper.built:
            wrapper.build(x.shape)
        return wrapper(x)

    run(X)
    assert wrapper.shape_of_build == (None, 3) and is_static(wrapper.shape_of_build)


def test_output_shapes_after_a_traced_call_have_None():
    class Twice(Model):
        def call(self, inputs):
            return {"a": inputs, "b": [tw.concat([inputs, inputs], 0)]}

    model = Twice()
    tw.function(model, input_signature=[OPEN])(X)
    assert is_static(model.output_shape)
    assert model.output_shape == {"a": (None, 3), "b": [(None, 3)]}


def test_a_model_without_an_input_has_the_static_shape_in_its_config():
    model = Sequential([layers.Conv1D(2, 2), layers.GlobalAveragePooling1D()])
    tw.function(model, input_signature=[tw.TensorSpec([None, None, 3])])(
        np.ones((2, 5, 3), "float32")
    )
    shape = model.get_config()["build_input_shape"]
    assert shape == [None, None, 3] and is_static(shape)


def test_symbolic_tensors_made_in_a_function_have_None():
    found = []

    @tw.function(input_signature=[OPEN])
    def run(x):
        made = [
            keras.KerasTensor(x.shape),
            Input(batch_shape=x.shape),
            Input(shape=x.shape[:1]),
        ]
        found.extend([made.shape for made in made])
        found.append(keras.backend.int_shape(x))
        return x

    run(X)
    assert found == [(None, 3), (None, 3), (None, None), (None, 3)] and is_static(found)


@saving.register_keras_serializable("test_unknown_sizes")
class Keeps(layers.Layer):
    """A layer whose config has what it has seen of its inputs."""

    def __init__(self, seen=None, **kwargs):
        super().__init__(**kwargs)
        self.seen = seen

    def call(self, inputs):
        self.seen = [inputs.shape[0], inputs.shape]
        return inputs

    def get_config(self):
        return {**super().get_config(), "seen": self.seen}


def test_what_a_layer_keeps_of_a_traced_shape_is_None_in_files_and_copies(tmp_path):
    layer = Keeps()
    model = Sequential([Input((3,)), layer])
    tw.function(model, input_signature=[OPEN])(X)
    model.save(tmp_path / "m.keras")
    seen = [None, [None, 3]]
    assert models.load_model(tmp_path / "m.keras").layers[0].seen == seen
    assert models.model_from_json(model.to_json()).layers[0].seen == seen
    twin = pickle.loads(pickle.dumps(model)).layers[0].seen
    assert twin == [None, tw.TensorShape([None, 3])] and twin[0] is None
    assert saving.serialize_keras_object(layer.seen) == seen


def test_code_of_layers_for_TensorFlow_finds_None_in_fit():
    found = []

    class Reshaped(layers.Layer):
        def call(self, inputs):
            batch = inputs.shape[0]
            found.append(batch is None)
            if batch is None:
                batch = tw.shape(inputs)[0]
            return tw.reshape(inputs, (batch, 3, 1))

    model = Sequential([Reshaped(), layers.Flatten(), layers.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=3, verbose=0)
    assert found[0] is True
    assert model.predict(X, verbose=0).shape == (8, 2)


class Join(layers.Layer):
    """Levels of a pyramid, the coarsest first, each as large as the last."""

    def call(self, levels):
        *coarse, fine = levels
        large = [
            layers.UpSampling2D(2 ** (len(coarse) - i))(x) for i, x in enumerate(coarse)
        ]
        return tw.concat([*large, fine], axis=-1)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_levels_of_a_pyramid_have_sizes_that_are_unknown(count):
    levels = [Input((None, None, 3))]
    while len(levels) < count:
        levels.insert(0, layers.MaxPooling2D(2)(levels[0]))
    expected = (None, None, None, 3 * len(levels))
    assert Join()(levels).shape == expected
    apart = [Input((None, None, 3)) for _ in levels]
    inner = Model(apart, Join()(apart))
    assert inner.output_shape == expected and inner(levels).shape == expected
