"""`TracedLoop`: a Python loop as one `LoopNode` node, whose state is the loop's variables.

Numbers become tensors; other Python objects stay as they are and must not change. A
body is traced again if its first trace shows that the state must start differently: a
number that becomes a float, a variable that only the body sets, a list that it
modifies.
"""

from contextvars import ContextVar

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import DTypeError, TracingError
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.source_lines import line_of_error, user_line
from tapewright.core.nest import flatten, is_nested, pack
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.joining import unstack

from ..control_flow.loop_node import LoopTrace
from ..control_flow.printing import assert_true
from ..control_flow.regions import any_traced, describe_tensor
from ..control_flow.tensor_array import TensorArray, check_form, with_common_elements
from ..control_flow.while_loop import MANY, known_length
from ..tracing.graph import spec_of
from ..tracing.handles import zeros_of
from ..tracing.tracer import EagerFallback, fall_back
from .conditions import ControlFlowError, note_conditional, scalar_condition
from .expressions import and_, if_exp
from .iteration import Rows, Steps
from .jumps import RETURN_VALUE
from .state import UNDEFINED, title_of
from .values import (
    is_number,
    is_same,
    leaves_of,
    same_nesting,
    shown,
    tensors_of,
    with_tensors,
)

_OPTIONS = ContextVar("loop_options", default=None)
loop_options = _OPTIONS.get

# A Python number takes the dtype of a tensor whose kind stands behind its own.
KINDS = "biufc"


class _Changed(Exception):  # noqa: N818
    """The state must start differently: trace again."""


class TracedLoop:
    """One loop.

    ``needed`` are the names that the following code reads. ``body`` is a function of an
    item if there is an ``iteration`` (`Rows` or `Steps`), else without arguments.
    ``goes_on`` is a function without arguments, or None; ``is_known`` means that its
    result is known before the trace runs. ``state`` is a `State`.
    """

    def __init__(self, state, needed, body, goes_on, iteration=None, is_known=False):
        self.state, self.needed, self.body = state, needed, body
        self.goes_on, self.iteration, self.is_known = goes_on, iteration, is_known
        self.title = "while" if iteration is None else "for"

    def emit_if_traced(self):
        """Emit the loop; return False if Python has to run its steps.

        This is the case if nothing is traced, or if the body needs values: list
        indices, shapes. A first step by Python helps if variables get their dtypes and
        shapes in it.
        """
        try:
            return self.emit(only_if_traced=True)
        except EagerFallback:
            raise
        except TracingError as error:
            if getattr(error, "is_lasting", False):
                raise
            if type(self.iteration) is not Rows or self.goes_on is not None:
                return False
        if self.iteration.length < 3:
            return False
        before, tracer = self.state.snapshot(), active_tracer()
        mark, rows = tracer.mark(), self.iteration
        try:
            self.body(rows.row(0))
            self.iteration = rows.after(1)
            done = self.emit(only_if_traced=True)
        except EagerFallback:
            raise
        except TracingError as error:
            if getattr(error, "is_lasting", False):
                raise
            done = False
        if not done:
            self.state.restore(before)
            tracer.roll_back(mark)
        return done

    def emit(self, only_if_traced=False):
        """Emit the loop; return False without any effect if nothing of it is traced."""
        self.before = self.state.snapshot()
        values = self.state.values()
        self.entry = {name: x for name, x in values.items() if x is not UNDEFINED}
        self.filled = {}  # name -> the value that a step gives it, set by steps alone
        self.numbers_stay = done = False
        try:
            while True:
                try:
                    done = self._emit(only_if_traced)
                    return done
                except _Changed:
                    for name, value in self.filled.items():
                        self.entry.setdefault(name, _blank(value))
                except DTypeError:
                    # A number has another dtype than what it meets: see which it gets.
                    if self.numbers_stay or not self._has_numbers():
                        raise
                    self.numbers_stay = True
                except NameError as error:
                    if values.get(error.name) is not UNDEFINED:
                        raise
                    raise ControlFlowError(
                        f"{line_of_error(error)}: {title_of(error.name)} is read in the "
                        "loop before a step has set it: give it a value before the loop"
                    ) from None
                except TracingError:
                    raise
                except Exception as error:
                    note_conditional(
                        error, user_line(always=True),
                        "this loop is traced, since it iterates over tensors: no "
                        "exception can depend on them",
                    )  # fmt: skip
                    raise
                self.state.restore(self.before)
        finally:
            if not done:
                self.state.restore(self.before)

    def _emit(self, only_if_traced):
        rows, goes_on, self.grown = self.iteration, self.goes_on, {}
        own = flatten([rows.state], True) if type(rows) is Steps else []
        start = len(own)
        count = rows.count if own and goes_on is None else None
        is_tested = goes_on is not None or (type(rows) is Steps and count is None)
        carried = [*own, *self._carried()]

        def enter(leaves):
            self.state.restore(self.before)
            self._load(leaves[start:])
            return pack([rows.state], leaves[:start], True)[0] if own else None

        def test(leaves):
            position, tests = enter(leaves), []
            if own:
                tests.append(lambda: rows.goes_on(position))
            tests += [] if goes_on is None else [goes_on]
            before = self.state.contents()
            go = and_(tests[0](), *tests[1:])
            for name in self.state.changes(before, self.state.contents()):
                raise ControlFlowError(
                    f"{user_line(always=True)}: the condition of the {self.title} "
                    f"loop changes {title_of(name)}: change it in the body"
                )
            return scalar_condition(go, f"the {self.title} loop")

        def step(leaves, slices, _):
            position, item = enter(leaves), ()
            if rows is not None:
                item = (rows.item(position if own else slices),)
            self.body(*item)
            after = flatten([self._advanced(position)], True) if own else []
            return [*after, *self._results(leaves[start:])], [], self._appended()

        sliced, options = rows.tensors if type(rows) is Rows else (), {}
        token = _OPTIONS.set(options)
        try:
            test = test if is_tested else None
            trace = LoopTrace(self.title, step, carried, sliced, test=test)
        finally:
            _OPTIONS.reset(token)
        settings = self._settings(trace, count, is_tested, options.get("most"))
        node, inputs = trace.node(**settings)
        if only_if_traced and not (
            node.is_effect or node.variables or any_traced(inputs)
        ):
            return False
        results = trace.emit(node, inputs)
        self.state.restore(self.before)
        self._load(results.carried[start:])
        self._extend(results.stacked)
        if node.length is None:
            self._check_count(count if results.steps is None else results.steps)
        return True

    def _advanced(self, position):
        rows, goes_on = self.iteration, self.goes_on
        if goes_on is None or not rows.takes:
            return rows.advance(position)
        return if_exp(goes_on(), lambda: rows.advance(position), lambda: position)

    def _settings(self, trace, count, is_tested, maximum):
        """Return the settings of the node: its number of steps as far as it is known."""
        rows, length = self.iteration, None
        if type(rows) is Rows:
            length = rows.length if rows.is_static else None
            if length is not None and maximum is not None:
                length = min(length, maximum)
            if is_tested:
                length, maximum = None, length
        elif self.is_known:
            length = known_length(trace.tests[0], trace.body, trace.carried)
            if length is not None:
                length = min(length, length if maximum is None else maximum)
                length = None if length >= MANY else length
        for name in self.grown if length is None else ():
            raise ControlFlowError(
                f"{user_line(always=True)}: {title_of(name)} grows in a loop whose number of "
                "steps is not known before it runs: write to a tw.TensorArray instead"
            )
        if length is not None:
            return {"length": length}
        if is_tested:
            return {"maximum": maximum, "capacity": maximum}
        return {} if count is None else {"count": count}

    # --- variables as tensors

    def _carried(self):
        """Return the tensors of the variables, and record where they belong."""
        tensors, self.slices = [], {}
        for name, value in self.entry.items():
            self.slices[name] = []
            for leaf in leaves_of(value):
                own = tensors_of(leaf)
                stays = self.numbers_stay and is_number(leaf)
                if own is None or stays or any([x is None for x in own]):
                    self.slices[name].append(None)
                    continue
                part = slice(len(tensors), len(tensors) + len(own))
                tensors += [convert_to_tensor(x) for x in own]
                self.slices[name].append(part)
        return tensors

    def _load(self, tensors):
        """Set the variables to values with these tensors."""
        for name, slices in self.slices.items():
            value = with_tensors(self.entry[name], slices, tensors)
            self.state.set(name, value)

    def _results(self, tensors):
        """Return the tensors of the variables after a step, which must match those before."""
        values = self.state.values()
        restarts = False
        for name, value in values.items():
            if name not in self.entry and value is not UNDEFINED:
                self.filled[name], restarts = _outlined(value), True
        contents = self.state.contents()
        for name, pair in self.state.changes(self.before[2], contents).items():
            if name not in self.entry:
                restarts |= self._takes_over(name, *pair)
        values |= {x: self.state.get(x) for x in self.entry.keys() - values.keys()}
        outputs, problem = [], None
        for name, slices in self.slices.items():
            old, new = self.entry[name], values[name]
            try:
                changed, own = self._compared(name, old, new, slices, tensors)
            except ControlFlowError as error:  # perhaps of what is about to change
                if name in self.filled:
                    self.filled[name], changed, own = _outlined(new), True, []
                    del self.entry[name]
                else:
                    problem, changed, own = problem or error, False, []
            restarts |= changed
            outputs += own
        if restarts:
            raise _Changed
        if problem is not None:
            raise problem
        return outputs

    def _compared(self, name, old, new, slices, tensors):
        """Return whether a variable must start differently, and its tensors after a step."""
        if not same_nesting(old, new):
            self._refuse(name, old, new)
        changed, outputs = False, []
        pairs = zip(leaves_of(old), leaves_of(new), slices, strict=True)
        for i, (x, y, part) in enumerate(pairs):
            if part is None:
                changed |= self._replaces(name, i, x, y)
                continue
            own = self._like(name, x, y, tensors[part])
            for t, u in zip(tensors[part], own, strict=True):
                changed |= self._becomes(name, i, x, t, u)
            outputs += own
        return changed, outputs

    def _like(self, name, x, y, tensors):
        """Return the tensors of a leaf after a step."""
        if isinstance(x, TensorArray) and isinstance(y, TensorArray):
            check_form(f"the {self.title} loop", x, y)
        own = tensors_of(y)
        if own is None or len(own) != len(tensors) or any([t is None for t in own]):
            self._refuse(name, x, y)
        return [
            convert_to_tensor(u, dtype_hint=t.dtype)
            for t, u in zip(tensors, own, strict=True)
        ]

    def _replaces(self, name, i, x, y):
        """Replace a non-tensor leaf at the start if necessary; return whether it was."""
        if is_same(x, y):
            return False
        if isinstance(x, TensorArray) and isinstance(y, TensorArray):
            new, y = with_common_elements(f"the {self.title} loop", [x, y])
            if y._tw_is_blank():
                return False
            self._put(name, i, new)
        elif hasattr(type(x), "__tensor__"):
            self._put(name, i, convert_to_tensor(x))
        elif is_number(x) and tensors_of(y) is not None:
            dtype = convert_to_tensor(y, dtype_hint=getattr(x, "dtype", None)).dtype
            self._put(name, i, convert_to_tensor(x, dtype=dtype))
        else:
            self._refuse(name, x, y)
        return True

    def _becomes(self, name, i, x, t, u):
        """Give a number its final dtype at the start; return whether it changed, or raise."""
        old, new = kind_of(t.array.dtype), kind_of(u.array.dtype)
        where = f"{user_line(always=True)}: {title_of(name)}"
        if t.array.dtype != u.array.dtype:
            number = isinstance(x, (bool, int, float))
            if not number or KINDS.index(new) < KINDS.index(old):
                raise ControlFlowError(
                    f"{where} has dtype {t.dtype.name} before the loop, but "
                    f"{u.dtype.name} after a step: cast it to {t.dtype.name}, or "
                    f"initialize it as {u.dtype.name}"
                )
            self._put(name, i, convert_to_tensor(x, dtype=u.dtype))
            return True
        if spec_of(t) == spec_of(u):
            return False
        if (loop_options() or {}).get("invariants") is not None:
            fall_back(f"{title_of(name)} changes its shape in a loop")
        raise ControlFlowError(
            f"{where} has {describe_tensor(t)} before the loop, but {describe_tensor(u)} "
            "after a step, and shapes must not change in a traced loop: initialize it with "
            "its final shape, or write its parts to a tw.TensorArray"
        )

    def _has_numbers(self):
        values = self.entry.values()
        return any([is_number(leaf) for value in values for leaf in leaves_of(value)])

    def _put(self, name, i, leaf):
        leaves = leaves_of(self.entry[name])
        leaves[i] = leaf
        old = self.entry[name]
        self.entry[name] = pack(old, leaves) if is_nested(old) else leaf

    def _refuse(self, name, old, new):
        raise ControlFlowError(
            f"{user_line(always=True)}: {title_of(name)} is {shown(old)} before the "
            f"loop, but {shown(new)} after a step: in a traced loop only tensors and "
            "numbers can change. Initialize it with a tensor of its final shape and "
            "dtype"
        )

    # --- lists and dicts

    def _takes_over(self, name, old, new):
        """Turn an entry of a container into a variable, or record how a list grows."""
        if self.state.is_entry(name):
            if old is UNDEFINED:
                self.filled[name] = _outlined(new)
            else:
                self.entry[name] = old
            return True
        if isinstance(old, set) or (isinstance(old, dict) and old.keys() != new.keys()):
            self._refuse(name, old, new)
        if len(new) < len(old) or not all([x is y for x, y in zip(old, new)]):
            self._refuse(name, old, new)
        self.grown[name] = new[len(old) :]
        return False

    def _appended(self):
        """Return the tensors that a step appends to lists."""
        appended = []
        for name, items in self.grown.items():
            for leaf in leaves_of(items):
                own = tensors_of(leaf)
                if own is None or len(own) != 1:
                    self._refuse(name, [], items)
                appended.append(convert_to_tensor(own[0]))
        return appended

    def _extend(self, stacks):
        """Append the results of each step to lists."""
        columns = iter([unstack(x) for x in stacks])
        for name, items in self.grown.items():
            own = [next(columns) for _ in leaves_of(items)]
            for row in zip(*own, strict=True):
                self.state.containers[name].container.extend(pack(items, row))

    def _check_count(self, steps):
        """Make calls raise if no step sets a value that is read afterwards."""
        names = [x for x in self.filled if x in self.needed and x != RETURN_VALUE]
        if not names:
            return
        if steps is None:
            steps = self.iteration.length
        line, what = user_line(always=True), " and ".join(map(title_of, names))
        assert_true(
            convert_to_tensor(steps) > 0,
            f"{line}: {what} has no value: the loop that sets it must run at least "
            "one step",
        )


def _outlined(value):
    """Return a nest with specs instead of its tensors."""
    leaves = []
    for leaf in leaves_of(value):
        own = tensors_of(leaf)
        specs = None if own is None else [spec_of(convert_to_tensor(x)) for x in own]
        leaves.append((leaf, specs))
    return value, leaves


def _blank(outlined):
    """Return a nest of zeros with these specs."""
    value, leaves = outlined
    tensors, slices = [], []
    for _, specs in leaves:
        count = 0 if specs is None else len(specs)
        slices.append(
            None if specs is None else slice(len(tensors), len(tensors) + count)
        )
        tensors += [zeros_of(spec) for spec in specs or ()]
    return with_tensors(value, slices, tensors)
