"""`tw.summary`: scalars, images, audio and text for TensorBoard.

It requires the extra ``tensorboard``. Functions write to the default writer, eagerly
and in each call of a traced function. The callback `TensorBoard` writes the same files.
"""

from __future__ import annotations

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.text import make_text
from tapewright.core.typing import TensorLike
from tapewright.storage.records.wav import wav_file

from .event_file import BUCKETS
from .recording import (
    SummaryWriter,
    create_file_writer,
    experimental,
    flush,
    record_if,
    should_record_summaries,
    write_event,
)
from .traces import graph, trace_export, trace_off, trace_on

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "experimental",
    "flush",
    "graph",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
]


def scalar(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    description: str | None = None,
) -> Tensor:
    """Write a scalar summary for TensorBoard, as float32.

    Args:
        name: Tag of the summary, prefixed by the enclosing `name_scope`.
        data: Number of rank 0.
        step: Integer of rank 0, by default the step set by `experimental.set_step` or
            ``as_default``. A tensor or variable is read in each call.
        description: Text shown next to the chart, or None.

    Returns:
        True if the summary was written; False without a default writer, or if
        `record_if` prevents it.

    Raises:
        ValueError: If there is no step, or ``data`` has another shape.
        RuntimeError: If the writer is closed.

    Example:
        >>> writer = tw.summary.create_file_writer("logs")  # doctest: +SKIP
        >>> with writer.as_default():  # doctest: +SKIP
        ...     tw.summary.scalar("loss", 0.5, step=1)
    """
    data = convert_to_tensor(data)
    if data.shape.rank != 0 or kind_of(data.dtype.dtype) not in "biuf":
        raise ValueError(
            f"summary.scalar: data must be a number of rank 0, got {data.dtype.name} of "
            f"shape {tuple(data.shape)}"
        )
    return write_event(
        "scalar",
        name,
        step,
        lambda file, tag, step, value: file.add_scalar(
            tag, float(value), step, description or ""
        ),
        data,
    )


def image(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    max_outputs: int = 3,
    description: str | None = None,
) -> Tensor:
    """Write images for TensorBoard; requires Pillow.

    Several images have the tags ``name/0``, ``name/1``, ...

    Args:
        name: Tag of the summary, prefixed by the enclosing `name_scope`.
        data: Images ``[batch, height, width, channels]`` with 1 to 4 channels, uint8,
            or floating in ``[0, 1]``; other values are clipped.
        step: Integer of rank 0, or None for the default step, as in `scalar`.
        max_outputs: Maximum number of images to write.
        description: Text shown next to the images, or None.

    Returns:
        True if the summary was written, as in `scalar`.

    Raises:
        ValueError: If there is no step, or ``data`` has another shape.

    Example:
        >>> writer = tw.summary.create_file_writer("logs")  # doctest: +SKIP
        >>> with writer.as_default():  # doctest: +SKIP
        ...     tw.summary.image("digits", tw.zeros([4, 28, 28, 1]), step=1)
    """
    data = convert_to_tensor(data)
    is_floating = kind_of(data.dtype.dtype) == "f"
    if data.shape.rank != 4 or data.shape[-1] not in (None, 1, 2, 3, 4):
        raise ValueError(
            "summary.image: data must be [batch, height, width, channels] with 1 to 4 "
            f"channels, got the shape {tuple(data.shape)}"
        )
    if not is_floating and data.dtype.name != "uint8":
        raise ValueError(
            f"summary.image: data must be uint8 or floating, got {data.dtype.name}"
        )

    def write(file, tag, step, images):
        images = images[:max_outputs]
        if is_floating:  # as tf.image.convert_image_dtype
            images = np.clip(np.nan_to_num(images.astype(np.float32)), 0, 1)
            images = np.minimum(images * 255.5, 255).astype(np.uint8)
        for i, each in enumerate(images):
            own = tag if len(images) == 1 else f"{tag}/{i}"
            file.add_image(own, each, step, description or "")

    return write_event("image", name, step, write, data)


def histogram(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    buckets: int | None = None,
    description: str | None = None,
) -> Tensor:
    """Write the distribution of the entries of a tensor for TensorBoard.

    Args:
        name: Tag of the summary, prefixed by the enclosing `name_scope`.
        data: Real finite numbers of any shape, at least one.
        step: Integer of rank 0, or None for the default step, as in `scalar`.
        buckets: Number of intervals, by default 30.
        description: Text shown next to the chart, or None.

    Returns:
        True if the summary was written, as in `scalar`.

    Raises:
        ValueError: If there is no step, or ``data`` is empty or not finite.

    Example:
        >>> writer = tw.summary.create_file_writer("logs")  # doctest: +SKIP
        >>> with writer.as_default():  # doctest: +SKIP
        ...     tw.summary.histogram("weights", tw.random.normal([100]), step=1)
    """
    data = convert_to_tensor(data)
    if kind_of(data.dtype.dtype) not in "biuf":
        raise ValueError(
            f"summary.histogram: data must be real numbers, got {data.dtype.name}"
        )

    def write(file, tag, step, values):
        values = values.astype(np.float64).ravel()
        if not values.size or not np.isfinite(values).all():
            raise ValueError(
                f"summary.histogram: data must be finite numbers, at least one, for "
                f"{tag!r}, got {values}"
            )
        file.add_histogram(tag, values, step, buckets or BUCKETS, description or "")

    return write_event("histogram", name, step, write, data)


def text(
    name: str,
    data: TensorLike | str,
    step: TensorLike | None = None,
    description: str | None = None,
) -> Tensor:
    """Write strings, which TensorBoard shows as Markdown.

    Args:
        name: Tag of the summary, prefixed by the enclosing `name_scope`.
        data: String, or tensor of strings, which is shown as a table.
        step: Integer of rank 0, or None for the default step, as in `scalar`.
        description: Text shown next to the strings, or None.

    Returns:
        True if the summary was written, as in `scalar`.

    Raises:
        ValueError: If there is no step, or ``data`` is not strings.

    Example:
        >>> writer = tw.summary.create_file_writer("logs")  # doctest: +SKIP
        >>> with writer.as_default():  # doctest: +SKIP
        ...     tw.summary.text("notes", "learning rate *0.1*", step=0)
    """
    data = convert_to_tensor(data)
    if data.dtype.name != "string":
        raise ValueError(f"summary.text: data must be strings, got {data.dtype.name}")

    def write(file, tag, step, texts):
        file.add_text(tag, texts, step, description or "")

    return write_event("text", name, step, write, data)


def audio(
    name: str,
    data: TensorLike,
    sample_rate: TensorLike,
    step: TensorLike | None = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Write audio for TensorBoard, as WAV files of 16 bits.

    Args:
        name: Tag of the summary, prefixed by the enclosing `name_scope`.
        data: Float32 ``[batch, samples, channels]``, clipped to ``[-1, 1]``; NaN
            becomes 0.
        sample_rate: Samples per second.
        step: Integer of rank 0, or None for the default step, as in `scalar`.
        max_outputs: Maximum number of clips to write.
        encoding: "wav" or None, which means the same.
        description: Text shown next to the player, or None.

    Returns:
        True if the summary was written, as in `scalar`.

    Raises:
        ValueError: If ``data`` has another shape or dtype, or there is no step.

    Example:
        >>> writer = tw.summary.create_file_writer("logs")  # doctest: +SKIP
        >>> with writer.as_default():  # doctest: +SKIP
        ...     tw.summary.audio("noise", tw.zeros([1, 800, 1]), sample_rate=8000, step=1)
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"summary.audio: encoding must be 'wav', got {encoding!r}")
    data = convert_to_tensor(data)
    if data.shape.rank != 3 or data.shape[-1] == 0 or data.dtype.name != "float32":
        raise InvalidArgumentError(
            "summary.audio: data must be float32 [batch, samples, channels] with at least "
            f"one channel, got {data.dtype.name} of shape {tuple(data.shape)}"
        )
    if max_outputs < 0:
        raise InvalidArgumentError(
            f"summary.audio: max_outputs must not be negative, got {max_outputs}"
        )

    def write(file, tag, step, sounds, rate):
        sounds = np.nan_to_num(sounds[:max_outputs])
        files = [wav_file("summary.audio", x, int(rate)) for x in sounds]
        pairs = [text for each in files for text in (each, b"")]  # a file and its label
        array = make_text(pairs, (len(files), 2))
        file.add_strings(tag, array, step, "audio", WAV, description or "")

    rate = convert_to_tensor(sample_rate, "int32")
    return write_event("audio", name, step, write, data, rate)


WAV = b"\x10\x0b"  # AudioPluginData of TensorBoard with the encoding WAV
