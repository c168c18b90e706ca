"""Arguments of traced functions: which share a trace, what a trace keeps of them."""

import gc
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context

from .counting import Point, Thing, counted, ones, traces

# ------------------------------------------------------------------- kinds of arguments


def test_python_runs_once_for_tensors_of_one_shape_and_dtype():
    f = counted()
    assert traces(f, [ones(2)], [ones(2) * 3], [ones(3)], [ones(2)]) == [1, 0, 1, 0]


def test_a_replay_computes_with_the_tensors_of_its_own_call():
    f = tw.function(lambda x: x * x + 1.0)
    assert [f(tw.constant(float(n))).numpy() for n in range(4)] == [1, 2, 5, 10]


def test_dtypes_tell_tensors_apart():
    f = counted()
    assert traces(f, [ones(2)], [ones(2, dtype="float64")], [ones(2)]) == [1, 1, 0]


def test_numbers_are_told_apart_by_type_and_value():
    f = counted()
    calls = [[1], [1.0], [True], [1], [2], [1.0], [1j], ["1"], [b"1"], [None], [None]]
    assert traces(f, *calls) == [1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0]


def test_negative_zero_is_not_zero_and_nan_is_nan():
    f = counted()
    calls = [[0.0], [-0.0], [float("nan")], [float("nan")], [0.0]]
    assert traces(f, *calls) == [1, 1, 1, 0, 0]


def test_numpy_arrays_and_scalars_are_tensors():
    f = counted()
    calls = [[np.ones(2, np.float32)], [ones(2)], [np.float32(3)], [tw.constant(1.0)]]
    assert traces(f, *calls) == [1, 0, 1, 0]


def test_a_numpy_array_that_changes_is_read_in_every_call():
    f = tw.function(lambda x: x + 1)
    x = np.zeros(2)
    first = f(x)
    x[:] = 5
    assert f(x).numpy().tolist() == [6, 6]
    assert first.numpy().tolist() == [1, 1]


def test_nests_of_arguments_are_walked():
    @tw.function
    def f(nest):
        return nest["a"][0] + nest["b"].y * nest["c"]

    nest = {"a": [ones(2)], "b": Point(1, ones(2)), "c": 3.0}
    assert f(nest).numpy().tolist() == [4, 4]
    assert f({"c": 3.0, "b": Point(1, ones(2)), "a": [ones(2)]}).numpy()[0] == 4
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.filterwarnings("ignore:function 'nesting' was traced")
def test_tuples_of_the_same_tensors_are_told_apart_at_every_call():
    @tw.function
    def nesting(*args):
        return tw.constant(str(tw.nest.map_structure(lambda _: 0, args)))

    a, b = tw.constant(1.0), tw.constant(2.0)
    calls = [(a, b), ((a, b),), ((a,), b), (a, (b,)), ((a,), (b,)), (((a, b),),)]
    calls += [((a, 1), b), ((a, 2), b), ((a, True), b), ((a,), 1, b)]
    first = [nesting(*args).numpy() for args in calls]
    assert len(set(first[:6])) == 6
    assert [nesting(*args).numpy() for args in calls] == first
    assert nesting.experimental_get_tracing_count() == len(calls)
    swapped = tw.function(lambda pair: pair[0] - pair[1])
    for _ in range(2):
        assert [swapped((a, b)).numpy(), swapped((b, a)).numpy()] == [-1, 1]


def test_the_kind_of_container_matters():
    f = counted()
    calls = [[[1, 2]], [(1, 2)], [Point(1, 2)], [{"a": 1}], [{"b": 1}], [[1, 2]]]
    assert traces(f, *calls) == [1, 1, 1, 1, 1, 0]


def test_slices_sets_and_ranges_count_by_what_they_hold():
    f = counted()
    calls = [[slice(1)], [slice(2)], [slice(1)], [{1}], [{2}], [{1}], [range(2)], [...]]
    assert traces(f, *calls) == [1, 1, 0, 1, 1, 0, 1, 1]


def test_variables_are_known_by_identity():
    f = tw.function(lambda v: v.assign_add(1.0) * 1.0)
    a, b = tw.Variable(1.0), tw.Variable(10.0)
    assert [f(a).numpy(), f(b).numpy(), f(a).numpy()] == [2, 11, 3]
    assert f.experimental_get_tracing_count() == 2


def test_objects_are_known_by_identity():
    f, a, b = counted(), Thing(), Thing()
    assert traces(f, [a], [b], [a], [b]) == [1, 1, 0, 0]


def test_a_trace_does_not_keep_an_object_and_goes_with_it():
    f, thing = counted(), Thing()
    f(thing, ones(1))
    alive = weakref.ref(thing)
    f.seen.clear()
    del thing
    assert alive() is None
    assert not f._concrete


def test_a_new_object_in_the_place_of_an_old_one_is_another():
    f = counted()
    made = 0
    for _ in range(8):
        thing = Thing()
        made += traces(f, [thing])[0]
        f.seen.clear()
        del thing
    assert made == 8


def test_an_object_that_cannot_be_referred_to_weakly_counts_by_its_value():
    f = counted()
    assert traces(f, [np.dtype("f4")], [np.dtype("f8")], [np.dtype("f4")]) == [1, 1, 0]


def test_indexed_slices_go_in_and_out():
    @tw.function
    def f(slices):
        return tw.IndexedSlices(slices.values * 2.0, slices.indices, slices.dense_shape)

    slices = tw.IndexedSlices(ones(1, 2), tw.constant([1]), (3, 2))
    doubled = tw.convert_to_tensor(f(slices))
    assert doubled.numpy().tolist() == [[0, 0], [2, 2], [0, 0]]
    f(tw.IndexedSlices(ones(1, 2) * 5.0, tw.constant([0]), (3, 2)))
    assert f.experimental_get_tracing_count() == 1


def test_slices_whose_dense_shape_is_a_tensor_pass_through_nested_functions():
    ranks = []

    @tw.function
    def inner(slices):
        ranks.append(slices.shape.rank)
        return tw.IndexedSlices(slices.values * 2.0, slices.indices, slices.dense_shape)

    slices = tw.IndexedSlices(ones(1, 2), tw.constant([1]), tw.constant([3, 2]))
    found = tw.function(lambda slices: inner(slices))(slices)
    np.testing.assert_array_equal(found.values.numpy(), [[2.0, 2.0]])
    np.testing.assert_array_equal(found.dense_shape.numpy(), [3, 2])
    assert ranks == [2]


def test_a_spec_is_no_argument_of_a_call():
    with pytest.raises(TypeError, match="get_concrete_function"):
        tw.function(lambda x: x)(tw.TensorSpec([2]))


def test_objects_that_convert_to_arrays_are_tensors():
    class Column:
        """It stands for a Series of pandas."""

        def __init__(self, values):
            self.values = np.float32(values)

        def __array__(self, dtype=None, copy=None):
            return self.values

    doubled = tw.function(lambda x, y: x + y["column"] * 2)
    column = Column([1, 2])
    np.testing.assert_array_equal(doubled(column, {"column": column}), [3, 6])
    column.values += 1
    np.testing.assert_array_equal(doubled(column, {"column": column}), [6, 9])
    assert doubled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("shape", [None, [4, 2]])
def test_slices_with_or_without_a_shape_are_arguments(shape):
    def slices():
        dense = None if shape is None else tw.constant(shape)
        return tw.IndexedSlices(
            tw.constant([[1.0, 2.0], [3.0, 4.0]]), tw.constant([0, 2]), dense
        )

    v, rule = tw.Variable(tw.ones([4, 2])), tw.optimizers.SGD(1.0)

    @tw.function
    def step(gradient):
        rule.apply_gradients([(gradient, v)])
        return gradient

    returned = step(slices())
    assert returned.values.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert returned.indices.numpy().tolist() == [0, 2]
    assert v.numpy().tolist() == [[0.0, -1.0], [1.0, 1.0], [-2.0, -3.0], [1.0, 1.0]]
    concrete = step.get_concrete_function(slices())
    concrete(slices())
    assert v.numpy()[0].tolist() == [-1.0, -3.0]


# ------------------------------------------------------------------- what a trace keeps


def test_an_array_of_the_caller_is_not_kept():
    v, x = tw.Variable(np.zeros(2)), np.ones(2)
    same = tw.function(lambda x: [x, tw.reshape(x, [2, 1]), x + 0.0])

    @tw.function
    def keep(x):
        v.assign(x)

    first, second, third = same(x)
    keep(x)
    x[:] = 7
    for kept in (first, second, third, v):
        assert kept.numpy().ravel().tolist() == [1, 1]


def test_a_trace_for_all_sizes_keeps_no_argument():
    f = tw.function(lambda x, thing: x + 1.0, reduce_retracing=True)
    thing = Thing()
    alive = weakref.ref(thing)
    for n in (2, 3, 4):
        x = ones(n)
        f(x, thing)
    del thing
    gc.collect()
    assert alive() is None


# --------------------------------------------------------------------- replica contexts


def test_a_replica_context_has_traces_of_its_own_for_each_share():
    loss = tw.losses.MeanSquaredError()
    f = tw.function(lambda x: loss([[0.0]], x))
    x = tw.constant([[2.0]])
    contexts = [
        (None, 4.0),
        (ReplicaContext(2, 0, 0.25), 1.0),
        (ReplicaContext(2, 0, tw.constant(0.75)), 3.0),
        (ReplicaContext(2, 1, 0.5, is_idle=True), 0.0),
    ]
    for _ in range(3):  # traced; replayed; by the fast path
        for context, expected in contexts:
            with in_replica_context(context):
                assert f(x).numpy() == expected
    assert f.experimental_get_tracing_count() == len(contexts)


def test_a_function_in_a_trace_takes_the_share_that_is_an_argument_there():
    loss = tw.losses.MeanSquaredError()
    inner = tw.function(lambda x: loss([[0.0]], x))

    @tw.function
    def outer(x, share):
        with in_replica_context(ReplicaContext(2, 0, share)):
            return inner(x)

    x = tw.constant([[2.0]])
    assert inner(x).numpy() == 4.0
    for share in 0.25, 0.75:
        assert outer(x, tw.constant(share)).numpy() == 4.0 * share
    assert outer.experimental_get_tracing_count() == 1
