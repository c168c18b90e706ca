"""Makes random programs up: step after step, each of operands that are there."""

import functools
import math
import random
import re

from .kinds import KINDS, NUMBERS
from .programs import Body, Call, Program, Step, read_in
from .structures import OPTIMIZERS, OPTIONS

__all__ = ["generate"]

CLASSES = {"F": "fd", "N": "fdi", "A": "fdib"}
# Around 16 kB, 2 ** 14, 2 ** 15, 2 ** 16 and 2 ** 17 entries, and beyond 4 MB.
SMALL = [(2, 3), (4, 3), (1, 5), (3, 1), (5, 64)]
MIDDLE = [(4, 1024), (64, 65), (2, 4097), (3, 2731), (5, 3300), (128, 33)]
LARGE = [(8, 4099), (16, 4096), (17, 4100), (32, 4100), (130, 1100)]
HUGE, EMPTY = [(257, 4099), (1025, 1030)], [(0, 3), (2, 0)]
DEPTH = 3


def generate(seed, number):
    """The program of this number among those of a seed."""
    return Generator(random.Random(f"{seed} {number}")).program()


@functools.cache
def choices(pure, deep):
    """The kinds of steps that there may be, with their weights."""
    kinds = [
        k for k in KINDS.values() if (k.pure or not pure) and not (k.make and deep)
    ]
    return kinds, [k.weight for k in kinds]


class Scope:
    """The values that a step may take, and tapes that can be asked for gradients."""

    def __init__(self, values, variables, depth=0, pure=False):
        self.values, self.variables = list(values), variables
        self.depth, self.pure, self.tapes = depth, pure, []

    def function(self, pure=False):
        return Scope(self.values, self.variables, self.depth + 1, self.pure or pure)

    def closed(self, values):
        """For what sees nothing but some values."""
        return Scope(values, self.variables, self.depth, self.pure)


class Generator:
    def __init__(self, rng):
        self.rng, self.types, self.optimizers = rng, {}, {}
        sizes = rng.choices([SMALL, MIDDLE, LARGE, HUGE, EMPTY], [52, 30, 12, 1, 4])[0]
        self.rows, self.columns = rng.choice(sizes)
        self.names, self.distinct = {}, set()
        self.traps, self.special = self.chance(0.5), self.chance(0.25)

    def program(self):
        letters = self.rng.choice(["f", "f", "d", "fd"])
        shapes = [("R", "C")] * 4 + [("C",), ("R",), ("C", "R"), ()]
        types = [(self.rng.choice(letters), s) for s in shapes]
        inputs = [
            self.name(t, start="x") for t in self.rng.choices(types, k=self.count(1, 3))
        ]
        if self.chance(0.3):
            inputs.append(self.name((self.one("ib"), self.one(shapes)), start="x"))
        self.types["trap"] = ("i", ())
        self.distinct.update(inputs)
        variables = self.variables(types)
        body = self.steps_of_function(inputs, variables)
        calls = [self.call(inputs, variables, n) for n in range(self.count(2, 5))]
        return Program(
            self.rows, self.columns, self.types, [*inputs, "trap"], variables,
            self.optimizers, body, calls, self.chance(0.5), self.special, self.chance(0.15),
        )  # fmt: skip

    def variables(self, types):
        names, type = [], self.one(types)
        for _ in range(self.count(1, 4)):
            type = type if self.chance(0.5) else self.one(types)
            names.append(self.name(type, start="w"))
        for n in range(self.count(1, 2)):
            made = self.one(OPTIMIZERS)
            if self.chance(0.3):
                made = f"{made[:-1]}, {self.one(OPTIONS)})"
            chosen = self.rng.sample(names, self.count(1, len(names)))
            self.optimizers[f"o{n}"] = f"tw.optimizers.{made}", chosen
        if self.chance(0.4):
            names.append(self.name(("i", self.one([(), ("R",)])), start="w"))
        return names

    def steps_of_function(self, inputs, variables):
        scope = Scope([*variables, *inputs, "trap"], variables)
        steps = self.steps(scope, 4, 16)
        body = Body([*inputs, "trap"], steps, [])
        made = [x for x in scope.values if x not in variables]
        # What nobody reads would be left out of the trace.
        unread = [x for x in made if x not in read_in(body)] or made
        body.results = [self.recent(made), *unread[-self.count(1, 6) :]]
        return body

    def call(self, inputs, variables, number):
        mode = self.one(
            ["plain"] * 6 + ["tape", "tape", "persistent", "second", "forward"]
        )
        given = []
        for i, name in enumerate(inputs):
            alike = [f"tw.identity({x})" for x in (*inputs[:i], *variables)
                     if self.types[x] == self.types[name]]  # fmt: skip
            again = self.chance(0.2) and alike
            given.append(self.one(alike) if again else 10 * number + i)
        trap = self.rng.choices([1, 0, 2], [8, 2 * self.traps, 2])[0]
        return Call(mode, given, self.chance(0.6), trap)

    # --- steps

    def steps(self, scope, least, most):
        found = []
        for _ in range(self.count(least, most)):
            found += self.step(scope)
        return found

    def step(self, scope):
        for kind in self.rng.choices(*choices(scope.pure, scope.depth >= DEPTH), k=20):
            found = kind.make(self, scope) if kind.make else self.plain(kind, scope)
            if found:
                return found
        return []

    def plain(self, kind, scope):
        bound, args = {}, []
        if "trap" in kind.text and not (self.traps and "trap" in scope.values):
            return []
        if "next" in kind.text and self.traps:  # what an error leaves of it nobody says
            return []
        for token in kind.takes:
            found = self.match(scope.values, token, bound)
            if not found:
                return []
            args.append(self.recent(found))
            bound = unified(token, self.types[args[-1]], bound)
        outs = []
        if kind.gives:
            outs = [self.name(resolved(kind.gives, bound), scope)]
            if outs == [None]:
                return []
            self.distinct.update(outs)
        more = {"c": self.one(NUMBERS)} if "{c}" in kind.text else {}
        return [Step(kind.name, args, outs, more)]

    def function(self, scope, params, results, pure=False):
        """A body with parameters and results of these types, None for any."""
        inner = scope.function(pure)
        names = [self.name(t, inner, start="a") for t in params]
        steps = self.steps(inner, 1, 4)
        found = []
        for t in results:
            known = self.typed(inner.values, t) if t else self.match(inner.values, "A*")
            found.append(self.recent(known))
        return Body(names, steps, found)

    # --- values

    def name(self, type, scope=None, start="v"):
        """A new name for a value of a type; None if that would be too large."""
        if len(type) == 2:
            entries = [self.size(dim) for dim in type[1]]
            least = 1 if self.rows * self.columns else 0
            most = max(2 * self.rows * self.columns, 100)
            if min(entries, default=1) < least or math.prod(entries) > most:
                return None
            if len(entries) > 3:
                return None
        self.names[start] = self.names.get(start, -1) + 1
        name = f"{start}{self.names[start]}"
        self.types[name] = type
        if scope is not None:
            scope.values.append(name)
        return name

    def size(self, dim):
        return eval(dim, {"R": self.rows, "C": self.columns})

    def match(self, names, token, bound=None):
        return [x for x in names if fits(token, x, self.types[x], bound or {})]

    def typed(self, names, type):
        return [x for x in names if self.types[x] == type]

    def several(self, names, token, most, least=0):
        found = self.match(names, token)
        count = min(len(found), self.count(least, most))
        return list(dict.fromkeys([self.recent(found) for _ in range(count)]))

    # --- chance

    def chance(self, part):
        return self.rng.random() < part

    def count(self, least, most):
        return self.rng.randint(least, most)

    def one(self, things):
        return self.rng.choice(things)

    def recent(self, things):
        """One of them, more likely among the last."""
        return things[-1 - int(len(things) * self.rng.random() ** 3)]


# ---------------------------------------------------------------------- signatures


def parts(token):
    """The letter of a dtype, and the sizes of a token of a signature."""
    token = token.lstrip("@")
    return token[0], re.findall(r"\([^)]*\)|\*|\w", token[1:])


def fits(token, name, type, bound):
    if token[0] == "@" and name[0] != "w":
        return False
    return len(type) == 2 and unified(token, type, bound) is not None


def unified(token, type, bound):
    """What the letters of a token stand for if a value is of this type, or None."""
    letter, dims = parts(token)
    if type[0] not in CLASSES.get(letter, letter):
        return None
    pairs = [(letter, type[0])] if letter in CLASSES else []
    if dims == ["*"]:
        pairs.append(("*", type[1]))
    elif len(dims) != len(type[1]):
        return None
    else:
        pairs += zip(dims, type[1])
    found = dict(bound)
    for key, value in pairs:
        wanted = key if key in "RC" or key[0] == "(" else found.setdefault(key, value)
        if wanted != value:
            return None
    return found


def resolved(token, bound):
    letter, dims = parts(token)
    if dims == ["*"]:
        return bound.get(letter, letter), bound["*"]
    return bound.get(letter, letter), tuple([expression(dim, bound) for dim in dims])


def expression(dim, bound):
    """A size with what its letters stand for."""
    if dim in bound:
        return bound[dim]
    return re.sub(r"[a-z]", lambda m: bound[m.group()], dim)
