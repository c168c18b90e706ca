"""Sparse and ragged elements of data sets, as TensorFlow has them."""

import pytest

import tapewright as tw
from tapewright.data import Dataset

SP = tw.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
ROWS = tw.ragged.constant([[1.0, 2.0], [], [3.0]])
SPARSE, RAGGED, PLAIN = tw.SparseTensorSpec, tw.RaggedTensorSpec, tw.TensorSpec


def plain(x):
    if isinstance(x, tuple):
        return tuple([plain(each) for each in x])
    if isinstance(x, tw.SparseTensor):
        return tw.sparse.to_dense(x).numpy().tolist()
    return x.to_list() if isinstance(x, tw.RaggedTensor) else x.numpy().tolist()


def counted():
    return Dataset.range(3).map(lambda n: tw.fill([n], n))


CASES = {
    "rows of a sparse one": (
        lambda: Dataset.from_tensor_slices(SP), SPARSE([2]), [[0, 1], [0, 0], [2, 0]],
    ),
    "batches of these": (
        lambda: Dataset.from_tensor_slices(SP).batch(2), SPARSE([None, 2]),
        [[[0, 1], [0, 0]], [[2, 0]]],
    ),
    "and their rows": (
        lambda: Dataset.from_tensor_slices(SP).batch(2).unbatch(), SPARSE([2]),
        [[0, 1], [0, 0], [2, 0]],
    ),
    "a sparse one": (
        lambda: Dataset.from_tensors(SP).batch(1), SPARSE([None, 3, 2]),
        [[[[0, 1], [0, 0], [2, 0]]]],
    ),
    "rows of a ragged one": (
        lambda: Dataset.from_tensor_slices(ROWS), RAGGED([None]), [[1, 2], [], [3]],
    ),
    "their batches": (
        lambda: Dataset.from_tensor_slices(ROWS).batch(2, True), RAGGED([2, None]),
        [[[1, 2], []]],
    ),
    "rows again": (
        lambda: Dataset.from_tensor_slices(ROWS).batch(2).unbatch(), RAGGED([None]),
        [[1, 2], [], [3]],
    ),
    "a ragged one": (
        lambda: Dataset.from_tensors(ROWS).batch(1), RAGGED([None, 3, None]),
        [[[[1, 2], [], [3]]]],
    ),
    "pairs": (
        lambda: Dataset.from_tensor_slices((ROWS, [7, 8, 9])).cache().batch(3),
        (RAGGED([None, None]), PLAIN([None], "int32")),
        [([[1, 2], [], [3]], [7, 8, 9])],
    ),
    "functions": (
        lambda: Dataset.from_tensors(SP).map(lambda x: tw.sparse.to_dense(x * 2.0)),
        PLAIN([3, 2]), [[[0, 2], [0, 0], [4, 0]]],
    ),
    "ragged batches": (
        lambda: counted().ragged_batch(2), RAGGED([None, None], "int64"),
        [[[], [1]], [[2, 2]]],
    ),
    "even ones": (
        lambda: Dataset.range(3).map(lambda n: tw.fill([2], n)).ragged_batch(2),
        PLAIN([None, 2], "int64"), [[[0, 0], [1, 1]], [[2, 2]]],
    ),
    "sparse batches": (
        lambda: counted().sparse_batch(2, [3]), SPARSE([None, 3], "int64"),
        [[[0, 0, 0], [1, 0, 0]], [[2, 2, 0]]],
    ),
    "a generator": (
        lambda: Dataset.from_generator(
            lambda: iter([ROWS]), output_signature=RAGGED([None, None])
        ),
        RAGGED([None, None]), [[[1, 2], [], [3]]],
    ),
}  # fmt: skip


def test_elements_and_specs_are_those_of_tensorflow():
    for name, (make, spec, elements) in CASES.items():
        ds = make()
        assert ds.element_spec == spec, name
        assert [plain(x) for x in ds] == elements, name


def test_ragged_batches_are_ragged_after_the_first_run_too():
    def some(n):  # of a size that no trace knows
        return tw.range(int(n.numpy()))

    ds = Dataset.from_tensor_slices([1, 3]).map(some)
    for _ in range(2):
        assert ds.element_spec == PLAIN([1], "int32")  # of the first element
        assert plain(next(iter(ds.ragged_batch(2)))) == [[0], [0, 1, 2]]


def test_positions_are_kept():
    iterator = iter(Dataset.from_tensor_slices(SP).batch(2).unbatch())
    next(iterator)
    state = iterator.state()
    assert plain(next(iterator)) == [0, 0]
    iterator.restore(state)
    assert [plain(x) for x in iterator] == [[0, 0], [2, 0]]


@pytest.mark.parametrize("traced", [False, True])
def test_loops_and_reductions_go_over_them(traced):
    def total(ds):
        found = 0.0
        for x in ds:
            found += tw.reduce_sum(x)
        return found, ds.reduce(0.0, lambda s, x: s + tw.reduce_sum(x))

    ds = Dataset.from_tensor_slices(ROWS).batch(2)
    found = (tw.function(total) if traced else total)(ds)
    assert [float(x) for x in found] == [6, 6]


def test_what_does_not_fit_is_refused():
    other = tw.SparseTensor([[0, 0]], [1.0], [1, 1])

    def both():
        yield from (SP, other)

    with pytest.raises(ValueError, match="the same dense shape"):
        list(Dataset.from_generator(both).batch(2))
    with pytest.raises(TypeError, match="output_signature"):
        list(Dataset.from_generator(both, output_signature=RAGGED([None, None])))
    with pytest.raises(ValueError, match="same length"):
        Dataset.from_tensor_slices((SP, [1, 2]))
    with pytest.raises(TypeError, match="padded"):
        list(Dataset.from_tensor_slices(SP).padded_batch(2))
    with pytest.raises(ValueError, match="larger than row_shape"):
        list(counted().sparse_batch(3, [1]))
    with pytest.raises(ValueError, match="rank"):
        list(counted().sparse_batch(3, [1, 1]))


def test_a_model_with_a_sparse_input_learns_as_on_a_dense_one():
    histories = []
    sparse = tw.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
    for x in (sparse, tw.sparse.to_dense(sparse)):
        tw.keras.utils.set_random_seed(1)
        inputs = tw.keras.Input((2,), sparse=isinstance(x, tw.SparseTensor))
        outputs = tw.keras.layers.Dense(1)(tw.keras.layers.Dense(3)(inputs))
        model = tw.keras.Model(inputs, outputs)
        model.compile("sgd", "mse")
        ds = Dataset.from_tensor_slices((x, [[1.0], [2.0], [3.0]])).batch(2)
        histories.append(model.fit(ds, epochs=2, verbose=0).history["loss"])
        assert model.predict(ds, verbose=0).shape == (3, 1)
    assert histories[0] == pytest.approx(histories[1])
    assert model.get_config()["layers"][0]["config"].get("sparse") is None
    with pytest.raises(TypeError, match="sparse= of Input"):
        model(tw.SparseTensor([[0, 1]], [1.0], [3, 2]))
