"""Losses by name, and as configs."""

from tapewright.serialization.object_config import ObjectFamily
from tapewright.serialization.registry import register

from .focal import (
    binary_focal_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
)
from .hinge_losses import categorical_hinge, hinge, squared_hinge
from .probabilistic import (
    binary_crossentropy,
    categorical_crossentropy,
    kl_divergence,
    poisson,
    sparse_categorical_crossentropy,
)
from .regression import (
    cosine_similarity,
    huber,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
)
from .segmentation import dice, tversky
from .sequence import ctc
from .similarity import circle

__all__ = ["deserialize", "get", "serialize"]


_family = ObjectFamily("loss", function_names=False)
get, serialize, deserialize = _family.get, _family.serialize, _family.deserialize

for _function, _others in {
    mean_squared_error: ("mse", "MSE"),
    mean_absolute_error: ("mae", "MAE"),
    mean_absolute_percentage_error: ("mape", "MAPE"),
    mean_squared_logarithmic_error: ("msle", "MSLE"),
    cosine_similarity: (),
    huber: (),
    log_cosh: ("logcosh",),
    binary_crossentropy: ("bce", "BCE"),
    categorical_crossentropy: (),
    sparse_categorical_crossentropy: (),
    kl_divergence: ("kld", "KLD", "kullback_leibler_divergence"),
    poisson: (),
    binary_focal_crossentropy: (),
    categorical_focal_crossentropy: (),
    categorical_generalized_cross_entropy: (),
    hinge: (),
    squared_hinge: (),
    categorical_hinge: (),
    dice: (),
    tversky: (),
    circle: (),
    ctc: (),
}.items():
    for _name in (_function.__name__, *_others):
        register("loss", _name, _function)
