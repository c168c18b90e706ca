"""Every case of the op table on arrays that are as strict as CuPy's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.testing import check_op
from tapewright.core import devices


def test_every_op_runs_forwards_and_backwards_without_touching_the_host(
    any_case, strict
):
    with devices.use_module(strict):
        check_op(any_case, order=1)


def test_the_stand_in_refuses_what_cupy_refuses(strict):
    x = strict.asarray(np.ones(3))
    with pytest.raises(TypeError, match="not allowed"):
        np.asarray(x)
    with pytest.raises(TypeError, match="NumPy array"):
        x + np.ones(3)
    with pytest.raises(TypeError):
        np.exp(x)
    with pytest.raises(AttributeError, match="CuPy"):
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
