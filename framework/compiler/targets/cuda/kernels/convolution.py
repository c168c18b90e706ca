"""Convolutions and their gradients: products with the matrix of windows, or direct sums.

The matrix of windows ("im2col") has a row for each output position and a column for
each entry of a window, zeros where it overlaps the padding. cuBLASLt multiplies it with
the filters, or with the gradient; or the product is the gradient of this matrix, and
each entry of the images adds up its windows in a fixed order. For small work or small
groups, `contract` computes the sums by definition.
"""

import math
from typing import NamedTuple

import numpy as np

from tapewright.core.hardware.gpu import tensor_float_32_execution_enabled

from ....loops.accesses import in_order, layout_of
from ....loops.contractions.matrix_products import Matrix, Product
from ....program.index_maps import Affine, convolution_maps
from ....program.instructions.array_instructions import View
from ..kernel import CudaKernel
from ..products.product import ProductKernel, calls_of, problem_of
from .contraction import array_of, contract, count_parts, sum_parts

# Multiplications from which on products are faster on an H100, and the filters of a group.
LARGE, WIDE = 1 << 21, 32


class ConvolutionWindows(NamedTuple):
    """A convolution or one of its gradients, by the arguments of `convolution_maps`.

    ``roles``: the numbers of images, filters and outputs among the two operands and the
    output, which is 2.
    """

    roles: tuple
    images: tuple
    window: tuple
    counts: tuple
    count: int
    strides: tuple
    befores: tuple
    dilations: tuple
    groups: int

    @property
    def depth(self):
        """The number of image channels in a group."""
        return self.images[-1] // self.groups

    @property
    def each(self):
        """The number of filters in a group."""
        return self.count // self.groups

    @property
    def window_count(self):
        """The number of windows in an image."""
        return math.prod(self.counts)

    @property
    def size(self):
        """The number of entries of a window in a group."""
        return math.prod(self.window) * self.depth

    @property
    def is_plain(self):
        """Return whether the windows are exactly the entries of the images."""
        ones = {*self.window, *self.strides} == {1} and self.groups == 1
        return ones and self.images[1:-1] == self.counts and not any(self.befores)

    @property
    def maps(self):
        """``(loops, images, filters, outputs)``."""
        return convolution_maps(*self[1:])

    @property
    def filters(self):
        """The shape of the filters."""
        return (*self.window, self.depth, self.count)


def windows_of(instruction):
    """The `ConvolutionWindows` of a contraction, or None."""
    maps = instruction.maps
    rank = (len(maps.loops) - 4) // 2
    every = (*maps.operands, maps.output)
    shapes = [a.shape for a in (*instruction.operands[:2], *instruction.outputs)]
    for roles in ((0, 1, 2), (2, 1, 0), (0, 2, 1)) if rank > 0 else ():
        if [len(shapes[r]) for r in roles] != [rank + 2] * 3:
            continue
        windows = _windows(roles, maps.loops, every[roles[0]], shapes, rank)
        if windows and [maps.loops, *[every[r] for r in roles]] == list(windows.maps):
            return windows
    return None


def _windows(roles, loops, of_images, shapes, rank):
    """Return the windows that loops and the map of the images describe, or None."""
    loops, spatial = tuple(loops), of_images[1 : rank + 1]
    if not all([len(index.terms) == 2 for index in spatial]):
        return None
    images, counts, window = shapes[roles[0]], loops[1 : rank + 1], loops[rank + 3 : -1]
    groups, each = loops[rank + 1 : rank + 3]
    strides, dilations = zip(*[[f for _, f in index.terms] for index in spatial])
    befores = tuple([-index.offset for index in spatial])
    if groups * loops[-1] != images[-1]:
        return None
    return ConvolutionWindows(
        roles,
        images,
        window,
        counts,
        groups * each,
        strides,
        befores,
        dilations,
        groups,
    )


# ------------------------------------------------------------------- choice of a kernel


class ContractionKernel:
    """Selects the kernel that replaces a `Contract`: the entry of the table of kernels."""

    @staticmethod
    def accepts(instruction):
        return ProductKernel.accepts(instruction) or DirectKernel.accepts(instruction)

    @staticmethod
    def of(program, instruction):
        if ProductKernel.accepts(instruction):
            return ProductKernel.of(program, instruction)
        windows = windows_of(instruction)
        if windows is None:
            return DirectKernel.of(program, instruction)
        if windows.is_plain:
            return _plain_product(program, instruction, windows)
        if _is_large(windows, program.limits):
            return WindowsKernel.of(program, instruction)
        return DirectKernel.of(program, instruction)


def _is_large(windows, limits):
    """Return whether a product with the matrix of windows is faster than direct sums."""
    image = windows.groups * windows.window_count * windows.size
    work = windows.images[0] * image * windows.each
    is_wide = windows.groups == 1 or windows.each >= WIDE
    return is_wide and work >= LARGE and image * 8 <= limits.windows_bytes


def _plain_product(program, instruction, windows):
    """Return the matrix product of a convolution with windows of one entry."""
    a, b = [
        _matrix(program, operand, instruction.node) for operand in instruction.operands
    ]
    images, filters, _ = windows.roles
    if images == 2:
        b = _transposed(program, b, instruction.node)
    if filters == 2:
        a = _transposed(program, a, instruction.node)
    tf32 = tensor_float_32_execution_enabled()
    kernel = ProductKernel(instruction, program.limits, tf32)
    kernel.operands = a, b
    return kernel


def _matrix(program, buffer, node):
    """The rows along the last axis of a buffer, as a matrix."""
    buffer = in_order(program, buffer, node)
    shape = math.prod(buffer.shape[:-1]), buffer.shape[-1]
    view = View(np.ndarray.reshape, buffer, (shape,), node)
    return program.append(view, (shape, buffer.dtype))[0]


def _transposed(program, matrix, node):
    view = View(np.ndarray.transpose, matrix, ((1, 0),), node)
    return program.append(view, (matrix.shape[::-1], matrix.dtype))[0]


# --------------------------------------------------------------------------- direct sums


class DirectKernel(CudaKernel):
    """Any contraction: each entry of the output sums its products directly."""

    __slots__ = ()
    takes_views = True

    @classmethod
    def accepts(cls, instruction):
        """Return whether it is a contraction of two arrays of one floating dtype.

        Half precision operands have a float32 output.
        """
        if len(instruction.operands) != 2:
            return False
        arrays = (*instruction.operands, *instruction.outputs)
        is_known = "".join([a.dtype.char for a in arrays]) in (
            "fff",
            "ddd",
            "eef",
            "EEf",
        )
        return (
            is_known and all([a.size for a in arrays]) and all(instruction.maps.loops)
        )

    def scratch_specs(self, instruction):
        (out,), parts = instruction.outputs, _parts(instruction)
        return [((parts, *out.shape), out.dtype)] if parts > 1 else []

    def steps_on(self, addresses):
        (out,), (a, b, *scratch) = self.outputs, self.operands
        maps = self.replaced.maps
        operands = list(zip(map(array_of, (a, b)), maps.operands))
        if not scratch:
            into = array_of(out), maps.output
            return [contract(addresses, maps.loops, operands, into)]
        (parts,) = scratch
        into, count = (array_of(parts), maps.output), parts.shape[0]
        return [
            contract(addresses, maps.loops, operands, into, count),
            sum_parts(addresses, parts, out),
        ]


def _parts(instruction):
    maps = instruction.maps
    return count_parts(maps.loops, maps.output, instruction.outputs[0].size)


# ------------------------------------------------------- products with the windows' matrix


class WindowsKernel(CudaKernel):
    """A convolution, or a gradient of one, as a product with the matrix of windows.

    The matrix has the axes ``[images, *counts, groups, *window, depth]``.
    """

    __slots__ = ("tf32",)
    takes_views = True

    @classmethod
    def accepts(cls, instruction):
        return DirectKernel.accepts(instruction) and windows_of(instruction) is not None

    @classmethod
    def of(cls, program, instruction):
        kernel, node = cls(instruction, program.limits), instruction.node
        kernel.tf32 = tensor_float_32_execution_enabled()
        images = windows_of(instruction).roles[0]
        kernel.operands = tuple(
            [
                a if i == images or a.is_scratch else in_order(program, a, node)
                for i, a in enumerate(kernel.operands)
            ]
        )
        return kernel

    def scratch_specs(self, instruction):
        windows = windows_of(instruction)
        images = windows.roles[0]
        dtype = (*instruction.operands, *instruction.outputs)[images].dtype
        return [(_matrix_shape(windows, dtype, self.limits.windows_bytes), dtype)]

    def steps_on(self, addresses):
        windows, steps = windows_of(self.replaced), []
        *arrays, matrix = map(array_of, self.operands)
        arrays.append(array_of(self.outputs[0]))
        images, filters, places_of = [arrays[r] for r in windows.roles]
        for start in range(0, images.shape[0], matrix.shape[0]):
            stop = min(start + matrix.shape[0], images.shape[0])
            part = images.rows(start, stop), filters, places_of.rows(start, stop)
            part = *part, matrix.rows(0, stop - start)
            steps += self.part(addresses, windows, *part, adds=start > 0)
        return steps

    def part(self, addresses, windows, images, filters, placed, matrix, adds):
        """Return the steps for some images; ``adds`` to the gradient of the filters."""
        loops, of_images, of_matrix = _matrix_maps(windows, matrix.shape)
        images, whole = (images, of_images), (matrix, of_matrix)
        matrix, filters, placed = [
            _group_matrices(array, shape, windows.groups)
            for array, shape in (
                (matrix, (-1, windows.size)),
                (filters, (windows.size, windows.each)),
                (placed, (-1, windows.each)),
            )
        ]
        made = windows.roles.index(2)
        if made == 0:
            product = self.product(addresses, placed, filters.turned, matrix)
            return [*product, contract(addresses, loops, [whole], images)]
        factors = (matrix, filters, placed), (matrix.turned, placed, filters)
        product = self.product(addresses, *factors[made == 1], adds=adds and made == 1)
        return [contract(addresses, loops, [images], whole), *product]

    def product(self, addresses, a, b, out, adds=False):
        (m, k), n = a.shape, b.shape[1]
        product = Product((a.groups,), m, n, k, a.matrix, b.matrix, out.matrix)
        problem = problem_of(product, tf32=self.tf32, adds=adds)
        return calls_of(product, problem, addresses, self.limits)


def _matrix_shape(windows, dtype, room):
    """Return the shape of the matrix of as many images as fit into ``room`` bytes."""
    image = (*windows.counts, windows.groups, *windows.window, windows.depth)
    count = room // (math.prod(image) * dtype.itemsize)
    return (max(1, min(windows.images[0], count)), *image)


def _matrix_maps(windows, shape):
    """Return ``(loops, images, matrix)``: the image entry of each matrix entry."""
    rank, group = len(windows.window), len(windows.window) + 1
    spatial = [
        Affine(((1 + i, s), (group + 1 + i, d)), -before)
        for i, (s, d, before) in enumerate(
            zip(windows.strides, windows.dilations, windows.befores)
        )
    ]
    channel = Affine(((group, windows.depth), (group + rank + 1, 1)))
    of_images = (Affine(((0, 1),)), *spatial, channel)
    return shape, of_images, tuple([Affine(((n, 1),)) for n in range(len(shape))])


class _GroupMatrices(NamedTuple):
    """The matrices of all groups, side by side in an array in C order."""

    shape: tuple
    groups: int
    matrix: Matrix

    @property
    def turned(self):
        matrix = self.matrix._replace(transposed=True)
        return self._replace(shape=self.shape[::-1], matrix=matrix)


def _group_matrices(array, shape, groups):
    rows, columns = shape
    rows = math.prod(array.shape) // (groups * columns) if rows == -1 else rows
    base, offset, _ = layout_of(array.buffer)
    strides, width = (columns,), groups * columns
    matrix = Matrix(base, offset + array.offset, strides, False, width)
    return _GroupMatrices((rows, columns), groups, matrix)
