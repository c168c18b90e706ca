"""Adjoints: from the VJP rules of a primitive to the records that a tape keeps.

For each pattern of tracked inputs an op has one adjoint: ``pack`` makes the record of a
call (keys, and the residuals that the rules name), and the backward step exists in two
forms, ``raw`` on arrays and ``ops`` on tensors, that differ in ``.array`` only. Both are
generated from the rules' signatures when a pattern is first met.

Inside a walk cotangents are the conjugates of TensorFlow's, so that the rule of a
holomorphic function is the same for real and for complex numbers; `walk` conjugates at
the ends.
"""

from . import devices
from .errors import GradientLookupError
from .interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    active_interpreters,
    use_interpreters,
)
from .op_registry import find_op
from .symbolic_shape import definitely_equal, has_symbolic_shape
from .tensor import Tensor, convert_to_tensor, module_of, new_tensor

__all__ = [
    "Adjoint",
    "OpCall",
    "add_cotangent",
    "call_user_function",
    "conjugate",
    "fill_missing",
    "from_user",
    "make_pack",
    "parameters",
    "to_user",
]


def parameters(function):
    """The names of a function's positional parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


class Adjoint:
    """The backward step of one pattern of tracked inputs.

    ``raw(record, g, cotangents, useful)`` works on arrays, ``ops`` on tensors; both add
    to ``cotangents`` (key -> cotangent). ``width`` is the number of tracked inputs.
    ``entrywise``: it works entry by entry, on cotangents with further axes in front too.
    """

    __slots__ = ("op", "width", "raw", "ops", "entrywise")

    def __init__(self, op, width, entrywise=False):
        self.op, self.width, self.entrywise = op, width, entrywise


def make_pack(op, tracked, unbroadcast):
    """``pack(attributes, out, *inputs)``, which makes the record of one call.

    ``tracked`` says of each input whether a cotangent must reach it; ``unbroadcast``
    whether cotangents are summed down to the shapes of their primals.
    """
    if op.variadic:
        return _variadic_adjoint(op, tracked)
    adjoint = Adjoint(op, sum(tracked), op.elementwise and not unbroadcast)
    names = [n for n, is_tracked in zip(op.inputs, tracked) if is_tracked]
    rules = {n: op.rules.get(n) for n in names}
    if op.registered is not None:
        return _registered_adjoint(op, tracked)
    residuals = {}  # how a rule calls it -> how pack takes it
    for name in names:
        rule = rules[name]
        for wanted in parameters(rule)[1:] if rule else ():
            residuals[wanted] = _source_of(op, wanted)
        if unbroadcast and rule:
            residuals[f"{name}_shape"] = f"{name}.array.shape"
    if op.multiple:
        residuals["out_like"] = "tuple([(o.array.shape, o.array.dtype) for o in out])"
    keys = [f"{n}_key" for n in names]
    stored = list(residuals)
    lines = [f"def pack(attributes, out, {', '.join(op.inputs)}):"]
    out_key = "tuple([o.key for o in out])" if op.multiple else "out.key"
    values = [out_key, *(f"{n}.key" for n in names), *residuals.values()]
    lines.append(f"    return adjoint, {', '.join(values)}")
    for form, access in (("raw", ".array"), ("ops", "")):
        lines.append(f"def {form}(record, g, cotangents, useful):")
        unpacked = ["_", "_", *keys, *(f"r_{s}" for s in stored)]
        lines.append(f"    {', '.join(unpacked)} = record")
        if op.multiple:
            lines.append("    g = fill(g, r_out_like)")
        for name in names:
            lines += _backward_lines(
                op, name, rules[name], access, len(names), unbroadcast
            )
    scope = {
        "adjoint": adjoint,
        "missing": _missing,
        "sum_to": _sum_to,
        "alike": definitely_equal,
        "fill": fill_missing,
    }
    scope |= {f"rule_{n}": r for n, r in rules.items()}
    # A file name of ours: a search for the user's line (`source_lines.user_line`) passes it by.
    exec(compile("\n".join(lines), f"{__file__}:{op.name}", "exec"), scope)
    adjoint.raw, adjoint.ops = scope["raw"], scope["ops"]
    return scope["pack"]


def _source_of(op, wanted):
    """The expression by which ``pack`` finds what a rule names."""
    if wanted in op.attributes:
        return f"attributes[{wanted!r}]"
    for suffix in ("_shape", "_dtype"):
        if wanted.endswith(suffix) and wanted.removesuffix(suffix) in op.inputs:
            return f"{wanted.removesuffix(suffix)}.array.{suffix[1:]}"
    return wanted


def _backward_lines(op, name, rule, access, width, unbroadcast):
    if rule is None:
        return [f"    missing({op.name!r}, {op.type_name!r}, {name!r})"]
    arguments = ["g"]
    for wanted in parameters(rule)[1:]:
        is_value = wanted == "out" or wanted in op.inputs
        if wanted == "out" and op.multiple:
            arguments.append(f"tuple([o{access} for o in r_out])")
        else:
            arguments.append(f"r_{wanted}{access if is_value else ''}")
    lines = [f"d = rule_{name}({', '.join(arguments)})"]
    if unbroadcast:
        if access:
            test = f"d.shape != r_{name}_shape"
        else:
            test = f"not alike(d.array.shape, r_{name}_shape)"
        lines.append(f"if {test}: d = sum_to(d, r_{name}_shape)")
    key = f"{name}_key"
    lines += [
        f"old = cotangents.get({key})",
        f"cotangents[{key}] = d if old is None else old + d",
    ]
    if width == 1:
        return [f"    {line}" for line in lines]
    guard = f"    if useful is None or {key} in useful:"
    return [guard, *(f"        {line}" for line in lines)]


def _missing(op_name, type_name, input_name):
    raise GradientLookupError(op_name, type_name, input_name)


def fill_missing(cotangents, out_like):
    """Zeros where no cotangent arrived at one of several outputs."""
    present = next(c for c in cotangents if c is not None)
    tensors = isinstance(present, Tensor)
    xp = module_of(present) if tensors else devices.array_module(type(present))
    filled = []
    for c, (shape, dtype) in zip(cotangents, out_like):
        if c is None:
            if has_symbolic_shape(shape):
                zero = new_tensor(xp.zeros((), dtype))
                c = find_op("broadcast_to").entry(zero, shape)
            else:
                c = xp.zeros(shape, dtype)
                c = new_tensor(c) if tensors else c
        filled.append(c)
    return tuple(filled)


def _sum_to(d, shape):
    return sum_to_shape(d, shape)


def sum_to_shape(d, shape):
    """Replaced by the op of that name when ``ops/math/reduction.py`` is there."""
    raise RuntimeError("the ops are not loaded")


def _variadic_adjoint(op, tracked):
    """The adjoint of an op on a list: one rule gives the cotangents of all its items.

    Of an op with several outputs it is given None for those that no cotangent reached.
    """
    name = op.inputs[0]
    rule = op.rules.get(name)
    adjoint = Adjoint(op, sum(tracked))
    if op.registered is not None:
        return _registered_adjoint(op, tracked)
    if rule is None:

        def step(record, g, cotangents, useful):
            _missing(op.name, op.type_name, name)

        adjoint.raw = adjoint.ops = step
        return lambda attributes, out, *values: (
            adjoint,
            _key_of(out),
            *_tracked_keys(values, tracked),
        )
    wanted = parameters(rule)[1:]

    def pack(attributes, out, *values):
        residuals = []
        for residual in wanted:
            if residual in op.attributes:
                residuals.append(attributes[residual])
            elif residual == f"{name}_shape":
                residuals.append(tuple([v.array.shape for v in values]))
            else:
                residuals.append(out if residual == "out" else values)
        return (adjoint, _key_of(out), *_tracked_keys(values, tracked), *residuals)

    def backward(record, g, cotangents, useful, on_arrays):
        residuals = record[2 + adjoint.width :]
        if on_arrays:
            residuals = [_bare(r) for r in residuals]
        parts = rule(g, *residuals)
        keys = iter(record[2 : 2 + adjoint.width])
        for part, is_tracked in zip(parts, tracked, strict=True):
            if is_tracked:
                add_cotangent(cotangents, next(keys), part, useful)

    adjoint.raw = lambda *step: backward(*step, True)
    adjoint.ops = lambda *step: backward(*step, False)
    return pack


def _key_of(out):
    return tuple([o.key for o in out]) if type(out) is tuple else out.key


def _tracked_keys(values, tracked):
    return [v.key for v, is_tracked in zip(values, tracked) if is_tracked]


def _bare(residual):
    if isinstance(residual, Tensor):
        return residual.array
    if isinstance(residual, tuple) and residual and isinstance(residual[0], Tensor):
        return tuple([t.array for t in residual])
    return residual


def add_cotangent(cotangents, key, d, useful=None):
    """Adds ``d`` to what is there under ``key``, unless it is None or not asked for."""
    if d is None or (useful is not None and key not in useful):
        return
    old = cotangents.get(key)
    cotangents[key] = d if old is None else old + d


class OpCall:
    """What a gradient function given to `RegisterGradient` sees of the forward call."""

    __slots__ = ("name", "type", "inputs", "outputs", "_attributes")

    def __init__(self, op, inputs, outputs, attributes):
        self.name, self.type = op.name, op.type_name
        self.inputs, self.outputs = list(inputs), outputs
        self._attributes = attributes

    def get_attr(self, name):
        return self._attributes[name]


def _registered_adjoint(op, tracked):
    adjoint = Adjoint(op, sum(tracked))

    def pack(attributes, out, *inputs):
        outputs = out if type(out) is tuple else (out,)
        call = OpCall(op, inputs, outputs, attributes)
        return (adjoint, _key_of(out), *_tracked_keys(inputs, tracked), call)

    def step(record, g, cotangents, useful):
        parts = call_user_function(op.registered, record[-1], g)
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        if len(parts) != len(tracked):
            raise ValueError(
                f"The gradient registered for {op.type_name} returned {len(parts)} "
                f"gradients for {len(tracked)} inputs"
            )
        keys = iter(record[2 : 2 + adjoint.width])
        for part, is_tracked in zip(parts, tracked, strict=True):
            if is_tracked:
                add_cotangent(cotangents, next(keys), part, useful)

    adjoint.raw = adjoint.ops = step
    return pack


def call_user_function(function, call, g):
    """Gives tensors to a user's gradient function, and takes what the walk works on.

    Inside a walk cotangents are the conjugates of TensorFlow's (see `walk`); users write
    in TensorFlow's convention.
    """
    on_arrays = active_interpreter() is ARRAY_EVAL
    many = isinstance(g, (list, tuple))
    with use_interpreters(() if on_arrays else active_interpreters()):
        cotangents = [to_user(c, on_arrays) for c in (g if many else (g,))]
        parts = function(call, *cotangents)
        if isinstance(parts, (list, tuple)):
            return [from_user(p, on_arrays) for p in parts]
        return from_user(parts, on_arrays)


def to_user(c, on_arrays):
    """A cotangent of the walk as a tensor in TensorFlow's convention."""
    tensor = new_tensor(c) if on_arrays and c is not None else c
    return conjugate(tensor)


def from_user(part, on_arrays):
    """What a user's gradient function returned, as the walk carries it; None stays."""
    if part is None:
        return None
    tensor = conjugate(convert_to_tensor(part))
    return tensor.array if on_arrays else tensor


def conjugate(tensor):
    """The conjugate of a complex tensor; anything else as it is."""
    if tensor is None or tensor.dtype.dtype.kind != "c":
        return tensor
    return find_op("conj").entry(tensor)
