"""Data sets of the images, texts or sounds in a directory, with one folder per class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.dtypes import float32
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.tensor import TensorSpec
from tapewright.data.dataset import AUTOTUNE, Dataset
from tapewright.io.audio import decode_wav
from tapewright.io.files import read_file
from tapewright.io.host_ops import host_op
from tapewright.io.images import image_array
from tapewright.layers.base.spatial import checked_format
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.indexing import one_hot
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.image.resampling import METHODS
from tapewright.ops.image.resizing import resize, resize_with_pad
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.strings.characters import substr

from .directory_index import index_directory
from .image_utils import middle_box
from .resampling import resample

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any

_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_CHANNELS = {"grayscale": 1, "rgb": 3, "rgba": 4}


def image_dataset_from_directory(
    directory: str | PathLike[str],
    labels: str | Sequence[int] | None = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: int | Sequence[int] = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: str | None = None,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """Create a data set of the images in a directory, resized, in batches with labels.

    JPEG, PNG, BMP and GIF files (first frame) are read and decoded when batches are
    requested. Needs the extra ``image``, which installs Pillow.

    Args:
        directory: Path of the directory.
        labels: "inferred" to number the folders, a list of ints, one per file in sorted
            order, or None for no labels.
        label_mode: "int"; "categorical" for one-hot rows; "binary" for 0.0 and 1.0 of
            two classes; or None for no labels.
        class_names: Folders to use, in the order of the labels; by default all in
            sorted order.
        color_mode: "rgb", "rgba" or "grayscale".
        batch_size: Size of the batches; None for single images.
        image_size: Size ``(height, width)`` to which images are resized, or one int for
            both.
        shuffle: If True, shuffle the files, anew in each epoch.
        seed: Seed of the shuffle.
        validation_split: Fraction of the files for validation, or None.
        subset: "validation", "training", or "both" for two data sets; requires
            ``validation_split``.
        interpolation: Method of `image.resize`.
        follow_links: If True, enter folders that are symbolic links.
        crop_to_aspect_ratio: If True, crop images to the aspect ratio of ``image_size``
            before resizing.
        pad_to_aspect_ratio: If True, pad images with zeros to the aspect ratio of
            ``image_size``.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        format: "tf", for a `data.Dataset`.
        verbose: If True, print the number of files.

    Returns:
        A `data.Dataset` with the attributes ``class_names`` and ``file_paths``, or a
        list of two. Elements are images, float32 ``[batch, height, width, channels]``
        with values up to 255 (uint8 for the interpolation "nearest"), or
        ``(images, labels)``; labels are int32 ``[batch]``, float32 ``[batch, 1]``
        ("binary") or ``[batch, classes]``.

    Raises:
        ValueError: If arguments do not fit together, or do not fit the files.
        InvalidArgumentError: If a file cannot be decoded, during iteration.

    Example:
        >>> train = keras.utils.image_dataset_from_directory(
        ...     "photos", image_size=180
        ... )  # doctest: +SKIP
        Found 4000 files belonging to 2 classes.
    """
    who = "image_dataset_from_directory"
    _check_format(who, format)
    if color_mode not in _CHANNELS:
        raise ValueError(
            f"{who}: color_mode must be one of {', '.join(_CHANNELS)}, got {color_mode!r}"
        )
    method = interpolation.lower()
    if method not in METHODS:
        raise ValueError(
            f"{who}: interpolation must be one of {', '.join(METHODS)}, got "
            f"{interpolation!r}"
        )
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError(
            f"{who}: only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be True"
        )
    size = _size(who, image_size)
    channels = _CHANNELS[color_mode]
    channels_first = checked_format(who, data_format) == "channels_first"
    shape = (channels, *size) if channels_first else (*size, channels)
    spec = TensorSpec(shape, "uint8" if method == "nearest" else "float32")

    def load(path):
        data = read_file(path).numpy()
        try:
            image = image_array(who, data, channels, first_only=True)
        except InvalidArgumentError as error:
            error.add_note(f"In the file {path.item()!r}")
            raise
        if crop_to_aspect_ratio:
            rows, columns = middle_box(image.shape[:2], size)
            image = image[rows, columns]
        if pad_to_aspect_ratio:
            image = resize_with_pad(image, *size, method=method)
        else:
            image = resize(image, size, method)
        image = image.numpy()
        return [image.transpose(2, 0, 1) if channels_first else image]

    return _data_sets(
        who, directory, _IMAGES, lambda path: host_op(who, load, [path], [spec])[0],
        lambda dataset: dataset if batch_size is None else dataset.batch(batch_size),
        batch_size, labels=labels, label_mode=label_mode, class_names=class_names,
        shuffle=shuffle, seed=seed, validation_split=validation_split, subset=subset,
        follow_links=follow_links, verbose=verbose,
    )  # fmt: skip


def text_dataset_from_directory(
    directory: str | PathLike[str],
    labels: str | Sequence[int] | None = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """Create a data set of the ``.txt`` files in a directory, in batches with labels.

    Args:
        directory: Path of the directory.
        labels: "inferred" to number the folders, a list of ints, one per file in sorted
            order, or None for no labels.
        label_mode: "int"; "categorical" for one-hot rows; "binary" for 0.0 and 1.0 of
            two classes; or None for no labels.
        class_names: Folders to use, in the order of the labels; by default all in
            sorted order.
        batch_size: Size of the batches; None for single texts.
        max_length: Number of bytes to which longer texts are cut, or None.
        shuffle: If True, shuffle the files, anew in each epoch.
        seed: Seed of the shuffle.
        validation_split: Fraction of the files for validation, or None.
        subset: "validation", "training", or "both" for two data sets; requires
            ``validation_split``.
        follow_links: If True, enter folders that are symbolic links.
        format: "tf", for a `data.Dataset`.
        verbose: If True, print the number of files.

    Returns:
        A `data.Dataset` with the attributes ``class_names`` and ``file_paths``, or a
        list of two for ``subset="both"``. Elements are strings ``[batch]``, or
        ``(texts, labels)``.

    Raises:
        ValueError: If arguments do not fit together, or do not fit the files.

    Example:
        >>> train = keras.utils.text_dataset_from_directory("reviews")  # doctest: +SKIP
        Found 25000 files belonging to 2 classes.
    """
    who = "text_dataset_from_directory"
    _check_format(who, format)

    def load(path):
        text = read_file(path)
        return text if max_length is None else substr(text, 0, max_length)

    return _data_sets(
        who, directory, (".txt",), load,
        lambda dataset: dataset if batch_size is None else dataset.batch(batch_size),
        batch_size, labels=labels, label_mode=label_mode, class_names=class_names,
        shuffle=shuffle, seed=seed, validation_split=validation_split, subset=subset,
        follow_links=follow_links, verbose=verbose,
    )  # fmt: skip


def audio_dataset_from_directory(
    directory: str | PathLike[str],
    labels: str | Sequence[int] | None = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    sampling_rate: int | None = None,
    output_sequence_length: int | None = None,
    ragged: bool = False,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    verbose: bool = True,
) -> Any:
    """Create a data set of the ``.wav`` files in a directory, in batches with labels.

    Args:
        directory: Path of the directory.
        labels: "inferred" to number the folders, a list of ints, one per file in sorted
            order, or None for no labels.
        label_mode: "int"; "categorical" for one-hot rows; "binary" for 0.0 and 1.0 of
            two classes; or None for no labels.
        class_names: Folders to use, in the order of the labels; by default all in
            sorted order.
        batch_size: Size of the batches; None for single sounds.
        sampling_rate: Rate to which sounds are resampled, by a windowed sinc (values
            differ from TensorFlow I/O); None keeps the rates of the files.
        output_sequence_length: Number of samples to read; shorter sounds are padded
            with zeros. By default, the length of the longest sound in each batch.
        ragged: If True, sounds keep their lengths, and batches are a `RaggedTensor`
            ``[batch, None, None]``, with ragged channels as well.
        shuffle: If True, shuffle the files, anew in each epoch.
        seed: Seed of the shuffle.
        validation_split: Fraction of the files for validation, or None.
        subset: "validation", "training", or "both" for two data sets; requires
            ``validation_split``.
        follow_links: If True, enter folders that are symbolic links.
        verbose: If True, print the number of files.

    Returns:
        A `data.Dataset` with the attributes ``class_names`` and ``file_paths``, or a
        tuple of two for ``subset="both"``. Elements are sounds, float32
        ``[batch, samples, channels]`` in ``[-1, 1)``, or ``(sounds, labels)``.

    Raises:
        ValueError: If arguments do not fit together, or do not fit the files.
    """
    who = "audio_dataset_from_directory"
    if ragged and output_sequence_length is not None:
        raise ValueError(
            f"{who}: only one of ragged and output_sequence_length can be given"
        )
    if sampling_rate is not None and (
        not isinstance(sampling_rate, int) or sampling_rate <= 0
    ):
        raise ValueError(
            f"{who}: sampling_rate must be a positive int, got {sampling_rate!r}"
        )
    length = -1 if output_sequence_length is None else output_sequence_length

    def load(path):
        audio, rate = decode_wav(read_file(path), desired_samples=length)
        if sampling_rate is not None:
            audio = resample(audio, rate, sampling_rate)
        return RaggedTensor.from_tensor(audio) if ragged else audio

    def batched(dataset):
        if batch_size is None:
            return dataset
        pads = output_sequence_length is None and not ragged
        return dataset.padded_batch(batch_size) if pads else dataset.batch(batch_size)

    datasets = _data_sets(
        who, directory, (".wav",), load, batched, batch_size,
        labels=labels, label_mode=label_mode, class_names=class_names,
        shuffle=shuffle, seed=seed, validation_split=validation_split, subset=subset,
        follow_links=follow_links, verbose=verbose,
    )  # fmt: skip
    return tuple(datasets) if subset == "both" else datasets


def _check_format(who, format):
    if format != "tf":
        raise ValueError(
            f"{who}: format must be 'tf', for a tw.data.Dataset, got {format!r}"
        )


def _size(who, image_size):
    size = (image_size,) * 2 if isinstance(image_size, int) else image_size
    if (
        not isinstance(size, list | tuple)
        or len(size) != 2
        or not all(isinstance(n, int | np.integer) and n > 0 for n in size)
    ):
        raise ValueError(
            f"{who}: image_size must be (height, width), two positive ints, got "
            f"{image_size!r}"
        )
    return tuple(map(int, size))


def _data_sets(who, directory, suffixes, load, batched, batch_size, **options):
    """Return the data set of the files that ``load`` reads, or a list of two."""
    index, seed = index_directory(who, directory, suffixes, **options)
    mode, subset = options["label_mode"], options["subset"]
    buffer_size = 1024 if batch_size is None else 8 * batch_size
    datasets = []
    for part in index.parts(who, options["validation_split"], subset):
        has_labels = part.labels is not None
        files = (part.paths, part.labels) if has_labels else part.paths
        dataset = Dataset.from_tensor_slices(files)
        if (
            options["shuffle"] and not datasets
        ):  # the files for validation stay in order
            dataset = dataset.shuffle(buffer_size, seed=seed)
        encode = _encoder(mode, part.class_names)
        if has_labels:
            dataset = dataset.map(
                lambda path, label, encode=encode: (load(path), encode(label)), AUTOTUNE
            )
        else:
            dataset = dataset.map(load, AUTOTUNE)
        dataset = batched(dataset).prefetch(AUTOTUNE)
        dataset.class_names, dataset.file_paths = part.class_names, part.paths
        datasets.append(dataset)
    return datasets if subset == "both" else datasets[0]


def _encoder(mode, class_names):
    if mode == "binary":
        return lambda label: expand_dims(cast(label, float32), -1)
    if mode == "categorical":
        return lambda label: one_hot(label, len(class_names))
    return lambda label: label
