"""Matrix products in our own machine code: packed panels, and tiles in registers.

The structure follows Goto and van de Geijn ("Anatomy of High-Performance Matrix
Multiplication", 2008), with few copies for the matrix sizes of ordinary layers. Each
thread packs a group of rows of the left matrix into panels. Then it packs the columns
of one tile of the right matrix, `DEPTH` rows at a time, and multiplies them with the
panels, while a tile of the result stays in registers; then it takes the next columns,
until none are left.

Each entry of the result is one sum over ``k`` in ascending order, of fused
multiply-adds. So results depend neither on the number of threads nor on how the work is
split.
"""

import contextlib
import ctypes
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ....program.limits import DEFAULTS
from .. import atomics
from ..jit import engine, runtime
from ..llvm_writer import POINTER, IRValue, Writer

DEPTH = 1024  # rows of a packed block of the right matrix, at most 128 KB
MOST_GROUPS = 64  # of rows
LINE = 64  # bytes of a line of a cache
UNIT = 2  # rows: there is a function for each multiple, up to a tile
LARGE = 1 << 29  # multiplications: 800 x 800 x 800
# What a chunk calls in code that runs without this process: ``ptr f(i64 size)``.
STANDALONE_MEMORY = "tw_packed_memory"
_I64 = np.dtype(np.int64)
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


class Tile(NamedTuple):
    """The part of a result that is in registers: at most ``rows`` of ``columns`` entries.

    ``columns`` are two vectors of ``lanes``; a tile at the edge can have one.
    """

    lanes: int
    rows: int

    @property
    def columns(self):
        return 2 * self.lanes

    @property
    def panel(self):
        """The entries of a row in a packed panel of the left matrix: whole vectors."""
        return -(-self.rows // self.lanes) * self.lanes


def tile_of(dtype):
    """Return the tile for this CPU, which leaves a few registers free."""
    width, registers = engine.vector_registers()
    return Tile(width // np.dtype(dtype).itemsize, 14 if registers == 32 else 6)


def is_efficient(dtype, m, n, k):
    """Return whether the code here is about as fast as BLAS for these sizes, or faster.

    It is slower where blocks of both matrices must fit into caches, and where packed
    panels exceed the size of the result.
    """
    if m * n * k > LARGE or k > m * n:
        return False
    return m >= 4 and n >= tile_of(dtype).lanes and k >= 4


def product(writer, dtype, m, n, k, a, a_steps, b, b_steps, c, c_row, parallel):
    """Append ``c = a @ b``, of shapes (m, k), (k, n), (m, n); ``c`` overlaps neither.

    ``a_steps`` and ``b_steps`` are the row and column strides, ``c_row`` the row
    stride, in entries. ``parallel`` says whether threads of the pool may help, as they
    do if the work is large. Sizes are at least 1.
    """
    parallel = parallel and m * n * k >= writer.limits.shared_product
    call(writer, dtype, m, n, k, a, a_steps, b, b_steps, c, c_row, parallel)


def call(writer, dtype, m, n, k, a, a_steps, b, b_steps, c, c_row, parallel):
    """`product` for sizes and strides that may be values, without checks of them."""
    sizes = [writer.index(x) for x in (m, n, k, *a_steps, *b_steps, c_row)]
    writer.call(_name(dtype, parallel), [*sizes, a, b, c])


def symbols(declared, limits):
    """Return the addresses of the ``declared`` functions that this file defines."""
    addresses = {}
    for dtype in _LETTERS:
        if declared & {_name(dtype, parallel) for parallel in (False, True)}:
            addresses |= _library(dtype, limits.thread_product, limits.packed_entries)
    return addresses


def _name(dtype, parallel):
    return f"tw_{_LETTERS[np.dtype(dtype)]}gemm_{'parallel' if parallel else 'serial'}"


def compiled(dtype, tile, symbols=None, limits=DEFAULTS):
    """Compile the functions for a dtype and a tile.

    Args:
        dtype: float32 or float64.
        tile: The `Tile` of the result that is kept in registers.
        symbols: Addresses of functions, by name, to call in place of the C library's.
        limits: The `Limits` that determine how work is shared among threads.
    """
    text, name = text_of(dtype, tile, limits), f"{_LETTERS[dtype]}gemm"
    known = {**runtime.symbols(), **(symbols or {})}
    return engine.compiled(text, name, known, level=0)


def text_of(dtype, tile, limits):
    """Return LLVM IR of the functions for a dtype and a tile; see `compiled`."""
    writer = Writer(limits)
    _Functions(writer, dtype, tile).write()
    return writer.text()


def texts(declared, limits):
    """Return the texts that define the ``declared`` functions of this file."""
    return [
        text_of(dtype, tile_of(dtype), limits)
        for dtype in _LETTERS
        if declared & {_name(dtype, parallel) for parallel in (False, True)}
    ]


def packed_bytes(dtype, m, k):
    """Return the maximum memory in bytes that a chunk of a product requests."""
    tile, itemsize = tile_of(dtype), np.dtype(dtype).itemsize
    entries = (-(-(m + UNIT) // tile.rows) * k + 1) * tile.panel + DEPTH * tile.columns
    return entries * itemsize + LINE


@runtime.once
def _library(dtype, work, packed):
    limits = replace(DEFAULTS, thread_product=work, packed_entries=packed)
    library = compiled(dtype, tile_of(dtype), limits=limits)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # never unloaded
    names = [_name(dtype, parallel) for parallel in (False, True)]
    return {name: library.address(name) for name in names}


# What the chunks of a product read: eight bytes each. The first are given by the caller.
_GIVEN = tuple("m n k a_row a_column b_row b_column c_row a b c".split())
_FIELDS = (*_GIVEN, "chunks", "groups", "tiles", "panels", "taken")
_POINTERS = ("a", "b", "c", "taken")


class _Functions:
    """Writes the functions for a dtype."""

    def __init__(self, writer, dtype, tile):
        self.writer, self.dtype, self.tile = writer, dtype, tile
        self.prefix = f"tw_{_LETTERS[dtype]}gemm"
        self.vector = np.dtype((dtype, self.tile.lanes))
        self.widths = self.tile.columns, self.tile.lanes
        self.aligned = f", align {dtype.itemsize}"

    def write(self):
        for width in self.widths:
            for rows in range(UNIT, self.tile.rows + 1, UNIT):
                self.kernel(rows, width)
        self.table()
        self.pack()
        self.column_of_tiles()
        self.simple_tiles()
        self.chunk()
        for parallel in (False, True):
            self.product(parallel)

    def function(self, name, parameters, linkage="internal"):
        bits = 8 * self.vector.itemsize
        widths = f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        attributes = f"nounwind noinline {widths}"
        return self.writer.function(name, parameters, None, attributes, linkage)

    def at(self, pointer, index):
        return self.writer.at(pointer, index, self.dtype)

    def load(self, pointer):
        return self.writer.load(pointer, self.vector, self.aligned)

    def store(self, value, pointer):
        self.writer.store(value, pointer, self.aligned)

    def least(self, a, b):
        a, b = self.writer.pair(a, b)
        return self.writer.select(a < b, a, b)

    def ratio(self, a, b):
        """``a / b``, rounded up."""
        return (a + (b - 1)) / b

    # --- a tile

    def kernel_name(self, rows, width):
        return f"{self.prefix}_{rows}x{width}"

    def kernel(self, rows, width):
        """``c = a @ b`` for a tile, or ``c += a @ b``, with panels of ``depth`` rows."""
        writer, lanes = self.writer, self.tile.lanes
        positions = [(r, v) for r in range(rows) for v in range(0, width, lanes)]
        parameters = [("depth", _I64), ("a", POINTER), ("b", POINTER), ("c", POINTER)]
        parameters += [("c_row", _I64), ("add", np.bool_)]
        with self.function(self.kernel_name(rows, width), parameters) as given:
            depth, a, b, c, c_row, add = given
            out = {(r, v): self.at(c, c_row * r + v) for r, v in positions}
            zero = IRValue(writer, self.vector, "zeroinitializer")
            sums = [zero] * len(positions)
            rounds = writer.select(add, writer.index(1), 0)
            with writer.carrying_loop(0, rounds, 1, sums) as (_, sums):
                sums[:] = [self.load(out[position]) for position in positions]
            with writer.carrying_loop(0, depth, 1, sums) as (p, sums):
                left, right = self.at(a, p * self.tile.panel), self.at(b, p * width)
                row = {v: self.load(self.at(right, v)) for v in range(0, width, lanes)}
                entries = [
                    writer.splat(writer.load(self.at(left, r), self.dtype), lanes)
                    for r in range(rows)
                ]
                for i, (r, v) in enumerate(positions):
                    sums[i] = writer.fma(entries[r], row[v], sums[i])
            for position, total in zip(positions, sums):
                self.store(total, out[position])
            writer.ret()

    def table(self):
        """The addresses of the kernels: wide ones, then narrow ones, by units of rows.

        There is no kernel of 0 units; there the table repeats the next entry.
        """
        units = range(self.tile.rows // UNIT + 1)
        names = [
            self.kernel_name(max(unit, 1) * UNIT, width)
            for width in self.widths
            for unit in units
        ]
        listed = ", ".join([f"ptr @{name}" for name in names])
        table = f"{self.prefix}_table"
        self.writer.declared[table] = (
            f"@{table} = internal constant [{len(names)} x ptr] [{listed}]"
        )

    def kernel_of(self, rows, is_narrow):
        writer, units = self.writer, self.tile.rows // UNIT + 1
        number = rows / UNIT + writer.select(is_narrow, writer.index(units), 0)
        table = writer.symbol(f"{self.prefix}_table")
        return writer.load(writer.at(table, number, POINTER), POINTER)

    # --- panels

    def pack(self):
        """``out[p, lane] = source[p, lane]`` for ``lane < count``, else 0.

        ``out`` has ``width`` entries a row. Whole vectors are read if there are enough
        entries; they are transposed if entries of one ``lane`` are contiguous.
        """
        writer, lanes = self.writer, self.tile.lanes
        parameters = [("width", _I64), ("count", _I64), ("depth", _I64)]
        parameters += [("source", POINTER), ("down", _I64), ("along", _I64)]
        parameters.append(("out", POINTER))
        with self.function(f"{self.prefix}_pack", parameters) as given:
            width, count, depth, source, down, along, out = given
            with writer.loop(0, width, lanes) as lane:
                read, to = self.at(source, lane * along), self.at(out, lane)
                is_whole = lane + lanes <= count
                rows = writer.select(is_whole & (along == 1), depth, 0)
                with writer.loop(0, rows) as p:
                    row = self.load(self.at(read, p * down))
                    self.store(row, self.at(to, p * width))
                squares = writer.select(is_whole & (down == 1), depth / lanes, 0)
                squares = writer.select(rows == 0, squares, 0)
                with writer.loop(0, squares) as square:
                    p = square * lanes
                    columns = [
                        self.load(self.at(read, p + along * i)) for i in range(lanes)
                    ]
                    for i, row in enumerate(self.transposed(columns)):
                        self.store(row, self.at(to, (p + i) * width))
                inside = self.least(writer.select(lane < count, count - lane, 0), lanes)
                with writer.loop(rows + squares * lanes, depth) as p:
                    with writer.loop(0, inside) as i:
                        entry = self.at(read, p * down + i * along)
                        entry = writer.load(entry, self.dtype)
                        writer.store(entry, self.at(to, p * width + i))
                    with writer.loop(inside, lanes) as i:
                        zero = writer.const(0, self.dtype)
                        writer.store(zero, self.at(to, p * width + i))
            writer.ret()

    def transposed(self, rows):
        """Transpose a square of vectors, by exchanges of blocks of 1, 2, 4 ..."""
        lanes, step, lane_numbers = self.tile.lanes, 1, range(self.tile.lanes)
        while step < lanes:
            upper = [x + (lanes - step) * (x & step != 0) for x in lane_numbers]
            lower = [x + (step if x & step == 0 else lanes) for x in lane_numbers]
            after = list(rows)
            for i in lane_numbers:
                if i & step == 0:
                    pair = rows[i], rows[i + step]
                    after[i] = self.writer.shuffle(*pair, upper)
                    after[i + step] = self.writer.shuffle(*pair, lower)
            rows, step = after, 2 * step
        return rows

    def window(self, start, size, width):
        """Return the start and the number of entries of a window of ``width`` to read.

        The window begins earlier if it would extend past ``size``, which can be less.
        """
        first = self.least(start, size - width)
        first = self.writer.select(first < 0, self.writer.index(0), first)
        return first, self.least(size, width)

    # --- chunks

    def fields(self, context):
        writer, kinds = self.writer, {field: POINTER for field in _POINTERS}
        return {
            field: writer.load(writer.at(context, i, _I64), kinds.get(field, _I64))
            for i, field in enumerate(_FIELDS)
        }

    def part(self, size, count, number):
        """Return the start and the size of a part of ``size``: parts are nearly equal."""
        least = size / count
        longer = size - least * count
        first = number * least + self.least(number, longer)
        return first, least + self.writer.cast(number < longer, _I64)

    def group_rows(self, get, group):
        """Return the first row of a group, and the number of its rows."""
        first, units = self.part(self.ratio(get["m"], UNIT), get["groups"], group)
        return first * UNIT, self.least(units * UNIT, get["m"] - first * UNIT)

    def panel_rows(self, group, number):
        """Return the first row of a panel of a group, and its rows in whole units."""
        start, rows = group
        panels = self.ratio(rows, self.tile.rows)
        first, units = self.part(self.ratio(rows, UNIT), panels, number)
        return start + first * UNIT, units * UNIT

    def chunk(self):
        """A chunk: tiles of groups of rows, until other chunks have taken the rest.

        A group is packed by each chunk that works on it: reading entries that another
        core has just written takes longer. Chunks begin with different groups.
        """
        writer = self.writer
        parameters = [("context", POINTER), ("number", _I64)]
        with self.function(f"{self.prefix}_chunk", parameters) as (context, number):
            get = self.fields(context)
            right = DEPTH * self.tile.columns  # for its columns, before the panels
            entries = (get["panels"] * get["k"] + 1) * self.tile.panel + right
            size = entries * self.dtype.itemsize + LINE
            is_standalone = writer.limits.is_standalone
            allocate = STANDALONE_MEMORY if is_standalone else "malloc"
            memory = writer.call(allocate, [size], POINTER)
            is_there = memory != IRValue(writer, POINTER, "null")
            start = (0 - writer.address_as_integer(memory)) & (LINE - 1)
            packed = writer.at(memory, start, np.uint8)
            own = number * get["groups"] / get["chunks"]
            with writer.loop(0, get["groups"]) as step:
                group = own + step
                behind = group >= get["groups"]
                group = group - writer.select(behind, get["groups"], 0)
                taken = writer.at(get["taken"], group, _I64)
                rows = self.group_rows(get, group)
                first = atomics.add(writer, taken, writer.index(1))
                with writer.when((first < get["tiles"]) & is_there):
                    self.pack_group(get, rows, packed)
                with self.tiles(get, taken, first) as tile:
                    args = [context, *rows, packed, tile]
                    with writer.when(is_there):
                        writer.call(f"{self.prefix}_tiles", args)
                    with writer.when(~is_there):
                        writer.call(f"{self.prefix}_simple", args)
            if not is_standalone:
                writer.call("free", [memory])
            writer.ret()

    @contextlib.contextmanager
    def tiles(self, get, taken, first):
        """Loop over numbers of tiles: the first, and others that no chunk has taken."""
        writer = self.writer
        current = writer.alloca(_I64)
        head, body, done = [writer.fresh(stem) for stem in ("head", "body", "done")]
        writer.store(first, current)
        writer.jump(head)
        writer.begin(head)
        tile = writer.load(current, _I64)
        writer.branch(tile < get["tiles"], body, done)
        writer.begin(body)
        yield tile
        writer.store(atomics.add(writer, taken, writer.index(1)), current)
        writer.jump(head)
        writer.begin(done)

    def pack_group(self, get, rows, packed):
        """Pack the panels of some rows of the left matrix."""
        writer, width = self.writer, self.tile.panel
        with writer.loop(0, self.ratio(rows[1], self.tile.rows)) as number:
            row, _ = self.panel_rows(rows, number)
            start, count = self.window(row, get["m"], width)
            source = self.at(get["a"], start * get["a_row"])
            out = self.at(self.panels(packed), number * get["k"] * width)
            width = writer.index(width)
            args = [width, count, get["k"], source]
            args += [get["a_column"], get["a_row"], out]
            writer.call(f"{self.prefix}_pack", args)

    def panels(self, packed):
        return self.at(packed, DEPTH * self.tile.columns)

    def tile_columns(self, get, tile):
        """Return the first column of a tile, the window to read, and whether it is narrow."""
        writer, lanes, columns = self.writer, self.tile.lanes, self.tile.columns
        j = tile * columns
        is_narrow = get["n"] - j <= lanes
        width = writer.select(is_narrow, writer.index(lanes), columns)
        return j, *self.window(j, get["n"], width), is_narrow

    def tile_function(self, name):
        """Define a function of rows, packed rows and a number of tiles."""
        parameters = [("context", POINTER), ("row", _I64), ("rows", _I64)]
        parameters += [("packed", POINTER), ("tile", _I64)]
        return self.function(f"{self.prefix}_{name}", parameters)

    def column_of_tiles(self):
        """Compute the columns of a tile, for all panels of a group."""
        writer, tile = self.writer, self.tile
        with self.tile_function("tiles") as (context, *group, packed, number):
            get = self.fields(context)
            right = packed
            edge = writer.alloca(self.dtype, tile.rows * tile.columns)
            j, start, count, is_narrow = self.tile_columns(get, number)
            width = writer.select(is_narrow, writer.index(tile.lanes), tile.columns)
            with writer.loop(0, get["k"], DEPTH) as p:
                depth = self.least(get["k"] - p, DEPTH)
                source = p * get["b_row"] + start * get["b_column"]
                args = [width, count, depth, self.at(get["b"], source)]
                args += [get["b_row"], get["b_column"], right]
                writer.call(f"{self.prefix}_pack", args)
                with writer.loop(0, self.ratio(group[1], tile.rows)) as panel:
                    row, rows = self.panel_rows(group, panel)
                    above, _ = self.window(row, get["m"], tile.panel)
                    left = (panel * get["k"] + p) * tile.panel + (row - above)
                    left = self.at(self.panels(packed), left)
                    kernel = self.kernel_of(rows, is_narrow)
                    inside = self.least(rows, group[0] + group[1] - row)
                    is_whole = (start == j) & (count == width) & (inside == rows)
                    step = get["c_row"]
                    out = self.at(get["c"], row * step + start)
                    with writer.when(is_whole):
                        args = [depth, left, right, out, step, p > 0]
                        atomics.call_address(writer, kernel, args)
                    with writer.when(~is_whole):
                        with self.entries(inside, 0, count, out, step, edge) as (x, y):
                            writer.store(writer.load(x, self.dtype), y)
                        args = [depth, left, right, edge]
                        args += [writer.index(tile.columns), p > 0]
                        atomics.call_address(writer, kernel, args)
                        own = j - start  # others may work on the columns before
                        copied = self.entries(inside, own, count, out, step, edge)
                        with copied as (x, y):
                            writer.store(writer.load(y, self.dtype), x)
            writer.ret()

    def simple_tiles(self):
        """Compute the same sums without memory for packed panels."""
        writer = self.writer
        with self.tile_function("simple") as (context, row, rows, _, number):
            get, total = self.fields(context), writer.alloca(self.dtype)
            j, start, count, _ = self.tile_columns(get, number)
            with writer.loop(row, row + rows) as i, writer.loop(j, start + count) as j:
                writer.store(writer.const(0, self.dtype), total)
                with writer.loop(0, get["k"]) as p:
                    x = self.at(get["a"], i * get["a_row"] + p * get["a_column"])
                    y = self.at(get["b"], p * get["b_row"] + j * get["b_column"])
                    x, y = writer.load(x, self.dtype), writer.load(y, self.dtype)
                    z = writer.load(total, self.dtype)
                    writer.store(writer.fma(x, y, z), total)
                out = self.at(get["c"], i * get["c_row"] + j)
                writer.store(writer.load(total, self.dtype), out)
            writer.ret()

    @contextlib.contextmanager
    def entries(self, rows, start, stop, out, step, edge):
        """Loop over entries of a tile; yield their addresses in the result and ``edge``."""
        writer, columns = self.writer, self.tile.columns
        with writer.loop(0, rows) as i, writer.loop(start, stop) as lane:
            yield self.at(out, i * step + lane), self.at(edge, i * columns + lane)

    # --- whole products

    def product(self, parallel):
        writer, tile = self.writer, self.tile
        parameters = [(f, POINTER if f in _POINTERS else _I64) for f in _GIVEN]
        name = _name(self.dtype, parallel)
        with self.function(name, parameters, linkage="") as given:
            get, context = dict(zip(_GIVEN, given)), writer.alloca(_I64, len(_FIELDS))
            taken = writer.alloca(_I64, MOST_GROUPS)
            chunks = self.chunks(get) if parallel else writer.index(1)
            get["chunks"] = chunks
            get["groups"] = self.groups(get)
            get["tiles"] = self.ratio(get["n"], tile.columns)
            get["taken"] = taken
            rows = self.ratio(self.ratio(get["m"], UNIT), get["groups"]) * UNIT
            get["panels"] = self.ratio(rows, tile.rows)
            for i, field in enumerate(_FIELDS):
                writer.store(get[field], writer.at(context, i, _I64))
            with writer.loop(0, get["groups"]) as group:
                writer.store(writer.index(0), writer.at(taken, group, _I64))
            if parallel:
                runtime.parallel(writer, f"{self.prefix}_chunk", context, chunks)
            else:
                args = [context, writer.index(0)]
                writer.call(f"{self.prefix}_chunk", args)
            writer.ret()

    def chunks(self, get):
        """Return the number of chunks: one per thread, or fewer for little work."""
        writer = self.writer
        threads = writer.cast(writer.call("tw_get_threads", [], np.dtype("i4")), _I64)
        most = get["m"] * get["n"] * get["k"] / writer.limits.thread_product + 1
        return self.least(threads, most)

    def groups(self, get):
        """Return the number of groups of rows.

        More groups mean less packing of the left matrix per chunk, and more of the
        right one: the total is least if each chunk computes about a square of rows and
        columns.
        """
        writer = self.writer
        ratio = get["m"] * get["chunks"] / get["n"]
        wanted = writer.index(1)
        for number in range(2, 9):  # the root, rounded down
            wanted = wanted + writer.cast(ratio >= number * number, _I64)
        large = get["m"] * get["k"] / writer.limits.packed_entries + 1
        wanted = writer.select(wanted < large, large, wanted)
        panels = self.ratio(get["m"], self.tile.rows)
        return self.least(self.least(wanted, panels), MOST_GROUPS)
