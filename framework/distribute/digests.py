"""The check that variables hold the same bits in all processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapewright.core.communication.job import communicator
from tapewright.core.errors import CollectiveError
from tapewright.core.hardware import devices
from tapewright.core.state.sharded_variable import ShardedVariable
from tapewright.core.variable import Variable


def check_variables(variables: Sequence[Variable]) -> None:
    """Raise an error unless variables are equal, bit for bit, in all processes.

    All processes must call it, with the same variables in the same order. The message
    names the first variable that differs, and the ranks where it differs from rank 0.
    Only digests are exchanged: 8 bytes for each variable.

    Args:
        variables: Variables to compare. Those of a sharded optimizer that are divided
            among the processes are left out.

    Raises:
        CollectiveError: If a variable differs.

    Example:
        >>> tw.distribute.check_variables([tw.Variable([1.0])])  # of one process
    """
    processes = communicator()
    if processes.size == 1:
        return
    variables = [v for v in variables if not isinstance(v, ShardedVariable)]
    own = np.array([_digest(variable) for variable in variables], np.uint64)
    digests = np.stack(processes.all_gather(own[None]))[:, 0]
    differing = digests != digests[0]
    if not differing.any():
        return
    first = int(differing.any(axis=0).argmax())
    ranks = ", ".join(map(str, np.flatnonzero(differing[:, first])))
    raise CollectiveError(
        f"check_variables: '{variables[first].path}' "
        f"{tuple(variables[first].shape)} of rank {ranks} differs from rank 0; "
        f"{int(differing.any(axis=0).sum())} of {len(own)} variables differ. Reduce "
        "all gradients, and make the same assignments in all processes; "
        "broadcast_variables makes the variables equal"
    )


def _digest(variable):
    import hashlib  # slow to load

    array = np.ascontiguousarray(devices.to_numpy(variable.read().array))
    digest = hashlib.blake2b(array.reshape(-1).view(np.uint8), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
