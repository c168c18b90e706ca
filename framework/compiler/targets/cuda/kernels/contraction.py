"""Contractions in CUDA C: each thread computes entries of the output.

The index maps of a contraction are printed as integer arithmetic. A thread computes the
loop indices that an entry of its output determines, by division, and iterates over the
others. Where an index lies outside of an operand, nothing is added. A sum has a fixed
order, whatever the number of threads; long sums may be split into parts, which a second
launch adds in order.
"""

import itertools
import math
from typing import NamedTuple

from ....loops.accesses import layout_of
from ..kernel import c_type, half_name
from .entries import each_entry, index_type, launch

THREADS, LEAST = 1 << 16, 64  # threads to have, with so many entries of a sum, at least
MOST_PARTS = 256


class Array(NamedTuple):
    """Entries of a buffer: entry ``i`` is at ``offset + sum(strides * i)``."""

    buffer: object
    shape: tuple
    strides: tuple
    offset: int = 0

    def rows(self, start, stop):
        """Return the rows from ``start`` up to but excluding ``stop`` of the first axis."""
        shape = (stop - start, *self.shape[1:])
        offset = self.offset + start * self.strides[0]
        return self._replace(shape=shape, offset=offset)


def array_of(buffer):
    """Return a whole buffer, as an `Array`."""
    return Array(buffer, buffer.shape, layout_of(buffer).strides)


def count_parts(loops, maps, size):
    """Return the number of parts into which the sums of ``size`` entries are best split."""
    used = {n for index in maps for n, _ in index.terms}
    length = math.prod([extent for n, extent in enumerate(loops) if n not in used])
    return max(1, min(THREADS // size, length // LEAST, MOST_PARTS))


def contract(addresses, loops, operands, out, parts=1):
    """Return the launch that computes ``out``: products of ``operands``, summed.

    The loops of the contraction are ``loops``. ``operands`` and ``out`` are pairs of an
    `Array` and its index maps, see `IndexMaps`; ``out`` is in C order, and float32 if
    the operands have half precision, except for copies of one operand. With several
    ``parts`` its first axis indexes the parts, without a map.
    """
    arrays = [array for array, _ in operands]
    names = [f"x{i}" for i in range(len(arrays))]
    code = _Writer(loops, dict(zip(names, operands)), out, parts).code()
    reads = dict(zip(names, [array.buffer for array in arrays]))
    count = math.prod(out[0].shape)
    return launch(addresses, code, count, reads, {"out": out[0].buffer})


def sum_parts(addresses, parts, out):
    """Return the launch that adds up the first axis of a buffer in C order."""
    kind, total, count = index_type(parts), c_type(out.dtype), out.size
    code = f"""\
  {each_entry(kind, "i", count)} {{
    {total} total = 0;
    for (int part = 0; part < {parts.shape[0]}; ++part)
      total += parts[part * ({kind}){count} + i];
    out[i] = total;
  }}
"""
    return launch(addresses, code, count, {"parts": parts}, {"out": out})


class _Equation(NamedTuple):
    """``sum(terms) + offset == o<axis>``, which determines ``loop`` unless that is None."""

    axis: int
    loop: int
    factor: int
    terms: tuple
    offset: int


class _Writer:
    """Writes the loop of a thread over entries of the output.

    ``known`` are the loops that an entry determines, ``order`` the reduction loops,
    outermost first; ``equations`` hold for the entries that are added.
    """

    def __init__(self, loops, operands, out, parts):
        self.loops, self.operands, self.parts = loops, operands, parts
        (self.out, self.maps), self.known = out, {}
        self.order, self.equations, self.lines, self.depth = [], [], [], 1
        arrays = [out[0], *[array for array, _ in operands.values()]]
        self.kind = index_type(*[layout_of(array.buffer).base for array in arrays])
        self.names = itertools.count()
        self.checks = [
            (array.shape[axis], index)
            for array, maps in operands.values()
            for axis, index in enumerate(maps)
            if not self.is_inside(index, array.shape[axis])
        ]

    # --- which loops there are

    def terms(self, index):
        """The loops of more than one iteration in an index, with their factors."""
        factors = {}
        for n, factor in index.terms:
            if self.loops[n] > 1:
                factors[n] = factors.get(n, 0) + factor
        return [(n, factor) for n, factor in factors.items() if factor]

    def is_inside(self, index, size):
        ends = [f * (self.loops[n] - 1) for n, f in self.terms(index)]
        low = index.offset + sum([e for e in ends if e < 0])
        high = index.offset + sum([e for e in ends if e > 0])
        return low >= 0 and high < size

    def bind(self, shape):
        """Compute the loops that the output determines, from its axes ``o<axis>``."""
        rest = []
        for axis, (index, size) in enumerate(zip(self.maps, shape, strict=True)):
            if self.has_digits(index, size):
                self.bind_digits(axis, self.terms(index))
            else:
                rest.append((axis, index))
        solved = set()
        for axis, index in rest:
            terms = self.terms(index)
            taken = {*self.known, *self.order, *solved}
            new = [(n, f) for n, f in terms if n not in taken]
            loop, factor = max(new, key=lambda t: self.loops[t[0]], default=(None, 1))
            self.order += [n for n, _ in new if n != loop]
            others = tuple([(n, f) for n, f in terms if n != loop])
            self.equations.append(_Equation(axis, loop, factor, others, index.offset))
            solved.add(loop)
        taken = {*self.known, *self.order, *solved}
        free = [n for n, extent in enumerate(self.loops) if extent > 1]
        self.order += [n for n in free if n not in taken]

    def has_digits(self, index, size):
        """Return whether an index takes each value once, over loops that are not yet known."""
        product = 1
        for n, factor in sorted(self.terms(index), key=lambda term: term[1]):
            if factor != product or n in self.known:
                return False
            product *= self.loops[n]
        return index.offset == 0 and product == size

    def bind_digits(self, axis, terms):
        largest = max([f for _, f in terms], default=1)
        for n, factor in terms:
            digit = f"o{axis} / {factor}" if factor > 1 else f"o{axis}"
            rest = "" if factor == largest else f" % {self.loops[n]}"
            self.let(f"l{n}", f"{digit}{rest}")
            self.known[n] = f"l{n}"

    # --- the code

    def line(self, text):
        self.lines.append(f"{'  ' * self.depth}{text}\n")

    def let(self, name, value):
        self.line(f"const {self.kind} {name} = {value};")

    def open(self, head):
        self.line(f"{head} {{")
        self.depth += 1

    def close(self, depth):
        while self.depth > depth:
            self.depth -= 1
            self.line("}")

    def sum_of(self, terms, offset):
        """``offset + sum(factor * loop)`` of known loops."""
        parts = [
            f"{f} * {self.known[n]}" if f != 1 else self.known[n] for n, f in terms
        ]
        parts += [str(offset)] if offset or not parts else []
        return " + ".join(parts).replace("+ -", "- ")

    def code(self):
        shape = self.out.shape if self.parts == 1 else self.out.shape[1:]
        count = math.prod(self.out.shape)
        self.open(each_entry(self.kind, "i", count))
        self.axes(shape)
        self.bind(shape)
        self.line(f"{c_type(self.out.buffer.dtype)} total = 0;")
        depth, self.offsets, self.done = self.depth, {}, set()
        self.settle()
        self.sums()
        self.close(depth)
        at = f"{self.out.offset} + i" if self.out.offset else "i"
        self.line(f"out[{at}] = total;")
        self.close(1)
        return "".join(self.lines)

    def axes(self, shape):
        """The index along each axis of the output."""
        rest = math.prod(shape)
        for axis, n in enumerate(shape):
            rest //= n
            index = f"i / {rest}" if rest > 1 else "i"
            is_first = axis == 0 and self.parts == 1
            self.let(f"o{axis}", index if is_first else f"{index} % {n}")
        if self.parts > 1:
            self.let("part", f"i / {math.prod(shape)}")

    def sums(self):
        """Write the reduction loops, and the product in the innermost one."""
        order = list(self.order)
        if self.parts > 1:
            order = self.split(order)
        for n in order:
            name = f"l{n}"
            head = f"for ({self.kind} {name} = 0; {name} < {self.loops[n]}; ++{name})"
            self.open(head)
            self.known[n] = name
            self.settle()
        product = " * ".join([self.entry(name) for name in self.operands])
        self.line(f"total += {product};")

    def entry(self, name):
        """An entry of an operand, in the dtype of the output."""
        dtype = self.operands[name][0].buffer.dtype
        entry = f"{name}[{self.offsets[name]}]"
        if dtype == self.out.buffer.dtype:
            return entry
        return f"float_of_{half_name(dtype)}({entry})"

    def split(self, order):
        """Loop over a part of the iterations of the outer loops; return the inner loops."""
        outer, rounds = [], 1
        while order and rounds < self.parts:
            outer.append(order.pop(0))
            rounds *= self.loops[outer[-1]]
        each, kind = -(-rounds // self.parts), self.kind
        self.let("first", f"part * {each}")
        self.let("end", f"first + {each} < {rounds} ? first + {each} : {rounds}")
        self.open(f"for ({kind} round = first; round < end; ++round)")
        for n in outer:
            rounds //= self.loops[n]
            digit = f"round / {rounds}" if rounds > 1 else "round"
            rest = "" if n == outer[0] else f" % {self.loops[n]}"
            self.let(f"l{n}", f"{digit}{rest}")
            self.known[n] = f"l{n}"
        self.settle()
        return order

    def settle(self):
        """Write the statements that the loops known so far determine.

        These are further loops, checks of indices, and the offsets of operands.
        """
        self.solve()
        for size, index in list(self.checks):
            terms = self.terms(index)
            if all([n in self.known for n, _ in terms]):
                self.checks.remove((size, index))
                self.require(self.sum_of(terms, index.offset), size)
        self.add_offsets()

    def solve(self):
        for each in list(self.equations):
            if not all([n in self.known for n, _ in each.terms]):
                continue
            self.equations.remove(each)
            back = [(n, -f) for n, f in each.terms]
            rest = f"o{each.axis} + {self.sum_of(back, -each.offset)}"
            rest = rest.replace("+ -", "- ")
            if each.loop is None:
                self.open(f"if ({rest} == 0)")
                continue
            name, factor = f"l{each.loop}", each.factor
            if factor != 1:
                held = f"r{next(self.names)}"
                self.let(held, rest)
                self.open(f"if ({held} % {factor} == 0)")
                rest = f"{held} / {factor}"
            self.let(name, rest)
            self.known[each.loop] = name
            self.require(name, self.loops[each.loop])

    def require(self, index, size):
        """Continue only where an index is in bounds."""
        unsigned = "unsigned" if self.kind == "int" else "unsigned long long"
        self.open(f"if (({unsigned})({index}) < {size})")

    def add_offsets(self):
        """The offsets of operands, as far as the loops are known."""
        new = [n for n in self.known if n not in self.done]
        for name, (array, maps) in self.operands.items():
            steps, offset = dict.fromkeys(new, 0), array.offset
            for index, stride in zip(maps, array.strides, strict=True):
                offset += index.offset * stride
                for n, factor in self.terms(index):
                    if n in steps:
                        steps[n] += factor * stride
            terms = [(n, f) for n, f in steps.items() if f]
            if name in self.offsets:
                if not terms:
                    continue
                value = f"{self.offsets[name]} + {self.sum_of(terms, 0)}"
            else:
                value = self.sum_of(terms, offset)
            at = f"{name}_{next(self.names)}"
            self.let(at, value.replace("+ -", "- "))
            self.offsets[name] = at
        self.done.update(new)


def _times(factor, name):
    """A factor times a loop, in C."""
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor} * {name}")
