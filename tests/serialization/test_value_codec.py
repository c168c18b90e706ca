"""Plain values as JSON and back."""

import json
import math

import pytest

from tapewright.serialization.value_codec import MAX_DEPTH, ValueCodec

CODEC = ValueCodec("settings")


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -2.5, "text", [], (), {}, [1, (2, [3])], float("-inf"),
        {"a": (1,), 2: "b", None: [], True: 1.5}, {"b": {"c": ({},)}},
    ],
)  # fmt: skip
def test_values_come_back_with_their_types(value):
    read = CODEC.decode(json.loads(json.dumps(CODEC.encode(value))))
    assert repr(read) == repr(value)


def test_nan_comes_back():
    text = json.dumps(CODEC.encode(math.nan), allow_nan=False)
    assert math.isnan(CODEC.decode(json.loads(text)))


class Text(str):
    pass


@pytest.mark.parametrize("value", [object(), {1}, Text("a"), 1j, range(3)])
def test_other_values_are_refused_by_their_place(value):
    with pytest.raises(TypeError, match=r"settings\['a'\]\[1\] cannot be saved: it is"):
        CODEC.encode({"a": [1, value]})


def test_keys_that_are_not_plain_are_refused():
    with pytest.raises(TypeError, match=r"settings\[0\].*the key \(1, 2\)"):
        CODEC.encode([{(1, 2): 3}])


def nested(container, depth):
    value = 1
    for _ in range(depth):
        value = container([value])
    return value


@pytest.mark.parametrize("container", [list, tuple, lambda items: {"a": items[0]}])
def test_depth_is_limited_on_both_ways(container):
    deepest = nested(container, MAX_DEPTH)
    assert CODEC.decode(CODEC.encode(deepest)) == deepest
    with pytest.raises(TypeError, match="settings cannot be saved.*nested deeper"):
        CODEC.encode(nested(container, MAX_DEPTH + 1))
    with pytest.raises(ValueError, match="nested deeper"):
        CODEC.decode(nested(list, MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "value",
    [{}, {"tuple": 1}, {"tuple": [], "float": "nan"}, {"other": []}, {"float": "1"},
     {"dict": [["a"]]}, {"dict": 3}, {"dict": [[{"tuple": []}, 1]]}, {"float": ["nan"]}],
)  # fmt: skip
def test_other_json_is_rejected(value):
    with pytest.raises(ValueError):
        CODEC.decode(value)
