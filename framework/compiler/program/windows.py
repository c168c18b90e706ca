"""Pooling instructions along an axis, the common part of the kernels of both targets."""

import math

from tapewright.ops.convolution.pooling import in_halves
from tapewright.ops.convolution.windows import is_everywhere, resized, taps

__all__ = ["SpreadToMaxima", "Windows"]

_DTYPES = "fdbBhHiIlLqQ"


class Windows:
    """The windows of a `Kernel` that replaces a pooling op; a mixin of `Kernel` classes."""

    __slots__ = ()
    spreads = False  # from windows to the entries in them
    most_taps = most_stride = math.inf

    @classmethod
    def accepts(cls, instruction):
        arrays = (*instruction.operands, *instruction.outputs)
        axis, window = instruction.keywords["axis"], instruction.keywords
        around_it = {resized(a.shape, axis, 1) for a in arrays}
        plain = [a.size and a.dtype.isnative for a in arrays]
        known = [a.dtype.char in _DTYPES for a in arrays]
        small = window["size"] <= cls.most_taps and window["stride"] <= cls.most_stride
        return bool(len(around_it) == 1 and all(plain) and all(known) and small)

    @property
    def axis(self):
        return self.replaced.keywords["axis"]

    @property
    def window(self):
        """The extent of the axis before pooling, size, stride, padding, dilation."""
        replaced = self.replaced
        whole = (replaced.outputs if self.spreads else replaced.operands)[0]
        names = ("size", "stride", "padding", "dilation")
        return whole.shape[self.axis], *[replaced.keywords[name] for name in names]

    @property
    def is_everywhere(self):
        """Return whether every tap of every window is inside the array."""
        count, found = taps(*self.window)
        return len(found) == self.window[1] and is_everywhere(found, count)


class SpreadToMaxima:
    """The windows of `spread_to_maxima`, with cotangents, the input and its maxima."""

    __slots__ = ()
    spreads = True

    def __init__(self, replaced, limits):
        super().__init__(replaced, limits)
        if self.halves:  # no maxima are needed, so that they may lie elsewhere by now
            self.operands = self.operands[:2]

    @property
    def halves(self):
        """Return whether windows of two lie side by side, see `spread_to_halves`."""
        (out,) = self.replaced.outputs
        return in_halves(out.shape, out.dtype, self.axis, *self.window[1:])

    @property
    def in_place_operands(self):
        """The input: each pair of entries is read before it is written."""
        return (self.operands[1],) if self.halves else ()
