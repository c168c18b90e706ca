"""Image files by Pillow, arrays of JPEG and WebP files: the only file that imports Pillow.

Arrays of files, here and in `png`, `gif` and `bmp`, are ``[height, width, channels]``,
with the values that TensorFlow's decoders return. No code of a file is run, and images
that would need more memory than Pillow allows are rejected.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any, BinaryIO

    from PIL.Image import Image as Image

    Array = np.ndarray[Any, Any]

SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
}


def pillow(who: str) -> ModuleType:
    """Return the module ``PIL.Image``.

    Raises:
        ImportError: If Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"{who} needs Pillow: pip install 'tapewright[image]'"
        ) from error
    return Image


def format_of(data: bytes) -> str | None:
    """Return the format of a file by its first bytes, such as "JPEG"; None for others."""
    if data[:4] + data[8:12] == b"RIFFWEBP":
        return "WEBP"
    return next(
        (name for key, name in SIGNATURES.items() if data.startswith(key)), None
    )


@contextlib.contextmanager
def reading(who: str, name: str) -> Iterator[None]:
    """Convert errors of Pillow's readers to ``InvalidArgumentError`` (a ``ValueError``)."""
    module = pillow(who)
    try:
        yield
    except module.DecompressionBombError as error:
        raise InvalidArgumentError(
            f"{who}: {name} is refused: {error} PIL.Image.MAX_IMAGE_PIXELS sets half of "
            "the limit."
        ) from error
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error) as error:
        reason = "Pillow finds no image format in it"
        reason = reason if type(error) is module.UnidentifiedImageError else error
        raise InvalidArgumentError(f"{who}: cannot read {name}: {reason}") from error


def opened_image(who: str, data: bytes, kind: str) -> Image:
    """Return a Pillow image of one format, not decoded yet."""
    return pillow(who).open(io.BytesIO(data), formats=(kind,))


def decoded_image(who: str, name: str, file: BinaryIO) -> Image:
    """Return a decoded Pillow image of any format but EPS.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If a file is damaged or not an image.
    """
    module = pillow(f"keras.utils.{who}")
    with reading(who, name):
        image = module.open(file)
        if image.format == "EPS":  # Pillow would call Ghostscript
            raise ValueError("EPS is a program that draws an image")
        image.load()
    return image


def check_pixels(who: str, count: int) -> None:
    """Raise ``InvalidArgumentError`` for more pixels than Pillow allows."""
    limit = pillow(who).MAX_IMAGE_PIXELS
    if limit is not None and count > 2 * limit:
        raise InvalidArgumentError(
            f"{who}: an image of {count} pixels is too large: the limit is twice "
            "PIL.Image.MAX_IMAGE_PIXELS"
        )


# -------------------------------------------------------------------------------- JPEG


def jpeg_shape(who: str, data: bytes) -> tuple[int, int, int]:
    """Return ``(height, width, channels)`` of a JPEG file, from its header."""
    with reading(who, "the JPEG file"):
        image = opened_image(who, data, "JPEG")
        return image.height, image.width, len(image.getbands())


def jpeg_array(
    who: str, data: bytes, channels: int, ratio: int = 1, recover: bool = False
) -> Array:
    """Decode a JPEG file to uint8, scaled down by 1, 2, 4 or 8; ``channels`` 0, 1 or 3.

    If ``recover`` is True, missing data at the end of the file becomes a uniform color.
    """
    if channels == 4:
        raise InvalidArgumentError(f"{who}: JPEG does not support 4 channels")
    with reading(who, "the JPEG file"):
        image = opened_image(who, data + b"\xff\xd9" if recover else data, "JPEG")
        if image.mode == "CMYK" and channels == 1:
            raise ValueError("CMYK has no gray channel; channels must be 0 or 3")
        mode = "L" if channels == 1 else image.mode
        image.draft(mode, (image.width / ratio, image.height / ratio))
        array = np.asarray(image)
    if image.mode == "CMYK":
        ink = 255 - array.astype(np.int32)
        return (ink[..., :3] * ink[..., 3:] // 255).astype(np.uint8)
    array = array[..., None] if array.ndim == 2 else array
    return np.repeat(array, 3, -1) if (channels, array.shape[-1]) == (3, 1) else array


def encode_jpeg(
    who: str,
    array: Array,
    *,
    quality: int,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density: tuple[int, int, int] = (1, 300, 300),
    xmp: bytes = b"",
) -> bytes:
    """Encode uint8 with 1 or 3 channels as a JPEG file.

    ``density`` is the unit (1 inch, 2 centimetre), and pixels per unit along x and y.
    """
    gray = array[..., 0] if array.shape[-1] == 1 else array
    file = io.BytesIO()
    pillow(who).fromarray(np.ascontiguousarray(gray)).save(
        file, "JPEG", quality=quality, progressive=progressive, optimize=optimize_size,
        subsampling=2 if chroma_downsampling else 0,
    )  # fmt: skip
    data = file.getvalue()
    # The first segment, of 20 bytes, is JFIF's: its density is at 13.
    head = data[:13] + struct.pack(">BHH", *density) + data[18:20]
    if xmp:
        content = b"http://ns.adobe.com/xap/1.0/\0" + xmp
        head += b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content
    return head + data[20:]


# -------------------------------------------------------------------------------- WebP


def webp_array(who: str, data: bytes, channels: int, first_only: bool = False) -> Array:
    """Decode the frames of a WebP file to uint8 ``[frames, height, width, channels]``.

    ``channels`` is 0 for the channels of the file (4 for an animation); any other
    number must match.
    """
    with reading(who, "the WebP file"):
        image = opened_image(who, data, "WEBP")
        count = 1 if first_only else getattr(image, "n_frames", 1)
        own = 3 if image.mode == "RGB" else 4
        if channels not in (0, own):
            raise ValueError(f"channels must be 0 or {own} for it, got {channels}")
        check_pixels(who, count * image.width * image.height)
        frames = []
        for number in range(count):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB" if own == 3 else "RGBA")))
    return np.stack(frames)
