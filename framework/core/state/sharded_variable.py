"""`ShardedVariable`: a variable of which each process of a job holds a part."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

import numpy as np

from ..communication.communicator import Communicator
from ..communication.job import communicator
from ..errors import DTypeError, ShapeError, TracingError
from ..hardware import devices
from ..interpreters import active_tracer
from ..shapes.tensor_shape import TensorShape
from ..tensor import new_tensor
from ..variable import Variable

Result = TypeVar("Result")

_READS_OWN: ContextVar[bool] = ContextVar("reads_own_part", default=False)


class Shard(NamedTuple):
    """The part of an array that one process holds: entries of the flattened array.

    The entries are ``start`` to ``stop`` of an array of shape ``whole``. ``here`` is False
    if the array, which may be empty, belongs to another process.
    """

    whole: tuple[int, ...]
    start: int
    stop: int
    here: bool = True

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.stop - self.start

    @property
    def is_whole(self) -> bool:
        """True if the part is the array."""
        return self.here and self.size == math.prod(self.whole)

    @property
    def width(self) -> int:
        """The number of entries of a row of the whole array."""
        return math.prod(self.whole[1:])

    @property
    def has_rows(self) -> bool:
        """True if the part consists of rows of the array."""
        if not self.whole or not self.size:
            return False
        return self.start % self.width == 0 and self.stop % self.width == 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part: of rows if possible, otherwise flat."""
        if self.is_whole:
            return self.whole
        if self.has_rows:
            return (self.size // self.width, *self.whole[1:])
        return (self.size,)

    def resized(self, whole: tuple[int, ...]) -> Shard:
        """Return the same part, all or nothing, of an array of another shape."""
        if whole == self.whole:
            return self
        return Shard(whole, 0, math.prod(whole) if self.here else 0, self.here)

    def of(self, array: Any) -> Any:
        """Return the part of a whole array, a view if the array is contiguous."""
        return array.reshape(-1)[self.start : self.stop].reshape(self.shape)


class ShardedVariable(Variable):
    """Variable whose value is divided among the processes of a job.

    It has the shape of the whole value; this process holds the part ``shard``. To read
    the value is a collective: all processes must read it. An assignment keeps the part
    of this process.

    Args:
        initial_value: Part of this process, an array of the shape ``shard.shape``.
        shard: `Shard` of this process; the parts of all processes, in the order of
            their ranks, make up the flattened value.
        name: Name of the variable, or None.
        dtype: Dtype of the value, or None for the dtype of ``initial_value``.

    Raises:
        ShapeError: If ``initial_value`` does not have the shape of the part.

    Example:
        >>> import numpy as np
        >>> from tapewright.core.state.sharded_variable import Shard, ShardedVariable
        >>> v = ShardedVariable(np.zeros(6), Shard((2, 3), 0, 6))  # of one process
        >>> v.shape, v.numpy().sum()
        (TensorShape([2, 3]), np.float64(0.0))
    """

    exist = False  # in this process
    shard: Shard
    _tw_gathered: Any = None  # the whole array, while this process writes it to a file

    def __init__(
        self, initial_value: Any, shard: Shard, *, name: Any = None, dtype: Any = None
    ):
        if np.size(initial_value) == shard.size:
            initial_value = initial_value.reshape(shard.shape)
        super().__init__(initial_value, False, name=name, dtype=dtype)
        if self._array.shape != shard.shape:
            raise ShapeError(
                "ShardedVariable",
                f"initial_value must have the shape of the part, {shard.shape}",
                initial_value=self._array,
            )
        self.shard = shard
        ShardedVariable.exist = True

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole value."""
        return TensorShape(self.shard.whole)

    @property
    def ndim(self) -> int:
        """The number of axes of the whole value."""
        return len(self.shard.whole)

    def _tw_whole_array(self) -> Any:
        if _READS_OWN.get():
            return self._array
        if self._tw_gathered is not None:
            return self._tw_gathered
        if active_tracer() is not None:
            raise TracingError(
                f"'{self.path}' is divided among processes, which gather it when they "
                "read it; read it outside of traced functions"
            )
        parts = communicator().all_gather(devices.to_numpy(self._array).reshape(-1))
        module = devices.array_module(type(self._array))
        return module.asarray(np.concatenate(parts).reshape(self.shard.whole))

    def _value(self):
        return new_tensor(self._tw_whole_array())

    def _tw_check_assigned(self, method: str, array: Any) -> None:
        who = f"Variable.{method}"
        if array.dtype != self._array.dtype:
            what = f"'{self.path}' has dtype {self._array.dtype}; cast the value to it"
            raise DTypeError(who, what, value=array)
        if array.shape != self.shard.whole:
            raise ShapeError(
                who, f"Shape mismatch: the variable '{self.path}' has shape {self.shape}, "
                f"the assigned value {TensorShape(array.shape)}", value=array
            )  # fmt: skip

    def _fitting(self, method, value):
        return self.shard.of(super()._fitting(method, value)).copy()

    def _tw_bind_whole(self, array: Any) -> None:
        self._bind(self.shard.of(array).copy())

    def __repr__(self) -> str:
        return (
            f"<ShardedVariable path={self.path}, shape={self.shard.whole}, "
            f"dtype={self.dtype.name}, entries {self.shard.start} to "
            f"{self.shard.stop} in this process>"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self)(self._array, self.shard, name=self._name)
        twin._path = self._path
        memo[id(self)] = twin
        return twin

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"'{self.path}' is divided among processes and cannot be pickled; save the "
            "model in all processes instead"
        )


def sharing(variables: Iterable[Variable]) -> Communicator:
    """Return the processes that share variables: this one alone, if none is divided."""
    is_divided = any([isinstance(variable, ShardedVariable) for variable in variables])
    return communicator() if is_divided else Communicator()


def write_together(
    variables: Iterable[Variable], write: Callable[[], Result]
) -> Result:
    """Return ``write()``, which the first of the processes that share variables calls.

    All of them must call this function. They gather the variables first, and all return
    its result or raise its error. Without divided variables each process calls
    ``write`` for itself.

    Args:
        variables: Variables that ``write`` reads.
        write: Function without arguments, whose result and errors can be pickled.
    """
    divided = [
        v
        for v in variables
        if isinstance(v, ShardedVariable) and v._tw_gathered is None
    ]
    processes = sharing(divided)
    result = error = None
    for variable in divided:
        whole = variable._tw_whole_array()
        if processes.rank == 0:
            variable._tw_gathered = whole
    try:
        if processes.rank == 0:
            result = write()
    except Exception as raised:
        if processes.size == 1:
            raise
        error = raised
    finally:
        for variable in divided:
            variable._tw_gathered = None
    result, error = processes.broadcast_object((result, _picklable(error)))
    if error is not None:
        raise error
    return result


def _picklable(error):
    """Return an error that other processes can raise."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


@contextmanager
def reading_own_parts() -> Iterator[None]:
    """Return a context in which reading a sharded variable returns the own part."""
    token = _READS_OWN.set(True)
    try:
        yield
    finally:
        _READS_OWN.reset(token)
