"""Chains of entrywise calls on large arrays, done row block by row block.

Done one by one, each call reads and writes whole arrays, which do not fit the cache. A
`Block` takes some rows through all of a chain before it goes on to the next ones; what
only the chain needs is never whole in memory. Every entry is computed as before.
"""

import itertools
import math
import threading

import numpy as np

from .lowering import Call

__all__ = ["odd_arrays", "row_blocks"]

# Bytes of an array from which on a chain pays, and of the rows that a block takes of it:
# smaller arrays stay in the last cache anyway, and smaller blocks cost more calls than
# they save.
LEAST, ROWS = 1 << 22, 1 << 19


def row_blocks(program):
    """Joins neighbouring entrywise calls on large arrays of one shape."""
    calls, done, at = program.calls, [], 0
    odd = odd_arrays(program)
    while at < len(calls):
        chain, rest, stop = _chain(calls, at, odd)
        if len(chain) < 2:
            done.append(calls[at])
            at += 1
            continue
        done += rest
        done.append(_joined(program, chain, calls[stop:]))
        at = stop
    program.calls = done


def odd_arrays(program):
    """Root arrays that may not be in C order.

    Kernels may choose a layout, which then is that of all entrywise work on it.
    """
    odd = set()
    for call in program.calls:
        if call.form in ("kernel", "effect"):
            odd.update([out.root for out in call.outputs])
        elif call.form == "ufunc" and len(call.outputs[0].shape) > 2:
            shape = call.outputs[0].shape
            if any([a.shape == shape and a.root in odd for a in call.arrays()]):
                odd.add(call.outputs[0])
    return odd


def _chain(calls, at, odd):
    """``(chain, others, end)``: calls from ``at`` on that can be joined, and what lies
    between them and can as well be done before."""
    first = calls[at]
    if not _fits(first, odd):
        return [], [], at
    shape = first.outputs[0].shape
    chain, others, waiting, end = [first], [], {first.outputs[0]}, at + 1
    between = []
    for i in range(at + 1, len(calls)):
        call = calls[i]
        roots = {a.root for a in call.arrays()} | set(call.arrays())
        joins = _fits(call, odd) and call.outputs[0].shape == shape
        if joins:
            chain.append(call)
            waiting.add(call.outputs[0])
            others += between
            between, end = [], i + 1
        elif call.form in ("ufunc", "out", "view") and not roots & waiting:
            between.append(call)
        else:
            break
    return chain, others, end


def _fits(call, odd):
    """Whether a call works entry by entry on arrays that can be cut into rows."""
    out = call.outputs[0] if call.form == "ufunc" else None
    if out is None or out.nbytes < LEAST or not out.shape or out.shape[0] < 2:
        return False
    if out.nbytes // out.shape[0] > LEAST or (len(out.shape) > 2 and out in odd):
        return False
    return all([len(a.shape) <= len(out.shape) for a in call.args])


def _joined(program, chain, later):
    """One call for a chain; its outputs are what others read."""
    made = {call.outputs[0] for call in chain}
    needed = {a.root for a in program.outputs} | set(program.outputs)
    for call in later:
        needed.update(call.arrays())
        needed.update([a.root for a in call.arrays()])
    given = []
    for call in chain:
        given += [a for a in call.args if a not in made and a not in given]
    outputs = [call.outputs[0] for call in chain if call.outputs[0] in needed]
    block = Block(chain, given, outputs)
    joined = Call("block", block, tuple(given), {}, chain[-1].node)
    joined.outputs = tuple(outputs)
    for out in outputs:
        out.call = joined
    return joined


class Block:
    """The function of a joined chain: ``block(*arrays, *outputs)``; ``source`` shows it."""

    def __init__(self, chain, given, outputs):
        self.chain = chain
        self.rows, *columns = chain[0].outputs[0].shape
        self.rank = 1 + len(columns)
        width = max([c.outputs[0].dtype.itemsize for c in chain]) * math.prod(columns)
        self.step = max(1, min(self.rows, ROWS // width))
        self.bound = {"np": np}
        self.scratch = []  # (name, shape, dtype)
        self.given, self.outputs = given, outputs
        self.names = []  # for each call of the chain: of its arguments, of its output
        self.source = self._write(given, outputs)
        self.code = compile(self.source, "<block of rows>", "exec")
        self.__name__ = "block_of_" + "_".join(
            [c.function.__name__ for c in chain[:3]] + (["..."] if chain[3:] else [])
        )
        self._own = threading.local()

    def _write(self, given, outputs):
        names, cuts, body = {}, [], []
        numbers = itertools.count()
        parameters = []
        for array in (*given, *outputs):
            name = names[array] = f"a{next(numbers)}"
            parameters.append(name)
            if len(array.shape) == self.rank and array.shape[0] == self.rows:
                names[array] = f"{name}_"
                cuts.append(f"        {name}_ = {name}[i:j]")
        left = {}
        for call in self.chain:
            for a in call.arrays():
                left[a] = left.get(a, 0) + 1
        free = []
        for call in self.chain:
            out = call.outputs[0]
            args = [names[a] for a in call.args]
            for a in call.arrays():
                left[a] -= 1
            if out not in names:
                kind = (out.shape, out.dtype)
                ending = [
                    a for a in call.arrays()
                    if not left[a] and names[a][0] == "t" and (a.shape, a.dtype) == kind
                ]  # fmt: skip
                if ending:
                    names[out] = names[ending[0]]
                elif any(k == kind for k, _ in free):
                    at = next(i for i, (k, _) in enumerate(free) if k == kind)
                    names[out] = free.pop(at)[1]
                else:
                    names[out] = f"t{len(self.scratch)}"
                    shape = (self.step, *out.shape[1:])
                    self.scratch.append((names[out], shape, out.dtype))
            for a in set(call.arrays()):
                name = names[a]
                if not left[a] and name[0] == "t" and name != names[out]:
                    free.append(((a.shape, a.dtype), name))
            self.names.append((args, names[out]))
            function = f"f{next(numbers)}"
            self.bound[function] = call.function
            body.append(f"        {function}({', '.join(args)}, out={names[out]})")
        # The last block may be shorter, and its scratch then is.
        uneven = self.rows % self.step
        heads = [f"    for i in range(0, {self.rows}, {self.step}):"]
        heads.append(f"        j = i + {self.step}")
        if uneven:
            heads += [
                f"        {name} = {name}_all[: {self.rows} - i]"
                for name, _, _ in self.scratch
            ]
        own = [name + ("_all" if uneven else "") for name, _, _ in self.scratch]
        own += [name for name in self.bound if name != "np"]
        parameters += [f"{name}={name}" for name in own]
        lines = [f"def block({', '.join(parameters)}):", *heads, *cuts, *body]
        return "\n".join(lines) + "\n"

    def is_done_with(self, array, out):
        """Whether no row of ``array`` is read any more once that of ``out`` is written."""
        given = itertools.chain(*[call.arrays() for call in self.chain])
        if any([a.root is array.root and a is not array for a in given]):
            return False
        reads = [i for i, call in enumerate(self.chain) if array in call.args]
        made = [i for i, call in enumerate(self.chain) if out in call.outputs]
        return reads[-1] <= made[0]

    def verify(self, place_of, fail):
        """Check that each call of the chain reads the rows that it names.

        ``place_of(array)`` is where an array lies; one in whose place an output is written
        must be cut into rows like it, and not be read once they are.
        """
        places = {}  # array -> what stands for its rows: scratch by name, others by place
        for array in (*self.given, *self.outputs):
            places[array] = place_of(array)
        for out in self.outputs:
            for array in self.given:
                a, b = places[array], places[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or array.shape != out.shape:
                        fail(f"{out} is written over parts of {array}")
        holds = {}  # place -> the arrays that have their values there
        for array in self.given:
            holds.setdefault(places[array], []).append(array)
        for call, (args, name) in zip(self.chain, self.names, strict=True):
            for array, own in zip(call.args, args, strict=True):
                place = places.get(array, own)
                if array not in holds.get(place, ()):
                    fail(f"{array} is read in {own}, which holds other rows by now")
            (out,) = call.outputs
            holds[places.get(out, name)] = [out]

    def __call__(self, *arrays):
        run = getattr(self._own, "run", None)
        if run is None:
            run = self._own.run = self._made()
        run(*arrays)

    def _made(self):
        """The function with scratch of its own."""
        suffix = "_all" if self.rows % self.step else ""
        scope = dict(self.bound)
        for name, shape, dtype in self.scratch:
            scope[name + suffix] = np.empty(shape, dtype)
        exec(self.code, scope)
        return scope["block"]
