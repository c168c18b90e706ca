"""Ops on symbolic tensors as functions of `keras.ops`: ``x + y`` is Keras' ``Add``.

A model then shows, and a file of it holds, what Keras has. A rule stands for the dtypes
for which both give the same; where there is none, the op enters the model as it is.
"""

import functools

import numpy as np

from tapewright.core.symbolic_dim import is_symbolic
from tapewright.serialization import registry

from .nodes import note

__all__ = ["translate"]

_RULES = {}  # name of an op -> (kinds of dtypes, as NumPy abbreviates them, rule)


def translate(op, inputs, attributes):
    """Call the function of `keras.ops` that does the same; None if there is none."""
    kinds, rule = _RULES.get(op, ("", None))
    if rule is None or inputs[0].dtype.dtype.kind not in kinds:
        return None
    return rule(*_with_numbers(inputs), **attributes)


registry.register("translation", "keras.ops.translate", translate)


def _with_numbers(inputs):
    """Constants of rank 0 as Python numbers, if the dtype follows from a tensor beside."""
    symbolic = {x.dtype for x in inputs if hasattr(x, "record_op")}
    return [_number(x) if x.dtype in symbolic else x for x in inputs]


def _number(x):
    if hasattr(x, "record_op") or x.shape.ndims != 0 or x.dtype.is_complex:
        return x
    value = x.numpy().item()
    return value if np.isfinite(value) else x


def _rule(op, kinds):
    def attach(rule):
        _RULES[op] = kinds, rule
        return rule

    return attach


# ------------------------------------------------------------ the same in both libraries

_FLOATS, _REALS, _NUMBERS, _ANY = "f", "fiu", "fciu", "fciub"

# Kinds -> ops, and their names in keras.ops where these differ. Inputs come in the same
# order there, and attributes have the same names.
_ALIKE = {
    _FLOATS: """
        acos:arccos acosh:arccosh asin:arcsin asinh:arcsinh atan:arctan atanh:arctanh
        atan2:arctan2 ceil cholesky cos cosh det divide_no_nan elu erf erfc erfinv exp
        expm1 floor inv is_finite:isfinite is_inf:isinf is_nan:isnan log log1p log_softmax
        nextafter reciprocal reduce_logsumexp:logsumexp relu round rsqrt selu sigmoid sin
        sinh softmax softplus softsign solve sqrt tan tanh""",
    _REALS: """
        abs:absolute floordiv:floor_divide floormod:mod greater greater_equal less
        less_equal maximum minimum power saturate_cast sign""",
    _NUMBERS: "add subtract multiply negative square",
    "fc": "divide:true_divide",
    "c": "angle imag real",
    "iu": """
        bitwise_and bitwise_or bitwise_xor in_top_k invert:bitwise_invert left_shift
        right_shift""",
    "b": "logical_and logical_or logical_xor logical_not where",
    _ANY: """
        cast equal expand_dims gather:take identity:copy not_equal reverse:flip roll
        squeeze stop_gradient take_along_axis""",
}

# Likewise, unless one of these attributes is set, which Keras' functions lack.
_FLAGS = {
    _FLOATS: {"cumprod": "exclusive reverse", "cumsum": "exclusive reverse"},
    _REALS: {"argsort": "descending", "sort": "descending"},
}


def _same(name, flags=()):
    def rule(*inputs, **attributes):
        if any([attributes.pop(flag) for flag in flags]):
            return None
        return note(name, *inputs, **attributes)

    return rule


for _kinds, _names in _ALIKE.items():
    for _name in _names.split():
        _op, _, _function = _name.partition(":")
        _RULES[_op] = _kinds, _same(_function or _op)
for _kinds, _ops in _FLAGS.items():
    for _op, _flags in _ops.items():
        _RULES[_op] = _kinds, _same(_op, _flags.split())


# ---------------------------------------------------------------------- with differences


@_rule("matmul", _NUMBERS)
def _(a, b, transpose_a, transpose_b):
    a = _turned(a) if transpose_a else a
    return note("matmul", a, _turned(b) if transpose_b else b)


def _turned(x):
    if hasattr(x, "record_op"):
        return note("swapaxes", x, -1, -2)
    return np.swapaxes(x.numpy(), -1, -2)


for _op in ("and", "or", "xor"):  # of truth values, the same
    _bits = _RULES[f"bitwise_{_op}"][1]

    @_rule(f"bitwise_{_op}", "biu")
    def _(x, y, name=f"logical_{_op}", bits=_bits):
        symbolic = x if hasattr(x, "record_op") else y
        return note(name, x, y) if symbolic.dtype.is_bool else bits(x, y)


@_rule("squared_difference", _FLOATS)
def _(x, y):
    return note("square", note("subtract", x, y))


@_rule("add_n", _NUMBERS)
def _(*inputs):
    return functools.reduce(lambda x, y: note("add", x, y), inputs)


@_rule("einsum", _NUMBERS)
def _(*inputs, equation, optimize):
    return note("einsum", equation, *inputs)


@_rule("clip_by_value", _REALS)
def _(t, low, high):
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return note("clip", t, low, high)
    return None


def _reducing(name, kinds):
    def rule(x, axis, keepdims):
        if kinds == _NUMBERS and x.dtype.is_integer and x.dtype.size < 4:
            return None  # Keras sums these in 32 bits
        return note(name, x, axis=axis, keepdims=keepdims)

    _RULES[f"reduce_{name}"] = kinds, rule


for _name, _kinds in {
    "sum": _NUMBERS, "prod": _NUMBERS, "mean": "fc", "max": _REALS, "min": _REALS,
    "all": "b", "any": "b",
}.items():  # fmt: skip
    _reducing(_name, _kinds)


@_rule("argmax", _REALS)
def _(x, axis, output_type):
    return _placed("argmax", x, axis, output_type)


@_rule("argmin", _REALS)
def _(x, axis, output_type):
    return _placed("argmin", x, axis, output_type)


def _placed(name, x, axis, output_type):
    found = note(name, x, axis=axis)
    return found if output_type == "int32" else note("cast", found, output_type)


@_rule("top_k", _REALS)
def _(x, k, index_type):
    return note("top_k", x, k) if index_type == "int32" else None


# ------------------------------------------------------------------------------ shapes


def _known(sizes):
    """Return whether sizes are numbers, and no formulas or tensors."""
    return isinstance(sizes, (tuple, list)) and all(
        [type(n) is int and not is_symbolic(n) for n in sizes]
    )


@_rule("reshape", _ANY)
def _(x, shape):
    return note("reshape", x, shape) if _known(shape) else None


@_rule("broadcast_to", _ANY)
def _(x, shape):
    return note("broadcast_to", x, shape) if _known(shape) else None


@_rule("transpose", _ANY)
def _(x, perm, conjugate):
    return None if conjugate else note("transpose", x, perm)


@_rule("concat", _ANY)
def _(*values, axis):
    return note("concatenate", list(values), axis=axis)


@_rule("stack", _ANY)
def _(*values, axis):
    return note("stack", list(values), axis=axis)


@_rule("split", _ANY)
def _(x, sizes, axis):
    if not _known(sizes):
        return None
    alike = len(set(sizes)) == 1
    places = len(sizes) if alike else np.cumsum(sizes)[:-1].tolist()
    return tuple(note("split", x, places, axis=axis))


@_rule("unstack", _ANY)
def _(x, axis):
    return tuple(note("unstack", x, axis=axis))


@_rule("pad", _ANY)
def _(x, constant_values, paddings):
    if not _known([n for pair in paddings for n in pair]):
        return None
    if hasattr(constant_values, "record_op"):
        return None
    value = None if not constant_values else constant_values
    return note("pad", x, paddings, constant_values=value)


@_rule("band_part", _REALS)
def _(x, num_lower, num_upper):
    if (num_lower, num_upper) == (-1, 0):
        return note("tril", x)
    return note("triu", x) if (num_lower, num_upper) == (0, -1) else None


# ----------------------------------------------------------------------------- indices


@_rule("getitem", _ANY)
def _(x, index):
    key = tuple([_item(each) for each in index])
    alone = len(key) == 1 and key[0] is not None  # as Keras knows it
    return note("get_item", x, key[0] if alone else key)


def _item(each):
    if isinstance(each, (list, tuple)):
        return slice(*each)
    return {"...": ..., "newaxis": None}.get(each, each)


@_rule("one_hot", "iu")
def _(indices, depth, axis, dtype):
    return note("one_hot", indices, depth, axis=axis, dtype=dtype)


# ------------------------------------------------------------------------------ layers


@_rule("leaky_relu", _FLOATS)
def _(x, alpha):
    return note("leaky_relu", x, negative_slope=alpha)


@_rule("gelu", _FLOATS)
def _(x):
    return note("gelu", x, approximate=False)


@_rule("gelu_by_tanh", _FLOATS)
def _(x):
    return note("gelu", x, approximate=True)


@_rule("convolution", _FLOATS)
def _(x, filters, strides, padding, dilations, groups):
    if padding not in ("SAME", "VALID"):
        return None
    return note("conv", x, filters, strides=strides, padding=padding.lower(),
                 data_format="channels_last", dilation_rate=dilations)  # fmt: skip


@_rule("sigmoid_cross_entropy_with_logits", _FLOATS)
def _(labels, logits):
    return note("binary_crossentropy", labels, logits, from_logits=True)
