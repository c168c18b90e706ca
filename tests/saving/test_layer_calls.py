"""Layers of the user's own classes in ``.h5``: their calls go along, as graphs."""

import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import SavingError

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], np.float32)


class ClippedScale(tw.layers.Layer):
    """Scales; the gradient of the inputs is clipped. In training it scales twice."""

    def build(self, shape):
        self.scale = self.add_weight(
            shape=(shape[-1],), initializer="ones", name="scale"
        )

    def call(self, inputs, training=None):
        @tw.custom_gradient
        def scaled(x):
            def gradient(g, variables=None):
                return tw.clip_by_norm(g, 0.5), [tw.reduce_sum(g * x, axis=0)]

            return x * self.scale, gradient

        return scaled(scaled(inputs)) if training else scaled(inputs)


def made():
    inputs = tw.Input((3,))
    x = ClippedScale(name="clipped")(tw.layers.Dense(3, name="dense")(inputs))
    model = tw.Model(inputs, tw.layers.Dense(2, name="last")(x))
    model.get_layer("clipped").scale.assign([1.0, 2.0, 3.0])
    return model


def results(model, training=False):
    with tw.GradientTape() as tape:
        tape.watch(x := tw.constant(X))
        y = model(x, training=training)
    return [y, *tape.gradient(y, [x, *model.trainable_variables])]


def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-6, 1e-7)


@pytest.mark.parametrize("training", [False, True])
def test_a_layer_of_an_unknown_class_has_its_values_and_gradients(training, tmp_path):
    model = made()
    model.save(tmp_path / "m.h5")
    loaded = tw.keras.models.load_model(tmp_path / "m.h5")
    layer = loaded.get_layer("clipped")
    assert type(layer) is tw.layers.SavedLayer and layer.class_name == "ClippedScale"
    same(results(loaded, training), results(model, training))


def test_it_is_trained_and_saved_again(tmp_path):
    model = made()
    model.compile("sgd", "mse")
    model.save(tmp_path / "m.h5")
    loaded = tw.keras.models.load_model(tmp_path / "m.h5")
    for each in (model, loaded):
        each.fit(X, np.ones((2, 2), np.float32), epochs=2, verbose=0)
    same(results(loaded), results(model))
    loaded.save(tmp_path / "again.h5")
    same(results(tw.keras.models.load_model(tmp_path / "again.h5")), results(model))


def test_a_class_that_is_known_is_used(tmp_path):
    made().save(tmp_path / "m.h5")
    custom = {"ClippedScale": ClippedScale}
    loaded = tw.keras.models.load_model(tmp_path / "m.h5", custom_objects=custom)
    assert type(loaded.get_layer("clipped")) is ClippedScale


def test_a_fresh_process_needs_no_code(tmp_path):
    model = made()
    model.save(tmp_path / "m.h5")
    code = f"""
import numpy as np, tapewright as tw
model = tw.keras.models.load_model({str(tmp_path / "m.h5")!r})
with tw.GradientTape() as tape:
    tape.watch(x := tw.constant({X.tolist()}))
    y = model(x)
np.savez({str(tmp_path / "r.npz")!r}, y, tape.gradient(y, x))
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    with np.load(tmp_path / "r.npz") as found:
        same([found["arr_0"], found["arr_1"]], results(model)[:2])


class Untraceable(tw.layers.Layer):
    def call(self, inputs):
        return tw.numpy_function(np.sin, [inputs], tw.TensorSpec(inputs.shape))


def test_a_layer_that_cannot_be_traced_needs_its_class(tmp_path):
    inputs = tw.Input((3,), batch_size=2)
    tw.Model(inputs, Untraceable(name="u")(inputs)).save(tmp_path / "m.h5")
    with pytest.raises(SavingError, match="Untraceable"):
        tw.keras.models.load_model(tmp_path / "m.h5")
    custom = {"Untraceable": Untraceable}
    loaded = tw.keras.models.load_model(tmp_path / "m.h5", custom_objects=custom)
    np.testing.assert_allclose(loaded(X), np.sin(X), 1e-6)
