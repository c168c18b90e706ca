"""`Communicator`: collectives among the processes of a job, here a single process."""

import os
import pickle

import numpy as np

from ..errors import DTypeError
from ..hardware.devices import array_module

OPERATIONS = ("sum", "mean", "max", "min")


def timeout_seconds():
    """Return the seconds that ranks wait for each other: ``TAPEWRIGHT_TIMEOUT`` or 600."""
    text = os.environ.get("TAPEWRIGHT_TIMEOUT", "600")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not seconds > 0:
        raise ValueError(
            f"TAPEWRIGHT_TIMEOUT must be a positive number of seconds, got {text!r}"
        )
    return seconds


class Communicator:
    """A job with a single process, and the interface of all communicators.

    This process has number ``rank`` among ``size``, and ``local_rank`` among the
    ``local_size`` processes on this host. ``step`` is the number of the training step,
    from 1, for messages. All ranks must call the same collectives in the same order,
    with arrays of the same shapes and dtypes; otherwise all raise `CollectiveError`.
    """

    rank, size = 0, 1
    local_rank, local_size = 0, 1
    step = 1
    timeout = 600.0  # seconds for which ranks wait for each other

    def begin_step(self):
        """Count a training step, that is, an update by an optimizer."""
        self.step += 1

    def all_reduce(self, arrays, op="sum", compression=None):
        """Return new arrays: the "sum", "mean", "max" or "min" over all ranks.

        Arrays are added in the order of the ranks, so all ranks get the same bits; for
        arrays on GPUs see `gpu`. With ``compression="float16"``, floating numbers are
        scaled, sent in half precision, and summed in single precision or their dtype.
        """
        return self.start_all_reduce(arrays, op, compression).wait()

    def start_all_reduce(self, arrays, op="sum", compression=None):
        """Start an `all_reduce` in the background; return a `Pending`.

        Its ``wait()`` returns the results; the arrays must not change before that.
        """
        check_operands(arrays, op, compression)
        return Pending([array_module(type(array)).array(array) for array in arrays])

    def reduce_scatter(self, flat, bounds, op="sum", compression=None):
        """Return the piece of this rank of the `all_reduce` of a flat array, a new array.

        ``bounds`` are the beginning and the end of the piece of each rank, in the order
        of the ranks.
        """
        check_operands([flat], op, compression)
        return flat[slice(*bounds[0])].copy()

    def all_gather_pieces(self, flat, bounds):
        """Fill a flat array, in place, with the pieces of all other ranks.

        The piece of this rank is already there; ``bounds`` are as in `reduce_scatter`.
        """

    def all_gather(self, array):
        """Return the NumPy arrays of all ranks as a list; sizes along axis 0 may differ."""
        return [np.array(array)]

    def broadcast(self, arrays, root=0):
        """Return copies of the NumPy arrays of the rank ``root``."""
        self.check_root(root)
        return [np.array(array) for array in arrays]

    def barrier(self):
        """Wait until all ranks have called this."""

    # --- composed of the collectives above

    def any(self, flag):
        """Return whether ``flag`` is true on any rank."""
        (is_any,) = self.all_reduce([np.array(flag, bool)], "max")
        return bool(is_any)

    def all_gather_object(self, value):
        """Return the values of all ranks as a list; they are pickled for transport."""
        return [pickle.loads(data) for data in self.all_gather(_pickled(value))]

    def broadcast_object(self, value, root=0):
        """Return the value of the rank ``root``, pickled for transport."""
        if self.size == 1:
            return value
        data = _pickled(value if self.rank == root else None)
        (length,) = self.broadcast([np.array(data.size)], root)
        data = data if self.rank == root else np.empty(length, np.uint8)
        (data,) = self.broadcast([data], root)
        return value if self.rank == root else pickle.loads(data)

    def check_root(self, root):
        """Raise ``ValueError`` unless ``root`` is a rank."""
        if not 0 <= root < self.size:
            raise ValueError(
                f"broadcast: root must be a rank, 0 to {self.size - 1}, got {root}"
            )


def _pickled(value):
    return np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8)


class Pending:
    """A started collective; ``wait()`` returns its result."""

    def __init__(self, result):
        self._result = result

    def wait(self):
        return self._result


def check_operands(arrays, op, compression):
    """Raise an error unless ``op`` can reduce the arrays."""
    if op not in OPERATIONS:
        raise ValueError(
            f"all_reduce: op must be one of {', '.join(OPERATIONS)}, got {op!r}"
        )
    if compression not in (None, "float16"):
        raise ValueError(
            f"all_reduce: compression must be None or 'float16', got {compression!r}"
        )
    kinds = {"sum": "iufc", "mean": "fc"}.get(op, "biuf")
    if compression is not None:
        kinds = "f"
        if op not in ("sum", "mean"):
            raise ValueError(
                f"all_reduce: op must be 'sum' or 'mean' with compression, got {op!r}"
            )
    for array in arrays:
        if array.dtype.kind not in kinds:
            raise DTypeError(
                "all_reduce",
                f"{op} {'with compression ' if compression else ''}is not defined for "
                f"{array.dtype}",
                values=array,
            )
