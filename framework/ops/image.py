"""Images, ``[..., height, width, channels]``."""

from ..errors import ShapeError
from ..primitive import primitive
from ..rules import lift
from .joining import all_mapped
from .reduction import reduce_mean

__all__ = ["adjust_contrast"]


@primitive(type_name="AdjustContrastv2", alike=("images", "contrast_factor"))
def adjust_contrast(xp, images, contrast_factor):
    """``(x - mean) * contrast_factor + mean``, the mean taken for each channel.

    It has no gradient, as in TensorFlow: asking for one is a ``LookupError``.
    """
    if images.ndim < 3 or contrast_factor.ndim:
        raise ValueError("images need three axes")  # `infer` says it better
    mean = images.mean(axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


@adjust_contrast.infer
def _(images, contrast_factor):
    if images.shape.rank < 3 or contrast_factor.shape.rank:
        raise ShapeError("adjust_contrast", "images must be [..., height, width, channels] "
                         "and contrast_factor a scalar", images=images,
                         contrast_factor=contrast_factor)  # fmt: skip
    return images


@adjust_contrast.batch
def _(mapped, images, contrast_factor):
    if not mapped[1]:
        return adjust_contrast(images, contrast_factor)
    images, factor = lift((True, True), *all_mapped(mapped, (images, contrast_factor)))
    mean = reduce_mean(images, (-3, -2), True)
    return (images - mean) * factor + mean
