"""The simple recurrent network: all steps of a sequence in one primitive.

    h <- activation(x + h @ kernel)

For derivatives see `recurrence`.
"""

from __future__ import annotations

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.primitive import primitive
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from ..array.creation import ones_like
from ..math.comparison import where_positive
from .gates import slope_of_tanh, tanh_and_slope
from .recurrence import (
    check_cell,
    driven_by,
    linear_pair,
    longer,
    only_counted,
    outer,
    projected,
    sequences,
    skipped,
    time_first,
    time_steps,
    with_dtype_of,
)

ACTIVATIONS = ("tanh", "relu", "linear")


@primitive(name="simple_rnn_steps", multiple=True, same_dtype=())
def _simple_rnn(
    xp, *values: TensorLike, activation: str = "tanh", slopes: bool = False
):
    """Return ``(h, gates)`` of inputs ``x, h, kernel[, mask]``, time first.

    ``h [time + 1, batch, units]`` begins with the initial state; ``gates`` are the
    outputs of the activation, counted or not; or with ``slopes`` the derivatives of
    tanh, which the rounded values have lost. Files of old versions have no ``slopes``.
    """
    x, h, kernel, *mask = values
    _check_slopes(activation, slopes)
    skips, h = skipped(xp, len(x), *mask), longer(xp, x, h)
    gates = xp.empty(x.shape, x.dtype)
    for t in time_steps(x):
        g, skip = gates[t], skips[t]
        xp.matmul(h[t], kernel, out=g)
        g += x[t]
        if skip is not None:
            xp.copyto(g, 0, where=skip)
        if slopes and xp is np:
            g = xp.tanh(g, out=h[t + 1])
        elif slopes:
            g, slope = tanh_and_slope(xp, g)
            gates[t] = slope
        elif activation == "tanh":
            xp.tanh(g, out=g)
        elif activation == "relu":
            xp.maximum(g, 0, out=g)
        if skip is not None:
            h[t + 1] = xp.where(skip, h[t], g)
        elif not (slopes and xp is np):
            h[t + 1] = g
    if slopes and xp is np:  # of all steps at once, from the arguments
        gates = slope_of_tanh(np.tanh(gates) if mask else h[1:], gates)
    return h, gates


@_simple_rnn.infer
def _(x, h, kernel, *mask, activation, slopes):
    _check_slopes(activation, slopes)
    return check_cell("simple_rnn", 1, x, h, kernel)


def _check_slopes(activation, slopes):
    if slopes and activation != "tanh":
        raise InvalidArgumentError(
            f"simple_rnn: slopes require activation='tanh', got {activation!r}"
        )


@_simple_rnn.vjp("values")
def _(g, values, out, activation, slopes):
    (h, gates), (of_h, of_gates), mask = out, g, values[3:]
    if slopes:
        slope = gates
        of_gates = None if of_gates is None else of_gates * h[1:] * -2.0
    elif activation == "tanh":
        slope = 1.0 - gates * gates
    else:
        slope = ones_like(gates)
        slope = where_positive(slope, gates) if activation == "relu" else slope
    if of_gates is not None:
        of_gates = only_counted(of_gates * slope, *(mask or (None,)))
    drives = [of_gates, of_h]
    d_x, d_h = driven_by(drives, _simple_rnn_vjp, slope, h, values[2], mask)
    return d_x, d_h[0], outer(h[:-1], d_x), *[None for _ in mask]


# With the total cotangent d_h of the state after a step: d_x = d_h * slope, and before it
# d_h += d_x @ kernel^T. What a step that does not count gets goes on to the one before.


def _backwards(xp, slope, h, kernel, skips, drive, d_h):
    d_x, back = xp.empty(slope.shape, slope.dtype), xp.ascontiguousarray(kernel.T)
    for t in reversed(time_steps(slope)):
        d, h_now, skip = d_x[t], d_h[t + 1], skips[t]
        h_in = h_now if skip is None else xp.where(skip, 0, h_now)
        xp.multiply(h_in, slope[t], out=d)
        if drive is not None:
            d += drive[t]
        d_h[t] += d @ back
        if skip is not None:
            d_h[t] += h_now - h_in
    return d_x


def _forwards(xp, slope, h, kernel, skips, drive, e_h):
    e_x = xp.zeros(slope.shape, slope.dtype) if drive is None else xp.array(drive)
    for t in time_steps(slope):
        e_x[t] += e_h[t] @ kernel
        more = e_x[t] * slope[t]
        e_h[t + 1] += more if skips[t] is None else xp.where(skips[t], e_h[t], more)
    return e_x


def _by_coefficients(slope, h, kernel, mask, back, forth):
    (d_x, d_h), (e_x, e_h) = back, forth
    return e_x * only_counted(d_h[1:], mask), None, outer(e_h[:-1], d_x)


_simple_rnn_vjp, _simple_rnn_jvp = linear_pair(
    "simple_rnn", _backwards, _forwards, _by_coefficients, 1
)


def simple_rnn(
    inputs: TensorLike,
    h: TensorLike,
    kernel: TensorLike,
    recurrent_kernel: TensorLike,
    bias: TensorLike | None = None,
    activation: str = "tanh",
    mask: TensorLike | None = None,
    zero_output_for_mask: bool = False,
) -> tuple[Tensor, Tensor]:
    """Simple recurrent network over sequences: ``(outputs, last h)``.

        h <- activation(inputs @ kernel + h @ recurrent_kernel + bias)

    ``activation`` is "tanh", "relu" or "linear". Derivatives are exact at every order.

    Shapes:
        ``inputs [batch, time, features]``, the state ``h [batch, units]``, kernels
        ``[features or units, units]``, ``bias [units]``; ``mask`` and the outputs as in
        `lstm`.

    References:
        Elman, "Finding structure in time" (1990).
    """
    check_choice("simple_rnn", "activation", activation, ACTIVATIONS)
    x = projected(inputs, kernel, bias)
    masks = time_first(mask)
    h, recurrent_kernel = with_dtype_of(
        "simple_rnn", x, h=h, recurrent_kernel=recurrent_kernel
    )
    inputs = [x, h, recurrent_kernel, *masks]
    h, _ = _simple_rnn(inputs, activation=activation, slopes=activation == "tanh")
    return sequences(h, *(masks or (None,)), zero_output_for_mask), h[-1]
