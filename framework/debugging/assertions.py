"""The assertions of `tw.debugging`. In traced functions, values are checked in each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.compiler.control_flow.effects import (
    effect_maker,
    serializable_effect,
)
from tapewright.compiler.control_flow.printing import Assert
from tapewright.core.dtypes import DType, as_dtype, finfo, kind_of
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware import devices
from tapewright.core.interpreters import active_tracer
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.typing import DTypeLike, IntLike, TensorLike
from tapewright.ops.strings.array_text import array_text

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "is_numeric_tensor",
]


# -------------------------------------------------------------------------- values


def _require(who, given, message, summarize, **settings):
    """Raise an error, now or in each replay, unless the condition of ``who`` holds."""
    serializable_effect(
        who, given.values(), names=list(given), message=message or "",
        summarize=3 if summarize is None else int(summarize), **settings,
    )  # fmt: skip


def _condition(who, words, condition):
    """Register the condition of ``who`` for `_require`: as text, and on arrays."""

    @effect_maker(who)
    def make(names, message, summarize):
        def check(*arrays):
            holds = np.asarray(condition(*arrays))
            if not holds.all():
                raise InvalidArgumentError(
                    _report(who, words, holds, names, arrays, message, summarize)
                )

        return check


def _report(who, words, holds, names, arrays, message, summarize):
    at = tuple([int(i) for i in np.argwhere(~holds)[0]])
    lines = [] if not message else [message]
    lines.append(
        f"{who}: {words} must hold for all entries; it fails for "
        f"{holds.size - int(holds.sum())} of {holds.size}, first at index {list(at)}"
    )
    for name, array in zip(names, arrays):
        text = array_text(array, summarize)
        lines.append(f"  {name}, shape {array.shape}: {text}")
    return "\n".join(lines)


def _pair(x, y):
    """Convert two values to tensors of one dtype, like an op."""
    if is_tensor(y) and not is_tensor(x):
        y = convert_to_tensor(y)
        return convert_to_tensor(x, dtype_hint=y.dtype), y
    x = convert_to_tensor(x)
    return x, convert_to_tensor(y, dtype_hint=x.dtype)


def _comparison(name, words, function):
    def assertion(
        x: TensorLike,
        y: TensorLike,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> None:
        x, y = _pair(x, y)
        _require(assertion.__name__, {"x": x, "y": y}, message, summarize)

    _condition(name, words, function)
    assertion.__name__ = assertion.__qualname__ = name
    assertion.__doc__ = f"""Raise an error unless ``{words}`` for all entries.

    In a traced function the check runs in each call.

    Args:
        x: First tensor.
        y: Second tensor; the two are broadcast together.
        message: Start of the error message, or None.
        summarize: Number of entries shown at each end of an axis, by default 3.

    Raises:
        InvalidArgumentError: If the condition does not hold (also a ``ValueError``).
    """
    return assertion


assert_equal = _comparison("assert_equal", "x == y", np.equal)
assert_greater = _comparison("assert_greater", "x > y", np.greater)
assert_greater_equal = _comparison("assert_greater_equal", "x >= y", np.greater_equal)
assert_less = _comparison("assert_less", "x < y", np.less)
assert_less_equal = _comparison("assert_less_equal", "x <= y", np.less_equal)


def assert_none_equal(
    x: TensorLike,
    y: TensorLike,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise an error unless ``x != y`` for all entries.

    In a traced function the check runs in each call.

    Args:
        x: First tensor.
        y: Second tensor; the two are broadcast together.
        summarize: Number of entries shown at each end of an axis, by default 3.
        message: Start of the error message, or None.

    Raises:
        InvalidArgumentError: If entries are equal.

    Example:
        >>> tw.debugging.assert_none_equal([1, 2], [2, 1])
    """
    x, y = _pair(x, y)
    _require("assert_none_equal", {"x": x, "y": y}, message, summarize)


_condition("assert_none_equal", "x != y", np.not_equal)


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike | None = None,
    atol: TensorLike | None = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise an error unless ``abs(x - y) <= atol + rtol * abs(y)`` for all entries.

    In a traced function the check runs in each call.

    Args:
        x: First tensor.
        y: Second tensor; the two are broadcast together.
        rtol: Relative tolerance, by default ten times the machine epsilon.
        atol: Absolute tolerance, by default ten times the machine epsilon.
        message: Start of the error message, or None.
        summarize: Number of entries shown at each end of an axis, by default 3.

    Raises:
        InvalidArgumentError: If entries differ by more.

    Example:
        >>> tw.debugging.assert_near([1.0, 2.0], [1.05, 2.0], atol=0.1)
    """
    x, y = _pair(x, y)
    kind = x.dtype.dtype
    usual = 10 * finfo(kind).eps if kind_of(kind) in "fc" else 0
    rtol, atol = usual if rtol is None else rtol, usual if atol is None else atol
    tolerances = {"rtol": float(rtol), "atol": float(atol)}
    _require("assert_near", {"x": x, "y": y}, message, summarize, **tolerances)


@effect_maker("assert_near")
def _near(names, message, summarize, rtol, atol):
    words = f"abs(x - y) <= {atol:.3g} + {rtol:.3g} * abs(y)"

    def check(x, y):
        holds = np.abs(x - y) <= atol + rtol * np.abs(y)
        if not holds.all():
            raise InvalidArgumentError(
                _report("assert_near", words, holds, names, (x, y), message, summarize)
            )

    return check


def _sign(name, words, function):
    def assertion(
        x: TensorLike,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> None:
        _require(assertion.__name__, {"x": convert_to_tensor(x)}, message, summarize)

    _condition(name, words, function)
    assertion.__name__ = assertion.__qualname__ = name
    assertion.__doc__ = f"""Raise an error unless ``{words}`` for all entries.

    In a traced function the check runs in each call.

    Args:
        x: Tensor to check.
        message: Start of the error message, or None.
        summarize: Number of entries shown at each end of an axis, by default 3.

    Raises:
        InvalidArgumentError: If the condition does not hold (also a ``ValueError``).
    """
    return assertion


assert_positive = _sign("assert_positive", "x > 0", lambda x: x > 0)
assert_non_negative = _sign("assert_non_negative", "x >= 0", lambda x: x >= 0)
assert_negative = _sign("assert_negative", "x < 0", lambda x: x < 0)
assert_non_positive = _sign("assert_non_positive", "x <= 0", lambda x: x <= 0)


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Return ``x`` after a check that no entry is NaN or infinite.

    Args:
        x: Floating tensor to check.
        message: Start of the error message.

    Raises:
        InvalidArgumentError: If an entry is NaN or infinite.
        TypeError: If ``x`` is not floating.

    Example:
        >>> tw.debugging.assert_all_finite([1.0, 2.0], "loss").numpy()
        array([1., 2.], dtype=float32)
    """
    x = convert_to_tensor(x)
    if kind_of(x.dtype.dtype) not in "fc":
        raise TypeError(f"assert_all_finite: x must be floating, got {x.dtype.name}")
    _require("assert_all_finite", {"x": x}, message, None)
    return x


_condition("assert_all_finite", "isfinite(x)", np.isfinite)


# ----------------------------------------------------------------- shapes and dtypes


def assert_rank(
    x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None
) -> None:
    """Raise an error unless ``x`` has the given rank.

    Args:
        x: Tensor to check.
        rank: Expected number of axes.
        message: Start of the error message, or None.

    Raises:
        InvalidArgumentError: If the rank differs (also a ``ValueError``).

    Example:
        >>> tw.assert_rank([[1, 2]], 2)
    """
    _check_rank(
        "assert_rank", x, lambda n: n == int(rank), f"rank {int(rank)}", message
    )


def assert_rank_at_least(
    x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None
) -> None:
    """Raise an error unless ``x`` has at least the given rank.

    Args:
        x: Tensor to check.
        rank: Minimum number of axes.
        message: Start of the error message, or None.

    Raises:
        InvalidArgumentError: If the rank is lower (also a ``ValueError``).

    Example:
        >>> tw.debugging.assert_rank_at_least([[1, 2]], 1)
    """
    words = f"rank {int(rank)} or more"
    _check_rank("assert_rank_at_least", x, lambda n: n >= int(rank), words, message)


def assert_rank_in(
    x: TensorLike,
    ranks: Sequence[IntLike],
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise an error unless ``x`` has one of the given ranks.

    Args:
        x: Tensor to check.
        ranks: Allowed numbers of axes.
        message: Start of the error message, or None.

    Raises:
        InvalidArgumentError: If the rank is another one (also a ``ValueError``).

    Example:
        >>> tw.debugging.assert_rank_in([[1, 2]], [1, 2])
    """
    ranks = [int(r) for r in ranks]
    words = f"one of the ranks {ranks}"
    _check_rank("assert_rank_in", x, lambda n: n in ranks, words, message)


def assert_scalar(
    tensor: TensorLike, message: str | None = None, name: str | None = None
) -> Tensor:
    """Return ``tensor`` after a check that it has rank 0.

    Args:
        tensor: Tensor to check.
        message: Start of the error message, or None.

    Raises:
        InvalidArgumentError: If the tensor has axes (also a ``ValueError``).

    Example:
        >>> tw.debugging.assert_scalar(1.0).numpy()
        np.float32(1.0)
    """
    tensor = convert_to_tensor(tensor)
    _check_rank("assert_scalar", tensor, lambda n: n == 0, "rank 0", message)
    return tensor


def _check_rank(who, x, condition, words, message):
    x = convert_to_tensor(x)
    if not condition(x.ndim):
        opening = f"{message}. " if message else ""
        raise InvalidArgumentError(
            f"{opening}{who}: the tensor must have {words}, got rank {x.ndim}, shape "
            f"{x.shape}"
        )


def assert_shapes(
    shapes: Any,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise an error unless tensors have the given shapes.

    The entries of a shape are sizes, None for any size, or names, which denote the same
    size wherever they occur. ``...`` or ``"*"`` as the first entry matches any number
    of axes. In a traced function the shapes are checked once, and tensors have no
    values to show.

    Args:
        shapes: List of pairs of a tensor and a shape, or a dict.
        data: Strings and tensors to show in the error, as in `Assert`, or None.
        summarize: Number of entries shown at each end of an axis, by default 3.
        message: Start of the error message, or None.

    Raises:
        InvalidArgumentError: If a shape does not match (also a ``ValueError``).

    Example:
        >>> x, y = tw.convert_to_tensor([[1.0, 2.0]]), tw.convert_to_tensor([3.0])
        >>> tw.debugging.assert_shapes([(x, ("n", 2)), (y, ("n",))])
    """
    pairs = list(shapes.items()) if isinstance(shapes, dict) else list(shapes)
    try:
        _check_shapes(pairs)
    except InvalidArgumentError as error:
        opening = f"{message}. " if message else ""
        values = [f"\n  {_value_text(x, summarize)}" for x in data or ()]
        raise InvalidArgumentError(f"{opening}{error}{''.join(values)}") from None


def _check_shapes(pairs):
    sizes = {}
    for number, (tensor, wanted) in enumerate(pairs):
        tensor = tensor.deref() if hasattr(tensor, "deref") else tensor
        actual = tuple(convert_to_tensor(tensor).shape)
        who = f"assert_shapes: tensor {number} of shape {actual}"
        wanted = _entries(who, wanted)
        if wanted and wanted[0] in (..., "*"):
            wanted = wanted[1:]
            fits = len(wanted) <= len(actual)
            actual = actual[len(actual) - len(wanted) :]
        else:
            fits = len(wanted) == len(actual)
        if not fits:
            raise InvalidArgumentError(f"{who} must have rank {len(wanted)}")
        for axis, (size, entry) in enumerate(zip(actual, wanted)):
            known = sizes.setdefault(entry, size) if isinstance(entry, str) else entry
            if known is not None and known != size:
                raise InvalidArgumentError(
                    f"{who} must have size {known} ({entry}) in axis {axis}"
                )


def _value_text(x, summarize):
    """Return a string, or the entries of a tensor as text; a traced one has no values."""
    if isinstance(x, str) or active_tracer() is not None:
        return str(x)
    array = devices.to_numpy(convert_to_tensor(x).array)
    return array_text(array, 3 if summarize is None else summarize)


def _entries(who, wanted):
    if isinstance(wanted, (list, tuple, TensorShape)):
        entries = list(wanted)
    elif isinstance(wanted, str):
        entries = list(wanted)
    else:
        raise InvalidArgumentError(
            f"{who}: the shape must be a list or tuple, got {wanted!r}"
        )
    return [
        int(e) if isinstance(e, str) and e.isdigit() else None if e == "." else e
        for e in entries
    ]


def assert_type(
    tensor: TensorLike,
    tf_type: DTypeLike,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise an error unless ``tensor`` has the given dtype.

    Args:
        tensor: Tensor to check.
        tf_type: Expected dtype.
        message: Start of the error message, or None.

    Raises:
        TypeError: If the dtype differs.

    Example:
        >>> tw.debugging.assert_type([1, 2], "int32")
    """
    tensor, wanted = convert_to_tensor(tensor), as_dtype(tf_type)
    if tensor.dtype != wanted:
        opening = f"{message}. " if message else ""
        raise TypeError(
            f"{opening}assert_type: the dtype must be {wanted.name}, got "
            f"{tensor.dtype.name}"
        )


def assert_integer(
    x: TensorLike, message: str | None = None, name: str | None = None
) -> None:
    """Raise an error unless ``x`` has an integer dtype.

    Args:
        x: Tensor to check.
        message: Start of the error message, or None.

    Raises:
        TypeError: If the dtype is not an integer dtype.

    Example:
        >>> tw.debugging.assert_integer([1, 2])
    """
    x = convert_to_tensor(x)
    if x.dtype.dtype.kind not in "iu":
        opening = f"{message}. " if message else ""
        raise TypeError(
            f"{opening}assert_integer: the dtype must be an integer dtype, got "
            f"{x.dtype.name}"
        )


def assert_same_float_dtype(
    tensors: Sequence[TensorLike | None] | None = None, dtype: DTypeLike | None = None
) -> DType:
    """Return the floating dtype that all tensors have in common.

    It is float32 if neither argument is given.

    Args:
        tensors: List of tensors; None entries are skipped.
        dtype: Dtype that the tensors must have, or None.

    Raises:
        InvalidArgumentError: If the dtypes differ or are not floating (also a
            ``ValueError``).

    Example:
        >>> tw.debugging.assert_same_float_dtype([tw.convert_to_tensor(1.0)])
        tf.float32
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for tensor in tensors or ():
        own = convert_to_tensor(tensor).dtype
        wanted = own if wanted is None else wanted
        if own != wanted:
            raise InvalidArgumentError(
                f"assert_same_float_dtype: all tensors must be {wanted.name}, got {own.name}"
            )
    wanted = as_dtype("float32") if wanted is None else wanted
    if kind_of(wanted.dtype) != "f":
        raise InvalidArgumentError(
            f"assert_same_float_dtype: the dtype must be floating, got {wanted.name}"
        )
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Raise an error unless ``values`` is an iterable of values, such as a list.

    Tensors, arrays and strings count as a single value.

    Args:
        values: Object to check.

    Raises:
        TypeError: If ``values`` is not such an iterable.

    Example:
        >>> tw.debugging.assert_proper_iterable([1, 2])
    """
    single = is_tensor(values) or devices.is_array(values)
    if single or isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(
            "assert_proper_iterable: values must be an iterable of values, such as a "
            f"list, got {type(values).__name__}"
        )


def is_numeric_tensor(tensor: object) -> bool:
    """Return whether an object is a tensor of numbers, not of booleans or strings.

    Args:
        tensor: Object to check.

    Example:
        >>> tw.debugging.is_numeric_tensor(tw.convert_to_tensor(1.0))
        True
        >>> tw.debugging.is_numeric_tensor(1.0)
        False
    """
    return is_tensor(tensor) and kind_of(tensor.dtype.dtype) in "iufc"
