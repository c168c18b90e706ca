"""`keras.config`: default dtypes, the order of axes, the small number epsilon."""

from tapewright.core.floatx import floatx, set_floatx
from tapewright.layers.dtype_policies import dtype_policy, set_dtype_policy

from .losses.probabilistic import EPSILON

__all__ = [
    "dtype_policy",
    "epsilon",
    "floatx",
    "image_data_format",
    "set_dtype_policy",
    "set_floatx",
]


def epsilon() -> float:
    """Return the small number of fuzzy comparisons: 1e-7."""
    return EPSILON


def image_data_format() -> str:
    """Return the default order of axes of images: "channels_last"."""
    return "channels_last"
