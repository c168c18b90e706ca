"""`tw.dtypes`: element types under TensorFlow's names: ``float32``, ``int64``, ...

A `DType` equals everything that NumPy takes for the same type: its name, a NumPy dtype or
scalar class. ``np.dtype(tw.float32)`` works too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "DType",
    "as_dtype",
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
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

_python_bool = bool


class DType:
    """The type of the elements of a tensor.

    It also equals its name, its NumPy dtype and Python types, as in TensorFlow:
    ``float32 == float``. Code that must not confuse a dtype with the type of a Python
    number compares with ``is``.

    >>> as_dtype("float32").is_floating, as_dtype("float32") == np.float32
    (True, True)
    """

    __slots__ = ("name", "dtype")

    name: str
    dtype: np.dtype[Any]

    def __init__(self, name: str, numpy_dtype: Any):
        self.name = name
        self.dtype = np.dtype(numpy_dtype)  # np.dtype(self) reads this attribute

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """The scalar type of NumPy, such as ``np.float32``."""
        return self.dtype.type

    @property
    def as_datatype_enum(self) -> str:
        return self.name

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def is_floating(self) -> _python_bool:
        """True for float16, float32 and float64."""
        return self.dtype.kind == "f"

    @property
    def is_complex(self) -> _python_bool:
        """True for complex64 and complex128."""
        return self.dtype.kind == "c"

    @property
    def is_integer(self) -> _python_bool:
        """True for integers, signed and unsigned."""
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> _python_bool:
        """True for unsigned integers."""
        return self.dtype.kind == "u"

    @property
    def is_bool(self) -> _python_bool:
        """True for bool."""
        return self.dtype.kind == "b"

    @property
    def is_differentiable(self) -> _python_bool:
        """True for floating and complex dtypes, which carry gradients."""
        return self.dtype.kind in "fc"

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part; the dtype itself if it is real."""
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

        Raises: ``TypeError`` if the dtype has none.
        """
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest value.

        Raises: ``TypeError`` if the dtype has none.
        """
        return self._limits().max

    def _limits(self):
        if self.is_integer:
            return np.iinfo(self.dtype)
        if self.is_floating:
            return np.finfo(self.dtype)
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


bool: DType = DType("bool", np.bool_)  # noqa: A001  (TensorFlow's name for it)
int8: DType = DType("int8", np.int8)
int16: DType = DType("int16", np.int16)
int32: DType = DType("int32", np.int32)
int64: DType = DType("int64", np.int64)
uint8: DType = DType("uint8", np.uint8)
uint16: DType = DType("uint16", np.uint16)
uint32: DType = DType("uint32", np.uint32)
uint64: DType = DType("uint64", np.uint64)
float16: DType = DType("float16", np.float16)
float32: DType = DType("float32", np.float32)
float64: DType = DType("float64", np.float64)
complex64: DType = DType("complex64", np.complex64)
complex128: DType = DType("complex128", np.complex128)
string: DType = DType("string", np.str_)
half: DType = float16
double: DType = float64

_ALL = [
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, float32, float64, complex64, complex128, string,
]  # fmt: skip
_BY_NAME = {d.name: d for d in _ALL} | {
    "half": float16, "float": float32, "double": float64,
}  # fmt: skip
_BY_PYTHON = {
    float: float32, int: int32, _python_bool: bool, complex: complex128, str: string,
}  # fmt: skip
BY_NUMPY = {d.dtype: d for d in _ALL}


def as_dtype(value: Any) -> DType:
    """The `DType` of a name, NumPy dtype, Python type or `DType`.

    Raises: ``TypeError`` for anything else.

    >>> as_dtype(float), as_dtype("int64")
    (tf.float32, tf.int64)
    """
    if type(value) is DType:
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    try:
        numpy_dtype = None if value is None else np.dtype(value)
    except TypeError:
        numpy_dtype = None
    if numpy_dtype is not None:
        found = BY_NUMPY.get(numpy_dtype) or BY_NUMPY.get(numpy_dtype.newbyteorder("="))
        if found is not None:
            return found
        if numpy_dtype.kind in "USO":
            return string
    raise TypeError(
        f"Cannot convert {value!r} to a dtype; known are {', '.join(_BY_NAME)}"
    )
