"""Iterators over batches of images: their attributes, order, files and refusals."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.preprocessing.image import (
    DirectoryIterator,
    ImageDataGenerator,
    Iterator,
    NumpyArrayIterator,
)

X = np.arange(60.0).reshape(5, 2, 2, 3)
Y = np.arange(5)


class Indices(Iterator):
    def _get_batches_of_transformed_samples(self, index_array):
        return index_array.tolist()


def test_batches_come_again_in_each_epoch():
    batches = Indices(5, 2, shuffle=False, seed=None, workers=2)
    assert isinstance(batches, tw.keras.utils.PyDataset) and batches.workers == 2
    assert [next(batches) for _ in range(4)] == [[0, 1], [2, 3], [4], [0, 1]]
    batches.reset()
    assert next(batches) == [0, 1] and batches[2] == [4] and len(batches) == 3
    assert batches.total_batches_seen == 6
    with pytest.raises(ValueError, match="there are 3 batches, got the index 3"):
        batches[3]
    shuffled = Indices(5, 5, shuffle=True, seed=1)
    first = next(shuffled)
    assert sorted(first) == [0, 1, 2, 3, 4] and next(shuffled) != first


def test_subsets_take_targets_weights_and_further_inputs_along():
    generator = ImageDataGenerator(validation_split=0.4)
    how = {"shuffle": False, "sample_weight": Y * 2.0, "ignore_class_split": True}
    for subset, rows in (("validation", slice(2)), ("training", slice(2, None))):
        batches = generator.flow((X, [Y, -Y]), Y, subset=subset, **how)
        (x, first, second), y, weights = next(batches)
        np.testing.assert_array_equal(x, X[rows])
        for found, expected in ((first, Y), (second, -Y), (y, Y), (weights, Y * 2.0)):
            np.testing.assert_array_equal(found, expected[rows])
    with pytest.raises(ValueError, match="ignore_class_split"):
        generator.flow(X, Y, subset="training")


def test_images_of_a_batch_are_saved(tmp_path):
    np.random.seed(0)
    batches = ImageDataGenerator().flow(
        X, shuffle=False, save_to_dir=tmp_path, save_prefix="p", save_format="bmp"
    )
    next(batches)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split("_")[:2] for name in names] == [["p", str(i)] for i in range(5)]
    assert names[0] == "p_0_2599.bmp"  # Keras' number


def test_a_directory_tells_its_files_and_classes(tmp_path, capsys):
    for name in ("b/2.png", "b/sub/1.JPG", "b/0.tiff", "a/3.png", "a/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    with pytest.warns(UserWarning, match="tiff"):
        found = DirectoryIterator(tmp_path, None, (2, 3), "grayscale", dtype="float64")
    assert capsys.readouterr().out == "Found 4 images belonging to 2 classes.\n"
    assert found.class_indices == {"a": 0, "b": 1} and found.num_classes == 2
    names = [name.replace("\\", "/") for name in found.filenames]
    assert names == ["a/3.png", "b/0.tiff", "b/2.png", "b/sub/1.JPG"]
    assert found.filepaths == [str(tmp_path / name) for name in found.filenames]
    assert found.labels.tolist() == [0, 1, 1, 1] and found.labels.dtype == np.int32
    assert found.samples == found.n == 4 and found.image_shape == (2, 3, 1)
    found = DirectoryIterator(tmp_path, None, classes=["a"], class_mode=None)
    assert found.class_indices == {"a": 0} and found.samples == 1


def test_bad_arguments_are_refused(tmp_path):
    generator = ImageDataGenerator()
    for x, y, arguments, message in (
        (X, Y[:3], {}, "y must have the length of x, 5, got 3"),
        (X, Y, {"sample_weight": Y[:2]}, "sample_weight must have the length"),
        ((X, Y[:2]), Y, {}, r"x\[1\]\[0\] must have the length"),
        (X[0], None, {}, "x must have rank 4"),
        (X, Y, {"subset": "test"}, "subset must be .* got 'test'"),
    ):
        with pytest.raises(ValueError, match=f"NumpyArrayIterator: {message}"):
            NumpyArrayIterator(x, y, generator, **arguments)
    with pytest.warns(UserWarning, match="expected 1, 3 or 4 channels on the axis 3"):
        NumpyArrayIterator(X[..., :2], None, generator)
    for arguments, message in (
        ({"color_mode": "gray"}, "color_mode .*'gray'"),
        ({"class_mode": "raw"}, "class_mode .*'raw'"),
        ({"subset": "both"}, "subset .*'both'"),
    ):
        with pytest.raises(ValueError, match=f"DirectoryIterator: {message}"):
            generator.flow_from_directory(tmp_path, **arguments)
    with pytest.raises(NotImplementedError, match="define _get_batches"):
        next(Iterator(1, 1, False, None))
