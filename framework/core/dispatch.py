"""Entries: the functions that users call, one closure for each primitive.

An entry is the fast path of its op: tensors (and Python numbers) under no interpreter
or under one tape, and arrays in a backward pass that is not recorded. All other calls
are passed to ``Primitive.general``.
"""

import functools
import inspect
from collections.abc import Callable

import numpy as np

from .dtypes import kind_of
from .interpreters import ARRAY_EVAL, active_interpreter
from .messages.provenance import Provenance, merge_provenance
from .shapes.symbolic_operand import FunctionOverride
from .tape import Tape
from .tensor import Tensor, module_of, new_tensor, next_key
from .typing import P, R
from .variable import Variable

ndarray, numpy_float32, float32 = np.ndarray, np.float32, np.dtype(np.float32)

# Python numbers as float32 tensors: ufuncs take a rank 0 array in half the time of a Python
# float. Zeros are not kept: 0.0 == -0.0 would find the other one.
_CONSTANTS = {}


def _make_constant(number, tensor):
    """Return a Python number as a tensor with the dtype of the other operand.

    None if the dtype cannot hold it: the general path then decides.
    """
    array = tensor.array
    kind = kind_of(array.dtype)
    if kind not in ("fc" if type(number) is float else "fciu"):
        return None
    try:
        xp = module_of(tensor)
        constant = new_tensor(xp.asarray(number, dtype=array.dtype))
    except OverflowError:
        return None
    if number and array.dtype is float32 and xp is np:
        if len(_CONSTANTS) > 1000:
            _CONSTANTS.clear()
        _CONSTANTS[number] = constant
    return constant


def constant_like(number, tensor):
    """Return `_make_constant`, or the constant of an earlier call."""
    array = tensor.array
    if array.dtype is float32 and (
        type(array) is ndarray or type(array) is numpy_float32
    ):
        known = _CONSTANTS.get(number)
        if known is not None:
            return known
    return _make_constant(number, tensor)


def _usual_dtype(kinds):
    """Return float32 if an op of these kinds accepts it: kinds are then not checked."""
    return float32 if kinds and "f" in kinds else None


def _unary_entry(op):
    kernels, recorders, no_gradient = op.kernels, op.recorders, op.non_differentiable
    kinds, usual = op.kinds, _usual_dtype(op.kinds)

    def entry(x, name=None):
        interpreter = active_interpreter()
        if type(x) is not Tensor or (
            interpreter is not None and type(interpreter) is not Tape
        ):
            if interpreter is ARRAY_EVAL:
                return kernels[type(x)](x)
            if type(x) is Tensor and not interpreter.sees_plain_tensors:
                return op.run((x,), {})
            if type(x) is Variable:
                return entry(x.read())
            return op.general((x,), {})
        array = x.array
        if kinds and array.dtype is not usual and array.dtype.kind not in kinds:
            raise op.dtype_error(x)
        out = Tensor()
        try:
            out.array = kernels[type(array)](array)
        except Exception as error:
            raise op.explain(error, (x,), {}) from None
        if interpreter is None or no_gradient or x.key not in interpreter.known:
            key = x.key
            known = key is None or type(key) is Provenance
            out.key = key if known else merge_provenance(op, interpreter, (key,))
        else:
            out.key = key = next_key()
            interpreter.known.add(key)
            interpreter.records.append(recorders["0"](None, out, x))
        return out

    return entry


def _binary_entry(op):
    kernels, recorders, no_gradient = op.kernels, op.recorders, op.non_differentiable
    kinds, usual, constants = op.kinds, _usual_dtype(op.kinds), _CONSTANTS

    def entry(x, y, name=None):
        interpreter = active_interpreter()
        if interpreter is not None and type(interpreter) is not Tape:
            if interpreter is ARRAY_EVAL:
                return kernels[type(x)](x, y)
            plain = type(x) is Tensor and (type(y) is Tensor or type(y) is float)
            if interpreter.sees_plain_tensors or not plain:
                return op.general((x, y), {})
            interpreter = None
        if type(x) is not Tensor or type(y) is not Tensor:
            x = x.read() if type(x) is Variable else x
            y = y.read() if type(y) is Variable else y
            if type(y) is not Tensor:
                number, y = y, None
                if type(x) is Tensor and (type(number) is float or type(number) is int):
                    kind = type(x.array)  # constant_like, inlined
                    if x.array.dtype is float32 and (
                        kind is ndarray or kind is numpy_float32
                    ):
                        y = constants.get(number)
                    if y is None:
                        y = _make_constant(number, x)
                if y is None:
                    return op.general((x, number), {})
            elif type(x) is not Tensor:
                number, x = x, None
                if type(number) is float or type(number) is int:
                    x = constant_like(number, y)
                if x is None:
                    return op.general((number, y), {})
        if x is y and op.on_itself is not None:
            return op.on_itself(x)
        a, b = x.array, y.array
        if a.dtype is not b.dtype:
            return op.general((x, y), {})
        if kinds and a.dtype is not usual and a.dtype.kind not in kinds:
            raise op.dtype_error(x)
        out = Tensor()
        try:
            out.array = result = kernels[type(a)](a, b)
        except Exception as error:
            raise op.explain(error, (x, y), {}) from None
        if interpreter is None:
            key, other = x.key, y.key
            if type(key) is not int and (key is other or other is None):
                out.key = key  # None, or the provenance of one of them
            else:
                out.key = merge_provenance(op, None, (key, other))
            return out
        known = interpreter.known
        lost = False  # whether `explain` may ask for an input that is not tracked
        if x.key in known:
            if y.key in known:
                pattern = "01" if a.shape == b.shape else (True, True)
            else:  # the rank is sooner known than two shapes
                lost = y.key is not None
                pattern = (
                    "0" if not b.ndim or a.shape == result.shape else (True, False)
                )
        elif y.key in known:
            lost = x.key is not None
            pattern = "1" if not a.ndim or b.shape == result.shape else (False, True)
        else:
            out.key = merge_provenance(op, interpreter, (x.key, y.key))
            return out
        if lost or no_gradient:
            out.key = None
            interpreter.record(op, (x, y), {}, out)
        else:
            out.key = key = next_key()
            known.add(key)
            interpreter.records.append(recorders[pattern](None, out, x, y))
        return out

    return entry


def _general_entry(op):
    count, names = len(op.inputs), op.attributes
    converters = [op.convert.get(name) for name in names]
    required = [i for i, name in enumerate(names, 1) if name not in op.defaults]
    least = count + max(required, default=0)
    most = -1 if op.variadic else count + len(names)
    kernels = op.kernels

    def entry(*args, **kwargs):
        if kwargs or not least <= len(args) <= most:
            return op.general(*op.bind(args, kwargs))
        attributes = op.defaults
        if len(args) > count:
            attributes = dict(attributes)
            try:
                for name, convert, value in zip(names, converters, args[count:]):
                    attributes[name] = value if convert is None else convert(value)
            except (TypeError, ValueError) as error:
                what = f"{op.name}: argument {name!r}: {error}"
                raise type(error)(what) from None
            args = args[:count]
        if active_interpreter() is ARRAY_EVAL and not isinstance(args[0], Tensor):
            return kernels[type(args[0])](*args, **attributes)
        return op.general(args, attributes)

    return entry


@functools.cache
def _parameter(name, required):
    kind, default = inspect.Parameter.POSITIONAL_OR_KEYWORD, None
    return inspect.Parameter(
        name, kind, default=inspect.Parameter.empty if required else default
    )


def _signature(op):
    """Return the signature that ``help`` shows in place of ``(*args, **kwargs)``."""
    plain = {**op.defaults, "name": None}
    required_first = sorted(op.attributes, key=plain.__contains__)
    parameters = []
    for name in (*op.inputs, *required_first, "name"):
        parameter = _parameter(name, name not in plain)
        if plain.get(name) is not None:
            parameter = parameter.replace(default=plain[name])
        parameters.append(parameter)
    return inspect.Signature(parameters, __validate_parameters__=False)


def make_entry(op):
    """Return the function that calls ``op``, with the decorators of its rules."""
    is_general = op.attributes or op.variadic or op.multiple or len(op.inputs) > 2
    if is_general:
        entry = _general_entry(op)
    else:
        entry = (_unary_entry if len(op.inputs) == 1 else _binary_entry)(op)
        # The arguments get the names that the kernel gives them. No emitter here: to
        # compile source for each op would slow the import.
        code = entry.__code__
        names = (*op.inputs, *code.co_varnames[len(op.inputs) :])
        entry.__code__ = code.replace(co_varnames=names)
    kernel = op.kernel
    entry.__name__ = entry.__qualname__ = op.name
    entry.__doc__, entry.__module__ = kernel.__doc__, kernel.__module__
    if is_general:
        entry.__signature__ = _signature(op)
    entry.primitive = op
    entry.vjp = op.vjp
    entry.no_gradient = op.no_gradient
    entry.infer = op.infer
    entry.batch = op.batch
    entry.batch_arrays = op.batch_arrays
    entry.diagonal = op.diagonal
    entry.densify = op.densify
    entry.confluent = op.confluent
    entry.kernel_for = op.kernel_for
    op.entry = entry
    return entry


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: record a function of several ops as one node of a model.

    If a symbolic tensor is among the arguments, the call as a whole is recorded by
    its `FunctionOverride._tw_record_function`, since the tensor has no sizes or values for
    the ops inside. Sparse and ragged tensors have rules for some functions.
    """

    @functools.wraps(function)
    def entry(*args, **kwargs):
        for x in args:
            if isinstance(x, FunctionOverride):
                return x._tw_record_function(function, args, kwargs)
        for x in kwargs.values():
            if isinstance(x, FunctionOverride):
                return x._tw_record_function(function, args, kwargs)
        return function(*args, **kwargs)

    return entry
