"""Kinds of steps with parts of their own: tapes, updates, branches, loops, calls.

Each has a function that makes a random one up, of a generator and what is in scope, and
one that writes it. Either may give nothing up: a make that finds no operands returns [].
"""

from .kinds import KINDS, Kind
from .programs import Body, Step, bodies_in, indented, read_in, spec_text, value

__all__ = ["OPTIMIZERS", "OPTIONS"]

OPTIMIZERS = """
    SGD(0.1) SGD(0.1,momentum=0.9) SGD(0.1,momentum=0.9,nesterov=True) Adam(0.05)
    Adam(0.05,amsgrad=True) AdamW(0.05) RMSprop(0.01) RMSprop(0.01,momentum=0.5,centered=True)
    Adagrad(0.1) Nadam(0.05) Adamax(0.05) Lion(0.01) Adadelta(0.5) Ftrl(0.1) Lamb(0.05)
""".split()
OPTIONS = """
    clipnorm=0.5 clipvalue=0.1 global_clipnorm=0.5 weight_decay=0.01 use_ema=True
    gradient_accumulation_steps=2
""".split()
COUNTS = ["2", "3", "trap + 1", "trap - 1"]


def structure(name, weight, write, pure=False):
    """Registers a structure: the decorated function makes it, ``write`` writes it."""

    def register(make):
        KINDS[name] = Kind(name, write, [], "", weight, make, pure)
        return make

    return register


# ------------------------------------------------------------------------- tapes


def written_tape(writer, step):
    persistent = "persistent=True" * step.more["persistent"]
    watch = [f"{step.outs[0]}.watch([{', '.join(step.args)}])"] if step.args else []
    lines = [*watch, *writer.lines(step.bodies[0])] or ["pass"]
    return [f"with tw.GradientTape({persistent}) as {step.outs[0]}:", *indented(lines)]


@structure("tape", 6, written_tape)
def tape(some, scope):
    watched = some.several(distinct(some, scope.values), "F*", 2)
    start, name = len(scope.values), some.name(("tape",))
    body = Body([], some.steps(scope, 2, 6), [])
    made = some.match(scope.values[start:], "F*")
    if not made:
        return body.steps
    step = Step("tape", watched, [name], {"persistent": some.chance(0.6)}, [body])
    sources = [
        *some.several(scope.values, "@F*", 3),
        *watched,
        *some.several(distinct(some, made), "F*", 1),
    ]
    scope.tapes.append((name, made, list(dict.fromkeys(sources))))
    found = [step, *gradient(some, scope, -1)]
    if step.more["persistent"]:
        found += gradient(some, scope, -1) if some.chance(0.7) else []
    else:
        scope.tapes.pop()
    return found


def distinct(some, names):
    """What may be a source. A structure may give what it was given, or make it anew."""
    return [x for x in names if x in some.distinct]


def written_gradient(writer, step):
    name, target, *sources = step.args
    names = f'[{", ".join(sources)}], unconnected_gradients="zero"'
    # The gradient of a gather is sparse.
    call = f"map(tw.convert_to_tensor, {name}.gradient({target}, {names}))"
    return writer.assigned(step, call)


@structure("gradient", 3, written_gradient)
def gradient(some, scope, which=None):
    if not scope.tapes:
        return []
    name, targets, sources = scope.tapes[which] if which else some.one(scope.tapes)
    sources = some.rng.sample(sources, min(len(sources), some.count(1, 3)))
    if not sources:
        return []
    outs = [some.name(some.types[x], scope) for x in sources]
    return [Step("gradient", [name, some.recent(targets), *sources], outs)]


def written_apply(writer, step):
    grads = step.args[::2]
    if step.more["sparse"]:
        rows = "[1, 0, 1]"
        grads = [f"tw.IndexedSlices(tw.gather({g}, {rows}), {rows})" for g in grads]
    pairs = [f"({g}, {v})" for g, v in zip(grads, step.args[1::2])]
    return [f"{step.more['optimizer']}.apply_gradients([{', '.join(pairs)}])"]


@structure("apply", 8, written_apply)
def apply(some, scope):
    name = some.one([*some.optimizers])
    variables, pairs = some.optimizers[name][1], []
    for variable in some.rng.sample(variables, some.count(1, len(variables))):
        pairs += [some.recent(some.typed(scope.values, some.types[variable])), variable]
    sizes = [some.size((*some.types[v][1], "1")[0]) for v in pairs[1::2]]
    sparse = min(sizes) > 1 and some.chance(0.1)
    return [Step("apply", pairs, [], {"optimizer": name, "sparse": sparse})]


@structure(
    "rate",
    0.3,
    lambda writer, step: [f"{step.more['optimizer']}.learning_rate.assign(0.02)"],
)
def rate(some, scope):
    return [Step("rate", [], [], {"optimizer": some.one([*some.optimizers])})]


# --------------------------------------------------------------- branches and loops


def functions(writer, step, names, **kwargs):
    """The bodies as functions, and the names these get."""
    names = [f"{name}_{step.outs[0]}" for name in names]
    lines = []
    for name, body in zip(names, step.bodies):
        lines += writer.function(name, body, **kwargs)
    return lines, names


def connected(writer, step):
    """Tells that a gradient by all results passes all that the bodies may read."""
    made = {x for body in step.bodies for b in bodies_in(body) for x in outs_of(b)}
    reads = {x for body in step.bodies for x in read_in(body)} - made | {*step.args}
    reads = [x for x in sorted(reads) if x in writer.types and x[0] == "v"]
    outs = step.outs if step.outs[1:] else [step.outs[0]]
    names = ", ".join(outs)
    given = f"[{names}]" if outs[1:] else names
    return [f"{names} = touched({given}, [{', '.join(reads)}])"]


def outs_of(body):
    return [*body.params, *[x for step in body.steps for x in step.outs]]


def written_cond(writer, step):
    lines, names = functions(writer, step, ["yes", "no"])
    call = f"tw.cond({step.args[0]}, {', '.join(names)})"
    return lines + writer.assigned(step, call) + connected(writer, step)


@structure("cond", 3, written_cond)
def cond(some, scope):
    tests = some.typed(scope.values, ("b", ()))
    tests = [some.recent(tests)] if tests and some.chance(0.7) else ["True"]
    if "trap" in scope.values:
        tests.append("trap > 0")
    test = some.one(tests)
    return branches("cond", some, scope, [test], 2)


def branches(kind, some, scope, args, number):
    types = [some.types[x] for x in some.several(scope.values, "A*", 2, least=1)]
    bodies = [some.function(scope, [], types) for _ in range(number)]
    outs = [some.name(t, scope) for t in types]
    return [Step(kind, args, outs, {}, bodies)]


def written_switch(writer, step):
    numbers = [f"case{n}" for n, _ in enumerate(step.bodies)]
    lines, names = functions(writer, step, numbers)
    index = f"tw.clip_by_value({step.args[0]}, 0, {len(names) - 1})"
    call = f"tw.switch_case({index}, [{', '.join(names)}])"
    return lines + writer.assigned(step, call) + connected(writer, step)


@structure("switch", 1, written_switch)
def switch(some, scope):
    index = some.typed(scope.values, ("i", ()))
    if not index:
        return []
    return branches("switch", some, scope, [some.recent(index)], some.count(2, 3))


def written_while(writer, step):
    lines, names = functions(
        writer, step, ["body"], first=[("i", "i + 1")], is_step=True
    )
    params = ", ".join(["i", *step.bodies[0].params])
    test = f"lambda {params}: i < {step.more['count']}"
    state = ", ".join(["tw.constant(0)", *map(value, step.args)])
    call = f"tw.while_loop({test}, {names[0]}, [{state}])[1:]"
    lines += writer.assigned(step, call, unpack=True)
    return lines + connected(writer, step)


@structure("while", 2, written_while)
def while_loop(some, scope):
    state = some.several(scope.values, "A*", 2, least=1)
    types = [some.types[x] for x in state]
    body = some.function(scope, types, types)
    outs = [some.name(t, scope) for t in types]
    count = some.one(COUNTS[: 4 if "trap" in scope.values else 2])
    return [Step("while", state, outs, {"count": count}, [body])]


def written_scan(writer, step):
    lines, (name,) = functions(writer, step, ["body"], is_step=True)
    lines += writer.assigned(step, f"tw.scan({name}, {', '.join(step.args)})")
    return lines + connected(writer, step)


@structure("scan", 1, written_scan)
def scan(some, scope):
    elements, row = rows(some, scope)
    if elements is None:
        return []
    start = some.several(scope.values, "N*", 1, least=1)[0]
    letter, shape = some.types[start]
    body = some.function(scope, [(letter, shape), row], [(letter, shape)])
    out = some.name((letter, (some.types[elements][1][0], *shape)), scope)
    return [Step("scan", [elements, start], [out], {}, [body])] if out else []


def rows(some, scope):
    """A matrix of few rows, and the type of one."""
    found = [
        x
        for x in some.match(scope.values, "Nab")
        if some.size(some.types[x][1][0]) <= 40
    ]
    if not found:
        return None, None
    elements = some.recent(found)
    letter, shape = some.types[elements]
    return elements, (letter, shape[1:])


def written_map(writer, step):
    lines, (name,) = functions(writer, step, ["row"])
    result = writer.types[step.bodies[0].results[0]]
    more = f", fn_output_signature={spec_text(result)}" if step.kind == "map" else ""
    call = f"tw.{step.more['function']}({name}, {step.args[0]}{more})"
    return lines + writer.assigned(step, call)


@structure("map", 1, written_map)
def map_fn(some, scope, kind="map", function="map_fn", pure=False):
    elements, row = rows(some, scope)
    if elements is None:
        return []
    body = some.function(scope, [row], [None], pure=pure)
    letter, shape = some.types[body.results[0]]
    out = some.name((letter, (some.types[elements][1][0], *shape)), scope)
    return (
        [Step(kind, [elements], [out], {"function": function}, [body])] if out else []
    )


@structure("vectorized", 0.7, written_map, pure=True)
def vectorized_map(some, scope):
    return map_fn(some, scope, "vectorized", "vectorized_map", pure=True)


# --------------------------------------------------------------------- functions


def written_call(writer, step):
    name = f"inner_{step.outs[0]}"
    lines = [f"@{step.more['wrap']}", *writer.function(name, step.bodies[0])]
    for x, out in zip(step.args, step.outs):
        lines += writer.assigned(Step("", [], [out]), f"{name}({value(x)})")
    return lines


@structure("call", 3, written_call)
def call(some, scope):
    x = some.several(scope.values, "A*", 1, least=1)[0]
    xs = [x, some.recent(some.typed(scope.values, some.types[x]))][: some.count(1, 2)]
    again = some.chance(0.2)  # what is computed again may have no effects
    body = some.function(scope, [some.types[x]], [None], again)
    outs = [some.name(some.types[body.results[0]], scope) for _ in xs]
    wrap = "tw.recompute_grad" if again else "function"
    return [Step("call", xs, outs, {"wrap": wrap}, [body])]


def written_host(writer, step):
    lines, (name,) = functions(writer, step, ["host"])
    spec = spec_text(writer.types[step.outs[0]])
    call = f"tw.py_function({name}, [{', '.join(map(value, step.args))}], {spec})"
    if step.more["apart"]:
        call = f"tw.stop_gradient({call})"
    return lines + writer.assigned(step, call)


@structure("host", 1.5, written_host)
def host(some, scope):
    # Gradients pass to variables that a host call reads if it is eager only.
    apart = some.special or some.chance(0.5)
    xs = some.several(scope.values, "A*", 2, least=1)
    # What a host call has done cannot be taken back if a later step raises.
    pure = some.traps or not apart
    inner = scope.closed(scope.variables if apart else [])
    body = some.function(inner, [some.types[x] for x in xs], [None], pure)
    out = some.name(some.types[body.results[0]], scope)
    return [Step("host", xs, [out], {"apart": apart}, [body])]
