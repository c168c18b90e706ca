"""What the tests of models share."""

import numpy as np
import pytest


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    return random.normal(size=(5, 3)).astype("f4"), random.normal(size=(5, 2)).astype(
        "f4"
    )
