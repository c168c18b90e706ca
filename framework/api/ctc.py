"""`tw.nn.ctc_loss` and what belongs to it: TensorFlow's names over Keras' CTC loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike
from tapewright.keras.losses.sequence import ctc_loss as _ctc_loss
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import concat
from tapewright.ops.array.creation import ones_like, sequence_mask
from tapewright.ops.array.shape import transpose
from tapewright.ops.math.comparison import logical_and, not_equal
from tapewright.ops.math.reduction import reduce_sum

__all__ = ["collapse_repeated", "ctc_loss", "ctc_unique_labels"]


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """``-log(p)`` of all ways to spell ``labels`` in ``logits``, with blanks in between.

    Args: ``label_length``, ``logit_length``: how many labels and steps of each sequence
    count, ``[batch]``; ``logits_time_major``: the first axis of ``logits`` is time;
    ``blank_index``: the class of the blank, 0 by default, from the end if negative.
    ``unique`` changes nothing.

    Shapes: ``labels`` ``[batch, labels]``, integers; ``logits`` ``[steps, batch, classes]``,
    or ``[batch, steps, classes]`` without ``logits_time_major``; result ``[batch]``, about
    1e5 if there are too few steps for the labels.

    Raises: ``ValueError`` for other shapes.

    Reference: Graves et al., "Connectionist temporal classification" (2006).

    >>> ctc_loss([[1]], [[[0.0, 0.0]], [[0.0, 0.0]]], [1], [2]).numpy().round(4)
    array([0.2877], dtype=float32)
    """
    labels, logits = cast(labels, "int32"), convert_to_tensor(logits)
    if labels.shape.rank != 2 or logits.shape.rank != 3:
        what = "labels must be [batch, labels], and logits [steps, batch, classes]"
        raise ShapeError("ctc_loss", what, labels=labels, logits=logits)
    if logits_time_major:
        logits = transpose(logits, (1, 0, 2))
    blank = 0 if blank_index is None else int(blank_index)
    blank = blank + logits.shape[-1] if blank < 0 else blank
    lengths = cast(label_length, "int32"), cast(logit_length, "int32")
    return _ctc_loss(labels, logits, *lengths, blank)


def ctc_unique_labels(
    labels: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The different labels of each row, filled up with 0, and the place of each among them.

    Shapes: ``[batch, labels]`` to int64 and int32 of that shape.

    Raises: ``TypeError`` in traced functions, as it looks at values.

    >>> unique, places = ctc_unique_labels([[3, 4, 4, 3]])
    >>> unique.numpy().tolist(), places.numpy().tolist()
    ([[3, 4, 0, 0]], [[0, 1, 1, 0]])
    """
    rows = convert_to_tensor(labels).numpy()
    unique, places = np.zeros(rows.shape, np.int64), np.zeros(rows.shape, np.int32)
    for i, row in enumerate(rows):
        found = list(dict.fromkeys(row.tolist()))
        unique[i, : len(found)] = found
        places[i] = [found.index(label) for label in row.tolist()]
    return convert_to_tensor(unique), convert_to_tensor(places)


def collapse_repeated(
    labels: TensorLike, seq_length: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Labels with repetitions merged, filled up with 0, and how many are left in each row.

    Shapes: ``[batch, labels]`` and ``[batch]`` to ``[batch, longest]`` and ``[batch]``.

    Raises: ``TypeError`` in traced functions, as the size follows from values.

    >>> merged, count = collapse_repeated([[1, 1, 2, 2, 1]], [5])
    >>> merged.numpy().tolist(), count.numpy().tolist()
    ([[1, 2, 1]], [3])
    """
    labels, lengths = convert_to_tensor(labels), convert_to_tensor(seq_length)
    first = concat(
        [ones_like(labels[:, :1], "bool"), not_equal(labels[:, 1:], labels[:, :-1])], 1
    )
    kept = logical_and(first, sequence_mask(lengths, labels.shape[1]))
    counts = reduce_sum(cast(kept, "int32"), 1)
    rows, mask = labels.numpy(), kept.numpy()
    merged = np.zeros((len(rows), int(mask.sum(1).max(initial=0))), rows.dtype)
    for i, row in enumerate(rows):
        found = row[mask[i]]
        merged[i, : len(found)] = found
    return convert_to_tensor(merged), cast(counts, lengths.dtype)
