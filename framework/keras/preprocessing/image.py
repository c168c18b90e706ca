"""`keras.preprocessing.image`: images as arrays, and their augmentation."""

from ..legacy.preprocessing import image as _image
from ..legacy.preprocessing.image import *

__all__ = []
__all__ += _image.__all__
