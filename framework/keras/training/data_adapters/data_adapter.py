"""`DataAdapter`: one kind of data as passes over batches, for an `EpochIterator`."""

from .data_adapter_utils import as_batch, class_weight_to_sample_weight

__all__ = ["DataAdapter"]


class DataAdapter:
    """Batches of data that makes them itself: converted, and weighted by class.

    Subclasses define `open`, which starts a pass, and ``size``, the batches in one, None
    while that is unknown.
    """

    size = None
    restarts = True  # there can be another pass

    def __init__(self, data, class_weight=None):
        self._data = data
        self._class_weight = class_weight
        self.source = f"x, a {type(data).__name__},"

    def open(self, number, start, state=None):
        """An iterator over the batches of pass ``number``, from batch ``start`` on.

        ``state``: the one that was restored, for the first pass after that.
        """
        raise NotImplementedError(f"{type(self).__name__} must define open")

    def on_epoch_begin(self):
        """Tell the data that an epoch begins, if it listens."""

    def on_epoch_end(self):
        """Tell the data that an epoch ends, if it listens."""

    def state(self) -> dict:
        """Seeds and positions that the count of batches does not give; plain values."""
        return {}

    def restore(self, state):
        """Take over seeds from what `state` gave for the same data."""

    def _batch(self, batch):
        alone = not isinstance(batch, (list, tuple))
        batch = as_batch(f"x ({type(self._data).__name__})", batch)
        if self._class_weight is None or len(batch) == 1:
            return batch[0] if alone else batch
        if len(batch) == 3:
            raise ValueError(
                "class_weight: the batches of x include sample_weight; use only one "
                "of the two"
            )
        weights = class_weight_to_sample_weight(batch[1], self._class_weight)
        return *batch, as_batch("class_weight", weights)[0]
