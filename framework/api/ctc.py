"""`tw.nn.ctc_loss` and related functions: TensorFlow's names for Keras' CTC loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike
from tapewright.keras.losses.sequence import ctc_loss as _ctc_loss
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like, sequence_mask
from tapewright.ops.array.gather import gather_nd
from tapewright.ops.array.joining import concat
from tapewright.ops.array.segment import known_values
from tapewright.ops.array.shape import transpose
from tapewright.ops.math.comparison import greater_equal, logical_and, not_equal, where
from tapewright.ops.math.reduction import reduce_max, reduce_sum
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.sparse.sparse_tensor import SparseTensor


def ctc_loss(
    labels: TensorLike | SparseTensor,
    logits: TensorLike,
    label_length: TensorLike | None,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """CTC (connectionist temporal classification) loss: ``-log(p)`` of the labels.

    ``p`` is the probability, according to ``logits``, of all alignments of the labels
    with blanks in between.

    Args:
        labels: Integer labels ``[batch, labels]``, or a `SparseTensor` of them.
        logits: Logits of the classes at each step.
        label_length: Number of labels of each sequence ``[batch]``; ignored for a
            `SparseTensor`, whose rows have their lengths.
        logit_length: Number of steps of each sequence ``[batch]``.
        logits_time_major: If True, the first axis of ``logits`` is time, otherwise the
            batch.
        unique: Has no effect.
        blank_index: Class of the blank, 0 by default; negative numbers count from the
            end. It must be given for a `SparseTensor`.

    Shapes:
        ``logits`` ``[steps, batch, classes]``, or ``[batch, steps, classes]`` if
        ``logits_time_major`` is False; result ``[batch]``, about 1e5 if there are too
        few steps for the labels.

    Raises:
        ValueError: If shapes are different, the blank is not a class, or lengths are
            missing.
        TypeError: If labels are not integers.

    References:
        Graves et al., "Connectionist temporal classification" (2006).

    Example:
        >>> tw.nn.ctc_loss([[1]], [[[0.0, 0.0]], [[0.0, 0.0]]], [1], [2]).numpy().round(4)
        array([0.2877], dtype=float32)
    """
    who, logits = "ctc_loss", convert_to_tensor(logits)
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError(f"{who}: blank_index must be given for sparse labels")
        rows = RaggedTensor.from_sparse(labels)
        label_length = rows.row_lengths()
        labels = rows.to_tensor(shape=(None, labels.shape[1]))
    labels = convert_to_tensor(labels)
    if not labels.dtype.is_integer:
        raise TypeError(f"{who}: labels must be integers, got {labels.dtype.name}")
    if labels.shape.rank != 2 or logits.shape.rank != 3:
        what = "labels must be [batch, labels], and logits [steps, batch, classes]"
        raise ShapeError(who, what, labels=labels, logits=logits)
    if label_length is None:
        raise ValueError(f"{who}: label_length must be given, unless labels are sparse")
    if logits_time_major:
        logits = transpose(logits, (1, 0, 2))
    blank = _class_of_blank(who, blank_index or 0, logits.shape[-1])
    labels, *lengths = [cast(x, "int32") for x in (labels, label_length, logit_length)]
    return _ctc_loss(labels, logits, *lengths, blank)


def _class_of_blank(who, blank_index, classes):
    """Return the class of the blank, counted from 0.

    Raises:
        ValueError: If there is no such class.
    """
    if not -classes <= blank_index < classes:
        raise ValueError(
            f"{who}: blank_index must be one of {classes} classes, got {blank_index}"
        )
    return int(blank_index) % classes


def ctc_greedy_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    merge_repeated: bool = True,
    blank_index: int | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """Decode CTC logits greedily: the likeliest class of each step, without blanks.

    Args:
        inputs: Logits ``[steps, batch, classes]``.
        sequence_length: Number of steps of each sequence ``[batch]``.
        merge_repeated: If True, merge equal labels without a blank in between.
        blank_index: Class of the blank, the last one by default; negative numbers count
            from the end.

    Returns:
        ``([labels], scores)``: one `SparseTensor` ``[batch, longest]`` of int64 labels,
        and scores ``[batch, 1]``, the negative sums of the largest logits.

    Raises:
        ValueError: If shapes are different, or the blank is not a class.

    Example:
        >>> logits = [[[0.0, 2.0, 1.0]], [[3.0, 0.0, 1.0]]]
        >>> labels, scores = tw.nn.ctc_greedy_decoder(logits, [2])
        >>> labels[0].values.numpy(), scores.numpy()
        (array([1, 0]), array([[-5.]], dtype=float32))
    """
    logits = _time_major("ctc_greedy_decoder", inputs)
    blank = -1 if blank_index is None else blank_index
    blank = _class_of_blank("ctc_greedy_decoder", blank, logits.shape[-1])
    options = {"merge_repeated": merge_repeated, "mask_index": blank}
    rows, scores = _decode(logits, sequence_length, "greedy", **options)
    return [_sparse_labels(rows[0])], scores


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
) -> tuple[list[SparseTensor], Tensor]:
    """Decode CTC logits by beam search: the likeliest labels, summed over all alignments.

    The last class is the blank.

    Args:
        inputs: Logits ``[steps, batch, classes]``.
        sequence_length: Number of steps of each sequence ``[batch]``.
        beam_width: Number of label sequences that are kept at each step.
        top_paths: Number of label sequences that are returned.

    Returns:
        ``(labels, log_probabilities)``: a list with a `SparseTensor`
        ``[batch, longest]`` of int64 labels for each path, the likeliest first, and the
        logarithms of their probabilities ``[batch, top_paths]``.

    Raises:
        ValueError: If shapes are different, or ``top_paths`` is below 1 or above
            ``beam_width``.
        TypeError: In traced functions, since the values must be known.

    References:
        Graves & Jaitly, "Towards end-to-end speech recognition" (2014).

    Example:
        >>> logits = [[[0.0, 2.0, 1.0]], [[3.0, 0.0, 1.0]]]
        >>> labels, scores = tw.nn.ctc_beam_search_decoder(logits, [2])
        >>> labels[0].values.numpy(), scores.numpy().round(3)
        (array([1, 0]), array([[-0.577]], dtype=float32))
    """
    logits = _time_major("ctc_beam_search_decoder", inputs)
    if not 1 <= top_paths <= beam_width:
        raise ValueError(
            "ctc_beam_search_decoder: top_paths must be from 1 to beam_width, got "
            f"{top_paths} and {beam_width}"
        )
    options = {"beam_width": beam_width, "top_paths": top_paths, "mask_index": None}
    rows, scores = _decode(logits, sequence_length, "beam_search", **options)
    return [_sparse_labels(rows[i]) for i in range(top_paths)], scores


def _decode(*args, **options):
    from tapewright.keras.ops.ctc import ctc_decode  # `keras.ops` loads at first use

    return ctc_decode(*args, **options)


def _time_major(who, inputs):
    """Transpose logits ``[steps, batch, classes]`` to ``[batch, steps, classes]``."""
    logits = convert_to_tensor(inputs)
    if logits.shape.rank != 3:
        raise ShapeError(who, "inputs must be [steps, batch, classes]", inputs=logits)
    return transpose(logits, (1, 0, 2))


def _sparse_labels(rows):
    """Return labels padded with -1 as a `SparseTensor`."""
    is_label = greater_equal(rows, 0)
    indices = where(is_label)
    longest = reduce_max(reduce_sum(cast(is_label, "int64"), 1))
    values = cast(gather_nd(rows, indices), "int64")
    return SparseTensor(indices, values, (rows.shape[0], longest))


def ctc_unique_labels(
    labels: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the unique labels of each row, and the index of each label among them.

    Args:
        labels: Integer labels ``[batch, labels]``.

    Returns:
        ``(unique, indices)`` of the shape of ``labels``: the unique labels padded with
        0, int64, and the indices, int32.

    Raises:
        ValueError: If ``labels`` has another shape.

    Example:
        >>> unique, indices = tw.nn.ctc_unique_labels([[3, 4, 4, 3]])
        >>> unique.numpy().tolist(), indices.numpy().tolist()
        ([[3, 4, 0, 0]], [[0, 1, 1, 0]])
    """
    rows = _rows("ctc_unique_labels", labels).numpy()
    unique, indices = np.zeros(rows.shape, np.int64), np.zeros(rows.shape, np.int32)
    for i, row in enumerate(rows):
        distinct = list(dict.fromkeys(row.tolist()))
        unique[i, : len(distinct)] = distinct
        indices[i] = [distinct.index(label) for label in row.tolist()]
    return convert_to_tensor(unique), convert_to_tensor(indices)


def _rows(who, labels):
    labels = convert_to_tensor(labels)
    if labels.shape.rank != 2:
        raise ShapeError(who, "labels must be [batch, labels]", labels=labels)
    known_values(who, "labels", labels)
    return labels


def collapse_repeated(
    labels: TensorLike, seq_length: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Merge repeated labels in each row.

    Args:
        labels: Labels ``[batch, labels]``.
        seq_length: Number of labels of each row ``[batch]``.

    Returns:
        ``(labels, lengths)``: the merged labels ``[batch, longest]``, padded with 0,
        and the number of labels of each row ``[batch]``.

    Raises:
        ValueError: If shapes are different.

    Example:
        >>> merged, count = tw.nn.collapse_repeated([[1, 1, 2, 2, 1]], [5])
        >>> merged.numpy().tolist(), count.numpy().tolist()
        ([[1, 2, 1]], [3])
    """
    labels = _rows("collapse_repeated", labels)
    lengths = convert_to_tensor(seq_length)
    first = concat(
        [ones_like(labels[:, :1], "bool"), not_equal(labels[:, 1:], labels[:, :-1])], 1
    )
    kept = logical_and(first, sequence_mask(lengths, labels.shape[1]))
    counts = reduce_sum(cast(kept, "int32"), 1)
    known_values("collapse_repeated", "labels and seq_length", kept)
    rows, mask = labels.numpy(), kept.numpy()
    merged = np.zeros((len(rows), int(mask.sum(1).max(initial=0))), rows.dtype)
    for i, row in enumerate(rows):
        kept_labels = row[mask[i]]
        merged[i, : len(kept_labels)] = kept_labels
    return convert_to_tensor(merged), cast(counts, lengths.dtype)
