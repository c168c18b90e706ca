"""Lines for the rules of `passes/algebra.py`."""

import numpy as np

import tapewright as tw
from tapewright.ops.array.shape import sum_to_shape

from .lines import (
    BLAS,
    FLOATS,
    REAL,
    SMALL,
    WHOLE,
    Line,
    all_but_one,
    full,
    number,
    sparse_specials,
    turned,
    wider,
)

ALGEBRA = {
    "narrower": Line(
        [
            lambda x, y: x + tw.broadcast_to(y[:1], x.shape),
            lambda x, y: tw.broadcast_to(x[:1], y.shape) * y,
            lambda x, y: tw.equal(tw.broadcast_to(x[:, :1], y.shape), y),
        ],
        [lambda x, y: x + y[:1], lambda x, y: tw.atan2(tw.broadcast_to(x[:1], y.shape), y)],
        also=[
            lambda x, y: tw.broadcast_to(x[:1], x.shape) + tw.broadcast_to(y[:1], x.shape),
            lambda x, y: tw.broadcast_to(x[:1], x.shape) + tw.broadcast_to(y[:, :1], x.shape),
        ],
        operands=2,
        sides=(SMALL, BLAS),
    ),
    "narrower, of one number": Line(
        [lambda x: x * full(3, x) - full(1, x), lambda x: tw.less(x, full(0, x))],
        [lambda x: x * all_but_one(3, x), lambda x: x + all_but_one(0, x)],
        also=[lambda x: x + full(np.nan, x), lambda x: full(-0.0, x) * x],
        dtypes=REAL,
    ),
    "times_one": Line(
        [lambda x: x * number(1, x), lambda x: number(1, x) * x, lambda x: full(1, x) * x],
        [
            lambda x: x * number(0, x),
            lambda x: x[:1, :1] * full(1, x),
            lambda x: tw.ones([2, 1, 1], x.dtype) * x,
        ],
        dtypes=(*FLOATS, *WHOLE),
    ),
    "over_constant": Line(
        [
            lambda x: x / number(1, x),
            lambda x: x / number(4, x),
            lambda x: x / full(0.5, x),
            lambda x: x / number(-1024, x),
            lambda x: x / number(2.0**-14, x),
        ],
        [
            lambda x: x / number(3, x),
            lambda x: x / number(0, x),
            lambda x: x / number(np.inf, x),
            lambda x: x / number(np.nan, x),
            lambda x: number(2, x) / x,
        ],
        also=[
            lambda x: x / number(2.0**-24, x),
            lambda x: x / number(np.finfo(x.dtype.name).tiny / 4, x),
            lambda x: x / number(np.finfo(x.dtype.name).tiny, x),
            lambda x: x / number(float(np.finfo(x.dtype.name).max), x),
        ],
        dtypes=FLOATS,
    ),
    "plus_nothing": Line(
        [
            lambda x: x - number(0, x),
            lambda x: x - full(0, x),
        ],
        [
            lambda x: number(0, x) - x,
            lambda x: x[:1] - full(0, x),
            lambda x: x - number(1, x),
        ],
        dtypes=(*FLOATS, *WHOLE),
    ),
    "plus_nothing, signed": Line(
        [lambda x: x + number(-0.0, x), lambda x: number(-0.0, x) + x],
        [
            lambda x: x + number(0, x),
            lambda x: x - number(-0.0, x),
            lambda x: number(0.0, x) + x,
        ],
        dtypes=FLOATS,
    ),
    "plus_negative": Line(
        [lambda x, y: x + (-y), lambda x, y: (-x) + y, lambda x, y: (-x) + (-y)],
        [lambda x, y: x + y, lambda x, y: -(x + y)],
        operands=2,
    ),
    "minus_negative": Line(
        [lambda x, y: x - (-y), lambda x, y: (-x) - (-y)],
        [lambda x, y: (-x) - y, lambda x, y: -(x - y)],
        operands=2,
    ),
    "two_negatives": Line(
        [
            lambda x, y: (-x) * (-y),
            lambda x, y: (-x) / (-y),
            lambda x, y: (-x) * number(3, x) + number(3, y) * (-y),
            lambda x, y: (-x) / number(3, x),
            lambda x, y: number(3, x) / (-x),
            lambda x, y: (-x) * full(0, x),
            lambda x, y: full(np.inf, x) / (-x),
        ],
        [lambda x, y: (-x) * y, lambda x, y: x / (-y), lambda x, y: (-x) * tw.abs(y)],
        operands=2,
        dtypes=FLOATS,
    ),
    "two_negatives, of whole numbers": Line(
        [],
        [lambda x, y: (-x) * (-y), lambda x, y: (-x) * number(3, x)],
        operands=2,
        dtypes=WHOLE,
    ),
    "double_negative": Line(
        [lambda x: -tw.negative(x), lambda x: tw.tanh(-tw.negative(x))], [tw.negative]
    ),
    "passed_on": Line(
        [tw.identity, tw.stop_gradient, lambda x: tw.identity(x) * number(2, x)]
    ),
    "cast_back": Line(
        [
            lambda x: tw.cast(tw.cast(x, wider(x)), x.dtype),
            lambda x: tw.cast(tw.cast(x, wider(x)), x.dtype) + x,
        ],
        [
            lambda x: tw.cast(tw.cast(x, "float16"), x.dtype),
            lambda x: tw.cast(tw.cast(x, "int8"), x.dtype),
            lambda x: tw.cast(tw.cast(x, "bool"), x.dtype),
            lambda x: tw.cast(tw.cast(x, wider(x)), "int16"),
        ],
        dtypes=("float16", "float32", "int32", "uint8"),
    ),
    "known_condition": Line(
        [
            lambda x, y: tw.where(tw.constant(True), x, y),
            lambda x, y: tw.where(tw.fill(x.shape, False), x, y),
            lambda x, y: tw.where(tw.fill(x.shape, True), x, y) + y,
        ],
        [
            lambda x, y: tw.where(tw.constant(True), x[:1], y),
            lambda x, y: tw.where(tw.equal(x, y), x, y),
            lambda x, y: tw.where(tw.constant([True] + [False] * 14), x, y),
        ],
        operands=2,
    ),
    "sum_of_nothing": Line(
        [lambda x: sum_to_shape(x, tuple(x.shape))],
        [lambda x: sum_to_shape(x, (1, *x.shape[1:]))],
        dtypes=REAL,
    ),
    "broadcast_of_broadcast": Line(
        [
            lambda x: tw.broadcast_to(tw.broadcast_to(x, [2, *x.shape]), [3, 2, *x.shape]),
            lambda x: tw.broadcast_to(x, x.shape),
            lambda x: tw.broadcast_to(tw.broadcast_to(x[:, :1], x.shape), [2, *x.shape]),
        ],
        [lambda x: tw.broadcast_to(x, [2, *x.shape])],
    ),
    "concat_of_one": Line(
        [lambda x: tw.concat([x], 0), lambda x: tw.concat([x], 1) * x],
        [lambda x: tw.concat([x, x], 0)],
    ),
    "one_reshape": Line(
        [
            lambda x: tw.reshape(tw.reshape(x, [-1]), [5, -1]),
            lambda x: tw.reshape(x, x.shape),
            lambda x: tw.squeeze(tw.expand_dims(tw.reshape(x, [3, -1]), 1)),
            lambda x: tw.expand_dims(tw.reshape(x, [-1]), 0) * number(2, x),
        ],
        [lambda x: tw.reshape(x, [-1]), lambda x: tw.reshape(tw.transpose(x), [-1])],
    ),
    "one_transpose": Line(
        [
            lambda x: tw.transpose(tw.transpose(x)),
            lambda x: tw.transpose(x, [0, 1]),
            lambda x: turned(tw.reshape(x, [3, 5, 15]), [1, 2, 0], [1, 2, 0]),
            lambda x: turned(tw.reshape(x, [5, 3, 15]), [0, 2, 1], [2, 1, 0]),
        ],
        [lambda x: tw.transpose(x)],
    ),
    "one_transpose, conjugated": Line(
        [],
        [
            lambda x: tw.transpose(tw.transpose(x, conjugate=True)),
            lambda x: tw.transpose(tw.transpose(x), conjugate=True),
            lambda x: tw.transpose(x, [0, 1], conjugate=True),
        ],
        dtypes=("complex64",),
    ),
    "product_of_transposed": Line(
        [
            lambda x, y: tw.transpose(x) @ y,
            lambda x, y: x @ tw.transpose(y),
            lambda x, y: tw.transpose(x) @ tw.transpose(y),
            lambda x, y: tw.matmul(tw.transpose(x), y, transpose_a=True),
            lambda x, y: tw.transpose(x) @ x + y @ tw.transpose(y),
            lambda x, y: tw.transpose(tw.stack([x, y]), [0, 2, 1]) @ tw.stack([y, -x]),
        ],
        [
            lambda x, y: x @ y,
            lambda x, y: tw.transpose(tw.stack([x, y]), [1, 0, 2]) @ x[:, :2],
        ],
        also=[lambda x, y: tw.transpose(x, conjugate=True) @ y],
        operands=2,
        dtypes=(*FLOATS, "int32", "complex64"),
        make=(sparse_specials,),
    ),
}  # fmt: skip
