"""vectorized_map: one call for all elements, held against a loop over them."""

import warnings

import numpy as np
import pytest

import tapewright as tw


def values(*shape, seed=0):
    return tw.constant(np.random.default_rng(seed).uniform(-1, 1, shape))


def at_once(fn, elems):
    return tw.vectorized_map(fn, elems, fallback_to_while_loop=False)


def in_a_loop(fn, *tensors):
    rows = [
        np.asarray(fn(row[0] if len(tensors) == 1 else row))
        for row in zip(*tensors, strict=True)
    ]
    return np.stack(rows)


W = values(3, 2, seed=9).numpy()

FUNCTIONS = {
    "outer product": lambda r: tw.tensordot(r, r, 0),
    "matrix product": lambda r: tw.matmul(r[None], W)[0],
    "softmax": lambda r: tw.nn.softmax(r) * tw.reduce_max(r),
    "its shape": lambda r: r * tw.cast(tw.shape(r)[0], "float64"),
    "python's loop": lambda r: sum((x * x for x in r), tw.constant(np.float64(0))),
    "stack": lambda r: tw.stack([r, tw.reverse(r, [0])]),
    "gather": lambda r: tw.gather(W, tw.argmax(r)),
    "where": lambda r: tw.where(r > 0.0, r, r * r),
    "a solve": lambda r: tw.linalg.solve(tw.linalg.diag(r + 2.0), W),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_map_is_the_stack_of_its_elements(name):
    x = values(4, 3)
    fn = FUNCTIONS[name]
    np.testing.assert_allclose(at_once(fn, x), in_a_loop(fn, x), rtol=1e-12)


def test_elements_and_results_are_nests():
    x, y = values(4, 3), values(4)
    found = at_once(
        lambda e: {"sum": e["x"] + e["y"], "rest": (e["y"], [e["x"][0]])},
        {"x": x, "y": y},
    )
    np.testing.assert_array_equal(found["sum"], x.numpy() + y.numpy()[:, None])
    assert isinstance(found["rest"], tuple)
    np.testing.assert_array_equal(found["rest"][1][0], x.numpy()[:, 0])


def test_a_first_axis_of_size_one_serves_all_elements():
    x, one = values(4, 3), values(1, 3, seed=1)
    found = at_once(lambda e: e[0] * e[1], (x, one))
    np.testing.assert_array_equal(found, x.numpy() * one.numpy())


def test_what_does_not_depend_on_the_element_is_repeated():
    found = tw.vectorized_map(lambda e: (None, 2.0, W), values(4, 3))
    assert found[0] is None
    np.testing.assert_array_equal(found[1], [2.0] * 4)
    assert found[2].shape == (4, 3, 2)


def test_of_no_elements_comes_nothing():
    assert tw.vectorized_map(lambda r: r[:, None] * r, tw.ones((0, 3))).shape == (
        0,
        3,
        3,
    )


def test_the_function_runs_once():
    calls = []
    at_once(lambda r: calls.append(r) or r * 2.0, values(5, 2))
    assert len(calls) == 1 and calls[0].shape == (2,)


# -------------------------------------------------------------------------- derivatives


def test_gradients_of_single_examples():
    x, y = values(5, 3), values(5, 2, seed=1)
    expected = 2 * x.numpy()[:, :, None] * (x.numpy() @ W - y.numpy())[:, None]
    w = tw.Variable(W)

    def gradient(example):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum((tw.matmul(example[0][None], w)[0] - example[1]) ** 2)
        return tape.gradient(loss, w)

    np.testing.assert_allclose(at_once(gradient, (x, y)), expected)


def test_gradients_pass_through_a_map():
    x, w = tw.Variable(values(5, 3)), tw.Variable(W)
    with tw.GradientTape(persistent=True) as tape:
        mapped = at_once(lambda r: tw.tanh(tw.matmul(r[None], w))[0], x)
        plain = tw.tanh(tw.matmul(x, w))
    for source in (x, w):
        np.testing.assert_allclose(
            tape.gradient(mapped, source), tape.gradient(plain, source)
        )


def test_a_tape_inside_a_map_inside_a_tape():
    w = tw.Variable(W)
    x = values(4, 3)

    def penalty(r):
        with tw.GradientTape() as tape:
            tape.watch(r)
            y = tw.reduce_sum(tw.tanh(tw.matmul(r[None], w)))
        return tw.reduce_sum(tape.gradient(y, r) ** 2)

    with tw.GradientTape(persistent=True) as tape:
        mapped = tw.reduce_sum(at_once(penalty, x))
        looped = sum((penalty(r) for r in x), tw.constant(np.float64(0)))
    np.testing.assert_allclose(mapped, looped)
    np.testing.assert_allclose(tape.gradient(mapped, w), tape.gradient(looped, w))


def test_jacobians_hessians_and_tangents_inside_a_map():
    x = values(4, 3)

    def f(r):
        return tw.tanh(r) * tw.reduce_sum(r)

    def jacobian(r):
        with tw.GradientTape() as tape:
            tape.watch(r)
            y = f(r)
        return tape.jacobian(y, r)

    def hessian(r):
        with tw.GradientTape() as tape:
            tape.watch(r)
            y = tw.reduce_sum(f(r))
        return tape.hessian(y, r)

    def tangent(r):
        return tw.autodiff.jvp(f, r, np.ones(3))[1]

    def product(r):
        return tw.autodiff.hvp(f, r, np.ones(3))

    for fn in (jacobian, hessian, tangent, product):
        np.testing.assert_allclose(at_once(fn, x), in_a_loop(fn, x), atol=1e-12)


def test_a_map_inside_a_jacobian():
    x = values(4, 3)
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = at_once(lambda r: tw.nn.softmax(r), x)
    np.testing.assert_allclose(
        tape.jacobian(y, x),
        tape.jacobian(y, x, experimental_use_pfor=False),
        atol=1e-12,
    )


def test_maps_nest():
    x = values(4, 3)
    found = at_once(lambda r: at_once(lambda c: c * r[0] + tw.reduce_sum(r), r), x)
    a = x.numpy()
    np.testing.assert_allclose(found, a * a[:, :1] + a.sum(1, keepdims=True))


# -------------------------------------------------------------- what cannot be mapped


def test_code_that_looks_at_values_runs_in_a_loop_with_a_warning():
    x = tw.constant([1.0, -1.0])
    with pytest.warns(UserWarning, match="in a loop over the elements"):
        found = tw.vectorized_map(lambda e: e * 2.0 if float(e) > 0 else e, x)
    np.testing.assert_array_equal(found, [2.0, -1.0])


def test_the_warning_names_the_line_of_the_caller():
    with pytest.warns(UserWarning) as caught:
        tw.vectorized_map(lambda e: e if e > 0 else -e, tw.constant([1.0, -1.0]))
    assert caught[0].filename == __file__


def test_the_warning_can_be_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tw.vectorized_map(
            lambda e: e * 2.0 if e > 0 else e, tw.constant([1.0, -1.0]), warn=False
        )
    np.testing.assert_array_equal(found, [2.0, -1.0])


def test_without_a_loop_it_is_an_error():
    with pytest.raises(ValueError, match="stands for the elements all at once"):
        at_once(lambda e: e if e > 0 else -e, tw.constant([1.0, -1.0]))


def test_each_element_draws_random_numbers_of_its_own():
    drawn = tw.vectorized_map(lambda e: tw.random.normal([]), tw.ones(4), warn=False)
    assert len(set(drawn.numpy().tolist())) == 4
    with pytest.raises(ValueError, match="random numbers"):
        at_once(lambda e: tw.random.normal([]), tw.ones(4))


def test_a_variable_is_assigned_to_once_for_each_element():
    count = tw.Variable(0.0)
    tw.vectorized_map(lambda e: count.assign_add(1.0) * e, tw.ones(4), warn=False)
    assert float(count) == 4.0


def test_a_variable_takes_no_tensor_that_stands_for_many():
    v = tw.Variable(0.0)
    with pytest.raises(ValueError, match="assigned to"):
        at_once(lambda e: v.assign(e).read(), tw.ones(4))
    assert float(v) == 0.0


def test_a_mistake_inside_the_function_shows():
    with pytest.raises(ZeroDivisionError):
        tw.vectorized_map(lambda e: 1 / 0, tw.ones(4))


def test_first_axes_must_fit():
    with pytest.raises(ValueError, match="same size"):
        tw.vectorized_map(lambda e: e[0], (tw.ones((3, 2)), tw.ones((2, 2))))
    with pytest.raises(ValueError, match="elems .*first"):
        tw.vectorized_map(lambda e: e, tw.constant(1.0))
    with pytest.raises(ValueError, match="elems .*tensor"):
        tw.vectorized_map(lambda e: e, [])


def test_a_mistake_in_fn_is_raised_and_fn_not_called_again():
    calls = []

    def fn(x):
        calls.append(x)
        return x.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):
        tw.vectorized_map(fn, tw.zeros(3))
    assert len(calls) == 1


def test_sizes_that_differ_from_element_to_element_need_a_loop():
    with pytest.warns(UserWarning, match="in a loop over the elements"):
        found = tw.vectorized_map(lambda n: tw.zeros([n]), tw.constant([2, 2]))
    assert found.shape == (2, 2)


def test_a_draw_with_a_new_seed_is_refused_too():
    with pytest.raises(ValueError, match="drawing random numbers"):
        at_once(lambda x: tw.random.normal([], seed=5_204_117), values(4))
