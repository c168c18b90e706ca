"""The index of the largest or smallest entry of each row, as CUDA C.

The first of equal entries is chosen, and NaN precedes all numbers, as in NumPy. The
members of a team scan entries in turn, and their results are combined in shared memory.
"""

from ..kernel import CudaKernel, c_type
from ..scalar_functions import register_type
from .entries import launch
from .rows import TEAM, Rows

DTYPES = "?bBhHiIlLqQefd"


class ArgReductionKernel(CudaKernel):
    """`argmax` or `argmin` along an axis."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (x,) = instruction.operands
        known = x.dtype.char in DTYPES and x.dtype.isnative
        return bool(
            known and x.size and x.shape[instruction.keywords["axis"]] < 1 << 30
        )

    def steps_on(self, addresses):
        (x,), (out,) = self.operands, self.outputs
        rows = Rows(x, self.replaced.keywords["axis"])
        kind = register_type(x.dtype)
        shared = (
            f"  __shared__ {kind} values[{TEAM}];\n  __shared__ int found[{TEAM}];\n"
        )
        code = f"""\
{shared if rows.have_teams else ""}\
  {rows.each()} {{
    {rows.start()}
    const int first = {rows.member} < {rows.size} ? {rows.member} : 0;
    {kind} best = {rows.entry("first")};
    int at = first;
    for (int k = first + {rows.members}; k < {rows.size}; k += {rows.members}) {{
      const {kind} other = {rows.entry("k")};
      if ({self._before("other", "best")}) {{
        best = other;
        at = k;
      }}
    }}
{self._combined() if rows.have_teams else f"    out[row] = ({c_type(out.dtype)})at;"}
  }}
"""
        reads, writes = {"x": x}, {"out": out}
        return [launch(addresses, code, rows.threads, reads, writes, rows.block)]

    def _before(self, a, b):
        """The condition that one entry precedes another, regardless of their indices."""
        sign = "<" if self.name == "argmin" else ">"
        text = f"{a} {sign} {b}"
        is_float = self.operands[0].dtype.kind == "f"
        return f"{text} || ({a} != {a} && {b} == {b})" if is_float else text

    def _combined(self):
        """Halve the number of members with a candidate until one is left."""
        dtype, own, other = c_type(self.outputs[0].dtype), "threadIdx.x", "values[mate]"
        before, behind = self._before(other, "best"), self._before("best", other)
        return f"""\
    values[{own}] = best;
    found[{own}] = at;
    __syncthreads();
    for (int width = 1; width < blockDim.x; width *= 2) {{
      const int mate = {own} + width;
      if ({own} % (2 * width) == 0 && mate < blockDim.x) {{
        if ({before} || (!({behind}) && found[mate] < at)) {{
          best = values[{own}] = {other};
          at = found[{own}] = found[mate];
        }}
      }}
      __syncthreads();
    }}
    if ({own} == 0)
      out[row] = ({dtype})at;
    __syncthreads();"""
