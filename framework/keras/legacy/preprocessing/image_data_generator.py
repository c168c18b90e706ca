"""`ImageDataGenerator`: data augmentation and standardization of image batches."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.settings.floatx import floatx
from tapewright.layers.base.spatial import checked_format
from tapewright.serialization.constructor_call import constructor_call

from .dataframe_iterator import DataFrameIterator
from .image_iterators import DirectoryIterator, NumpyArrayIterator, warn_of_channels
from .image_transforms import apply_affine_transform, apply_channel_shift, brightened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

_DEPRECATED = {
    "has_ext": "filenames in the dataframe have to match the exact filenames in disk",
    "sort": "batches come in the order of the filenames, with shuffle=False",
    "drop_duplicates": "use DataFrame.drop_duplicates of pandas",
}


class ImageDataGenerator:
    """Generate batches of images with data augmentation: random transforms, then scaling.

    Random numbers come from NumPy's global generator, in Keras' order. For new code,
    prefer `image_dataset_from_directory` and layers such as `RandomRotation`.

    Args:
        featurewise_center: If True, subtract the mean of each channel, as computed by
            `fit`.
        samplewise_center: If True, subtract the mean of each image.
        featurewise_std_normalization: If True, divide by the standard deviation of each
            channel, as computed by `fit`.
        samplewise_std_normalization: If True, divide each image by its standard
            deviation.
        zca_whitening: If True, apply ZCA whitening, as computed by `fit`.
        zca_epsilon: Small number added to the singular values in ZCA whitening.
        rotation_range: Largest random rotation, in degrees.
        width_shift_range: Random horizontal shift: a float below 1 is a fraction of the
            width, from 1 on it is in pixels; an int ``n`` draws from ``0 .. n - 1``
            pixels, a list from its values, in both directions.
        height_shift_range: Random vertical shift, like ``width_shift_range``.
        brightness_range: Pair ``(low, high)`` of a random brightness factor, or None.
        shear_range: Largest random shear, in degrees.
        zoom_range: Pair ``(low, high)`` of a random zoom factor, or ``r`` for
            ``(1 - r, 1 + r)``.
        channel_shift_range: Largest random number added to an image.
        fill_mode: Mode of pixels outside the image: "nearest", "constant", "reflect" or
            "wrap", see `apply_affine_transform`.
        cval: Value of pixels outside the image for "constant".
        horizontal_flip: If True, flip half of the images horizontally.
        vertical_flip: If True, flip half of the images vertically.
        rescale: Factor of the pixels, after ``preprocessing_function``; None for no
            scaling.
        preprocessing_function: Function that accepts and returns one image, applied
            after the transform, or None.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        validation_split: Fraction of the images for ``subset="validation"``.
        interpolation_order: 0 for the nearest pixel, 1 for linear interpolation.
        dtype: Dtype of the batches, `keras.config.floatx` by default.

    Raises:
        ValueError: If a range, the split or the data format is invalid.

    Example:
        >>> import numpy as np
        >>> generator = keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
        >>> batches = generator.flow(np.full((5, 2, 2, 1), 51.0))
        >>> len(batches), next(batches).mean().round(3)
        (1, np.float32(0.2))
    """

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: float | Sequence[float] = 0.0,
        height_shift_range: float | Sequence[float] = 0.0,
        brightness_range: Sequence[float] | None = None,
        shear_range: float = 0.0,
        zoom_range: float | Sequence[float] = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Callable[[Any], Any] | None = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        interpolation_order: int = 1,
        dtype: Any = None,
    ):
        who = "ImageDataGenerator"
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(
                f"{who}: validation_split must be between 0 and 1, got {validation_split}"
            )
        if isinstance(zoom_range, float | int):
            zoom_range = (1 - zoom_range, 1 + zoom_range)
        elif len(zoom_range) != 2 or not all(
            isinstance(factor, float | int) for factor in zoom_range
        ):
            raise ValueError(
                f"{who}: zoom_range must be a float or two floats, got {zoom_range}"
            )
        if brightness_range is not None and not (
            isinstance(brightness_range, tuple | list) and len(brightness_range) == 2
        ):
            raise ValueError(
                f"{who}: brightness_range must be two floats, got {brightness_range}"
            )
        self.featurewise_center = featurewise_center
        self.samplewise_center = samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening = zca_whitening
        self.zca_epsilon = zca_epsilon
        self.rotation_range = rotation_range
        self.width_shift_range = width_shift_range
        self.height_shift_range = height_shift_range
        self.brightness_range = brightness_range
        self.shear_range = shear_range
        self.zoom_range = list(zoom_range)
        self.channel_shift_range = channel_shift_range
        self.fill_mode = fill_mode
        self.cval = cval
        self.horizontal_flip = horizontal_flip
        self.vertical_flip = vertical_flip
        self.rescale = rescale
        self.preprocessing_function = preprocessing_function
        self.interpolation_order = interpolation_order
        self.dtype = floatx() if dtype is None else dtype
        self.data_format = checked_format(who, data_format)
        axes = (1, 2, 3) if self.data_format == "channels_last" else (2, 3, 1)
        self.row_axis, self.col_axis, self.channel_axis = axes  # of a batch
        self._validation_split = validation_split
        self.mean: np.ndarray | None = None
        self.std: np.ndarray | None = None
        self.zca_whitening_matrix: np.ndarray | None = None
        if zca_whitening:
            self._override("zca_whitening", "featurewise_center", True)
            self._override("zca_whitening", "featurewise_std_normalization", False)
        for kind in ("featurewise", "samplewise"):
            if getattr(self, f"{kind}_std_normalization"):
                self._override(f"{kind}_std_normalization", f"{kind}_center", True)

    __repr__ = constructor_call

    def _override(self, by, name, value):
        if bool(getattr(self, name)) != value:
            setattr(self, name, value)
            _warn(f"ImageDataGenerator: {by}=True makes {name}={value}")

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: str | PathLike[str] | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        ignore_class_split: bool = False,
        subset: str | None = None,
    ) -> NumpyArrayIterator:
        """Return an iterator over batches of an array of images; see `NumpyArrayIterator`.

        Args:
            x: Images ``[samples, height, width, channels]``, or a pair of them and
                further arrays, which batches contain unchanged.
            y: Targets, one per image, or None.
            batch_size: Size of the batches; the last batch of an epoch may be smaller.
            shuffle: If True, shuffle the samples in each epoch.
            sample_weight: Sample weights, one per image, or None.
            seed: Seed of NumPy's global generator, plus the number of batches so far,
                set before each batch; None to leave the generator alone.
            save_to_dir: Directory to which every image of a batch is written, as
                ``PREFIX_INDEX_NUMBER.FORMAT``; None to write no files.
            save_prefix: Prefix of the names of written files.
            save_format: Format of written files, such as "png".
            ignore_class_split: If True, do not check that both subsets have the same
                values of ``y``.
            subset: "training" or "validation", by ``validation_split`` of the
                generator; None for all samples.
        """
        return NumpyArrayIterator(
            x, y, self, batch_size, shuffle, sample_weight, seed, self.data_format,
            save_to_dir, save_prefix, save_format, subset, ignore_class_split, self.dtype,
        )  # fmt: skip

    def flow_from_directory(
        self,
        directory: str | PathLike[str],
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: str | PathLike[str] | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
    ) -> DirectoryIterator:
        """Return an iterator over the images in a directory; see `DirectoryIterator`.

        Args:
            directory: Path of a directory with one folder per class.
            target_size: Size ``(height, width)`` to which images are resized.
            color_mode: "rgb", "rgba" or "grayscale".
            classes: Folders to use, in the order of the labels; by default all in
                sorted order.
            class_mode: Kind of targets: "categorical" for one-hot rows, "binary" or
                "sparse" for the label as a number, "input" for the images themselves,
                or None for no targets.
            batch_size: Size of the batches; the last batch of an epoch may be smaller.
            shuffle: If True, shuffle the samples in each epoch.
            seed: Seed of NumPy's global generator, plus the number of batches so far,
                set before each batch; None to leave the generator alone.
            save_to_dir: Directory to which every image of a batch is written, as
                ``PREFIX_INDEX_NUMBER.FORMAT``; None to write no files.
            save_prefix: Prefix of the names of written files.
            save_format: Format of written files, such as "png".
            follow_links: If True, enter folders that are symbolic links.
            subset: "training" or "validation", by ``validation_split`` of the
                generator; None for all samples.
            interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or
                "lanczos".
            keep_aspect_ratio: If True, crop images to the aspect ratio of
                ``target_size`` before resizing.
        """
        return DirectoryIterator(
            directory, self, target_size, color_mode, classes, class_mode, batch_size,
            shuffle, seed, self.data_format, save_to_dir, save_prefix, save_format,
            follow_links, subset, interpolation, keep_aspect_ratio, self.dtype,
        )  # fmt: skip

    def flow_from_dataframe(
        self,
        dataframe: Any,
        directory: str | PathLike[str] | None = None,
        x_col: str = "filename",
        y_col: str | list[str] = "class",
        weight_col: str | None = None,
        target_size: Sequence[int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: str | PathLike[str] | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        validate_filenames: bool = True,
        **kwargs: Any,
    ) -> DataFrameIterator:
        """Return an iterator over the images listed in a table, such as a pandas DataFrame.

        Args:
            dataframe: Table that returns columns by name.
            directory: Directory of relative paths, or None.
            x_col: Column of the paths.
            y_col: Column of the classes or targets, or a list of columns.
            weight_col: Column of the sample weights, or None.
            target_size: Size ``(height, width)`` to which images are resized.
            color_mode: "rgb", "rgba" or "grayscale".
            classes: Classes to use, in the order of the labels; rows of other classes
                are dropped.
            class_mode: As for `flow_from_directory`, with lists of classes allowed for
                "categorical"; also "raw" for the values of ``y_col``, or "multi_output"
                for a list with the values of each column.
            batch_size: Size of the batches; the last batch of an epoch may be smaller.
            shuffle: If True, shuffle the samples in each epoch.
            seed: Seed of NumPy's global generator, plus the number of batches so far,
                set before each batch; None to leave the generator alone.
            save_to_dir: Directory to which every image of a batch is written, as
                ``PREFIX_INDEX_NUMBER.FORMAT``; None to write no files.
            save_prefix: Prefix of the names of written files.
            save_format: Format of written files, such as "png".
            subset: "training" or "validation", by ``validation_split`` of the
                generator; None for all samples.
            interpolation: "nearest", "bilinear", "bicubic", "hamming", "box" or
                "lanczos".
            validate_filenames: If True, drop rows whose file does not exist or has no
                image suffix, with a warning.
            **kwargs: ``has_ext``, ``sort`` and ``drop_duplicates``, which do nothing.

        Raises:
            TypeError: If a keyword is unknown (Keras ignores it), or a column has
                values of the wrong type.
            ValueError: If ``class_mode`` or ``subset`` is invalid.
        """
        for name in kwargs:
            if name not in _DEPRECATED:
                raise TypeError(
                    f"flow_from_dataframe: got an unexpected keyword argument {name!r}"
                )
            _warn(f"{name} is deprecated, {_DEPRECATED[name]}", DeprecationWarning)
        if class_mode == "other":
            _warn('class_mode "other" is deprecated, use "raw"', DeprecationWarning)
            class_mode = "raw"
        return DataFrameIterator(
            dataframe, directory, self, x_col, y_col, weight_col, target_size, color_mode,
            classes, class_mode, batch_size, shuffle, seed, self.data_format, save_to_dir,
            save_prefix, save_format, subset, interpolation, dtype=self.dtype,
            validate_filenames=validate_filenames,
        )  # fmt: skip

    def standardize(self, x: Any) -> Any:
        """Preprocess, rescale and normalize an image or a batch of images in place.

        Args:
            x: Image, or batch of images, an array.

        Returns:
            The array ``x``.
        """
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x *= self.rescale
        if self.samplewise_center:
            x -= np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, keepdims=True) + 1e-6
        if self.featurewise_center and self._is_fitted("featurewise_center", self.mean):
            x -= self.mean
        name = "featurewise_std_normalization"
        if self.featurewise_std_normalization and self._is_fitted(name, self.std):
            x /= self.std + 1e-6
        matrix = self.zca_whitening_matrix
        if self.zca_whitening and self._is_fitted("zca_whitening", matrix):
            x = (x.reshape(-1, len(matrix)) @ matrix).reshape(x.shape)
        return x

    def _is_fitted(self, name, value):
        if value is None:
            _warn(f"ImageDataGenerator: {name} has no effect before fit(x)")
        return value is not None

    def get_random_transform(
        self, img_shape: Sequence[int], seed: int | None = None
    ) -> dict[str, Any]:
        """Draw a random transform for an image, as arguments of `apply_transform`.

        Args:
            img_shape: Shape of the image.
            seed: Seed of NumPy's global generator, or None to leave it alone.
        """
        if seed is not None:
            np.random.seed(seed)
        height, width = img_shape[self.row_axis - 1], img_shape[self.col_axis - 1]
        # The order of the draws is Keras', and what is not asked for draws nothing; only
        # the flips always draw.
        theta = _within(self.rotation_range)
        tx = _shift(self.height_shift_range, height)
        ty = _shift(self.width_shift_range, width)
        shear = _within(self.shear_range)
        low, high = self.zoom_range
        zx, zy = (1, 1) if low == high == 1 else np.random.uniform(low, high, 2)
        flip_horizontal = (np.random.random() < 0.5) * self.horizontal_flip
        flip_vertical = (np.random.random() < 0.5) * self.vertical_flip
        shifts_channels = self.channel_shift_range != 0
        intensity = _within(self.channel_shift_range) if shifts_channels else None
        factors = self.brightness_range
        return {
            "theta": theta,
            "tx": tx,
            "ty": ty,
            "shear": shear,
            "zx": zx,
            "zy": zy,
            "flip_horizontal": flip_horizontal,
            "flip_vertical": flip_vertical,
            "channel_shift_intensity": intensity,
            "brightness": None if factors is None else np.random.uniform(*factors),
        }

    def apply_transform(self, x: Any, transform_parameters: dict[str, Any]) -> Any:
        """Transform an image: move, shift channels, flip and brighten, in this order.

        Args:
            x: Image, an array.
            transform_parameters: Dict with any of the entries that
                `get_random_transform` returns.
        """
        given = transform_parameters
        rows, columns = self.row_axis - 1, self.col_axis - 1
        channels = self.channel_axis - 1
        moves = ("theta", "tx", "ty", "shear", "zx", "zy")
        x = apply_affine_transform(
            x,
            **{name: given[name] for name in moves if name in given},
            row_axis=rows,
            col_axis=columns,
            channel_axis=channels,
            fill_mode=self.fill_mode,
            cval=self.cval,
            order=self.interpolation_order,
        )
        if given.get("channel_shift_intensity") is not None:
            x = apply_channel_shift(x, given["channel_shift_intensity"], channels)
        if given.get("flip_horizontal"):
            x = np.flip(x, columns)
        if given.get("flip_vertical"):
            x = np.flip(x, rows)
        if given.get("brightness") is not None:
            x = brightened(x, given["brightness"], False, self.data_format)
        return x

    def random_transform(self, x: Any, seed: int | None = None) -> Any:
        """Transform an image at random.

        Args:
            x: Image, an array.
            seed: Seed of NumPy's global generator, or None to leave it alone.
        """
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(
        self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None
    ) -> None:
        """Compute means, deviations and the whitening matrix from training images.

        Args:
            x: Images ``[samples, height, width, channels]``.
            augment: If True, use randomly transformed images.
            rounds: Number of transformed copies per image.
            seed: Seed of NumPy's global generator, or None to leave it alone.

        Raises:
            ValueError: If ``x`` has another rank.
        """
        x = np.array(x, dtype=self.dtype)
        who = "ImageDataGenerator.fit"
        if x.ndim != 4:
            raise ValueError(f"{who}: x must have rank 4, got the shape {x.shape}")
        warn_of_channels(who, x, self.channel_axis, self.data_format)
        if seed is not None:
            np.random.seed(seed)
        if self.rescale:
            x *= self.rescale
        if augment:
            images = [
                self.random_transform(image) for _ in range(rounds) for image in x
            ]
            x = np.array(images, dtype=self.dtype)
        axes = (0, self.row_axis, self.col_axis)
        if self.featurewise_center:
            self.mean = np.mean(x, axes, keepdims=True)[0]
            x -= self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axes, keepdims=True)[0]
            x /= self.std + 1e-6
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            u, s, _ = np.linalg.svd(flat.T, full_matrices=False)
            self.zca_whitening_matrix = (
                u * (np.sqrt(len(x)) / (s + self.zca_epsilon)) @ u.T
            )


def _within(most):
    return np.random.uniform(-most, most) if most else 0


def _shift(allowed, size):
    """Draw a shift in pixels from ``width_shift_range`` or ``height_shift_range``."""
    if not np.size(allowed) or (np.ndim(allowed) == 0 and not allowed):
        return 0
    try:  # a list, or an int
        shift = np.random.choice(allowed) * np.random.choice([-1, 1])
    except ValueError:  # a float
        shift = np.random.uniform(-allowed, allowed)
    return shift * size if np.max(allowed) < 1 else shift


def _warn(message, category=UserWarning):
    warnings.warn(message, category, stacklevel=user_stacklevel())
