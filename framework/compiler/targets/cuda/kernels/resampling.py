"""Resampling of images, as CUDA C: weighted sums of neighbours along an axis.

Indices and weights depend on sizes alone, and are constants of the program.
"""

import numpy as np

from tapewright.ops.image.resampling import bands

from ....program.instructions.kernel import around, bits_of
from ..kernel import CudaKernel, c_type
from .entries import each_entry, index_type, launch


class ResampleKernel(CudaKernel):
    """`resample` along an axis, or its adjoint."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (out,) = instruction.outputs
        _, weights = _bands_of(instruction)
        known = bits_of(out.dtype) if weights is None else out.dtype.char in "fd"
        return bool(known and out.size and instruction.operands[0].size)

    @classmethod
    def of(cls, program, instruction):
        kernel, (out,) = cls(instruction, program.limits), instruction.outputs
        picks, weights = _bands_of(instruction)
        tables = [picks.astype(np.int32)]
        if weights is not None:
            tables.append(weights.astype(out.dtype))
        tables = [np.ascontiguousarray(table) for table in tables]
        kernel.operands = (*kernel.operands, *map(program.constant, tables))
        return kernel

    def steps_on(self, addresses):
        (x, picks, *weights), (out,) = self.operands, self.outputs
        axis = self.replaced.keywords["axis"]
        (_, extent, tail), (_, size, _) = around(x.shape, axis), around(out.shape, axis)
        dtype = out.dtype if weights else bits_of(out.dtype)
        kind, number, width = index_type(x, out), c_type(dtype), picks.shape[0]
        factor = f" * weights[band * {size} + place]" if weights else ""
        entry = (
            f"x[(above * {extent} + picks[band * {size} + place]) * {tail} + behind]"
        )
        code = f"""\
  {each_entry(kind, "i", out.size)} {{
    const {kind} row = i / {tail}, above = row / {size}, behind = i - row * {tail};
    const {kind} place = row - above * {size};
    {kind} band = 0;
    {number} total = {entry}{factor};
    for (band = 1; band < {width}; ++band)
      total += {entry}{factor};
    out[i] = total;
  }}
"""
        reads = {"x": (x, dtype), "picks": picks}
        reads |= {"weights": weights[0]} if weights else {}
        return [launch(addresses, code, out.size, reads, {"out": (out, dtype)})]


def _bands_of(instruction):
    """Return for each output position the entries that are summed, and their weights."""
    (x,), keywords = instruction.operands, instruction.keywords
    is_adjoint = "extent" in keywords
    extent = keywords["extent"] if is_adjoint else x.shape[keywords["axis"]]
    setting = keywords["size"], extent, keywords["method"], keywords["antialias"]
    return bands(*setting, is_adjoint)
