"""`TestCase`: unittest's class with the assertions about arrays of ``tf.test.TestCase``."""

from __future__ import annotations

import random
import re
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import as_dtype, kind_of
from tapewright.core.errors import OpError
from tapewright.core.nest import map_structure
from tapewright.core.typing import DTypeLike
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.random.sampling import set_seed

SEED = 87654321  # TensorFlow's


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the program, as `unittest.main`, and exit.

    Args:
        argv: Command line, by default ``sys.argv``.
    """
    unittest.main(module="__main__", argv=argv)


class TestCase(unittest.TestCase):
    """Test case with assertions about tensors, arrays, numbers and nests of them.

    `setUp` sets the seeds of Python, NumPy and tapewright.

    Example:
        >>> import numpy as np
        >>> case = tw.test.TestCase()
        >>> case.assertAllClose([1.0, 2.0], np.array([1.0, 2.0000001]))
        >>> case.assertAllInRange([1, 2], 0, 1)
        Traceback (most recent call last):
        AssertionError: 1 of 2 entries are outside of [0, 1]: [2]
    """

    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def setUp(self) -> None:
        super().setUp()
        random.seed(SEED)
        np.random.seed(SEED)
        set_seed(SEED)

    def get_temp_dir(self) -> str:
        """Return a temporary folder for the test, which is removed afterwards."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory()
            self.addCleanup(self._temporary.cleanup)
        return self._temporary.name

    # --- values

    def evaluate(self, tensors: Any) -> Any:
        """Return a nest with tensors replaced by arrays, and functions by their results.

        Sparse tensors, ragged tensors and `IndexedSlices` are returned unchanged.

        Args:
            tensors: Tensor or function, or a nest of them.
        """
        return map_structure(self._value, tensors)

    def _value(self, x):
        if x is None or isinstance(x, CompositeTensor):
            return x
        if hasattr(x, "numpy"):
            return x.numpy()
        if callable(x):
            return self.evaluate(x())
        raise ValueError(f"evaluate: tensors must be tensors, got {type(x).__name__}")

    @contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[_Evaluation]:
        """Context manager for tests of TensorFlow 1: its ``run(tensors)`` is `evaluate`.

        Args:
            *args: Ignored.
            **kwargs: Ignored.
        """
        yield _Evaluation(self)

    cached_session = session

    # --- equal and close

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail unless the arrays have the same shape and equal entries; NaN equals NaN.

        Args:
            a: Expected array, tensor or nested list.
            b: Actual array, tensor or nested list.
            msg: Text added to the message of the failure.
        """
        if isinstance(a, RaggedTensor) or isinstance(b, RaggedTensor):
            self.assertEqual(_rows(a), _rows(b), msg)
            return
        a, b = _widened(_comparable(a)), _widened(_comparable(b))
        self._assert_one_shape(a, b, msg)
        np.testing.assert_array_equal(a, b, err_msg=msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail if the arrays have the same shape and equal entries.

        Args:
            a: Expected array, tensor or nested list.
            b: Actual array, tensor or nested list.
            msg: Text added to the message of the failure.
        """
        self._assert_fails(self.assertAllEqual, a, b, msg=msg)

    def assertAllClose(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        msg: str | None = None,
    ) -> None:
        """Fail unless ``|a - b| <= atol + rtol * |b|`` for all entries of two nests.

        NaN equals NaN.

        Args:
            a: Expected array, or a nest of arrays.
            b: Actual array, or a nest of arrays.
            rtol: Relative tolerance.
            atol: Absolute tolerance.
            msg: Text added to the message of the failure.

        Raises:
            ValueError: If only one of two parts is a dict, or lists differ in length.
        """
        self._assert_close(a, b, rtol, atol, msg, "")

    def _assert_close(self, a, b, rtol, atol, msg, path):
        if isinstance(a, RaggedTensor) or isinstance(b, RaggedTensor):
            a, b = _rows(a), _rows(b)
        a, b = _as_dict(a), _as_dict(b)
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(
                f"assertAllClose: a{path} and b{path} must both be dicts, or none, got "
                f"{type(a).__name__} and {type(b).__name__}"
            )
        if isinstance(a, Mapping):
            self.assertCountEqual(a.keys(), b.keys(), msg)
            for key in a:
                self._assert_close(a[key], b[key], rtol, atol, msg, f"{path}[{key!r}]")
            return
        x, y = _array(a), _array(b)
        if "O" in (x.dtype.kind, y.dtype.kind) and isinstance(a, list | tuple):
            if len(a) != len(b):
                raise ValueError(
                    f"assertAllClose: a{path} and b{path} must have one length, got "
                    f"{len(a)} and {len(b)}"
                )
            for i, (one, other) in enumerate(zip(a, b)):
                self._assert_close(one, other, rtol, atol, msg, f"{path}[{i}]")
            return
        self._assert_one_shape(x, y, msg)
        where = f"a{path} is not close to b{path}. " if path else ""
        np.testing.assert_allclose(
            _widened(x), _widened(y), rtol, atol, err_msg=where + (msg or "")
        )

    def assertNotAllClose(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        msg: str | None = None,
    ) -> None:
        """Fail if `assertAllClose` succeeds.

        Args:
            a: Expected array, or a nest of arrays.
            b: Actual array, or a nest of arrays.
            rtol: Relative tolerance.
            atol: Absolute tolerance.
            msg: Text added to the message of the failure.
        """
        self._assert_fails(self.assertAllClose, a, b, rtol=rtol, atol=atol, msg=msg)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Apply `assertAllClose` with the tolerances of the less precise dtype.

        Args:
            a: Expected array, or a nest of arrays.
            b: Actual array, or a nest of arrays.
            rtol: Relative tolerance for float64, complex128 and others.
            atol: Absolute tolerance for float64, complex128 and others.
            float_rtol: Relative tolerance for float32 and complex64.
            float_atol: Absolute tolerance for float32 and complex64.
            half_rtol: Relative tolerance for float16.
            half_atol: Absolute tolerance for float16.
            bfloat16_rtol: Relative tolerance for bfloat16.
            bfloat16_atol: Absolute tolerance for bfloat16.
            msg: Text added to the message of the failure.
        """
        a, b = _array(a), _array(b)
        names = {a.dtype.name, b.dtype.name}
        for dtypes, more_rtol, more_atol in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if names & dtypes:
                rtol, atol = max(rtol, more_rtol), max(atol, more_atol)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Fail unless two numbers differ by at most ``err``.

        Args:
            f1: First number.
            f2: Second number.
            err: Greatest difference.
            msg: Text added to the message of the failure.
        """
        f1, f2 = np.squeeze(_array(f1)), np.squeeze(_array(f2))
        close = bool(f1 == f2) or bool(abs(f1 - f2) <= err)
        self.assertTrue(close, self._formatMessage(msg, f"{f1} != {f2} +/- {err}"))

    def assertArrayNear(
        self, farray1: Any, farray2: Any, err: float, msg: str | None = None
    ) -> None:
        """Fail unless the numbers of two sequences differ by at most ``err``, pair by pair.

        Args:
            farray1: First sequence of numbers.
            farray2: Second sequence of numbers.
            err: Greatest difference.
            msg: Text added to the message of the failure.
        """
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2):
            self.assertNear(float(f1), float(f2), err, msg)

    def _assert_one_shape(self, a, b, msg):
        text = f"Shape mismatch: expected {a.shape}, got {b.shape}"
        self.assertEqual(a.shape, b.shape, self._formatMessage(msg, text))

    def _assert_fails(self, check, *args, msg, **options):
        try:
            check(*args, **options)
        except AssertionError:
            return
        self.fail(
            self._formatMessage(msg, "the two values are equal or close everywhere")
        )

    # --- ranges

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all entries are greater than a number.

        Args:
            a: Array or tensor.
            comparison_target: Number to compare with.
        """
        self.assertGreater(np.min(_array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all entries are greater than or equal to a number.

        Args:
            a: Array or tensor.
            comparison_target: Number to compare with.
        """
        self.assertGreaterEqual(np.min(_array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all entries are less than a number.

        Args:
            a: Array or tensor.
            comparison_target: Number to compare with.
        """
        self.assertLess(np.max(_array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all entries are less than or equal to a number.

        Args:
            a: Array or tensor.
            comparison_target: Number to compare with.
        """
        self.assertLessEqual(np.max(_array(a)), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: float,
        upper_bound: float,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fail unless all entries lie between two bounds.

        Args:
            target: Array or tensor.
            lower_bound: Lower bound of the entries.
            upper_bound: Upper bound of the entries.
            open_lower_bound: If True, entries must not equal the lower bound.
            open_upper_bound: If True, entries must not equal the upper bound.
        """
        values = _array(target)
        if kind_of(values.dtype) not in ("f", "i", "u"):
            self.fail(f"target must hold ordered numbers, got {values.dtype}")
        values = _widened(values)
        above = values > lower_bound if open_lower_bound else values >= lower_bound
        below = values < upper_bound if open_upper_bound else values <= upper_bound
        wrong = values[~(above & below)]  # NaN is nowhere
        left, right = "[("[open_lower_bound], "])"[open_upper_bound]
        if wrong.size:
            self.fail(
                f"{wrong.size} of {values.size} entries are outside of "
                f"{left}{lower_bound}, {upper_bound}{right}: {wrong}"
            )

    def assertAllInSet(self, target: Any, expected_set: Iterable[Any]) -> None:
        """Fail unless all entries are elements of a set.

        Args:
            target: Array or tensor.
            expected_set: Allowed values.
        """
        wrong = np.setdiff1d(_array(target), list(expected_set))
        if wrong.size:
            self.fail(f"entries are not in the set {expected_set}: {wrong}")

    # --- shapes and dtypes

    def assertShapeEqual(
        self, input_a: Any, input_b: Any, msg: str | None = None
    ) -> None:
        """Fail unless two tensors or arrays have the same shape.

        Args:
            input_a: Array or tensor.
            input_b: Array or tensor.
            msg: Text added to the message of the failure.

        Raises:
            TypeError: If one of them has no shape.
        """
        for x in (input_a, input_b):
            if not hasattr(x, "shape"):
                raise TypeError(
                    "assertShapeEqual: both must be tensors or arrays, got "
                    f"{type(x).__name__}"
                )
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: DTypeLike) -> None:
        """Fail unless a tensor or array has a dtype.

        Args:
            target: Array or tensor.
            expected_dtype: Dtype or its name.
        """
        self.assertEqual(as_dtype(_array(target).dtype), as_dtype(expected_dtype))

    # --- errors

    @contextmanager
    def assertRaisesWithPredicateMatch(
        self,
        exception_type: type[Exception],
        expected_err_re_or_predicate: str | Callable[[Exception], object],
    ) -> Iterator[None]:
        """Context manager that fails unless its body raises an error that matches.

        Args:
            exception_type: Class of the error.
            expected_err_re_or_predicate: Regular expression to find in the message, or
                a function of the error that returns whether it matches.
        """
        matches = expected_err_re_or_predicate
        if isinstance(matches, str):
            pattern = matches
            matches = lambda error: re.search(pattern, str(error))  # noqa: E731
        try:
            yield
        except Exception as error:
            if isinstance(error, exception_type) and matches(error):
                return
            raise AssertionError(f"{type(error).__name__}: {error}") from error
        self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: str | Callable[[Exception], object]
    ) -> Any:
        """Context manager that fails unless its body raises a ``tw.errors.OpError``.

        Args:
            expected_err_re_or_predicate: Regular expression to find in the message, or
                a function of the error that returns whether it matches.
        """
        return self.assertRaisesWithPredicateMatch(
            OpError, expected_err_re_or_predicate
        )

    # --- names of absl

    assertItemsEqual = unittest.TestCase.assertCountEqual

    def assertRaisesRegexp(self, *args: Any, **kwargs: Any) -> Any:
        """Fail unless an error with a matching message is raised: ``assertRaisesRegex``.

        Args:
            *args: Arguments of ``assertRaisesRegex``.
            **kwargs: Keyword arguments of ``assertRaisesRegex``.
        """
        return self.assertRaisesRegex(*args, **kwargs)

    def assertLen(
        self, container: Sized, expected_len: int, msg: str | None = None
    ) -> None:
        """Fail unless a container has this length.

        Args:
            container: Object with a length.
            expected_len: Expected length.
            msg: Text added to the message of the failure.
        """
        text = f"{container!r} has length {len(container)}, not {expected_len}"
        self.assertTrue(len(container) == expected_len, self._formatMessage(msg, text))

    def assertEmpty(self, container: Sized, msg: str | None = None) -> None:
        """Fail unless a container is empty.

        Args:
            container: Object with a length.
            msg: Text added to the message of the failure.
        """
        self.assertLen(container, 0, msg)

    def assertNotEmpty(self, container: Sized, msg: str | None = None) -> None:
        """Fail if a container is empty.

        Args:
            container: Object with a length.
            msg: Text added to the message of the failure.
        """
        self.assertTrue(
            len(container), self._formatMessage(msg, f"{container!r} is empty")
        )

    def assertBetween(
        self, value: Any, minv: Any, maxv: Any, msg: str | None = None
    ) -> None:
        """Fail unless ``minv <= value <= maxv``.

        Args:
            value: Number to check.
            minv: Smallest allowed number.
            maxv: Largest allowed number.
            msg: Text added to the message of the failure.
        """
        text = f"{value!r} is not between {minv!r} and {maxv!r}"
        self.assertTrue(minv <= value <= maxv, self._formatMessage(msg, text))


class _Evaluation:
    """Value of the context of `TestCase.session`."""

    def __init__(self, case):
        self._case = case

    def run(self, fetches: Any, feed_dict: None = None) -> Any:
        """Return the values of tensors; see `TestCase.evaluate`."""
        if feed_dict:
            raise ValueError("session.run: feed_dict must be None, as ops run eagerly")
        return self._case.evaluate(fetches)


def _array(x):
    """Return a tensor, or anything else, as an array; of objects if rows differ in length."""
    if hasattr(x, "numpy"):
        x = x.numpy()
    try:
        return np.asarray(x)
    except ValueError:
        return np.array([None, *x], object)[1:]  # not a look into the rows


def _comparable(x):
    """Return an array as `_array` does, with text as bytes."""
    x = _array(x)
    return np.char.encode(x, "utf-8").astype(object) if x.dtype.kind == "U" else x


def _widened(x):
    """Return bfloat16 arrays as float32, in which NumPy can compute."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def _as_dict(x):
    return x._asdict() if hasattr(x, "_asdict") else x


def _rows(x):
    return x.to_list() if isinstance(x, RaggedTensor) else _array(x).tolist()
