"""Data sets of directories, beside what Keras makes of the same files."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import InvalidArgumentError
from tapewright.keras.utils.resampling import resampled

RECORDED = dict(np.load(Path(__file__).parent / "reference" / "directories.npz"))
CASES = json.loads(str(RECORDED["cases"]))
FUNCTIONS = {
    "image": tw.keras.utils.image_dataset_from_directory,
    "text": tw.keras.utils.text_dataset_from_directory,
    "audio": tw.keras.utils.audio_dataset_from_directory,
}
QUIET = {"verbose": False, "shuffle": False}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("directories")
    for key, content in RECORDED.items():
        if key.startswith("file/"):
            path = root / key.removeprefix("file/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())
    return root


def leaves(element):
    return element if isinstance(element, tuple) else (element,)


def recorded_elements(start):
    """The elements of a data set, as Keras gave them."""
    for position in itertools.count():
        if f"{start}/{position}/0" not in RECORDED:
            return
        keys = [f"{start}/{position}/{component}" for component in (0, 1)]
        yield [RECORDED[key] for key in keys if key in RECORDED]


def test_files_labels_and_elements_are_those_of_keras(root, capsys):
    for number, (kind, folder, options) in enumerate(CASES):
        case = f"{kind} {options}"
        told = json.loads(str(RECORDED[f"{number}/told"]))
        parts = FUNCTIONS[kind](root / folder, **options)
        assert capsys.readouterr().out == told["printed"], case
        parts = parts if isinstance(parts, list | tuple) else [parts]
        if kind == "image":
            paths = [
                [os.path.relpath(p, root) for p in part.file_paths] for part in parts
            ]
            assert paths == told["paths"], case
        if kind != "audio":
            assert [str(part.element_spec) for part in parts] == told["specs"], case
        for place, part in enumerate(parts):
            assert part.class_names == told["class_names"], case
            if options.get("shuffle", True):
                continue
            ours, theirs = list(part), list(recorded_elements(f"{number}/{place}"))
            assert len(ours) == len(theirs), case
            for element, expected in zip(ours, theirs):
                for x, y in zip(leaves(element), expected, strict=True):
                    x = x.numpy()
                    if y.dtype.kind == "S":
                        np.testing.assert_array_equal(np.array(x, "S"), y, case)
                    else:
                        assert x.dtype == y.dtype, case
                        np.testing.assert_allclose(x, y, 1e-5, 2e-4, err_msg=case)


def test_files_for_validation_stay_in_order_and_others_are_mixed_again(root):
    folder = root / "texts"
    training, validation = FUNCTIONS["text"](
        folder, validation_split=0.4, subset="both", seed=1, batch_size=None
    )
    orders = [[x.numpy() for x, _ in training] for _ in range(6)]
    assert len(set(map(tuple, orders))) > 1
    assert len({tuple(sorted(order)) for order in orders}) == 1
    expected = [Path(path).read_bytes() for path in validation.file_paths]
    for _ in range(2):
        assert [x.numpy() for x, _ in validation] == expected
    again, _ = FUNCTIONS["text"](
        folder, validation_split=0.4, subset="both", seed=1, batch_size=None
    )
    assert [[x.numpy() for x, _ in again] for _ in range(6)] == orders


def test_links_are_followed_if_asked_for(root, tmp_path):
    os.symlink(root / "images" / "c", tmp_path / "c", target_is_directory=True)
    (tmp_path / "inside").mkdir()
    os.symlink(
        root / "images" / "c", tmp_path / "inside" / "c", target_is_directory=True
    )
    for follow, count in ((False, 2), (True, 4)):
        found = FUNCTIONS["image"](tmp_path, follow_links=follow, image_size=1, **QUIET)
        assert len(found.file_paths) == count and found.class_names == ["c", "inside"]


def test_a_run_goes_on_from_a_saved_position(root):
    data = FUNCTIONS["image"](
        root / "images", image_size=4, batch_size=2, seed=3, verbose=False
    )
    iterator = iter(data)
    for _ in range(2):
        next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    expected = list(iterator)
    other = iter(data)
    other.restore(state)
    for ours, theirs in zip(other, expected, strict=True):
        for x, y in zip(ours, theirs):
            np.testing.assert_array_equal(x, y)


def test_a_model_is_trained_on_images(root):
    data = FUNCTIONS["image"](root / "images", image_size=4, seed=1, verbose=False)
    model = tw.keras.Sequential([
        tw.keras.layers.Rescaling(1 / 255),
        tw.keras.layers.Flatten(),
        tw.keras.layers.Dense(3),
    ])  # fmt: skip
    loss = tw.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    history = model.fit(data, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    assert model.predict(data, verbose=0).shape == (10, 3)


def test_a_file_that_is_no_image_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and nothing")
    data = FUNCTIONS["image"](tmp_path, **QUIET)
    assert data.element_spec[0].shape.as_list() == [None, 256, 256, 3]  # not read yet
    with pytest.raises(InvalidArgumentError, match="cannot read the PNG file") as error:
        next(iter(data))
    assert any("broken.png" in note for note in error.value.__notes__)


def test_sounds_are_brought_to_a_rate(root):
    sounds = FUNCTIONS["audio"](
        root / "sounds", labels=None, sampling_rate=4000, batch_size=None, **QUIET
    )
    assert sorted([len(x) for x in sounds]) == [-(-n // 2) for n in range(5, 12)]
    time = np.arange(4000)[:, None] / 8000
    tones = np.sin(2 * np.pi * np.array([[440.0, 1000.0]]) * time).astype(np.float32)
    for rate in (16000, 11025, 4000):
        after = resampled(tones, 8000, rate)
        time = np.arange(len(after))[:, None] / rate
        expected = np.sin(2 * np.pi * np.array([[440.0, 1000.0]]) * time)
        inner = slice(200, -200)  # the ends meet silence
        assert after.shape == (-(-4000 * rate // 8000), 2)
        np.testing.assert_allclose(after[inner], expected[inner], atol=2e-3)
    high = np.sin(2 * np.pi * 3000 * np.arange(4000)[:, None] / 8000)
    # No alias at 1000.
    assert np.abs(resampled(high, 8000, 4000)[200:-200]).max() < 1e-3
    assert resampled(tones, 8000, 8000) is tones


def test_wrong_arguments_are_named(root):
    image, text, audio = FUNCTIONS.values()
    images, sounds = root / "images", root / "sounds"
    split = {"validation_split": 0.5, "subset": "training"}
    for call, message in (
        (lambda: image(images, labels="x"), "labels must be 'inferred', None, or a list"),
        (lambda: image(images, labels=[1]), "got 1 for 11 files"),
        (lambda: image(images, label_mode="x"), "label_mode must be one of"),
        (lambda: image(images, label_mode="binary"), "needs two classes"),
        (lambda: image(images, class_names=["x"]), "class_names must be names of folders"),
        (lambda: image(images, labels=None, class_names=["a"]), "class_names can be given"),
        (lambda: image(images, color_mode="x"), "color_mode must be one of"),
        (lambda: image(images, image_size=(1, 2, 3)), "image_size must be"),
        (lambda: image(images, interpolation="x"), "interpolation must be one of"),
        (lambda: image(images, format="grain"), "format must be 'tf'"),
        (lambda: image(images, data_format="x"), "data_format must be"),
        (lambda: image(images, crop_to_aspect_ratio=True, pad_to_aspect_ratio=True),
         "only one of crop_to_aspect_ratio"),
        (lambda: image(images, **split), "seed must be given"),
        (lambda: image(images, seed=1, subset="both"), "must be given together"),
        (lambda: image(images, seed=1, validation_split=2), "between 0 and 1"),
        (lambda: image(images, seed=1, **split | {"subset": "x"}), "subset must be one of"),
        (lambda: image(images, seed=1, validation_split=0.05, subset="validation"),
         "must contain files for validation"),
        (lambda: text(sounds), "the directory must contain files"),
        (lambda: text(sounds, format="x"), "format must be 'tf'"),
        (lambda: audio(sounds, sampling_rate=2.5), "sampling_rate must be a positive int"),
        (lambda: audio(sounds, ragged=True, output_sequence_length=3), "only one of ragged"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(FileNotFoundError):
        image(root / "nothing")


def test_ragged_sounds_keep_their_lengths(root):
    audio = FUNCTIONS["audio"]
    single = [
        x.numpy().tolist() for x, _ in audio(root / "sounds", batch_size=None, **QUIET)
    ]
    assert len({len(x) for x in single}) > 1
    data = audio(root / "sounds", ragged=True, batch_size=len(single), **QUIET)
    ((batch, labels),) = data
    assert batch.shape == (len(single), None, None) and batch.ragged_rank == 2
    assert batch.to_list() == single and labels.shape == (len(single),)


def test_the_functions_of_keras_preprocessing_are_the_same():
    for kind in ("image", "text"):
        name = f"{kind}_dataset_from_directory"
        assert getattr(tw.keras.preprocessing, name) is FUNCTIONS[kind]


def test_images_are_cut_to_a_ratio_before_they_are_resized():
    smart_resize = tw.keras.preprocessing.image.smart_resize
    x = np.arange(2 * 3 * 7 * 2.0).reshape(2, 3, 7, 2)
    found = smart_resize(x, (3, 3), "nearest")
    np.testing.assert_array_equal(found, x[:, :, 2:5])
    first = smart_resize(tw.constant(x.transpose(0, 3, 1, 2)), (3, 3), "nearest",
                         data_format="channels_first")  # fmt: skip
    np.testing.assert_array_equal(first, x[:, :, 2:5].transpose(0, 3, 1, 2))
    halved = smart_resize(x[0].astype("uint8"), (2, 2))
    assert isinstance(halved, np.ndarray) and halved.dtype == np.float32
    with pytest.raises(ValueError, match="x must have rank 3 or 4"):
        smart_resize(x[0, 0], (2, 2))
