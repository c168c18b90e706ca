"""`vectorized_map`: apply a function of one element to many elements at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tapewright.core import nest
from tapewright.core.dispatch import composite
from tapewright.core.errors import MappingError, ShapeError
from tapewright.core.interpreters import active_interpreters, use_interpreters
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import R, TensorLike, TensorNest
from tapewright.core.variable import next_serial
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import stack
from tapewright.ops.array.shape import broadcast_to
from tapewright.ops.random.sampling import get_global_generator

from .batching import BatchedTensor, BatchInterpreter


@composite
def vectorized_map(
    fn: Callable[[Any], R],
    elems: TensorLike | TensorNest,
    fallback_to_while_loop: bool = True,
    warn: bool = True,
) -> R:
    """Apply ``fn`` to all elements along the first axis at once, and stack the results.

    The ops inside ``fn`` run once for all elements, by their batching rules: as fast as
    code written for a batch. It is differentiable; ``fn`` may use tapes and further
    maps.

    Args:
        fn: Function of one element, nested like ``elems``, that returns any nest of
            tensors; results that do not depend on the element are repeated.
        elems: Tensor, or a nest of tensors whose first axes have one common size, or
            size 1.
        fallback_to_while_loop: If True, a function that cannot be vectorized (because
            it needs values, draws random numbers or assigns to a variable) runs in a
            loop over the elements.
        warn: If True, warn about such a loop.

    Raises:
        ShapeError: If the first axes do not match (a ``ValueError``).
        ValueError: If ``fn`` cannot be vectorized and ``fallback_to_while_loop`` is
            False.

    Example:
        >>> vectors = tw.constant([[1.0, 2.0]])
        >>> tw.vectorized_map(lambda a: a[:, None] * a, vectors).numpy()
        array([[[1., 2.],
                [2., 4.]]], dtype=float32)
    """
    tensors = [convert_to_tensor(x) for x in nest.flatten(elems)]
    count = _common_size(tensors)
    try:
        return _vectorized(fn, elems, tensors, count)
    except MappingError as error:
        why = f"{type(error).__name__}: {error}"
        if not fallback_to_while_loop:
            raise ValueError(
                f"vectorized_map: fn cannot be applied to all elements at once ({why}); "
                "fallback_to_while_loop=True runs it in a loop"
            ) from error
    results = _looped(fn, elems, tensors, count)
    if warn:
        warnings.warn(
            f"vectorized_map: fn runs in a loop over the elements, because {why}",
            stacklevel=user_stacklevel(),
        )
    return results


def _common_size(tensors):
    if not tensors:
        raise ValueError("vectorized_map: elems must contain a tensor, got none")
    for i, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise ShapeError("vectorized_map", "elems must have a first axis",
                             **{f"elems_{i}": tensor})  # fmt: skip
    sizes = []
    for size in [tensor.shape[0] for tensor in tensors]:
        if size not in (1, *sizes):
            sizes.append(size)
    if len(sizes) > 1:
        given = {f"elems_{i}": tensor for i, tensor in enumerate(tensors)}
        raise ShapeError(
            "vectorized_map",
            "the first axes must have the same size, or size 1",
            **given,
        )
    return sizes[0] if sizes else 1


class _Mapper(BatchInterpreter):
    """Batching interpreter of one map."""

    __slots__ = ("start",)
    no_value = (
        "inside vectorized_map a tensor stands for the elements all at once, so it has "
        "no one value to look at"
    )

    def __init__(self):
        super().__init__()
        get_global_generator()  # created before `start`, so that draws are noticed
        self.start = next_serial()

    def before_assign(self, variable, method, key):
        """Reject assignments that would differ between elements, including random draws."""
        if variable._tw_serial < self.start:
            raise MappingError(
                f"the variable '{variable.path}' is assigned to (drawing random numbers "
                "does so, too)"
            )


def _vectorized(fn, elems, tensors, count):
    batcher = _Mapper()
    below = active_interpreters()
    values = [batcher.map(x) if x.shape[0] == count else getitem(x, 0) for x in tensors]
    with use_interpreters((*below, batcher)):
        outputs = fn(nest.pack(elems, values))
        flat = [x if x is None else convert_to_tensor(x) for x in nest.flatten(outputs)]
    results = []
    for x in flat:
        if type(x) is BatchedTensor and x.owner is batcher:
            x = x.value
        elif x is not None:
            x = broadcast_to(x, (count, *x.array.shape))
        results.append(x)
    return nest.pack(outputs, results)


def _looped(fn, elems, tensors, count):
    rows, outputs = [], None
    for i in range(count):
        element = [getitem(x, i if x.shape[0] == count else 0) for x in tensors]
        outputs = fn(nest.pack(elems, element))
        rows.append(nest.flatten(outputs))
    if not rows:
        raise ValueError(
            "vectorized_map: elems must have at least one element, got none"
        )
    results = [
        None if parts[0] is None else stack([convert_to_tensor(x) for x in parts])
        for parts in zip(*rows, strict=True)
    ]
    return nest.pack(outputs, results)
