"""Iteration of ``for`` in a trace: rows of tensors, ranges, and data sets.

`Rows` has a known number of steps, or a size of the trace: the loop is a scan. `Steps`
has a state and a test.
"""

import builtins
import functools

from tapewright.core.dtypes import as_dtype
from tapewright.core.interpreters import active_tracer, converted
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import convert_to_tensor, is_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as tensor_range
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import stack
from tapewright.ops.math.comparison import less
from tapewright.ops.math.elementwise import ceil, floordiv, maximum, sign
from tapewright.ops.math.reduction import reduce_all

from ..control_flow.tensor_array import TensorArray
from .conditions import is_traced


def iterable(function):
    """Return the function whose call returns the iterable of a loop.

    ``range`` of a traced tensor becomes `Steps`, not a tensor of all its numbers.
    """
    if active_tracer() is None:
        return function
    known = [new for old, new in _ITERABLES if old is function]
    return known[0] if known else converted(function)


class Rows:
    """The rows of tensors, one after the other.

    ``length`` is their number, an int or a size of the trace. ``item(rows)`` is the
    item of a step, computed from the rows of ``tensors``.
    """

    def __init__(self, tensors, length, item):
        self.tensors, self.length, self.item = tensors, length, item

    @property
    def is_static(self):
        return not is_symbolic(self.length)

    def __iter__(self):
        for i in builtins.range(self.length):
            yield self.row(i)

    def row(self, i):
        """Return the item of step ``i``."""
        return self.item([gather(x, i) for x in self.tensors])

    def after(self, count):
        """Return the rows after the first ``count``."""
        return Rows([x[count:] for x in self.tensors], self.length - count, self.item)

    def as_steps(self):
        """Return the same with a counter and a test."""
        count = self.tensors[0].shape[0] if self.tensors else self.length
        return _counted(convert_to_tensor(count, dtype="int32"), self.row)


class Steps:
    """Steps with a state, a nest of tensors.

    ``goes_on(state)`` returns whether there is another step; ``item(state)`` its item;
    ``advance(state)`` the next state. ``count`` is the number of steps, a tensor, or
    None. If ``takes`` is True, `advance` consumes an element, so a loop that ends early
    must not call it.
    """

    def __init__(self, state, goes_on, item, advance, count=None, takes=False):
        self.state, self.goes_on, self.item = state, goes_on, item
        self.advance, self.count, self.takes = advance, count, takes


def _counted(count, item):
    """Return steps by number: ``item(i)`` for ``i`` below ``count``, a tensor."""
    start = convert_to_tensor(0, dtype=count.dtype)
    return Steps(start, lambda i: less(i, count), item, lambda i: i + 1, count)


def as_iteration(x):
    """Return `Rows` or `Steps` for the iterable of a loop; None if Python iterates."""
    if isinstance(x, (Rows, Steps)):
        return x
    if is_tensor(x):
        x = convert_to_tensor(x)
        if x.ndim is None or not x.ndim:
            return None  # Python raises
        return Rows([x], x.array.shape[0], lambda rows: rows[0])
    if isinstance(x, TensorArray):
        return as_iteration(x.stack())
    steps = getattr(type(x), "_tw_traced_steps", None)
    return None if steps is None else steps(x)


def _range(function, *args, **options):
    """Return a range; `Steps` if a limit is known only in the call."""
    given = dict(zip(("start", "limit", "delta"), args)) | options
    if not any([is_traced(x) for x in given.values()]):
        return function(*args, **options)
    if given.get("limit") is None:
        given["limit"], given["start"] = given["start"], 0
    parts = [given.get("start"), given["limit"], given.get("delta", 1)]
    dtype = given.get("dtype")
    hint = (
        next(x.dtype for x in parts if is_tensor(x))
        if dtype is None
        else as_dtype(dtype)
    )
    start, limit, delta = [convert_to_tensor(x, dtype_hint=hint) for x in parts]
    if hint.is_floating:
        count = cast(ceil((limit - start) / delta), "int32")
    else:
        count = floordiv(limit - start + delta - sign(delta), delta)
    return _counted(maximum(count, 0), lambda i: start + cast(i, hint) * delta)


def _enumerate(sequence, start=0):
    iteration = as_iteration(sequence)
    if type(iteration) is Rows and (iteration.is_static or not iteration.tensors):
        numbers = tensor_range(start, start + iteration.length)
        return Rows(
            [numbers, *iteration.tensors], iteration.length,
            lambda rows: (rows[0], iteration.item(rows[1:])),
        )  # fmt: skip
    if type(iteration) is Rows:
        iteration = iteration.as_steps()
    if type(iteration) is not Steps:
        return enumerate(sequence, start)
    first = convert_to_tensor(start, dtype="int32")
    return Steps(
        (first, iteration.state),
        lambda state: iteration.goes_on(state[1]),
        lambda state: (state[0], iteration.item(state[1])),
        lambda state: (state[0] + 1, iteration.advance(state[1])),
        iteration.count,
        iteration.takes,
    )


def _zip(*sequences, strict=False):
    iterations = [as_iteration(x) for x in sequences]
    if not iterations or None in iterations or strict:
        return zip(*[_listed(x) for x in sequences], strict=strict)
    if all([type(x) is Rows and x.is_static for x in iterations]):
        length = min([x.length for x in iterations])
        sizes = [len(x.tensors) for x in iterations]
        starts = [sum(sizes[:i]) for i in builtins.range(len(iterations))]

        def item(rows):
            parts = zip(iterations, starts, sizes, strict=True)
            return tuple([x.item(rows[i : i + n]) for x, i, n in parts])

        return Rows([t[:length] for x in iterations for t in x.tensors], length, item)
    iterations = [x.as_steps() if type(x) is Rows else x for x in iterations]

    def each(name):
        def call(states):
            pairs = zip(iterations, states, strict=True)
            return tuple([getattr(x, name)(state) for x, state in pairs])

        return call

    return Steps(
        tuple([x.state for x in iterations]),
        lambda states: reduce_all(stack(list(each("goes_on")(states)))),
        each("item"),
        each("advance"),
        takes=any([x.takes for x in iterations]),
    )


def _listed(x):
    return x if not isinstance(x, (Rows, Steps)) else list(x)


_ITERABLES = (
    (tensor_range, functools.partial(_range, tensor_range)),
    (builtins.range, functools.partial(_range, builtins.range)),
    (builtins.enumerate, _enumerate),
    (builtins.zip, _zip),
)
