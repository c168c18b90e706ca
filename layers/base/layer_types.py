"""Types of arguments shared by many layers, for type checkers only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict

from tapewright.core.tensor import Tensor
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.ops.random.generators import Generator

from ..constraints import Constraint
from ..dtype_policies import DTypePolicy
from ..initializers import Initializer
from ..regularizers import Regularizer

# An object, its name, its config or class, a function that does the same, or None.
ActivationLike: TypeAlias = (
    str | dict[str, Any] | type[Any] | Callable[..., TensorLike] | None
)
InitializerLike: TypeAlias = (
    Initializer
    | str
    | dict[str, Any]
    | type[Any]
    | TensorLike
    | Callable[..., Any]
    | None
)
RegularizerLike: TypeAlias = (
    Regularizer
    | str
    | dict[str, Any]
    | type[Any]
    | Callable[[Tensor], TensorLike]
    | None
)
ConstraintLike: TypeAlias = (
    Constraint
    | str
    | dict[str, Any]
    | type[Any]
    | Callable[[Tensor], TensorLike]
    | None
)
# A policy, its name or config, the name of a dtype or a dtype for both, or None.
DTypePolicyLike: TypeAlias = DTypePolicy | DTypeLike | dict[str, Any] | None
SeedLike: TypeAlias = int | Generator | None


class LayerOptions(TypedDict, total=False):
    """Keyword arguments that every layer passes to `Layer`."""

    name: str | None
    dtype: DTypePolicyLike
    trainable: bool
    autocast: bool
    input_shape: Sequence[int | None]
    input_dim: int
    batch_size: int | None
    batch_shape: Sequence[int | None]
    batch_input_shape: Sequence[int | None]


class RegularizedLayerOptions(LayerOptions, total=False):
    """`LayerOptions` of layers that do not list ``activity_regularizer`` themselves."""

    activity_regularizer: RegularizerLike
