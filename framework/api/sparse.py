"""`tw.sparse`: tensors that store only some entries, as in ``tf.sparse``."""

from tapewright.ops.sparse.arithmetic import (
    add,
    map_values,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    softmax,
)
from tapewright.ops.sparse.dense import eye, from_dense, to_dense, to_indicator
from tapewright.ops.sparse.products import (
    bincount,
    segment_mean,
    segment_sqrt_n,
    segment_sum,
    sparse_dense_matmul,
)
from tapewright.ops.sparse.sparse_tensor import SparseTensor
from tapewright.ops.sparse.structure import (
    concat,
    expand_dims,
    fill_empty_rows,
    mask,
    reorder,
    reset_shape,
    reshape,
    retain,
    slice,
    split,
    transpose,
)

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]
