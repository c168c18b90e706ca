"""Convert labels, sequences and vectors to arrays for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.tensor import is_tensor
from tapewright.ops.array.creation import ones_like
from tapewright.ops.linalg.matrix_functions import norm
from tapewright.ops.math.comparison import where
from tapewright.ops.math.elementwise import divide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def to_categorical(x: Any, num_classes: int | None = None) -> np.ndarray[Any, Any]:
    """Convert integer labels to one-hot rows, in NumPy.

    Args:
        x: Integer labels.
        num_classes: Number of classes; by default one more than the largest label.

    Shapes:
        ``x`` ``[...]`` or ``[..., 1]``, result ``[..., num_classes]``, float64.

    Raises:
        ValueError: If a label is negative or too large.

    Example:
        >>> keras.utils.to_categorical([0, 2])
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    labels = np.array(x, dtype=np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if not num_classes:
        if not labels.size:
            raise ValueError(
                "to_categorical: num_classes must be given for empty labels"
            )
        num_classes = labels.max() + 1
    if labels.size and (labels.min() < 0 or labels.max() >= num_classes):
        wrong = labels.min() if labels.min() < 0 else labels.max()
        most = f"from 0 to {num_classes - 1}" if num_classes > 0 else "0 or more"
        raise ValueError(f"to_categorical: labels must be {most}, got {wrong}")
    rows = np.zeros((labels.size, num_classes))
    rows[np.arange(labels.size), labels.ravel()] = 1
    return rows.reshape(*labels.shape, num_classes)


def normalize(x: Any, axis: int | None = -1, order: float = 2) -> Any:
    """Normalize vectors: ``x / norm(x)`` along ``axis``; vectors with norm 0 stay 0.

    Args:
        x: Floating array or tensor.
        axis: Axis of the vectors, or None for the norm of all entries.
        order: Order of the norm, such as 1, 2 or infinity.

    Shapes:
        ``x`` and result ``[...]``.

    Returns:
        An array for an array, a tensor for a tensor.

    Example:
        >>> import numpy as np
        >>> keras.utils.normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
        array([[0.6, 0.8],
               [0. , 0. ]])
    """
    if is_tensor(x):
        length = norm(x, ord=order, axis=axis, keepdims=True)
        return divide(x, where(length == 0, ones_like(length), length))
    x = np.asarray(x)
    if axis is None:
        length = np.linalg.norm(x.reshape(-1), order)
        return x / (length or 1)
    length = np.linalg.norm(x, order, axis, keepdims=True)
    return x / np.where(length == 0, 1, length)


def pad_sequences(
    sequences: Sequence[Sequence[Any]],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: float | str = 0.0,
) -> np.ndarray[Any, Any]:
    """Pad and truncate sequences to one length, as rows of an array.

    Args:
        sequences: List of sequences; their items may be arrays with one shape.
        maxlen: Length of the rows; by default the length of the longest sequence.
        dtype: Dtype of the array.
        padding: "pre" or "post", the end at which shorter sequences are padded.
        truncating: "pre" or "post", the end at which longer sequences are truncated.
        value: Value of the padding.

    Shapes:
        The result is ``[len(sequences), maxlen, ...]``, a NumPy array.

    Raises:
        ValueError: If ``padding`` or ``truncating`` is unknown, items have different
            shapes, or entries are not sequences.

    Example:
        >>> keras.utils.pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2)
        array([[0, 1],
               [2, 3],
               [5, 6]], dtype=int32)
    """
    for name, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise ValueError(
                f"pad_sequences: {name} must be 'pre' or 'post', got {given!r}"
            )
    if not hasattr(sequences, "__len__") or not all(
        hasattr(sequence, "__len__") for sequence in sequences
    ):
        raise ValueError("pad_sequences: sequences must be a list of sequences")
    if isinstance(value, str) and np.dtype(dtype).kind not in "OUS":
        raise ValueError(
            f"pad_sequences: value {value!r} needs dtype=object or str, got {dtype}"
        )
    if maxlen is None:
        maxlen = max([len(sequence) for sequence in sequences], default=0)
    full = [np.asarray(sequence) for sequence in sequences if len(sequence)]
    item = full[0].shape[1:] if full else ()
    rows = np.full((len(sequences), maxlen, *item), value, dtype=dtype)
    for number, sequence in enumerate(sequences):
        cut = sequence[-maxlen:] if truncating == "pre" else sequence[:maxlen]
        cut = np.asarray(cut if maxlen else [], dtype=dtype)
        if not len(cut):
            continue
        if cut.shape[1:] != item:
            raise ValueError(
                f"pad_sequences: sequence {number} has items of shape {cut.shape[1:]}, "
                f"the first has {item}"
            )
        start = maxlen - len(cut) if padding == "pre" else 0
        rows[number, start : start + len(cut)] = cut
    return rows
