"""`CTC`: a loss for label sequences that are not aligned with the longer input sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.compiler.control_flow.map_fn import foldl
from tapewright.core.dtypes import int32
from tapewright.core.errors import ShapeError
from tapewright.core.tensor import (
    convert_to_tensor,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range, zeros_like
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat, pad, stack
from tapewright.ops.array.shape import expand_dims, shape, transpose
from tapewright.ops.math.comparison import equal, less, not_equal, where
from tapewright.ops.math.reduction import reduce_logsumexp, reduce_sum
from tapewright.ops.nn.activation import log_softmax

from .loss import Loss
from .shape_utils import as_tensor, floating

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = ["CTC", "ctc"]

_BLANK = 0
# The logarithm of what must not happen. It is finite: a sequence for which there are too
# few steps costs this much, and its gradient stays a number.
_NEVER = -1e5


def ctc(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the CTC (connectionist temporal classification) loss of label sequences.

    The loss is ``-log(p)`` of all alignments of the labels with the steps of
    ``y_pred``. A label may extend over several steps; class 0 is the blank, which is
    required between two equal labels.

    Args:
        y_true: Integer labels, padded with 0 at the end.
        y_pred: Logits of each step.

    Shapes:
        ``y_true`` ``[batch, labels]``, integers; ``y_pred``
        ``[batch, steps, classes]``; result ``[batch]``, about 1e5 if there are too few
        steps for the labels.

    Raises:
        OutOfBoundsError: If a label is out of range, on the CPU; a ``ValueError``.

    References:
        Graves et al., "Connectionist temporal classification" (2006).

    Example:
        >>> logits = [[[0.0, 0.0], [0.0, 0.0]]]
        >>> keras.losses.ctc([[1]], logits).numpy().round(4)  # 01, 10, 11 of four
        array([0.2877], dtype=float32)
    """
    y_pred = floating(y_pred)
    labels = _checked_labels(y_true, y_pred)
    count = reduce_sum(cast(not_equal(labels, _BLANK), int32), 1)
    return ctc_loss(labels, y_pred, count, None, _BLANK)


ctc.integer_labels = True


def ctc_loss(target, output, target_length, output_length=None, mask_index=0):
    """Compute `ctc` for the first ``target_length`` labels and ``output_length`` steps.

    The states are the states of the forward algorithm: ``emit[n]`` ends with label
    ``n``, ``blank[n]`` with the blank after the first ``n`` labels.

    Args:
        target: Integers ``[batch, labels]``.
        output: Logits ``[batch, steps, classes]``.
        target_length: Numbers of labels ``[batch]``.
        output_length: Numbers of steps ``[batch]``, or None for all steps.
        mask_index: Class of the blank, which may also occur among the labels.

    Returns:
        Losses ``[batch]``.
    """
    repeats = equal(target[:, 1:], target[:, :-1])
    repeats = pad(repeats, [[0, 0], [0, 1]])
    never = convert_to_tensor(_NEVER, output.dtype)
    at_repeat = where(repeats, never, 0.0)
    elsewhere = where(repeats, 0.0, never)
    log_p = log_softmax(output)
    steps = transpose(log_p, (1, 0, 2))

    def step(state, row):
        scores, time = row
        blank, emit = state
        before = _to_blanks(blank, emit + at_repeat)
        emitted = _log_of_sum(before[:, :-1], emit)
        emitted = emitted + gather(scores, target, axis=1, batch_dims=1)
        blanks = _to_blanks(before, emit + elsewhere) + scores[:, mask_index, None]
        if output_length is None:
            return blanks, emitted
        live = expand_dims(less(time, output_length), 1)
        return where(live, blanks, blank), where(live, emitted, emit)

    emit = zeros_like(target, output.dtype) + never
    blank = concat([zeros_like(log_p[:, 0, :1]), emit], 1)
    times = range(shape(steps)[0], dtype=int32)
    blank, emit = foldl(step, (steps, times), (blank, emit))
    ends = _to_blanks(blank, emit)
    return -gather(ends, target_length, axis=1, batch_dims=1)


def _to_blanks(blank, emit):
    """Move states from a label to the blank after it, a step that emits nothing."""
    return concat([blank[:, :1], _log_of_sum(blank[:, 1:], emit)], 1)


def _log_of_sum(x, y):
    return reduce_logsumexp(stack([x, y]), 0)


def _checked_labels(y_true, y_pred):
    labels = cast(as_tensor(y_true, beside=y_pred), int32)
    a, b = labels.array.shape, y_pred.array.shape
    if len(a) != 2 or len(b) != 3 or a[0] != b[0]:
        raise ShapeError(
            "ctc",
            "y_true must be [batch, labels], y_pred [batch, steps, classes]",
            y_true=y_true,
            y_pred=y_pred,
        )
    return labels


class CTC(Loss, function=ctc):
    """CTC loss, for labels that are not aligned with the logits: `ctc`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` ``[batch, labels]``, integers, padded with 0, the blank; ``y_pred``,
        logits, ``[batch, steps, classes]``.

    Example:
        >>> keras.losses.CTC()([[1]], [[[0.0, 0.0], [0.0, 0.0]]]).numpy().round(4)
        np.float32(0.2877)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "ctc",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
