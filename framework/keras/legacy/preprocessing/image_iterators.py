"""Iterators over batches of images from an array or a directory.

They draw from NumPy's global generator in Keras' order: the order of the samples, then
the transform of each image, then the names of written files.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.rules import check_choice
from tapewright.core.settings.floatx import floatx
from tapewright.layers.base.spatial import checked_format

from ...training.data_adapters.py_dataset_adapter import PyDataset
from ...utils.directory_index import files_below, report
from ...utils.image_utils import img_to_array, load_img, save_img

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from os import PathLike
    from typing import Any, ClassVar

    from .image_data_generator import ImageDataGenerator

_CHANNELS = {"grayscale": 1, "rgb": 3, "rgba": 4}


class Iterator(PyDataset):
    """Base class of endless iterators over batches of ``n`` samples.

    It is also a `PyDataset`: ``iterator[i]`` is batch ``i``, ``len(iterator)`` the
    number of batches per epoch. Subclasses define
    ``_get_batches_of_transformed_samples(index_array)``, which returns the batch of
    these samples.

    Args:
        n: Number of samples.
        batch_size: Size of the batches; the last batch of an epoch may be smaller.
        shuffle: If True, shuffle the samples in each epoch.
        seed: Seed of NumPy's global generator, plus the number of batches so far, set
            before each batch; None to leave the generator alone.
        **kwargs: Base class arguments; see `keras.utils.PyDataset`.
    """

    white_list_formats: ClassVar = ("png", "jpg", "jpeg", "bmp", "ppm", "tif", "tiff")

    def __init__(
        self, n: int, batch_size: int, shuffle: bool, seed: int | None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.n = n
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.batch_index = 0
        self.total_batches_seen = 0
        self.lock = threading.Lock()
        self.index_array: np.ndarray | None = None
        self.index_generator = self._flow_index()

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise ValueError(
                f"{type(self).__name__}: there are {len(self)} batches, got the index "
                f"{index}"
            )
        self._next_seed()
        if self.index_array is None:
            self._set_index_array()
        start = self.batch_size * index
        return self._get_batches_of_transformed_samples(
            self.index_array[start : start + self.batch_size]
        )

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        # Images are read and transformed outside of it, by many threads.
        with self.lock:
            indices = next(self.index_generator)
        return self._get_batches_of_transformed_samples(indices)

    def reset(self) -> None:
        """Restart `next` at the first batch of an epoch."""
        self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Shuffle the samples for the next epoch."""
        self._set_index_array()

    def _flow_index(self) -> Generator[np.ndarray]:
        self.reset()
        while True:
            self._next_seed()
            if self.batch_index == 0:
                self._set_index_array()
            start = self.batch_index * self.batch_size
            stop = start + self.batch_size
            self.batch_index = self.batch_index + 1 if stop < self.n else 0
            yield self.index_array[start:stop]

    def _next_seed(self):
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)
        self.total_batches_seen += 1

    def _set_index_array(self):
        shuffled = np.random.permutation if self.shuffle else np.arange
        self.index_array = shuffled(self.n)

    def _get_batches_of_transformed_samples(self, index_array):
        raise NotImplementedError(
            f"{type(self).__name__}: define _get_batches_of_transformed_samples"
        )


class NumpyArrayIterator(Iterator):
    """Iterator over batches of an array of images.

    A batch is ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.

    Args:
        x: Images ``[samples, height, width, channels]``, or a pair of them and an array
            or list of arrays, which batches contain unchanged: the ``x`` of a batch is
            then a list.
        y: Targets, one per image, or None.
        image_data_generator: `ImageDataGenerator` that transforms the images.
        batch_size: Size of the batches; the last batch of an epoch may be smaller.
        shuffle: If True, shuffle the samples in each epoch.
        sample_weight: Sample weights, one per image, or None; requires ``y``.
        seed: Seed of NumPy's global generator, plus the number of batches so far, set
            before each batch; None to leave the generator alone.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        save_to_dir: Directory to which every image of a batch is written, as
            ``PREFIX_INDEX_NUMBER.FORMAT``; None to write no files.
        save_prefix: Prefix of the names of written files.
        save_format: Format of written files, such as "png".
        subset: "validation" for the first images, a fraction ``validation_split`` of
            the generator; "training" for the others; None for all.
        ignore_class_split: If True, do not check that both subsets have the same values
            of ``y``.
        dtype: Dtype of the batches, `keras.config.floatx` by default.

    Raises:
        ValueError: If arrays have different lengths, ``x`` has another rank, or
            ``subset`` is unknown.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: ImageDataGenerator,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | PathLike[str] | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        ignore_class_split: bool = False,
        dtype: Any = None,
    ):
        self.dtype = floatx() if dtype is None else dtype
        who = type(self).__name__
        misc: list[Any] = []
        if isinstance(x, tuple | list):
            x, others = x[:2]
            misc = list(others) if isinstance(others, list) else [others]
        named = {"y": y, "sample_weight": sample_weight}
        named |= {f"x[1][{i}]": each for i, each in enumerate(misc)}
        for name, each in named.items():
            if each is not None and len(each) != len(x):
                raise ValueError(
                    f"{who}: {name} must have the length of x, {len(x)}, got {len(each)}"
                )
        part = slice(None)
        if subset is not None:
            count = _first_of_subset(who, image_data_generator, subset, len(x))
            part = slice(count) if subset == "validation" else slice(count, None)
            if y is not None and not ignore_class_split:
                _check_same_classes(who, y[:count], y[count:])
        self.x = np.asarray(x[part], dtype=self.dtype)
        self.x_misc = [np.asarray(each[part]) for each in misc]
        self.y = None if y is None else np.asarray(y[part])
        self.sample_weight = (
            None if sample_weight is None else np.asarray(sample_weight[part])
        )
        self.data_format = checked_format(who, data_format)
        if self.x.ndim != 4:
            raise ValueError(f"{who}: x must have rank 4, got the shape {self.x.shape}")
        axis = 3 if self.data_format == "channels_last" else 1
        warn_of_channels(who, self.x, axis, self.data_format)
        self.image_data_generator = image_data_generator
        self.save_to_dir = save_to_dir
        self.save_prefix = save_prefix
        self.save_format = save_format
        super().__init__(len(self.x), batch_size, shuffle, seed)

    def _get_batches_of_transformed_samples(self, index_array):
        images = np.zeros((len(index_array), *self.x.shape[1:]), self.dtype)
        for i, index in enumerate(index_array):
            image = self.x[index].astype(self.dtype)
            images[i] = _transformed(self.image_data_generator, image)
        _save(self, images, index_array, 10**4)
        x = [images, *(each[index_array] for each in self.x_misc)]
        x = x if self.x_misc else images
        if self.y is None:
            return x
        if self.sample_weight is None:
            return x, self.y[index_array]
        return x, self.y[index_array], self.sample_weight[index_array]


class FileIterator(Iterator):
    """Base class of iterators over image files; subclasses find the files and their labels.

    ``filenames`` are relative to ``directory``; ``class_indices`` maps class names to
    labels, and ``classes`` has the label of each file.
    """

    class_modes: ClassVar[tuple[str | None, ...]] = ()
    directory: Any
    filenames: list[str]
    class_indices: dict[str, int]
    classes: Any
    class_mode: str | None

    def _set_processing(
        self, image_data_generator, target_size, color_mode, class_mode, data_format,
        save_to_dir, save_prefix, save_format, subset, interpolation, keep_aspect_ratio,
        dtype,
    ):  # fmt: skip
        who = type(self).__name__
        check_choice(who, "color_mode", color_mode, _CHANNELS)
        check_choice(who, "class_mode", class_mode, self.class_modes)
        self.image_data_generator = image_data_generator
        self.target_size = tuple(target_size)
        self.keep_aspect_ratio = keep_aspect_ratio
        self.color_mode = color_mode
        self.class_mode = class_mode
        self.data_format = checked_format(who, data_format)
        channels = (_CHANNELS[color_mode],)
        self.image_shape = (
            (*self.target_size, *channels)
            if self.data_format == "channels_last"
            else (*channels, *self.target_size)
        )
        self.save_to_dir = save_to_dir
        self.save_prefix = save_prefix
        self.save_format = save_format
        self.interpolation = interpolation
        self.dtype = floatx() if dtype is None else dtype
        self.subset = subset
        if subset is not None:
            _first_of_subset(who, image_data_generator, subset, 0)

    def _set_files(self, filenames, batch_size, shuffle, seed):
        self.filenames = filenames
        self.samples = len(filenames)
        self._filepaths = [os.path.join(self.directory, name) for name in filenames]
        super().__init__(self.samples, batch_size, shuffle, seed)

    def _part(self, items: list[Any]) -> list[Any]:
        """Return the items of the subset, out of all items of a class or of a table."""
        if self.subset is None:
            return items
        who = type(self).__name__
        generator = self.image_data_generator
        count = _first_of_subset(who, generator, self.subset, len(items))
        return items[:count] if self.subset == "validation" else items[count:]

    @property
    def filepaths(self) -> list[str]:
        """The paths of the images."""
        return self._filepaths

    @property
    def labels(self) -> Any:
        """The label of each image."""
        return self.classes

    @property
    def sample_weight(self) -> np.ndarray | None:
        """The weight of each image, or None."""
        return None

    def _get_batches_of_transformed_samples(self, index_array):
        images = np.zeros((len(index_array), *self.image_shape), self.dtype)
        paths = self.filepaths
        for i, index in enumerate(index_array):
            image = load_img(
                paths[index],
                color_mode=self.color_mode,
                target_size=self.target_size,
                interpolation=self.interpolation,
                keep_aspect_ratio=self.keep_aspect_ratio,
            )
            array = img_to_array(image, self.data_format)
            if self.image_data_generator is not None:
                array = _transformed(self.image_data_generator, array)
            images[i] = array
        _save(self, images, index_array, 10**7)
        if self.class_mode is None:
            return images
        targets = self._targets_of(images, index_array)
        if self.sample_weight is None:
            return images, targets
        return images, targets, self.sample_weight[index_array]

    def _targets_of(self, images, index_array):
        if self.class_mode == "input":
            return images.copy()
        if self.class_mode == "raw":
            return self.labels[index_array]
        if self.class_mode == "multi_output":
            return [each[index_array] for each in self.labels]
        labels = [self.classes[index] for index in index_array]
        if self.class_mode != "categorical":
            return np.array(labels, self.dtype)
        targets = np.zeros((len(labels), len(self.class_indices)), self.dtype)
        for row, label in zip(targets, labels, strict=True):
            row[label] = 1  # a list of labels for more than one class
        return targets


class DirectoryIterator(FileIterator):
    """Iterator over batches of the images in a directory, with one folder per class.

    Args:
        directory: Path of the directory.
        image_data_generator: `ImageDataGenerator` that transforms the images, or None.
        target_size: Size ``(height, width)`` to which images are resized.
        color_mode: "rgb", "rgba" or "grayscale".
        classes: Folders to use, in the order of the labels; by default all in sorted
            order.
        class_mode: Kind of targets: "categorical" for one-hot rows, "binary" or
            "sparse" for the label as a number, "input" for the images themselves, or
            None for no targets.
        batch_size: Size of the batches; the last batch of an epoch may be smaller.
        shuffle: If True, shuffle the samples in each epoch.
        seed: Seed of NumPy's global generator, plus the number of batches so far, set
            before each batch; None to leave the generator alone.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        save_to_dir: Directory to which every image of a batch is written, as
            ``PREFIX_INDEX_NUMBER.FORMAT``; None to write no files.
        save_prefix: Prefix of the names of written files.
        save_format: Format of written files, such as "png".
        follow_links: If True, enter folders that are symbolic links.
        subset: "validation" for the first files of each class, "training" for the
            others, or None for all.
        interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".
        keep_aspect_ratio: If True, crop images to the aspect ratio of ``target_size``
            before resizing.
        dtype: Dtype of the batches, `keras.config.floatx` by default.

    Raises:
        ValueError: If ``color_mode``, ``class_mode`` or ``subset`` is invalid.
    """

    class_modes = ("categorical", "binary", "sparse", "input", None)

    def __init__(
        self,
        directory: str | PathLike[str],
        image_data_generator: ImageDataGenerator | None,
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | PathLike[str] | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: Any = None,
    ):
        self._set_processing(
            image_data_generator, target_size, color_mode, class_mode, data_format,
            save_to_dir, save_prefix, save_format, subset, interpolation,
            keep_aspect_ratio, dtype,
        )  # fmt: skip
        self.directory = directory
        if not classes:
            with os.scandir(directory) as entries:
                classes = sorted(entry.name for entry in entries if entry.is_dir())
        self.num_classes = len(classes)
        self.class_indices = {name: label for label, name in enumerate(classes)}
        filenames, labels = [], []
        for name, label in self.class_indices.items():
            files = files_below(directory, name, follow_links, self.white_list_formats)
            _warn_of_bands(files)
            files = self._part(files)
            filenames += [os.path.relpath(path, directory) for path in files]
            labels += [label] * len(files)
        self.classes = np.array(labels, "int32")
        report(
            f"Found {len(filenames)} images belonging to {self.num_classes} classes."
        )
        self._set_files(filenames, batch_size, shuffle, seed)


def _warn_of_bands(files):
    if any(name.lower().endswith(".tiff") for name in files):
        warnings.warn(
            'Using ".tiff" files with multiple bands will cause distortion. Please verify '
            "your output.",
            stacklevel=user_stacklevel(),
        )


def _transformed(generator, image):
    parameters = generator.get_random_transform(image.shape)
    return generator.standardize(generator.apply_transform(image, parameters))


def _save(iterator, images, indices, limit):
    """Write the images of a batch to ``save_to_dir``, if set."""
    if not iterator.save_to_dir:
        return
    for image, index in zip(images, indices, strict=True):
        number = np.random.randint(limit)
        name = f"{iterator.save_prefix}_{index}_{number}.{iterator.save_format}"
        save_img(os.path.join(iterator.save_to_dir, name), image, iterator.data_format)


def _first_of_subset(who, generator, subset, count):
    """Return how many of ``count`` items are in the validation set, which comes first."""
    check_choice(who, "subset", subset, ("training", "validation"))
    return int(generator._validation_split * count)


def _check_same_classes(who, first, second):
    if not np.array_equal(np.unique(first), np.unique(second)):
        raise ValueError(
            f"{who}: the subsets must have the same values of y; shuffle x and y, "
            "which may be sorted by y, or pass ignore_class_split=True"
        )


def warn_of_channels(who: str, x: np.ndarray, axis: int, data_format: str) -> None:
    """Warn if the channel axis has an unusual size."""
    if x.shape[axis] not in (1, 3, 4):
        warnings.warn(
            f"{who}: expected 1, 3 or 4 channels on the axis {axis} ({data_format}), got "
            f"the shape {x.shape}",
            stacklevel=user_stacklevel(),
        )
