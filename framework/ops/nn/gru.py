"""The gated recurrent unit: all steps of a sequence in one primitive.

    z, r = sigmoid(x_z + h @ kernel_z + bias_z), and so on      k = h @ kernel_n + bias_n
    n = tanh(x_n + r * k)                                       h <- z * h + (1 - z) * n

In this form the reset gate acts on the product ("reset after"). For derivatives see
`recurrence`.
"""

from __future__ import annotations

import numpy as np

from tapewright.core.primitive import primitive
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.creation import ones_like, zeros
from ..array.joining import concat, pad
from ..math.reduction import reduce_sum
from .gates import (
    are_near,
    keep_sigmoids,
    kept_tanhs,
    sigmoid_parts,
    sigmoids,
    tanh_parts,
    tanhs,
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

# The inputs are in the order n, z, r, and the gates n, z, r, k: so that what goes back to
# the inputs, and what goes back through the kernel, stand side by side.


@primitive(name="gru_steps", multiple=True, same_dtype=(), ignores_float_errors=True)
def _gru(xp, *values: TensorLike):
    """Return ``(h, gates)`` of inputs ``x, h, kernel, bias[, mask]``, time first.

    ``h [time + 1, batch, units]`` begins with the initial state.
    """
    x, h, kernel, bias, *mask = values
    skips, units = skipped(xp, len(x), *mask), len(kernel)
    h = longer(xp, x, h)
    gates = xp.empty((*x.shape[:2], 4 * units), x.dtype)
    product = xp.empty((x.shape[1], 3 * units), x.dtype)
    decay = xp.empty((x.shape[1], 2 * units), x.dtype)
    fresh, inner = xp.empty_like(h[0]), xp.empty_like(h[0])
    for t in time_steps(x):
        g, after, skip = gates[t], h[t + 1], skips[t]
        n, z, r, k = _parts(g)
        both = g[:, units : 3 * units]
        xp.matmul(h[t], kernel, out=product)
        xp.add(product, bias, out=g[:, units:])
        both += x[t, :, units:]
        if skip is not None:
            xp.copyto(g, 0, where=skip)
        xp.negative(both, out=decay)
        xp.exp(decay, out=decay)
        xp.add(decay, 1, out=both)
        xp.divide(1, both, out=both)
        xp.multiply(r, k, out=inner)
        inner += x[t, :, :units]
        if skip is not None:
            xp.copyto(inner, 0, where=skip)
        xp.tanh(inner, out=fresh)
        far = keep_sigmoids(xp, both, decay)
        s, rest = sigmoid_parts(xp, z, far)
        xp.multiply(s, h[t], out=after)
        after += xp.multiply(rest, fresh, out=rest)
        if skip is not None:
            xp.copyto(after, h[t], where=skip)
        n[:, :] = kept_tanhs(xp, fresh, inner)
    return h, gates


def _parts(x):
    units = x.shape[-1] // 4
    return [x[..., i * units : (i + 1) * units] for i in range(4)]


@_gru.infer
def _(x, h, kernel, bias, *mask):
    states, gates = check_cell("gru", 3, x, h, kernel)
    width = None if states.shape[-1] is None else 4 * states.shape[-1]
    return states, TensorSpec([*gates.shape[:2], width], x.dtype)


@_gru.vjp("values")
def _(g, values, out):
    (h, gates), (of_h, of_gates), mask = out, g, values[4:]
    if of_gates is not None:
        n, z, r, k = _parts(gates)
        of_z, of_r = [s * rest for s, rest in map(sigmoids, (z, r))]
        slope = concat([tanhs(n)[3], of_z, of_r, ones_like(k)], 2)
        of_gates = only_counted(of_gates * slope, *(mask or (None,)))
    d_gates, d_h = driven_by([of_gates, of_h], _gru_vjp, gates, h, values[2], mask)
    units = h.shape[-1]
    d_x, d_product = d_gates[..., : 3 * units], d_gates[..., units:]
    by_kernel, by_bias = outer(h[:-1], d_product), reduce_sum(d_product, (0, 1))
    return d_x, d_h[0], by_kernel, by_bias, *[None for _ in mask]


# With the total cotangent d_h of the state after a step:
#     d_n = d_h * (1 - z) * (1 - n^2)       d_z = d_h * (h - n) * z * (1 - z)
#     d_r = d_n * k * r * (1 - r)           d_k = d_n * r
# and before it d_h += d_h * z + (d_z, d_r, d_k) @ kernel^T. A step that does not count
# has no part in this.


def _backwards(xp, gates, h, kernel, skips, drive, d_h):
    d_gates, back = xp.empty(gates.shape, gates.dtype), xp.ascontiguousarray(kernel.T)
    units, part, far = len(kernel), xp.empty_like(h[0]), _far(xp, gates)
    for t in reversed(time_steps(gates)):
        d, h_now, skip = d_gates[t], d_h[t + 1], skips[t]
        n, n_slope, z, not_z, r, not_r, k = _opened(xp, gates[t], far)
        of_n, of_z, of_r, of_k = _parts(d)
        h_in = h_now if skip is None else xp.where(skip, 0, h_now)
        through = h_in * z
        xp.subtract(h[t], n, out=of_z)
        of_z *= through
        of_z *= not_z
        xp.multiply(h_in, not_z, out=part)
        xp.multiply(n_slope, part, out=of_n)
        if drive is not None:
            of_n += drive[t, :, :units]
        xp.multiply(of_n, r, out=of_k)
        xp.multiply(of_k, not_r, out=of_r)
        of_r *= k
        if drive is not None:
            d[:, units:] += drive[t, :, units:]
        d_h[t] += through
        d_h[t] += xp.matmul(d[:, units:], back, out=part)
        if skip is not None:
            d_h[t] += h_now - h_in
    return d_gates


def _far(xp, gates):
    if xp is not np:
        return True
    units = gates.shape[-1] // 4
    n, both = gates[..., :units], gates[..., units : 3 * units]
    return not are_near(sigmoids=[both], tanhs=[n])


def _opened(xp, gates, far):
    """Return ``n, 1 - n^2, z, 1 - z, r, 1 - r, k`` of the gates of a step."""
    n, z, r, k = _parts(gates)
    sigmoids = *sigmoid_parts(xp, z, far), *sigmoid_parts(xp, r, far)
    return *tanh_parts(xp, n, far), *sigmoids, k


def _forwards(xp, gates, h, kernel, skips, drive, e_h):
    e = xp.zeros(gates.shape, gates.dtype) if drive is None else xp.array(drive)
    units, far = len(kernel), _far(xp, gates)
    for t in time_steps(gates):
        n, n_slope, z, not_z, r, not_r, k = _opened(xp, gates[t], far)
        e[t, :, units:] += e_h[t] @ kernel
        of_n, of_z, of_r, of_k = _parts(e[t])
        of_n += of_r * (k * r * not_r) + of_k * r
        more = of_n * (not_z * n_slope) + e_h[t] * z
        more += of_z * ((h[t] - n) * z * not_z)
        e_h[t + 1] += more if skips[t] is None else xp.where(skips[t], e_h[t], more)
    return e


def _by_coefficients(gates, h, kernel, mask, back, forth):
    (d, d_h), (e, e_h) = back, forth
    n, z, r, k = _parts(gates)
    (z, not_z), (r, not_r), (n, flat, of_kept, _) = sigmoids(z), sigmoids(r), tanhs(n)
    before, d_now = h[:-1], only_counted(d_h[1:], mask)
    d_n, e_n, e_z, e_r, e_k = d[..., : n.shape[-1]], *_parts(e)
    of_n, of_z, of_r = e_n * d_now, e_z * d_now, e_r * d_n
    slope = z * not_z
    by_gates = [
        (-2.0 * (of_n * n * not_z) - of_z * slope) * of_kept,
        of_z * (before - n) * (not_z - z) - of_n * flat + e_h[:-1] * d_now,
        of_r * k * (not_r - r) + e_k * d_n,
        of_r * r * not_r,
    ]
    by_h = pad(of_z * slope, [(0, 1), (0, 0), (0, 0)])
    return concat(by_gates, 2), by_h, outer(e_h[:-1], d[..., n.shape[-1] :])


_gru_vjp, _gru_jvp = linear_pair("gru", _backwards, _forwards, _by_coefficients, 1)


def gru(
    inputs: TensorLike,
    h: TensorLike,
    kernel: TensorLike,
    recurrent_kernel: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    zero_output_for_mask: bool = False,
) -> tuple[Tensor, Tensor]:
    """Gated recurrent unit (GRU) over sequences: ``(outputs, last h)``.

        x = inputs @ kernel + bias[0]       y = h @ recurrent_kernel + bias[1]
        z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
        h <- z * h + (1 - z) * tanh(x_n + r * y_n)

    Derivatives are exact at every order.

    Shapes:
        ``inputs [batch, time, features]``, the state ``h [batch, units]``, kernels
        ``[features or units, 3 * units]`` in the order z, r, n,
        ``bias [2, 3 * units]``; ``mask`` and the outputs as in `lstm`.

    References:
        Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014),
        in the form of cuDNN.
    """
    kernel = convert_to_tensor(kernel)
    recurrent_kernel = convert_to_tensor(recurrent_kernel)
    units = recurrent_kernel.array.shape[0]
    of_x, of_h = (
        (None, zeros(3 * units, kernel.dtype)) if bias is None else (bias[0], bias[1])
    )
    if of_x is not None:
        of_x = _turned(of_x, units)
    x = projected(inputs, _turned(kernel, units), of_x)
    masks = time_first(mask)
    h, recurrent_kernel = with_dtype_of(
        "gru", x, h=h, recurrent_kernel=recurrent_kernel
    )
    h, _ = _gru([x, h, recurrent_kernel, of_h, *masks])
    return sequences(h, *(masks or (None,)), zero_output_for_mask), h[-1]


def _turned(x, units):
    """Reorder from Keras' order z, r, n to n, z, r."""
    return concat([x[..., 2 * units :], x[..., : 2 * units]], len(x.shape) - 1)
