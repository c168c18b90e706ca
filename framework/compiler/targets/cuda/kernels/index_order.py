"""The stable order of indices, as CUDA C: it makes sums of rows deterministic.

Few indices are ranked by comparing all pairs. Many are sorted byte by byte (radix
sort): one launch counts the occurrences of each byte in each stretch of the keys, a
second one moves the keys of each stretch behind the equal keys of the stretches before
it. All counters are integers, so the order in which threads add to them does not
matter.
"""

from typing import NamedTuple

import numpy as np

from ..kernel import STATUS
from .entries import each_entry, launch

MOST = 1 << 30  # indices, and rows to which they point
CHUNK = 512  # keys of a stretch that lie in shared memory at a time
BYTE = 256  # values of one

_INT32 = np.dtype(np.int32)


class IndexOrder(NamedTuple):
    """Steps that sort ``keys``, and write the original positions to ``order``."""

    steps: list
    keys: object
    order: object


def scratch_specs(count, limits):
    """Shapes and dtypes of scratch memory for sorting ``count`` indices."""
    row = ((count,), _INT32)
    if count <= limits.ranked_indices:
        return [row] * 2
    return [*[row] * 4, ((_cut(count, limits).stretches * BYTE,), _INT32)]


def steps(addresses, indices, size, scratch, failure, limits, skips=False):
    """Return the `IndexOrder` of indices from 0 to ``size - 1``; other indices fail.

    With ``skips``, negative indices do not fail, and come last.
    """
    if indices.size <= limits.ranked_indices:
        return _ranked(addresses, indices, size, scratch, failure, skips)
    *pairs, counts = scratch
    pairs, launches, cut = [pairs[:2], pairs[2:]], [], _cut(indices.size, limits)
    last = size - (not skips)
    for turn in range(-(-max(1, last.bit_length()) // 8)):
        source = indices if turn == 0 else pairs[turn % 2 - 1]
        key = _Key(source, size, failure, 8 * turn, skips)
        launches.append(_counting(addresses, key, cut, counts))
        launches.append(_moving(addresses, key, cut, counts, pairs[turn % 2]))
    return IndexOrder(launches, *pairs[turn % 2])


class _Key:
    """The keys of a round: entries of the indices at first, then the moved keys.

    ``read`` are the arrays of a launch that reads them.
    """

    def __init__(self, source, size, failure, shift, skips):
        self.is_first = type(source) is not list
        self.size, self.failure, self.shift = size, failure, shift
        self.skips = skips
        names = ["indices"] if self.is_first else ["old_keys", "old_order"]
        arrays = [source] if self.is_first else source
        self.read = dict(zip(names, arrays, strict=True))

    def code(self, name, k, checks=False):
        """The declaration of key ``k``; a key out of range becomes the last one."""
        if not self.is_first:
            return f"const int {name} = old_keys[{k}];"
        wide = f"(unsigned long long)(long long)indices[{k}]"
        wrong = f"{wide} >= {self.size}ull"
        wrong += f" && indices[{k}] >= 0" * self.skips
        fails = f" if ({wrong}) atomicCAS(status, 0, {self.failure});"
        last = self.size - (not self.skips)
        inside = f"{wide} < {self.size}ull ? (int)indices[{k}] : {last}"
        return f"const int {name} = {inside};{fails * checks}"

    def order(self, k):
        return k if self.is_first else f"old_order[{k}]"

    def byte(self, key):
        return f"({key} >> {self.shift} & {BYTE - 1})"

    @property
    def written(self):
        return {"status": STATUS} if self.is_first else {}


def _ranked(addresses, indices, size, scratch, failure, skips):
    keys, order = scratch
    key = _Key(indices, size, failure, 0, skips)
    code = f"""\
  {each_entry("int", "i", indices.size)} {{
    {key.code("own", "i", checks=True)}
    int rank = 0;
    for (int k = 0; k < {indices.size}; ++k) {{
      {key.code("other", "k")}
      rank += other < own || (other == own && k < i);
    }}
    keys[rank] = own;
    order[rank] = i;
  }}
"""
    writes = {"keys": keys, "order": order, **key.written}
    made = launch(addresses, code, indices.size, key.read, writes, block=64)
    return IndexOrder([made], keys, order)


class _Cut(NamedTuple):
    """``count`` keys, split into ``stretches`` of ``keys`` each; the last may be shorter."""

    count: int
    stretches: int
    keys: int


def _cut(count, limits):
    keys = CHUNK * -(-count // (CHUNK * limits.key_stretches))
    return _Cut(count, -(-count // keys), keys)


def _each_stretch(cut, code):
    """A loop over stretches: a block processes whole ones, from key ``start`` to ``stop``."""
    count, stretches, keys = cut
    return f"""\
  for (int stretch = blockIdx.x; stretch < {stretches}; stretch += gridDim.x) {{
    const int start = stretch * {keys};
    const int stop = {count} - start < {keys} ? {count} : start + {keys};
{code}\
    __syncthreads();
  }}
"""


def _counting(addresses, key, cut, counts):
    """Count the occurrences of each byte in each stretch."""
    code = f"""\
    for (int b = threadIdx.x; b < {BYTE}; b += blockDim.x)
      found[b] = 0;
    __syncthreads();
    for (int k = start + threadIdx.x; k < stop; k += blockDim.x) {{
      {key.code("own", "k", checks=True)}
      atomicAdd(&found[{key.byte("own")}], 1);
    }}
    __syncthreads();
    for (int b = threadIdx.x; b < {BYTE}; b += blockDim.x)
      counts[stretch * {BYTE} + b] = found[b];
"""
    code = f"  __shared__ int found[{BYTE}];\n" + _each_stretch(cut, code)
    writes = {"counts": counts, **key.written}
    return _launch(addresses, code, cut, key.read, writes)


def _moving(addresses, key, cut, counts, target):
    """Move the keys of a stretch behind the keys before them, chunk by chunk.

    ``next`` is the next position for a key with a byte.
    """
    code = f"""\
    for (int b = threadIdx.x; b < {BYTE}; b += blockDim.x) {{
      int before = 0, total = 0;
      for (int i = 0; i < {cut.stretches}; ++i) {{
        const int found = counts[i * {BYTE} + b];
        before += i < stretch ? found : 0;
        total += found;
      }}
      next[b] = before;
      totals[b] = total;
    }}
    __syncthreads();
    for (int b = threadIdx.x; b < {BYTE}; b += blockDim.x) {{
      int below = 0;
      for (int i = 0; i < b; ++i)
        below += totals[i];
      next[b] += below;
    }}
    for (int first = start; first < stop; first += {CHUNK}) {{
      const int own = stop - first < {CHUNK} ? stop - first : {CHUNK};
      for (int i = threadIdx.x; i < own; i += blockDim.x) {{
        {key.code("moved", "first + i")}
        bytes[i] = {key.byte("moved")};
      }}
      __syncthreads();
      for (int i = threadIdx.x; i < own; i += blockDim.x) {{
        {key.code("moved", "first + i")}
        int rank = next[bytes[i]];
        for (int k = 0; k < i; ++k)
          rank += bytes[k] == bytes[i];
        keys[rank] = moved;
        order[rank] = {key.order("first + i")};
      }}
      __syncthreads();
      for (int i = threadIdx.x; i < own; i += blockDim.x)
        atomicAdd(&next[bytes[i]], 1);
      __syncthreads();
    }}
"""
    shared = f"  __shared__ int next[{BYTE}], totals[{BYTE}], bytes[{CHUNK}];\n"
    keys, order = target
    reads, writes = {**key.read, "counts": counts}, {"keys": keys, "order": order}
    return _launch(addresses, shared + _each_stretch(cut, code), cut, reads, writes)


def _launch(addresses, code, cut, reads, writes):
    """A launch of one block for each stretch."""
    made = launch(addresses, code, cut.count, reads, writes, block=256)
    return made._replace(grid=(cut.stretches, 1, 1))
