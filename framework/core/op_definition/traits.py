"""`Traits`: the options of `primitive`, by which an op declares facts about itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from ..dtypes import DType
    from ..primitive import Primitive

# Makes a rule of `rules` for an op.
RuleMaker: TypeAlias = "Callable[[Primitive], Callable[..., Any]]"


class Traits(TypedDict, total=False):
    """Options of an op; `primitive` explains each, and `primitive.py` has the defaults."""

    name: str | None
    type_name: str | None
    # Inputs and outputs.
    broadcasts: bool
    same_dtype: tuple[str, ...]
    takes_none: bool
    kinds: str | None
    floating: bool
    half: bool
    # Rules that many ops share.
    infer: RuleMaker | None
    batch: RuleMaker | None
    diagonal: RuleMaker | None
    no_gradient: bool | Sequence[str]
    # What interpreters and the compiler may rely on.
    linear: bool | Literal["each"] | Sequence[Collection[str]]
    commutative: bool
    moves: bool
    exact: bool
    view: bool
    new_memory: bool
    keeps_c_order: bool
    may_raise: bool | str
    ignores_float_errors: bool
    sizes: bool
    grows: bool
    strict: bool
    cost: tuple[int, int] | Callable[..., Any]
    stable_form: str | None
    collective: bool


class ElementwiseTraits(Traits, total=False):
    """Options of `rules.elementwise`."""

    zero_when: Sequence[set[str]]
    result_dtype: DType | Callable[[DType], DType] | None
