"""What few programs use is loaded when it is asked for, under names there from the start."""

import subprocess
import sys
from types import ModuleType

import pytest

import tapewright as tw
from tapewright.later import load_later

SAVING = "tapewright.saving"
FILES = f"{SAVING}.keras_files"  # some of them are about the configs of models


def in_a_new_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_import_loads_nothing_that_reads_or_writes_files():
    found = in_a_new_process("import sys, numpy, tapewright; print(*sys.modules)")
    own = {name for name in found if name.startswith("tapewright.saving")}
    assert not {name for name in own if not name.startswith(FILES)} - {SAVING}
    assert not {f"{FILES}.models", f"{FILES}.weights"} & own
    assert not {"h5py", "zipfile", "hashlib", "secrets", "json", "tqdm"} & set(found)


@pytest.mark.parametrize(
    "code",
    [
        "from tapewright import saved_model; saved_model.save",
        "from tapewright import train; train.Checkpoint",
        "import tapewright.train; tapewright.train.CheckpointManager",
        "import tapewright; tapewright.saved_model.load",
        "import tapewright; tapewright.test.check_op",
        "from tapewright.keras.models import load_model, save_model",
        "from tapewright.keras.saving import load_weights, save_weights",
        "import tapewright; tapewright.keras.models.load_model",
    ],
)
def test_a_name_of_files_is_there_in_a_new_process(code):
    in_a_new_process(code)


def test_names_that_come_later_are_listed():
    assert {"saved_model", "test", "train"} <= set(dir(tw))
    assert {"load_model", "save_model"} <= set(dir(tw.keras.models))
    assert {"load_weights", "load_model"} <= set(tw.keras.saving.__all__)


def test_a_name_that_comes_later_is_the_one_definition():
    from tapewright.saving.keras_files.models import load_model

    assert tw.keras.models.load_model is load_model is tw.keras.saving.load_model


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'tapewright' has no attribute 'trian'"):
        tw.trian  # noqa: B018


def test_a_name_is_looked_up_once():
    space = ModuleType("space")
    load_later(space, text="json")
    assert "text" not in vars(space)
    assert space.text is vars(space)["text"]
