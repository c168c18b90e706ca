"""`TensorArray`: elements written and read, in loops and branches, and their gradients."""

import numpy as np
import pytest

import tapewright as tw


def test_elements_that_were_never_written_are_zero():
    array = tw.TensorArray("float32", size=3)
    array.write(0, 1.0)
    array.write(2, 3.0)
    np.testing.assert_array_equal(array.stack().numpy(), [1.0, 0.0, 3.0])


def test_an_array_grows_only_if_it_may():
    grows = tw.TensorArray("float32", size=0, dynamic_size=True)
    np.testing.assert_array_equal(grows.write(2, 5.0).stack().numpy(), [0.0, 0.0, 5.0])
    with pytest.raises(IndexError, match="index .*0.*1.*got 5"):
        tw.TensorArray("float32", size=2).write(5, 1.0)


def test_elements_have_one_dtype_and_shape():
    array = tw.TensorArray("float32", size=2, element_shape=(2,))
    with pytest.raises(ValueError, match="elements .*shape"):
        array.write(0, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="dtype .*float32"):
        array.write(0, tw.constant([1, 2]))


def test_the_other_ways_in_and_out():
    array = tw.TensorArray("float32", size=3)
    np.testing.assert_array_equal(
        array.unstack([[1.0], [2.0], [3.0]]).concat().numpy(), [1.0, 2.0, 3.0]
    )
    array = tw.TensorArray("float32", size=3).unstack([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(array.gather([2, 0]).numpy(), [3.0, 1.0])
    assert array.read(1).numpy() == 2.0 and array.size().numpy() == 3
    array = tw.TensorArray("float32", size=3).scatter([2, 0], [1.0, 2.0])
    np.testing.assert_array_equal(array.stack().numpy(), [2.0, 0.0, 1.0])
    array = tw.TensorArray("float32", size=2, infer_shape=False)
    parts = array.split([1.0, 2.0, 3.0], [1, 2])
    np.testing.assert_array_equal(parts.concat().numpy(), [1.0, 2.0, 3.0])


def test_gradients_pass_through_an_array():
    x = tw.Variable([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        array = tw.TensorArray("float32", size=3).unstack(x)
        array.write(1, array.read(0) * 10.0)
        y = tw.reduce_sum(array.stack() * [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(
        tw.convert_to_tensor(tape.gradient(y, x)).numpy(), [21.0, 0.0, 3.0]
    )


def test_fibonacci_in_an_array_that_is_read_and_written():
    @tw.function
    def f(n):
        array = tw.TensorArray("int32", size=10, element_shape=())
        array = array.write(0, 1).write(1, 1)
        return tw.while_loop(
            lambda i, a: i < n,
            lambda i, a: (i + 1, a.write(i, a.read(i - 1) + a.read(i - 2))),
            (2, array),
        )[1].stack()

    assert f(tw.constant(7)).numpy().tolist() == [1, 1, 2, 3, 5, 8, 13, 0, 0, 0]


def test_an_array_written_in_one_branch_does_not_show_in_the_other():
    @tw.function
    def f(x):
        array = tw.TensorArray("float32", size=2, element_shape=())
        array = tw.cond(x > 0.0, lambda: array.write(0, x), lambda: array.write(1, x))
        return array.stack()

    assert f(tw.constant(2.0)).numpy().tolist() == [2.0, 0.0]
    assert f(tw.constant(-2.0)).numpy().tolist() == [0.0, -2.0]


def test_a_function_in_which_a_traced_index_makes_an_array_grow_runs_eagerly():
    f = tw.function(
        lambda i: (
            tw.TensorArray("float32", size=0, dynamic_size=True).write(i, 1.0).stack()
        )
    )
    assert f(tw.constant(1)).numpy().tolist() == [0.0, 1.0]
    with pytest.raises(tw.errors.TracingError, match="cannot grow"):
        f.get_concrete_function(tw.constant(1))

    @tw.function
    def after_a_first_element(n):
        array = tw.TensorArray("float32", size=0, dynamic_size=True).write(0, 1.0)
        for i in tw.range(n):
            array = array.write(i + 1, array.read(i) * 2.0)
        return array.stack()

    assert after_a_first_element(tw.constant(2)).numpy().tolist() == [1.0, 2.0, 4.0]


def test_a_tensor_array_takes_parts_of_several_sizes():
    def parts(x):
        array = tw.TensorArray("float32", 3).split(x, [1, 0, 3])
        return [array.read(i) for i in range(3)], array.concat()

    x = tw.constant([1.0, 2.0, 3.0, 4.0])
    for f in (parts, tw.function(parts)):
        (first, none, rest), whole = f(x)
        assert first.numpy().tolist() == [1.0] and none.shape == (0,)
        assert rest.numpy().tolist() == [2.0, 3.0, 4.0]
        assert whole.numpy().tolist() == x.numpy().tolist()
    with pytest.raises(ValueError, match="lengths"):
        tw.TensorArray("float32", 3).split(x, [1, 3])
