"""float16 on a CPU: noticed at its first use, computed in float32 and rounded once an op."""

import numpy as np
import pytest

import tapewright as tw

from ..forks import Forks


@pytest.fixture(autouse=True)
def cpu(device):
    """On a GPU kernels compute in float16 itself."""
    with tw.device("CPU"):
        yield


BEFORE_FIRST_USES = """
import numpy as np, tapewright as tw
from tapewright.core import dtypes
tw.reduce_sum(tw.function(tw.exp)([1.0, 2.0]))
assert dtypes.loaded_halves() == "" and "float16" == tw.float16 and tw.float16.is_floating
"""
FIRST_USES = {
    "an array": "tw.reduce_sum(x)",
    "an array in a traced function": "tw.function(tw.reduce_sum)(x)",
    "a list of numbers": "tw.reduce_sum(tw.constant(list(x)))",
    "a variable": "tw.reduce_sum(tw.Variable(x))",
    "a name": "tw.reduce_sum(tw.fill([3000], tw.constant(0.1, 'float16')))",
    "a cast": "tw.reduce_sum(tw.cast(tw.fill([3000], 0.1), tw.float16))",
    "elements of data": "[tw.reduce_sum(b) for b in "
    "tw.data.Dataset.from_tensor_slices(x).batch(3000)][0]",
}


@pytest.fixture(scope="module")
def forks():
    with Forks(BEFORE_FIRST_USES) as forks:
        yield forks


@pytest.mark.parametrize("use", FIRST_USES)
def test_ops_look_for_it_from_its_first_use_on(use, forks):
    code = f"""
import numpy as np, tapewright as tw
from tapewright.core import dtypes
x = np.full(3000, 0.1, np.float16)
print({FIRST_USES[use]}.numpy(), dtypes.loaded_halves())
"""
    assert forks.output(code) == "300.0 e\n"


def test_sums_are_made_in_float32():
    x = tw.constant(np.full((4000, 2), 0.1, np.float16))
    expected = np.float16(4000 * np.float64(np.float16(0.1)))
    # Added up in float16, both stop at 256: 0.1 is then less than half of the last digit.
    assert tw.reduce_sum(x, 0).numpy().tolist() == [expected] * 2
    product = tw.matmul(tw.ones([1, 4000], tw.float16), x)
    assert product.numpy().tolist() == [[expected] * 2]


def test_a_sum_on_the_way_may_be_beyond_its_range():
    x = tw.constant([[6e4, 6e4, -6e4]], tw.float16)
    assert float(tw.reduce_sum(x)) == float(x[0, 0])
    ones = tw.ones([3, 1], tw.float16)
    assert float(tw.matmul(x, ones)[0, 0]) == float(x[0, 0])


@pytest.mark.parametrize("target", ["eager", "numpy", "native"])
def test_what_is_beyond_its_range_becomes_infinite(target):
    if target == "native":
        pytest.importorskip("llvmlite")

    def products(x):
        return tw.matmul(x, x), tw.matmul(-x, x), x * x

    x = tw.fill([2, 2], tw.constant(300.0, tw.float16))
    with np.errstate(over="ignore"):
        if target == "eager":
            found = products(x)
        else:
            with tw.config.use_target(target):
                found = tw.function(products)(x)
    for y, value in zip(found, (np.inf, -np.inf, np.inf), strict=True):
        assert (y.numpy() == value).all()


def test_an_op_of_several_functions_is_rounded_once():
    x = tw.constant(np.random.default_rng(1).normal(size=1000).astype(np.float16))
    wide = tw.cast(x, tw.float32)
    for op in (tw.nn.gelu, tw.nn.softmax, tw.nn.softplus, tw.math.erf, tw.reduce_mean):
        np.testing.assert_array_equal(
            op(x).numpy(), op(wide).numpy().astype(np.float16)
        )


@pytest.mark.parametrize("op", [tw.linalg.cholesky, tw.linalg.inv, tw.linalg.svd])
def test_lapack_refuses_it_eager_and_traced(op):
    x = tw.eye(2, dtype=tw.float16)
    for call in (op, tw.function(op)):
        with pytest.raises(TypeError):
            call(x)
