"""Candidate sampling: draw classes as negative examples, and their expected counts.

With ``unique``, no class is drawn twice. TensorFlow rejects classes that were drawn
already, and counts the trials; here the Gumbel-max trick draws classes of the same
distribution at once, and the numbers of trials in between are drawn from their
geometric distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import check_at_least
from tapewright.core.tensor import Tensor, convert_to_tensor, module_of, new_tensor
from tapewright.core.typing import IntLike, TensorLike, as_int

from ..array.conversion import cast
from ..array.creation import ones
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.sorting import searchsorted, top_k
from ..math.comparison import equal, where
from ..math.elementwise import expm1, floor, log, log1p, minimum
from ..math.reduction import reduce_any, reduce_sum
from ..math.scan import cumsum
from .distributions import checked_bounds, draw_uniform
from .generators import one_stream


class SampledCandidates(NamedTuple):
    """Result of a candidate sampler."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: IntLike,
    num_sampled: IntLike,
    unique: bool,
    range_max: IntLike,
    seed: IntLike | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Sample ``num_sampled`` classes uniformly from 0 to ``range_max - 1``.

    Args:
        true_classes: True classes of each example, integers ``[batch, num_true]``.
        num_true: Number of true classes per example.
        num_sampled: Number of classes to draw.
        unique: If True, no class is drawn twice.
        range_max: Number of classes.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Returns:
        A named tuple of the sampled classes, int64 ``[num_sampled]``, and their
        expected counts in a sample, float32, for the true classes ``[batch, num_true]``
        and the sampled classes ``[num_sampled]``.

    Raises:
        ValueError: If ``unique`` and there are fewer classes than ``num_sampled``.

    Example:
        >>> drawn = tw.random.uniform_candidate_sampler([[0], [3]], 1, 4, True, 4)
        >>> drawn.true_expected_count.shape
        TensorShape([2, 1])
    """
    count = as_int(range_max)
    check_at_least("uniform_candidate_sampler", 1, range_max=count)
    shares = np.full(count, 1.0 / count)
    sizes = num_true, num_sampled
    return _sample(
        "uniform_candidate_sampler", true_classes, *sizes, unique, shares, seed
    )


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: IntLike,
    num_sampled: IntLike,
    unique: bool,
    range_max: IntLike,
    seed: IntLike | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Sample classes from a log-uniform (Zipfian) distribution.

    The probability of class k is ``log((k + 2) / (k + 1)) / log(range_max + 1)``, which
    suits words numbered by decreasing frequency.

    Args:
        true_classes: True classes of each example, integers ``[batch, num_true]``.
        num_true: Number of true classes per example.
        num_sampled: Number of classes to draw.
        unique: If True, no class is drawn twice.
        range_max: Number of classes.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Returns:
        A named tuple of the sampled classes, int64 ``[num_sampled]``, and their
        expected counts in a sample, float32, for the true classes ``[batch, num_true]``
        and the sampled classes ``[num_sampled]``.

    Raises:
        ValueError: If ``unique`` and there are fewer classes than ``num_sampled``.
    """
    count = as_int(range_max)
    check_at_least("log_uniform_candidate_sampler", 1, range_max=count)
    shares = np.log1p(1.0 / np.arange(1, count + 1)) / np.log1p(count)
    sizes = num_true, num_sampled
    who = "log_uniform_candidate_sampler"
    return _sample(who, true_classes, *sizes, unique, shares, seed)


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: IntLike,
    num_sampled: IntLike,
    unique: bool,
    range_max: IntLike,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: IntLike | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Sample classes with probabilities proportional to ``unigrams ** distortion``.

    Args:
        true_classes: True classes of each example, integers ``[batch, num_true]``.
        num_true: Number of true classes per example.
        num_sampled: Number of classes to draw.
        unique: If True, no class is drawn twice.
        range_max: Number of classes: ``num_reserved_ids + len(unigrams)``.
        vocab_file: Not supported; leave it empty.
        distortion: Exponent of the unigram weights; 0 makes all classes equally
            probable.
        num_reserved_ids: Number of classes before the first one of ``unigrams``, which
            are never drawn.
        num_shards: Not supported; leave it at 1.
        shard: Not supported; leave it at 0.
        unigrams: Weight of each class, not negative.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Returns:
        A named tuple of the sampled classes, int64 ``[num_sampled]``, and their
        expected counts in a sample, float32, for the true classes ``[batch, num_true]``
        and the sampled classes ``[num_sampled]``.

    Raises:
        ValueError: If ``unique`` and there are too few classes, or the other arguments
            are invalid.
    """
    who = "fixed_unigram_candidate_sampler"
    if vocab_file or num_shards != 1 or shard:
        raise InvalidArgumentError(
            f"{who}: vocab_file, num_shards and shard are not supported; pass all weights "
            "as unigrams"
        )
    weights = np.asarray(unigrams, np.float64)
    if weights.ndim != 1 or as_int(range_max) != num_reserved_ids + len(weights):
        raise InvalidArgumentError(
            f"{who}: range_max must be num_reserved_ids + len(unigrams), "
            f"{num_reserved_ids} + {len(weights)}, got {range_max}"
        )
    weights = np.concatenate([np.zeros(num_reserved_ids), weights**distortion])
    if not weights.sum() > 0 or (weights < 0).any():
        raise InvalidArgumentError(
            f"{who}: unigrams must not be negative, nor all 0, got {unigrams}"
        )
    shares = weights / weights.sum()
    sizes = num_true, num_sampled
    return _sample(who, true_classes, *sizes, unique, shares, seed)


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: IntLike,
    num_sampled: IntLike,
    unique: bool,
    seed: IntLike | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Return all classes from 0 to ``num_sampled - 1``, each once.

    It serves for tests and small vocabularies.

    Args:
        true_classes: True classes of each example, integers ``[batch, num_true]``.
        num_true: Number of true classes per example.
        num_sampled: Number of classes.
        unique: Ignored, as nothing is drawn.
        seed: Ignored, as nothing is drawn.

    Returns:
        A named tuple of the sampled classes, int64 ``[num_sampled]``, and their
        expected counts in a sample, float32, for the true classes ``[batch, num_true]``
        and the sampled classes ``[num_sampled]``.
    """
    who, count = "all_candidate_sampler", as_int(num_sampled)
    classes = _true_classes(who, true_classes, num_true)
    check_at_least(who, 1, num_sampled=count)
    drawn = arange(count, dtype="int64")
    return SampledCandidates(drawn, ones(classes.shape), ones([count]))


def _true_classes(who, true_classes, num_true):
    classes = convert_to_tensor(true_classes)
    if not classes.dtype.is_integer or classes.shape.rank != 2:
        what = "true_classes must be integers [batch, num_true]"
        raise ShapeError(who, what, true_classes=classes)
    if classes.shape[1] not in (None, as_int(num_true)):
        what = f"true_classes must have num_true={num_true} columns"
        raise ShapeError(who, what, true_classes=classes)
    return classes


def _sample(who, true_classes, num_true, num_sampled, unique, shares, seed):
    classes, count = _true_classes(who, true_classes, num_true), as_int(num_sampled)
    check_at_least(who, 1, num_sampled=count)
    possible = int((shares > 0).sum())
    if unique and count > possible:
        raise InvalidArgumentError(
            f"{who}: {count} unique classes cannot be drawn from {possible}; raise "
            "range_max, or lower num_sampled"
        )
    size = len(shares) + count if unique else count
    bounds = checked_bounds(who, 0, None, "float64")
    numbers = draw_uniform(one_stream(seed), [size], *bounds)
    table = new_tensor(module_of(numbers).asarray(shares))
    if not unique:
        last = len(shares) - 1
        drawn = searchsorted(cumsum(table), numbers, side="right", out_type="int64")
        drawn = minimum(drawn, last)  # where the shares sum up to less than 1
        return _with_counts(drawn, classes, table, lambda p: p * float(count))
    keys = log(table) - log(-log(numbers[: len(shares)]))
    drawn = cast(top_k(keys, count).indices, "int64")
    before = cumsum(gather(table, drawn), exclusive=True)
    waits = floor(log(numbers[len(shares) :]) / log(before))
    trials = reduce_sum(waits) + float(count)

    def expected(p):
        repeated = -expm1(trials * log1p(-p))
        return where(equal(trials, float(count)), p * float(count), repeated)

    return _with_counts(drawn, classes, table, expected)


def _with_counts(drawn, classes, table, expected):
    counts = [
        cast(expected(gather(table, each)), "float32") for each in (classes, drawn)
    ]
    return SampledCandidates(drawn, *counts)


class AccidentalHits(NamedTuple):
    """Result of `compute_accidental_hits`."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: IntLike,
    seed: IntLike | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """Find the positions where a sampled class is a true class of an example.

    Args:
        true_classes: True classes of each example, integers ``[batch, num_true]``.
        sampled_candidates: Sampled classes ``[num_sampled]``.
        num_true: Number of true classes per example.
        seed: Ignored.

    Returns:
        A named tuple of the rows (int32), the positions in ``sampled_candidates``
        (int64), and weights (float32) that mask logits when added, all of one size.

    Example:
        >>> tw.nn.compute_accidental_hits([[5], [1]], [1, 5, 7], 1).ids.numpy()
        array([1, 0])
    """
    classes = _true_classes("compute_accidental_hits", true_classes, num_true)
    hits = where(accidental_hits(classes, convert_to_tensor(sampled_candidates)))
    rows, positions = cast(hits[:, 0], "int32"), hits[:, 1]
    lowest = float(np.finfo(np.float32).min)
    return AccidentalHits(rows, positions, cast(rows * 0, "float32") + lowest)


def accidental_hits(classes, drawn):
    """Return ``[batch, num_sampled]``: whether a sampled class is a true class."""
    drawn = cast(drawn, classes.dtype)
    return reduce_any(equal(classes[:, :, None], drawn), axis=1)
