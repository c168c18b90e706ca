"""Augmentation policies, which draw layers from a list: `RandAugment`, `AugMix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.compiler.control_flow.cond import switch_case
from tapewright.compiler.control_flow.while_loop import while_loop
from tapewright.core.messages.argument_validation import not_negative, whole
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.joining import stack
from tapewright.ops.math.comparison import equal, less, where
from tapewright.ops.math.elementwise import clip_by_value
from tapewright.ops.math.reduction import reduce_sum

from ..base.image_layer import checked_range
from .colors import RandomColorDegeneration
from .filters import RandomSharpness
from .histograms import AutoContrast, Equalization
from .intensity import (
    RandomBrightness,
    RandomContrast,
    RandomPosterization,
    Solarization,
)
from .random_layer import RandomLayer, checked_value_range
from .warping import RandomRotation, RandomShear, RandomTranslation

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageLayer, ImageOptions
    from ..base.layer_types import SeedLike

__all__ = ["AugMix", "RandAugment"]

_GEOMETRIC = ("random_shear", "random_translation", "random_rotation")
_ALWAYS = ("random_posterization", "solarization", "auto_contrast", "equalization")
_MORE = (
    "random_brightness",
    "random_color_degeneration",
    "random_contrast",
    "random_sharpness",
)


class _Policy(RandomLayer):
    """Layer with inner layers, some of which are drawn for each batch."""

    factor: Any
    value_range: Any
    interpolation: str
    random_shear: RandomShear
    random_translation: RandomTranslation
    random_rotation: RandomRotation
    random_posterization: RandomPosterization
    solarization: Solarization
    auto_contrast: AutoContrast
    equalization: Equalization
    random_brightness: RandomBrightness
    random_color_degeneration: RandomColorDegeneration
    random_contrast: RandomContrast
    random_sharpness: RandomSharpness
    _tw_names: tuple[str, ...]

    def _tw_keep_layers(self, names):
        """Create the layers with these names as attributes of the layer."""
        self._tw_names = names
        more = {
            "seed": self.seed,
            "data_format": self.data_format,
            "bounding_box_format": self.bounding_box_format,
            "dtype": self.dtype_policy,
        }
        fixed = {key: value for key, value in more.items() if key != "seed"}
        warp = {"interpolation": self.interpolation}
        colour = {"value_range": self.value_range}
        f = self.factor
        bits = max(1, int(8 * f[1]))
        makers = {
            "random_shear": lambda: RandomShear(f, f, **warp, **more),
            "random_translation": lambda: RandomTranslation(f, f, **warp, **more),
            "random_rotation": lambda: RandomRotation(f, **warp, **more),
            "random_brightness": lambda: RandomBrightness(f, **colour, **more),
            "random_color_degeneration": lambda: RandomColorDegeneration(
                f, **colour, **more
            ),
            "random_contrast": lambda: RandomContrast(f, **colour, **more),
            "random_sharpness": lambda: RandomSharpness(f, **colour, **more),
            "random_posterization": lambda: RandomPosterization(bits, **colour, **more),
            "solarization": lambda: Solarization(f, f, **colour, **more),
            "auto_contrast": lambda: AutoContrast(**colour, **fixed),
            "equalization": lambda: Equalization(**colour, **fixed),
        }
        for name in names:
            setattr(self, name, makers[name]())

    def _layers(self) -> list[ImageLayer]:
        return [getattr(self, name) for name in self._tw_names]

    def _tw_transformations(self, images, draws):
        """Draw a transformation for each of the layers."""
        return {
            name: layer.get_random_transformation(images, seed=draws.generator)
            for name, layer in zip(self._tw_names, self._layers())
        }

    def _tw_one_of(self, number, x, transforms, method):
        """Transform ``x`` by the layer with this number; -1 leaves it unchanged."""

        def branch(name):
            transform = getattr(getattr(self, name), method)
            return lambda: transform(x, transforms[name])

        branches = [lambda: x, *[branch(name) for name in self._tw_names]]
        return switch_case(number + 1, branches)


class RandAugment(_Policy):
    """RandAugment policy: apply ``num_ops`` random augmentations to each batch.

    The augmentations are drawn from eleven: shear, translation, rotation, brightness,
    color degeneration, contrast, sharpness, posterization, solarization, auto-contrast
    and equalization. They are only applied in training.

    Args:
        value_range: Pair of the lowest and the highest pixel value.
        num_ops: Number of augmentations per batch, a positive integer.
        factor: Largest strength, from 0 to 1, or a pair (least, largest), passed on to
            the augmentations.
        interpolation: "bilinear" or "nearest".
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, 3]``, or one image without the batch
        axis; integers are cast to the compute dtype. Dicts of images and annotations as
        in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between 0 and 1, or ``num_ops`` is not a
            positive integer.

    References:
        Cubuk et al., "RandAugment" (2019).

    Example:
        >>> keras.layers.RandAugment(factor=0.3, seed=1)(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 8, 3])
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        num_ops: int = 2,
        factor: float | Sequence[float] = 0.5,
        interpolation: str = "bilinear",
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.value_range: Any = checked_value_range(self, value_range)
        self.num_ops: int = whole(self, "num_ops", num_ops, most=100)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.interpolation = interpolation
        self._tw_keep_layers((*_GEOMETRIC, *_MORE, *_ALWAYS))

    def _tw_drawn(self, images, draws):
        return {
            "transforms": self._tw_transformations(images, draws),
            "layer_idxes": draws.integers((self.num_ops,), 0, len(self._tw_names)),
        }

    def _tw_changed(self, images, transformation):
        return self._tw_in_turn(images, transformation, "transform_images")

    def _tw_in_turn(self, x, transformation, method):
        for i in range(self.num_ops):
            number = transformation["layer_idxes"][i]
            x = self._tw_one_of(number, x, transformation["transforms"], method)
        return x

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Transform the boxes by the layers that were drawn.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        if not training or transformation is None:
            return bounding_boxes
        both = {key: bounding_boxes[key] for key in ("boxes", "labels")}
        method = "transform_bounding_boxes"
        return bounding_boxes | self._tw_in_turn(both, transformation, method)

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Transform the masks by the layers that were drawn.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        masks = convert_to_tensor(segmentation_masks)
        if not training or transformation is None:
            return masks
        method = "transform_segmentation_masks"
        return self._tw_in_turn(masks, transformation, method)


class AugMix(_Policy):
    """AugMix policy: mix images with a weighted mean of several augmented versions.

        outputs = w * x + (1 - w) * sum_i weight[i] * chain[i](x)

    A chain applies up to ``chain_depth`` augmentations in sequence, drawn as in
    `RandAugment`. The weights follow a Dirichlet distribution, ``w`` a beta
    distribution. Boxes and labels are unchanged. Only applied in training.

    Args:
        value_range: Pair of the lowest and the highest pixel value.
        num_chains: Number of chains.
        chain_depth: Largest number of augmentations per chain.
        factor: Largest strength, from 0 to 1, or a pair (least, largest), passed on to
            the augmentations.
        alpha: Parameter of the Dirichlet and the beta distribution.
        all_ops: If False, leave out brightness, color degeneration, contrast and
            sharpness.
        interpolation: "bilinear" or "nearest".
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, 3]``, or one image without the batch
        axis; integers are cast to the compute dtype. Dicts of images and annotations as
        in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between 0 and 1, or ``num_chains`` or
            ``chain_depth`` is not a positive integer.

    References:
        Hendrycks et al., "AugMix" (2020).

    Example:
        >>> keras.layers.AugMix(seed=1)(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 8, 3])
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        num_chains: int = 3,
        chain_depth: int = 3,
        factor: float | Sequence[float] = 0.3,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.value_range: Any = checked_value_range(self, value_range)
        self.num_chains: int = whole(self, "num_chains", num_chains, most=20)
        self.chain_depth: int = whole(self, "chain_depth", chain_depth, most=20)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.alpha: float = not_negative(self, "alpha", alpha)
        self.all_ops: bool = bool(all_ops)
        self.interpolation = interpolation
        self._tw_keep_layers((*_GEOMETRIC, *_ALWAYS, *(_MORE if all_ops else ())))

    def _tw_drawn(self, images, draws):
        shares = draws.gamma((self.num_chains,), self.alpha)
        steps = self.num_chains * self.chain_depth
        return {
            "chain_mixing_weights": shares / reduce_sum(shares),
            "weight_sample": draws.beta((), self.alpha),
            "layer_idxes": draws.integers((steps,), -1, len(self._tw_names)),
            "chain_transforms": self._tw_of_steps(images, draws, steps),
        }

    def _tw_of_steps(self, images, draws, count):
        """Stack one transformation of each layer for each position in a chain."""
        drawn = [self._tw_transformations(images, draws) for _ in range(count)]
        return {
            name: parts
            and {
                key: stack([each[name][key] for each in drawn])
                for key in parts
                if key != "input_shape"  # which only boxes need
            }
            for name, parts in drawn[0].items()
        }

    def _tw_changed(self, images, transformation):
        mixed = self._tw_mixed(images, transformation, "transform_images")
        return clip_by_value(mixed, *self.value_range)

    def _tw_mixed(self, x, transformation, method):
        shares = cast(transformation["chain_mixing_weights"], x.dtype)
        numbers = transformation["layer_idxes"]

        def step(step_number, chain, total):
            chain = where(equal(step_number % self.chain_depth, 0), x, chain)
            transforms = {
                name: parts
                and {key: values[step_number] for key, values in parts.items()}
                for name, parts in transformation["chain_transforms"].items()
            }
            chain = self._tw_one_of(numbers[step_number], chain, transforms, method)
            step_number = step_number + 1
            ends = cast(equal(step_number % self.chain_depth, 0), x.dtype)
            share = shares[(step_number - 1) // self.chain_depth]
            return step_number, chain, total + ends * share * chain

        # A start that a trace does not know keeps the loop, and each layer in it once.
        steps = self.num_chains * self.chain_depth
        start = 0 * numbers[0], x, zeros_like(x)
        *_, total = while_loop(
            lambda step_number, *_: less(step_number, steps),
            step,
            start,
            maximum_iterations=steps,
        )
        weight = cast(transformation["weight_sample"], x.dtype)
        return weight * x + (1.0 - weight) * total

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Mix the masks like the images; integer masks become floating-point.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        masks = convert_to_tensor(segmentation_masks)
        if not training or transformation is None:
            return masks
        masks = masks if masks.dtype.is_floating else cast(masks, "float32")
        return self._tw_mixed(masks, transformation, "transform_segmentation_masks")
