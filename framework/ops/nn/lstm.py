"""The long short-term memory: all steps of a sequence in one primitive.

    i, f, n, o = sigmoid, sigmoid, tanh, sigmoid of the quarters of  x + h @ kernel
    c <- f * c + i * n        h <- o * tanh(c)

A primitive for speed: step by step in ops this is some fifteen calls a step, each with
arrays of its own. How derivatives come about is told in `recurrence`.
"""

from __future__ import annotations

from tapewright.core.primitive import primitive
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from ..array.joining import concat, pad
from ..math.trigonometry import tanh
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

__all__ = ["lstm"]


@primitive(name="lstm_steps", multiple=True, same_dtype=(), ignores_float_errors=True)
def _lstm(xp, *values: TensorLike):
    """``(h, c, gates)`` of inputs ``x, h, c, kernel[, mask]``, time first.

    ``h`` and ``c`` ``[time + 1, batch, units]`` begin with the initial states.
    """
    x, h, c, kernel, *mask = values
    skips = skipped(xp, len(x), *mask)
    h, c, gates = longer(xp, x, h), longer(xp, x, c), xp.empty(x.shape, x.dtype)
    fresh, units = xp.empty_like(h[0]), kernel.shape[0]
    scale = xp.full(4 * units, -1, x.dtype)
    scale[2 * units : 3 * units] = -2
    for t in time_steps(x):
        g, now, after, skip = gates[t], c[t + 1], h[t + 1], skips[t]
        xp.matmul(h[t], kernel, out=g)
        g += x[t]
        if skip is not None:
            xp.copyto(g, 0, where=skip)
        g *= scale  # tanh(x) is 2 * sigmoid(2 * x) - 1: one function for all gates
        xp.exp(g, out=g)
        g += 1
        xp.divide(1, g, out=g)
        i, f, n, o = _quarters(g)
        n *= 2
        n -= 1
        xp.multiply(f, c[t], out=now)
        now += xp.multiply(i, n, out=fresh)
        xp.tanh(now, out=after)
        after *= o
        if skip is not None:
            xp.copyto(now, c[t], where=skip)
            xp.copyto(after, h[t], where=skip)
    return h, c, gates


def _quarters(x):
    units = x.shape[-1] // 4
    return [x[..., i * units : (i + 1) * units] for i in range(4)]


@_lstm.infer
def _(x, h, c, kernel, *mask):
    check_cell("lstm", 4, x, c, kernel)
    states, gates = check_cell("lstm", 4, x, h, kernel)
    return states, states, gates


@_lstm.vjp("values")
def _(g, values, out):
    (h, c, gates), mask = out, values[4:]
    *of_states, of_gates = g
    if of_gates is not None:
        of_gates = only_counted(of_gates * _slope(gates), *(mask or (None,)))
    drives = [of_gates, *of_states]
    d_x, d_h, d_c = driven_by(drives, _lstm_vjp, gates, c, values[3], mask)
    return d_x, d_h[0], d_c[0], outer(h[:-1], d_x), *[None for _ in mask]


def _slope(gates):
    """The derivatives of the activations, by what they gave."""
    i, f, n, o = _quarters(gates)
    return concat([i * (1.0 - i), f * (1.0 - f), 1.0 - n * n, o * (1.0 - o)], 2)


# With total cotangents d_h, d_c of the states after a step, and r = tanh(c):
#     d_c += d_h * o * (1 - r^2)
#     d_x  = (d_c * n, d_c * c_before, d_c * i, d_h * r) * slope of the gates
# and before it d_h += d_x @ kernel^T, d_c += d_c * f. A step that does not count has no
# part in this: what comes goes on to the step before.


def _backwards(xp, gates, c, kernel, skips, drive, d_h, d_c):
    d_x, back = xp.empty(gates.shape, gates.dtype), xp.ascontiguousarray(kernel.T)
    is_n, slope = _is_n(xp, gates, kernel), xp.empty(gates.shape[1:], gates.dtype)
    r, part = xp.empty_like(c[0]), xp.empty_like(c[0])
    for t in reversed(time_steps(gates)):
        d, h_now, c_now, skip = d_x[t], d_h[t + 1], d_c[t + 1], skips[t]
        i, f, n, o = _quarters(gates[t])
        of_i, of_f, of_n, of_o = _quarters(d)
        xp.tanh(c[t + 1], out=r)
        h_in = h_now if skip is None else xp.where(skip, 0, h_now)
        xp.multiply(h_in, r, out=of_o)
        xp.multiply(of_o, r, out=part)
        xp.subtract(h_in, part, out=part)
        c_now += xp.multiply(part, o, out=part)
        c_in = c_now if skip is None else xp.where(skip, 0, c_now)
        xp.multiply(c_in, n, out=of_i)
        xp.multiply(c_in, c[t], out=of_f)
        xp.multiply(c_in, i, out=of_n)
        d *= _slope_of_all(xp, gates[t], is_n, slope)
        if drive is not None:
            d += drive[t]
        d_h[t] += xp.matmul(d, back, out=part)
        d_c[t] += xp.multiply(c_in, f, out=part)
        if skip is not None:
            d_h[t] += h_now - h_in
            d_c[t] += c_now - c_in
    return d_x


def _is_n(xp, gates, kernel):
    marks = xp.zeros(gates.shape[-1], gates.dtype)
    marks[2 * len(kernel) : 3 * len(kernel)] = 1
    return marks


def _slope_of_all(xp, gates, is_n, out=None):
    """``g * (1 - g)``, and ``(1 + n) * (1 - n)``."""
    out = xp.add(gates, is_n, out=out)
    out *= 1 - gates
    return out


def _forwards(xp, gates, c, kernel, skips, drive, e_h, e_c):
    e_x = xp.zeros(gates.shape, gates.dtype) if drive is None else xp.array(drive)
    is_n = _is_n(xp, gates, kernel)
    for t in time_steps(gates):
        r, slope = xp.tanh(c[t + 1]), _slope_of_all(xp, gates[t], is_n)
        skip = skips[t]
        i, f, n, o = _quarters(gates[t])
        e_x[t] += e_h[t] @ kernel
        of_i, of_f, of_n, of_o = _quarters(e_x[t] * slope)
        more = of_i * n + of_f * c[t] + of_n * i + e_c[t] * f
        if skip is not None:
            more = xp.where(skip, e_c[t], more)
        e_c[t + 1] += more
        more = of_o * r + e_c[t + 1] * (o * (1 - r * r))
        if skip is not None:
            more = xp.where(skip, e_h[t], more)
        e_h[t + 1] += more
    return e_x


def _by_coefficients(gates, c, kernel, mask, back, forth):
    (d_x, d_h, d_c), (e_x, e_h, e_c) = back, forth
    d_h, d_c = only_counted(d_h[1:], mask), only_counted(d_c[1:], mask)
    before, r = c[:-1], tanh(c[1:])
    i, f, n, o = _quarters(gates)
    of_i, of_f, of_n, of_o = _quarters(e_x)
    of_i, of_f, of_n, of_o = of_i * d_c, of_f * d_c, of_n * d_c, of_o * d_h
    of_h = e_c[1:] * d_h  # of o * (1 - r^2)
    by_gates = [
        of_i * n * (1.0 - 2.0 * i) + of_n * (1.0 - n * n),
        of_f * before * (1.0 - 2.0 * f) + e_c[:-1] * d_c,
        of_i * i * (1.0 - i) - 2.0 * (of_n * i * n),
        of_o * r * (1.0 - 2.0 * o) + of_h * (1.0 - r * r),
    ]
    by_r = of_o * o * (1.0 - o) - 2.0 * (of_h * o * r)
    by_c = pad(of_f * f * (1.0 - f), [(0, 1), (0, 0), (0, 0)])
    by_c = by_c + pad(by_r * (1.0 - r * r), [(1, 0), (0, 0), (0, 0)])
    return concat(by_gates, 2), by_c, outer(e_h[:-1], d_x)


_lstm_vjp, _lstm_jvp = linear_pair("lstm", _backwards, _forwards, _by_coefficients, 2)


def lstm(
    inputs: TensorLike,
    h: TensorLike,
    c: TensorLike,
    kernel: TensorLike,
    recurrent_kernel: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    zero_output_for_mask: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """A long short-term memory over sequences: ``(outputs, last h, last c)``.

        i, f, n, o = the quarters of inputs @ kernel + h @ recurrent_kernel + bias
        c <- sigmoid(f) * c + sigmoid(i) * tanh(n)        h <- sigmoid(o) * tanh(c)

    Shapes: ``inputs [batch, time, features]``, the states ``h`` and ``c [batch, units]``,
    kernels ``[features or units, 4 * units]``, ``bias [4 * units]``, the boolean ``mask
    [batch, time]``: a step where it is False leaves the states as they are, and repeats
    the output before it (or gives 0, with ``zero_output_for_mask``); outputs ``[batch,
    time, units]``.

    Derivatives are exact at every order. Reference: Hochreiter & Schmidhuber, "Long
    short-term memory" (1997), with the forget gate of Gers et al. (2000).
    """
    x = projected(inputs, kernel, bias)
    masks = time_first(mask)
    h, c, recurrent_kernel = with_dtype_of(
        "lstm", x, h=h, c=c, recurrent_kernel=recurrent_kernel
    )
    h, c, _ = _lstm([x, h, c, recurrent_kernel, *masks])
    return sequences(h, *(masks or (None,)), zero_output_for_mask), h[-1], c[-1]
