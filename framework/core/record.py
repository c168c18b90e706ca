"""Records: the entries of a tape, and the pullbacks of cotangents through them.

A `Record` has a `Pullback`, the keys of a call's output and of its tracked inputs, and
residuals. For each pattern of tracked inputs an op has a *recorder*, which creates the
records of its calls; recorder and pullback are generated from the signatures of the VJP
rules when the pattern first occurs. The pullback has two forms, on arrays and on
tensors, which differ only in ``.array``.

Inside a backward pass cotangents are the conjugates of TensorFlow's, so that the rule
of a holomorphic function is the same for real and complex numbers; `autodiff.backward`
conjugates at both ends.
"""

from contextlib import nullcontext
from functools import partial
from typing import Any, TypeAlias

from .errors import GradientLookupError
from .hardware import devices
from .op_definition.emitter import Source
from .op_definition.op_registry import get_primitive
from .op_definition.user_gradients import OpCall, call_user_function
from .shapes.symbolic_shape import definitely_equal, has_symbolic_shape
from .tensor import Tensor, module_of, new_tensor

# One call on a tape: ``pullback, output, inputs, *residuals = record``. ``output`` is the
# key of the output, a tuple of keys if there are several; ``inputs`` is a tuple of the keys
# of the tracked inputs; ``residuals`` are the values that the pullback needs. A plain
# tuple, as one is made in each eager call under a tape: to make an object with named
# attributes takes twice the time.
Record: TypeAlias = (
    "tuple[Pullback, int | tuple[int, ...], tuple[int, ...], *tuple[Any, ...]]"
)


class Pullback:
    """The linear map from the cotangent of a call's output to its inputs' cotangents.

    ``on_arrays(record, g, cotangents, useful)`` works on arrays, ``on_tensors`` on
    tensors, for interpreters that process the ops. Both add to ``cotangents`` (key ->
    cotangent) for the inputs of the record whose keys are ``useful`` (None: all). For
    several outputs ``g`` is a list with a cotangent, or None, for each.

    ``name`` is for messages; ``op`` is the `Primitive`, or None if the call is not an
    op. If ``entrywise``, it works entry by entry, so cotangents may have additional
    leading axes.
    """

    __slots__ = ("name", "op", "on_arrays", "on_tensors", "entrywise")

    def __init__(self, name, on_arrays=None, op=None, entrywise=False):
        self.name, self.op, self.entrywise = name, op, entrywise
        self.on_arrays = self.on_tensors = on_arrays


def parameters(function):
    """Return the names of a function's positional parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


class Recorders(dict):
    """Pattern of tracked inputs -> recorder of an op, generated at first use.

    ``recorder(attributes, out, *inputs)`` creates the record of a call. A pattern is a
    tuple, ``(True, False)`` if the first of two inputs is tracked. It is a string of
    positions, ``"0"``, if no cotangent has to be summed down to the shape of its input.
    """

    __slots__ = ("op",)

    def __init__(self, op):
        self.op = op

    def __missing__(self, pattern):
        op, same_shapes = self.op, type(pattern) is str
        tracked = pattern
        if same_shapes:
            tracked = tuple([str(i) in pattern for i in range(len(op.inputs))])
        self[pattern] = recorder = _make_recorder(
            op, tracked, op.broadcasts and not same_shapes
        )
        return recorder


def _make_recorder(op, tracked, unbroadcast):
    if op.registered is not None:
        return _registered_recorder(op, tracked)
    if op.variadic:
        return _variadic_recorder(op, tracked)
    names = [n for n, is_tracked in zip(op.inputs, tracked) if is_tracked]
    residuals = _residuals(op, names, unbroadcast)
    pullback = Pullback(op.name, op=op, entrywise=op.elementwise and not unbroadcast)
    # The file name is in our package, so that `user_line` skips these functions.
    source = Source(f"{__file__}:{op.name}")
    with source.function("recorder", ["attributes", "out", *op.inputs]):
        output = "tuple([o.key for o in out])" if op.multiple else "out.key"
        fields = [source.bind("pullback", pullback), output]
        fields += [_tuple([f"{n}.key" for n in names]), *residuals.values()]
        source.emit(f"return {', '.join(fields)}")
    for form, access in (("on_arrays", ".array"), ("on_tensors", "")):
        with source.function(form, ["record", "g", "cotangents", "useful"]):
            keys = _tuple([f"{n}_key" for n in names])
            fields = ["_", "_", keys, *[f"r_{name}" for name in residuals]]
            source.emit(f"{', '.join(fields)} = record")
            if op.multiple and not op.takes_none:
                source.emit(f"g = {source.bind('fill', fill_missing)}(g, r_out_like)")
            for name in names:
                _emit_cotangent(source, op, name, access, len(names), unbroadcast)
    functions = source.compiled()
    pullback.on_arrays = functions["on_arrays"]
    pullback.on_tensors = functions["on_tensors"]
    return functions["recorder"]


def _tuple(expressions):
    return "(" + "".join([f"{e}, " for e in expressions]).rstrip() + ")"


def _residuals(op, names, unbroadcast):
    """Return residuals named by the rules of these inputs -> source expressions."""
    residuals = {}
    for name in names:
        rule = op.rules.get(name)
        for wanted in parameters(rule)[1:] if rule else ():
            residuals[wanted] = _residual_source(op, wanted)
        if unbroadcast and rule:
            residuals[f"{name}_shape"] = f"{name}.array.shape"
    if op.multiple:
        residuals["out_like"] = "tuple([(o.array.shape, o.array.dtype) for o in out])"
    return residuals


def _residual_source(op, wanted):
    if wanted in op.attributes:
        return f"attributes[{wanted!r}]"
    for suffix in ("_shape", "_dtype"):
        if wanted.endswith(suffix) and wanted.removesuffix(suffix) in op.inputs:
            return f"{wanted.removesuffix(suffix)}.array.{suffix[1:]}"
    return wanted


def _emit_cotangent(source, op, name, access, width, unbroadcast):
    """Emit the lines that call the rule of an input and add to its cotangent."""
    rule, key = op.rules.get(name), f"{name}_key"
    if rule is None:
        missing = source.bind("missing", _raise_missing)
        source.emit(f"{missing}({op.name!r}, {op.type_name!r}, {name!r})")
        return
    arguments = ["g"]
    for wanted in parameters(rule)[1:]:
        is_value = wanted == "out" or wanted in op.inputs
        if wanted == "out" and op.multiple:
            arguments.append(f"tuple([o{access} for o in r_out])")
        else:
            arguments.append(f"r_{wanted}{access if is_value else ''}")
    guard = f"if useful is None or {key} in useful:"
    with source.block(guard) if width > 1 else nullcontext():
        source.emit(f"d = {source.bind('rule', rule)}({', '.join(arguments)})")
        if unbroadcast:
            shape = f"r_{name}_shape"
            if access:
                differs = f"d.shape != {shape}"
            else:
                equal = source.bind("equal", definitely_equal)
                differs = f"not {equal}(d.array.shape, {shape})"
            summing = get_primitive("sum_to_shape")
            if access:
                call = f"{source.bind('kernels', summing.kernels)}[type(d)](d, shape={shape})"
            else:
                call = f"{source.bind('sum_to_shape', summing.entry)}(d, {shape})"
            source.emit(f"if {differs}: d = {call}")
        source.emit(f"if {key} in cotangents: d = cotangents[{key}] + d")
        source.emit(f"cotangents[{key}] = d")


def _raise_missing(op_name, type_name, input_name):
    raise GradientLookupError(op_name, type_name, input_name)


def fill_missing(cotangents, out_like):
    """Replace missing cotangents (None) of several outputs by zeros."""
    present = next(c for c in cotangents if c is not None)
    tensors = isinstance(present, Tensor)
    xp = module_of(present) if tensors else devices.array_module(type(present))
    filled = []
    for c, (shape, dtype) in zip(cotangents, out_like):
        if c is None:
            if has_symbolic_shape(shape):
                zero = new_tensor(xp.zeros((), dtype))
                c = get_primitive("broadcast_to").entry(zero, shape)
            else:
                c = xp.zeros(shape, dtype)
                c = new_tensor(c) if tensors else c
        filled.append(c)
    return tuple(filled)


def add_cotangent(cotangents, key, d, useful=None):
    """Add ``d`` to the cotangent of ``key``, unless it is None or not useful."""
    if d is None or (useful is not None and key not in useful):
        return
    old = cotangents.get(key)
    cotangents[key] = d if old is None else old + d


# ------------------------------------------------- one rule for all inputs at once


def _variadic_recorder(op, tracked):
    """Return the recorder of a variadic op, whose single rule returns all cotangents.

    If the op has several outputs, the rule receives None for missing cotangents.
    """
    name = op.inputs[0]
    rule = op.rules.get(name)

    def residuals(attributes, out, values):
        kept = []
        for wanted in parameters(rule)[1:] if rule else ():
            if wanted in op.attributes:
                kept.append(attributes[wanted])
            elif wanted == f"{name}_shape":
                kept.append(tuple([v.array.shape for v in values]))
            else:
                kept.append(out if wanted == "out" else values)
        return tuple(kept)

    def pull_back(unwrap, record, g, cotangents, useful):
        if rule is None:
            _raise_missing(op.name, op.type_name, name)
        _, _, keys, *kept = record
        parts = rule(g, *map(unwrap, kept))
        _add_tracked(cotangents, keys, tracked, parts, useful)

    pullback = Pullback(op.name, partial(pull_back, _as_array), op)
    pullback.on_tensors = partial(pull_back, lambda residual: residual)
    return _recorder(pullback, tracked, residuals)


def _registered_recorder(op, tracked):
    """Return the recorder of an op whose gradient is a user's function."""

    def residuals(attributes, out, inputs):
        outputs = out if type(out) is tuple else (out,)
        return (OpCall(op, inputs, outputs, attributes),)

    def pull_back(record, g, cotangents, useful):
        _, _, keys, call = record
        parts = call_user_function(op.registered, call, g)
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        if len(parts) != len(tracked):
            raise ValueError(
                f"The gradient function registered for {op.type_name} must return a "
                f"gradient for each of the {len(tracked)} inputs, got {len(parts)}"
            )
        _add_tracked(cotangents, keys, tracked, parts, useful)

    return _recorder(Pullback(op.name, pull_back, op), tracked, residuals)


def _recorder(pullback, tracked, residuals):
    def recorder(attributes, out, *inputs):
        output = tuple([o.key for o in out]) if type(out) is tuple else out.key
        keys = tuple([x.key for x, is_tracked in zip(inputs, tracked) if is_tracked])
        return pullback, output, keys, *residuals(attributes, out, inputs)

    return recorder


def _add_tracked(cotangents, keys, tracked, parts, useful):
    keys = iter(keys)
    for part, is_tracked in zip(parts, tracked, strict=True):
        if is_tracked:
            add_cotangent(cotangents, next(keys), part, useful)


def _as_array(residual):
    if isinstance(residual, Tensor):
        return residual.array
    if isinstance(residual, tuple) and residual and isinstance(residual[0], Tensor):
        return tuple([t.array for t in residual])
    return residual
