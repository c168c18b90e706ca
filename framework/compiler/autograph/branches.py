"""`if` on a traced condition: both branches are traced, and each replay runs one."""

from tapewright.core.errors import TracingError
from tapewright.core.messages.source_lines import user_line
from tapewright.core.nest import is_nested, pack
from tapewright.core.tensor import Tensor, convert_to_tensor

from ..control_flow.cond_node import branch
from ..control_flow.regions import describe_tensor
from ..control_flow.tensor_array import TensorArray, with_common_elements
from ..tracing.graph import spec_of
from ..tracing.tracer import fall_back
from .conditions import (
    ControlFlowError,
    is_traced,
    note_conditional,
    scalar_condition,
)
from .jumps import RETURN_VALUE
from .state import UNDEFINED, State, title_of
from .values import is_same, leaves_of, same_nesting, shown, tensors_of, with_tensors

VALUE = "the value"
SIDES = "if the condition is true", "if it is false"


def if_stmt(test, body, orelse, names, needed, attributes, reachable):
    """Run one of two functions; trace both if the test is a tensor of the trace.

    ``names``: the variables to keep, of which ``needed`` are read afterwards for sure;
    ``attributes`` and ``reachable``: see `State`.
    """
    if not is_traced(test):
        return body() if test else orelse()
    state = State((body, orelse), names, attributes, reachable)
    _trace_both(test, body, orelse, state, needed)


def choose(test, true_fn, false_fn, functions=(), reachable=()):
    """Return the value of one of two functions, for conditional expressions, and/or.

    ``functions`` belong to the expression and may change what is ``reachable``: see
    `State`.
    """
    state = State(functions, (), (), reachable)
    return _trace_both(test, true_fn, false_fn, state)


def _trace_both(test, true_fn, false_fn, state, needed=()):
    """Trace two functions as branches; update the state and return the value."""
    before, line = state.snapshot(), user_line(always=True)
    merge = _Merge(needed, before[0])

    def side(function):
        def run():
            state.restore(before)
            try:
                value = function()
            except TracingError:
                raise
            except Exception as error:
                note_conditional(
                    error, line,
                    "both branches of this if are traced, since its condition is a "
                    "tensor: no exception can depend on it",
                )  # fmt: skip
                raise
            values = state.values()
            for name, (old, new) in state.changes(before[2], state.contents()).items():
                merge.before[name], values[name] = old, _as_value(new)
            return {name: _Value(x) for name, x in {VALUE: value, **values}.items()}

        return run

    sides = [side(true_fn), side(false_fn)]
    try:
        outputs = branch("if", scalar_condition(test, "if"), sides, check=merge.rows)
    finally:
        state.restore(before)
    values = merge.results(outputs)
    value = values.pop(VALUE)
    for name, x in values.items():
        state.set(name, x)
    return value


def _as_value(content):
    return tuple(content) if isinstance(content, set) else content


class _Value:
    """A value at the end of a branch; arrays are converted to tensors while it is traced."""

    def __init__(self, value):
        self.value = value
        self.leaves = []  # (leaf, its tensors or None)
        for leaf in [] if value is UNDEFINED else leaves_of(value):
            read = getattr(type(leaf), "__tensor__", None)  # of a variable, as of now
            tensors = tensors_of(leaf) if read is None else [read(leaf)]
            self.leaves.append((leaf, tensors))


class _Merge:
    """Merge the values of two branches to one value for each variable."""

    def __init__(self, needed, before):
        self.needed = needed
        self.before = dict(before)
        self.plans = {}  # name -> value, and the slices of its outputs: `with_tensors`

    def rows(self, sides):
        """Return the tensors of both branches, in the same order."""
        names = list(dict.fromkeys([*sides[0], *sides[1]]))
        rows = [], []
        for name in names:
            pair = [
                side.get(name) or _Value(_as_value(self.before[name])) for side in sides
            ]
            self.plans[name] = self.merged(name, *pair, rows)
        return rows

    def merged(self, name, a, b, rows):
        """Append the tensors of a variable to both rows; return how to reassemble it."""
        if a.value is b.value:
            return a.value, None
        if a.value is UNDEFINED or b.value is UNDEFINED:
            return self.one_sided(name, a, b, rows)
        if not same_nesting(a.value, b.value) or len(a.leaves) != len(b.leaves):
            self.refuse(name, a, b)
        leaves, slices = [], []
        for (x, tensors), (y, others) in zip(a.leaves, b.leaves, strict=True):
            if isinstance(x, TensorArray) and isinstance(y, TensorArray) and x is not y:
                pair = x._tw_with_components(tensors), y._tw_with_components(others)
                x, y = with_common_elements("if", pair)
                tensors, others = x._tw_components(), y._tw_components()
            leaves.append(x)
            if is_same(x, y):
                slices.append(None)
                continue
            if tensors is None or others is None or len(tensors) != len(others):
                self.refuse(name, a, b)
            start = len(rows[0])
            for pair in zip(tensors, others, strict=True):
                for row, t in zip(rows, self.alike(name, pair), strict=True):
                    row.append(t)
            slices.append(slice(start, len(rows[0])))
        value = pack(a.value, leaves) if is_nested(a.value) else leaves[0]
        return value, slices

    def one_sided(self, name, a, b, rows):
        """Reject a variable of one branch, unless nothing surely reads it."""
        there, at = (b, 1) if a.value is UNDEFINED else (a, 0)
        if name == RETURN_VALUE:  # a flag tells whether it is one
            slices = []
            for _, tensors in there.leaves:
                start = len(rows[0])
                for t in tensors or ():
                    rows[at].append(convert_to_tensor(t))
                    rows[1 - at].append(None)
                slices.append(None if tensors is None else slice(start, len(rows[0])))
            return there.value, slices
        if name in self.needed:
            raise ControlFlowError(
                f"{user_line(always=True)}: {title_of(name)} is set only {SIDES[at]}, but "
                "used afterwards: give it a value before the if, or in both branches"
            )
        return UNDEFINED, None

    def alike(self, name, pair):
        """Convert a pair to tensors of equal dtype and shape; None for both stays None."""
        if all([x is None for x in pair]):
            return pair
        hint = next((x.dtype for x in pair if isinstance(x, Tensor)), None)
        x, y = [convert_to_tensor(x, dtype_hint=hint) for x in pair]
        if x.dtype.dtype != y.dtype.dtype:
            raise ControlFlowError(
                f"{user_line(always=True)}: {title_of(name)} has dtype {x.dtype.name} "
                f"{SIDES[0]} and {y.dtype.name} {SIDES[1]}: cast one of them"
            )
        if spec_of(x) != spec_of(y):
            fall_back(
                f"{title_of(name)} has {describe_tensor(x)} {SIDES[0]} and "
                f"{describe_tensor(y)} {SIDES[1]}: its shape is not known before the if runs"
            )
        return x, y

    def refuse(self, name, a, b):
        raise ControlFlowError(
            f"{user_line(always=True)}: {title_of(name)} is {shown(a.value)} {SIDES[0]} and "
            f"{shown(b.value)} {SIDES[1]}: only tensors, numbers and nests of them can "
            "depend on a tensor. " + _way_out(name, a.value, b.value)
        )

    def results(self, outputs):
        """Return the values of the variables after the `if`."""
        return {
            name: value if slices is None else with_tensors(value, slices, outputs)
            for name, (value, slices) in self.plans.items()
        }


def _way_out(name, a, b):
    if name == RETURN_VALUE:
        return "Return a value of the same structure on all paths through the function"
    if a is None or b is None:
        return "Initialize it with a tensor instead of None"
    if isinstance(a, (list, dict, tuple, set)) and type(a) is type(b):
        return "Give it the same number of elements in both branches"
    return "Select it with tw.where or tw.cond, or use a Python number as the condition"
