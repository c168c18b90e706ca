"""Calls of ops and functions on symbolic tensors, recorded as calls of `keras.ops`.

A model and its file then contain Keras' operations: ``x + y`` is an ``Add``. A function
of `keras.ops` names the op that it equals as ``same_as``. This file has rules for ops,
and for functions of several ops such as ``tw.tile``, that differ from Keras' function
in arguments or in some cases. A rule has the name of its op and applies to dtypes for
which both are equal; if it returns None, the op enters the model unchanged.
"""

import functools
import inspect
import math

import numpy as np

from tapewright.core.dtypes import as_dtype
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_operand import SymbolicOperand
from tapewright.core.tensor import convert_to_tensor

from . import (
    arrays,
    core,
    creation,
    elementwise,
    image,
    indexing,
    linalg,
    nn,
    reductions,
)
from .operation import ANY, FLOATS, NUMBERS, REALS, TRANSLATIONS

_FUNCTIONS = {}  # name of a function of several ops -> rule


def translate(op, inputs, attributes):
    """Call the function of `keras.ops` that equals an op, or return None."""
    kinds, rule = TRANSLATIONS.get(op, ("", None))
    if rule is None or inputs[0].dtype.kind not in kinds:
        return None
    return rule(*_with_numbers(inputs), **attributes)


def translate_function(function, args, kwargs):
    """Call the function of `keras.ops` that equals another function, or return None."""
    rule = _FUNCTIONS.get(function.__name__)
    if rule is None:
        return None
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return rule(**{key: x for key, x in bound.arguments.items() if key != "name"})


def _with_numbers(inputs):
    """Return inputs with scalar constants as numbers, if a symbolic input has their dtype."""
    symbolic = {x.dtype for x in inputs if _is_symbolic(x)}
    return [_number(x) if x.dtype in symbolic else x for x in inputs]


def _number(x):
    if _is_symbolic(x) or x.shape.ndims != 0 or x.dtype.is_complex:
        return x
    value = x.numpy().item()
    return value if np.isfinite(value) else x


def _is_symbolic(x):
    return isinstance(x, SymbolicOperand)


def _op(kinds):
    """Decorator: register the rule of the op of that name, for these kinds of dtypes."""

    def register(rule):
        TRANSLATIONS[rule.__name__] = kinds, rule
        return rule

    return register


def _function(rule):
    """Decorator: register the rule of the function of that name."""
    _FUNCTIONS[rule.__name__] = rule
    return rule


# ------------------------------------------------------------------------- arithmetic


@_op(NUMBERS)
def matmul(a, b, transpose_a, transpose_b):
    a = arrays.swapaxes(a, -1, -2) if transpose_a else a
    return linalg.matmul(a, arrays.swapaxes(b, -1, -2) if transpose_b else b)


def _bitwise(name):
    """Register the rule of a bitwise op, which is a logical op for booleans."""

    def rule(x, y):
        is_bool = (x if _is_symbolic(x) else y).dtype.is_bool
        return getattr(elementwise, f"{'logical' if is_bool else 'bitwise'}_{name}")(
            x, y
        )

    TRANSLATIONS[f"bitwise_{name}"] = "biu", rule


for _name in ("and", "or", "xor"):
    _bitwise(_name)


@_op(FLOATS)
def squared_difference(x, y):
    return elementwise.square(elementwise.subtract(x, y))


@_op(NUMBERS)
def add_n(*inputs):
    return functools.reduce(elementwise.add, inputs)


@_op(NUMBERS)
def einsum(*inputs, equation, optimize):
    return linalg.einsum(equation, *inputs)


@_function
def tensordot(a, b, axes):
    a, b = (x if _is_symbolic(x) else convert_to_tensor(x) for x in (a, b))
    return linalg.tensordot(a, b, axes=axes) if a.dtype == b.dtype else None


@_op(REALS)
def clip_by_value(t, low, high):
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return elementwise.clip(t, low, high)
    return None


# ------------------------------------------------------------------------- reductions


def _reduction(name, kinds):
    """Register the rule of the op ``reduce_<name>``."""

    def rule(x, axis, keepdims):
        if kinds == NUMBERS and x.dtype.is_integer and x.dtype.size < 4:
            return None  # Keras sums these in 32 bits
        return getattr(reductions, name)(x, axis=axis, keepdims=keepdims)

    TRANSLATIONS[f"reduce_{name}"] = kinds, rule


for _name, _kinds in {
    "sum": NUMBERS, "prod": NUMBERS, "mean": "fc", "max": REALS, "min": REALS,
    "all": "b", "any": "b",
}.items():  # fmt: skip
    _reduction(_name, _kinds)


def _is_float(*tensors):
    return all([convert_to_tensor(x).dtype.is_floating for x in tensors])


@_function
def reduce_std(input_tensor, axis, keepdims):
    if not _is_float(input_tensor):
        return None
    return reductions.std(input_tensor, axis=axis, keepdims=keepdims)


@_function
def reduce_variance(input_tensor, axis, keepdims):
    if not _is_float(input_tensor):
        return None
    return reductions.var(input_tensor, axis=axis, keepdims=keepdims)


@_function
def moments(x, axes, shift, keepdims):
    if not _is_float(x):
        return None
    axes = [axes] if isinstance(axes, int) else axes
    return tuple(nn.moments(x, axes, keepdims=keepdims))


@_function
def norm(tensor, ord, axis, keepdims):
    if ord not in ("euclidean", 2) or not _is_float(tensor):
        return None
    if axis is not None and not isinstance(axis, int):
        return None  # of matrices
    return linalg.norm(tensor, axis=axis, keepdims=bool(keepdims))


@_op(REALS)
def argmax(x, axis, output_type):
    return _cast_indices(reductions.argmax(x, axis=axis), output_type)


@_op(REALS)
def argmin(x, axis, output_type):
    return _cast_indices(reductions.argmin(x, axis=axis), output_type)


def _cast_indices(indices, dtype):
    return indices if dtype == "int32" else core.cast(indices, dtype)


@_op(REALS)
def top_k(x, k, index_type):
    return indexing.top_k(x, k) if index_type == "int32" else None


# ----------------------------------------------------------------------------- shapes


def _is_static(sizes):
    """Return whether sizes are numbers, neither formulas nor tensors."""
    return isinstance(sizes, (tuple, list)) and all(
        [type(n) is int and not is_symbolic(n) for n in sizes]
    )


@_op(ANY)
def reshape(x, shape):
    return arrays.reshape(x, shape) if _is_static(shape) else None


@_op(ANY)
def broadcast_to(x, shape):
    return arrays.broadcast_to(x, shape) if _is_static(shape) else None


@_op(ANY)
def transpose(x, perm, conjugate):
    return None if conjugate else arrays.transpose(x, perm)


@_op(ANY)
def concat(*values, axis):
    return arrays.concatenate(list(values), axis=axis)


@_op(ANY)
def stack(*values, axis):
    return arrays.stack(list(values), axis=axis)


@_op(ANY)
def split(x, sizes, axis):
    if not _is_static(sizes):
        return None
    equal = len(set(sizes)) == 1
    sections = len(sizes) if equal else np.cumsum(sizes)[:-1].tolist()
    return tuple(arrays.split(x, sections, axis=axis))


@_op(ANY)
def unstack(x, axis):
    return tuple(core.unstack(x, axis=axis))


@_op(ANY)
def pad(x, constant_values, paddings):
    if not _is_static([n for pair in paddings for n in pair]):
        return None
    if _is_symbolic(constant_values):
        return None
    return arrays.pad(x, paddings, constant_values=constant_values or None)


@_op(REALS)
def band_part(x, num_lower, num_upper):
    if (num_lower, num_upper) == (-1, 0):
        return creation.tril(x)
    return creation.triu(x) if (num_lower, num_upper) == (0, -1) else None


@_function
def tile(input, multiples):
    return arrays.tile(input, multiples)


@_function
def repeat(input, repeats, axis):
    return arrays.repeat(input, repeats, axis=axis)


@_function
def zeros_like(input, dtype):
    return creation.zeros_like(input, dtype=None if dtype is None else as_dtype(dtype))


@_function
def ones_like(input, dtype):
    return creation.ones_like(input, dtype=None if dtype is None else as_dtype(dtype))


@_function
def shape(input, out_type):
    if None in tuple(input.shape):
        raise TypeError(
            f"shape: sizes of {input!r} are unknown. Give -1 for one of them to reshape, "
            "use keras.ops, or put the code into the call() of a Layer"
        )
    return None


# ---------------------------------------------------------------------------- indices


@_op(ANY)
def getitem(x, index):
    key = tuple([_item(each) for each in index])
    alone = len(key) == 1 and key[0] is not None  # as in Keras
    return indexing.get_item(x, key[0] if alone else key)


def _item(each):
    if isinstance(each, (list, tuple)):
        return slice(*each)
    return {"...": ..., "newaxis": None}.get(each, each)


@_op("iu")
def one_hot(indices, depth, axis, dtype):
    return nn.one_hot(indices, depth, axis=axis, dtype=dtype)


# ----------------------------------------------------------------------------- layers


@_op(FLOATS)
def leaky_relu(x, alpha):
    return nn.leaky_relu(x, negative_slope=alpha)


@_op(FLOATS)
def gelu(x):
    return nn.gelu(x, approximate=False)


@_op(FLOATS)
def gelu_by_tanh(x):
    return nn.gelu(x, approximate=True)


@_op(FLOATS)
def silu(x):
    return nn.silu(x)


@_op(FLOATS)
def squareplus(x, b):
    return nn.squareplus(x, b=b)


@_op(FLOATS)
def tanh_shrink(x):
    return nn.tanh_shrink(x)


@_op(FLOATS)
def log_cosh(x):
    return x + nn.softplus(x * -2.0) - math.log(2.0)


@_op(FLOATS)
def convolution(x, filters, strides, padding, dilations, groups):
    if padding not in ("SAME", "VALID"):
        return None
    return nn.conv(x, filters, strides=strides, padding=padding.lower(),
                   data_format="channels_last", dilation_rate=dilations)  # fmt: skip


@_op(FLOATS)
def sigmoid_cross_entropy_with_logits(labels, logits):
    return nn.binary_crossentropy(labels, logits, from_logits=True)


@_function
def resize(images, size, method, preserve_aspect_ratio, antialias):
    same = method in ("bilinear", "nearest") and not preserve_aspect_ratio
    if not same or not _is_float(images) or not isinstance(size, (tuple, list)):
        return None
    return image.resize(images, size, interpolation=str(method), antialias=antialias,
                        data_format="channels_last")  # fmt: skip


def _pooling(pool, name, rank):
    """Register the rule of a function of this name, for ``rank`` spatial axes, or any."""

    def rule(input, ksize, strides, padding, data_format):
        n = input.shape.ndims - 2
        last = data_format is None or data_format == f"N{'DHW'[3 - n :]}C"
        if n == 1:
            last = data_format in (None, "NWC")
        windows = [_spatial_sizes(sizes, n) for sizes in (ksize, strides)]
        if not last or None in windows or rank not in (None, n):
            return None
        if padding not in ("SAME", "VALID") or not _is_float(input):
            return None
        return pool(input, *windows, padding.lower(), "channels_last")

    _FUNCTIONS[name] = rule


def _spatial_sizes(sizes, rank):
    """Return the sizes of the spatial axes; None if another size is not 1."""
    if isinstance(sizes, int):
        return sizes
    if not isinstance(sizes, (list, tuple)):
        return None
    if len(sizes) == rank + 2 and sizes[0] == sizes[-1] == 1:
        sizes = sizes[1:-1]
    return tuple(sizes) if len(sizes) == rank else None


for _pool, _name in ((nn.max_pool, "max_pool"), (nn.average_pool, "avg_pool")):
    for _rank in (None, 1, 2, 3):
        _pooling(_pool, _name + ("" if _rank is None else f"{_rank}d"), _rank)
