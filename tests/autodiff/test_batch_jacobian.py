"""`batch_jacobian`: a Jacobian for each example, and the check that they are independent."""

import numpy as np
import pytest

import tapewright as tw

from .jacobian_programs import B, C, random_program, weights


def test_the_example_of_the_documentation():
    x = tw.constant([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    expected = [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
    np.testing.assert_allclose(tape.batch_jacobian(y, x), expected)


def test_a_batch_jacobian_is_the_stack_of_the_jacobians_of_examples():
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.nn.elu(tw.matmul(x, B) - 1.5) ** 2
    jb, j = tape.batch_jacobian(y, x), tape.jacobian(y, x)
    assert jb.shape == (4, 3, 3)
    np.testing.assert_allclose(jb, tw.einsum("bxby->bxy", j), atol=1e-12)
    np.testing.assert_allclose(jb, tw.reduce_sum(j, axis=2), atol=1e-12)


def test_a_coupled_batch_jacobian_is_the_derivative_of_the_sum():
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.nn.fused_batch_norm(x, C, C, [0])[0] ** 2
    jb, j = tape.batch_jacobian(y, x), tape.jacobian(y, x)
    np.testing.assert_allclose(jb, tw.einsum("iynx->nyx", j), atol=1e-10)


@pytest.mark.parametrize("use_pfor", [True, False])
def test_a_check_finds_what_couples_the_examples(use_pfor):
    x = tw.Variable(weights(4, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.nn.fused_batch_norm(tw.matmul(x, B), C, C, [0])[0])
        z = tw.concat([x * x, x[:1], x[1:]], axis=0)[:4]
    message = r"not independent: target\[0\] depends on source\[1\]"
    message += ".*standardize" if use_pfor else ""
    with pytest.raises(ValueError, match=message):
        tape.batch_jacobian(y, x, check=True, experimental_use_pfor=use_pfor)
    checked = tape.batch_jacobian(z, x, check=True, experimental_use_pfor=use_pfor)
    np.testing.assert_allclose(checked, tape.batch_jacobian(z, x))


@pytest.mark.parametrize("use_pfor", [True, False])
def test_a_check_of_coupled_examples_fails_in_a_trace(use_pfor):
    @tw.function
    def coupled(x):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tw.nn.fused_batch_norm(x, C, C, [0])[0]
        return tape.batch_jacobian(y, x, check=True, experimental_use_pfor=use_pfor)

    message = "batch_jacobian: the examples could depend on each other.*"
    message += "through standardize.*" if use_pfor else ""
    with pytest.raises(tw.errors.ShapeError, match=message + "take the full jacobian"):
        coupled(weights(4, 3))


def test_a_check_is_not_content_with_rows_that_meet_columns():
    x = tw.Variable(weights(3, 3))
    with tw.GradientTape() as tape:
        y = tw.transpose(x) ** 2
    with pytest.raises(ValueError, match=r"target\[0\].*source\[1\]"):
        tape.batch_jacobian(y, x, check=True)


def test_a_check_of_independent_examples_computes_no_full_jacobian(widths):
    x = tw.Variable(weights(6, 3))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.tanh(tw.matmul(x, B))
    checked = tape.batch_jacobian(y, x, check=True)
    assert widths == [3]
    np.testing.assert_allclose(checked, tape.batch_jacobian(y, x))
    assert tape.batch_jacobian(y, tw.Variable(weights(6, 2)), check=True) is None


@pytest.mark.parametrize("chunk", [None, 1, 2, 7])
@pytest.mark.parametrize("seed", range(5))
def test_batch_jacobians_of_random_programs_agree_with_the_sequential_ones(seed, chunk):
    rng = np.random.default_rng(seed)
    program, x = random_program(rng), tw.Variable(rng.uniform(-1, 1, (3, 4)))
    with tw.GradientTape(persistent=True) as tape:
        y = program(x)
    fast = tape.batch_jacobian(y, x, parallel_iterations=chunk)
    slow = tape.batch_jacobian(y, x, experimental_use_pfor=False)
    full = tw.einsum("iynx->nyx", tape.jacobian(y, x))
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fast, full, rtol=1e-8, atol=1e-10)


def test_a_batch_jacobian_keeps_all_inner_axes():
    x = tw.Variable(weights(2, 3, 2))
    with tw.GradientTape(persistent=True) as tape:
        y = tw.transpose(x, [0, 2, 1]) ** 2
    jb = tape.batch_jacobian(y, x)
    assert jb.shape == (2, 2, 3, 3, 2)
    np.testing.assert_allclose(
        jb, tape.batch_jacobian(y, x, experimental_use_pfor=False)
    )


def test_a_batch_jacobian_of_an_unconnected_source_is_none_or_zero():
    x, other = tw.Variable(weights(4, 3)), tw.Variable(weights(4, 2))
    with tw.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.batch_jacobian(y, other) is None
    zero = tape.batch_jacobian(y, other, unconnected_gradients="zero")
    assert zero.shape == (4, 3, 2) and not zero.numpy().any()


def test_a_batch_of_one_and_a_batch_of_none():
    for rows in (1, 0):
        x = tw.Variable(weights(rows, 3))
        with tw.GradientTape() as tape:
            y = tw.matmul(x, B)
        jb = tape.batch_jacobian(y, x)
        np.testing.assert_allclose(jb, np.broadcast_to(B.T, (rows, 3, 3)))


def test_a_batch_jacobian_has_derivatives():
    x = tw.Variable(weights(3, 2))
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = x**3
        jb = inner.batch_jacobian(y, x)
    np.testing.assert_allclose(outer.gradient(jb, x), 6 * x.numpy())


@pytest.mark.parametrize(
    ("y_shape", "x_shape", "message"),
    [
        ((4,), (4, 3), "target .*rank 2"),
        ((4, 3), (4,), "source .*rank 2"),
        ((4, 3), (3, 4), "first dimension"),
    ],
)
def test_shapes_that_make_no_batch_are_refused(y_shape, x_shape, message):
    x = tw.Variable(np.ones(x_shape))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(x) * np.ones(y_shape)
    with pytest.raises(ValueError, match=message):
        tape.batch_jacobian(y, x)


def test_a_source_of_a_batch_jacobian_must_be_one_tensor():
    with pytest.raises(TypeError, match="source .*got list"):
        tw.GradientTape().batch_jacobian(tw.ones([2, 2]), [tw.ones([2, 2])])
