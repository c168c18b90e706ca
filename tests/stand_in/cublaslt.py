"""A stand-in for cuBLASLt that computes in host memory, with NumPy.

`CublasLt` has the C functions that the target uses, called through ctypes with the types of
the real ones. What these refuse, or what their documentation forbids, is refused with the
same status, and the reason is kept: unknown or destroyed descriptors, attributes of a wrong
size, shapes that do not fit, addresses that are not aligned as the algorithm needs it,
outputs over inputs, epilogues that are not supported.
"""

import contextlib
import ctypes
import traceback
from itertools import count
from types import SimpleNamespace

import numpy as np

import tapewright as tw
from tapewright.compiler.targets.cuda.products import cublaslt
from tapewright.compiler.targets.cuda.products.cublaslt_header import (
    SIGNATURES,
    Status,
)

__all__ = ["CublasLt", "provided"]

# Numbers of `cublasLt.h`: attributes of products, layouts and preferences, and epilogues.
TRANSA, TRANSB, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
BATCH_COUNT, STRIDED_BATCH_OFFSET = 5, 6
MAX_WORKSPACE_BYTES, REDUCTION_SCHEME_MASK, MIN_ALIGNMENTS = 1, 3, (5, 6, 7, 8)
DEFAULT, RELU, BIAS, BGRADA = 1, 2, 4, 256
EPILOGUES = (DEFAULT, RELU, BIAS, RELU | BIAS, BGRADA)
# Bytes of each attribute, as `cublasLt...GetAttribute` of cuBLAS 12.9 tells them.
SIZES = {
    "MatmulDesc": {0: 4, 1: 4, 2: 4, 3: 4, 4: 4, 5: 4, 6: 4, 7: 4, 8: 8}
    | {10: 8, 11: 8, 12: 8, 13: 8, 14: 8, 15: 4},
    "MatrixLayout": {0: 4, 1: 4, 2: 8, 3: 8, 4: 8, 5: 4, 6: 8, 7: 8, 8: 4},
    "MatmulPreference": {0: 4, 1: 8, 3: 4, 5: 4, 6: 4, 7: 4, 8: 4, 9: 4, 12: 8},
}
DTYPES = {0: np.dtype("f"), 1: np.dtype("d"), 2: np.dtype("e"), 14: tw.bfloat16.dtype}
# (factors, product, scale, sums) that are supported, and whether they have epilogues
COMBINATIONS = {
    (0, 0, 0, 68): True, (0, 0, 0, 77): True, (1, 1, 1, 70): False, (2, 2, 0, 68): True,
    (2, 0, 0, 68): True, (14, 14, 0, 68): True, (14, 0, 0, 68): True,
}  # fmt: skip
TF32 = 77
WORKSPACE_ALIGNMENT = 256


@contextlib.contextmanager
def provided(functions, device=lambda: 0):
    """Products call ``functions()``; afterwards what they called before."""
    before = tuple(cublaslt._PROVIDED)
    cublaslt.provide(functions, device)
    try:
        yield
    finally:
        cublaslt.provide(*before)


class Refused(Exception):
    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status


def need(condition, reason, status=Status.INVALID_VALUE):
    if not condition:
        raise Refused(status, reason)


class CublasLt:
    """The functions of `SIGNATURES`, as attributes of these names.

    ``run(stream, work)`` is called with the address of a stream and a function that
    computes the product, now or when a graph is replayed. ``relu`` is the maximum of the
    epilogues: NVIDIA does not say what it makes of NaN. ``epilogues`` are those that there
    are algorithms for, ``needs_workspace`` the bytes that these take.
    """

    def __init__(
        self,
        run=None,
        relu=np.maximum,
        epilogues=EPILOGUES,
        needs_workspace=1 << 20,
    ):
        self.run = run or (lambda stream, work: work())
        self.relu, self.epilogues = relu, epilogues
        self.needs_workspace = needs_workspace
        self.objects, self.numbers = {}, count(1 << 40, 1 << 12)
        self.algorithms, self.reasons, self.calls = {}, [], []
        for name, types in SIGNATURES.items():
            body = getattr(self, f"_{name.removeprefix('cublasLt')}")
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
            setattr(self, name, prototype(self.guarded(body)))

    def guarded(self, body):
        def function(*args):
            try:
                body(*args)
            except Refused as refusal:
                self.reasons.append(str(refusal))
                return refusal.status
            except Exception:  # would be lost in C
                traceback.print_exc()
                return Status.INTERNAL_ERROR
            return Status.SUCCESS

        return function

    @property
    def descriptors(self):
        """Those that were made and not destroyed."""
        return [each for each in self.objects.values() if each.kind != "handle"]

    # --- objects

    def add(self, out, kind, **facts):
        number = next(self.numbers)
        self.objects[number] = SimpleNamespace(kind=kind, attributes={}, **facts)
        out[0] = number

    def object(self, number, kind):
        found = self.objects.get(number)
        need(found is not None and found.kind == kind, f"{number} is no {kind}")
        return found

    def destroy(self, number, kind):
        self.object(number, kind)
        del self.objects[number]

    def set(self, number, kind, attribute, place, size):
        sizes = SIZES[kind]
        need(attribute in sizes, f"{kind} has no attribute {attribute}")
        need(size == sizes[attribute], f"attribute {attribute} has not {size} bytes")
        value = int.from_bytes(ctypes.string_at(place, size), "little", signed=True)
        self.object(number, kind).attributes[attribute] = value

    def _Create(self, out):
        self.add(out, "handle")

    def _MatmulDescCreate(self, out, compute, scale):
        self.add(out, "MatmulDesc", compute=compute, scale=scale)

    def _MatmulDescSetAttribute(self, desc, attribute, place, size):
        self.set(desc, "MatmulDesc", attribute, place, size)

    def _MatmulDescDestroy(self, desc):
        self.destroy(desc, "MatmulDesc")

    def _MatrixLayoutCreate(self, out, entries, rows, columns, ld):
        self.add(
            out, "MatrixLayout", entries=entries, rows=rows, columns=columns, ld=ld
        )

    def _MatrixLayoutSetAttribute(self, layout, attribute, place, size):
        self.set(layout, "MatrixLayout", attribute, place, size)

    def _MatrixLayoutDestroy(self, layout):
        self.destroy(layout, "MatrixLayout")

    def _MatmulPreferenceCreate(self, out):
        self.add(out, "MatmulPreference")

    def _MatmulPreferenceSetAttribute(self, preference, attribute, place, size):
        self.set(preference, "MatmulPreference", attribute, place, size)

    def _MatmulPreferenceDestroy(self, preference):
        self.destroy(preference, "MatmulPreference")

    # --- products

    def _MatmulAlgoGetHeuristic(
        self, handle, desc, a, b, c, d, preference, most, results, found
    ):
        self.object(handle, "handle")
        need(most > 0, "no result was asked for")
        operation = self.operation(desc, a, b, c, d)
        asked = self.object(preference, "MatmulPreference").attributes
        aligned = [asked.get(number, 256) for number in MIN_ALIGNMENTS]
        schemes = asked.get(REDUCTION_SCHEME_MASK, 7)
        found[0] = 0
        if operation.epilogue not in self.epilogues:
            return
        if asked.get(MAX_WORKSPACE_BYTES, 0) < self.needs_workspace:
            return
        number = len(self.algorithms) + 1
        self.algorithms[number] = operation.key, aligned, schemes
        results[0].algorithm.data[0] = number
        results[0].workspace_size = self.needs_workspace
        results[0].state = Status.SUCCESS
        found[0] = 1

    def _Matmul(
        self, handle, desc, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d,
        algorithm, workspace, workspace_size, stream,
    ):  # fmt: skip
        self.object(handle, "handle")
        operation = self.operation(desc, of_a, of_b, of_c, of_d)
        self.check_algorithm(operation, algorithm[0].data[0], (a, b, c, d))
        need(workspace_size >= self.needs_workspace, "the workspace is too small")
        aligned = workspace and workspace % WORKSPACE_ALIGNMENT == 0
        need(aligned, "the workspace must be 256-byte aligned")
        scale = ctypes.c_double if operation.scale == 1 else ctypes.c_float
        alpha, beta = [scale.from_address(x).value for x in (alpha, beta)]
        need(alpha == 1 and beta in (0, 1), "the stand-in only multiplies by 1")
        operation.check_memory(a, b, d)
        self.calls.append(operation)
        self.run(stream or 0, lambda: operation.compute(a, b, beta, d, self.relu))

    def check_algorithm(self, operation, number, addresses):
        need(number in self.algorithms, "the algorithm is not from the heuristic")
        key, aligned, schemes = self.algorithms[number]
        need(key == operation.key, "the algorithm is for another operation")
        for at, n in zip(addresses, aligned, strict=True):
            need(at and at % n == 0, f"address {at:#x} is not {n}-byte aligned")
        need(schemes in (0, 2), "sums of parts may be added in any order")

    def operation(self, desc, a, b, c, d):
        desc = self.object(desc, "MatmulDesc")
        layouts = [self.object(x, "MatrixLayout") for x in (a, b, c, d)]
        need(layouts[2] == layouts[3], "C and D differ")
        return Operation(desc, layouts[0], layouts[1], layouts[3])


class Operation:
    """A descriptor and the layouts of the matrices, decoded and checked."""

    def __init__(self, desc, a, b, d):
        attributes = dict(desc.attributes)
        self.scale, self.compute_type = desc.scale, desc.compute
        self.types = a.entries, d.entries, desc.scale, desc.compute
        self.transposes = attributes.get(TRANSA, 0), attributes.get(TRANSB, 0)
        self.epilogue = attributes.get(EPILOGUE, DEFAULT)
        need(self.epilogue in EPILOGUES, f"epilogue {self.epilogue}")
        self.vector = attributes.get(BIAS_POINTER, 0)
        self.layouts = [decoded(x) for x in (a, b, d)]
        self.dtypes = [DTYPES[x.entries] for x in (a, b, d)]
        self.count = self.layouts[2].count
        need(a.entries == b.entries, "A and B differ in type", Status.NOT_SUPPORTED)
        self.check()
        layouts = [tuple(vars(x).values()) for x in self.layouts]
        self.key = repr((self.types, self.transposes, self.epilogue, layouts))

    @property
    def sizes(self):
        """``(m, n, k)``."""
        a, b, d = self.layouts
        return d.rows, d.columns, a.rows if self.transposes[0] else a.columns

    def check(self):
        need(self.types in COMBINATIONS, f"types {self.types}", Status.NOT_SUPPORTED)
        a, b, d = self.layouts
        (m, n, k), (ta, tb) = self.sizes, self.transposes
        need((a.rows, a.columns) == ((k, m) if ta else (m, k)), "A does not fit")
        need((b.rows, b.columns) == ((n, k) if tb else (k, n)), "B does not fit")
        for each in self.layouts:
            need(each.ld >= each.rows > 0 < each.columns, f"{each}")
            need(each.count == self.count, "counts of matrices differ")
            need(each.step >= 0, "matrices lie backwards")
            need(max(each.rows, each.columns) < 2**31, "sizes are int32")
        self.check_epilogue()

    def check_epilogue(self):
        if self.epilogue == DEFAULT:
            return
        supported = COMBINATIONS[self.types] and self.count == 1
        need(supported, f"epilogue {self.epilogue} here", Status.NOT_SUPPORTED)
        if self.epilogue & (BIAS | BGRADA):
            need(self.vector, "there is no address of a vector")
            need(
                self.vector % self.dtypes[2].itemsize == 0, "the vector is not aligned"
            )

    def check_memory(self, a, b, d):
        spans = list(map(span, (a, b, d), self.layouts, self.dtypes))
        for start, stop in spans[:2]:
            need(stop <= spans[2][0] or spans[2][1] <= start, "D lies over an input")

    def compute(self, a, b, beta, d, relu):
        for i in range(self.count):
            arrays = [
                matrix(at, *each, i)
                for at, *each in zip((a, b, d), self.layouts, self.dtypes)
            ]
            left, right = [
                self.rounded(x.T if t else x) for x, t in zip(arrays, self.transposes)
            ]
            with np.errstate(all="ignore"):
                made = left @ right + (arrays[2] if beta else 0)
                arrays[2][...] = self.finished(made, left, relu)

    def rounded(self, x):
        """A factor as it is multiplied."""
        if self.compute_type == TF32:
            bits = np.ascontiguousarray(x).view(np.uint32)
            kept = ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).view("f")
            return np.where(np.isfinite(x), kept, x)
        return x.astype("f") if x.dtype.char in "eE" else x

    def finished(self, made, left, relu):
        """The product after the epilogue."""
        kind, rows = self.epilogue, len(made)
        if kind & (BIAS | BGRADA):
            dtype = self.dtypes[2]
            vector = memory(self.vector, rows * dtype.itemsize).view(dtype)
        if kind == BGRADA:
            vector[:] = left.sum(1)
            return made
        if kind & BIAS:
            made = made + vector[:, None]
        return relu(made, made.dtype.type(0)) if kind & RELU else made


def decoded(layout):
    """Rows, columns, the distance of columns, the count of matrices and their distance."""
    count = layout.attributes.get(BATCH_COUNT, 1)
    step = layout.attributes.get(STRIDED_BATCH_OFFSET, 0)
    return SimpleNamespace(
        rows=layout.rows, columns=layout.columns, ld=layout.ld, count=count, step=step
    )


def span(at, layout, dtype):
    """The addresses of the first byte of matrices, and of that behind them."""
    size = (layout.count - 1) * layout.step + (layout.columns - 1) * layout.ld
    return at, at + (size + layout.rows) * dtype.itemsize


def memory(at, size):
    return np.frombuffer((ctypes.c_ubyte * size).from_address(at), np.uint8)


def matrix(at, layout, dtype, number):
    """Matrix ``number`` of those at an address."""
    at += number * layout.step * dtype.itemsize
    size = ((layout.columns - 1) * layout.ld + layout.rows) * dtype.itemsize
    steps = dtype.itemsize, layout.ld * dtype.itemsize
    return np.ndarray(
        (layout.rows, layout.columns), dtype, memory(at, size), strides=steps
    )
