"""Names of files that end in the suffix of another format."""

import pytest

import tapewright as tw
from tapewright import keras

OTHERS = ".keras .weights.h5 .onnx .pb .tflite .safetensors .npz .pt .ONNX".split()


@pytest.fixture
def model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


@pytest.mark.parametrize("suffix", OTHERS)
def test_a_file_in_hdf5_has_no_suffix_of_another_format(model, tmp_path, suffix):
    path = str(tmp_path / f"m{suffix}")
    with pytest.raises(
        ValueError, match=f"export_dir must not end in {suffix.lower()}"
    ):
        tw.saved_model.save(model, path)
    with pytest.raises(
        ValueError, match=f"file_prefix must not end in {suffix.lower()}"
    ):
        tw.train.Checkpoint(model=model).write(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [*OTHERS[1:], ".h5"])
def test_the_suffix_of_a_model_is_of_its_format(model, tmp_path, suffix):
    path = str(tmp_path / f"m{suffix}")
    with pytest.raises(ValueError, match="must not end in .* with zipped=False"):
        model.save(path, zipped=False)
    if not suffix.endswith(".h5"):
        with pytest.raises(ValueError, match="filepath must end in .keras"):
            model.save(path)
    if not suffix.endswith((".h5", ".safetensors")):
        with pytest.raises(ValueError, match="filepath must end in .weights.h5"):
            model.save_weights(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["m", "m.h5", "m.hdf5", "v1.2"])
def test_other_names_are_free(model, tmp_path, name):
    tw.saved_model.save(model, str(tmp_path / name))
    tw.saved_model.load(str(tmp_path / name))
    tw.train.Checkpoint(model=model).write(str(tmp_path / f"c{name}"))
