"""What the guides on functions, graphs and AutoGraph show, and quietly depend on.

Of TensorFlow: "Better performance with tf.function" and "Introduction to graphs and
tf.function" (https://www.tensorflow.org/guide/function and /intro_to_graphs). With the
import changed, this file passes on TensorFlow 2.21.
"""

import numpy as np
import pytest

import tapewright as tf

# ------------------------------------------------------------------ functions as ops


def test_a_function_is_like_an_op():
    @tf.function
    def add(a, b):
        return a + b

    @tf.function
    def dense_layer(x, w, b):
        return add(tf.matmul(x, w), b)

    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        result = add(v, 1.0)
    assert tape.gradient(result, v).numpy() == 1.0
    found = dense_layer(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2]))
    np.testing.assert_array_equal(found, np.full((3, 2), 3.0))


def test_a_function_of_python_becomes_one_of_graphs():
    def inner_function(x, y, b):
        x = tf.matmul(x, y)
        x = x + b
        return x

    @tf.function
    def outer_function(x):
        y = tf.constant([[2.0], [3.0]])
        b = tf.constant(4.0)
        return inner_function(x, y, b)

    x, y = tf.constant([[1.0, 2.0]]), tf.constant([[2.0], [3.0]])
    regular, graph = inner_function(x, y, 4.0), tf.function(inner_function)
    assert regular.numpy() == graph(x, y, tf.constant(4.0)).numpy() == 12.0
    assert outer_function(x).numpy() == 12.0


# ---------------------------------------------------------------------------- tracing


def test_it_is_traced_for_each_type(capsys):
    @tf.function
    def double(a):
        print("Tracing with", a)
        return a + a

    assert double(tf.constant(1)).numpy() == 2
    assert double(tf.constant(1.1)).numpy() == np.float32(1.1) * 2
    assert double(tf.constant(7)).numpy() == 14
    assert capsys.readouterr().out.count("Tracing with") == 2
    concrete = double.get_concrete_function(tf.TensorSpec(shape=[], dtype=tf.float32))
    assert concrete(tf.constant(1.5)).numpy() == 3.0
    assert "Tracing" not in capsys.readouterr().out  # it has that one
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32.*int32"):
        concrete(tf.constant(1))


def test_a_leaked_tensor_has_no_value():
    leaked = []

    @tf.function
    def leaky(x):
        leaked.append(x + 1)
        return x + 2

    leaky(tf.constant(1))
    with pytest.raises(AttributeError, match="which has ended"):
        leaked[0].numpy()
    with pytest.raises(TypeError, match="which has ended"):
        tf.constant(1) + leaked[0]


def test_a_signature_limits_what_is_traced(capsys):
    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def next_collatz(x):
        print("Tracing with", x)
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    np.testing.assert_array_equal(next_collatz(tf.constant([1, 2])), [4, 1])
    np.testing.assert_array_equal(next_collatz(tf.constant([3, 4, 5])), [10, 2, 16])
    assert capsys.readouterr().out.count("Tracing") == 1
    with pytest.raises((TypeError, ValueError)):
        next_collatz(tf.constant([[1, 2], [3, 4]]))
    with pytest.raises((TypeError, ValueError)):
        next_collatz(tf.constant([1.0, 2.0]))


def test_numbers_of_python_are_traced_one_by_one_and_tensors_once(capsys):
    def train_one_step():
        pass

    @tf.function
    def train(num_steps):
        print("Tracing with num_steps =", num_steps)
        for _ in tf.range(num_steps):
            train_one_step()

    train(num_steps=10)
    train(num_steps=20)
    assert capsys.readouterr().out.count("Tracing") == 2
    train(num_steps=tf.constant(10))
    train(num_steps=tf.constant(20))
    assert capsys.readouterr().out.count("Tracing") == 1


def test_eager_runs_find_what_graphs_leave_out(capsys):
    @tf.function
    def get_mse(y_true, y_pred):
        print("Calculating MSE!")
        sq_diff = tf.pow(y_true - y_pred, 2)
        return tf.reduce_mean(sq_diff)

    y_true, y_pred = tf.constant([1, 2, 3]), tf.constant([3, 2, 1])
    for _ in range(3):
        assert get_mse(y_true, y_pred).numpy() == 2
    assert capsys.readouterr().out.count("Calculating") == 1
    tf.config.run_functions_eagerly(True)
    try:
        for _ in range(3):
            get_mse(y_true, y_pred)
    finally:
        tf.config.run_functions_eagerly(False)
    assert capsys.readouterr().out.count("Calculating") == 3


# -------------------------------------------------------------------------- AutoGraph


def test_a_while_on_a_tensor():
    @tf.function
    def f(x):
        while tf.reduce_sum(x) > 1:
            x = tf.tanh(x)
        return x

    x = tf.constant([0.9, 0.2, 0.7, 0.4, 0.8])
    found, expected = f(x), x
    while tf.reduce_sum(expected) > 1:
        expected = tf.tanh(expected)
    np.testing.assert_allclose(found, expected, 1e-6)
    assert float(tf.reduce_sum(found)) <= 1
    assert "while" in tf.autograph.to_code(f.python_function)


def test_an_if_on_a_tensor():
    def simple_relu(x):
        if tf.greater(x, 0):
            return x
        else:
            return 0

    relu = tf.function(simple_relu)
    assert relu(tf.constant(1)).numpy() == 1
    assert relu(tf.constant(-1)).numpy() == 0


def test_branches_are_all_traced_and_one_of_them_runs(capfd):
    @tf.function
    def fizzbuzz(n):
        for i in tf.range(1, n + 1):
            print("Tracing for loop")
            if i % 15 == 0:
                print("Tracing fizzbuzz branch")
                tf.print("fizzbuzz")
            elif i % 3 == 0:
                print("Tracing fizz branch")
                tf.print("fizz")
            elif i % 5 == 0:
                print("Tracing buzz branch")
                tf.print("buzz")
            else:
                print("Tracing default branch")
                tf.print(i)

    fizzbuzz(tf.constant(5))
    fizzbuzz(tf.constant(16))
    out, err = capfd.readouterr()
    lines = (out + err).splitlines()
    traced = [line for line in lines if line.startswith("Tracing")]
    assert sorted(set(traced)) == [
        "Tracing buzz branch",
        "Tracing default branch",
        "Tracing fizz branch",
        "Tracing fizzbuzz branch",
        "Tracing for loop",
    ]
    printed = [line for line in lines if line not in traced]
    numbers = "1 2 fizz 4 buzz fizz 7 8 fizz buzz 11 fizz 13 14 fizzbuzz 16".split()
    assert printed == numbers[:5] + numbers


def test_a_loop_over_a_data_set():
    @tf.function
    def train(dataset):
        loss = tf.constant(0)
        for x, y in dataset:
            loss += tf.abs(y - x)
        return loss

    data = [(1, 3), (2, 1), (5, 5)]
    spec = tf.TensorSpec([], tf.int32)
    generated = tf.data.Dataset.from_generator(
        lambda: iter(data), output_signature=(spec, spec)
    )
    rows = np.array(data, "int32").T
    sliced = tf.data.Dataset.from_tensor_slices((rows[0], rows[1]))
    assert [int(train(x)) for x in (data, generated, sliced)] == [3, 3, 3]


def test_values_of_a_loop_in_a_tensor_array():
    def rnn_step(inp, state):
        return inp + state

    @tf.function
    def dynamic_rnn(rnn_step, input_data, initial_state):
        input_data = tf.transpose(input_data, [1, 0, 2])
        max_seq_len = tf.shape(input_data)[0]
        states = tf.TensorArray(tf.float32, size=max_seq_len)
        state = initial_state
        for i in tf.range(max_seq_len):
            state = rnn_step(input_data[i], state)
            states = states.write(i, state)
        return tf.transpose(states.stack(), [1, 0, 2])

    data = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    found = dynamic_rnn(rnn_step, tf.constant(data), tf.zeros([3, 5]))
    np.testing.assert_allclose(found, data.cumsum(1), 1e-5, 1e-6)


# ------------------------------------------------------------------------ limitations


def test_python_runs_while_tracing(capfd):
    @tf.function
    def f(x):
        print("Traced with", x)
        tf.print("Executed with", x)

    for x in (1, 1, 2):
        f(x)
    text = "".join(capfd.readouterr())
    assert text.count("Traced with") == 2 and text.count("Executed with") == 3


def test_a_list_outside_is_changed_while_tracing():
    external_list = []

    @tf.function
    def side_effect(x):
        external_list.append(x)

    for _ in range(3):
        side_effect(1)
    assert len(external_list) == 1


def test_an_iterator_of_a_data_set_is_a_state_of_its_own():
    @tf.function
    def good_consume_next(iterator):
        return next(iterator)

    iterator = iter(tf.data.Dataset.from_tensor_slices([1, 2, 3]))
    assert [int(good_consume_next(iterator)) for _ in range(3)] == [1, 2, 3]


def test_a_tensor_of_a_trace_is_of_no_use_outside():
    leaked = []

    @tf.function
    def leaky_function(a):
        leaked.append(a + 1)
        return a + 2

    assert leaky_function(tf.constant(1)).numpy() == 3
    with pytest.raises(Exception, match=r"(?i)trace|scope|graph"):
        tf.add(leaked[0], 1).numpy()


def test_a_recursion_ends_by_values_of_python_alone():
    @tf.function
    def recursive_fn(n):
        if n > 0:
            return recursive_fn(n - 1)
        else:
            return 1

    with pytest.raises(Exception, match=r"(?i)recurs|ran out|infinite"):
        recursive_fn(tf.constant(5))
    assert int(recursive_fn(5)) == 1


def test_values_of_python_are_constants_of_a_trace():
    class SimpleModel(tf.Module):
        def __init__(self):
            self.bias = 0.0
            self.weight = 2.0

    class VariableModel(tf.Module):
        def __init__(self):
            self.bias = tf.Variable(0.0)
            self.weight = tf.Variable(2.0)

    @tf.function
    def evaluate(model, x):
        return model.weight * x + model.bias

    simple, variable, x = SimpleModel(), VariableModel(), tf.constant(10.0)
    assert evaluate(simple, x).numpy() == 20.0
    simple.bias += 5.0
    assert evaluate(simple, x).numpy() == 20.0
    assert evaluate(variable, x).numpy() == 20.0
    variable.bias.assign_add(5.0)
    assert evaluate(variable, x).numpy() == 25.0


def test_variables_are_made_once():
    @tf.function
    def f(x):
        v = tf.Variable(1.0)
        return v + x

    class Count(tf.Module):
        def __init__(self):
            self.count = None

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    with pytest.raises(ValueError):
        f(1.0)
    count = Count()
    assert [int(count()) for _ in range(3)] == [1, 2, 3]


def test_gradients_through_control_flow():
    @tf.function
    def power(x, n):
        y = tf.constant(1.0)
        for _ in tf.range(n):
            y *= x
        if y > 100.0:
            y = 2.0 * y
        return y

    x = tf.Variable(3.0)
    for n, slope in ((2, 6.0), (4, 108.0), (5, 810.0)):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = power(x, tf.constant(n))
            first = tape.gradient(y, x)
        assert first.numpy() == slope
        factor = 2.0 if n == 5 else 1.0
        np.testing.assert_allclose(
            outer.gradient(first, x), factor * n * (n - 1) * 3.0 ** (n - 2)
        )
