"""VGG with 19 layers of weights."""

from .architecture import kernels, standard
from .imagenet_utils import decode_predictions, preprocessing
from .vgg16 import vgg

__all__ = ["VGG19", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("caffe")


@standard(
    "vgg19",
    kernels(
        "vgg19/vgg19",
        "cbe5617147190e668d6c5d5026f83318",
        "253f8cb515780f3b799900260a226db6",
    ),
)
def VGG19(x, options):
    """Build VGG with 19 layers of weights, see `VGG16`."""
    return vgg(x, options, (2, 2, 4, 4, 4))
