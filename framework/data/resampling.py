"""Resampling of classes: elements are dropped or repeated for another distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.hardware.devices import to_numpy
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.random.generators import get_global_generator

from .nodes.choosing import mixing
from .nodes.mapping import Filter

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tapewright.core.typing import TensorLike


SMOOTHING = 10.0  # elements of each class that an estimate begins with


def resample(
    dataset: Any,
    class_func: Callable[..., Any],
    target_dist: TensorLike,
    initial_dist: TensorLike | None,
    seed: int | None,
) -> Any:
    """Implement `Dataset.rejection_resample`: a mixture of all and of accepted elements."""
    target = _distribution("target_dist", target_dist)
    classed = dataset.map(lambda *x: (class_func(*x), x[0] if len(x) == 1 else x))
    if initial_dist is None:
        return _with_estimates(classed, target, seed)
    initial = _distribution("initial_dist", initial_dist)
    if len(initial) != len(target):
        raise ValueError(
            "rejection_resample: initial_dist and target_dist must have one entry for each "
            f"class, got {len(initial)} and {len(target)}"
        )
    share, accept = mixing(initial, target)
    if share == 1:
        return classed
    accepted = dataset._new(
        Filter(classed._node, lambda number, _: _is_kept(accept[int(number)]), seed)
    )
    if share == 0:
        return accepted
    return dataset.sample_from_datasets(
        [classed, accepted], [share, 1 - share], seed, stop_on_empty_dataset=True
    )


def _with_estimates(classed, target, seed):
    """Resample by the frequencies of the classes so far."""

    def counted(counts, element):
        counts = counts.numpy()
        counts[int(element[0])] += 1
        share, accept = mixing(counts / counts.sum(), target)
        return counts, (share, accept[int(element[0])], element)

    estimated = classed.scan(np.full(len(target), SMOOTHING), counted)
    accepted = classed._new(
        Filter(estimated._node, lambda share, accept, _: _is_kept(accept), seed)
    )
    return classed.sample_from_datasets(
        [classed, accepted.map(lambda share, accept, element: element)],
        estimated.map(lambda share, *_: np.array([share, 1 - share])),
        seed,
        stop_on_empty_dataset=True,
    )


def _is_kept(probability):
    return get_global_generator().uniform([]) < float(probability)


def _distribution(name, values):
    array = to_numpy(convert_to_tensor(values).array).astype(np.float64)
    if array.ndim != 1 or not (array >= 0).all() or abs(array.sum() - 1) > 1e-3:
        raise ValueError(
            f"rejection_resample: {name} must be the probability of each class, got {values!r}"
        )
    return array
