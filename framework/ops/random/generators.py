"""Generators: the source of random numbers, a key and a counter that advances.

While a function is traced, the step of the counter is an op like any other: each call
of the function continues from the current state of the generator, as the Python
function would.
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import Tensor, convert_to_tensor, new_tensor
from tapewright.core.typing import DTypeLike, IntLike, ShapeLike, TensorLike
from tapewright.core.variable import Variable, VariableValue, next_serial

from ..array.conversion import cast
from ..array.creation import zeros_like
from ..array.indexing import getitem
from ..array.joining import stack
from ..math.elementwise import add, multiply
from .distributions import (
    Stream,
    checked_bounds,
    checked_floating,
    draw_binomial,
    draw_normal,
    draw_uniform,
    has_value,
)
from .philox import NUMBERS, random_seeds, random_uniform


class Generator:
    """Random number generator: a key, and a counter that each draw advances.

    ``Generator.from_seed(7)`` always starts the same stream. ``state``, an int64
    Variable of key and counter, can be saved and restored, with `reset` or in another
    process with `from_state`; the same numbers follow.

    Args:
        seed: Integer seed, or None for a seed from the operating system.

    Example:
        >>> generator = tw.random.Generator.from_seed(7)
        >>> state = generator.state.numpy()
        >>> first = generator.normal([3]).numpy()
        >>> bool((tw.random.Generator.from_state(state).normal([3]).numpy() == first).all())
        True
    """

    state: Variable

    def __init__(self, seed: IntLike | None = None):
        key = _any_key() if seed is None else key_of_seed("Generator", seed)
        with devices.use_module(np):  # read at each draw: a GPU would have to wait
            self.state = Variable(
                np.array([key, 0], np.int64), trainable=False, name="state"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} state={self.state.numpy().tolist()}>"

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)  # of a copy, made on the current device
        self.state._bind(devices.to_numpy(self.state._array))

    @classmethod
    def from_seed(cls, seed: IntLike, alg: str | int | None = None) -> Self:
        """Create a generator at the start of the stream of ``seed``.

        Args:
            seed: Integer seed.
            alg: None, "philox" or "auto_select"; Philox is the only algorithm.

        Raises:
            ValueError: If the seed or ``alg`` is invalid.
        """
        check_algorithm("Generator.from_seed", alg)
        return cls(key_of_seed("Generator.from_seed", seed))

    @classmethod
    def from_non_deterministic_state(cls, alg: str | int | None = None) -> Self:
        """Create a generator at the start of a stream chosen by the operating system.

        Args:
            alg: None, "philox" or "auto_select"; Philox is the only algorithm.
        """
        check_algorithm("Generator.from_non_deterministic_state", alg)
        return cls()

    @classmethod
    def from_state(cls, state: TensorLike, alg: str | int | None = None) -> Self:
        """Create a generator that continues from the ``state`` of another one.

        Args:
            state: Two integers, key and counter.
            alg: None, "philox" or "auto_select"; Philox is the only algorithm.
        """
        check_algorithm("Generator.from_state", alg)
        if not has_value(state):
            return cls._of(_TracedState(cast(state, dtypes.int64)))
        generator = cls(0)
        generator.reset(state)
        return generator

    @classmethod
    def _of(cls, state):
        """Create a generator with this state, which in a trace may not be a variable."""
        generator = cls.__new__(cls)
        generator.state = state
        return generator

    @classmethod
    def from_key_counter(
        cls, key: IntLike, counter: IntLike, alg: str | int | None = None
    ) -> Self:
        """Create a generator with the given key and counter.

        Args:
            key: Integer key of the stream.
            counter: Number of the next draw.
            alg: None, "philox" or "auto_select"; Philox is the only algorithm.
        """
        return cls.from_state([int(key), int(counter)], alg)

    @property
    def key(self) -> Tensor:
        """Key, an int64 tensor."""
        return self.state.read()[0]

    @property
    def algorithm(self) -> int:
        """TensorFlow's number of the Philox algorithm, 1."""
        return 1

    def reset(self, state: TensorLike) -> None:
        """Continue from the ``state`` of a generator.

        Args:
            state: Two integers, key and counter.
        """
        state = convert_to_tensor(state, dtype_hint="int64")
        if has_value(state):
            self.state.assign(np.array(devices.to_numpy(state.array)))
        else:
            self.state.assign(cast(state, dtypes.int64))

    def reset_from_seed(self, seed: IntLike) -> None:
        """Return to the start of the stream of ``seed``.

        Args:
            seed: Integer seed.
        """
        self.reset([key_of_seed("reset_from_seed", seed), 0])

    def reset_from_key_counter(self, key: IntLike, counter: IntLike) -> None:
        """Set the key and the counter.

        Args:
            key: Integer key of the stream.
            counter: Number of the next draw.
        """
        self.reset([int(key), int(counter)])

    def skip(self, delta: IntLike) -> Tensor:
        """Advance the counter as if ``delta`` draws had been made; return the new state.

        Args:
            delta: Number of draws to skip.
        """
        if not has_value(delta):
            self._step(multiply(cast(delta, dtypes.int64), _STEP))
        else:
            self._step(on_the_host([0, int(delta)]))
        return self.state.read()

    def split(self, count: IntLike = 1) -> list[Generator]:
        """Create ``count`` generators with independent streams.

        Args:
            count: Number of generators.

        Returns:
            A list of generators.

        Example:
            >>> len(tw.random.Generator.from_seed(7).split(3))
            3
        """
        keys = random_uniform(
            self._tw_stream().state,
            shape=int(count),
            dtype="int64",
            minval=0,
            maxval=2**63,
        )
        if has_value(keys):
            return [Generator(key) for key in devices.to_numpy(keys.array)]
        return [
            Generator._of(_TracedState(multiply(getitem(keys, i), on_the_host([1, 0]))))
            for i in range(int(count))
        ]

    def make_seeds(self, count: IntLike = 1) -> Tensor:
        """Create seeds for ``stateless`` functions, one per column: int64 ``[2, count]``.

        Args:
            count: Number of seeds.
        """
        state = self._tw_stream().state
        keys = random_seeds(state, on_the_host(0), shape=int(count), dtype="int64")
        return stack([keys, zeros_like(keys)])

    def _tw_stream(self) -> Any:
        """Return the source of one draw, and advance the counter.

        In a replica context the counters of all replicas advance together, and each
        replica draws from a separate stream; the first one's is the stream of a single
        process.
        """
        state, context = self._step(_STEP), replica_context()
        if context is not None and context.replica_id:
            state = add(state, on_the_host([context.replica_id * _REPLICAS, 0]))
        return Stream(state)

    def _step(self, by):
        """Advance the counter and return the state before, distinct for each thread."""
        with self.state._tw_lock:
            state = self.state.read()
            self.state.assign(add(state, by))
        return state

    def normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draw normally distributed numbers.

        Args:
            shape: Shape of the result.
            mean: Mean; it broadcasts with ``shape``.
            stddev: Standard deviation; it broadcasts with ``shape``.
            dtype: Floating dtype of the result.

        Example:
            >>> tw.random.Generator.from_seed(7).normal([2, 3]).shape
            TensorShape([2, 3])
        """
        dtype = checked_floating("normal", dtype)
        return draw_normal(self._tw_stream(), shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draw normally distributed numbers within two ``stddev`` of ``mean``.

        Args:
            shape: Shape of the result.
            mean: Mean; it broadcasts with ``shape``.
            stddev: Standard deviation; it broadcasts with ``shape``.
            dtype: Floating dtype of the result.
        """
        dtype = checked_floating("truncated_normal", dtype)
        return draw_normal(
            self._tw_stream(), shape, mean, stddev, dtype, truncated=True
        )

    def uniform(
        self,
        shape: ShapeLike,
        minval: TensorLike | None = 0,
        maxval: TensorLike | None = None,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draw uniformly distributed numbers from ``minval`` up to, without, ``maxval``.

        Args:
            shape: Shape of the result.
            minval: Lower bound, inclusive; it broadcasts with ``shape``.
            maxval: Upper bound, exclusive, 1 by default for floating dtypes; it
                broadcasts with ``shape``.
            dtype: Floating or integer dtype of the result.

        Example:
            >>> numbers = tw.random.Generator.from_seed(7).uniform([100], 0, 10, "int32")
            >>> bool(((numbers >= 0) & (numbers < 10)).numpy().all())
            True
        """
        minval, maxval, dtype = checked_bounds("uniform", minval, maxval, dtype)
        return draw_uniform(self._tw_stream(), shape, minval, maxval, dtype)

    def uniform_full_int(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = dtypes.uint64,
        name: str | None = None,
    ) -> Tensor:
        """Draw integers uniformly from the full range of the dtype.

        Args:
            shape: Shape of the result.
            dtype: Integer dtype of the result.
        """
        minval, maxval, dtype = checked_bounds("uniform_full_int", None, None, dtype)
        return draw_uniform(self._tw_stream(), shape, minval, maxval, dtype)

    def binomial(
        self,
        shape: ShapeLike,
        counts: TensorLike,
        probs: TensorLike,
        dtype: DTypeLike = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:
        """Draw the number of successes in ``counts`` trials of probability ``probs``.

        Args:
            shape: Shape of the result.
            counts: Number of trials; it broadcasts to ``shape``.
            probs: Probability of success, from 0 to 1; it broadcasts to ``shape``.
            dtype: Dtype of the result.
        """
        return draw_binomial(self._tw_stream(), shape, counts, probs, dtype)


class _TracedState:
    """State of a generator created in a traced function; it ends with the trace."""

    __slots__ = ("_value", "_tw_serial")
    _tw_lock = nullcontext()  # a trace belongs to one thread
    path = "state"

    def __init__(self, value):
        self._value, self._tw_serial = value, next_serial()

    def read(self):
        return self._value

    read_value = __tensor__ = read

    @property
    def value(self):
        return VariableValue(self.read())

    def assign(self, value):
        for interpreter in active_interpreters():
            interpreter.before_assign(self, "assign", value.key)
        self._set(value)
        return self

    def _set(self, value):
        self._value = value


class _LentState(_TracedState):
    """State of the generator that is lent to each call of a traced function."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None)
        self._tw_serial = 0  # the same for each object

    def read(self):
        spec = (2,), np.dtype(np.int64)
        return active_tracer().effect("lent_state", _lent_state, specs=[spec])[0]

    def _set(self, value):
        active_tracer().effect("set_lent_state", _set_lent_state, [value])


def _lent_state():
    return [get_global_generator().state._array.copy()]


def _set_lent_state(state):
    with use_interpreters(()):
        get_global_generator().reset(state)


def on_the_host(numbers):
    """Convert whole numbers to a tensor on the device where draws are made."""
    return new_tensor(np.array(numbers, np.int64))


_STEP = on_the_host([0, 1])
# Between the keys of replicas: larger than seeds of users, and times any number of
# replicas a number of 64 bits.
_REPLICAS = 0x1E3779B97F5


def check_algorithm(who, alg):
    """Raise `InvalidArgumentError` unless ``alg`` names the only algorithm."""
    if alg not in (None, 1, "philox", "auto_select"):
        raise InvalidArgumentError(
            f"{who}: alg must be 'philox' or 'auto_select', got {alg!r}"
        )


def create_rng_state(seed: IntLike, alg: str = "philox") -> Tensor:
    """Create the state of a `Generator` at the start of a stream: int64 ``[2]``.

    Args:
        seed: Integer seed.
        alg: "philox" or "auto_select".

    Raises:
        ValueError: If ``alg`` is neither "philox" nor "auto_select".

    Example:
        >>> tw.random.create_rng_state(7).numpy()
        array([7, 0])
    """
    check_algorithm("create_rng_state", alg)
    key = key_of_seed("create_rng_state", seed)
    return convert_to_tensor(np.array([key, 0], np.int64))


def _any_key():
    return int.from_bytes(os.urandom(8)) % 2**63


_GLOBAL, _MAKING = None, threading.Lock()
_LENT = ContextVar("lent_generator", default=None)
_SEED: int | None = None  # of the latest `set_seed`
# The states of the seeds of single functions: while something holds them, a traced
# function or the table of those that were used last.
_STATES: WeakValueDictionary[int, Variable] = WeakValueDictionary()
_RECENT: OrderedDict[int, Variable] = OrderedDict()
_RECENT_SIZE = 1000


def get_global_generator() -> Generator:
    """Return the global `Generator`, from which random functions draw without a seed."""
    global _GLOBAL
    if (lent := _LENT.get()) is not None:
        return lent() if active_tracer() is None else Generator._of(_LentState())
    if _GLOBAL is None:
        with (
            _MAKING,
            use_interpreters(()),
        ):  # it outlives the trace that asks for it first
            _GLOBAL = _GLOBAL or Generator()
    return _GLOBAL


def is_lent():
    """Return whether another generator replaces the global one here: see `drawing_from`."""
    return _LENT.get() is not None


@contextmanager
def drawing_from(generator):
    """Context in which ``generator()`` replaces the global generator, for this thread."""
    token = _LENT.set(generator)
    try:
        yield
    finally:
        _LENT.reset(token)


def set_global_generator(generator: Generator) -> None:
    """Set the global generator, from which random functions draw without a seed.

    Args:
        generator: A `Generator`.

    Raises:
        TypeError: If ``generator`` is not a `Generator`.
    """
    global _GLOBAL
    if not isinstance(generator, Generator):
        raise TypeError(
            "set_global_generator: generator must be a Generator, got "
            f"{type(generator).__name__}"
        )
    _GLOBAL = generator


def set_seed(seed: IntLike | float | None) -> None:
    """Set the global seed: restart the global stream and the streams of all seeds.

    The same numbers follow after each call with the same seed.

    Args:
        seed: Integer or float seed, or None for a seed from the operating system.

    Raises:
        ValueError: If the seed is invalid.

    Example:
        >>> tw.random.set_seed(1)
        >>> first = tw.random.get_global_generator().normal([2]).numpy()
        >>> tw.random.set_seed(1)
        >>> bool((tw.random.get_global_generator().normal([2]).numpy() == first).all())
        True
    """
    global _SEED
    key = _any_key() if seed is None else key_of_seed("set_seed", seed)
    get_global_generator().reset([key, 0])
    if not is_lent():
        with _MAKING:
            _SEED = None if seed is None else key
            _RECENT.clear()  # a stream that nobody holds starts anew when it is made again
            for own, state in _STATES.items():
                Generator._of(state).reset([_key_of(own), 0])


def key_of_seed(who: str, seed: Any) -> int:
    """Return the key of a seed, an integer or, as in TensorFlow, a float.

    A float may be ``time.time()``.

    Raises:
        ValueError: If the seed is invalid.
    """
    try:
        return operator.index(seed) % 2**63
    except TypeError:
        pass
    if isinstance(seed, (float, np.floating)) and math.isfinite(seed):
        whole = float(seed).is_integer()
        return (int(seed) if whole else hash(float(seed))) % 2**63
    raise InvalidArgumentError(f"{who}: seed must be an integer, got {seed!r}")


def one_stream(seed):
    """Return the source of one draw: the global generator, or the stream of a seed.

    As in TensorFlow the stream of a seed advances from draw to draw, so that a seed
    does not drop the same units in all steps; `set_seed` restarts it, and so do 1000
    other seeds in between. In a function of a `Dataset` it advances from element to
    element, and restarts with each run.
    """
    if seed is None:
        return get_global_generator()._tw_stream()
    own = key_of_seed("random", seed)
    if not is_lent():
        return _generator_of(own)._tw_stream()
    counter = multiply(get_global_generator()._tw_stream().state, _STEP)
    return Stream(add(on_the_host([_key_of(own), 0]), counter))


def _generator_of(seed):
    """Return the generator of a seed, created on first use, outside any trace."""
    with _MAKING:
        state = _STATES.get(seed)
        if state is None:
            with use_interpreters(()):
                state = Generator(_key_of(seed)).state
            state._tw_serial = -abs(
                state._tw_serial
            )  # older than the call that asks for it
            _STATES[seed] = state
        _RECENT[seed] = state
        _RECENT.move_to_end(seed)
        if len(_RECENT) > _RECENT_SIZE:
            _RECENT.popitem(last=False)
    return Generator._of(state)


def _key_of(seed):
    """Return the key of a seed, which depends on the seed of `set_seed`."""
    if _SEED is None:
        return seed
    words = np.random.SeedSequence([_SEED, seed]).generate_state(1, np.uint64)
    return int(words[0]) >> 1


def start_of(seed):
    """Return a generator at the start of a seed's stream: without a variable, for one draw."""
    return Generator._of(_TracedState(on_the_host([key_of_seed("random", seed), 0])))


def stateless_stream(who, seed, alg="auto_select"):
    """Return the source of a draw from a seed of two integers."""
    check_algorithm(who, alg)
    with devices.use_module(np):
        words = convert_to_tensor(seed)
    if tuple(words.shape) != (2,) or not words.dtype.is_integer:
        raise InvalidArgumentError(f"{who}: seed must be two integers, got {seed!r}")
    return Stream(words, NUMBERS)
