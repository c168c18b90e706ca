"""The op table: an op with example inputs is one line; `check_op` tests all its properties.

Part of `tw.test`.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapewright.core.errors import MappingError, ShapeError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.primitive import Primitive, get_primitive
from tapewright.core.tensor import TensorSpec, convert_to_tensor

from .batching import BatchInterpreter
from .gradient_check import (
    check_gradients,
    differentiable_outputs,
    host_value,
    random_like,
)
from .gradient_tape import GradientTape

# Tolerances of values beside their formula.
VALUE_RTOL = {"float64": 1e-12, "float32": 2e-5}
SINGLE = {"float64": "float32", "complex128": "complex64"}


@dataclass(frozen=True)
class Sample:
    """Description of a random example input.

    Args:
        shape: Shape of the array.
        kind: "f" (float64), "c" (complex128), "i" (int64) or "b" (boolean).
        low: Lower bound of the entries.
        high: Upper bound of the entries.
    """

    shape: tuple[int, ...]
    kind: str
    low: float
    high: float

    def draw(self, rng: Any) -> Any:
        """Draw the array. Floating entries are spread evenly, so that no two are close.

        Args:
            rng: Random generator of NumPy.
        """
        if self.kind == "b":
            return rng.random(self.shape) < 0.5
        if self.kind == "i":
            return rng.integers(int(self.low), int(self.high), self.shape)
        if self.kind == "c":
            real = Sample(self.shape, "f", self.low, self.high)
            return real.draw(rng) + 1j * real.draw(rng)
        size = int(np.prod(self.shape))
        shares = (rng.permutation(size) + rng.uniform(0.2, 0.8, size)) / max(size, 1)
        return (self.low + (self.high - self.low) * shares).reshape(self.shape)


def floats(*shape: int, low: float = -1.37, high: float = 1.61) -> Sample:
    """Describe a random float64 input, no two entries of which are close to each other.

    Args:
        *shape: Sizes of the axes.
        low: Lower bound of the entries.
        high: Upper bound of the entries.
    """
    return Sample(shape, "f", low, high)


def complexes(*shape: int, low: float = -1.37, high: float = 1.61) -> Sample:
    """Describe a random complex128 input.

    Args:
        *shape: Sizes of the axes.
        low: Lower bound of the real and imaginary parts.
        high: Upper bound of the real and imaginary parts.
    """
    return Sample(shape, "c", low, high)


def integers(*shape: int, low: int = 0, high: int = 3) -> Sample:
    """Describe a random int64 input.

    Args:
        *shape: Sizes of the axes.
        low: Smallest entry.
        high: Bound of the entries, exclusive.
    """
    return Sample(shape, "i", low, high)


def booleans(*shape: int) -> Sample:
    """Describe a random boolean input.

    Args:
        *shape: Sizes of the axes.
    """
    return Sample(shape, "b", 0, 1)


@dataclass(frozen=True)
class Case:
    """An op, or a function of ops, with example inputs; created by `case`.

    Args:
        function: Function of tensors.
        primitive: Primitive that ``function`` calls, or None for a function of ops.
        inputs: Samples, arrays or numbers.
        attributes: Attributes of the op.
        expect: The same function in NumPy, on arrays, or None.
        order: Highest order of the derivatives to check.
        unmapped: Inputs that the batch rule rejects.
        single: If False, skip single precision.
        label: Text that identifies the case.
    """

    function: object
    primitive: Primitive | None
    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    expect: object
    order: int
    unmapped: tuple[Any, ...]
    single: bool
    label: str

    def __str__(self) -> str:
        return self.label

    def __call__(self, *tensors: Any) -> Any:
        if self.primitive is not None and self.primitive.variadic:
            return self.function(list(tensors), **self.attributes)
        return self.function(*tensors, **self.attributes)


def case(
    op: Any,
    *inputs: Any,
    expect: Any = None,
    order: int = 3,
    unmapped: Any = (),
    single: bool = True,
    label: str = "",
    **attributes: Any,
) -> Case:
    """Describe one line of an op table, for `check_op`.

    Args:
        op: Op, name of a primitive, or any function of tensors.
        *inputs: Samples, arrays or numbers.
        expect: The same function in NumPy, on arrays, or None.
        order: Highest order of the derivatives to check, 0 for none.
        unmapped: Inputs (names or positions) that the batch rule rejects with
            `MappingError`.
        single: If False, skip single precision.
        label: Text shown in place of shapes and attributes.
        **attributes: Attributes of the op.

    Example:
        >>> import numpy as np
        >>> print(tw.test.case("exp", tw.test.floats(2, 3), expect=np.exp))
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


def check_op(case: Case, order: int | None = None) -> None:
    """Check all properties of an op on one case: values, derivatives and batching rules.

    It checks the value, in double and single precision; ``infer``; every derivative up
    to the order of the case; that non-differentiable inputs have no gradient; backward
    passes on arrays and on tensors; the batch rule, for each way to map inputs; the
    diagonal rule, for each way and axis; Jacobians.

    Args:
        case: Result of `case`.
        order: Highest order of the derivatives to check, if lower than the order of the
            case.

    Raises:
        AssertionError: If a check fails; the message names it.
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
            name = value.dtype.name
            if run:
                name = SINGLE.get(name, name)
            assert out.dtype.name == name, f"dtype {out.dtype.name}, expected {name}"
            _assert_close(out.numpy(), value, rtol)


def _check_infer(case):
    if case.primitive is None:
        return
    tensors = _tensors(case.inputs)
    outputs = case(*tensors)
    for unknown in (0, 1, 2):  # leading dimensions of each input
        shapes = [
            [None] * min(unknown, t.ndim) + list(t.shape)[unknown:] for t in tensors
        ]
        specs = [TensorSpec(s, t.dtype) for s, t in zip(shapes, tensors)]
        try:
            inferred = case.primitive.infer_rule(*specs, **_attributes(case))
        except ShapeError as error:
            if unknown and "must be known" in str(error):
                continue
            raise
        assert isinstance(inferred, tuple) == isinstance(outputs, (tuple, list))
        for spec, out in zip(_many(inferred), _many(outputs), strict=True):
            fits = spec.is_compatible_with(out)
            assert fits, f"infer says {spec} of {specs}, the result is {out!r}"


def _attributes(case):
    """Return all attributes as plain values, with defaults."""
    args = (list(case.inputs),) if case.primitive.variadic else case.inputs
    return case.primitive.bind(args, case.attributes)[1]


def _check_derivatives(case, order):
    if order:
        constant = _non_differentiable(case)
        varied = [i for i in range(len(case.inputs)) if i not in constant]
        fixed = _tensors(case.inputs)

        def function(*values):
            inputs = list(fixed)
            for i, x in zip(varied, values):
                inputs[i] = x
            return case(*inputs)

        check_gradients(function, [case.inputs[i] for i in varied], order)


def _non_differentiable(case):
    op = case.primitive
    if op is None:
        return set()
    names = op.names(case.inputs)
    return {i for i, name in enumerate(names) if name in op.non_differentiable}


def _sources(case, tensors):
    constant = _non_differentiable(case)
    pairs = enumerate(tensors)
    return [t for i, t in pairs if t.dtype.is_differentiable and i not in constant]


def _check_that_non_differentiable_inputs_have_no_gradient(case):
    for i in _non_differentiable(case):
        if _is_floating(case.inputs[i]):
            tensors = _tensors(case.inputs)
            with GradientTape() as tape:
                tape.watch(tensors[i])
                outputs = differentiable_outputs(case, tensors)
            assert tape.gradient(outputs, tensors[i]) is None


def _gradients(case, arrays, outer=None):
    """Return the sources of a case and their gradients, recorded on an outer tape if given."""
    tensors = _tensors(arrays)
    sources = _sources(case, tensors)
    if not sources:
        return sources, []
    if outer is not None:
        outer.watch(sources)
    with GradientTape() as tape:
        tape.watch(sources)
        outputs = differentiable_outputs(case, tensors)
    rng = np.random.default_rng(1)
    seeds = [convert_to_tensor(random_like(rng, o)) for o in outputs]
    gradients = tape.gradient(outputs, sources, output_gradients=seeds)
    return sources, [g if g is None else convert_to_tensor(g) for g in gradients]


def _check_that_both_passes_agree(case):
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
        sources, gradients = _gradients(case, _singles(case.inputs), outer)
    for source, double, g in zip(sources, doubles, gradients, strict=True):
        if g is not None:
            assert g.dtype == source.dtype, f"{g.dtype!r} for {source.dtype!r}"
            _assert_close(g.numpy(), double.numpy(), 1e-4)
    second = outer.gradient([g for g in gradients if g is not None], sources)
    for source, g in zip(sources, second):
        assert g is None or convert_to_tensor(g).dtype == source.dtype


# ---------------------------------------------------------------------------- mapping


def _variants(array):
    """Return three inputs like this one, stacked along a mapped axis."""
    turned = array.ravel()[::-1].reshape(array.shape)
    if array.dtype.kind in "fc":
        return np.stack([array, turned * 0.9, array * 1.1])
    return np.stack([array, turned, array])


def _subsets(count):
    for mask in itertools.product([False, True], repeat=count):
        if any(mask):
            yield mask


def _run(case, inputs, batcher=None):
    """Run the primitive on tensors, some of which are mapped."""
    op = case.primitive
    if batcher is None:
        return _many(op.general(inputs, _attributes(case)))
    with use_interpreters((batcher,)):
        return _many(op.general(inputs, _attributes(case)))


def _loop(case, inputs, mapped):
    """Run the primitive once for each mapped value, and stack the results."""
    count = next(len(x) for x, m in zip(inputs, mapped) if m)
    rows = []
    for i in range(count):
        row = [x[i] if m else x for x, m in zip(inputs, mapped)]
        rows.append([host_value(out) for out in _run(case, _tensors(row))])
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
    raise AssertionError(f"mapped {mapped}: the case declares it unmapped, but it ran")


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
    """Return ``[m, ...]`` with a diagonal axis of size n as dense ``[n * m, ...]``."""
    values = np.moveaxis(values, axis, 1)
    count, size = values.shape[:2]
    full = np.zeros((size, count, *values.shape[1:]), values.dtype)
    for i in range(size):
        full[i, :, i] = values[:, i]
    full = np.moveaxis(full, 2, axis)
    return full.reshape(size * count, *full.shape[2:])


def _check_jacobians(case):
    tensors = _tensors(case.inputs)
    sources = _sources(case, tensors)
    if not sources or not case.order:
        return
    with GradientTape(persistent=True) as tape:
        tape.watch(sources)
        outputs = differentiable_outputs(case, tensors)
    for out in outputs:
        vectorized = tape.jacobian(out, sources)
        looped = tape.jacobian(out, sources, experimental_use_pfor=False)
        for a, b in zip(vectorized, looped):
            if a is not None and b is not None:
                assert a.shape == b.shape
                _assert_close(host_value(a), host_value(b), 1e-10)
            else:
                assert a is None or not host_value(a).any(), (
                    "a Jacobian only if vectorized"
                )
                assert b is None or not host_value(b).any(), "a Jacobian only in a loop"


_CHECKS = [
    _check_value,
    _check_infer,
    _check_derivatives,
    _check_that_non_differentiable_inputs_have_no_gradient,
    _check_that_both_passes_agree,
    _check_single_precision_gradients,
    _check_batch_rule,
    _check_diagonal_rule,
    _check_jacobians,
]
