"""The content of a backup of several workers.

Variables are the same on all workers, except metric variables; states of callbacks,
data and global generators may differ. A backup holds the values of rank 0, and under
``workers/<rank>`` the values of another rank that differ. In its info, "workers" is a
dict of

"lacking"   for each worker, the names of states of rank 0 that it does not have
"own_data"  whether each worker reads its own batches
"metrics"   the aggregation of each metric variable, by name
"""

import hashlib
import json

import numpy as np

from tapewright.core.errors import SavingError, as_saving_error
from tapewright.formats.checkpoints.checkpoint_file import Content
from tapewright.formats.checkpoints.state_codec import encode_state

PREFIX = "workers/"
DATA = ("batches", "validation")  # states that are positions in data


def gather_content(content, metrics, has_own_data, workers) -> Content:
    """Return, on the first worker, the combined content of all workers.

    Args:
        content: Content of this worker.
        metrics: Aggregation of each metric variable in ``content``, by name.
        has_own_data: True if each worker reads its own batches.
    """
    info = {"lacking": [[]], "own_data": has_own_data, "metrics": metrics}
    content.info["workers"] = info
    if workers.size == 1:
        return content
    own = {"arrays": {n: content.arrays[n] for n in metrics}, "states": content.states}
    digests = {kind: _digests(values) for kind, values in own.items()}
    first = workers.broadcast_object(digests)
    differing = {
        kind: {
            n: v for n, v in values.items() if digests[kind][n] != first[kind].get(n)
        }
        for kind, values in own.items()
    }
    lacking = [name for name in first["states"] if name not in content.states]
    everything = workers.all_gather_object((lacking, differing))
    for rank, (_, values) in enumerate(everything):
        for kind, target in (("arrays", content.arrays), ("states", content.states)):
            target |= {f"{PREFIX}{rank}/{n}": v for n, v in values[kind].items()}
    info["lacking"] = [lacking for lacking, _ in everything]
    return content


def _digests(values):
    """Return digests of values by name; they are equal if the values are."""
    return {name: _digest(name, value) for name, value in values.items()}


def _digest(name, value):
    arrays = []
    text = json.dumps(encode_state(value, arrays, f"the state of '{name}'"))
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def count_workers(content) -> int:
    """Return the number of workers that a backup was made by."""
    return len(_info(content)["lacking"])


def _info(content):
    """Return "workers" of the info; for older backups, the info of a single process."""
    arrays = content.arrays
    metrics = {name: "sum" for name in arrays if name.startswith("model/compiled/")}
    info = {"lacking": [[]], "own_data": False, "metrics": metrics}
    with as_saving_error(content.path, "'workers' is invalid", "/@info"):
        info |= content.info.get("workers", {})
        if not all([isinstance(names, list) for names in info["lacking"]]):
            raise TypeError("'lacking' must be a list of lists")
        if not info["metrics"].keys() <= arrays.keys():
            raise ValueError("'metrics' must name arrays of the backup")
    return info


def content_for_worker(content, rank, size, has_own_data=False) -> Content:
    """Return the content of a backup from which worker ``rank`` of ``size`` resumes.

    If the number of workers is unchanged, each gets its own values. Otherwise the first
    worker gets the combined states of metrics, and new workers the states of rank 0.

    Raises:
        SavingError: If the number of workers has changed and each had read its own
            batches, or does now (``has_own_data``): the whole batches would differ.
    """
    info = _info(content)
    lacking = info["lacking"]
    count = len(lacking)
    shared, *own = _split(content, count)
    if size != count:
        differing = any(name in states for _, states in own for name in DATA)
        if has_own_data or info["own_data"] or differing:
            raise SavingError(
                content.path,
                f"the backup was made by {count} workers, each with its own "
                f"batches; it must be resumed by {count} workers, got {size}",
            )
        for name, aggregation in info["metrics"].items():
            parts = [arrays.get(name, shared[0][name]) for arrays, _ in own]
            shared[0][name] = _joined(parts, aggregation, rank)
    arrays, states = shared
    if rank < count:
        if size == count:
            arrays |= own[rank][0]
        states |= own[rank][1]
        states = {n: v for n, v in states.items() if n not in lacking[rank]}
    return Content(content.path, arrays, states, content.info)


def _split(content, count):
    """Return pairs of arrays and states: for rank 0, then the differences of each rank."""
    parts = [({}, {}) for _ in range(count + 1)]
    for kind, values in enumerate((content.arrays, content.states)):
        for name, value in values.items():
            number = -1
            if name.startswith(PREFIX):
                number, _, name = name.removeprefix(PREFIX).partition("/")
                number = int(number) if number.isdigit() else count
                if number >= count:
                    reason = f"'{name}' belongs to none of the {count} workers"
                    raise SavingError(content.path, reason)
            parts[number + 1][kind][name] = value
    return parts


def _joined(parts, aggregation, rank):
    """Return a metric variable for a worker, combined from another number of workers."""
    first = parts[0]
    if aggregation == "sum":
        if rank > 0:
            return np.zeros_like(first)
        return np.sum(parts, axis=0, dtype=first.dtype)
    if aggregation == "mean":
        return np.mean(parts, axis=0).astype(first.dtype)
    is_own = aggregation == "none" and rank < len(parts)
    return parts[rank] if is_own else first
