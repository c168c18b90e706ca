"""Images in strings, beside what TensorFlow decodes of the same files."""

import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tapewright as tw
from tapewright.errors import InvalidArgumentError, UnimplementedError
from tapewright.storage.records import images

RECORDED = dict(np.load(Path(__file__).parent / "reference" / "images.npz"))
FILES = {
    name.partition("/")[2]: data.tobytes()
    for name, data in RECORDED.items()
    if name.startswith("file/")
}
PIXELS = np.random.default_rng(0).integers(0, 256, (9, 7, 3)).astype(np.uint8)


def found(function, *arguments, **options):
    """The array, or None for a file that is refused."""
    try:
        return function(*arguments, **options).numpy()
    except InvalidArgumentError:
        return None


def test_png_bmp_gif_and_webp_files_are_decoded_as_by_tensorflow_bit_by_bit():
    for name, data in FILES.items():
        if name.endswith("jpg"):
            continue
        for channels in (0, 1, 3, 4):
            for dtype in ("uint8", "uint16"):
                ours = found(tw.io.decode_image, data, channels, dtype)
                theirs = RECORDED.get(f"image/{name}/{channels}/{dtype}")
                case = f"{name}, {channels} channels, {dtype}"
                assert (ours is None) == (theirs is None), case
                if ours is not None:
                    assert ours.dtype == dtype, case
                    np.testing.assert_array_equal(ours, theirs, case)


def test_jpeg_files_are_decoded_as_by_the_accurate_method_of_tensorflow():
    for name, data in FILES.items():
        if not name.endswith("jpg"):
            continue
        for channels in (0, 1, 4):
            for ratio in (1, 2, 4, 8):
                ours = found(tw.io.decode_jpeg, data, channels, ratio)
                theirs = RECORDED.get(f"jpeg/{name}/{channels}/{ratio}")
                case = f"{name}, {channels} channels, ratio {ratio}"
                assert (ours is None) == (theirs is None), case
                if ours is not None:
                    np.testing.assert_array_equal(ours, theirs, case)
    gray, data = tw.io.decode_jpeg(FILES["gray.jpg"], channels=3), FILES["gray.jpg"]
    assert (gray.numpy() == tw.io.decode_jpeg(data).numpy()).all()


def test_a_part_of_a_jpeg_file_is_that_part_of_the_image():
    data = FILES["rgb.jpg"]
    part = tw.io.decode_and_crop_jpeg(data, [2, 3, 5, 4]).numpy()
    np.testing.assert_array_equal(part, tw.io.decode_jpeg(data).numpy()[2:7, 3:7])
    for window in ([0, 0, 12, 3], [0, 0, 0, 3], [-1, 0, 2, 2], [0, 0, 3], [0.0] * 4):
        with pytest.raises(InvalidArgumentError, match="crop_window"):
            tw.io.decode_and_crop_jpeg(data, window)
    with pytest.raises(
        InvalidArgumentError, match="must be a JPEG image, got the format PNG"
    ):
        tw.io.decode_and_crop_jpeg(FILES["la.png"], [0, 0, 1, 1])


def test_other_dtypes_are_scaled():
    for name in ("rgb.jpg", "bytes3.png"):
        wide = tw.io.decode_image(FILES[name], dtype="uint16").numpy()
        narrow = tw.io.decode_image(FILES[name]).numpy().astype(int)
        assert (wide == narrow * (256 if name == "rgb.jpg" else 257)).all()
        floats = tw.io.decode_image(FILES[name], dtype=tw.float32).numpy()
        assert floats.dtype == np.float32
        np.testing.assert_allclose(floats, narrow / 255, rtol=1e-6)
        assert tw.io.decode_image(FILES[name], dtype=tw.float64).dtype == tw.float64


def test_ops_take_the_formats_that_tensorflow_takes():
    accepted = {
        tw.io.decode_image: "JPEG PNG GIF BMP WEBP",
        tw.io.decode_webp: "WEBP",
        tw.io.decode_jpeg: "JPEG PNG GIF",
        tw.io.decode_png: "JPEG PNG GIF",
        tw.io.decode_gif: "JPEG PNG GIF",
        tw.io.decode_bmp: "BMP",
    }
    for decode, formats in accepted.items():
        for name in ("rgb.jpg", "bytes3.png", "rgb.gif", "rgb.bmp", "alpha.webp"):
            is_taken = images.format_of(FILES[name]) in formats.split()
            assert (found(decode, FILES[name]) is not None) == is_taken, (decode, name)
    assert tw.io.decode_gif(FILES["rgb.jpg"]).shape == (1, 11, 14, 3)
    assert tw.io.decode_png(FILES["rgb.gif"]).shape == (11, 14, 3)
    assert tw.io.decode_gif(FILES["moving.gif"]).shape == (4, 7, 9, 3)
    assert tw.io.decode_webp(FILES["moving.webp"]).shape == (4, 7, 9, 4)
    for name, channels in (("gif", 3), ("webp", 4)):
        still = tw.io.decode_image(FILES[f"moving.{name}"], expand_animations=False)
        assert still.shape == (7, 9, channels)
    with pytest.raises(InvalidArgumentError, match="a GIF of 4 frames; use decode_gif"):
        tw.io.decode_jpeg(FILES["moving.gif"])
    with pytest.raises(UnimplementedError, match="fancy_upscaling must be True"):
        tw.io.decode_jpeg(FILES["rgb.jpg"], fancy_upscaling=False)
    assert tw.image.decode_png is tw.io.decode_png


def test_a_jpeg_file_is_known_by_its_beginning_and_its_header():
    texts = [[FILES["rgb.jpg"], b"\xff\xd8"], [FILES["la.png"], b""]]
    assert tw.io.is_jpeg(texts).numpy().tolist() == [[True, False], [False, False]]
    for name, channels in (("rgb.jpg", 3), ("gray.jpg", 1), ("cmyk.jpg", 4)):
        shape = tw.io.extract_jpeg_shape(FILES[name], tw.int64)
        assert shape.numpy().tolist() == [11, 14, channels] and shape.dtype == tw.int64
    assert found(tw.io.extract_jpeg_shape, FILES["la.png"]) is None


def test_a_file_that_is_cut_off_can_be_completed():
    data = FILES["cut_rgb.jpg"]
    assert found(tw.io.decode_jpeg, data) is None
    tall = np.random.default_rng(0).integers(0, 256, (64, 16, 1)).astype(np.uint8)
    data = tw.io.encode_jpeg(tall).numpy()
    cut = data[: len(data) * 3 // 4]
    assert found(tw.io.decode_jpeg, cut) is None
    completed = tw.io.decode_jpeg(cut, try_recover_truncated=True).numpy()
    whole = tw.io.decode_jpeg(data).numpy()
    assert (completed[:24] == whole[:24]).all() and not np.ptp(completed[56:])


def test_png_files_hold_any_pixels_of_8_and_16_bits():
    rng = np.random.default_rng(1)
    for dtype in (np.uint8, np.uint16):
        for channels in (1, 2, 3, 4):
            most = np.iinfo(dtype).max
            x = rng.integers(0, most, (2, 6, 5, channels), dtype, endpoint=True)
            x[:, 2:4] = x[:, :1] + np.arange(5, dtype=dtype)[:, None]  # rows to filter
            for image, file in zip(x, tw.io.encode_png(x, compression=9).numpy()):
                decoded = tw.io.decode_png(file, dtype=dtype).numpy()
                np.testing.assert_array_equal(decoded, image)
                with Image.open(io.BytesIO(file)) as pillows:  # another reader
                    assert pillows.size == (5, 6) and pillows.verify() is None


def test_jpeg_files_have_the_arguments():
    sizes = {}
    for name, options in (
        ("", {}),
        ("quality", {"quality": 30}),
        ("progressive", {"progressive": True}),
        ("optimize", {"optimize_size": True}),
        ("chroma", {"chroma_downsampling": False}),
    ):
        data = tw.io.encode_jpeg(PIXELS, **options).numpy()
        sizes[name] = len(data)
        assert data[:20] == (  # TensorFlow's
            b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x01\x01,\x01,\x00\x00"
        )
        with Image.open(io.BytesIO(data)) as image:
            assert image.info.get("progression", 0) == (name == "progressive")
        decoded = tw.io.decode_jpeg(data).numpy().astype(int)
        if name == "chroma":
            assert np.abs(decoded - PIXELS).max() < 30
    assert sizes["quality"] < sizes[""] < sizes["chroma"]
    assert sizes["optimize"] < sizes[""]
    data = tw.io.encode_jpeg(
        PIXELS, density_unit="cm", x_density=77, xmp_metadata="<x/>"
    ).numpy()
    assert data[13:18] == struct.pack(">BHH", 2, 77, 300)
    assert data[20:24] == b"\xff\xe1\x00\x23" and b"/xap/1.0/\0<x/>\xff" in data
    assert tw.io.decode_jpeg(tw.io.encode_jpeg(PIXELS[..., :1])).shape == (9, 7, 1)


def test_the_quality_of_an_image_falls():
    x = tw.constant(PIXELS)
    kept = tw.image.adjust_jpeg_quality(x, 100).numpy().astype(int)
    worse = tw.image.adjust_jpeg_quality(x, tw.constant(5))
    assert worse.dtype == tw.uint8 and worse.shape == x.shape
    assert (
        np.abs(kept - PIXELS).mean() < np.abs(worse.numpy().astype(int) - PIXELS).mean()
    )
    floats = tw.image.adjust_jpeg_quality(x / 255, 5)
    np.testing.assert_allclose(floats.numpy() * 255, worse.numpy(), atol=1e-3)
    traced = tw.function(lambda x, q: tw.image.adjust_jpeg_quality(x, q) + 0)
    np.testing.assert_array_equal(traced(x, tw.constant(5)), worse)
    by_seed = [
        tw.image.stateless_random_jpeg_quality(x, 1, 99, [seed, 0]).numpy()
        for seed in (1, 1, 2)
    ]
    assert (by_seed[0] == by_seed[1]).all() and (by_seed[0] != by_seed[2]).any()
    assert tw.image.random_jpeg_quality(x, 40, 41).shape == x.shape
    for call in (
        lambda: tw.image.random_jpeg_quality(x, 50, 50),
        lambda: tw.image.stateless_random_jpeg_quality(x, 0, 101, [1, 2]),
    ):
        with pytest.raises(
            InvalidArgumentError, match="min_jpeg_quality must be below"
        ):
            call()


def test_files_are_decoded_in_data_sets_and_traced_functions(tmp_path):
    for number in range(3):
        path = str(tmp_path / f"{number}.png")
        data = tw.io.encode_png(PIXELS[: number + 3])
        tw.io.write_file(path, data)
    paths = tw.data.Dataset.from_tensor_slices(
        [str(tmp_path / f"{number}.png") for number in range(3)]
    )
    decoded = paths.map(lambda path: tw.io.decode_png(tw.io.read_file(path)))
    for number, image in enumerate(decoded):
        np.testing.assert_array_equal(image, PIXELS[: number + 3])
    decode = tw.function(
        lambda data: tw.cast(tw.io.decode_jpeg(data), tw.float32) / 255
    )
    np.testing.assert_allclose(
        decode(tw.io.encode_png(PIXELS)), PIXELS / 255, rtol=1e-6
    )
    encode = tw.function(lambda x: tw.io.encode_png(x))
    np.testing.assert_array_equal(tw.io.decode_png(encode(PIXELS)), PIXELS)


def test_wrong_arguments_are_named():
    png = FILES["la.png"]
    for call, message in (
        (lambda: tw.io.decode_image(png, channels=2), "channels must be 0, 1, 3 or 4"),
        (lambda: tw.io.decode_png(png, dtype="float32"), "dtype must be"),
        (lambda: tw.io.decode_jpeg(png, ratio=3), "ratio must be 1, 2, 4 or 8"),
        (lambda: tw.io.decode_jpeg(png, dct_method="X"), "dct_method must be"),
        (lambda: tw.io.encode_png(PIXELS[..., 0]), r"image must be \[..., height"),
        (lambda: tw.io.encode_png(PIXELS, 10), "compression must be from -1 to 9"),
        (lambda: tw.io.encode_png(PIXELS / 255), "got float64"),
        (lambda: tw.io.encode_jpeg(PIXELS, quality=101), "quality must be from 0"),
        (lambda: tw.io.encode_jpeg(PIXELS, "grayscale"), "with 1 channels"),
        (lambda: tw.io.encode_jpeg(PIXELS[None]), "image must be"),
        (lambda: tw.image.adjust_jpeg_quality(PIXELS, 101), "jpeg_quality must be"),
        (lambda: tw.io.decode_image([png]), "contents must be a scalar"),
        (lambda: tw.io.decode_image(FILES["text.png"]), "contents must be a JPEG, PNG"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_an_image_of_more_pixels_than_pillow_allows_is_refused(monkeypatch):
    moving = FILES["moving.gif"]  # 4 frames of 63 pixels
    for limit in (125, 31):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(InvalidArgumentError, match="MAX_IMAGE_PIXELS"):
            tw.io.decode_gif(moving)
    with pytest.raises(InvalidArgumentError, match="the PNG file is refused"):
        tw.io.decode_png(FILES["palette.png"])


def test_a_gif_of_many_frames_is_decoded_by_the_codec_alone(monkeypatch):
    head = b"GIF89a\1\0\1\0\x80\0\0" + bytes([1, 2, 3, 4, 5, 6])
    frame = b"\x2c\0\0\0\0\1\0\1\0\0\2\2\x4c\1\0"  # a pixel of the second color
    monkeypatch.setattr(Image, "open", None)  # takes some 0.2 ms for each frame
    frames = tw.io.decode_gif(head + frame * 5000 + b";").numpy()
    assert frames.shape == (5000, 1, 1, 3)
    assert (frames == [4, 5, 6]).all()


def test_a_damaged_file_is_decoded_or_refused_and_nothing_else():
    rng = np.random.default_rng(0)
    names = (
        "rgb.jpg palette.png few2.png key.png rgba.bmp moving.gif transparent.gif "
        "moving.webp"
    )
    for name in names.split():
        for _ in range(40):
            data = bytearray(FILES[name][: rng.integers(1, len(FILES[name]))])
            for place in rng.integers(0, len(data), 2):
                data[place] = rng.integers(0, 256)
            for damaged in (bytes(data), bytes(data) + FILES[name][len(data) :]):
                found(tw.io.decode_image, damaged)


def test_without_pillow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    for name in ("rgb.jpg", "la.png", "rgb.gif"):
        with pytest.raises(
            ImportError, match=r"decode_image needs .*tapewright\[image\]"
        ):
            tw.io.decode_image(FILES[name])
    assert tw.io.decode_image(FILES["rgb.bmp"]).shape == (11, 14, 3)
    assert tw.io.encode_png(PIXELS).dtype == tw.string
