"""Saved functions of unknown sizes and ranks."""

import numpy as np
import pytest

import tapewright as tw

from .saving import ROWS, cubed, derivatives, same, through_a_file, traced


def by_rank(x):
    rank = x.shape.rank
    return cubed(x) * (0.0 if rank is None else float(rank))


def by_size(x):
    if x.shape[0] == 1:
        return x * 2.0
    return x * 5.0 if x.shape[0] > 6 else x * 3.0


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 2, 1), (2, 1, 1, 2), (1,) * 8])
def test_a_function_of_any_rank_serves_every_rank(shape, tmp_path):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    functions = [traced(None)(cubed), traced(None)(by_rank)]
    for function, loaded in zip(functions, through_a_file(functions, tmp_path)):
        same(derivatives(loaded, [x]), derivatives(function, [x]), 1e-6)


def test_sizes_that_the_code_asks_for_have_traces_of_their_own(tmp_path):
    function = traced([None, None])(by_size)
    (loaded,) = through_a_file([function], tmp_path)
    for rows in range(12):
        for columns in (0, 1, 2, rows):
            x = np.ones((rows, columns), np.float32)
            np.testing.assert_array_equal(loaded(x), function(x))


def test_two_inputs_of_unknown_rank_broadcast_as_before(tmp_path):
    (loaded,) = through_a_file(
        [traced(None, None)(lambda x, y: cubed(x) + y)], tmp_path
    )
    for x in (np.float32(2.0), ROWS[0], ROWS):
        for y in (np.float32(1.0), ROWS[0], ROWS[:1], np.ones((4, 2, 3), np.float32)):
            np.testing.assert_allclose(loaded(x, y), x**3 + y, rtol=1e-6)


def test_a_rank_that_the_code_refuses_is_refused_with_its_reason(tmp_path):
    function = traced(None)(tw.linalg.matrix_transpose)
    (loaded,) = through_a_file([function], tmp_path)
    assert loaded(ROWS).shape == (3, 2)
    with pytest.raises(ValueError, match=r"ranks \[0\].*matrix_transpose: a .*axes"):
        loaded(1.0)


def test_a_gradient_that_needs_the_rank_has_a_graph_for_each(tmp_path):
    @tw.custom_gradient
    def summed(x):
        return 2.0 * x, lambda g: g * tw.reduce_sum(x, axis=0)

    function = traced(None)(lambda x: summed(x))
    (loaded,) = through_a_file([function], tmp_path)
    for x in (ROWS[0], ROWS, ROWS[None]):
        wanted = derivatives(function, [x])
        np.testing.assert_allclose(wanted[1], np.broadcast_to(x.sum(0), x.shape), 1e-6)
        same(derivatives(loaded, [x]), wanted, 1e-6)


def test_code_that_needs_all_sizes_is_saved_for_those_that_it_was_called_with(tmp_path):
    function = traced([None, 3])(
        lambda x: tw.stack([x[i] * i for i in range(x.shape[0])])
    )
    with pytest.raises(tw.errors.SavingError, match=r"test_symbolic_dims.py:\d+: "):
        through_a_file([function], tmp_path)
    function(ROWS)
    (loaded,) = through_a_file([function], tmp_path)
    np.testing.assert_array_equal(loaded(ROWS), function(ROWS))
    with pytest.raises(
        ValueError, match=r"has no saved trace for the shapes \[\(1, 3\)\]"
    ):
        loaded(ROWS[:1])
