"""Every line of the op table in bfloat16: beside float32, rounded once, eager and traced."""

import re

import numpy as np
import pytest

import tapewright as tw

REFUSED = "half precision|float32 or float64"
RTOL = (
    2.0**-6
)  # of gradients, and of functions of several ops: a few roundings of 8 bits


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


def inputs_of(case, dtype):
    """The inputs in another floating dtype, with numbers that bfloat16 holds."""
    found = []
    for array in map(np.asarray, case.inputs):
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array = array.astype(tw.bfloat16.dtype).astype(dtype.dtype)
        elif array.dtype.kind == "c":
            array = array.astype(np.complex64)
        found.append(tw.constant(array))
    return found


def has_own_dtype(case):
    """Whether the dtype of the output is asked for: no other one is then expected."""
    op = case.primitive
    return op is not None and op.moves and {"dtype", "type"} & case.attributes.keys()


def compare(got, wide, once):
    if wide.dtype is not tw.float32:
        assert got.dtype is wide.dtype
        if not wide.dtype.is_complex:
            np.testing.assert_array_equal(got.numpy(), wide.numpy())
            return
    else:
        assert got.dtype is tw.bfloat16
    got, wide = got.numpy(), wide.numpy()
    assert got.shape == wide.shape
    if once and wide.dtype.kind == "f":
        with np.errstate(over="ignore"):
            expected = np.asarray(wide).astype(got.dtype)
        np.testing.assert_array_equal(np.float32(got), np.float32(expected))
        return
    size = np.abs(wide[np.isfinite(wide)]).max(initial=1)
    got = np.asarray(got, wide.dtype)
    np.testing.assert_allclose(got, wide, rtol=RTOL, atol=RTOL * size)


def bits(x):
    return x.numpy().view(np.uint16) if x.dtype is tw.bfloat16 else x.numpy()


def test_an_op_is_rounded_once_and_gives_the_same_traced(any_case):
    floating = [np.asarray(x).dtype.kind == "f" for x in any_case.inputs]
    if not any(floating) or has_own_dtype(any_case):
        pytest.skip("no floating inputs, or a dtype that is asked for")
    try:
        wide = computed(any_case, inputs_of(any_case, tw.float32))
    except TypeError:
        pytest.skip("not of float32 either")
    inputs = inputs_of(any_case, tw.bfloat16)
    try:
        narrow = computed(any_case, inputs)
    except TypeError as error:
        assert re.search(REFUSED, str(error))
        with pytest.raises(TypeError):  # as NumPy's half precision is
            computed(any_case, inputs_of(any_case, tw.float16))
        pytest.skip("refused")
    once = any_case.primitive is not None
    for got, expected in zip(narrow[0], wide[0], strict=True):
        compare(got, expected, once)
    for got, expected in zip(narrow[1], wide[1], strict=True):
        assert (got is None) == (expected is None)
        if got is not None:
            compare(got, expected, False)
    try:
        traced = tw.function(lambda *given: computed(any_case, given))(*inputs)
    except tw.errors.TracingError:
        return  # the shape depends on values
    target = tw.config.target()
    for got, expected in zip((*traced[0], *traced[1]), (*narrow[0], *narrow[1])):
        if got is None or target != "numpy":
            compare_traced(got, expected)
        else:
            np.testing.assert_array_equal(bits(got), bits(expected))


def compare_traced(got, expected):
    if got is None:
        assert expected is None
        return
    assert got.dtype is expected.dtype
    got, expected = np.asarray(got.numpy()), np.asarray(expected.numpy())
    if got.dtype == tw.bfloat16.dtype:
        got, expected = np.float32(got), np.float32(expected)
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=RTOL)
