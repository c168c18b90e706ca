"""Pretty-print loop nests.

    in 6 blocks, in parallel:
      for i in 44 of 256:
        softmax = -inf
        for j in 128:
          softmax = maximum(softmax, x[i, j])

Values that are used once are printed inline. A name like ``ij`` is an index that runs
through two dimensions at once.
"""

import math
import re

from .statements import (
    Accumulate,
    Compute,
    Load,
    Local,
    Loop,
    Reset,
    Select,
    Span,
    Store,
    identity_of,
    scalars_read,
    statements_in,
)

LONGEST = 48  # letters of a value that is written where it is used
CHOICE, ATOM = -1, 9  # how close a choice and a name bind

# Functions of two numbers that have a sign, and how close it binds.
_SIGNS = {
    "equal": ("==", 0), "not_equal": ("!=", 0), "less": ("<", 0), "greater": (">", 0),
    "less_equal": ("<=", 0), "greater_equal": (">=", 0), "bitwise_or": ("|", 1),
    "bitwise_xor": ("^", 2), "bitwise_and": ("&", 3), "add": ("+", 4),
    "subtract": ("-", 4), "multiply": ("*", 5), "divide": ("/", 5),
    "floor_divide": ("//", 5), "remainder": ("%", 5), "power": ("**", 7),
}  # fmt: skip
_NEUTRAL = {"add": "0", "multiply": "1"}


def nest_text(nest, name_of=None, way="in parallel", taken=()):
    """Return the statements of a nest, one per line, indented by their loops.

    ``name_of(array)`` returns the name of an array of the program; ``way`` says how its
    blocks run; ``taken`` are names that its own arrays must not have.
    """
    return "\n".join(_Text(nest, name_of, way, taken).lines)


class _Text:
    def __init__(self, nest, name_of, way, taken):
        self.nest, self.lines = nest, []
        self.name_of = name_of or self.number
        arrays = (*nest.operands, *nest.outputs)
        given = [self.name_of(array) for array in arrays if not array.is_scratch]
        self.taken = {*taken, *given}
        self.names, self.letters = {}, {}  # locals and values; parts of names of axes
        self.known, self.reads, self.uses = {}, {}, {}  # values: text, arrays, readers
        for _, each in (*statements_in(nest.body), *statements_in(nest.finish)):
            for value in scalars_read(each):
                self.uses[value] = self.uses.get(value, 0) + 1
        if nest.locals:
            self.lines.append(f"keeps {', '.join(map(self.kept, nest.locals))}")
        depth, count = 0, nest.blocks.extent
        if count > 1 or nest.finish:
            text = f"in {count} blocks, {way}:" if count > 1 else "in one block:"
            self.lines.append(text)
            self.letters[nest.blocks.name] = "block"
            depth = 1
        self.write(nest.body, depth)
        if nest.finish:
            self.lines.append("after all blocks:")
            self.write(nest.finish, 1)

    # --- names

    def number(self, array):
        """Return a name for an array about which nothing is known."""
        nest = self.nest
        if array in nest.outputs:
            return f"out{nest.outputs.index(array)}"
        return f"in{nest.operands.index(array)}"

    def array(self, array):
        return self.named(array, "parts") if array.is_scratch else self.name_of(array)

    def named(self, thing, stem=None):
        """Return a name for a local array or value, derived from its op: ``tanh.3``."""
        if thing not in self.names:
            name = stem = stem or thing.name.rpartition(".")[0] or thing.name
            n = 1
            while name in self.taken:
                n += 1
                name = f"{stem}_{n}"
            self.taken.add(name)
            self.names[thing] = name
        return self.names[thing]

    def kept(self, local):
        size = f"[{local.size}]" if local.size > 1 else ""
        return f"{self.named(local)} {local.dtype.name}{size}"

    def index(self, axis):
        """Return the letters of an axis, one for each of the axes collapsed into it."""
        parts = re.findall(r"[a-z]+\d+", axis.name)
        if "".join(parts) != axis.name:
            return self.letters.get(axis.name, axis.name)
        for part in parts:
            if part not in self.letters:
                n = len(self.letters.keys() - {self.nest.blocks.name})
                letter = "ijklmnopqrstuvw"[n % 15] + str(n // 15 or "")
                self.letters[part] = letter
        return "".join([self.letters[part] for part in parts])

    def entry(self, access):
        """Return the text of an entry of an array: ``x[i, j]``."""
        array, pairs = access.array, access.strides
        if type(array) is Local:
            pairs = sorted(pairs, key=lambda pair: -pair[1])
            subscripts = [self.index(axis) for axis, _ in pairs]
            name = self.named(array)
        else:
            name, shape = self.array(array), array.shape
            if array.is_scratch and shape[-1] == 1:  # one number for each block
                shape = shape[:-1]
            subscripts = self.subscripts(shape, access)
        return f"{name}[{', '.join(subscripts)}]" if subscripts else name

    def subscripts(self, shape, access):
        """Return a subscript for each dimension; a collapsed index covers several."""
        sizes, strides = list(shape), []
        for i in range(len(sizes)):
            strides.append(math.prod(sizes[i + 1 :]))
        while True:
            parts, wrong = _parts(sizes, strides, access)
            if wrong is None:
                break
            sizes[wrong - 1] *= sizes.pop(wrong)
            strides.pop(wrong - 1)
        bounds = dict(access.bounds)
        return [self.sum(offset, terms, bounds) for offset, terms in parts]

    def sum(self, offset, terms, bounds):
        names = []
        for axis, factor in terms:
            bound, name = bounds.get(axis, range(0)), self.index(axis)
            if bound.step > 1:
                name = f"({name} - {bound.start})" if bound.start else name
                name = f"{name} / {bound.step}"
            else:
                offset -= factor * bound.start
            names.append((name, factor))
        text = "" if names and offset <= 0 else str(offset)
        for name, factor in names:
            name = name if abs(factor) == 1 else f"{abs(factor)}*{name}"
            sign = "-" if factor < 0 else "+"
            text = f"{text} {sign} {name}" if text else f"{'-' * (factor < 0)}{name}"
        return f"{text} - {-offset}" if names and offset < 0 else text

    def within(self, bounds):
        """Return the text of a condition: all indices are in their ranges."""
        parts = []
        for axis, bound in bounds:
            name = self.index(axis)
            low = f"{bound.start} <= " if bound.start >= bound.step else ""
            high = f" < {bound.stop}" if bound[-1] + bound.step < axis.extent else ""
            if low or high:
                parts.append(f"{low}{name}{high}")
            if bound.step > 1:
                parts.append(f"{name} % {bound.step} == {bound.start % bound.step}")
        return " and ".join(parts)

    # --- statements

    def write(self, body, depth):
        for n, each in enumerate(body):
            rest = body[n + 1 :]
            if type(each) is Loop:
                self.lines.append("  " * depth + self.head(each))
                self.write(each.body, depth + 1)
            elif type(each) is Load:
                entry = self.entry(each.access), ATOM
                self.value(each.out, *entry, depth, {each.access.array}, rest)
            elif type(each) is Compute:
                text, bond = self.expression(each)
                arrays = set().union(*[self.reads[v] for v in scalars_read(each)])
                once = self.uses.get(each.out, 0) == 1 and len(text) <= LONGEST
                below = [x for x in rest if type(x) is Loop]
                once = once and not any([_reads(x.body, each.out) for x in below])
                self.value(each.out, text, bond, depth, arrays, rest, once)
            elif type(each) is Select:
                one, other = map(self.text, each.args)
                text = f"{one} if {self.within(each.bounds)} else {other}"
                arrays = set().union(*[self.reads[v] for v in scalars_read(each)])
                once = self.uses.get(each.out, 0) == 1 and len(text) <= LONGEST
                self.value(each.out, text, CHOICE, depth, arrays, rest, once)
            else:
                self.lines.append("  " * depth + self.statement(each))

    def head(self, loop):
        name, extent, width = self.index(loop.axis), loop.axis.extent, loop.width
        if loop.span is Span.WHOLE or width >= extent:
            return f"for {name} in {extent}:"
        if loop.span is Span.STRIPS:
            return f"for {name} in {extent}, {width} at a time:"
        return f"for {name} in {width} of {extent}:"

    def value(self, out, text, bond, depth, arrays, rest, fits=True):
        """Print a value on its own line, unless it can be printed inline."""
        if fits and not _overwritten(arrays, out, rest):
            self.known[out], self.reads[out] = (text, bond), arrays
            return
        name = self.named(out)
        self.known[out], self.reads[out] = (name, ATOM), set()
        self.lines.append(f"{'  ' * depth}{name} = {text}")

    def statement(self, each):
        if type(each) is Store:
            return f"{self.entry(each.access)} = {self.text(each.value)}"
        if type(each) is Reset:
            return f"{self.entry(each.access)} = {_neutral(each)}"
        if type(each) is Accumulate:
            entry, value = self.entry(each.access), self.text(each.value)
            if each.ufunc in _NEUTRAL:
                return f"{entry} {_SIGNS[each.ufunc][0]}= {value}"
            return f"{entry} = {each.ufunc}({entry}, {value})"
        return repr(each)

    def text(self, value, bond=0):
        """Return the text of a value, in parentheses if its context binds more tightly."""
        if value.value is not None:
            return str(value.value)
        text, own = self.known[value]
        return text if own >= bond else f"({text})"

    def expression(self, compute):
        """Return the text of a scalar function, and the precedence of its operator."""
        name, args = compute.function, compute.args
        if name in _SIGNS and len(args) == 2:
            sign, bond = _SIGNS[name]
            left, right = self.text(args[0], bond), self.text(args[1], bond + 1)
            return f"{left} {sign} {right}", bond
        if name == "negative":
            return f"-{self.text(args[0], 6)}", 6
        if name == "reciprocal":
            return f"1 / {self.text(args[0], 6)}", 5
        name = compute.out.dtype.name if name == "cast" else name
        return f"{name}({', '.join(map(self.text, args))})", ATOM


def _reads(body, value):
    return any([value in scalars_read(each) for _, each in statements_in(body)])


def _overwritten(arrays, value, rest):
    """Return whether one of the arrays is written before the last use of a value."""
    written = False
    for _, each in statements_in(rest):
        if written and value in scalars_read(each):
            return True
        access = getattr(each, "access", None)
        if type(each) is not Load and access is not None:
            written = written or access.array in arrays
    return False


def _neutral(reset):
    if reset.ufunc in _NEUTRAL:
        return _NEUTRAL[reset.ufunc]
    return str(identity_of(reset.ufunc, reset.access.array.dtype))


def _parts(sizes, strides, access):
    """Return ``(parts, wrong)``: offset and terms per dimension, and a term left over."""
    parts, offset = [], access.offset
    for size, stride in zip(sizes, strides):
        parts.append((offset // stride % size if size else 0, []))
    reach = [[start, start] for start, _ in parts]
    for axis, stride in access.strides:
        near = [d for d, s in enumerate(strides) if abs(stride) >= s and sizes[d] != 1]
        fits = [d for d in near if stride % strides[d] == 0]
        same = [
            d for d, s in enumerate(strides) if (s, sizes[d]) == (stride, axis.extent)
        ]
        d = [*same, *fits, len(sizes) - 1][0]
        factor = stride // strides[d]
        parts[d][1].append((axis, factor))
        reach[d][factor > 0] += factor * (axis.extent - 1)
    for d in range(len(sizes) - 1, 0, -1):
        if reach[d][0] < 0 or reach[d][1] >= sizes[d]:
            return parts, d
    return parts, None
