"""Loops along the first axis of tensors: `map_fn`, `scan`, `foldl`, `foldr`.

Outside traced functions they are Python loops. Inside, they are `LoopNode` nodes; a few
rows are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapewright.core.composite import CompositeTensor
from tapewright.core.dispatch import composite
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import ShapeError, TracingError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.nest import assert_same_structure, flatten, pack
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.typing import R, TensorLike, TensorNest
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import concat, stack
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.ragged.construction import stack as ragged_stack
from tapewright.ops.ragged.elementwise import FUNCTION_RULES
from tapewright.ops.ragged.ragged_tensor import RaggedTensorSpec

from ..tracing.graph import Graph, spec_of
from ..tracing.tracer import Tracer
from .loop_node import LoopTrace
from .regions import any_traced, describe_tensor, traced_or_none
from .tensor_array import TensorArray, as_tensors, stop_gradients

# The most rows that are unrolled.
UNROLLED_ROWS = 4


@composite
def map_fn(
    fn: Callable[[Any], R],
    elems: TensorLike | TensorNest,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> R:
    """Apply ``fn`` to each row along the first axis and stack the results.

    Rows are processed one after another. `tw.vectorized_map` calls each op once for all
    rows, which is faster.

    The rows of a `tw.RaggedTensor` become a ragged tensor again, unless the results are
    scalars or a dtype is given; this is not supported in traced functions.

    Args:
        fn: Function of a row, in the structure of ``elems``; it may return another
            structure.
        elems: Tensor or nest of tensors with the same size of the first axis.
        dtype: Older name of ``fn_output_signature``.
        parallel_iterations: Ignored.
        back_prop: If False, no gradient flows through the result.
        swap_memory: Ignored.
        infer_shape: Ignored.
        fn_output_signature: Dtypes or `tw.TensorSpec` in the structure of the result,
            against which it is checked; a `tw.RaggedTensorSpec` for results of
            different lengths.

    Shapes:
        ``elems`` ``[n, ...]``, result ``[n, ...]`` with the shape that ``fn`` returns.

    Returns:
        The stacked results, in the structure that ``fn`` returns.

    Raises:
        TypeError: If a result is not a tensor or has a different dtype.
        ValueError: If the sizes of the first axes differ, or if a result has a different
            shape.

    Example:
        >>> tw.map_fn(lambda x: x * x, tw.convert_to_tensor([1, 2, 3])).numpy()
        array([1, 4, 9], dtype=int32)
    """
    signature = dtype if fn_output_signature is None else fn_output_signature
    if isinstance(signature, RaggedTensorSpec):
        return ragged_stack([fn(row) for row in convert_to_tensor(elems)])
    rows = _Rows("map_fn", elems)
    structure = []

    def step(state, row):
        result = fn(row)
        structure[:] = [result]
        return [], _typed(result, signature)

    _, stacks = rows.run(step, [], reverse=False, stacked=True)
    results = pack(structure[0], stacks, True)
    return results if back_prop else stop_gradients(results)


def _map_ragged(fn, elems, dtype=None, *args, fn_output_signature=None, **kwargs):
    """`map_fn` of the rows of a ragged tensor."""
    signature = dtype if fn_output_signature is None else fn_output_signature
    results = [fn(row) for row in elems]
    is_ragged = isinstance(signature, RaggedTensorSpec)
    if is_ragged or (signature is None and results and results[0].shape.rank):
        return ragged_stack(results)
    return stack([_typed(result, signature)[0] for result in results])


FUNCTION_RULES[map_fn.__wrapped__] = _map_ragged


def _rows_of(who, result):
    """Return the leaves of a result, rows of stacks; raise ``TypeError`` for other types."""
    for x in flatten(result):
        if isinstance(x, CompositeTensor) and not isinstance(x, TensorArray):
            raise TypeError(
                f"{who}: fn must return tensors, got a {type(x).__name__}, which "
                "cannot be stacked; return its to_dense() or to_tensor(), or its "
                "components"
            )
    return flatten(result, expand_composites=True)


def _typed(result, signature):
    """Convert leaves to tensors with the dtypes of a signature."""
    leaves = _rows_of("map_fn", result)
    if signature is None:
        return [convert_to_tensor(x) for x in leaves]
    wanted = flatten(signature)
    if len(wanted) != len(leaves):
        raise ValueError(
            f"map_fn: fn_output_signature has {len(wanted)} entries, but fn returns "
            f"{len(leaves)} tensors"
        )
    tensors = []
    for x, spec in zip(leaves, wanted):
        kind = spec.dtype if isinstance(spec, TensorSpec) else as_dtype(spec)
        x = convert_to_tensor(x, dtype=kind)
        if isinstance(spec, TensorSpec) and not spec.shape.is_compatible_with(x.shape):
            raise ShapeError("map_fn", f"fn must return shape {spec.shape}", result=x)
        tensors.append(x)
    return tensors


def scan(
    fn: Callable[[Any, Any], R],
    elems: TensorLike | TensorNest,
    initializer: TensorLike | TensorNest = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> R:
    """Scan ``fn`` along the first axis: stack all values of ``a = fn(a, row)``.

    Args:
        fn: Function ``fn(a, row)`` that returns the next ``a``.
        elems: Tensor or nest of tensors with the same size of the first axis.
        initializer: Initial value of ``a``; None uses the first row, which is then also
            the first result.
        parallel_iterations: Ignored.
        back_prop: If False, no gradient flows through the result.
        swap_memory: Ignored.
        infer_shape: Ignored.
        reverse: If True, scan from the last row to the first; results stay at the
            positions of their rows.

    Shapes:
        ``elems`` ``[n, ...]``, result ``[n, ...]`` with the shape of ``a``.

    Returns:
        All values of ``a``, stacked, in the structure of ``a``.

    Raises:
        ValueError: If ``fn`` returns a different structure than ``a``, or if there are
            no rows and no ``initializer``.

    Example:
        >>> tw.scan(lambda a, x: a + x, tw.convert_to_tensor([1, 2, 3])).numpy()
        array([1, 3, 6], dtype=int32)
    """
    _, stacks, like = _accumulated("scan", fn, elems, initializer, reverse, True)
    results = pack(like, stacks, True)
    return results if back_prop else stop_gradients(results)


def foldl(
    fn: Callable[[Any, Any], R],
    elems: TensorLike | TensorNest,
    initializer: TensorLike | TensorNest = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> R:
    """Reduce ``elems`` from the first row to the last: ``a = fn(a, row)``.

    Args:
        fn: Function ``fn(a, row)`` that returns the next ``a``.
        elems: Tensor or nest of tensors with the same size of the first axis.
        initializer: Initial value of ``a``; None uses the first row.
        parallel_iterations: Ignored.
        back_prop: If False, no gradient flows through the result.
        swap_memory: Ignored.

    Returns:
        The last value of ``a``.

    Raises:
        ValueError: If there are no rows and no ``initializer``.

    Example:
        >>> tw.foldl(lambda a, x: a * 10 + x, tw.convert_to_tensor([1, 2, 3])).numpy()
        np.int32(123)
    """
    last, _, like = _accumulated("foldl", fn, elems, initializer, False, False)
    result = pack(like, last, True)
    return result if back_prop else stop_gradients(result)


def foldr(
    fn: Callable[[Any, Any], R],
    elems: TensorLike | TensorNest,
    initializer: TensorLike | TensorNest = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> R:
    """Reduce ``elems`` from the last row to the first: ``a = fn(a, row)``.

    Args:
        fn: Function ``fn(a, row)`` that returns the next ``a``.
        elems: Tensor or nest of tensors with the same size of the first axis.
        initializer: Initial value of ``a``; None uses the last row.
        parallel_iterations: Ignored.
        back_prop: If False, no gradient flows through the result.
        swap_memory: Ignored.

    Returns:
        The last value of ``a``.

    Raises:
        ValueError: If there are no rows and no ``initializer``.

    Example:
        >>> tw.foldr(lambda a, x: a * 10 + x, tw.convert_to_tensor([1, 2, 3])).numpy()
        np.int32(321)
    """
    last, _, like = _accumulated("foldr", fn, elems, initializer, True, False)
    result = pack(like, last, True)
    return result if back_prop else stop_gradients(result)


def carry_along(fn, carry, elems, reverse=False):
    """Return the last ``carry`` and the results of ``carry, result = fn(carry, row)``.

    The results are stacked. This is JAX's ``scan``: ``fn`` keeps the structure, shapes
    and dtypes of ``carry``; its result is any nest of tensors.

    Example:
        >>> from tapewright.compiler.control_flow.map_fn import carry_along
        >>> from tapewright import constant
        >>> last, sums = carry_along(lambda c, x: (c + x, c * x), 0, constant([1, 2, 3]))
        >>> last.numpy(), sums.numpy()
        (np.int32(6), array([0, 2, 9], dtype=int32))
    """
    rows = _Rows("scan", elems)
    like, structure = as_tensors([carry])[0], []

    def step(state, row):
        after, result = fn(pack(like, state, True), row)
        assert_same_structure([like], [after])
        structure[:] = [as_tensors([result])[0]]
        return _next_state(after, state), _rows_of("scan", structure[0])

    last, stacks = rows.run(step, flatten(like, True), reverse, stacked=True)
    return pack(like, last, True), pack(structure[0], stacks, True)


def _accumulated(who, fn, elems, initializer, reverse, stacked):
    """Return the last state, the stacks of all states, and the structure of a state."""
    rows = _Rows(who, elems)
    first = None
    if initializer is None:
        if not rows.count:
            raise ValueError(f"{who}: elems has no rows: pass an initializer")
        first = rows.take_end(reverse)
        initializer = first
    like = as_tensors([initializer])[0]

    def step(state, row):
        result = fn(pack(like, state, True), row)
        try:
            assert_same_structure([like], [result])
        except ValueError:
            raise ValueError(
                f"{who}: fn must return the structure of the initializer, got\n"
                f"  initializer: {like!r}\n  fn: {result!r}"
            ) from None
        state = _next_state(result, state)
        return state, _rows_of(who, pack(like, state, True)) if stacked else []

    last, stacks = rows.run(step, flatten(like, True), reverse, stacked)
    if stacked and first is not None:
        stacks = [_prepend(x, y, reverse) for x, y in zip(flatten(first, True), stacks)]
    return last, stacks, like


def _next_state(result, state):
    """Convert the leaves of a result to tensors; numbers get the dtypes of a state."""
    pairs = zip(flatten(result, True), state)
    return [convert_to_tensor(x, dtype_hint=old.dtype) for x, old in pairs]


def _prepend(first, rows, reverse):
    first = expand_dims(first, 0)
    return concat([rows, first] if reverse else [first, rows], 0)


class _Rows:
    """The rows of ``elems``, and a loop over them."""

    def __init__(self, who, elems):
        self.who = who
        self.structure = as_tensors([elems])[0]
        self.tensors = [convert_to_tensor(x) for x in flatten(self.structure)]
        if not self.tensors:
            raise ValueError(f"{who}: elems must hold at least one tensor")
        for i, x in enumerate(self.tensors):
            if not x.ndim:
                raise ShapeError(who, "elems must have at least one axis",
                                 **{f"elems_{i}": x})  # fmt: skip
        self.count = self.tensors[0].array.shape[0]
        if any(x.array.shape[0] != self.count for x in self.tensors):
            given = {f"elems_{i}": x for i, x in enumerate(self.tensors)}
            raise ShapeError(
                who, "elems must have the same size of the first axis", **given
            )

    def take_end(self, reverse):
        """Remove the first row (the last if ``reverse``); return it like ``elems``."""
        at, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
        row = [getitem(x, at) for x in self.tensors]
        self.tensors = [getitem(x, rest) for x in self.tensors]
        self.count = self.count - 1
        return pack(self.structure, row, True)

    def run(self, step, state, reverse, stacked):
        """Return the last state and the stacked results of ``step(state, row)``."""
        many = is_symbolic(self.count) or self.count > UNROLLED_ROWS
        if many and any_traced([*self.tensors, *state]):
            return self.emit_loop(step, state, reverse)
        results = self.try_loop(step, state, reverse) if many else None
        if results is not None:
            return results
        numbers = range(self.count)
        rows = {}
        for i in reversed(numbers) if reverse else numbers:
            row = [getitem(x, i) for x in self.tensors]
            state, rows[i] = step(state, pack(self.structure, row, True))
        if not rows:
            return state, self.empty_stacks(step, state) if stacked else []
        columns = zip(*[rows[i] for i in numbers])
        return state, [stack(list(column)) for column in columns]

    def try_loop(self, step, state, reverse):
        """Emit a `LoopNode`, or return None if ``step`` cannot or need not be traced."""
        if active_tracer() is None:
            return None
        return traced_or_none(self.emit_loop, step, state, reverse, True)

    def empty_stacks(self, step, state):
        """Return stacks without rows, with the shapes and dtypes of a trace."""
        tracer = Tracer(Graph(self.who))
        with use_interpreters((tracer,)):
            row = [tracer.input(x.array.shape[1:], x.array.dtype) for x in self.tensors]
            _, rows = step(state, pack(self.structure, row, True))
        return [zeros((0, *x.array.shape), x.array.dtype) for x in rows]

    def emit_loop(self, step, state, reverse, only_if_traced=False):
        """Emit a `LoopNode`; return its last state and its stacks."""

        def body(state, rows, constants):
            after, stacks = step(state, pack(self.structure, rows, True))
            for i, (x, y) in enumerate(zip(state, after)):
                if spec_of(x) != spec_of(y):
                    raise TracingError(
                        f"{self.who}: fn must keep shapes and dtypes; at position {i} "
                        f"it gets {describe_tensor(x)} and returns {describe_tensor(y)}"
                    )
            return after, [], stacks

        trace = LoopTrace(self.who, body, state, self.tensors)
        node, inputs = trace.node(length=self.count, reverse=reverse)
        if only_if_traced and not (
            node.is_effect or node.variables or any_traced(inputs)
        ):
            return None
        results = trace.emit(node, inputs)
        return results.carried, results.stacked
