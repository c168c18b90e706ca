"""`KerasFileEditor`: weights of files looked at, changed and saved again."""

from pathlib import Path

import numpy as np
import pytest

from tapewright import keras
from tapewright.errors import SavingError

REFERENCE = Path(__file__).parent / "reference"


def model(units=2):
    inner = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)], name="inner")
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, name="one"), inner,
         keras.layers.Dense(units, name="two")]
    )  # fmt: skip


def weights(model):
    return [w.tolist() for w in model.get_weights()]


@pytest.mark.parametrize("suffix", [".keras", ".weights.h5"])
def test_a_file_is_shown_changed_and_saved(tmp_path, capsys, suffix):
    path, other = tmp_path / f"m{suffix}", tmp_path / "other.weights.h5"
    saved = model()
    (saved.save if suffix == ".keras" else saved.save_weights)(path)
    editor = keras.saving.KerasFileEditor(path)
    assert ("Saved with Keras 3.15.1" in capsys.readouterr().out) == (
        suffix == ".keras"
    )
    assert (editor.config is None) == (suffix != ".keras")
    editor.summary()
    assert (
        capsys.readouterr().out
        == """\
Weights structure
  └─ layers
      ├─ dense ('one')
      │   ├─ 0: shape=(4, 3), dtype=float32
      │   └─ 1: shape=(3,), dtype=float32
      ├─ dense_1 ('two')
      │   ├─ 0: shape=(3, 2), dtype=float32
      │   └─ 1: shape=(2,), dtype=float32
      └─ sequential ('inner')
          └─ layers
              └─ dense ('dense')
                  ├─ 0: shape=(3, 3), dtype=float32
                  └─ 1: shape=(3,), dtype=float32
""".replace("('dense')", f"('{saved.layers[1].layers[0].name}')")
    )
    assert editor.compare(saved) == {
        "status": "success", "error_count": 0, "match_count": 6,
    }  # fmt: skip
    assert editor.compare(model(5)) == {
        "status": "error", "error_count": 2, "match_count": 4,
    }  # fmt: skip
    assert "/layers/dense_1/0: reference model (3, 5), saved file (3, 2)" in (
        capsys.readouterr().out
    )
    editor.rename_object("dense_1", "last")
    assert editor.compare(saved)["error_count"] == 2
    editor.rename_object("layers/last", "dense_1")
    editor.add_object("layers/more", {"0": np.ones((2, 2))})
    editor.add_weights("more", {"1": [1.0]})
    editor.delete_weight("more", "0")
    assert list(editor.weights_dict["layers"]["more"]) == ["1"]
    editor.delete_object("more")
    editor.add_weights("dense_1", {"1": np.float32([5, 6])})
    editor.save(other)
    twin = model()
    twin.load_weights(other)
    assert weights(twin)[:-1] == weights(saved)[:-1] and weights(twin)[-1] == [5, 6]


def test_a_recorded_name_goes_with_its_object(tmp_path, capsys):
    model().save(tmp_path / "m.keras")
    editor = keras.saving.KerasFileEditor(tmp_path / "m.keras")
    editor.rename_object("layers/dense", "other")
    editor.rename_object("other", "dense")
    editor.delete_object("dense_1")
    editor.delete_object("sequential")
    editor.add_object("layers/dense_1", {"0": np.ones(3)})
    editor.add_object("layers/sequential", {})
    capsys.readouterr()
    editor.summary()
    lines = [line.strip("│├└─ ") for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines[1:] if "shape" not in line] == [
        "layers", "dense", "dense_1", "sequential",
    ]  # fmt: skip


def test_files_of_keras_keep_all_that_is_not_changed(tmp_path):
    editor = keras.saving.KerasFileEditor(REFERENCE / "trained.keras")
    editor.resave_weights(tmp_path / "same.weights.h5")
    trained = keras.models.load_model(REFERENCE / "trained.keras")
    twin = keras.models.load_model(REFERENCE / "trained.keras")
    for each in (*twin.variables, *twin.optimizer.variables):
        each.assign(np.zeros_like(each.numpy()))
    twin.load_weights(tmp_path / "same.weights.h5")
    assert editor.compare(trained)["status"] == "success"
    for a, b in zip(
        (*trained.variables, *trained.optimizer.variables),
        (*twin.variables, *twin.optimizer.variables),
    ):
        if "seed" not in a.path:
            np.testing.assert_array_equal(a.numpy(), b.numpy(), a.path)


def test_what_is_not_there_or_not_possible_is_named(tmp_path):
    with pytest.raises(
        ValueError, match="must end in .keras or .weights.h5, got 'm.h5'"
    ):
        keras.saving.KerasFileEditor("m.h5")
    broken = tmp_path / "broken.weights.h5"
    broken.write_bytes(b"no HDF5")
    with pytest.raises(SavingError):
        keras.saving.KerasFileEditor(broken)
    editor = keras.saving.KerasFileEditor(REFERENCE / "trained.keras")
    name = next(iter(editor.weights_dict["layers"]))
    for call, message in (
        (lambda: editor.rename_object("none", "x"), "there is no object 'none'"),
        (lambda: editor.rename_object(name, "a/b"), "new_name must be a name without"),
        (lambda: editor.rename_object(f"layers/{name}", name), "exists already"),
        (lambda: editor.rename_object("0", "x"), "pass one of the paths"),
        (lambda: editor.delete_weight(name, "9"), "has no weight '9', it has"),
        (lambda: editor.delete_weight(f"layers/{name}/0", "0"), "is a weight, not an"),
        (lambda: editor.add_object("no/where", {}), "there is no object 'no'"),
        (lambda: editor.add_weights(name, [1]), "weights must be a dict of names"),
        (lambda: editor.save("m.h5"), "must end in .weights.h5, got 'm.h5'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
