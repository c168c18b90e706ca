"""The arithmetic of a step: made at once, or noted for a commit to make.

A rule changes arrays by ufuncs of a module ``xp`` with ``out=``. In place of NumPy it may
get a `Recorder`, and in place of arrays `Recorded` ones, which have no values to look at.
"""

import operator
from functools import partial

import numpy as np

from tapewright.core import blas

__all__ = ["NotRecordable", "Recorded", "Recorder", "Runner"]


class NotRecordable(Exception):
    """A rule does something else than to call ufuncs with ``out=``."""


class Runner:
    """Makes each call at once."""

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
            raise RuntimeError("the machine code of an update refuses its arrays")


class Recorder:
    """Notes calls in the list ``writes``: functions in C without arguments.

    As a module, `xp`, it has the ufuncs of NumPy.
    """

    def __init__(self, writes):
        self.writes, self.kept = writes, []

    @property
    def xp(self):
        """The module that a rule gets."""
        return self

    def __getattr__(self, name):
        ufunc = getattr(np, name, None)
        if type(ufunc) is not np.ufunc:
            raise NotRecordable(f"xp.{name} is no ufunc")

        def note(self, *args, out):
            args = [x.array if type(x) is Recorded else x for x in args]
            self.writes.append(partial(ufunc, *args, out=out.array))
            return out

        setattr(Recorder, name, note)  # the next use finds it
        return partial(note, self)

    def axpby(self, alpha, x, beta, y):
        """Note `blas.axpby`."""
        self.kept.append(x.array)  # the call knows its address alone
        self.writes.append(blas.bound_axpby(alpha, x.array, beta, y.array))

    wrapped = staticmethod(lambda array: Recorded(array))
    array_of = staticmethod(operator.attrgetter("array"))

    def call(self, function, *args):
        self.writes.append(partial(function, *args))

    compute = call


class Recorded:
    """Wrapper of an array whose values are not computed yet."""

    __slots__ = ("array", "dtype", "shape", "size")
    __array_ufunc__ = None  # for NumPy, which leaves operators to this class

    def __init__(self, array):
        self.array = array
        self.dtype, self.shape, self.size = array.dtype, array.shape, array.size

    def __getattr__(self, name):
        raise NotRecordable(f"the values of an array are not there yet for {name}")


def _refuse(self, *args):
    raise NotRecordable("the values of an array are not there yet")


for _name in (
    "abs add and array bool complex delitem eq float floordiv ge getitem gt iadd iand "
    "ifloordiv imatmul imod imul index int invert ior ipow isub iter itruediv ixor le len "
    "lt matmul mod mul ne neg or pos pow radd rand rfloordiv rmatmul rmod rmul ror rpow "
    "rsub rtruediv rxor setitem sub truediv xor"
).split():  # Python looks for these on the class
    setattr(Recorded, f"__{_name}__", _refuse)
