"""Variables: values that can be assigned, and that notify tapes when they are read."""

from __future__ import annotations

import enum
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from operator import call
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from . import hooks
from .dtypes import BY_NUMPY, DType, as_dtype
from .errors import DTypeError, InvalidArgumentError, ShapeError
from .hardware import devices
from .interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from .messages.names_of_pytorch import OF_TENSORS, Elsewhere
from .messages.provenance import Origin, Provenance
from .names.reserved_names import Guarding
from .operators import Operators
from .shapes.tensor_shape import TensorShape
from .state.autocast import autocast, autocast_dtype
from .tape import Tape
from .tensor import (
    IndexedSlices,
    Reference,
    Tensor,
    convert_to_tensor,
    module_of,
    new_tensor,
    to_array,
)
from .typing import Array, DTypeLike, StaticShapeLike, TensorLike

Result = TypeVar("Result")

next_serial = itertools.count().__next__
_living: WeakValueDictionary[int, Variable] = WeakValueDictionary()  # by serial number
# The version of all variables: a new object after each change of several at once. Code that
# reads several variables, and finds the same version before and after, has consistent values.
changes: list[object] = [object()]


class VariableAggregation(enum.Enum):
    """Ways to aggregate the values that replicas assign to a `Variable`."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """Times at which the values that replicas assign to a `Variable` are aggregated."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class Variable(Operators, Guarding):
    """Tensor-like object whose value can be changed by assignment.

    Tapes watch trainable variables when they are read. They go by ``trainable`` as
    passed to the constructor, like TensorFlow: if a layer is frozen for a call and
    trainable again afterwards, the call still has gradients.

    An assignment binds a new array and never writes into the old one, which tapes and
    tensors may still hold. Variables of integers have no gradient. The initial value is
    computed immediately, also while a function is traced.

    Variables are thread-safe: a read returns the value before or after a change, never
    a mix, and concurrent calls of `assign_add` and `assign_sub` all take effect. Two
    variables that are read while another thread trains may hold values of different
    steps.

    Args:
        initial_value: Anything that `constant` accepts, or a function that returns it.
        trainable: If True, tapes watch the variable and optimizers update it. None
            means True.
        validate_shape: Ignored, since initial values have known shapes.
        name: Name of the variable, or None.
        dtype: Dtype of the value, or None to infer it from ``initial_value``.
        constraint: Function that optimizers apply to the value after each update, or
            None.
        synchronization: Kept as an attribute. Each replica is a process and assigns its
            value.
        aggregation: Kept as an attribute. To average, call `distribute.all_reduce`
            before assigning.
        shape: Shape that the value must have, or None.

    Attributes:
        autocast: True if a layer that computes in another dtype reads the variable in
            that dtype.

    Raises:
        ShapeError: If the value has another shape (also a ``ValueError``).
        TypeError: If the value does not convert to ``dtype``.

    Example:
        >>> v = tw.Variable([1.0, 2.0])
        >>> v.assign_add([1.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
    """

    __slots__ = (
        "_array",
        "trainable",
        "_made_trainable",
        "_tw_serial",
        "_name",
        "_path",
        "_unwatched_key",
        "_tw_lock",
        "_tw_unconnected",
        "__weakref__",
        "__dict__",
    )

    _tw_guarded = ("read",)  # TensorFlow and Keras lack it
    trainable: bool
    _tw_serial: int
    # What explains the latest gradient by it that was None, from `GradientTape`. A slot, as
    # attributes are copied and pickled with a variable; not there before the first None.
    _tw_unconnected: Any
    autocast: bool = True
    # Whether a checkpoint may hold it in a narrower dtype, as older versions did.
    _tw_was_narrower: bool = False
    constraint: Callable[[Variable], TensorLike] | None = None
    synchronization: Any = VariableSynchronization.AUTO
    aggregation: Any = VariableAggregation.NONE

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike],
        trainable: bool | None = True,
        *,
        validate_shape: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        constraint: Callable[[Variable], TensorLike] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: StaticShapeLike = None,
    ):
        self._tw_lock = threading.RLock()  # held by the thread that writes
        tracer = active_tracer()
        if callable(initial_value):
            with use_interpreters(active_interpreters() if tracer is None else ()):
                initial_value = initial_value()
        if initial_value is None:
            raise ValueError("Variable: initial_value must be given")
        if isinstance(initial_value, (list, tuple)):  # it may hold tensors
            initial_value = convert_to_tensor(initial_value, dtype)
        if tracer is not None:
            initial_value = tracer.create(self, initial_value)
        self._bind(to_array(initial_value, dtype))
        if shape is not None and not TensorShape(shape).is_compatible_with(self.shape):
            raise ShapeError(
                "Variable",
                f"the shape must be {TensorShape(shape)}",
                initial_value=self,
            )
        self._made_trainable = bool(True if trainable is None else trainable)
        self.trainable = self._made_trainable
        self._tw_serial = next_serial()  # tapes list variables in order of construction
        self._name = name or "Variable"
        self._path = None
        self._unwatched_key = self._new_unwatched_key()
        if constraint is not None:
            self.constraint = constraint
        if synchronization is not VariableSynchronization.AUTO:
            self.synchronization = VariableSynchronization(synchronization)
        if aggregation is not VariableAggregation.NONE:
            self.aggregation = VariableAggregation(aggregation)

    # --- reading

    @property
    def _tw_is_accessible(self) -> bool:
        """True if the variable is trainable, or was at some time.

        Tapes that watch accessed variables then watch it.
        """
        return self.trainable or self._made_trainable

    @property
    def _tw_is_weight(self) -> bool:
        """True for weights: each ``keras.Variable``, variables of layers and metrics."""
        return self._path is not None

    def read(self) -> Tensor:
        """Return the value as a tensor; tapes that watch the variable record the read.

        Inside the `call` of a layer with a mixed dtype policy, the value is cast to the
        compute dtype of the layer unless ``autocast`` is False.
        """
        if autocast_dtype() is not None and self.dtype is not self._own_dtype():
            return self._read_cast()
        interpreter = active_interpreter()
        if type(interpreter) is Tape:
            known = interpreter.reads.get(id(self))
            if known is not None and known.array is self._array:
                return known
            tensor = self._value()
            interpreter.read_variable(self, tensor)
            return tensor
        tensor = self._value()
        if interpreter is None or interpreter is ARRAY_EVAL:
            return tensor
        interpreters = active_interpreters()
        for each in reversed(interpreters):
            if each.traces:
                tensor = each.value_of_variable(self)
                break
        if isinstance(interpreters[-1], Tape):
            known = interpreters[-1].reads.get(id(self))
            if known is not None and _is_value(known, self._array, tensor):
                tensor = known
        for each in interpreters:
            each.read_variable(self, tensor)
        return tensor

    def _read_cast(self):
        """Return the value in the compute dtype of the layer; the cast is an op."""
        return hooks.cast.call(self._tw_read_uncast(), self.dtype)

    def _tw_read_uncast(self) -> Tensor:
        """Return the value in the dtype of the variable, without `autocast`."""
        with autocast(None):
            return self.read()

    def _new_unwatched_key(self):
        """Return the key for reads that no tape watches, for `GradientTape.explain`."""
        _living[self._tw_serial] = self
        return Provenance((Origin("variable", self._tw_serial, self.path),))

    def _value(self):
        """Return the value without notifying tapes."""
        tensor = new_tensor(self._array)
        tensor.key = self._unwatched_key
        return tensor

    def _tw_whole_array(self) -> Any:
        """Return the array of the whole value; all processes call it, if they share it."""
        return self._array

    def _concrete(self):
        """Return the value now, for Python code that computes with it."""
        for each in active_interpreters():
            each.before_value(self)
        return self._value()

    read_value = read
    __tensor__ = read

    @property
    def value(self) -> VariableValue:
        """The current value: a property, as in Keras, and callable, as in TensorFlow.

        Example:
            >>> v = tw.Variable(2.0)
            >>> v.value.numpy(), v.value().numpy()
            (np.float32(2.0), np.float32(2.0))
        """
        return VariableValue(self.read())

    @property
    def shape(self) -> TensorShape:
        """The static shape, a `TensorShape`."""
        return TensorShape(self._array.shape)

    @property
    def device(self) -> str:
        """The name of the device that holds the array, such as ``"/CPU:0"``."""
        return devices.device_of(self._array)

    @property
    def dtype(self) -> DType:
        """The `DType` of the elements, as returned by `read`."""
        own, dtype = self._own_dtype(), autocast_dtype()
        if dtype is None or not (self.autocast and own.is_floating):
            return own
        return dtype

    def _own_dtype(self):
        return BY_NUMPY.get(self._array.dtype) or as_dtype(self._array.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def name(self) -> str:
        """The name without the names of its owners, such as ``kernel``."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
        self._unwatched_key = self._new_unwatched_key()

    @property
    def path(self) -> str:
        """The name preceded by the names of its owners, such as ``dense/kernel``."""
        return self._path or self._name

    @path.setter
    def path(self, path: str | None) -> None:
        self._path = path
        self._unwatched_key = self._new_unwatched_key()

    def get_shape(self) -> TensorShape:
        """Return the shape; alias of `shape` for TensorFlow code."""
        return self.shape

    def numpy(self) -> Array:
        """Return a copy as a NumPy array, or as a NumPy scalar if the rank is 0.

        Example:
            >>> tw.Variable([1, 2]).numpy()
            array([1, 2], dtype=int32)
        """
        return self._concrete().numpy()

    def to_numpy(self) -> Array:
        """Return a copy as a NumPy array; alias of `numpy` for Matplotlib, pandas."""
        return self.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._concrete().__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._concrete().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value().__dlpack_device__()

    def ref(self) -> Reference:
        """Return a hashable reference, for sets and dict keys; see `deref`."""
        return Reference(self)

    def __float__(self) -> float:
        return float(self._concrete())

    def __int__(self) -> int:
        return int(self._concrete())

    def __complex__(self) -> complex:
        return complex(self._concrete())

    def __bool__(self) -> bool:
        return bool(self._concrete())

    def __index__(self) -> int:
        return self._concrete().__index__()

    def __len__(self) -> int:
        return len(self._value())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.read())

    def __format__(self, spec: str) -> str:
        return format(self._concrete(), spec) if spec else str(self)

    # --- assigning

    if TYPE_CHECKING:  # of some rows or entries: filled in by `ops/operators.py`

        def scatter_add(
            self,
            sparse_delta: IndexedSlices,
            use_locking: bool = False,
            name: str | None = None,
        ) -> Self: ...

        scatter_sub = scatter_add
        scatter_update = scatter_add
        scatter_max = scatter_add
        scatter_min = scatter_add
        scatter_mul = scatter_add
        scatter_div = scatter_add
        batch_scatter_update = scatter_add

        def scatter_nd_add(
            self, indices: TensorLike, updates: TensorLike, name: str | None = None
        ) -> Self: ...

        scatter_nd_sub = scatter_nd_add
        scatter_nd_update = scatter_nd_add
        scatter_nd_max = scatter_nd_add
        scatter_nd_min = scatter_nd_add

        def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor: ...

        sparse_read = gather_nd

    def assign(
        self,
        value: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Self:
        """Assign a new value of the same shape and dtype.

        Python numbers are converted. Variables of layers, optimizers and metrics also
        cast values of other dtypes, as in Keras.

        Args:
            value: New value: number, nested list, array or tensor.
            use_locking: Ignored; assignments are always thread-safe.
            read_value: Ignored; the variable is always returned.

        Returns:
            The variable itself.

        Raises:
            ShapeError: If ``value`` has another shape (also a ``ValueError``).
            DTypeError: If ``value`` has another dtype (also a ``TypeError``).

        Example:
            >>> v = tw.Variable([1.0, 2.0])
            >>> v.assign([3.0, 4.0]).numpy()
            array([3., 4.], dtype=float32)
        """
        if autocast_dtype() is not None:
            return self._assign_uncast("assign", value)
        if self._path is not None:
            value = self._cast_to_own(value)
        tracer = active_tracer()
        if tracer is not None:
            tracer.assign(self, "assign", value)
        else:
            self._bind(self._fitting("assign", value))
        return self

    def assign_add(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Self:
        """Add ``delta`` to the value.

        Args:
            delta: Number, nested list, array or tensor of the same shape and dtype.
            use_locking: Ignored; assignments are always thread-safe.
            read_value: Ignored; the variable is always returned.

        Returns:
            The variable itself.

        Raises:
            ShapeError: If ``delta`` has another shape (also a ``ValueError``).
            DTypeError: If ``delta`` has another dtype (also a ``TypeError``).

        Example:
            >>> tw.Variable(1.0).assign_add(2.0).numpy()
            np.float32(3.0)
        """
        if autocast_dtype() is not None:
            return self._assign_uncast("assign_add", delta)
        if self._path is not None:
            delta = self._cast_to_own(delta)
        tracer = active_tracer()
        if tracer is not None:
            tracer.assign(self, "assign_add", delta)
        else:
            delta = self._fitting("assign_add", delta)
            with self._tw_lock:
                self._bind(self._array + delta)
        return self

    def assign_sub(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Self:
        """Subtract ``delta`` from the value.

        Args:
            delta: Number, nested list, array or tensor of the same shape and dtype.
            use_locking: Ignored; assignments are always thread-safe.
            read_value: Ignored; the variable is always returned.

        Returns:
            The variable itself.

        Raises:
            ShapeError: If ``delta`` has another shape (also a ``ValueError``).
            DTypeError: If ``delta`` has another dtype (also a ``TypeError``).

        Example:
            >>> tw.Variable(1.0).assign_sub(0.25).numpy()
            np.float32(0.75)
        """
        if autocast_dtype() is not None:
            return self._assign_uncast("assign_sub", delta)
        if self._path is not None:
            delta = self._cast_to_own(delta)
        tracer = active_tracer()
        if tracer is not None:
            tracer.assign(self, "assign_sub", delta)
        else:
            delta = self._fitting("assign_sub", delta)
            with self._tw_lock:
                self._bind(self._array - delta)
        return self

    def _assign_uncast(self, method, value):
        """Cast a value that a layer computed to the variable's dtype; assign it."""
        with autocast(None):
            dtype = getattr(value, "dtype", None)
            if (
                isinstance(dtype, DType)
                and dtype.is_floating
                and self.dtype.is_floating
            ):
                value = hooks.cast.call(value, self.dtype)
            return getattr(self, method)(value)

    def _cast_to_own(self, value):
        own = self._own_dtype()
        if getattr(value, "dtype", None) == own:
            return value
        tensor = convert_to_tensor(value, dtype_hint=own)
        return value if tensor.dtype == own else hooks.cast.call(tensor, own)

    def _fitting(self, method, value):
        """Convert ``value`` to an array that fits, and notify the interpreters."""
        own = self._array
        if hasattr(type(value), "__tensor__"):
            value = convert_to_tensor(value)
        key = value.key if isinstance(value, Tensor) else None
        for interpreter in active_interpreters():
            interpreter.before_assign(self, method, key)
        if isinstance(value, Tensor):
            array = value.array
            if not devices.is_array(array):  # a batched tensor, which raises here
                array = np.asarray(value)
        else:
            array = to_array(value, None, own.dtype, devices.array_module(type(own)))
        self._tw_check_assigned(method, array)
        return array if type(array) is type(own) else self._moved(method, array)

    def _moved(self, method, array):
        """Copy the array to the device of the variable, if ``method`` may do so."""
        module = devices.array_module(type(self._array))
        if devices.array_module(type(array)) is module:
            return array
        if method == "assign":
            return devices.copy_to(module, array)
        raise InvalidArgumentError(
            f"Variable.{method}: '{self.path}' is on {self.device}, the value on "
            f"{devices.device_of(array)}; only assign copies between devices"
        )

    def _tw_check_assigned(self, method: str, array: Any) -> None:
        """Raise an error unless an array, or its spec, fits the variable.

        Args:
            method: Name of the assigning method, for the error message.
            array: Array or spec with the shape and dtype to check.

        Raises:
            ShapeError: If the shape differs.
            DTypeError: If the dtype differs.
        """
        own, who = self._array, f"Variable.{method}"
        if array.dtype != own.dtype:
            what = f"'{self.path}' has dtype {own.dtype}; cast the value to it"
            raise DTypeError(who, what, value=array)
        if array.shape != own.shape:
            raise ShapeError(
                who, f"Shape mismatch: the variable '{self.path}' has shape {self.shape}, "
                f"the assigned value {TensorShape(array.shape)}", value=array
            )  # fmt: skip

    def _bind(self, array):
        """Make the array the value; it must not be written to afterwards."""
        if isinstance(array, np.generic):
            array = np.asarray(array)
        with self._tw_lock:  # an optimizer may be about to put its own array back
            self._array = array

    def _tw_bind_whole(self, array: Any) -> None:
        """Make the array the value; a divided variable keeps its part."""
        self._bind(array)

    def __getattr__(self, name: str) -> Any:
        if name == "_array":  # an optimizer has taken it to write into it
            with self._tw_lock:
                return object.__getattribute__(self, name)
        if name in OF_TENSORS:  # `Elsewhere` has raised, and Python asks here, too
            Elsewhere(name, OF_TENSORS[name]).refuse(self)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    # --- showing, copying

    def __repr__(self) -> str:
        tensor = new_tensor(self._array)
        if self._path is not None:  # of a layer, an optimizer or a metric, as in Keras
            return (
                f"<Variable path={self._path}, shape={tuple(self.shape)}, "
                f"dtype={self.dtype.name}, value={tensor._text(str).lstrip()}>"
            )
        return (
            f"<tf.Variable {self.path!r} shape={self.shape} dtype={self.dtype.name}, "
            f"numpy={tensor._text(repr)}>"
        )

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with devices.use_module(devices.array_module(type(self._array))):
            value, trained = new_tensor(self._array), self.trainable
            twin = type(self)(value, trainable=trained, name=self._name)
        twin._path = self._path
        memo[id(self)] = twin
        vars(twin).update(deepcopy(vars(self), memo))
        return twin

    def __reduce__(self) -> Any:
        array = devices.to_numpy(self._array)
        values = array, self.trainable, self._name, self._path, type(self)
        return _rebuild, values, vars(self) or None


class writing:  # noqa: N801  (used as a statement)
    """Lock variables for writing: ``with writing(variables):``. Other threads may read.

    Locks are acquired in a fixed order, which excludes deadlocks, and are reentrant.
    """

    __slots__ = ("acquires", "releases", "exits")

    def __init__(self, variables: Iterable[Variable]):
        locks = {
            id(v._tw_lock): v._tw_lock for v in variables
        }  # some variables share one
        ordered = [locks[number] for number in sorted(locks)]
        self.acquires = [lock.acquire for lock in ordered]
        self.releases = [lock.release for lock in ordered]
        self.exits = [lock.__exit__ for lock in ordered]

    def __enter__(self) -> None:
        held: list[bool] = []
        try:
            held.extend(map(call, self.acquires))  # the entries so far stay on an error
        except BaseException:
            deque(map(call, self.exits, held), 0)
            raise

    def __exit__(self, *exc: object) -> None:
        deque(map(call, self.releases), 0)

    def run(self, function: Callable[..., Result], *args: Any) -> Result:
        """Return ``function(*args)``, called with the locks held.

        Unlike the ``with`` statement, this always releases the locks: a signal handler
        may interrupt Python before `__exit__`, but not before the one call of a C
        function here.
        """
        held: list[bool] = []
        release = map(call, self.exits, held)
        try:
            try:
                held.extend(map(call, self.acquires))
                return function(*args)
            finally:
                deque(release, 0)
        finally:  # nothing is left to release, unless a trace function has raised
            deque(release, 0)


class VariableValue(Operators):
    """The tensor returned by `Variable.value`; calling it returns the tensor as well.

    Ops and attributes treat it as the tensor. It keeps its value when the variable
    changes.
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __call__(self) -> Tensor:
        return self._tensor

    __tensor__ = __call__

    def __getattr__(self, name: str) -> Any:
        if name == "_tensor":  # of an object that `copy` has not filled yet
            raise AttributeError(name)
        return getattr(self._tensor, name)

    def __reduce__(self) -> Any:
        return VariableValue, (self._tensor,)


def variable_of(tensor: Any) -> Variable | None:
    """Return the variable that a tensor was read from with no tape watching."""
    key = getattr(tensor, "key", None)
    if type(key) is not Provenance or key.origins[0].reason != "variable":
        return None
    variable = _living.get(key.origins[0].key)
    holds = variable is not None and tensor.array is variable._array
    return variable if holds else None


def unwrap_value(value: Any) -> Any:
    """Return the tensor of a `VariableValue`; return other objects unchanged."""
    return value._tensor if type(value) is VariableValue else value


def on_device_of(value: Tensor | Variable) -> AbstractContextManager[Any]:
    """Context that creates new arrays on the device of a tensor or variable."""
    if isinstance(value, Variable):
        return devices.use_module(devices.array_module(type(value._array)))
    return devices.use_module(module_of(value))


def _delegated(name):
    def method(self, *args):
        return getattr(self._tensor, name)(*args)

    method.__name__ = name
    return method


# Python looks for these on the class.
for _name in "array bool complex float format index int iter len repr str".split():
    setattr(VariableValue, f"__{_name}__", _delegated(f"__{_name}__"))


def _rebuild(array, trainable, name, path, cls=Variable):
    variable = cls(array, trainable=trainable, name=name)
    variable.path = path
    return variable


def _is_value(known, array, tensor):
    """Return whether an earlier read of a variable returned its current value."""
    if known.array is array:
        return True
    symbol = getattr(tensor, "symbol", None)  # in a trace
    return symbol is not None and getattr(known, "symbol", None) is symbol
