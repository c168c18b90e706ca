"""`tw.config.threading`: the number of threads, under the names of ``tf.config.threading``."""

from .target_settings import MOST_THREADS, set_threads

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]

_given = {"inter": 0, "intra": 0}


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Set the number of threads within an op, at most 64: see `config.set_threads`.

    Args:
        num_threads: Number of threads; 0 for the initial number.

    Example:
        >>> tw.config.threading.set_intra_op_parallelism_threads(2)
        >>> tw.config.threading.get_intra_op_parallelism_threads()
        2
        >>> tw.config.threading.set_intra_op_parallelism_threads(0)
    """
    set_threads(min(num_threads, MOST_THREADS) or None)
    _given["intra"] = num_threads


def get_intra_op_parallelism_threads() -> int:
    """Return the number set by `set_intra_op_parallelism_threads`, else 0."""
    return _given["intra"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Set the number of concurrent ops; without effect, as ops run one after another.

    Args:
        num_threads: Number of threads; stored.
    """
    _given["inter"] = num_threads


def get_inter_op_parallelism_threads() -> int:
    """Return the number set by `set_inter_op_parallelism_threads`, else 0."""
    return _given["inter"]
