"""Types in the signatures of public functions, and of the decorators that make ops.

``TensorLike`` and its kin name what a user may pass. In a kernel's signature they say more:
an input is a parameter of type ``TensorLike`` (or one without a type), everything else is
an attribute, and the function in its ``Annotated`` type makes it a plain value, which can
be compared, stored in files and written into traces.
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
from .symbolic_shape import whole

if TYPE_CHECKING:
    import numpy as np

    from .dtypes import DType
    from .primitive import Primitive
    from .tensor import Tensor
    from .tensor_shape import TensorShape

__all__ = [
    "Array",
    "Axes",
    "Axis",
    "DTypeLike",
    "Gradient",
    "IntLike",
    "Kernel",
    "Op",
    "P",
    "R",
    "R_co",
    "Rule",
    "ShapeLike",
    "StaticShapeLike",
    "SupportsArray",
    "TensorLike",
    "TensorNest",
    "as_axes",
    "as_int",
    "as_shape",
    "converter_of",
    "dtype_name",
]


# ------------------------------------------------------- what makes attributes plain


def as_axes(value: Any) -> int | tuple[int, ...] | None:
    """None, one axis or several, as plain ints."""
    if value is None or type(value) is int:
        return value
    try:
        if isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0):
            return tuple([whole(axis) for axis in value])
        return whole(value)
    except (MappingError, TracingError):
        raise
    except TypeError:
        raise TypeError(f"axes must be integers, got {value!r}") from None


def as_shape(value: Any) -> tuple[int, ...]:
    """A tuple of plain ints from any mixture of ints, tensors and arrays."""
    if type(value) is int:
        return (value,)
    if hasattr(
        value, "shape_symbol"
    ):  # a shape of unknown rank, in a trace for all of them
        return value
    try:
        if getattr(value, "ndim", None) == 0 or not hasattr(value, "__iter__"):
            return (whole(value),)
        return tuple([whole(n) for n in value])
    except (MappingError, TracingError):
        raise
    except TypeError:
        raise TypeError(f"must be made of integers, got {value!r}") from None


def as_int(value: Any) -> int:
    """A plain int from anything that is one: an int of NumPy, a tensor of rank 0."""
    try:
        return whole(value)
    except (MappingError, TracingError):
        raise
    except TypeError:
        raise TypeError(f"must be an integer, got {value!r}") from None


def dtype_name(value: Any) -> str | None:
    """The name of a dtype."""
    return None if value is None else as_dtype(value).name


def converter_of(annotation: Any) -> Callable[[Any], Any] | None:
    """The function that makes an attribute of this type a plain value, or None."""
    if annotation is int:
        return as_int
    if annotation in (bool, float, str):
        return annotation
    return getattr(annotation, "__metadata__", (None,))[0]


# -------------------------------------------------------------------------- values


class SupportsTensor(Protocol):
    """Stands for a tensor: a Variable, IndexedSlices."""

    def __tensor__(self) -> Tensor: ...


class SupportsArray(Protocol):
    """Converts to a NumPy array: a Tensor, an array, a NumPy scalar, a pandas Series."""

    def __array__(self) -> Array: ...


# What `Tensor.numpy` gives; where the rank is 0 a NumPy scalar, which is used like one.
Array: TypeAlias = "np.ndarray[Any, Any]"
# What `convert_to_tensor` takes.
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
# Of one source. Any stands for IndexedSlices, from `gather`, and for None, of what does not
# depend on the source: checks at each use would help nobody.
Gradient: TypeAlias = Union["Tensor", Any]

IntLike: TypeAlias = Annotated[SupportsIndex, as_int]
Axis: TypeAlias = Annotated[SupportsIndex, as_axes]
Axes: TypeAlias = Annotated[
    SupportsIndex | Sequence[SupportsIndex] | SupportsArray | None, as_axes
]
ShapeLike: TypeAlias = Annotated[
    SupportsIndex | Sequence[SupportsIndex] | SupportsArray, as_shape
]
# The shape of a spec or placeholder, None where it is not known.
StaticShapeLike: TypeAlias = Union[
    "TensorShape", Sequence[SupportsIndex | None], SupportsIndex, None
]
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
    """An op as users call it: the parameters of its kernel, by position or name.

    ``name`` is taken besides, and ignored.
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
    def diagonal(self, rule: Rule) -> Rule: ...
    def kernel_for(self, module_name: str) -> Callable[[Rule], Rule]: ...
    def no_gradient(self, *inputs: str) -> None: ...
