"""Loops that depend on data: `while_loop`, `map_fn`, `scan`, `foldl`, `foldr`.

Outside of traced functions they are loops of Python. Inside, a few steps are written down
one after the other where their number is known; else a `Loop` node repeats one body.
"""

from ..dimension import is_size
from ..dtypes import as_dtype
from ..errors import ShapeError, TracingError
from ..nest import assert_same_structure, flatten, map_structure, pack
from ..ops.comparison import logical_and
from ..ops.conversion import stop_gradient
from ..ops.creation import zeros
from ..ops.indexing import getitem
from ..ops.joining import concat, stack
from ..ops.shape import expand_dims
from ..readers import active_readers, active_tracer, reading
from ..tensor import Tensor, TensorSpec, convert_to_tensor
from .conditions import described
from .ir import Graph
from .loops import loop
from .parts import is_seen, spec_of, trace_part
from .structures import put_together, take_apart
from .tracing import Tracer

__all__ = ["foldl", "foldr", "map_fn", "scan", "while_loop"]

# So many steps are written one after the other, if the condition is known while tracing.
UNROLLED = 16
# So many rows of a map or scan are.
UNROLLED_ROWS = 4


def while_loop(
    cond,
    body,
    loop_vars,
    shape_invariants=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    maximum_iterations=None,
    name=None,
):
    """``loop_vars = body(*loop_vars)`` as long as ``cond(*loop_vars)`` is true.

    Args: ``loop_vars``: a list or tuple of tensors, or nests of them, and of `TensorArray`;
    ``body`` returns the same structure. ``maximum_iterations``: stops after so many steps.
    ``shape_invariants``: a nest like ``loop_vars`` of shapes which the tensors must keep;
    an unknown dimension may change as long as Python runs the loop. ``back_prop=False``
    lets no gradient pass. ``parallel_iterations`` and ``swap_memory`` have no meaning here.

    In a traced function with a condition that is traced, the loop is one node; shapes and
    dtypes then stay what they are. Its gradient needs the state before each step, and
    computes the step again.

    Returns: the last values, in the structure of ``loop_vars``.

    Raises: ``ValueError`` if structure or shapes change, ``TypeError`` if dtypes do.

    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [0, 1.0])[1].numpy()
    np.float32(8.0)
    """
    for argument, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError(
                f"while_loop: {argument} must be callable, got {type(function).__name__}"
            )
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError(
            "while_loop: loop_vars must be a list or tuple of at least one value, got "
            f"{loop_vars!r}"
        )
    steps = _While(cond, body, loop_vars, shape_invariants)
    if maximum_iterations is not None and is_seen([maximum_iterations]):
        found = _bounded(steps, convert_to_tensor(maximum_iterations))
    else:
        limit = None if maximum_iterations is None else int(maximum_iterations)
        found = steps.run(limit)
    return found if back_prop else map_structure(_without_gradient, found)


def _without_gradient(x):
    return x if hasattr(x, "components") else stop_gradient(x)


def _bounded(steps, maximum):
    """The loop with a counter beside its variables, for a bound that is traced."""

    def cond(i, rest):
        return logical_and(i < maximum, steps.cond(*rest))

    def body(i, rest):
        return i + 1, steps.step(rest)

    start = convert_to_tensor(0, dtype=maximum.dtype)
    counted = _While(cond, body, (start, steps.initial), None)
    return counted.run(None)[1]


class _While:
    """One call of `while_loop`."""

    def __init__(self, cond, body, loop_vars, invariants):
        self.cond, self.body = cond, body
        self.initial = _as_tensors(loop_vars)
        self.shapes = None
        if invariants is not None:
            leaves = flatten(invariants)
            if len(leaves) != len(flatten(self.initial)):
                raise ValueError(
                    "while_loop: shape_invariants must have the structure of loop_vars"
                )
            self.shapes = [getattr(s, "shape", s) for s in leaves]

    def run(self, limit):
        """The last values, after ``limit`` steps at most."""
        now, steps = self.initial, 0
        traced = active_tracer() is not None
        while limit is None or steps < limit:
            go = self.cond(*now)
            if traced and (is_seen([go]) or steps >= UNROLLED):
                if is_seen([go]) or is_seen(take_apart(now)):
                    return self.written(now, None if limit is None else limit - steps)
            if not go:
                break
            now = self.step(now)
            steps += 1
        return now

    def step(self, now):
        """The values after a further step."""
        result = self.body(*now)
        if type(result) in (list, tuple) and len(result) == len(now):
            for x, y in zip(result, now):  # the common case is the quick one
                if type(x) is not Tensor or type(y) is not Tensor:
                    break
            else:
                return result
        if len(now) == 1 and not isinstance(result, (list, tuple)):
            result = [result]
        if type(result) is not type(now) and isinstance(result, (list, tuple)):
            result = pack(now, result) if len(result) == len(now) else result
        try:
            assert_same_structure(now, result)
        except ValueError:
            raise ValueError(
                "while_loop: body must return the structure of loop_vars, got\n"
                f"  loop_vars: {now!r}\n  body: {result!r}"
            ) from None
        return _as_tensors(result, now)

    def written(self, now, limit):
        """The last values, of a `Loop` node."""
        now = self._with_known_elements(now)
        carried = take_apart(now)

        def test(leaves):
            go = convert_to_tensor(self.cond(*put_together(now, leaves)))
            if go.shape.num_elements() != 1:
                raise ValueError(
                    f"while_loop: cond must return one value, got shape {go.shape}"
                )
            return go

        def body(leaves, slices, constants):
            result = take_apart(self.step(put_together(now, leaves)))
            self._check(leaves, result)
            return result, [], []

        last, *_ = loop(
            "while_loop", body, carried, test=test, maximum=limit, capacity=limit
        )
        return put_together(now, last)

    def _with_known_elements(self, now):
        """What the body writes into a `TensorArray` says which shape its elements have."""
        if all(x is not None for x in take_apart(now)):
            return now
        specs = [spec_of(x) for x in take_apart(now) if x is not None]

        def probe(*leaves):
            leaves = iter(leaves)
            own = [x if x is None else next(leaves) for x in take_apart(now)]
            return self.step(put_together(now, own))

        result = trace_part("while_loop", probe, specs, active_readers()).results
        return map_structure(
            lambda x, y: x.of_elements(y) if hasattr(x, "components") else x,
            now,
            result,
        )

    def _check(self, before, after):
        for i, (x, y) in enumerate(zip(before, after)):
            if x.array.dtype != y.array.dtype:
                raise TypeError(
                    f"while_loop: loop variable {i} enters the loop with dtype "
                    f"{x.dtype.name}, but has {y.dtype.name} after one step: cast it"
                )
            if tuple(x.shape) == tuple(y.shape):
                continue
            if self.shapes is not None:
                raise TracingError(
                    f"while_loop: loop variable {i} has {described(x)} and then "
                    f"{described(y)}. Shapes may change in a traced function only while "
                    "Python knows the condition: make it of numbers that are not traced"
                )
            raise ValueError(
                f"while_loop: loop variable {i} enters the loop with shape {x.shape}, but "
                f"has shape {y.shape} after one step: a loop keeps its shapes"
            )


def _as_tensors(structure, like=None):
    """The nest with tensors as leaves; numbers follow the dtype of what they replace."""
    leaves = flatten(structure)
    hints = [None] * len(leaves) if like is None else flatten(like)
    found = [
        x
        if hasattr(x, "components")
        else convert_to_tensor(x, dtype_hint=getattr(hint, "dtype", None))
        for x, hint in zip(leaves, hints)
    ]
    return pack(structure, found)


# -------------------------------------------------------------------- along an axis


def map_fn(
    fn,
    elems,
    dtype=None,
    parallel_iterations=None,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    name=None,
    fn_output_signature=None,
):
    """``fn`` of each row along the first axis, one after the other; the results stacked.

    Args: ``elems``: a tensor or a nest of them, with one size of the first axis; ``fn``
    takes a row in the same structure, and may return another. ``fn_output_signature``
    (or ``dtype``): dtypes or `TensorSpec`, in the structure of the result, which is then
    held to it. The others have no meaning here, or as in `while_loop`.

    `vectorized_map` makes one call of each op for all rows, which is faster.

    Raises: ``ValueError`` if the first axes do not fit, ``TypeError`` if a result does not.

    >>> map_fn(lambda x: x * x, convert_to_tensor([1, 2, 3])).numpy()
    array([1, 4, 9], dtype=int32)
    """
    rows = _Rows("map_fn", elems)
    signature = dtype if fn_output_signature is None else fn_output_signature
    structure = []

    def step(state, row):
        result = fn(row)
        structure[:] = [result]
        return [], _typed(result, signature)

    _, stacks = rows.run(step, [], reverse=False, stacked=True)
    found = put_together(structure[0], stacks)
    return found if back_prop else map_structure(stop_gradient, found)


def _typed(result, signature):
    """The leaves as tensors of the dtypes of a signature."""
    leaves = take_apart(result)
    if signature is None:
        return [convert_to_tensor(x) for x in leaves]
    wanted = flatten(signature)
    if len(wanted) != len(leaves):
        raise ValueError(
            f"map_fn: fn_output_signature has {len(wanted)} entries, but fn returns "
            f"{len(leaves)} tensors"
        )
    found = []
    for x, spec in zip(leaves, wanted):
        kind = spec.dtype if isinstance(spec, TensorSpec) else as_dtype(spec)
        x = convert_to_tensor(x, dtype=kind)
        if isinstance(spec, TensorSpec) and not spec.shape.is_compatible_with(x.shape):
            raise ShapeError("map_fn", f"fn must return shape {spec.shape}", result=x)
        found.append(x)
    return found


def scan(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    reverse=False,
    name=None,
):
    """All values of ``a = fn(a, row)`` along the first axis of ``elems``, stacked.

    ``a`` starts as ``initializer``; without one as the first row, which then is the first
    of the results. ``reverse`` starts at the end, where the first result then stands. Other
    arguments as in `map_fn`.

    >>> scan(lambda a, x: a + x, convert_to_tensor([1, 2, 3])).numpy()
    array([1, 3, 6], dtype=int32)
    """
    _, stacks, like = _accumulated("scan", fn, elems, initializer, reverse, True)
    found = put_together(like, stacks)
    return found if back_prop else map_structure(stop_gradient, found)


def foldl(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    name=None,
):
    """The last value of ``a = fn(a, row)`` along the first axis of ``elems``; see `scan`.

    >>> foldl(lambda a, x: a * 10 + x, convert_to_tensor([1, 2, 3])).numpy()
    np.int32(123)
    """
    last, _, like = _accumulated("foldl", fn, elems, initializer, False, False)
    found = put_together(like, last)
    return found if back_prop else map_structure(stop_gradient, found)


def foldr(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    name=None,
):
    """As `foldl`, from the last row to the first.

    >>> foldr(lambda a, x: a * 10 + x, convert_to_tensor([1, 2, 3])).numpy()
    np.int32(321)
    """
    last, _, like = _accumulated("foldr", fn, elems, initializer, True, False)
    found = put_together(like, last)
    return found if back_prop else map_structure(stop_gradient, found)


def _accumulated(who, fn, elems, initializer, reverse, stacked):
    """The last state, the stacks of all states, and the structure of a state."""
    rows = _Rows(who, elems)
    first = None
    if initializer is None:
        if not rows.count:
            raise ValueError(
                f"{who}: elems has no row to start with: give an initializer"
            )
        first = rows.take_end(reverse)
        initializer = first
    like = _as_tensors([initializer])[0]

    def step(state, row):
        result = fn(put_together(like, state), row)
        try:
            assert_same_structure([like], [result])
        except ValueError:
            raise ValueError(
                f"{who}: fn must return the structure of the initializer, got\n"
                f"  initializer: {like!r}\n  fn: {result!r}"
            ) from None
        state = [
            convert_to_tensor(x, dtype_hint=old.dtype)
            for x, old in zip(take_apart(result), state)
        ]
        return state, state if stacked else []

    last, stacks = rows.run(step, take_apart(like), reverse, stacked)
    if stacked and first is not None:
        stacks = [_joined(x, y, reverse) for x, y in zip(take_apart(first), stacks)]
    return last, stacks, like


def _joined(first, rows, reverse):
    first = expand_dims(first, 0)
    return concat([rows, first] if reverse else [first, rows], 0)


class _Rows:
    """The rows of ``elems``, and what is done with one after the other."""

    def __init__(self, who, elems):
        self.who = who
        self.structure = _as_tensors([elems])[0]
        self.tensors = flatten(self.structure)
        if not self.tensors:
            raise ValueError(f"{who}: elems must hold at least one tensor")
        for i, x in enumerate(self.tensors):
            if not x.ndim:
                raise ShapeError(who, "elems must have a first axis to go along",
                                 **{f"elems_{i}": x})  # fmt: skip
        self.count = self.tensors[0].array.shape[0]
        if any(x.array.shape[0] != self.count for x in self.tensors):
            given = {f"elems_{i}": x for i, x in enumerate(self.tensors)}
            raise ShapeError(who, "elems must have one size of the first axis", **given)

    def take_end(self, reverse):
        """Takes the row at which one starts away; in the structure of ``elems``."""
        at, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
        row = [getitem(x, at) for x in self.tensors]
        self.tensors = [getitem(x, rest) for x in self.tensors]
        self.count = self.count - 1
        return put_together(self.structure, row)

    def run(self, step, state, reverse, stacked):
        """The last state, and what ``step(state, row)`` gave beside it, stacked."""
        many = is_size(self.count) or self.count > UNROLLED_ROWS
        if many and is_seen([*self.tensors, *state]):
            return self.written(step, state, reverse)
        numbers = range(self.count)
        rows = {}
        for i in reversed(numbers) if reverse else numbers:
            row = [getitem(x, i) for x in self.tensors]
            state, rows[i] = step(state, put_together(self.structure, row))
        if not rows:
            return state, self.nothing(step, state) if stacked else []
        columns = zip(*[rows[i] for i in numbers])
        return state, [stack(list(column)) for column in columns]

    def nothing(self, step, state):
        """Stacks of no rows: their shapes and dtypes are those of a trace."""
        tracer = Tracer(Graph(self.who))
        with reading((tracer,)):
            row = [tracer.input(x.array.shape[1:], x.array.dtype) for x in self.tensors]
            _, rows = step(state, put_together(self.structure, row))
        return [zeros((0, *x.array.shape), x.array.dtype) for x in rows]

    def written(self, step, state, reverse):
        """The same, of a `Loop` node."""

        def body(state, rows, constants):
            after, stacks = step(state, put_together(self.structure, rows))
            for i, (x, y) in enumerate(zip(state, after)):
                if spec_of(x) != spec_of(y):
                    raise TypeError(
                        f"{self.who}: fn must keep shapes and dtypes; in place {i} it is "
                        f"given {described(x)} and returns {described(y)}"
                    )
            return after, [], stacks

        last, _, _, stacks = loop(
            self.who, body, state, self.tensors, length=self.count, reverse=reverse
        )
        return last, stacks
