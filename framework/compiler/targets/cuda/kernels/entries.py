"""Shared CUDA C of kernels: launches over the entries of buffers, and loops."""

import numpy as np

from ....loops.accesses import layout_of
from ..kernel import STATUS, Launch, Parameter, c_type

BLOCK, MOST_BLOCKS = 256, 4096
# Entries up to which 32 bits number them, and what a loop over all threads adds to that.
FEW_ENTRIES = 1 << 30
_INT32 = np.dtype(np.int32)


def launch(addresses, code, count, reads, writes, block=BLOCK):
    """Return the `Launch` of ``code`` over ``count`` threads, or the maximum number.

    In the code the keys of ``reads`` and ``writes`` are pointers to the first entries
    of buffers; a pair also has the dtype as which entries are moved. `STATUS` is not a
    buffer, but the address of that name. Buffers at one address share a parameter.
    """
    parameters, lines = {}, []
    for given, is_written in ((reads, False), (writes, True)):
        for name, buffer in given.items():
            position, offset, dtype = _address(addresses, buffer)
            known = parameters.get(position, Parameter(position, dtype, False))
            parameters[position] = known._replace(
                is_written=known.is_written or is_written
            )
            kind = f"{'' if is_written else 'const '}{c_type(dtype)}*"
            at = f"p{list(parameters).index(position)}"
            at = (
                f"{at} + {offset}"
                if dtype == known.dtype
                else f"({kind}){at} + {offset}"
            )
            lines.append(f"  {kind} {name} = {at.removesuffix(' + 0')};\n")
    blocks = min(max(1, -(-count // block)), MOST_BLOCKS)
    body = "".join(lines) + code
    return Launch(body, tuple(parameters.values()), (blocks, 1, 1), (block, 1, 1))


def _address(addresses, buffer):
    """Return the number of an address, the entry at which a buffer begins there, the dtype."""
    if buffer == STATUS:
        return addresses[STATUS], 0, _INT32
    buffer, dtype = buffer if type(buffer) is tuple else (buffer, buffer.dtype)
    base, offset, _ = layout_of(buffer)
    return addresses[base], offset, dtype


def each_entry(kind, name, count):
    """The head of a loop that divides ``count`` indices among all threads of a launch."""
    first = f"({kind})blockIdx.x * blockDim.x + threadIdx.x"
    step = f"({kind})gridDim.x * blockDim.x"
    return f"for ({kind} {name} = {first}; {name} < {count}; {name} += {step})"


def index_type(*buffers):
    """The integer type that indexes the entries of buffers."""
    return "int" if max([b.size for b in buffers]) <= FEW_ENTRIES else "long long"
