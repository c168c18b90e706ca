"""Checks of the derivatives of any function against differences, part of `tw.test`.

`compute_gradient` follows TensorFlow: Jacobians by the tape and by central differences.
`check_gradients` checks every derivative up to an order against differences of the
derivative below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapewright.core.nest import flatten
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import Array, TensorLike
from tapewright.core.variable import Variable

from .gradient_tape import GradientTape

# By dtype: the step of difference quotients, and the tolerance of derivatives.
STEPS = {"float64": 1e-5, "complex128": 1e-5, "float32": 1e-2, "complex64": 1e-2}
GRADIENT_RTOL = {
    "float64": 1e-6,
    "complex128": 1e-6,
    "float32": 2e-2,
    "complex64": 2e-2,
}


def compute_gradient(
    f: Callable[..., Any], x: Sequence[TensorLike], delta: float | None = None
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Compute the Jacobians of ``f(*x)`` by the tape and by central differences.

    Args:
        f: Function of tensors that returns a tensor.
        x: List or tuple of arguments.
        delta: Step of the differences, by default 1/1024.

    Shapes:
        ``[size of the result, size of the argument]`` for each argument; complex
        numbers count as two reals.

    Returns:
        ``(theoretical, numerical)``, each a tuple with one array for each argument.

    Raises:
        ValueError: If ``x`` is not a list or tuple.
        TypeError: If an argument or the result is not floating or complex.

    Example:
        >>> theoretical, numerical = tw.test.compute_gradient(lambda x: x * x, [3.0])
        >>> theoretical
        (array([[6.]], dtype=float32),)
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            f"compute_gradient: x must be a list or tuple of arguments, got "
            f"{type(x).__name__}"
        )
    delta = 1.0 / 1024 if delta is None else delta
    args = [convert_to_tensor(value) for value in x]
    result = convert_to_tensor(f(*args))
    for name, value in [
        *((f"x[{i}]", a) for i, a in enumerate(args)),
        ("f(*x)", result),
    ]:
        if not value.dtype.is_differentiable:
            raise TypeError(
                f"compute_gradient: {name} must be floating or complex, got "
                f"{value.dtype.name}"
            )
    slopes = [_by_the_tape(f, args, i) for i in range(len(args))]
    quotients = [_by_differences(f, args, i, delta) for i in range(len(args))]
    return tuple(slopes), tuple(quotients)


def _by_the_tape(f, args, at):
    with GradientTape(persistent=True) as tape:
        tape.watch(args[at])
        result = convert_to_tensor(f(*args))
    rows = []
    for unit in _units(result.numpy()):
        g = tape.gradient(result, args[at], output_gradients=convert_to_tensor(unit))
        dense = (
            np.zeros(args[at].shape, args[at].dtype.dtype)
            if g is None
            else host_value(g)
        )
        rows.append(_reals(dense))
    return np.stack(rows) if rows else np.zeros((0, _reals(args[at].numpy()).size))


def _by_differences(f, args, at, delta):
    columns = []
    point = args[at].numpy()
    for unit in _units(point):
        ends = []
        for step in (delta, -delta):
            moved = convert_to_tensor((point + step * unit).astype(point.dtype))
            ends.append(_reals(host_value(f(*args[:at], moved, *args[at + 1 :]))))
        columns.append((ends[0] - ends[1]) / (2 * delta))
    size = _reals(host_value(f(*args))).size
    return np.stack(columns, axis=1) if columns else np.zeros((size, 0))


def _units(array):
    """Yield the unit arrays of an array: 1 at one entry (and then i, if it is complex)."""
    array = np.asarray(array)
    for index in np.ndindex(array.shape):
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            full = np.zeros(array.shape, array.dtype)
            full[index] = unit
            yield full


def _reals(array):
    flat = np.asarray(array).ravel()
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def host_value(tensor):
    """Return a NumPy copy of a tensor or of sparse slices."""
    return np.array(convert_to_tensor(tensor).numpy())


def check_gradients(
    f: Callable[..., Any],
    args: Sequence[TensorLike],
    order: int = 3,
    rtol: float | None = None,
    atol: float | None = None,
    delta: float | None = None,
    seed: int = 0,
) -> None:
    """Check the derivatives of ``f(*args)``, up to an order, against differences.

    The first derivative, contracted with a random cotangent, must agree with difference
    quotients of ``f``; the second, the derivative of that contraction, with quotients
    of the first, and so on. A sharp check needs double precision.

    Args:
        f: Function that returns a tensor or a nest of tensors.
        args: Arguments of ``f``, values or Variables; every entry of floating and
            complex ones is varied.
        order: Highest order of the derivatives to check.
        rtol: Relative tolerance, by default according to the dtype (1e-6 in double
            precision).
        atol: Absolute tolerance, by default according to the dtype.
        delta: Step of the differences, by default according to the dtype (1e-5 in
            double precision).
        seed: Integer seed of the random cotangents.

    Raises:
        AssertionError: If a derivative is wrong; the message names the worst entry.

    Example:
        >>> import numpy as np
        >>> args = [np.array([1.0, 2.0]), np.array(3.0)]
        >>> tw.test.check_gradients(lambda x, y: x * x * y, args)
    """
    args = [a if isinstance(a, Variable) else convert_to_tensor(a) for a in args]
    at = [i for i, a in enumerate(args) if a.dtype.is_differentiable]
    if not at:
        return
    name = args[at[0]].dtype.name
    delta = STEPS.get(name, 1e-2) if delta is None else delta
    rtol = GRADIENT_RTOL.get(name, 5e-2) if rtol is None else rtol
    atol = rtol if atol is None else atol
    rng = np.random.default_rng(seed)
    cotangents = [[random_like(rng, out) for out in differentiable_outputs(f, args)]]
    for n in range(1, order + 1):
        derivative = _derivative(f, args, at, cotangents, n)
        quotients = _quotients(f, args, at, cotangents, n - 1, delta)
        _compare(n, at, derivative, quotients, rtol, atol)
        if all(g is None for g in derivative):
            return
        cotangents.append([random_like(rng, args[i]) for i in at])


def differentiable_outputs(f, args):
    outputs = [convert_to_tensor(out) for out in flatten(f(*args))]
    return [out for out in outputs if out.dtype.is_differentiable]


def random_like(rng, tensor):
    shape, dtype = tuple(tensor.shape), tensor.dtype.dtype
    values = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(0.5, 1.5, shape)
    return np.asarray(values, dtype)


def _derivative(f, args, at, cotangents, order):
    """Return the outputs of ``f``, or the gradients of the contraction one order below."""
    if order == 0:
        return differentiable_outputs(f, args)
    sources = [args[i] for i in at]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        lower = _derivative(f, args, at, cotangents, order - 1)
    pairs = [(v, c) for v, c in zip(lower, cotangents[order - 1]) if v is not None]
    targets, seeds = [v for v, _ in pairs], [convert_to_tensor(c) for _, c in pairs]
    gradients = tape.gradient(targets, sources, output_gradients=seeds)
    return [g if g is None else convert_to_tensor(g) for g in gradients]


def _contraction(f, args, at, cotangents, order):
    values = _derivative(f, args, at, cotangents, order)
    return sum(
        np.vdot(c, v.numpy()).real
        for v, c in zip(values, cotangents[order])
        if v is not None
    )


def _quotients(f, args, at, cotangents, order, delta):
    results = []
    for i in at:
        point = args[i].numpy()
        point = np.asarray(point)
        quotient = np.zeros(point.shape, point.dtype)
        for unit in _units(point):
            ends = [
                _at(f, args, i, point + step * unit, at, cotangents, order)
                for step in (delta, -delta)
            ]
            quotient += (ends[0] - ends[1]) / (2 * delta) * unit
        results.append(quotient)
    return results


def _at(f, args, i, value, at, cotangents, order):
    """Return the contraction with argument ``i`` at another value."""
    if not isinstance(args[i], Variable):
        moved = [*args[:i], convert_to_tensor(value), *args[i + 1 :]]
        return _contraction(f, moved, at, cotangents, order)
    kept = args[i].read()
    args[i].assign(value)
    try:
        return _contraction(f, args, at, cotangents, order)
    finally:
        args[i].assign(kept)


def _compare(order, at, derivative, quotients, rtol, atol):
    worst, message = 1.0, None
    for i, g, quotient in zip(at, derivative, quotients):
        got = np.zeros_like(quotient) if g is None else g.numpy()
        if got.shape != quotient.shape or got.dtype != quotient.dtype:
            raise AssertionError(
                f"derivative of order {order} by argument {i}: got {got.dtype} "
                f"{got.shape} for {quotient.dtype} {quotient.shape}"
            )
        if not got.size:
            continue
        excess = np.abs(got - quotient) / (atol + rtol * np.abs(quotient))
        excess = np.where(np.isfinite(excess), excess, np.inf)
        index = np.unravel_index(np.argmax(excess), excess.shape)
        if excess[index] > worst:
            worst = excess[index]
            where = f"[{', '.join(str(int(n)) for n in index)}]" if index else ""
            message = (
                f"derivative of order {order} by argument {i}{where}: got {got[index]}"
                f"{' (None)' if g is None else ''}, the difference quotient is "
                f"{quotient[index]}"
            )
    if message is not None:
        raise AssertionError(message)
