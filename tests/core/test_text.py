"""Strings: conversion, and the same results eager and traced."""

import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.text import as_text, to_bytes, to_text

pytestmark = pytest.mark.gpu_first

BYTES = [b"a\0", b"\0\0", b"\xff\xfe", "é".encode(), b"", b"x" * 1000]


@pytest.mark.parametrize("entry", BYTES)
def test_bytes_are_kept_as_they_are(entry):
    for value in (entry, np.array(entry, object), tw.constant(entry)):
        assert tw.constant(value).numpy() == entry
    assert tw.constant([[entry, b"b"]]).numpy().tolist() == [[entry, b"b"]]
    assert to_bytes(to_text(entry)) == entry


def test_text_becomes_utf8_and_names_of_files_their_bytes():
    assert tw.constant("é").numpy() == b"\xc3\xa9"
    assert tw.constant(np.array(["é", "b"])).numpy().tolist() == [b"\xc3\xa9", b"b"]
    assert tw.constant(np.array([b"ab", b"c"])).numpy().tolist() == [b"ab", b"c"]
    assert tw.constant(os.fsdecode(b"\xff.txt")).numpy() == b"\xff.txt"


def test_numpy_scalars_and_tensors_among_strings():
    x = tw.constant([np.str_("a"), np.bytes_(b"b"), "c", tw.constant("d")])
    assert [type(entry) for entry in x.numpy()] == [bytes] * 4
    assert x.numpy().tolist() == [b"a", b"b", b"c", b"d"]
    assert tw.constant([tw.constant("d"), "c"]).numpy().tolist() == [b"d", b"c"]


@pytest.mark.parametrize(
    "value",
    [["a", 1], [1, "a"], ["a", None], np.array(["a", 1.5], object), ["a", ["b"]]],
)
def test_what_is_no_string_is_refused_among_strings(value):
    with pytest.raises(TypeError, match="Cannot convert"):
        tw.constant(value)


def test_objects_that_are_no_strings_stay_no_strings():
    with pytest.raises(TypeError, match="must be text or bytes, got int"):
        as_text(np.array([b"a", 1], object))


def test_an_entry_is_an_array_too():
    x = tw.constant(["a", "b"])
    assert x[0].shape == () and x[0].dtype == tw.string and x[0].numpy() == b"a"
    assert [entry.numpy() for entry in x] == [b"a", b"b"]
    rows = tw.data.Dataset.from_tensor_slices(["a", "b"]).batch(2).unbatch()
    assert [row.numpy() for row in rows] == [b"a", b"b"]
    assert all(type(row) is bytes for row in rows.as_numpy_iterator())


def reversed_until_it_ends(x):
    state = tw.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x[::-1]), [0, x])
    return state[1]


def collected(x):
    array = tw.TensorArray(tw.string, size=3)
    for i in tw.range(2):
        array = array.write(i, x[i] + "!")
    return array.stack()


WORDS = ["ab", "c", "d\0", "c"]
EXPECTED = [
    (lambda x: x == "c", [False, True, False, True]),
    (lambda x: x != tw.constant(["ab", "", "d", "c"]), [False, True, True, False]),
    (lambda x: x + "!", [b"ab!", b"c!", b"d\0!", b"c!"]),
    (lambda x: "<" + x[0], b"<ab"),
    (lambda x: tw.concat([x[2:], x[:1]], 0), [b"d\0", b"c", b"ab"]),
    (lambda x: tw.stack([x[0], x[2]]), [b"ab", b"d\0"]),
    (lambda x: tw.gather(x, [2, 0]), [b"d\0", b"ab"]),
    (lambda x: tw.gather(x, 2), b"d\0"),
    (lambda x: tw.where(x == "c", x, "zz"), [b"zz", b"c", b"zz", b"c"]),
    (lambda x: tw.reshape(x, [2, 2]), [[b"ab", b"c"], [b"d\0", b"c"]]),
    (lambda x: tw.transpose(tw.reshape(x, [2, 2])), [[b"ab", b"d\0"], [b"c", b"c"]]),
    (lambda x: tw.tile(x[:2], [2]), [b"ab", b"c", b"ab", b"c"]),
    (lambda x: tw.pad(x[:2], [[1, 1]]), [b"", b"ab", b"c", b""]),
    (lambda x: tw.pad(x[:1], [[0, 1]], constant_values="p"), [b"ab", b"p"]),
    (lambda x: tw.zeros_like(x), [b""] * 4),
    (lambda x: tw.zeros([2], tw.string), [b"", b""]),
    (lambda x: tw.fill([2], x[0]), [b"ab", b"ab"]),
    (lambda x: tw.sort(x), [b"ab", b"c", b"c", b"d\0"]),
    (lambda x: tw.sort(x, direction="DESCENDING"), [b"d\0", b"c", b"c", b"ab"]),
    (lambda x: tw.argsort(x, direction="DESCENDING"), [2, 1, 3, 0]),
    (lambda x: tw.cond(tw.reduce_any(x == "c"), lambda: x, lambda: x[::-1]), WORDS),
    (reversed_until_it_ends, [b"c", b"d\0", b"c", b"ab"]),
    (collected, [b"ab!", b"c!", b""]),
    (lambda x: tw.identity(x), WORDS),
]


@pytest.mark.parametrize(("f", "expected"), EXPECTED)
def test_ops_of_strings(f, expected):
    expected = tw.constant(expected)
    for call in (f, tw.function(f), tw.function(f, jit_compile=True)):
        for _ in range(2):
            result = call(tw.constant(WORDS))
            np.testing.assert_array_equal(result.numpy(), expected.numpy())
            assert result.shape == expected.shape and result.dtype == expected.dtype
            on_host = type(result.array) in (np.ndarray, np.bool)
            strings = result.dtype == tw.string  # numbers lie on the current device
            assert on_host == (strings or devices.current_module() is np)


def test_a_trace_of_a_spec_comes_before_the_first_string():
    @tw.function(input_signature=[tw.TensorSpec([None], tw.string)])
    def first(x):
        return x[0], tw.size(x)

    first.get_concrete_function()
    entry, count = first(tw.constant(["a", "b"]))
    assert entry.shape == () and entry.numpy() == b"a" and int(count) == 2


def test_variables_hold_strings_and_functions_assign_them():
    v = tw.Variable(["a", "b"])
    step = tw.function(lambda x: v.assign(v + x))
    step(tw.constant(["1", "2"]))
    kept = v.value()
    step(tw.constant(["3", "4"]))
    assert v.numpy().tolist() == [b"a13", b"b24"] and kept.numpy().tolist() == [
        b"a1",
        b"b2",
    ]


def test_saved_functions_keep_strings(tmp_path):
    module = tw.Module()
    words = tw.constant(BYTES)
    module.f = tw.function(lambda x: tw.concat([x, words], 0))
    module.f(tw.constant(["a"]))
    tw.saved_model.save(module, tmp_path / "m")
    loaded = tw.saved_model.load(tmp_path / "m")
    assert loaded.f(tw.constant(["b"])).numpy().tolist() == [b"b", *BYTES]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x * 2.0,
        lambda x: x < "b",
        lambda x: tw.reduce_max(x),
        lambda x: tw.exp(x),
        lambda x: tw.cast(x, tw.float32),
        lambda x: tw.cast(1, tw.string),
        lambda x: tw.ones_like(x),
        lambda x: tw.ones([1], tw.string),
        lambda x: tw.bitcast(x, tw.int64),
        lambda x: tw.maximum(x, x),
        lambda x: tw.cumsum(x),
    ],
)
def test_ops_of_numbers_refuse_strings(call):
    for f in (call, tw.function(call)):
        with pytest.raises(TypeError):
            f(tw.constant(["a"]))
