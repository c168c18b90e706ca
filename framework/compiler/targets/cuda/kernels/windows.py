"""Pooling along an axis as CUDA C: each entry from the taps of its windows.

A thread computes an entry of the output and writes it once, for every op: in pooling
from the entries of its window, in gradients from the windows that contain it, tap by
tap. So sums keep their order. The values equal those of the kernels in
`ops.convolution.pooling`.
"""

from abc import abstractmethod

import numpy as np

from tapewright.ops.convolution.pooling import shares_of
from tapewright.ops.convolution.windows import (
    window_positions,
)

from ....program.kernel import around, bits_of
from ....program.windows import SpreadToMaxima, Windows
from ..kernel import CudaKernel, c_type
from ..scalar_functions import literal, scalar_function
from .entries import each_entry, index_type, launch

__all__ = [
    "MaxKernel",
    "MeanKernel",
    "PickKernel",
    "SpreadKernel",
    "SpreadMeansKernel",
]


class WindowKernel(Windows, CudaKernel):
    """An op along an axis; a subclass has the code that computes an entry, in `value`.

    In that code ``place`` is the index of the entry along the axis, and
    ``x<n>[at_<n>(p)]`` is entry ``p`` of operand ``n`` in the same row.
    """

    __slots__ = ()
    most_taps = 1 << 10

    @property
    def kind(self):
        """The C integer type of indices of entries."""
        return index_type(*self.operands, *self.outputs)

    @property
    def summed(self):
        """The dtype of sums: unsigned for integers, as their overflow is defined."""
        dtype = self.outputs[0].dtype
        return dtype if dtype.kind == "f" else bits_of(dtype)

    def steps_on(self, addresses):
        (out,), kind = self.outputs, self.kind
        _, extent, tail = around(out.shape, self.axis)
        code = f"""\
  {each_entry(kind, "i", out.size)} {{
    const {kind} row = i / {tail}, above = row / {extent}, behind = i - row * {tail};
    const int place = (int)(row - above * {extent});
{self.value()}\
    out[i] = total;
  }}
"""
        return [self.launched(addresses, code, out.size)]

    def launched(self, addresses, code, count):
        (out,) = self.outputs
        reads = {f"x{n}": array for n, array in enumerate(self.operands)}
        return launch(addresses, code, count, reads, {"out": out})

    def load(self, n, place):
        """Entry ``place`` of operand ``n`` along the axis."""
        _, extent, tail = around(self.operands[n].shape, self.axis)
        return f"x{n}[(above * {extent} + {place}) * {tail} + behind]"

    def each_tap(self, code, condition=None):
        """A loop over the taps of the entry; a tap reads entry ``met``, if it is in bounds."""
        extent, size, stride, _, dilation = self.window
        before, _, count = window_positions(*self.window)
        if not self.spreads:
            meet = f"const int met = place * {stride} + tap * {dilation} - {before};"
            valid = "" if self.is_everywhere else f"met >= 0 && met < {extent}"
        else:
            meet = f"const int from = place + {before} - tap * {dilation};"
            meet += f" const int met = from / {stride};"
            whole = "" if stride == 1 else f" && from % {stride} == 0"
            valid = f"from >= 0 && met < {count}{whole}"
        conditions = " && ".join([each for each in (valid, condition) if each])
        return f"""\
    for (int tap = 0; tap < {size}; ++tap) {{
      {meet}
      if ({conditions or 1}) {{
{code}\
      }}
    }}
"""

    def share(self, window):
        """Lines that declare ``share``: one over the number of entries in a window."""
        shares, dtype = shares_of(*self.window), c_type(self.summed)
        if not isinstance(shares, np.ndarray):
            return f"const {dtype} share = {literal(shares, self.summed)};"
        extent, size, stride, _, dilation = self.window
        before, _, _ = window_positions(*self.window)
        return f"""\
const int first = {window} * {stride} - {before}, left = {extent - 1} - first;
    const int low = first < 0 ? ({dilation - 1} - first) / {dilation} : 0;
    const int high = left < 0 ? -1 : min(left / {dilation}, {size - 1});
    const {dtype} share = ({dtype})1 / (high < low ? 0 : high - low + 1);"""

    @abstractmethod
    def value(self):
        """Lines that declare and compute ``total``, the entry."""


class MaxKernel(WindowKernel):
    """`window_max`."""

    __slots__ = ()

    def value(self):
        (out,), dtype = self.outputs, c_type(self.outputs[0].dtype)
        lowest = -np.inf if out.dtype.kind == "f" else np.iinfo(out.dtype).min
        args, dtypes = ("total", "x"), (out.dtype,) * 2
        larger = scalar_function("maximum", args, dtypes, out.dtype)
        code = f"""\
        const {dtype} x = {self.load(0, "met")};
        total = tap == 0 ? x : {larger};"""
        start = f"    {dtype} total = {literal(lowest, out.dtype)};\n"
        return start + self.each_tap(code)


class MeanKernel(WindowKernel):
    """`window_mean`."""

    __slots__ = ()

    def value(self):
        start = "-0.0" if self.is_everywhere else "0"  # -0.0 changes no sum
        return f"""\
    {c_type(self.summed)} total = {start};
{self.each_tap(f"        total += {self.load(0, 'met')};")}\
    {self.share("place")}
    total *= share;
"""


class SpreadMeansKernel(WindowKernel):
    """`spread_means`."""

    __slots__ = ()
    spreads = True

    def value(self):
        dtype = c_type(self.summed)
        times = "__fmul_rn" if self.summed.itemsize == 4 else "__dmul_rn"
        code = f"""\
    {self.share("met")}
    total += {times}({self.load(0, "met")}, share);"""
        return f"    {dtype} total = 0;\n" + self.each_tap(_indented(code))


class PickKernel(WindowKernel):
    """`pick_at_maxima`; the operands are the array to pick from, the input and its maxima."""

    __slots__ = ()

    def value(self):
        code = f"""\
        total += {self.load(0, "met")};
        break;"""
        is_maximum = f"{self.load(1, 'met')} == maximum"
        return f"""\
    const {c_type(self.operands[2].dtype)} maximum = {self.load(2, "place")};
    {c_type(self.summed)} total = 0;
{self.each_tap(code, is_maximum)}\
"""


class SpreadKernel(SpreadToMaxima, WindowKernel):
    """`spread_to_maxima`; the operands are cotangents, the input and its maxima."""

    __slots__ = ()
    most_taps = 64  # each looks at all before it

    def value(self):
        extent, _, stride, _, dilation = self.window
        before, _, _ = window_positions(*self.window)
        code = f"""\
        int is_first = 1;
        for (int i = 0; i < tap; ++i) {{
          const int earlier = place - (tap - i) * {dilation};
          if (earlier >= 0 && {self.load(1, "earlier")} == own) {{
            is_first = 0;
            break;
          }}
        }}
        if (is_first)
          total += {self.load(0, "met")};"""
        return f"""\
    const {c_type(self.operands[1].dtype)} own = {self.load(1, "place")};
    {c_type(self.summed)} total = 0;
{self.each_tap(code, f"own == {self.load(2, 'met')}")}\
"""

    def steps_on(self, addresses):
        return [self._pairs(addresses)] if self.halves else super().steps_on(addresses)

    def _pairs(self, addresses):
        """Return the launch in which a thread computes both entries of a window of two.

        The larger entry gets the cotangent; the second one if they are unordered.
        """
        (out,), kind = self.outputs, self.kind
        lead, extent, tail = around(out.shape, self.axis)
        pairs = -(-extent // 2)
        zero = f"place == {extent - 1}" if extent % 2 else "0"
        entry = f"(above * {extent} + place) * {tail} + behind"
        code = f"""\
  {each_entry(kind, "i", lead * pairs * tail)} {{
    const {kind} row = i / {tail}, above = row / {pairs}, behind = i - row * {tail};
    const int pair = (int)(row - above * {pairs}), place = 2 * pair;
    const {kind} first = {entry}, second = first + {tail};
    if ({zero})
      out[first] = 0;
    else {{
      const {c_type(out.dtype)} g = {self.load(0, "pair")};
      const int is_first = x1[first] >= x1[second];
      out[first] = is_first ? g : 0;
      out[second] = is_first ? 0 : g;
    }}
  }}
"""
        return self.launched(addresses, code, lead * pairs * tail)


def _indented(code):
    return "".join([f"    {line}\n" for line in code.splitlines()]).rstrip("\n")
