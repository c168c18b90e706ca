"""`Limits`: the sizes by which programs are cut into kernels, blocks and parts.

A `Program` keeps the limits in use when it is lowered, and every pass and kernel reads
them from there. The defaults were measured on a few machines. Other limits change at
most the rounding of results: tests lower them, so that small arrays take the code paths
of large arrays.
"""

import contextlib
from dataclasses import dataclass, fields, replace

from tapewright.core.settings import config


@dataclass(frozen=True)
class Limits:
    """Thresholds at which the compiler chooses another kernel, block size or schedule."""

    # --- numpy: blocks of rows, see `map_fusion`

    # The least number of entries of arrays for which fusion pays, and the bytes of a block
    # of rows: smaller arrays stay in the last-level cache, and smaller blocks cost more
    # calls than they save.
    fused_entries: int = 1 << 20
    row_block_bytes: int = 1 << 19

    # --- loop nests, see `group`, `loop_scheduling` and `stages`

    small_sum: int = 4096  # entries whose sum may be read in the same nest: one block
    block_work: int = 1 << 16  # operations: some 5 us, ten times what it costs to share
    strip: int = 64  # the least entries of a strip
    strips: tuple = (1024, 256, 64)  # the most, as long as local arrays fit the stack
    local_entries: int = 1 << 14  # that a local array may have
    staged_rows: int = 1 << 11  # rows whose strip of columns fills the cache of a core

    # --- contractions, see `contraction_schedule`

    # Bytes of a band, which shares the cache with tiles of the other operand.
    band_bytes: int = 1 << 18
    tiled_bytes: int = 3 << 16  # of the second operand that tiles read again and again
    near_bytes: int = 1 << 14  # of a second operand that stays in the nearest cache
    contraction_work: int = 1 << 17  # multiplications of a block, at least
    parts_bytes: int = 1 << 22  # of all parts of a sum, at most
    reuse: int = 64  # of an entry of an operand that is worth a copy
    summed_entries: int = 1 << 12  # of the output that a block of the last sum makes
    tiles_tried: int = 6  # that are timed where functions are tuned

    # --- native: threads, and slices of large arrays, see `rematerialization`, `slicing`

    shared_work: int = 1 << 17  # operations from which on blocks go to several threads
    kernel_work: int = 1 << 15  # operations of a block of a kernel, at least
    slice_entries: int = 1 << 15  # at least, where any number of slices will do
    sliced_bytes: int = 1 << 23  # of an array: smaller ones stay in the caches
    slices: int = 8  # at least, so that threads share them, whatever their number
    again_bytes: int = 1 << 24  # of a value that is made again
    again_ratio: int = 4  # times the entries of what it is made of, at least

    # --- native: products, see `gemm`

    shared_product: int = 1 << 20  # multiplications from which on a product is shared
    thread_product: int = 1 << 19  # multiplications for a thread, at least
    packed_entries: int = 1 << 19  # of the left matrix that a thread packs, or more

    # --- native: code that runs without this process, on one thread, without BLAS

    is_standalone: bool = False

    # --- cuda

    grid_blocks: int = 1 << 16  # the most; further indices are taken in turns
    wide_index: int = 1 << 30  # from which on indices take 64 bits
    windows_bytes: int = 256 << 20  # of their matrix; more images are taken one by one
    team_indices: int = 64  # for each row of a scatter, from which on a block sums them
    ranked_indices: int = 1024  # that are counted against each other, at most
    key_stretches: int = 256  # into which keys are cut to be sorted, at most
    products_at_once: int = (1 << 16) - 1  # of a call, as the grids of CUDA have them
    trial_bytes: int = 1 << 26  # of arrays of an epilogue; larger products gain little

    @property
    def threads(self) -> int:
        """The number of threads for which a program has memory."""
        return 1 if self.is_standalone else config.threads()


DEFAULTS = Limits()
_in_use = DEFAULTS


def limits_in_use() -> Limits:
    """Return the `Limits` that programs are lowered with now."""
    return _in_use


@contextlib.contextmanager
def use_limits(limits: Limits | None = None, /, **changes):
    """Lower programs with other limits inside the block, in all threads.

    Functions that are compiled already keep their limits.

    Args:
        limits: The limits to start from; by default the limits in use.
        **changes: New values, by the names of `Limits`.

    Yields:
        The `Limits` in use.

    Raises:
        ValueError: If `Limits` has no field of that name.
    """
    global _in_use
    known = [each.name for each in fields(Limits)]
    if unknown := changes.keys() - set(known):
        raise ValueError(
            f"use_limits: unknown limits {', '.join(sorted(unknown))};"
            f"\n  use the fields of Limits: {', '.join(known)}."
        )
    before = _in_use
    _in_use = replace(before if limits is None else limits, **changes)
    try:
        yield _in_use
    finally:
        _in_use = before
