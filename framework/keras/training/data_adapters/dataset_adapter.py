"""Batches of a `data.Dataset`, which must have been batched."""

from .data_adapter import DataAdapter
from .generator_adapter import skip

__all__ = ["DatasetAdapter"]


class DatasetAdapter(DataAdapter):
    """Batches of a `data.Dataset`: each pass is a run of it."""

    def __init__(self, data, steps=None, class_weight=None):
        super().__init__(data, class_weight)
        count = int(data.cardinality())
        if count == -1 and steps is None:
            raise ValueError(
                "x: the Dataset is endless; give steps_per_epoch (steps in evaluate and "
                "predict) or take(n)"
            )
        self.size = count if count >= 0 else None
        self._iterator = None

    def open(self, number, start, state=None):
        self._iterator = iter(self._data)
        if state is not None and "source" in state:
            self._iterator.restore(state["source"])
        else:
            skip(self._iterator, start)
        return self._converted(self._iterator)

    def _converted(self, batches):
        return map(self._batch, batches)

    def state(self):
        source = self._data if self._iterator is None else self._iterator
        return {"source": source.state()}

    def restore(self, state):
        self._data.restore(state["source"])
