"""A config in a file cannot ask for more weights than the file holds."""

import json
import zipfile

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.files.limits import SLACK, WeightLimit


def test_weights_are_counted_together():
    limit = WeightLimit("m.keras", 10, "config.json")
    limit("'a' of layer 'd'", (SLACK,))
    limit("'b' of layer 'd'", (10,))
    with pytest.raises(
        tw.errors.SavingError, match=r"'c'.*layer 'd'.*shape \(1,\).*10"
    ):
        limit("'c' of layer 'd'", (1,))


def test_a_layer_that_is_larger_than_the_file_is_refused(tmp_path):
    model = tw.keras.Sequential([tw.keras.Input((4,)), tw.layers.Dense(3, name="d")])
    path, forged = str(tmp_path / "m.keras"), str(tmp_path / "forged.keras")
    model.save(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(forged, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                config = json.loads(content)
                config["config"]["layers"][-1]["config"]["units"] = 1 << 30
                content = json.dumps(config)
            new.writestr(name, content)
    with pytest.raises(tw.errors.SavingError, match="'kernel'.*layer 'd'.*15"):
        tw.keras.models.load_model(forged)
    loaded = tw.keras.models.load_model(path)
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])
