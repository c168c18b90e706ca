"""Every line of the op table, forward: Jacobian-vector products beside differences."""

import numpy as np
import pytest

import tapewright as tw

STEP = 1e-5


def outputs(case, arrays):
    found = case(*[tw.constant(a) for a in arrays])
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    return [f for f in found if f.dtype.is_differentiable]


def random_like(rng, array):
    values = rng.uniform(-1, 1, array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * rng.uniform(-1, 1, array.shape)
    return np.asarray(values, array.dtype)


def varied(case):
    flat = set() if case.primitive is None else case.primitive.non_differentiable
    names = (
        [None] * len(case.inputs)
        if case.primitive is None
        else case.primitive.names(case.inputs)
    )
    return [
        i
        for i, (x, name) in enumerate(zip(case.inputs, names))
        if x.dtype.kind in "fc" and name not in flat
    ]


def close(got, wanted, rtol):
    size = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * size)


def test_the_tangent_of_every_op_is_the_quotient_of_differences(any_case):
    at = varied(any_case)
    if not any_case.order or not at:
        pytest.skip("no derivative")
    rng = np.random.default_rng(1)
    arrays = [np.asarray(x) for x in any_case.inputs]
    tangents = {i: random_like(rng, arrays[i]) for i in at}
    inputs = [tw.constant(a) for a in arrays]
    with tw.autodiff.ForwardAccumulator(
        [inputs[i] for i in at], [tangents[i] for i in at]
    ) as acc:
        found = any_case(*inputs)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
    found = [f for f in found if f.dtype.is_differentiable]
    ends = [
        outputs(
            any_case,
            [a + s * STEP * tangents[i] if i in tangents else a
             for i, a in enumerate(arrays)],
        )
        for s in (1, -1)
    ]  # fmt: skip
    for out, upper, lower in zip(found, *ends, strict=True):
        tangent = acc.jvp(out, unconnected_gradients="zero")
        assert tangent.shape == out.shape
        assert tangent.dtype == out.dtype
        with np.errstate(invalid="ignore"):  # the extremes of nothing are infinite
            quotient = (upper.numpy() - lower.numpy()) / (2 * STEP)
        finite = np.isfinite(quotient)
        close(tangent.numpy()[finite], quotient[finite], 2e-6)


def test_forward_over_reverse_is_reverse_over_reverse_for_every_op(any_case):
    at = varied(any_case)
    if any_case.order < 2 or not at:
        pytest.skip("no second derivative")
    rng = np.random.default_rng(2)
    inputs = [tw.constant(x) for x in any_case.inputs]
    sources = [inputs[i] for i in at]
    tangents = [
        tw.constant(random_like(rng, np.asarray(any_case.inputs[i]))) for i in at
    ]

    def gradients():
        with tw.GradientTape() as tape:
            tape.watch(sources)
            found = any_case(*inputs)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            found = [f for f in found if f.dtype.is_differentiable]
            seeds = [tw.constant(random_like(rng, f.numpy())) for f in found]
        gradients = tape.gradient(found, sources, output_gradients=seeds)
        return [g if g is None else tw.convert_to_tensor(g) for g in gradients]

    rng = np.random.default_rng(3)
    with tw.autodiff.ForwardAccumulator(sources, tangents) as acc:
        forward_found = gradients()
    rng = np.random.default_rng(3)
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        reverse_found = gradients()
    # <c, H t> = <H^T c, t>, in the pairing of tapes: the real part of conj(a) * b
    total_forward = total_reverse = 0.0
    for g, again in zip(forward_found, reverse_found):
        if g is None:
            continue
        c = tw.constant(random_like(rng, g.numpy()))
        moved = acc.jvp(g, unconnected_gradients="zero")
        total_forward += np.vdot(c.numpy(), moved.numpy()).real
        for back, t in zip(
            tape.gradient(again, sources, c, unconnected_gradients="zero"), tangents
        ):
            back = tw.convert_to_tensor(back)
            total_reverse += np.vdot(back.numpy(), t.numpy()).real
    np.testing.assert_allclose(total_forward, total_reverse, rtol=1e-9, atol=1e-9)
