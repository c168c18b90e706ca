"""Text of LLVM functions: `Writer` appends instructions, `IRValue` is the result of one.

Values carry NumPy's dtypes, which distinguish signed and unsigned integers; a bool is
an ``i1`` in a register and a byte in memory, and bfloat16 an ``i16``. Half precision
values are only moved and converted. Arithmetic on values appends instructions, so that
a formula reads as one:

>>> from tapewright.compiler.targets.native.llvm_writer import Writer
>>> import numpy as np
>>> writer = Writer()
>>> with writer.function("square", [("x", np.float32)], np.float32) as (x,):
...     writer.ret(x * x)
>>> print(writer.text())
define float @square(float %x) {
entry:
  %v1 = fmul contract float %x, %x
  ret float %v1
}
<BLANKLINE>
"""

import contextlib
import functools
import hashlib
import itertools
import struct

import numpy as np

from tapewright.core.dtypes import is_bfloat16

from ...program.limits import DEFAULTS

_I64 = np.dtype(np.int64)
POINTER = np.dtype("V8")  # an address; no number is of this dtype
# Loops of a function that LLVM may unroll. Many unrolled loops are one block, for which its
# time is quadratic: a join of 300 arrays of 3 x 64 entries took 18 s, and takes 4 s.
MOST_UNROLLED = 32

_TYPES = {"f2": "half", "f4": "float", "f8": "double", "b1": "i1"}


@functools.cache
def llvm_type(dtype):
    """The type of a value in a register; a subarray dtype is a vector."""
    dtype = np.dtype(dtype)
    if dtype.subdtype:
        return f"<{dtype.shape[0]} x {llvm_type(dtype.base)}>"
    if dtype == POINTER:
        return "ptr"
    return _TYPES.get(dtype.str[1:]) or f"i{8 * dtype.itemsize}"


@functools.cache
def memory_type(dtype):
    """The type of a value in memory."""
    return "i8" if np.dtype(dtype) == bool else llvm_type(dtype)


def _suffix(dtype):
    """Return the suffix of a dtype in the names of intrinsics."""
    if dtype.subdtype:
        return f"v{dtype.shape[0]}{_suffix(dtype.base)}"
    return f"f{8 * dtype.itemsize}" if dtype.kind == "f" else llvm_type(dtype)


class IRValue:
    """A value in a function: ``text`` is its name or, for a constant, its digits."""

    __slots__ = ("writer", "dtype", "text")

    def __init__(self, writer, dtype, text):
        self.writer, self.dtype, self.text = writer, np.dtype(dtype), text

    def __add__(self, other):
        return self.writer.binary("add", self, other)

    def __sub__(self, other):
        return self.writer.binary("sub", self, other)

    def __mul__(self, other):
        return self.writer.binary("mul", self, other)

    def __truediv__(self, other):
        return self.writer.binary("div", self, other)

    def __radd__(self, other):
        return self.writer.binary("add", other, self)

    def __rsub__(self, other):
        return self.writer.binary("sub", other, self)

    def __rmul__(self, other):
        return self.writer.binary("mul", other, self)

    def __rtruediv__(self, other):
        return self.writer.binary("div", other, self)

    def __and__(self, other):
        return self.writer.binary("and", self, other)

    def __or__(self, other):
        return self.writer.binary("or", self, other)

    def __xor__(self, other):
        return self.writer.binary("xor", self, other)

    def __lshift__(self, other):
        return self.writer.binary("shl", self, other)

    def __rshift__(self, other):
        return self.writer.binary("shr", self, other)

    def __neg__(self):
        return self.writer.negative(self)

    def __invert__(self):
        return self.writer.binary("xor", self, -1 if self.dtype != bool else True)

    def __lt__(self, other):
        return self.writer.compare("lt", self, other)

    def __le__(self, other):
        return self.writer.compare("le", self, other)

    def __gt__(self, other):
        return self.writer.compare("gt", self, other)

    def __ge__(self, other):
        return self.writer.compare("ge", self, other)

    def __eq__(self, other):
        return self.writer.compare("eq", self, other)

    def __ne__(self, other):
        return self.writer.compare("ne", self, other)

    __hash__ = None

    def __repr__(self):
        return f"<Value {self.dtype} {self.text}>"


class Size(int):
    """An integer passed to a kernel, whose code serves other values as well.

    Each object is an argument of its own, also if another has its value. A size of 0
    or 1 stays a constant: strides of 0 and 1 and loops of one iteration have better
    code.
    """

    __slots__ = ()


class Symbol(str):
    """The name of a function whose address is passed to a kernel."""

    __slots__ = ()


def sized(value):
    """Return a tree of tuples with a `Size` for each integer."""
    if type(value) is int:
        return Size(value)
    if not isinstance(value, tuple):
        return value
    items = [sized(each) for each in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def digest(text):
    """Return a hash of a text, as part of a name."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# name -> instructions for floats, signed and unsigned integers
_BINARY = {
    "add": ("fadd", "add", "add"),
    "sub": ("fsub", "sub", "sub"),
    "mul": ("fmul", "mul", "mul"),
    "div": ("fdiv", "sdiv", "udiv"),
    "rem": ("frem", "srem", "urem"),
    "and": (None, "and", "and"),
    "or": (None, "or", "or"),
    "xor": (None, "xor", "xor"),
    "shl": (None, "shl", "shl"),
    "shr": (None, "ashr", "lshr"),
}
_FLAGGED = ("fadd", "fsub", "fmul", "fdiv", "fneg")


@functools.cache
def _binary(name, dtype, flags):
    """Return the start of a binary instruction, in front of its operands."""
    kind = dtype.base.kind
    text = _BINARY[name][0 if kind == "f" else 2 if kind in "ub" else 1]
    return f"{text} {flags if text in _FLAGGED else ''}{llvm_type(dtype)}"


@functools.cache
def _comparison(name, dtype):
    """Return the start of a comparison, in front of its operands."""
    if dtype.kind == "f":
        text = f"fcmp {'une' if name == 'ne' else f'o{name}'}"
    elif name in ("eq", "ne") or dtype == POINTER:
        text = f"icmp {name}"
    else:
        text = f"icmp {'u' if dtype.kind in 'ub' else 's'}{name}"
    return f"{text} {llvm_type(dtype)}"


class Writer:
    """Appends functions and, inside of one, instructions.

    Floating-point arithmetic may be contracted to fused operations, except inside
    `exact`; it is not relaxed otherwise. ``limits``: the `Limits` of the program.
    """

    def __init__(self, limits=DEFAULTS):
        self.limits, self.lines, self.declared = limits, [], {}
        self._names, self._flags = itertools.count(1), "contract "
        self.block, self._entry, self._loops = None, 0, 0
        self._defined = set()  # names of functions
        self._arguments = {}  # id of a `Size` or `Symbol` -> its number, it
        self.used_arguments = None  # by this function, if it may use any
        self.modules = {}  # of functions that kernels call, by their `Symbol`

    def text(self):
        """The module: declarations of functions that it does not define, then functions."""
        declared = [
            text for name, text in self.declared.items() if name not in self._defined
        ]
        return "\n".join([*declared, *self.lines, ""])

    @property
    def arguments(self):
        """The sizes and symbols that are arguments of the functions, by their number."""
        return [argument for _, argument in self._arguments.values()]

    def number_of(self, argument):
        """Return the number of a `Size` or `Symbol` among the arguments."""
        count = len(self._arguments)
        return self._arguments.setdefault(id(argument), (count, argument))[0]

    # --- functions and blocks

    @contextlib.contextmanager
    def function(
        self,
        name,
        parameters,
        result=None,
        attributes="",
        linkage="",
        has_arguments=False,
    ):
        """Define a function in the block; yields its parameters.

        ``parameters``: pairs of a name and a dtype, with optional attributes as a third
        item. If it ``has_arguments``, ``used_arguments`` at the end of the block follow.
        """
        before, self._names = self._names, itertools.count(1)
        self.used_arguments = [] if has_arguments else None
        own = [
            f"{llvm_type(p[1])} {' '.join([*p[2:], f'%{p[0]}'])}" for p in parameters
        ]
        kind = "void" if result is None else llvm_type(result)
        head = " ".join(filter(None, ["define", linkage, kind]))
        tail = f" {attributes}" if attributes else ""
        self._defined.add(name)
        start = len(self.lines)
        self.lines += ["", "entry:"]
        self.block, self._entry, self._loops = "entry", len(self.lines), 0
        yield tuple([IRValue(self, p[1], f"%{p[0]}") for p in parameters])
        self.lines.append("}")
        own += [f"i64 %size{n}" for n in range(len(self.used_arguments or ()))]
        self.lines[start] = f"{head} @{name}({', '.join(own)}){tail} {{"
        self._names, self.used_arguments = before, None

    def add_module(self, writer, function, level):
        """Add a module with one function, to be called by its address; return its `Symbol`.

        ``writer`` has written the function. Functions with the same text are one.
        """
        text = writer.text()
        symbol = Symbol(f"{function}_{digest(text)}")
        self.modules[symbol] = text.replace(f"@{function}(", f"@{symbol}(", 1), level
        return symbol

    def emit(self, line):
        self.lines.append(f"  {line}")

    def fresh(self, stem="v"):
        return f"{stem}{next(self._names)}"

    def assigned(self, dtype, text):
        """Append an instruction with a result; return the result."""
        name = f"%v{next(self._names)}"
        self.lines.append(f"  {name} = {text}")
        return IRValue(self, dtype, name)

    def begin(self, block):
        """Begin a block, after the last one has ended in a jump."""
        self.lines.append(f"{block}:")
        self.block = block

    def jump(self, block):
        self.emit(f"br label %{block}")

    def branch(self, condition, then, other):
        self.emit(f"br i1 {condition.text}, label %{then}, label %{other}")

    def ret(self, value=None):
        text = "void" if value is None else f"{llvm_type(value.dtype)} {value.text}"
        self.emit(f"ret {text}")

    @contextlib.contextmanager
    def loop(self, start, stop, step=1, metadata=""):
        """Run the block for each index from ``start`` to below ``stop``; yields the index."""
        with self.carrying_loop(start, stop, step, [], metadata) as (index, _):
            yield index

    @contextlib.contextmanager
    def carrying_loop(self, start, stop, step, carried, metadata=""):
        """A `loop` with loop-carried values.

        Yields the index and the list of the values, in which the block stores the next
        values. After the loop the list holds the values of the last iteration.
        """
        start, stop, step = self.index(start), self.index(stop), self.index(step)
        head, body, done = self.fresh("head"), self.fresh("body"), self.fresh("done")
        entered, index, after = self.block, f"%{self.fresh()}", f"%{self.fresh()}"
        latch = self.fresh("next")
        self.lines += [
            f"  br label %{head}",
            f"{head}:",
            f"  {index} = phi i64 [ {start.text}, %{entered} ], [ {after}, %{latch} ]",
        ]
        phis = [IRValue(self, x.dtype, f"%{self.fresh()}") for x in carried]
        marker, values = f"  ; values that {head} carries", list(phis)
        above = len(self.lines)  # as many lines precede the marker, or more by then
        if carried:
            self.lines.append(marker)
        index = IRValue(self, np.int64, index)
        self.branch(index < stop, body, done)
        self.begin(body)
        yield index, values
        self.lines += [
            f"  br label %{latch}",
            f"{latch}:",
            f"  {after} = add nuw nsw i64 {index.text}, {step.text}",
            f"  br label %{head}{metadata or self._metadata_of_many()}",
        ]
        self.begin(done)
        if carried:
            at = self.lines.index(marker, above)
            self.lines[at : at + 1] = [
                f"  {phi.text} = phi {llvm_type(phi.dtype)} "
                f"[ {first.text}, %{entered} ], [ {last.text}, %{latch} ]"
                for phi, first, last in zip(phis, carried, values, strict=True)
            ]
        values[:] = phis

    @contextlib.contextmanager
    def when(self, condition):
        """Run the block if a condition holds."""
        then, done = self.fresh("then"), self.fresh("done")
        self.branch(condition, then, done)
        self.begin(then)
        yield
        self.jump(done)
        self.begin(done)

    def stays_loop(self, count):
        """Metadata of a loop of ``count`` iterations that should be vectorized.

        LLVM would first unroll a few dozen iterations, and then find few vectors in
        them. It is one node for all loops, so that equal functions have the same text.
        """
        return self.rolled() if 4 <= count < 32 else ""

    def _metadata_of_many(self):
        """Return the metadata of the next loop: empty for the first ones of a function."""
        self._loops += 1
        return self.rolled() if self._loops > MOST_UNROLLED else ""

    def rolled(self):
        """Metadata of a loop that is not unrolled."""
        self.declared["!0"] = '!0 = distinct !{!0, !{!"llvm.loop.unroll.disable"}}'
        return ", !llvm.loop !0"

    def as_written(self):
        """Metadata of a loop that is neither unrolled nor vectorized."""
        no = (
            '!{!"llvm.loop.unroll.disable"}',
            '!{!"llvm.loop.vectorize.enable", i1 0}',
        )
        self.declared["!1"] = f"!1 = distinct !{{!1, {', '.join(no)}}}"
        return ", !llvm.loop !1"

    # --- constants

    def const(self, value, dtype):
        """A constant of a dtype, or an argument for a `Size`."""
        if (
            type(value) is Size
            and self.used_arguments is not None
            and value not in (0, 1)
        ):
            return self.argument(value)
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            return IRValue(self, dtype, str(int(value)))
        if is_bfloat16(dtype):
            return IRValue(self, dtype, str(np.asarray(value, dtype).view(np.int16)))
        if dtype.kind == "f":
            exact = struct.pack(">d", float(dtype.type(value))).hex().upper()
            if dtype.itemsize == 2:
                exact = f"H{dtype.type(value).view(np.uint16):04X}"
            return IRValue(self, dtype, f"0x{exact}")
        if dtype.kind == "b":
            return IRValue(self, dtype, "true" if value else "false")
        if dtype.kind == "c":  # which is only moved
            value = np.asarray(value, dtype).view(f"i{dtype.itemsize}")
        return IRValue(self, dtype, str(int(value)))

    def argument(self, value):
        """A `Size` or `Symbol` as a 64-bit integer."""
        numbers = [n for n, each in enumerate(self.used_arguments) if each is value]
        if not numbers:
            self.used_arguments.append(value)
        number = numbers[0] if numbers else len(self.used_arguments) - 1
        return IRValue(self, np.int64, f"%size{number}")

    def index(self, n):
        """A 64-bit integer."""
        if isinstance(n, IRValue):
            return n
        return self.const(n, _I64)

    def address_as_integer(self, pointer):
        """An address as a 64-bit integer."""
        return self.assigned(np.int64, f"ptrtoint ptr {pointer.text} to i64")

    def as_pointer(self, number):
        """An address from a 64-bit integer."""
        return self.assigned(POINTER, f"inttoptr i64 {number.text} to ptr")

    def symbol(self, name):
        """The address of a function or global of the module."""
        return IRValue(self, POINTER, f"@{name}")

    def table(self, name, values):
        """The address of a constant array of numbers or addresses, under a name."""
        listed = [f"{llvm_type(x.dtype)} {x.text}" for x in values]
        kind = listed[0].split()[0]
        self.declared[name] = (
            f"@{name} = internal constant [{len(listed)} x {kind}] [{', '.join(listed)}]"
        )
        return self.symbol(name)

    # --- arithmetic

    def pair(self, a, b):
        """Return two values of one dtype; a Python number takes the dtype of the other."""
        if not isinstance(a, IRValue):
            a = self.const(a, b.dtype)
        if not isinstance(b, IRValue):
            b = self.const(b, a.dtype)
        if a.dtype != b.dtype:
            raise TypeError(f"operands must have one dtype, got {a!r} and {b!r}")
        return a, b

    def binary(self, name, a, b):
        a, b = self.pair(a, b)
        start = _binary(name, a.dtype, self._flags)
        return self.assigned(a.dtype, f"{start} {a.text}, {b.text}")

    def negative(self, x):
        if x.dtype.kind != "f":
            return self.binary("sub", 0, x)
        return self.assigned(
            x.dtype, f"fneg {self._flags}{llvm_type(x.dtype)} {x.text}"
        )

    def compare(self, name, a, b):
        """Return a bool; for NaN all comparisons but "ne" are false."""
        a, b = self.pair(a, b)
        start = _comparison(name, a.dtype)
        return self.assigned(np.bool_, f"{start} {a.text}, {b.text}")

    def select(self, condition, a, b):
        """``a`` where a bool is true, else ``b``."""
        a, b = self.pair(a, b)
        kind = llvm_type(a.dtype)
        return self.assigned(
            a.dtype, f"select i1 {condition.text}, {kind} {a.text}, {kind} {b.text}"
        )

    @contextlib.contextmanager
    def exact(self):
        """Append arithmetic that is not contracted."""
        before, self._flags = self._flags, ""
        yield
        self._flags = before

    @contextlib.contextmanager
    def reassociated(self):
        """Append additions and products that may be reordered."""
        before, self._flags = self._flags, "reassoc contract "
        yield
        self._flags = before

    def intrinsic(self, name, *args, result=None, suffix=None):
        """Call ``llvm.name``, declared for the types of the arguments."""
        result = args[0].dtype if result is None else np.dtype(result)
        if suffix is None:
            suffix = _suffix(args[0].dtype)
        full = f"llvm.{name}.{suffix}" if suffix else f"llvm.{name}"
        flags = self._flags if result.kind == "f" else ""
        return self.call(full, args, result, flags=flags)

    def call(self, name, args, result=None, flags=""):
        """Call a function by name, and declare it unless the module defines it."""
        types = [llvm_type(a.dtype) for a in args]
        kind = "void" if result is None else llvm_type(result)
        self.declared[name] = f"declare {kind} @{name}({', '.join(types)})"
        listed = ", ".join([f"{t} {a.text}" for t, a in zip(types, args)])
        text = f"call {flags}{kind} @{name}({listed})"
        if result is None:
            return self.emit(text)
        return self.assigned(result, text)

    def fma(self, a, b, c):
        """``a * b + c``, rounded once where the CPU can."""
        return self.intrinsic("fma", a, *[self.pair(x, a)[0] for x in (b, c)])

    def cast(self, x, dtype):
        """Convert to another dtype; floats are truncated when they become integers."""
        dtype = np.dtype(dtype)
        if dtype == x.dtype:
            return x
        a, b = x.dtype.kind, dtype.kind
        if dtype.kind == "b":
            return self.compare("ne", x, 0)
        if a == b == "f":
            name = "fpext" if dtype.itemsize > x.dtype.itemsize else "fptrunc"
        elif a == "f":
            name = "fptosi" if b == "i" else "fptoui"
        elif b == "f":
            name = "sitofp" if a == "i" else "uitofp"
        elif dtype.itemsize > x.dtype.itemsize or x.dtype == bool:
            name = "sext" if a == "i" else "zext"
        elif dtype.itemsize < x.dtype.itemsize:
            name = "trunc"
        else:
            return IRValue(self, dtype, x.text)
        return self._converted(name, x, dtype)

    def bitcast(self, x, dtype):
        """Reinterpret the bits as another dtype."""
        if llvm_type(x.dtype) == llvm_type(dtype):
            return IRValue(self, dtype, x.text)
        return self._converted("bitcast", x, dtype)

    def _converted(self, name, x, dtype):
        text = f"{name} {llvm_type(x.dtype)} {x.text} to {llvm_type(dtype)}"
        return self.assigned(dtype, text)

    # --- vectors

    def splat(self, x, lanes):
        """A vector whose entries are all ``x``."""
        vector = np.dtype((x.dtype, lanes))
        kind, one = llvm_type(vector), f"{llvm_type(x.dtype)} {x.text}"
        first = self.assigned(vector, f"insertelement {kind} poison, {one}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        text = f"shufflevector {kind} {first.text}, {kind} poison, {zeros}"
        return self.assigned(vector, text)

    def shuffle(self, a, b, order):
        """Select entries of two vectors by index; ``b``'s entries follow ``a``'s."""
        kind, mask = llvm_type(a.dtype), ", ".join([f"i32 {i}" for i in order])
        operands = f"{kind} {a.text}, {kind} {b.text}"
        text = f"shufflevector {operands}, <{len(order)} x i32> <{mask}>"
        return self.assigned((a.dtype.base, len(order)), text)

    def first_lanes(self, count, lanes):
        """A mask of ``lanes`` bools, of which the first ``count`` are true."""
        count = self.select(count < lanes, count, self.index(lanes))
        count = self.splat(self.cast(count, np.int32), lanes)
        numbers = ", ".join([f"i32 {i}" for i in range(lanes)])
        kind = llvm_type(count.dtype)
        return self.assigned(
            (bool, lanes), f"icmp sgt {kind} {count.text}, <{numbers}>"
        )

    def vector_sum(self, x):
        """The sum of the entries of a vector, in unspecified order."""
        start = self.const(-0.0, x.dtype.base)
        name = f"llvm.vector.reduce.fadd.{_suffix(x.dtype)}"
        return self.call(name, [start, x], x.dtype.base, flags="reassoc ")

    # --- memory

    def alloca(self, dtype, count=1, alignment=64):
        """Stack memory of the function, allocated on entry."""
        name = f"%{self.fresh()}"
        text = f"alloca [{count} x {memory_type(dtype)}], align {alignment}"
        self.lines.insert(self._entry, f"  {name} = {text}")
        return IRValue(self, POINTER, name)

    def at(self, pointer, index, dtype):
        """The address of entry ``index`` of an array."""
        index = self.index(index)
        if index.text == "0":
            return pointer
        kind = memory_type(dtype)
        text = f"getelementptr inbounds {kind}, ptr {pointer.text}, i64 {index.text}"
        return self.assigned(POINTER, text)

    def away(self, pointer, count):
        """The address this many bytes away, which may be outside of the array."""
        text = f"getelementptr i8, ptr {pointer.text}, i64 {self.index(count).text}"
        return self.assigned(POINTER, text)

    def copy_bytes(self, target, source, count):
        """Copy bytes between arrays that do not overlap."""
        is_volatile = self.const(False, np.bool_)
        self.call("llvm.memcpy.p0.p0.i64", [target, source, count, is_volatile])

    def clear_bytes(self, target, count):
        """Write zeros."""
        args = [target, self.const(0, np.int8), count, self.const(False, np.bool_)]
        self.call("llvm.memset.p0.i64", args)

    def load(self, pointer, dtype, metadata=""):
        dtype = np.dtype(dtype)
        text = f"load {memory_type(dtype)}, ptr {pointer.text}{metadata}"
        if dtype.kind != "b":
            return self.assigned(dtype, text)
        return self.compare("ne", self.assigned(np.uint8, text), 0)

    def load_vector(self, pointer, vector, mask=None):
        """Load a vector, at any alignment; masked entries are 0."""
        if mask is None:
            return self.load(pointer, vector, f", align {vector.base.itemsize}")
        name = f"llvm.masked.load.{_suffix(vector)}.p0"
        zero = IRValue(self, vector, "zeroinitializer")
        return self.call(name, [pointer, self._alignment(vector), mask, zero], vector)

    def store_vector(self, value, pointer, mask=None):
        """Store a vector; masked entries of memory are unchanged."""
        vector = value.dtype
        if mask is None:
            return self.store(value, pointer, f", align {vector.base.itemsize}")
        name = f"llvm.masked.store.{_suffix(vector)}.p0"
        return self.call(name, [value, pointer, self._alignment(vector), mask])

    def _alignment(self, vector):
        return self.const(vector.base.itemsize, np.int32)

    def store(self, value, pointer, metadata=""):
        if value.dtype == bool:
            value = self.cast(value, np.uint8)
        kind = memory_type(value.dtype)
        self.emit(f"store {kind} {value.text}, ptr {pointer.text}{metadata}")
