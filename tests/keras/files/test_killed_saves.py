"""Saves that are killed: the older file stays, and the next save clears what is left."""

import os
import signal

import pytest

from tapewright import keras

from ...forks import Forks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

# Ends where all is written and nothing has taken its place yet.
SAVING = """
import os, signal
from tapewright import keras
from tapewright.storage import atomic, folders

model = keras.Sequential([keras.Input((30,)), keras.layers.Dense(30)])

def kill(path):
    if path.endswith(".tmp"):
        os.kill(os.getpid(), signal.SIGKILL)

atomic.sync = folders.sync = kill
{save}
"""
SAVES = {
    "m.keras": "model.save({path!r})",
    "m.h5": "model.save({path!r})",
    "m.weights.h5": "model.save_weights({path!r})",
    "m.weights.json": "model.save_weights({path!r}, max_shard_size=4e-6)",
    "m.safetensors": "model.save_weights({path!r})",
    "s.safetensors": "model.save_weights({path!r}, max_shard_size=4e-6)",
    "m": "model.save({path!r}, zipped=False)",
}


@pytest.fixture(scope="module")
def forks():
    with Forks("from tapewright import keras; keras.Model.save") as forks:
        yield forks


@pytest.mark.parametrize("name", SAVES)
def test_the_next_save_clears_what_a_killed_one_left(tmp_path, name, forks):
    model = keras.Sequential([keras.Input((30,)), keras.layers.Dense(30)])
    path = str(tmp_path / name)
    save = SAVES[name].format(path=path)
    exec(save)
    before = sorted(os.listdir(tmp_path))
    status, _, errors = forks.run(SAVING.format(save=save))
    assert status == -signal.SIGKILL, errors
    assert len(os.listdir(tmp_path)) > len(before)
    if name.split(".", 1)[-1].startswith(("weights", "safetensors")):
        model.load_weights(path)
    else:
        keras.models.load_model(path)
    exec(save)
    assert sorted(os.listdir(tmp_path)) == before
