"""Every case of the op table on arrays that are as strict as CuPy's."""

import copy

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices

from ..op_table import with_gradients


def test_every_op_runs_forwards_and_backwards_without_touching_the_host(
    any_case, strict
):
    def outputs():
        return run(*map(tw.constant, any_case.inputs))

    run = with_gradients(any_case)
    with devices.use_module(strict):
        found = outputs()
    for a, b in zip(found, outputs(), strict=True):
        kind = type(strict.asarray(0.0))
        assert (type(a.array), a.dtype, a.shape) == (kind, b.dtype, b.shape)
        rtol = 1e-5 if np.asarray(b).dtype.itemsize <= 4 else 1e-9
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol, rtol)


def test_the_stand_in_refuses_what_cupy_refuses(strict):
    x = strict.asarray(np.ones(3))
    with pytest.raises(TypeError, match="not allowed"):
        np.asarray(x)
    with pytest.raises(TypeError, match="Unsupported type.*numpy.ndarray"):
        x + np.ones(3)
    with pytest.raises(TypeError):
        np.exp(x)
    with pytest.raises(AttributeError, match="'block'"):
        strict.block([x])
    assert type(x.sum()) is type(x)


def test_arrays_do_not_change_their_module_on_the_way(strict):
    with devices.use_module(strict):
        x = tw.constant([1.0, 2.0])
        with tw.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                y = tw.reduce_sum(tw.sigmoid(x) * 2.0 + tw.norm(x))
            g = tape.gradient(y, x)
    kind = type(strict.asarray(0.0))
    values = [x, y, g, outer.gradient(g, x), outer.jacobian(g, x)]
    assert all(type(value.array) is kind for value in values)


def test_a_gradient_taken_on_another_device_stays_where_its_tensors_are(strict):
    with devices.use_module(strict):
        x = tw.constant([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, _ = tw.unstack(x)
        y = tw.reduce_sum(first * first * 0.5)
    assert type(tape.gradient(y, x).array) is type(x.array)
    assert type(tape.jacobian(first, x).array) is type(x.array)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tw.einsum("ii->", x),
        lambda x: tw.keras.layers.Dropout(0.5)(x, training=True),
    ],
    ids=["einsum", "Dropout"],
)
def test_what_an_op_adds_is_made_beside_its_inputs(f, strict):
    with devices.use_module(strict):
        x = tw.ones([2, 2])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    g = tape.gradient(y, x)
    assert type(g.array) is type(x.array)


def test_zeros_and_seeds_of_a_tape_are_made_beside_its_tensors(strict):
    with devices.use_module(strict):
        x, other = tw.constant([1.0, 2.0]), tw.constant([3.0])
    with tw.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    kind = type(x.array)
    zero = tape.gradient(y, other, unconnected_gradients="zero")
    seeded = tape.gradient(y, x, output_gradients=np.array([1.0, 2.0]))
    looped = tape.jacobian(y, x, experimental_use_pfor=False)
    blank = tape.jacobian(y, other, unconnected_gradients="zero")
    assert {type(g.array) for g in (zero, seeded, looped, blank)} == {kind}


# ------------------------------------------------ what CuPy lets pass is refused all the same


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: tw.gather([1, 2], [2]), IndexError, "from 0 to 1, got 2"),
        (lambda: tw.gather([1, 2], [-1]), IndexError, "from 0 to 1, got -1"),
        (lambda: tw.constant([1, 2])[tw.constant([5])], IndexError, "5"),
        (lambda: tw.gather_nd([[1]], [[0, 3]]), IndexError, "got 3"),
        (lambda: tw.scatter_nd([[4]], [1.0], [4]), IndexError, "got 4"),
        (lambda: tw.tensor_scatter_nd_max([1], [[9]], [2]), IndexError, "got 9"),
        (lambda: tw.math.unsorted_segment_sum([1.0], [7], 2), ValueError, "got 7"),
        (lambda: tw.dynamic_partition([1], [3], 2), ValueError, "got 3"),
        (lambda: tw.unravel_index([9], [3, 3]), ValueError, "9"),
        (lambda: tw.math.invert_permutation([1, 1]), ValueError, "permutation of 0"),
        (lambda: tw.reverse_sequence([[1, 2]], [3], 1), ValueError, "from 0 to 2"),
        (lambda: tw.constant([1]) // tw.constant([0]), ValueError, "divided by 0"),
        (
            lambda: tw.linalg.inv([[1.0, 1.0], [1.0, 1.0]]),
            ValueError,
            "inv.*invertible",
        ),
        (lambda: tw.linalg.cholesky([[-1.0]]), ValueError, "positive definite"),
        (
            lambda: tw.linalg.triangular_solve([[0.0]], [[1.0]]),
            ValueError,
            "diagonal",
        ),
    ],
)
@pytest.mark.parametrize("place", ["cpu", "gpu"])
def test_values_that_make_no_sense_are_refused_alike(call, error, match, place, strict):
    with devices.use_module(np if place == "cpu" else strict):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.parametrize("op", [tw.linalg.inv, tw.linalg.det, tw.linalg.pinv])
def test_nan_passes_through_linear_algebra(op, strict):
    with devices.use_module(strict):
        found = op([[[np.nan, 1.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]]).numpy()
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()


def test_a_copy_of_a_variable_stays_beside_it(strict):
    v = tw.Variable([1.0])
    with devices.use_module(strict):
        assert type(copy.deepcopy(v)._array) is type(v._array)
        w = tw.Variable([1.0])
    assert type(copy.deepcopy(w)._array) is type(w._array)


def test_text_stays_on_the_host(strict):
    with devices.use_module(strict):
        assert tw.constant("text").device == "/CPU:0"


def test_sums_where_rows_meet_do_not_depend_on_the_order_of_threads(
    strict, monkeypatch
):
    def refuse(*_):
        raise AssertionError("the order of threads decides on the sum")

    for name in ("add", "maximum", "minimum"):
        monkeypatch.setattr(getattr(strict, name), "at", refuse, raising=False)
    with devices.use_module(strict):
        x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.gather(x, [0, 1, 0]) ** 2.0)
        slices = tape.gradient(y, x)
        tw.keras.optimizers.SGD(0.5).apply([slices], [x])
        assert x.numpy().tolist() == [[-1.0, -2.0], [0.0, 0.0]]
        for op in (tw.math.unsorted_segment_sum, tw.math.unsorted_segment_max):
            op([1.0, 2.0, 4.0], [1, 0, 1], 2)
        tw.scatter_nd([[1], [1]], [1.0, 2.0], [3])
        tw.tensor_scatter_nd_min([1.0, 2.0], [[1], [1]], [1.0, 2.0])
