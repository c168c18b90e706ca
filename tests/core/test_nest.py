"""Nested structures: flattening, packing, mapping."""

import gc
import weakref
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    owned_leaves,
    pack,
    pack_sequence_as,
)

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("structure", "leaves"),
    [
        (1, [1]),
        (None, [None]),
        ([], []),
        ({}, []),
        ([1, [2, (3,)]], [1, 2, 3]),
        ({"b": 1, "a": [2, 3]}, [2, 3, 1]),
        ({2: "x", 1: "y"}, ["y", "x"]),
        ({"a": 1, 2: 3}, [1, 3]),
        (Point(1, [2]), [1, 2]),
        ("text", ["text"]),
        ([None, {}], [None]),
        (OrderedDict(b=1, a=2), [2, 1]),
    ],
)
def test_leaves_come_from_left_to_right_and_dicts_by_sorted_keys(structure, leaves):
    assert flatten(structure) == leaves
    assert pack(structure, leaves) == structure


def test_arrays_tensors_and_shapes_are_leaves():
    array, tensor, shape = np.ones((2, 2)), tw.ones([2, 2]), tw.TensorShape([2, 3])
    leaves = flatten([array, (tensor, shape)])
    assert leaves[0] is array and leaves[1] is tensor and leaves[2] is shape
    assert not is_nested(shape) and not is_nested(tensor) and is_nested(())


def test_packing_keeps_types_orders_and_factories():
    structure = {
        "p": Point(1, 2),
        "o": OrderedDict(b=3, a=4),
        "d": defaultdict(list, z=5),
    }
    packed = map_structure(lambda n: n * 10, structure)
    assert packed["p"] == Point(10, 20) and isinstance(packed["p"], Point)
    assert list(packed) == ["p", "o", "d"]
    assert packed["o"] == OrderedDict(b=30, a=40) and type(packed["o"]) is OrderedDict
    assert packed["d"] == {"z": 50} and packed["d"].default_factory is list
    assert structure["d"] == {"z": 5}


def test_subclasses_of_list_and_tuple_come_back():
    class Items(list):
        pass

    packed = map_structure(lambda n: n + 1, [Items([1, 2]), (3,)])
    assert type(packed[0]) is Items and packed == [[2, 3], (4,)]


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_leaves_is_a_value_error(leaves):
    with pytest.raises(ValueError, match="pack: "):
        pack([0, (0,)], leaves)


def test_mapping_walks_several_structures_side_by_side():
    first, second = {"a": [1, 2], "b": 3}, {"b": 30, "a": [10, 20]}
    assert map_structure(lambda x, y: x + y, first, second) == {"a": [11, 22], "b": 33}


@pytest.mark.parametrize("other", [[1], [1, 2, 3], [1, [2]], {"a": 1, "b": 2}, 1, None])
def test_structures_that_differ_are_refused_with_both_shown(other):
    with pytest.raises(ValueError, match="The structures differ"):
        assert_same_structure([1, 2], other)
    with pytest.raises(ValueError, match="The structures differ"):
        map_structure(lambda a, b: a, [1, 2], other)


def test_lists_and_tuples_nest_alike():
    assert_same_structure([1, (2, 3)], (4, [5, 6]))


def test_tensorflows_name_packs_too():
    assert pack_sequence_as([0, (0, 0)], [1, 2, 3]) == [1, (2, 3)]


def test_classes_made_in_functions_go_with_them():
    class Local:
        pass

    class Row(tuple):
        pass

    assert not is_nested(Local()) and flatten(Row((1, 2))) == [1, 2]
    gone = [weakref.ref(Local), weakref.ref(Row)]
    del Local, Row
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_owned_leaves_of_containers_of_one_entry_and_none():
    assert owned_leaves([[1], {"a": (2,)}, [], {}, ()]) == [1, 2]
    assert owned_leaves([3]) == [3] and owned_leaves([]) == []


@pytest.mark.parametrize("in_order", [True, False])
def test_owned_leaves_of_a_dict_that_grows_meanwhile(in_order):
    class Key(str):
        def __hash__(self):  # looking the key up adds an entry, as another thread may
            grow = getattr(self, "grow", None)
            if grow is not None:
                grow[len(grow)] = "new"
            return super().__hash__()

    key = Key("a")
    value = {key: 1, "b": 2}
    key.grow = value
    assert owned_leaves(value, in_order) == [1, 2]
    assert len(value) > 2
