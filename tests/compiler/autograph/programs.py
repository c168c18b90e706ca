"""Random Python functions with nested control flow, as source text.

Variables are floats ``a``, ``b``, ``c`` and integers ``m``, ``n``; conditions are tensors
or values of Python. Values stay bounded, and every loop ends.
"""

import linecache
import random

HEAD = """
def helper(u, v):
    if u > v:
        return u * 0.5
    while v > 1.0:
        v = v * 0.5
    return tw.tanh(u - v)


class Box:
    pass


def program(x, xs, k):
    box = Box()
    box.value = x
    pair = [x, x * 0.5]
    a, b, c = x, 0.5, x * x
    m, n = 0, 2
"""


class Generator:
    """Writes one program; ``numbers``: a `random.Random`."""

    def __init__(self, seed):
        self.numbers = random.Random(seed)
        self.lines, self.loops, self.budget = [], 0, 30

    def source(self):
        self.block(1, 3 + self.pick(range(3)), None)
        self.emit(1, "return a + b * 0.5, c, m + n, box.value + pair[0] - pair[1]")
        return HEAD + "\n".join(self.lines) + "\n"

    def pick(self, items):
        return self.numbers.choice(list(items))

    def emit(self, depth, line):
        self.lines.append("    " * depth + line)

    # --- expressions

    def number(self):
        return self.pick(
            ["a", "b", "c", "x", "0.25", "box.value", "pair[0]", "pair[1]"]
        )

    def float(self, depth=0):
        if depth > 1 or self.pick(range(3)) == 0:
            return self.number()
        p, q = self.float(depth + 1), self.float(depth + 1)
        return self.pick([
            f"tw.tanh({p} + {q})",
            f"tw.sin({p} * {q})",
            f"({p} - {q}) * 0.5",
            f"helper({p}, {q})",
            f"({p} if {self.condition(1)} else {q})",
            f"tw.cos({p})",
            f"abs({p}) * 0.5",
            f"max({p}, {q}) * 0.5" if False else f"tw.maximum({p} * 1.0, {q} * 1.0)",
        ])  # fmt: skip

    def integer(self):
        return self.pick(
            ["m + 1", "n + 1", "m + n - 1", "1", "n % 5", "(m if m < 3 else n)"]
        )

    def condition(self, depth=0):
        simple = [
            f"{self.number()} > {self.number()}",
            f"{self.number()} < 0.3",
            f"-0.5 < {self.number()} < {self.number()}",
            "m < n",
            "m % 2 == 0",
            "k > 1",
            "n != 3",
        ]
        if depth > 1 or self.pick(range(2)):
            return self.pick(simple)
        p, q = self.condition(depth + 1), self.condition(depth + 1)
        return self.pick(
            [f"({p} and {q})", f"({p} or {q})", f"not ({p})", f"({p} or {q} and {p})"]
        )

    # --- statements

    def block(self, depth, count, loop):
        before = len(self.lines)
        for _ in range(count):
            if self.budget > 0:
                self.budget -= 1
                self.statement(depth, loop)
        if len(self.lines) == before:
            self.emit(depth, "pass")

    def statement(self, depth, loop):
        kinds = ["float", "float", "integer", "augmented", "swap", "box", "pair"]
        if depth < 4:
            kinds += ["if", "if", "if", "for", "for", "while", "try", "with", "call"]
        if depth > 1:
            kinds += ["return"]
        if loop is not None:
            kinds += ["break", "continue"]
        getattr(self, f"write_{self.pick(kinds)}")(depth, loop)

    def write_float(self, depth, _):
        self.emit(depth, f"{self.pick('abc')} = {self.float()}")

    def write_integer(self, depth, _):
        self.emit(depth, f"{self.pick('mn')} = ({self.integer()}) % 7")

    def write_augmented(self, depth, _):
        self.emit(
            depth,
            f"{self.pick('abc')} {self.pick(['+=', '-='])} {self.number()} * 0.25",
        )

    def write_swap(self, depth, _):
        self.emit(depth, "a, c = c, a")

    def write_box(self, depth, _):
        self.emit(depth, f"box.value = tw.tanh(box.value * 0.5 + {self.number()})")

    def write_pair(self, depth, _):
        self.emit(depth, f"pair[{self.pick('01')}] = tw.sin(pair[0] - {self.number()})")

    def write_call(self, depth, _):
        self.emit(
            depth, f"square = lambda u: tw.sin(u) if u > {self.number()} else u * 0.5"
        )
        self.emit(depth, f"{self.pick('abc')} = square({self.number()} * 1.0)")

    def write_if(self, depth, loop):
        self.emit(depth, f"if {self.condition()}:")
        self.block(depth + 1, 2, loop)
        for _ in range(self.pick([0, 0, 1])):
            self.emit(depth, f"elif {self.condition()}:")
            self.block(depth + 1, 2, loop)
        if self.pick([0, 1]):
            self.emit(depth, "else:")
            self.block(depth + 1, 2, loop)

    def write_for(self, depth, _):
        self.loops += 1
        i = f"i{self.loops}"
        head, use = self.pick([
            (f"{i} in tw.range(k)", f"m = (m + {i}) % 7"),
            (f"{i} in tw.range(3)", f"n = (n + {i}) % 7"),
            (f"{i} in range(2)", f"m = (m + {i}) % 7"),
            (f"{i} in range(k)", f"m = (m + {i}) % 7"),
            (f"{i} in xs", f"b = tw.tanh(b + {i})"),
            (f"{i}, r in enumerate(xs)", f"a = tw.sin(a * r); m = (m + {i}) % 7"),
            (f"{i}, r in zip(tw.range(5), xs)", f"a = tw.sin(a + r); n = ({i} + n) % 7"),
            (f"{i} in [a, b, 0.5]", f"c = tw.sin(c * {i})"),
        ])  # fmt: skip
        self.emit(depth, f"for {head}:")
        for line in use.split("; "):
            self.emit(depth + 1, line)
        self.block(depth + 1, 2, "for")
        self.write_else(depth)

    def write_while(self, depth, _):
        self.loops += 1
        w = f"w{self.loops}"
        start, condition = self.pick([
            ("0", f"{w} < 3"),
            ("0", f"{w} < k"),
            ("k * 0", f"{w} < 3"),
            ("0", f"{w} < 4 and {self.condition(1)}"),
        ])  # fmt: skip
        self.emit(depth, f"{w} = {start}")
        self.emit(depth, f"while {condition}:")
        self.emit(depth + 1, f"{w} += 1")
        self.block(depth + 1, 2, "while")
        self.write_else(depth)

    def write_else(self, depth):
        if self.pick(range(4)) == 0:
            self.emit(depth, "else:")
            self.block(depth + 1, 1, None)

    def write_try(self, depth, loop):
        self.emit(depth, "try:")
        self.block(depth + 1, 2, loop)
        self.emit(depth, "finally:")
        self.emit(depth + 1, "c = tw.tanh(c)")

    def write_with(self, depth, loop):
        self.emit(depth, 'with tw.name_scope("part"):')
        self.block(depth + 1, 2, loop)

    def write_return(self, depth, _):
        self.emit(depth, f"return {self.float()} * 1.0, b * 1.0, m, a * 1.0")

    def write_break(self, depth, _):
        self.emit(depth, f"if {self.condition()}:")
        self.emit(depth + 1, "break")

    def write_continue(self, depth, _):
        self.emit(depth, f"if {self.condition()}:")
        self.emit(depth + 1, "continue")


def random_program(seed, tw):
    """Return the function ``program(x, xs, k)`` of a seed, and its source."""
    source = Generator(seed).source()
    name = f"<program {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {"tw": tw}
    exec(compile(source, name, "exec"), space)
    return space["program"], source
