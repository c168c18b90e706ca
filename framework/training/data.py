"""Data on their way to a model."""

import numpy as np

__all__ = ["to_categorical"]


def to_categorical(x, num_classes=None):
    """Labels as rows that are 1 at the label and 0 elsewhere, in NumPy.

    Args: ``x``: integers of any shape, a last axis of size 1 is dropped; ``num_classes``:
    by default one more than the largest label.
    Returns: an array of float64 and the shape of ``x``, with the classes behind.
    Raises: ``ValueError`` for labels that are negative or too large.

    >>> to_categorical([0, 2])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    labels = np.array(x, dtype=np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if not num_classes:
        if not labels.size:
            raise ValueError(
                "to_categorical: without labels, num_classes must be given"
            )
        num_classes = labels.max() + 1
    if labels.size and (labels.min() < 0 or labels.max() >= num_classes):
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise ValueError(
            f"to_categorical: labels must be from 0 to {num_classes - 1}, got {wrong}"
        )
    rows = np.zeros((labels.size, num_classes))
    rows[np.arange(labels.size), labels.ravel()] = 1
    return rows.reshape(*labels.shape, num_classes)
