"""Warn once about a function that is traced often, and report what differs."""

from collections import deque

from tapewright.core.variable import Variable

from .arguments import named_leaves

# The warning comes after so many traces within so many calls.
TRACES, CALLS = 5, 10


class Retraces:
    """The latest traces of a function: the call and the arguments of each."""

    def __init__(self, name, relaxed=False):
        self.name, self.warned = name, False
        self.relaxed = relaxed  # whether differing sizes are left open already
        self.latest = deque(maxlen=TRACES)

    def note(self, call, names, arguments):
        """Record a trace made in this call; return a warning, or None."""
        if self.warned:
            return None
        self.latest.append((call, _describe_leaves(names, arguments)))
        if len(self.latest) < TRACES or call - self.latest[0][0] >= CALLS:
            return None
        self.warned = True
        calls = call - self.latest[0][0] + 1
        return (
            f"function '{self.name}' was traced {TRACES} times in its last {calls} "
            f"calls: {self._varying()}. Tracing costs as much as many calls"
        )

    def _varying(self):
        """Describe the arguments that differ, and how to avoid it."""
        rows = [described for _, described in self.latest]
        names = list(dict.fromkeys([name for row in rows for name in row]))
        reasons, ways = [], []
        for name in names:
            seen = [row.get(name, ("none", "nothing")) for row in rows]
            if all([each == seen[0] for each in seen]):
                continue
            texts = dict.fromkeys([text for _, text in seen])
            reasons.append(f"the argument '{name}' varies ({', '.join(texts)})")
            ways += [kind for kind, _ in seen]
        if not reasons:
            return "the device, or the context of the calls, varies"
        return f"{'; '.join(reasons)}. {_advice(ways, self.relaxed)}"


def _advice(kinds, relaxed):
    advice = []
    if "number" in kinds:
        advice.append("Pass changing numbers as tensors: tw.constant(n)")
    if "tensor" in kinds and not relaxed:
        advice.append(
            "For changing shapes, pass reduce_retracing=True, or an input_signature "
            "with None for the dimension"
        )
    if "object" in kinds:
        advice.append("Create objects once, outside the loop")
    return ". ".join(advice or ["Pass arguments of the same structure and rank"])


def _describe_leaves(names, arguments):
    """Map the name of each leaf of the arguments to its kind and its part of the key."""
    leaves, specs = {}, iter(arguments.specs)
    values = zip(names, arguments.values, strict=True)
    for name, leaf in [pair for n, x in values for pair in named_leaves(x, n)]:
        if (
            hasattr(leaf, "shape")
            and hasattr(leaf, "dtype")
            and not isinstance(leaf, Variable)
        ):
            leaves[name] = _tensor_text(next(specs, None))
        elif isinstance(leaf, (int, float, complex, str, bytes)):
            text = repr(leaf)
            leaves[name] = "number", text if len(text) < 40 else text[:37] + "..."
        else:
            leaves[name] = "object", f"{type(leaf).__name__} at {id(leaf):#x}"
    return leaves


def _tensor_text(spec):
    if spec is None:
        return "tensor", "a tensor"
    shape, dtype, _ = spec
    return "tensor", f"{dtype.name}{'[...]' if shape is None else list(shape)}"
