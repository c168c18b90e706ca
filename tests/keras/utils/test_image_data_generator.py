"""`ImageDataGenerator`: the batches that Keras makes with the same seed of NumPy."""

import json
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.preprocessing.image import ImageDataGenerator

RECORDED = np.load(Path(__file__).parent / "reference" / "image_batches.npz")
X = RECORDED["x"]
TABLE = json.loads(str(RECORDED["table"]))


@pytest.fixture
def photos(tmp_path):
    for name, image in zip(TABLE["filename"], X):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        tw.keras.utils.save_img(tmp_path / name, image, scale=False)
    return tmp_path


def flat(value):
    if isinstance(value, tuple | list):
        return [array for each in value for array in flat(each)]
    return [value]


@pytest.mark.filterwarnings("ignore:Found 1 invalid image")
def test_batches_are_those_of_keras(photos):
    sources = {
        "flow": (X, range(6)),
        "flow_from_directory": (photos,),
        "flow_from_dataframe": (TABLE, photos),
    }
    cases = json.loads(str(RECORDED["cases"]))
    assert len(cases) == 7
    for i, (options, method, arguments) in enumerate(cases):
        np.random.seed(i)
        generator = ImageDataGenerator(**options)
        if method == "flow":
            generator.fit(X, augment=True, rounds=2)
        batches = getattr(generator, method)(*sources[method], **arguments)
        found = flat([next(batches), next(batches), batches[0]])
        assert f"{i}/{len(found)}" not in RECORDED
        for j, array in enumerate(found):
            expected = RECORDED[f"{i}/{j}"]
            assert array.dtype == expected.dtype, (i, j)
            if "zca_whitening" in options:
                # Six images have a covariance of rank five: what is divided by the roots of
                # the other eigenvalues differs between the kernels of OpenBLAS.
                assert array.shape == expected.shape and np.isfinite(array).all()
                continue
            np.testing.assert_allclose(array, expected, 1e-5, 1e-3, err_msg=f"{i}, {j}")


def test_a_model_is_trained_and_asked_by_batches_of_a_generator():
    x, y = X / np.float32(255), np.arange(6) % 2
    model = tw.keras.Sequential([tw.keras.layers.Flatten(), tw.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    generator = ImageDataGenerator(validation_split=0.34)
    history = model.fit(
        generator.flow(x, y, batch_size=2, subset="training"),
        validation_data=generator.flow(x, y, batch_size=2, subset="validation"),
        epochs=2,
        verbose=0,
    ).history
    assert len(history["loss"]) == len(history["val_loss"]) == 2
    batches = generator.flow(x, y, batch_size=4, shuffle=False)
    loss = model.evaluate(x, y, verbose=0)
    np.testing.assert_allclose(model.evaluate(batches, verbose=0), loss, 1e-5)
    predictions = model.predict(x, verbose=0)
    np.testing.assert_allclose(model.predict(batches, verbose=0), predictions, 1e-5)


def test_numbers_that_fit_must_take_are_missed_with_a_warning():
    with pytest.warns(UserWarning, match="makes featurewise_center=True") as caught:
        generator = ImageDataGenerator(zca_whitening=True)
    assert generator.featurewise_center and caught[0].filename == __file__
    with (
        pytest.warns(UserWarning, match="featurewise_center has no effect before fit"),
        pytest.warns(UserWarning, match="zca_whitening has no effect before fit"),
    ):
        x = generator.standardize(np.ones((2, 2, 1)))
    np.testing.assert_array_equal(x, np.ones((2, 2, 1)))


def test_bad_arguments_are_refused():
    for arguments, message in (
        ({"validation_split": 1.0}, "validation_split .* got 1.0"),
        ({"zoom_range": (1, 2, 3)}, "zoom_range .*3"),
        ({"brightness_range": 2}, "brightness_range .* got 2"),
        ({"data_format": "NCHW"}, "data_format .*'NCHW'"),
    ):
        with pytest.raises(ValueError, match=message):
            ImageDataGenerator(**arguments)
    with pytest.raises(ValueError, match="fit: x must have rank 4"):
        ImageDataGenerator().fit(X[0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'follow'"):
        ImageDataGenerator().flow_from_dataframe(TABLE, follow=1)


def test_brightness_goes_by_the_format_of_the_generator():
    image = np.random.RandomState(0).uniform(0, 255, [3, 5, 3]).astype("float32")
    last = ImageDataGenerator(data_format="channels_last")
    first = ImageDataGenerator(data_format="channels_first")
    wanted = last.apply_transform(image, {"brightness": 0.5})
    found = first.apply_transform(np.moveaxis(image, -1, 0), {"brightness": 0.5})
    np.testing.assert_array_equal(np.moveaxis(found, 0, -1), wanted)
