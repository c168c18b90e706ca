"""`RematScope`: recompute the `call` of layers in the backward pass."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Literal, Self

from tapewright.autodiff.custom_gradient import recompute_grad
from tapewright.core.nest import flatten, map_structure
from tapewright.core.tensor import is_tensor
from tapewright.serialization.constructor_call import constructor_call

from .symbolic_tensor import KerasTensor, symbolic_outputs

_SCOPES = ContextVar("remat_scopes", default=())
_MODES = "full", "activations", "larger_than", "list_of_layers", None


class RematScope:
    """Gradient checkpointing: layers created in the scope recompute their activations.

    Intermediate values of these layers are not stored in the forward pass, but computed
    again in the backward pass, wherever the layers are called; see `remat`.

    Args:
        mode: "full" recomputes the `call` of every layer; "activations" only the
            ``activation`` of layers that have one; "larger_than" the `call` of layers
            whose outputs have more entries than ``output_size_threshold``;
            "list_of_layers" the `call` of the layers in ``layer_names``. None turns off
            an enclosing scope.
        output_size_threshold: Number of output entries for "larger_than"; an unknown
            size counts as 1.
        layer_names: Names of layers for "list_of_layers".

    Raises:
        ValueError: If ``mode`` is unknown.

    Example:
        >>> from tapewright.layers import Dense
        >>> with keras.RematScope("full"):
        ...     layer = Dense(2, activation="relu")
    """

    def __init__(
        self,
        mode: Literal["full", "activations", "larger_than", "list_of_layers"]
        | None = "full",
        output_size_threshold: int = 1024,
        layer_names: Iterable[str] | None = None,
    ):
        if mode not in _MODES:
            raise ValueError(
                f"RematScope: mode must be one of {', '.join(map(repr, _MODES))}, got "
                f"{mode!r}"
            )
        self.mode = mode
        self.output_size_threshold = output_size_threshold
        self.layer_names = list(layer_names or ())

    __repr__ = constructor_call

    def __enter__(self) -> Self:
        _SCOPES.set((*_SCOPES.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _SCOPES.set(_SCOPES.get()[:-1])


def active_remat_scope() -> RematScope | None:
    """Return the innermost scope; None outside of scopes, or if its mode is None."""
    scopes = _SCOPES.get()
    return scopes[-1] if scopes and scopes[-1].mode is not None else None


def rematerialized(
    layer: Any, scope: RematScope, call: Callable[..., Any], args: Any, kwargs: Any
) -> Callable[..., Any]:
    """Return ``call`` of a layer, rematerialized if the scope applies to it."""
    if scope.mode == "activations":
        is_method = getattr(call, "__self__", None) is layer
        if not is_method or vars(layer).get("activation") is None:
            return call
        return _with_remade_activation(call)
    if scope.mode == "list_of_layers":
        wanted = layer.name in scope.layer_names
    elif scope.mode == "larger_than":
        wanted = _output_size(call, args, kwargs) > scope.output_size_threshold
    else:
        wanted = True
    return recompute_grad(call) if wanted else call


def _with_remade_activation(call):
    """Bind a method to a view of its layer: other threads may call the layer."""
    layer = call.__self__
    cls = type(layer)
    if "_tw_view" not in vars(cls):
        cls._tw_view = type(cls)(
            cls.__name__, (_View, cls), {"__module__": cls.__module__}
        )
    view = object.__new__(cls._tw_view)
    view.__dict__ = vars(layer)
    return types.MethodType(call.__func__, view)


class _View:
    """View of a layer with a rematerialized ``activation``."""

    def __init_subclass__(cls):
        """Skip `Layer.__init_subclass__`: a view is not a new layer class."""

    @property
    def activation(self):
        activation = vars(self)["activation"]
        return activation and recompute_grad(activation)

    @activation.setter
    def activation(self, value):
        vars(self)["activation"] = value


def _output_size(call, args, kwargs):
    """Return the number of entries in all outputs."""
    args, kwargs = map_structure(
        lambda x: KerasTensor(x.shape, x.dtype) if is_tensor(x) else x, [args, kwargs]
    )
    outputs = flatten(symbolic_outputs(call, args, kwargs))
    return sum([math.prod([size or 1 for size in x.shape]) for x in outputs])
