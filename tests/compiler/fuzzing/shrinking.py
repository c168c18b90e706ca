"""Makes a failing program smaller for as long as it fails in the same way.

An edit lists what it can do to a program, as functions without arguments. Each is tried
on a copy, which takes the place of the program if it still fails.
"""

import time

from .programs import bodies_in, read_in, spec_text

__all__ = ["shrunk"]

SIZES = [(2, 3), (5, 64), (4, 1024), (5, 820), (8, 4099), (32, 4100)]


def shrunk(program, fails, seconds=60.0):
    """A smaller program for which ``fails(program)`` is true as it is for this one."""
    until, before = time.monotonic() + seconds, None
    while before is not program:
        before = program
        for edit in EDITS:
            place = 0
            while place < len(edit(program)) and time.monotonic() < until:
                candidate = program.copy()
                edit(candidate)[place]()
                if fails(candidate):
                    program = candidate
                else:
                    place += 1
    return program


# ------------------------------------------------------------------- looking around


def lists(body):
    """All lists of steps: of the body, and of those inside of it."""
    return [inner.steps for inner in bodies_in(body)]


def rename(program, names):
    """Other values in the place of some."""
    for body in bodies_in(program.body):
        body.results[:] = [names.get(x, x) for x in body.results]
        for step in body.steps:
            step.args[:] = [names.get(x, x) for x in step.args]


def stand_in(program, step, name):
    """An operand of the type of a result, or else ones."""
    type = program.types[name]
    for x in step.args:
        if program.types.get(x) == type:
            return x
    text = f"tw.ones({spec_text(type)[len('tw.TensorSpec(') : -1]})"
    program.types[text] = type
    return text


def without(things, i):
    return [x for j, x in enumerate(things) if j != i]


# ---------------------------------------------------------------------------- edits


def drop_calls(program):
    def drop(i):
        return lambda: program.calls.pop(i)

    return [drop(i) for i in range(len(program.calls))] if program.calls[1:] else []


def drop_steps(program):
    return [
        lambda steps=steps, step=step: remove(program, steps, step)
        for steps in lists(program.body)
        for step in reversed(steps)
    ]


def remove(program, steps, step):
    """Takes a step out. A tape leaves its steps behind; its gradients go."""
    at = [s is step for s in steps].index(True)
    steps[at : at + 1] = step.bodies[0].steps if step.kind == "tape" else []
    if step.kind == "tape":
        for others in [*lists(program.body)]:
            for other in [s for s in others if s.args[:1] == step.outs]:
                remove(program, others, other)
        return
    rename(program, {out: stand_in(program, step, out) for out in step.outs})


def inline(program):
    """A structure gives way to one of its bodies, run once."""
    types, found = program.types, []

    def splice(steps, step, body, params):
        at = [s is step for s in steps].index(True)
        steps[at : at + 1] = body.steps
        rename(program, {**params, **dict(zip(step.outs, body.results))})

    for steps in lists(program.body):
        for step in steps:
            for body in step.bodies if step.outs else []:
                pairs = [*zip(body.params, step.args), *zip(step.outs, body.results)]
                if body.results and all([types.get(x) == types[y] for x, y in pairs]):
                    params = dict(zip(body.params, step.args))
                    found.append(
                        lambda a=steps, s=step, b=body, p=params: splice(a, s, b, p)
                    )
    return found


def drop_parts(program):
    """Results, pairs of updates, sources of gradients, watched values."""
    found = []
    if program.body.results[1:]:
        for i in range(len(program.body.results)):
            found.append(lambda i=i: program.body.results.pop(i))
    taken = read_in(program.body)
    for step in [step for steps in lists(program.body) for step in steps]:
        if step.kind == "apply" and step.args[2:]:
            for i in range(0, len(step.args), 2):
                found.append(lambda s=step, i=i: s.args.__delitem__(slice(i, i + 2)))
        if step.kind == "gradient" and step.outs[1:]:
            for i, out in enumerate(step.outs):
                if out not in taken:
                    found.append(lambda s=step, i=i: (s.outs.pop(i), s.args.pop(i + 2)))
        if step.kind == "tape":
            for i in range(len(step.args)):
                found.append(lambda s=step, i=i: s.args.pop(i))
    return found


def drop_state(program):
    """Optimizers and variables that nothing mentions."""
    found, taken = [], read_in(program.body)
    steps = [step for steps in lists(program.body) for step in steps]
    rules = {step.more.get("optimizer") for step in steps}
    for name, (_, variables) in program.optimizers.items():
        if name not in rules:
            found.append(lambda name=name: program.optimizers.pop(name))
        taken = {*taken, *variables}
        for i in range(len(variables) if variables[1:] else 0):
            found.append(lambda variables=variables, i=i: variables.pop(i))
    calls = repr(program.calls)
    for name in program.variables:
        if name not in taken and name not in calls:
            found.append(lambda name=name: program.variables.remove(name))
    return found


def simpler_calls(program):
    """Each call plain, keeping nothing, with new inputs and all alike."""
    found = []
    for call in program.calls:
        for name, value in (("mode", "plain"), ("keep", False), ("trap", 1)):
            if getattr(call, name) != value:
                found.append(lambda c=call, n=name, v=value: setattr(c, n, v))
        for i, given in enumerate(call.inputs):
            if given != i:
                found.append(lambda c=call, i=i: c.inputs.__setitem__(i, i))
    return found


def simpler_values(program):
    """Smaller sizes, values that are only numbers, optimizers that are plain."""
    found = [
        lambda size=size: vars(program).update(rows=size[0], columns=size[1])
        for size in SIZES
        if size[0] * size[1] < program.rows * program.columns
    ]
    if program.special:
        found.append(lambda: setattr(program, "special", False))
    for name, (made, variables) in program.optimizers.items():
        if (plain := "tw.optimizers.SGD(0.1)") != made:
            found.append(
                lambda n=name, v=variables: program.optimizers.update({n: (plain, v)})
            )
    return found


def earlier_operands(program):
    """Inputs and variables in the place of what steps made."""
    found = []
    for body in bodies_in(program.body):
        for names in [body.results, *[step.args for step in body.steps]]:
            for i, x in enumerate(names):
                if x.startswith("v") and len(program.types[x]) == 2:
                    found += [
                        lambda n=names, i=i, y=y: n.__setitem__(i, y)
                        for y in (*program.inputs, *program.variables)
                        if program.types[y] == program.types[x]
                    ][:1]
    return found


EDITS = [
    drop_calls, drop_steps, inline, simpler_values, drop_parts, drop_state, simpler_calls,
    earlier_operands,
]  # fmt: skip
