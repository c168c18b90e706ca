"""Images: files, Pillow's images, and arrays; need the extra ``image``, which is Pillow.

No code runs from a file, and an image is refused that would take more memory than Pillow
allows for it.
"""

from __future__ import annotations

import io
import os
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.floatx import floatx
from tapewright.core.tensor import convert_to_tensor, is_tensor
from tapewright.layers.base.spatial import checked_format
from tapewright.ops.image.resizing import resize
from tapewright.storage.atomic import writing_whole
from tapewright.storage.records.images import decoded_image, pillow

from ..ops.arrays import moveaxis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any, BinaryIO

    from tapewright.core.typing import DTypeLike
    from tapewright.storage.records.images import Image

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"]

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
GRAYSCALE = ("L", "I;16", "I")  # modes that `color_mode="grayscale"` keeps


def load_img(
    path: str | bytes | PathLike[str] | io.BytesIO,
    color_mode: str = "rgb",
    target_size: Sequence[int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Image:
    """Read an image file as an image of Pillow.

    Args: ``path``: of a file in a format that Pillow reads, except EPS, which is a
    program; or its content as a ``BytesIO``; ``color_mode``: "rgb", "rgba" or
    "grayscale", which keeps images of 16 and 32 bits; ``target_size``: ``(height,
    width)``, None for that of the file; ``interpolation``: "nearest", "bilinear",
    "bicubic", "hamming", "box" or "lanczos"; ``keep_aspect_ratio``: resize only the
    largest box in the middle that has the ratio of ``target_size``.

    Raises: ``ImportError`` without Pillow; ``ValueError`` for other arguments, a file
    that is damaged or no image, or an image of more than twice
    ``PIL.Image.MAX_IMAGE_PIXELS``; a warning from Pillow from there on.

    Example:
        >>> keras.utils.load_img("photo.png", target_size=(64, 64)).size  # doctest: +SKIP
        (64, 64)
    """
    if color_mode not in MODES:
        raise ValueError(
            f"load_img: color_mode must be one of {', '.join(MODES)}, got {color_mode!r}"
        )
    if interpolation not in INTERPOLATIONS:
        raise ValueError(
            f"load_img: interpolation must be one of {', '.join(INTERPOLATIONS)}, got "
            f"{interpolation!r}"
        )
    size = None if target_size is None else _size(target_size)
    image = _read(path)
    kept = GRAYSCALE if color_mode == "grayscale" else (MODES[color_mode],)
    if image.mode not in kept:
        image = image.convert(MODES[color_mode])
    if size is None or image.size == size:
        return image
    resampling = pillow("keras.utils.load_img").Resampling[interpolation.upper()]
    box = _middle(image.size, size) if keep_aspect_ratio else None
    return image.resize(size, resampling, box=box)


def _size(target_size):
    """``(width, height)``, as Pillow has it."""
    size = tuple(target_size) if np.iterable(target_size) else ()
    if len(size) != 2 or not all(
        isinstance(n, int | np.integer) and n > 0 for n in size
    ):
        raise ValueError(
            "load_img: target_size must be (height, width), two positive ints, got "
            f"{target_size!r}"
        )
    return int(size[1]), int(size[0])


def _read(path):
    """The image of a file, decoded, so that the file is needed no longer."""
    if isinstance(path, io.BytesIO):
        return decoded_image("load_img", "the BytesIO", path)
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(
            "load_img: path must be a path or a BytesIO, got "
            f"{path!r} of type {type(path).__name__}"
        )
    with open(path, "rb") as file:
        content = io.BytesIO(file.read())
    return decoded_image("load_img", os.fsdecode(path), content)


def _middle(old, new):
    """The largest box in the middle of an image that has the ratio of ``new``."""
    (width, height), (new_width, new_height) = old, new
    across = min(width, max(height * new_width // new_height, 1))
    down = min(height, max(width * new_height // new_width, 1))
    left, top = (width - across) // 2, (height - down) // 2
    return left, top, left + across, top + down


def img_to_array(
    img: Image, data_format: str | None = None, dtype: DTypeLike | None = None
) -> np.ndarray[Any, Any]:
    """Convert an image of Pillow to an array ``[height, width, channels]``.

    Args: ``img``: also an array of rank 2 or 3; ``data_format``:
    "channels_last", or "channels_first" for ``[channels, height, width]``, by default
    `image_data_format`; ``dtype``: by default `floatx`.

    Raises: ``ValueError`` for another rank or ``data_format``.

    Example:
        >>> keras.utils.img_to_array([[0, 255]]).shape
        (1, 2, 1)
    """
    channels_first = _is_channels_first("img_to_array", data_format)
    x = np.asarray(img, dtype=_numpy_dtype(dtype))
    if x.ndim == 2:
        x = x[:, :, None]
    if x.ndim != 3:
        raise ValueError(
            f"img_to_array: img must have rank 2 or 3, got the shape {x.shape}"
        )
    return x.transpose(2, 0, 1) if channels_first else x


def array_to_img(
    x: Any,
    data_format: str | None = None,
    scale: bool = True,
    dtype: DTypeLike | None = None,
) -> Image:
    """Convert an array ``[height, width, channels]`` to an image of Pillow.

    One channel gives mode "L", or "I" for values beyond 255; three "RGB", four "RGBA".

    Args: ``x``: an array or a tensor; ``data_format``: "channels_last", by
    default, or "channels_first"; ``scale``: map the least value to 0 and the largest to
    255, else values must be in ``[0, 255]``, and fractions are cut off; ``dtype``: in
    which to scale, by default `keras.config.floatx`.

    Raises: ``ImportError`` without Pillow; ``ValueError`` for other shapes or values;
    Keras takes values beyond 255 modulo 256.

    Example:
        >>> keras.utils.array_to_img([[[0.0], [0.5], [1.0]]]).getpixel((1, 0))  # doctest: +SKIP
        127
    """
    channels_first = _is_channels_first("array_to_img", data_format)
    x = np.asarray(x, dtype=_numpy_dtype(dtype))
    if x.ndim != 3 or x.shape[0 if channels_first else 2] not in (1, 3, 4):
        axes = (
            "[channels, height, width]"
            if channels_first
            else "[height, width, channels]"
        )
        raise ValueError(
            f"array_to_img: x must have the shape {axes} with 1, 3 or 4 channels, got "
            f"{x.shape}"
        )
    if channels_first:
        x = x.transpose(1, 2, 0)
    if scale:
        x = x - np.min(x)
        largest = np.max(x)
        x = (x / largest if largest else x) * 255
    fromarray = pillow("keras.utils.array_to_img").fromarray
    is_gray = x.shape[2] == 1
    x = x[:, :, 0] if is_gray else x
    least, largest = np.min(x), np.max(x)
    if is_gray and largest > 255 and least > -(2**31) - 1 and largest < 2**31:
        return fromarray(x.astype(np.int32))
    if not (least > -1 and largest < 256):  # NaN neither
        raise ValueError(
            "array_to_img: x must have finite values, and values in [0, 255] with "
            f"scale=False, got values from {least} to {largest}"
        )
    return fromarray(x.astype(np.uint8))


def save_img(
    path: str | PathLike[str] | BinaryIO,
    x: Any,
    data_format: str | None = None,
    file_format: str | None = None,
    scale: bool = True,
    **kwargs: Any,
) -> None:
    """Write an array as an image file, by way of `array_to_img`.

    Args: ``path``: also an open file, which needs ``file_format``; ``x``,
    ``data_format``, ``scale``: those of `array_to_img`; ``file_format``: such as "png",
    by default the suffix of the path; ``kwargs``: those of ``PIL.Image.save``.

    Raises: ``ValueError`` for a format that Pillow does not write; JPEG has no alpha
    channel, and its loss is a warning.
    """
    if file_format is None and isinstance(path, str | os.PathLike):
        file_format = os.path.splitext(path)[1][1:]
    if not file_format:
        raise ValueError(
            "save_img: file_format must be given, as there is no suffix to tell it: got "
            f"{path!r}"
        )
    name = file_format.lower().replace("jpg", "jpeg")
    image = array_to_img(x, data_format=data_format, scale=scale)
    if image.mode == "RGBA" and name == "jpeg":
        warnings.warn(
            "save_img: JPEG has no alpha channel, which is dropped", stacklevel=2
        )
        image = image.convert("RGB")
    is_path = isinstance(path, str | os.PathLike)
    try:
        with writing_whole(path) if is_path else nullcontext(path) as place:
            image.save(place, format=name, **kwargs)
    except KeyError:
        raise ValueError(
            f"save_img: file_format: Pillow does not write {file_format!r}"
        ) from None


def smart_resize(
    x: Any,
    size: Sequence[int],
    interpolation: str = "bilinear",
    data_format: str = "channels_last",
) -> Any:
    """Resize the largest box in the middle of images that has the ratio of ``size``.

    Args: ``x``: ``[height, width, channels]`` or ``[batch, height, width, channels]``, an
    array or a tensor; ``size``: ``(height, width)``; ``interpolation``: a method of
    `image.resize`; ``data_format``: "channels_last", or "channels_first" for channels before
    the height.

    Returns: an array for an array, a tensor for a tensor; float32, or the dtype of ``x`` with
    the interpolation "nearest".

    Raises: ``ValueError`` for another rank, ``size`` or ``interpolation``.

    Example:
        >>> import numpy as np
        >>> keras.preprocessing.image.smart_resize(np.zeros((340, 500, 3)), (200, 200)).shape
        (200, 200, 3)
    """
    channels_first = _is_channels_first("smart_resize", data_format)
    images = convert_to_tensor(x)
    if images.shape.rank not in (3, 4) or len(size) != 2:
        raise ValueError(
            "smart_resize: x must have rank 3 or 4, and size must be (height, width), got "
            f"the shape {tuple(images.shape)} and {size!r}"
        )
    if channels_first:
        images = moveaxis(images, -3, -1)
    rows, columns = middle_box(tuple(images.shape)[-3:-1], size)
    images = resize(images[..., rows, columns, :], size, interpolation)
    if channels_first:
        images = moveaxis(images, -1, -3)
    return images if is_tensor(x) else images.numpy()


def middle_box(old: Sequence[int], new: Sequence[int]) -> tuple[slice, slice]:
    """The largest box in the middle that has the ratio of ``new``, as rows and columns.

    Both are ``(height, width)``; rounded as Keras does.
    """
    height, width = (
        max(min(n, int(float(other * mine) / its)), 1)
        for n, other, mine, its in zip(old, old[::-1], new, new[::-1])
    )
    top, left = int(float(old[0] - height) / 2), int(float(old[1] - width) / 2)
    return slice(top, top + height), slice(left, left + width)


def _is_channels_first(who, data_format):
    return checked_format(who, data_format) == "channels_first"


def _numpy_dtype(dtype):
    return as_dtype(floatx() if dtype is None else dtype).as_numpy_dtype
