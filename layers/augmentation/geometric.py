"""Random flips, crops and stretches of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import reverse, stack, unstack
from tapewright.ops.array.shape import squeeze
from tapewright.ops.image.resizing import METHODS, resize
from tapewright.ops.math.comparison import less_equal, where
from tapewright.ops.random.sampling import get_global_generator

from ..base.bounding_boxes import clip_to_image_size, crop
from ..base.layer import InputSpec, Layer
from ..base.seeds import checked_seed, generator_of
from .random_layer import RandomLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.ops.random.generators import Generator

    from ..base.image_layer import ImageOptions
    from ..base.layer_types import RegularizedLayerOptions, SeedLike

__all__ = ["RandomCrop", "RandomFlip", "RandomHeight", "RandomWidth"]


class RandomFlip(RandomLayer):
    """Randomly flip images in training, each with probability 1/2.

    Args:
        mode: "horizontal" (swap left and right), "vertical" (swap top and bottom) or
            "horizontal_and_vertical" (both at once).
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Instead of images, the
        layer also accepts a dict of ``"images"`` with any of the annotations
        ``"labels"``, ``"bounding_boxes"`` (a dict of ``"boxes"`` ``[batch, n, 4]`` and
        ``"labels"`` ``[batch, n]``) and ``"segmentation_masks"``, and transforms them
        together.

    Raises:
        ValueError: If ``mode`` is unknown, or if there are boxes and
            ``bounding_box_format`` is not given.

    Example:
        >>> layer = keras.layers.RandomFlip("horizontal", seed=0)
        >>> image = [[[1.0], [2.0]]]
        >>> layer(image).numpy().ravel(), layer(image, training=False).numpy().ravel()
        (array([2., 1.], dtype=float32), array([1., 2.], dtype=float32))
    """

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        modes = ("horizontal", "vertical", "horizontal_and_vertical")
        self.mode: str = one_of(self, "mode", mode, modes)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1, 1, 1)[-len(images.shape) :]
        flips = less_equal(draws.uniform(shape), 0.5)
        return {"flips": flips, "input_shape": images.shape}

    def _tw_changed(self, images, transformation):
        axes = {"horizontal": [self._tw_columns], "vertical": [self._tw_rows]}
        axes = axes.get(self.mode, [self._tw_rows, self._tw_columns])
        return where(transformation["flips"], reverse(images, axes), images)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Flip the boxes of the images that are flipped.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        if not training or transformation is None:
            return bounding_boxes
        shape = transformation["input_shape"]
        size = shape[self._tw_rows], shape[self._tw_columns]
        relative = self._tw_boxes_as("rel_xyxy", bounding_boxes, size)
        x1, y1, x2, y2 = unstack(relative["boxes"], axis=-1)
        across = 1 - x2, y1, 1 - x1, y2
        down = (x1, 1 - y2, x2, 1 - y1)
        both = (1 - x2, 1 - y2, 1 - x1, 1 - y1)
        flipped = {"horizontal": across, "vertical": down}.get(self.mode, both)
        flips = squeeze(transformation["flips"], -1)
        boxes = where(flips, stack(flipped, axis=-1), relative["boxes"])
        relative = clip_to_image_size(
            relative | {"boxes": boxes}, bounding_box_format="rel_xyxy"
        )
        return self._tw_boxes_as(self.bounding_box_format, relative, size, "rel_xyxy")

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Flip the masks of the images that are flipped.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return self.transform_images(segmentation_masks, transformation, training)


class RandomCrop(RandomLayer):
    """Crop images to ``height`` by ``width`` at a random position in training.

    All images of a batch are cropped at the same position. Images that are not larger
    than the crop on both axes are cropped around the center and resized. Outside of
    training nothing is cropped, as in Keras 3: add a `CenterCrop` or `Resizing` if
    later layers require the size.

    Args:
        height: Height of the crop, positive.
        width: Width of the crop, positive.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, rows, columns, channels]``, or one image without the batch
        axis; outputs ``[batch, height, width, channels]`` in training. Integers are
        cast to the compute dtype. Dicts of images and annotations as in `RandomFlip`.

    Raises:
        ValueError: If a size is not positive.

    Example:
        >>> layer, images = keras.layers.RandomCrop(4, 4), tw.ones([2, 8, 8, 3])
        >>> layer(images).shape, layer(images, training=False).shape
        (TensorShape([2, 4, 4, 3]), TensorShape([2, 8, 8, 3]))
    """

    def __init__(
        self,
        height: int,
        width: int,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: SeedLike = None
    ) -> Any:
        """Draw the upper left corner of the crop; return None if not ``training``.

        Args:
            data: Images, or a dict with images and annotations.
            training: If False, draw nothing and return None.
            seed: Seed or generator to use instead of the layer's own.
        """
        drawn = super().get_random_transformation(data, training, seed)
        size = self._tw_size_of(self._tw_images_of(data))
        return drawn if drawn is None else _Corner(drawn, size)

    def _tw_drawn(self, images, draws):
        rows, columns = self._tw_size_of(images)
        if rows <= self.height or columns <= self.width:
            return self._tw_largest_box(rows, columns, self.height, self.width)[:2]
        spare = rows - self.height + 1, columns - self.width + 1
        starts = [draws.uniform(()) * cast(n, "float32") for n in spare]
        return tuple([cast(start, "int32") for start in starts])

    def _tw_changed(self, images, transformation):
        """Crop the images; ``transformation`` is the upper left corner."""
        top, left = transformation
        rows, columns = self._tw_size_of(images)
        if rows > self.height and columns > self.width:
            images = gather(images, top + arange(self.height), axis=self._tw_rows)
            return gather(images, left + arange(self.width), axis=self._tw_columns)
        inner, across = self._tw_part(rows, columns, top, left)
        images = self._tw_cut(images, top, left, inner, across)
        if (inner, across) == (self.height, self.width):
            return images
        return self._tw_resized(images, self.height, self.width)

    def _tw_part(self, rows, columns, top, left):
        """Return height and width of the part that is cropped from smaller images."""
        return min(self.height, rows - top), min(self.width, columns - left)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Shift the boxes into the crop and clip them to it.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        if not training or transformation is None:
            return bounding_boxes
        if not isinstance(transformation, _Corner):
            raise ValueError(
                f"{self._tw_title}: transformation must be a value returned by "
                "get_random_transformation, which contains the size of the images, got "
                f"{transformation!r}"
            )
        (top, left), (rows, columns) = transformation, transformation.size
        in_pixels = self._tw_boxes_as("xyxy", bounding_boxes, (rows, columns))
        inner, across = new_size = self.height, self.width
        if rows <= self.height or columns <= self.width:
            inner, across = self._tw_part(rows, columns, top, left)
        boxes = crop(in_pixels["boxes"], top, left, inner, across)
        if (inner, across) != new_size:
            down = self.height / cast(inner, "float32")
            right = self.width / cast(across, "float32")
            boxes = boxes * stack([right, down, right, down])
        in_pixels = clip_to_image_size(in_pixels | {"boxes": boxes}, *new_size)
        return self._tw_boxes_as(self.bounding_box_format, in_pixels, new_size, "xyxy")

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Crop the masks like the images.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return self.transform_images(segmentation_masks, transformation, training)

    def _tw_image_shape(self, shape):
        return self._tw_shape_with(shape, self.height, self.width)


class _Corner(tuple):
    """Corner ``(top, left)`` of the crop, and the ``size`` of the whole images."""

    def __new__(cls, corner, size):
        made = super().__new__(cls, corner)
        made.size = size
        return made


class _Stretch(Layer):
    """Scale one axis of a batch of images by one random factor, in training."""

    _tw_stretched = 0  # the axis
    generator: Generator | None

    def __init__(
        self,
        factor: float | Sequence[float],
        interpolation: str = "bilinear",
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        pair = factor if isinstance(factor, (list, tuple)) else (-factor, factor)
        if len(pair) != 2 or not -1 <= pair[0] <= pair[1]:
            raise ValueError(
                f"{self._tw_title}: factor must be a number from 0 to 1, or a pair "
                f"(lowest, highest) of numbers from -1, got {factor!r}"
            )
        self.factor: float | Sequence[float] = factor
        self.interpolation: str = one_of(self, "interpolation", interpolation, METHODS)
        self.seed: SeedLike = checked_seed(self, seed)
        self.generator = generator_of(self.seed)
        self.input_spec: InputSpec = InputSpec(min_ndim=3, max_ndim=4)
        self._tw_bounds = tuple([1.0 + bound for bound in pair])

    def call(self, inputs: Tensor, training: bool | None = True) -> Tensor:
        inputs = cast(inputs, self.compute_dtype)
        if not training:
            return inputs
        if active_tracer() is not None:
            fall_back(f"{self._tw_title} draws the size of its outputs in each call")
        generator = self.generator or get_global_generator()
        size = list(inputs.shape[-3:-1])
        axis = self._tw_stretched
        scaled = generator.uniform((), *self._tw_bounds) * cast(size[axis], "float32")
        size[axis] = int(cast(scaled, "int32"))
        if size[axis] < 1:
            raise InvalidArgumentError(
                f"{self._tw_title}: the outputs must not be empty, got inputs of shape "
                f"{inputs.shape} and factor {self.factor!r}"
            )
        return cast(resize(inputs, size, self.interpolation), self.compute_dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        shape = list(input_shape)
        shape[self._tw_stretched - 3] = None
        return tuple(shape)


class RandomHeight(_Stretch):
    """Randomly scale the height of the images in training.

    All images of a batch are resized to ``int(height * (1 + u))`` rows, with one ``u``
    drawn uniformly between the bounds. A layer of Keras 2; `RandomZoom` keeps the size.
    The output size is only known at run time, so a `tw.function` or `fit` with this
    layer runs op by op.

    Args:
        factor: Pair of the lowest and the highest ``u``, both -1 or more; one number
            ``x`` from 0 to 1 means ``(-x, x)``.
        interpolation: Method of `tw.image.resize`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, or one image without the batch
        axis; outputs with another height. Integers are cast to the compute dtype.

    Raises:
        ValueError: If ``factor`` or ``interpolation`` is not one of these.
        InvalidArgumentError: If no rows are left; it is a ``ValueError``.

    Example:
        >>> layer, images = keras.layers.RandomHeight((0.5, 0.5)), tw.ones([2, 8, 8, 3])
        >>> layer(images).shape, layer(images, training=False).shape
        (TensorShape([2, 12, 8, 3]), TensorShape([2, 8, 8, 3]))
    """

    _tw_stretched = 0


class RandomWidth(_Stretch):
    """Randomly scale the width of the images in training.

    All images of a batch are resized to ``int(width * (1 + u))`` columns; see
    `RandomHeight`.

    Args:
        factor: Pair of the lowest and the highest ``u``, both -1 or more; one number
            ``x`` from 0 to 1 means ``(-x, x)``.
        interpolation: Method of `tw.image.resize`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, or one image without the batch
        axis; outputs with another width. Integers are cast to the compute dtype.

    Raises:
        ValueError: If ``factor`` or ``interpolation`` is not one of these.
        InvalidArgumentError: If no columns are left; it is a ``ValueError``.

    Example:
        >>> keras.layers.RandomWidth((0.5, 0.5))(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 12, 3])
    """

    _tw_stretched = 1
