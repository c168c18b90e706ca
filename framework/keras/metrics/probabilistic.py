"""How well probabilities fit: crossentropies and their kin, averaged."""

from ..losses import (
    binary_crossentropy,
    categorical_crossentropy,
    kl_divergence,
    poisson,
    sparse_categorical_crossentropy,
)
from .reduction import MeanMetricWrapper

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "KLDivergence",
    "Poisson",
    "SparseCategoricalCrossentropy",
]


class KLDivergence(MeanMetricWrapper):
    """The mean of ``sum(y_true * log(y_true / y_pred))``."""

    def __init__(self, name="kl_divergence", dtype=None):
        super().__init__(kl_divergence, name, dtype)


class Poisson(MeanMetricWrapper):
    """The mean of ``y_pred - y_true * log(y_pred)``."""

    def __init__(self, name="poisson", dtype=None):
        super().__init__(poisson, name, dtype)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of `binary_crossentropy`, of probabilities or ``from_logits``."""

    def __init__(
        self,
        name="binary_crossentropy",
        dtype=None,
        from_logits=False,
        label_smoothing=0,
    ):
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(binary_crossentropy, name, dtype, **options)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing


class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean of `categorical_crossentropy`: one-hot labels, classes along ``axis``."""

    def __init__(
        self,
        name="categorical_crossentropy",
        dtype=None,
        from_logits=False,
        label_smoothing=0,
        axis=-1,
    ):
        options = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(categorical_crossentropy, name, dtype, **options, axis=axis)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean of `sparse_categorical_crossentropy`: labels are class numbers.

    A label ``ignore_class`` adds 0 to the sum, and counts in the mean.
    """

    def __init__(
        self,
        name="sparse_categorical_crossentropy",
        dtype=None,
        from_logits=False,
        ignore_class=None,
        axis=-1,
    ):
        options = {"from_logits": from_logits, "ignore_class": ignore_class}
        fn = sparse_categorical_crossentropy
        super().__init__(fn, name, dtype, **options, axis=axis)
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.axis = axis
