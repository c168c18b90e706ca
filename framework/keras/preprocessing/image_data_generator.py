"""`ImageDataGenerator`: batches of images, transformed at random and standardized."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.floatx import floatx
from tapewright.core.source_lines import user_stacklevel
from tapewright.layers.base.spatial import checked_format
from tapewright.serialization.constructor_call import constructor_call

from .dataframe_iterator import DataFrameIterator
from .image_iterators import DirectoryIterator, NumpyArrayIterator, warn_of_channels
from .image_transforms import (
    apply_affine_transform,
    apply_channel_shift,
    brightened,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

__all__ = ["ImageDataGenerator"]

DEPRECATED = {
    "has_ext": "filenames in the dataframe have to match the exact filenames in disk",
    "sort": "batches come in the order of the filenames, with shuffle=False",
    "drop_duplicates": "use DataFrame.drop_duplicates of pandas",
}


class ImageDataGenerator:
    """Batches of images, each transformed at random, then standardized.

    Random numbers are those of NumPy's global generator, in Keras' order. New code takes
    `image_dataset_from_directory`, and layers such as `RandomRotation`.

    Args: ``featurewise_center``, ``featurewise_std_normalization``, ``zca_whitening``: by
    the numbers of `fit`, subtract the mean of each channel, divide by its deviation, whiten
    all pixels; ``samplewise_center``, ``samplewise_std_normalization``: by the mean and the
    deviation of each image; ``zca_epsilon``: added to the singular values;
    ``rotation_range``, ``shear_range``: degrees; ``width_shift_range``,
    ``height_shift_range``: a float below 1 is a fraction of the size, from 1 on pixels; an
    int ``n`` draws from ``0 .. n - 1`` pixels, a list from its values, to both sides;
    ``zoom_range``: ``(low, high)``, or ``r`` for ``(1 - r, 1 + r)``;
    ``channel_shift_range``: a number to add; ``brightness_range``: ``(low, high)``, a
    factor; ``horizontal_flip``, ``vertical_flip``: flip half of the images; ``fill_mode``,
    ``cval``, ``interpolation_order``: those of `apply_affine_transform`;
    ``preprocessing_function``: takes and returns an image, after its transform;
    ``rescale``: a factor, thereafter; ``data_format``, ``dtype``: by default those of
    `keras.config`; ``validation_split``: the fraction of ``subset="validation"``.

    Raises: ``ValueError`` for a range, a split or a format that is none.

    Example:
        >>> import numpy as np
        >>> batches = keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255).flow(np.full((5, 2, 2, 1), 51.0))
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
        """Batches of an array of images; see `NumpyArrayIterator`."""
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
        """Batches of the images in a directory; see `DirectoryIterator`."""
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
        """Batches of the images that a table names, such as a ``DataFrame`` of pandas.

        Args: ``x_col``: the column of the paths, in ``directory`` if it is given; ``y_col``:
        that of the classes or targets, or a list of columns; ``weight_col``: that of the
        weights; ``class_mode``: also "raw", the values of ``y_col``, or "multi_output", a
        list with those of each column; "categorical" takes lists of classes too;
        ``validate_filenames``: leave out rows without an image, with a warning; ``kwargs``:
        ``has_ext``, ``sort`` and ``drop_duplicates``, which do nothing; the others as in
        `flow_from_directory`.

        Raises: ``TypeError`` for other keywords, which Keras ignores, or other types in the
        columns; ``ValueError`` for other modes.
        """
        for name in kwargs:
            if name not in DEPRECATED:
                raise TypeError(
                    f"flow_from_dataframe: got an unexpected keyword argument {name!r}"
                )
            _warn(f"{name} is deprecated, {DEPRECATED[name]}", DeprecationWarning)
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
        """An image or a batch of images, preprocessed, rescaled and normalized in place."""
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
            _warn(f"ImageDataGenerator: {name} does nothing before fit(x)")
        return value is not None

    def get_random_transform(
        self, img_shape: Sequence[int], seed: int | None = None
    ) -> dict[str, Any]:
        """Draw a transform for an image of this shape, as arguments of `apply_transform`."""
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
        """The image moved, shifted in its channels, flipped and brightened, in this order.

        Args: ``x``: one image; ``transform_parameters``: any of those that
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
        """One image, transformed at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(
        self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None
    ) -> None:
        """Take the means, deviations and the whitening from images of the training data.

        Args: ``x``: ``[samples, height, width, channels]``; ``augment``: take them from
        images transformed at random, ``rounds`` for each; ``seed`` of NumPy's generator.

        Raises: ``ValueError`` for another rank.
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
    """A shift in pixels, of what ``width_shift_range`` or ``height_shift_range`` allows."""
    if not np.size(allowed) or (np.ndim(allowed) == 0 and not allowed):
        return 0
    try:  # a list, or an int
        shift = np.random.choice(allowed) * np.random.choice([-1, 1])
    except ValueError:  # a float
        shift = np.random.uniform(-allowed, allowed)
    return shift * size if np.max(allowed) < 1 else shift


def _warn(message, category=UserWarning):
    warnings.warn(message, category, stacklevel=user_stacklevel())
