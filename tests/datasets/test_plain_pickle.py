"""Pickles of plain data, as Python 2 and 3 write them, and those that are refused."""

import os
import pickle

import numpy as np
import pytest

from tapewright.datasets.plain_pickle import read_pickle

from .python2_pickles import encode, python2_pickle

PLAIN = [0, 255, 256, 65536, -1, -(2**31), 2**40, -(2**70), None, True, False, "é" * 300,
         b"b" * 300, [], {}, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [[1], [2, [3]]],
         {"a": 1, b"b": [2]}]  # fmt: skip
ARRAYS = [np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(6.0).reshape(3, 2),
          np.asfortranarray(np.arange(6).reshape(2, 3)), np.array([1, 2], ">i4"),
          np.array(7, np.int16), np.zeros((0, 4), np.float32), np.array([True])]  # fmt: skip


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_plain_data_and_arrays_are_read(protocol):
    assert read_pickle(pickle.dumps(PLAIN, protocol)) == PLAIN
    same = [1, 2]
    twice = read_pickle(pickle.dumps([same, same], protocol))
    assert twice == [same, same] and twice[0] is twice[1]
    for array in ARRAYS if protocol < 5 else ():
        found = read_pickle(pickle.dumps(array, protocol))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_an_array_of_objects_is_a_list():
    rows = np.empty(2, object)
    rows[:] = [[1, 2], [3]]
    for protocol in (3, 4, 5):
        assert read_pickle(pickle.dumps(rows, protocol)) == [[1, 2], [3]]


def test_pickles_of_python_2_have_strings_of_bytes():
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)
    found = read_pickle(python2_pickle({"data": array, "labels": [3, 300, -1]}))
    assert found.keys() == {b"data", b"labels"} and found[b"labels"] == [3, 300, -1]
    np.testing.assert_array_equal(found[b"data"], array)
    assert pickle.loads(python2_pickle({"data": array}), encoding="bytes").keys() == {
        b"data"
    }


class Runs:
    """Unpickled by Python, it makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_code_in_a_pickle_never_runs(tmp_path, protocol):
    content = pickle.dumps([1, Runs(tmp_path / "made")], protocol)
    with pytest.raises(ValueError, match="a pickle that (references|holds more)"):
        read_pickle(content)
    assert not (tmp_path / "made").exists()
    pickle.loads(content)  # which would run it
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cnumpy\nload\n(U\x01xtR.", "references numpy.load"),
        (b"cnumpy\ndtype\n(U\x02u1tR(tb.", "values to unpack"),
        (b"cnumpy\nndarray\n(K\x05tR.", "a call of numpy.ndarray"),
        (b"cnumpy._core.multiarray\n_reconstruct\n(K\x01tR.", "a call of numpy._core"),
        (b"\x80\x02cos\nsystem\n\x81.", "references os.system"),
        (b"\x80\x02K\x01)R.", "damaged.*'int'.*'call'"),
        (b"\x80\x02]K\x01b.", "damaged.*'list'.*'build'"),
        (b"\x80\x02K\x01P1\n.", r"opcode b'P'"),
        (b"\x80\x02(K\x01i\nos\nsystem\n.", r"opcode b'i'"),
        (b"\x80\x02\x82\x01.", r"opcode b'\\x82'"),
        (b"\x80\x02}]K\x01s.", "not a dict with strings"),
        (b"\x80\x02K\x01]a.", "no list to append"),
        (b"\x80\x02K\x01\x86.", "too few values"),
        (b"\x80\x02h\x07.", "damaged.*KeyError"),
        (b"\x80\x02t.", "damaged.*IndexError"),
        (b"\x80\x02T\xff\xff\xff\x7fab.", "ends early, at byte"),
        (b"\x80\x02K\x01K\x02.", "too many values"),
        (b"", "damaged"),
        (b"\x80\x02K", "damaged"),
    ],
)
def test_other_opcodes_and_damage_are_refused(content, message):
    with pytest.raises(ValueError, match=message):
        read_pickle(content)


def array_pickle(code="u1", shape=(2,), data=b"ab", record=None):
    """The pickle of an array with these parts, right or wrong."""
    reconstruct = b"cnumpy.core.multiarray\n_reconstruct\n"
    array = reconstruct + b"(cnumpy\nndarray\n" + encode((0,)) + encode("b") + b"tR"
    dtype = b"cnumpy\ndtype\n" + encode((code, 0, 1)) + b"R"
    dtype += encode((3, "|", None, record, None, -1, -1, 0)) + b"b"
    state = b"(K\x01" + encode(shape) + dtype + b"\x89" + encode(data) + b"t"
    return b"\x80\x02" + array + state + b"b."


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"data": b"abc"}, r"shape \(2,\).* of another size"),
        ({"shape": (-2,)}, r"shape \(-2,\)"),
        ({"shape": (1 << 62,)}, "of another size"),
        ({"code": "V2"}, "dtype 'V2'"),
        ({"code": "O8"}, "array of objects"),
        ({"code": "O8", "data": [1]}, "array of objects"),
        ({"data": [1, 2]}, "of another size"),
        ({"record": ("a",)}, "records"),
    ],
)
def test_arrays_that_contradict_themselves_are_refused(parts, message):
    assert read_pickle(array_pickle()).tolist() == [97, 98]
    with pytest.raises(ValueError, match=message):
        read_pickle(array_pickle(**parts))


def test_any_damaged_byte_gives_a_value_or_a_value_error():
    content = pickle.dumps([np.arange(3, dtype=np.uint8), {"a": [1, 300]}], 4)
    for position in range(len(content)):
        for byte in (0, 0x28, 0x52, 0x62, 0x75, 0xFF):
            changed = content[:position] + bytes([byte]) + content[position + 1 :]
            try:
                read_pickle(changed)
            except ValueError:
                pass
