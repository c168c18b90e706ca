"""State and effects of saved functions: assignments, random numbers, prints."""

import sys

import numpy as np
import pytest

import tapewright as tw

from .saving import through_a_file, traced


def test_variables_are_assigned_as_before(tmp_path):
    v = tw.Variable(1.0)

    @traced([])
    def step(x):
        with tw.GradientTape() as tape:
            y = (v - x) ** 2
        v.assign_sub(0.1 * tape.gradient(y, v))
        return y + v

    (loaded,) = through_a_file([step], tmp_path, [v])
    wanted = [float(step(3.0)) for _ in range(4)]
    v.assign(1.0)
    assert [float(loaded(3.0)) for _ in range(4)] == wanted


def test_random_numbers_go_on_where_they_were(tmp_path):
    generator = tw.random.Generator.from_seed(3)
    function = traced([4])(lambda x: tw.nn.dropout(x, 0.5) + generator.normal([4]))
    function(tw.ones(4))
    before = [v.numpy() for v in function.get_concrete_function().variables]
    states = list(function.get_concrete_function().variables)
    (loaded,) = through_a_file([function], tmp_path, states)
    wanted = [function(tw.ones(4)).numpy() for _ in range(3)]
    for state, value in zip(states, before):
        state.assign(value)
    np.testing.assert_array_equal([loaded(tw.ones(4)) for _ in range(3)], wanted)


def test_prints_and_assertions_are_kept(tmp_path, capsys):
    @traced([3])
    def checked(x):
        tw.print("x:", x, [x[0], 3], output_stream=sys.stdout, summarize=2)
        tw.debugging.check_numerics(x, "numbers")
        tw.debugging.assert_less(x, 10.0, message="too large")
        tw.debugging.assert_near(x, x)
        tw.debugging.Assert(tw.reduce_sum(x) < 9.0, ["sum", x])
        return x

    (loaded,) = through_a_file([checked], tmp_path)
    loaded([1.0, 2.0, 3.0])
    assert capsys.readouterr().out == "x: [1 2 3] [1, 3]\n"
    with pytest.raises(ValueError, match="too large"):
        loaded([11.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="sum"):
        loaded([5.0, 5.0, 5.0])
    with pytest.raises(FloatingPointError, match="numbers"):
        loaded([float("-inf"), 0.0, 0.0])


REFUSED = {
    "py_function": lambda x: tw.py_function(lambda a: a, [x], tw.TensorSpec([3])),
    "numpy_function": lambda x: tw.numpy_function(np.sin, [x], tw.TensorSpec([3])),
    r"numpy\(\)": lambda x: tw.constant(x[0].numpy()),
    "print": lambda x: (tw.print(x, output_stream=str), x)[1],
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_file_can_keep_is_refused_with_its_line(words, tmp_path):
    with pytest.raises(
        tw.errors.SavingError, match=rf"test_saved_effects.py:\d+: {words}"
    ):
        through_a_file([traced([3])(REFUSED[words])], tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_update_of_an_optimizer_is_refused_with_its_line(tmp_path):
    v, optimizer = tw.Variable(1.0), tw.keras.optimizers.SGD(0.1)

    @traced([])
    def step(x):
        optimizer.apply_gradients([(x * v, v)])
        return x

    step(1.0)
    with pytest.raises(
        tw.errors.SavingError, match=r"test_saved_effects.py:\d+: apply_gradients"
    ):
        through_a_file([step], tmp_path)
