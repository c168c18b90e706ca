"""Types of the parameters of public functions, and of the decorators that define ops.

In the signature of a kernel these types also distinguish inputs from attributes: a
parameter of type ``TensorLike`` (or without a type) is an input, any other an
attribute. The function in the ``Annotated`` type of an attribute converts it to a plain
value, which can be compared, saved in files and written into traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    Union,
    overload,
)

from .dtypes import as_dtype
from .errors import MappingError, TracingError
from .shapes.symbolic_shape import as_size
from .shapes.tensor_shape import UnrankedShape

if TYPE_CHECKING:
    import numpy as np

    from .dtypes import DType
    from .primitive import Primitive
    from .shapes.tensor_shape import TensorShape
    from .tensor import Tensor

# -------------------------------------------------------- conversion of attributes


def as_axes(value: Any) -> int | tuple[int, ...] | None:
    """Convert None, an axis or several axes to plain ints."""
    if value is None or type(value) is int:
        return value
    try:
        if isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0):
            return tuple([as_size(axis) for axis in value])
        return as_size(value)
    except (MappingError, TracingError):
        raise
    except TypeError:
        raise TypeError(f"axes must be integers, got {value!r}") from None


_INT = {int}


def as_shape(value: Any) -> tuple[int, ...]:
    """Convert a mixture of ints, tensors and arrays to a tuple of plain ints."""
    if type(value) is int:
        return (value,)
    if type(value) is tuple and {*map(type, value)} <= _INT:
        return value
    if isinstance(value, UnrankedShape):
        return value
    try:
        if getattr(value, "ndim", None) == 0 or not hasattr(value, "__iter__"):
            return (as_size(value),)
        return tuple([_as_listed_size(n) for n in value])
    except (MappingError, TracingError):
        raise
    except TypeError:
        raise TypeError(f"must contain integers, got {value!r}") from None


def _as_listed_size(n):
    """Convert a size in a list, also an integral float of rank 0 as from `ceil`."""
    try:
        return as_size(n)
    except TracingError:
        raise
    except TypeError:
        if getattr(n, "ndim", None) == 0 and float(n).is_integer():
            return int(n)
        raise


def as_int(value: Any) -> int:
    """Convert a NumPy integer or an integer tensor of rank 0 to a plain int."""
    try:
        return as_size(value)
    except (MappingError, TracingError):
        raise
    except TypeError:
        raise TypeError(f"must be an integer, got {value!r}") from None


def dtype_name(value: Any) -> str | None:
    """Return the name of a dtype."""
    return None if value is None else as_dtype(value).name


def converter_of(annotation: Any) -> Callable[[Any], Any] | None:
    """Return the function that converts an attribute of this type, or None."""
    if annotation is int:
        return as_int
    if annotation in (bool, float, str):
        return annotation
    return getattr(annotation, "__metadata__", (None,))[0]


# -------------------------------------------------------------------------- values


class SupportsTensor(Protocol):
    """Objects that represent a tensor: Variable, IndexedSlices."""

    def __tensor__(self) -> Tensor: ...


class SupportsArray(Protocol):
    """Objects that convert to an array: Tensor, NumPy scalars, pandas Series."""

    def __array__(self) -> Array: ...


# The result of `Tensor.numpy`; of rank 0 it is a NumPy scalar, which is used like an array.
Array: TypeAlias = "np.ndarray[Any, Any]"
# Anything that `convert_to_tensor` takes.
TensorLike: TypeAlias = (
    SupportsTensor | SupportsArray | complex | str | bytes | Sequence["TensorLike"]
)

# A tensor or variable, or any nest of them.
TensorNest: TypeAlias = Union[
    "Tensor",
    SupportsTensor,
    Sequence["TensorNest"],
    Mapping[Any, "TensorNest"],
    None,
]
# The gradient by one source. Any stands for IndexedSlices (from `gather`) and for None (the
# target does not depend on the source), so that users need not narrow the type at each use.
Gradient: TypeAlias = Union["Tensor", Any]

IntLike: TypeAlias = Annotated[SupportsIndex, as_int]
Axis: TypeAlias = Annotated[SupportsIndex, as_axes]
Axes: TypeAlias = Annotated[
    SupportsIndex | Sequence[SupportsIndex] | SupportsArray | None, as_axes
]
ShapeLike: TypeAlias = Annotated[
    SupportsIndex | Sequence[SupportsIndex] | SupportsArray, as_shape
]
# The shape of a spec or placeholder; None is an unknown rank or dimension.
StaticShapeLike: TypeAlias = Union[
    "TensorShape", Sequence[SupportsIndex | None], SupportsIndex, None
]
# The shape of the inputs of a layer; None is an unknown dimension.
Shape: TypeAlias = tuple[int | None, ...]
# One size for all spatial axes, or one for each.
Sizes: TypeAlias = int | Sequence[int]
DTypeLike: TypeAlias = Annotated[
    Union["DType", str, type[Any], "np.dtype[Any]"], dtype_name
]


# --------------------------------------------------------------------- decorators

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Rule = TypeVar("Rule", bound=Callable[..., Any])

# ``kernel(xp, inputs..., attributes...)``
Kernel: TypeAlias = Callable[Concatenate[Any, P], Any]


class Op(Protocol[P, R_co]):
    """Op as called by users: with the parameters of its kernel, by position or name.

    It also accepts ``name``, which it ignores.
    """

    @property
    def primitive(self) -> Primitive: ...

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, name: str | None, **kwargs: Any) -> R_co: ...

    # Decorators of its rules, as `Primitive` has them.
    def vjp(self, *inputs: str) -> Callable[[Rule], Rule]: ...
    def infer(self, rule: Rule) -> Rule: ...
    def batch(self, rule: Rule) -> Rule: ...
    def batch_arrays(self, rule: Rule) -> Rule: ...
    def densify(self, rule: Rule) -> Rule: ...
    def confluent(self, rules: tuple[Rule, Rule, str]) -> None: ...
    def diagonal(self, rule: Rule) -> Rule: ...
    def kernel_for(self, module_name: str) -> Callable[[Rule], Rule]: ...
    def no_gradient(self, *inputs: str) -> None: ...
