"""`CTC`: sequences of labels whose places in a longer sequence nobody wrote down."""

from ...dtypes import int32
from ...errors import ShapeError
from ...graph.control.mapping import foldl
from ...ops.activation import log_softmax
from ...ops.comparison import logical_and, not_equal, where
from ...ops.conversion import cast
from ...ops.creation import zeros_like
from ...ops.gather import gather
from ...ops.joining import concat, stack
from ...ops.reduction import reduce_logsumexp, reduce_sum
from ...ops.shape import expand_dims, reshape, transpose
from ...tensor import convert_to_tensor, is_tensor, module_of, new_tensor, to_array
from .alignment import floating
from .loss import Loss

__all__ = ["CTC", "ctc"]

BLANK = 0
# The logarithm of what must not happen. It is finite: a sequence for which there are too
# few steps costs this much, and its gradient stays a number.
NEVER = -1e5


def ctc(y_true, y_pred):
    """``-log(p)`` of all ways to spell the labels in ``y_pred``, with blanks in between.

    A label may take several steps; class 0 is the blank, which must stand between two
    labels that are the same.

    Args: ``y_true``: integers ``[batch, labels]``, at the end filled up with 0;
    ``y_pred``: logits ``[batch, steps, classes]``.
    Returns: ``[batch]``; about 1e5 where the steps are too few for the labels.
    Reference: Graves et al., "Connectionist temporal classification" (2006).

    >>> ctc([[1]], [[[0.0, 0.0], [0.0, 0.0]]]).numpy().round(4)  # 01, 10, 11 of four
    array([0.2877], dtype=float32)
    """
    y_pred = floating(y_pred)
    labels = _checked_labels(y_true, y_pred)
    states = _with_blanks(labels)
    blocked = expand_dims(zeros_like(states[:, 0], y_pred.dtype), 1) + NEVER
    skips = where(_may_skip(states), 0.0, cast(NEVER, y_pred.dtype))
    scores = gather(log_softmax(y_pred), states, axis=2, batch_dims=1)

    def step(alpha, score):
        after = concat([blocked, alpha], 1)  # from the state before
        return score + reduce_logsumexp(
            stack([alpha, after[:, :-1], concat([blocked, after[:, :-2]], 1) + skips]),
            0,
        )

    start = concat([blocked - NEVER, zeros_like(scores[:, 0, 1:]) + NEVER], 1)
    alpha = foldl(step, transpose(scores, (1, 0, 2)), start)
    return -_at_the_end(concat([blocked, alpha], 1), labels)


ctc.integer_labels = True


def _checked_labels(y_true, y_pred):
    if not is_tensor(y_true):
        y_true = new_tensor(to_array(y_true, None, None, module_of(y_pred)))
    labels = cast(convert_to_tensor(y_true), int32)
    a, b = labels.array.shape, y_pred.array.shape
    if len(a) != 2 or len(b) != 3 or a[0] != b[0]:
        raise ShapeError(
            "ctc",
            "y_true must be [batch, labels], y_pred [batch, steps, classes]",
            y_true=y_true,
            y_pred=y_pred,
        )
    return labels


def _with_blanks(labels):
    """``[batch, 2 * n + 1]``: the labels, and a blank before, between and after them."""
    blanks = zeros_like(labels)
    pairs = reshape(
        stack([blanks, labels], 2), (labels.array.shape[0], 2 * labels.array.shape[1])
    )
    return concat([pairs, zeros_like(pairs[:, :1])], 1)


def _may_skip(states):
    """Where the blank before a label may be left out: between labels that differ."""
    nothing = zeros_like(states[:, :2])
    before = concat([nothing, states], 1)[:, : states.array.shape[1]]
    return logical_and(not_equal(states, before), not_equal(states, BLANK))


def _at_the_end(alpha, labels):
    """The score of having spelt all labels, with a blank behind or without.

    ``alpha`` has a column of `NEVER` in front, for sequences without labels.
    """
    last = 2 * reduce_sum(cast(not_equal(labels, BLANK), int32), 1, True)
    ends = gather(alpha, concat([last, last + 1], 1), axis=1, batch_dims=1)
    return reduce_logsumexp(ends, 1)


class CTC(Loss):
    """How unlikely logits make labels that are not aligned with them: `ctc`, reduced."""

    integer_labels = True

    def __init__(self, reduction="sum_over_batch_size", name="ctc", dtype=None):
        super().__init__(name, reduction, dtype)

    def call(self, y_true, y_pred):
        return ctc(y_true, y_pred)
