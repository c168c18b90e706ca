"""Sparse and ragged tensors as structures: nests, functions, branches, loops, tapes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import TracingError


def sparse(entries=(1.0, 2.0), shape=(3, 2)):
    return tw.SparseTensor([[0, 1], [2, 0]], list(entries), shape)


def ragged():
    return tw.ragged.constant([[1.0, 2.0], [], [3.0]])


def plain(x):
    if isinstance(x, tw.SparseTensor):
        return tw.sparse.to_dense(x).numpy().tolist()
    return x.to_list() if isinstance(x, tw.RaggedTensor) else x.numpy().tolist()


TWICE = [[0.0, 2.0], [0.0, 0.0], [4.0, 0.0]], [[2.0, 4.0], [], [6.0]]


def test_a_nest_takes_them_as_leaves_or_takes_them_apart():
    nest = {"s": sparse(), "r": (ragged(), None)}
    first, none, last = tw.nest.flatten(nest)
    assert first is nest["r"][0] and none is None and last is nest["s"]
    parts = tw.nest.flatten(nest, expand_composites=True)
    assert [x is None or x.shape.rank for x in parts] == [1, 1, True, 2, 1]
    again = tw.nest.pack_sequence_as(nest, parts, expand_composites=True)
    assert plain(again["s"]) == plain(nest["s"])
    assert plain(again["r"][0]) == plain(nest["r"][0])
    kinds = tw.nest.map_structure(lambda x: getattr(x, "dtype", None), nest)
    assert kinds == {"s": tw.float32, "r": (tw.float32, None)}
    with pytest.raises(ValueError, match="differ"):
        tw.nest.assert_same_structure([sparse()], [ragged()], expand_composites=True)
    tw.nest.assert_same_structure([sparse()], [ragged()])


@pytest.mark.parametrize("jit", [None, True])
def test_functions_take_and_return_them(jit):
    @tw.function(jit_compile=jit)
    def twice(values, more):
        return {"s": values["s"] * more, "r": [values["r"] * more]}

    found = twice({"s": sparse(), "r": ragged()}, 2.0)
    assert (plain(found["s"]), plain(found["r"][0])) == TWICE
    twice({"s": sparse([5.0, 6.0]), "r": ragged()}, 2.0)
    assert twice.experimental_get_tracing_count() == 1
    twice({"s": sparse(shape=(3, 5)), "r": ragged()}, 2.0)  # another dense shape
    assert twice.experimental_get_tracing_count() == 2
    packed = tw.function(lambda x: tw.strings.split(x))(tw.constant(["a b", ""]))
    assert packed.to_list() == [[b"a", b"b"], []]


def test_input_signatures_leave_their_sizes_open():
    specs = [tw.SparseTensorSpec([3, 2]), tw.RaggedTensorSpec([None, None])]

    @tw.function(input_signature=specs)
    def both(s, r):
        product = tw.sparse.sparse_dense_matmul(s, tw.ones([2, 1]))
        return product, tw.reduce_sum(r, 1), r.to_tensor(shape=(None, 2))

    totals, sums, dense = both(sparse(), ragged())
    assert totals.numpy().ravel().tolist() == [1, 0, 2]
    assert sums.numpy().tolist() == [3, 0, 3]
    assert dense.numpy().tolist() == [[1, 2], [0, 0], [3, 0]]
    one = tw.SparseTensor([[1, 1]], [4.0], [3, 2])
    longer = tw.ragged.constant([[1.0], [2.0] * 5])
    assert both(one, longer)[0].numpy().ravel().tolist() == [0, 4, 0]
    assert both(one, longer)[1].numpy().tolist() == [1, 10]
    assert both.experimental_get_tracing_count() == 1
    for wrong in (sparse(shape=(4, 2)), tw.ones([3, 2]), ragged()):
        with pytest.raises(TypeError, match="SparseTensorSpec"):
            both(wrong, ragged())
    opened = tw.function(lambda s: s * 2.0, [tw.SparseTensorSpec([None, 2])])
    assert plain(opened(sparse())) == TWICE[0]
    dense = tw.function(tw.sparse.to_dense, [tw.SparseTensorSpec([None, 2])])
    assert plain(dense(sparse())) == plain(tw.sparse.to_dense(sparse()))
    with pytest.raises(TracingError, match="dense shape"):
        dense.get_concrete_function()


@pytest.mark.parametrize("make", [sparse, ragged])
def test_branches_and_loops_carry_them(make):
    @tw.function
    def run(n, x):
        y = tw.cond(n > 1, lambda: x * 2.0, lambda: x)
        (_, z) = tw.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, y * 2.0), (0, x)
        )
        for _ in tw.range(n):
            x = x * 2.0
        if n > 1:
            x = x / 4.0
        return y, z, x

    found = run(tw.constant(2), make())
    assert [plain(x) for x in found[:1]] == [TWICE[make is ragged]]
    assert plain(found[1]) == plain(make() * 4.0) and plain(found[2]) == plain(make())

    @tw.function
    def mixed(n, x):
        return tw.cond(n > 1, lambda: x, lambda: tw.SparseTensor([[0]], [1.0], [9]))

    with pytest.raises(TypeError, match="same structure"):
        mixed(tw.constant(2), make())


def test_stacks_of_them_are_refused():
    with pytest.raises(TypeError, match="cannot be stacked"):
        tw.map_fn(lambda x: ragged(), tw.ones([2]))
    with pytest.raises(TypeError, match="SparseTensor"):
        tw.map_fn(lambda x: x, sparse())


@pytest.mark.parametrize("make", [sparse, ragged])
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_by_them_are_like_them(make, traced):
    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.square(x) * 3.0
        return tape.gradient(y, [x])[0]

    found = (tw.function(slope) if traced else slope)(make())
    assert plain(found) == plain(make() * 6.0)


def test_an_op_says_what_it_does_not_take():
    for call in (lambda: tw.exp(sparse()), lambda: sparse() + tw.ones([3, 2]),
                 lambda: tw.reshape(ragged(), [-1]), lambda: tw.matmul(ragged(), [[1.0]]),
                 lambda: tw.convert_to_tensor(sparse())):  # fmt: skip
        with pytest.raises(TypeError, match="SparseTensor|RaggedTensor"):
            call()
    with pytest.raises(TypeError, match="boolean"):
        bool(ragged())
    assert (
        tw.shape(sparse()).numpy().tolist() == [3, 2] and tw.size(sparse()).numpy() == 6
    )


def test_arrays_of_numpy_meet_them_in_operators():
    assert plain(np.float32(2.0) * sparse()) == TWICE[0]
    assert plain(np.full((3, 1), 2.0, np.float32) * ragged()) == TWICE[1]
