"""`tw.compat`: text and bytes; the values are TensorFlow's."""

from pathlib import Path

import pytest

from tapewright import compat


@pytest.mark.parametrize(
    "function, value, result",
    [
        ("as_bytes", "aé", b"a\xc3\xa9"),
        ("as_bytes", b"a\xc3\xa9", b"a\xc3\xa9"),
        ("as_bytes", bytearray(b"x"), b"x"),
        ("as_text", b"a\xc3\xa9", "aé"),
        ("as_text", "aé", "aé"),
        ("as_str", b"x", "x"),
        ("as_str_any", b"x", "x"),
        ("as_str_any", bytearray(b"x"), "bytearray(b'x')"),
        ("as_str_any", None, "None"),
        ("path_to_str", Path("a") / "b", str(Path("a") / "b")),
        ("path_to_str", b"a", b"a"),
        ("dimension_value", None, None),
    ],
)
def test_text_and_bytes_become_one_another(function, value, result):
    found = getattr(compat, function)(value)
    assert found == result and type(found) is type(result)


@pytest.mark.parametrize(
    "function, value", [("as_bytes", 3), ("as_text", bytearray(b"x"))]
)
def test_what_is_neither_text_nor_bytes_is_refused(function, value):
    with pytest.raises(TypeError, match=f"{function}: expected bytes or a str, got"):
        getattr(compat, function)(value)


def test_encodings_other_than_utf8_are_taken():
    assert compat.as_bytes("é", "latin-1") == b"\xe9"
    assert compat.as_text(b"\xe9", encoding="latin-1") == "é"
