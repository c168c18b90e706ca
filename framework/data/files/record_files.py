"""`Records`: the elements in files whose names come from another node."""

from tapewright.core.tensor import TensorSpec, new_tensor
from tapewright.core.text import make_text
from tapewright.storage.records.paths import as_path

from ..nodes.node import UNKNOWN, Node


class Records(Node):
    """The records of files whose names are the elements of the input.

    ``read(path, offset)`` yields pairs of a record and the offset after it; ``make(record)``
    makes an element.
    """

    def __init__(self, names, read, make=None, spec=None):
        super().__init__(names)
        self._read, self._make = read, make or as_string
        self._spec = TensorSpec((), "string") if spec is None else spec

    def start(self):
        return {"path": None, "place": 0}

    def run(self, position):
        names = self.run_input(position)
        while True:
            if position["path"] is None:
                name = next(names, None)
                if name is None:
                    return
                path = as_path("filenames", name.numpy())
                position |= {"path": path, "place": 0}
            records = self._read(position["path"], position["place"])
            while True:
                try:
                    record, offset = next(records, (None, None))
                except Exception:
                    # Where errors are ignored the next one follows.
                    position["path"] = None
                    raise
                if offset is None:
                    break
                position["place"] = offset
                yield self._make(record)
            position["path"] = None

    def size(self):
        return UNKNOWN

    def spec(self):
        return self._spec

    def declares(self):
        return True


def as_string(record):
    """Return a scalar string tensor of these bytes."""
    return new_tensor(make_text([record], ()))
