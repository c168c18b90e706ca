"""Matrix products and einsum."""

import numpy as np

from .recurrent import Affine


def affine(w, inputs, kernel, bias):
    return Affine(inputs, kernel, bias)


def matmul(w, a, b, *, transpose_a, transpose_b):
    return w.emit("MatMul", _turned(w, a, transpose_a), _turned(w, b, transpose_b))


def _turned(w, x, transpose):
    if not transpose:
        return x
    order = [*range(x.rank)]
    order[-2:] = order[-1], order[-2]
    return x.transposed(w.block, order)


def cross(w, a, b):
    ahead, behind = np.array([1, 2, 0]), np.array([2, 0, 1])

    def turned(x, order):
        return w.emit("Gather", x, order, axis=x.rank - 1)

    left = w.emit("Mul", turned(a, ahead), turned(b, behind))
    right = w.emit("Mul", turned(a, behind), turned(b, ahead))
    return w.emit("Sub", left, right)


def det(w, input):
    return w.emit("Det", input)


def einsum(w, *operands, equation, optimize):
    inputs, _, output = equation.replace(" ", "").partition("->")
    product = _as_product(w, operands, inputs.split(","), output)
    if product is not None:
        return product
    return w.emit("Einsum", *operands, equation=equation)


def _as_product(w, operands, inputs, output):
    """Express an einsum of two operands as a MatMul; return None if it is not one.

    Runtimes multiply matrices many times as fast as they evaluate an einsum.
    """
    if len(operands) != 2 or "." in "".join(inputs):
        return None
    a, b = inputs
    if len(set(a)) < len(a) or len(set(b)) < len(b) or "->" in output:
        return None
    if set(output) - set(a) - set(b) or (set(a) ^ set(b)) - set(output):
        return None
    batch = [c for c in output if c in a and c in b]
    rows = [c for c in output if c in a and c not in b]
    columns = [c for c in output if c in b and c not in a]
    summed = [c for c in a if c in b and c not in output]
    if not summed:
        return None
    dims = dict(zip(a, operands[0].shape)) | dict(zip(b, operands[1].shape))
    if batch:
        left = _matrices(w, operands[0], a, batch, rows, summed, dims)
    else:  # rows of several axes need not become one
        left = _matrices(w, operands[0], a, rows[:-1], rows[-1:], summed, dims)
    right = _matrices(w, operands[1], b, batch, summed, columns, dims)
    made = w.emit("MatMul", left, right)
    order = [*batch, *rows, *columns]
    if (batch and len(rows) != 1) or len(columns) != 1 or not rows:
        made = w.emit("Reshape", made, w.sizes([dims[c] for c in order]))
    if "".join(order) != output:
        made = w.emit("Transpose", made, perm=[order.index(c) for c in output])
    return made


def _matrices(w, x, letters, batch, rows, columns, dims):
    """Return an operand as a stack of matrices, each group of axes as one."""
    order = [letters.index(c) for c in (*batch, *rows, *columns)]
    made = x.transposed(w.block, order)
    if len(rows) == 1 and len(columns) == 1:
        return made
    sizes = [dims[c] for c in batch]
    for group in rows, columns:
        size = 1
        for c in group:
            size = size * dims[c]
        sizes.append(size)
    return w.emit("Reshape", made, w.sizes(sizes))


PRODUCTS = {
    "affine": affine,
    "cross": cross,
    "det": det,
    "einsum": einsum,
    "matmul": matmul,
}
