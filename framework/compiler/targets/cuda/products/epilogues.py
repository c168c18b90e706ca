"""Epilogues: a bias and relu, and the gradient of a bias, in the call of a product.

    maximum(x @ kernel + bias, 0)           one call
    transpose(x) @ g, sum(g, axis=0)        one call

Each is fused for float32 only, where nothing else reads the intermediate results, and
where a trial of the call agreed with NumPy (`epilogue_trials`). The gradient of relu is
not fused: the bits that cuBLASLt keeps for it are set where ``x`` is 0 or NaN, too.
"""

import math

import numpy as np

from ....loops.accesses import layout_of, row_major
from ....program.instructions.array_instructions import Map, Reduce, View
from ....program.passes.program_rewriter import ProgramRewriter
from . import epilogue_trials
from .cublaslt_header import Epilogue
from .product import ProductKernel, calls_of, problem_of


def epilogues(program, is_usable=epilogue_trials.is_usable):
    """Fuse products with the instructions behind them; ``is_usable(problem)`` may veto."""
    for rewrite in (_bias_and_relu, _bias_gradients):
        rewrite(_Fusion(program, is_usable))


class EpilogueProduct(ProductKernel):
    """A product with an epilogue.

    Operands are the factors and optionally the bias; outputs are the product, and
    optionally the sum of the rows of the second factor.
    """

    __slots__ = ("epilogue", "title")

    def __init__(self, last, product, epilogue, *operands):
        super().__init__(last, product.limits, product.tf32)
        self.operands = (*product.operands[:2], *operands)
        self.epilogue, self.title = epilogue, product.name

    @property
    def name(self):
        return f"{self.title}_{self.epilogue.name.lower()}"

    @property
    def vector(self):
        """The bias, or its gradient, or None."""
        (*_, last) = self.outputs if self.epilogue == Epilogue.BGRADA else self.operands
        return last if self.epilogue.has_vector else None

    def steps_on(self, addresses):
        vector, bias = self.vector, None
        if vector is not None:
            bias = addresses[vector], layout_of(vector).offset * vector.dtype.itemsize
        problem = _problem(self, self.epilogue)
        return calls_of(self.product, problem, addresses, self.limits, bias)

    def verify(self, location_of, fail):
        product, vector = self.product, self.vector
        if product.batch:
            fail("a product with an epilogue must not be a batch")
        if vector is not None and not _is_vector(vector, product.n):
            fail(f"{vector} is not a vector of {product.n} entries")


# ------------------------------------------------------------------------------ rewrites


class _Fusion:
    """A program, the readers of each buffer, and the changes that are collected.

    ``products`` are the kernels without an epilogue; fused kernels are removed.
    """

    def __init__(self, program, is_usable):
        self.program, self._is_usable = program, is_usable
        self.rewriter, self.readers = ProgramRewriter(program), program.readers()
        self.positions = {each: i for i, each in enumerate(program.instructions)}
        self.products = [
            each
            for each in program.instructions
            if type(each) is ProductKernel and _is_one_product(each)
        ]

    def is_usable(self, problem):
        """Return whether a call with this epilogue is fast, and computes the same as NumPy."""
        layouts = problem.a, problem.b, problem.d
        size = 4 * sum([x.ld * x.columns for x in layouts])
        return size <= self.program.limits.trial_bytes and self._is_usable(problem)

    def only_reader(self, buffer):
        """Return the only instruction that reads a buffer that is not an output; else None."""
        readers = self.readers.get(buffer, ())
        is_output = buffer in self.program.outputs
        return readers[0] if len(readers) == 1 and not is_output else None

    def only_use(self, buffer):
        """Return ``(views, buffer, reader)``: the only reader, and reshapes in front of it."""
        views, reader = [], self.only_reader(buffer)
        while _is_reshape(reader):
            views.append(reader)
            (buffer,) = reader.outputs
            reader = self.only_reader(buffer)
        return views, buffer, reader

    def between(self, first, last):
        start, stop = self.positions[first] + 1, self.positions[last]
        return self.program.instructions[start:stop]

    def may_wait(self, first, last):
        """Return whether the first instruction could run where the last one is."""
        return not any([each.is_barrier for each in self.between(first, last)])

    def fuse(self, kernel, parts, outputs, views=()):
        """Insert a kernel, and views of its outputs, in place of the last of its parts.

        Its outputs, in order, replace ``outputs`` of the parts.
        """
        instructions = self.program.instructions
        count, specs = len(instructions), [(out.shape, out.dtype) for out in outputs]
        made = self.program.append(kernel, *specs)
        for out, other in zip(outputs, made, strict=True):
            self.rewriter.replace(out, other)
        del instructions[count:]
        for each in (*parts, *views):
            self.rewriter.drop(each)
        last = max(parts, key=self.positions.__getitem__)
        self.rewriter.put(last, [kernel, *views])


def _is_one_product(kernel):
    """Return whether a kernel is one float32 call with a nonempty reduction."""
    (out,), (a, *_) = kernel.outputs, kernel.operands
    is_filled = out.size and a.shape[-1] and out.dtype.char == "f"
    return bool(is_filled) and not kernel.product.batch


def _is_reshape(instruction):
    return type(instruction) is View and instruction.function is np.ndarray.reshape


def _is_vector(buffer, length):
    """Return whether a buffer has this many contiguous entries."""
    strides = [s for s, n in zip(layout_of(buffer).strides, buffer.shape) if n > 1]
    return buffer.size == length and strides in ([], [1])


def _is_zero(buffer):
    """Return whether a buffer is a constant of zeros, not of -0.0."""
    values = buffer.source
    if not isinstance(values, np.ndarray) or not buffer.is_constant or buffer.is_view:
        return False
    return not values.any() and not np.signbit(values).any()


def _problem(kernel, epilogue):
    return problem_of(kernel.product, epilogue, kernel.tf32)


def _bias_and_relu(fusion):
    """Fuse products with a bias, with relu, or with both."""
    taken = set()  # of two products that are added, one is the other one's bias
    for product in fusion.products:
        views, buffer, reader = fusion.only_use(product.outputs[0])
        if reader in taken:
            continue
        parts, bias, candidates = [product, *views], (), []
        added = _bias_of(reader, buffer, product.product.n)
        if added is not None:
            parts, bias, buffer = [*parts, reader], (added,), reader.outputs[0]
            candidates.append((Epilogue.BIAS, parts, buffer))
            views, buffer, reader = fusion.only_use(buffer)
            parts = [*parts, *views]
        if _is_relu(reader, buffer):
            kind = Epilogue.RELU_BIAS if bias else Epilogue.RELU
            candidates.append((kind, [*parts, reader], reader.outputs[0]))
        for epilogue, parts, out in reversed(candidates):
            last = parts[-1]
            is_usable = fusion.may_wait(product, last)
            if is_usable and fusion.is_usable(_problem(product, epilogue)):
                kernel = EpilogueProduct(last, product, epilogue, *bias)
                fusion.fuse(kernel, parts, [out])
                taken.update(parts)
                break
    fusion.rewriter.apply()


def _bias_of(reader, buffer, length):
    """Return the vector that an instruction adds to each row of a buffer, or None."""
    if not isinstance(reader, Map) or reader.function is not np.add:
        return None
    (out,), (x, y) = reader.outputs, reader.operands
    bias = y if x is buffer else x
    fits = bias.shape[-1:] == buffer.shape[-1:] == (length,) and _is_vector(
        bias, length
    )
    plain = out.same_spec(buffer) and bias.dtype == out.dtype and bias is not buffer
    return bias if fits and plain else None


def _is_relu(reader, buffer):
    """Return whether an instruction is the maximum of a buffer and 0."""
    if not isinstance(reader, Map) or reader.function is not np.maximum:
        return False
    x, y = reader.operands
    zeros = y if x is buffer else x
    return reader.outputs[0].same_spec(buffer) and _is_zero(zeros)


def _bias_gradients(fusion):
    """Fuse the gradient of a kernel, ``transpose(x) @ g``, with the gradient of the bias."""
    for reduce in list(fusion.program.instructions):
        product = _product_of_rows(fusion, reduce)
        if product is None:
            continue
        first, last = sorted([product, reduce], key=fusion.positions.__getitem__)
        views = _waiting_views(fusion, first, last)
        problem = _problem(product, Epilogue.BGRADA)
        if views is not None and fusion.is_usable(problem):
            kernel = EpilogueProduct(last, product, Epilogue.BGRADA)
            outputs = [*product.outputs, *reduce.outputs]
            fusion.fuse(kernel, [product, reduce], outputs, views)
            fusion.products.remove(product)
    fusion.rewriter.apply()


def _product_of_rows(fusion, reduce):
    """Return a product whose second factor has the rows that a reduction sums, or None."""
    if type(reduce) is not Reduce or reduce.ufunc is not np.add:
        return None
    (rows,) = reduce.operands
    plain = reduce.outputs[0].dtype == rows.dtype and rows.dtype.char == "f"
    if not plain or reduce.axes != tuple(range(len(rows.shape) - 1)) or not reduce.axes:
        return None
    return next((p for p in fusion.products if _has_rows(p.product, rows)), None)


def _has_rows(product, buffer):
    """Return whether the second factor of a product has all rows of a buffer."""
    (base, offset, strides), matrix = layout_of(buffer), product.b
    same = matrix.base is base and matrix.offset == offset and not matrix.transposed
    plain = strides == row_major(buffer.shape) and matrix.rows == product.n
    shape = math.prod(buffer.shape[:-1]), buffer.shape[-1]
    return same and plain and shape == (product.k, product.n)


def _waiting_views(fusion, first, last):
    """Return the views of the first instruction's output, moved behind the last one.

    None if something else reads it before that.
    """
    early, views = set(first.outputs), []
    for each in fusion.between(first, last):
        if each.is_barrier:
            return None
        if not early.isdisjoint(each.operands):
            if type(each) is not View:
                return None
            views.append(each)
            early.update(each.outputs)
    return views if early.isdisjoint(last.operands) else None
