"""`keras.backend`: the numbers, shapes and dtypes of `tf.keras.backend`, as recorded."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import check_gradients

K = tw.keras.backend
REFERENCE = Path(__file__).parent / "reference"
RECORDED = np.load(REFERENCE / "backend.npz")
sys.path.insert(0, str(REFERENCE))

import backend_cases  # noqa: E402


def test_numbers_shapes_and_dtypes_are_those_of_keras():
    wrong = []
    for call in backend_cases.CALLS:
        arrays = backend_cases.evaluate(call, K, tw.constant)
        expected = [RECORDED[f"{call}|{i}"] for i in range(len(arrays))]
        for array, other in zip(arrays, expected):
            same = array.dtype == other.dtype and array.shape == other.shape
            if array.dtype.kind == "f":
                same = same and np.allclose(array, other, 1e-5, 1e-6)
            else:
                same = same and np.array_equal(array, other)
            if not same:
                wrong.append(f"{call}: {array} not {other}")
    assert wrong == []


def test_there_is_a_call_of_every_function():
    called = {call.partition("(")[0].removeprefix("K.") for call in backend_cases.CALLS}
    numbers = {"backend", "dropout", "batch_get_value", "batch_set_value", "set_value"}
    here = {n for n in K.__all__ if ".legacy." in getattr(K, n).__module__}
    drawn = {name for name in here if "random" in name or "normal" == name[-6:]}
    assert here - numbers - drawn - {"variable"} <= called


def test_variables_are_assigned_and_read():
    x = K.variable([1, 2], constraint="non_neg", name="x")
    assert x.dtype == "float32" and x.name == "x" and x.constraint is not None
    K.set_value(x, np.float64([3, 4]))
    K.batch_set_value([(x, [5, 6])])
    assert K.batch_get_value([x])[0].tolist() == [5, 6]
    assert isinstance(K.zeros((2,)), tw.Variable) and K.get_value(3) == 3


def test_random_numbers_have_the_dtype_and_the_range_asked_for():
    assert K.random_normal((2, 3), seed=1).dtype == "float32"
    assert K.truncated_normal((50,), 10.0, 1.0, "float64").numpy().min() > 8
    drawn = K.random_bernoulli((400,), 0.25).numpy()
    assert set(drawn) == {0.0, 1.0} and 0.1 < drawn.mean() < 0.4
    both = [
        K.random_uniform_variable((9,), 2, 3),
        K.random_normal_variable((9,), 2, 1e-9),
    ]
    assert all(2 <= v.numpy().min() and v.numpy().max() <= 3 for v in both)
    assert set(K.dropout(np.ones(100, "f"), 0.5).numpy()) == {0.0, 2.0}


def test_a_traced_recurrence_has_gradients():
    def last(x):
        return K.rnn(backend_cases.step(K), x, [x[:, 0]], mask=backend_cases.MASK)[0]

    x = tw.constant(backend_cases.SEQUENCE, tw.float64)
    check_gradients(last, [x])
    np.testing.assert_allclose(tw.function(last)(x), last(x), rtol=1e-6)


def test_labels_that_are_no_class_fill_up_those_of_ctc():
    y_pred = np.random.default_rng(0).random((2, 6, 4), "f")
    steps, all_labels = [[6], [6]], [[3], [3]]
    expected = K.ctc_batch_cost([[0, 1, 0], [2, 0, 0]], y_pred, steps, [[2], [1]])
    for filler in (3, 99):
        y_true = [[0, 1, filler], [2, filler, filler]]
        assert K.ctc_batch_cost(y_true, y_pred, steps, all_labels).numpy().tolist() == (
            expected.numpy().tolist()
        )


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: K.softmax([1.0, 2.0]), "x must have two axes"),
        (lambda: K.batch_dot([1.0], [1.0]), "two axes or more"),
        (lambda: K.batch_dot(np.eye(2), np.eye(2), axes=0), "axes must not contain the batch"),
        (lambda: K.repeat(np.ones(2), 2), "x must have two axes"),
        (lambda: K.bias_add(np.ones((2, 3, 4)), np.ones((1, 2, 3))), "bias must have 1 or 2"),
        (lambda: K.pool2d(np.ones((1, 2, 2, 1)), (2, 2), pool_mode="min"), "pool_mode"),
        (lambda: K.spatial_2d_padding(np.ones((1, 2, 2, 1)), ((1, 1),)), "2 pairs of ints"),
        (lambda: K.rnn(None, np.ones((1, 2, 3)), [], input_length=2), "input_length must be"),
        (lambda: K.standardize_dtype("int33"), "unknown dtype 'int33'"),
        (lambda: K.switch(np.ones((2, 2), bool), [1.0, 2], [3.0, 4]), "more axes"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_default_names_count_with_get_uid():
    K.clear_session()
    assert [K.get_uid("dense"), tw.layers.Dense(1).name] == [1, "dense_1"]
    assert K.get_uid("dense") == 3
