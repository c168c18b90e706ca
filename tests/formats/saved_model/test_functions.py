"""Functions that are saved: traces for all ranks and sizes, and reasons of refusals."""

import itertools

import numpy as np
import pytest

import tapewright as tw

from .saving import again, holding, traced


def test_a_function_that_was_never_traced_is_named_and_left_out(tmp_path):
    module = holding(f=tw.function(abs), inner=holding(g=tw.function(abs)))
    left_out = "'f' was not traced yet: .*; 'inner.g' was not traced yet"
    with pytest.warns(UserWarning, match=left_out):
        tw.saved_model.save(module, tmp_path / "m")
    assert not hasattr(tw.saved_model.load(tmp_path / "m"), "f")
    with pytest.raises(tw.errors.SavingError, match="was not traced yet"):
        tw.saved_model.save(tw.Module(), tmp_path / "m", signatures=module.f)


def test_a_function_that_runs_eagerly_is_left_out_with_the_reason(tmp_path):
    module = holding(f=tw.function(lambda x: tw.boolean_mask(x, x > 0)))
    module.f(tw.constant([1.0, -1.0]))
    with pytest.warns(UserWarning, match="'f' runs eagerly, .*boolean_mask"):
        tw.saved_model.save(module, tmp_path / "m")
    with pytest.raises(tw.errors.SavingError, match="'serving_default' runs eagerly"):
        tw.saved_model.save(module, tmp_path / "m", signatures=module.f)


def _boom(x):
    raise KeyError("boom")


def _endless(x):
    return _endless(x)


@pytest.mark.parametrize(
    "code, words",
    [
        (_boom, "KeyError: 'boom'"),
        (_endless, "RecursionError"),
        (lambda x: x * (1 / 0), "ZeroDivisionError"),
        (lambda x: x.nothing, "AttributeError"),
        (lambda x: tw.matmul(x, tw.zeros([7, 7])), "matmul: inner dimensions"),
        (lambda x: x * x.numpy(), "numpy() needs the value"),
        (lambda x: tw.numpy_function(np.sort, [x], "float32"), "numpy_function"),
    ],
)
@pytest.mark.parametrize("sizes", [(3, 3), (None, 3)])
def test_whatever_cannot_be_traced_is_told_with_function_and_line(
    code, words, sizes, tmp_path
):
    with pytest.raises(tw.errors.SavingError) as caught:
        tw.saved_model.save(holding(f=traced(sizes)(code)), tmp_path / "m")
    text = str(caught.value)
    assert f"function '{code.__name__}'" in text and words in text
    assert "test_functions.py:" in text
    assert not list(tmp_path.iterdir())


def test_a_function_that_fails_for_every_rank_tells_what_one_of_them_has(tmp_path):
    module = holding(f=traced(None)(lambda x: tw.reshape(x, [2, 3])[0, 0, 0, 0]))
    with pytest.raises(
        tw.errors.SavingError, match=r"For the ranks \[8\]: .*does not hold"
    ):
        tw.saved_model.save(module, tmp_path / "m")


def test_inputs_of_unknown_rank_broadcast_as_before(tmp_path):
    loaded = again(holding(f=traced(None, None)(lambda x, y: x + y)), tmp_path)
    for ranks in [(3, 3), (3, 1), (2, 4), (0, 3), (7, 7)]:
        ways = [(1, 1), (0, 1), (1, 0)] if max(ranks) < 7 else [(1, 1)]
        for kept in itertools.product(ways, repeat=min(ranks)):
            shapes = [[2, 3, 4, 5, 2, 2, 2][:rank][::-1] for rank in ranks]
            for axis, each in enumerate(kept, 1):
                for shape, keeps in zip(shapes, each):
                    shape[-axis] = shape[-axis] if keeps else 1
            x, y = [np.ones(shape, np.float32) for shape in shapes]
            assert tuple(loaded.f(x, y).shape) == np.broadcast_shapes(*shapes)


def test_inputs_of_unknown_sizes_broadcast_as_before(tmp_path):
    unknown = [None] * 3
    loaded = again(holding(f=traced(unknown, unknown)(lambda x, y: x + y)), tmp_path)
    for kept in itertools.product([(1, 1), (0, 1), (1, 0)], repeat=3):
        shapes = [[n if k else 1 for n, k in zip((4, 3, 2), ks)] for ks in zip(*kept)]
        found = loaded.f(*[np.ones(shape, np.float32) for shape in shapes])
        assert tuple(found.shape) == np.broadcast_shapes(*shapes)


def test_reshape_of_several_unknown_sizes_is_saved(tmp_path):
    class Flat(tw.Module):
        def __init__(self):
            self.w = tw.Variable(tw.ones([784, 2]))

        @tw.function(input_signature=[tw.TensorSpec([None, None, None])])
        def __call__(self, x):
            return tw.reshape(x, [-1, 784]) @ self.w

    tw.saved_model.save(Flat(), tmp_path / "flat")
    loaded = tw.saved_model.load(tmp_path / "flat")
    for shape, rows in (((2, 28, 28), 2), ((4, 14, 28), 2)):
        np.testing.assert_array_equal(loaded(tw.ones(shape)), np.full((rows, 2), 784.0))


def test_a_subclass_of_tuple_is_kept_as_a_tuple(tmp_path):
    class Sizes(tuple):
        pass

    class Own(tw.Module):
        @tw.function
        def first(self, x, sizes=(1, 2)):
            return x * sizes[0]

    module = Own()
    module.first(tw.ones(2), Sizes((3, 4)))
    tw.saved_model.save(module, tmp_path / "m")
    loaded = tw.saved_model.load(tmp_path / "m")
    assert loaded.first(tw.ones(2), (3, 4)).numpy().tolist() == [3, 3]
