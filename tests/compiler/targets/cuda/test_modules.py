"""One module of functions for a program; numbers that travel with a launch."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.cuda.kernel import Launch, Parameter
from tapewright.compiler.targets.cuda.modules import (
    compiled,
    numbers_function,
    source_of,
)

from ....stand_in import driver
from .runtime_runs import asked, new_log

FLOAT = np.dtype("f")


def launch(body="  p0[0] = 1.0f;\n", place=0):
    return Launch(body, (Parameter(place, FLOAT, True),), (1, 1, 1), (1, 1, 1))


def test_equal_functions_are_compiled_once(gpu):
    source = source_of([launch(), launch(place=3), launch("  p0[0] = 2.0f;\n")])
    assert source.count("__global__") == 2


def test_functions_are_found_by_the_names_of_launches(gpu):
    one, two = launch(), launch("  p0[0] = 2.0f;\n")
    found = compiled(gpu, [one, object(), two])
    assert set(found) == {one.name, two.name}
    x = gpu.zeros(1, FLOAT)
    two.enqueue(found, [x.data.ptr], driver.NULL)
    assert x.get().tolist() == [2.0]


def test_nothing_is_compiled_where_nothing_is_launched(gpu):
    new_log()
    assert compiled(gpu, [object()]) == {} and asked() == []


def test_a_program_is_compiled_as_one_module(gpu, unverified):
    f = tw.function(lambda x: tw.reduce_sum(tw.exp(x)) + tw.reduce_max(tw.cumsum(x)))
    f(tw.ones([3]))
    assert asked().count("compile") <= 2  # and the functions that write numbers


@pytest.mark.parametrize("count", [1, 2, 128])
def test_words_of_any_value_are_written(count, gpu):
    to = gpu.zeros(count + 1, np.int64)
    words = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, count)
    numbers_function(gpu, count)((1,), (1,), (to.data.ptr, *words.tolist()))
    assert to.get().tolist() == [*words.tolist(), 0]


def test_the_function_of_so_many_words_is_made_once(gpu):
    assert numbers_function(gpu, 5) is numbers_function(gpu, 5)
