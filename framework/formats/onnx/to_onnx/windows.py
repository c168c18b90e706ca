"""Convolution, pooling and resizing, with channels first.

Pooling and resizing are ops on one axis here: steps over several axes of one image are
joined in a `Plan`, and become one node.
"""

import math

import numpy as np

from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.ops.convolution.windows import window_positions
from tapewright.ops.image import resampling

from ..operands import Operand, Plan, Untranslatable
from .arrays import LAST

WINDOWS = {}


def _translates(function):
    WINDOWS[function.__name__] = function
    return function


def _refuse(reason):
    raise Untranslatable(reason)


def _spatial(x, axis):
    """Return the number of a spatial axis; refuse other axes."""
    number = axis % x.rank - 1
    if not 3 <= x.rank <= 5 or not 0 <= number < x.rank - 2:
        _refuse(f"axis {axis} of shape {x.shape} is not a spatial axis of images")
    return number


# ------------------------------------------------------------------------ convolution


class Convolution(Plan):
    """A convolution that may still get a bias."""

    is_first = True

    def __init__(self, op, input, filters, channels, bias=None, **attributes):
        self.op, self.input, self.filters, self.bias = op, input, filters, bias
        self.channels, self.attributes = channels, attributes

    def absorbing(self, name, *operands):
        if name != "add" or self.bias is not None or operands[0].value is None:
            return None
        if operands[0].shape != (self.channels,):
            return None
        given = self.op, self.input, self.filters, self.channels
        return Convolution(*given, operands[0], **self.attributes)

    def write(self, block):
        rank = self.filters.rank
        order = (
            rank - 1,
            rank - 2,
            *range(rank - 2),
        )  # both ops have the outputs first
        filters = self.filters.transposed(block, order)
        return block.emit(
            self.op, self.input.first, filters, self.bias, **self.attributes
        )


def _margins(sizes, window, strides, padding, dilations):
    """Return the attributes of paddings; SAME of an open size is left to the runtime."""
    pairs = [padding] * len(window) if isinstance(padding, str) else padding
    if padding == "SAME" and any([is_symbolic(n) for n in sizes]):
        return {"auto_pad": "SAME_UPPER"}
    margins = [
        window_positions(n, extent, stride, pair, dilation)[:2]
        if pair == "SAME"
        else (0, 0)
        if pair == "VALID"
        else pair
        for n, extent, stride, pair, dilation in zip(
            sizes, window, strides, pairs, dilations
        )
    ]
    return {"pads": [b for b, _ in margins] + [a for _, a in margins]}


def _check_channels(groups):
    if is_symbolic(groups):
        _refuse("a convolution of an open number of channels; give it in the signature")


@_translates
def convolution(w, input, filters, *, strides, padding, dilations, groups):
    _check_channels(groups)
    window = filters.shape[:-2]
    margins = _margins(input.shape[1:-1], window, strides, padding, dilations)
    if "auto_pad" in margins and set(dilations) != {1}:
        _refuse("SAME padding of a dilated convolution of an open size")
    return Convolution(
        "Conv",
        input,
        filters,
        filters.shape[-1],
        kernel_shape=window,
        strides=strides,
        dilations=dilations,
        group=groups,
        **margins,
    )


@_translates
def convolution_input_gradient(
    w, g, filters, *, size, strides, padding, dilations, groups
):
    _check_channels(groups)
    window = filters.shape[:-2]
    pairs = [padding] * len(window) if isinstance(padding, str) else padding
    pads, more = [], []
    for n, m, *each in zip(g.shape[1:-1], size, window, strides, pairs, dilations):
        extent, stride, pair, dilation = each
        before, after, _ = window_positions(m, extent, stride, pair, dilation)
        full = stride * (n - 1) + (extent - 1) * dilation + 1
        beyond = m - (full - before - after)
        if any([is_symbolic(each) for each in (before, after, beyond)]):
            _refuse("the size of a transposed convolution depends on open sizes")
        pads.append((before, after))
        more.append(beyond)
    return Convolution(
        "ConvTranspose",
        g,
        filters,
        filters.shape[-2] * groups,
        kernel_shape=window,
        strides=strides,
        dilations=dilations,
        group=groups,
        pads=[b for b, _ in pads] + [a for _, a in pads],
        output_padding=more if any(more) else None,
    )


# ----------------------------------------------------------- one axis after the other


class AxisSteps(Plan):
    """Steps of one kind along spatial axes of an image: ``steps[axis] = arguments``."""

    is_first = True

    def __init__(self, kind, source, steps):
        self.kind, self.source, self.steps = kind, source, steps

    @classmethod
    def of(cls, kind, x, axis, arguments):
        """Return the steps that lead to ``x``, if they are of this kind, and one more."""
        plan = x.plan
        if type(plan) is cls and plan.kind == kind and axis not in plan.steps:
            return cls(kind, plan.source, {**plan.steps, axis: arguments})
        return cls(kind, x, {axis: arguments})

    def write(self, block):
        axes = range(self.source.rank - 2)
        return self.kind.write(block, self.source, [self.steps.get(i) for i in axes])


class Pool:
    """A `window_max` or `window_mean`, and the padding of axes without a step."""

    def __init__(self, op, padding, **attributes):
        self.op, self.padding, self.attributes = op, padding, attributes

    def write(self, block, x, steps):
        steps = [(1, 1, self.padding, 1) if step is None else step for step in steps]
        window, strides, paddings, dilations = [list(each) for each in zip(*steps)]
        sizes = x.shape[1:-1]
        padding = "SAME" if self.padding == "SAME" else paddings
        margins = _margins(sizes, window, strides, padding, dilations)
        return block.emit(
            self.op,
            x.first,
            kernel_shape=window,
            strides=strides,
            dilations=dilations,
            **margins,
            **self.attributes,
        )


def _pooling(name, op, **attributes):
    kinds = {each: Pool(op, each, **attributes) for each in ("SAME", "VALID")}

    def translate(w, input, *, axis, size, stride, padding, dilation):
        given = size, stride, padding, dilation
        if is_symbolic(size):
            _refuse("a window of an open size; use a global pooling layer")
        count = window_positions(input.shape[axis], *given)[2]
        if padding == "SAME" and is_symbolic(input.shape[axis]) and dilation != 1:
            _refuse("SAME padding of dilated windows of an open size")
        if padding == "SAME" and size == 1:  # runtimes fail for margins below zero
            padding = "VALID"
        if padding == "SAME" and dilation != 1:
            padding = window_positions(input.shape[axis], *given)[:2]
        given = size, stride, padding, dilation
        kind = kinds["SAME" if padding == "SAME" else "VALID"]
        if 3 <= input.rank <= 5 and 0 < axis % input.rank < input.rank - 1:
            return AxisSteps.of(kind, input, axis % input.rank - 1, given)
        return _pooled_alone(w, input, axis % input.rank, kind, given, count)

    translate.__name__ = name
    return _translates(translate)


def _pooled_alone(w, x, axis, kind, given, count):
    """Pool along any axis, by reshaping it to a spatial axis."""
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    shape = (before, x.shape[axis], after, 1)  # channels last
    flat = w.emit("Reshape", x, w.sizes(shape))
    image = Operand(shape, x.dtype, w.block, flat)
    pooled = Operand(shape, x.dtype, w.block, plan=AxisSteps(kind, image, {0: given}))
    sizes = w.sizes([*x.shape[:axis], count, *x.shape[axis + 1 :]])
    return w.emit("Reshape", pooled, sizes)


_pooling("window_max", "MaxPool")
_pooling("window_mean", "AveragePool", count_include_pad=0)


class Repeat:
    """Repetition of entries along axes."""

    def write(self, block, x, steps):
        times = [1, 1, *[1 if step is None else step[0] for step in steps]]
        return block.emit(
            "Resize",
            x.first,
            None,
            np.array(times, np.float32),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )


REPEAT = Repeat()


@_translates
def upsample(w, images, *, axis, times):
    return AxisSteps.of(REPEAT, images, _spatial(images, axis), (times,))


class Interpolation:
    """Resampling with half-pixel centers, as in TensorFlow 2."""

    def __init__(self, **attributes):
        self.attributes = attributes

    def write(self, block, x, steps):
        dims = (x.shape[0], x.shape[-1], *x.shape[1:-1])
        sizes = list(dims)
        for i, step in enumerate(steps, 2):
            if step is not None:
                sizes[i] = step[0]
        return block.emit(
            "Resize",
            x.first,
            None,
            None,
            block.writer.sizes(sizes),
            coordinate_transformation_mode="half_pixel",
            **self.attributes,
        )


NEAREST = Interpolation(mode="nearest", nearest_mode="round_prefer_ceil")
LINEAR = Interpolation(mode="linear")


@_translates
def resample(w, images, *, axis, size, method, antialias):
    extent = images.shape[axis]
    grows = not (is_symbolic(size) or is_symbolic(extent)) and size >= extent
    if method == "nearest" and 3 <= images.rank <= 4:
        return AxisSteps.of(NEAREST, images, _spatial(images, axis), (size,))
    if method == "bilinear" and (grows or not antialias) and 3 <= images.rank <= 4:
        return AxisSteps.of(LINEAR, images, _spatial(images, axis), (size,))
    if is_symbolic(size) or is_symbolic(extent):
        _refuse(f"resizing by {method!r} of an open size")
    return _along(w, images, axis, _matrix(size, extent, method, antialias))


def _matrix(size, extent, method, antialias):
    identity = np.eye(extent, dtype=np.float64)
    return np.asarray(
        resampling.resample(identity[:, :, None], -2, size, method, antialias)
    )[..., 0].T


def _along(w, x, axis, matrix):
    """Multiply an axis by a matrix."""
    axis %= x.rank
    matrix = matrix.astype(x.dtype)
    if axis == x.rank - 2:
        return w.emit("MatMul", matrix, x)
    order = [*range(x.rank)]
    order[axis], order[-2] = order[-2], order[axis]
    turned = x.transposed(w.block, order)
    return w.emit("Transpose", w.emit("MatMul", matrix, turned), perm=order)


# --------------------------------------------------------------------------- patches


@_translates
def unfold(w, input, *, axis, size, stride, padding, dilation):
    axis %= input.rank
    extent = input.shape[axis]
    before, after, count = window_positions(extent, size, stride, padding, dilation)
    if is_symbolic(count) or is_symbolic(extent):
        _refuse("windows of an axis of an open size")
    pads = [0] * (2 * input.rank)
    pads[axis], pads[axis + input.rank] = max(before, 0), max(after, 0)
    x = input
    if any(pads):
        x = w.emit("Pad", x, w.axes(*pads), np.zeros((), input.dtype))
    first = np.arange(count)[:, None] * stride + max(-before, 0)
    positions = first + np.arange(size) * dilation
    return w.emit("Gather", x, positions.astype(np.int64), axis=axis)


@_translates
def shift(w, x, *, axis, by):
    axis %= x.rank
    if not by:
        return w.emit("Identity", x)
    pads = [0] * (2 * x.rank)
    pads[axis + (0 if by > 0 else x.rank)] = abs(by)
    if by > 0:
        kept = w.emit("Slice", x, w.axes(0), w.axes(-by), w.axes(axis))
    else:
        kept = w.emit("Slice", x, w.axes(-by), w.axes(LAST), w.axes(axis))
    return w.emit("Pad", kept, w.axes(*pads), np.zeros((), x.dtype))
