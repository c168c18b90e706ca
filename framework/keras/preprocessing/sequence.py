"""`keras.preprocessing.sequence`: sequences of different lengths as one array."""

from ..utils.numerical import pad_sequences

__all__ = ["pad_sequences"]
