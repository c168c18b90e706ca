"""Running sums and products along an axis, as CUDA C.

If there are many rows, each thread scans a whole row. Otherwise a block scans as many
entries as it has threads in logarithmically many steps, and continues from their
result. Integers are unsigned here, as their overflow is defined.
"""

from ....program.instructions.kernel import bits_of
from ..kernel import CudaKernel
from ..scalar_functions import literal, register_type, scalar_function
from .entries import launch
from .rows import TEAM, Rows

# op -> (ufunc, what changes no number, the first entry of an exclusive scan)
SCANS = {"cumsum": ("add", -0.0, 0), "cumprod": ("multiply", 1, 1)}


class ScanKernel(CudaKernel):
    """`cumsum` or `cumprod`."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (x,) = instruction.operands
        known = x.dtype.kind in "iu" or x.dtype.char in "fd"
        native = known and x.dtype.isnative
        return bool(
            native and x.size and x.shape[instruction.keywords["axis"]] < 1 << 30
        )

    def steps_on(self, addresses):
        (x,), (out,) = self.operands, self.outputs
        dtype = x.dtype if x.dtype.kind == "f" else bits_of(x.dtype)
        rows = Rows(x, self.replaced.keywords["axis"])
        code = f"  {rows.each()} {{\n    {rows.start()}\n"
        code += (
            self._divided(rows, dtype) if rows.have_teams else self._whole(rows, dtype)
        )
        code += "  }\n"
        if rows.have_teams:
            code = f"  __shared__ {register_type(dtype)} parts[{TEAM}];\n{code}"
        reads, writes = {"x": (x, dtype)}, {"out": (out, dtype)}
        return [launch(addresses, code, rows.threads, reads, writes, rows.block)]

    def _numbers(self, dtype):
        """The function of two numbers, its identity element, and the initial value."""
        ufunc, neutral, first = SCANS[self.name]
        neutral = literal(neutral if dtype.kind == "f" else abs(neutral), dtype)

        def combine(a, b):
            return scalar_function(ufunc, [a, b], [dtype, dtype], dtype)

        return combine, neutral, literal(first, dtype)

    def _stored(self, rows, k, value, first):
        """Lines that store the result up to the ``k``-th entry, in scan order."""
        if not self.replaced.keywords["exclusive"]:
            return f"{self._entry(rows, k, 'out')} = {value};"
        behind = self._entry(rows, f"{k} + 1", "out")
        begin = f"if ({k} == 0) {self._entry(rows, '0', 'out')} = {first};"
        return f"{begin}\n      if ({k} + 1 < {rows.size}) {behind} = {value};"

    def _entry(self, rows, k, array):
        reverse = self.replaced.keywords["reverse"]
        return rows.entry(f"({rows.size - 1} - ({k}))" if reverse else f"({k})", array)

    def _whole(self, rows, dtype):
        combine, neutral, first = self._numbers(dtype)
        return f"""\
    {register_type(dtype)} total = {neutral};
    for (int k = 0; k < {rows.size}; ++k) {{
      const {register_type(dtype)} own = {self._entry(rows, "k", "x")};
      total = {combine("total", "own")};
      {self._stored(rows, "k", "total", first)}
    }}
"""

    def _divided(self, rows, dtype):
        combine, neutral, first = self._numbers(dtype)
        own = "threadIdx.x"
        return f"""\
    {register_type(dtype)} before = {neutral};
    for (int chunk = 0; chunk < {rows.size}; chunk += blockDim.x) {{
      const int k = chunk + {own};
      {register_type(dtype)} total = {neutral};
      if (k < {rows.size}) total = {self._entry(rows, "k", "x")};
      parts[{own}] = total;
      __syncthreads();
      for (int width = 1; width < blockDim.x; width *= 2) {{
        const {register_type(dtype)} left = {own} >= width ? parts[{own} - width] : {neutral};
        __syncthreads();
        parts[{own}] = total = {combine("left", "total")};
        __syncthreads();
      }}
      total = {combine("before", "total")};
      before = {combine("before", "parts[blockDim.x - 1]")};
      __syncthreads();
      if (k < {rows.size}) {{
      {self._stored(rows, "k", "total", first)}
      }}
    }}
"""
