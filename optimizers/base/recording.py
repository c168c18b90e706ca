"""The arithmetic of a step: executed at once, or recorded for a commit.

A rule changes arrays by ufuncs of a module ``xp`` with ``out=``. Instead of NumPy it
may receive a `Recorder`, instead of arrays `Recorded` arrays without values, and
instead of the optimizer `ReadSettings`.
"""

import inspect
import operator
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from tapewright.compiler.program.lowering.array_functions import NotTraceable
from tapewright.core.dtypes import DType
from tapewright.core.hardware import blas
from tapewright.core.variable import Variable

# Values that cannot change in place, so that a comparison finds that another was set.
CONSTANTS = (
    *(type(None), bool, int, float, complex, str, bytes),
    *(np.generic, np.dtype, np.ufunc, DType),
)


class NotRecordable(NotTraceable):
    """Raised if a rule does anything but call ufuncs with ``out=``."""


class ReadSettings:
    """Proxy of an optimizer that records in ``values`` the settings that are read.

    Methods of the optimizer receive it as ``self``, `super` included.
    """

    def __init__(self, optimizer, values):
        vars(self).update(_tw_optimizer=optimizer, _tw_values=values)

    @property
    def __class__(self):
        return type(self._tw_optimizer)

    def __getattr__(self, name):
        optimizer = self._tw_optimizer
        method = inspect.getattr_static(type(optimizer), name, None)
        own = getattr(optimizer, "__dict__", ())  # a constraint may have slots instead
        if inspect.isfunction(method) and name not in own:
            return partial(method, self)
        value = getattr(optimizer, name)
        if not isinstance(method, staticmethod) and not self._tw_is_known(name, value):
            if isinstance(method, property):
                return method.fget(self)
            raise NotRecordable(f"{name} may change")
        value = self._tw_values[name] = self._tw_fixed(name, value)
        return value

    @staticmethod
    def _tw_is_known(name, value):
        """Return whether a value, once fixed, cannot change unnoticed."""
        return _is_constant(value)

    @staticmethod
    def _tw_fixed(name, value):
        """Return the value for the rule, and to compare with later ones."""
        return value

    def __setattr__(self, name, value):
        raise NotRecordable(f"{name} is set in each step")


class ReadState(ReadSettings):
    """`ReadSettings` for code in ops, which also reads variables, lists and dicts."""

    @staticmethod
    def _tw_is_known(name, value):
        # Tables under our names stay as they are once the optimizer is built.
        return name.startswith("_tw_") or _is_state(value)

    @staticmethod
    def _tw_fixed(name, value):
        return value if name.startswith("_tw_") else _fixed(value)


def _is_state(value):
    """Return whether a value is a constant or variable, or nested lists and dicts of these."""
    if type(value) in (list, tuple):
        return all(map(_is_state, value))
    if type(value) is dict:
        return all(map(_is_state, value.values()))
    return _is_constant(value) or isinstance(value, Variable)


class _FixedList(list):
    """Copy of a list that code must not change while it is traced."""


class _FixedDict(dict):
    """Copy of a dict that code must not change while it is traced."""


def _fixed(value):
    """Return a copy of nested lists and dicts that raises when it is changed."""
    if type(value) is dict:
        return _FixedDict({key: _fixed(x) for key, x in value.items()})
    if type(value) is tuple:
        return tuple(map(_fixed, value))
    return _FixedList(map(_fixed, value)) if type(value) is list else value


def _refuse_change(self, *args, **options):
    raise NotRecordable("a list or dict is changed in each step")


for _name in (
    "append clear extend insert pop popitem remove reverse setdefault sort update "
    "__delitem__ __iadd__ __imul__ __ior__ __setitem__"
).split():
    for _class in (_FixedList, _FixedDict):
        setattr(_class, _name, _refuse_change)


def all_current(reads):
    """Return whether objects still have their settings: pairs as for `are_current`."""
    return all([are_current(*each) for each in reads])


def are_current(optimizer, values):
    """Return whether an optimizer still has these settings, a dict by name."""
    for name, value in values.items():
        now = getattr(optimizer, name)
        if now is not value and not _is_same(now, value):
            return False
    return True


def _is_same(now, value):
    if isinstance(value, dict):
        same_keys = isinstance(now, dict) and list(now) == list(value)
        return same_keys and _is_same([*now.values()], [*value.values()])
    if isinstance(value, (list, tuple)):
        if not isinstance(now, (list, tuple)) or len(now) != len(value):
            return False
        return all(map(operator.is_, now, value)) or all(map(_is_same, now, value))
    return now is value or (_is_constant(now) and _is_constant(value) and now == value)


def _is_constant(value):
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, CONSTANTS)


class Runner:
    """Executes each call at once."""

    def __init__(self, xp):
        self.xp = xp

    @staticmethod
    def wrapped(array):
        """Wrap an array for a rule."""
        return array

    @staticmethod
    def array_of(x):
        """Unwrap an array."""
        return x

    @staticmethod
    def call(function, *args):
        """Call a function in C, now or later."""
        function(*args)

    def compute(self, compiled, *args):
        """Call the machine code of a rule."""
        if compiled(*args) is not None:
            raise RuntimeError("the machine code of an update rejects its arrays")


class Recorder:
    """Records calls of C functions in the list ``calls``, as ``(function, *arguments)``.

    As a module, `xp`, it has the ufuncs of NumPy.
    """

    def __init__(self):
        self.calls = []

    @property
    def xp(self):
        """The module that a rule receives."""
        return self

    def __getattr__(self, name):
        ufunc = getattr(np, name, None)
        if type(ufunc) is not np.ufunc:
            raise NotRecordable(f"xp.{name} is no ufunc")

        def note(self, *args, out):
            args = [x.array if type(x) is Recorded else x for x in args]
            self.calls.append((partial(ufunc, out=out.array), *args))
            return out

        setattr(Recorder, name, note)  # the next use finds it
        return partial(note, self)

    def axpby(self, numbers, coefficient, x, y):
        """Record `blas.axpby` with ``alpha, beta = numbers(coefficient)``."""
        if type(coefficient) is Recorded:
            coefficient = coefficient.array
        self.calls.append((Axpby(numbers), coefficient, x.array, y.array))

    @staticmethod
    def wrapped(array):
        return Recorded(array)

    array_of = staticmethod(operator.attrgetter("array"))

    def call(self, function, *args):
        self.calls.append((function, *args))

    compute = call


class Axpby(NamedTuple):
    """Call of `blas.axpby`, which takes addresses and numbers: it is bound in each step."""

    numbers: Callable

    def bound(self, coefficient, x, y):
        """Return the call; ``x`` and ``y`` must stay alive until it has run."""
        alpha, beta = self.numbers(coefficient)
        return blas.bound_axpby(alpha, x, beta, y)


def bound(call):
    """Return a recorded call as a C function without arguments."""
    if type(call[0]) is Axpby:
        return call[0].bound(*call[1:])
    return partial(*call)


class Template:
    """Recorded calls; calls that depend on a gradient or a number are bound in each step.

    Args:
        calls: Calls of a `Recorder`.
        gradient: Gradient of the calls, a flat array, if each step has another one.
    """

    def __init__(self, calls, gradient=None):
        self.writes, self.late = [], []
        for k, call in enumerate(calls):
            slices = [(p, _slice_of(x, gradient)) for p, x in enumerate(call)]
            slices = [(p, part) for p, part in slices if part is not None]
            is_late = slices or type(call[0]) is Axpby
            if is_late:
                call = [*call]
                for p, _ in slices:
                    call[p] = None
                self.late.append((k, call, slices))
            self.writes.append(None if is_late else bound(call))

    def bound(self, gradient):
        """Return the calls for a gradient, which must stay alive until they have run."""
        writes = [*self.writes]
        for k, call, slices in self.late:
            call = [*call]
            for p, part in slices:
                call[p] = gradient[part]
            writes[k] = bound(call)
        return writes


def _slice_of(x, gradient):
    """Return the slice of ``gradient`` at which ``x`` lies, or None."""
    if gradient is None or type(x) is not np.ndarray:
        return None
    offset = _address(x) - _address(gradient)
    if not 0 <= offset < gradient.nbytes:
        return None
    start = offset // gradient.itemsize
    return slice(start, start + x.size)


def _address(array):
    return array.__array_interface__["data"][0]


class Recorded:
    """Wrapper of an array whose values are not computed yet."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # for NumPy, which leaves operators to this class
    dtype = property(operator.attrgetter("array.dtype"))
    shape = property(operator.attrgetter("array.shape"))
    size = property(operator.attrgetter("array.size"))

    def __init__(self, array):
        self.array = array

    def __getattr__(self, name):
        raise NotRecordable(f"the values of an array are not computed yet for {name}")


def _refuse(self, *args):
    raise NotRecordable("the values of an array are not computed yet")


for _name in (
    "abs add and array bool complex delitem eq float floordiv ge getitem gt iadd iand "
    "ifloordiv imatmul imod imul index int invert ior ipow isub iter itruediv ixor le len "
    "lt matmul mod mul ne neg or pos pow radd rand rfloordiv rmatmul rmod rmul ror rpow "
    "rsub rtruediv rxor setitem sub truediv xor"
).split():  # Python looks for these on the class
    setattr(Recorded, f"__{_name}__", _refuse)
