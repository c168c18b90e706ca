"""``python -m tapewright show`` and ``verify``: what they print, and their exit codes."""

import json
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright import __main__ as command
from tapewright.inspection.verification import verify

from ..hostile import files

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.h5"
    files.write(path, "h5")
    return str(path)


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tapewright", *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_show_prints_a_table_and_ends_with_0(model):
    done = run("show", model)
    assert (done.returncode, done.stderr) == (0, "")
    assert "first   Dense  4x4, 4   float32          20  80 B\n" in done.stdout


def test_show_json_is_json(model, capfd):
    assert command.main(["show", "--json", model]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["totals"]["parameters"] == 50


def test_an_error_is_one_line_and_no_traceback(tmp_path, capfd):
    path = str(tmp_path / "missing.h5")
    assert command.main(["show", path]) == 2
    out, err = capfd.readouterr()
    assert (out, err) == ("", f"{path}: there is no such file\n")


def test_names_of_megabytes_are_cut(tmp_path, capfd):
    config = files.sequential("h5")
    config["config"]["name"] = "x" * 10**6
    files.write(tmp_path / "long.h5", "h5", config)
    assert command.main(["show", str(tmp_path / "long.h5")]) == 0
    assert len(capfd.readouterr().out) < 5000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has this device")
def test_output_that_cannot_be_written_is_told_in_a_line(model):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tapewright", "show", model],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "No space left" in done.stderr and "Traceback" not in done.stderr


def test_verify_tells_of_each_file_and_ends_with_the_worst(model, tmp_path, capfd):
    (tmp_path / "empty").touch()
    assert command.main(["verify", model, str(tmp_path / "empty")]) == 1
    out, err = capfd.readouterr()
    assert f"{model}: OK" in out
    assert err == f"{tmp_path / 'empty'}: is empty\n"


def test_a_wrong_command_ends_with_2(capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["explode", "x"])
    assert end.value.code == 2
    assert "show" in capsys.readouterr().err


def _crash(path):
    os.kill(os.getpid(), signal.SIGTERM)


@needs_fork
def test_a_crash_of_the_library_is_told_in_a_line(model, capfd, monkeypatch):
    monkeypatch.setattr(command, "describe", _crash)
    assert command.main(["show", model]) == 2
    assert capfd.readouterr().err == (
        f"{model}: is damaged: reading it crashes HDF5 (signal 15)\n"
    )


@needs_fork
def test_an_endless_loop_of_the_library_comes_to_an_end(model, capfd, monkeypatch):
    monkeypatch.setattr(command, "SECONDS", 0.1)
    monkeypatch.setattr(command, "describe", lambda path: time.sleep(100))
    assert command.main(["show", model]) == 2
    assert "reading it takes HDF5 too long" in capfd.readouterr().err


def test_sound_files_have_no_faults(tmp_path):
    for kind in files.KINDS:
        files.write(tmp_path / kind, kind)
        assert verify(tmp_path / kind)[0] == []


def test_values_that_are_not_finite_are_a_note(tmp_path):
    def edit(file, kernel):
        file[kernel][0, :2] = np.nan, np.inf

    files.write(tmp_path / "m", "h5", edit=edit)
    faults, notes = verify(tmp_path / "m")
    assert faults == []
    assert "[/model_weights/first/first/kernel] 2 of 16 values are not finite" in notes


def test_an_array_that_no_layer_has_is_a_note(tmp_path):
    def edit(file, kernel):
        file["model_weights/more"] = np.zeros(3)

    files.write(tmp_path / "m", "h5", edit=edit)
    assert "[/model_weights/more] no layer uses this array" in verify(tmp_path / "m")[1]


def test_all_faults_are_told_not_only_the_first(tmp_path):
    def edit(file, kernel):
        files.bomb(file, kernel, (1 << 20, 1 << 20))
        files.bomb(file, kernel.replace("first", "second"), (1 << 20, 1 << 20))

    files.write(tmp_path / "m", "h5", edit=edit)
    faults, _ = verify(tmp_path / "m")
    assert len(faults) == 2
    assert all("declares 4398046511104 bytes" in fault for fault in faults)


def test_a_model_that_needs_a_class_of_the_user_is_not_loaded(tmp_path):
    layers = [files.entry("my>Block", name="first")]
    weights = {"first": files.arrays()["first"]}
    files.write(tmp_path / "m", "h5", files.sequential(layers=layers), weights=weights)
    faults, notes = verify(tmp_path / "m")
    assert faults == []
    assert any("registered names my>Block" in note for note in notes)


def test_weights_that_do_not_fit_the_config_are_a_fault(tmp_path):
    def edit(file, kernel):
        files.replace(file, kernel, np.zeros((4, 5), "f4"))

    files.write(tmp_path / "m", "h5", edit=edit)
    (fault,) = verify(tmp_path / "m")[0]
    assert "(4, 5)" in fault


def test_shards_are_told_and_verified(tmp_path):
    with h5py.File(tmp_path / "a.weights.h5", "w") as file:
        file["layers/dense/vars/0"] = np.full(3, np.nan)
    index = {"weight_map": {"/layers/dense/vars": "a.weights.h5"}}
    (tmp_path / "m.weights.json").write_text(json.dumps(index))
    faults, notes = verify(tmp_path / "m.weights.json")
    assert faults == []
    assert any("3 of 3 values are not finite" in note for note in notes)
    told = command.describe(tmp_path / "m.weights.json")
    assert told["tables"][0]["rows"] == [
        {"file": "a.weights.h5", "arrays": 1, "bytes": 24}
    ]


def test_our_files_are_sound_and_sealed(tmp_path):
    model = tw.keras.Sequential(
        [tw.keras.layers.InputLayer((2,)), tw.keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.save(tmp_path / "m.h5")
    model.save(tmp_path / "m.keras")
    model.save_weights(tmp_path / "m.weights.h5")
    tw.train.Checkpoint(model=model).write(tmp_path / "c.h5")
    for name in ("m.h5", "m.keras", "m.weights.h5", "c.h5"):
        assert verify(tmp_path / name) == ([], [])


def test_a_gap_in_numbered_weights_is_a_fault_of_keras_files_only(tmp_path):
    for name, attributes in (("m.weights.h5", {}), ("c.h5", {"format": "other"})):
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs.update(attributes)
            for key in "02":
                file[f"layers/dense/vars/{key}"] = np.zeros(3)
    (fault,) = verify(tmp_path / "m.weights.h5")[0]
    assert "[/layers/dense/vars]" in fault and "['0', '2']" in fault
    assert verify(tmp_path / "c.h5")[0] == []
