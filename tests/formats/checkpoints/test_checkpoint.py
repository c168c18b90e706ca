"""`Checkpoint`: what objects hold, in a file and back, also for objects made later."""

import os
import random
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.formats.checkpoints.checkpoint_file import (
    Content,
    read_content,
    write_content,
)
from tapewright.formats.checkpoints.state_codec import decoded, encoded

from .training import assert_equal, data, model_of, trained

Checkpoint = tw.train.Checkpoint
layers = tw.keras.layers


# ------------------------------------------------------------------ what is kept


def test_a_model_and_its_optimizer_come_back_as_they_were(tmp_path):
    model, other = trained(4, 2), trained(4, 2)
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    status = Checkpoint(model=other).restore(path)
    status.assert_consumed().assert_existing_objects_matched()
    assert_equal(other.variables, model.variables)
    assert_equal(other.optimizer.variables, model.optimizer.variables)
    assert_equal(other.metrics_variables, model.metrics_variables)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "float16", "float64", "complex64"]
)
def test_a_variable_of_any_dtype_comes_back(tmp_path, dtype):
    value = np.array([[0, 1], [1, 1]], dtype)
    v = tw.Variable(value, trainable=False)
    path = Checkpoint(v=v).write(tmp_path / "one")
    v.assign(np.zeros_like(value))
    Checkpoint(v=v).read(path).assert_consumed()
    np.testing.assert_array_equal(v.numpy(), value, strict=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0, 1e-45])
def test_every_bit_of_a_float_comes_back(tmp_path, value):
    v = tw.Variable(np.float32(value))
    path = Checkpoint(v=v).write(tmp_path / "one")
    v.assign(0.0)
    Checkpoint(v=v).read(path)
    assert v.numpy().tobytes() == np.float32(value).tobytes()


def test_empty_and_large_arrays_come_back(tmp_path):
    values = [np.zeros((0, 3), "f4"), np.arange(300_000, dtype="f4")]
    variables = [tw.Variable(value) for value in values]
    path = Checkpoint(variables=variables).write(tmp_path / "two")
    variables[1].assign(np.zeros(300_000, "f4"))
    Checkpoint(variables=variables).read(path).assert_consumed()
    assert_equal(variables, values)


def test_a_generator_goes_on_where_it_stood(tmp_path):
    generator = tw.random.Generator.from_seed(3)
    path = Checkpoint(generator=generator).save(tmp_path / "ckpt")
    expected = generator.normal([4]).numpy()
    Checkpoint(generator=generator).restore(path)
    assert_equal(generator.normal([4]), expected)


def test_the_global_generator_goes_on_where_it_stood(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    expected = tw.random.normal([4]).numpy()
    Checkpoint(v=tw.Variable(1.0)).restore(path)
    assert_equal(tw.random.normal([4]), expected)


def test_read_leaves_the_global_generator_alone(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    tw.random.set_seed(5)
    expected = tw.random.normal([4]).numpy()
    tw.random.set_seed(5)
    Checkpoint(v=tw.Variable(2.0)).read(path)
    assert_equal(tw.random.normal([4]), expected)


def test_an_iterator_goes_on_with_the_next_element(tmp_path):
    dataset = tw.data.Dataset.range(20).shuffle(20, seed=1).batch(3)
    iterator = iter(dataset)
    next(iterator)
    path = Checkpoint(iterator=iterator).save(tmp_path / "ckpt")
    expected = [each.numpy() for each in iterator]
    other = iter(tw.data.Dataset.range(20).shuffle(20, seed=9).batch(3))
    Checkpoint(iterator=other).restore(path).assert_consumed()
    assert_equal(list(other), expected)


def test_states_of_stateful_recurrent_layers_are_kept(tmp_path):
    def make():
        layer = layers.LSTM(3, stateful=True)
        layer.build((2, 4, 5))
        return layer

    layer, x = make(), np.ones((2, 4, 5), "f4")
    layer(x)
    path = Checkpoint(layer=layer).save(tmp_path / "ckpt")
    other = make()
    Checkpoint(layer=other).restore(path).assert_consumed()
    assert_equal(other(x), layer(x))


def test_metrics_and_modules_in_lists_and_dicts_are_kept(tmp_path):
    def make(value):
        module = tw.Module()
        module.parts = {
            "a/b": [tw.Variable(value)],
            "": tw.Variable(value),
            3: (1, "x"),
        }
        return module

    metric, other = tw.keras.metrics.Mean(), tw.keras.metrics.Mean()
    metric.update_state([1.0, 2.0])
    module = make(1.0)
    path = Checkpoint(metrics=[metric], module=module).save(tmp_path / "ckpt")
    module = make(0.0)
    Checkpoint(metrics=[other], module=module).restore(path).assert_consumed()
    assert float(other.result()) == 1.5
    assert [float(v) for v in module.variables] == [1.0, 1.0]


def test_states_of_objects_are_kept_with_their_types(tmp_path):
    class Counter:
        value = {"a": (1, [2.5, None, "x"]), 3: True, "inf": float("inf")}
        arrays = [np.arange(3), np.float32(0.1), np.array(2)]

        def get_state(self):
            return {"value": self.value, "arrays": self.arrays}

        def set_state(self, state):
            self.value, self.arrays = state["value"], state["arrays"]

    counter = Counter()
    path = Checkpoint(counter=counter).save(tmp_path / "ckpt")
    value, counter.value, counter.arrays = counter.value, None, None
    Checkpoint(counter=counter).restore(path).assert_consumed()
    assert counter.value == value
    assert [type(a) for a in counter.arrays] == [np.ndarray, np.float32, np.ndarray]
    assert_equal(counter.arrays, Counter.arrays)


def test_generators_of_numpy_and_python_are_kept(tmp_path):
    ours, theirs = np.random.default_rng(1), random.Random(1)
    path = Checkpoint(numpy=ours, python=theirs).save(tmp_path / "ckpt")
    expected = ours.random(), theirs.random()
    Checkpoint(numpy=ours, python=theirs).restore(path).assert_consumed()
    assert (ours.random(), theirs.random()) == expected


def test_callbacks_are_kept(tmp_path):
    early = tw.keras.callbacks.EarlyStopping()
    early.best, early.wait = 0.5, 2
    early.best_weights = [np.ones(3, "f4"), np.zeros((2, 2))]
    path = Checkpoint(early=early).save(tmp_path / "ckpt")
    other = tw.keras.callbacks.EarlyStopping()
    Checkpoint(early=other).restore(path)
    assert (other.best, other.wait) == (0.5, 2)
    assert_equal(other.best_weights, early.best_weights)


@pytest.mark.parametrize("name", ["_layers", "_chain", "_start", "_kept", "x"])
def test_private_attributes_are_kept_whatever_their_name(tmp_path, name):
    module = tw.Module()
    setattr(module, name, [tw.Variable(1.0)])
    path = Checkpoint(module=module).write(tmp_path / "one")
    assert tw.train.list_variables(path) == [(f"module/{name}/0", [])]


def test_an_object_is_kept_once_however_it_is_reached(tmp_path):
    v = tw.Variable(1.0)
    path = Checkpoint(a=v, b=[v, v]).save(tmp_path / "ckpt")
    assert tw.train.list_variables(path) == [("a", []), ("save_counter", [])]


def test_a_root_has_its_parts_at_the_top(tmp_path):
    layer = layers.Dense(2)
    layer.build((None, 3))
    path = Checkpoint(layer, step=tw.Variable(0)).write(tmp_path / "one")
    names = [name for name, _ in tw.train.list_variables(path)]
    assert names == ["bias", "kernel", "step"]
    other = layers.Dense(2)
    Checkpoint(other, step=tw.Variable(1)).read(path)
    other.build((None, 3))
    assert_equal(other.weights, layer.weights)


@pytest.mark.parametrize("part", [3, "text", None, object(), layers.Dense])
def test_what_cannot_be_kept_is_refused(part):
    with pytest.raises(ValueError, match="step cannot be kept"):
        Checkpoint(step=part)


def test_a_state_that_cannot_be_kept_is_named(tmp_path):
    class Odd:
        def get_state(self):
            return {"a": [1, object()]}

        def set_state(self, state):
            pass

    with pytest.raises(TypeError, match=r"state of 'odd'\['a'\]\[1\] cannot be kept"):
        Checkpoint(odd=Odd()).write(tmp_path / "one")
    assert not os.listdir(tmp_path)


def test_versions_and_step_are_told(tmp_path):
    path = Checkpoint(model=trained(2)).save(tmp_path / "ckpt")
    info = read_content(path).info
    assert info["step"] == 2
    assert info["versions"]["numpy"] == np.__version__
    assert info["versions"]["tapewright"] == tw.__version__


# ------------------------------------------------------------------ what does not fit


def test_another_shape_is_told_and_nothing_is_changed(tmp_path):
    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    other = trained(5, 2)
    before = [v.numpy() for v in other.variables + other.optimizer.variables]
    with pytest.raises(ValueError, match=r"layers/0/kernel.* \(3, 4\).* \(3, 5\)"):
        Checkpoint(model=other).restore(path)
    assert_equal(other.variables + other.optimizer.variables, before)


def test_what_lacks_and_what_is_beyond_is_told_with_what_does_not_fit(tmp_path):
    path = Checkpoint(a=tw.Variable([1.0]), b=tw.Variable(2.0)).write(tmp_path / "f")
    others = Checkpoint(a=tw.Variable([0.0, 0.0]), c=tw.Variable(3.0))
    with pytest.raises(tw.errors.SavingError) as error:
        others.read(path)
    lines = str(error.value).splitlines()
    assert "'a' is float32 (1,), the variable 'Variable' float32 (2,)" in lines[1]
    assert lines[2:] == ["  it does not have c", "  and has besides b"]


def test_another_dtype_is_told(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    with pytest.raises(tw.errors.SavingError, match="float32 .* int32"):
        Checkpoint(v=tw.Variable(1)).restore(path)


def test_a_shape_is_told_when_it_is_known_at_last(tmp_path):
    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    other = model_of(5, 2)
    Checkpoint(model=other).restore(path)
    with pytest.raises(tw.errors.SavingError, match="kernel"):
        other(data()[0])


def test_variables_that_the_file_lacks_are_warned_of_and_asserted(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    with pytest.warns(UserWarning, match="does not have w, which"):
        status = Checkpoint(v=tw.Variable(0.0), w=tw.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="does not have w"):
        status.assert_existing_objects_matched()


def test_values_without_an_object_are_asserted_unless_expected(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0), w=tw.Variable(2.0)).save(tmp_path / "ckpt")
    v = tw.Variable(0.0)
    status = Checkpoint(v=v).restore(path).expect_partial()
    assert v.numpy() == 1.0
    status.assert_existing_objects_matched().assert_nontrivial_match()
    with pytest.raises(AssertionError, match="there is no object for w"):
        status.assert_consumed()


def test_nothing_matched_is_asserted(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).write(tmp_path / "ckpt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = Checkpoint(w=tw.Variable(1.0)).read(path)
    with pytest.raises(AssertionError, match="nothing in it was used"):
        status.assert_nontrivial_match()


def test_a_state_of_other_data_is_told(tmp_path):
    first = iter(tw.data.Dataset.range(4).batch(2))
    path = Checkpoint(iterator=first).save(tmp_path / "ckpt")
    other = iter(tw.data.Dataset.range(4))
    with pytest.raises(tw.errors.SavingError, match="of another data set"):
        Checkpoint(iterator=other).restore(path)


def test_no_path_restores_nothing():
    status = Checkpoint(v=tw.Variable(1.0)).restore(None)
    with pytest.raises(AssertionError, match="no checkpoint"):
        status.assert_consumed()


@pytest.mark.parametrize(
    "content", [b"", b"not a checkpoint", b"\x89HDF\r\n\x1a\n" * 9]
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "one").write_bytes(content)
    with pytest.raises(tw.errors.SavingError):
        Checkpoint(v=tw.Variable(1.0)).restore(tmp_path / "one")


def test_a_file_of_weights_is_no_checkpoint(tmp_path):
    path = tmp_path / "m.weights.h5"
    trained(2).save_weights(path)
    with pytest.raises(tw.errors.SavingError, match="is no tapewright checkpoint"):
        Checkpoint(v=tw.Variable(1.0)).restore(path)


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Checkpoint(v=tw.Variable(1.0)).restore(tmp_path / "none")


@pytest.mark.parametrize(
    "state",
    [{"dict": [["a"]]}, {"array": 5}, {"float": "1"}, {"other": 1}, {"array": True}],
)
def test_a_state_that_was_written_otherwise_is_refused(state):
    with pytest.raises(tw.errors.SavingError, match="not as it was written"):
        decoded(state, [np.zeros(2)], "file", "place")


@pytest.mark.parametrize("states", [{"v": [1]}, {"iterator": {"place": 3}}])
def test_a_state_for_another_object_is_refused(tmp_path, states):
    path = str(tmp_path / "one")
    write_content(Content(path, {}, states, {}))
    iterator = iter(tw.data.Dataset.range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checkpoint = Checkpoint(iterator=iterator, v=tw.Variable(1.0))
        if "iterator" in states:
            with pytest.raises(tw.errors.SavingError):
                checkpoint.read(path)
        else:
            checkpoint.read(path)
    assert int(next(iterator)) == 0


# ------------------------------------------------------------------ files and names


def test_save_numbers_its_files_and_counts(tmp_path):
    checkpoint = Checkpoint(v=tw.Variable(1.0))
    paths = [checkpoint.save(tmp_path / "ckpt") for _ in range(2)]
    assert [os.path.basename(p) for p in paths] == ["ckpt-1.h5", "ckpt-2.h5"]
    assert int(checkpoint.save_counter) == 2
    other = Checkpoint(v=tw.Variable(1.0))
    other.restore(paths[0])
    assert int(other.save_counter) == 1


def test_save_writes_over_no_other_checkpoint(tmp_path):
    Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    path = Checkpoint(v=tw.Variable(2.0)).save(tmp_path / "ckpt")
    assert os.path.basename(path) == "ckpt-2.h5"


def test_a_prefix_without_an_ending_is_found(tmp_path):
    v = tw.Variable(1.0)
    path = Checkpoint(v=v).save(tmp_path / "ckpt")
    Checkpoint(v=v).restore(path.removesuffix(".h5")).assert_consumed()


def test_a_failed_save_is_not_counted(tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = Checkpoint(v=tw.Variable(1.0))
    with pytest.raises(OSError):
        checkpoint.save(tmp_path / "file" / "ckpt")
    assert int(checkpoint.save_counter) == 0


def test_the_latest_checkpoint_is_the_newest_that_is_whole(tmp_path):
    checkpoint = Checkpoint(v=tw.Variable(1.0))
    paths = [checkpoint.save(tmp_path / "ckpt") for _ in range(11)]
    assert tw.train.latest_checkpoint(tmp_path) == paths[-1]
    with open(paths[-1], "r+b") as file:
        file.truncate(1000)
    with pytest.warns(UserWarning, match=r"passed over: .*ckpt-11\.h5: is damaged"):
        assert tw.train.latest_checkpoint(tmp_path) == paths[-2]


def test_there_is_no_latest_checkpoint_in_an_empty_folder(tmp_path):
    assert tw.train.latest_checkpoint(tmp_path) is None
    assert tw.train.latest_checkpoint(tmp_path / "none") is None


def test_a_reader_tells_names_shapes_and_values(tmp_path):
    path = Checkpoint(v=tw.Variable([1.0, 2.0])).save(tmp_path / "ckpt")
    reader = tw.train.load_checkpoint(tmp_path)
    assert reader.get_variable_to_shape_map()["v"] == [2]
    assert reader.get_variable_to_dtype_map()["v"] == np.float32
    assert reader.has_tensor("v") and not reader.has_tensor("w")
    assert_equal(reader.get_tensor("v"), np.array([1, 2], "f4"))
    assert_equal(tw.train.load_variable(path, "v"), np.array([1, 2], "f4"))


def test_names_do_not_depend_on_the_names_of_layers(tmp_path):
    names = []
    for i in range(2):
        path = Checkpoint(model=trained(4, 2)).write(tmp_path / f"{i}")
        names.append([name for name, _ in tw.train.list_variables(path)])
    assert names[0] == names[1]


def test_plain_states_know_their_depth():
    nested = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(TypeError, match="nested deeper"):
        encoded(nested, [])


def test_names_of_any_depth_and_kind_come_back(tmp_path):
    nested = tw.Variable(1.0)
    for key in ["a/b", "%-", "..", "", "%2F"] * 14:
        nested = {key: nested, "other": tw.Variable(2.0)}
    path = Checkpoint(nested=nested).write(tmp_path / "deep")
    Checkpoint(nested=nested).read(path).assert_consumed()
    reader = tw.train.load_checkpoint(path)
    names = [name for name, _ in tw.train.list_variables(path)]
    assert len(names) == 71
    assert {float(reader.get_tensor(name)) for name in names} == {1.0, 2.0}


def test_names_of_tensorflow_are_understood(tmp_path):
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    path = Checkpoint(v=tw.Variable([1.0, 2.0])).save(tmp_path / "ckpt")
    reader = tw.train.load_checkpoint(path)
    assert reader.has_tensor(f"v{ending}") and not reader.has_tensor(f"w{ending}")
    assert reader.get_variable_to_shape_map()[f"v{ending}"] == [2]
    assert reader.get_variable_to_dtype_map()[f"v{ending}"] == "float32"
    assert tw.train.load_variable(tmp_path, f"v{ending}").tolist() == [1, 2]
    with pytest.raises(KeyError, match="w/.ATTR"):
        reader.get_variable_to_shape_map()[f"w{ending}"]


def test_aliases_that_are_no_names_are_refused(tmp_path):
    content = Content(str(tmp_path / "f"), {}, {}, {"aliases": {"a": 3}})
    write_content(content)
    with pytest.raises(
        tw.errors.SavingError, match="'aliases' must map names to names"
    ):
        Checkpoint().restore(content.path)


def test_a_data_set_is_kept_with_the_order_that_comes_next(tmp_path):
    def make():
        return tw.data.Dataset.range(20).shuffle(20)

    data, other = make(), make()
    list(data)
    path = Checkpoint(data=data).save(tmp_path / "ckpt")
    Checkpoint(data=other).restore(path)
    assert [int(x) for x in other] == [int(x) for x in data]
