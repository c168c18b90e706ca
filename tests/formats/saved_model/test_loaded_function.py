"""Loaded functions: calls, conversions, derivatives."""

import collections

import numpy as np
import pytest

import tapewright as tw

from .saving import Net, X, again, holding, traced

Pair = collections.namedtuple("Pair", "a b")


def test_a_loaded_function_is_differentiated_mapped_and_traced(tmp_path):
    net, loaded = Net(), again(Net(), tmp_path)

    def results(net):
        x = tw.constant(X)
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = net(x)
        yield tape.jacobian(y, x)
        yield tape.batch_jacobian(y, x)
        yield tw.vectorized_map(lambda row: net(row[None])[0], x)
        yield tw.function(lambda x: net(x) * 2.0)(x)
        with tw.autodiff.ForwardAccumulator(x, tw.ones_like(x)) as forward:
            y = net(x)
        yield forward.jvp(y)

    for found, wanted in zip(results(loaded), results(net), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def arranged(x, y=2.0, *, flag=True, nest=None):
    r = x * y + (1.0 if flag else 0.0)
    r = r if nest is None else r + nest["k"][0]
    return {"r": r, "list": [r, None, (r * 2.0,)], "pair": Pair(r, -r)}


def calls():
    return [
        ((tw.constant(1.0),), {}),
        ((tw.constant(1.0), 4.0), {"flag": False}),
        ((), {"x": tw.constant([1.0, 2.0]), "nest": {"k": [tw.constant(2.0)]}}),
        ((tw.constant(1.0), tw.constant(5.0)), {}),
    ]


@pytest.fixture
def called(tmp_path):
    function = tw.function(arranged)
    for args, kwargs in calls():
        function(*args, **kwargs)
    return function, again(holding(f=function), tmp_path).f


def test_a_function_without_a_signature_is_kept_for_what_it_was_called_with(called):
    function, loaded = called
    for args, kwargs in calls():
        found = loaded(*args, **kwargs)
        assert str(found) == str(function(*args, **kwargs))
        assert found["pair"]._fields == ("a", "b") and type(found["list"][2]) is tuple


def test_arguments_are_converted_to_what_was_saved(called):
    _, loaded = called
    assert float(loaded(np.float32(3.0))["r"]) == 7.0
    assert float(loaded(x=3.0, y=5.0)["r"]) == 16.0


def test_another_call_is_refused_with_the_signatures_that_there_are(called):
    _, loaded = called
    for args, kwargs in [
        ((tw.constant([[1.0]]),), {}),
        ((tw.constant(1.0), "two"), {}),
        ((tw.constant(1.0),), {"nest": {"other": [tw.constant(2.0)]}}),
        ((tw.constant(1),), {}),
    ]:
        with pytest.raises(
            (TypeError, ValueError), match=r"(?s)one of its signatures:.*x: "
        ):
            loaded(*args, **kwargs)
    with pytest.raises(TypeError, match="arranged"):
        loaded()


def test_a_variable_may_be_an_argument(tmp_path):
    v = tw.Variable(3.0)
    module = holding(f=tw.function(lambda x, v: x * v), v=v)
    module.f(tw.constant(2.0), v)
    loaded = again(module, tmp_path)
    assert float(loaded.f(tw.constant(2.0), loaded.v)) == 6.0


def test_a_number_is_taken_for_a_tensor_in_every_call(tmp_path):
    loaded = again(holding(f=traced([])(lambda x: x * 2.0)), tmp_path)
    assert [float(loaded.f(n)) for n in (1.0, 1.0, 2, 2)] == [2.0, 2.0, 4.0, 4.0]


def test_static_methods_are_functions_like_others(tmp_path):
    class Halves(tw.Module):
        @staticmethod
        @tw.function(input_signature=[tw.TensorSpec([])])
        def half(x):
            return x / 2.0

    assert float(again(Halves(), tmp_path).half(3.0)) == 1.5


def test_a_variable_may_be_a_default(tmp_path):
    v = tw.Variable(3.0)

    @tw.function(input_signature=[tw.TensorSpec([])])
    def f(x, by=v):
        return x * by

    loaded = again(holding(f=f, v=v), tmp_path)
    loaded.v.assign(4.0)
    assert float(loaded.f(2.0)) == 8.0 and float(loaded.f(2.0, by=loaded.v)) == 8.0


def test_a_loaded_function_has_no_code_to_pickle_or_run_eagerly(tmp_path):
    import pickle

    loaded = again(Net(), tmp_path)
    with pytest.raises(TypeError, match="loaded from a file"):
        pickle.dumps(loaded.loss)
    tw.config.run_functions_eagerly(True)
    try:
        np.testing.assert_array_equal(loaded(X), Net()(X))
    finally:
        tw.config.run_functions_eagerly(False)


def test_sparse_and_ragged_values_come_in_and_go_out(tmp_path):
    class Both(tw.Module):
        @tw.function
        def products(self, s, r):
            dense = tw.sparse.sparse_dense_matmul(s, tw.ones([2, 1]))
            return dense, {"s": s * 2.0, "r": r + 1.0}

        @tw.function(input_signature=[tw.RaggedTensorSpec([None, None])])
        def sums(self, r):
            return tw.reduce_sum(r, 1), r * 2.0

    sparse = tw.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
    rows, module = tw.ragged.constant([[1.0, 2.0], [], [3.0]]), Both()
    module.products(sparse, rows)
    tw.saved_model.save(module, tmp_path / "both")
    loaded = tw.saved_model.load(tmp_path / "both")
    dense, parts = loaded.products(sparse, rows)
    assert dense.numpy().ravel().tolist() == [1, 0, 2]
    assert parts["s"].values.numpy().tolist() == [2, 4] and parts["s"].shape == (3, 2)
    assert parts["r"].to_list() == [[2, 3], [], [4]]
    sums, twice = loaded.sums(tw.ragged.constant([[5.0], [1.0, 1.0]]))
    assert sums.numpy().tolist() == [5, 2] and twice.to_list() == [[10], [2, 2]]
    other = tw.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 5])
    with pytest.raises(TypeError, match="no saved signature"):
        loaded.products(other, rows)
