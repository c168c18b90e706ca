"""`Outputs`: tensors, arrays, sparse and ragged tensors of batches as one."""

import numpy as np

import tapewright as tw
from tapewright.keras.training.outputs import Outputs


def test_batches_of_each_kind_are_joined():
    outputs = Outputs("model")
    for start in (0.0, 4.0):
        x = tw.range(4.0) + start
        outputs.append(
            {
                "tensor": x,
                "number": tw.reduce_sum(x),
                "array": x.numpy()[:, None],
                "sparse": tw.sparse.from_dense(tw.reshape(x, (2, 2))),
                "ragged": tw.RaggedTensor.from_row_lengths(x, [3, 1]),
            }
        )
    joined = outputs.joined()
    np.testing.assert_array_equal(joined["tensor"], np.arange(8.0))
    np.testing.assert_array_equal(joined["array"], np.arange(8.0)[:, None])
    assert joined["number"].tolist() == [6.0, 22.0]
    sparse = joined["sparse"]
    assert isinstance(sparse, tw.SparseTensor) and sparse.shape == (4, 2)
    np.testing.assert_array_equal(
        tw.sparse.to_dense(sparse).numpy(), np.arange(8.0).reshape(4, 2)
    )
    rows = [[0.0, 1.0, 2.0], [3.0], [4.0, 5.0, 6.0], [7.0]]
    assert joined["ragged"].to_list() == rows


def test_a_single_batch_is_copied_and_composites_are_not_converted():
    outputs, x = Outputs("model"), tw.ragged.constant([[1], [2, 3]])
    outputs.append((tw.zeros(2), x))
    array, rows = outputs.joined()
    assert array.flags.writeable and rows.to_list() == [[1], [2, 3]]
