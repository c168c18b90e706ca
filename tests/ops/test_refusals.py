"""Calls that TensorFlow refuses are refused, with an error that says what was wrong."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive

X = tw.constant(np.ones((2, 3), np.float32))
HALF = tw.constant(np.eye(2, dtype=np.float16))
COMPLEX = tw.constant([1.0 + 1.0j, 2.0])

CALLS = [
    # fractions where whole numbers are wanted
    (lambda: tw.reduce_sum(X, axis=0.5), TypeError, "axis.*integers, got 0.5"),
    (lambda: tw.reshape(X, [1.5, 4]), TypeError, r"integers, got \[1.5, 4\]"),
    (lambda: tw.zeros([2.0]), TypeError, r"integers, got \[2.0\]"),
    (lambda: tw.tile(X, [1, 1.5]), TypeError, r"integers, got \[1, 1.5\]"),
    (lambda: tw.roll(X, 0.5, axis=0), TypeError, "integers, got 0.5"),
    (lambda: tw.cumsum(X, axis=1.5), TypeError, "axis.*integer, got 1.5"),
    (lambda: tw.math.top_k(X, k=1.5), TypeError, "integer, got 1.5"),
    (lambda: tw.one_hot([0], 1.5), TypeError, "integer, got 1.5"),
    (lambda: tw.signal.frame(X, 1.5, 1), TypeError, "integer, got 1.5"),
    (lambda: tw.math.unsorted_segment_sum(X, [0, 1], num_segments=1.5), TypeError,
     "num_segments.*integer, got 1.5"),
    # no axis where NumPy would take all
    (lambda: tw.concat([X, X], axis=None), TypeError, "concat: axis"),
    (lambda: tw.reverse(X, axis=None), TypeError, "reverse: axis"),
    (lambda: tw.roll(X, 1, axis=None), ValueError, "roll: shift and axis"),
    # sizes and axes out of range
    (lambda: tw.reshape(X, [-6]), ValueError, "reshape: shape"),
    (lambda: tw.reshape(X, [-2, 3]), ValueError, "reshape: shape"),
    (lambda: tw.fill([-1], 1.0), ValueError, r"fill: dims .*0.*got \(-1,\)"),
    (lambda: tw.one_hot([0], -1), ValueError, "one_hot: depth .*0.*got -1"),
    (lambda: tw.unravel_index([0], [-1]), ValueError, "unravel_index: dims"),
    (lambda: tw.nn.softmax_cross_entropy_with_logits(X, X, axis=2), ValueError,
     "axis .*-2.*1.*got 2"),
    (lambda: tw.nn.local_response_normalization(X[None, None], depth_radius=-1),
     ValueError, "depth_radius .*0.*got -1"),
    (lambda: tw.signal.rfft([1.0, 2.0], [-1]), ValueError, r"fft_length .*1.*0.*got \[-1\]"),
    (lambda: tw.concat([], axis=0), ValueError, "concat: values .*at least one tensor"),
    (lambda: tw.stack([]), ValueError, "stack: values .*at least one tensor"),
    (lambda: tw.function(lambda: tw.stack([]))(), ValueError, "stack: values"),
    (lambda: tw.reduce_sum(1.0, axis=0), ValueError, "reduce_sum: a scalar has no axis 0"),
    (lambda: tw.signal.dct([1.0, 2.0], n=0), ValueError, "dct: n .*positive.*got 0"),
    (lambda: tw.image.resize_with_pad(X[None], 2, 0), ValueError,
     "resize_with_pad: target_width .*1.*got 0"),
    (lambda: tw.nn.compute_average_loss(2.0), ValueError, "must have a batch axis"),
    (lambda: tw.TensorShape("a"), TypeError, "TensorShape: dimensions .*integers.*'a'"),
    (lambda: tw.TensorShape([1.5]), TypeError, "TensorShape: dimensions .*got 1.5"),
    (lambda: tw.tile(X, [1, -1]), ValueError, r"tile: multiples .*0.*got \(1, -1\)"),
    (lambda: tw.nn.l2_normalize(X, axis=3), ValueError, "l2_normalize: axis .*got 3"),
    (lambda: tw.nn.batch_normalization(X, X[0], X[0], None, [1.0, 2.0], 0.1), ValueError,
     "batch_normalization: shapes .*\n.*scale: shape"),
    (lambda: tw.nn.dot_product_attention(*[tw.ones([1, 2, 1, 3])] * 3, mask=[True] * 3),
     ValueError, "dot_product_attention: shapes .*\n.*mask: shape"),
    (lambda: tw.function(tw.boolean_mask).get_concrete_function(X[0], X[0] > 0), TypeError,
     "results of boolean_mask is unknown .*where"),
    # element types
    (lambda: X & X, TypeError, "bitwise_and: the op is not implemented for float32"),
    (lambda: ~X, TypeError, "invert: x must be integer"),
    (lambda: tw.constant("a") * tw.constant("b"), TypeError, "multiply: x must be"),
    (lambda: tw.nn.relu("a"), TypeError, r"relu: features must be [^\0]* string"),
    (lambda: tw.where(X, X, X), TypeError, "where: condition must be boolean"),
    (lambda: tw.complex(1, 2), TypeError, "complex: real and imag must be float32"),
    (lambda: tw.constant(True) // tw.constant(True), TypeError, "floordiv: .* integer"),
    (lambda: tw.argmax(COMPLEX), TypeError, "argmax: input"),
    (lambda: tw.argmin(["a", "b"]), TypeError, "argmin: input"),
    (lambda: tw.argmax(X, output_type="float32"), TypeError, "output_type .*got float32"),
    (lambda: tw.searchsorted([1.0], [2.0], out_type="float32"), TypeError, "out_type"),
    (lambda: tw.math.bincount(["1"]), TypeError, "bincount: arr"),
    (lambda: tw.norm([1, 2]), TypeError, "^norm: tensor .*floating"),
    (lambda: tw.tensor_scatter_nd_update([1.0], [[0]], ["a"]), TypeError,
     "^tensor_scatter_nd_update: the dtypes .*same"),
    (lambda: tw.nn.avg_pool([[[1], [2]]], 2, 2, "VALID"), TypeError, "^avg_pool: input"),
    (lambda: tw.nn.pool([[[1], [2]]], [1], "AVG"), TypeError, "^pool: input .*floating"),
    (lambda: tw.unique([1], out_idx="float32"), TypeError, "unique: out_idx .*float32"),
    (lambda: tw.unique_with_counts([1], out_idx="bool"), TypeError,
     "unique_with_counts: out_idx .*got bool"),
    (lambda: tw.random.poisson([2], 1.0, dtype="bool"), TypeError, "poisson: dtype .*bool"),
    (lambda: tw.random.categorical(X, 2, dtype="float32"), TypeError,
     "categorical: dtype .*integer, got float32"),
    (lambda: tw.nn.sigmoid_cross_entropy_with_logits([0, 1], [1, 2]), TypeError,
     "logits .*floating"),
    (lambda: tw.nn.sparse_softmax_cross_entropy_with_logits([0], [[1, 2]]), TypeError,
     "logits .*floating"),
    (lambda: tw.linalg.solve([[1]], [[1]]), TypeError, "solve: matrix must be floating"),
    (lambda: tw.linalg.inv(HALF), TypeError, "inv: input must not be of half precision"),
    (lambda: tw.linalg.expm(HALF), TypeError, "expm: input must not be of half"),
    (lambda: tw.signal.rfft(HALF), TypeError, "rfft: .* float32 or float64"),
    (lambda: tw.signal.dct(HALF), TypeError, "dct: .* float32 or float64"),
    # values
    (lambda: tw.random.set_seed("a"), ValueError, "set_seed: seed .*got 'a'"),
    (lambda: tw.random.Generator.from_seed("a"), ValueError, "from_seed: seed .*got 'a'"),
    (lambda: tw.where(True), ValueError, "where: condition must have an axis"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, message", CALLS)
def test_a_wrong_call_is_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


# A GPU is not asked for the values: it would have to wait.
ON_THE_CPU = [
    (lambda: tw.reverse_sequence(np.ones((2, 3)), [1, -1], seq_axis=1), ValueError,
     "seq_lengths .*0.*3"),
    (lambda: tw.reverse_sequence(np.ones((2, 3)), [1, 4], seq_axis=1), ValueError,
     "seq_lengths .*0.*3"),
    (lambda: tw.constant(1) // 0, ValueError, "floordiv: an integer .* divided by 0"),
    (lambda: tw.constant(1) % 0, ValueError, "floormod: an integer .* divided by 0"),
    (lambda: tw.truncatediv(1, 0), ValueError, "truncatediv: an integer"),
    (lambda: tw.truncatemod(1, 0), ValueError, "truncatemod: an integer"),
    (lambda: tw.unravel_index([6], [2, 3]), ValueError, r"indices .*0.*5.*got \[6\]"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, message", ON_THE_CPU)
def test_a_wrong_value_is_refused_on_the_cpu(call, error, message):
    with tw.device("CPU"), pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "op, value",
    [
        ("add", True), ("multiply", True), ("square", True), ("negative", True),
        ("maximum", 1j), ("less", 1j), ("logical_and", 1.0), ("logical_xor", 1.0),
        ("logical_not", 1),
        ("floordiv", 1j),
    ],
)  # fmt: skip
def test_an_op_refuses_kinds_of_dtypes_that_it_has_no_meaning_for(op, value):
    op = get_primitive(op).entry
    values = [tw.constant([value]) for _ in op.primitive.inputs]
    with pytest.raises(TypeError, match=rf"{op.__name__}.*must be"):
        op(*values)
    with tw.GradientTape(), pytest.raises(TypeError, match="must be"):
        op(*values)
