"""Images as files, Pillow images and arrays; need the extra ``image``, which is Pillow.

Code in files is never run, and images that exceed Pillow's memory limit are rejected.
"""

from __future__ import annotations

import io
import os
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.settings.floatx import floatx
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

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
_GRAYSCALE = ("L", "I;16", "I")  # modes that `color_mode="grayscale"` keeps


def load_img(
    path: str | bytes | PathLike[str] | io.BytesIO,
    color_mode: str = "rgb",
    target_size: Sequence[int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Image:
    """Load an image file as a Pillow image.

    Args:
        path: Path of a file in a format that Pillow reads, except EPS, which is a
            program; or its content as a ``BytesIO``.
        color_mode: "rgb", "rgba" or "grayscale"; "grayscale" keeps 16-bit and 32-bit
            images.
        target_size: Size ``(height, width)`` to which the image is resized; None keeps
            its size.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: If True, crop images to the aspect ratio of ``target_size``
            before resizing.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If an argument is invalid, the file is damaged or not an image, or
            the image has more than twice ``PIL.Image.MAX_IMAGE_PIXELS`` pixels (Pillow
            warns from once that number).

    Example:
        >>> keras.utils.load_img("photo.png", target_size=(64, 64)).size  # doctest: +SKIP
        (64, 64)
    """
    if color_mode not in _MODES:
        raise ValueError(
            f"load_img: color_mode must be one of {', '.join(_MODES)}, got {color_mode!r}"
        )
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(
            f"load_img: interpolation must be one of {', '.join(_INTERPOLATIONS)}, got "
            f"{interpolation!r}"
        )
    size = None if target_size is None else _size(target_size)
    image = _read(path)
    kept = _GRAYSCALE if color_mode == "grayscale" else (_MODES[color_mode],)
    if image.mode not in kept:
        image = image.convert(_MODES[color_mode])
    if size is None or image.size == size:
        return image
    resampling = pillow("keras.utils.load_img").Resampling[interpolation.upper()]
    box = _middle(image.size, size) if keep_aspect_ratio else None
    return image.resize(size, resampling, box=box)


def _size(target_size):
    """Return ``(width, height)``, Pillow's order."""
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
    """Load an image completely, so that the file can be closed."""
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
    """Return the largest centered box of an image with the aspect ratio of ``new``."""
    (width, height), (new_width, new_height) = old, new
    across = min(width, max(height * new_width // new_height, 1))
    down = min(height, max(width * new_height // new_width, 1))
    left, top = (width - across) // 2, (height - down) // 2
    return left, top, left + across, top + down


def img_to_array(
    img: Image, data_format: str | None = None, dtype: DTypeLike | None = None
) -> np.ndarray[Any, Any]:
    """Convert a Pillow image to an array ``[height, width, channels]``.

    Args:
        img: Pillow image, or array of rank 2 or 3.
        data_format: "channels_last", or "channels_first" for
            ``[channels, height, width]``; None means `image_data_format`.
        dtype: Dtype of the array, `floatx` by default.

    Raises:
        ValueError: If the rank or ``data_format`` is invalid.

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
    """Convert an array ``[height, width, channels]`` to a Pillow image.

    Arrays with one channel become images of mode "L", or "I" for values above 255; with
    three channels "RGB", with four "RGBA".

    Args:
        x: Array or tensor.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        scale: If True, map the smallest value to 0 and the largest to 255; if False,
            values must be in ``[0, 255]``, and fractions are truncated.
        dtype: Dtype of the scaling, `keras.config.floatx` by default.

    Raises:
        ImportError: If Pillow is not installed.
        ValueError: If the shape or a value is invalid (Keras computes values above 255
            modulo 256).

    Example:
        >>> image = keras.utils.array_to_img([[[0.0], [0.5], [1.0]]])  # doctest: +SKIP
        >>> image.getpixel((1, 0))  # doctest: +SKIP
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
    """Save an array as an image file, by `array_to_img`.

    Args:
        path: Path, or open binary file, which requires ``file_format``.
        x: Array or tensor.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        file_format: Format such as "png"; by default the suffix of the path.
        scale: If True, map the smallest value to 0 and the largest to 255; if False,
            values must be in ``[0, 255]``.
        **kwargs: Arguments of ``PIL.Image.save``.

    Raises:
        ValueError: If Pillow cannot write the format. JPEG has no alpha channel, which
            is dropped with a warning.
    """
    if file_format is None and isinstance(path, str | os.PathLike):
        file_format = os.path.splitext(path)[1][1:]
    if not file_format:
        raise ValueError(
            f"save_img: file_format must be given if path has no suffix, got {path!r}"
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
        with writing_whole(path) if is_path else nullcontext(path) as target:
            image.save(target, format=name, **kwargs)
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
    """Resize images without distortion: crop to the target aspect ratio, then resize.

    Args:
        x: Images ``[height, width, channels]`` or ``[batch, height, width, channels]``,
            an array or a tensor.
        size: Target size ``(height, width)``.
        interpolation: Method of `image.resize`.
        data_format: "channels_last", or "channels_first" for channels before the
            height.

    Returns:
        An array for an array, a tensor for a tensor; float32, or the dtype of ``x`` for
        the interpolation "nearest".

    Raises:
        ValueError: If the rank, ``size`` or ``interpolation`` is invalid.

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
    """Return the largest centered box with the aspect ratio of ``new``, as two slices.

    Both arguments are ``(height, width)``; the slices of rows and columns are rounded
    as in Keras.
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
