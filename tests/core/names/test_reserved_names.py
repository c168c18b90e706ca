"""Subclasses of users: names of their own, and the names that are not theirs."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.data import Dataset

ORDINARY = """
    kind slots state multiplier initializer key index parts root pairs
    node new cast bind array lock _shape _key _index _kind _owner _state
""".split()


def is_dunder(name):
    return name.startswith("__") and name.endswith("__")


def private_names(item):
    """Names with an underscore of an object, none of which are the user's."""
    names = {n for n in dir(item) if n.startswith("_") and not is_dunder(n)}
    return sorted(names - {"_abc_impl"})


class Weight(tw.Variable):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in ORDINARY:
            setattr(self, name, "mine")


def test_a_variable_of_a_user_has_attributes_of_its_own():
    weight = Weight([1.0, 2.0])
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(weight * weight)
    keras.optimizers.SGD(0.25).apply_gradients([(tape.gradient(loss, weight), weight)])
    np.testing.assert_array_equal(weight.numpy(), [0.5, 1.0])
    step = tw.function(lambda: weight.assign_add([1.0, 1.0]))
    step()
    for each in (weight, copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
        np.testing.assert_array_equal(each.numpy(), [1.5, 2.0])
        assert all(getattr(each, name) == "mine" for name in ORDINARY)


def test_a_variable_of_a_user_refuses_the_names_of_ours():
    weight = Weight(1.0)
    ours = [n for n in private_names(tw.Variable(1.0)) if n not in ORDINARY]
    assert {"_array", "_tw_lock", "_bind"} <= set(ours)
    for name in (*ours, "read"):
        if not name.startswith("_tw_"):
            with pytest.raises(AttributeError, match=f"Weight: .*{name}.*rename"):
                setattr(weight, name, 1)
        with pytest.raises(TypeError, match=f"Own: .*{name}.*rename"):
            type("Own", (tw.Variable,), {name: 1, "__module__": __name__})
    np.testing.assert_array_equal(weight.assign_add(1.0).numpy(), 2.0)


class Artificial(Dataset):
    """A data set as in TensorFlow's guide on performance."""

    def _generator(count):
        for i in range(count):
            yield (i,)

    def __new__(cls, count=3):
        spec = tw.TensorSpec((1,), tw.int64)
        return Dataset.from_generator(
            cls._generator, output_signature=spec, args=(count,)
        )


def test_a_data_set_of_a_user_may_make_another():
    found = list(Artificial(2).batch(2).as_numpy_iterator())
    np.testing.assert_array_equal(found, [[[0], [1]]])


@pytest.mark.parametrize("name", private_names(Dataset.range(1)))
def test_a_data_set_of_a_user_refuses_the_names_of_ours(name):
    with pytest.raises(TypeError, match=f"Own: .*{name}.*rename"):
        type("Own", (Dataset,), {name: 1, "__module__": __name__})


class Saved(tw.train.Checkpoint):
    def __init__(self, **parts):
        super().__init__(**parts)
        self._root, self._parts, self._pairs = "mine", "mine", "mine"
        self._save_counter, self._restoration = "mine", "mine"

    def _write(self):
        return "mine"

    _apply = _warn_of_unused = _write


def test_a_checkpoint_of_a_user_has_attributes_of_its_own(tmp_path):
    checkpoint = Saved(v=tw.Variable(1.0))
    path = checkpoint.save(tmp_path / "ckpt")
    checkpoint.v.assign(2.0)
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.v.numpy() == 1.0
    assert checkpoint._root == checkpoint._parts == checkpoint._write() == "mine"
    with pytest.raises(AttributeError, match="reserved"):
        checkpoint._tw_parts = {}


class Batches(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        for name in ORDINARY:
            setattr(self, name, "mine")

    def __len__(self):
        return 2

    def __getitem__(self, number):
        return np.ones((4, 3)), np.ones((4, 1))


def test_a_py_dataset_of_a_user_has_attributes_of_its_own():
    batches = Batches()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches, epochs=2, verbose=0)
    assert all(getattr(batches, name) == "mine" for name in ORDINARY)
