"""`Replay`: runs a segment with the memory of one instance.

Each call copies what comes from outside to its fixed address, sends the numbers of the host,
and launches the graph that was captured for the addresses of the variables. Nothing is
waited for: results are on their way when the call returns.
"""

import struct
import sys
import types
from collections import OrderedDict
from contextlib import nullcontext

import numpy as np

from tapewright.core.variable import changes

from .memory import WORD
from .modules import WORDS, numbers_function

__all__ = ["Replay"]

GRAPHS = 8  # that are kept, for as many sets of addresses
# Graphs that are captured before inputs are copied to fixed addresses.
CAPTURES = 16


class Replay:
    """Calls of a segment: ``replay(*inputs, *hosts)`` returns the results as new arrays."""

    def __init__(self, segment, instance):
        self.segment, self.instance, self.xp = segment, instance, instance.xp
        self.graphs = OrderedDict()
        self.updates, self.stores = segment.updates, segment.stores
        self.counters = instance.host_variables if self.updates else ()
        self.may_fail = bool(instance.checks)
        self.versions = self.graph = None
        self.reports = segment.reports
        where = segment.places.where
        fixed = [instance.address(root) for root, _ in where]
        self.addresses = [
            None if start is None else start + offset
            for start, (_, offset) in zip(fixed, where)
        ]
        self.moving = [
            (n, root, offset)
            for n, (root, offset) in enumerate(where)
            if fixed[n] is None
        ]
        self.captures, self.staged = 0, None  # the memory that inputs are copied to
        self.results = [(b, instance.block(b).data.ptr) for b in segment.results]
        self.numbers = Numbers(segment, instance)

    def __call__(self, *arrays):
        instance, count = self.instance, len(self.segment.inputs)
        instance.check()
        stream = self.xp.cuda.get_current_stream()
        kept = self._in_order(arrays[:count])
        results = [self.xp.empty(b.shape, b.dtype) for b, _ in self.results]
        with Taken(self.stores, self.counters, self.may_fail, self.xp) as taken:
            for kernel in self.updates:
                self.numbers.note(kernel)
            with self._in_place():
                inputs = self._addresses_of(kept, stream)
                graph = self._graph(inputs, taken)
                self.numbers.send(arrays[count:])
                graph.launch(stream)
                taken.is_launched = True
        for array, (buffer, address) in zip(results, self.results):
            self._copy(array.data.ptr, address, buffer.nbytes, stream)
        if self.reports:
            instance.note_launch(zip(self.segment.inputs, kept), stream)
        if self.segment.synchronizes:
            stream.synchronize()
            instance.check()
        return results

    def _in_place(self):
        """A context in which the arrays of all updates may be written to."""
        if not self.updates:
            return nullcontext()
        steps = [kernel.step for kernel in self.updates]
        segments = dict.fromkeys([each for step in steps for each in step.segments])
        return steps[0].in_place(list(segments))

    # --- graphs

    def _graph(self, inputs, taken):
        """The graph for the addresses that inputs and variables have now."""
        graph, self.graph = self.graph, None  # until all addresses are known
        found = self._find_flats() or graph is None
        taken.take()
        while True:
            change = changes[0]
            for number, root, offset in self.free:
                is_input = root.kind == "input"
                start = inputs[root.key] if is_input else taken.address(root)
                found = found or self.addresses[number] != start + offset
                self.addresses[number] = start + offset
            if change is changes[0]:  # no other thread has changed variables meanwhile
                break
        self.graph = self._graph_of_addresses() if found else graph
        return self.graph

    def _graph_of_addresses(self):
        key = tuple([self.addresses[number] for number, *_ in self.moving])
        if key not in self.graphs:
            self.graphs[key] = self._captured()
        self.graphs.move_to_end(key)
        if len(self.graphs) > GRAPHS:
            self.graphs.popitem(last=False)
        return self.graphs[key]

    def _find_flats(self):
        """Find the addresses of the arrays of updates; return whether these are new."""
        versions = [kernel.step.versions() for kernel in self.updates]
        if versions == self.versions:
            return False
        flats, views = {}, {}
        for kernel in self.updates:
            starts = [a.data.ptr for group in kernel.step.flats() for a in group]
            flats.update(zip(kernel.flats, starts, strict=True))
            arrays = kernel.step.arrays()
            views.update({key: view.data.ptr for key, view in arrays.items()})
        self.free = []  # those that are no part of the arrays of updates
        for number, root, offset in self.moving:
            start = flats.get(root, views.get(id(root.key)))
            if start is None:
                self.free.append((number, root, offset))
            else:
                self.addresses[number] = start + offset
        self.versions = versions
        return True

    def _captured(self):
        """Capture the steps; what libraries set up at first use comes before."""
        self.captures += 1
        self._check_device()
        steps, functions = self.segment.steps, self.segment.functions
        addresses, xp = tuple(self.addresses), self.xp
        stream = xp.cuda.Stream(non_blocking=True)
        with stream:
            for step in steps:
                if hasattr(step, "prepare"):
                    step.prepare(addresses, stream)
            stream.begin_capture()
            try:
                for step in steps:
                    step.enqueue(functions, addresses, stream)
            finally:
                graph = stream.end_capture()
        return graph

    def _check_device(self):
        """Raise ``ValueError`` for an input or a variable on another GPU."""
        runtime = self.xp.cuda.runtime
        own, addresses = runtime.getDevice(), self.addresses
        for number, root, _ in self.moving:
            address = addresses[number]
            if address and runtime.pointerGetAttributes(address).device != own:
                raise ValueError(
                    f"{self.instance.name}: the current device is GPU {own}, and an array "
                    f"is on another one ({root.kind}): call the function inside of "
                    "`tw.device` of its arrays, all of which must be on one GPU"
                )

    # --- copies

    def _in_order(self, arrays):
        """The arrays of inputs in C order."""
        order = self.xp.ascontiguousarray
        return [a if a.flags.c_contiguous else order(a) for a in arrays]

    def _addresses_of(self, arrays, stream):
        """The addresses of inputs, by buffer: where they lie, or where they are copied to."""
        buffers = self.segment.inputs
        if self.captures > CAPTURES and self.staged is None:
            self.staged = [self.xp.empty(b.shape, b.dtype) for b in buffers]
        if self.staged is not None:
            for array, target in zip(arrays, self.staged):
                self._copy(target.data.ptr, array.data.ptr, array.nbytes, stream)
            arrays = self.staged
        return {b: array.data.ptr for b, array in zip(buffers, arrays)}

    def _copy(self, to, address, nbytes, stream):
        if nbytes:
            runtime = self.xp.cuda.runtime
            kind = runtime.memcpyDeviceToDevice
            runtime.memcpyAsync(to, address, nbytes, kind, stream.ptr)


class Numbers:
    """The values that the host sends to a segment, as words in the order of their places."""

    def __init__(self, segment, instance):
        plan = instance.plan
        self.target = instance.blocks["number"].data.ptr
        own = [root for root, _ in segment.places.where if root.kind == "number"]
        self.words = np.zeros(plan.numbers_size // 8, np.int64)
        space = self.words.view(np.uint8)
        slots, specs = {}, dict(segment.number_specs())
        for root in dict.fromkeys(own):
            shape, dtype = specs[root]
            size = int(np.prod(shape)) * dtype.itemsize
            part = space[plan.numbers[root] :][:size]
            slots[root] = part.view(dtype).reshape(shape)
        self.hosts = [slots[segment.root_of_host(b)] for b in segment.hosts]
        self.formats = {
            kernel: self._format(kernel, plan) for kernel in segment.updates
        }
        self.functions = []
        if slots:
            for first in range(0, len(self.words), WORDS):
                count = min(WORDS, len(self.words) - first)
                function = numbers_function(instance.xp, count)
                self.functions.append((first, count, function))

    def note(self, kernel):
        """Advance an update by a step, and note its numbers, which `send` sends."""
        values = [value for group in kernel.step.advance() for value in group]
        try:
            struct.pack_into(*self.formats[kernel], *values)
        except OverflowError:  # it is infinite in the dtype of the variables
            dtypes = [dtype for _, dtype in kernel.numbers]
            with np.errstate(over="ignore"):
                values = [float(d.type(v)) for d, v in zip(dtypes, values)]
            struct.pack_into(*self.formats[kernel], *values)

    def _format(self, kernel, plan):
        """``(format, buffer, start)`` of `struct.pack_into` for the numbers of an update.

        They lie side by side, each in a word of its own.
        """
        words = [f"{dtype.char}{WORD - dtype.itemsize}x" for _, dtype in kernel.numbers]
        start = min([plan.numbers[root] for root, _ in kernel.numbers], default=0)
        return f"<{''.join(words)}", self.words, start

    def send(self, arrays):
        """Write all values to the device; ``arrays`` are those of host buffers."""
        for slot, array in zip(self.hosts, arrays, strict=True):
            slot[...] = array
        words = self.words.tolist()
        for first, count, function in self.functions:
            values = words[first : first + count]
            function((1,), (1,), (self.target + 8 * first, *values))


class Taken:
    """The arrays of variables that a replay stores to; nobody sees them until the end.

    An array that nobody else holds is written in its place; else the variable gets a new
    one, a copy if the replay ``may_fail`` and then stores nothing. Arrays that are only
    read are held until the graph is launched. If it is not launched, stored variables and
    ``counters``, of the host, have their arrays again.
    """

    def __init__(self, variables, counters, may_fail, xp):
        self.variables, self.may_fail, self.xp = variables, may_fail, xp
        self.is_launched = False
        self._counts = [(v, v._array) for v in counters]
        self._taken = {}  # id of a variable -> (variable, array before, array to be)
        self._held = []

    def __enter__(self):
        return self

    def take(self):
        """Take the arrays, and choose those that are written to."""
        for variable in self.variables:
            array, count = _take(variable, self._taken)
            if not array.flags.c_contiguous:
                array = new = self.xp.ascontiguousarray(array)
            elif count == ALONE and array.base is None:
                new = array
            else:
                new = self.xp.empty(array.shape, array.dtype)
                if self.may_fail:
                    new[...] = array
            self._taken[id(variable)] = variable, array, new
        if self.variables:
            changes[0] = object()

    def address(self, root):
        """The address of the array of a variable, before the replay or after it."""
        taken = self._taken.get(id(root.key))
        if taken is not None:
            return taken[2 if root.kind == "stored" else 1].data.ptr
        self._held.append(_in_c_order(self.xp, root.key))
        return self._held[-1].data.ptr

    def __exit__(self, *exc):
        for variable, before, after in self._taken.values():
            variable._array = after if self.is_launched else before
        for variable, array in () if self.is_launched else self._counts:
            variable._bind(array)


def _in_c_order(xp, variable):
    """The array of a variable, which is brought to C order."""
    array = variable._array
    if array.flags.c_contiguous:
        return array
    with variable._lock:
        array = xp.ascontiguousarray(variable._array)
        variable._bind(array)
    return array


# Without exact reference counts every answer differs, so that no array seems free.
_is_counted = (
    hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: 1)()
)
_references = sys.getrefcount if _is_counted else lambda array: object()


def _take(variable, taken):
    """Move the array of a variable to ``taken``; return it and the count of references."""
    key, array = id(variable), variable._array
    del variable._array
    taken[key] = variable, array, array
    return array, _references(array)


# The count of an array that nobody else holds.
ALONE = _take(types.SimpleNamespace(_array=object()), {})[1]
