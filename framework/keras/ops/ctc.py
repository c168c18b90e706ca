"""Connectionist temporal classification: `keras.ops.ctc_loss` and `ctc_decode`."""

from __future__ import annotations

import numpy as np

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import gather
from tapewright.ops.array.indexing import argmax
from tapewright.ops.array.joining import pad
from tapewright.ops.array.segment import known_values
from tapewright.ops.array.shape import expand_dims, shape
from tapewright.ops.array.sorting import argsort
from tapewright.ops.math.comparison import equal, greater_equal, where
from tapewright.ops.math.elementwise import maximum
from tapewright.ops.math.reduction import reduce_max, reduce_sum
from tapewright.ops.nn.activation import log_softmax

from ..losses import sequence
from .operation import OperationFamily

__all__ = ["ctc_decode", "ctc_loss"]

operation = OperationFamily(__name__, "nn")


@operation(call="target output target_length output_length", class_name="CTCLoss")
def ctc_loss(
    target: TensorLike,
    output: TensorLike,
    target_length: TensorLike,
    output_length: TensorLike,
    mask_index: int = 0,
) -> Tensor:
    """CTC loss: ``-log(p)`` of all alignments of ``target``; see `losses.ctc`.

    Args:
        target: Labels, integers ``[batch, labels]``.
        output: Logits ``[batch, steps, classes]``.
        target_length: Number of labels of each example, ``[batch]``.
        output_length: Number of steps of each example, ``[batch]``.
        mask_index: Class of the blank.

    Returns:
        Loss of each example, ``[batch]``.
    """
    target, output = _int32(target), _to_logits(output)
    if len(target.shape) != 2 or len(output.shape) != 3:
        raise ShapeError(
            "ctc_loss",
            "target must be [batch, labels], output [batch, steps, classes]",
            target=target,
            output=output,
        )
    lengths = _int32(target_length), _int32(output_length)
    return sequence.ctc_loss(maximum(target, 0), output, *lengths, mask_index)


@operation(call="inputs sequence_lengths", class_name="CTCDecode")
def ctc_decode(
    inputs: TensorLike,
    sequence_lengths: TensorLike,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int | None = 0,
) -> tuple[Tensor, Tensor]:
    """Decode the most likely labels from the outputs of a CTC model.

    A traced function runs "beam_search" eagerly, since it depends on values.

    Args:
        inputs: Logits ``[batch, steps, classes]``.
        sequence_lengths: Number of steps of each example, ``[batch]``.
        strategy: "greedy", the most likely class of each step, or "beam_search".
        beam_width: Number of candidates that "beam_search" keeps at each step.
        top_paths: Number of results of "beam_search", the most likely first.
        merge_repeated: If True, "greedy" merges repeated labels.
        mask_index: Class of the blank; None means the last class.

    Returns:
        ``(decoded, scores)``. ``decoded`` is int32 ``[paths, batch, steps]``, padded
        with -1. ``scores`` is ``[batch, paths]``: minus the sum of the largest logits
        or, with "beam_search", the log-probabilities.

    Raises:
        ValueError: If ``strategy`` is unknown.
    """
    inputs, lengths = _to_logits(inputs), _int32(sequence_lengths)
    if strategy not in ("greedy", "beam_search"):
        raise ValueError(
            f"ctc_decode: strategy must be 'greedy' or 'beam_search', got {strategy!r}"
        )
    blank = inputs.shape[-1] - 1 if mask_index is None else mask_index
    if strategy == "greedy":
        return _greedy(inputs, lengths, merge_repeated, blank)
    known_values("ctc_decode", "inputs", inputs)
    known_values("ctc_decode", "sequence_lengths", lengths)
    result = [
        _beam_search(rows[:n], beam_width, top_paths, blank)
        for rows, n in zip(log_softmax(inputs).numpy(), lengths.numpy())
    ]
    steps = inputs.shape[1]
    decoded = np.full((top_paths, len(result), steps), -1, np.int32)
    for i, paths in enumerate(result):
        for j, (labels, _) in enumerate(paths):
            decoded[j, i, : len(labels)] = labels
    scores = np.array([[score for _, score in paths] for paths in result])
    scores = scores.reshape(len(result), top_paths)
    return convert_to_tensor(decoded), cast(scores, inputs.dtype)


def _int32(x):
    return cast(convert_to_tensor(x), "int32")


def _to_logits(x):
    x = convert_to_tensor(x)
    half = not x.dtype.is_floating or x.dtype.size < 4
    return cast(x, "float32") if half else x


def _greedy(inputs, lengths, merge_repeated, blank):
    steps = arange(shape(inputs)[1])
    over = greater_equal(steps[None], lengths[:, None])
    labels = where(over, blank, argmax(inputs, -1, output_type="int32"))
    best = where(over, cast(0, inputs.dtype), reduce_max(inputs, -1))
    blanks = equal(labels, blank)
    if merge_repeated:
        again = pad(equal(labels[:, 1:], labels[:, :-1]), [[0, 0], [1, 0]])
        blanks = blanks | again
    order = argsort(where(blanks, shape(inputs)[1], steps[None]), stable=True)
    labels = gather(where(blanks, -1, labels), order, axis=1, batch_dims=1)
    return expand_dims(labels, 0), -reduce_sum(best, 1, True)


def _beam_search(log_p, beam_width, top_paths, blank):
    """Return pairs of labels and their log-probability, the most likely first.

    For each prefix the beam holds two log-probabilities: with a blank as the last step,
    and with its last label as the last step.
    """
    prefixes, on_blank, on_label = [()], np.zeros(1), np.full(1, -np.inf)
    for row in log_p:
        either = np.logaddexp(on_blank, on_label)
        last = np.array([prefix[-1] if prefix else blank for prefix in prefixes])
        each = np.arange(len(prefixes))
        longer = either[:, None] + row
        longer[each, last] = on_blank + row[last]  # else it is the last label once more
        longer[:, blank] = -np.inf
        on_blank, on_label = either + row[blank], on_label + row[last]
        index_of = dict(zip(prefixes, each))
        for i, prefix in enumerate(prefixes):
            shorter = index_of.get(prefix[:-1]) if prefix else None
            if shorter is not None:  # it grows to a prefix that the beam holds
                grown = longer[shorter, prefix[-1]]
                on_label[i] = np.logaddexp(on_label[i], grown)
                longer[shorter, prefix[-1]] = -np.inf
        scores = np.append(np.logaddexp(on_blank, on_label), longer)
        best = np.argsort(-scores, kind="stable")[:beam_width]
        best = best[scores[best] > -np.inf]
        old, new = best[best < len(each)], best[best >= len(each)] - len(each)
        at, labels = np.divmod(new, len(row))
        added = [(*prefixes[i], label) for i, label in zip(at, labels.tolist())]
        prefixes = [prefixes[i] for i in old] + added
        on_label = np.append(on_label[old], longer[at, labels])
        on_blank = np.append(on_blank[old], np.full(len(new), -np.inf))
    scores = np.logaddexp(on_blank, on_label)
    result = [(prefixes[i], scores[i]) for i in np.argsort(-scores, kind="stable")]
    missing = top_paths - len(result)
    return result[:top_paths] + [((), -np.inf)] * missing
