"""Primitives: ops as names with rules.

A `Primitive` has an array kernel ``kernel(xp, inputs..., attributes...)``, ``infer``
(from specs to a spec, including every check), one VJP rule per input, a ``batch`` rule,
and a ``diagonal`` rule (see `rules`). A call of the op passes it to the active
interpreter: by the fast paths of `dispatch` in common cases, otherwise by
``Primitive.general``.
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Literal, Unpack, overload

import numpy as np

from . import hooks
from .composite import CompositeTensor
from .dispatch import constant_like, float32, make_entry
from .dtypes import as_dtype, kind_of, loaded_halves
from .errors import (
    DTypeError,
    InvalidArgumentError,
    NumericsError,
    OpError,
    cast_advice,
)
from .hardware import devices
from .interpreters import (
    ARRAY_EVAL,
    InterpreterStack,
    active_interpreter,
    process_op,
)
from .messages.provenance import attach_provenance
from .messages.suggestions import unknown_arguments
from .op_definition.op_registry import (
    get_primitive,
    list_defined_ops,
    register_op,
)
from .op_definition.traits import Traits
from .record import Recorders, parameters
from .settings.ufunc_settings import ignoring_float_errors
from .shapes.symbolic_dim import is_symbolic
from .shapes.symbolic_operand import SymbolicOperand, TracedOperand
from .tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
    to_array,
)
from .text import make_text, text_is_used
from .typing import Kernel, Op, P, Rule, TensorLike, converter_of

# ---------------------------------------------------------------------- primitives


class _Kernels(dict):
    """Array type -> the kernel bound to its array module, created at first use."""

    __slots__ = ("op",)

    def __init__(self, op):
        self.op = op

    def __missing__(self, array_type):
        bound = self.plain(array_type)
        if self.op.ignores_float_errors and devices.array_module(array_type) is np:
            bound = ignoring_float_errors(bound)
        for wrapper in _wrappers.values():
            bound = wrapper(self.op, bound)
        self[array_type] = bound
        return bound

    def plain(self, array_type):
        """Return the kernel bound to its array module, without wrappers; NumPy may warn.

        Traced functions call it, since a replay turns off all NumPy warnings at once.
        """
        xp = devices.array_module(array_type)
        kernel = self.op.device_kernels.get(xp.__name__, self.op.kernel)
        bound = _forwarded(kernel, xp, self.op) or partial(kernel, xp)
        return _with_strings(self.op, widened(self.op, bound, xp), xp)


# Bytecode of kernels that only forward one, two or three inputs to a function of ``xp``.
_FORWARDING = {
    (lambda module, x: module.f(x)).__code__.co_code,
    (lambda module, x, y: module.f(x, y)).__code__.co_code,
    (lambda module, x, y, z: module.f(x, y, z)).__code__.co_code,
}


def _forwarded(kernel, xp, op):
    """Return the function of ``xp`` to which a kernel only forwards its inputs, or None.

    ``def tanh(xp, x): return xp.tanh(x)`` becomes ``np.tanh``, which saves a call.
    """
    code = kernel.__code__
    forwards = code.co_code in _FORWARDING and not op.attributes
    return getattr(xp, code.co_names[0]) if forwards else None


@hooks.half_is_used.add
@hooks.text_is_used.add
def _make_kernels_again():
    for op in list_defined_ops():
        op.kernels.clear()


def _is_text(operand):
    """Return whether an operand of a kernel, an array or a number, holds strings."""
    return hasattr(operand, "dtype") and operand.dtype.hasobject


def _with_strings(op, kernel, xp):
    """Return the kernel of an op on strings, which copies indices to the host.

    Numbers computed from strings are put on the current device, like constants. An
    entry returned by NumPy is converted to an array: for numbers it is an array scalar,
    but for strings plain ``bytes``.
    """
    if not text_is_used() or op.kinds is not None and "O" not in op.kinds:
        return kernel

    def run(*arrays, **attributes):
        if len(arrays) > 1 and (_is_text(arrays[0]) or _is_text(arrays[-1])):
            arrays = [devices.to_numpy(array) for array in arrays]
            if xp is not np:
                return op.kernels[np.ndarray](*arrays, **attributes)
        result = kernel(*arrays, **attributes)
        if (
            type(result) is np.ndarray
            and (current := devices.current_module()) is not np
        ):
            if not result.dtype.hasobject and any(map(_is_text, arrays)):
                return current.asarray(result)
        if type(result) is bytes:
            return make_text([result], ())
        if type(result) is tuple and bytes in map(type, result):
            return tuple(
                [make_text([x], ()) if type(x) is bytes else x for x in result]
            )
        return result

    run.__wrapped__ = kernel
    run.__name__ = getattr(kernel, "__name__", op.name)
    return run


def widened(
    op: Primitive, kernel: Callable[..., Any], xp: Any = np
) -> Callable[..., Any]:
    """Return the kernel of an op that computes in float32 for half precision inputs.

    The inputs are copied to float32, and floating results are rounded once, to their
    dtype. Thus each op accumulates in float32, in kernels without code for half
    precision, eager and traced. float16 on a GPU is left to the kernel: there are
    instructions for it.
    """
    narrow = _made_wider(op, xp)
    if not narrow:
        return kernel

    def run(*arrays, **attributes):
        for x in arrays:
            if getattr(x, "dtype", float32).char in narrow:
                break
        else:
            return kernel(*arrays, **attributes)
        dtype = x.dtype
        result = kernel(*[_as_float32(x, narrow) for x in arrays], **attributes)
        if type(result) is tuple:
            return tuple([_rounded(x, dtype) for x in result])
        return _rounded(result, dtype)

    run.__wrapped__ = kernel
    run.__name__ = getattr(kernel, "__name__", op.name)
    return run


def _made_wider(op, xp):
    """Return NumPy's characters of the dtypes that an op's kernel does not compute in."""
    halves = loaded_halves()
    if op.moves or not op.half or not halves:  # the refusal of half is the kernel's
        return ""
    # A ufunc computes float16 in float32 itself, faster than on copies.
    own = "e" if xp is not np or op.is_ufunc else ""
    return halves.replace(own, "")


def _as_float32(x, narrow):
    """Return a float32 copy of a half precision array; other inputs unchanged."""
    is_narrow = getattr(x, "dtype", float32).char in narrow
    return x.astype(float32) if is_narrow else x


def _rounded(x, dtype):
    """Round a float32 array to a dtype; return other values unchanged."""
    return x.astype(dtype) if x.dtype == float32 else x


# NumPy's abbreviations of kinds of dtypes, in words.
_KINDS = {"f": "floating", "V": "floating", "c": "complex", "i": "integer", "u": "integer",
          "b": "boolean", "O": "string"}  # fmt: skip

# Dtype to cast to for an op of several kinds, the first that it has.
_CASTS = {"f": "float32", "c": "complex64", "i": "int32", "u": "uint8", "b": "bool"}
_BY_WIDTH = "buifc"

# Phrases in NumPy's errors for dtypes that a function does not take.
_NO_LOOP = ("ufunc", "numpy boolean", "resolved dtypes", "provide an itemsize")
# Phrases in the errors of NumPy and CuPy for arrays of the other one.
_MIXED = (
    *("Unsupported type", "Implicit conversion", "__array_ufunc__"),
    *("__array_function__", "Only cupy arrays"),
)


_TRAITS = Traits.__optional_keys__
_DEFAULTS = Traits(
    broadcasts=False, takes_none=False, half=True, commutative=False, moves=False,
    exact=False, view=False, new_memory=False, keeps_c_order=False,
    ignores_float_errors=False, sizes=False, grows=False, strict=False, cost=(0, 0),
    stable_form=None, collective=False,
)  # fmt: skip


class Primitive:
    """An op: its kernel, its rules, and the recorders generated from them.

    ``inputs`` are the parameters of the kernel after ``xp`` that represent tensors (a
    single ``*values`` makes it variadic), ``attributes`` the others. ``convert`` holds
    the functions that convert attributes to plain values, by the types of the
    parameters.
    """

    name: str
    type_name: str
    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: dict[str, Any]
    convert: dict[str, Callable[[Any], Any]]
    rules: dict[str, Callable[..., Any]]  # input -> its VJP rule
    device_kernels: dict[str, Callable[..., Any]]
    non_differentiable: set[str]  # inputs whose gradient is None
    entry: Op[..., Any]
    # Options and traits: see `primitive`.
    broadcasts: bool
    multiple: bool
    takes_none: bool
    same_dtype: tuple[str, ...]
    kinds: str | None
    half: bool
    linear: Any
    commutative: bool
    moves: bool
    exact: bool
    view: bool
    new_memory: bool
    keeps_c_order: bool
    may_raise: bool | str
    ignores_float_errors: bool
    sizes: bool
    grows: bool
    strict: bool
    cost: Any
    stable_form: str | None
    collective: bool

    def __init__(
        self,
        kernel: Callable[..., Any],
        *,
        multiple: bool = False,
        **traits: Unpack[Traits],
    ):
        name, type_name = traits.pop("name", None), traits.pop("type_name", None)
        self.name = name or kernel.__name__.strip("_")
        self.type_name = type_name or "".join(p.title() for p in self.name.split("_"))
        self._check_traits(traits)
        self.kernel: Callable[..., Any] = kernel
        self.is_own: bool = kernel.__module__.startswith("tapewright.")
        parsed = _parse_signature(self.name, kernel)
        self.inputs, self.attributes, self.defaults, self.convert = parsed
        self.variadic: bool = bool(kernel.__code__.co_flags & inspect.CO_VARARGS)
        if "out" in self.inputs:
            raise TypeError(
                f"{self.name}: an input must not be named 'out', which names the output"
            )
        self.multiple = multiple
        infer, batch = traits.pop("infer", None), traits.pop("batch", None)
        diagonal = traits.pop("diagonal", None)
        no_gradient = traits.pop("no_gradient", ())
        kinds = "fc" if traits.pop("floating", False) else traits.pop("kinds", None)
        linear = self._linear_groups(traits.pop("linear", ()))
        self.same_dtype, self.may_raise = self.inputs, not self.is_own
        vars(self).update(_DEFAULTS | traits, linear=linear)
        kinds = _kinds(kinds, self.half, self.moves)
        self.kinds = kinds if self.inputs else None
        # Set by `rules.elementwise`.
        self.elementwise: bool = False
        self.zero_when: set[frozenset[str]] = set()
        # Rules.
        self.non_differentiable = set()
        self.rules = {}
        self.registered: Any = None  # a rule for all inputs, from RegisterGradient
        self.batch_rule: Any = None
        self.batch_arrays_rule: Any = None
        self.densify_rule: Any = None
        self.diagonal_rule: Any = None
        self.infer_rule: Any = None
        self.confluent_rules: Any = None
        self.values_of: Any = None  # a factorization, for an op of its values alone
        self.on_itself: Any = None  # a unary op for op(x, x), where that is cheaper
        self.device_kernels = {}
        self.kernels: Any = _Kernels(self)
        self.recorders: Any = Recorders(self)
        if no_gradient:
            self.no_gradient(*(self.inputs if no_gradient is True else no_gradient))
        if infer is not None:
            self.infer(infer(self))
        if batch is not None:
            self.batch(batch(self))
        if diagonal is not None:
            self.diagonal(diagonal(self))
        register_op(self)

    def _check_traits(self, traits):
        if unknown := {n: value for n, value in traits.items() if n not in _TRAITS}:
            known = sorted({*_TRAITS, "multiple"})
            raise TypeError(unknown_arguments(f"primitive {self.name}", unknown, known))

    def __repr__(self) -> str:
        return f"<Primitive {self.name}({', '.join(self.inputs + self.attributes)})>"

    def _linear_groups(self, linear):
        """Return the sets of inputs in which the op is linear, others fixed."""
        if linear == "each" and self.variadic:
            return linear
        if linear is True:
            linear = [self.inputs]
        elif linear == "each":
            linear = [[name] for name in self.inputs]
        for names in linear:
            self._check_inputs(names)
        return tuple(map(frozenset, linear))

    def linear_groups(self, inputs: Sequence[Any]) -> Any:
        """Return the sets of input positions in which a call is jointly linear."""
        if self.linear == "each":
            return [{i} for i in range(len(inputs))]
        names = self.names(inputs)
        return [{i for i, n in enumerate(names) if n in g} for g in self.linear]

    def raises_on_values(self, *dtypes: Any) -> bool:
        """Return whether the kernel may raise for some values of these NumPy dtypes."""
        kinds = self.may_raise
        return kinds if isinstance(kinds, bool) else kind_of(dtypes[0]) in kinds

    @property
    def is_ufunc(self) -> bool:
        """True if NumPy's kernel is a NumPy ufunc, which rounds each entry once."""
        kernel = self.device_kernels.get("numpy", self.kernel)
        ufunc = _forwarded(kernel, np, self)
        return isinstance(ufunc, np.ufunc) and ufunc.signature is None

    # --- attaching rules

    def vjp(self, *inputs: str) -> Callable[[Rule], Rule]:
        """Decorator: set the VJP rule of these inputs.

        The rule receives the cotangent, then the residuals that its parameters name:
        inputs, ``out``, attributes, or ``<input>_shape`` and ``<input>_dtype``, which
        do not keep the input alive.
        """
        self._check_inputs(inputs)

        def attach(rule):
            self._check_residuals(rule)
            named = _name_rule(rule, f"{self.name}.vjp[{', '.join(inputs)}]")
            for name in inputs:
                self.rules[name] = named
            self.recorders.clear()
            return rule

        return attach

    def no_gradient(self, *inputs: str) -> None:
        """Declare that the gradient is None for these inputs (default: all)."""
        self._check_inputs(inputs)
        self.non_differentiable.update(inputs or self.inputs)

    def batch(self, rule: Rule) -> Rule:
        """Decorator: set the batch rule ``rule(mapped, *inputs, **attributes)``.

        Mapped axes come first.
        """
        self.batch_rule = _name_rule(rule, f"{self.name}.batch")
        return rule

    def diagonal(self, rule: Rule) -> Rule:
        """Decorator: set the rule of diagonal axes; see `rules`."""
        self.diagonal_rule = _name_rule(rule, f"{self.name}.diagonal")
        return rule

    def batch_arrays(self, rule: Rule) -> Rule:
        """Decorator: set `batch` for arrays, used if no interpreter needs to see the ops.

        The rule returns None if it does not apply.
        """
        self.batch_arrays_rule = _name_rule(rule, f"{self.name}.batch_arrays")
        return rule

    def densify(self, rule: Rule) -> Rule:
        """Decorator: set the rule for arrays of which one is diagonal along an axis.

        ``rule(position, axis, *arrays, **attributes)`` returns the output dense along
        that axis, ``[n, m, ...]``, without computing with zeros, or None if it does not
        apply.
        """
        self.densify_rule = _name_rule(rule, f"{self.name}.densify")
        return rule

    def confluent(self, rules: tuple[Rule, Rule, str]) -> None:
        """Set the rules of a factorization into values and vectors; see `confluence`.

        ``turn(outputs, cotangents)`` returns, for the vectors, a tensor that is 0 for
        results that do not depend on the basis of coinciding values.
        ``part(outputs, slopes)`` returns the part of the gradient that no VJP rule
        covers. The third entry is the name of the values.
        """
        self.confluent_rules = rules

    def infer(self, rule: Rule) -> Rule:
        """Decorator: set ``rule(*specs, **attributes)``, returning the spec."""
        self.infer_rule = _name_rule(rule, f"{self.name}.infer")
        return rule

    def kernel_for(self, module_name: str) -> Callable[[Rule], Rule]:
        """Decorator: set another kernel for the arrays of a module ("numpy", "cupy").

        "formulas" denotes NumPy arrays of symbolic sizes, see the trait ``sizes``.
        """

        def attach(kernel):
            self.device_kernels[module_name] = kernel
            self.kernels.clear()
            return kernel

        return attach

    def _check_inputs(self, names):
        for name in names:
            if name not in self.inputs:
                raise TypeError(
                    f"{self.name} has no input {name!r}; its inputs are {self.inputs}"
                )

    def _check_residuals(self, rule):
        for name in parameters(rule)[1:]:
            stem = name.removesuffix("_shape").removesuffix("_dtype")
            if not (name == "out" or name in self.attributes or stem in self.inputs):
                raise TypeError(
                    f"{self.name}: a VJP rule names an unknown residual {name!r}"
                )

    # --- calling

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return inputs and plain attributes from positional and keyword arguments."""
        kwargs = dict(kwargs)
        kwargs.pop("name", None)
        attributes = dict(self.defaults)
        if self.variadic:
            inputs, rest = self._variadic_inputs(args, kwargs)
        else:
            count = len(self.inputs)
            inputs, rest = args[:count], args[count:]
            for name in self.inputs[len(inputs) :]:
                if name not in kwargs:
                    raise TypeError(f"{self.name}: the argument {name!r} is missing")
                inputs += (kwargs.pop(name),)
        if len(rest) > len(self.attributes) and isinstance(rest[-1], str | None):
            rest = rest[:-1]  # the name
        for name, value in zip(self.attributes, rest, strict=False):
            if name in kwargs:
                raise TypeError(f"{self.name}: got {name!r} twice")
            kwargs[name] = value
        if len(rest) > len(self.attributes):
            raise TypeError(f"{self.name}: too many arguments, got {len(args)}")
        for name, value in kwargs.items():
            if name not in self.attributes:
                known = self.inputs + self.attributes
                raise TypeError(unknown_arguments(self.name, {name: value}, known))
            convert = self.convert.get(name)
            try:
                attributes[name] = value if convert is None else convert(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.name}: argument {name!r}: {error}") from None
        if len(attributes) < len(self.attributes):
            name = next(n for n in self.attributes if n not in attributes)
            raise TypeError(f"{self.name}: the argument {name!r} is missing")
        return inputs, attributes

    def _variadic_inputs(self, args, kwargs):
        name = self.inputs[0]
        if name in kwargs:
            return tuple(kwargs.pop(name)), args
        if not args:
            raise TypeError(f"{self.name}: the argument {name!r} is missing")
        if isinstance(args[0], (list, tuple)):
            return tuple(args[0]), args[1:]
        is_one = isinstance(args[0], Tensor) or devices.is_array(args[0])
        if is_one and self.attributes and len(args) == 1:  # its rows are meant
            return tuple(args[0]), ()
        return args, ()

    def general(self, inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Call the op on anything that converts to tensors, under any interpreters."""
        interpreter = active_interpreter()
        if interpreter is ARRAY_EVAL:
            return self.run_on_arrays(inputs, attributes)
        for x in inputs:
            if type(x) is not Tensor and isinstance(x, CompositeTensor):
                if not hasattr(type(x), "__tensor__"):
                    return x._tw_apply_op(self, inputs, attributes)
        inputs = self.as_tensors(inputs)
        if self.on_itself is not None and inputs[0] is inputs[1]:
            return self.on_itself(inputs[0])
        if interpreter is None:
            outputs = self.run(inputs, attributes)
            for x in inputs:
                if x.key is not None:
                    attach_provenance(self, inputs, outputs)
                    break
            return outputs
        if type(interpreter) is InterpreterStack:
            return process_op(self, inputs, attributes, interpreter)
        return interpreter.process(self, inputs, attributes, ())

    def as_tensors(self, inputs: Sequence[Any]) -> list[Tensor]:
        """Convert inputs to tensors: read Variables, convert numbers, lists and arrays."""
        tensors, complete = [], True
        for x in inputs:
            if type(x) is not Tensor:
                if hasattr(type(x), "__tensor__"):
                    x = x.__tensor__()
                elif not isinstance(x, Tensor):
                    x, complete = None, False
            tensors.append(x)
        if not complete:
            self._convert_others(inputs, tensors)
        if len(tensors) > 1:
            first = tensors[0].array.dtype
            for tensor in tensors:
                if tensor.array.dtype is not first:  # equal dtypes may be two objects
                    self._check_dtypes(tensors)
                    break
        return tensors

    def _convert_others(self, inputs, tensors):
        names = self.names(inputs)
        known = [t for t in tensors if t is not None]
        kin = [
            t for t, n in zip(tensors, names) if t is not None and n in self.same_dtype
        ]
        like = (kin or known or [None])[0]
        others = [i for i, t in enumerate(tensors) if t is None]
        if self.variadic and not kin:  # in a list, ints take the dtype of the floats
            others.sort(key=lambda i: type(inputs[i]) is int)
        for i in others:
            value, name = inputs[i], names[i]
            if kin and name in self.same_dtype and type(value) in (float, int):
                tensors[i] = constant_like(value, kin[0])
                if tensors[i] is not None:
                    continue
            hint = kin[0].array.dtype if kin and name in self.same_dtype else None
            module = None if like is None else module_of(like)
            try:
                if is_symbolic(value):
                    tensors[i] = convert_to_tensor(value, dtype_hint=hint)
                elif isinstance(value, (list, tuple)):
                    with devices.use_module(module or devices.current_module()):
                        tensors[i] = convert_to_tensor(value, dtype_hint=hint)
                else:
                    tensors[i] = new_tensor(to_array(value, None, hint, module))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.name}: argument {name!r}: {error}") from None
            if not kin and name in self.same_dtype:
                kin = [tensors[i]]

    def _check_dtypes(self, tensors):
        first = None
        for name, tensor in zip(self.names(tensors), tensors):
            if name in self.same_dtype:
                dtype = tensor.array.dtype
                if first is None:
                    first = dtype
                elif dtype is not first and dtype != first:
                    given = {} if self.variadic else dict(zip(self.inputs, tensors))
                    what = (
                        f"the dtypes must be the same, got {as_dtype(first).name} and "
                        f"{as_dtype(dtype).name}{self._advice_on_cast(tensors)}"
                    )
                    raise DTypeError(self.name, what, **given)

    def _advice_on_cast(self, tensors):
        """Return the end of a message: how to cast the narrower of two inputs."""
        names = self.names(tensors)
        if self.variadic:
            names = [f"{name}[{i}]" for i, name in enumerate(names)]
            pairs = list(zip(names, tensors))
        else:
            pairs = [p for p in zip(names, tensors) if p[0] in self.same_dtype]
        dtypes = [tensor.array.dtype for _, tensor in pairs]
        kinds = [kind_of(dtype) for dtype in dtypes]
        if not set(kinds) <= set(_BY_WIDTH):
            return ""  # of strings: no cast
        widths = [(_BY_WIDTH.index(k), d.itemsize) for k, d in zip(kinds, dtypes)]
        widest = dtypes[widths.index(max(widths))]
        name = next(n for (n, _), dtype in zip(pairs, dtypes) if dtype != widest)
        return f"; {cast_advice(name, as_dtype(widest).name)}"

    def names(self, inputs: Sequence[Any]) -> Sequence[str]:
        """Return the name of each input."""
        return self.inputs * len(inputs) if self.variadic else self.inputs

    def run(self, inputs: Sequence[Tensor], attributes: dict[str, Any]) -> Any:
        """Run the kernel on the arrays of tensors, and wrap its result."""
        arrays, symbolic = [], None
        for x in inputs:
            arrays.append(x.array)
            if type(x) is not Tensor and isinstance(x, SymbolicOperand):
                symbolic = x
        if self.kinds and arrays[0].dtype.kind not in self.kinds:
            raise self.dtype_error(inputs[0])
        kind = type(arrays[0]) if arrays else devices.current_module().ndarray
        if self.strict:
            specs = [TensorSpec(x.shape, x.dtype) for x in inputs]
            self.output_specs(specs, attributes)
        if self.grows:
            self._check_fits(inputs, attributes)
        if symbolic is not None:
            return symbolic._tw_record_op(self, inputs, attributes)
        try:
            result = self.kernels[kind](*arrays, **attributes)
        except Exception as error:
            raise self.explain(error, inputs, attributes) from None
        if type(result) is tuple:
            return tuple([new_tensor(array) for array in result])
        return new_tensor(result)

    def _check_fits(self, inputs, attributes):
        """Raise ``ResourceExhaustedError`` for an output larger than the memory."""
        if not all([devices.is_array(x.array) for x in inputs]):
            return  # symbolic tensors may have unknown sizes
        entries = math.prod(map(_growth, attributes.values()))
        if entries * math.prod([max(x.array.size, 1) for x in inputs]) > _SMALL:
            specs = [TensorSpec(x.shape, x.dtype) for x in inputs]
            out = self.infer_rule(*specs, **attributes)
            devices.check_fits(self.name, out.shape, out.dtype.dtype)

    def run_on_arrays(self, inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Run the kernel on arrays; rules do this in a backward pass on arrays."""
        array = inputs[0]
        # A nest of residuals is kept as it is, with tensors.
        if isinstance(array, Tensor):
            inputs = [x.array if isinstance(x, Tensor) else x for x in inputs]
            array = inputs[0]
        return self.kernels[type(array)](*inputs, **attributes)

    def dtype_error(self, x: Any) -> Exception:
        """Return the error for a dtype that the op does not accept."""
        name = self.inputs[0]
        if (
            kind_of(x.array.dtype if isinstance(x, Tensor) else x.dtype.dtype)
            in self.kinds
        ):
            what = (
                f"{name} must not be of half precision; {cast_advice(name, 'float32')}"
            )
            return DTypeError(self.name, what, **{name: x})
        *others, last = dict.fromkeys([_KINDS[kind] for kind in self.kinds])
        wanted = f"{', '.join(others)} or {last}" if others else last
        what = f"{name} must be {wanted}"
        target = next((_CASTS[kind] for kind in _CASTS if kind in self.kinds), None)
        if target is not None and x.dtype.name != "string":
            what += f"; {cast_advice(name, target)}"
        return DTypeError(self.name, what, **{name: x})

    def explain(
        self, error: Exception, inputs: Sequence[Any], attributes: dict[str, Any]
    ) -> Exception:
        """Return the error to raise for a kernel's error: `infer`'s, if it raises one."""
        if isinstance(error, NumericsError):  # not about shapes
            return error
        for x in inputs:
            if isinstance(x, TracedOperand):  # outside of its trace
                x.raise_outside_trace()
        unchecked = self.infer_rule is None
        if not (unchecked or isinstance(error, (MemoryError, RecursionError))):
            specs = [TensorSpec(x.shape, x.dtype) for x in inputs]
            try:
                self.output_specs(specs, attributes)
            except (TypeError, ValueError, LookupError, NotImplementedError) as clearer:
                return clearer
        return self.explain_kernel(error, inputs)

    def output_specs(self, specs: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Return the spec of the output, or a tuple of specs, by `infer`."""
        if self.kinds and specs[0].dtype.dtype.kind not in self.kinds:
            raise self.dtype_error(specs[0])
        if self.infer_rule is None:
            raise NotImplementedError(
                f"{self.name}: the op has no rule for the shape of its output, which traced "
                f"calls need. Add one with @{self.name}.infer"
            )
        try:
            return self.infer_rule(*specs, **attributes)
        except ValueError as error:
            raise _as_op_error(error) from None

    def explain_kernel(self, error: Exception, inputs: Sequence[Any]) -> Exception:
        """Return the error to raise for a kernel's error if `infer` accepts the inputs."""
        if isinstance(error, NumericsError):
            return error
        if devices.is_out_of_memory(error):
            return devices.memory_error(self.name, error)
        names = _devices(inputs)
        if len(set(names)) > 1 and any(words in str(error) for words in _MIXED):
            return InvalidArgumentError(
                f"{self.name}: the inputs must be on one device, got {', '.join(names)}; "
                "tensors are never moved automatically: create them and call the op inside "
                "the same `tw.device`"
            )
        if any(words in str(error) for words in _NO_LOOP):
            kinds = " and ".join(dict.fromkeys(x.dtype.name for x in inputs))
            names = {} if self.variadic else dict(zip(self.inputs, inputs))
            return DTypeError(
                self.name, f"the op is not implemented for {kinds}", **names
            )
        given = ", ".join(f"{tuple(x.shape)} {x.dtype.name}" for x in inputs)
        error = _as_op_error(error)
        error.add_note(f"in the op {self.name} on {given}")
        return error


def _kinds(kinds, half, moves):
    """Return the accepted kinds of dtypes as NumPy's characters; bfloat16 is "V".

    Strings, of kind "O", are for ops that move data or that list this kind.
    """
    if kinds is None:
        return None if moves and half else "biufc" + "V" * half + "O" * moves
    return kinds + "V" if half and "f" in kinds else kinds


def _devices(inputs):
    """Return the devices of tensors that have values."""
    arrays = [x.array for x in inputs if isinstance(x, Tensor)]
    return [devices.device_of(a) for a in arrays if devices.is_array(a)]


def _name_rule(rule, name):
    """Return the rule with the name shown in tracebacks and profiles, its op's name.

    A rule that is shared or already has a name is copied.
    """
    code = rule.__code__.replace(co_name=name, co_qualname=name)
    if rule.__name__ in ("_", "<lambda>"):
        rule.__code__, rule.__name__, rule.__qualname__ = code, name, name
        return rule
    copy = FunctionType(
        code, rule.__globals__, name, rule.__defaults__, rule.__closure__
    )
    copy.__kwdefaults__, copy.__module__ = rule.__kwdefaults__, rule.__module__
    return copy


def _parse_signature(who, kernel):
    """Return the inputs of a kernel, its attributes, their defaults and converters."""
    code, space = kernel.__code__, kernel.__globals__
    names, count = code.co_varnames, code.co_argcount
    positional, defaults = names[1:count], kernel.__defaults__ or ()
    defaults = dict(zip(reversed(positional), reversed(defaults)))
    keywords = names[count : count + code.co_kwonlyargcount]
    types = {
        name: _resolve_annotation(kind, space)
        for name, kind in kernel.__annotations__.items()
        if name != "return"
    }
    inputs = tuple([n for n in positional if types.get(n, TensorLike) is TensorLike])
    if inputs != positional[: len(inputs)] or any(n in defaults for n in inputs):
        raise TypeError(
            f"{who}: attributes must have a type annotation and follow the inputs"
        )
    attributes = positional[len(inputs) :] + keywords
    if code.co_flags & inspect.CO_VARARGS:
        inputs = (names[count + len(keywords)],)
    converters = {n: converter_of(types[n]) for n in attributes if n in types}
    converters = {n: c for n, c in converters.items() if c is not None}
    return inputs, attributes, defaults | (kernel.__kwdefaults__ or {}), converters


def _resolve_annotation(kind, space):
    """Return the type of an annotation, which may be a string."""
    if not isinstance(kind, str):
        return kind
    if kind in space:  # `eval` is far slower, and an import resolves hundreds
        return space[kind]
    return getattr(builtins, kind) if kind.isidentifier() else eval(kind, space)


_SMALL = 1 << 20  # entries that need no check of the memory


def _growth(value):
    """Return the product of the numbers in an attribute, a bound on growth."""
    if type(value) is int:
        return max(value, 1)
    if isinstance(value, tuple):
        return math.prod([_growth(v) + (type(v) is tuple) for v in value])
    return 1


def _as_op_error(error):
    """Convert a plain ``ValueError`` of a kernel or rule to an `InvalidArgumentError`."""
    if isinstance(error, ValueError) and not isinstance(error, OpError):
        return InvalidArgumentError(str(error))
    return error


@overload
def primitive(kernel: Kernel[P], /) -> Op[P, Tensor]: ...
@overload
def primitive(
    *, multiple: Literal[True], **traits: Unpack[Traits]
) -> Callable[[Kernel[P]], Op[P, tuple[Tensor, ...]]]: ...
@overload
def primitive(
    *, multiple: Literal[False] = False, **traits: Unpack[Traits]
) -> Callable[[Kernel[P]], Op[P, Tensor]]: ...
def primitive(kernel=None, **traits):
    """Decorator: define an op by an array kernel ``kernel(xp, inputs..., attributes...)``.

    The op has the signature of the kernel: parameters of type `TensorLike` are inputs,
    all others are attributes, see `typing`. The kernel receives its inputs as arrays.

    Names: ``name`` defaults to the kernel's name without surrounding underscores.
    ``type_name`` is TensorFlow's op type, for error messages and `RegisterGradient`; it
    defaults to the name in camel case, ``AddN`` for ``add_n``.

    Inputs and outputs:

    - ``same_dtype``: the inputs that share a dtype; default all.
    - ``broadcasts``: cotangents are summed down to the shapes of their primals.
    - ``multiple``: the kernel returns a tuple; a rule then receives a tuple of
      cotangents, with zeros for missing ones, or with None if ``takes_none``.
    - ``kinds``: the accepted kinds of dtypes, as NumPy's characters ("iufc"; default
      all numbers, and strings, "O", for an op that ``moves`` data). ``floating`` is
      "fc": it rejects integers, which NumPy would convert to float64.
    - ``half``: False rejects bfloat16. float16 is passed to the kernel, which rejects
      it.

    Rules that many ops share; others are attached to the op, ``@op.infer``,
    ``@op.vjp``:

    - ``infer``, ``batch``, ``diagonal``: functions of the primitive that return the
      rule, from `rules`.
    - ``no_gradient``: the inputs whose gradient is None; True for all.

    Traits, which interpreters and the compiler use; ``tests/ops/test_traits.py``
    verifies each of them numerically on the op table:

    - ``linear``: in all floating inputs together (True), in each of them while the
      others are fixed ("each"), or in sets of inputs,
      ``[{"inputs", "bias"}, {"kernel", "bias"}]``.
    - ``commutative``: the two inputs may be exchanged, bit for bit.
    - ``moves``: each entry of the outputs is an entry of the inputs, possibly
      converted. All other kernels compute in float32 for bfloat16 inputs, see
      `widened`.
    - ``exact``: consists of IEEE sums, products, quotients and comparisons, so the bits
      of an entry do not depend on strides.
    - ``view``: the output shares memory with the input if the input is contiguous.
    - ``new_memory``: the output never shares memory with an input. (Without ``view``
      and ``new_memory`` nothing is assumed.)
    - ``keeps_c_order``: the outputs are in C order if all inputs are.
    - ``may_raise``: the kernel raises for some values of valid shapes and dtypes; True,
      or the kinds of dtypes for which it does. Default: True for ops outside of
      tapewright.
    - ``ignores_float_errors``: infinities and NaN are valid results: NumPy does not
      warn.
    - ``sizes``: the kernel also computes with arrays of symbolic sizes, as with
      integers.
    - ``grows``: attributes may request an output far larger than the inputs, which is
      rejected if it does not fit into memory.
    - ``strict``: the kernel would silently accept attributes that ``infer`` rejects, so
      ``infer`` runs first.
    - ``cost``: ``(flops, transcendentals)`` for each entry of the output, or a function
      ``(inputs, outputs, **attributes)`` that returns the flops of a call, or both (see
      `costs`). Default: one flop if it is `elementwise`, otherwise zero.
    - ``stable_form``: a numerically stable alternative without overflow or NaN, for
      messages.
    - ``collective``: all processes of a job call it in the same order, for any values
      and shapes. Therefore no call is removed, made while a function is traced, or
      merged with another. In a job with a single process it returns its input.

    The op accepts its inputs and attributes by position or by name, and ``name``.
    """
    if kernel is None:
        return lambda kernel: primitive(kernel, **traits)
    op = Primitive(kernel, **traits)
    for registered_name in (op.name, op.type_name):
        if registered_name in _EARLY_GRADIENTS:
            op.registered = _EARLY_GRADIENTS.pop(registered_name)
    return make_entry(op)


# ---------------------------------------------------------------- wrapping kernels

_wrappers = {}  # purpose -> wrapper(op, kernel)


def wrap_kernels(wrapper: Callable[..., Any] | None, purpose: str = "check") -> None:
    """Replace every kernel by ``wrapper(op, kernel)``; None undoes that.

    There is one wrapper for each purpose, "check", "placement" or "profile"; they nest.
    """
    global _wrappers  # a new dict each time: other threads may be reading the old one
    others = {name: each for name, each in _wrappers.items() if name != purpose}
    _wrappers = others if wrapper is None else {**others, purpose: wrapper}
    for op in list_defined_ops():
        op.kernels.clear()


def kernels_are_wrapped(*purposes: str) -> bool:
    """Return whether kernels are wrapped, for one of these purposes, or for any."""
    return not _wrappers.keys().isdisjoint(purposes) if purposes else bool(_wrappers)


# ------------------------------------------------------------- gradients by name

_EARLY_GRADIENTS = {}  # registered before the op is defined


def register_gradient(type_name: str, function: Callable[..., Any]) -> None:
    """Register ``function(op, *cotangents)`` as the gradient of an op without rules.

    Raises:
        KeyError: If the op already has a rule.
    """
    try:
        op = get_primitive(type_name)
    except ValueError:
        if type_name in _EARLY_GRADIENTS:
            raise KeyError(
                f"Registering two gradients with name {type_name!r}! Register only one"
            ) from None
        _EARLY_GRADIENTS[type_name] = function
        return
    if op.rules or op.non_differentiable or op.registered is not None:
        raise KeyError(
            f"Registering two gradients with name {type_name!r}! The op {op.name!r} "
            "already has rules"
        )
    op.registered = function
    op.recorders.clear()
