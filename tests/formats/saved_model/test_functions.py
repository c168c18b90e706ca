"""Functions that are saved: traces for all ranks and sizes, and reasons of refusals."""

import itertools

import numpy as np
import pytest

import tapewright as tw

from .saving import again, holding, traced


def test_a_function_that_was_never_traced_is_named_and_left_out(tmp_path):
    module = holding(f=tw.function(abs), inner=holding(g=tw.function(abs)))
    with pytest.warns(UserWarning, match="f, inner.g was not traced yet"):
        tw.saved_model.save(module, tmp_path / "m")
    assert not hasattr(tw.saved_model.load(tmp_path / "m"), "f")
    with pytest.raises(tw.errors.SavingError, match="was not traced yet"):
        tw.saved_model.save(tw.Module(), tmp_path / "m", signatures=module.f)


def test_a_function_that_runs_eagerly_is_left_out_with_the_reason(tmp_path):
    module = holding(some=tw.function(lambda x: x[x > 0.0]))
    module.some(tw.constant([1.0, -1.0]))
    with pytest.warns(UserWarning, match="some runs eagerly, .* left out: .* unknown"):
        tw.saved_model.save(module, tmp_path / "m")


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
