"""`CudaKernel`: an instruction computed on a GPU, as a sequence of `Launch`es.

A kernel returns the steps that a stream runs for it, one after the other: launches of
functions in CUDA C, and library calls. A step refers to the memory that it uses by
addresses: numbers of addresses. Buffers that share memory share one.

Functions are correct for any number of blocks and threads: their loops are grid-stride
loops. So one thread on a CPU can run the same source.
"""

import hashlib
from abc import abstractmethod
from typing import NamedTuple

from tapewright.core.dtypes import is_bfloat16

from ...program.instructions.kernel import Kernel

# The key of the position of an int32: 0, or the number of the first failure of a replay.
STATUS = "status"

_TYPES = {"f2": "half_bits", "f4": "float", "f8": "double", "b1": "boolean"}
_INTEGERS = {1: "char", 2: "short", 4: "int", 8: "long long"}


def c_type(dtype):
    """Return the C type of a dtype in memory: unsigned for 16-bit floats and `boolean`.

    Example:
        >>> from tapewright.compiler.targets.cuda.kernel import c_type
        >>> import numpy as np
        >>> c_type(np.dtype(np.int64)), c_type(np.dtype(np.uint8)), c_type(np.dtype(bool))
        ('long long', 'unsigned char', 'boolean')
    """
    if is_bfloat16(dtype):
        return "bfloat16_bits"
    if dtype.str[1:] in _TYPES:
        return _TYPES[dtype.str[1:]]
    sign = "unsigned " if dtype.kind == "u" else "signed " * (dtype.itemsize == 1)
    return f"{sign}{_INTEGERS[dtype.itemsize]}"


def half_name(dtype):
    """The name of a 16-bit dtype in functions that load and store it."""
    if is_bfloat16(dtype):
        return "bfloat16"
    return "half" if dtype.str[1:] == "f2" else None


class Parameter(NamedTuple):
    """An address: its ``position``, the dtype of the entries, and whether it is written."""

    position: int
    dtype: object
    is_written: bool


class Launch(NamedTuple):
    """A function of CUDA C over ``grid`` blocks of ``block`` threads, both ``(x, y, z)``.

    ``body`` is the code of the function, in which parameter ``i`` is ``p<i>``. No two
    parameters have the same position.
    """

    body: str
    parameters: tuple
    grid: tuple
    block: tuple

    @property
    def name(self):
        """A name that equal functions share."""
        text = repr([self.body, self.block, *[p[1:] for p in self.parameters]])
        return f"k{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"

    def enqueue(self, functions, addresses, stream):
        """Launch it in ``stream``, the current one; ``addresses`` is indexed by position."""
        arguments = tuple([addresses[p.position] for p in self.parameters])
        functions[self.name](self.grid, self.block, arguments)


def function_source(launch):
    """Return the definition of the function of a launch."""
    x, y, z = launch.block
    declared = [
        f"{'' if p.is_written else 'const '}{c_type(p.dtype)}* __restrict__ p{i}"
        for i, p in enumerate(launch.parameters)
    ]
    return (
        f'extern "C" __global__ void __launch_bounds__({x * y * z})\n'
        f"{launch.name}({', '.join(declared)})\n{{\n{launch.body}}}\n"
    )


class CudaKernel(Kernel):
    """A `Kernel` that runs in a stream of a GPU.

    ``takes_views``: operands need not be in C order.

    If it ``can_fail`` and values are invalid, the steps write ``number``, which the
    executable sets, to the position ``addresses[STATUS]`` if it contains 0, by ``atomicCAS``.
    Then nothing is stored in variables.
    """

    __slots__ = ("number",)
    takes_views = False

    @property
    def keeps_operands(self):
        return self.can_fail  # to raise the error that belongs to them

    @abstractmethod
    def steps_on(self, addresses):
        """Return the steps: `Launch`es, or objects with ``enqueue``.

        ``addresses`` maps base buffers (see `layout_of`) to the numbers of their
        addresses.
        """
