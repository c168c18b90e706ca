"""Time each call of an executable, for `explain` and the profiler.

The source of the executable gets a note of the time before each line, so that the
measured code is the code that runs. Measuring a step has no effects: variables get
their old values back, and effects that cannot be undone (a printed line, a Python
function call) are skipped.
"""

import ast
import copy
import time
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tapewright.core.dtypes import kind_of

from ..program.program import Kind
from ..targets.numpy.source import LARGE
from ..tracing.graph import Read, Write
from .costs import instruction_cost, instruction_name
from .pretty import counted, quantity, short_line, spec_text

clock = time.perf_counter_ns


def clock_of(executable):
    """Return a clock in ns; for a GPU, one that waits until all queued work is done."""
    xp = executable.xp
    if xp is np:
        return clock

    def waiting():
        xp.cuda.get_current_stream().synchronize()
        return clock()

    return waiting


# ----------------------------------------------------------------- an executable with a clock


class Timed:
    """A replay function of an executable that records when each of its lines begins.

    ``timed(*arrays)`` returns the outputs; ``timed.marks`` then are
    ``(line, time in ns)`` of the last replay, in order, ending with ``(0, end)``. Like
    any other instance it has separate memory. For ``replacing``, see
    `Executable.instance`.
    """

    def __init__(self, executable, replacing=None):
        executable = executable.one_by_one()
        self.executable, self.marks = executable, []
        self.clock = clock_of(executable)
        twin = copy.copy(executable)
        tree = _with_marks(executable.source)
        twin.code = compile(tree, executable.filename, "exec")
        twin.bound = {**executable.bound, "_mark": self.marks.append}
        twin.bound["_clock"] = self.clock
        self.run = twin.instance(replacing)

    def __call__(self, *arrays):
        marks = self.marks
        marks.clear()
        outputs = self.run(*arrays)
        marks.append((0, self.clock()))
        return outputs

    def instruction_of(self, line):
        """Return the instruction that a line of the source is from, or None."""
        lines = self.executable.lines
        return lines[line - 1] if 0 < line <= len(lines) else None


def _with_marks(source):
    """The source with ``_mark((line, _clock()))`` before each statement."""
    tree = ast.parse(source)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            function.body = _marked(function.body)
    return ast.fix_missing_locations(tree)


def _marked(statements):
    marked = []
    for statement in statements:
        line = statement.lineno
        (mark,) = ast.parse(f"_mark(({line}, _clock()))").body
        for part in ast.walk(mark):  # errors in it would be those of the line
            if hasattr(part, "lineno"):
                part.lineno = part.end_lineno = line
        for part in ("body", "orelse", "finalbody"):
            inner = getattr(statement, part, None)
            if inner and inner[0].lineno != line:
                setattr(statement, part, _marked(getattr(statement, part)))
        marked += [mark, statement]
    return marked


def mark_cost():
    """Measure the time of one mark in ns, which is part of every measured time."""
    marks = []
    append = marks.append
    for _ in range(200):
        append((1, clock()))
    return min([b[1] - a[1] for a, b in zip(marks, marks[1:], strict=False)])


# --------------------------------------------------------------------------- memory


def peak_bytes(executable):
    """Return the peak memory of a replay in bytes, without inputs and variables.

    It counts buffers and new arrays, but not the work space of kernels.
    """
    calls, needed = executable.calls(), {}
    end = len(calls)
    number = {each: n for n, call in enumerate(calls) for each in call}
    numbers = [number.get(each, 0) for each in executable.program.instructions]
    numbers.append(end)
    for buffer, last in executable.assignment.last_read.items():
        needed[buffer.base] = max(numbers[last], needed.get(buffer.base, 0))
    change = [0] * (end + 2)
    for i, call in enumerate(calls):
        for out in [out for each in call for out in each.outputs]:
            if out.is_view or out.kind not in (Kind.NEW, Kind.ESCAPING):
                continue
            last = needed[out] if out.nbytes >= LARGE else end
            change[i] += out.nbytes
            change[max(last, i) + 1] -= out.nbytes
    most = held = 0
    for each in change:
        held += each
        most = max(most, held)
    return executable.arena_size + most


def bytes_without_reuse(graph):
    """Return the bytes of all results of a graph together, as a tape may keep them."""
    return sum(
        value.nbytes
        for node in graph.nodes
        if type(node) not in (Read, Write) and not getattr(node.op, "view", False)
        for value in node.outputs
    )


# ------------------------------------------------------------------ what a step costs


class Row(NamedTuple):
    """A call of an executable: its op, function, user's line, result, time and counts.

    ``microseconds`` is the time per replay, ``count`` the number of calls per replay.
    """

    op: str
    function: str
    line: str
    output: str
    microseconds: float
    flops: int
    transcendentals: int
    nbytes: int
    count: int


class Explanation:
    """Costs of a replay, call by call. Prints as a table, most expensive first.

    ``rows`` are `Row` objects, in the order of the instructions; ``microseconds`` is
    the time of a whole replay; ``flops`` and ``nbytes`` are sums over the rows;
    ``peak_bytes`` is the assigned memory of a replay, ``measured_peak_bytes`` the peak
    measured by ``tracemalloc`` (None on a GPU, or if ``tracemalloc`` is in use),
    ``bytes_without_reuse`` the memory of all results side by side. ``skipped`` names
    the effects that were not called.
    """

    def __init__(self, name, rows, microseconds, repeats, memory, skipped, unit):
        self.name, self.rows, self.microseconds = name, rows, microseconds
        self.repeats, self.skipped, self._unit = repeats, tuple(skipped), unit
        self.peak_bytes, self.measured_peak_bytes, self.bytes_without_reuse = memory
        self.flops = sum(row.flops for row in rows)
        self.transcendentals = sum(row.transcendentals for row in rows)
        self.nbytes = sum(row.nbytes for row in rows)

    def by_op(self):
        """Return the rows summed by op and user's line, slowest first."""
        groups = {}
        for row in self.rows:
            groups.setdefault((row.op, row.line), []).append(row)
        merged = []
        for (op, line), rows in groups.items():
            sums = [sum(row[i] for row in rows) for i in range(4, 9)]
            functions = ", ".join(dict.fromkeys(row.function for row in rows))
            merged.append(Row(op, functions, line, rows[-1].output, *sums))
        return sorted(merged, key=lambda row: -row.microseconds)

    def __repr__(self):
        return "\n".join([*self._heading(), "", *_table(self.by_op())])

    def _heading(self):
        counts = f"{quantity(self.flops, 'flop')}, {quantity(self.nbytes, 'B')} moved"
        calls = sum(row.count for row in self.rows)
        lines = [
            f"{self.name}: {self.microseconds:.1f} us a call "
            f"({counted(calls, self._unit)}, {counts}; medians of {self.repeats})",
            f"memory: {quantity(self.peak_bytes, 'B')} at most, all results side by "
            f"side would take {quantity(self.bytes_without_reuse, 'B')}",
        ]
        if self.measured_peak_bytes is not None:
            measured = quantity(self.measured_peak_bytes, "B")
            lines[1] += f"; measured {measured}"
        if self.skipped:
            lines.append(f"not called: {', '.join(self.skipped)}")
        return lines


def _table(rows):
    total = sum(row.microseconds for row in rows) or 1.0
    table = [("us", "share", "calls", "flop", "GFLOP/s", "bytes", "GB/s", "op", "line")]
    for row in rows:
        us = max(row.microseconds, 1e-3)
        speed = f"{row.flops / us / 1e3:.1f}" if row.flops else ""
        moved = f"{row.nbytes / us / 1e3:.1f}" if row.nbytes else ""
        flops = quantity(row.flops) if row.flops else ""
        share = f"{100 * row.microseconds / total:.1f}%"
        table.append(
            (f"{row.microseconds:.1f}", share, str(row.count), flops, speed,
             quantity(row.nbytes, "B"), moved, row.op, short_line(row.line))
        )  # fmt: skip
    widths = [max(len(row[i]) for row in table) for i in range(9)]
    return [
        "  ".join(
            [text.rjust(width) for text, width in zip(row[:7], widths[:7], strict=True)]
            + [row[7].ljust(widths[7]), row[8]]
        ).rstrip()
        for row in table
    ]


def explain(executable, graph, arrays=None, repeats=None) -> Explanation:
    """Time every instruction in several replays on these arrays.

    Without ``arrays``, `sample_inputs` are used. Variables have their old values
    afterwards; effects that write to no variable are skipped. ``repeats`` defaults to
    as many replays as fit in a fifth of a second, between 3 and 100.
    """
    arrays = sample_inputs(executable) if arrays is None else list(arrays)
    replacing, skipped = _left_out(executable)
    clock = clock_of(executable)
    with unchanged(graph):
        timed = Timed(executable, replacing)
        plain = executable.instance(replacing)
        start = clock()
        plain(*arrays)
        timed(*arrays)
        if repeats is None:
            repeats = min(100, max(3, 200_000_000 // (clock() - start + 1)))
        times, replays = [], []
        for _ in range(repeats):
            start = clock()
            plain(*arrays)
            times.append(clock() - start)
            timed(*arrays)
            replays.append(_by_line(timed.marks))
        del plain
        measured = _measured_peak(executable, replacing, arrays)
    memory = peak_bytes(executable), measured, bytes_without_reuse(graph)
    rows = _rows(timed, replays, mark_cost())
    microseconds = float(np.median(times)) / 1000
    return Explanation(
        executable.name, rows, microseconds, repeats, memory, skipped, executable.unit
    )


def _by_line(marks):
    """Return time and number of visits of each line: line -> (ns, count)."""
    times = {}
    for (line, start), (_, stop) in zip(marks, marks[1:], strict=False):
        time_before, count = times.get(line, (0, 0))
        times[line] = time_before + stop - start, count + 1
    return times


def _rows(timed, replays, overhead):
    """Return a row for each call that has source lines; reads and views have none."""
    lines_of = {}
    for line in range(1, len(timed.executable.lines) + 1):
        instruction = timed.instruction_of(line)
        if instruction is not None and not instruction.is_free:
            lines_of.setdefault(instruction, []).append(line)
    rows = []
    for instruction, lines in lines_of.items():
        spent, visits = [], 0
        for replay in replays:
            seen = [replay[n] for n in lines if n in replay]
            spent.append(sum(max(0, ns - overhead * count) for ns, count in seen))
            visits = max([count for _, count in seen], default=0)
        output = ", ".join(spec_text(out) for out in instruction.outputs)
        name, line = instruction_name(instruction), instruction.node.line or ""
        cost, time_taken = instruction_cost(instruction), float(np.median(spent)) / 1000
        row = Row(name, instruction.name, line, output, time_taken, *cost, visits)
        rows.append(row)
    return rows


def _measured_peak(executable, replacing, arrays):
    import tracemalloc  # for this alone

    # It knows the host's memory alone, and may be in use by somebody else.
    if tracemalloc.is_tracing() or executable.xp is not np:
        return None
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        run = executable.instance(replacing)
        run(*arrays)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def sample_inputs(executable):
    """Return inputs for an executable: arrays of ones, or zeros for integers."""
    arrays, program, xp = [], executable.program, executable.xp
    for buffer in program.inputs:
        captured = program.graph.captures.get(buffer.source)
        if captured is not None:
            arrays.append(captured.array)
            continue
        make = xp.ones if kind_of(buffer.dtype) in "fc" else xp.zeros
        arrays.append(make(buffer.shape, buffer.dtype))
    return arrays


def _left_out(executable):
    """Return stand-ins for effects that cannot be undone, by instruction, and their names."""
    replacing, names, xp = {}, [], executable.xp
    for each in executable.program.instructions:
        if each.has_effect and not each.variables_written:
            zeros = tuple([xp.zeros(a.shape, a.dtype) for a in each.outputs])
            replacing[each] = lambda *arrays, zeros=zeros: zeros
            names.append(each.node.name)
    return replacing, list(dict.fromkeys(names))


@contextmanager
def unchanged(graph):
    """Restore the variables of a graph at the end."""
    written = {id(v): v for node in graph.nodes for v in node.writes}.values()
    # Updates copy an array that is referenced elsewhere; the values are for kernels that
    # write to it all the same.
    kept = [(v, v._array, v._array.copy()) for v in written]
    try:
        yield
    finally:
        for variable, array, values in kept:
            if variable._array is array:
                array[...] = values
            else:
                variable._bind(array)
