"""Errors: what they say, and that nothing is left behind after one."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.core import errors
from tapewright.core.interpreters import active_interpreters


def test_our_exceptions_are_pythons_own():
    assert issubclass(errors.ShapeError, ValueError)
    assert issubclass(errors.DTypeError, TypeError)
    assert issubclass(errors.GradientLookupError, LookupError)
    assert issubclass(errors.RecordingError, RuntimeError)


CODES = {
    "OK": None, "CANCELLED": "CancelledError", "UNKNOWN": "UnknownError",
    "INVALID_ARGUMENT": "InvalidArgumentError",
    "DEADLINE_EXCEEDED": "DeadlineExceededError", "NOT_FOUND": "NotFoundError",
    "ALREADY_EXISTS": "AlreadyExistsError", "PERMISSION_DENIED": "PermissionDeniedError",
    "RESOURCE_EXHAUSTED": "ResourceExhaustedError",
    "FAILED_PRECONDITION": "FailedPreconditionError", "ABORTED": "AbortedError",
    "OUT_OF_RANGE": "OutOfRangeError", "UNIMPLEMENTED": "UnimplementedError",
    "INTERNAL": "InternalError", "UNAVAILABLE": "UnavailableError",
    "DATA_LOSS": "DataLossError", "UNAUTHENTICATED": "UnauthenticatedError",
}  # fmt: skip


def test_the_family_of_tensorflow_has_its_codes():
    for code, (constant, name) in enumerate(CODES.items()):
        assert getattr(errors, constant) == code
        if name is None:
            continue
        error = getattr(errors, name)(None, None, "what happened")
        assert isinstance(error, errors.OpError)
        assert (error.error_code, error.message, str(error)) == (
            code,
            "what happened",
            "what happened",
        )
        assert error.op is None and error.node_def is None


def test_an_error_is_made_of_its_message_alone_too():
    for error in (
        errors.OutOfRangeError("the end"),
        errors.OutOfRangeError(node_def=None, op=None, message="the end"),
        pickle.loads(pickle.dumps(errors.OutOfRangeError("the end"))),
    ):
        assert (error.message, error.code) == ("the end", errors.OUT_OF_RANGE)


def test_our_errors_survive_pickling():
    for error in (errors.ShapeError("op", "no"), errors.DTypeError("op", "no")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), "op: no.")


REFUSED = {
    "shapes": lambda: tw.matmul(tw.ones([2, 3]), tw.ones([4, 5])),
    "broadcast": lambda: tw.ones([2]) + tw.ones([3]),
    "dtypes": lambda: tw.constant([1]) + tw.constant([1.0]),
    "gather": lambda: tw.gather([1, 2], [5]),
    "gather_nd": lambda: tw.gather_nd([[1.0]], [[0, 3]]),
    "scatter_nd": lambda: tw.scatter_nd([[4]], [1.0], [3]),
    "slice": lambda: tw.constant([1, 2])[5],
    "division": lambda: tw.constant([1]) // tw.constant([0]),
    "reshape": lambda: tw.reshape(tw.ones([4]), [3]),
    "axis": lambda: tw.reduce_sum(tw.ones([2]), axis=3),
    "fill": lambda: tw.fill([-1], 0.0),
    "range": lambda: tw.range(0, 5, -1),
    "split": lambda: tw.split(tw.ones([4]), 3),
    "one_hot": lambda: tw.one_hot([0], -1),
    "singular": lambda: tw.linalg.inv([[0.0]]),
    "not definite": lambda: tw.linalg.cholesky([[-1.0]]),
    "an assertion": lambda: tw.debugging.assert_equal(1, 2),
    "numerics": lambda: tw.debugging.check_numerics([np.nan], "no"),
    "segments": lambda: tw.math.segment_sum([1.0, 2.0], [1, 0]),
    "bincount": lambda: tw.math.bincount([-1]),
}


@pytest.mark.parametrize("traced", [False, True])
def test_an_op_refuses_with_invalid_argument_error(traced):
    for name, call in REFUSED.items():
        with pytest.raises(errors.InvalidArgumentError) as caught:
            (tw.function(call) if traced else call)()
        assert caught.value.code == errors.INVALID_ARGUMENT, name


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda x: tw.gather(tw.constant([1, 2]), x), IndexError),
        (
            lambda x: tw.linalg.inv(tw.cast(x[None] - 5, "float32")),
            np.linalg.LinAlgError,
        ),
        (lambda x: 7 // (x - 5), ValueError),
    ],
)
def test_a_replay_refuses_with_invalid_argument_error(call, kind):
    f = tw.function(call)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        f(tw.constant([5]))
    assert isinstance(caught.value, kind)


@pytest.mark.parametrize(
    "call", [lambda array: array.read(5), lambda array: array.write(-1, 0.0)]
)
def test_an_array_is_out_of_range_beyond_its_elements(call):
    for kind in (errors.OutOfRangeError, errors.InvalidArgumentError, IndexError):
        with pytest.raises(kind):
            call(tw.TensorArray("float32", size=2))


def test_a_missing_file_is_not_found_by_either_name(tmp_path):
    with pytest.raises(errors.NotFoundError) as caught:
        tw.saved_model.load(str(tmp_path / "absent"))
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.code == errors.NOT_FOUND


def test_a_message_has_three_parts():
    error = errors.ShapeError(
        "matmul",
        "inner dimensions must agree: 4 and 5",
        a=tw.ones([3, 4]),
        b=tw.ones([5]),
    )
    assert str(error) == (
        "matmul: inner dimensions must agree: 4 and 5.\n"
        "  a: shape (3, 4), float32    b: shape (5,), float32"
    )
    assert str(errors.DTypeError("op", "no")) == "op: no."


def broken_kernel(x):
    return tw.matmul(x, tw.ones([7, 7]))


@tw.custom_gradient
def broken_gradient(x):
    return x * 1.0, broken_kernel


@tw.custom_gradient
def broken_function(x):
    raise ZeroDivisionError


def in_the_context(x):
    with tw.GradientTape():
        broken_kernel(x)


def in_nested_contexts(x):
    with tw.GradientTape(), tw.GradientTape(persistent=True) as tape:
        with tape.stop_recording():
            broken_kernel(x)


def in_a_custom_function(x):
    with tw.GradientTape(), tw.GradientTape():
        broken_function(x)


def in_recompute_grad(x):
    with tw.GradientTape():
        tw.recompute_grad(broken_kernel)(x)


def in_a_gradient(x):
    with tw.GradientTape() as tape:
        y = broken_gradient(x)
    tape.gradient(y, x)


def in_a_recorded_gradient(x):
    with tw.GradientTape(), tw.GradientTape() as tape:
        y = broken_gradient(x)
        tape.gradient(y, x)


def in_a_jacobian(x):
    with tw.GradientTape() as tape:
        y = broken_gradient(x)
    tape.jacobian(y, x)


def in_a_recorded_batch_jacobian(x):
    with tw.GradientTape():
        with tw.GradientTape() as tape:
            y = broken_gradient(x)
        tape.batch_jacobian(y, x)


def in_a_missing_rule(x):
    with tw.GradientTape() as tape:
        y = tw.image.adjust_contrast(tw.reshape(x, [1, 2, 2]), 2.0)
    tape.jacobian(y, x)


def in_a_wrong_argument(x):
    with tw.GradientTape() as tape:
        y = x * x
        tape.gradient(None, y)


@pytest.mark.parametrize(
    "fail",
    [
        in_the_context,
        in_nested_contexts,
        in_a_custom_function,
        in_recompute_grad,
        in_a_gradient,
        in_a_recorded_gradient,
        in_a_jacobian,
        in_a_recorded_batch_jacobian,
        in_a_missing_rule,
        in_a_wrong_argument,
    ],
    ids=lambda f: f.__name__,
)
def test_after_an_error_no_reader_is_left_and_a_new_tape_works(fail):
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises((ValueError, ZeroDivisionError, LookupError, TypeError)):
        fail(x)
    assert active_interpreters() == ()
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(x * x)
    np.testing.assert_allclose(tape.gradient(y, x), 2 * x.numpy())


def test_an_error_inside_an_outer_context_leaves_the_outer_tape_recording():
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as outer:
        y = x * x
        for fail in (in_the_context, in_a_jacobian, in_a_recorded_gradient):
            with pytest.raises(ValueError):
                fail(x)
        assert len(active_interpreters()) == 1
        y = y * x
    np.testing.assert_allclose(outer.gradient(y, x), 3 * x.numpy() ** 2)


def test_a_persistent_tape_survives_an_error_in_its_gradient():
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape(persistent=True) as tape:
        y, z = broken_gradient(x), x * x
    for method in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(ValueError):
            method(y, x)
    np.testing.assert_allclose(tape.gradient(z, x), 2 * x.numpy())


def test_an_error_in_the_forward_pass_leaves_the_record_as_it_was():
    x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tw.GradientTape() as tape:
        y = x * x
        with pytest.raises(ValueError):
            broken_kernel(y)
        z = tw.reduce_sum(y)
    np.testing.assert_allclose(tape.gradient(z, x), 2 * x.numpy())


def test_numpys_error_state_is_as_before():
    x = tw.Variable([0.0, 1.0])
    before = np.geterr()
    with tw.GradientTape(persistent=True) as tape:
        y = tw.math.log(x) + broken_gradient(x * 1.0) * 0.0
    with pytest.raises(ValueError):
        tape.gradient(y, x)
    assert np.geterr() == before


@pytest.mark.parametrize(
    "op",
    [tw.math.log, tw.sqrt, tw.exp, tw.math.rsqrt, lambda x: 1.0 / x, lambda x: x**0.5],
)
def test_infinities_and_nan_are_answers_and_raise_no_warning(op):
    x = tw.Variable([0.0, -1.0, 1e38])
    with tw.GradientTape() as outer:
        with tw.GradientTape() as inner:
            y = op(x)
        g = inner.gradient(y, x)
    outer.gradient(g, x)


def test_infinities_pass_without_a_word_from_numpy():
    code = (
        "import tapewright as tw; x = tw.constant([3e38]); print(x * x, x * x - x * x)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "inf" in done.stdout and "nan" in done.stdout


@pytest.mark.parametrize("op", [tw.exp, tw.sqrt, tw.sigmoid, tw.softmax, tw.nn.elu])
@pytest.mark.parametrize("wrap", [tw.constant, tw.Variable, list])
def test_a_floating_function_refuses_integers(op, wrap):
    with pytest.raises(
        TypeError, match=r'must be floating or complex; use, .* tw\.cast\(\w+, "fl'
    ):
        op(wrap([1, 2]))


FLOATS, INTS = np.ones(2, "float32"), np.ones(2, "int32")


@pytest.mark.parametrize(
    "call, code",
    [
        (lambda f, i: f + i, 'tw.cast(y, "float32")'),
        (lambda f, i: i * f, 'tw.cast(x, "float32")'),
        (lambda f, i: tw.where([True, False], f, i), 'tw.cast(y, "float32")'),
        (lambda f, i: tw.concat([f, i], 0), 'tw.cast(values[1], "float32")'),
        (lambda f, i: f + tw.cast(i, "float64"), 'tw.cast(x, "float64")'),
        (lambda f, i: tw.cast(f, "bool") < i, 'tw.cast(x, "int32")'),
    ],
)
def test_unequal_dtypes_are_answered_with_the_cast_to_the_wider(call, code):
    with pytest.raises(tw.errors.DTypeError) as error:
        call(tw.constant(FLOATS), tw.constant(INTS))
    assert f"; use, for example, {code}." in str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tw.constant(FLOATS) + "a",
        lambda: 1.0 + tw.constant("a"),
        lambda: tw.concat([tw.constant(FLOATS), tw.constant(["a"])], 0),
        lambda: tw.sqrt(tw.constant("a")),
    ],
)
def test_no_cast_is_advised_for_strings(call):
    with pytest.raises(tw.errors.DTypeError) as error:
        call()
    assert "cast" not in str(error.value)


def test_an_integer_to_a_floating_power_is_refused():
    with pytest.raises(TypeError):
        tw.constant([2, 3]) ** 2.0
    assert (tw.constant([2, 3]) ** 2).numpy().tolist() == [4, 9]


def test_a_boolean_is_no_index():
    with pytest.raises(TypeError, match="index"):
        tw.constant([1, 2])[True]


def test_errors_describe_values():
    assert errors.describe(tw.zeros([2, 3])) == "shape (2, 3), float32"
    assert errors.describe(np.zeros(2)) == "shape (2,), float64"
    assert errors.describe(tw.TensorSpec([None], "int32")) == "shape (None,), int32"
    assert errors.describe(3) == "int"


ERRORS = {n: cls for n, cls in vars(tw.errors).items() if isinstance(cls, type)}


@pytest.mark.parametrize("cls", ERRORS.values(), ids=ERRORS)
def test_an_error_class_has_its_public_name_and_is_pickled_by_it(cls):
    assert cls.__module__ == "tapewright.errors"
    assert pickle.loads(pickle.dumps(cls)) is cls


def test_an_error_is_unpickled_in_a_new_process():
    content = pickle.dumps(tw.errors.NotFoundError("missing"))
    code = f"import pickle; print(repr(pickle.loads({content!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "NotFoundError('missing')\n", done.stderr
