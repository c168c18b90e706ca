"""Layers of the user's own classes in files: their calls go along, as graphs."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

import tapewright as tw

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


both = pytest.mark.parametrize("ending", [".keras", ".h5"])


@both
@pytest.mark.parametrize("training", [False, True])
def test_a_layer_of_an_unknown_class_has_its_values_and_gradients(
    training, ending, tmp_path
):
    model = made()
    model.save(tmp_path / f"m{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"m{ending}")
    layer = loaded.get_layer("clipped")
    assert type(layer) is tw.layers.SavedLayer and layer.class_name == "ClippedScale"
    same(results(loaded, training), results(model, training))


@both
def test_it_is_trained_and_saved_again(ending, tmp_path):
    model = made()
    model.compile("adam", "mse")
    model.save(tmp_path / f"m{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"m{ending}")
    for each in (model, loaded):
        each.fit(X, np.ones((2, 2), np.float32), epochs=2, verbose=0)
    same(results(loaded), results(model))
    for again in ("again.h5", "again.keras"):
        loaded.save(tmp_path / again)
        same(results(tw.keras.models.load_model(tmp_path / again)), results(model))
    custom = {"ClippedScale": ClippedScale}
    known = tw.keras.models.load_model(tmp_path / "again.keras", custom_objects=custom)
    assert type(known.get_layer("clipped")) is ClippedScale
    same(results(known), results(model))


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
    message = (
        "class 'Untraceable' is unknown: .*no graph of 'u', since .*numpy_function"
    )
    with pytest.raises(tw.errors.SavingError, match=message):
        tw.keras.models.load_model(tmp_path / "m.h5")
    custom = {"Untraceable": Untraceable}
    loaded = tw.keras.models.load_model(tmp_path / "m.h5", custom_objects=custom)
    np.testing.assert_allclose(loaded(X), np.sin(X), 1e-6)


class Block(tw.layers.Layer):
    """Layers inside, some in a list, with weights that are not trained, and a stream."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.blocks = [tw.layers.BatchNormalization(), tw.layers.Dense(3)]
        self.first = tw.layers.Dense(3)
        self.drop = tw.layers.Dropout(0.5, seed=3)

    def call(self, inputs, training=None):
        x = self.drop(self.first(inputs), training=training)
        for block in self.blocks:
            x = block(x, training=training)
        return x


def with_block():
    model = tw.keras.Sequential([tw.Input((3,)), Block(name="block")])
    rng = np.random.default_rng(0)
    model.set_weights([rng.uniform(0.5, 1, v.shape) for v in model.weights])
    model.compile("adam", "mse")
    return model


@both
def test_layers_inside_come_back_with_their_weights_in_order(ending, tmp_path):
    model = with_block()
    model.save(tmp_path / f"m{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"m{ending}")
    assert [v.path for v in loaded.weights] == [v.path for v in model.weights]
    same(loaded.get_weights(), model.get_weights())
    same([loaded(X)], [model(X)])


@both
def test_random_numbers_go_on_where_they_were(ending, tmp_path):
    model = with_block()
    model(X, training=True)
    model.save(tmp_path / f"m{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"m{ending}")
    for _ in range(2):
        loaded.save(tmp_path / f"again{ending}")
        same([loaded(X, training=True)], [model(X, training=True)])
    again = tw.keras.models.load_model(tmp_path / f"again{ending}")
    again(X, training=True)
    same([again(X, training=True)], [model(X, training=True)])


@both
def test_its_training_goes_on_as_if_the_class_were_known(ending, tmp_path):
    model = with_block()
    y = np.ones((2, 3), np.float32)
    model.fit(X, y, verbose=0)
    model.save(tmp_path / f"m{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"m{ending}")
    for each in (model, loaded):
        each.fit(X, y, epochs=2, shuffle=False, verbose=0)
    same(loaded.get_weights(), model.get_weights())


def test_weights_of_a_class_that_is_not_known_fit_the_one_that_is(tmp_path):
    model = with_block()
    model.save(tmp_path / "m.keras")
    loaded = tw.keras.models.load_model(tmp_path / "m.keras")
    loaded.save_weights(tmp_path / "m.weights.h5")
    other = with_block()
    other.set_weights([np.zeros(v.shape) for v in other.weights])
    other.load_weights(tmp_path / "m.weights.h5")
    same(other.get_weights(), model.get_weights())


class OwnWay(ClippedScale):
    def save_own_variables(self, store):
        store["all"] = self.scale.numpy()

    def load_own_variables(self, store):
        self.scale.assign(store["all"])


@both
def test_a_layer_that_keeps_its_weights_in_its_own_way_needs_its_class(
    ending, tmp_path
):
    inputs = tw.Input((3,))
    tw.Model(inputs, OwnWay(name="own")(inputs)).save(tmp_path / f"m{ending}")
    with pytest.raises(tw.errors.SavingError, match="'OwnWay' is .*save_own_variables"):
        tw.keras.models.load_model(tmp_path / f"m{ending}")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("filed", [["../x", [0]]], r"filed .*\.\./x"),
        ("filed", [["", [0, 0]]], r"filed .*\[0, 0\]"),
        ("filed", 7, "filed .*7"),
        ("streams", -1, "streams .*-1"),
        ("streams", 1, "streams .*1"),
        ("states", 10**9, "states .*1000000000"),
        ("weights", [["a", "float32", [-1], True]], r"weights .*\[-1\]"),
        ("weights", [["a", "float99", [1], True]], "weights .*float99"),
        ("weights", [["a", "float32", [1]]], r"weights .*\[1\]"),
        ("class_name", None, "class_name .*None"),
        ("module", 5, "module .*5"),
        ("losses", [1], r"losses .*\[1\]"),
        ("regularized", [3], r"regularized .*\[3\]"),
        ("constrained", [3], r"constrained .*\[3\]"),
    ],
)
def test_what_a_file_says_of_such_a_layer_is_checked(key, value, reason, tmp_path):
    made().save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5") as file, h5py.File(tmp_path / "o.h5", "w") as new:
        for name in file:
            file.copy(name, new)
        new.attrs.update(file.attrs)
        attributes = new["tapewright/calls/0"].attrs
        head = json.loads(attributes["layer"]) | {key: value}
        attributes["layer"] = json.dumps(head)
    with pytest.raises(tw.errors.SavingError, match=reason):
        tw.keras.models.load_model(tmp_path / "o.h5")


class MaskedMean(tw.layers.Layer):
    """The mean over the steps that the mask has, which later layers do not see."""

    def call(self, inputs, mask=None):
        counted = tw.cast(mask, inputs.dtype)[:, :, None]
        return tw.reduce_sum(inputs * counted, 1) / tw.reduce_sum(counted, 1)

    def compute_mask(self, inputs, previous_mask):
        return None


class MaskedDouble(tw.layers.Layer):
    """Hands the mask on, without a look at it."""

    supports_masking = True

    def call(self, inputs):
        return inputs * 2.0


@both
@pytest.mark.parametrize("cls", [MaskedMean, MaskedDouble])
def test_a_layer_through_which_masks_pass_needs_its_class(cls, ending, tmp_path):
    embedding = tw.layers.Embedding(10, 2, mask_zero=True)
    inputs, path = tw.Input((4,)), tmp_path / f"m{ending}"
    end = [] if cls is MaskedMean else [tw.layers.LSTM(2)]
    model = tw.keras.Sequential([inputs, embedding, cls(), *end])
    model.save(path)
    with pytest.raises(
        tw.errors.SavingError, match=f"'{cls.__name__}' is .*since .*masks"
    ):
        tw.keras.models.load_model(path)
    x, custom = np.array([[1, 2, 0, 0]]), {cls.__name__: cls}
    loaded = tw.keras.models.load_model(path, custom_objects=custom)
    same([loaded(x)], [model(x)])


class Penalized(tw.layers.Layer):
    """Losses of a call, more of them in training, and penalties of weights."""

    def build(self, input_shape):
        self.scale = self.add_weight((3,), "ones", regularizer="l2", name="scale")
        self.shift = self.add_weight(
            (3,), "ones", regularizer=lambda w: tw.reduce_sum(tw.abs(w)) / 7
        )
        self.inner = tw.layers.Dense(3, kernel_regularizer="l1")

    def call(self, inputs, training=None):
        self.add_loss(tw.reduce_mean(inputs * self.scale) ** 2)
        if training:
            self.add_loss(tw.reduce_sum(self.scale**4))
        return self.inner(inputs * self.scale + self.shift)


def penalized(activity_regularizer=None):
    tw.keras.utils.set_random_seed(2)
    layer = Penalized(name="p", activity_regularizer=activity_regularizer)
    model = tw.keras.Sequential([tw.Input((3,)), layer])
    model.compile(tw.keras.optimizers.SGD(0.01), "mse")
    return model


@both
@pytest.mark.parametrize("activity_regularizer", [None, "l2"])
def test_losses_and_penalties_count_without_the_class(
    activity_regularizer, ending, tmp_path
):
    model = penalized(activity_regularizer)
    model.save(tmp_path / f"m{ending}")
    assert not [x for x in model.losses if isinstance(x, tw.Tensor) and x.shape.rank]
    tw.keras.models.load_model(tmp_path / f"m{ending}").save(tmp_path / f"2{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"2{ending}")
    assert type(loaded.layers[0]) is tw.layers.SavedLayer
    for training in (False, True):
        same([loaded(X, training=training)], [model(X, training=training)])
        assert len(loaded.losses) == len(model.losses)
        same(loaded.losses, model.losses)
    y = np.ones((2, 3), np.float32)
    histories = [m.fit(X, y, epochs=3, verbose=0).history for m in (model, loaded)]
    same(histories[1]["loss"], histories[0]["loss"])
    same(loaded.get_weights(), model.get_weights())
    same([loaded.evaluate(X, y, verbose=0)], [model.evaluate(X, y, verbose=0)])


def test_a_penalty_counts_once_for_a_layer_with_two_calls_and_not_while_frozen(
    tmp_path,
):
    inputs, layer = tw.Input((3,)), Penalized(name="p")
    tw.Model(inputs, layer(layer(inputs))).save(tmp_path / "m.keras")
    loaded = tw.keras.models.load_model(tmp_path / "m.keras")
    loaded(X)
    assert len(loaded.losses) == 2 + 3
    loaded.get_layer("p").trainable = False
    assert len(loaded.losses) == 2


class Constrained(tw.layers.Layer):
    def build(self, input_shape):
        self.scale = self.add_weight((3,), "ones", constraint="non_neg", name="scale")
        self.shift = self.add_weight(
            (3,), "zeros", constraint=lambda w: tw.clip_by_value(w, -0.1, 0.1)
        )
        self.free = self.add_weight((3,), "ones", name="free")
        self.inner = tw.layers.Dense(
            3, kernel_constraint=tw.keras.constraints.MaxNorm(0.5)
        )

    def call(self, inputs):
        return self.inner(inputs * self.scale * self.free + self.shift)


@both
@pytest.mark.parametrize("eager", [False, True])
def test_constraints_hold_without_the_class(eager, ending, tmp_path):
    tw.keras.utils.set_random_seed(2)
    model = tw.keras.Sequential([tw.Input((3,)), Constrained(name="c")])
    model.compile(tw.keras.optimizers.SGD(1.0), "mse")
    model.save(tmp_path / f"m{ending}")
    tw.keras.models.load_model(tmp_path / f"m{ending}").save(tmp_path / f"2{ending}")
    loaded = tw.keras.models.load_model(tmp_path / f"2{ending}")
    assert type(loaded.layers[0]) is tw.layers.SavedLayer
    y = np.full((2, 3), -5, np.float32)
    for each in (model, loaded):
        each.run_eagerly = eager
        each.fit(X, y, epochs=3, verbose=0)
    same(loaded.get_weights(), model.get_weights())
    scale, shift, free, kernel, _ = loaded.get_weights()
    assert (scale >= 0).all() and (scale == 0).any() and (free < 0).any()
    assert (abs(shift) <= np.float32(0.1)).all() and (abs(shift) > 0.09).any()
    assert np.linalg.norm(kernel, axis=0).max() <= 0.5 + 1e-6


class Times(tw.layers.Layer):
    def call(self, inputs, factor=1.0):
        return inputs * factor


@both
@pytest.mark.parametrize("args, kwargs", [((5.0,), {}), ((), {"factor": 5.0})])
def test_a_layer_with_another_argument_needs_its_class(args, kwargs, ending, tmp_path):
    inputs = tw.Input((3,))
    model = tw.Model(inputs, Times(name="times")(inputs, *args, **kwargs))
    path = tmp_path / f"model{ending}"
    model.save(path)
    with pytest.raises(tw.errors.SavingError, match="'times' cannot be called"):
        tw.keras.models.load_model(path)
    loaded = tw.keras.models.load_model(path, custom_objects={"Times": Times})
    np.testing.assert_allclose(loaded(X), 5 * X)
