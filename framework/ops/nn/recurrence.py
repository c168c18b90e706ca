"""The two linear maps behind the derivatives of fused recurrent ops, which they share.

A recurrent op runs a nonlinear map over the steps of sequences, time first. Its VJP is
a linear recurrence that runs backwards, and the transpose of the VJP runs forwards,
with the same coefficients. Each is the VJP of the other in its linear arguments; in the
coefficients both have the same bilinear rule. So with these two primitives derivatives
of every order are loops over preallocated arrays.

`linear_pair` makes the two for a cell. Both map drives ``(d_gates, *d_states)`` to
arrays of the same shapes, and take ``gates [time, batch, n]`` (the outputs of the
gates), ``track [time + 1, batch, units]`` (a state, the initial one first),
``kernel [units, m]``, then the inputs that ``given`` names: "m" the mask
``[time, batch]``, a digit the drive of that number; drives that are left out are zero.
"""

import numpy as np

from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.tensor import TensorSpec, convert_to_tensor

from ..array.conversion import cast
from ..array.shape import reshape, transpose
from ..linalg.matmul import affine, matmul, matmul_p
from ..math.comparison import greater, masked
from ..math.scan import cumsum


def linear_pair(name, backwards, forwards, by_coefficients, states):
    """Make the VJP of a cell as a primitive, and its transpose, the JVP: ``(vjp, jvp)``.

    ``backwards(xp, gates, track, kernel, skip, drive, *flows)`` runs the loop: it adds
    to ``flows``, which hold the drives of the states, and returns the flow of the
    gates; ``forwards`` likewise. ``by_coefficients(gates, track, kernel, mask, back,
    forth)`` computes cotangents of the first three, from the results of both.
    """
    pair = [
        _linear(f"{name}_vjp", backwards, states),
        _linear(f"{name}_jvp", forwards, states),
    ]
    for op, other in (pair, pair[::-1]):
        _attach_rule(op, other, by_coefficients, states, op is pair[0])
    return pair


def _linear(name, steps, states):
    @primitive(name=name, multiple=True, same_dtype=(), ignores_float_errors=True)
    def op(xp, *values, given):
        check_given(len(values), given)
        gates, track, kernel, *rest = values
        skip = skipped(xp, len(gates), rest.pop(0) if "m" in given else None)
        parts = iter(rest)
        driven = [next(parts) if str(i) in given else None for i in range(states + 1)]
        flows = [
            xp.zeros(track.shape, track.dtype) if d is None else xp.array(d, order="C")
            for d in driven[1:]
        ]
        return steps(xp, gates, track, kernel, skip, driven[0], *flows), *flows

    def check_given(count, given):
        drives = given.removeprefix("m")
        wanted = "".join([i for i in map(str, range(states + 1)) if i in drives])
        if drives != wanted or count != 3 + len(given):
            raise InvalidArgumentError(
                f"{name}: given must name the mask, 'm', and the drives, of 0 to {states}, "
                f"in the order of the {count - 3} that follow, got {given!r}"
            )

    @op.infer
    def _(*specs, given):
        check_given(len(specs), given)
        gates, track = specs[:2]
        of_states = [TensorSpec(track.shape, track.dtype)] * states
        return TensorSpec(gates.shape, gates.dtype), *of_states

    return op


def _attach_rule(op, other, by_coefficients, states, is_vjp):
    @op.vjp("values")
    def _(g, values, out, given):
        masks = values[3:4] if "m" in given else ()
        mask = masks[0] if masks else None
        turned = driven_by(g, other, *values[:3], masks)
        back, forth = (out, turned) if is_vjp else (turned, out)
        cotangents = by_coefficients(*values[:3], mask, back, forth)
        driven = [turned[i] for i in range(states + 1) if str(i) in given]
        return *cotangents, *[None for _ in masks], *driven


def driven_by(drives, op, gates, track, kernel, masks):
    """Apply one of a `linear_pair` to the drives that are not None, and at most one mask."""
    there = [(str(i), drive) for i, drive in enumerate(drives) if drive is not None]
    given = "m" * len(masks) + "".join([i for i, _ in there])
    return op([gates, track, kernel, *masks, *[d for _, d in there]], given=given)


# --------------------------------------------------------------- for kernels and rules


def skipped(xp, steps, mask=None):
    """Return for each step ``[batch, 1]`` where it does not count; None where all do."""
    if mask is None:
        return [None] * steps
    skip = ~mask[:, :, None]
    if xp is not np:  # a GPU would have to be waited for
        return skip
    return [s if some else None for s, some in zip(skip, skip.any((1, 2)).tolist())]


def time_steps(x):
    """Iterate over the steps of a sequence, time first; a tracer of the loop has ``steps``."""
    return getattr(x, "steps", None) or range(len(x))


def only_counted(x, mask):
    """Return ``x`` ``[time, batch, n]`` where the steps count, else 0."""
    return x if mask is None else masked(x, mask[:, :, None])


def outer(states, flow):
    """Compute the cotangent of a kernel, ``states^T @ flow``, over all steps and examples."""
    units, width = states.shape[-1], flow.shape[-1]
    count = states.shape[0] * states.shape[1]
    states, flow = reshape(states, (count, units)), reshape(flow, (count, width))
    return matmul_p(states, flow, True, False)


def longer(xp, x, first):
    """Allocate an array for the states of all steps, with the first of them filled in."""
    states = xp.empty((x.shape[0] + 1, *first.shape), x.dtype)
    states[0] = first
    return states


def check_cell(who, width, x, state, kernel, **others):
    """Check the shapes of a cell's inputs: ``x [time, batch, width * units]``, and so on."""
    given = {"inputs": x, "state": state, "recurrent_kernel": kernel}
    if x.shape.rank != 3 or state.shape.rank != 2 or kernel.shape.rank != 2:
        raise ShapeError(who, "inputs must be [batch, time, features], a state [batch, "
                         "units], kernels matrices", **given)  # fmt: skip
    units, fits = kernel.shape[0], True
    if units is not None:
        for spec, size in ((x, width * units), (state, units), (kernel, width * units)):
            fits = fits and spec.shape[-1] in (None, size)
    if not fits or not state.shape[:1].is_compatible_with(x.shape[1:2]):
        raise ShapeError(who, f"kernels must have {width} * units columns, and states be "
                         f"[batch, units], with units={units}",
                         **given)  # fmt: skip
    steps = None if x.shape[0] is None else x.shape[0] + 1
    columns = None if units is None else width * units
    return (
        TensorSpec([steps, *x.shape[1:2], units], x.dtype),
        TensorSpec([*x.shape[:2], columns], x.dtype),
    )


# ------------------------------------------------------------------- around the kernels


def projected(inputs, kernel, bias):
    """Compute ``inputs @ kernel + bias``, time first: ``[time, batch, n]``."""
    inputs = convert_to_tensor(inputs)
    if len(inputs.shape) != 3:
        raise ShapeError("recurrence", "inputs must be [batch, time, features]",
                         inputs=inputs)  # fmt: skip
    batch, steps, features = inputs.array.shape
    rows = reshape(transpose(inputs, (1, 0, 2)), (steps * batch, features))
    rows = matmul(rows, kernel) if bias is None else affine(rows, kernel, bias)
    return reshape(rows, (steps, batch, rows.array.shape[-1]))


def with_dtype_of(who, x, **others):
    """Convert the others to tensors of the dtype of ``x``.

    Raises:
        DTypeError: If one has a different dtype.
    """
    tensors = [convert_to_tensor(y, dtype_hint=x.dtype) for y in others.values()]
    if any([y.array.dtype != x.array.dtype for y in tensors]):
        given = dict(zip(others, tensors))
        raise DTypeError(who, "the dtypes must be the same", inputs=x, **given)
    return tensors


def time_first(mask):
    """Return a list of a mask ``[batch, time]`` as ``[time, batch]``; empty if None."""
    if mask is None:
        return []
    mask = cast(convert_to_tensor(mask), "bool")
    if len(mask.shape) != 2:
        raise ShapeError("recurrence", "mask must be [batch, time]", mask=mask)
    return [transpose(mask, (1, 0))]


def sequences(states, mask=None, zero_output_for_mask=False):
    """Return outputs ``[batch, time, units]`` from states with the initial one in front.

    A step that does not count repeats the output before it, which is 0 before the first
    one that does; or it returns 0, with ``zero_output_for_mask``.
    """
    outputs = states[1:]
    if mask is not None:
        if not zero_output_for_mask:
            mask = greater(cumsum(cast(mask, "int32"), axis=0), 0)
        outputs = only_counted(outputs, mask)
    return transpose(outputs, (1, 0, 2))
