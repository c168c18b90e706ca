"""Sorted rows and largest entries, as CUDA C.

Each entry counts the entries that precede it, so it finds its rank alone, and the sort
is stable. NaN comes last, also where the largest entries come first.
"""

from ..kernel import CudaKernel, c_type
from ..scalar_functions import register_type
from .entries import each_entry, index_type, launch
from .rows import TEAM, Rows

DTYPES = "?bBhHiIlLqQefd"
MOST, MOST_PAIRS = 4096, 1 << 31  # entries of a row, and pairs of them in all
MOST_CLASSES, MOST_SEARCHED = 1 << 20, 1 << 30


class RankKernel(CudaKernel):
    """Entries moved to their ranks; a subclass decides which are stored, and where."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (x,) = instruction.operands
        known = x.dtype.char in DTYPES and x.dtype.isnative
        sizes = all([out.size for out in instruction.outputs])
        size = x.shape[instruction.keywords.get("axis", -1)]
        fits = size <= MOST and x.size * size <= MOST_PAIRS
        return bool(known and sizes and fits)

    def ranked(self, addresses, axis, descends, store, writes):
        """Return the launch in which each entry finds its ``rank`` and ``store`` stores it."""
        (x,) = self.operands
        rows, kind = Rows(x, axis), register_type(x.dtype)
        code = f"""\
  {each_entry(rows.kind, "i", x.size)} {{
    const {rows.kind} row = i / {rows.size};
    const int at = (int)(i - row * {rows.size});
    {rows.start()}
    const {kind} own = {rows.entry("at")};
    int rank = 0;
    for (int k = 0; k < {rows.size}; ++k) {{
      const {kind} other = {rows.entry("k")};
      if ({_before("other", "own", x.dtype, descends)})
        ++rank;
      else if (k < at && !({_before("own", "other", x.dtype, descends)}))
        ++rank;
    }}
{store(rows)}\
  }}
"""
        return launch(addresses, code, x.size, {"x": x}, writes)


class SortKernel(RankKernel):
    """`sort` or `argsort`."""

    __slots__ = ()

    def steps_on(self, addresses):
        keywords, (out,) = self.replaced.keywords, self.outputs

        def store(rows):
            index = rows.index("rank")
            value = "at" if self.name == "argsort" else rows.stored("own")
            return f"    out[{index}] = {value};\n"

        axis, descends = keywords["axis"], keywords["descending"]
        return [self.ranked(addresses, axis, descends, store, {"out": out})]


class TopKernel(RankKernel):
    """`top_k`: values and indices."""

    __slots__ = ()

    def steps_on(self, addresses):
        values, indices = self.outputs
        k, dtype = self.replaced.keywords["k"], c_type(indices.dtype)

        def store(rows):
            return f"""\
    if (rank < {k}) {{
      values[row * {k} + rank] = {rows.stored("own")};
      indices[row * {k} + rank] = ({dtype})at;
    }}
"""

        writes = {"values": values, "indices": indices}
        return [self.ranked(addresses, -1, True, store, writes)]


class InTopKernel(CudaKernel):
    """`in_top_k`: a block counts the classes of a row that score higher than the target."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        targets, predictions = instruction.operands
        known = predictions.dtype.char in DTYPES and predictions.dtype.isnative
        fits = predictions.size and predictions.shape[1] <= MOST_CLASSES
        return bool(known and fits and targets.dtype.isnative)

    def steps_on(self, addresses):
        (targets, predictions), (out,) = self.operands, self.outputs
        rows, kind = Rows(predictions, -1), register_type(predictions.dtype)
        is_float, k = predictions.dtype.kind == "f", self.replaced.keywords["k"]
        wrong = "own - own != 0" if is_float else "0"
        code = f"""\
  __shared__ int better;
  for (int row = blockIdx.x; row < {rows.count}; row += gridDim.x) {{
    {rows.start()}
    const unsigned long long target = (unsigned long long)(long long)targets[row];
    const int exists = target < {rows.size}ull;
    const {kind} chosen = {rows.entry("(exists ? (int)target : 0)")};
    int found = 0;
    if (threadIdx.x == 0)
      better = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < {rows.size}; k += blockDim.x) {{
      const {kind} own = {rows.entry("k")};
      found = {wrong} ? {rows.size} : found + (own > chosen);
    }}
    if (found)
      atomicAdd(&better, found);
    __syncthreads();
    if (threadIdx.x == 0)
      out[row] = exists && better < {min(k, rows.size)};
    __syncthreads();
  }}
"""
        reads, writes = {"targets": targets, "x": predictions}, {"out": out}
        return [launch(addresses, code, rows.count * TEAM, reads, writes, TEAM)]


class SearchKernel(CudaKernel):
    """`searchsorted`: the insertion index of each value in a sorted row, by bisection."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        row, values = instruction.operands
        known = row.dtype.char in DTYPES and row.dtype.isnative
        whole = row.size and values.size and row.shape[-1] <= MOST_SEARCHED
        return bool(known and row.dtype == values.dtype and whole)

    def steps_on(self, addresses):
        (row, values), (out,) = self.operands, self.outputs
        rows, count = Rows(row, -1), values.size // Rows(row, -1).count
        kind, searched = register_type(row.dtype), ("other", "own", row.dtype, False)
        if self.replaced.keywords["right"]:
            searched = ("own", "other", row.dtype, False)
        is_behind = "!" * self.replaced.keywords["right"] + f"({_before(*searched)})"
        own = "values[i]"
        own = f"float_of_half({own})" if row.dtype.char == "e" else own
        code = f"""\
  {each_entry(index_type(row, values), "i", values.size)} {{
    const {rows.kind} row = i / {count};
    {rows.start()}
    const {kind} own = {own};
    int low = 0, high = {rows.size};
    while (low < high) {{
      const int middle = (low + high) / 2;
      const {kind} other = {rows.entry("middle")};
      if ({is_behind})
        low = middle + 1;
      else
        high = middle;
    }}
    out[i] = ({c_type(out.dtype)})low;
  }}
"""
        reads = {"x": row, "values": values}
        return [launch(addresses, code, values.size, reads, {"out": out})]


def _before(a, b, dtype, descends):
    """The condition that one number precedes another in a row; NaN is last."""
    text = f"{a} {'>' if descends else '<'} {b}"
    return f"{text} || ({a} == {a} && {b} != {b})" if dtype.kind == "f" else text
