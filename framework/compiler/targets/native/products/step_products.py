"""Products of the rows of each step with a matrix that is the same in all steps.

That matrix is packed once, before the first step, as panels of a few vectors. In a step
a tile of the result stays in registers, while the rows of the step are read in place.
Each entry of the result is one sum over ``k`` in ascending order, of fused
multiply-adds, as in `gemm`: so results do not depend on which rows are computed
together.
"""

import numpy as np

from ..jit import engine
from ..kernels.kernel import Arguments, call_blocks
from ..llvm_writer import POINTER, IRValue
from .product_calls import is_product, product_of, product_work

_I64 = np.dtype(np.int64)


class StepProduct:
    """The code of a product, with the interface of a `NativeKernel`, and its packed copy.

    ``packed`` is the number of the address of the copy, which has ``size`` entries.
    """

    can_fail = calls_blas = False
    packed_bytes = 0

    def __init__(self, instruction, is_shared):
        self.product, self.work = product_of(instruction), product_work(instruction)
        self.dtype, self.is_shared = instruction.outputs[0].dtype, is_shared
        width, registers = engine.vector_registers()
        self.lanes, self.packed = width // self.dtype.itemsize, None
        m, n = self.product.m, self.product.n
        vectors = 4 if m <= 4 and registers == 32 else 2
        self.vectors = min(vectors, -(-n // self.lanes))
        most = (registers - self.vectors - 1) // self.vectors
        count = -(-m // most)
        self.tiles = [m // count + (i < m % count) for i in range(count)]

    @classmethod
    def accepts(cls, instruction):
        """Return whether there is code for an instruction."""
        if not is_product(instruction):
            return False
        product = product_of(instruction)
        return not (product.batch or product.a.transposed)

    @property
    def width(self):
        """The columns of a panel."""
        return self.vectors * self.lanes

    @property
    def panels(self):
        return -(-self.product.n // self.width)

    @property
    def size(self):
        return self.panels * self.width * self.product.k

    def function(self, writer, name, parameters):
        bits = 8 * self.lanes * self.dtype.itemsize
        attributes = (
            f'nounwind noinline "prefer-vector-width"="{bits}" '
            f'"min-legal-vector-width"="{bits}"'
        )
        return writer.function(name, parameters, None, attributes)

    # --- the copy

    def pack(self, writer, source, target, panel):
        """Pack a panel; columns past the last one are zeros."""
        (k, n), b = (self.product.k, self.product.n), self.product.b
        down, along = b.steps
        first = panel * self.width
        source = writer.at(source, first * along + b.offset, self.dtype)
        target = writer.at(target, first * k, self.dtype)
        left = n - first
        count = writer.select(left < self.width, left, writer.index(self.width))

        def copy(p, i):
            entry = writer.load(
                writer.at(source, p * down + i * along, self.dtype), self.dtype
            )
            writer.store(entry, writer.at(target, p * self.width + i, self.dtype))

        if along == 1:
            with writer.loop(0, k) as p, writer.loop(0, count) as i:
                copy(p, i)
        else:
            with writer.loop(0, count) as i, writer.loop(0, k) as p:
                copy(p, i)
        with writer.loop(count, self.width) as i, writer.loop(0, k) as p:
            zero = writer.const(0, self.dtype)
            writer.store(zero, writer.at(target, p * self.width + i, self.dtype))

    # --- the product

    def define(self, writer, name, index_of):
        for rows in dict.fromkeys(self.tiles):
            self.tile(writer, f"{name}.{rows}_rows", rows)
        product = self.product
        parameters = [("context", POINTER), ("panel", _I64)]
        with self.function(writer, name, parameters) as (context, panel):
            arguments = Arguments(writer, context, index_of)
            a, out = arguments[product.a.base], arguments[product.out.base]
            a = writer.at(a, product.a.offset, self.dtype)
            packed = writer.at(context, self.packed, POINTER)
            b = writer.load(packed, POINTER)
            first = panel * self.width
            b = writer.at(b, first * product.k, self.dtype)
            out = writer.at(out, first, self.dtype)
            row = 0
            for rows in self.tiles:
                args = [
                    writer.at(a, row * product.a.rows, self.dtype),
                    b,
                    writer.at(out, row * product.out.rows, self.dtype),
                    product.n - first,
                ]
                writer.call(f"{name}.{rows}_rows", args)
                row += rows
            writer.ret()

    def tile(self, writer, name, rows):
        """Write the function of a tile.

        Its parameter ``left`` is the number of columns from the first one of the tile
        to the end.
        """
        product = self.product
        vector = np.dtype((self.dtype, self.lanes))
        positions = [(r, v) for r in range(rows) for v in range(self.vectors)]
        parameters = [("a", POINTER), ("b", POINTER), ("out", POINTER), ("left", _I64)]
        with self.function(writer, name, parameters) as (a, b, out, left):
            sums = [IRValue(writer, vector, "zeroinitializer")] * len(positions)
            with writer.carrying_loop(0, product.k, 1, sums) as (p, sums):
                entry = writer.at(a, p, self.dtype)
                row = writer.at(b, p * self.width, self.dtype)
                right = [
                    writer.load_vector(
                        writer.at(row, v * self.lanes, self.dtype), vector
                    )
                    for v in range(self.vectors)
                ]
                for r in range(rows):
                    x = writer.at(entry, r * product.a.rows, self.dtype)
                    x = writer.splat(writer.load(x, self.dtype), self.lanes)
                    for v in range(self.vectors):
                        i = r * self.vectors + v
                        sums[i] = writer.fma(x, right[v], sums[i])
            masks = [None] * self.vectors
            if product.n % self.width:
                lanes = self.lanes
                masks = [
                    writer.first_lanes(left - v * lanes, lanes)
                    for v in range(self.vectors)
                ]
            for (r, v), total in zip(positions, sums):
                target = r * product.out.rows + v * self.lanes
                target = writer.at(out, target, self.dtype)
                writer.store_vector(total, target, masks[v])
            writer.ret()

    def write(self, writer, name, arguments):
        if self.is_shared:
            call_blocks(writer, name, arguments.context, self.panels, self.work)
            return
        with writer.loop(0, self.panels) as panel:
            writer.call(name, [arguments.context, panel])
