"""Lines for the forms of ops in a program, and for passes over programs."""

import numpy as np

import tapewright as tw
from tapewright.ops.math.comparison import where_positive

from .image_lines import (
    CONVOLUTION,
    OF_IMAGES,
    convolved,
    images,
    pooled,
)
from .lines import (
    BLAS,
    BLOCKS,
    BYTES,
    FLOATS,
    NUMBERS,
    REAL,
    SINGLE,
    SMALL,
    Line,
    all_but_one,
    full,
    gradient,
    number,
    pairs,
    tame_pairs,
)


def gated(x, y):
    """The gradient of relu, which is a `where_positive`."""
    return gradient(lambda x: tw.nn.relu(x) * y, x)


FORMS = {
    "where_positive": Line(
        [
            lambda x, y: where_positive(x, y),
            lambda x, y: where_positive(x, y) + where_positive(y, x),
            gated,
        ],
        also=[lambda x, y: where_positive(x, full(1, y))],
        operands=2,
        dtypes=REAL,
        sides=(SMALL, BYTES),
    ),
    "where_positive, of one row": Line(
        [],
        also=[
            lambda x, y: where_positive(x, y[:1]),
            lambda x, y: where_positive(x[:0], y[:0]),
        ],
        operands=2,
        dtypes=("float16", "float32"),
    ),
    "clip_by_norm": Line(
        [
            *[lambda x, c=c: tw.clip_by_norm(x, c) for c in (3.0, 1e30, 0.0, -1.0)],
            *[lambda x, c=c: tw.clip_by_norm(x, c) for c in (np.nan, np.inf, 1e-30)],
            lambda x: tw.clip_by_norm(tw.where(tw.math.is_finite(x), x, full(1, x)), 2.0),
            lambda x: tw.clip_by_norm(tw.fill([4], x[3, 0]), x[7, 0]),
        ],
        [lambda x: tw.clip_by_norm(x, 3.0, axes=1)],
        dtypes=REAL,
        make=(pairs, tame_pairs),
        sides=(SMALL, BLAS),
    ),
    "concat": Line(
        [
            lambda x, y: tw.concat([x, y], 0),
            lambda x, y: tw.concat([x, y, x], 1),
            lambda x, y: tw.concat([x[:0], y], -2) * number(2, x),
        ],
        operands=2,
        dtypes=(*NUMBERS, "bool"),
    ),
    "convolution": Line([convolved], also=[lambda x, f: convolved(x[:0], f)], **CONVOLUTION),
    "convolution_input_gradient": Line(
        [lambda x, f: gradient(lambda x: convolved(x, f), x)[1]], **CONVOLUTION
    ),
    "convolution_filter_gradient": Line(
        [lambda x, f: gradient(lambda f: convolved(x, f, "SAME"), f)[1]], **CONVOLUTION
    ),
    "relu": Line(
        [
            lambda x: tw.nn.relu(tw.reshape(x, [5, -1, x.shape[-1]])),
            lambda x: tw.nn.relu(tw.transpose(tw.reshape(x, [5, -1, x.shape[-1]]))),
            lambda x: tw.nn.relu(tw.reshape(x, [-1, 1, 5, 3])),
        ],
        [lambda x: tw.nn.relu(x)],
        dtypes=FLOATS,
        sides=(SMALL, BLAS),
    ),
    "add_to_maxima": Line(
        [pooled, lambda x, b: pooled(tw.transpose(x, [0, 2, 1, 3]), b, 3)],
        [lambda x, b: tw.nn.max_pool2d(x + b, 2, 2, "VALID")],
        operands=2,
        dtypes=REAL,
        make=(images,),
        roles=OF_IMAGES,
    ),
}  # fmt: skip


STEPS = {
    "merge_equal": Line(
        [
            lambda x, y: (tw.sin(x) + y) * tw.sin(x),
            lambda x, y: (tw.transpose(tw.sin(x)) - tw.sin(x), tw.sin(x)),
            lambda x, y: (x * number(0, x)) + (x * number(0, x)) * y,
        ],
        [
            lambda x, y: tw.reduce_max(x, 0) + tw.reduce_max(x, 1),
            lambda x, y: (x - y, y - x),
            lambda x, y: (x * number(0.0, x), x * number(-0.0, x)),
        ],
        operands=2,
        dtypes=REAL,
        off=("common_subexpressions",),
    ),
    "uniform_constants": Line(
        [
            lambda x: x * tw.broadcast_to(number(3, x), x.shape),
            lambda x: tw.broadcast_to(number(np.nan, x), x.shape) + x,
            lambda x: where_positive(tw.broadcast_to(number(-0.0, x), x.shape), x),
        ],
        [
            lambda x: x * number(3, x),
            lambda x: x * all_but_one(3, x),
            lambda x: x[:1] * tw.broadcast_to(number(3, x), x.shape),
        ],
        dtypes=REAL,
        sides=(SMALL, BYTES),
        off=("algebra",),
    ),
    "drop_unused": Line(
        [lambda x, f: tw.tanh(convolved(x, f)) + number(1, x)],
        [lambda x, f: tw.tanh(x) * number(2, x)],
        **CONVOLUTION,
    ),
    **{
        f"gelu{name}": Line(
            [function],
            dtypes=SINGLE,
            sides=(BLAS, BLOCKS),
            least=1 << 22,
            roles=("made", "transposed result"),
        )
        for name, function in {
            "": tw.nn.gelu,
            "_slope": lambda x: gradient(tw.nn.gelu, x),
            "_by_tanh": lambda x: tw.nn.gelu(x, True),
            "_by_tanh_slope": lambda x: gradient(lambda x: tw.nn.gelu(x, True), x),
        }.items()
    },
    "row_blocks": Line(
        [
            lambda x, y: tw.tanh(x * y + y[:1]) - x[:, :1],
            lambda x, y: [[z, z * y, tw.reduce_max(z, 0)] for z in [tw.maximum(x, y) - x]][0],
            lambda x, y: tw.maximum(x, y) * y[0] - tw.abs(x),
            lambda x, y: tw.nn.softmax(x) * y,
        ],
        operands=2,
        dtypes=SINGLE,
        sides=(BLAS, BLOCKS),
        least=1 << 22,
        roles=("made", "variable, updated in place afterwards", "transposed result"),
    ),
}  # fmt: skip
