"""Element-wise ops of ragged tensors, with ragged tensors of the same rows and tensors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.shapes.symbolic_operand import FunctionOverride
from tapewright.core.tensor import convert_to_tensor

from ..array.conversion import cast
from ..array.gather import gather
from ..array.shape import reshape
from .ragged_rows import RaggedRows
from .row_splits import check_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = TypeVar("Rows", bound=RaggedRows)

# op -> rule(inputs, attributes) for ops that are not entry by entry; see `rules.py` and
# `axis_rules.py`.
OP_RULES: dict[Any, Any] = {}
# function -> rule(*args, **kwargs), for functions of several ops; see `function_rules.py`.
FUNCTION_RULES: dict[Any, Any] = {}


def _loaded(table):
    """Return a table of rules, filled by files that build on this one."""
    for name in ("rules", "axis_rules", "function_rules"):
        import_module(f"tapewright.ops.ragged.{name}")
    return table


class OpMethods(FunctionOverride, RaggedRows):
    """See `RaggedTensor`."""

    __slots__ = ()

    def _tw_apply_op(self, op: Any, inputs: Sequence[Any], attributes: Any) -> Any:
        """Apply an op element-wise to the flat values; for other ops, see `rules.py`.

        Raises:
            TypeError: If the op has no rule for ragged tensors.
            ValueError: If the rows of two ragged tensors differ, or a tensor does not
                broadcast.
        """
        rule = _loaded(OP_RULES).get(op)
        if rule is not None:
            return rule(op, inputs, attributes)
        if not op.elementwise:
            raise self._refusal(op.name)
        like = next(x for x in inputs if isinstance(x, RaggedRows))._unpacked()
        others = [x for x in inputs if isinstance(x, RaggedRows)]
        for x in others[1:]:
            like = same_splits(op.name, like, x)
        flat = [like._flat_of(op.name, x) for x in inputs]
        return like.with_flat_values(op.general(flat, attributes))

    def _tw_record_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Apply the rule of a composite function; see `dispatch.composite`.

        Args:
            function: The composite function.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            TypeError: If the function has no rule for ragged tensors.
        """
        rule = _loaded(FUNCTION_RULES).get(function)
        if rule is None:
            raise self._refusal(function.__name__)
        return rule(*args, **kwargs)

    def _flat_of(self, who, x):
        """Return an input as flat values, or as a tensor that broadcasts to them."""
        if isinstance(x, RaggedRows):
            return x.flat_values
        if isinstance(x, CompositeTensor):
            raise TypeError(
                f"{who}: cannot combine a RaggedTensor with a {type(x).__name__}"
            )
        rank = np.ndim(x) if not hasattr(x, "shape") else len(x.shape)
        own, depth = self.shape.rank, self.ragged_rank
        if rank <= own - depth - 1:
            return x  # a number, or along the axes behind the ragged ones
        x = convert_to_tensor(x, dtype_hint=self.dtype)
        sizes = [1] * (own - rank) + list(x.shape)
        outer = sizes[: depth + 1]
        rows = self._tw_row_count
        if depth > 1 and any([n != 1 for n in outer]) or (
            depth == 1 and (sizes[1] != 1 or sizes[0] not in (1, rows))
        ):  # fmt: skip
            raise InvalidArgumentError(
                f"{who}: a tensor of shape {x.shape} does not broadcast to the rows of a "
                f"RaggedTensor of shape {self.shape}: its size must be 1 along ragged axes"
            )
        if outer[0] == 1:
            return reshape(x, sizes[depth + 1 :])
        return gather(reshape(x, [rows, *sizes[2:]]), self.value_rowids())


def same_splits(who: str, x: Rows, y: RaggedRows) -> Rows:
    """Return ``x``, after a check that it has the rows of ``y``.

    Raises:
        InvalidArgumentError: If the rows differ.
    """
    x, y = x._unpacked(), y._unpacked()
    if x.ragged_rank != y.ragged_rank:
        raise InvalidArgumentError(
            f"{who}: the RaggedTensors must have the same number of ragged axes, got "
            f"{x.ragged_rank} and {y.ragged_rank}"
        )
    splits = []
    for a, b in zip(x.nested_row_splits, y.nested_row_splits):
        if a is not b:
            b = cast(b, a.dtype)
            a = check_equal(a, b, f"{who}: the rows of two RaggedTensors must have the "
                             "same lengths")  # fmt: skip
        splits.append(a)
    return x._tw_with_components([x.flat_values, *splits])
