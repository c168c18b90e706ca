"""`children`: which objects an object holds, and the names that files give them."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.nest import ByType, is_container
from tapewright.core.trackable import Trackable, child_name, children, owned
from tapewright.formats.checkpoints.object_tree import explore, is_kept

layers = keras.layers


class Owner(Trackable):
    def __init__(self, **attributes):
        vars(self).update(attributes)


def test_public_names_come_first_each_in_alphabetical_order():
    owner = Owner(_b=1, b=2, _a=3, a=4)
    assert children(owner) == [("a", 4), ("b", 2), ("_a", 3), ("_b", 1)]


def test_containers_have_keys_or_positions_and_leaves_have_no_children():
    assert children({"b": 1, 3: 2}) == [("b", 1), (3, 2)]
    assert children((5, 6)) == [(0, 5), (1, 6)]
    assert children(tw.Variable(1.0)) is children(1) is None


def test_an_attribute_named_children_is_one_like_any_other():
    module = tw.Module()
    module.children = [tw.Variable(1.0)]
    module.__children__ = tw.Variable(2.0)
    assert list(explore([("m", module)]).variables) == [
        "m/children/0",
        "m/__children__",
    ]


def test_attributes_of_other_types_are_left_out_and_containers_are_searched():
    owner = Owner(a=1, b="text", c=[2, {"d": 3.0}], e=None, f=True)
    whole = ByType(lambda kind: is_container(kind) or issubclass(kind, int))
    assert owned(owner, among=whole) == [1, 2, 3.0, True]


def test_a_container_of_two_attributes_is_searched_once():
    shared = [1, [2]]
    assert owned(Owner(a=shared, b=(shared, 3))) == [1, 2, 3]


def test_attributes_are_owned_in_the_order_in_which_they_were_set():
    owner = Owner(b=[1, {"d": 2, "c": 3}], a=4)
    assert owned(owner) == [1, 3, 2, 4]
    assert owned(owner, in_order=True) == [1, 2, 3, 4]
    assert owned(owner, by_name=True) == [4, 1, 3, 2]


def test_files_keep_the_name_of_a_private_attribute_that_is_renamed(tmp_path):
    class Counter(tw.Module):
        def __init__(self):
            self._count = tw.Variable(3.0)

    class Renamed(tw.Module):
        __module__ = "tapewright"  # users cannot set a reserved name
        _tw_child_names = {"_total": "_count"}

        def __init__(self):
            self._total = tw.Variable(0.0)

    path = tw.train.Checkpoint(m=Counter()).save(tmp_path / "ckpt")
    renamed = Renamed()
    tw.train.Checkpoint(m=renamed).restore(path).assert_consumed()
    assert renamed._total.numpy() == 3

    tw.saved_model.save(renamed, tmp_path / "saved")
    assert tw.saved_model.load(tmp_path / "saved")._count.numpy() == 3


def functional():
    x = keras.Input((3, 4))
    y = layers.MultiHeadAttention(2, 4, dropout=0.1, kernel_regularizer="l2")(x, x)
    y = layers.GroupQueryAttention(4, 2, 2, dropout=0.1)(y, y)
    return keras.Model(x, layers.Dense(1)(y))


def recurrent():
    cells = layers.RNN([layers.LSTMCell(2), layers.GRUCell(2, dropout=0.1)])
    both = layers.Bidirectional(layers.LSTM(2, return_sequences=True, stateful=True))
    return keras.Sequential([keras.Input((3, 4), batch_size=4), both, cells])


@pytest.mark.parametrize("make", [functional, recurrent])
def test_our_classes_declare_the_private_attributes_that_files_name(make):
    model = make()
    model.compile("adam", "mse", metrics=["accuracy", keras.metrics.AUC()])
    x = np.zeros((4, 3, 4), np.float32)
    model.fit(x, np.zeros((4, *model.output_shape[1:])), batch_size=4, verbose=0)
    undeclared = {
        (type(owner).__name__, name)
        for owner in explore([("", model)]).containers.values()
        if isinstance(owner, tw.Module)
        for name, value in vars(owner).items()
        if name[0] == "_" and child_name(owner, name) == name
        if name not in type(owner)._tw_child_names
        if any([is_kept(leaf) for leaf in owned(Owner(value=value))])
    }
    assert undeclared == set()
