"""Image files and arrays of NumPy, by Pillow: the one file that imports it.

Arrays are ``[height, width, channels]``, with the values that TensorFlow's decoders give.
Pillow decompresses; what an image becomes then follows libpng, giflib and TensorFlow's own
reader of BMP files. No code runs from a file, and an image is refused that would take more
memory than Pillow allows for it.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.errors import InvalidArgumentError

from .gif import Frame, read_frames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any, BinaryIO

    from PIL.Image import Image as Image

    Array = np.ndarray[Any, Any]

__all__ = [
    "bmp_array",
    "decoded_image",
    "encode_jpeg",
    "encode_png",
    "format_of",
    "gif_array",
    "jpeg_array",
    "jpeg_shape",
    "pillow",
    "png_array",
]

SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
}
PNG_END = b"IEND\xae\x42\x60\x82"


def pillow(who: str) -> ModuleType:
    """The module ``PIL.Image``.

    Raises: ``ImportError`` without Pillow.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"{who} needs Pillow: pip install 'tapewright[image]'"
        ) from error
    return Image


def format_of(data: bytes) -> str | None:
    """ "JPEG", "PNG", "GIF" or "BMP", by the first bytes of a file; else None."""
    return next(
        (name for key, name in SIGNATURES.items() if data.startswith(key)), None
    )


@contextlib.contextmanager
def _reading(who: str, name: str, module: ModuleType) -> Iterator[None]:
    """Turn what Pillow's readers raise into ``InvalidArgumentError`` (a ``ValueError``)."""
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


def decoded_image(who: str, name: str, file: BinaryIO) -> Image:
    """An image of Pillow of any format but EPS, decoded.

    Raises: ``ImportError`` without Pillow; ``ValueError`` for a file that is damaged or
    no image.
    """
    module = pillow(f"keras.utils.{who}")
    with _reading(who, name, module):
        image = module.open(file)
        if image.format == "EPS":  # Pillow would call Ghostscript
            raise ValueError("EPS is a program that draws an image")
        image.load()
    return image


def _check_pixels(who, count):
    limit = pillow(who).MAX_IMAGE_PIXELS
    if limit is not None and count > 2 * limit:
        raise InvalidArgumentError(
            f"{who}: an image of {count} pixels is refused: PIL.Image.MAX_IMAGE_PIXELS "
            "sets half of the limit"
        )


# -------------------------------------------------------------------------------- JPEG


def _jpeg(who, data):
    return pillow(who).open(io.BytesIO(data), formats=("JPEG",))


def jpeg_shape(who: str, data: bytes) -> tuple[int, int, int]:
    """``(height, width, channels)`` of a JPEG file, from its header."""
    with _reading(who, "the JPEG file", pillow(who)):
        image = _jpeg(who, data)
        return image.height, image.width, len(image.getbands())


def jpeg_array(
    who: str, data: bytes, channels: int, ratio: int = 1, recover: bool = False
) -> Array:
    """A JPEG file as uint8, scaled down by 1, 2, 4 or 8; ``channels`` is 0, 1 or 3.

    ``recover``: what is missing at the end of the file becomes one colour.
    """
    if channels == 4:
        raise InvalidArgumentError(f"{who}: JPEG does not support 4 channels")
    with _reading(who, "the JPEG file", pillow(who)):
        image = _jpeg(who, data + b"\xff\xd9" if recover else data)
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
    """A JPEG file of uint8 with 1 or 3 channels.

    ``density``: the unit (1 inch, 2 centimetre), and pixels in each along x and y.
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


# --------------------------------------------------------------------------------- PNG


def _png(who, data):
    return pillow(who).open(io.BytesIO(data), formats=("PNG",))


def png_array(who: str, data: bytes, channels: int, wide: bool = False) -> Array:
    """A PNG file as uint8, or as uint16 if ``wide``.

    ``channels``: 0 for those of the file (4 for a palette with transparent entries), 1,
    2, 3 or 4. Gray is ``0.299 * red + 0.587 * green + 0.114 * blue``. Without transparent
    parts alpha is the largest value; TensorFlow gives that of the file's depth, 15 for 4 bits.
    """
    with _reading(who, "the PNG file", pillow(who)):
        colors, alpha, is_palette, gamma = _png_samples(who, data)
    own = colors.shape[-1]
    if channels == 0:
        has_alpha = alpha is not None and (is_palette or data[25] & 4)
        channels = own + (1 if has_alpha else 0)
    if channels < 3 and own == 3:
        colors = _gray(colors, gamma)
    elif channels > 2 and own == 1:
        colors = np.repeat(colors, 3, -1)
    if channels % 2 == 0:
        if alpha is None:
            alpha = np.full(colors.shape[:2], np.iinfo(colors.dtype).max, colors.dtype)
        colors = np.concatenate([colors, alpha[..., None]], -1)
    if wide:
        return colors * np.uint16(257) if colors.dtype == np.uint8 else colors
    return colors if colors.dtype == np.uint8 else (colors >> 8).astype(np.uint8)


def _gray(colors, gamma):
    """Gray of the light that the colors stand for, by libpng's weights in ``2 ** -15``."""
    most = np.iinfo(colors.dtype).max
    red, green = 29900 * 2**15 // 100000, 58700 * 2**15 // 100000
    weights = np.array([red, green, 2**15 - red - green], np.int64)
    if abs(gamma - 1) < 0.05:  # libpng's limit
        rounding = 0 if most == 255 else 2**14
        return ((colors @ weights + rounding) >> 15).astype(colors.dtype)[..., None]
    light = _power(colors, 1 / gamma, most)
    gray = _power((light @ weights + 2**14) >> 15, gamma, most)[..., None]
    is_gray = (colors == colors[..., :1]).all(-1, keepdims=True)
    return np.where(is_gray, colors[..., :1], gray).astype(colors.dtype)


def _power(values, exponent, most):
    return np.floor(most * (values / most) ** exponent + 0.5).astype(np.int64)


def _png_samples(who, data):
    """Colours ``[height, width, 1 or 3]`` in the depth of the file, at least 8 bits; alpha
    ``[height, width]`` or None; whether they are those of a palette; and their gamma."""
    image = _png(who, data)
    if PNG_END not in data:  # Pillow does not need it
        raise ValueError("it is cut off")
    depth, kind = data[24], data[25]
    transparent = image.info.get("transparency")
    gamma = 0.45455 if "srgb" in image.info else image.info.get("gamma", 1)
    if depth == 16 and kind == 4:  # as four bytes, for which there is a reader
        header = data[12:24] + b"\x08\x06" + data[26:29]
        checksum = struct.pack(">I", zlib.crc32(header))
        pairs = np.asarray(_png(who, data[:12] + header + checksum + data[33:]))
        array = _joined(pairs[..., ::2], pairs[..., 1::2])
    elif depth == 16 and kind & 2:  # Pillow reads one byte of each sample
        low = _png(who, data)
        low.tile = [low.tile[0]._replace(args=f"{low.mode};16L")]
        array = _joined(np.asarray(image), np.asarray(low))
    else:
        array = np.asarray(image)
    if kind == 3:
        entries = _entries(image, transparent)[array]
        alpha = None if transparent is None else entries[..., 3]
        return entries[..., :3], alpha, True, gamma
    if array.dtype == bool:
        array = array * np.uint8(255)
    array = array[..., None] if array.ndim == 2 else array
    if kind & 4:
        return array[..., :-1], array[..., -1], False, gamma
    if transparent is None:
        return array, None, False, gamma
    scale = (
        255 // (2**depth - 1) if depth in (2, 4) else 1
    )  # Pillow scales that of 1 bit
    alpha = (array != np.multiply(transparent, scale)).any(-1)
    return array, alpha * np.array(np.iinfo(array.dtype).max, array.dtype), False, gamma


def _joined(high, low):
    return high.astype(np.uint16) << 8 | low


def _entries(image, transparent):
    """The palette as ``[256, 4]``: red, green, blue, alpha."""
    entries = np.zeros((256, 4), np.uint8)
    colors = np.array(image.getpalette("RGB"), np.uint8).reshape(-1, 3)
    entries[: len(colors), :3] = colors
    entries[:, 3] = 255
    if isinstance(transparent, int):
        entries[transparent, 3] = 0
    elif transparent is not None:
        entries[: len(transparent), 3] = np.frombuffer(transparent, np.uint8)
    return entries


def encode_png(array: Array, compression: int = -1) -> bytes:
    """A PNG file of uint8 or uint16 ``[height, width, 1 to 4 channels]``.

    Each row has the filter (RFC 2083, section 6) with the least sum of absolute values.
    """
    height, width, channels = array.shape
    wide = array.dtype == np.uint16
    rows = array.astype(">u2" if wide else np.uint8).reshape(height, -1).view(np.uint8)
    left = np.pad(rows, ((0, 0), (channels << wide, 0)))[:, : rows.shape[1]]
    above = np.pad(rows, ((1, 0), (0, 0)))[:-1]
    filtered = np.stack([rows, rows - left, rows - above])
    cost = np.abs(filtered.view(np.int8).astype(np.int32)).sum(-1)
    best = np.argmin(cost, 0)
    lines = np.take_along_axis(filtered, best[None, :, None], 0)[0]
    content = np.concatenate([best[:, None].astype(np.uint8), lines], 1).tobytes()
    header = struct.pack(
        ">IIBBBBB", width, height, 8 << wide, (0, 4, 2, 6)[channels - 1], 0, 0, 0
    )
    signature = next(key for key, name in SIGNATURES.items() if name == "PNG")
    return signature + b"".join([
        _chunk(b"IHDR", header),
        _chunk(b"IDAT", zlib.compress(content, compression)),
        _chunk(b"IEND", b""),
    ])  # fmt: skip


def _chunk(kind, content):
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum


# ------------------------------------------------------------------------- GIF and BMP


def gif_array(who: str, data: bytes, first_only: bool = False) -> Array:
    """The frames of a GIF file, uint8 ``[frames, height, width, 3]``.

    A frame is drawn over the one before it, whatever its disposal is, as in TensorFlow;
    the first one over black. Frames that the end of the file cuts off are left out.
    """
    with _reading(who, "the GIF file", pillow(who)):
        listed = list(read_frames(data))
        drawn = listed[:1] if first_only else listed
        _check_pixels(who, sum([frame.width * frame.height for frame in drawn]))
        rasters = []
        for frame in drawn:
            try:
                rasters.append(_raster(who, frame))
            except OSError:  # it is cut off
                break
        if not rasters:
            raise ValueError("it has no complete frame")
    listed = listed if first_only else listed[: len(rasters)]
    height = max([frame.height for frame in listed])
    width = max([frame.width for frame in listed])
    _check_pixels(who, len(rasters) * height * width)
    frames = np.zeros((len(rasters), height, width, 3), np.uint8)
    for number, (frame, raster) in enumerate(zip(listed, rasters)):
        if number:
            frames[number] = frames[number - 1]
        canvas = frames[number, frame.top :, frame.left :]
        raster = raster[: canvas.shape[0], : canvas.shape[1]]
        canvas = canvas[: raster.shape[0], : raster.shape[1]]
        if raster.max(initial=0) >= len(frame.colors):
            raise InvalidArgumentError(f"{who}: a pixel of the GIF file has no color")
        drawn = raster != frame.transparent
        canvas[drawn] = frame.colors[raster[drawn]]
    return frames


def _raster(who: str, frame: Frame) -> Array:
    """The indices of colors of one frame, ``[height, width]``."""
    image = pillow(who).open(io.BytesIO(frame.as_file()), formats=("GIF",))
    return np.asarray(image)


def bmp_array(who: str, data: bytes, channels: int) -> Array:
    """A BMP file as uint8 ``[height, width, channels]``, ``channels`` 0, 3 or 4.

    As in TensorFlow, 8 bits for each pixel are gray, whatever the palette is.
    """
    if channels not in (0, 3, 4):
        raise InvalidArgumentError(
            f"{who}: channels must be 0, 3 or 4 for BMP, got {channels}"
        )
    if len(data) < 32:
        raise InvalidArgumentError(f"{who}: the header of the BMP file is cut off")
    start, width, height, bits = struct.unpack_from("<10xI4xii2xH", data)
    own = bits // 8
    if bits not in (8, 24, 32) or width <= 0 or height == 0:
        raise InvalidArgumentError(
            f"{who}: a BMP file must have pixels of 8, 24 or 32 bits, and not none of "
            f"them, got {width} x {height} of {bits} bits"
        )
    step = (own * width + 3) // 4 * 4  # rows are multiples of 4 bytes
    if len(data) < start + step * abs(height):
        raise InvalidArgumentError(
            f"{who}: the BMP file is cut off: its {width} x {height} pixels take "
            f"{start + step * abs(height)} bytes, it has {len(data)}"
        )
    rows = np.frombuffer(data, np.uint8, step * abs(height), start)
    array = rows.reshape(abs(height), step)[:: -1 if height > 0 else 1, : own * width]
    array = array.reshape(abs(height), width, own)
    colors, alpha = array[..., 2::-1], array[..., 3:]
    channels = channels or own
    if own == 1 and channels > 1:
        colors = np.repeat(array, 3, -1)
    if channels == 4 and own != 4:
        alpha = np.full((*colors.shape[:2], 1), 255, np.uint8)
    return np.concatenate([colors, alpha][: 2 if channels == 4 else 1], -1)
