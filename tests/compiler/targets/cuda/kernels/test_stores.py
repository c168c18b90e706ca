"""Values that become those of variables, beside NumPy; copies of what is overwritten."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.cuda.kernels.stores import (
    PAIRS,
    StoreKernel,
    copy_steps,
    guarded,
)

from ..runtime_runs import both, executable_of

X = np.arange(6, dtype="f").reshape(2, 3)


class Setting:
    """Variables that programs store to."""

    def __init__(self):
        self.a = tw.Variable(X * 2)
        self.b = tw.Variable(X + 10)
        self.c = tw.Variable(-X)
        self.row = tw.Variable(tw.zeros([3]))


def swapped(s, x):
    a, b = s.a.read(), s.b.read()
    s.a.assign(b)
    s.b.assign(a)


def shifted(s, x):
    s.c.assign(s.b)
    s.b.assign(s.a)
    s.a.assign(x)


def shifted_the_other_way(s, x):
    s.a.assign(x)
    s.b.assign(s.a)
    s.c.assign(s.b * 2.0)


def read_before_and_after(s, x):
    before = s.a.read()
    s.a.assign(before * x)
    return before + s.a, before, s.a.read()


def rows_of_a_value(s, x):
    s.row.assign((x * 2.0)[1])


def rows_of_an_input(s, x):
    s.row.assign(x[1])


def a_transposed_value(s, x):
    s.a.assign(tw.reshape(tw.transpose(x * 3.0), [2, 3]))
    s.b.assign(tw.transpose(tw.reshape(x, [3, 2])))


def a_broadcast_value(s, x):
    s.a.assign(tw.broadcast_to(x[0], [2, 3]))
    s.b.assign(tw.zeros([2, 3]))


def the_same_value_twice(s, x):
    y = tw.exp(x)
    s.a.assign(y)
    s.b.assign(y)
    return y


def itself(s, x):
    s.a.assign(s.a)
    s.b.assign(s.b.read() + 0.0)


def assigned_several_times(s, x):
    s.a.assign(x)
    s.a.assign_add(s.b)
    y = s.a * 2.0
    s.a.assign(s.a - x)
    return y


def a_variable_returned(s, x):
    s.a.assign_add(x)
    return s.a


def part_of_the_old_value(s, x):
    old = s.a[0]
    s.a.assign(x)
    s.row.assign(old)
    return old * 2.0


PROGRAMS = [
    swapped, shifted, shifted_the_other_way, read_before_and_after, rows_of_a_value,
    rows_of_an_input, a_transposed_value, a_broadcast_value, the_same_value_twice, itself,
    assigned_several_times, a_variable_returned, part_of_the_old_value,
]  # fmt: skip


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_stores_are_those_of_numpy(program, held, gpu):
    def train():
        s, found, kept = Setting(), [], []
        step = tw.function(lambda x: program(s, x))
        for n in range(3):
            variables = [s.a, s.b, s.c, s.row]
            kept += [v.read() for v in variables] if held else []
            made = step(tw.constant(X + n))
            found += tw.nest.flatten(made) if made is not None else []
            found += [v.numpy() for v in variables]
        return [*found, *kept]

    both(train)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_no_launch_copies_from_where_it_copies_to(program, gpu):
    s = Setting()
    step = tw.function(lambda x: program(s, x))
    step(tw.constant(X))
    for segment in executable_of(step, tw.constant(X)).segments:
        memory = {"variable": "v", "stored": "v"}
        for launch in segment.steps:
            if "switch (pair)" not in getattr(launch, "body", ""):
                continue
            where = [(*_root(segment, p), p.is_written) for p in launch.parameters]
            to = {(memory.get(k, k), key) for k, key, is_written in where if is_written}
            of = {
                (memory.get(k, k), key)
                for k, key, is_written in where
                if not is_written
            }
            assert to.isdisjoint(of)


def _root(segment, parameter):
    root, offset = segment.addresses.where[parameter.position]
    return root.kind, (id(root.key), offset)


def test_an_empty_variable_is_stored_to_and_read(gpu):
    v = tw.Variable(tw.zeros([0, 3]))
    step = tw.function(lambda x: v.assign(v * 2.0 + x) is v and tw.reduce_sum(x) + 1.0)
    for _ in range(2):
        assert step(tw.zeros([0, 3])).numpy() == 1.0
    assert v.shape == (0, 3)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float64", "complex64"]
)
def test_variables_of_any_dtype_are_stored_to(dtype, gpu):
    values = np.array([[0, 1, 2], [3, 0, 1]]).astype(dtype)
    v = tw.Variable(tw.zeros([2, 3], dtype))
    step = tw.function(lambda x: v.assign(tw.reverse(x, [0])) is v and None)
    for _ in range(2):
        step(tw.constant(values))
        assert np.array_equal(v.numpy(), values[::-1])


def test_more_copies_than_one_launch_makes(gpu):
    variables = [tw.Variable(tw.zeros([3])) for _ in range(PAIRS + 5)]

    @tw.function
    def step(x):
        for n, v in enumerate(variables):
            v.assign(x + float(n))

    step(tw.ones([3]))
    step(tw.ones([3]))
    assert [v.numpy()[2] for v in variables] == [n + 1.0 for n in range(PAIRS + 5)]
    (segment,) = executable_of(step, tw.ones([3])).segments
    launches = [s for s in segment.steps if "switch (pair)" in s.body]
    assert len(launches) == 2


def test_nothing_is_launched_for_empty_arrays():
    assert copy_steps([(0, 1, np.zeros((0, 3), "f"))]) == []


def test_what_is_read_behind_a_store_is_copied_before_it(gpu):
    v = tw.Variable(tw.ones([3]))

    @tw.function
    def step(x):
        before = v.read()
        v.assign(x)
        return before * v

    step(tw.ones([3]) * 2.0)
    instructions = executable_of(step, tw.ones([3])).program.instructions
    assert [type(i) for i in instructions].count(StoreKernel) == 1
    v.assign([3.0, 4.0, 5.0])
    assert step(tw.constant([2.0, 3.0, 4.0])).numpy().tolist() == [6.0, 12.0, 20.0]


def test_a_guarded_launch_begins_with_a_look_at_the_status():
    (launch,) = copy_steps([(0, 1, np.zeros(3, "f"))])
    made = guarded(launch, 7)
    assert made.body.startswith("  if (p2[0] != 0) return;\n")
    assert made.parameters[-1].position == 7 and not made.parameters[-1].is_written
