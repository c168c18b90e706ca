"""Encoded images: JPEG, PNG, GIF, BMP, WebP, with the values of TensorFlow's decoders.

Everything but `is_jpeg`, `encode_png` and the BMP decoder needs the extra ``image``,
which installs Pillow. Its JPEG decoder equals TensorFlow's with
``dct_method="INTEGER_ACCURATE"``, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core import dtypes
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import InvalidArgumentError, UnimplementedError
from tapewright.core.rules import check_choice
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.text import make_text
from tapewright.ops.array.conversion import cast
from tapewright.ops.image.pixels import convert_image_dtype
from tapewright.ops.random import sampling
from tapewright.storage.records import bmp, gif, images, png

from .host_ops import host_op, scalar_text, text_tensor, texts

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Array, DTypeLike, IntLike, TensorLike

__all__ = [
    "adjust_jpeg_quality",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "random_jpeg_quality",
    "stateless_random_jpeg_quality",
]

DCT_METHODS = ("", "INTEGER_FAST", "INTEGER_ACCURATE")
STRING = TensorSpec((), "string")


# ------------------------------------------------------------------------------ decode


def image_array(
    who: str,
    data: bytes,
    channels: int = 0,
    dtype: str = "uint8",
    first_only: bool = False,
    formats: tuple[str, ...] = ("JPEG", "PNG", "GIF", "BMP", "WEBP"),
) -> Array:
    """Decode a file of any of ``formats``: `decode_image`, on arrays."""
    kind = images.format_of(data)
    if kind is None:
        raise InvalidArgumentError(
            f"{who}: contents must be a JPEG, PNG, GIF, BMP or WebP image; they begin "
            f"with {data[:8]!r}"
        )
    if kind not in formats:
        raise InvalidArgumentError(
            f"{who}: contents are in the format {kind}; use decode_{kind.lower()} or "
            "decode_image"
        )
    if kind == "GIF" and channels not in (0, 3):
        raise InvalidArgumentError(
            f"{who}: channels must be 0 or 3 for GIF, got {channels}"
        )
    if kind == "WEBP":
        if dtype != "uint8":
            raise InvalidArgumentError(
                f"{who}: dtype must be uint8 for WebP, got {dtype}"
            )
        array = images.webp_array(who, data, channels, first_only)
        return array[0] if first_only else array
    if kind == "JPEG":
        array = images.jpeg_array(who, data, channels)
    elif kind == "PNG":
        array = png.png_array(who, data, channels, wide=dtype != "uint8")
    elif kind == "GIF":
        array = gif.gif_array(who, data, first_only)
        array = array[0] if first_only else array
    else:
        array = bmp.bmp_array(who, data, channels)
    if dtype == "uint16" and array.dtype == np.uint8:
        return array * np.uint16(256)
    if dtype == "float32":
        return array * (np.float32(1) / np.float32(np.iinfo(array.dtype).max))
    return array


def _decode(who, contents, shape, dtype, call):
    """Return the array ``call(data)`` of a string; its shape may have unknown sizes."""
    contents = scalar_text(who, "contents", contents)
    spec = TensorSpec(shape, dtype)
    return host_op(who, lambda text: [call(text.item())], [contents], [spec])[0]


def _channels(who, channels, allowed):
    channels = 0 if channels is None else int(channels)
    check_choice(who, "channels", channels, allowed)
    return channels


def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decode a JPEG, PNG, GIF, BMP or WebP file; the first bytes determine the format.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        channels: 1 for gray (JPEG, PNG), 3, 4 (PNG, BMP), or 0 or None for the channels
            of the file.
        dtype: uint8 (the only one for WebP), uint16, float32 in ``[0, 1]``, or another
            dtype, which is converted from uint16 by `image.convert_image_dtype`.
        expand_animations: If False, return only the first frame of a GIF or WebP.

    Shapes:
        Result ``[height, width, channels]``; for GIF and WebP
        ``[frames, height, width, channels]`` if ``expand_animations``.

    Raises:
        InvalidArgumentError: If the file is in another format, corrupted or truncated,
            ``channels`` does not suit the format, or the image has more than twice
            ``PIL.Image.MAX_IMAGE_PIXELS`` pixels (also a ``ValueError``).
        ImportError: If Pillow is not installed.

    Example:
        >>> import numpy as np
        >>> tw.io.decode_image(tw.io.encode_png(np.uint8([[[1], [2]]]))).numpy().tolist()
        [[[1], [2]]]
    """
    channels = _channels("decode_image", channels, (0, 1, 3, 4))
    kind = as_dtype(dtype).name
    kind = kind if kind in ("uint8", "uint16", "float32") else "uint16"
    first_only = not expand_animations
    shape = [None, None, channels or None] if first_only else None

    def call(data):
        return image_array("decode_image", data, channels, kind, first_only)

    image = _decode("decode_image", contents, shape, kind, call)
    return convert_image_dtype(image, dtype)


def _dtype(who, dtype, allowed):
    name = as_dtype(dtype).name
    check_choice(who, "dtype", name, allowed)
    return name


def decode_jpeg(
    contents: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decode a JPEG file; also accepts PNG and GIF.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        channels: 1 for gray, 3, or 0 for the channels of the file.
        ratio: 1, 2, 4 or 8, a factor by which the image is downscaled while decoding.
        fancy_upscaling: Must be True.
        try_recover_truncated: If True, accept a truncated file and fill the rest with a
            single colour.
        acceptable_fraction: Ignored.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE"; all use the accurate
            method. TensorFlow's default is the fast one, whose values differ by a few
            units of 255.

    Shapes:
        Result uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: If the contents or arguments are invalid, as in
            `decode_image`.
        UnimplementedError: If ``fancy_upscaling`` is False.

    Example:
        >>> import numpy as np
        >>> pixels = np.full((8, 8, 3), 128, "uint8")
        >>> tw.io.decode_jpeg(tw.io.encode_jpeg(pixels), ratio=4).numpy().shape
        (2, 2, 3)
    """
    read = _jpeg_reader(
        "decode_jpeg",
        channels,
        ratio,
        fancy_upscaling,
        try_recover_truncated,
        dct_method,
    )

    def call(data):
        if images.format_of(data) == "JPEG":
            return read(data)
        return _still("decode_jpeg", data, channels)

    shape = [None, None, channels or None]
    return _decode("decode_jpeg", contents, shape, "uint8", call)


def _jpeg_reader(who, channels, ratio, fancy_upscaling, recover, dct_method):
    _channels(who, channels, (0, 1, 3, 4))
    check_choice(who, "ratio", ratio, (1, 2, 4, 8))
    check_choice(who, "dct_method", dct_method, DCT_METHODS)
    if not fancy_upscaling:
        raise UnimplementedError(
            f"{who}: fancy_upscaling must be True: Pillow has no other decoder"
        )
    return lambda data: images.jpeg_array(who, data, channels, ratio, recover)


def _still(who, data, channels, dtype="uint8"):
    """Return an image of the formats that the JPEG and PNG decoders have in common."""
    array = image_array(who, data, channels, dtype, formats=("JPEG", "PNG", "GIF"))
    if array.ndim == 4 and len(array) > 1:
        raise InvalidArgumentError(
            f"{who}: contents are a GIF of {len(array)} frames; use decode_gif or "
            "decode_image"
        )
    return array[0] if array.ndim == 4 else array


def decode_and_crop_jpeg(
    contents: TensorLike,
    crop_window: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decode a part of a JPEG file.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        crop_window: Four integers: top, left, height and width of the part, in pixels
            of the result of `decode_jpeg`.
        channels: 1 for gray, 3, or 0 for the channels of the file.
        ratio: 1, 2, 4 or 8, a factor by which the image is downscaled while decoding.
        fancy_upscaling: Must be True.
        try_recover_truncated: If True, accept a truncated file and fill the rest with a
            single colour.
        acceptable_fraction: Ignored.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE"; all use the accurate
            method.

    Shapes:
        Result uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: If the format is not JPEG, or the part exceeds the image.
        UnimplementedError: If ``fancy_upscaling`` is False.

    Example:
        >>> import numpy as np
        >>> contents = tw.io.encode_jpeg(np.full((8, 8, 3), 128, "uint8"))
        >>> tw.io.decode_and_crop_jpeg(contents, [0, 2, 4, 3]).shape
        TensorShape([4, 3, 3])
    """
    who = "decode_and_crop_jpeg"
    read = _jpeg_reader(
        who, channels, ratio, fancy_upscaling, try_recover_truncated, dct_method
    )
    window = convert_to_tensor(crop_window)
    if tuple(window.shape) != (4,) or not window.dtype.is_integer:
        raise InvalidArgumentError(
            f"{who}: crop_window must be four integers, got {window.dtype.name} of "
            f"shape {tuple(window.shape)}"
        )

    def call(text, window):
        data = text.item()
        if images.format_of(data) != "JPEG":
            raise InvalidArgumentError(
                f"{who}: contents must be a JPEG image, got the format "
                f"{images.format_of(data)}"
            )
        array = read(data)
        top, left, height, width = window.tolist()
        fits = 0 <= top < top + height <= array.shape[0]
        if not (fits and 0 <= left < left + width <= array.shape[1]):
            raise InvalidArgumentError(
                f"{who}: crop_window must be within the image of {array.shape[0]} x "
                f"{array.shape[1]}, got {window.tolist()}"
            )
        return [array[top : top + height, left : left + width]]

    inputs = [scalar_text(who, "contents", contents), window]
    spec = TensorSpec([None, None, channels or None], "uint8")
    return host_op(who, call, inputs, [spec])[0]


def decode_png(
    contents: TensorLike,
    channels: int = 0,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
) -> Tensor:
    """Decode a PNG file; also accepts JPEG and GIF.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        channels: 1 for gray, 3, 4, or 0 for the channels of the file.
        dtype: uint8 or uint16.

    Shapes:
        Result ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: If the contents or arguments are invalid, as in
            `decode_image`.

    Example:
        >>> import numpy as np
        >>> contents = tw.io.encode_png(np.uint8([[[1], [2]]]))
        >>> tw.io.decode_png(contents, channels=3).numpy().tolist()
        [[[1, 1, 1], [2, 2, 2]]]
    """
    channels = _channels("decode_png", channels, (0, 1, 3, 4))
    kind = _dtype("decode_png", dtype, ("uint8", "uint16"))

    def call(data):
        return _still("decode_png", data, channels, kind)

    return _decode("decode_png", contents, [None, None, channels or None], kind, call)


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """Decode the frames of a GIF file; also accepts JPEG and PNG.

    Args:
        contents: Scalar string, such as the result of `read_file`.

    Shapes:
        Result uint8 ``[frames, height, width, 3]``.

    Raises:
        InvalidArgumentError: If the contents are invalid, as in `decode_image`.
    """

    def call(data):
        formats = ("GIF", "JPEG", "PNG")
        array = image_array("decode_gif", data, 3, formats=formats)
        return array if array.ndim == 4 else array[None]

    return _decode("decode_gif", contents, [None, None, None, 3], "uint8", call)


def decode_bmp(
    contents: TensorLike, channels: int = 0, name: str | None = None
) -> Tensor:
    """Decode a BMP file of 8, 24 or 32 bits per pixel; does not need Pillow.

    Files of 8 bits are decoded as gray and their palette is ignored, as in TensorFlow.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        channels: 3, 4, or 0 for the channels of the file.

    Shapes:
        Result uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: If the contents or arguments are invalid, as in
            `decode_image`.
    """
    channels = _channels("decode_bmp", channels, (0, 1, 3, 4))

    def call(data):
        return image_array("decode_bmp", data, channels, formats=("BMP",))

    return _decode(
        "decode_bmp", contents, [None, None, channels or None], "uint8", call
    )


def decode_webp(
    contents: TensorLike,
    channels: int = 0,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
) -> Tensor:
    """Decode the frames of a WebP file.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        channels: 0, or the channels of the file: 3, or 4 with alpha or an animation.
        dtype: Must be uint8.

    Shapes:
        Result uint8 ``[frames, height, width, channels]``.

    Raises:
        InvalidArgumentError: If the contents or arguments are invalid, as in
            `decode_image`.
    """
    channels = _channels("decode_webp", channels, (0, 3, 4))
    kind = _dtype("decode_webp", dtype, ("uint8",))

    def call(data):
        return image_array("decode_webp", data, channels, kind, formats=("WEBP",))

    shape = [None, None, None, channels or None]
    return _decode("decode_webp", contents, shape, kind, call)


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Return whether strings begin like a JPEG file, as booleans.

    Args:
        contents: Strings of any shape.

    Example:
        >>> import numpy as np
        >>> image = np.zeros((8, 8, 3), "uint8")
        >>> tw.io.is_jpeg([tw.io.encode_jpeg(image), tw.io.encode_png(image)]).numpy()
        array([ True, False])
    """
    strings = text_tensor("is_jpeg", "contents", contents)

    def call(array):
        are_jpeg = [images.format_of(data) == "JPEG" for data in texts(array)]
        return [np.array(are_jpeg, bool).reshape(array.shape)]

    return host_op("is_jpeg", call, [strings], [TensorSpec(strings.shape, "bool")])[0]


def extract_jpeg_shape(
    contents: TensorLike,
    output_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Return the height, width and channels of a JPEG file from its header.

    Args:
        contents: Scalar string, such as the result of `read_file`.
        output_type: int32 or int64.

    Shapes:
        Result ``[3]``.

    Raises:
        InvalidArgumentError: If the contents are not a JPEG file (also a
            ``ValueError``).

    Example:
        >>> import numpy as np
        >>> contents = tw.io.encode_jpeg(np.zeros((8, 6, 3), "uint8"))
        >>> tw.io.extract_jpeg_shape(contents).numpy()
        array([8, 6, 3], dtype=int32)
    """
    kind = _dtype("extract_jpeg_shape", output_type, ("int32", "int64"))

    def call(data):
        return np.array(images.jpeg_shape("extract_jpeg_shape", data), kind)

    return _decode("extract_jpeg_shape", contents, (3,), kind, call)


# ------------------------------------------------------------------------------ encode


def _image(who, image, dtypes, channels):
    x = convert_to_tensor(image)
    if (
        x.shape.rank != 3
        or x.dtype.name not in dtypes
        or x.shape[-1] not in (None, *channels)
    ):
        raise InvalidArgumentError(
            f"{who}: image must be [height, width, channels] of {' or '.join(dtypes)} with "
            f"{', '.join(map(str, channels))} channels, got {x.dtype.name} of shape "
            f"{tuple(x.shape)}"
        )
    return x


def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encode an image as a JPEG file, a scalar string.

    Args:
        image: uint8 image ``[height, width, channels]`` with 1 or 3 channels.
        format: "grayscale", "rgb", or "" to choose by the channels.
        quality: Quality from 0 to 100.
        progressive: If True, encode in several passes.
        optimize_size: If True, create a smaller file in more time.
        chroma_downsampling: If True, store colours at half the resolution.
        density_unit: "in" or "cm", the unit of ``x_density`` and ``y_density``.
        x_density: Horizontal pixels per unit.
        y_density: Vertical pixels per unit.
        xmp_metadata: Metadata to store, a string.

    Raises:
        InvalidArgumentError: If an argument is invalid (also a ``ValueError``).
        ImportError: If Pillow is not installed.

    Example:
        >>> import numpy as np
        >>> contents = tw.io.encode_jpeg(np.zeros((8, 8, 3), "uint8"), quality=90)
        >>> tw.io.decode_image(contents).shape
        TensorShape([8, 8, 3])
    """
    who = "encode_jpeg"
    check_choice(who, "format", format, ("", "grayscale", "rgb"))
    check_choice(who, "density_unit", density_unit, ("in", "cm"))
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(
            f"{who}: quality must be from 0 to 100, got {quality}"
        )
    allowed = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[format]
    x = _image(who, image, ("uint8",), allowed)
    density = (1 if density_unit == "in" else 2, x_density, y_density)

    def call(array):
        data = images.encode_jpeg(
            who,
            array,
            quality=int(quality),
            progressive=progressive,
            optimize_size=optimize_size,
            chroma_downsampling=chroma_downsampling,
            density=density,
            xmp=xmp_metadata.encode(),
        )
        return [make_text([data], ())]

    return host_op(who, call, [x], [STRING])[0]


def encode_png(
    image: TensorLike, compression: int = -1, name: str | None = None
) -> Tensor:
    """Encode images as PNG files; does not need Pillow.

    Args:
        image: uint8 or uint16 images ``[..., height, width, channels]`` with 1 to 4
            channels.
        compression: Level from 0 to 9, or -1 for zlib's default.

    Returns:
        A string for each image, ``[...]``.

    Raises:
        InvalidArgumentError: If an argument is invalid (also a ``ValueError``).

    Example:
        >>> import numpy as np
        >>> tw.io.encode_png(np.zeros((2, 4, 4, 3), "uint8")).shape
        TensorShape([2])
    """
    x = convert_to_tensor(image)
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(
            f"encode_png: compression must be from -1 to 9, got {compression}"
        )
    if (
        (x.shape.rank or 0) < 3
        or x.dtype.name not in ("uint8", "uint16")
        or x.shape[-1] not in (None, 1, 2, 3, 4)
        or 0 in x.shape[-3:]
    ):
        raise InvalidArgumentError(
            "encode_png: image must be [..., height, width, channels] of uint8 or uint16 "
            f"with 1 to 4 channels, got {x.dtype.name} of shape {tuple(x.shape)}"
        )

    def call(array):
        each = array.reshape(-1, *array.shape[-3:])
        files = [png.encode_png(one, compression) for one in each]
        return [make_text(files, array.shape[:-3])]

    return host_op("encode_png", call, [x], [TensorSpec(x.shape[:-3], "string")])[0]


# ----------------------------------------------------------------------------- quality


def adjust_jpeg_quality(
    image: TensorLike,
    jpeg_quality: TensorLike,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Encode an image as JPEG and decode it again, which adds compression artefacts.

    The result has the shape and dtype of ``image`` and no gradient.

    Args:
        image: Image ``[height, width, channels]`` with 1 or 3 channels, of any dtype
            that `convert_image_dtype` converts to uint8 and back.
        jpeg_quality: Quality from 0 to 100, a number or tensor.
        dct_method: As in `decode_jpeg`.

    Example:
        >>> tw.image.adjust_jpeg_quality(tw.fill([8, 8, 3], 0.5), 75).shape
        TensorShape([8, 8, 3])
    """
    who = "adjust_jpeg_quality"
    check_choice(who, "dct_method", dct_method, DCT_METHODS)
    x = convert_to_tensor(image)
    pixels = _image(
        who, convert_image_dtype(x, "uint8", saturate=True), ("uint8",), (1, 3)
    )

    def call(array, quality):
        if not 0 <= quality <= 100:
            raise InvalidArgumentError(
                f"{who}: jpeg_quality must be from 0 to 100, got {quality}"
            )
        data = images.encode_jpeg(who, array, quality=int(quality))
        return [images.jpeg_array(who, data, array.shape[-1])]

    quality = cast(convert_to_tensor(jpeg_quality), "int32")
    spec = TensorSpec(pixels.shape, "uint8")
    decoded = host_op(who, call, [pixels, quality], [spec])[0]
    return convert_image_dtype(decoded, x.dtype, saturate=True)


def random_jpeg_quality(
    image: TensorLike,
    min_jpeg_quality: IntLike,
    max_jpeg_quality: IntLike,
    seed: int | None = None,
) -> Tensor:
    """Apply `adjust_jpeg_quality` with a random quality.

    Args:
        image: Image ``[height, width, channels]`` with 1 or 3 channels.
        min_jpeg_quality: Minimum quality.
        max_jpeg_quality: Exclusive maximum quality.
        seed: Integer seed, or None for a random seed.

    Raises:
        ValueError: Unless ``0 <= min_jpeg_quality < max_jpeg_quality <= 100``.

    Example:
        >>> tw.image.random_jpeg_quality(tw.fill([8, 8, 3], 0.5), 50, 95).shape
        TensorShape([8, 8, 3])
    """
    _check_range("random_jpeg_quality", min_jpeg_quality, max_jpeg_quality)
    quality = sampling.uniform(
        (), min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed=seed
    )
    return adjust_jpeg_quality(image, quality)


def stateless_random_jpeg_quality(
    image: TensorLike,
    min_jpeg_quality: IntLike,
    max_jpeg_quality: IntLike,
    seed: TensorLike,
) -> Tensor:
    """Apply `adjust_jpeg_quality` with a random quality determined by ``seed``.

    Args:
        image: Image ``[height, width, channels]`` with 1 or 3 channels.
        min_jpeg_quality: Minimum quality.
        max_jpeg_quality: Exclusive maximum quality.
        seed: Two integers; the same seed returns the same result.

    Raises:
        ValueError: Unless ``0 <= min_jpeg_quality < max_jpeg_quality <= 100``.

    Example:
        >>> image = tw.fill([8, 8, 3], 0.5)
        >>> tw.image.stateless_random_jpeg_quality(image, 50, 95, seed=[1, 2]).shape
        TensorShape([8, 8, 3])
    """
    _check_range("stateless_random_jpeg_quality", min_jpeg_quality, max_jpeg_quality)
    quality = sampling.stateless_uniform(
        (), seed, min_jpeg_quality, max_jpeg_quality, dtypes.int32
    )
    return adjust_jpeg_quality(image, quality)


def _check_range(who, least, most):
    if not 0 <= least < most <= 100:
        raise InvalidArgumentError(
            f"{who}: min_jpeg_quality must be below max_jpeg_quality, both from 0 to 100, "
            f"got {least} and {most}"
        )
