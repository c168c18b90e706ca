"""Checks of derivatives and ops, for our tests and yours: `tw.test`.

`compute_gradient` is TensorFlow's: Jacobians from the rules beside Jacobians from
differences. `check_gradients` holds every derivative up to an order against differences
of the one below. A `case` is an op with example inputs, one line in a table; `check_op`
puts it through everything an op promises. Leans on the tape and the batcher.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapewright.core.errors import MappingError, ShapeError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.nest import flatten
from tapewright.core.primitive import Primitive, get_primitive
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.core.typing import Array, TensorLike
from tapewright.core.variable import Variable

from .batching import BatchInterpreter
from .gradient_tape import GradientTape

__all__ = [
    "Case",
    "Sample",
    "booleans",
    "case",
    "check_gradients",
    "check_op",
    "complexes",
    "compute_gradient",
    "floats",
    "integers",
]

# Per dtype: the step of a difference quotient, and how far a derivative may be from it.
STEPS = {"float64": 1e-5, "complex128": 1e-5, "float32": 1e-2, "complex64": 1e-2}
GRADIENT_RTOL = {
    "float64": 1e-6,
    "complex128": 1e-6,
    "float32": 2e-2,
    "complex64": 2e-2,
}
# How far a value may be from its formula.
VALUE_RTOL = {"float64": 1e-12, "complex128": 1e-12, "float32": 2e-5, "complex64": 2e-5}
SINGLE = {"float64": "float32", "complex128": "complex64"}


# ----------------------------------------------------------- derivatives of any function


def compute_gradient(
    f: Callable[..., Any], x: Sequence[TensorLike], delta: float | None = None
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The Jacobians of ``f(*x)``: from the tape, and from central differences.

    Args: ``x``: a list of arguments; ``delta``: the step of the differences, 1/1024.

    Returns: ``(theoretical, numerical)``, each a tuple with one array ``[size of the
    result, size of the argument]`` for each argument. Complex numbers count as two reals.

    Raises: ``ValueError`` if ``x`` is no list or tuple, ``TypeError`` for an argument or
    result that is not floating or complex.

    >>> theoretical, numerical = compute_gradient(lambda x: x * x, [3.0])
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
            np.zeros(args[at].shape, args[at].dtype.dtype) if g is None else _value(g)
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
            ends.append(_reals(_value(f(*args[:at], moved, *args[at + 1 :]))))
        columns.append((ends[0] - ends[1]) / (2 * delta))
    size = _reals(_value(f(*args))).size
    return np.stack(columns, axis=1) if columns else np.zeros((size, 0))


def _units(array):
    """For each entry of an array one that is 1 there (and one that is i, if complex)."""
    array = np.asarray(array)
    for index in np.ndindex(array.shape):
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            full = np.zeros(array.shape, array.dtype)
            full[index] = unit
            yield full


def _reals(array):
    flat = np.asarray(array).ravel()
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _value(tensor):
    """A copy in host memory; sparse gradients made dense."""
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
    """Holds each derivative of ``f(*args)``, up to ``order``, against differences.

    The first derivative, contracted with a random cotangent, must agree with difference
    quotients of ``f``; the second, the derivative of that contraction, with quotients of
    the first, and so on: the rules of the rules are checked with the rules.

    Args: ``args``: values or Variables; those that are floating or complex are varied,
    all entries. ``f`` returns a tensor or a nest of them. ``rtol`` (1e-6 in double
    precision), ``atol`` and ``delta``, the step (1e-5), follow the dtype if not given;
    double precision is what makes the check sharp.

    Raises: ``AssertionError`` that names the worst entry.

    >>> check_gradients(lambda x, y: x * x * y, [np.array([1.0, 2.0]), np.array(3.0)])
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
    cotangents = [[_random_like(rng, out) for out in _outputs(f, args)]]
    for n in range(1, order + 1):
        found = _derivative(f, args, at, cotangents, n)
        quotients = _quotients(f, args, at, cotangents, n - 1, delta)
        _compare(n, at, found, quotients, rtol, atol)
        if all(g is None for g in found):
            return
        cotangents.append([_random_like(rng, args[i]) for i in at])


def _outputs(f, args):
    outputs = [convert_to_tensor(out) for out in flatten(f(*args))]
    return [out for out in outputs if out.dtype.is_differentiable]


def _random_like(rng, tensor):
    shape, dtype = tuple(tensor.shape), tensor.dtype.dtype
    values = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(0.5, 1.5, shape)
    return np.asarray(values, dtype)


def _derivative(f, args, at, cotangents, order):
    """The outputs of ``f``, or the gradients of the contraction of the order below."""
    if order == 0:
        return _outputs(f, args)
    sources = [args[i] for i in at]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        lower = _derivative(f, args, at, cotangents, order - 1)
    pairs = [(v, c) for v, c in zip(lower, cotangents[order - 1]) if v is not None]
    targets, seeds = [v for v, _ in pairs], [convert_to_tensor(c) for _, c in pairs]
    found = tape.gradient(targets, sources, output_gradients=seeds)
    return [g if g is None else convert_to_tensor(g) for g in found]


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
    """The contraction with argument ``i`` at another value."""
    if not isinstance(args[i], Variable):
        moved = [*args[:i], convert_to_tensor(value), *args[i + 1 :]]
        return _contraction(f, moved, at, cotangents, order)
    kept = args[i].read()
    args[i].assign(value)
    try:
        return _contraction(f, args, at, cotangents, order)
    finally:
        args[i].assign(kept)


def _compare(order, at, found, quotients, rtol, atol):
    worst, message = 1.0, None
    for i, g, quotient in zip(at, found, quotients):
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


# ------------------------------------------------------------------- the table of ops


@dataclass(frozen=True)
class Sample:
    """An example input, drawn when a case is made: shape, kind ("f", "c", "i", "b"), range."""

    shape: tuple
    kind: str
    low: float
    high: float

    def draw(self, rng):
        """Its array. Floating entries are spread evenly, so that no two are close."""
        if self.kind == "b":
            return rng.random(self.shape) < 0.5
        if self.kind == "i":
            return rng.integers(int(self.low), int(self.high), self.shape)
        if self.kind == "c":
            real = Sample(self.shape, "f", self.low, self.high)
            return real.draw(rng) + 1j * real.draw(rng)
        size = int(np.prod(self.shape))
        places = (rng.permutation(size) + rng.uniform(0.2, 0.8, size)) / max(size, 1)
        return (self.low + (self.high - self.low) * places).reshape(self.shape)


def floats(*shape, low=-1.37, high=1.61):
    """A float64 input with entries between ``low`` and ``high``, none near another."""
    return Sample(shape, "f", low, high)


def complexes(*shape, low=-1.37, high=1.61):
    """A complex128 input with real and imaginary parts between ``low`` and ``high``."""
    return Sample(shape, "c", low, high)


def integers(*shape, low=0, high=3):
    """An int64 input with entries from ``low`` to ``high - 1``."""
    return Sample(shape, "i", low, high)


def booleans(*shape):
    """A boolean input."""
    return Sample(shape, "b", 0, 1)


@dataclass(frozen=True)
class Case:
    """An op, or a function of ops, with example inputs; made by `case`."""

    function: object
    primitive: Primitive | None
    inputs: tuple
    attributes: dict
    expect: object
    order: int
    unmapped: tuple
    single: bool
    label: str

    def __str__(self):
        return self.label

    def __call__(self, *tensors):
        if self.primitive is not None and self.primitive.variadic:
            return self.function(list(tensors), **self.attributes)
        return self.function(*tensors, **self.attributes)


def case(
    op, *inputs, expect=None, order=3, unmapped=(), single=True, label="", **attributes
):
    """One line of an op table.

    Args: ``op``: an op, the name of a primitive, or any function of tensors; ``inputs``:
    samples, arrays or numbers; ``expect``: the same in NumPy, on arrays; ``order``: up to
    which derivatives are checked, 0 for none; ``unmapped``: inputs (names or positions)
    that the batch rule refuses with `MappingError`; ``single``: whether it is
    checked in single precision too; ``label``: shown in place of shapes and attributes;
    ``attributes`` of the op.

    >>> print(case("exp", floats(2, 3), expect=np.exp))
    exp(2x3)
    """
    function = get_primitive(op).entry if isinstance(op, str) else op
    primitive = getattr(function, "primitive", None)
    name = primitive.name if primitive is not None else function.__name__
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = tuple(
        [x.draw(rng) if isinstance(x, Sample) else np.asarray(x) for x in inputs]
    )
    shapes = ",".join("x".join(map(str, a.shape)) or "scalar" for a in arrays)
    kind = "complex," if any(a.dtype.kind == "c" for a in arrays) else ""
    options = ",".join(f"{k}={v}" for k, v in attributes.items())
    text = label or ";".join(part for part in (kind + shapes, options) if part)
    if primitive is not None and not primitive.variadic:
        unmapped = [
            primitive.inputs.index(n) if isinstance(n, str) else n for n in unmapped
        ]
    return Case(
        function, primitive, arrays, attributes, expect, order, tuple(unmapped),
        single, f"{name}({text})",
    )  # fmt: skip


def check_op(case, order=None):
    """Puts a case through everything an op promises.

    The value, in double and single precision; ``infer``; every derivative up to the
    case's order (``order`` lowers it); flat inputs; backward on arrays and tensors; the batch
    rule, each way to map inputs; the diagonal rule, each way and axis; Jacobians.

    Raises: ``AssertionError`` that says which promise is broken, and how.
    """
    for check in _CHECKS:
        try:
            if check is _check_derivatives:
                check(case, case.order if order is None else min(order, case.order))
            else:
                check(case)
        except Exception as error:
            error.add_note(f"{case}: {check.__name__[1:].replace('_', ' ')}")
            raise


def _tensors(arrays):
    return [convert_to_tensor(a) for a in arrays]


def _singles(arrays):
    return [a.astype(SINGLE.get(a.dtype.name, a.dtype)) for a in arrays]


def _is_floating(array):
    return array.dtype.kind in "fc"


def _many(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _assert_close(got, wanted, rtol, what=""):
    got, wanted = np.asarray(got), np.asarray(wanted)
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0) if wanted.size else 0.0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            got, wanted, rtol=rtol, atol=rtol * max(float(size), 1e-3), err_msg=what
        )


def _check_value(case):
    runs = [(case.inputs, VALUE_RTOL["float64"])]
    if case.single and any(a.dtype.name in SINGLE for a in case.inputs):
        runs.append((_singles(case.inputs), VALUE_RTOL["float32"]))
    results = [_many(case(*_tensors(arrays))) for arrays, _ in runs]
    if case.expect is None:
        wanted = results[0]
    else:
        with np.errstate(all="ignore"):
            wanted = _many(case.expect(*case.inputs))
    assert len(wanted) == len(results[0]), f"{len(results[0])} outputs"
    for run, ((_, rtol), outputs) in enumerate(zip(runs, results)):
        for out, value in zip(outputs, wanted):
            value = np.asarray(value)
            name = (
                SINGLE.get(value.dtype.name, value.dtype.name)
                if run
                else value.dtype.name
            )
            assert out.dtype.name == name, f"dtype {out.dtype.name}, expected {name}"
            _assert_close(out.numpy(), value, rtol)


def _check_infer(case):
    if case.primitive is None:
        return
    tensors = _tensors(case.inputs)
    outputs = case(*tensors)
    for unknown in (0, 1, 2):  # how many dimensions of each input are not known
        shapes = [
            [None] * min(unknown, t.ndim) + list(t.shape)[unknown:] for t in tensors
        ]
        specs = [TensorSpec(s, t.dtype) for s, t in zip(shapes, tensors)]
        try:
            found = case.primitive.infer_rule(*specs, **_attributes(case))
        except ShapeError as error:
            if unknown and "must be known" in str(error):
                continue
            raise
        assert isinstance(found, tuple) == isinstance(outputs, (tuple, list))
        for spec, out in zip(_many(found), _many(outputs), strict=True):
            fits = spec.is_compatible_with(out)
            assert fits, f"infer says {spec} of {specs}, the result is {out!r}"


def _attributes(case):
    """All attributes as plain values, defaults filled in."""
    args = (list(case.inputs),) if case.primitive.variadic else case.inputs
    return case.primitive.bind(args, case.attributes)[1]


def _check_derivatives(case, order):
    if order:
        flat = _flat_inputs(case)
        steep = [i for i in range(len(case.inputs)) if i not in flat]

        def function(*varied):
            full = list(fixed)
            for i, x in zip(steep, varied):
                full[i] = x
            return case(*full)

        fixed = _tensors(case.inputs)
        check_gradients(function, [case.inputs[i] for i in steep], order)


def _flat_inputs(case):
    op = case.primitive
    if op is None:
        return set()
    names = op.names(case.inputs)
    return {i for i, name in enumerate(names) if name in op.non_differentiable}


def _check_that_flat_inputs_have_no_gradient(case):
    for i in _flat_inputs(case):
        if _is_floating(case.inputs[i]):
            tensors = _tensors(case.inputs)
            with GradientTape() as tape:
                tape.watch(tensors[i])
                outputs = [
                    o for o in _many(case(*tensors)) if o.dtype.is_differentiable
                ]
            assert tape.gradient(outputs, tensors[i]) is None


def _gradients(case, arrays, outer=None):
    """First and, for the first source, second derivatives; by either pass."""
    tensors = _tensors(arrays)
    flat = _flat_inputs(case)
    sources = [
        t for i, t in enumerate(tensors) if t.dtype.is_differentiable and i not in flat
    ]
    if not sources:
        return sources, []
    if outer is not None:
        outer.watch(sources)
    with GradientTape() as tape:
        tape.watch(sources)
        outputs = [o for o in _many(case(*tensors)) if o.dtype.is_differentiable]
    rng = np.random.default_rng(1)
    seeds = [convert_to_tensor(_random_like(rng, o)) for o in outputs]
    found = tape.gradient(outputs, sources, output_gradients=seeds)
    return sources, [g if g is None else convert_to_tensor(g) for g in found]


def _check_that_both_walks_agree(case):
    if not case.order:
        return
    _, bare = _gradients(case, case.inputs)
    with GradientTape(persistent=True) as outer:
        _, recorded = _gradients(case, case.inputs, outer)
    for a, b in zip(bare, recorded, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def _check_single_precision_gradients(case):
    if not (case.order and case.single):
        return
    _, doubles = _gradients(case, case.inputs)
    with GradientTape() as outer:
        sources, found = _gradients(case, _singles(case.inputs), outer)
    for source, double, g in zip(sources, doubles, found, strict=True):
        if g is not None:
            assert g.dtype == source.dtype, f"{g.dtype!r} for {source.dtype!r}"
            _assert_close(g.numpy(), double.numpy(), 1e-4)
    second = outer.gradient([g for g in found if g is not None], sources)
    for source, g in zip(sources, second):
        assert g is None or convert_to_tensor(g).dtype == source.dtype


# ---------------------------------------------------------------------------- mapping

MAPPED = 3  # how many values a mapped input stands for


def _variants(array):
    """Some inputs like this one, a mapped axis in front."""
    turned = array.ravel()[::-1].reshape(array.shape)
    if array.dtype.kind in "fc":
        return np.stack([array, turned * 0.9, array * 1.1])
    return np.stack([array, turned, array])


def _subsets(count):
    for mask in itertools.product([False, True], repeat=count):
        if any(mask):
            yield mask


def _run(case, inputs, batcher=None):
    """The primitive on tensors of which some are mapped."""
    op = case.primitive
    if batcher is None:
        return _many(op.general(inputs, _attributes(case)))
    with use_interpreters((batcher,)):
        return _many(op.general(inputs, _attributes(case)))


def _loop(case, inputs, mapped):
    """The primitive once for each mapped value, the results stacked."""
    count = next(len(x) for x, m in zip(inputs, mapped) if m)
    rows = []
    for i in range(count):
        row = [x[i] if m else x for x, m in zip(inputs, mapped)]
        rows.append([_value(out) for out in _run(case, _tensors(row))])
    return [np.stack(parts) for parts in zip(*rows)]


def _check_batch_rule(case):
    if case.primitive is None:
        return
    for mapped in _subsets(len(case.inputs)):
        inputs = [_variants(x) if m else x for x, m in zip(case.inputs, mapped)]
        batcher = BatchInterpreter()
        values = [batcher.map(t) if m else t for t, m in zip(_tensors(inputs), mapped)]
        if any(mapped[i] for i in case.unmapped):
            _assert_refuses(case, values, batcher, mapped)
            continue
        outputs = _run(case, values, batcher)
        wanted = _loop(case, inputs, mapped)
        for out, value in zip(outputs, wanted, strict=True):
            got = batcher.densify_all(out)
            assert got.dtype == value.dtype, f"mapped {mapped}: {got.dtype!r}"
            assert got.shape == value.shape, (
                f"mapped {mapped}: {got.shape}, {value.shape}"
            )
            _assert_close(got.numpy(), value, 1e-10, f"mapped {mapped}")


def _assert_refuses(case, values, batcher, mapped):
    try:
        _run(case, values, batcher)
    except MappingError:
        return
    raise AssertionError(f"mapped {mapped}: the case says it is refused, but it ran")


def _check_diagonal_rule(case):
    if case.primitive is None or case.primitive.diagonal_rule is None:
        return
    if any(x.size == 0 for x in case.inputs):
        return
    for mapped in _subsets(len(case.inputs)):
        ranks = [
            range(-x.ndim, 0) if m else (None,) for x, m in zip(case.inputs, mapped)
        ]
        for axes in itertools.product(*ranks):
            sizes = {x.shape[a] for x, a in zip(case.inputs, axes) if a is not None}
            if len(sizes) == 1 and not any(mapped[i] for i in case.unmapped):
                _check_diagonal(case, mapped, axes)


def _check_diagonal(case, mapped, axes):
    values = [_variants(x)[:2] if m else x for x, m in zip(case.inputs, mapped)]
    spelled = [x if a is None else _spelled_out(x, a) for x, a in zip(values, axes)]
    batcher = BatchInterpreter()
    inputs = [
        batcher.map(t, a) if m else t for t, m, a in zip(_tensors(values), mapped, axes)
    ]
    with np.errstate(all="ignore"):
        outputs = _run(case, inputs, batcher)
        wanted = _loop(case, spelled, mapped)
        for out, value in zip(outputs, wanted, strict=True):
            got = batcher.densify_all(out)
            what = f"diagonal {axes}, answer {out.axis}"
            assert got.shape == value.shape, f"{what}: {got.shape}, not {value.shape}"
            _assert_close(got.numpy(), value, 1e-10, what)


def _spelled_out(values, axis):
    """``[m, ...]`` with a diagonal axis of size n as ``[n * m, ...]``, zeros and all."""
    values = np.moveaxis(values, axis, 1)
    count, size = values.shape[:2]
    full = np.zeros((size, count, *values.shape[1:]), values.dtype)
    for i in range(size):
        full[i, :, i] = values[:, i]
    full = np.moveaxis(full, 2, axis)
    return full.reshape(size * count, *full.shape[2:])


def _check_jacobians(case):
    tensors = _tensors(case.inputs)
    flat = _flat_inputs(case)
    sources = [
        t for i, t in enumerate(tensors) if t.dtype.is_differentiable and i not in flat
    ]
    if not sources or not case.order:
        return
    with GradientTape(persistent=True) as tape:
        tape.watch(sources)
        outputs = [o for o in _many(case(*tensors)) if o.dtype.is_differentiable]
    for out in outputs:
        vectorized = tape.jacobian(out, sources)
        looped = tape.jacobian(out, sources, experimental_use_pfor=False)
        for a, b in zip(vectorized, looped):
            if a is not None and b is not None:
                assert a.shape == b.shape
                _assert_close(_value(a), _value(b), 1e-10)
            else:
                assert a is None or not _value(a).any(), "a Jacobian only if vectorized"
                assert b is None or not _value(b).any(), "a Jacobian only in a loop"


_CHECKS = [
    _check_value,
    _check_infer,
    _check_derivatives,
    _check_that_flat_inputs_have_no_gradient,
    _check_that_both_walks_agree,
    _check_single_precision_gradients,
    _check_batch_rule,
    _check_diagonal_rule,
    _check_jacobians,
]
