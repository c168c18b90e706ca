"""The functions that a C program calls: their text in LLVM, and the memory behind them.

``NAME_init`` allocates one block of memory, and writes into it the addresses of
everything that stays in its place: constants, variables, and the arena of intermediate
results. ``NAME_run`` adds the addresses of inputs and outputs, and runs the program.

Weights inside of the library are a constant; `with_data` puts the bytes in their place
in the object file, as text they would be several times as large.
"""

import contextlib
import hashlib
import itertools

import numpy as np

from tapewright.compiler.program.program import Kind
from tapewright.compiler.targets.native.llvm_writer import POINTER, Writer
from tapewright.compiler.targets.native.products.gemm import STANDALONE_MEMORY
from tapewright.compiler.targets.native.segments import ARENA
from tapewright.core.hardware.devices import to_numpy

from . import weights_file
from .weights_file import ALIGNMENT, HEADER

# Results of the functions, by name; `FAILED` and following numbers are those of
# instructions that failed.
CODES = {
    "OK": "done",
    "NO_MEMORY": "there is not enough memory",
    "NO_FILE": "the weights file cannot be opened",
    "WRONG_FILE": "the weights file is damaged, or belongs to another library",
    "NOT_READY": "init was not called",
    "BAD_ARGUMENT": "a pointer is NULL, an index out of range, or threads is not 1",
}
FAILED = 16
OK, NO_MEMORY, NO_FILE, WRONG_FILE, NOT_READY, BAD_ARGUMENT = range(len(CODES))

# The functions of the C library that the text here calls, and others that LLVM calls.
C_LIBRARY = {"aligned_alloc", "fclose", "fopen", "fread", "free"}
C_LIBRARY |= {"memcpy", "memmove", "memset", "fmod", "fmodf"}

_I32, _I64, _U64 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)


class Driver:
    """Writes the functions of a library.

    Args:
        code: The `Standalone`.
        name: Prefix of the names of functions.
        is_inside: Whether the values of variables are in the library.

    ``state`` are the variables that a run changes, ``variables`` these and all others;
    ``image`` are their values.
    """

    def __init__(self, code, name, is_inside):
        self.code, self.name, self.is_inside = code, name, is_inside
        self.program, self.writer = code.program, Writer()
        graph = self.program.graph
        self.inputs = self.program.inputs[: len(graph.inputs)]
        captured = self.program.inputs[len(graph.inputs) :]
        self.fixed = {  # arrays of inputs that are no arguments
            a: to_numpy(x.array) for a, x in zip(captured, graph.captures.values())
        }
        self.state = list({id(v): v for v, _ in code.stores}.values())
        loaded = [a.source for a in self.buffers() if a.kind is Kind.VARIABLE]
        self.variables = list({id(v): v for v in (*self.state, *loaded)}.values())
        arrays = [to_numpy(v._array) for v in self.variables]
        self.image = weights_file.image_of(arrays)
        self.head = weights_file.head_of(
            self.image, [v.path for v in self.variables], arrays
        )
        offsets, _ = weights_file.offsets_of([a.nbytes for a in arrays])
        self.offsets = {id(v): n for v, n in zip(self.variables, offsets)}
        _, self.state_size = weights_file.offsets_of(
            [a.nbytes for a in arrays[: len(self.state)]]
        )
        self.constants = self.constant_data()
        self.blocks, self.memory_size = self.memory()

    def buffers(self):
        """The buffers whose addresses the program is called with."""
        keys = [each[0] for each in self.code.addresses if type(each) is tuple]
        return [key for key in dict.fromkeys(keys) if key is not ARENA]

    def constant_data(self):
        """Return the data of the library: values of variables, if inside, and constants."""
        self.fixed.update({a: a.source for a in self.buffers() if a.is_constant})
        constants = [a for a in self.buffers() if a in self.fixed]
        arrays = [np.asarray(self.fixed[a], order="C") for a in constants]
        offsets, _ = weights_file.offsets_of([a.nbytes for a in arrays])
        image = self.image if self.is_inside else b""
        self.offsets.update({id(a): n + len(image) for a, n in zip(constants, offsets)})
        return image + weights_file.image_of(arrays)

    def memory(self):
        """Return the offsets of the parts of the memory that `init` allocates, and its size.

        The parts are the arena, the context, memory for products, the variables that
        change, and buffers that are neither of these nor inputs or outputs.
        """
        kept = [a for a in self.buffers() if a.kind is Kind.ESCAPING]
        kept = [a for a in kept if a not in self.program.outputs]
        keys = ["arena", "context", "packed", "state", *kept]
        sizes = [
            self.code.arena_size,
            8 * len(self.code.addresses),
            self.code.packed_size,
            self.state_size if self.is_inside else 0,
            *[a.nbytes for a in kept],
        ]
        offsets, size = weights_file.offsets_of(sizes)
        return dict(zip(keys, offsets)), max(size, ALIGNMENT)

    # --- text

    def modules(self):
        """Return all modules of the library, and the names of its functions."""
        self.write_globals()
        names = ["init", "run", "free"]
        self.write_packed_memory()
        self.write_free()
        if not self.is_inside:
            self.write_load()
        self.write_init()
        self.write_run()
        if self.state:
            self.write_access("get")
            self.write_access("set")
            names += ["get", "set"]
        exported = [f"{self.name}_{each}" for each in names]
        return [*self.code.modules, (self.writer.text(), 0)], exported

    def write_globals(self):
        declared = self.writer.declared
        for each in ("memory", "weights"):
            declared[each] = f"@tw_{each} = internal global ptr null"
        mark, rest = _mark(self.constants), max(len(self.constants), ALIGNMENT)
        listed = ", ".join([f"i8 {byte}" for byte in mark])
        rest -= len(mark)
        kind = f"<{{ [{len(mark)} x i8], [{rest} x i8] }}>"
        value = f"<{{ [{len(mark)} x i8] [{listed}], [{rest} x i8] zeroinitializer }}>"
        # What `with_data` puts there must not be guessed from what is there now.
        linkage = f"internal externally_initialized constant {kind}"
        declared["data"] = f"@tw_data = {linkage} {value}, align {ALIGNMENT}"

    def load_global(self, name):
        return self.writer.load(self.writer.symbol(f"tw_{name}"), POINTER)

    def store_global(self, value, name):
        self.writer.store(value, self.writer.symbol(f"tw_{name}"))

    def null(self):
        return self.writer.as_pointer(self.writer.index(0))

    def part(self, memory, key, offset=0):
        return self.writer.at(memory, self.blocks[key] + offset, np.uint8)

    @contextlib.contextmanager
    def function(self, name, parameters=()):
        full = f"{self.name}_{name}"
        with self.writer.function(full, parameters, _I32, "nounwind") as given:
            yield given

    def ret(self, number):
        self.writer.ret(self.writer.const(number, _I32))

    def ret_when(self, condition, number):
        """Write code that returns an error code if a condition holds."""
        with self.writer.when(condition):
            self.ret(number)
            self.writer.begin(self.writer.fresh("unreachable"))

    def write_packed_memory(self):
        """Return memory for `gemm`; null if the request is too large, which it handles."""
        writer = self.writer
        parameters = [("size", _I64)]
        with writer.function(
            STANDALONE_MEMORY, parameters, POINTER, "nounwind"
        ) as given:
            memory = self.part(self.load_global("memory"), "packed")
            fits = given[0] <= self.code.packed_size
            writer.ret(writer.select(fits, memory, self.null()))

    def write_free(self):
        writer = self.writer
        with writer.function(f"{self.name}_free", [], None, "nounwind"):
            for each in ("memory", "weights"):
                writer.call("free", [self.load_global(each)])
                self.store_global(self.null(), each)
            writer.ret()

    def write_load(self):
        """Read the weights file: ``int load(path)``, whose image is then ``weights``."""
        writer, size = self.writer, len(self.image)
        fields = HEADER.unpack(self.head)
        writer.declared["mode"] = '@tw_mode = internal constant [3 x i8] c"rb\\00"'
        with self.function("load", [("path", POINTER)]) as (path,):
            head = writer.alloca(_U64, HEADER.size // 8)
            writer.clear_bytes(head, writer.index(HEADER.size))
            file = writer.call("fopen", [path, writer.symbol("tw_mode")], POINTER)
            self.ret_when(file == self.null(), NO_FILE)
            room = [writer.index(ALIGNMENT), writer.index(size + ALIGNMENT)]
            image = writer.call("aligned_alloc", room, POINTER)
            self.store_global(image, "weights")
            with writer.when(image == self.null()):
                writer.call("fclose", [file], _I32)
                self.ret(NO_MEMORY)
                writer.begin(writer.fresh("unreachable"))
            one = writer.index(1)
            writer.call("fread", [head, one, writer.index(HEADER.size), file], _I64)
            # One byte more than there should be.
            more = [image, one, writer.index(size + 1), file]
            right = writer.call("fread", more, _I64) == size
            writer.call("fclose", [file], _I32)
            header = [writer.load(writer.at(head, n, _U64), _U64) for n in range(5)]
            for value, expected in zip(header, fields[:3]):
                right = right & (value == expected)
            self.ret_when(~right, WRONG_FILE)
            zero = writer.const(0, _U64)
            with writer.carrying_loop(0, size // 8, 1, [zero, zero]) as (n, sums):
                word = writer.load(writer.at(image, n, _U64), _U64)
                sums[0] = sums[0] + word
                sums[1] = sums[1] + sums[0]
            right = (header[3] == sums[0]) & (header[4] == sums[1])
            self.ret_when(~right, WRONG_FILE)
            self.ret(OK)

    def write_init(self):
        writer = self.writer
        with self.function("init", [("path", POINTER)]) as (path,):
            writer.call(f"{self.name}_free", [])
            if self.is_inside:
                self.ret_when(path != self.null(), BAD_ARGUMENT)
                image = writer.symbol("tw_data")
            else:
                self.ret_when(path == self.null(), BAD_ARGUMENT)
                error = writer.call(f"{self.name}_load", [path], _I32)
                with writer.when(error != OK):
                    writer.call(f"{self.name}_free", [])
                    writer.ret(error)
                    writer.begin(writer.fresh("unreachable"))
                image = self.load_global("weights")
            room = [writer.index(ALIGNMENT), writer.index(self.memory_size)]
            memory = writer.call("aligned_alloc", room, POINTER)
            with writer.when(memory == self.null()):
                writer.call(f"{self.name}_free", [])
                self.ret(NO_MEMORY)
                writer.begin(writer.fresh("unreachable"))
            self.store_global(memory, "memory")
            if self.is_inside and self.state:
                size = writer.index(self.state_size)
                writer.copy_bytes(self.part(memory, "state"), image, size)
            context = self.part(memory, "context")
            for n, word in enumerate(self.code.addresses):
                value = self.value_of(word, memory, image)
                if value is not None:
                    writer.store(value, writer.at(context, n, POINTER))
            self.ret(OK)

    def value_of(self, word, memory, image):
        """Return a word of the context; None for an address in an input or output."""
        writer = self.writer
        if type(word) is not tuple:
            is_name = isinstance(word, str)
            if is_name:
                writer.declared[word] = f"declare void @{word}()"
            return writer.symbol(word) if is_name else writer.index(word)
        key, offset = word
        if key is ARENA:
            return self.part(memory, "arena", offset)
        if key in self.blocks:
            return self.part(memory, key, offset)
        if key in self.fixed:
            return self.data(key, offset)
        if key.kind is Kind.VARIABLE:
            return writer.at(
                *self.place_of(key.source, memory, image, offset), np.uint8
            )
        return None

    def data(self, key, offset=0):
        writer = self.writer
        return writer.at(
            writer.symbol("tw_data"), self.offsets[id(key)] + offset, np.uint8
        )

    def place_of(self, variable, memory, image, offset=0):
        """Return a base address and the offset of the values of a variable."""
        offset += self.offsets[id(variable)]
        if self.is_inside and any([v is variable for v in self.state]):
            return memory, self.blocks["state"] + offset
        return image, offset

    def write_run(self):
        writer, code = self.writer, self.code
        inputs, outputs = self.inputs, self.program.outputs
        count = len(inputs) + len(outputs)
        parameters = [(f"p{n}", POINTER) for n in range(count)]
        with self.function("run", [*parameters, ("threads", _I32)]) as given:
            *pointers, threads = given
            memory = self.load_global("memory")
            self.ret_when(memory == self.null(), NOT_READY)
            wrong = threads != 1
            for pointer in pointers:
                wrong = wrong | (pointer == self.null())
            self.ret_when(wrong, BAD_ARGUMENT)
            context = self.part(memory, "context")
            given = dict(zip([*inputs, *outputs], pointers))
            for n, word in enumerate(code.addresses):
                if type(word) is tuple and word[0] in given:
                    value = writer.at(given[word[0]], word[1], np.uint8)
                    writer.store(value, writer.at(context, n, POINTER))
            for function in code.functions:
                writer.declared[function] = f"declare i64 @{function}(ptr)"
                error = writer.call(function, [context], _I64)
                if code.fallible:
                    with writer.when(error != 0):
                        writer.ret(writer.cast(error + (FAILED - 1), _I32))
                        writer.begin(writer.fresh("unreachable"))
            image = self.image_address()
            for variable, buffer in code.stores:
                if buffer is None:
                    continue
                target = writer.at(*self.place_of(variable, memory, image), np.uint8)
                source = given.get(buffer)
                if source is None and buffer.offset is not None:
                    source = self.part(memory, "arena", buffer.offset)
                if source is None:
                    source = self.part(memory, buffer)
                writer.copy_bytes(target, source, writer.index(buffer.nbytes))
            self.ret(OK)

    def image_address(self):
        """The address of the values of the variables that do not change."""
        if self.is_inside:
            return self.writer.symbol("tw_data")
        return self.load_global("weights")

    def write_access(self, name):
        """``int get(int index, void *to)`` or ``int set(int index, const void *from)``."""
        writer = self.writer
        spans = [(self.offsets[id(v)], v._array.nbytes) for v in self.state]
        numbers = [writer.index(n) for n in itertools.chain(*spans)]
        table = writer.table("tw_spans", numbers)
        parameters = [("index", _I32), ("array", POINTER)]
        with self.function(name, parameters) as (index, array):
            memory = self.load_global("memory")
            self.ret_when(memory == self.null(), NOT_READY)
            wrong = (index < 0) | (index >= len(spans)) | (array == self.null())
            self.ret_when(wrong, BAD_ARGUMENT)
            row = writer.cast(index, _I64) * 2
            offset, size = [
                writer.load(writer.at(table, row + n, _I64), _I64) for n in range(2)
            ]
            base = self.load_global("weights")
            if self.is_inside:
                base = self.part(memory, "state")
            target = writer.at(base, offset, np.uint8)
            pair = (array, target) if name == "get" else (target, array)
            writer.copy_bytes(*pair, size)
            self.ret(OK)

    def with_data(self, code):
        """Return the object code with the data of the library in its place."""
        if not self.constants:
            return code
        mark = _mark(self.constants)
        start = code.find(mark)
        if start < 0 or code.find(mark, start + 1) >= 0:
            raise RuntimeError("the object file has no unique place for the data")
        return code[:start] + self.constants + code[start + len(self.constants) :]


def _mark(data):
    """Return the placeholder bytes that stand for some data."""
    return hashlib.sha512(data).digest()
