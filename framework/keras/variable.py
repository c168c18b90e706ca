"""`keras.Variable`: a variable with Keras' arguments, such as an initializer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tapewright.core import variable
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.names.naming import unique_name
from tapewright.core.settings.floatx import floatx
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.layers import initializers

if TYPE_CHECKING:
    from tapewright.core.typing import DTypeLike, TensorLike


class _AnyVariable(type):
    """Metaclass of `Variable`: every variable of the package is an instance of it."""

    def __instancecheck__(cls, instance):
        if cls is Variable:
            return isinstance(instance, variable.Variable)
        return super().__instancecheck__(instance)  # of a subclass


class Variable(variable.Variable, metaclass=_AnyVariable):
    """Variable with an initial value, or an initializer and a shape.

    Assigned values are cast to the dtype of the variable, as for weights of layers.
    Weights of layers, and each ``tw.Variable``, are instances as well.

    Args:
        initializer: Initial value, function of a shape and a dtype, or name of an
            initializer.
        shape: Shape of the variable, required for an initializer.
        dtype: Dtype of the variable; by default the dtype of the value, or `floatx`.
        trainable: If True, tapes watch the variable and optimizers update it.
        autocast: If False, the variable keeps its dtype in layers that compute in
            another.
        aggregation: "none", "mean", "sum" or "only_first_replica"; changes nothing.
        synchronization: "none", "auto", "on_read" or "on_write"; changes nothing.
        name: Name of the variable, unique by default, without "/".
        layout: Must be None.

    Raises:
        ValueError: If an initializer has no shape or a shape with unknown sizes, a
            value has another shape, the name contains "/", or ``layout`` is given.

    Example:
        >>> v = keras.Variable("ones", (2,), name="v")
        >>> v.assign(v * 3)
        <Variable path=v, shape=(2,), dtype=float32, value=[3. 3.]>
    """

    def __init__(
        self,
        initializer: TensorLike | str | Callable[..., Any],
        shape: Any = None,
        dtype: DTypeLike | None = None,
        trainable: bool = True,
        autocast: bool = True,
        aggregation: str | None = "none",
        synchronization: str | None = "auto",
        name: str | None = None,
        layout: Any = None,
    ):
        name = name or unique_name("variable")
        if not isinstance(name, str) or "/" in name:
            raise ValueError(
                f"Variable: name must be a string without '/', got {name!r}"
            )
        if layout is not None:
            raise ValueError(f"Variable: layout is not supported, got {layout!r}")
        kinds = (None, "none", "mean", "sum", "only_first_replica")
        one_of("Variable", "aggregation", aggregation, kinds)
        kinds = (None, "none", "on_read", "on_write", "auto")
        one_of("Variable", "synchronization", synchronization, kinds)
        if isinstance(initializer, str):
            initializer = initializers.get(initializer)
        if callable(initializer):
            initializer = _initialized(initializer, shape, dtype)
        super().__init__(initializer, trainable, name=name, dtype=dtype, shape=shape)
        self.path = name
        self.aggregation: str = aggregation or "none"
        self.synchronization: str = synchronization or "none"
        if not autocast:
            self.autocast = False


def _initialized(initializer, shape, dtype):
    """Return a function without arguments that returns the initial value."""
    if shape is None or None in TensorShape(shape).as_list():
        raise ValueError(
            "Variable: an initializer needs a shape with known sizes, got "
            f"shape={shape!r} for {initializer!r}"
        )
    sizes = tuple(TensorShape(shape).as_list())
    return lambda: initializer(sizes, dtype=dtype or floatx())
