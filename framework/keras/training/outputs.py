"""`Outputs`: what `predict` has computed, batch by batch, joined in host memory."""

import numpy as np

from tapewright.core import devices
from tapewright.core.nest import flatten, pack
from tapewright.core.tensor import is_tensor

__all__ = ["Outputs"]

# Bytes of outputs that wait on a GPU before they are copied.
WAITING = 64 << 20


class Outputs:
    """Outputs of batches, nested in one way.

    A copy from a GPU waits for all that it has to do, so many batches are copied at once.
    """

    def __init__(self):
        self._structure, self._batches = None, []
        self._copied = self._waiting = 0  # batches, and bytes of the others

    def append(self, structure):
        """Add the outputs of a batch: tensors, or what NumPy takes for arrays."""
        self._structure = structure
        arrays = [
            y.array if is_tensor(y) else np.asarray(y) for y in flatten(structure)
        ]
        self._batches.append(arrays)
        self._waiting += sum([array.nbytes for array in arrays])
        if self._waiting > WAITING:
            self._copy()

    def _copy(self):
        for number in range(self._copied, len(self._batches)):
            arrays = self._batches[number]
            self._batches[number] = [devices.to_numpy(array) for array in arrays]
        self._copied, self._waiting = len(self._batches), 0

    def joined(self):
        """Return all batches as one, a structure of NumPy arrays."""
        self._copy()
        columns = zip(*self._batches, strict=True)
        return pack(self._structure, [_joined(parts) for parts in columns])


def _joined(parts):
    if len(parts) == 1:
        return np.array(parts[0])
    if not parts[0].ndim:
        return np.stack(parts)
    return np.concatenate(parts)
