"""`FileCache`: the elements of the first iteration in a file, for all later iterations.

The file has a record for each element, with checksums (`storage.records.tf_records`);
see `element_records`.
"""

import os
from contextlib import nullcontext

from tapewright.storage.atomic import clear_leftovers, temporary_beside
from tapewright.storage.records.tf_records import put_record, read_records

from ..nodes.node import Node, copy_position, skip
from .element_records import decoded, encoded


class FileCache(Node):
    """Elements of the first complete iteration, kept in a file.

    Until it is complete, elements are made again from the start for each position.
    """

    runs_ahead = True

    def __init__(self, source, path):
        super().__init__(source)
        self._path = path

    def start(self):
        return {"given": 0, "place": 0}

    def repeat_position(self, position):
        return {"inputs": copy_position(position["inputs"]), **self.start()}

    def _is_complete(self):
        return os.path.isfile(self._path)  # a pipe would be waited for

    def processes_of(self, position):
        return nullcontext() if self._is_complete() else super().processes_of(position)

    def run(self, position):
        if self._is_complete():
            yield from self._read(position)
        else:
            yield from self._filling(position)

    def _read(self, position):
        records = read_records(self._path, "", position["place"])
        # A new run, or one that began before there was a file.
        if not position["place"]:
            skip(records, position["given"])
        for record, offset in records:
            position["given"] += 1
            position["place"] = offset
            yield decoded(record)

    def _filling(self, position):
        elements = self.inputs[0].run(copy_position(position["inputs"][0]))
        clear_leftovers(os.path.dirname(os.path.realpath(self._path)))
        with temporary_beside(self._path) as temporary:
            with open(temporary, "wb") as file:
                for number, element in enumerate(elements, 1):
                    file.write(put_record(encoded(element)))
                    if number > position["given"]:
                        position["given"] = number
                        yield element
            os.replace(temporary, self._path)
