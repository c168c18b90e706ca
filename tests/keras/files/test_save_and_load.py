"""Whole models in ``.keras`` and ``.h5``: what was saved is what is loaded, to the bit."""

import io
import json
import zipfile

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential, layers
from tapewright.keras.models import load_model, save_model
from tapewright.keras.saving import register_keras_serializable, save_weights
from tapewright.layers.base import weight_tracking
from tapewright.storage import folders

random = np.random.RandomState(0)
X, Y = random.randn(16, 6).astype("f4"), random.randn(16, 2).astype("f4")
ENDINGS = pytest.mark.parametrize("ending", [".keras", ".h5"])


@register_keras_serializable("test_models")
class Own(Model):
    def __init__(self, units=3, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.first = layers.Dense(units)
        self.drop = layers.Dropout(0.5, seed=1)
        self.blocks = [layers.Dense(2), [layers.BatchNormalization()]]
        self.scale = self.add_weight((2,), "ones", name="scale")

    def call(self, x, training=False):
        x = self.blocks[0](self.drop(self.first(x)))
        return self.blocks[1][0](x) * self.scale

    def get_config(self):
        return {"units": self.units, "name": self.name}


@register_keras_serializable("test_models")
class Halved(layers.Layer):
    """Keeps half of its weight in files."""

    def build(self, input_shape):
        self.w = self.add_weight((2,), "ones", name="w")

    def call(self, x):
        return x * self.w

    def save_own_variables(self, store):
        store["half"] = self.w.numpy() / 2

    def load_own_variables(self, store):
        self.w.assign(store["half"] * 2)


@register_keras_serializable("test_models")
class Shifted(layers.Layer):
    """Has variables that are no weights, which version 0.2 took for weights."""

    def __init__(self, **options):
        super().__init__(**options)
        self.shift, self.factor = tw.Variable(1.0), tw.Variable(1.0, trainable=False)
        if self.name != "plain":
            self.own = self.add_weight((), "ones", name="own")

    def call(self, x):
        return x * self.factor + self.shift


@pytest.mark.parametrize("file", ["m.keras", "m.h5", "m.weights.h5"])
def test_files_of_version_02_with_variables_that_are_no_weights_open(
    file, tmp_path, monkeypatch
):
    def make():
        return Sequential([Input((1,)), Shifted(name="a"), Shifted(name="plain")])

    model = make()
    for i, layer in enumerate(model.layers):
        layer.shift.assign(3.0 + i)
        layer.factor.assign(5.0 + i)
    with monkeypatch.context() as patch:  # as 0.2 did
        of_02 = weight_tracking._with_untracked
        patch.setattr(weight_tracking, "_variables_of", of_02)
        save = model.save_weights if "weights" in file else model.save
        save(tmp_path / file)
    if "weights" in file:
        loaded = make()
        loaded.load_weights(tmp_path / file)
    else:
        loaded = load_model(tmp_path / file)
    assert loaded.predict(np.ones((1, 1)), verbose=0).item() == (5 + 3) * 6 + 4
    model.save_weights(tmp_path / "new.weights.h5")
    with h5py.File(tmp_path / "new.weights.h5") as opened:
        assert list(opened["layers/shifted/vars"]) == ["0"]  # as Keras has it


def stacked():
    return Sequential(
        [
            Input((6,)),
            layers.Dense(5, activation="tanh"),
            layers.Dropout(0.5, seed=3),
            layers.BatchNormalization(),
            layers.Dense(2),
        ]
    )


def nested():
    x, z = Input((6,), name="x"), Input((6,), name="z")
    shared = layers.Dense(6, name="shared")
    inner = Sequential(
        [Input((6,)), layers.Dense(4), layers.Dropout(0.3, seed=2), layers.Dense(2)]
    )
    inner.layers[0].trainable = False
    hidden = layers.Add()([shared(x), shared(z)])
    outputs = {"a": inner(hidden), "b": layers.Dense(2)(layers.ReLU()(hidden))}
    return Model({"x": x, "z": z}, outputs)


def recurrent():
    x = Input((6,))
    y = layers.Reshape((3, 2))(x)
    y = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(y)
    y = layers.MultiHeadAttention(2, 3)(y, y)
    y = layers.TimeDistributed(layers.Dense(2))(y)
    y = layers.RNN([layers.GRUCell(2), layers.LSTMCell(2)])(y)
    return Model(x, y)


MAKERS = {"stacked": stacked, "own": Own, "recurrent": recurrent}


@ENDINGS
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_run_goes_on_as_if_it_had_not_been_saved(make, ending, tmp_path):
    model = make()
    model.compile(tw.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(X, Y, batch_size=8, epochs=2, verbose=0, shuffle=False)
    model.save(tmp_path / f"m{ending}")
    other = load_model(tmp_path / f"m{ending}")
    logs = [
        each.fit(X, Y, batch_size=8, epochs=2, verbose=0, shuffle=False).history
        for each in (model, other)
    ]
    assert logs[0] == logs[1]
    for mine, theirs in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@ENDINGS
def test_several_inputs_outputs_shared_and_frozen_layers_come_back(ending, tmp_path):
    model = nested()
    data = {"x": X, "z": X + 1}
    save_model(model, tmp_path / f"m{ending}")
    other = load_model(tmp_path / f"m{ending}")
    for key, expected in model.predict(data, verbose=0).items():
        np.testing.assert_array_equal(other.predict(data, verbose=0)[key], expected)
    trainable = [[v.path for v in m.trainable_variables] for m in (model, other)]
    assert trainable[0] == trainable[1]


@ENDINGS
def test_what_was_explicitly_trained_stays_so(ending, tmp_path):
    x = Input((6,))
    model = Model(x, layers.Dropout(0.5)(x, training=True))
    model.save(tmp_path / f"m{ending}")
    outputs = load_model(tmp_path / f"m{ending}").predict(X, verbose=0)
    assert (outputs == 0).any()


@ENDINGS
def test_layers_may_keep_their_weights_in_their_own_way(ending, tmp_path):
    model = Sequential([Input((2,)), Halved()])
    model.layers[0].w.assign([3.0, 5.0])
    model.save(tmp_path / f"m{ending}")
    if ending == ".keras":
        with zipfile.ZipFile(tmp_path / "m.keras") as zipped:
            zipped.extract("model.weights.h5", tmp_path)
        with h5py.File(tmp_path / "model.weights.h5") as file:
            half = file["layers/halved/vars/half"][()]
        np.testing.assert_array_equal(half, [1.5, 2.5])
    found = load_model(tmp_path / f"m{ending}").get_weights()
    np.testing.assert_array_equal(found[0], [3.0, 5.0])


def test_what_a_layer_says_against_its_weights_is_an_error_of_the_file(tmp_path):
    model = Sequential([Input((2,)), Halved()])
    model.save_weights(tmp_path / "a.weights.h5")
    with h5py.File(tmp_path / "a.weights.h5", "r") as old:
        with h5py.File(tmp_path / "b.weights.h5", "w") as new:
            new["layers/halved/vars/third"] = old["layers/halved/vars/half"][()]
    with pytest.raises(
        tw.errors.SavingError, match=r"load_own_variables rejects .*'half'"
    ):
        model.load_weights(tmp_path / "b.weights.h5")


def test_weights_that_a_layer_does_not_keep_start_as_ever(tmp_path):
    @register_keras_serializable("test_models")
    class Forgetful(Halved):
        def build(self, input_shape):
            super().build(input_shape)
            self.other = self.add_weight((3,), "ones", name="other")

    Sequential([Input((2,)), Forgetful()]).save(tmp_path / "m.keras")
    other = load_model(tmp_path / "m.keras").layers[0].other
    np.testing.assert_array_equal(other, np.ones(3))


@ENDINGS
def test_a_model_without_shapes_yet_comes_back_as_it_is(ending, tmp_path):
    Sequential([layers.Dense(2)]).save(tmp_path / f"m{ending}")
    model = load_model(tmp_path / f"m{ending}")
    assert not model.built
    assert model(X).shape == (16, 2)


@ENDINGS
def test_include_optimizer_false_leaves_out_how_it_is_trained(ending, tmp_path):
    model = stacked()
    model.compile("adam", "mse")
    model.save(tmp_path / f"m{ending}", include_optimizer=False)
    assert not load_model(tmp_path / f"m{ending}").compiled


@ENDINGS
def test_the_content_counts_and_not_the_name(ending, tmp_path):
    model = stacked()
    model.save(tmp_path / f"m{ending}")
    (tmp_path / f"m{ending}").rename(tmp_path / "m.anything")
    other = load_model(tmp_path / "m.anything")
    np.testing.assert_array_equal(
        other.predict(X, verbose=0), model.predict(X, verbose=0)
    )


@ENDINGS
def test_weights_of_whole_models_can_be_loaded_alone(ending, tmp_path):
    model, other = stacked(), stacked()
    model.save(tmp_path / f"m{ending}")
    other.load_weights(tmp_path / f"m{ending}")
    for mine, theirs in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(mine, theirs)


def trained(optimizer, steps=1):
    model = stacked()
    model.compile(optimizer, "mse")
    for _ in range(steps):
        model.train_on_batch(X, Y)
    return model


def test_weights_come_with_the_state_of_a_built_optimizer(tmp_path):
    path = tmp_path / "m.weights.h5"
    model, other = trained("adam", steps=2), trained("adam", steps=0)
    model.save_weights(path)
    other.optimizer.build(other.trainable_variables)
    other.load_weights(path)
    for mine, theirs in zip(model.optimizer.variables, other.optimizer.variables):
        np.testing.assert_array_equal(mine, theirs)


def test_a_state_that_does_not_fit_the_optimizer_is_left_out_with_a_warning(tmp_path):
    path = tmp_path / "m.weights.h5"
    trained("adam").save_weights(path)
    unbuilt, another = trained("adam", steps=0), trained("sgd")
    with pytest.warns(UserWarning, match=r"'adam.*' .*not built.*optimizer\.build\("):
        unbuilt.load_weights(path)
    with pytest.warns(UserWarning, match=r"'sgd.*' is not restored: .* 2 variables"):
        another.load_weights(path)
    assert unbuilt.optimizer.iterations.numpy() == 0
    stacked().load_weights(path)  # not compiled: no warning


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"filepath .*\.keras.*\.h5.*got '.*m\.tf'"):
        stacked().save(tmp_path / "m.tf")
    with pytest.raises(ValueError, match="save_model: .*'signatures'"):
        stacked().save(tmp_path / "m.keras", signatures=None)


@ENDINGS
def test_an_older_file_is_kept_if_it_may_not_be_overwritten(ending, tmp_path):
    path = tmp_path / f"m{ending}"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="overwrite.*False"):
        stacked().save(path, overwrite=False)
    assert path.read_text() == "old"


def test_a_class_that_is_not_registered_is_named(tmp_path):
    class Unknown(layers.Layer):
        def call(self, x):  # Python code, of which a file can have no graph
            return tw.numpy_function(np.negative, [x], tw.TensorSpec(x.shape))

    inputs = Input((2,), batch_size=2)
    Model(inputs, Unknown(name="u")(inputs)).save(tmp_path / "m.keras")
    with pytest.raises(
        tw.errors.SavingError, match=r"m.keras \[config.json\]: .*Unknown.*regist"
    ):
        load_model(tmp_path / "m.keras")
    found = load_model(tmp_path / "m.keras", custom_objects={"Unknown": Unknown})
    np.testing.assert_array_equal(found(X[:2, :2]), -X[:2, :2])


def test_a_compile_config_without_optimizer_is_not_compiled_and_says_so(tmp_path):
    model = stacked()
    model.compile("adam", "mse")
    model.save(tmp_path / "a.keras")
    with (
        zipfile.ZipFile(tmp_path / "a.keras") as old,
        zipfile.ZipFile(tmp_path / "b.keras", "w") as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                config = json.loads(content)
                del config["compile_config"]["optimizer"]
                content = json.dumps(config)
            new.writestr(name, content)
    with pytest.warns(UserWarning, match="lacks an optimizer; it is not compiled"):
        assert not load_model(tmp_path / "b.keras").compiled


@register_keras_serializable("test_models")
class CompiledBySteps(Own):
    def compile(self, how, rate):
        super().compile(how, "mse")
        self.rate = rate

    def get_compile_config(self):
        return {"how": self.optimizer, "rate": self.rate}

    def compile_from_config(self, config):
        how = tw.keras.utils.deserialize_keras_object(config["how"])
        self.compile(how, config["rate"])


def test_a_class_compiles_by_its_own_compile_config(tmp_path):
    model = CompiledBySteps()
    model.compile("adam", 3)
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "a.keras")
    loaded = load_model(tmp_path / "a.keras")
    assert loaded.rate == 3 and int(loaded.optimizer.iterations.numpy()) == 1


def edited(path, change):
    """The HDF5 file with ``change(config)`` made to its model."""
    with h5py.File(path) as file:
        config = json.loads(file.attrs["model_config"])
        change(config)
        other = path.with_name("edited.h5")
        with h5py.File(other, "w") as copy:
            for key in file:
                file.copy(key, copy)
            copy.attrs["model_config"] = json.dumps(config)
    return other


def test_weights_larger_than_the_file_are_not_made(tmp_path):
    stacked().save(tmp_path / "m.h5")

    def enlarge(config):
        config["config"]["layers"][1]["config"]["units"] = 10**9

    with pytest.raises(
        tw.errors.SavingError, match=r"shape \(6, 1000000000\), but the file holds"
    ):
        load_model(edited(tmp_path / "m.h5", enlarge))


def test_layers_that_the_file_does_not_list_are_not_made(tmp_path):
    stacked().save(tmp_path / "m.h5")

    def repeat(config):
        entries = config["config"]["layers"]
        for i in range(9000):
            entries.append({"class_name": "ReLU", "config": {"name": f"r{i}"}})

    with pytest.raises(tw.errors.SavingError, match="config .*9004.*4"):
        load_model(edited(tmp_path / "m.h5", repeat))


def test_loading_leaves_the_random_numbers_of_others_alone(tmp_path):
    stacked().save(tmp_path / "m.h5")
    tw.keras.utils.set_random_seed(1)
    expected = tw.random.normal([2]).numpy()
    tw.keras.utils.set_random_seed(1)
    load_model(tmp_path / "m.h5")
    np.testing.assert_array_equal(tw.random.normal([2]).numpy(), expected)


def test_model_checkpoint_saves_whole_models(tmp_path):
    model = stacked()
    model.compile("adam", "mse")
    callback = tw.callbacks.ModelCheckpoint(tmp_path / "m.keras")
    model.fit(X, Y, verbose=0, callbacks=[callback])
    other = load_model(tmp_path / "m.keras")
    for mine, theirs in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(mine, theirs)


def altered(path, name, **values):
    """A file like that at ``path``, with other values in the config of a layer."""
    new = path.with_name("altered.h5")
    with h5py.File(path) as file, h5py.File(new, "w") as target:
        for key in file:
            file.copy(key, target)
        target.attrs.update(file.attrs)
        config = json.loads(file.attrs["model_config"])
        for layer in config["config"]["layers"]:
            if layer["config"]["name"] == name:
                layer["config"].update(values)
        target.attrs["model_config"] = json.dumps(config)
    return new


@pytest.mark.parametrize(
    ("layer", "values", "reason"),
    [
        (
            "dense",
            {"trainable": "x"},
            "'dense'.*got 'x'",
        ),
        ("dense", {"trainable": None}, "'dense'.*got None"),
        ("dense", {"use_bias": [1]}, "'dense'.*use_bias"),
        ("dense", {"use_bias": 10**30}, "'dense'.*use_bias"),
        ("dense", {"dtype": {"class_name": "x"}}, "dtype_policy 'x' is unknown"),
        ("dense", {"units": 10**30}, "'dense'.*units"),
        ("dense", {"units": 10**9}, "'kernel'.*layer 'dense'"),
        ("in", {"batch_shape": [None, 10**30]}, "layer 'dense'"),
        ("in", {"batch_shape": [None, "x"]}, "'in'"),
        ("in", {"batch_shape": "x"}, "'in'"),
        ("in", {"sparse": "x"}, "'in'.*sparse"),
    ],
)
def test_odd_values_in_the_config_of_a_layer_are_refused(
    layer, values, reason, tmp_path
):
    layers = [tw.Input((3,), name="in"), tw.layers.Dense(2, name="dense")]
    tw.Sequential(layers).save(tmp_path / "m.h5")
    with pytest.raises(tw.errors.SavingError, match=reason):
        load_model(altered(tmp_path / "m.h5", layer, **values))


def sharing():
    """A model inside of a model, and beside it; and a layer inside of two."""
    shared = layers.Dense(3, name="shared")
    inner = Sequential([Input((3,)), shared, layers.BatchNormalization()], name="inner")
    outer = Sequential([Input((3,)), layers.Dense(3), inner], name="outer")
    x = Input((3,))
    each = layers.TimeDistributed(shared, name="each")(layers.Reshape((1, 3))(x))
    parts = [outer(x), inner(x), layers.Flatten()(each)]
    return Model(x, layers.Concatenate()(parts))


def test_a_layer_in_several_places_is_one_layer_again(tmp_path):
    model = sharing()
    model.compile("adam", "mse")
    x, y = X[:, :3], np.ones((16, 9), "f4")
    model.fit(x, y, verbose=0)
    for ending in (".keras", ".h5"):
        model.save(tmp_path / f"m{ending}")
    found = [load_model(tmp_path / f"m{ending}") for ending in (".keras", ".h5")]
    for each in (model, *found):
        each.fit(x, y, epochs=2, shuffle=False, verbose=0)
    for each in found:
        inner = each.get_layer("inner")
        assert each.get_layer("outer").layers[1] is inner
        assert each.get_layer("each").layer is inner.layers[0]
        assert len(each.weights) == len(model.weights) == 8
        for a, b in zip(each.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_json_tells_that_a_layer_is_in_several_places():
    again = tw.keras.models.model_from_json(sharing().to_json())
    assert again.get_layer("outer").layers[1] is again.get_layer("inner")


def test_layers_of_two_classes_cannot_be_one(tmp_path):
    first, second = layers.Dense(3, name="first"), layers.Dense(3, name="second")
    Sequential([Input((3,)), first, second]).save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5") as file, h5py.File(tmp_path / "n.h5", "w") as new:
        for key in file:
            file.copy(key, new)
        new.attrs.update(file.attrs)
        config = json.loads(file.attrs["model_config"])
        for layer, name in zip(config["config"]["layers"][1:], ("Dense", "ReLU")):
            layer.update(class_name=name, shared_object_id=1)
            layer["config"]["name"] = "first"
        new.attrs["model_config"] = json.dumps(config)
    with pytest.raises(tw.errors.SavingError, match="'Dense'.*'ReLU'"):
        load_model(tmp_path / "n.h5")


@register_keras_serializable("test_models")
def gap(y_true, y_pred):
    return tw.reduce_mean(tw.abs(y_true - y_pred), axis=-1)


def test_a_function_by_its_registered_name_gives_a_metric_of_its_own_name():
    model = Sequential([Input((6,)), layers.Dense(2)])
    model.compile_from_config(
        {"optimizer": "sgd", "loss": "test_models>gap", "metrics": ["test_models>gap"]}
    )
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert found["gap"] == pytest.approx(found["loss"])


def test_the_state_of_the_optimizer_does_not_raise_the_limit_of_weights(tmp_path):
    model = Sequential([Input((300,)), layers.Dense(300, use_bias=False, name="d")])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)  # twice the weights
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    config = members["config.json"].replace(b'"units": 300', b'"units": 700')
    assert config != members["config.json"]
    with zipfile.ZipFile(tmp_path / "o.keras", "w") as zipped:
        for name, content in (members | {"config.json": config}).items():
            zipped.writestr(name, content)
    with pytest.raises(tw.errors.SavingError, match="300, 700.* 90000 numbers"):
        load_model(tmp_path / "o.keras")


def test_a_state_of_keras_2_as_large_as_a_new_optimizer_is_restored_by_name(tmp_path):
    model = Sequential([Input((2,)), layers.Dense(1, use_bias=False)])
    model.compile(tw.optimizers.SGD(0.1, momentum=0.9), "mse")
    model.save(tmp_path / "m.h5")
    with (
        h5py.File(tmp_path / "m.h5") as file,
        h5py.File(tmp_path / "o.h5", "w") as new,
    ):
        file.copy("model_weights", new)
        new.attrs.update(file.attrs)
        state = new.create_group("optimizer_weights")
        names = ["SGD/iter:0", "SGD/momentum/dense/kernel:0"]
        state.attrs["weight_names"] = np.array(names, "S")
        state[names[0]], state[names[1]] = np.int64(7), np.full((2, 1), 0.5, "f4")
    optimizer = load_model(tmp_path / "o.h5").optimizer
    assert optimizer.iterations.numpy() == 7
    (momentum,) = [v for v in optimizer.variables if v.shape == (2, 1)]
    np.testing.assert_array_equal(momentum, [[0.5], [0.5]])


@pytest.mark.parametrize("save", [save_model, save_weights])
def test_only_models_and_layers_are_saved(save, tmp_path):
    ending = ".keras" if save is save_model else ".weights.h5"
    with pytest.raises(ValueError, match="model must be a Model or Layer, got 3"):
        save(3, tmp_path / f"m{ending}")
    assert not list(tmp_path.iterdir())


def assert_same_model(path, model):
    other = load_model(path)
    for mine, theirs in zip(model.variables, other.variables, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert other.optimizer.iterations == model.optimizer.iterations


def fitted_model():
    model = stacked()
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    return model


def test_a_model_is_saved_to_a_file_object(tmp_path):
    model, buffer = fitted_model(), io.BytesIO(b"")
    model.save(buffer)
    buffer.seek(0)
    assert_same_model(buffer, model)
    with open(tmp_path / "m.keras", "wb") as file:
        model.save(file)
    assert_same_model(tmp_path / "m.keras", model)
    with pytest.raises(ValueError, match="zipped must be True or None"):
        model.save(io.BytesIO(), zipped=False)


def test_a_model_is_saved_as_a_folder_that_replaces_an_older_one(tmp_path, monkeypatch):
    model, path = fitted_model(), tmp_path / "inner" / "model"
    for exchanges in (True, False):
        if not exchanges:
            monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
        for _ in range(2):
            model.fit(X, Y, verbose=0)
            model.save(path, zipped=False)
            assert_same_model(path, model)
            names = {each.name for each in path.iterdir()}
            assert names == {"config.json", "metadata.json", "model.weights.h5"}
            assert [each.name for each in path.parent.iterdir()] == ["model"]
    other = stacked()
    other.load_weights(path)
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


def test_a_folder_that_is_not_replaced_stays_as_it_was(tmp_path):
    model = fitted_model()
    model.save(tmp_path / "m", zipped=False)
    before = {each.name: each.read_bytes() for each in (tmp_path / "m").iterdir()}
    broken = tw.Sequential([tw.Input((3,)), tw.layers.Lambda(lambda x: x)])
    with pytest.raises(ValueError, match="lambda"):
        broken.save(tmp_path / "m", zipped=False)
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "m", overwrite=False, zipped=False)
    assert {
        each.name: each.read_bytes() for each in (tmp_path / "m").iterdir()
    } == before
    (tmp_path / "m" / "notes.txt").write_text("mine")
    with pytest.raises(tw.errors.SavingError, match="other files, such as 'notes.txt'"):
        model.save(tmp_path / "m", zipped=False)
    with pytest.raises(ValueError, match="must not end in .keras"):
        model.save(tmp_path / "m.keras", zipped=False)
    (tmp_path / "m" / "config.json").write_text("[1]")
    with pytest.raises(tw.errors.SavingError, match="must be a JSON object"):
        load_model(tmp_path / "m")
