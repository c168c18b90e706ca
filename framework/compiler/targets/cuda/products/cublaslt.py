"""Matrix products by cuBLASLt, with its C functions called through ctypes.

CuPy's products cannot be captured in a graph; these can, as stream and workspace are
arguments. Matrices are in column-major order: epilogues do not support others.

References:
    NVIDIA, "cuBLAS Library", section "Using the cuBLASLt API".
"""

import contextlib
import ctypes
import functools
from typing import NamedTuple

import numpy as np

from tapewright.core.hardware.devices import cupy_module

from .cublaslt_header import (
    ADDRESS,
    ATTRIBUTES,
    REDUCTION_SCHEME_COMPUTE_TYPE,
    SIGNATURES,
    ComputeType,
    DataType,
    Epilogue,
    HeuristicResult,
    Status,
)

# The key of the position of memory that algorithms work in: 256-byte aligned, and used by one
# stream at a time.
WORKSPACE = "workspace"
WORKSPACE_BYTES = 32 << 20  # what NVIDIA advises for Hopper; others need less

# Character of a dtype -> type of entries; "E" is that of bfloat16.
_TYPES = {
    "e": DataType.R_16F, "E": DataType.R_16BF, "f": DataType.R_32F, "d": DataType.R_64F,
}  # fmt: skip
TRIED = 16  # algorithms that are timed where products are tuned
ALIGNMENT = 256  # bytes: no algorithm asks for more
_TITLES = {status: f"CUBLAS_STATUS_{status.name}" for status in Status}
_ONE_AND_ZERO = {dtype: np.array([1, 0], dtype) for dtype in "fd"}  # in host memory


# --------------------------------------------------------------------------- a problem


class MatrixLayout(NamedTuple):
    """Matrices in column-major order: columns are ``ld`` entries apart, matrices ``step``."""

    rows: int
    columns: int
    ld: int
    step: int = 0


class Problem(NamedTuple):
    """``d = epilogue(op(a) @ op(b))`` for ``count`` matrices, the key of an algorithm.

    ``dtypes``: of the factors and of the product, with float32 accumulation for half
    precision factors. ``transposes``: whether op transposes ``a``, and ``b``. ``tf32``:
    float32 is rounded to the 10 bits of TF32 before multiplication. ``adds``: the
    product is added to ``d``.
    """

    dtypes: tuple
    transposes: tuple
    a: MatrixLayout
    b: MatrixLayout
    d: MatrixLayout
    count: int = 1
    epilogue: Epilogue = Epilogue.DEFAULT
    tf32: bool = False
    adds: bool = False

    @property
    def extent(self):
        """The number of entries of memory from the first to the last of ``d``."""
        rows, columns, ld, step = self.d
        return (self.count - 1) * step + (columns - 1) * ld + rows

    @property
    def compute_type(self):
        char = self.dtypes[0].char
        if char == "d":
            return ComputeType.F64
        fast = self.tf32 and char == "f"
        return ComputeType.F32_FAST_TF32 if fast else ComputeType.F32


class CublasLtError(RuntimeError):
    """An error of a cuBLASLt function; ``status`` is the value it returned."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class _Library:
    """The functions of a library that has the functions of `SIGNATURES`.

    ``device()`` is the number of the current device.
    """

    def __init__(self, functions, device):
        self.functions, self.device = functions, device
        self.handles, self.algorithms, self.trials = {}, {}, {}
        self.tuned = set()  # keys of algorithms that were chosen by running them

    def call(self, name, *args):
        """Call a function.

        Raises:
            CublasLtError: With the name of the status, if the call fails.
        """
        status = getattr(self.functions, name)(*args)
        if status:
            title = _TITLES.get(status, status)
            raise CublasLtError(f"{name} failed: {title}", status)

    def multiply(self, problem, addresses, workspace, stream):
        """Enqueue a product in a stream of the current device.

        ``addresses`` are the addresses of a, b, d, and the vector of the epilogue, or
        0; ``workspace`` is the address of `WORKSPACE_BYTES` bytes; ``stream`` is its
        address.
        """
        result = self.algorithm(problem, addresses)
        self.run(result, problem, addresses, workspace, stream)

    def run(self, result, problem, addresses, workspace, stream):
        """Enqueue a product by the algorithm of a `HeuristicResult`."""
        a, b, d, vector = addresses
        one, zero = _scales(problem)
        beta = one if problem.adds else zero
        with self.descriptors(problem, vector) as (operation, of_a, of_b, of_d):
            self.call(
                "cublasLtMatmul", self.handle(), operation,
                one, a, of_a, b, of_b, beta, d, of_d, d, of_d,
                result.algorithm, workspace, WORKSPACE_BYTES, stream,
            )  # fmt: skip

    def supports(self, problem):
        """Return whether there is an algorithm for each of `alignments_of` the problem."""
        algorithms = [self.heuristic(problem, each) for each in alignments_of(problem)]
        return None not in algorithms

    def algorithm(self, problem, addresses):
        """Return the cached `HeuristicResult` for arrays at these addresses."""
        known = _alignments(problem, addresses)
        key = problem, known, self.device()
        if key not in self.algorithms:
            algorithm = self.heuristic(problem, known)
            if algorithm is None:
                raise CublasLtError(f"cuBLASLt has no algorithm for {problem}")
            self.algorithms[key] = algorithm
        return self.algorithms[key]

    def tune(self, problem, addresses, workspace, stream, seconds):
        """Choose the algorithm by timing, once, the candidates of cuBLASLt's heuristic.

        ``seconds(function)`` returns the device time of the work that a function
        enqueues.
        """
        known = _alignments(problem, addresses)
        key = problem, known, self.device()
        if key in self.tuned:
            return
        algorithms = self.heuristics(problem, known, TRIED)
        times = [
            seconds(
                functools.partial(self.run, each, problem, addresses, workspace, stream)
            )
            for each in algorithms
        ]
        if times:
            self.algorithms[key] = algorithms[times.index(min(times))]
        self.tuned.add(key)

    def heuristic(self, problem, alignments):
        """Return the algorithm that cuBLASLt expects to be fastest, or None."""
        return next(iter(self.heuristics(problem, alignments, 1)), None)

    def heuristics(self, problem, alignments, most):
        """Return the algorithms that cuBLASLt expects to be fast, the best first."""
        results, count = (HeuristicResult * most)(), ctypes.c_int(0)
        vector = alignments[3]  # an address of no other alignment
        with (
            self.descriptors(problem, vector) as (operation, of_a, of_b, of_d),
            self.preference(alignments) as preference,
        ):
            try:
                self.call(
                    "cublasLtMatmulAlgoGetHeuristic", self.handle(), operation,
                    of_a, of_b, of_d, of_d, preference,
                    most, results, ctypes.byref(count),
                )  # fmt: skip
            except CublasLtError as error:
                if error.status != Status.NOT_SUPPORTED:
                    raise
                return []
        return [each for each in results[: count.value] if not each.state]

    def handle(self):
        """Return the handle of the current device."""
        device = self.device()
        if device not in self.handles:
            handle = ADDRESS()
            self.call("cublasLtCreate", ctypes.byref(handle))
            self.handles[device] = handle
        return self.handles[device]

    @contextlib.contextmanager
    def descriptors(self, problem, vector):
        """Return the descriptor of the operation, and the layouts of a, b and d."""
        types = [_TYPES[dtype.char] for dtype in problem.dtypes]
        scale = DataType.R_64F if types[0] == DataType.R_64F else DataType.R_32F
        with contextlib.ExitStack() as stack:

            def new(kind, *args, **attributes):
                return stack.enter_context(self.descriptor(kind, args, attributes))

            operation = new(
                "MatmulDesc", problem.compute_type, scale,
                **_attributes(problem, vector),
            )  # fmt: skip
            layouts = []
            matrices = problem.a, problem.b, problem.d
            for (rows, columns, ld, step), i in zip(matrices, (0, 0, 1)):
                many = {"BATCH_COUNT": problem.count, "STRIDED_BATCH_OFFSET": step}
                many = many if problem.count > 1 else {}
                layouts.append(new("MatrixLayout", types[i], rows, columns, ld, **many))
            yield operation, *layouts

    def preference(self, alignments):
        least = {f"MIN_ALIGNMENT_{x}_BYTES": n for x, n in zip("ABD", alignments)}
        attributes = {
            "MAX_WORKSPACE_BYTES": WORKSPACE_BYTES,
            "REDUCTION_SCHEME_MASK": REDUCTION_SCHEME_COMPUTE_TYPE,
            "MIN_ALIGNMENT_C_BYTES": alignments[2],
            **least,
        }
        return self.descriptor("MatmulPreference", (), attributes)

    @contextlib.contextmanager
    def descriptor(self, kind, args, attributes):
        """Return a descriptor with these attributes, which is destroyed in the end."""
        descriptor = ADDRESS()
        self.call(f"cublasLt{kind}Create", ctypes.byref(descriptor), *args)
        try:
            for name, value in attributes.items():
                attribute, kind_of_value = ATTRIBUTES[kind][name]
                held = kind_of_value(value)
                address, size = ctypes.addressof(held), ctypes.sizeof(held)
                self.call(
                    f"cublasLt{kind}SetAttribute", descriptor, attribute, address, size
                )
            yield descriptor
        finally:
            self.call(f"cublasLt{kind}Destroy", descriptor)


def _attributes(problem, vector):
    """The attributes of the descriptor of an operation."""
    a, b = problem.transposes
    attributes = {"TRANSA": a, "TRANSB": b, "EPILOGUE": problem.epilogue}
    if problem.epilogue.has_vector:
        attributes["BIAS_POINTER"] = vector
    return attributes


def _scales(problem):
    """Addresses of 1 and 0 in host memory."""
    held = _ONE_AND_ZERO["d" if problem.compute_type == ComputeType.F64 else "f"]
    return held.ctypes.data, held.ctypes.data + held.itemsize


def _alignments(problem, addresses):
    """Return the known alignments of addresses in bytes, for the choice of algorithms.

    With an epilogue they are one of `alignments_of` the problem.
    """
    if problem.epilogue == Epilogue.DEFAULT:
        return tuple([min(at & -at, ALIGNMENT) for at in addresses])
    for each in alignments_of(problem):
        if not any([at % n for at, n in zip(addresses, each, strict=True)]):
            return each
    raise CublasLtError(f"arrays at {addresses} are not aligned for {problem}")


def alignments_of(problem):
    """Return the alignments in bytes possible for a problem with an epilogue.

    There are few, so that all algorithms can be tried: of a, b, d and the vector.
    """
    alignments = [(n,) * 4 for n in (ALIGNMENT, 16, 4)]
    if problem.dtypes[0].itemsize == 2:
        size = problem.dtypes[1].itemsize
        alignments.append((2, 2, size, size))
    return alignments


# -------------------------------------------------------------------------- the library


def nvidias():
    """Return the functions of NVIDIA's library."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = load_nvidia_dynamic_lib("cublasLt").abs_path
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            "matrix products on a GPU need the cublasLt library, which is part of CUDA; "
            "install CUDA, or CuPy with the extra [ctk], as in cupy-cuda12x[ctk]"
        ) from error
    functions = ctypes.CDLL(path)
    for name, types in SIGNATURES.items():
        getattr(functions, name).argtypes = types
    return functions


def _current_device():
    return cupy_module().cuda.runtime.getDevice()


_PROVIDED = [nvidias, _current_device]


def provide(functions=nvidias, device=_current_device):
    """Make ``functions()`` the library, any object with the functions of `SIGNATURES`.

    ``device()`` is the number of the current device.
    """
    _PROVIDED[:] = functions, device
    library.cache_clear()


@functools.cache
def library():
    """Return the library that products call, which is loaded at the first call."""
    functions, device = _PROVIDED
    return _Library(functions(), device)
