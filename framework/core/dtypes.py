"""`tw.dtypes`: element types under TensorFlow's names: ``float32``, ``int64``, ...

A `DType` equals everything that NumPy accepts for the same type: its name, a NumPy
dtype or a scalar class. ``np.dtype(tw.float32)`` works, too.

NumPy has no bfloat16; the type of ml_dtypes, which JAX and TensorFlow also use, is
imported when its dtype is first read. Its kind in NumPy is "V", so code calls `kind_of`
instead of reading ``kind``. From the first use of bfloat16 or float16 on, ops check for
half precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import hooks
from .messages.suggestions import suggestion

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "resource",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

_python_bool = bool


class DType:
    """Type of the elements of a tensor.

    It also equals its name, its NumPy dtype and the Python type, as in TensorFlow:
    ``float32 == float``. Code that must distinguish a dtype from the type of a Python
    number compares with ``is``.

    Args:
        name: Name, such as "float32".
        numpy_dtype: Dtype of the NumPy arrays.

    Attributes:
        dtype: The NumPy dtype.
        kind: Its kind, as NumPy abbreviates it; "f" for bfloat16, too.

    Example:
        >>> import numpy as np
        >>> tw.as_dtype("float32").is_floating, tw.as_dtype("float32") == np.float32
        (True, True)
    """

    __slots__ = ("name", "dtype", "kind")

    name: str
    dtype: np.dtype[Any]
    kind: str

    def __init__(self, name: str, numpy_dtype: Any):
        self.name = name
        self.dtype = np.dtype(numpy_dtype)  # np.dtype(self) reads this attribute
        self.kind = kind_of(self.dtype)

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, such as ``np.float32``; a dtype for `resource`."""
        return self.dtype if self.dtype.names else self.dtype.type

    @property
    def as_datatype_enum(self) -> str:
        return self.name

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def is_floating(self) -> _python_bool:
        """True for float16, bfloat16, float32 and float64."""
        return self.kind == "f"

    @property
    def is_complex(self) -> _python_bool:
        """True for complex64 and complex128."""
        return self.kind == "c"

    @property
    def is_integer(self) -> _python_bool:
        """True for signed and unsigned integers."""
        return self.kind in "iu"

    @property
    def is_unsigned(self) -> _python_bool:
        """True for unsigned integers."""
        return self.kind == "u"

    @property
    def is_bool(self) -> _python_bool:
        """True for bool."""
        return self.kind == "b"

    @property
    def is_differentiable(self) -> _python_bool:
        """True for floating and complex dtypes, which have gradients."""
        return self.kind in "fc"

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part; the dtype itself unless it is complex."""
        return as_dtype(
            {"complex64": "float32", "complex128": "float64"}.get(self.name, self)
        )

    @property
    def size(self) -> int:
        """The number of bytes of an element."""
        return self.dtype.itemsize

    @property
    def min(self) -> Any:
        """The smallest value.

        Raises:
            TypeError: If the dtype is neither integer nor floating.
        """
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest value.

        Raises:
            TypeError: If the dtype is neither integer nor floating.
        """
        return self._limits().max

    def _limits(self):
        if self.is_integer:
            return np.iinfo(self.dtype)
        if self.is_floating:
            return finfo(self.dtype)
        raise TypeError(f"dtype {self.name} has no smallest and largest value")

    def __eq__(self, other: object) -> _python_bool:
        if other is None:
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


class _UnloadedDType(DType):
    """A dtype of 16 bits before its first use.

    It becomes a plain `DType` when ``dtype`` is read; until then no array has it. Thus
    a program without half precision does not import ml_dtypes, and kernels do not check
    for dtypes to widen. Later reads of the attribute have no overhead.
    """

    __slots__ = ()

    def __init__(self, name: str):
        self.name, self.kind = name, "f"

    def __getattr__(self, attribute: str) -> Any:
        if attribute != "dtype":
            raise AttributeError(attribute)
        own = np.float16 if self.name == "float16" else _ml_dtypes().bfloat16
        self.dtype = np.dtype(own)
        self.__class__ = DType
        BY_NUMPY[self.dtype] = self
        hooks.half_is_used.call()
        return self.dtype


def _ml_dtypes():
    """Return the module ml_dtypes.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(
            "bfloat16 needs ml_dtypes: pip install tapewright[bfloat16]"
        ) from error
    return ml_dtypes


def bfloat16_is_loaded() -> _python_bool:
    """Return whether bfloat16 was used; otherwise no array can have it."""
    return type(bfloat16) is DType


def loaded_halves() -> str:
    """Return NumPy's characters of the half precision dtypes that were used."""
    return "".join([d.dtype.char for d in (float16, bfloat16) if type(d) is DType])


def is_bfloat16(dtype: np.dtype[Any]) -> _python_bool:
    """Return whether a NumPy dtype is `bfloat16`."""
    return dtype.char == "E"  # no dtype of NumPy, nor another of ml_dtypes, has it


def is_narrow(dtype: np.dtype[Any]) -> _python_bool:
    """Return whether a NumPy dtype is `float16` or `bfloat16`."""
    return dtype.char in "eE"


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the kind of a NumPy dtype as NumPy's character, with "f" for bfloat16.

    Example:
        >>> import numpy as np
        >>> from tapewright.core.dtypes import kind_of
        >>> kind_of(np.dtype("int8")), kind_of(np.dtype(tw.bfloat16))
        ('i', 'f')
    """
    return "f" if dtype.char == "E" else dtype.kind


def is_half(dtype: DType) -> _python_bool:
    """Return whether a dtype is float16 or bfloat16.

    Computations of several ops use float32 for these.
    """
    return dtype is float16 or dtype is bfloat16


# NumPy's kinds of the dtypes of tensors that have derivatives, where calls are counted: among
# tensors "V" is bfloat16 alone.
DIFFERENTIABLE = "fcV"


def finfo(dtype: Any) -> Any:
    """Return ``np.finfo`` of a dtype, including bfloat16.

    Example:
        >>> from tapewright.core.dtypes import finfo
        >>> float(finfo(tw.bfloat16).eps)
        0.0078125
    """
    dtype = np.dtype(dtype)
    return _ml_dtypes().finfo(dtype) if is_bfloat16(dtype) else np.finfo(dtype)


bool: DType = DType("bool", np.bool_)  # noqa: A001  (TensorFlow's name for it)
int8: DType = DType("int8", np.int8)
int16: DType = DType("int16", np.int16)
int32: DType = DType("int32", np.int32)
int64: DType = DType("int64", np.int64)
uint8: DType = DType("uint8", np.uint8)
uint16: DType = DType("uint16", np.uint16)
uint32: DType = DType("uint32", np.uint32)
uint64: DType = DType("uint64", np.uint64)
float16: DType = _UnloadedDType("float16")
bfloat16: DType = _UnloadedDType("bfloat16")
float32: DType = DType("float32", np.float32)
float64: DType = DType("float64", np.float64)
complex64: DType = DType("complex64", np.complex64)
complex128: DType = DType("complex128", np.complex128)
string: DType = DType("string", np.object_)  # see `text`
# Python objects; see `handles`.
resource: DType = DType("resource", [("object", np.object_)])
half: DType = float16
double: DType = float64

_ALL = [
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float32, float64, complex64, complex128, string, resource,
]  # fmt: skip
_BY_NAME = {d.name: d for d in (*_ALL, float16, bfloat16)} | {
    "half": float16, "float": float32, "double": float64,
}  # fmt: skip
_BY_PYTHON = {
    float: float32, int: int32, _python_bool: bool, complex: complex128, str: string,
    bytes: string,
}  # fmt: skip
BY_NUMPY = {d.dtype: d for d in _ALL}  # those of half precision from their first use on


def as_dtype(value: Any) -> DType:
    """Convert a name, NumPy dtype or Python type to a `DType`.

    Args:
        value: Name, NumPy dtype or scalar type, Python type, or `DType`.

    Raises:
        TypeError: If ``value`` is not a dtype.

    Example:
        >>> tw.as_dtype(float), tw.as_dtype("int64")
        (tf.float32, tf.int64)
    """
    if type(value) is DType or type(value) is _UnloadedDType:
        return value
    if isinstance(value, np.dtype) and value in BY_NUMPY:
        return BY_NUMPY[value]
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    try:
        numpy_dtype = None if value is None else np.dtype(value)
    except (TypeError, ValueError):  # the latter of tuples and lists
        numpy_dtype = None
    if numpy_dtype is not None:
        if is_narrow(numpy_dtype):  # this may be the first use
            numpy_dtype = (bfloat16 if is_bfloat16(numpy_dtype) else float16).dtype
        known = BY_NUMPY.get(numpy_dtype) or BY_NUMPY.get(numpy_dtype.newbyteorder("="))
        if known is not None:
            return known
        if numpy_dtype.kind in "US":
            return string
    hint = suggestion(getattr(value, "__name__", value), _BY_NAME)
    raise TypeError(f"Cannot convert {value!r} to a dtype{hint}")
