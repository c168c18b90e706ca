"""Accumulating products and triangular systems: BLAS calls that NumPy does not offer.

NumPy's products overwrite their output. Its BLAS library can compute
``out = alpha * a @ b + beta * out`` in one pass. It is called through ctypes if it is
an OpenBLAS whose results agree with NumPy's, unless the environment has
``TAPEWRIGHT_BLAS_CALLS=0``. Otherwise NumPy computes the same in two passes. NumPy has no
function for triangular systems.
"""

import functools

import numpy as np

from . import openblas

# cblas.h
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112
UPPER, LOWER, NON_UNIT, LEFT = 121, 122, 131, 141
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}

# Entries of a row of `sum_of_squares`: longer rows lose digits, shorter ones take longer.
ROW = 1024

_state = {"library": None, "note": None}  # without a note until the first use


def gemm(a, b, out, alpha=1.0, beta=0.0):
    """Compute ``out = alpha * a @ b + beta * out`` in place and return ``out``.

    All matrices have the same dtype; ``out`` must not overlap the others. ``beta=0``
    overwrites ``out``, including NaN.

    Raises:
        ValueError: If the shapes are incompatible.

    Example:
        >>> from tapewright.core.hardware.blas import gemm
        >>> import numpy as np
        >>> a = np.ones((2, 3), np.float32)
        >>> gemm(a, a.T, np.ones((2, 2), np.float32), beta=2.0)
        array([[5., 5.],
               [5., 5.]], dtype=float32)
    """
    if beta == 0 and alpha == 1 and out.flags.c_contiguous:
        if 1 in (a.size, b.size):  # `np.dot` scales by one entry, and there 0 drops NaN
            return np.multiply(a, b, out=out)
        return np.dot(a, b, out=out)  # the same routine, with less overhead
    call = _bound_gemm(a, b, out, alpha, beta)
    if call is None:
        return _numpy_gemm(a, b, out, alpha, beta)
    call()
    return out


def axpby(alpha, x, beta, y):
    """Compute ``y = alpha * x + beta * y`` in place and return ``y``.

    Both arrays have the same shape and dtype.

    Example:
        >>> from tapewright.core.hardware.blas import axpby
        >>> import numpy as np
        >>> axpby(2.0, np.ones(3), 0.5, np.ones(3))
        array([2.5, 2.5, 2.5])
    """
    library, letter = _library_for(x, y)
    if library is None:
        y *= y.dtype.type(beta)
        y += x if alpha == 1 else x * x.dtype.type(alpha)
        return y
    library.axpby(letter, y.size, alpha, x, beta, y)()
    return y


def bound_axpby(alpha, x, beta, y):
    """Return `axpby` of these arguments as a C function without arguments.

    The dtype must satisfy `handles`, and both arrays must outlive the call.
    """
    library, letter = _library_for(x, y)
    return library.axpby(letter, y.size, alpha, x, beta, y)


def trsm(matrix, rhs, lower):
    """Solve ``matrix @ x = rhs`` for a triangular matrix; None if BLAS is not available.

    The other triangle is not read. The diagonal must not hold zeros, or subnormal
    numbers, whose inverses overflow.

    Example:
        >>> from tapewright.core.hardware.blas import trsm
        >>> import numpy as np
        >>> trsm(np.array([[2.0, 9.0], [1.0, 1.0]]), np.array([[2.0], [3.0]]), True)
        array([[1.],
               [2.]])
    """
    library, letter = _library(), _LETTERS.get(matrix.dtype)
    if library is None or letter is None or rhs.dtype != matrix.dtype or not rhs.size:
        return None
    layout = _layout(matrix)
    if layout is None:
        matrix = np.ascontiguousarray(matrix)
        layout = _layout(matrix)
    out = np.array(rhs, order="C")
    library.trsm(letter, layout, lower, matrix, out)
    return out


def sum_of_squares(xp, x):
    """Return ``sum(|x| ** 2)`` over all entries of an array of ``xp``.

    A single dot product would lose digits: 0.4 % of the sum over 16 million entries.
    Therefore BLAS sums rows, and NumPy adds the sums of the rows pairwise.

    Example:
        >>> from tapewright.core.hardware.blas import sum_of_squares
        >>> import numpy as np
        >>> sum_of_squares(np, np.array([[3.0, 4.0]]))
        np.float64(25.0)
    """
    flat = x.reshape(-1)
    if xp is not np or flat.size <= ROW or flat.dtype.char not in "fdFD":
        return xp.vdot(flat, flat)
    whole = flat.size - flat.size % ROW
    rows, rest = flat[:whole].reshape(-1, ROW), flat[whole:]
    total = np.add.reduce(np.vecdot(rows, rows))
    return total + np.vdot(rest, rest) if rest.size else total


def _numpy_gemm(a, b, out, alpha, beta):
    product = np.matmul(a, b)
    if product.shape != out.shape:
        raise ValueError(
            f"gemm: out must have the shape {product.shape} of the product, got "
            f"{out.shape}"
        )
    if alpha != 1:
        product *= product.dtype.type(alpha)
    if beta == 0:
        out[...] = product
        return out
    if beta != 1:
        out *= out.dtype.type(beta)
    out += product
    return out


# --------------------------------------------------------------------- calls of BLAS


def _bound_gemm(a, b, out, alpha, beta):
    """Return a BLAS call bound to all its arguments; None if BLAS rejects them."""
    library = _library()
    if library is None or a.ndim != 2 or b.ndim != 2:
        return None
    letter = _LETTERS.get(out.dtype)
    left, right, target = _layout(a), _layout(b), _layout(out)
    (m, k), (k2, n) = a.shape, b.shape
    if k != k2 or out.shape != (m, n):
        raise ValueError(
            f"gemm: shapes must be (m, k), (k, n) and (m, n), got a {a.shape}, b "
            f"{b.shape} and out {out.shape}"
        )
    if letter is None or not a.dtype == b.dtype == out.dtype or not out.size or not k:
        return None
    if left is None or right is None or target is None or target[0] == TRANSPOSED:
        return None
    return library.gemm(letter, left, right, target, (m, n, k), alpha, beta, a, b, out)


def _layout(x):
    """Return ``(transposition, leading dimension)`` of a matrix for BLAS, or None."""
    rows, columns = x.shape
    down, along = x.strides
    each = x.itemsize
    if (along == each or columns == 1) and _leads(down, each, columns, rows):
        return PLAIN, max(down // each, columns) if rows > 1 else max(columns, 1)
    if (down == each or rows == 1) and _leads(along, each, rows, columns):
        return TRANSPOSED, max(along // each, rows) if columns > 1 else max(rows, 1)
    return None


def _leads(stride, each, length, count):
    return count == 1 or (stride % each == 0 and stride // each >= max(length, 1))


def _library_for(x, y):
    """Return the library and its letter for two arrays; (None, None) if unsupported."""
    library, letter = _library(), _LETTERS.get(y.dtype)
    if x.shape != y.shape:
        raise ValueError(
            f"axpby: x and y must have the same shape, got {x.shape} and {y.shape}"
        )
    if library is None or letter is None or x.dtype != y.dtype or not y.size:
        return None, None
    plain = x.flags.c_contiguous and y.flags.c_contiguous
    if not plain and not (x.flags.f_contiguous and y.flags.f_contiguous):
        return None, None
    return library, letter


class _Library:
    """The BLAS functions, with the types of their arguments."""

    def __init__(self, ctypes):
        self.ctypes = ctypes
        wide = "USE64BITINT" in openblas.text("openblas_get_config")
        self.index = ctypes.c_int64 if wide else ctypes.c_int32
        self.real = {"s": ctypes.c_float, "d": ctypes.c_double}
        self.functions = {}
        for letter in "sd":
            self.functions[f"{letter}gemm"] = self.function(f"{letter}gemm")
            vector = ctypes.c_void_p, self.index
            kinds = self.index, self.real[letter], *vector, self.real[letter], *vector
            # With argument types, ctypes converts the numbers of each call.
            self.functions[f"{letter}axpby"] = self.function(f"{letter}axpby", *kinds)
            kinds = (
                *[ctypes.c_int] * 5,
                *[self.index] * 2,
                self.real[letter],
                *vector * 2,
            )
            self.functions[f"{letter}trsm"] = self.function(f"{letter}trsm", *kinds)

    def function(self, name, *kinds):
        """Return a function that releases the GIL, unlike the functions of `openblas`."""
        c = self.ctypes
        address = c.cast(openblas.symbol(f"cblas_{name}"), c.c_void_p).value
        return c.CFUNCTYPE(None, *kinds)(address)

    def address(self, array):
        # The quicker way takes neither read-only nor empty arrays, nor Fortran's order.
        if array.size and array.flags.carray:
            return self.ctypes.addressof(self.ctypes.c_char.from_buffer(array))
        return array.__array_interface__["data"][0]

    def pointer(self, array):
        pointer = self.ctypes.c_void_p(array.__array_interface__["data"][0])
        pointer.array = array  # keeps it alive as long as the call
        return pointer

    def gemm(self, letter, left, right, target, sizes, alpha, beta, a, b, out):
        c, index, real = self.ctypes, self.index, self.real[letter]
        m, n, k = map(index, sizes)
        return functools.partial(
            self.functions[f"{letter}gemm"],
            c.c_int(ROW_MAJOR), c.c_int(left[0]), c.c_int(right[0]), m, n, k,
            real(alpha), self.pointer(a), index(left[1]), self.pointer(b),
            index(right[1]), real(beta), self.pointer(out), index(target[1]),
        )  # fmt: skip

    def axpby(self, letter, size, alpha, x, beta, y):
        function = self.functions[f"{letter}axpby"]
        x, y = self.address(x), self.address(y)
        return functools.partial(function, size, alpha, x, 1, beta, y, 1)

    def trsm(self, letter, layout, lower, matrix, out):
        transposition, leading = layout
        in_memory = LOWER if lower == (transposition == PLAIN) else UPPER
        self.functions[f"{letter}trsm"](
            ROW_MAJOR, LEFT, in_memory, transposition, NON_UNIT, *out.shape, 1.0,
            self.address(matrix), leading, self.address(out), out.shape[1],
        )  # fmt: skip


# ------------------------------------------------------------------------- switching


def _library():
    if _state["note"] is None:
        try:
            openblas.check_switch("TAPEWRIGHT_BLAS_CALLS")
            set_blas_calls(True)
        except openblas.Unavailable as reason:
            _state["note"] = str(reason)
    return _state["library"]


def handles(dtype) -> bool:
    """Return whether BLAS itself is called for arrays of this NumPy dtype."""
    return dtype in _LETTERS and _library() is not None


def set_blas_calls(on: bool) -> None:
    """Turn direct calls of NumPy's BLAS library in accumulating products on or off.

    If that library is not an OpenBLAS or its results differ, NumPy is used in any case;
    ``tw.config.show()`` prints the reason.
    """
    if not on:
        _state.update(library=None, note="switched off")
        return
    try:
        library = _Library(openblas.ctypes)
        _state.update(library=library, note="directly, for accumulating products")
        if not _agrees():
            _state.update(
                library=None, note="not used: its results differ from NumPy's"
            )
    except (
        openblas.Unavailable,
        OSError,
        AttributeError,
        ValueError,
        TypeError,
    ) as reason:
        _state.update(library=None, note=f"not used: {reason}")


def _agrees():
    """Check products of small integers, which are exact in any order, in each layout."""
    numbers = np.resize(np.arange(-8, 9), (13, 17))
    for dtype in _LETTERS:
        a = numbers.astype(dtype)
        for left in (a[:5, :7], a.T[:5, :7]):
            for right in (a[:7, :3], a.T[:7, :3]):
                out = a[6:11, 8:11].copy()
                wanted = 2 * (left @ right) - out
                call = _bound_gemm(left, right, out, 2.0, -1.0)
                if call is None:
                    return False
                call()
                if not np.array_equal(out, wanted):
                    return False
        triangle = np.tril(a[:5, :5], -1) + np.eye(5, dtype=dtype)
        for matrix, lower in ((triangle, True), (triangle.T, False)):
            solution = trsm(matrix, matrix @ a[:5, :3], lower)
            if solution is None or not np.array_equal(solution, a[:5, :3]):
                return False
        x, y = a.ravel(), a[::-1].ravel()
        wanted = 3 * x + y
        axpby(3.0, x, 1.0, y)
        if not np.array_equal(y, wanted):
            return False
        wanted = 2 * y - x
        axpby(-1.0, x, 2.0, y)
        if not np.array_equal(y, wanted):
            return False
    return True


def note():
    """Return a line for ``tw.config.show()``."""
    _library()
    return _state["note"]
