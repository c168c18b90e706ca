"""`tw.function`: what can be traced, how traces nest, and what they leave behind."""

import functools

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.function.function import Function
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_interpreters

from .counting import Scaler, counted, ones

# ------------------------------------------------------------------- what can be traced


def test_partial_functions_callable_objects_and_lambdas_can_be_traced():
    class Adder:
        n, name = 3.0, "mine"

        def __call__(self, x):
            return x + self.n

    x = tw.constant(1.0)
    partial = tw.function(functools.partial(lambda x, y: x - y, y=3.0))
    assert [partial(x).numpy(), partial(x, y=1.0).numpy()] == [-2, 0]
    assert tw.function(Adder())(x).numpy() == 4
    assert tw.function(lambda x: x * 5.0)(x).numpy() == 5


def test_what_cannot_be_called_cannot_be_traced():
    with pytest.raises(TypeError, match="3.*callable.*object"):
        tw.function(3)


def test_the_decorator_takes_the_arguments_of_tensorflow():
    f = tw.function(
        autograph=False, jit_compile=True, experimental_attributes={"a": 1}
    )(lambda x: x + 1.0)
    assert f(tw.constant(1.0)).numpy() == 2
    assert type(f) is Function


def test_a_traced_function_looks_like_the_one_that_it_traces():
    @tw.function
    def documented(x: int):
        """Its text."""

    assert documented.__name__ == documented.name == "documented"
    assert documented.__doc__ == "Its text."
    assert str(documented.signature) == "documented(x: int)"
    assert documented.python_function(3) is None


# ---------------------------------------------------------------------------- variables


def test_variables_may_be_made_in_the_first_call():
    class Count:
        value = None

        @tw.function
        def step(self, x):
            if self.value is None:
                self.value = tw.Variable(tw.zeros([2]))
            return self.value.assign_add(x) + 0.0

    count = Count()
    assert [count.step(ones(2)).numpy()[0] for _ in range(3)] == [1, 2, 3]
    other = Count()
    assert other.step(ones(2)).numpy()[0] == 1


def test_an_initial_value_may_depend_on_the_arguments():
    held = []

    @tw.function
    def f(x):
        if not held:
            held.append(tw.Variable(tw.Variable(x * 2.0)))
        return held[0] + x

    assert f(tw.constant(3.0)).numpy() == 9
    assert held[0].numpy() == 6
    assert f(tw.constant(1.0)).numpy() == 7


def test_an_initial_value_that_depends_on_a_spec_is_refused():
    f = tw.function(lambda x: tw.Variable(x * 2.0) + 1.0)
    with pytest.raises(ValueError, match="depends on the argument 'x'"):
        f.get_concrete_function(tw.TensorSpec([]))


def test_a_random_initial_value_is_drawn_once():
    held = []

    @tw.function
    def f():
        if not held:
            held.append(tw.Variable(tw.random.normal([3])))
        return held[0] * 1.0

    first = f().numpy()
    assert (f().numpy() == first).all()
    assert (held[0].numpy() == first).all()


def test_an_initial_value_may_come_from_a_function():
    held = []

    @tw.function
    def f():
        if not held:
            held.append(tw.Variable(lambda: tw.ones([2])))
        return held[0] * 2.0

    assert f().numpy().tolist() == [2, 2]


def test_variables_made_in_every_call_are_refused():
    @tw.function
    def f(x):
        return tw.Variable(1.0) + x

    for _ in range(2):
        with pytest.raises(
            ValueError, match="singleton tf.Variables created on the first"
        ):
            f(tw.constant(1.0))


def test_variables_made_in_a_later_trace_are_refused():
    @tw.function
    def f(x, late):
        return tw.Variable(1.0, name="late one") + x if late else x

    f(tw.constant(1.0), False)
    with pytest.raises(ValueError, match="'f'.*'late one'"):
        f(tw.constant(1.0), True)


def test_an_optimizer_may_be_built_in_the_first_call():
    v, optimizer = tw.Variable(1.0), tw.optimizers.SGD(0.5, momentum=0.9)

    @tw.function
    def step():
        optimizer.apply_gradients([(tw.constant(1.0), v)])

    step()
    step()
    assert v.numpy() == pytest.approx(1 - 0.5 - 0.5 * 1.9)
    assert optimizer.iterations.numpy() == 2


def test_numbers_drawn_for_a_new_variable_are_not_drawn_again():
    def program():
        held = []

        def f():
            if not held:
                held.append(tw.Variable(tw.random.normal([2])))
            return tw.stack([held[0], tw.random.normal([2])])

        return f

    tw.random.set_seed(1)
    eager = program()
    expected = [eager().numpy().tolist() for _ in range(2)]
    tw.random.set_seed(1)
    traced = tw.function(program())
    assert [traced().numpy().tolist() for _ in range(2)] == expected


# ------------------------------------------------------------------------------ nesting


def test_a_function_in_a_function_is_traced_once():
    made = []

    @tw.function
    def inner(x):
        made.append(1)
        return x * 2.0

    outer = tw.function(lambda x: inner(x) + inner(x + 1.0))
    assert outer(tw.constant(1.0)).numpy() == 2 + 4
    assert made == [1]
    assert inner(tw.constant(2.0)).numpy() == 4
    assert made == [1]


def test_an_inner_function_may_use_the_tensors_around_it():
    @tw.function
    def outer(x):
        return tw.function(lambda y: y * x)(x + 1.0)

    assert [outer(tw.constant(n)).numpy() for n in (2.0, 3.0)] == [6, 12]


def test_an_inner_function_does_not_keep_tensors_of_a_trace_that_is_over():
    held = []
    inner = tw.function(lambda y: y * held[-1])

    @tw.function
    def outer(x, n):
        held.append(x + n)
        return inner(x)

    assert outer(tw.constant(2.0), 1.0).numpy() == 6
    assert outer(tw.constant(2.0), 2.0).numpy() == 8


def test_a_recursion_ends_where_python_values_decide():
    @tw.function
    def power(x, n):
        return tw.ones_like(x) if n == 0 else x * power(x, n - 1)

    assert power(tw.constant(2.0), 5).numpy() == 32


def test_a_recursion_without_end_is_named():
    @tw.function
    def f(x):
        return f(x + 1.0)

    with pytest.raises(tw.errors.TracingError, match="'f'.*recurses"):
        f(tw.constant(1.0))
    assert active_interpreters() == ()


def test_effects_of_an_inner_function_happen_in_their_place():
    v = tw.Variable(1.0)

    @tw.function
    def double():
        v.assign(v * 2.0)

    @tw.function
    def outer():
        v.assign_add(1.0)
        double()
        return v + 0.0

    assert [outer().numpy() for _ in range(2)] == [4, 10]


# --------------------------------------------------------- tapes and other interpreters


def test_a_tape_around_a_call_sees_through_it():
    v, x = tw.Variable(3.0), tw.constant(2.0)
    f = tw.function(lambda x: x * x * v)
    for _ in range(2):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        dx, dv = tape.gradient(y, [x, v])
        assert [dx.numpy(), dv.numpy()] == [12, 4]


def test_a_tape_inside_is_traced():
    @tw.function
    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    assert [slope(tw.constant(n)).numpy() for n in (1.0, 2.0)] == [3, 12]


@pytest.mark.parametrize("watched_first", [True, False])
def test_a_tensor_of_the_closure_has_a_gradient(watched_first):
    c, x = tw.constant(3.0), tw.constant(2.0)
    f = tw.function(lambda x: c * c * x)
    if not watched_first:
        assert f(x).numpy() == 18
    with tw.GradientTape() as tape:
        tape.watch(c)
        y = f(x)
    assert tape.gradient(y, c).numpy() == 12
    assert f(x).numpy() == 18


def test_a_tensor_of_the_closure_of_an_inner_function_has_a_gradient():
    c, x = tw.constant(3.0), tw.constant(2.0)
    inner = tw.function(lambda x: c * c * x)
    outer = tw.function(lambda x: inner(x) * 2.0)
    outer(x)
    with tw.GradientTape() as tape:
        tape.watch(c)
        y = outer(x)
    assert tape.gradient(y, c).numpy() == 24


def test_a_tape_outside_does_not_record_the_trace():
    c = tw.Variable(1.0)
    f = tw.function(lambda x: [x * c for _ in range(50)][0])
    with tw.GradientTape() as tape:
        f(tw.constant(1.0))
    assert len(tape._tw_tape.records) < 10


def test_numbers_are_checked_in_a_traced_function():
    f = tw.function(lambda x: tw.math.log(x) + 1.0)
    f(tw.constant(1.0))
    tw.debugging.enable_check_numerics()
    try:
        with pytest.raises(FloatingPointError, match="log produced an infinity"):
            f(tw.constant(0.0))
    finally:
        tw.debugging.disable_check_numerics()
    assert f(tw.constant(0.0)).numpy() == -np.inf


def test_a_call_can_be_vectorized():
    f = tw.function(lambda x: x * x)
    rows = tw.vectorized_map(f, tw.constant([1.0, 2.0, 3.0]))
    assert rows.numpy().tolist() == [1, 4, 9]


# --------------------------------------------------------------------- errors and leaks


def test_an_error_while_tracing_leaves_nothing_behind():
    v, optimizer = tw.Variable(1.0), tw.optimizers.SGD(0.5)
    optimizer.build([v])

    @tw.function
    def f(x, fail):
        v.assign_add(x)
        optimizer.apply_gradients([(x, v)])
        if fail:
            raise KeyError("mine")
        return v + 0.0

    with pytest.raises(KeyError, match="mine"):
        f(tw.constant(1.0), True)
    assert active_interpreters() == ()
    assert not f._concrete and f.experimental_get_tracing_count() == 0
    assert v.numpy() == 1 and optimizer.iterations.numpy() == 0
    assert f(tw.constant(1.0), False).numpy() == 1.5


def test_a_tensor_that_leaks_is_named():
    leaked = []

    @tw.function
    def leaky(x):
        leaked.append(x + 1.0)
        return x

    leaky(tw.constant(1.0))
    one = tw.constant(1.0)
    other = tw.function(lambda x: x + leaked[0])
    for use in (
        lambda: leaked[0] + 1.0,
        lambda: one + leaked[0],
        lambda: tw.exp(leaked[0]),
        lambda: tw.stack([one, leaked[0]]),
        lambda: leaked[0].numpy(),
        lambda: float(leaked[0]),
        lambda: tw.Variable(0.0).assign(leaked[0]),
        lambda: other(one),
        lambda: other(leaked[0]),
        lambda: tw.Variable(leaked[0]),
    ):
        with pytest.raises(tw.errors.TracingError, match="'leaky'"):
            use()


def test_a_tensor_of_a_trace_that_failed_is_a_leak():
    leaked = []

    @tw.function
    def f(x):
        leaked.append(x)
        raise KeyError

    with pytest.raises(KeyError):
        f(tw.constant(1.0))
    with pytest.raises(tw.errors.TracingError, match="has ended"):
        leaked[0] + 1.0


# --------------------------------------------------------------- eager runs and devices


def test_functions_can_be_run_eagerly():
    f, seen = tw.function(lambda x: seen.append(1) or x * 2.0), []
    f(tw.constant(1.0))
    tw.config.run_functions_eagerly(True)
    try:
        assert tw.config.functions_run_eagerly()
        assert f(tw.constant(2.0)).numpy() == 4
        assert Scaler(2.0).scaled(tw.constant(2.0)).numpy() == 4
        assert f.get_concrete_function(ones(5))(ones(5)).numpy()[0] == 2
    finally:
        tw.config.run_functions_eagerly(False)
    assert not tw.config.experimental_functions_run_eagerly()
    f(tw.constant(3.0))
    assert seen == [1, 1, 1]


def test_another_array_module_has_its_own_trace(strict, device):
    if device != "cpu":
        pytest.skip("needs two array modules")
    f = counted()
    f(ones(2))
    with devices.use_module(strict):
        x = tw.constant([1.0, 2.0])
        assert type(x.array) is not np.ndarray
        y = f(x)
    assert type(y.array) is type(x.array)
    assert y.numpy().tolist() == [2, 4]
    assert f.experimental_get_tracing_count() == 2


# -------------------------------------------------------- sizes that follow from values


@tw.function
def positive_sum(x):
    return tw.reduce_sum(tw.boolean_mask(x, x > 0))


def in_branches(x):
    if tw.reduce_sum(x) > 0:
        return tw.reduce_sum(x[x > 0])
    return tw.constant(0.0)


def in_steps(x):
    total, n = tw.constant(0.0), tw.constant(0)
    while n < tw.cast(tw.reduce_sum(x), "int32"):
        total, n = total + tw.reduce_sum(x[x > 0]), n + 1
    return total


def in_rows(x):
    return tw.map_fn(
        lambda y: tw.reduce_sum(tw.range(tw.cast(abs(y), "int32"))), x, "int32"
    )


@pytest.mark.parametrize("call", [positive_sum, in_branches, in_steps, in_rows])
@pytest.mark.parametrize("open_size", [False, True])
def test_a_function_runs_eagerly_where_a_size_depends_on_values(call, open_size):
    calls = []

    def run(x):
        calls.append(1)
        return call(x)

    traced = tw.function(
        run, input_signature=[tw.TensorSpec([None if open_size else 3])]
    )
    for values in ([1.0, -2.0, 5.0], [3.0, 1.0, 0.0]):
        x = tw.constant(values)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        found = tape.gradient(y, x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            wanted = call(x)
        np.testing.assert_array_equal(y, wanted)
        if call is not in_rows:
            np.testing.assert_array_equal(found, tape.gradient(wanted, x))
    assert len(calls) <= 6  # the traces that were tried, and the two calls
    with pytest.raises(tw.errors.TracingError):
        tw.function(run).get_concrete_function(tw.constant([1.0]))


def test_a_loop_over_known_steps_needs_no_values_of_a_trace():
    @tw.function
    def total(x):
        for i in tw.range(3):
            x = x + tw.reduce_sum(tw.zeros([i + 1]) + 1.0)
        return x

    assert total(tw.constant(1.0)).numpy() == 7.0 and not total._eager


@pytest.mark.parametrize(
    "function, call, advice",
    [
        (
            lambda x: np.mean(x),
            "np.mean",
            "Use tw.reduce_mean(x), or tw.numpy_function",
        ),
        (lambda x: np.sin(x), "np.sin", "Use tw.sin, or tw.numpy_function"),
        (
            lambda x: np.median(x),
            "np.median",
            "Use the tapewright op in place of np.median",
        ),
    ],
)
def test_a_numpy_function_of_a_traced_tensor_is_answered_with_the_op(
    function, call, advice
):
    with pytest.raises(tw.errors.TracingError) as error:
        tw.function(function)(tw.ones([2]))
    text = "\n".join([str(error.value), *error.value.__notes__])
    assert f"{call} needs the value of a tensor" in text and advice in text
    assert text.count("test_function.py:") == 1
