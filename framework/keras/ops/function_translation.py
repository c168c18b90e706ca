"""Functions of several ops, on symbolic tensors, as one function of `keras.ops`.

As `translation`, for what is more than an op: ``tw.tile`` is Keras' ``Tile``.
"""

import inspect

from tapewright.core.dtypes import as_dtype
from tapewright.core.tensor import convert_to_tensor
from tapewright.serialization import registry

from .nodes import note

__all__ = ["translate_function"]

_RULES = {}


def translate_function(function, args, kwargs):
    """Call the function of `keras.ops` that does the same; None if there is none."""
    rule = _RULES.get(function.__name__)
    if rule is None:
        return None
    given = inspect.signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    return rule(**{key: x for key, x in given.arguments.items() if key != "name"})


registry.register("translation", "keras.ops.translate_function", translate_function)


def _rule(function):
    _RULES[function.__name__.strip("_")] = function
    return function


def _is_float(*tensors):
    return all([convert_to_tensor(x).dtype.is_floating for x in tensors])


@_rule
def tile(input, multiples):
    return note("tile", input, multiples)


@_rule
def repeat(input, repeats, axis):
    return note("repeat", input, repeats, axis=axis)


@_rule
def zeros_like(input, dtype):
    return note("zeros_like", input, dtype=None if dtype is None else as_dtype(dtype))


@_rule
def ones_like(input, dtype):
    return note("ones_like", input, dtype=None if dtype is None else as_dtype(dtype))


@_rule
def tensordot(a, b, axes):
    a, b = (x if hasattr(x, "record_op") else convert_to_tensor(x) for x in (a, b))
    return note("tensordot", a, b, axes=axes) if a.dtype == b.dtype else None


@_rule
def norm(tensor, ord, axis, keepdims):
    if ord not in ("euclidean", 2) or not _is_float(tensor):
        return None
    if axis is not None and not isinstance(axis, int):
        return None  # of matrices
    return note("norm", tensor, axis=axis, keepdims=bool(keepdims))


@_rule
def reduce_std(input_tensor, axis, keepdims):
    if not _is_float(input_tensor):
        return None
    return note("std", input_tensor, axis=axis, keepdims=keepdims)


@_rule
def reduce_variance(input_tensor, axis, keepdims):
    if not _is_float(input_tensor):
        return None
    return note("var", input_tensor, axis=axis, keepdims=keepdims)


@_rule
def moments(x, axes, shift, keepdims):
    if not _is_float(x):
        return None
    axes = [axes] if isinstance(axes, int) else axes
    return tuple(note("moments", x, axes, keepdims=keepdims))


@_rule
def resize(images, size, method, preserve_aspect_ratio, antialias):
    alike = method in ("bilinear", "nearest") and not preserve_aspect_ratio
    if not alike or not _is_float(images) or not isinstance(size, (tuple, list)):
        return None
    return note(
        "image.resize", images, size, interpolation=str(method), antialias=antialias
    )


@_rule
def shape(input, out_type):
    if None in tuple(input.shape):
        raise TypeError(
            f"shape: sizes of {input!r} are unknown. Give -1 for one of them to reshape, "
            "use keras.ops, or put the code into the call() of a Layer"
        )
    return None


# ---------------------------------------------------------------------------- pooling


def _pooling(name, rank):
    def rule(input, ksize, strides, padding, data_format):
        n = input.shape.ndims - 2
        last = data_format is None or data_format == f"N{'DHW'[3 - n :]}C"
        if n == 1:
            last = data_format in (None, "NWC")
        windows = [_inner(sizes, n) for sizes in (ksize, strides)]
        if not last or None in windows or rank not in (None, n):
            return None
        if padding not in ("SAME", "VALID") or not _is_float(input):
            return None
        return note(name, input, *windows, padding.lower(), "channels_last")

    return rule


def _inner(sizes, rank):
    """The sizes of the spatial axes; None if there are others."""
    if isinstance(sizes, int):
        return sizes
    if not isinstance(sizes, (list, tuple)):
        return None
    if len(sizes) == rank + 2 and sizes[0] == sizes[-1] == 1:
        sizes = sizes[1:-1]
    return tuple(sizes) if len(sizes) == rank else None


for _kind, _name in (("max", "max_pool"), ("avg", "average_pool")):
    for _rank in (None, 1, 2, 3):
        _function = f"{_kind}_pool" + ("" if _rank is None else f"{_rank}d")
        _RULES[_function] = _pooling(_name, _rank)
