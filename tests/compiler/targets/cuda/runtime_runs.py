"""Steps on the stand-in for a GPU and on NumPy, and what the driver was asked for."""

import contextlib

import numpy as np

import tapewright as tw
from tapewright import config
from tapewright.core.hardware import devices

from ....stand_in import driver

__all__ = [
    "asked",
    "both",
    "executable_of",
    "graphs",
    "new_log",
    "numbers_of",
    "on_numpy",
]


def new_log():
    driver.log.clear()


def asked():
    """What the driver was asked for since `new_log`, without sizes."""
    return [what[0] for what in driver.log]


def graphs():
    """How many graphs were captured and how many launched since `new_log`."""
    return asked().count("end_capture"), asked().count("graph")


@contextlib.contextmanager
def on_numpy():
    """Arrays are NumPy's, and functions are calls of NumPy."""
    with config.use_target("numpy"), devices.use_module(np):
        yield


def both(train, tolerance=1e-6):
    """Compare what ``train()`` returns, a list of values, on the GPU and on NumPy."""
    with on_numpy():
        tw.random.set_seed(0)
        wanted = [np.asarray(x) for x in train()]
    tw.random.set_seed(0)
    found = [tw.convert_to_tensor(x).numpy() for x in train()]
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, tolerance, tolerance)


def executable_of(function, *args):
    """The executable of the trace of a function for some arguments."""
    concrete = function.get_concrete_function(*args)
    assert concrete.is_compiled
    return concrete.executable


def numbers_of(variables):
    return [v.numpy().tolist() for v in variables]
