"""Random numbers as CUDA C: Philox4x64-10 with the same stream as NumPy.

Each block of four words is a function of the key and its number, so that a thread draws
one of them. A float32 and a 32-bit integer use half a word, the lower half first,
64-bit numbers a whole word. Draws with rejection are not functions of a number: NumPy
computes them.

References:
    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

import numpy as np

from tapewright.ops.random.philox import GENERATOR

from ....program.instructions.kernel import bits_of
from ..kernel import CudaKernel, c_type
from ..scalar_functions import literal
from .entries import each_entry, index_type, launch

ROUNDS = 10


class DrawKernel(CudaKernel):
    """A dropout mask, uniform floats, or integers from the full range of a dtype."""

    __slots__ = ()

    @classmethod
    def accepts(cls, draw):
        (out,) = draw.outputs
        if not out.size or draw.state.size != 2 or draw.state.dtype.kind not in "iu":
            return False
        if draw.distribution == "dropout_mask":
            return out.dtype.char in "fd"
        if draw.distribution == "seeds":
            stream = draw.operands[1]
            return (
                cls._has_words(out) and stream.size == 1 and stream.dtype.kind in "iu"
            )
        if draw.distribution != "uniform":
            return False
        if draw.parameters.get("minval", 0) is None:
            return cls._has_words(out)
        return out.dtype.char in "fd" and _are_finite(out.dtype, *_bounds(draw))

    @staticmethod
    def _has_words(out):
        """Return whether the entries are words or halves of words."""
        return out.dtype.kind in "iu" and out.dtype.itemsize >= 4

    @property
    def drawn(self):
        """The dtype of the drawn numbers."""
        (out,) = self.outputs
        is_mask = self.replaced.distribution == "dropout_mask"
        return np.dtype(np.float32) if is_mask else out.dtype

    def steps_on(self, addresses):
        (state, *stream), (out,) = self.reads, self.outputs
        each, kind = 32 // self.drawn.itemsize, index_type(out)
        blocks = -(-out.size // each)
        writes = {"out": out if out.dtype.kind == "f" else (out, bits_of(out.dtype))}
        reads = {"state": state, **({"stream": stream[0]} if stream else {})}
        code = f"""\
  {each_entry(kind, "block", blocks)} {{
{self._key_and_counter(bool(stream))}\
    for (int turn = 0; turn < {ROUNDS}; ++turn) {{
      const unsigned long long high_0 = __umul64hi(c0, 0xD2E7470EE14C6C93ull);
      const unsigned long long high_2 = __umul64hi(c2, 0xCA5A826395121157ull);
      const unsigned long long low_0 = c0 * 0xD2E7470EE14C6C93ull;
      const unsigned long long low_2 = c2 * 0xCA5A826395121157ull;
      c0 = high_2 ^ c1 ^ k0, c1 = low_2;
      c2 = high_0 ^ c3 ^ k1, c3 = low_0;
      k0 += 0x9E3779B97F4A7C15ull, k1 += 0xBB67AE8584CAA73Bull;
    }}
    const unsigned long long words[4] = {{c0, c1, c2, c3}};
    const {kind} start = block * {each};
    const int count = {out.size} - start < {each} ? (int)({out.size} - start) : {each};
#pragma unroll
    for (int i = 0; i < {each}; ++i)
      if (i < count) {{
{self._entry()}\
      }}
  }}
"""
        return [launch(addresses, code, blocks, reads, writes, block=128)]

    def _key_and_counter(self, has_stream):
        """Declare key and counter of a block, as in `ops.random.philox`."""
        first, second = [f"(unsigned long long)(long long)state[{i}]" for i in (0, 1)]
        purpose = f"{self.replaced.purpose}ull"
        stream = "(unsigned long long)(long long)stream[0]" if has_stream else "0ull"
        if self.replaced.purpose == GENERATOR:
            key, counter = (first, "0ull"), ("0ull", second, "0ull")
        else:
            key, counter = (first, second), ("0ull", stream, purpose)
        return f"""\
    unsigned long long k0 = {key[0]}, k1 = {key[1]};
    unsigned long long c0 = (unsigned long long)block + 1ull, c1 = {counter[0]};
    unsigned long long c2 = {counter[1]}, c3 = {counter[2]};
"""

    def _entry(self):
        """Store entry ``i`` of the entries from these words."""
        (out,), word = self.outputs, "words[i]"
        if self.drawn.itemsize == 4:
            word = "(unsigned int)(words[i / 2] >> (i % 2 * 32))"
        lines = self._float(word) if out.dtype.kind == "f" else self._integer(word)
        return "".join([f"        {line}\n" for line in lines])

    def _integer(self, word):
        (out,) = self.outputs
        least = literal(
            np.iinfo(out.dtype).min % 2 ** (8 * out.dtype.itemsize), bits_of(out.dtype)
        )
        return [f"out[start + i] = {word} + {least};"]

    def _float(self, word):
        """A float in [0, 1), and the entry of the output that the kernel computes from it."""
        dtype = self.outputs[0].dtype
        drawn = self.drawn
        given = self.replaced.parameters
        shift, unit = (11, 2.0**-53) if drawn == np.float64 else (8, 2.0**-24)
        lines = [f"{c_type(drawn)} x = ({word} >> {shift}) * {literal(unit, drawn)};"]
        if self.replaced.distribution == "dropout_mask":
            rate = given["rate"]
            factor = literal(1 / (1 - rate) if rate < 1 else 0, dtype)
            return [
                *lines,
                f"out[start + i] = x >= {literal(rate, drawn)} ? {factor} : 0;",
            ]
        low, high = _bounds(self.replaced)
        factor, times = np.subtract(high, low, dtype=np.float64), _unfused(dtype)
        if factor != 1:
            lines.append(f"x = {times}(x, {literal(factor, dtype)});")
        if low:
            lines.append(f"x = x + {literal(low, dtype)};")
        if low and low < high:  # what is rounded up to the end stays below
            most = literal(np.nextafter(dtype.type(high), dtype.type(low)), dtype)
            lines.append(f"x = x < {most} ? x : {most};")
        return [*lines, "out[start + i] = x;"]


def _bounds(draw):
    return draw.parameters.get("minval", 0), draw.parameters.get("maxval", 1)


def _are_finite(dtype, low, high):
    """Return whether the bounds and their difference are finite in a dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = [low, high, np.subtract(high, low, dtype=np.float64)]
        return bool(np.isfinite(np.array(numbers, np.float64).astype(dtype)).all())


def _unfused(dtype):
    """A product that is rounded before the next addition."""
    return "__fmul_rn" if dtype.itemsize == 4 else "__dmul_rn"
