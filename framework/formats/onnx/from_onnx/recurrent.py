"""Recurrent networks in one or two directions.

ONNX orders the gates of an LSTM i, o, f, c and those of a GRU z, r, h; tapewright's order
is i, f, c, o and z, r, h. Sequences are ``[time, batch, features]``, or with the batch
first for ``layout=1``.
"""

from __future__ import annotations

from tapewright.compiler.control_flow.map_fn import scan
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.gather import reverse_sequence
from tapewright.ops.array.joining import concat, reverse, stack
from tapewright.ops.array.shape import transpose
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.comparison import where
from tapewright.ops.math.elementwise import add
from tapewright.ops.math.trigonometry import tanh
from tapewright.ops.nn.activation import sigmoid
from tapewright.ops.nn.gru import gru
from tapewright.ops.nn.lstm import lstm
from tapewright.ops.nn.simple_rnn import simple_rnn

from .static import dims


def _directions(cell, states, x, w, r, b, lengths, initial, direction, layout, options):
    """Run ``cell`` in each direction; return its outputs and last states, with ONNX' axes.

    ``cell(x, mask, states, w, r, b, **options)`` returns outputs ``[batch, time, units]``
    and the last states, a list.
    """
    count, units = dims(w)[0], dims(r)[2]
    x = x if layout else transpose(x, (1, 0, 2))
    batch, steps = dims(x)[:2]
    mask = None
    if lengths is not None:
        mask = arange(steps, dtype="int64")[None, :] < cast(lengths, "int64")[:, None]
    initial = [
        s if s is None or not layout else transpose(s, (1, 0, 2)) for s in initial
    ]
    outputs, last = [], []
    for d in range(count):  # the second one runs backwards
        backwards = direction == "reverse" or d == 1
        own = [zeros((batch, units), x.dtype) if s is None else s[d] for s in initial]
        inputs = _turned(x, lengths) if backwards else x
        y, final = cell(inputs, mask, own, w[d], r[d], None if b is None else b[d],
                        **options(d))  # fmt: skip
        outputs.append(_turned(y, lengths) if backwards else y)
        last.append(final)
    finals = [stack([each[i] for each in last], 1 if layout else 0)
              for i in range(states)]  # fmt: skip
    y = stack(outputs, 2)  # [batch, time, directions, units]
    return (y if layout else transpose(y, (1, 2, 0, 3)), *finals)


def _turned(x, lengths):
    """Reverse sequences ``[batch, time, ...]``, each within its length."""
    return reverse(x, [1]) if lengths is None else reverse_sequence(x, lengths, 1, 0)


def _reordered(x, order):
    """Return rows of gates, of the first axis, as columns in another order."""
    units = dims(x)[0] // len(order)
    parts = [x[i * units : (i + 1) * units] for i in order]
    joined = concat(parts, 0)
    return transpose(joined, (1, 0)) if len(dims(x)) == 2 else joined


def _halves(b):
    half = dims(b)[0] // 2
    return b[:half], b[half:]


def _lstm_cell(x, mask, states, w, r, b):
    order = 0, 2, 3, 1
    bias = None if b is None else _reordered(add(*_halves(b)), order)
    y, h, c = lstm(
        x, *states, _reordered(w, order), _reordered(r, order), bias, mask, True
    )
    return y, [h, c]


def _lstm(
    x, w, r, b=None, lengths=None, h=None, c=None, activation_alpha=None,
    activation_beta=None, activations=None, clip=None, direction="forward",
    hidden_size=None, input_forget=0, layout=0,
):  # fmt: skip
    return _directions(_lstm_cell, 2, x, w, r, b, lengths, [h, c], direction, layout,
                       lambda d: {})  # fmt: skip


def _gru_cell(x, mask, states, w, r, b, resets_after):
    order = 0, 1, 2
    w, r = _reordered(w, order), _reordered(r, order)
    b = None if b is None else stack(_halves(b))
    if resets_after:
        y, h = gru(x, *states, w, r, b, mask, True)
        return y, [h]
    return _gru_that_resets_before(x, mask, states[0], w, r, b)


def _gru_that_resets_before(x, mask, h, w, r, b):
    """The reset gate acts on the state, before its product with the kernel."""
    units = dims(r)[0]
    x = matmul(transpose(x, (1, 0, 2)), w)
    offset = None
    if b is not None:
        x, offset = x + b[0], b[1]

    def step(h, elements):
        x, *counts = elements
        gates = matmul(h, r[:, : 2 * units]) + x[:, : 2 * units]
        gates = sigmoid(gates if offset is None else gates + offset[: 2 * units])
        z, reset = gates[:, :units], gates[:, units:]
        n = matmul(reset * h, r[:, 2 * units :]) + x[:, 2 * units :]
        n = tanh(n if offset is None else n + offset[2 * units :])
        new = z * h + (1.0 - z) * n
        return new if not counts else where(counts[0], new, h)

    masks = [] if mask is None else [transpose(mask, (1, 0))[:, :, None]]
    y = scan(step, (x, *masks), h)
    last = y[-1]
    y = y if mask is None else where(masks[0], y, y * 0.0)
    return transpose(y, (1, 0, 2)), [last]


def _gru(
    x, w, r, b=None, lengths=None, h=None, activation_alpha=None, activation_beta=None,
    activations=None, clip=None, direction="forward", hidden_size=None, layout=0,
    linear_before_reset=0,
):  # fmt: skip
    return _directions(_gru_cell, 1, x, w, r, b, lengths, [h], direction, layout,
                       lambda d: {"resets_after": linear_before_reset})  # fmt: skip


def _rnn_cell(x, mask, states, w, r, b, activation):
    bias = None if b is None else add(*_halves(b))
    w, r = _reordered(w, (0,)), _reordered(r, (0,))
    y, h = simple_rnn(x, *states, w, r, bias, activation, mask, True)
    return y, [h]


def _rnn(
    x, w, r, b=None, lengths=None, h=None, activation_alpha=None, activation_beta=None,
    activations=None, clip=None, direction="forward", hidden_size=None, layout=0,
):  # fmt: skip
    names = [name.lower() for name in activations or ["tanh"] * 2]
    return _directions(_rnn_cell, 1, x, w, r, b, lengths, [h], direction, layout,
                       lambda d: {"activation": names[d]})  # fmt: skip


def _limit(usual):
    """Return a description of unsupported clipping and activations."""

    def refusal(attributes, step):
        if attributes.get("clip"):
            return "the attribute clip"
        if attributes.get("input_forget"):
            return "input_forget=1"
        given = [name.lower() for name in attributes.get("activations", [])]
        groups = [
            given[i : i + len(usual[0])] for i in range(0, len(given), len(usual[0]))
        ]
        if any([group not in usual for group in groups]):
            return f"activations={attributes['activations']}"
        return "peepholes" if len(step.inputs) > 7 and step.inputs[7] else None

    return refusal


OPS = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
LIMITS = {
    "GRU": _limit([["sigmoid", "tanh"]]),
    "LSTM": _limit([["sigmoid", "tanh", "tanh"]]),
    "RNN": _limit([["tanh"], ["relu"]]),
}
