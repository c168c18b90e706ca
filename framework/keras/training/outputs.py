"""`Outputs`: the results of `predict`, concatenated in host memory."""

import numpy as np

from tapewright.core.hardware import devices
from tapewright.core.nest import flatten, pack
from tapewright.core.tensor import is_composite, is_tensor
from tapewright.ops.array.joining import concat
from tapewright.ops.sparse.sparse_tensor import SparseTensor
from tapewright.ops.sparse.structure import concat as sparse_concat

# Bytes of outputs that wait on a GPU before they are copied.
WAITING = 64 << 20


class Outputs:
    """Outputs of batches of a model, all nested in the same way.

    A copy from a GPU waits for all work queued on it, so many batches are copied at
    once.
    """

    def __init__(self, model_name):
        self._model_name = model_name
        self._structure, self._batches = None, []
        self._copied = self._waiting = 0  # batches, and bytes of the others

    def append(self, structure):
        """Add the outputs of a batch: tensors, or values that NumPy converts to arrays.

        Sparse and ragged tensors are kept as they are, on their device.
        """
        if structure is None:
            raise TypeError(
                f"model '{self._model_name}': call() returned None; is a return "
                "statement missing?"
            )
        self._structure = structure
        arrays = [_array(y) for y in flatten(structure)]
        self._batches.append(arrays)
        self._waiting += sum([x.nbytes for x in arrays if not is_composite(x)])
        if self._waiting > WAITING:
            self._copy()

    def _copy(self):
        for number in range(self._copied, len(self._batches)):
            arrays = self._batches[number]
            self._batches[number] = [
                x if is_composite(x) else devices.to_numpy(x) for x in arrays
            ]
        self._copied, self._waiting = len(self._batches), 0

    def joined(self):
        """Return all batches concatenated: a structure of arrays or composite tensors."""
        self._copy()
        columns = zip(*self._batches, strict=True)
        return pack(self._structure, [_joined(parts) for parts in columns])


def _array(y):
    if is_composite(y):
        return y
    return y.array if is_tensor(y) else np.asarray(y)


def _joined(parts):
    if is_composite(parts[0]):
        if isinstance(parts[0], SparseTensor):
            return sparse_concat(0, parts)
        return concat(list(parts), 0)
    if len(parts) == 1:
        return np.array(parts[0])
    if not parts[0].ndim:
        return np.stack(parts)
    return np.concatenate(parts)
