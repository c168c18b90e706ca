"""`py_function` and `numpy_function`: Python that each replay calls."""

import math

import numpy as np
import pytest

import tapewright as tw

from ...ways import ways

# ----------------------------------------------------------------- values and gradients


@ways
def test_py_function_sees_values(wrap):
    f = wrap(lambda x: tw.py_function(lambda x: float(x) ** 2, [x], "float32"))
    assert f(tw.constant(3.0)).numpy() == 9.0
    assert f(tw.constant(4.0)).numpy() == 16.0


@ways
def test_py_function_returns_as_many_values_as_tout(wrap):
    f = wrap(
        lambda x: tw.py_function(lambda x: (x + 1.0, x > 0.0), [x], ["float32", "bool"])
    )
    a, b = f(tw.constant(3.0))
    assert a.numpy() == 4.0 and b.numpy()


@ways
def test_py_function_for_its_effect_alone(wrap):
    seen = []
    f = wrap(lambda x: tw.py_function(lambda x: seen.append(float(x)), [x], []))
    assert f(tw.constant(1.0)) == []
    f(tw.constant(2.0))
    assert seen == [1.0, 2.0]


def test_py_function_as_a_decorator():
    @tw.py_function(Tout="float32")
    def half(x):
        return x / 2.0

    assert half(tw.constant(3.0)).numpy() == 1.5


def cube(x):
    return tw.py_function(lambda x: x**3, [x], tw.TensorSpec([], "float64")) * x


def test_gradients_pass_through_py_function_at_every_order():
    def derivatives(f, x):
        with tw.GradientTape() as third:
            third.watch(x)
            with tw.GradientTape() as second:
                second.watch(x)
                with tw.GradientTape() as first:
                    first.watch(x)
                    y = f(x)
                dy = first.gradient(y, x)
            ddy = second.gradient(dy, x)
        return [t.numpy() for t in (y, dy, ddy, third.gradient(ddy, x))]

    x = tw.constant(2.0, dtype="float64")
    exact = [16.0, 32.0, 48.0, 48.0]  # of x ** 4
    assert derivatives(cube, x) == exact
    assert derivatives(tw.function(cube), x) == exact

    @tw.function
    def inside(x):
        with tw.GradientTape() as second:
            second.watch(x)
            with tw.GradientTape() as first:
                first.watch(x)
                y = cube(x)
            dy = first.gradient(y, x)
        return y, dy, second.gradient(dy, x)

    assert [t.numpy() for t in inside(x)] == exact[:3]


def test_a_gradient_takes_what_the_forward_call_has_done():
    calls = []

    def noisy(x):
        calls.append(1)
        return x * float(len(calls))

    @tw.function
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.py_function(noisy, [x], tw.TensorSpec([], "float32"))
        return y, tape.gradient(y, x)

    for count in (1, 2, 3):
        y, g = f(tw.constant(1.0))
        assert (y.numpy(), g.numpy(), len(calls)) == (count, count, count)


def gradient_of(f):
    def gradient(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return gradient


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("traced", range(3), ids=["f", "gradient", "second gradient"])
def test_gradients_of_every_order_take_what_the_call_has_done(traced, steps):
    calls = []

    def noisy(x):
        calls.append(1)
        return x**3 * float(len(calls))

    def f(x):
        def body(i, y):
            return i + 1, y * tw.py_function(noisy, [x], tw.TensorSpec([]))

        return tw.while_loop(lambda i, y: i < steps, body, [0, x])[1]

    functions = [f, gradient_of(f), gradient_of(gradient_of(f))]
    call = tw.function(functions[traced])
    for _ in range(traced, 2):
        call = gradient_of(call)
    found = call(tw.constant(0.5)).numpy()
    # f(x) = steps! x^n, of which the second derivative is asked for.
    n = 3 * steps + 1
    exact = math.factorial(steps) * n * (n - 1) * 0.5 ** (n - 2)
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    assert len(calls) == steps


def test_py_function_inside_a_scan_with_gradient():
    calls = []

    def power(x):
        calls.append(1)
        return x**3

    def f(xs, call):
        with tw.GradientTape() as tape:
            tape.watch(xs)
            y = tw.reduce_sum(
                tw.scan(lambda a, x: a * 0.5 + call(x) * a, xs, initializer=1.0)
            )
        return y, tape.gradient(y, xs)

    spec = tw.TensorSpec([], "float32")
    traced = tw.function(lambda xs: f(xs, lambda x: tw.py_function(power, [x], spec)))
    xs = tw.constant(np.linspace(0.1, 0.9, 6).astype("float32"))
    found, expected = traced(xs), f(xs, lambda x: x**3)
    assert len(calls) == 6
    for a, b in zip(found, expected):
        a, b = tw.convert_to_tensor(a).numpy(), tw.convert_to_tensor(b).numpy()
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_py_function_keeps_is_not_overwritten():
    kept = []
    f = tw.function(
        lambda x: tw.py_function(lambda x: kept.append(x), [x * 2.0 + 1.0], []) or x
    )
    f(tw.constant([1.0, 2.0]))
    f(tw.constant([5.0, 6.0]))
    assert [k.numpy().tolist() for k in kept] == [[3.0, 5.0], [11.0, 13.0]]


@ways
def test_another_number_of_values_is_refused(wrap):
    spec = tw.TensorSpec([], "float32")
    f = wrap(lambda x: tw.py_function(lambda x: (x, x), [x], [spec]))
    with pytest.raises(tw.errors.InvalidArgumentError, match="function .*1.*got 2"):
        f(tw.constant(1.0))


@ways
def test_another_dtype_is_refused(wrap):
    spec = tw.TensorSpec([], "float32")
    f = wrap(lambda x: tw.py_function(lambda x: tw.cast(x, "int32"), [x], spec))
    with pytest.raises(TypeError, match="dtype .*float32"):
        f(tw.constant(1.0))


# ----------------------------------------------------------- how often Python is called


HOST_CALLS = {
    "py_function": tw.py_function,
    "numpy_function": tw.numpy_function,
}


host_calls = pytest.mark.parametrize("call", HOST_CALLS.values(), ids=HOST_CALLS)


class Environment:
    """Counts its steps, and gives the number and the action."""

    def __init__(self):
        self.steps = 0

    def step(self, action):
        self.steps += 1
        return np.float32(self.steps), np.float32(np.asarray(action))


def one_step(call):
    env = Environment()

    def f(x):
        count, action = call(env.step, [x], ["float32", tw.float32])
        return count * 10.0 + action

    return env, f


def in_a_nested_function(call):
    env, f = one_step(call)
    inner = tw.function(f)
    return env, lambda x: inner(x * 1.0)


def in_a_branch(call):
    env, f = one_step(call)
    return env, lambda x: tw.cond(x > 0.0, lambda: f(x), lambda: -x)


def with_a_gradient(call):
    env, f = one_step(call)

    def graded(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x) + x
        return y - x + 0.0 * tape.gradient(y, x)

    return env, graded


@pytest.mark.parametrize(
    "program", [one_step, in_a_nested_function, in_a_branch, with_a_gradient]
)
@host_calls
@ways
def test_python_is_called_once_in_each_call_also_the_first(wrap, call, program):
    env, f = program(call)
    f = wrap(f)
    found = [float(f(tw.constant(x))) for x in (5.0, 6.0, 7.0)]
    assert found == [15.0, 26.0, 37.0] and env.steps == 3


@host_calls
@ways
def test_python_is_called_once_in_each_step_of_a_loop(wrap, call):
    env = Environment()

    def f(n):
        def body(i, total):
            count, _ = call(env.step, [i], ["float32", "float32"])
            return i + 1, total + count

        return tw.while_loop(lambda i, total: i < n, body, [0, 0.0])[1]

    f = wrap(f)
    assert [float(f(tw.constant(3))) for _ in range(2)] == [6.0, 15.0]


@host_calls
def test_python_is_called_once_for_a_signature_of_unknown_sizes(call):
    seen = []

    @tw.function(input_signature=[tw.TensorSpec([None])])
    def f(x):
        return call(lambda x: (seen.append(len(x)), x * 2)[1], [x], "float32") + 1.0

    assert f(tw.constant([1.0, 2.0])).numpy().tolist() == [3.0, 5.0]
    assert f(np.array([1.0], "float32")).numpy().tolist() == [3.0]
    assert seen == [2, 1]


@host_calls
def test_tout_may_have_the_unknown_sizes_of_an_argument(call):
    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def f(x):
        return call(lambda x: x * 2, [x], tw.TensorSpec(x.shape, "float32")) + x

    for n in (3, 1, 3):
        assert f(tw.ones((n, 2))).numpy().tolist() == [[3.0, 3.0]] * n


def test_an_episode_ends_when_its_environment_says_so():
    env, weight = Environment(), tw.Variable(1.0)
    optimizer = tw.optimizers.SGD(0.1)

    @tw.function
    def episode(goal):
        total = tw.constant(0.0)
        with tw.GradientTape() as tape:
            for _ in tw.range(10):
                count, action = tw.numpy_function(env.step, [weight], ["float32"] * 2)
                count.set_shape([])
                total += weight * count
                if count >= goal:
                    break
        optimizer.apply_gradients([(tape.gradient(total, weight), weight)])
        return total

    # Steps 1, 2, 3 with the weight 1, then 4, 5 with 1 - 0.1 * (1 + 2 + 3).
    found = [float(episode(tw.constant(goal))) for goal in (3.0, 5.0)]
    np.testing.assert_allclose(found, [6.0, 0.4 * 9], rtol=1e-6)
    assert env.steps == 5


@pytest.mark.filterwarnings("ignore:vectorized_map")
@pytest.mark.parametrize("tout", ["float32", tw.TensorSpec([], "float32")])
@host_calls
@ways
def test_python_is_called_once_for_each_element_that_is_mapped_over(wrap, call, tout):
    seen = []

    def double(x):
        seen.append(float(np.asarray(x)))
        return x * 2

    f = wrap(
        lambda xs: tw.vectorized_map(lambda x: call(double, [x + 1.0], tout) + x, xs)
    )
    assert f(tw.constant([1.0, 2.0, 3.0])).numpy().tolist() == [5.0, 8.0, 11.0]
    assert seen == [2.0, 3.0, 4.0]


@host_calls
@ways
def test_a_result_may_have_another_shape_in_each_call(wrap, call):
    f = wrap(lambda x: call(lambda x: x[x > 0], [x], "float32") * 2.0)
    assert f(tw.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert f(tw.constant([1.0, -2.0])).numpy().tolist() == [2.0]
    assert f(tw.constant([-1.0, -2.0])).numpy().tolist() == []


@host_calls
@ways
def test_a_shape_may_be_set_on_a_result(wrap, call):
    def f(x):
        y = call(lambda x: x * 2, [x], "float32")
        y.set_shape([2])
        return tw.ensure_shape(y, [2])

    f = wrap(f)
    assert f(tw.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="incompatible"):
        f(tw.constant([1.0, 2.0, 3.0]))


@host_calls
def test_variables_made_before_a_host_call_are_made_once(call):
    class Model(tw.Module):
        weight = None

        @tw.function
        def __call__(self, x):
            if self.weight is None:
                self.weight = tw.Variable(tw.random.normal([]))
            self.weight.assign_add(1.0)
            return call(lambda x: x * 2, [x], "float32") * self.weight

    tw.random.set_seed(3)
    first = tw.random.normal([]).numpy()
    after = tw.random.normal([]).numpy()
    tw.random.set_seed(3)
    model = Model()
    found = [model(tw.constant(0.5)).numpy() for _ in range(2)]
    np.testing.assert_allclose(found, [first + 1.0, first + 2.0], rtol=1e-6)
    assert tw.random.normal([]).numpy() == after


@host_calls
def test_a_function_that_runs_eagerly_says_why_it_has_no_executable(call):
    f = tw.function(lambda x: call(lambda x: x, [x], "float32"))
    outer = tw.function(lambda x: f(x) + 1.0)
    assert float(outer(tw.constant(1.0))) == float(outer(tw.constant(1.0))) == 2.0
    for function in (f, outer):
        with pytest.raises(tw.errors.TracingError, match="Tout=TensorSpec"):
            function.pretty()


@host_calls
def test_a_host_call_without_a_shape_cannot_be_traced_ahead(call):
    seen = []
    f = tw.function(lambda x: call(seen.append, [x], "float32"))
    with pytest.raises(tw.errors.TracingError, match="Tout=TensorSpec"):
        f.get_concrete_function(tw.TensorSpec([]))
    assert not seen


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("reaction", ["return", "raise"])
@host_calls
def test_code_that_catches_everything_does_not_freeze_a_host_call(
    call, reaction, nested
):
    env = Environment()

    def step(x):
        return call(env.step, [x], ["float32", "float32"])[0]

    inner = tw.function(step) if nested else step

    @tw.function
    def f(x):
        try:
            return inner(x)
        except Exception as error:
            if reaction == "return":
                return x
            raise ValueError("another") from error

    assert [float(f(tw.constant(9.0))) for _ in range(2)] == [1.0, 2.0]


# ---------------------------------------------------------------------- what is refused


def test_a_shape_that_does_not_fit_tout_is_refused():
    spec = tw.TensorSpec([None, 2], "float32")
    for wrap in (lambda f: f, tw.function):
        f = wrap(lambda x: tw.py_function(lambda x: x, [x], spec))
        assert f(tw.ones((3, 2))).shape == (3, 2)
        with pytest.raises(tw.errors.InvalidArgumentError, match=r"\(2, 3\)"):
            f(tw.ones((2, 3)))


def test_tout_must_be_given():
    with pytest.raises(TypeError, match="Tout must be given"):
        tw.py_function(lambda x: x, [tw.constant(1.0)])


@ways
def test_numpy_function_sees_arrays_and_has_no_gradient(wrap):
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.numpy_function(lambda x: np.sort(x) * 2, [x], "float32")
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    y, g = wrap(f)(tw.constant([3.0, 1.0]))
    assert y.numpy().tolist() == [2.0, 6.0] and g.numpy().tolist() == [0.0, 0.0]


def test_a_spec_with_open_sizes_is_told_to_give_all_of_them():
    f = tw.function(
        lambda x: tw.py_function(lambda x: 2 * x, [x], tw.TensorSpec((None, 3)))
    )
    message = (
        r"Tout has the shape \(None, 3\): pass all sizes, such as TensorSpec\(x.shape"
    )
    with pytest.raises(tw.errors.TracingError, match=message):
        f.get_concrete_function(tw.TensorSpec((2, 3)))
    assert f(tw.ones((2, 3))).shape == (2, 3)


# -------------------------------------------------------------- variables around a call


def test_python_sees_the_values_that_were_assigned_before_it():
    v, seen = tw.Variable([0.0, 0.0]), []

    @tw.function
    def step(i):
        v.assign(tw.fill([2], i))
        return tw.numpy_function(
            lambda i: (seen.append(v.numpy()[0]), i)[1], [i], tw.TensorSpec([])
        )

    for i in range(1, 4):
        step(tw.constant(float(i)))
    assert seen == [1.0, 2.0, 3.0]


def test_what_python_assigns_is_what_comes_after():
    v = tw.Variable(0.0)

    def more():
        v.assign_add(10.0)

    @tw.function
    def step():
        v.assign_add(1.0)
        tw.py_function(more, [], [])
        v.assign_add(1.0)

    for _ in range(3):
        step()
    assert v.numpy() == 36.0


def test_a_variable_is_read_again_after_a_host_call_that_may_assign():
    w = tw.Variable([1.0, 2.0])

    def host(a):
        w.assign_sub(a)
        return a

    @tw.function
    def step():
        before = w * 1.0
        tw.py_function(host, [before], tw.TensorSpec([2], "float32"))
        return before, w * 1.0

    before, after = step()
    np.testing.assert_array_equal(before, [1.0, 2.0])
    np.testing.assert_array_equal(after, [0.0, 0.0])


def test_python_in_a_loop_must_not_change_what_a_tape_outside_follows_there():
    v, seen = tw.Variable(2.0), []

    def gradient_around(host):
        @tw.function
        def f(x):
            def body(i, y):
                tw.py_function(host, [], [])
                return i + 1, y * v

            n = tw.cast(x * 0.0, "int32") + 2
            with tw.GradientTape() as tape:
                y = tw.while_loop(lambda i, y: i < n, body, [0, v * x])[1]
            return tape.gradient(y, v)

        return f(tw.constant(1.0))

    def look():
        seen.append(v.numpy())
        return []

    def change():
        v.assign(v * 2.0)
        return []

    assert gradient_around(look).numpy() == 12.0 and seen == [2.0, 2.0]  # 3 v^2
    with pytest.raises(tw.errors.TracingError, match="'Variable'"):
        gradient_around(change)


def test_what_may_fail_and_reads_a_variable_stays_behind_a_host_call():
    first, second = tw.Variable([1.0, 2.0]), tw.Variable([[3.0, 4.0], [5.0, 6.0]])

    def host(x):
        second.assign(second * 10.0)
        return x

    @tw.function
    def step(x):
        first.assign_add(x)
        tw.py_function(host, [x], tw.TensorSpec([2], "float32"))
        second.assign(tw.tensor_scatter_nd_update(second, [[0]], [x]))

    step(tw.constant([7.0, 8.0]))
    np.testing.assert_array_equal(first, [8.0, 10.0])
    np.testing.assert_array_equal(second, [[7.0, 8.0], [50.0, 60.0]])


@ways
def test_a_timestamp_is_the_time_of_each_call(wrap, monkeypatch):
    times = iter([2.5, 1.75e9 + 2**-20])
    f = wrap(lambda x: tw.timestamp() - x)
    f(tw.constant(0.5, tw.float64))  # modules that it imports read the clock, too
    monkeypatch.setattr("time.time", lambda: next(times))
    results = [f(tw.constant(0.5, tw.float64)) for _ in range(2)]
    assert [x.numpy() for x in results] == [2.0, 1.75e9 - 0.5 + 2**-20]
    assert results[0].dtype == tw.float64 and results[0].shape == ()
