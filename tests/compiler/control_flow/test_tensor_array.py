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
        array = tw.TensorArray("float32", size=3, clear_after_read=False).unstack(x)
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


def written(x):
    array = tw.TensorArray("float32", 3)
    if x[0] > 0:
        array = array.write(0, x[0] ** 3)
        if x[1] > 0:
            array = array.write(1, x[1] ** 2)
    elif x[1] > 0:
        array = array.write(2, 7.0)
    return array.stack()


def written_in_a_loop(x):
    array = tw.TensorArray("float32", 3)
    for i in tw.range(3):
        if x[i] > 0:
            array = array.write(i, x[i] ** 3)
    return array.stack()


def written_by_cond(x):
    array = tw.TensorArray("float32", 3)
    choice = tw.cast(x[0], "int32")
    one = tw.cond(x[0] > 0, lambda: array.write(0, x[0]), lambda: array)
    other = tw.switch_case(choice, [lambda: array, lambda: array.write(1, x[0] + x[1])])
    return one.stack() + other.stack()


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (written, [2.0, 3.0, 1.0], [8.0, 9.0, 0.0]),
        (written, [2.0, -3.0, 1.0], [8.0, 0.0, 0.0]),
        (written, [-2.0, 3.0, 1.0], [0.0, 0.0, 7.0]),
        (written, [-2.0, -3.0, 1.0], [0.0, 0.0, 0.0]),
        (written_in_a_loop, [1.0, -2.0, 3.0], [1.0, 0.0, 27.0]),
        (written_in_a_loop, [-1.0, -2.0, -3.0], [0.0, 0.0, 0.0]),
        (written_by_cond, [1.0, 2.0, 3.0], [1.0, 3.0, 0.0]),
        (written_by_cond, [-1.0, 2.0, 3.0], [0.0, 1.0, 0.0]),
    ],
)
def test_elements_written_in_some_branches_have_a_shape_in_all(function, x, expected):
    f = tw.function(function)
    x = tw.constant(x)
    assert f(x).numpy().tolist() == expected
    f.get_concrete_function(x)  # it is traced


def test_gradients_of_elements_written_in_some_branches():
    @tw.function
    def derivatives(x):
        with tw.GradientTape() as second:
            second.watch(x)
            with tw.GradientTape() as first:
                first.watch(x)
                y = tw.reduce_sum(written_in_a_loop(x) * [1.0, 2.0, 3.0])
            gradient = first.gradient(y, x)
        return gradient, second.gradient(gradient, x)

    gradient, second = derivatives(tw.constant([1.0, 2.0, -3.0]))
    assert gradient.numpy().tolist() == [3.0, 24.0, 0.0]
    assert second.numpy().tolist() == [6.0, 24.0, 0.0]


def test_arrays_whose_size_depends_on_a_branch_make_the_function_run_eagerly():
    @tw.function
    def positive(x):
        array = tw.TensorArray("float32", 0, dynamic_size=True)
        for v in x:
            if v > 0:
                array = array.write(array.size(), v * v)
        return array.stack()

    @tw.function
    def grown(x):
        array = tw.TensorArray("float32", 0, dynamic_size=True)
        array = tw.cond(
            x[0] > 0, lambda: array.write(0, x[0]), lambda: array.write(1, 2.0)
        )
        return array.stack()

    assert positive(tw.constant([1.0, -2.0, 3.0])).numpy().tolist() == [1.0, 9.0]
    assert grown(tw.constant([1.0])).numpy().tolist() == [1.0]
    assert grown(tw.constant([-1.0])).numpy().tolist() == [0.0, 2.0]


def test_elements_of_several_shapes_in_traced_functions():
    @tw.function
    def one(x):
        array = tw.TensorArray("float32", 1, infer_shape=False)
        array = tw.cond(x[0] > 0, lambda: array.write(0, x), lambda: array.write(0, -x))
        return array.size(), array.read(0)

    @tw.function
    def alike(x):
        array = tw.TensorArray("float32", 2, infer_shape=False)
        for i in tw.range(2):
            array = array.write(i, x * 2.0)
        return array.stack()

    @tw.function
    def parts(x, lengths):
        array = tw.TensorArray("float32", 2, infer_shape=False).split(x, lengths)
        total = 0.0
        for i in tw.range(2):
            total += tw.reduce_max(array.read(i))
        return total

    size, element = one(tw.constant([-1.0, 2.0]))
    assert size.numpy() == 1 and element.numpy().tolist() == [1.0, -2.0]
    assert alike(tw.constant([1.0])).numpy().tolist() == [[2.0], [2.0]]
    assert parts(tw.constant([1.0, 2.0, 3.0]), tw.constant([1, 2])).numpy() == 4.0


def test_elements_of_unknown_sizes_are_written_in_a_branch():
    @tw.function(input_signature=[tw.TensorSpec([None, 3])])
    def columns(x):
        array = tw.TensorArray("float32", 3)
        for i in tw.range(3):
            if i > 0:
                array = array.write(i, x[:, i])
        return array.stack(), array.concat()

    stacked, joined = columns(tw.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert stacked.numpy().tolist() == [[0.0, 0.0], [2.0, 5.0], [3.0, 6.0]]
    assert joined.numpy().tolist() == [0.0, 0.0, 2.0, 5.0, 3.0, 6.0]
    columns.get_concrete_function()  # it is traced for all sizes


def test_an_array_that_both_branches_have_written_grows():
    @tw.function
    def f(x):
        array = tw.TensorArray("float32", 0, dynamic_size=True)
        for i in range(2):
            if x[i] > 0:
                array = array.write(i, x[i])
            else:
                array = array.write(i, -10.0 * x[i])
        return array.stack()

    x = tw.constant([1.0, -2.0])
    assert f(x).numpy().tolist() == [1.0, 20.0]
    f.get_concrete_function(x)


def test_a_read_at_a_traced_index_leaves_an_array_as_it_was():
    @tw.function
    def f(x, i):
        array = tw.TensorArray("float32", 2).write(0, x[0]).write(1, x[1])
        y = 0.0
        if x[0] > 0:
            y = array.read(i)
        return y + array.stack()

    assert f(tw.constant([1.0, 2.0]), tw.constant(1)).numpy().tolist() == [3.0, 4.0]


def test_an_element_that_an_earlier_step_has_written_is_read_in_a_branch():
    @tw.function
    def fibonacci(n):
        array = tw.TensorArray("int32", 6)
        for i in tw.range(n):
            if i < 2:
                array = array.write(i, 1)
            else:
                array = array.write(i, array.read(i - 1) + array.read(i - 2))
        return array.stack()

    assert fibonacci(tw.constant(6)).numpy().tolist() == [1, 1, 2, 3, 5, 8]


def test_unstack_replaces_all_elements():
    def f(x):
        array = tw.TensorArray("float32", 5).write(4, 9.0).unstack(x)
        return array.size(), array.stack()

    for run in (f, tw.function(f)):
        size, elements = run(tw.constant([1.0, 2.0]))
        assert size.numpy() == 2 and elements.numpy().tolist() == [1.0, 2.0]


def test_no_elements_are_joined():
    array = tw.TensorArray("float32", 0, dynamic_size=True, element_shape=(2, 3))
    assert array.concat().shape == (0, 3)


def test_strings_are_written_in_traced_functions():
    @tw.function
    def f(x):
        array = tw.TensorArray("string", 3)
        for i in tw.range(3):
            if x[i] > 0:
                array = array.write(i, tw.strings.as_string(i))
        return array.stack()

    found = f(tw.constant([1.0, -1.0, 1.0])).numpy().tolist()
    assert repr(found) == "[b'0', b'', b'2']"


def test_an_array_of_a_traced_size_makes_the_function_run_eagerly():
    @tw.function
    def f(n):
        array = tw.TensorArray("float32", n)
        for i in tw.range(n):
            array = array.write(i, 2.0)
        return array.stack()

    assert f(tw.constant(2)).numpy().tolist() == [2.0, 2.0]


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

    @tw.function
    def beyond_its_size(x):
        array = tw.TensorArray("float32", size=1, dynamic_size=True)
        for i in tw.range(3):
            array = array.write(i, x[i])
        return array.stack()

    assert beyond_its_size(tw.constant([1.0, 2.0, 3.0])).numpy().tolist() == [
        1.0,
        2.0,
        3.0,
    ]


def test_a_tensor_array_takes_parts_of_several_sizes():
    def parts(x):
        array = tw.TensorArray("float32", 3, clear_after_read=False).split(x, [1, 0, 3])
        return [array.read(i) for i in range(3)], array.concat()

    x = tw.constant([1.0, 2.0, 3.0, 4.0])
    for f in (parts, tw.function(parts)):
        (first, none, rest), whole = f(x)
        assert first.numpy().tolist() == [1.0] and none.shape == (0,)
        assert rest.numpy().tolist() == [2.0, 3.0, 4.0]
        assert whole.numpy().tolist() == x.numpy().tolist()
    with pytest.raises(ValueError, match="lengths"):
        tw.TensorArray("float32", 3).split(x, [1, 3])


@pytest.mark.parametrize("size", [0, 1])
def test_an_array_that_grows_and_is_not_written_has_the_shape_of_its_writes(size):
    @tw.function
    def targets(x):
        first = tw.TensorArray(tw.int32, size, dynamic_size=True)
        second = tw.TensorArray(tw.float32, size, dynamic_size=True)
        count = 0
        for i in tw.range(tw.shape(x)[0]):
            if x[i] > 0:
                first = first.write(count, [i, i])
                second = second.write(count, [x[i], 1.0, 2.0])
                count += 1
        return first.stack(), second.stack()

    for x in ([-1.0], [-1.0, -2.0]):
        first, second = targets(tw.constant(x))
        np.testing.assert_array_equal(first, np.zeros((size, 2)))
        np.testing.assert_array_equal(second, np.zeros((size, 3)))
    first, second = targets(tw.constant([-1.0, 3.0]))
    np.testing.assert_array_equal(first, [[1, 1]])
    np.testing.assert_array_equal(second, [[3, 1, 2]])


def test_an_array_that_grew_with_two_shapes_does_not_guess():
    @tw.function
    def written(x, row):
        array = tw.TensorArray(tw.float32, 1, dynamic_size=True)
        for i in tw.range(tw.shape(x)[0]):
            if x[i] > 0:
                array = array.write(i, row)
        return array.stack()

    for row in ([1.0], [1.0, 2.0]):
        written(tw.constant([1.0]), tw.constant(row))
    with pytest.raises(tw.errors.InvalidArgumentError, match="its shape is unknown"):
        written(tw.constant([-1.0]), tw.constant([1.0]))


def test_an_eager_array_does_not_take_the_shape_that_a_trace_saw():
    def written(x):
        array = tw.TensorArray(tw.float32, 1, dynamic_size=True)
        for i in tw.range(tw.shape(x)[0]):
            if x[i] > 0:
                array = array.write(i, [x[i], 1.0])
        return array.stack()

    nothing = tw.constant([-1.0])
    np.testing.assert_array_equal(tw.function(written)(nothing), [[0, 0]])
    with pytest.raises(tw.errors.InvalidArgumentError, match="its shape is unknown"):
        written(nothing)


def test_a_loop_of_python_until_an_array_has_a_size_ends():
    @tw.function
    def filled(n):
        array = tw.TensorArray(tw.float32, 0, dynamic_size=True)
        while int(array.size()) < 3:
            array = array.write(n, 1.0)
            n += 1
        return array.stack()

    np.testing.assert_array_equal(filled(tw.constant(0)), [1, 1, 1])


def filled(**options):
    array = tw.TensorArray("float32", 3, **options)
    for i in range(3):
        array = array.write(i, [float(i), 1.0])
    return array


def test_a_read_clears_the_element_in_eager_mode():
    array = filled()
    np.testing.assert_array_equal(array.read(1), [1, 1])
    with pytest.raises(tw.errors.InvalidArgumentError, match="clear_after_read=False"):
        array.read(1)
    np.testing.assert_array_equal(array.stack(), [[0, 1], [0, 0], [2, 1]])
    np.testing.assert_array_equal(array.gather([1]), [[0, 0]])
    np.testing.assert_array_equal(array.write(1, [5.0, 5.0]).read(1), [5, 5])
    assert [row.numpy()[1] for row in filled()] == [1, 1, 1]


def twice(x):
    array = filled(dynamic_size=True)
    for i in tw.range(x):  # at a traced index: the function runs eagerly
        array = array.write(i, [9.0, 9.0])
    return array.read(2) + array.read(2), array.stack()


@pytest.mark.parametrize(
    "run",
    [
        tw.function(twice),
        lambda x: next(iter(tw.data.Dataset.from_tensors(x).map(twice))),
    ],
)
def test_elements_stay_in_functions(run):
    found, rows = run(tw.constant(1))
    np.testing.assert_array_equal(found, [4, 2])
    np.testing.assert_array_equal(rows, [[9, 9], [1, 1], [2, 1]])
    array = filled(clear_after_read=False)
    np.testing.assert_array_equal(array.read(0) + array.read(0), [0, 2])
