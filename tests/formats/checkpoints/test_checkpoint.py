"""`Checkpoint`: what objects hold, in a file and back."""

import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.formats.checkpoints.checkpoint_file import (
    read_content,
)

from .training import assert_equal, trained

Checkpoint = tw.train.Checkpoint
layers = tw.keras.layers


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


def test_versions_and_step_are_told(tmp_path):
    path = Checkpoint(model=trained(2)).save(tmp_path / "ckpt")
    info = read_content(f"{path}.h5").info
    assert info["step"] == 2
    assert info["versions"]["numpy"] == np.__version__
    assert info["versions"]["tapewright"] == tw.__version__


def test_save_numbers_its_files_and_counts(tmp_path):
    checkpoint = Checkpoint(v=tw.Variable(1.0))
    paths = [checkpoint.save(tmp_path / "ckpt") for _ in range(2)]
    assert [os.path.basename(p) for p in paths] == ["ckpt-1", "ckpt-2"]
    assert sorted(os.listdir(tmp_path)) == ["ckpt-1.h5", "ckpt-2.h5"]
    assert int(checkpoint.save_counter) == 2
    other = Checkpoint(v=tw.Variable(1.0))
    other.restore(paths[0])
    assert int(other.save_counter) == 1


def test_save_writes_over_no_other_checkpoint(tmp_path):
    Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    path = Checkpoint(v=tw.Variable(2.0)).save(tmp_path / "ckpt")
    assert os.path.basename(path) == "ckpt-2"


def test_a_checkpoint_is_found_by_the_path_of_its_file(tmp_path):
    v = tw.Variable(1.0)
    path = Checkpoint(v=v).save(tmp_path / "ckpt")
    Checkpoint(v=v).restore(f"{path}.h5").assert_consumed()


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
    os.truncate(f"{paths[-1]}.h5", 1000)
    with pytest.warns(UserWarning, match=r"ckpt-11\.h5: .*damaged"):
        assert tw.train.latest_checkpoint(tmp_path) == paths[-2]


def test_a_folder_may_be_the_prefix_of_checkpoints(tmp_path):
    path = Checkpoint(x=tw.Variable(1.0)).save(f"{tmp_path}/")
    assert tw.train.latest_checkpoint(tmp_path) == path == f"{tmp_path}/-1"


def test_there_is_no_latest_checkpoint_in_an_empty_folder(tmp_path):
    assert tw.train.latest_checkpoint(tmp_path) is None
    assert tw.train.latest_checkpoint(tmp_path / "none") is None


def test_a_data_set_is_kept_with_the_order_that_comes_next(tmp_path):
    def make():
        return tw.data.Dataset.range(20).shuffle(20)

    data, other = make(), make()
    list(data)
    path = Checkpoint(data=data).save(tmp_path / "ckpt")
    Checkpoint(data=other).restore(path)
    assert [int(x) for x in other] == [int(x) for x in data]


@pytest.mark.parametrize(
    "value", [tw.constant(3.0), np.ones(2), np.float32(3), 3, None]
)
def test_what_holds_no_state_can_be_an_attribute_and_is_not_saved(value, tmp_path):
    v = tw.Variable(1.0)
    checkpoint = tw.train.Checkpoint(v=v)
    checkpoint.best = value
    path = checkpoint.save(tmp_path / "ckpt")
    assert [name for name, _ in tw.train.list_variables(path)] == ["save_counter", "v"]
    assert checkpoint.best is value
    with pytest.raises(ValueError, match="best cannot be saved"):
        tw.train.Checkpoint(best=value)
    with pytest.warns(
        UserWarning, match="still contain the previous v, a Variable.*assign"
    ):
        checkpoint.v = value
    path = checkpoint.save(tmp_path / "ckpt")  # the variable, as in TensorFlow
    v.assign(2.0)
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.v is value and v.numpy() == 1.0


def test_a_part_can_be_deleted_and_have_a_private_name(tmp_path):
    checkpoint = tw.train.Checkpoint(v=tw.Variable(1.0), _own=tw.Variable(2.0), a=[1])
    del checkpoint.v, checkpoint.a
    path = checkpoint.write(tmp_path / "ckpt")
    assert [name for name, _ in tw.train.list_variables(path)] == ["_own"]
    for name in ("v", "a"):
        with pytest.raises(AttributeError, match=name):
            delattr(checkpoint, name)
    with pytest.raises(ValueError, match="root must not be a Variable"):
        tw.train.Checkpoint(tw.Variable(1.0))
