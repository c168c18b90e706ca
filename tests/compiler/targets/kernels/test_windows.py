"""Pooling on each target: the numbers of NumPy's kernels, whatever windows and arrays are."""

import numpy as np
import pytest

from ..pooling_cases import POOLS, case_of


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("op", POOLS, ids=lambda op: op.__name__)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_all_windows_are_those_of_numpy(check, op, seed):
    with np.errstate(all="ignore"):
        check(op, *case_of(op, seed), seed)
