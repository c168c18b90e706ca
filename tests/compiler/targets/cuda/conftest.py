"""What the tests of the target cuda share."""

import pytest

from tapewright.core.hardware import devices
from tapewright.core.settings import config

from .program_runs import library


@pytest.fixture(autouse=True)
def stand_ins(without_a_gpu):
    """Run on stand-ins, unless a test asks for a GPU."""


@pytest.fixture
def stand_in():
    """Products are computed by a stand-in for cuBLASLt."""
    with library() as made:
        yield made


@pytest.fixture
def gpu(strict):
    """Arrays are made on the stand-in for a GPU, and functions become CUDA graphs there."""
    from ....stand_in import driver
    from ....stand_in.cublaslt import CublasLt, provided

    def submit(stream, work):
        driver.submit(stream, ("product",), work)

    products = CublasLt(run=submit)
    with provided(lambda: products), config.use_target("auto"):
        with devices.use_module(strict):
            driver.log.clear()
            yield strict
            devices.check_results()


@pytest.fixture
def unverified(monkeypatch):
    """Functions are compiled as they are without tests: nothing waits for their end."""
    monkeypatch.setattr(config, "_verify", False)


@pytest.fixture
def captured(gpu, monkeypatch):
    """All graphs that are captured, in order."""
    from ....stand_in import driver

    class Graph(driver.Graph):
        def __init__(self, work):
            super().__init__(work)
            found.append(self)

    found = []
    monkeypatch.setattr(driver, "Graph", Graph)
    return found
