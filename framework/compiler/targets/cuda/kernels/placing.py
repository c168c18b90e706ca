"""Entries addressed by indices along axes, as CUDA C: flat indices, placing in rows."""

import math

from ....program.instructions.kernel import around, bits_of
from ..kernel import STATUS, CudaKernel
from .entries import each_entry, index_type, launch


class FlatIndexKernel(CudaKernel):
    """`flat_index`: flat indices of entries, from coordinates that are checked."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, instruction):
        (indices,), (out,) = instruction.operands, instruction.outputs
        return bool(out.size and indices.size and indices.dtype.kind in "iu")

    def steps_on(self, addresses):
        (indices,), (out,) = self.operands, self.outputs
        keywords = self.replaced.keywords
        dims, batch = keywords["dims"], keywords["batch"]
        each = out.size // math.prod(batch)  # coordinates of one of the batch
        turn = "if (place < 0) place += {size}; " * keywords["wrap"]
        lines = []
        for axis, size in enumerate(dims):
            lines.append(f"place = (long long)indices[i * {len(dims)} + {axis}];")
            lines.append(
                f"{turn.format(size=size)}wrong |= place < 0 || place >= {size};"
            )
            lines.append(f"total = total * {size} + place;")
        of_axes = "\n    ".join(lines)
        code = f"""\
  {each_entry(index_type(indices), "i", out.size)} {{
    long long place, total = 0;
    int wrong = 0;
    {of_axes}
    if (wrong) atomicCAS(status, 0, {self.number});
    out[i] = wrong ? 0 : total + i / {each} * {math.prod(dims)}ll;
  }}
"""
        reads, writes = {"indices": indices}, {"out": out, "status": STATUS}
        return [launch(addresses, code, out.size, reads, writes)]


class PlaceAlongKernel(CudaKernel):
    """`place_along_axis`: zeros with entries at indices that are unique in each row."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, instruction):
        (x, indices), (out,) = instruction.operands, instruction.outputs
        known = indices.dtype.kind in "iu" and x.shape == indices.shape
        return bool(known and x.size and out.size and bits_of(out.dtype))

    def steps_on(self, addresses):
        (x, indices), (out,) = self.operands, self.outputs
        _, count, tail = around(x.shape, self.replaced.keywords["axis"])
        kind, bits = index_type(x, out), bits_of(out.dtype)
        size = self.replaced.keywords["size"]
        clear = f"  {each_entry(kind, 'i', out.size)}\n    out[i] = 0;\n"
        code = f"""\
  {each_entry(kind, "i", x.size)} {{
    const {kind} row = i / {tail}, above = row / {count};
    long long place = (long long)indices[i];
    if (place < 0) place += {size};
    if (place < 0 || place >= {size})
      atomicCAS(status, 0, {self.number});
    else
      out[(above * {size} + ({kind})place) * {tail} + (i - row * {tail})] = x[i];
  }}
"""
        target = {"out": (out, bits)}
        reads = {"x": (x, bits), "indices": indices}
        writes = target | {"status": STATUS}
        return [
            launch(addresses, clear, out.size, {}, target),
            launch(addresses, code, x.size, reads, writes),
        ]
