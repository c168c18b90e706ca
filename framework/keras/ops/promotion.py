"""Keras' promotion of dtypes, which the functions of `keras.ops` share.

Operands of several dtypes meet in the smallest that holds both, where a Python number
brings its kind along and no size, and an integer meets a float in the float's dtype. The
makers below turn an op into the function that does this first.
"""

import functools
import inspect

import numpy as np

from tapewright.core.dtypes import (
    as_dtype,
    complex64,
    complex128,
    float64,
    int32,
    uint32,
)
from tapewright.core.floatx import default_float
from tapewright.core.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.ops.array.conversion import cast

__all__ = [
    "binary",
    "christen",
    "common_dtype",
    "counted",
    "documented",
    "floating",
    "floats",
    "in_own_dtype",
    "kind_of",
    "numbers",
    "result_type",
    "sized_by_values",
    "together",
    "truth",
    "unary",
]


# ------------------------------------------------------------------------- dtypes


def common_dtype(*kinds):
    """The dtype in which values of these kinds meet: dtypes, and types of Python numbers.

    >>> from tapewright import dtypes
    >>> common_dtype(dtypes.int32, float), common_dtype(dtypes.int64, dtypes.float16)
    (tf.float32, tf.float16)
    """
    return _common_dtype(default_float(), *kinds)


_WEAK = (int, float, complex)  # types of Python numbers: they bring no size along


@functools.lru_cache(maxsize=1024)
def _common_dtype(default, *kinds):
    weak, strong = set(), []
    for kind in kinds:  # told apart by identity: float32 == float, as in TensorFlow
        if any([kind is each for each in _WEAK]):
            weak.add(kind)
        else:
            strong.append(as_dtype(kind))
    if complex in weak or any([d.is_complex for d in strong]):
        wide = complex128 in strong or float64 in strong
        return complex128 if wide else complex64
    floats = [d for d in strong if d.is_floating]
    if floats:
        return as_dtype(np.result_type(*floats))
    if float in weak:
        return default
    whole = [d for d in strong if d.is_integer]
    if not whole:
        return int32 if int in weak else as_dtype(bool)
    dtype = as_dtype(np.result_type(*whole))
    return default if dtype.is_floating else dtype  # uint64 beside a signed one


def result_type(*dtypes):
    """The name of the dtype in which these meet; see `common_dtype`.

    >>> result_type("uint8", "int8"), result_type("bool", int)
    ('int16', 'int32')
    """
    return common_dtype(*[d or default_float() for d in dtypes or (None,)]).name


def kind_of(x):
    """The dtype of a value, or the type of a Python number, for `common_dtype`."""
    if type(x) in _WEAK:
        return type(x)
    return int if is_symbolic(x) else convert_to_tensor(x).dtype


def together(*values, at_least=None):
    """The values as tensors of their common dtype; ``at_least=float``: of a floating one."""
    values = [
        x if type(x) in _WEAK or is_symbolic(x) else convert_to_tensor(x)
        for x in values
    ]
    kinds = [kind_of(x) for x in values]
    dtype = common_dtype(*kinds, *([] if at_least is None else [at_least]))
    return [
        cast(x, dtype) if isinstance(x, Tensor) else convert_to_tensor(x, dtype)
        for x in values
    ]


def floating(x):
    """``x`` as a tensor; integers and booleans as `floatx`."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_differentiable else cast(x, default_float())


def numbers(x):
    """``x`` as a tensor, booleans as int32."""
    x = convert_to_tensor(x)
    return cast(x, int32) if x.dtype.is_bool else x


def in_own_dtype(function):
    """``function`` of a first tensor, whose integers it gets as float64 and gives back.

    For functions that move, compare or add entries, exactly up to ``2 ** 53``.
    """

    name = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def entry(*args, **kwargs):
        x, args = (args[0], args[1:]) if args else (kwargs.pop(name), ())
        x = convert_to_tensor(x)
        if x.dtype.is_differentiable:
            return function(x, *args, **kwargs)
        return cast(function(cast(x, float64), *args, **kwargs), x.dtype)

    return entry


def truth(x):
    """``x`` as a tensor of booleans: what is not 0 is true."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool else cast(x, "bool")


def counted(x):
    """``x`` as a tensor; whole numbers of less than 32 bits as those of 32 bits."""
    x = numbers(x)
    if x.dtype.is_integer and x.dtype.size < 4:
        return cast(x, uint32 if x.dtype.is_unsigned else int32)
    return x


# ------------------------------------------------------------------------- makers


def unary(op, doc=None, prepare=convert_to_tensor):
    """The function of one tensor ``x`` that prepares it and calls ``op``."""

    def entry(x):
        return op(prepare(x))

    return documented(entry, doc or op.__doc__)


def floats(op, doc=None):
    """The function ``op`` of one tensor, of which integers count as float32."""
    return unary(op, doc, floating)


def binary(op, doc=None, at_least=None, names=("x1", "x2")):
    """The function ``op`` of two values, which it gets in their common dtype."""

    def entry(x1, x2):
        return op(*together(x1, x2, at_least=at_least))

    code = entry.__code__
    entry.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[2:]))
    return documented(entry, doc or op.__doc__)


def documented(entry, doc):
    """The function with the first paragraph of ``doc``, for `christen` to name."""
    entry.__doc__ = inspect.cleandoc(doc or "").partition("\n\n")[0]
    entry.__made__ = True
    return entry


def sized_by_values(specs):
    """Give a function the specs of results whose sizes follow from values.

    ``specs`` takes the same arguments, symbolic, and returns None where a trace tells.
    """

    def attach(function):
        function.specs_by_values = specs
        return function

    return attach


def christen(namespace):
    """Gives the functions that the makers made for a module the names they have there."""
    for name, value in namespace.items():
        if getattr(value, "__made__", False) and value.__name__ == "entry":
            value.__name__ = value.__qualname__ = name
            value.__module__ = namespace["__name__"]
