"""`Replay`: runs a segment with the memory of one instance.

Each call copies outside inputs to their fixed addresses, sends the host values, and
launches the graph that was captured for the addresses of the variables. It is
asynchronous: results are still being computed when the call returns.
"""

import struct
from collections import OrderedDict
from functools import partial

import numpy as np

from tapewright.core.state.commit import TRIES, Commit, references
from tapewright.core.variable import changes

from .capture import captured
from .memory import WORD
from .modules import WORDS, numbers_function

GRAPHS = 8  # that are kept, for as many sets of addresses
# Graphs that are captured before inputs are copied to fixed addresses.
CAPTURES = 16


class Replay:
    """Calls of a segment: ``replay(*inputs, *hosts)`` returns the results as new arrays."""

    def __init__(self, segment, instance):
        self.segment, self.instance, self.xp = segment, instance, instance.xp
        self.graphs = OrderedDict()
        self.updates, self.stores = segment.updates, segment.stores
        # Both updates of a graph may be of one optimizer.
        steps = [kernel.step for kernel in self.updates]
        self.in_place = dict.fromkeys(
            [each for step in steps for each in step.segments]
        )
        self.may_fail = bool(instance.checks)
        self.versions = self.graph = None
        self.reports = segment.reports
        where = segment.addresses.where
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
        self._commit(kept, arrays[count:], stream)
        for array, (buffer, address) in zip(results, self.results):
            self._copy(array.data.ptr, address, buffer.nbytes, stream)
        if self.reports:
            instance.note_launch(zip(self.segment.inputs, kept), stream)
        if self.segment.synchronizes:
            stream.synchronize()
            instance.check()
        return results

    def _commit(self, inputs, hosts, stream):
        """Launch the graph, which changes variables; if the launch fails, none has changed."""
        for kernel in self.updates:
            self.numbers.note(kernel)
        for try_ in TRIES:
            change = Commit(try_)
            for each in self.in_place:
                each.gather(change)
            stored = Stored(self.stores, self.may_fail, self.xp, change.in_place)
            graph = self._graph(self._addresses_of(inputs, stream), stored)
            self.numbers.send(hosts)
            for each in (*self.in_place, stored):
                each.add_to(change)
            change.writes.append(partial(graph.launch, stream))
            if self.segment.is_last:
                change.writes += self.instance.forgetting()
            if change.run():
                return

    # --- graphs

    def _graph(self, inputs, stored):
        """Return the graph for the current addresses of inputs and variables."""
        graph, self.graph = self.graph, None  # until all addresses are known
        changed = self._find_flats() or graph is None
        while True:
            change = changes[0]
            for number, root, offset in self.free:
                is_input = root.kind == "input"
                start = inputs[root.key] if is_input else stored.address(root)
                changed = changed or self.addresses[number] != start + offset
                self.addresses[number] = start + offset
            if change is changes[0]:  # no other thread has changed variables meanwhile
                break
        self.graph = self._graph_of_addresses() if changed else graph
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
        """Find the addresses of the arrays of updates; return whether they have changed."""
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
        """Capture the steps, after libraries have done their set-up at first use."""
        self.captures += 1
        self._check_device()
        steps, functions = self.segment.steps, self.segment.functions
        addresses, xp = tuple(self.addresses), self.xp
        stream = xp.cuda.Stream(non_blocking=True)
        with stream:
            for step in steps:
                if hasattr(step, "prepare"):
                    step.prepare(addresses, stream)
            calls = [partial(e.enqueue, functions, addresses, stream) for e in steps]
            return captured(stream, calls)

    def _check_device(self):
        """Raise ``ValueError`` for an input or a variable on another GPU."""
        runtime = self.xp.cuda.runtime
        own, addresses = runtime.getDevice(), self.addresses
        for number, root, _ in self.moving:
            address = addresses[number]
            if address and runtime.pointerGetAttributes(address).device != own:
                raise ValueError(
                    f"{self.instance.name}: all arrays must be on the current device, "
                    f"GPU {own}, but an array is on another GPU ({root.kind}); move all "
                    "arrays to one GPU, and call the function inside `tw.device` of it"
                )

    # --- copies

    def _in_order(self, arrays):
        """The arrays of inputs in C order."""
        order = self.xp.ascontiguousarray
        return [a if a.flags.c_contiguous else order(a) for a in arrays]

    def _addresses_of(self, arrays, stream):
        """Return the addresses of inputs, by buffer: in place, or of their static copies."""
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
    """The values that the host sends to a segment, as words in the order of their addresses."""

    def __init__(self, segment, instance):
        plan = instance.plan
        self.target = instance.blocks["number"].data.ptr
        own = [root for root, _ in segment.addresses.where if root.kind == "number"]
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
        """Advance an update by a step, and record its coefficients, which `send` sends."""
        values = [value for group in kernel.step.advance() for value in group]
        try:
            struct.pack_into(*self.formats[kernel], *values)
        except OverflowError:  # it is infinite in the dtype of the variables
            dtypes = [dtype for _, dtype in kernel.numbers]
            with np.errstate(over="ignore"):
                values = [float(d.type(v)) for d, v in zip(dtypes, values)]
            struct.pack_into(*self.formats[kernel], *values)

    def _format(self, kernel, plan):
        """Return ``(format, buffer, start)`` of `struct.pack_into` for coefficients.

        The coefficients of an update are adjacent, one word each.
        """
        words = [f"{dtype.char}{WORD - dtype.itemsize}x" for _, dtype in kernel.numbers]
        start = min([plan.numbers[root] for root, _ in kernel.numbers], default=0)
        return f"<{''.join(words)}", self.words, start

    def send(self, arrays):
        """Write all values to the device; ``arrays`` are the arrays of host buffers."""
        for slot, array in zip(self.hosts, arrays, strict=True):
            slot[...] = array
        words = self.words.tolist()
        for first, count, function in self.functions:
            values = words[first : first + count]
            function((1,), (1,), (self.target + 8 * first, *values))


class Stored:
    """The arrays that a replay stores to.

    An unshared array is overwritten in place; otherwise the variable gets a new one, a
    copy if the replay ``may_fail`` and would then store nothing. Arrays that are only
    read are held until the graph is launched.
    """

    def __init__(self, variables, may_fail, xp, in_place):
        self.xp, self._held = xp, []
        arrays = [variable._array for variable in variables]
        counts = [*map(references, arrays)]
        is_free = [
            in_place
            and count == ALONE
            and array.base is None
            and array.flags.c_contiguous
            for count, array in zip(counts, arrays)
        ]
        self.free = [v for v, free in zip(variables, is_free) if free]
        self.bound = [v for v, free in zip(variables, is_free) if not free]
        before = [_address(array) for array in arrays]
        # Lists that hold each array once, as `ALONE` counts.
        self.own = [array for array, free in zip(arrays, is_free) if free]
        self.new = [
            self._new(n, array, before, may_fail)
            for n, (array, free) in enumerate(zip(arrays, is_free))
            if not free
        ]
        after = iter([_address(array) for array in self.new])
        self.addresses = {
            id(variable): (start, start if free else next(after))
            for variable, start, free in zip(variables, before, is_free)
        }

    def _new(self, n, array, before, may_fail):
        if not array.flags.c_contiguous:
            array = self.xp.ascontiguousarray(array)
            before[n] = _address(array)
            return array
        new = self.xp.empty(array.shape, array.dtype)
        if may_fail:
            new[...] = array
        return new

    def address(self, root):
        """Return the address of the array of a variable, before the replay or after it."""
        known = self.addresses.get(id(root.key))
        if known is not None:
            return known[root.kind == "stored"]
        self._held.append(_in_c_order(self.xp, root.key))
        return _address(self._held[-1])

    def add_to(self, change):
        """Let the writes of a commit change the arrays."""
        if self.free:
            counts = [ALONE] * len(self.free)
            change.overwrite(self.free, self.own, self.own, counts)
        change.bind(self.bound, self.new)


def _address(array):
    return array.data.ptr


def _in_c_order(xp, variable):
    """Return the array of a variable, converted to C order."""
    array = variable._array
    if array.flags.c_contiguous:
        return array
    with variable._tw_lock:
        array = xp.ascontiguousarray(variable._array)
        variable._bind(array)
    return array


# The count of an array that a variable and one list hold.
ALONE = [*map(references, [np.empty(0)])][0] + 1
