"""Views of a profile: a timeline of events, a table by name, a file for Chrome."""

import os

from tapewright.compiler.inspection.pretty import quantity
from tapewright.storage.atomic import writing_whole


class Event:
    """A timed event: ``category``, ``name``, start and stop (ns), thread and data.

    Categories are "op", "gpu" (the work of an op on a GPU), "replay" (a call of a
    traced function), "instruction" (one of its calls), "trace", "compile", "tape",
    "optimizer" and "user". ``nbytes`` counts bytes read and written.
    """

    __slots__ = ("category", "name", "start", "stop", "thread", "nbytes", "data")

    def __init__(self, category, name, start, stop, thread, nbytes=0, data=None):
        self.category, self.name = category, name
        self.start, self.stop, self.thread = start, stop, thread
        self.nbytes, self.data = nbytes, data or {}

    @property
    def duration(self):
        return self.stop - self.start

    def __repr__(self):
        return f"<Event {self.category} {self.name} {self.duration / 1000:.1f} us>"


class TableRow:
    """All events with one name: their count, and time with and without inner events.

    ``total`` and ``own`` are in microseconds; ``nbytes`` counts bytes read and written.
    On a GPU, ``allocated`` counts the bytes that all calls took from the memory pool,
    and ``peak`` is the maximum that one of them held at a time.
    """

    __slots__ = (
        *("category", "name", "calls", "total", "own", "nbytes"),
        *("allocated", "peak"),
    )

    def __init__(self, category, name):
        self.category, self.name = category, name
        self.calls = self.nbytes = self.allocated = self.peak = 0
        self.total = self.own = 0.0

    def __repr__(self):
        return f"<{self.category} {self.name}: {self.calls} calls, {self.total:.1f} us>"


def table_rows(events):
    """Return rows of events by category and name, sorted by time without inner events."""
    rows, stacks = {}, {}
    for event in events:  # outer ones come first
        row = rows.get((event.category, event.name))
        if row is None:
            row = TableRow(event.category, event.name)
            rows[event.category, event.name] = row
        stack = stacks.setdefault(event.thread, [])
        while stack and stack[-1][0].stop <= event.start:
            stack.pop()
        took = event.duration / 1000
        row.calls += 1
        row.nbytes += event.nbytes
        row.allocated += event.data.get("allocated", 0)
        row.peak = max(row.peak, event.data.get("peak", 0))
        row.own += took
        if not any(outer is row for _, outer in stack):  # else the outer event counts
            row.total += took
        if stack:
            stack[-1][1].own -= took
        stack.append((event, row))
    return sorted(rows.values(), key=lambda row: -row.own)


def table_text(rows, duration):
    """Return the rows as text; ``share`` is their time relative to the duration."""
    head = ["calls", "total ms", "mean us", "own ms", "share", "bytes"]
    on_gpu = any([row.category == "gpu" for row in rows])
    head += ["allocated", "peak"] if on_gpu else []
    table = [(*head, "kind", "name")]
    for row in rows:
        share = f"{row.own / max(duration, 1e-9) / 1e4:.1f}%"
        table.append(
            (str(row.calls), f"{row.total / 1000:.3f}", f"{row.total / row.calls:.1f}",
             f"{row.own / 1000:.3f}", share, _bytes(row.nbytes),
             *([_bytes(row.allocated), _bytes(row.peak)] if on_gpu else []),
             row.category, row.name)
        )  # fmt: skip
    count = len(head)
    widths = [max(len(row[i]) for row in table) for i in range(count + 1)]
    lines = [f"{duration * 1000:.1f} ms, {sum(row.calls for row in rows)} events"]
    for row in table:
        cells = [x.rjust(w) for x, w in zip(row[:count], widths, strict=False)]
        kind = row[count].ljust(widths[count])
        lines.append("  ".join([*cells, kind, row[-1]]).rstrip())
    return "\n".join(lines)


def _bytes(count):
    return quantity(count, "B") if count else ""


def chrome_trace(events, start, threads, counters):
    """Return the trace as a dict that Perfetto and chrome://tracing read as JSON.

    Args:
        events: Events to show.
        start: Time that becomes 0.
        threads: Names of threads by number.
        counters: ``(time, change in bytes)`` of each kind of memory, by name.
    """
    process, numbers = os.getpid(), {}
    for thread in threads:
        numbers[thread] = len(numbers) + 1

    def at(time_ns):
        return (time_ns - start) / 1000

    entries = [{"ph": "M", "name": "process_name", "pid": process, "tid": 0,
              "args": {"name": "tapewright"}}]  # fmt: skip
    for thread, number in numbers.items():
        entries.append({"ph": "M", "name": "thread_name", "pid": process, "tid": number,
                      "args": {"name": threads[thread]}})  # fmt: skip
    for event in events:
        data = {k: _jsonable(v) for k, v in event.data.items()}
        if event.nbytes:
            data["bytes"] = event.nbytes
        entries.append(
            {"ph": "X", "name": event.name, "cat": event.category, "pid": process,
             "tid": numbers[event.thread], "ts": at(event.start),
             "dur": event.duration / 1000, "args": data}
        )  # fmt: skip
    for name, changes in counters.items():
        held = 0
        for moment, change in sorted(changes):
            held += change
            entries.append({"ph": "C", "name": name, "pid": process, "tid": 0,
                          "ts": at(moment), "args": {"bytes": held}})  # fmt: skip
    return {"traceEvents": entries, "displayTimeUnit": "ms"}


def _jsonable(value):
    return value if isinstance(value, (str, int, float, bool)) else repr(value)


def write_json(path, content):
    """Write a file atomically."""
    import json  # only needed here

    with (
        writing_whole(path) as temporary,
        open(temporary, "w", encoding="utf-8") as file,
    ):
        json.dump(content, file, separators=(",", ":"))
