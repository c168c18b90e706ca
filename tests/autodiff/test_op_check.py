"""`tw.test.check_op`: a wrong promise of an op is found, and named."""

import numpy as np
import pytest

from tapewright.test import case, check_op, floats


def test_an_op_with_a_wrong_value_fails_by_name():
    with pytest.raises(AssertionError) as caught:
        check_op(case("exp", floats(2), expect=np.expm1))
    assert caught.value.__notes__ == ["exp(2): check value"]


def test_an_op_with_a_wrong_dtype_fails():
    with pytest.raises(AssertionError, match="dtype float64.*int64"):
        check_op(case("floor", floats(2), expect=lambda x: np.floor(x).astype(int)))


def test_an_op_that_is_said_to_refuse_must_refuse():
    with pytest.raises(AssertionError, match="it ran"):
        check_op(case("exp", floats(2), expect=np.exp, unmapped=("x",)))
