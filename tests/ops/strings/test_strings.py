"""String ops against recordings of TensorFlow, eager and traced; errors by hand."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.strings import fingerprints
from tapewright.ops.strings.categories import (
    hashed_cross,
    pack_vocabulary,
    vocabulary_counts,
    vocabulary_lookup,
)

REFERENCE = Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location("record", REFERENCE / "record.py")
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
CROSSED = [[1, 27], [34, 42]]  # of tf.sparse.cross_hashed
RECORDED = json.loads((REFERENCE / "strings.json").read_text())


def called(case, traced):
    run = lambda: eval(case, {"s": tw.strings})  # noqa: E731
    if traced:
        run = tw.function(run)
    return run()


def plain(value):
    if isinstance(value, tw.RaggedTensor):
        return record.plain(value.to_list())
    value = value.numpy()
    return record.plain(value if isinstance(value, bytes) else value.tolist())


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_results_are_those_of_tensorflow(number, traced):
    case, expected = record.CASES[number], RECORDED[number]
    if "error" in expected:
        with pytest.raises((ValueError, TypeError)):
            called(case, traced)
        return
    value = called(case, traced)
    assert value.dtype.name == expected["dtype"]
    np.testing.assert_equal(plain(value), expected["value"])


BAD = b"a\xe3\x81b\xf0\x80z"
WIDE = "aé🎈z".encode("utf-16-be")
OFFSETS = [  # arguments, code points and offsets of TensorFlow
    (["🎈aé", "UTF-8"], [127880, 97, 233], [0, 4, 5]),
    ([["aé", "", "z"], "UTF-8"], [[97, 233], [], [122]], [[0, 1], [], [0]]),
    ([BAD, "UTF-8"], [97, 65533, 98, 65533, 65533, 122], [0, 1, 3, 4, 5, 6]),
    ([BAD, "UTF-8", "ignore"], [97, 98, 122], [0, 3, 6]),
    (["a\tb", "UTF-8", "replace", 63, True], [97, 63, 98], [0, 1, 2]),
    (["a\tb", "UTF-8", "ignore", 63, True], [97, 98], [0, 2]),
    ([WIDE, "UTF-16-BE"], [97, 233, 127880, 122], [0, 2, 4, 8]),
    ([b"\xe9a", "ISO-8859-1"], [233, 97], [0, 1]),
]


def test_characters_have_the_offsets_of_tensorflow():
    s = tw.strings
    for arguments, *expected in OFFSETS:
        points, offsets = s.unicode_decode_with_offsets(*arguments)
        assert (points.dtype, offsets.dtype) == (tw.int32, tw.int64)
        assert [plain(points), plain(offsets)] == expected, arguments
        characters, offsets = s.unicode_split_with_offsets(*arguments[:3])
        again = s.unicode_split(*arguments[:3])
        assert plain(characters) == plain(again)
        assert arguments[4:] or plain(offsets) == expected[1]
    with pytest.raises(tw.errors.InvalidArgumentError, match="at byte 1"):
        s.unicode_decode_with_offsets(BAD, "UTF-8", "strict")
    with pytest.raises(tw.errors.ShapeError, match="one axis"):
        s.unicode_split_with_offsets([["a"]], "UTF-8")


def test_arrays_of_strings_have_the_hashes_of_each_string(monkeypatch):
    bits = np.random.default_rng(0)
    texts = [bits.bytes(n) for n in bits.permutation(301)]
    hash_functions = [
        fingerprints.farm,
        fingerprints.murmur,
        lambda texts: fingerprints.sip(texts, (2**64 - 1, -5)),
    ]
    for function in hash_functions:
        monkeypatch.setattr(fingerprints, "FEW", 0)  # all as arrays
        found = function(texts)
        monkeypatch.setattr(fingerprints, "FEW", len(texts) + 1)  # each by itself
        assert found.tolist() == function(texts).tolist()
        assert function([]).shape == (0,)


def test_a_template_is_filled_for_each_element():
    fill = lambda x: tw.strings.format("{}: {}", (x, "a"))  # noqa: E731
    assert plain(tw.vectorized_map(fill, tw.range(2))) == ['0: "a"', '1: "a"']
    traced = tw.function(fill, input_signature=[tw.TensorSpec(None)])
    assert plain(traced([1.5, 2.0])) == '[1.5 2]: "a"'
    with pytest.raises(ValueError, match="has 1 placeholders '%', got 2 inputs"):
        tw.strings.format("a%{}", [1, 2], placeholder="%")
    with pytest.raises(TypeError, match="template and placeholder must be str"):
        tw.strings.format(tw.constant("{}"), [1])


def test_positions_in_a_vocabulary_and_crosses_map_over_rows():
    words = tw.constant([["b", "x"], ["y", "a"]])
    vocabulary = pack_vocabulary([b"a", b"b"])
    expected = [[1, 2], [2, 0]]
    assert vocabulary_lookup(words, vocabulary).numpy().tolist() == expected
    mapped = tw.vectorized_map(lambda row: vocabulary_lookup(row, vocabulary), words)
    assert mapped.numpy().tolist() == expected
    rows = tw.strings.split(["b x b y", ""])._tw_packed
    x, y = vocabulary_lookup(["x", "y"], vocabulary, num_buckets=3).numpy()
    expected = np.bincount([1, x, 1, y], minlength=5)
    counts = vocabulary_counts(rows, vocabulary, 2, num_buckets=3)
    assert counts.numpy().tolist() == [expected.tolist(), [0] * 5]
    none = tw.strings.split(tw.constant([], "string"))._tw_packed
    assert vocabulary_counts(none, vocabulary, 2).shape == (0, 3)
    with pytest.raises(ValueError, match="b'x', b'y'.*num_oov_indices=1"):
        vocabulary_lookup(words, vocabulary, num_buckets=0)
    ids = [tw.constant([[1], [2]], tw.int64), tw.constant([3, -4], tw.int64)]
    crossed = hashed_cross(ids, num_buckets=50)
    assert crossed.numpy().tolist() == CROSSED
    mapped = tw.vectorized_map(
        lambda x: hashed_cross([x, ids[1]], num_buckets=50), ids[0]
    )
    assert mapped.numpy().tolist() == CROSSED


def test_ops_entry_by_entry_keep_the_rows_of_ragged_strings():
    rows = tw.strings.split(["1 22", "3"])
    found = tw.strings.join([[["a"], ["b"]], rows, "c"], separator="-")
    assert found.to_list() == [[b"a-1-c", b"a-22-c"], [b"b-3-c"]]
    assert tw.strings.to_number(rows, tw.int32).to_list() == [[1, 22], [3]]
    assert tw.strings.regex_replace(rows, "2", "x").to_list() == [[b"1", b"xx"], [b"3"]]
    with pytest.raises(ValueError, match="same lengths"):
        tw.strings.join([rows, tw.strings.split(["1", "2 3"])])


def test_rows_of_strings_in_a_traced_function_have_the_width_that_is_asked_for():
    def f(texts):
        return tw.strings.split(texts).to_tensor("-", shape=(None, width))

    texts, width = tw.constant(["a b", "c"]), 3
    traced = tw.function(f)
    graph = traced.get_concrete_function(tw.TensorSpec([None], "string")).graph
    assert graph.outputs[0].shape == (None, 3)
    assert traced(texts).numpy().tolist() == [[b"a", b"b", b"-"], [b"c", b"-", b"-"]]
    width = None  # by default as long as the longest row
    assert tw.function(f)(texts).numpy().tolist() == [[b"a", b"b"], [b"c", b"-"]]


def test_regular_expressions_take_linear_time():
    text = "a" * 20_000
    for pattern in ("(a+)+$", "(a|aa)+$", "(?:a?){300}a{300}"):
        assert not tw.strings.regex_full_match(text + "!", pattern).numpy()
    assert tw.strings.regex_full_match(text, "(a|aa)+").numpy()
    replaced = tw.strings.regex_replace(" " * 20_000 + "x" + " " * 20_000, r"\s+$", "")
    assert replaced.numpy() == b" " * 20_000 + b"x"


def test_groups_of_long_texts_are_replaced_as_those_of_short_ones():
    rows = [f"key{n}={n * n};" for n in range(500)]
    pattern, rewrite = r"(\w+?)(\d+)=(\d*);", r"\2:\3 \1,"
    short = [tw.strings.regex_replace(row, pattern, rewrite).numpy() for row in rows]
    assert short[12] == b"12:144 key,"
    whole = tw.strings.regex_replace("".join(rows), pattern, rewrite).numpy()
    assert whole == b"".join(short)


def test_bytes_that_are_no_characters_take_linear_time():
    rng = np.random.default_rng(0)
    parts = [
        b"a",
        "ä".encode(),
        "€".encode(),
        "😀".encode(),
        b"\xff",
        b"\xe2\x82",
        b"\x80",
    ]
    text = b"".join([parts[i] for i in rng.integers(0, len(parts), 30_000)])
    for encoding in ("UTF-8", "UTF-16-BE", "US-ASCII"):
        codec = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "US-ASCII": "ascii"}[
            encoding
        ]
        for errors in ("replace", "ignore"):
            found = tw.strings.unicode_transcode(text, encoding, "UTF-8", errors)
            assert found.numpy().decode() == text.decode(codec, errors), encoding
    whole = "ä€😀a" * 5000  # characters at all places of a window, one error in front
    found = tw.strings.unicode_transcode(b"\xff" + whole.encode(), "UTF-8", "UTF-8")
    assert found.numpy().decode() == "\ufffd" + whole
    codes, offsets = tw.strings.unicode_decode_with_offsets(b"\xff" * 50_000, "UTF-8")
    assert offsets.numpy().tolist() == list(range(50_000))
    assert set(codes.numpy().tolist()) == {65533}


def test_numbers_of_too_many_digits_are_refused():
    with pytest.raises(
        tw.errors.InvalidArgumentError, match="is not a number of type int64"
    ):
        tw.strings.to_number("1" * 5000, tw.int64)
    assert tw.strings.to_number("0" * 3000 + "7", tw.int64).numpy() == 7


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),  # from TensorFlow; Python's `re` finds shorter ones
    [
        ("(?:(a?|b*))+", "ab\n\naa a", "<ab>\n<>\n<aa> <a>"),
        ("(?:(?:(a?|.))+)+", "\n aabaa\n", "<>\n<> <aabaa>\n<>"),
        ("(?:(?:(a?|[ab]))+)+?", "aa\naaabb", "<aa>\n<aaabb>"),
    ],
)
def test_repetitions_of_what_may_be_empty_match_as_in_re2(pattern, text, wanted):
    found = tw.strings.regex_replace(text, pattern, r"<\0>")
    assert found.numpy().decode() == wanted
