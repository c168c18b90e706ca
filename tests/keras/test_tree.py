"""`keras.tree`: what Keras 3.15 gives for the same calls."""

from collections import OrderedDict, namedtuple

import pytest

from tapewright.keras import tree

Pair = namedtuple("Pair", "a b")


def seen(structure, top_down):
    parts = []
    tree.traverse(lambda x: parts.append(x), structure, top_down)
    return parts


CASES = [
    (lambda: tree.flatten({"b": [3, 4], "a": (1, None)}), [1, None, 3, 4]),
    (lambda: tree.flatten(OrderedDict(b=1, a=2)), [1, 2]),
    (lambda: tree.flatten_with_path([{"foo": 42, "a": (1, 2)}]),
     [((0, "a", 0), 1), ((0, "a", 1), 2), ((0, "foo"), 42)]),
    (lambda: tree.flatten_with_path(Pair(1, [2])), [((0,), 1), ((1, 0), 2)]),
    (lambda: tree.flatten_with_path(3), [((), 3)]),
    (lambda: tree.map_structure(lambda x: x * 2, Pair(1, [2])), Pair(2, [4])),
    (lambda: tree.map_structure(str, {"b": 1, "a": None}, none_is_leaf=False),
     {"b": "1", "a": None}),
    (lambda: tree.map_structure(lambda x, y: x + y, OrderedDict(b=1, a=2), {"a": 3, "b": 4}),
     OrderedDict(b=5, a=5)),
    (lambda: tree.map_structure_up_to((0, [0]), lambda x, y: (x, y), ([1], [2]), (3, [4])),
     (([1], 3), [(2, 4)])),
    (lambda: seen([(1, 2), {"a": 4}], True), [[(1, 2), {"a": 4}], (1, 2), 1, 2, {"a": 4}, 4]),
    (lambda: seen([(1, 2), {"a": 4}], False), [1, 2, (1, 2), 4, {"a": 4}, [(1, 2), {"a": 4}]]),
    (lambda: tree.traverse(lambda x: tree.MAP_TO_NONE if x == (1, 2) else None, [(1, 2), 3]),
     [None, 3]),
    (lambda: tree.lists_to_tuples([1, Pair([2], {"a": [3]})]), (1, Pair((2,), {"a": (3,)}))),
    (lambda: tree.map_shape_structure(len, [(None, 3), {"a": [2]}]), [2, {"a": 1}]),
    (lambda: tree.pack_sequence_as({"b": [0, 0], "a": (0,)}, [1, 2, 3]),
     {"b": [2, 3], "a": (1,)}),
]  # fmt: skip


def test_results_are_those_of_keras():
    for call, expected in CASES:
        assert call() == expected


@pytest.mark.parametrize(
    "error, call",
    [
        (ValueError, lambda: tree.assert_same_structure([1], (1,))),
        (ValueError, lambda: tree.assert_same_structure({"a": 1}, {"b": 1})),
        (ValueError, lambda: tree.assert_same_structure([1, 2], [1, [2]])),
        (ValueError, lambda: tree.assert_same_paths([1, 2], [1, [2]])),
        (ValueError, lambda: tree.map_structure(max, [1], (2,))),
        (ValueError, lambda: tree.map_structure_up_to([0, [0]], max, [1, 2])),
        (ValueError, lambda: tree.pack_sequence_as([1], [1, 2])),
        (TypeError, lambda: tree.map_structure(max)),
        (TypeError, lambda: tree.traverse(3, [1])),
    ],
)
def test_structures_that_differ_are_refused(error, call):
    with pytest.raises(error):
        call()


def test_dicts_keep_the_order_of_their_keys():
    assert list(tree.map_structure(str, {"b": 1, "a": 2})) == ["b", "a"]


def test_what_counts_as_the_same():
    tree.assert_same_structure(OrderedDict(b=1, a=2), {"a": 3, "b": 4})
    tree.assert_same_paths([1, (2, 3)], (4, [5, 6]))
