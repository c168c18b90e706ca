"""VGG with 19 weight layers."""

from .architecture import standard
from .imagenet_utils import _preprocessing, decode_predictions
from .vgg16 import _vgg

__all__ = ["VGG19", "decode_predictions", "preprocess_input"]

preprocess_input = _preprocessing("caffe")


@standard(
    "vgg19/vgg19",
    ("cbe5617147190e668d6c5d5026f83318", "253f8cb515780f3b799900260a226db6"),
)
def VGG19(x, options):
    """VGG with 19 weight layers, for image classification.

    Preprocess images with `keras.applications.vgg19.preprocess_input`.

    References:
        Simonyan & Zisserman, "Very deep convolutional networks for large-scale image
        recognition" (2015).
    """
    return _vgg(x, options, (2, 2, 4, 4, 4))
