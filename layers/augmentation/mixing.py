"""Mix images with other images of the batch, or with noise.

`CutMix` and `MixUp` also mix the labels, which must be one-hot or probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import not_negative
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat
from tapewright.ops.array.shape import reshape
from tapewright.ops.math.comparison import greater_equal, less, logical_and, where
from tapewright.ops.math.elementwise import clip_by_value, sqrt

from ..base.image_layer import checked_range
from .random_layer import RandomLayer, checked_value_range

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageOptions
    from ..base.layer_types import SeedLike

__all__ = ["CutMix", "MixUp", "RandomErasing"]


class _Cutting(RandomLayer):
    """Layer that draws a box in each image."""

    def _tw_box(self, images, shares, draws):
        """Return masks of boxes with sides of these fractions, and their area."""
        sides = zip(self._tw_size_of(images), shares)
        inside, area = None, 1.0
        for axis, (length, share) in zip((self._tw_rows, self._tw_columns), sides):
            length = cast(length, "float32")
            side = share * length
            start = draws.uniform((self._tw_batch_of(images),)) * (length - side)
            shape = [1, 1, 1, 1]
            shape[axis] = -1
            at = reshape(arange(images.shape[axis], dtype="float32"), shape)
            start, end = [reshape(n, (-1, 1, 1, 1)) for n in (start, start + side)]
            within = logical_and(greater_equal(at, start), less(at, end))
            inside = within if inside is None else logical_and(inside, within)
            area = area * (end - start) / length
        return inside, area


class CutMix(_Cutting):
    """Replace a random box of each image by pixels of another image of the batch.

    The labels are mixed by area, in training only:

        labels = weight * labels + (1 - weight) * labels of the other image

    where ``weight`` is the fraction of the area that is not replaced. A single image
    without a batch axis is unchanged.

    Args:
        factor: Largest ``alpha``, or a pair (lowest, highest), between which it is
            drawn for each batch. The weights have the density
            ``(w (1 - w)) ** (alpha - 1)``.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, labels
        ``[batch, classes]``; integers are cast to the compute dtype. Dicts of images
        and annotations as in `RandomFlip`, without boxes.

    Raises:
        ValueError: If ``factor`` is not between 0 and 1.
        NotImplementedError: If the inputs have bounding boxes.

    References:
        Yun et al., "CutMix" (2019).

    Example:
        >>> data = {"images": tw.ones([2, 8, 8, 3]), "labels": tw.one_hot([0, 1], 2)}
        >>> keras.layers.CutMix()(data)["labels"].shape
        TensorShape([2, 2])
    """

    def __init__(
        self,
        factor: float | Sequence[float] = 1.0,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, least=0)

    def _tw_drawn(self, images, draws):
        if len(images.shape) == 3:
            return None
        batch = self._tw_batch_of(images)
        alpha = draws.uniform((), *self.factor) + 1e-6
        share = sqrt(1.0 - draws.beta((batch,), alpha))
        inside, area = self._tw_box(images, (share, share), draws)
        return {
            "permutation_order": draws.shuffled(arange(batch, dtype="int32")),
            "batch_masks": inside,
            "mix_weight": 1.0 - area,
        }

    def _tw_changed(self, images, transformation):
        others = gather(images, transformation["permutation_order"])
        return where(transformation["batch_masks"], others, images)

    def transform_labels(
        self, labels: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Mix the labels by the areas of the images.

        Args:
            labels: Labels ``[batch, classes]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return _mixed(labels, transformation) if training else labels

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Raise ``NotImplementedError``: parts of boxes cannot be represented.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: Ignored.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"{self._tw_title}: bounding_boxes are not supported; omit them"
        )

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Replace the same box of the masks as of the images.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return self.transform_images(segmentation_masks, transformation, training)


class MixUp(RandomLayer):
    """Blend each image with another image of the batch in training.

        outputs = weight * image + (1 - weight) * other image

    Labels and masks are blended in the same way; an image gets the boxes of both.

    Args:
        alpha: Parameter of the distribution of the weights, whose density is
            ``(w (1 - w)) ** (alpha - 1)``; if small, most weights are near 0 or 1.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, labels
        ``[batch, classes]``; ``n`` boxes become ``2 n``. Integers are cast to the
        compute dtype. Dicts of images and annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``alpha`` is negative.

    References:
        Zhang et al., "mixup: beyond empirical risk minimization" (2018).

    Example:
        >>> data = {"images": tw.ones([2, 8, 8, 3]), "labels": tw.one_hot([0, 1], 2)}
        >>> mixed = keras.layers.MixUp()(data)["labels"]
        >>> mixed.numpy().sum(1).round(4)
        array([1., 1.], dtype=float32)
    """

    def __init__(
        self,
        alpha: float = 0.2,
        data_format: str | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.alpha: float = not_negative(self, "alpha", alpha)

    def _tw_drawn(self, images, draws):
        batch = self._tw_batch_of(images)
        return {
            "mix_weight": draws.beta((batch,), self.alpha),
            "permutation_order": draws.shuffled(arange(batch, dtype="int64")),
        }

    def _tw_changed(self, images, transformation):
        return _mixed(images, transformation)

    def transform_labels(
        self, labels: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Mix the labels like the images.

        Args:
            labels: Labels ``[batch, classes]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return _mixed(labels, transformation) if training else labels

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the boxes of both images: first the image's boxes, then the other's.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        if not training or transformation is None:
            return bounding_boxes
        order = transformation["permutation_order"]
        return bounding_boxes | {
            key: concat([x, gather(x, order)], axis=1)
            for key in ("boxes", "labels")
            for x in (convert_to_tensor(bounding_boxes[key]),)
        }

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Mix the masks like the images.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        if not training:
            return segmentation_masks
        return _mixed(segmentation_masks, transformation)


def _mixed(x, transformation):
    """Mix rows with others by the weights; integers become float32."""
    x = convert_to_tensor(x)
    if transformation is None:
        return x
    x = x if x.dtype.is_floating else cast(x, "float32")
    weight = cast(transformation["mix_weight"], x.dtype)
    weight = reshape(weight, (-1, *[1] * (len(x.shape) - 1)))
    others = gather(x, transformation["permutation_order"])
    return weight * x + (1.0 - weight) * others


class RandomErasing(_Cutting):
    """Randomly fill a box of images in training, with a constant or with noise.

    Args:
        factor: Highest probability that an image is changed, or a pair (lowest,
            highest), between which the probability of each image is drawn.
        scale: Largest squared side fraction, or a pair (lowest, highest). Height and
            width of the box, as fractions of the image, are the square roots of numbers
            drawn between the bounds.
        fill_value: Number, three numbers for the channels, or None for normal noise
            times the highest value of ``value_range``.
        value_range: Pair of the lowest and the highest pixel value, to which the
            filling is clipped.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` or ``scale`` is not between 0 and 1, or ``fill_value``
            is not one of these.

    References:
        Zhong et al., "Random erasing data augmentation" (2017).

    Example:
        >>> options = {"scale": (1.0, 1.0), "fill_value": 7.0}
        >>> layer = keras.layers.RandomErasing((1.0, 1.0), **options)
        >>> layer([[[1.0], [2.0]]]).numpy().ravel()
        array([7., 7.], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float] = 1.0,
        scale: float | Sequence[float] = (0.02, 0.33),
        fill_value: float | Sequence[float] | None = None,
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.scale: Any = checked_range(self, "scale", scale, least=0)
        several = isinstance(fill_value, (list, tuple)) and len(fill_value) == 3
        if not several and not isinstance(fill_value, (int, float, type(None))):
            raise ValueError(
                "RandomErasing: fill_value must be a number, three numbers or None, got "
                f"{fill_value!r}"
            )
        self.fill_value: float | Sequence[float] | None = fill_value
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        batch = self._tw_batch_of(images)
        shares = sqrt(draws.uniform((batch, 2), *self.scale))
        inside, _ = self._tw_box(images, (shares[:, 1], shares[:, 0]), draws)
        return {
            "apply_erasing": draws.happens((batch,), self.factor),
            "batch_masks": inside,
            "fill_value": clip_by_value(
                self._tw_filling(images, draws), *self.value_range
            ),
        }

    def _tw_filling(self, images, draws):
        if self.fill_value is None:
            return draws.normal(tuple(images.shape)) * float(self.value_range[1])
        shape = [1, 1, 1, 1]
        if isinstance(self.fill_value, (list, tuple)):
            shape[self._tw_channels] = 3
        return reshape(cast(self.fill_value, "float32"), shape)

    def _tw_changed(self, images, transformation):
        filling = cast(transformation["fill_value"], images.dtype)
        applies = reshape(transformation["apply_erasing"], (-1, 1, 1, 1))
        where_to = logical_and(transformation["batch_masks"], applies)
        return where(where_to, filling, images)
