"""Every line of the op table in float16 and bfloat16: beside float32, rounded once, eager
and traced."""

import re

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices

pytestmark = pytest.mark.gpu_first

HALVES = (tw.float16, tw.bfloat16)
REFUSED = "half precision|float32 or float64"
# Of gradients, and of functions of several ops: a few roundings, of 11 or 8 bits.
RTOLS = {"float16": 2.0**-8, "bfloat16": 2.0**-6}


def listed(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def computed(case, inputs):
    """The outputs, and the gradients of the sum of those that have any."""
    with tw.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([x for x in inputs if x.dtype.is_differentiable])
        outputs = listed(case(*inputs))
    targets = [y for y in outputs if y.dtype.is_differentiable]
    found = [None] * len(inputs)
    if case.order and targets:
        found = tape.gradient(targets, inputs)
    return outputs, [None if g is None else tw.convert_to_tensor(g) for g in found]


def inputs_of(case, dtype, half):
    """The inputs in another floating dtype, with numbers that one of 16 bits holds."""
    found = []
    for array in map(np.asarray, case.inputs):
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(half.dtype).astype(dtype.dtype)
        elif array.dtype.kind == "c":
            array = array.astype(np.complex64)
        found.append(tw.constant(array))
    return found


def has_own_dtype(case):
    """Whether the dtype of the output is asked for: no other one is then expected."""
    op = case.primitive
    return op is not None and op.moves and {"dtype", "type"} & case.attributes.keys()


def compare(got, wide, half, once, by_numpy=False):
    """``by_numpy``: whether a ufunc rounds, the last bit of which may be another one."""
    if wide.dtype is not tw.float32:
        assert got.dtype is wide.dtype
        if not wide.dtype.is_complex:
            np.testing.assert_array_equal(got.numpy(), wide.numpy())
            return
    else:
        assert got.dtype is half
    got, wide = got.numpy(), wide.numpy()
    assert got.shape == wide.shape
    if once and wide.dtype.kind == "f":
        with np.errstate(over="ignore"):
            expected = np.asarray(wide).astype(got.dtype)
        got, expected = np.float32(got), np.float32(expected)
        np.testing.assert_allclose(got, expected, rtol=2.0**-10 * by_numpy)
        return
    with np.errstate(over="ignore"):
        infinite = np.isinf(np.asarray(wide, wide.dtype).astype(got.dtype))
    rtol, size = RTOLS[half.name], np.abs(wide[np.isfinite(wide)]).max(initial=1)
    got, wide = np.asarray(got, wide.dtype)[~infinite], wide[~infinite]
    np.testing.assert_allclose(got, wide, rtol=rtol, atol=rtol * size)


def bits(x):
    return x.numpy().view(np.uint16) if x.dtype in HALVES else x.numpy()


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_an_op_is_rounded_once_and_gives_the_same_traced(any_case):
    floating = [np.asarray(x).dtype.kind == "f" for x in any_case.inputs]
    if not any(floating) or has_own_dtype(any_case):
        pytest.skip("no floating inputs, or a dtype that is asked for")
    on_cpu = devices.current_module() is np  # on a GPU kernels compute in float16
    halves = [half for half in HALVES if on_cpu or half is not tw.float16]
    if not [half for half in halves if is_rounded_once(any_case, half)]:
        pytest.skip("refused, or not of float32 either")


def is_rounded_once(case, half):
    """Check a case in a dtype; return whether it takes the dtype."""
    try:
        wide = computed(case, inputs_of(case, tw.float32, half))
    except TypeError:
        return False
    inputs = inputs_of(case, half, half)
    try:
        narrow = computed(case, inputs)
    except TypeError as error:
        if half is tw.bfloat16:
            assert re.search(REFUSED, str(error))
            with pytest.raises(TypeError):  # as NumPy's half precision is
                computed(case, inputs_of(case, tw.float16, half))
        return False
    once = case.primitive is not None
    by_numpy = half is tw.float16 and once and case.primitive.is_ufunc
    if by_numpy and case.primitive.name == "nextafter":
        wide = narrow  # it has other neighbours
    for got, expected in zip(narrow[0], wide[0], strict=True):
        compare(got, expected, half, once, by_numpy)
    for got, expected in zip(narrow[1], wide[1], strict=True):
        assert (got is None) == (expected is None)
        if got is not None:
            compare(got, expected, half, False)
    traced = tw.function(lambda *given: computed(case, given))(*inputs)
    target = tw.config.target()
    for got, expected in zip((*traced[0], *traced[1]), (*narrow[0], *narrow[1])):
        if got is None or target != "numpy":
            compare_traced(got, expected, half)
        else:
            np.testing.assert_array_equal(bits(got), bits(expected))
    return True


def compare_traced(got, expected, half):
    if got is None:
        assert expected is None
        return
    assert got.dtype is expected.dtype
    got, expected = np.asarray(got.numpy()), np.asarray(expected.numpy())
    if got.dtype == half.dtype:
        got, expected = np.float32(got), np.float32(expected)
    rtol = RTOLS[half.name]
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
