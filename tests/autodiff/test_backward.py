"""The backward pass: from targets to sources, connected or not, dense, sparse and complex."""

import math
from collections import namedtuple

import numpy as np
import pytest

import tapewright as tw
from tapewright import UnconnectedGradients

from .tapes import power_tape

# ------------------------------------------------------------------ sources and targets


def test_sources_come_back_in_their_nest():
    Pair = namedtuple("Pair", "first second")
    x, y, z = tw.Variable(1.0), tw.Variable(2.0), tw.Variable(3.0)
    with tw.GradientTape(persistent=True) as tape:
        out = x * y * z
    found = tape.gradient(out, {"z": z, "pair": Pair(x, (y,)), "list": [x]})
    assert list(found) == ["z", "pair", "list"]
    assert found["z"].numpy() == 2.0 and found["list"][0].numpy() == 6.0
    assert isinstance(found["pair"], Pair) and found["pair"].second[0].numpy() == 3.0
    assert tape.gradient(out, []) == []
    assert tape.gradient(out, ()) == ()
    assert tape.gradient(out, {}) == {}


def test_targets_in_a_nest_are_summed():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        targets = {"square": x * x, "more": [x, tw.exp(0.0 * x)]}
    assert tape.gradient(targets, x).numpy() == 6.0 + 1.0


def test_the_components_of_a_target_are_summed():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        y = x * [3.0, 4.0]
    assert tape.gradient(y, x).numpy() == 7.0


def test_the_same_target_twice_counts_twice():
    tape, x, y = power_tape()
    assert tape.gradient([y, y], x).numpy() == 12.0


def test_the_same_source_twice_is_answered_twice():
    tape, x, y = power_tape()
    assert [g.numpy() for g in tape.gradient(y, [x, x])] == [6.0, 6.0]


def test_an_intermediate_is_a_source():
    x = tw.constant([1.0, 3.0])
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    np.testing.assert_allclose(tape.gradient(z, x), [4.0, 108.0])
    np.testing.assert_allclose(tape.gradient(z, y), [2.0, 18.0])
    np.testing.assert_allclose(tape.gradient(y, x), [2.0, 6.0])
    both = tape.gradient(z, [y, x])
    np.testing.assert_allclose(both[0], [2.0, 18.0])
    np.testing.assert_allclose(both[1], [4.0, 108.0])


def test_nothing_behind_an_intermediate_source_is_computed():
    images = tw.Variable(np.ones((2, 2, 1), np.float32))
    with tw.GradientTape() as tape:
        h = tw.image.adjust_contrast(images, 2.0)  # has no gradient
        z = h * h
    np.testing.assert_allclose(tape.gradient(z, h), np.full((2, 2, 1), 2.0))


def test_an_op_without_gradient_off_the_path_does_no_harm():
    x, images = tw.Variable(2.0), tw.Variable(np.ones((2, 2, 1), np.float32))
    with tw.GradientTape() as tape:
        z = x * x + tw.reduce_sum(tw.image.adjust_contrast(images, 2.0))
    assert tape.gradient(z, x).numpy() == 4.0


def test_a_target_that_is_the_source_has_gradient_one():
    tape, x, y = power_tape(persistent=True)
    assert tape.gradient(y, y).numpy() == 1.0


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_a_target_that_no_tape_knows_is_a_source_of_itself(wrap):
    @wrap
    def by_itself(test, seed):
        with tw.GradientTape(persistent=True) as tape:
            y = tw.cond(test, lambda: tw.ones([2]), lambda: tw.zeros([2]))
            z = tw.constant([[1.0], [2.0]]) * 2.0
        with_seeds = tape.gradient([y, z, y], [y, z], output_gradients=[seed, z, seed])
        return [
            *with_seeds,
            tape.gradient(y, y),
            tape.jacobian(y, y),
            tape.batch_jacobian(z, z),
        ]

    found = by_itself(tw.constant(True), tw.constant([3.0, 4.0]))
    wanted = [[6, 8], [[2], [4]], [1, 1], np.eye(2), np.ones((2, 1, 1))]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_what_can_have_a_derivative_is_a_source_of_itself():
    v, n = tw.Variable([1.0, 2.0], trainable=False), tw.constant(3)
    with tw.GradientTape(persistent=True) as tape:
        y = v * 2.0
    np.testing.assert_array_equal(tape.gradient([v, y, v], v), [2, 2])
    assert tape.gradient(n, n) is None
    assert tape.gradient(y, v) is None
    assert tape.jacobian(y, v) is None
    assert "the target is the source" in str(tape.explain(y, y))
    first = y[0]
    np.testing.assert_array_equal(tape.hessian(first, first), 0.0)


def test_asking_for_a_gradient_by_itself_changes_no_explanation():
    v = tw.Variable(1.0)
    with tw.GradientTape(persistent=True) as tape:
        y = tw.stop_gradient(v * 2.0)
    before = str(tape.explain(y, v))
    assert "stop_gradient" in before
    assert tape.gradient(y, y).numpy() == 1.0
    assert str(tape.explain(y, v)) == before


def test_a_target_among_targets_is_an_intermediate_of_another():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
        z = y * x
    assert tape.gradient([y, z], [x, y])[0].numpy() == 6.0 + 27.0


def test_a_target_and_source_y_gets_its_own_one_and_what_comes_back():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * x
        z = y * x
    assert tape.gradient([y, z], y).numpy() == 1.0 + 3.0


def test_a_variable_as_target():
    x, other = tw.Variable([1.0, 2.0]), tw.Variable(1.0)
    with tw.GradientTape(persistent=True) as tape:
        y = x * 3.0
    np.testing.assert_allclose(tape.gradient(x, x), [1.0, 1.0])
    np.testing.assert_allclose(tape.gradient([x, y], x), [4.0, 4.0])
    assert tape.gradient(x, other) is None


def test_a_variable_as_target_need_not_have_been_read():
    x, frozen = tw.Variable([1.0, 2.0]), tw.Variable(1.0, trainable=False)
    with tw.GradientTape(persistent=True) as tape:
        pass
    np.testing.assert_allclose(tape.gradient(x, x), [1.0, 1.0])
    np.testing.assert_allclose(tape.jacobian(x, x), np.eye(2))
    assert tape.gradient(frozen, frozen).numpy() == 1.0  # as in TensorFlow


def test_a_fan_out_is_summed():
    x = tw.Variable(2.0)
    with tw.GradientTape() as tape:
        a = x * 3.0
        y = a * a + a * x + x  # 9x^2 + 3x^2 + x
    assert tape.gradient(y, x).numpy() == 2 * 12 * 2.0 + 1


def test_a_hundred_reads_of_a_variable_are_summed():
    v = tw.Variable(1.0)
    with tw.GradientTape() as tape:
        y = sum((v * float(i) for i in range(100)), tw.constant(0.0))
    assert tape.gradient(y, v).numpy() == 4950.0


def test_a_long_chain_needs_no_recursion():
    x = tw.Variable(1.0)
    with tw.GradientTape() as tape:
        y = x
        for _ in range(5000):
            y = y * 1.0
    assert tape.gradient(y, x).numpy() == 1.0


def test_the_gradient_of_a_broadcast_operand_has_its_shape():
    row, column = tw.Variable([[1.0, 2.0, 3.0]]), tw.Variable([[10.0], [20.0]])
    with tw.GradientTape() as tape:
        y = row * column
    by_row, by_column = tape.gradient(y, [row, column])
    np.testing.assert_allclose(by_row, [[30.0, 30.0, 30.0]])
    np.testing.assert_allclose(by_column, [[6.0], [6.0]])


@pytest.mark.parametrize("name", ["target", "sources"])
@pytest.mark.parametrize("thing", [None, 1.0, np.float32(2.0), np.ones(2), "x"])
def test_what_has_left_the_tape_is_refused_by_name(name, thing):
    tape, x, y = power_tape()
    arguments = {"target": y, "sources": x} | {name: thing}
    with pytest.raises(
        TypeError, match=f"{name} must be a tensor.*{type(thing).__name__}"
    ):
        tape.gradient(**arguments)
    assert tape.gradient(y, x).numpy() == 6.0  # the mistake did not spend the tape


def test_unknown_arguments_are_type_errors():
    tape, x, y = power_tape()
    with pytest.raises(TypeError, match="source"):
        tape.gradient(y, source=x)
    with pytest.raises(TypeError, match="persist"):
        tw.GradientTape(persist=True)


# ------------------------------------------------------------------------ no connection


def test_an_unconnected_source_is_none_by_default_or_zero():
    x, other = tw.Variable([1.0, 2.0]), tw.Variable(np.ones((2, 3), np.float64))
    with tw.GradientTape(persistent=True) as tape:
        y = x * x
    assert tape.gradient(y, other) is None
    assert tape.gradient(y, other, unconnected_gradients="none") is None
    for zero in ("zero", UnconnectedGradients.ZERO):
        gradients = tape.gradient(y, {"x": x, "o": other}, unconnected_gradients=zero)
        np.testing.assert_allclose(gradients["x"], [2.0, 4.0])
        assert gradients["o"].shape == (2, 3) and gradients["o"].dtype == "float64"
        assert not gradients["o"].numpy().any()


def test_an_unknown_word_for_unconnected_gradients_is_refused():
    tape, x, y = power_tape()
    for method in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(ValueError, match="unconnected_gradients.*'nil'"):
            method(y, x, unconnected_gradients="nil")
    assert tape.gradient(y, x).numpy() == 6.0


def test_the_wrong_way_round_is_none():
    tape, x, y = power_tape()
    assert tape.gradient(x, y) is None


def test_numpy_in_between_cuts_the_tape():
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        y = np.mean(x * x, axis=0)
        z = tw.reduce_mean(y)
    assert isinstance(y, np.ndarray)
    assert tape.gradient(z, x) is None


@pytest.mark.parametrize(
    "cut",
    [
        tw.round,
        tw.floor,
        tw.sign,
        lambda x: tw.cast(tw.cast(x, "int32"), "float32"),
        lambda x: tw.cast(tw.argmax([x, x]), "float32"),
        lambda x: tw.cast(x > 1.0, "float32"),
        tw.stop_gradient,
        lambda x: tw.constant(x.numpy()),
    ],
)
def test_what_is_flat_or_cut_gives_none_or_zero(cut):
    x = tw.Variable(1.5)
    with tw.GradientTape(persistent=True) as tape:
        y = cut(x) * 2.0
    gradient = tape.gradient(y, x)
    assert gradient is None or gradient.numpy() == 0.0
    assert tape.gradient(y, x, unconnected_gradients="zero").numpy() == 0.0


def test_integer_targets_and_sources_have_no_gradient():
    x = tw.Variable(3)
    with tw.GradientTape(persistent=True) as tape:
        y = x * x
        z = tw.cast(y, "float32") * 2.0
    assert tape.gradient(y, x) is None
    assert tape.gradient(z, x) is None
    assert tape.gradient(z, x, unconnected_gradients="zero").dtype == "int32"


def test_only_part_of_a_target_may_be_stopped():
    x = tw.Variable(3.0)
    with tw.GradientTape() as tape:
        y = x * tw.stop_gradient(x)
    assert tape.gradient(y, x).numpy() == 3.0


# --------------------------------------------------------------------- output_gradients


def test_output_gradients_weigh_the_targets():
    x = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        y = x * x
        z = tw.reduce_sum(x)
    weights = tw.constant([10.0, 100.0])
    np.testing.assert_allclose(
        tape.gradient(y, x, output_gradients=weights), [20.0, 400.0]
    )
    np.testing.assert_allclose(tape.gradient(y, x, [weights]), [20.0, 400.0])
    np.testing.assert_allclose(tape.gradient([y, z], x, [weights, 3.0]), [23.0, 403.0])
    np.testing.assert_allclose(tape.gradient([y, z], x, [None, 3.0]), [5.0, 7.0])
    np.testing.assert_allclose(tape.gradient(y, x, np.array([1.0, 0.0])), [2.0, 0.0])


@pytest.mark.parametrize(
    "wrong",
    [[], [1.0, 1.0, 1.0], tw.constant([1.0]), tw.constant(1.0), tw.ones([2, 2])],
)
def test_output_gradients_that_do_not_fit_are_refused(wrong):
    tape, x, y = power_tape([1.0, 2.0])
    with pytest.raises(ValueError, match="output_gradients"):
        tape.gradient(y, x, output_gradients=wrong)
    np.testing.assert_allclose(tape.gradient(y, x), [2.0, 4.0])


def test_output_gradients_of_another_dtype_are_refused():
    tape, x, y = power_tape()
    with pytest.raises(ValueError, match="float64"):
        tape.gradient(y, x, output_gradients=tw.constant(1.0, dtype="float64"))


def test_output_gradients_are_differentiated_by_an_outer_tape():
    x, w = tw.Variable(3.0), tw.Variable(2.0)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = x**3
        g = inner.gradient(y, x, output_gradients=w * w)  # 3 w^2 x^2
    assert [d.numpy() for d in outer.gradient(g, [x, w])] == [72.0, 108.0]


# --------------------------------------------------------- sparse and complex gradients


def test_the_gradient_of_gather_is_sparse_and_sums_repeated_rows():
    table = tw.Variable(np.arange(6.0).reshape(3, 2))
    with tw.GradientTape() as tape:
        y = tw.gather(table, [2, 0, 2]) * [[1.0], [10.0], [100.0]]
    g = tape.gradient(y, table)
    assert isinstance(g, tw.IndexedSlices) and g.shape == (3, 2)
    np.testing.assert_allclose(
        tw.convert_to_tensor(g), [[10.0, 10.0], [0.0, 0.0], [101.0, 101.0]]
    )


def test_sparse_gradients_add_up_among_themselves_and_with_dense_ones():
    table = tw.Variable(np.ones((3, 2), np.float32))
    with tw.GradientTape(persistent=True) as tape:
        two = tw.gather(table, [0]) + tw.gather(table, [2])
        mixed = tw.reduce_sum(two) + tw.reduce_sum(table)
    sparse = tape.gradient(two, table)
    assert isinstance(sparse, tw.IndexedSlices)
    np.testing.assert_allclose(tw.convert_to_tensor(sparse), [[1, 1], [0, 0], [1, 1]])
    dense = tape.gradient(mixed, table)
    assert isinstance(dense, tw.Tensor)
    np.testing.assert_allclose(dense, [[2, 2], [1, 1], [2, 2]])


def test_a_sparse_gradient_goes_on_through_an_op_as_a_dense_one():
    x = tw.Variable(np.arange(3.0))
    with tw.GradientTape() as tape:
        y = tw.gather(x * x, [1, 1])
    np.testing.assert_allclose(tape.gradient(y, x), [0.0, 4.0, 0.0])


def test_the_second_derivative_through_gather():
    x = tw.Variable(np.arange(1.0, 4.0))
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = tw.reduce_sum(tw.gather(x, [0, 2, 2]) ** 3)
        g = tw.convert_to_tensor(inner.gradient(y, x))
    np.testing.assert_allclose(g, [3.0, 0.0, 54.0])
    second = tw.convert_to_tensor(outer.gradient(g, x))
    np.testing.assert_allclose(second, [6.0, 0.0, 36.0])


def test_complex_gradients_follow_tensorflow():
    z = tw.Variable(1 + 2j)
    with tw.GradientTape(persistent=True) as tape:
        square, size = z**2, tw.abs(z)
    np.testing.assert_allclose(tape.gradient(square, z), 2 - 4j)
    np.testing.assert_allclose(tape.gradient(size, z), (1 + 2j) / abs(1 + 2j))


def test_a_real_function_of_a_complex_chain():
    x = tw.Variable(0.5, dtype="float64")
    with tw.GradientTape() as tape:  # |exp(i x) + 1|^2 = 2 + 2 cos x
        z = tw.exp(tw.complex(0.0 * x, x)) + 1.0
        y = tw.math.real(z * tw.math.conj(z))
    np.testing.assert_allclose(tape.gradient(y, x), -2 * math.sin(0.5))


# ------------------------------------------------------------------------------- errors


def test_an_op_without_gradient_is_a_lookup_error_that_says_how_to_go_on():
    images = tw.Variable(np.ones((2, 2, 1), np.float32))
    with tw.GradientTape() as tape:
        y = tw.image.adjust_contrast(images, 2.0)
    with pytest.raises(
        LookupError, match="No gradient defined for operation"
    ) as caught:
        tape.gradient(y, images)
    assert isinstance(caught.value, tw.errors.GradientLookupError)
    for part in ("AdjustContrastv2", "images", "RegisterGradient", "stop_gradient"):
        assert part in str(caught.value)
