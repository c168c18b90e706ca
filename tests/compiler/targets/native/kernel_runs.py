"""Runs of ops as machine code, between canaries, for the tests of kernels."""

import numpy as np

import tapewright as tw
from tapewright import config
from tapewright.compiler.program.instructions.call_instructions import Opaque
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.native.jit.output_memory import new_array
from tapewright.compiler.targets.native.kernels.table import KERNELS
from tapewright.compiler.targets.native.segments import code_of
from tapewright.ops.convolution.pooling import spread_means_p, window_max_p

from ..numpy_kernels import assert_same, instruction_of, kernel_in

CANARY, ROOM = 0xA5, 256
SMALL_BLOCKS = {"shared_work": 1, "kernel_work": 16}


def _canary_empty(rooms):
    def empty(shape, dtype):
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        room = np.full(size + 2 * ROOM, CANARY, np.uint8)
        rooms.append((room, size))
        return room[ROOM : ROOM + size].view(dtype).reshape(shape)

    return empty


def run(op, arrays, attributes, order=None):
    """The results for each number of threads, and the instructions that are not free.

    ``order``: the operands are transposed so, and lie in memory as they were before.
    """

    def traced(*given):
        if order is not None:
            given = [tw.transpose(x, order) for x in given]
        return op(*given, **attributes)

    if order is not None:
        back = np.argsort(order)
        arrays = [np.ascontiguousarray(x.transpose(back)) for x in arrays]
    concrete = tw.function(traced).get_concrete_function(*map(tw.constant, arrays))
    made, rooms, found = concrete.executable, [], []
    for name, value in made.bound.items():
        if value is np.empty or value is new_array:
            made.bound[name] = _canary_empty(rooms)
    try:
        for threads in (1, 2, 4):
            config.set_threads(threads)
            found.append([np.array(x) for x in made.run(arrays)][0])
    finally:
        config.set_threads(None)
    instructions = [each for each in made.program.instructions if not each.is_free]
    # a window of one is the input itself
    assert rooms or all([isinstance(each, Opaque) for each in instructions])
    for room, size in rooms:
        assert (room[:ROOM] == CANARY).all() and (room[ROOM + size :] == CANARY).all()
    return found, instructions


def check_drawn(op, arrays, attributes, seed=None):
    """`check` with a drawn order of the axes in memory; in small blocks for odd seeds."""
    if seed is None:
        return check(op, arrays, attributes)
    order = np.random.default_rng(seed).permutation(arrays[0].ndim).tolist()
    with use_limits(**(SMALL_BLOCKS if seed % 2 else {})):
        check(op, arrays, attributes, order)


def check(op, arrays, attributes, order=None):
    """Compare machine code with NumPy's kernel; it is the kernel of a table, or a nest."""
    _, wanted = instruction_of(op, arrays, attributes)
    found, instructions = run(op, arrays, attributes, order)
    same = assert_same
    if op is window_max_p:  # of two zeros NumPy has one
        same = np.testing.assert_array_equal
    for each in found:
        if op is spread_means_p:  # products may be fused with sums
            np.testing.assert_allclose(each, wanted[0], 1e-6, 1e-6)
        else:
            same([each], wanted)
        assert (each.dtype, each.shape) == (wanted[0].dtype, wanted[0].shape)
        assert each.tobytes() == found[0].tobytes()
    assert not [each.name for each in instructions if code_of(each) is None]
    kind = kernel_in(KERNELS, op)
    assert kind is None or kind in map(type, instructions)
