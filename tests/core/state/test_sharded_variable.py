"""Variables divided among processes, in one process; several are in `tests/distribute`."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.communication.communicator import Communicator
from tapewright.core.hardware import devices
from tapewright.core.state.sharded_variable import (
    Shard,
    ShardedVariable,
    reading_own_parts,
    sharing,
    write_together,
)

VALUE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(autouse=True)
def on_the_host():
    with devices.use_module(np):
        yield


def part(start, stop):
    shard = Shard(VALUE.shape, start, stop)
    return ShardedVariable(shard.of(VALUE).copy(), shard, name="v")


@pytest.mark.parametrize(
    ("start", "stop", "shape"),
    [(0, 12, (4, 3)), (3, 9, (2, 3)), (2, 9, (7,)), (5, 5, (0,))],
)
def test_a_part_consists_of_rows_where_it_can(start, stop, shape):
    variable = part(start, stop)
    assert variable._array.shape == shape
    assert tuple(variable.shape) == (4, 3)
    assert variable.ndim == 2
    np.testing.assert_array_equal(variable._array.ravel(), VALUE.ravel()[start:stop])


def test_an_assignment_keeps_the_own_part():
    variable = part(2, 9)
    variable.assign(VALUE + 1)
    np.testing.assert_array_equal(variable._array, np.arange(3, 10))
    variable.assign_sub(tw.ones([4, 3]))
    np.testing.assert_array_equal(variable._array, np.arange(2, 9))
    variable._tw_bind_whole(VALUE * 2)
    np.testing.assert_array_equal(variable._array, np.arange(2, 9) * 2)
    with pytest.raises(tw.errors.ShapeError, match=r"has shape \(4, 3\)"):
        variable.assign(np.zeros(7, "f4"))
    with pytest.raises(tw.errors.DTypeError, match="has dtype float32"):
        variable.assign(tw.constant(VALUE, "float64"))
    with pytest.raises(tw.errors.ShapeError, match="shape of the part"):
        ShardedVariable(np.zeros(3, "f4"), Shard((4, 3), 2, 9))


def test_the_whole_value_is_read_except_in_a_step():
    variable = part(0, 12)
    np.testing.assert_array_equal(variable.numpy(), VALUE)
    small = part(3, 6)
    with reading_own_parts():
        np.testing.assert_array_equal(small.numpy(), VALUE[1:2])
    with pytest.raises(tw.errors.TracingError, match="outside of traced functions"):
        tw.function(lambda: small.read())()


def test_copies_are_divided_and_pickles_raise():
    variable = part(3, 9)
    twin = copy.deepcopy(variable)
    twin.assign(VALUE * 0)
    assert tuple(twin.shape) == (4, 3)
    assert variable._array.sum() == VALUE[1:3].sum()
    with pytest.raises(TypeError, match="'v' is divided among processes"):
        pickle.dumps(variable)
    assert "entries 3 to 9" in repr(variable)


def test_one_process_writes_as_usual():
    plain = [tw.Variable(1.0)]
    assert type(sharing(plain)) is Communicator
    for variables in (plain, [part(0, 12)]):
        assert write_together(variables, lambda: "path") == "path"
        with pytest.raises(OSError, match="full"):
            write_together(variables, _fail)


def _fail():
    raise OSError("full")
