"""Non-maximum suppression: of overlapping boxes, keep those with the highest scores.

A single op selects a fixed number of boxes, so that it can be traced; functions that
return only the boxes found cut the result off. There is no gradient.
"""

from __future__ import annotations

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, MappingError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, check_at_least
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.joining import pad
from ..array.shape import broadcast_to, expand_dims, reshape, transpose
from ..array.sorting import top_k
from ..math.comparison import less, where
from ..math.elementwise import clip_by_value, floordiv, minimum, nextafter
from ..math.reduction import reduce_sum

__all__ = [
    "combined_non_max_suppression",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
]


# ------------------------------------------------------------------------------- the op


def _selected(xp, overlap, scores, limits, count):
    """Return indices and scores of the selected entries, ``[..., count]``, and their count.

    ``overlap(i)`` returns the overlap of each entry with entry ``i``, ``[..., n]``.
    ``limits`` has the overlap above which another entry is dropped, the score that an
    entry must exceed, and the sigma of Soft-NMS (which drops no entry for its overlap)
    or 0.
    """
    at_most, above, sigma = (x[..., None] for x in limits)
    lost = xp.asarray(-np.inf, scores.dtype)
    scores = xp.where(scores > above, scores, lost)  # not NaN
    soft = sigma > 0
    is_hard = xp is np and not soft.any()  # a GPU would have to wait
    rate = xp.where(soft, -0.5 / xp.where(soft, sigma, 1), 0).astype(scores.dtype)
    numbers = xp.arange(scores.shape[-1])
    indices = xp.zeros((*scores.shape[:-1], count), xp.int32)
    chosen = xp.full(indices.shape, lost, scores.dtype)
    for i in range(min(count, scores.shape[-1])):
        best = scores.argmax(axis=-1)[..., None]  # of equals the first
        chosen[..., i : i + 1] = xp.take_along_axis(scores, best, axis=-1)
        indices[..., i : i + 1] = best
        if xp is np and (chosen[..., i] == lost).all():
            break
        overlaps = overlap(best)
        gone = overlaps > at_most
        if not is_hard:
            weakened = scores * xp.exp(rate * overlaps * overlaps)
            gone = xp.where(soft, weakened <= above, gone)
            scores = xp.where(soft & (scores != lost), weakened, scores)
        scores = xp.where(gone | (numbers == best), lost, scores)
    exist = chosen != lost
    total = exist.sum(axis=-1).astype(xp.int32)
    return xp.where(exist, indices, 0), xp.where(exist, chosen, 0), total


def _batch(op):
    def _(mapped, inputs, scores, *limits, **attributes):
        inputs, scores, *limits = all_mapped(mapped, (inputs, scores, *limits))
        ones = (1,) * (scores.array.ndim - 2)
        limits = [reshape(x, (x.array.shape[0], *ones)) for x in limits]
        return op.entry(inputs, scores, *limits, **attributes)

    return _


# Decorator: an op that selects at most ``count`` entries by ``scores`` ``[..., n]``.
_suppression = primitive(
    multiple=True, no_gradient=True, ignores_float_errors=True, kinds="f", batch=_batch,
)  # fmt: skip


@_suppression
def suppress_boxes(
    xp,
    boxes: TensorLike,
    scores: TensorLike,
    iou_threshold: TensorLike,
    score_threshold: TensorLike,
    sigma: TensorLike,
    count: int,
    epsilon: float = 0.0,
):
    """Select boxes ``[..., n, 4]``, no two of which overlap by more than ``iou_threshold``.

    The overlap is the intersection divided by the sum of union and ``epsilon``.
    """
    if boxes.shape[-2:] != (*scores.shape[-1:], 4):
        raise ValueError("shapes do not fit")  # `infer` says it better
    boxes = xp.ascontiguousarray(xp.swapaxes(boxes, -1, -2))
    first, second = boxes[..., :2, :], boxes[..., 2:, :]
    low, high = xp.minimum(first, second), xp.maximum(first, second)
    sides = high - low
    area = sides[..., :1, :] * sides[..., 1:, :]
    corners = xp.concatenate([low, high, area], axis=-2)

    def overlap(best):
        best = xp.broadcast_to(best[..., None], (*corners.shape[:-1], 1))
        its = xp.take_along_axis(corners, best, axis=-1)
        shared = xp.minimum(high, its[..., 2:4, :]) - xp.maximum(low, its[..., :2, :])
        shared = xp.maximum(shared, 0)
        both = shared[..., 0, :] * shared[..., 1, :]
        full = (area[..., 0, :] > 0) & (its[..., 4, :] > 0)
        union = area[..., 0, :] + its[..., 4, :] - both + epsilon
        return xp.where(full, both / xp.where(full, union, 1), 0)

    limits = iou_threshold, score_threshold, sigma
    return _selected(xp, overlap, scores, limits, count)


@suppress_boxes.infer
def _(boxes, scores, iou_threshold, score_threshold, sigma, count, epsilon):
    rank = scores.shape.rank
    fits = boxes.shape.rank == rank + 1 and rank and agree(boxes.shape[-1], 4)
    if not fits or not all(map(agree, boxes.shape[:-1], scores.shape)):
        raise ShapeError("non_max_suppression", "boxes must be [..., n, 4] and scores "
                         "[..., n]", boxes=boxes, scores=scores)  # fmt: skip
    return _found(scores, count)


def _found(scores, count):
    check_at_least("non_max_suppression", 0, max_output_size=count)
    lead = tuple(scores.shape)[:-1]
    return (
        TensorSpec((*lead, count), dtypes.int32),
        TensorSpec((*lead, count), scores.dtype),
        TensorSpec(lead, dtypes.int32),
    )


@_suppression
def suppress_overlaps(
    xp,
    overlaps: TensorLike,
    scores: TensorLike,
    overlap_threshold: TensorLike,
    score_threshold: TensorLike,
    count: int,
):
    """`suppress_boxes` with given ``overlaps`` ``[..., n, n]``."""
    if overlaps.shape != (*scores.shape, *scores.shape[-1:]):
        raise ValueError("shapes do not fit")  # `infer` says it better

    def overlap(best):
        at = xp.broadcast_to(best[..., None], (*scores.shape, 1))
        return xp.take_along_axis(overlaps, at, axis=-1)[..., 0]

    limits = overlap_threshold, score_threshold, xp.zeros((), scores.dtype)
    return _selected(xp, overlap, scores, limits, count)


@suppress_overlaps.infer
def _(overlaps, scores, overlap_threshold, score_threshold, count):
    dims = tuple(scores.shape)
    fits = overlaps.shape.rank == len(dims) + 1 and dims
    if not fits or not all(map(agree, overlaps.shape, (*dims, dims[-1]))):
        raise ShapeError("non_max_suppression_overlaps", "overlaps must be [n, n] and "
                         "scores [n]", overlaps=overlaps, scores=scores)  # fmt: skip
    return _found(scores, count)


@primitive(name="non_max_suppression", same_dtype=(), no_gradient=True, view=True)
def _cut_off(xp, values: TensorLike, count: TensorLike):
    """Return the first ``count`` entries."""
    return values[: int(count)]


@_cut_off.infer
def _(values, count):
    return TensorSpec([None], values.dtype)


@_cut_off.batch
def _(mapped, values, count):
    raise MappingError(
        "non_max_suppression: the number of boxes differs between mapped values; use "
        "non_max_suppression_padded"
    )


# --------------------------------------------------------------------- of a list of boxes


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Non-maximum suppression (NMS): the indices of the best boxes that do not overlap.

    Boxes are selected in the order of their scores. A box is dropped if its
    intersection with a selected box is more than ``iou_threshold`` of their union. Of
    equal scores, the first is selected.

    Args:
        boxes: Boxes ``[n, 4]``, each ``[y1, x1, y2, x2]`` with any two opposite
            corners.
        scores: Score of each box, ``[n]``.
        max_output_size: Largest number of boxes to select.
        iou_threshold: Largest intersection over union (IoU) of a box with a selected
            one.
        score_threshold: Only boxes with a score above it are selected.

    Shapes:
        ``boxes`` ``[n, 4]``, ``scores`` ``[n]``, result ``[m]``, int32, with
        ``m <= max_output_size``. In traced functions, where ``m`` is unknown, use
        `non_max_suppression_padded`.

    Raises:
        ShapeError: If the shapes are invalid.
        ValueError: If ``max_output_size`` is negative.

    Example:
        >>> boxes = [[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]
        >>> tw.image.non_max_suppression(boxes, [0.5, 0.9, 0.7], 3).numpy()
        array([1, 2], dtype=int32)
    """
    selected = _of_boxes(
        "non_max_suppression", boxes, scores, max_output_size, iou_threshold,
        score_threshold,
    )  # fmt: skip
    return _cut_off(selected[0], selected[2])


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """`non_max_suppression` that also returns the scores of the selected boxes; Soft-NMS.

    With ``soft_nms_sigma`` above 0, a selected box multiplies the scores of the others
    by ``exp(-overlap ** 2 / (2 * soft_nms_sigma))``, and ``iou_threshold`` is ignored.

    Args:
        boxes: Boxes ``[n, 4]``, each ``[y1, x1, y2, x2]`` with any two opposite
            corners.
        scores: Score of each box, ``[n]``.
        max_output_size: Largest number of boxes to select.
        iou_threshold: Largest intersection over union (IoU) of a box with a selected
            one.
        score_threshold: Only boxes with a score above it are selected.
        soft_nms_sigma: Sigma of Soft-NMS, or 0 for plain suppression.

    Returns:
        ``(selected_indices, selected_scores)``, both ``[m]``.

    References:
        Bodla et al., "Soft-NMS" (2017).

    Example:
        >>> boxes, scores = [[0, 0, 1, 1], [0, 0, 1, 0.5]], [0.9, 0.8]
        >>> found = tw.image.non_max_suppression_with_scores(boxes, scores, 2, 1.0, 0.0, 0.5)
        >>> found[1].numpy().round(3)
        array([0.9  , 0.623], dtype=float32)
    """
    indices, kept, count = _of_boxes(
        "non_max_suppression_with_scores", boxes, scores, max_output_size, iou_threshold,
        score_threshold, soft_nms_sigma,
    )  # fmt: skip
    return _cut_off(indices, count), _cut_off(kept, count)


def _of_boxes(who, boxes, scores, count, *limits):
    boxes, scores, limits = _alike(boxes, scores, *limits)
    if len(boxes.shape) != 2 or len(scores.shape) != 1:
        raise ShapeError(who, "boxes must be [n, 4] and scores [n]", boxes=boxes,
                         scores=scores)  # fmt: skip
    return suppress_boxes(boxes, scores, *limits, count)


def _alike(boxes, scores, iou_threshold, score_threshold, sigma=0.0):
    """Return boxes, scores and limits in one dtype: the dtype of the scores, if floating."""
    scores = convert_to_tensor(scores)
    dtype = scores.dtype if scores.dtype.is_floating else dtypes.float32
    limits = [cast(x, dtype) for x in (iou_threshold, score_threshold, sigma)]
    return cast(boxes, dtype), cast(scores, dtype), limits


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    overlap_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """`non_max_suppression` of boxes with given overlaps.

    Args:
        overlaps: Overlap of each pair of boxes, ``[n, n]``.
        scores: Score of each box, ``[n]``.
        max_output_size: Largest number of boxes to select.
        overlap_threshold: Largest overlap of a box with a selected one.
        score_threshold: Only boxes with a score above it are selected.

    Shapes:
        ``overlaps`` ``[n, n]``, ``scores`` ``[n]``, result ``[m]``, int32.

    Example:
        >>> overlaps = [[1, 0.6], [0.6, 1]]
        >>> tw.image.non_max_suppression_overlaps(overlaps, [0.5, 0.9], 2).numpy()
        array([1], dtype=int32)
    """
    overlaps, scores, limits = _alike(
        overlaps, scores, overlap_threshold, score_threshold
    )
    selected = suppress_overlaps(overlaps, scores, *limits[:2], max_output_size)
    return _cut_off(selected[0], selected[2])


# ----------------------------------------------------------------- of a fixed size, batches


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: IntLike = 512,
) -> tuple[Tensor, Tensor]:
    """`non_max_suppression` of batches, with the indices padded with zeros.

    As in TensorFlow, a box is dropped for an overlap of ``iou_threshold`` or more.

    Args:
        boxes: Boxes ``[..., n, 4]``, each ``[y1, x1, y2, x2]``.
        scores: Score of each box, ``[..., n]``.
        max_output_size: Largest number of boxes to select per list.
        iou_threshold: A box with this IoU or more with a selected one is dropped.
        score_threshold: Only boxes with a score above it are selected.
        pad_to_max_output_size: If False, the zeros are cut off, for a single list of
            boxes.
        sorted_input: Ignored.
        canonicalized_coordinates: Ignored.
        tile_size: Ignored.

    Shapes:
        ``boxes`` ``[..., n, 4]``, ``scores`` ``[..., n]``.

    Returns:
        ``(indices, num_valid)``: ``[..., max_output_size]`` and ``[...]``, int32.

    Raises:
        ValueError: If the boxes have batch axes and ``pad_to_max_output_size`` is
            False.

    Example:
        >>> boxes = [[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]]
        >>> indices, count = tw.image.non_max_suppression_padded(
        ...     boxes, [[0.5, 0.9, 0.7]], 3, pad_to_max_output_size=True)
        >>> indices.numpy(), count.numpy()
        (array([[1, 2, 0]], dtype=int32), array([2], dtype=int32))
    """
    boxes, scores, limits = _alike(boxes, scores, iou_threshold, score_threshold)
    if len(boxes.shape) > 2 and not pad_to_max_output_size:
        raise InvalidArgumentError(
            "non_max_suppression_padded: pad_to_max_output_size must be True for a batch, "
            f"boxes of shape {tuple(boxes.shape)}"
        )
    if limits[0].dtype not in (dtypes.float32, dtypes.float64):
        boxes, scores, *limits = (cast(x, "float32") for x in (boxes, scores, *limits))
    limits[0] = nextafter(limits[0], cast(float("-inf"), limits[0].dtype))
    indices, _, count = suppress_boxes(boxes, scores, *limits, max_output_size, 1e-8)
    return (indices if pad_to_max_output_size else _cut_off(indices, count)), count


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: IntLike,
    max_total_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Non-maximum suppression per class; the best boxes of all classes per image.

    Args:
        boxes: Boxes ``[batch, n, classes, 4]``, or ``[batch, n, 1, 4]`` for all
            classes.
        scores: Score of each box and class, ``[batch, n, classes]``.
        max_output_size_per_class: Largest number of boxes to select per class.
        max_total_size: Largest number of boxes to return per image.
        iou_threshold: Largest intersection over union (IoU) of a box with a selected
            one of the same class.
        score_threshold: Only boxes with a score above it are selected.
        pad_per_class: If False, the results have size ``max_total_size``; if True, at
            most ``max_output_size_per_class`` times the number of classes.
        clip_boxes: If True, clip the boxes to 0 ... 1.

    Shapes:
        ``boxes`` ``[batch, n, classes, 4]`` or ``[batch, n, 1, 4]``, ``scores``
        ``[batch, n, classes]``.

    Returns:
        ``(boxes, scores, classes, valid_detections)``: ``[batch, size, 4]``,
        ``[batch, size]`` and ``[batch, size]``, float32, padded with zeros;
        ``[batch]``, int32.

    Raises:
        ShapeError: If the shapes are invalid.
        ValueError: If a size is not positive.

    Example:
        >>> boxes = [[[[0, 0, 1, 1]], [[0, 0, 1, 0.9]]]]
        >>> scores = [[[0.5, 0.9], [0.8, 0.1]]]
        >>> found = tw.image.combined_non_max_suppression(boxes, scores, 2, 3)
        >>> [x.numpy().ravel().tolist() for x in found[2:]]
        [[1.0, 0.0, 0.0], [2]]
    """
    who = "combined_non_max_suppression"
    boxes, scores, limits = _alike(boxes, scores, iou_threshold, score_threshold)
    if (
        len(boxes.shape) != 4
        or len(scores.shape) != 3
        or not all(map(agree, boxes.shape[:2], scores.shape[:2]))
        or boxes.shape[2] not in (1, scores.shape[2])
    ):
        raise ShapeError(who, "boxes must be [batch, n, 1 or classes, 4] and scores "
                         "[batch, n, classes]", boxes=boxes, scores=scores)  # fmt: skip
    each, total = int(max_output_size_per_class), int(max_total_size)
    check_at_least(who, 1, max_output_size_per_class=each, max_total_size=total)
    batch, n, classes = scores.shape
    size = min(total, each * classes) if pad_per_class else total
    boxes = broadcast_to(boxes, (batch, n, classes, 4))
    boxes, scores = transpose(boxes, (0, 2, 1, 3)), transpose(scores, (0, 2, 1))
    indices, kept, count = suppress_boxes(boxes, scores, *limits, each)
    exist = less(arange(each), expand_dims(count, -1))
    ranked = where(exist, kept, cast(float("-inf"), kept.dtype))
    taken = min(size, each * classes)
    best, positions = top_k(reshape(ranked, (batch, classes * each)), taken)
    label = floordiv(positions, each)
    index = gather(reshape(indices, (batch, classes * each)), positions, batch_dims=1)
    flat = reshape(boxes, (batch, classes * n, 4))
    boxes = gather(flat, label * n + index, batch_dims=1)
    valid = minimum(reduce_sum(count, -1), size)
    exist = less(arange(taken), expand_dims(valid, -1))
    boxes = clip_by_value(boxes, 0.0, 1.0) if clip_boxes else boxes
    outputs = where(expand_dims(exist, -1), boxes, 0.0), where(exist, best, 0.0)
    outputs = [*outputs, where(exist, label, 0)]
    if size > taken:
        rest = [[0, 0], [0, size - taken], [0, 0]]
        outputs = [pad(x, rest[: len(x.shape)]) for x in outputs]
    return (*(cast(x, dtypes.float32) for x in outputs), valid)
