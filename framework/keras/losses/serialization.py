"""Losses by name, and as configs."""

from tapewright.serialization.registry import (
    custom_object_scope,
    named,
    register,
    resolve,
)

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


def get(identifier):
    """The loss that a name, class, config or callable stands for; None for None.

    A class's name gives an object of it, a function's the function.

    Raises: ``ValueError`` that lists the known names, and those near to an unknown one;
    ``TypeError`` for what is no identifier.

    >>> get("mse") is mean_squared_error
    True
    """
    if isinstance(identifier, dict) and identifier.get("class_name") == "function":
        identifier = identifier["config"]  # Keras' way to write a function down
    return resolve("loss", identifier)


def serialize(loss):
    """The config of an object, or that with the name of a function, as `get` takes them."""
    return named(loss)


def deserialize(name, custom_objects=None):
    """`get`, with ``custom_objects`` (name to class or function) known for this call.

    >>> deserialize({"class_name": "Huber", "config": {"delta": 2.0}}).delta
    2.0
    """
    with custom_object_scope(custom_objects or {}):
        return get(name)


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
