"""`Tensor`, its static description `TensorSpec`, and conversions to tensors.

A Tensor holds an array that is never written to and a key that identifies it on tapes.
It has no method named like an ndarray method (``mean``, ``sum``, ``reshape``, ...):
NumPy's functions would call the method, but ``np.mean(tensor)`` has to leave the tape.
`ops/operators.py` defines the operators.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from . import hooks
from .composite import CompositeTensor
from .dtypes import BY_NUMPY, DType, as_dtype, float32, is_bfloat16, kind_of
from .errors import DTypeError, InvalidArgumentError, ShapeError
from .hardware import devices
from .nest import is_nested
from .operators import Operators
from .shapes.symbolic_dim import is_symbolic
from .shapes.symbolic_operand import TracedOperand
from .shapes.symbolic_shape import has_symbolic_shape
from .shapes.tensor_shape import TensorShape
from .text import as_text, is_text
from .typing import Array, DTypeLike, ShapeLike, StaticShapeLike, TensorLike

__all__ = [
    "IndexedSlices",
    "Reference",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "constant",
    "convert_to_tensor",
    "is_tensor",
]

# Tapes identify tensors by keys, not by id(): tensors die early, and ids are reused.
next_key = itertools.count(1).__next__


class Tensor(Operators):
    """Multidimensional array of one dtype: immutable, with TensorFlow's interface.

    `constant` and all ops return tensors. Operators, comparisons and indexing are ops,
    which are differentiable. NumPy functions accept a tensor and work on its values.

    Attributes:
        array: The NumPy or CuPy array of the values, not a copy. Do not change it.
        key: What identifies the value to tapes and traces; None if none follows it.

    Example:
        >>> x = tw.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape, x.dtype, x[0].numpy()
        (TensorShape([2, 2]), tf.float32, array([1., 2.], dtype=float32))
    """

    __slots__ = (
        "array",
        "key",
        "_keras_mask",
        "_tw_logits",
        "_tw_part_of",
        "__weakref__",
    )
    array: Any
    key: Any
    _tw_logits: tuple[Any, str, Any]  # behind probabilities: logits, activation, axis
    _tw_part_of: tuple[Any, Any]  # of v[index]: the variable and the index

    @property
    def shape(self) -> TensorShape:
        """The static shape, a `TensorShape`."""
        return TensorShape(self.array.shape)

    @property
    def dtype(self) -> DType:
        """The `DType` of the elements."""
        return BY_NUMPY.get(self.array.dtype) or as_dtype(self.array.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes, also called the rank."""
        return self.array.ndim

    @property
    def device(self) -> str:
        """The name of the device that holds the array, such as ``"/CPU:0"``."""
        return devices.device_of(self.array)

    def get_shape(self) -> TensorShape:
        """Return the shape; alias of `shape` for TensorFlow code."""
        return self.shape

    def set_shape(self, shape: StaticShapeLike) -> None:
        """Check that the shape of the tensor is compatible with ``shape``.

        A shape is always known here, so nothing changes.

        Args:
            shape: Expected shape, with None for sizes of any value.

        Raises:
            ValueError: If the shapes are incompatible.
        """
        self.shape.assert_is_compatible_with(shape)

    @property
    def assign(self) -> Callable[[TensorLike], Any]:
        """Function that writes to a part of a variable: ``v[index].assign(value)``.

        It accepts a ``value`` that broadcasts to the shape of the part and returns
        ``v``. If an index occurs twice, the last value wins. Python numbers are
        converted to the dtype of the variable. A tensor that is not a part of a
        variable lacks this attribute.

        Raises:
            ShapeError: If ``value`` does not broadcast to the shape of the part (also a
                ``ValueError``).
            DTypeError: If ``value`` has another dtype (also a ``TypeError``).

        Example:
            >>> v = tw.Variable([1.0, 2.0, 3.0])
            >>> v[1:].assign([0.0, 0.0]).numpy()
            array([1., 0., 0.], dtype=float32)
        """
        try:
            variable, index = self._tw_part_of
        except AttributeError:
            raise AttributeError(
                "a tensor has no attribute 'assign': tensors are immutable; assign to a "
                "variable, or to a part v[index] of one"
            ) from None
        return lambda value: hooks.assign_part.call(variable, index, value)

    def numpy(self) -> Array:
        """Return a copy as a NumPy array, or as a NumPy scalar if the rank is 0.

        Strings are returned as an array of ``bytes`` objects, encoded in UTF-8.

        Raises:
            TracingError: In a traced function.
            MappingError: Inside `vectorized_map`.

        Example:
            >>> tw.constant([1.0, 2.0]).numpy()
            array([1., 2.], dtype=float32)
        """
        if self.key is not None:
            hooks.export.call(self, "numpy()")
        array = devices.to_numpy(self.array)
        if isinstance(array, np.generic):
            return array
        return array.copy() if array.ndim else array[()]

    def to_numpy(self) -> Array:
        """Return a copy as a NumPy array; alias of `numpy` for Matplotlib, pandas."""
        return self.numpy()

    def ref(self) -> Reference:
        """Return a hashable reference, for sets and dict keys; see `deref`."""
        return Reference(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.key is not None:
            hooks.export.call(self, "a NumPy function")
        array = np.asarray(devices.to_numpy(self.array))
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        if copy:
            return array.copy()
        view = array.view()
        view.flags.writeable = False  # it shares the memory of the tensor
        return view

    def __dlpack__(self, **options: Any) -> Any:
        """Return a DLPack capsule of a copy, for ``from_dlpack`` of other libraries.

        Raises:
            BufferError: For ``copy=False``, strings, and anything that NumPy or CuPy
                cannot export.
            TracingError: In a traced function.
        """
        if self.key is not None:
            hooks.export.call(self, "another library")
        if options.pop("copy", None) is False:
            raise BufferError(
                "copy=False is not supported: tensors are immutable, so other libraries "
                "get a copy"
            )
        module = devices.array_module(type(self.array))
        return module.array(self.array, copy=True).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        module = devices.array_module(type(self.array))
        return module.asarray(self.array).__dlpack_device__()

    def _scalar(self, kind):
        if self.key is not None:
            hooks.export.call(self, f"{kind.__name__}()")
        array = devices.to_numpy(self.array)
        if array.size != 1:
            raise TypeError(
                f"Only a tensor with one element can be converted to {kind.__name__}; this "
                f"one has shape {self.shape}"
            )
        return array.item()

    def __float__(self) -> float:
        return float(self._scalar(float))

    def __int__(self) -> int:
        return int(self._scalar(int))

    def __complex__(self) -> complex:
        return complex(self._scalar(complex))

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise ValueError(
                "The truth value of a tensor with more than one element is ambiguous "
                f"(shape {self.shape}); use reduce_all or reduce_any"
            )
        return bool(self._scalar(bool))

    def __index__(self) -> int:
        if self.array.dtype.kind not in "iu" or self.array.ndim:
            raise TypeError(
                f"Only an integer tensor of rank 0 can be an index, got shape {self.shape}, "
                f"{self.dtype.name}"
            )
        return self._scalar(int)

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("A tensor of rank 0 has no len()")
        return self.array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("Cannot iterate over a tensor of rank 0")
        return (self[i] for i in range(self.array.shape[0]))

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __str__(self) -> str:
        return (
            f"tf.Tensor({self._text(str)}, shape={self.shape}, dtype={self.dtype.name})"
        )

    def __repr__(self) -> str:
        return (
            f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, "
            f"numpy={self._text(repr)}>"
        )

    def _text(self, form):
        array = devices.to_numpy(self.array)
        if array.ndim == 0:
            if form is repr and is_bfloat16(array.dtype):
                return repr(array.item())  # as TensorFlow shows it
            return str(array[()])
        text = form(array)
        return f"\n{text}" if "\n" in text else text  # columns stay aligned

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        return constant, (devices.to_numpy(self.array),)


class Reference:
    """Hashable reference to a tensor or variable, compared by identity.

    The methods ``tensor.ref()`` and ``variable.ref()`` return it.

    Args:
        referent: Tensor or variable to refer to.

    Example:
        >>> x = tw.constant(1.0)
        >>> x.ref() == x.ref(), x.ref().deref() is x
        (True, True)
    """

    __slots__ = ("_referent",)

    def __init__(self, referent: Any):
        self._referent = referent

    def deref(self) -> Any:
        """Return the tensor or variable."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._referent is other._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referent!r}>"


class TensorSpec:
    """Shape and dtype of a tensor, without values.

    Args:
        shape: Sizes of the axes, with None for unknown sizes; None for an unknown rank.
        dtype: Dtype of the elements.
        name: Name of the tensor, or None.

    Example:
        >>> tw.TensorSpec([None, 3], "float32")
        TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    """

    __slots__ = ("shape", "dtype", "name")

    shape: TensorShape
    dtype: DType
    name: str | None

    def __init__(
        self,
        shape: StaticShapeLike,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ):
        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> TensorSpec:
        """Return the spec of a tensor.

        Args:
            tensor: Tensor to describe.
            name: Name of the spec, or None.

        Example:
            >>> tw.TensorSpec.from_tensor(tw.constant([1, 2]))
            TensorSpec(shape=(2,), dtype=tf.int32, name=None)
        """
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, value: Tensor | TensorSpec) -> bool:
        """Return whether a tensor or spec has this dtype and a compatible shape.

        Args:
            value: Tensor or spec to compare with.

        Example:
            >>> spec = tw.TensorSpec([None, 2])
            >>> spec.is_compatible_with(tw.ones([3, 2])), spec.is_compatible_with(tw.ones([3]))
            (True, False)
        """
        return self.dtype == value.dtype and self.shape.is_compatible_with(value.shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorSpec)
            and self.shape == other.shape
            and self.dtype is other.dtype
        )

    def __hash__(self) -> int:
        return hash((tuple(self.shape), self.shape.rank, self.dtype))

    def __repr__(self) -> str:
        return (
            f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
        )


class IndexedSlices(CompositeTensor):
    """Sparse rows of a tensor that is zero elsewhere, such as a gradient of `gather`.

    Row ``indices[i]`` of the tensor is ``values[i]``; rows with the same index are
    added. `convert_to_tensor` returns the dense tensor; optimizers apply the rows
    directly.

    Args:
        values: Tensor of the rows.
        indices: Integer tensor with the index of each row.
        dense_shape: Shape of the dense tensor, or None if it is unknown.

    Shapes:
        ``values`` ``[n, ...]``, ``indices`` ``[n]``.

    Example:
        >>> slices = tw.IndexedSlices(
        ...     tw.constant([[1.0, 2.0]]), tw.constant([1]), dense_shape=[3, 2]
        ... )
        >>> tw.convert_to_tensor(slices).numpy()
        array([[0., 0.],
               [1., 2.],
               [0., 0.]], dtype=float32)
    """

    __slots__ = ("values", "indices", "dense_shape")
    __array_ufunc__ = None
    _tw_advice = "tw.convert_to_tensor makes it dense"
    values: Tensor
    indices: Tensor
    dense_shape: ShapeLike | None

    if TYPE_CHECKING:  # filled in by `ops/operators.py`

        def __tensor__(self) -> Tensor: ...
        def __add__(self, other: IndexedSlices | Tensor) -> IndexedSlices | Tensor: ...
        def __radd__(self, other: IndexedSlices | Tensor) -> IndexedSlices | Tensor: ...
        def _tw_sum_repeated(self) -> IndexedSlices: ...

    def __init__(
        self, values: Tensor, indices: Tensor, dense_shape: ShapeLike | None = None
    ):
        self.values = values
        self.indices = indices
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return as_dtype(self.values.dtype)

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor; unknown without ``dense_shape``."""
        if self.dense_shape is None:
            return TensorShape(None)
        if has_symbolic_shape(self.dense_shape):
            return TensorShape(self.dense_shape)
        if isinstance(self.dense_shape, TracedOperand):
            known = self.dense_shape.known_sizes()
            rank = self.dense_shape.shape[0]
            return TensorShape(
                (None,) * rank if known is None else tuple(known.tolist())
            )
        return TensorShape([int(n) for n in np.asarray(self.dense_shape)])

    def with_values(self, values: Tensor) -> IndexedSlices:
        """Return slices with the same indices and shape, and other values.

        Args:
            values: Tensor of the new rows.
        """
        return IndexedSlices(values, self.indices, self.dense_shape)

    def _tw_components(self) -> list[Any]:
        """Return the values and indices, and ``dense_shape`` if it is a tensor."""
        parts, shape = [self.values, self.indices], self.dense_shape
        if has_symbolic_shape(shape):
            return [*parts, convert_to_tensor(shape)]
        return parts if self._static_shape() is not None else [*parts, shape]

    def _tw_with_components(self, components: Sequence[Any]) -> IndexedSlices:
        """Return slices like these with other component tensors.

        Args:
            components: New tensors in the order of `_tw_components`.
        """
        shape = components[2] if len(components) == 3 else self.dense_shape
        return IndexedSlices(components[0], components[1], shape)

    def _tw_static_key(self) -> Any:
        """Return the class, and ``dense_shape`` if it consists of numbers."""
        return IndexedSlices, self._static_shape()

    def _static_shape(self):
        """Return ``dense_shape`` as a tuple, () if missing, None if a tensor."""
        shape = self.dense_shape
        if shape is None:
            return ()
        plain = isinstance(shape, (list, tuple, np.ndarray))
        if not plain or has_symbolic_shape(shape):
            return None
        return tuple([int(n) for n in shape])

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self.values)

    def __repr__(self) -> str:
        return (
            f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, "
            f"dense_shape={self.shape})"
        )


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a `Tensor`, `Variable` or `IndexedSlices`.

    Args:
        value: Object to test.

    Example:
        >>> tw.is_tensor(tw.constant(1.0)), tw.is_tensor(1.0)
        (True, False)
    """
    return isinstance(value, Tensor) or hasattr(type(value), "__tensor__")


def is_composite(value: object) -> bool:
    """Return whether ``value`` consists of several tensors, such as a sparse tensor."""
    return isinstance(value, CompositeTensor) and not is_tensor(value)


def new_tensor(array: Any) -> Tensor:
    """Return a Tensor of an array that is never written to afterwards."""
    tensor = Tensor()
    tensor.array = array
    tensor.key = None
    return tensor


def module_of(tensor: Tensor) -> Any:
    """Return the array module of a tensor, also of a batched one."""
    while not devices.is_array(tensor.array):
        if not hasattr(tensor, "value"):  # a traced or symbolic tensor
            return devices.current_module()
        tensor = tensor.value  # of a batched tensor
    return devices.array_module(type(tensor.array))


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: StaticShapeLike = None,
    name: str | None = None,
) -> Tensor:
    """Create a tensor from a number, nested list, array or tensor.

    Python floats become float32 and ints int32 (int64 if they are too large), and so do
    NumPy integers in a list; arrays keep their dtype. A tensor that already has the
    dtype is returned as is, so gradients pass through.

    Args:
        value: Number, string, nested list, array or tensor.
        dtype: Dtype of the result, or None to infer it from ``value``.
        shape: Shape of the result: ``value`` is reshaped, or repeated if it is a single
            element.

    Raises:
        TypeError: If ``value`` does not convert to ``dtype``.
        DTypeError: If ``value`` is neither number nor text (a ``TypeError`` and a
            ``ValueError``).
        ValueError: If a list is ragged, or ``shape`` holds another number of elements.

    Example:
        >>> tw.constant([[1, 2], [3, 4]], dtype="float32")
        <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
        array([[1., 2.],
               [3., 4.]], dtype=float32)>
        >>> tw.constant(7, shape=[3]).numpy()
        array([7, 7, 7], dtype=int32)
    """
    if isinstance(value, Tensor) and shape is None and dtype in (None, value.dtype):
        return value
    array = to_array(value, dtype)
    if shape is not None:
        xp, shape = devices.array_module(type(array)), tuple(TensorShape(shape))
        if array.size == 1:
            devices.check_fits("constant", shape, array.dtype)
            array = xp.full(shape, array.reshape(()))
        elif array.size != TensorShape(shape).num_elements():
            raise ShapeError(
                "constant",
                f"shape {shape} does not hold {array.size} elements",
                value=array,
            )
        else:
            array = array.reshape(shape)
    return new_tensor(array)


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Convert ``value`` to a tensor: a list, array, `Variable` or tensor.

    Lists may contain tensors; gradients pass through them.

    Args:
        value: Object to convert. A tensor is returned as is; a `Variable` is read.
        dtype: Dtype of the result, or None to infer it. A tensor must already have it.
        dtype_hint: Preferred dtype, ignored if the conversion would lose information.

    Raises:
        DTypeError: If a tensor has another dtype than ``dtype``, or ``value`` has no
            conversion, such as None (a ``TypeError`` and a ``ValueError``).

    Example:
        >>> tw.convert_to_tensor([1, 2], dtype_hint="float32").numpy()
        array([1., 2.], dtype=float32)
    """
    if isinstance(value, Tensor):
        tensor = value
    elif hasattr(type(value), "__tensor__"):
        tensor = value.__tensor__()
    elif is_nested(value) and (first := _first_dtype(value)) is not None:
        hint = dtype or dtype_hint or first
        parts = [
            convert_to_tensor(v, None if is_tensor(v) else dtype, hint) for v in value
        ]
        tensor = hooks.pack.call(parts, dtype)
    else:
        try:
            return new_tensor(to_array(value, dtype, dtype_hint))
        except TypeError:
            if not has_symbolic_shape(value):
                raise
        return hooks.size_tensor.call(value, dtype, dtype_hint)
    if dtype is not None and tensor.dtype != dtype:
        raise DTypeError(
            "convert_to_tensor", f"dtype must be {as_dtype(dtype).name}", value=tensor
        )
    return tensor


def _first_dtype(nested):
    """The dtype of the first tensor in a nest, or None."""
    for item in nested:
        if is_tensor(item):
            return item.dtype
        if is_nested(item) and (dtype := _first_dtype(item)) is not None:
            return dtype
    return None


_NARROW = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.int64): np.dtype(np.int32),
}
_SIGNED = (np.dtype(np.int32), np.dtype(np.int64))
# Implicit conversions between kinds of dtypes: "f" to "f" or "c", an int to all but bool;
# True and False count as 1 and 0, so that a mask may be a factor.
_IMPLICIT = {
    "b": "biufc",
    "i": "iufc",
    "u": "iufc",
    "f": "fc",
    "c": "c",
    "O": "O",
}


def to_array(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    hint: DTypeLike | None = None,
    module: Any = None,
) -> Any:
    """Convert ``value`` to a new array of ``module``.

    The default is the module of the value, or else the current one.
    """
    if hasattr(type(value), "__tensor__"):
        value = value.__tensor__()
    if isinstance(value, Tensor):
        tensor, value = value, value.array
        if not devices.is_array(value):  # a batched or traced tensor
            value = np.asarray(tensor)  # raises the error of that tensor
    elif not devices.is_array(value) and has_own_dtype(value):
        value = np.asarray(value)
    if devices.is_array(value):
        return _copied(value, dtype, hint, module)
    array = _from_python(value, dtype, hint)
    if array.dtype not in BY_NUMPY:  # as in `_copied`
        as_dtype(array.dtype)
    module = module or devices.current_module()
    if module is np or is_text(array.dtype):  # strings stay on the host
        return array
    return module.asarray(array)


def has_own_dtype(value):
    """Return whether a value converts to an array as a whole, like a pandas Series."""
    if isinstance(value, (np.generic, CompositeTensor)):
        return False
    return hasattr(type(value), "__array__")


def _copied(value, dtype, hint, module):
    """Copy an array to the device of ``module``, or on its device if that is None."""
    own = devices.array_module(type(value))
    if kind_of(value.dtype) == "O" and dtype is not None and _holds_numbers(value):
        value = np.array(value.tolist())  # as of the columns of a table
    if kind_of(value.dtype) not in "biufc":
        value = _as_strings(value)
    elif value.dtype not in BY_NUMPY:
        # Not a dtype of tensors, or half precision at its first use.
        as_dtype(value.dtype)
    wanted = _wanted_dtype(value.dtype, value, dtype, hint)
    module = module or (own if own is not np else devices.current_module())
    module = np if is_text(value.dtype) else module
    if module is not own:
        value = devices.copy_to(module, value)
    return module.array(value, dtype=wanted, copy=True)


def _from_python(value, dtype, hint):
    """Convert numbers, strings and nested lists to a NumPy array."""
    if isinstance(value, CompositeTensor):
        raise TypeError(
            f"Cannot convert a {type(value).__name__} to a tensor; call to_tensor() or "
            "tw.sparse.to_dense()"
        )
    if isinstance(value, TensorShape):
        value, dtype = _dims_of(value, dtype)
    try:  # NumPy's own strings end before NUL
        holds_text = isinstance(_first_leaf(value), str | bytes)
        array = np.array(value, object if holds_text else None)
    except ValueError as error:
        raise ValueError(
            f"Cannot convert a ragged sequence to a tensor: {error}"
        ) from None
    if array.dtype.kind in "US":  # text after a number
        array = np.array(value, object)
    if kind_of(array.dtype) not in "biufc":
        array = _from_objects(value, array)
    natural, first = array.dtype, _dtype_of_first(value)
    if first is None:  # numbers of Python, ints of NumPy: single precision
        natural = _NARROW.get(natural, natural)
        if natural.kind in "iu" and array.size:
            natural = next((n for n in _SIGNED if _fits(array, n)), array.dtype)
        # An empty list has any dtype.
        if not array.size and (dtype or hint) is not None:
            natural = as_dtype(dtype or hint).dtype
    elif kind_of(first) == kind_of(natural) == "f":
        natural = first
    wanted = _wanted_dtype(natural, value, dtype, hint)
    if wanted.kind in "iu" and array.dtype.kind in "iu" and array.size:
        if not _fits(array, wanted):
            raise TypeError(f"{_shorten(value)} does not fit into {wanted.name}")
    with np.errstate(over="ignore"):
        fitted = array.astype(wanted)
    if first is None and wanted is float32.dtype and dtype is None and hint is None:
        if (np.isinf(fitted) & np.isfinite(array)).any():
            raise InvalidArgumentError(
                f"{_shorten(value)} does not fit into float32; dtype='float64' holds it"
            )
    return fitted


def _from_objects(value, array):
    """Return an array of strings.

    Raises:
        DTypeError: If there are other objects.
    """
    for number, entry in enumerate(array.flat):
        if is_tensor(entry):
            array.flat[number] = entry.numpy()
    try:
        return as_text(array)
    except TypeError:
        if any([is_symbolic(entry) for entry in array.flat]):
            raise TypeError(
                f"Cannot convert {_shorten(value)} to a tensor: None is an unknown size; "
                "tw.shape(x)[axis] returns it as a tensor"
            ) from None
        too_large = array.size and all(isinstance(n, int) for n in array.flat)
        raise DTypeError(
            f"Cannot convert {type(value).__name__} to a tensor: {_shorten(value)}"
            + (" does not fit into int64" if too_large else "")
        ) from None


def _dims_of(shape, dtype):
    """Return the sizes of a shape, and their dtype: int32, or int64 for large sizes."""
    if dtype not in (None, "int32", "int64"):
        raise TypeError(f"Cannot convert {shape!r} to {as_dtype(dtype).name}")
    if not shape.is_fully_defined():
        raise InvalidArgumentError(
            f"Cannot convert {shape!r} to a tensor, since it is only partially known"
        )
    dims = list(shape)
    narrow = max(dims, default=0) <= np.iinfo(np.int32).max
    return dims, dtype or ("int32" if narrow else "int64")


def _as_strings(array):
    """Convert an array of text, bytes or objects to an array of strings."""
    if array.dtype.kind in "USO":
        try:
            return as_text(array)
        except TypeError:  # an object is no string
            pass
    hint = ""
    if array.dtype.kind == "O" and _holds_numbers(array):
        hint = "; pass dtype='float32' to convert it to numbers"
    raise DTypeError(
        f"Cannot convert an array of dtype {array.dtype.name} to a tensor: "
        f"{_shorten(array)}{hint}"
    )


def _holds_numbers(array):
    """Return whether an array of objects is not empty and contains only numbers."""
    kinds = (int, float, complex, np.number, np.bool_)
    return bool(array.size) and all([isinstance(entry, kinds) for entry in array.flat])


def _fits(array, dtype):
    limits = np.iinfo(dtype)
    return array.min() >= limits.min and array.max() <= limits.max


def _first_leaf(value):
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _dtype_of_first(value):
    """Return the dtype of the first leaf; None for Python numbers, NumPy integers."""
    value = _first_leaf(value)
    if is_tensor(value):
        return value.dtype.dtype
    of_numpy = isinstance(value, (np.ndarray, np.generic))
    return value.dtype if of_numpy and value.dtype.kind not in "iu" else None


def _wanted_dtype(natural, value, dtype, hint):
    if dtype is not None:
        wanted = as_dtype(dtype).dtype
        is_strict = is_text(natural) or not devices.is_array(value)
        if is_strict and not _is_implicit(natural, wanted):
            raise TypeError(
                f"Cannot convert {_shorten(value)} to {as_dtype(wanted).name}"
            )
        return wanted
    if hint is not None:
        wanted = as_dtype(hint).dtype
        if _is_implicit(natural, wanted):
            return wanted
    return natural


def _is_implicit(natural, wanted):
    """Return whether numbers of one dtype convert implicitly to another."""
    return kind_of(wanted) in _IMPLICIT.get(kind_of(natural), "")


def _shorten(value):
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
