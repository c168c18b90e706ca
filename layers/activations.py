"""Activations by name: what ``activation="relu"`` means. The functions are ops."""

from tapewright import registry
from tapewright.ops.activation import (
    elu,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
)
from tapewright.ops.elementwise import exp, tanh

__all__ = [
    "elu",
    "exponential",
    "get",
    "leaky_relu",
    "linear",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "serialize",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]

exponential = exp
swish = silu


def linear(x):
    """``x`` itself."""
    return x


def get(identifier):
    """The activation of that name; a callable is one already, and None is `linear`.

    Raises: ``ValueError`` that lists the known names; ``TypeError`` for what is neither.

    >>> get("relu") is relu, get(None) is linear
    (True, True)
    """
    if identifier is None:
        return linear
    if isinstance(identifier, str):
        return registry.find("activation", identifier)
    if isinstance(identifier, dict):
        return registry.deserialize("layer", identifier)
    if callable(identifier):
        return identifier
    raise TypeError(
        f"activation: must be a name, a callable or None, got {identifier!r}"
    )


def serialize(activation):
    """The name that `get` takes back; the config, if it is a layer.

    >>> serialize(tanh)
    'tanh'
    """
    return registry.plain(activation)


# The first name of a function is the one that configs mention.
for _name in sorted(set(__all__) - {"get", "serialize", "swish"}) + ["swish"]:
    registry.register("activation", _name, globals()[_name])
