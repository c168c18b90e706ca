"""Programs as data: steps over named values, and the Python source that they stand for.

A `Step` names its kind, the values that it takes and makes, and the bodies of functions
that belong to it. What runs is the source, and what is printed when a program fails is
the source that ran. Sizes are written as expressions of ``R`` and ``C``, so that a
program can be made smaller without being written anew.
"""

import copy
import dataclasses

from .kinds import KINDS

__all__ = [
    "Body",
    "Call",
    "Program",
    "Step",
    "bodies_in",
    "indented",
    "read_in",
    "spec_text",
    "value",
]

DTYPES = {"f": "float32", "d": "float64", "i": "int32", "l": "int64", "b": "bool"}
HEAD = '''"""A random program. Run it by: PYTHONPATH=tests/compiler python FILE"""

import numpy as np
from fuzzing.checking import check, shown_in, values
from fuzzing.programs import Call

import tapewright as tw

'''
TAIL = """
if __name__ == "__main__":
    check(open(__file__).read())
"""


@dataclasses.dataclass
class Body:
    """A function's parameters, its steps, and the values that it returns."""

    params: list
    steps: list
    results: list


@dataclasses.dataclass
class Step:
    """``outs = kind(args)``; ``bodies`` hold steps of their own, ``more`` literals."""

    kind: str
    args: list
    outs: list
    more: dict = dataclasses.field(default_factory=dict)
    bodies: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Call:
    """One call of a program's function.

    ``mode``: what stands around it, a key of `checking.MODES`. ``inputs``: for each input
    the seed of new values, or an expression of earlier inputs, variables and what was
    ``kept``. ``keep``: whether results and reads of variables are held on to. ``trap``:
    zero makes some steps raise.
    """

    mode: str
    inputs: list
    keep: bool = True
    trap: int = 1


@dataclasses.dataclass
class Program:
    """``types``: of each value the letter of its dtype, and its sizes as expressions.

    ``exact``: what rounds elsewhere than the ops do is off. ``special``: NaN,
    infinities, -0.0 and denormals are among the values. ``open``: it is traced for inputs
    of unknown sizes.
    """

    rows: int
    columns: int
    types: dict
    inputs: list
    variables: list
    optimizers: dict  # name -> (constructor, names of variables)
    body: Body
    calls: list
    exact: bool
    special: bool
    open: bool = False

    def copy(self):
        return copy.deepcopy(self)

    def source(self):
        """Sizes, ``build``, which makes the variables and the function, calls."""
        state = ["log = []", "show = shown_in(log)"]
        state.append("numbers = iter(tw.data.Dataset.range(10**6))")
        for n, name in enumerate(self.variables):
            spec = spec_text(self.types[name])
            state.append(f"{name} = tw.Variable(values({spec}, {n + 100}, SPECIAL))")
        for name, (made, variables) in self.optimizers.items():
            state += [f"{name} = {made}", f"{name}.build([{', '.join(variables)}])"]
        step = Writer(self.types).function("step", self.body)
        outer = "@opened" if self.open else "@function"
        held = ", ".join([f"{x!r}: {x}" for x in [*self.variables, *self.optimizers]])
        build = [*state, "", outer, *step, "", f"return step, {{{held}}}, log"]
        inputs = [f"{spec_text(self.types[name])}," for name in self.inputs]
        calls = [f"{call!r}," for call in self.calls]
        sizes = f"R, C = {self.rows}, {self.columns}"
        return "\n".join(
            [sizes, "\n", "def build(function, opened):", *indented(build), "\n"]
            + ["INPUTS = [", *indented(inputs), "]"]
            + ["CALLS = [", *indented(calls), "]"]
            + [f"EXACT, SPECIAL = {self.exact}, {self.special}", ""]
        )

    def script(self):
        """The source as a file that runs by itself."""
        return f"{HEAD}{self.source()}{TAIL}"


def bodies_in(body):
    """The body and all bodies inside of it."""
    yield body
    for step in body.steps:
        for inner in step.bodies:
            yield from bodies_in(inner)


def read_in(body):
    """The names that steps and results mention."""
    every = [*bodies_in(body)]
    found = {x for b in every for step in b.steps for x in step.args}
    return found | {x for b in every for x in b.results}


def indented(lines):
    return [f"    {line}" if line else line for line in lines]


def spec_text(type):
    return f'tw.TensorSpec({shape_text(type)}, "{DTYPES[type[0]]}")'


def shape_text(type):
    return f"[{', '.join(type[1])}]"


def value(name):
    """The text of what goes into a function, or out of it: as itself it would if eager."""
    return f"tw.identity({name})"


class Writer:
    """Writes steps down as lines of Python."""

    def __init__(self, types):
        self.types = types

    def function(self, name, body, first=(), is_step=False):
        """``first``: pairs of a parameter and a result in front of those of the body.

        ``is_step``: it is run again and again; see `checking.touched`.
        """
        params = ", ".join([*[p for p, _ in first], *body.params])
        # What is not made here would go out as itself if eager, as another if traced.
        own = {*body.params} if name == "step" else set()
        own.update([out for step in body.steps for out in step.outs])
        given = [x if x in own else value(x) for x in body.results]
        results = [*[r for _, r in first], *given]
        result = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
        if is_step:
            result = f"touched({result}, [{', '.join(body.params)}])"
        lines = [*self.lines(body), f"return {result}"]
        return [f"def {name}({params}):", *indented(lines)]

    def lines(self, body):
        return [line for step in body.steps for line in self.step(step)]

    def step(self, step):
        text = KINDS[step.kind].text
        if callable(text):
            return text(self, step)
        known = dict(step.more)
        for i, name in enumerate(step.args):
            type = self.types[name]
            known[f"shape{i}"], known[f"spec{i}"] = shape_text(type), spec_text(type)
            known[f"n{i}"] = type[1][0] if type[1] else "1"
        return self.assigned(step, text.format(*step.args, **known))

    def assigned(self, step, text, unpack=False):
        """``text``, an expression of all results, under their names."""
        names = ", ".join(step.outs)
        if not names:
            return [text]
        comma = "," * (len(step.outs) == 1 and (unpack or step.kind == "gradient"))
        return [f"{names}{comma} = {text}"]
