"""Images of files and arrays: the pixels of Keras, and files that are refused."""

import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tapewright as tw
from tapewright.keras.preprocessing import (
    image as preprocessing_image,
)
from tapewright.keras.utils import array_to_img, img_to_array, load_img, save_img

RECORDED = np.load(Path(__file__).parent / "reference" / "images.npz")
RAMP = np.arange(24, dtype=np.float32).reshape(2, 4, 3) * 10


def recorded(kind):
    """The recordings of a kind, with the arguments in their names."""
    for name in RECORDED.files:
        if name.startswith(f"{kind}/"):
            yield name.split("/")[1:], RECORDED[name]


def content(mode="RGB"):
    return RECORDED[f"file/{mode}"].tobytes()


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(content())
    return path


def test_every_mode_is_converted_as_in_keras():
    for (mode, color_mode), expected in recorded("read"):
        image = load_img(io.BytesIO(content(mode)), color_mode)
        array = img_to_array(image, "channels_first")
        assert array.dtype == np.float32, mode
        np.testing.assert_array_equal(array, expected, f"{mode} {color_mode}")


def test_images_are_resized_as_in_keras():
    for (size, interpolation, keep), expected in recorded("resized"):
        height, width = map(int, size.split(","))
        image = load_img(
            io.BytesIO(content()),
            target_size=(height, width),
            interpolation=interpolation,
            keep_aspect_ratio=keep == "True",
        )
        array = img_to_array(image, dtype="uint8")
        np.testing.assert_array_equal(array, expected, f"{size} {interpolation} {keep}")


def test_arrays_are_drawn_as_in_keras():
    for (channels, scale), expected in recorded("drawn"):
        x = RECORDED[f"array/{channels}/{scale}"]
        first = x.transpose(2, 0, 1)
        for image in (
            array_to_img(x, scale=scale == "True"),
            array_to_img(tw.constant(first), "channels_first", scale == "True"),
        ):
            np.testing.assert_array_equal(np.asarray(image), expected)


def test_large_values_of_one_channel_make_32_bits():
    image = array_to_img(np.array([[[0.0], [70000.0]]]), scale=False)
    assert image.mode == "I" and np.asarray(image).tolist() == [[0, 70000]]


def test_a_constant_array_is_black():
    assert not np.asarray(array_to_img(np.full((2, 2, 3), 7.0))).any()


@pytest.mark.parametrize("kind", [str, Path, os.fsencode, io.BytesIO])
def test_a_file_has_many_kinds_of_paths(photo, kind):
    path = io.BytesIO(content()) if kind is io.BytesIO else kind(photo)
    np.testing.assert_array_equal(
        img_to_array(load_img(path)), RECORDED["read/RGB/rgb"].transpose(1, 2, 0)
    )


def test_the_default_dtype_is_floatx():
    tw.keras.config.set_floatx("float64")
    try:
        assert img_to_array(Image.new("L", (2, 3))).dtype == np.float64
    finally:
        tw.keras.config.set_floatx("float32")


@pytest.mark.parametrize("given", ["png", "BMP", None])
def test_an_array_is_saved_and_read_again(tmp_path, given):
    path = tmp_path / "picture.png"
    save_img(path, RAMP, file_format=given, scale=False)
    with Image.open(path) as image:
        assert image.format == (given or "png").upper()
    np.testing.assert_array_equal(img_to_array(load_img(path)), RAMP)


def test_an_open_file_takes_an_image_of_a_named_format():
    out = io.BytesIO()
    save_img(out, RAMP.transpose(2, 0, 1), "channels_first", "png", scale=False)
    np.testing.assert_array_equal(img_to_array(load_img(out)), RAMP)
    with pytest.raises(ValueError, match="file_format must be given"):
        save_img(io.BytesIO(), RAMP)


def test_jpeg_drops_the_alpha_channel_with_a_warning(tmp_path):
    for name in ("a.jpg", "a.JPEG"):
        with pytest.warns(UserWarning, match="alpha") as caught:
            save_img(tmp_path / name, np.ones((4, 4, 4)), quality=50)
        assert caught[0].filename == __file__
        with Image.open(tmp_path / name) as image:
            assert image.mode == "RGB"


def test_the_names_of_keras_preprocessing_are_the_same_functions():
    shared = 0
    for name in {*preprocessing_image.__all__} - {"smart_resize"}:
        value = getattr(preprocessing_image, name)
        if not value.__module__.startswith("tapewright.keras.legacy."):
            assert value is getattr(tw.keras.utils, name)
            shared += 1
    assert shared == 4


# Refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"color_mode": "gray"}, "color_mode .*'gray'"),
        ({"target_size": (2, 2), "interpolation": "cubic"}, "interpolation .*'cubic'"),
        ({"target_size": 7}, "target_size .*7"),
        ({"target_size": (4, 0)}, r"target_size .*\(4, 0\)"),
    ],
)
def test_other_arguments_are_refused(photo, arguments, message):
    with pytest.raises(ValueError, match=f"load_img: {message}"):
        load_img(photo, **arguments)


@pytest.mark.parametrize(
    ("x", "arguments", "message"),
    [
        (np.ones((2, 2)), {}, r"x must have the shape .*\(2, 2\)"),
        (np.ones((2, 2, 2)), {}, "1, 3 or 4 channels"),
        (np.ones((2, 2, 3)), {"data_format": "channels_first"}, r"\[channels, height"),
        (np.ones((2, 2, 3)), {"data_format": "NCHW"}, "data_format .*'NCHW'"),
        (np.full((1, 1, 3), 256.0), {"scale": False}, r"\[0, 255\]"),
        (np.full((1, 1, 1), -1.0), {"scale": False}, r"from -1.0"),
        (np.array([[[1.0], [np.nan]]]), {}, "finite"),
    ],
)
def test_arrays_that_are_no_image_are_refused(x, arguments, message):
    with pytest.raises(ValueError, match=message):
        array_to_img(x, **arguments)


def test_a_decompression_bomb_is_refused(monkeypatch, photo):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 17)  # the image has 35
    with pytest.raises(ValueError, match=r"photo.png is refused: .*MAX_IMAGE_PIXELS"):
        load_img(photo)


def test_damaged_files_are_refused_by_name(tmp_path):
    path = tmp_path / "damaged.png"
    for body in (b"", b"<html>", content()[:-40], content().replace(b"IDAT", b"IDAX")):
        path.write_bytes(body)
        with pytest.raises(ValueError, match="load_img: cannot read .*damaged.png: "):
            load_img(path)


def test_a_program_in_an_image_is_never_run(tmp_path):
    path = tmp_path / "program.eps"
    array_to_img(RAMP).save(path)
    with pytest.raises(ValueError, match="EPS is a program"):
        load_img(path)


def test_an_image_format_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="file_format: .*'xyz'"):
        save_img(tmp_path / "a.xyz", RAMP)
    with pytest.raises(TypeError, match="path must be a path or a BytesIO, got 7"):
        load_img(7)


def test_without_pillow_the_error_says_what_to_install(monkeypatch, photo):
    monkeypatch.setitem(sys.modules, "PIL", None)
    for call in (lambda: load_img(photo), lambda: array_to_img(RAMP)):
        with pytest.raises(ImportError, match=r"pip install 'tapewright\[image\]'"):
            call()
