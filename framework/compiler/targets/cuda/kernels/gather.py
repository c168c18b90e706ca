"""Gather and scatter along an axis, and checks of labels, as CUDA C.

Each thread computes entries of the output. A scatter adds the rows of equal indices in
the order of the indices, whatever the number of threads: for few indices, each entry of
the output scans all of them; otherwise the indices are sorted first (`index_order`), so
that the rows of an entry are adjacent.
"""

from tapewright.ops.nn.cross_entropy import check_labels

from ....program.instructions.kernel import around, axis_of_rows, bits_of
from ..kernel import STATUS, CudaKernel, c_type
from . import index_order
from .entries import BLOCK, each_entry, index_type, launch
from .rows import TEAM

FEW = 32  # indices at which each entry of the output of a scatter may look


class GatherKernel(CudaKernel):
    """Gather rows of the first operand at the indices of the second."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, gather):
        whole = gather.source.size and gather.indices.size
        picks = gather.indices.dtype.kind in "iu"
        return bool(whole and picks and bits_of(gather.source.dtype))

    def steps_on(self, addresses):
        (out,), (source, indices) = self.outputs, self.operands
        lead, size, tail = around(source.shape, self.replaced.axis)
        count, kind, bits = indices.size, index_type(out, source), bits_of(out.dtype)
        code = f"""\
  {each_entry(kind, "i", out.size)} {{
    const {kind} row = i / {tail}, above = row / {count};
    const unsigned long long index = {_whole(f"indices[row - above * {count}]")};
    if (index < {size}ull)
      out[i] = source[(above * {size} + ({kind})index) * {tail} + (i - row * {tail})];
    else {{
      atomicCAS(status, 0, {self.number});
      out[i] = 0;
    }}
  }}
"""
        reads = {"source": (source, bits), "indices": indices}
        writes = {"out": (out, bits), "status": STATUS}
        return [launch(addresses, code, out.size, reads, writes)]


class ScatterKernel(CudaKernel):
    """Scatter-add rows of the first operand into zeros at the indices of the second.

    ``skips``: negative indices are ignored, instead of being invalid.
    """

    __slots__ = ()
    can_fail, skips = True, False

    @classmethod
    def accepts(cls, scatter):
        (rows, indices), (out,) = scatter.operands, scatter.outputs
        known = out.dtype.kind in "iu" or out.dtype.char in "fd"
        whole = rows.size and out.size and indices.dtype.kind in "iu"
        few = whole and max(_size(scatter), indices.size) < index_order.MOST
        return bool(known and few)

    def scratch_specs(self, scatter):
        count = scatter.operands[1].size
        return () if count <= FEW else index_order.scratch_specs(count, self.limits)

    @property
    def around(self):
        """Entries of the output before the axis, along it, and behind it."""
        return around(self.outputs[0].shape, axis_of_rows(self.replaced))

    @property
    def has_teams(self):
        """Return whether a block computes each entry, as it is the sum of many."""
        _, size, _ = self.around
        return self.operands[1].size > max(FEW, self.limits.team_indices * size)

    def steps_on(self, addresses):
        rows, indices, *scratch = self.operands
        reads = {"rows": self._summands(rows)}
        if not scratch:
            code, writes = self._looking_at_all(), {"status": STATUS}
            return [self._sums(addresses, code, reads | {"indices": indices}, writes)]
        size = _size(self.replaced)
        how = self.number, self.limits, self.skips
        order = index_order.steps(addresses, indices, size, scratch, *how)
        reads |= {"keys": order.keys, "order": order.order}
        return [*order.steps, self._sums(addresses, self._looking_up(), reads, {})]

    def _summands(self, array):
        """An array as summands: unsigned integers, whose overflow is defined."""
        dtype = array.dtype
        return (array, dtype if dtype.kind == "f" else bits_of(dtype))

    def _sums(self, addresses, sum_rows, reads, writes):
        """Return the launch in which each thread, or each block, sums output entries."""
        (out,), (rows, indices, *_) = self.outputs, self.operands
        _, size, tail = self.around
        kind, (_, dtype) = index_type(out, rows), self._summands(out)
        number = c_type(dtype)
        head, shared, combine = each_entry(kind, "i", out.size), "", ""
        if self.has_teams:
            head = f"for ({kind} i = blockIdx.x; i < {out.size}; i += gridDim.x)"
            shared, combine = f"  __shared__ {number} parts[{TEAM}];\n", _COMBINED
        code = f"""\
{shared}\
  {head} {{
    const {kind} row = i / {tail}, above = row / {size};
    const int own = (int)(row - above * {size});
    const {kind} first = above * {indices.size} * {tail} + (i - row * {tail});
    {number} total = 0;
{sum_rows}\
{combine}\
    out[i] = total;
  }}
"""
        threads, block = (TEAM, TEAM) if self.has_teams else (1, BLOCK)
        writes = {"out": (out, dtype), **writes}
        return launch(addresses, code, out.size * threads, reads, writes, block)

    def _looking_at_all(self):
        (out,), (rows, indices) = self.outputs, self.operands
        _, size, tail = self.around
        wrong = f"index >= {size}ull" + " && indices[k] >= 0" * self.skips
        return f"""\
    for (int k = 0; k < {indices.size}; ++k) {{
      const unsigned long long index = {_whole("indices[k]")};
      if ({wrong})
        atomicCAS(status, 0, {self.number});
      else if (index == own)
        total += rows[first + ({index_type(out, rows)})k * {tail}];
    }}
"""

    def _looking_up(self):
        """Find the first sorted index equal to the thread's index, and those behind it."""
        (out,), (rows, indices, *_) = self.outputs, self.operands
        _, _, tail = self.around
        start, step = (
            ("low + threadIdx.x", "blockDim.x") if self.has_teams else ("low", 1)
        )
        return f"""\
    int low = 0, high = {indices.size};
    while (low < high) {{
      const int middle = (low + high) / 2;
      if (keys[middle] < own)
        low = middle + 1;
      else
        high = middle;
    }}
    for (int k = {start}; k < {indices.size} && keys[k] == own; k += {step})
      total += rows[first + ({index_type(out, rows)})order[k] * {tail}];
"""


# All threads of a block have the total of what they have in ``parts``.
_COMBINED = """\
    parts[threadIdx.x] = total;
    __syncthreads();
    for (int width = 1; width < blockDim.x; width *= 2) {
      if (threadIdx.x % (2 * width) == 0 && threadIdx.x + width < blockDim.x)
        parts[threadIdx.x] += parts[threadIdx.x + width];
      __syncthreads();
    }
    total = parts[0];
    __syncthreads();
"""


class SegmentSumKernel(ScatterKernel):
    """`unsorted_segment_sum`: sums of the rows with equal ids, ignoring negative ids."""

    __slots__ = ()
    skips = True


class SegmentRowsKernel(CudaKernel):
    """`segment_rows`: the row of each id, zeros for an id without a row."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (rows, ids), (out,) = instruction.operands, instruction.outputs
        picks = ids.dtype.kind in "iu"
        return bool(rows.size and out.size and picks and bits_of(rows.dtype))

    def steps_on(self, addresses):
        (out,), (rows, ids) = self.outputs, self.operands
        kind = index_type(out, rows)
        bits = bits_of(out.dtype)
        tail = out.size // ids.size
        entry = f"rows[({kind})id * {tail} + (i - row * {tail})]"
        code = f"""\
  {each_entry(kind, "i", out.size)} {{
    const {kind} row = i / {tail};
    const unsigned long long id = {_whole("ids[row]")};
    out[i] = id < {rows.shape[0]}ull ? {entry} : 0;
  }}
"""
        reads, writes = {"rows": (rows, bits), "ids": ids}, {"out": (out, bits)}
        return [launch(addresses, code, out.size, reads, writes)]


class RangeKernel(CudaKernel):
    """Check that all labels are at least 0 and less than the number of classes."""

    __slots__ = ()
    can_fail = True

    @classmethod
    def accepts(cls, check):
        (x,) = check.operands
        return check.function is check_labels and bool(x.size)

    def steps_on(self, addresses):
        (labels,), classes = self.operands, self.replaced.keywords["classes"]
        code = f"""\
  {each_entry(index_type(labels), "i", labels.size)}
    if ({_whole("labels[i]")} >= {classes}ull)
      atomicCAS(status, 0, {self.number});
"""
        reads, writes = {"labels": labels}, {"status": STATUS}
        return [launch(addresses, code, labels.size, reads, writes)]


def _size(scatter):
    """The number of rows along the axis of a scatter."""
    (out,) = scatter.outputs
    return out.shape[axis_of_rows(scatter)]


def _whole(entry):
    """An integer as an unsigned 64-bit one: negative indices become too large."""
    return f"(unsigned long long)(long long){entry}"
