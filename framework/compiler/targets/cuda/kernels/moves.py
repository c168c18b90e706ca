"""Copy entries into parts of another array, as CUDA C: concatenate, place, pad, repeat.

Each thread computes entries of the output: it finds the operand that an entry comes
from, and the position there.
"""

import math

from ....loops.accesses import row_major
from ....program.kernel import around, bits_of
from ..kernel import CudaKernel
from .entries import each_entry, index_type, launch

__all__ = ["ConcatKernel", "PadKernel", "PlaceKernel", "RepeatKernel"]

TOGETHER = 16  # operands whose entries one launch moves, at most


class ConcatKernel(CudaKernel):
    """Concatenate the operands along an axis."""

    __slots__ = ()

    @classmethod
    def accepts(cls, copy):
        (out,) = copy.outputs
        return bool(copy.axis is not None and out.size and bits_of(out.dtype))

    @property
    def columns(self):
        """``(operand, start, stop)``: the columns of each output row that it fills."""
        (out,), found, start = self.outputs, [], 0
        at = self.replaced.axis % len(out.shape)
        for operand in self.operands:
            stop = start + math.prod(operand.shape[at:])
            if start < stop:
                found.append((operand, start, stop))
            start = stop
        return found

    def steps_on(self, addresses):
        parts = self.columns
        groups = [parts[i : i + TOGETHER] for i in range(0, len(parts), TOGETHER)]
        whole = parts[-1][-1]
        return [self._move(addresses, group, whole) for group in groups]

    def _move(self, addresses, parts, whole):
        """Return the launch that fills the columns of some operands, in rows of ``whole``."""
        (out,), bits = self.outputs, bits_of(self.outputs[0].dtype)
        (_, first, _), (_, _, last) = parts[0], parts[-1]
        kind, width, reads, cases = index_type(out), last - first, {}, []
        for number, (operand, start, stop) in enumerate(parts):
            reads[f"x{number}"] = operand, bits
            entry = f"x{number}[row * {stop - start} + column - {start}]"
            cases.append(f"column < {stop} ? {entry} : " if stop < last else entry)
        chosen = "\n        ".join(cases)
        count = out.size // whole * width
        code = f"""\
  {each_entry(kind, "i", count)} {{
    const {kind} row = i / {width}, column = i - row * {width} + {first};
    out[row * {whole} + column] =
        {chosen};
  }}
"""
        return launch(addresses, code, count, reads, {"out": (out, bits)})


class PlaceKernel(CudaKernel):
    """Zeros with the operand at a basic index: the adjoint of basic indexing."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (operand,), (out,) = instruction.operands, instruction.outputs
        if not (out.size and operand.size and bits_of(out.dtype)):
            return False
        index, shape = instruction.keywords["index"], []
        counts = iter([count for _, _, _, count in _slices(out.shape, index)])
        for word in _spelled_out(out.shape, index):
            count = 1 if word == "newaxis" else next(counts)
            shape += [count] * (type(word) is not int)
        return tuple(shape) == operand.shape  # else NumPy broadcasts

    def steps_on(self, addresses):
        (operand,), (out,) = self.operands, self.outputs
        axes = _slices(out.shape, self.replaced.keywords["index"])
        return [_placed(addresses, out, axes, operand)]


class PadKernel(CudaKernel):
    """`pad`: the first operand, padded with the second."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (out,) = instruction.outputs
        return bool(out.size and instruction.operands[0].size and bits_of(out.dtype))

    def steps_on(self, addresses):
        (operand, filling), (out,) = self.operands, self.outputs
        paddings = self.replaced.keywords["paddings"]
        axes = [
            (before + count + after, before, 1, count)
            for count, (before, after) in zip(operand.shape, paddings, strict=True)
        ]
        return [_placed(addresses, out, axes, operand, filling)]


class RepeatKernel(CudaKernel):
    """`upsample`: repeat each entry along an axis."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        (out,) = instruction.outputs
        return bool(out.size and bits_of(out.dtype))

    def steps_on(self, addresses):
        (operand,) = self.operands
        (out,) = self.outputs
        keywords = self.replaced.keywords
        kind, bits, times = index_type(out), bits_of(out.dtype), keywords["times"]
        _, _, tail = around(out.shape, keywords["axis"])
        code = f"""\
  {each_entry(kind, "i", out.size)} {{
    const {kind} row = i / {tail};
    out[i] = x[row / {times} * {tail} + (i - row * {tail})];
  }}
"""
        reads, writes = {"x": (operand, bits)}, {"out": (out, bits)}
        return [launch(addresses, code, out.size, reads, writes)]


def _placed(addresses, out, axes, operand, filling=None):
    """Return the launch that writes an operand to slices of the axes, see `_slices`."""
    kind, bits, axes = index_type(out), bits_of(out.dtype), _merged(axes)
    strides, lines = row_major([count for _, _, _, count in axes]), []
    for axis, stride in zip(reversed(axes), reversed(strides), strict=True):
        lines += _find(*axis, stride)
    of_axes, other = "\n    ".join(lines), "0" if filling is None else "filling[0]"
    code = f"""\
  {each_entry(kind, "i", out.size)} {{
    {kind} rest = i, at = 0, place;
    int is_inside = 1;
    {of_axes}
    out[i] = is_inside ? x[at] : {other};
  }}
"""
    reads = {"x": (operand, bits)}
    reads |= {} if filling is None else {"filling": (filling, bits)}
    return launch(addresses, code, out.size, reads, {"out": (out, bits)})


def _spelled_out(shape, index):
    """Complete a basic index with full slices for the axes that it omits."""
    words = list(index)
    named = len([word for word in words if word not in ("newaxis", "...")])
    at = words.index("...") if "..." in words else len(words)
    words[at : at + 1] = [[None, None, None]] * (len(shape) - named)
    return words


def _slices(shape, index):
    """Return for each axis its size, and the start, the step and the length of its slice."""
    words = [word for word in _spelled_out(shape, index) if word != "newaxis"]
    found = []
    for size, word in zip(shape, words, strict=True):
        if type(word) is int:
            found.append((size, word % size, 1, 1))
        else:
            entries = range(*slice(*word).indices(size))
            found.append((size, entries.start, entries.step, len(entries)))
    return found


def _merged(axes):
    """Merge neighbouring axes that an index selects completely."""
    merged = []
    for axis in axes:
        if merged and all([_is_whole(*each) for each in (merged[-1], axis)]):
            size = merged.pop()[0] * axis[0]
            axis = (size, 0, 1, size)
        merged.append(axis)
    return merged or [(1, 0, 1, 1)]


def _is_whole(size, start, step, count):
    return (start, step, count) == (0, 1, size)


def _find(size, start, step, count, stride):
    """Lines that split the last axis off ``rest``, and add its offset to ``at``."""
    yield f"place = rest % {size} - {start};"
    yield f"rest /= {size};"
    if _is_whole(size, start, step, count):
        yield f"at += place * {stride};"
        return
    if step != 1:
        yield f"is_inside &= place % {step} == 0;"
        yield f"place /= {step};"
    yield f"is_inside &= place >= 0 && place < {count};"
    yield f"at += place * {stride};"
