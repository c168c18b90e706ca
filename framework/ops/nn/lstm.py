"""The long short-term memory: all steps of a sequence in one primitive.

    i, f, n, o = sigmoid, sigmoid, tanh, sigmoid of the quarters of  x + h @ kernel
    c <- f * c + i * n        h <- o * tanh(c)

It is a primitive for speed: as separate ops this would be about fifteen calls per step,
each with new arrays. For derivatives see `recurrence`.
"""

from __future__ import annotations

import numpy as np

from tapewright.core.primitive import primitive
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from ..array.creation import ones_like
from ..array.joining import concat, pad
from ..math.trigonometry import tanh, tanh_slope
from .gates import (
    are_near,
    keep_sigmoids,
    kept_tanhs,
    sigmoid_parts,
    sigmoids,
    smallest,
    tanh_and_slope,
    tanh_parts,
    tanhs,
    true_entries,
)
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


@primitive(name="lstm_steps", multiple=True, same_dtype=(), ignores_float_errors=True)
def _lstm(xp, *values: TensorLike):
    """Return ``(h, c, gates)`` of inputs ``x, h, c, kernel[, mask]``, time first.

    ``h`` and ``c`` ``[time + 1, batch, units]`` begin with the initial states;
    ``gates`` are in the form that `gates` describes.
    """
    x, h, c, kernel, *mask = values
    skips = skipped(xp, len(x), *mask)
    h, c, gates = longer(xp, x, h), longer(xp, x, c), xp.empty(x.shape, x.dtype)
    parts = _sigmoids(xp, len(kernel))
    decays = [xp.empty((x.shape[1], p.stop - p.start), x.dtype) for p in parts]
    n, part = xp.empty_like(h[0]), xp.empty_like(h[0])
    for t in time_steps(x):
        g, now, after, skip = gates[t], c[t + 1], h[t + 1], skips[t]
        xp.matmul(h[t], kernel, out=g)
        g += x[t]
        if skip is not None:
            xp.copyto(g, 0, where=skip)
        i, f, kept, o = _quarters(g)
        xp.tanh(kept, out=n)
        kept_n = kept_tanhs(xp, n, kept)
        for columns, decay in zip(parts, decays):
            s = g[:, columns]
            xp.negative(s, out=decay)
            xp.exp(decay, out=decay)
            xp.add(decay, 1, out=s)
            xp.divide(1, s, out=s)
        xp.multiply(f, c[t], out=now)
        now += xp.multiply(i, n, out=part)
        xp.tanh(now, out=after)
        after *= o
        if skip is not None:
            xp.copyto(now, c[t], where=skip)
            xp.copyto(after, h[t], where=skip)
        for columns, decay in zip(parts, decays):
            keep_sigmoids(xp, g[:, columns], decay)
        kept[:, :] = kept_n
    return h, c, gates


def _sigmoids(xp, units):
    """Return the sigmoid columns; on NumPy one slice with the tanh column, for fewer calls."""
    if xp is np:
        return [slice(0, 4 * units)]
    return [slice(0, 2 * units), slice(3 * units, 4 * units)]


def _quarters(x):
    units = x.shape[-1] // 4
    a, b, c = units, 2 * units, 3 * units
    return x[..., :a], x[..., a:b], x[..., b:c], x[..., c:]


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
    """Return the derivatives of the stored gates by the arguments of their activations."""
    i, f, n, o = _quarters(gates)
    i, f, o = [s * rest for s, rest in map(sigmoids, (i, f, o))]
    return concat([i, f, tanhs(n)[3], o], 2)


# With total cotangents d_h, d_c of the states after a step, and r = tanh(c):
#     d_c += d_h * o * (1 - r^2)
#     d_x  = (d_c * n, d_c * c_before, d_c * i, d_h * r) * slope of the gates
# and before it d_h += d_x @ kernel^T, d_c += d_c * f. A step that does not count has no
# part in this: what comes goes on to the step before.


def _backwards(xp, gates, c, kernel, skips, drive, d_h, d_c):
    d_x, back = xp.empty(gates.shape, gates.dtype), xp.ascontiguousarray(kernel.T)
    far = xp is not np or not are_near(arguments=[c])
    part, scratch = xp.empty_like(c[0]), _scratch(xp, gates, kernel)
    for t in reversed(time_steps(gates)):
        d, h_now, c_now, skip = d_x[t], d_h[t + 1], d_c[t + 1], skips[t]
        (i, f, n, o), slopes = _opened(xp, gates[t], *scratch)
        r, r_slope = tanh_and_slope(xp, c[t + 1], far)
        of_i, of_f, of_n, of_o = _quarters(d)
        h_in = h_now if skip is None else xp.where(skip, 0, h_now)
        xp.multiply(h_in, r, out=of_o)
        xp.multiply(h_in, r_slope, out=part)
        c_now += xp.multiply(part, o, out=part)
        c_in = c_now if skip is None else xp.where(skip, 0, c_now)
        xp.multiply(c_in, n, out=of_i)
        xp.multiply(c_in, c[t], out=of_f)
        xp.multiply(c_in, i, out=of_n)
        for flow, slope in zip(_pieces(d, slopes), slopes):
            flow *= slope
        if drive is not None:
            d += drive[t]
        d_h[t] += xp.matmul(d, back, out=part)
        d_c[t] += xp.multiply(c_in, f, out=part)
        if skip is not None:
            d_h[t] += h_now - h_in
            d_c[t] += c_now - c_in
    return d_x


def _opened(xp, gates, is_n, slope, rest):
    """Return the gates of a step, and the derivatives of their activations: a list of four.

    On NumPy it is one array, ``slope``, in fewer calls.
    """
    i, f, n, o = _quarters(gates)
    if xp is np:
        xp.add(gates, is_n, out=slope)
        slope *= xp.subtract(1, gates, out=rest)  # g * (1 - g), and (1 + n) * (1 - n)
        if smallest(slope) >= 0:
            return (i, f, n, o), [slope]
        at = true_entries(slope < 0)  # gates in their other form
        values, y = gates.copy(), gates[at]
        (n, of_n), s, marked = tanh_and_slope(np, y), 1 + y, is_n[at[1]] > 0
        values[at], slope[at] = np.where(marked, n, s), np.where(marked, of_n, -y * s)
        return _quarters(values), [slope]
    pairs = [sigmoid_parts(xp, y, True) for y in (i, f, o)]
    i, f, o = [s for s, _ in pairs]
    of_i, of_f, of_o = [s * rest for s, rest in pairs]
    n, of_n = tanh_parts(xp, n, True)
    return (i, f, n, o), [of_i, of_f, of_n, of_o]


def _scratch(xp, gates, kernel):
    """Return a row with 1 at the columns of the tanh, and memory, for `_opened`."""
    marks = xp.zeros(gates.shape[-1], gates.dtype)
    marks[2 * len(kernel) : 3 * len(kernel)] = 1
    return marks, *[xp.empty(gates.shape[1:], gates.dtype) for _ in range(2)]


def _pieces(x, slopes):
    return [x] if len(slopes) == 1 else _quarters(x)


def _forwards(xp, gates, c, kernel, skips, drive, e_h, e_c):
    e_x = xp.zeros(gates.shape, gates.dtype) if drive is None else xp.array(drive)
    far = xp is not np or not are_near(arguments=[c])
    scratch = _scratch(xp, gates, kernel)
    for t in time_steps(gates):
        (i, f, n, o), slopes = _opened(xp, gates[t], *scratch)
        r, r_slope = tanh_and_slope(xp, c[t + 1], far)
        skip = skips[t]
        e_x[t] += e_h[t] @ kernel
        flows = [e * slope for e, slope in zip(_pieces(e_x[t], slopes), slopes)]
        of_i, of_f, of_n, of_o = flows if len(flows) == 4 else _quarters(flows[0])
        more = of_i * n + of_f * c[t] + of_n * i + e_c[t] * f
        if skip is not None:
            more = xp.where(skip, e_c[t], more)
        e_c[t + 1] += more
        more = of_o * r + e_c[t + 1] * (o * r_slope)
        if skip is not None:
            more = xp.where(skip, e_h[t], more)
        e_h[t + 1] += more
    return e_x


def _by_coefficients(gates, c, kernel, mask, back, forth):
    (d_x, d_h, d_c), (e_x, e_h, e_c) = back, forth
    d_h, d_c = only_counted(d_h[1:], mask), only_counted(d_c[1:], mask)
    before, r = c[:-1], tanh(c[1:])
    r_slope = tanh_slope(ones_like(r), c[1:])
    i, f, n, o = _quarters(gates)
    (i, not_i), (f, not_f), (o, not_o) = map(sigmoids, (i, f, o))
    n, n_slope, of_kept, _ = tanhs(n)
    of_i, of_f, of_n, of_o = _quarters(e_x)
    of_i, of_f, of_n, of_o = of_i * d_c, of_f * d_c, of_n * d_c, of_o * d_h
    of_h = e_c[1:] * d_h  # of o * (1 - r^2)
    by_gates = [
        of_i * n * (not_i - i) + of_n * n_slope,
        of_f * before * (not_f - f) + e_c[:-1] * d_c,
        (of_i * i * not_i - 2.0 * (of_n * i * n)) * of_kept,
        of_o * r * (not_o - o) + of_h * r_slope,
    ]
    by_r = of_o * o * not_o - 2.0 * (of_h * o * r)
    by_c = pad(of_f * f * not_f, [(0, 1), (0, 0), (0, 0)])
    by_c = by_c + pad(by_r * r_slope, [(1, 0), (0, 0), (0, 0)])
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
    """Long short-term memory (LSTM) over sequences: ``(outputs, last h, last c)``.

        i, f, n, o = the quarters of inputs @ kernel + h @ recurrent_kernel + bias
        c <- sigmoid(f) * c + sigmoid(i) * tanh(n)        h <- sigmoid(o) * tanh(c)

    A step at which the mask is False leaves the states as they are, and repeats the
    output before it (or returns 0, with ``zero_output_for_mask``). Derivatives are
    exact at every order.

    Shapes:
        ``inputs [batch, time, features]``, the states ``h`` and ``c [batch, units]``,
        kernels ``[features or units, 4 * units]``, ``bias [4 * units]``, the boolean
        ``mask [batch, time]``; outputs ``[batch, time, units]``.

    References:
        Hochreiter & Schmidhuber, "Long short-term memory" (1997), with the forget gate
        of Gers et al. (2000).
    """
    x = projected(inputs, kernel, bias)
    masks = time_first(mask)
    h, c, recurrent_kernel = with_dtype_of(
        "lstm", x, h=h, c=c, recurrent_kernel=recurrent_kernel
    )
    h, c, _ = _lstm([x, h, c, recurrent_kernel, *masks])
    return sequences(h, *(masks or (None,)), zero_output_for_mask), h[-1], c[-1]
