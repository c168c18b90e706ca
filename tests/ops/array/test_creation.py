"""Tensors made from a shape: values, dtypes, what they refuse."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, complexes, floats

CASES = [
    case(lambda v: tw.fill((2, 3), v), floats(), expect=lambda v: np.full((2, 3), v),
         label="fill"),
    *[case(lambda a, b, axis=axis: tw.linspace(a, b, 4, axis=axis), a, b,
           expect=lambda a, b, axis=axis: np.linspace(a, b, 4, axis=axis),
           label=f"linspace {a.shape}, {b.shape}, axis {axis}")
      for a, b in ((floats(), floats()), (floats(2, 1), floats(3)), (complexes(2), complexes()))
      for axis in (0, -1)],
    *[case(lambda *v, indexing=indexing: tw.meshgrid(*v, indexing=indexing),
           floats(3), floats(2), floats(),
           expect=lambda *v, indexing=indexing: np.meshgrid(*v, indexing=indexing),
           label=f"meshgrid {indexing}") for indexing in ("xy", "ij")],
    case(lambda x: tw.meshgrid(x)[0], floats(2, 2), expect=np.ravel, label="meshgrid alone"),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_values_and_ends_get_their_gradients(c):
    check_op(c)


MADE = [
    (lambda: tw.zeros((2, 3)), np.zeros((2, 3), "float32")),
    (lambda: tw.zeros([tw.constant(2), 1], "int64"), np.zeros((2, 1), "int64")),
    (lambda: tw.zeros(3), np.zeros(3, "float32")),
    (lambda: tw.ones((), tw.float64), np.ones(())),
    (lambda: tw.zeros_like([1, 2]), np.zeros(2, "int32")),
    (lambda: tw.ones_like([1.0, 2.0], dtype="float64"), np.ones(2)),
    (lambda: tw.fill((2,), 7), np.array([7, 7], "int32")),
    (lambda: tw.eye(2), np.eye(2, dtype="float32")),
    (lambda: tw.eye(2, 3, dtype=tw.float64), np.eye(2, 3)),
    (lambda: tw.eye(2, batch_shape=[3]), np.stack([np.eye(2, dtype="float32")] * 3)),
    (lambda: tw.linspace(0.0, 1.0, 3), np.array([0, 0.5, 1], "float32")),
    (lambda: tw.linspace([0.0, 1.0], [1.0, 3.0], 3),
     np.array([[0, 1], [0.5, 2], [1, 3]], "float32")),
    (lambda: tw.linspace(1, 2, 3), np.array([1.0, 1.5, 2.0])),
    (lambda: tw.range(3), np.arange(3, dtype="int32")),
    (lambda: tw.range(3, 0, -1), np.array([3, 2, 1], "int32")),
    (lambda: tw.range(1.0, 2.0, 0.25), np.array([1, 1.25, 1.5, 1.75], "float32")),
    (lambda: tw.range(2, dtype="int64"), np.arange(2)),
    (lambda: tw.range(0), np.zeros(0, "int32")),
    (lambda: tw.range(5.5), np.arange(6, dtype="float32")),
    (lambda: tw.range(7, 0, -3), np.array([7, 4, 1], "int32")),
    (lambda: tw.range(0, 7, tw.constant(3, tw.int64)), np.array([0, 3, 6])),
    (lambda: tw.range(2**62, 2**62 + 2, dtype="int64"), np.array([2**62, 2**62 + 1])),
    (lambda: tw.range(3, dtype="uint8"), np.arange(3, dtype="uint8")),
    (lambda: tw.range(3, dtype="float16"), np.arange(3, dtype="float16")),
    (lambda: tw.sequence_mask([1, 0, 2]),
     np.array([[True, False], [False, False], [True, True]])),
    (lambda: tw.sequence_mask([1, 3], 2, tw.float32), np.array([[1, 0], [1, 1]], "float32")),
    (lambda: tw.sequence_mask([[1], [2]]), np.array([[[True, False]], [[True, True]]])),
    (lambda: tw.sequence_mask(2, 3), np.array([True, True, False])),
    (lambda: tw.sequence_mask([]), np.zeros((0, 0), bool)),
    (lambda: tw.sequence_mask(tw.constant([200], tw.uint8), 300, tw.int32),
     (np.arange(300) < 200).astype("int32")[None]),
    (lambda: tw.sequence_mask([1.0, 1.5]), np.array([[True], [True]])),
]  # fmt: skip


@pytest.mark.parametrize("make, wanted", MADE)
def test_what_is_made_is_as_in_numpy(make, wanted):
    made = make().numpy()
    assert made.dtype == wanted.dtype
    np.testing.assert_array_equal(made, wanted)


HUGE = 10**6
BEYOND_MEMORY = {
    "zeros": lambda: tw.zeros([HUGE, HUGE]),
    "ones": lambda: tw.ones([HUGE, HUGE]),
    "fill": lambda: tw.fill([HUGE, HUGE], 1.0),
    "constant": lambda: tw.constant(1.0, shape=[HUGE, HUGE]),
    "eye": lambda: tw.eye(HUGE),
    "range": lambda: tw.range(HUGE**2),
    "linspace": lambda: tw.linspace(0.0, 1.0, HUGE**2),
    "meshgrid": lambda: tw.meshgrid(tw.ones([HUGE]), tw.ones([HUGE])),
    "tile": lambda: tw.tile([[1.0]], [HUGE, HUGE]),
    "repeat": lambda: tw.repeat(tw.ones([HUGE]), HUGE),
    "broadcast_to": lambda: tw.broadcast_to([1.0], [HUGE, HUGE]),
    "add": lambda: tw.ones([HUGE, 1]) + tw.ones([1, HUGE]),
    "matmul": lambda: tw.matmul(tw.ones([HUGE, 1]), tw.ones([1, HUGE])),
    "gather": lambda: tw.gather(tw.ones([1, HUGE]), tw.zeros([HUGE], "int32")),
    "diag": lambda: tw.linalg.diag(tw.ones([HUGE])),
    "one_hot": lambda: tw.one_hot(tw.zeros([HUGE], "int32"), HUGE),
    "pad": lambda: tw.pad([[1.0]], [[HUGE, 0], [0, HUGE]]),
    "sequence_mask": lambda: tw.sequence_mask([1], HUGE**2),
    "normal": lambda: tw.random.normal([HUGE, HUGE]),
    "uniform": lambda: tw.random.uniform([HUGE, HUGE]),
    "stateless": lambda: tw.random.stateless_uniform([HUGE, HUGE], [1, 2]),
    "scatter_nd": lambda: tw.scatter_nd([[0]], [1.0], [HUGE**2]),
    "segment": lambda: tw.math.unsorted_segment_sum([1.0], [0], HUGE**2),
    "bincount": lambda: tw.math.bincount([1], minlength=HUGE**2),
    "rfft": lambda: tw.signal.rfft([1.0], [HUGE**2]),
    "resize": lambda: tw.image.resize(tw.ones([1, 2, 2, 1]), [1610637938] * 2),
    "beyond 64 bits": lambda: tw.zeros([2**62, 2**62]),
}


@pytest.mark.parametrize("call", BEYOND_MEMORY.values(), ids=BEYOND_MEMORY)
def test_sizes_beyond_memory_are_refused_at_once(call):
    with pytest.raises(tw.errors.ResourceExhaustedError) as caught:
        call()
    assert isinstance(caught.value, MemoryError)
    with pytest.raises((tw.errors.ResourceExhaustedError, tw.errors.TracingError)):
        tw.function(call)()


def test_a_traced_function_is_refused_what_its_arguments_would_make_too_large():
    f = tw.function(lambda x, y: tw.reduce_sum(x * y))
    with pytest.raises(tw.errors.ResourceExhaustedError, match="multiply"):
        f(tw.ones([HUGE, 1]), tw.ones([1, HUGE]))
    assert f(tw.ones([2, 1]), tw.ones([1, 3])).numpy() == 6.0


def test_negative_sizes_are_refused():
    for call in (tw.zeros, tw.ones, lambda n: tw.eye(n[0]), lambda n: tw.fill(n, 1)):
        with pytest.raises(tw.errors.InvalidArgumentError, match="-1"):
            call([-1])


def test_the_values_of_a_range_are_each_rounded_once():
    wanted = (1000 + np.float64(np.float32(0.1)) * np.arange(10)).astype(np.float32)
    np.testing.assert_array_equal(tw.range(1000.0, 1001.0, 0.1).numpy(), wanted)


def test_a_grid_of_nothing_is_an_empty_list():
    assert tw.meshgrid() == []


def test_the_last_value_of_a_line_is_exactly_stop():
    line = tw.linspace(0.0, 0.1, 7).numpy()
    assert line[-1] == np.float32(0.1)


@pytest.mark.parametrize("call, message", [
    (lambda: tw.fill((2,), [1.0, 2.0]), "scalar"),
    (lambda: tw.linspace(0.0, 1.0, 0), "num .*1.*got 0"),
    (lambda: tw.range(0, 3, 0), "delta .*0"),
    (lambda: tw.range(3, 0), "start .*1.*got start 3 and limit 0"),
    (lambda: tw.range(0, 3, -1), "start .*-1.*got start 0 and limit 3"),
    (lambda: tw.linspace([0.0, 1.0], [0.0, 1.0, 2.0], 3), "linspace: .* do not broadcast"),
    (lambda: tw.linspace(0.0, 1.0, 3, axis=1), "axis .*-1.*0.*got 1"),
    (lambda: tw.meshgrid([1], indexing="yx"), "indexing .*'xy'.*'ij'.*got 'yx'"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_made_tensors_are_constants():
    x = tw.constant([1.0, 2.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.zeros_like(x) + tw.ones_like(x)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize(
    "limits", [(3.0,), (0, 1.0, 0.25), (1.0, 3.0)], ids=["limit", "step", "both"]
)
def test_a_range_of_python_floats_is_single_precision(limits):
    assert tw.range(*limits).dtype == tw.float32


# (start, limit, delta), and how many entries TensorFlow makes of them, with the last.
COUNTS = [
    ((-2.0, 1.0, np.float32(3 / 800)), 800, 0.9962499),
    ((0.1, 1.1, 0.1), 10, 1.0),
    ((0.0, 1.0, 0.1), 10, 0.90000004),
    ((1.0, 0.0, -0.1), 10, 0.099999964),
    ((0.0, 1e-8, 1e-9), 10, 9e-9),
    ((0.0, 7.0, 0.7), 10, 6.2999997),
    ((np.float16(0), np.float16(1), np.float16(0.1)), 10, 0.9),
    ((np.float64(0), np.float64(1), np.float64(0.1)), 10, 0.9),
    ((0, 1, 0.25), 4, 0.75),
    ((5, 0, -2), 3, 1),
]


@pytest.mark.parametrize(("given", "count", "last"), COUNTS)
def test_a_range_has_as_many_entries_as_in_tensorflow(given, count, last):
    found = tw.range(*given).numpy()
    assert len(found) == count and found[-1] == found.dtype.type(last)


@pytest.mark.parametrize("given", [(np.nan, 5.0), (0.0, np.inf), (0.0, 5.0, np.nan)])
def test_a_range_without_end_is_refused(given):
    with pytest.raises(ValueError, match="finite"):
        tw.range(*given)


# Of a number that is traced.
SIZED = [
    lambda n: sum(tw.range(n)),
    tw.range,
    lambda n: tw.range(0.0, 1.0, 1 / n),
    lambda n: tw.zeros([n, 2]),
    lambda n: tw.linspace(0.0, 1.0, n),
    lambda n: tw.sequence_mask([1, 2], n),
    lambda n: tw.sequence_mask([n, 1]),
    lambda n: tw.reshape(tw.range(12), [n, -1]),
    lambda n: tw.range(9)[n:],
    lambda n: tw.random.uniform([n], seed=3),
]


def test_sizes_of_traced_numbers_run_eagerly_or_tell_what_to_do():
    n = tw.constant(3)
    for use in SIZED:
        traced = tw.function(use)
        tw.random.set_seed(1)
        wanted = use(n)
        tw.random.set_seed(1)
        np.testing.assert_array_equal(traced(n), wanted)
    with pytest.raises(tw.errors.TracingError, match="tw.while_loop"):
        tw.function(tw.range).get_concrete_function(n)


def test_linspace_passes_gradients_to_its_ends():
    start, stop = tw.Variable(1.0), tw.Variable(3.0)
    with tw.GradientTape() as tape:
        line = tw.linspace(start, stop, 5)
    weights = tw.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    found = tape.gradient(line, [start, stop], output_gradients=weights)
    shares = np.linspace(0, 1, 5)
    expected = [
        (weights.numpy() * (1 - shares)).sum(),
        (weights.numpy() * shares).sum(),
    ]
    np.testing.assert_allclose([float(g) for g in found], expected, rtol=1e-6)


def test_linspace_meets_its_ends_and_its_middle_exactly():
    line = tw.linspace(-10.0, 10.0, 201).numpy()
    assert (line[0], line[100], line[200]) == (-10.0, 0.0, 10.0)
    np.testing.assert_allclose(line, np.linspace(-10, 10, 201), rtol=1e-6, atol=1e-6)
