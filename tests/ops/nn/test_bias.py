"""`bias_add` and `multiply_add`: the op table, formats, errors."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

FUSED = {"expect": lambda x, s, o: x * s + o}

CASES = [
    case("multiply_add", floats(2, 3), floats(3), floats(3), **FUSED),
    case("multiply_add", floats(3), floats(2, 1), floats(1, 3), **FUSED),
    case("multiply_add", floats(3), floats(3), floats(2, 3), **FUSED),
    case("multiply_add", floats(2, 3), floats(), floats(2, 1), **FUSED),
    case("multiply_add", floats(), floats(), floats(), **FUSED),
    case("multiply_add", floats(0, 3), floats(3), floats(1), **FUSED),
    case("multiply_add", complexes(2, 2), complexes(2), complexes(), **FUSED),
    case("multiply_add", integers(2, 2), integers(2), integers(2), **FUSED),
    # composed of others
    case(tw.nn.bias_add, floats(2, 3), floats(3), expect=lambda x, b: x + b),
    case(tw.nn.bias_add, floats(2, 2, 2, 3), floats(3), data_format="NHWC",
         expect=lambda x, b: x + b),
    case(tw.nn.bias_add, floats(2, 3, 2, 2), floats(3), data_format="NCHW",
         expect=lambda x, b: x + b[:, None, None]),
    case(tw.nn.bias_add, floats(2, 3, 2), floats(3), data_format="NC...",
         expect=lambda x, b: x + b[:, None]),
    case(tw.nn.bias_add, floats(0, 3), floats(3), expect=lambda x, b: x + b),
    case(tw.nn.bias_add, complexes(2, 2), complexes(2), expect=lambda x, b: x + b),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_bias_gets_the_sum_over_all_but_the_channels():
    x, bias = tw.ones([2, 3, 4, 5]), tw.zeros([3])
    with tw.GradientTape() as tape:
        tape.watch(bias)
        y = tw.nn.bias_add(x, bias, "NCHW")
    assert tape.gradient(y, bias).numpy().tolist() == [40.0, 40.0, 40.0]


@pytest.mark.parametrize("shape", [(2,), (3, 1), ()])
def test_a_bias_of_another_shape_is_refused(shape):
    with pytest.raises(tw.errors.ShapeError, match="bias .*vector"):
        tw.nn.bias_add(tw.zeros([2, 3]), tw.zeros(shape))


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match=r"data_format .*'N\.\.\.C'.*got 'HWC'"):
        tw.nn.bias_add(tw.zeros([2, 3]), tw.zeros([3]), "HWC")


def test_an_array_takes_the_dtype_of_the_bias():
    value = tw.nn.bias_add(np.ones((2, 3)), tw.constant([1.0, 2.0, 3.0]))
    assert value.dtype == tw.float32 and value.numpy()[0].tolist() == [2.0, 3.0, 4.0]
