"""Runs a program eagerly and traced, and tells where the two differ.

Floating results are the same bit for bit unless machine code computes them. Then the
program itself says how much rounding matters: it runs again, eagerly, with all floating
results jiggled by a few units in the last place, and where that changes nothing much the
traced one has to agree.

A traced branch or loop gives zeros as the gradient of what it does not read, where eager
code gives nothing; on their way back infinities and NaN make NaN of zeros. So a traced
NaN is held against a second eager run, in which branches and loops give such zeros, too.
"""

import dataclasses
import re
import warnings

import numpy as np

import tapewright as tw
from tapewright.compiler.control_flow.effects import host_effect
from tapewright.core.hardware.devices import to_numpy

from .programs import Call

__all__ = ["Difference", "Refusal", "Zeros", "check", "run", "shown_in", "values"]

# Eager results lie in memory as their operands do, those of a replay in C order, and NumPy
# adds up all of an array as it lies.
TURNED = r"transpose|::-1|reverse|softmax"
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-310, 1.0]
# Mistakes of a program itself, which no comparison can tell anything about.
ILL_FORMED = (NameError, SyntaxError)
JIGGLES, MORE, AMPLITUDE, SLACK = 2, 6, 4, 64
# Of gradients, which cancel where no jiggling reaches: parts of themselves and the largest.
LOOSE = 100, 1


class Difference(AssertionError):
    """The traced program is not the eager one. ``kind`` tells differences apart."""

    def __init__(self, message, kind="values"):
        super().__init__(message)
        self.kind = kind


class Refusal(Exception):
    """A traced function says that it cannot do what the program asks for."""


class Zeros(Refusal):
    """A traced gradient is NaN where it is so eagerly if what is not read gets zeros."""


def values(spec, seed, special=False):
    """Random values of a spec, the same for the same seed."""
    rng = np.random.default_rng(seed)
    array = rng.uniform(-2, 2, spec.shape)
    if special and array.size and spec.dtype.is_floating:
        count = 1 + array.size // 50
        array.flat[rng.integers(0, array.size, count)] = rng.choice(SPECIAL, count)
    return np.asarray(array.astype(spec.dtype.as_numpy_dtype))


def shown_in(log):
    """An effect that notes a value in the log."""

    def show(x):
        host_effect("print", lambda array: log.append(to_numpy(array).copy()), [x])

    return show


@tw.custom_gradient
def with_zeros(results, reads):
    """``results``, of whose gradient ``reads`` get zeros."""

    def grad(*cotangents):
        return [*cotangents], [tw.zeros_like(x) for x in reads]

    return [tw.identity(x) for x in results], grad


def touched(results, reads):
    """``results`` of a branch or loop, connected to all that it might have read."""
    several = isinstance(results, list)
    results = results if several else [results]
    places = [i for i, x in enumerate(results) if tw.as_dtype(x.dtype).is_floating]
    found = with_zeros([results[i] for i in places], floats(reads)) if places else []
    for i, x in zip(places, found):
        results[i] = x
    return results if several else results[0]


def jiggler(seed):
    """Multiplies floating tensors and their cotangents by 1 and a few units in the last place.

    By others on the way back: so what cancels there, as in the gradient of ``x / x``, is
    seen to be rounding.
    """
    rng = np.random.default_rng(seed)

    def jiggle(x):
        if isinstance(x, tw.Variable):
            x = tw.convert_to_tensor(x)
        if not isinstance(x, tw.Tensor):
            return [jiggle(each) for each in x]
        if not x.dtype.is_floating:
            return x
        there, back = factors(x), factors(x)
        return tw.custom_gradient(lambda x: (x * there, lambda g: g * back))(x)

    def factors(x):
        dtype = x.dtype.as_numpy_dtype
        signs = rng.integers(0, 2, tuple(x.shape)) * 2 - 1
        units = signs * rng.integers(1, AMPLITUDE + 1, tuple(x.shape))
        factors = 1 + np.finfo(dtype).eps * units
        return tw.constant(factors.astype(dtype))

    return jiggle


def jiggled(line):
    """An assignment whose result is jiggled, and its operands, for the way back."""
    names, text = line.groups()
    if not re.search(r"lambda|gradient|_v", text):
        text = re.sub(r"\b([avwx]\d+)\b(?![.])", r"jiggle(\1)", text)
    return f"{names}jiggle({text})"


# ------------------------------------------------------------------ ways of calling


def floats(tensors):
    return [x for x in tensors if x.dtype.is_floating]


def loss(tensors):
    parts = [tw.reduce_sum(x * (0.5 + i)) for i, x in enumerate(floats(tensors))]
    return (
        tw.add_n([tw.cast(x, tw.float64) for x in parts]) if parts else tw.constant(0.0)
    )


def gradients(tape, target, sources):
    found = tape.gradient(target, sources, unconnected_gradients="zero")
    return [tw.convert_to_tensor(g) for g in found]


def plain(step, inputs, variables):
    return as_list(step(*inputs)), []


def under_tape(step, inputs, variables):
    with tw.GradientTape() as tape:
        tape.watch(floats(inputs))
        outs = as_list(step(*inputs))
        total = loss(outs)
    return outs, gradients(tape, total, floats(inputs) + variables)


def under_persistent(step, inputs, variables):
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(floats(inputs))
        outs = as_list(step(*inputs))
        first, last = loss(outs[:1]), loss(outs[-1:])
    sources = floats(inputs) + variables
    return outs, gradients(tape, first, sources) + gradients(tape, last, sources)


def forward(step, inputs, variables):
    primals = floats(inputs) + variables
    tangents = [tw.cos(tw.convert_to_tensor(x)) for x in primals]
    with tw.autodiff.ForwardAccumulator(primals, tangents) as accumulator:
        outs = as_list(step(*inputs))
    found = [accumulator.jvp(x, unconnected_gradients="zero") for x in floats(outs)]
    return outs, found


def second_order(step, inputs, variables):
    sources = floats(inputs) + variables
    with tw.GradientTape() as outer:
        outer.watch(floats(inputs))
        outs, first = under_tape(step, inputs, variables)
        total = loss([tw.sin(x) for x in floats([*outs, *first])])
    return outs, [*first, *gradients(outer, total, sources)]


MODES = {
    "plain": plain,
    "tape": under_tape,
    "persistent": under_persistent,
    "second": second_order,
    "forward": forward,
}


def as_list(x):
    """The results as tensors: eagerly a variable is returned as itself."""
    return [
        tw.convert_to_tensor(y) for y in (x if isinstance(x, (list, tuple)) else [x])
    ]


# ------------------------------------------------------------------------- running


@dataclasses.dataclass
class Record:
    """What one call left: results and gradients or an error, the state, the log."""

    results: list
    gradients: list
    state: list
    log: list
    error: Exception | None = None


def run(source, traced=False, jiggle=None, zeros=False):
    """The records of all calls. Raises `Difference` if what is kept of one changes."""
    scope = {"np": np, "tw": tw, "values": values, "shown_in": shown_in, "Call": Call}
    scope["touched"] = touched if zeros else lambda results, reads: results
    if jiggle is not None:
        source = re.sub(r"^( +v[\dv, ]+ = )(.*)$", jiggled, source, flags=re.M)
    exec(compile(source, "<program>", "exec"), scope := {**scope, "jiggle": jiggle})
    wraps = tracers(scope["INPUTS"]) if traced else [lambda f: f] * 2
    step, held, log = scope["build"](*wraps)
    variables = [v for v in held.values() if isinstance(v, tw.Variable)]
    rules = [o for o in held.values() if not isinstance(o, tw.Variable)]
    slots = [v for rule in rules for v in rule.variables]
    return list(Runner(scope, step, held, variables, slots, log, traced).records())


def tracers(specs):
    """What traces a function, and what traces it for inputs of unknown sizes."""
    open_specs = [tw.TensorSpec([None] * len(s.shape), s.dtype) for s in specs]
    return tw.function, tw.function(input_signature=open_specs)


class Runner:
    """Calls a program's function as its calls say."""

    def __init__(self, scope, step, held, variables, slots, log, traced):
        self.scope, self.step, self.held, self.log = scope, step, held, log
        self.variables, self.traced = variables, traced
        self.state = [*variables, *slots, tw.random.get_global_generator().state]
        self.kept = []  # (call, arrays' holders, copies of what they were)

    def records(self):
        for number, call in enumerate(self.scope["CALLS"]):
            yield self.record(number, call)

    def record(self, number, call):
        tw.random.set_seed(number)
        del self.log[:]
        inputs = self.inputs(call)
        given, before = copies(inputs), copies(self.state)
        floating = [v for v in self.variables if v.dtype.is_floating]
        try:
            found, slopes = MODES[call.mode](self.step, inputs, floating)
            error = None
        except ILL_FORMED:
            raise
        except Exception as raised:
            found, slopes, error = [], [], raised
            self.restore(before)
        results, slope_arrays = copies(found), copies(slopes)
        self.look(f"inputs of call {number}", inputs, given)
        if call.keep:
            held = [*found, *slopes, *[v.read() for v in self.variables]]
            held += [np.asarray(x) for x in held]
            self.kept.append((f"what is kept of call {number}", held, copies(held)))
        for place, held, were in self.kept:
            self.look(f"{place}, after call {number}", held, were)
        return Record(results, slope_arrays, copies(self.state), [*self.log], error)

    def inputs(self, call):
        """New tensors, or those that expressions of the call ask for."""
        scope = {**self.held, "tw": tw}
        names = [f"x{i}" for i in range(len(call.inputs))]
        for name, made, spec in zip(names, call.inputs, self.scope["INPUTS"]):
            if isinstance(made, int):
                scope[name] = tw.constant(values(spec, made, self.scope["SPECIAL"]))
            else:
                scope[name] = eval(made, scope)
        return [*[scope[name] for name in names], tw.constant(call.trap)]

    def restore(self, before):
        """After an error all is as before: by itself if traced, else by hand."""
        if self.traced:
            self.look("the state after an error", self.state, before)
        for variable, array in zip(self.state, before):
            variable.assign(array)

    def look(self, place, held, were):
        for i, (now, then) in enumerate(zip(copies(held), were)):
            if not same_bits(now, then):
                text = f"{place}: number {i} has changed: {described(now, then)}"
                raise Difference(text, "kept")


def copies(holders):
    return [np.array(x) for x in holders]


# ----------------------------------------------------------------------- comparing


def check(source):
    """Raises `Difference` unless a program's traced function is the eager one.

    Returns the errors that calls raised, eager and traced alike; None for those that
    returned. Raises `Refusal` where a difference is meant.
    """
    try:
        return compared(source)
    except Difference as difference:
        if difference.kind != "nan" or "touched(" not in source:
            raise
        try:
            compared(source, zeros=True)
        except Difference:
            raise difference from None
        raise Zeros(str(difference)) from None


def compared(source, zeros=False):
    """The errors that calls raised; raises as `check` does."""
    same_calls = tw.config.target() == "numpy"  # machine code rounds otherwise
    exact = "EXACT, SPECIAL = True" in source and not re.search(TURNED, source)
    exact = exact and same_calls
    empty = "0" in re.search(r"R, C = (\d+), (\d+)", source).groups()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = run(source, zeros=zeros)
        found = run(source, traced=True, zeros=zeros)
        rounding = Rounding(source, zeros)
        for number, (a, b) in enumerate(zip(found, wanted)):
            if (a.error is None) != (b.error is None):
                compare_errors(f"call {number}", a.error, b.error, empty)
            compare(number, a, b, exact, rounding)
    return [r.error for r in wanted]


def compare_errors(place, found, wanted, empty):
    """Tells what is refused, or left out with its error, from what is wrong."""
    if isinstance(found, tw.errors.TracingError):
        raise Refusal(str(found)) from found
    if wanted is None and empty:
        raise Refusal(f"a branch that is not taken has no values: {found}")
    # An assertion is an effect; other errors go with what nobody reads.
    if found is None and "assert" not in str(wanted):
        raise Refusal(f"nobody reads what would raise: {wanted}")
    errors = f"traced {found!r}, eager {wanted!r}"
    raise Difference(f"{place}: {errors}", (type(found), type(wanted))) from found


def compare(number, found, wanted, exact, rounding):
    """Raises `Difference` unless a call has left the same as the eager one."""
    if wanted.error is None and len(found.log) != len(wanted.log):
        counts = f"traced shows {len(found.log)} values, eager {len(wanted.log)}"
        raise Difference(f"call {number}: {counts}", "log")
    for part in ("results", "gradients", "state", "log"):
        if part == "log" and wanted.error is not None:
            continue
        for i, (a, b) in enumerate(zip(getattr(found, part), getattr(wanted, part))):
            where = f"call {number}, {part} {i}"
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                raise Difference(
                    f"{where}: traced {a.dtype}{a.shape}, eager {b.dtype}{b.shape}"
                )
            if same_bits(a, b):
                continue
            rounded = part == "gradients" or not exact
            if not (rounded and rounding.explains(number, part, i, a, b)):
                lost = np.all((a != a) | equal(a, b))
                kind = "nan" if lost else "values"
                raise Difference(f"{where}: {described(a, b)}", kind)


def same_bits(a, b):
    """Whether all entries are equal, zeros of one sign, NaN where the other has it."""
    same = equal(a, b)
    if a.dtype.kind == "f":
        same &= (np.signbit(a) == np.signbit(b)) | (a != a)
    return bool(np.all(same))


def described(a, b):
    """The first entries that differ."""
    a, b = a.reshape(-1), b.reshape(-1)
    at = [i for i in range(a.size) if not same_bits(a[i], b[i])]
    rows = [f"  [{i}] traced {a[i]!r}, eager {b[i]!r}" for i in at[:5]]
    return "\n".join([f"{len(at)} of {a.size} entries differ", *rows])


class Rounding:
    """How far the results of a program move if each op rounds otherwise."""

    def __init__(self, source, zeros=False):
        self.source, self.zeros, self.runs = source, zeros, []

    def explains(self, number, part, i, a, b):
        """Whether ``a`` and ``b`` are the same but for rounding."""
        for count in (JIGGLES, MORE):
            while len(self.runs) < count:
                jiggle = jiggler(len(self.runs))
                self.runs.append(run(self.source, jiggle=jiggle, zeros=self.zeros))
            others = []
            for records in self.runs:
                found = getattr(records[number], part)
                if records[number].error or len(found) <= i:
                    return True  # rounding decides whether it fails
                others.append(found[i])
            if np.all(close(a, b, others, LOOSE if part == "gradients" else (0, 0))):
                return True
        return False


def close(a, b, others, loose):
    """Entry by entry, whether ``a`` is no further from ``b`` than the others allow."""
    moved = np.any([~equal(c, b) for c in others], 0)
    if a.dtype.kind != "f":
        return equal(a, b) | moved
    kind, size = np.finfo(b.dtype), np.abs(b[np.isfinite(b)]).max(initial=0)
    unit, least = kind.eps, float(kind.smallest_subnormal)
    a, b, *others = [x.astype("f8") for x in (a, b, *others)]
    finite = np.all([np.isfinite(x) for x in (b, *others)], 0)
    spread = np.max([np.abs(c - b) for c in others], 0) + unit * np.abs(b)
    slack = np.sqrt(unit) * (loose[0] * np.abs(b) + loose[1] * size)
    if finite.any():  # what cancels to zero by chance is as uncertain as its neighbours
        slack = slack + 8 * np.median(spread[finite])
    near = np.abs(a - b) <= SLACK * spread + 8 * (unit * size + least) + slack
    return np.where(finite, near, equal(a, b) | moved)


def equal(a, b):
    """Entry by entry; NaN is NaN."""
    return (a == b) | ((a != a) & (b != b))


def failure(source):
    """The difference of a program, or None, also if it is not well formed."""
    try:
        check(source)
    except Difference as difference:
        return difference
    except Exception:
        return None
