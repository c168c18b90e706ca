"""Trials of epilogues: check on the device that a call computes the same as NumPy.

NVIDIA does not document NaN in relu, and kernels may differ. So before a program uses a
problem, it is computed once with all algorithms that its products may use, on factors
that produce NaN, infinities and zeros.
"""

import numpy as np

from tapewright.core.hardware.devices import current_module

from .cublaslt import ALIGNMENT, WORKSPACE_BYTES, alignments_of, library
from .cublaslt_header import Epilogue

# Entries of the product before the epilogue; with a bias of 1/2 one of them becomes 0.
ENTRIES = np.array([np.nan, np.inf, -np.inf, -0.5, 0.0, 2.0, -3.0, 0.25], np.float32)
BIAS = np.float32(0.5)


def is_usable(problem):
    """Return whether the device computes a problem like NumPy, including NaN."""
    known = library().trials
    key = problem, library().device()
    if key not in known:
        is_known = problem.count == 1 and library().supports(problem)
        known[key] = is_known and _is_right(problem)
    return known[key]


def _is_right(problem):
    trial = _Trial(problem, current_module())
    known = alignments_of(problem)
    return all([trial.run(at, each) for at in trial.shifts for each in known])


class _Trial:
    """Computes a problem on the device and compares with NumPy.

    The product is constant along its shorter axis, and has `ENTRIES` along the other.
    """

    def __init__(self, problem, xp):
        self.problem, self.xp = problem, xp
        self.workspace = xp.empty(WORKSPACE_BYTES + ALIGNMENT, np.uint8)
        self.sizes = m, n = problem.d.rows, problem.d.columns
        self.shifts = range(0, len(ENTRIES), max(m, n))

    def factors(self, shift):
        """The factors after their transposition: all but the first summand are 0."""
        m, n = self.sizes
        k = (
            self.problem.a.rows
            if self.problem.transposes[0]
            else self.problem.a.columns
        )
        a, b = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32)
        values = np.resize(np.roll(ENTRIES, -shift), max(m, n))
        a[:, 0], b[0] = (values, 1) if m >= n else (1, values)
        return a, b

    def run(self, shift, alignments):
        """Return whether the results are correct, with arrays at these alignments."""
        problem, (m, n), factors = self.problem, self.sizes, self.factors(shift)
        arrays = [
            (x.T if t else x).astype(problem.dtypes[0])
            for x, t in zip(factors, problem.transposes, strict=True)
        ]
        arrays.append(np.full((m, n), np.nan, np.float32))
        layouts = problem.a, problem.b, problem.d
        held = list(map(self.put, arrays, layouts, alignments))
        held.append(self.device(np.full(m, BIAS), alignments[3]))
        addresses = [at for _, at, _ in held]
        workspace = self.workspace.data.ptr
        workspace += -workspace % ALIGNMENT
        stream = self.xp.cuda.get_current_stream().ptr
        library().multiply(problem, addresses, workspace, stream)
        out, vector = [self.get(x) for x in held[2:]]
        actual = out.reshape(n, problem.d.ld)[:, :m].T, vector
        wanted = self.expected(*factors)
        return all([np.array_equal(*x, equal_nan=True) for x in zip(actual, wanted)])

    def expected(self, a, b):
        """The expected output and vector after the call."""
        kind, made = self.problem.epilogue, a[:, :1] * b[:1]
        if kind & Epilogue.BIAS:
            made = made + BIAS
        if kind & Epilogue.RELU:
            made = np.maximum(made, 0)
        sums = a.sum(1) if kind == Epilogue.BGRADA else np.full(len(a), BIAS)
        return made, sums

    # --- memory of the device: the array, the address that is used, and the bytes from it

    def put(self, matrix, layout, offset):
        """Return a matrix in column-major order."""
        whole = np.zeros((layout.columns, layout.ld), matrix.dtype)
        whole[:, : layout.rows] = matrix.T
        return self.device(whole, offset)

    def device(self, array, offset):
        """Return a copy at an address that is a multiple of ``offset`` only."""
        values = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        whole = self.xp.empty(values.size + 1024, np.uint8)
        start = -whole.data.ptr % 512 + offset
        whole[start : start + values.size] = self.xp.asarray(values)
        return whole, whole.data.ptr + start, slice(start, start + values.size)

    def get(self, held):
        whole, _, part = held
        return whole.get()[part].view(np.float32)
