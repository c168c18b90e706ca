"""LSTM, GRU and simple RNN over sequences with time first.

ONNX multiplies the inputs by the kernel itself. A step here takes the product: it is
undone where it is an `Affine`, else the kernel is an identity matrix.
"""

import numpy as np

from tapewright.core.shapes.symbolic_shape import definitely_equal

from ..operands import Operand, Plan, Untranslatable


class Affine(Plan):
    """``inputs @ kernel + bias``, which is not written if a recurrent op takes it over."""

    def __init__(self, inputs, kernel, bias):
        self.inputs, self.kernel, self.bias = inputs, kernel, bias

    def write(self, block):
        inputs, kernel, bias = self.inputs, self.kernel, self.bias
        if inputs.rank == 2 and kernel.rank == 2 and bias.rank == 1:
            return block.emit("Gemm", inputs, kernel, bias)
        return block.emit("Add", block.emit("MatMul", inputs, kernel), bias)


class Reshaped(Plan):
    """A reshaped operand."""

    def __init__(self, source, target, **attributes):
        self.source, self.target, self.attributes = source, target, attributes

    def write(self, block):
        return block.emit("Reshape", self.source, self.target, **self.attributes)


def _inputs_of(x):
    """Return ``(inputs, kernel, bias)`` of the product ``x [time, batch, gates]``."""
    product = x.plan.source if type(x.plan) is Reshaped else x
    if type(product.plan) is Affine:
        affine = product.plan
        inputs = affine.inputs
        if type(inputs.plan) is Reshaped:
            inputs = inputs.plan.source
        constant = affine.kernel.value is not None and affine.bias.value is not None
        if (
            constant
            and inputs.rank == 3
            and definitely_equal(inputs.shape[:2], x.shape[:2])
        ):
            return inputs, affine.kernel.value, affine.bias.value
    size = x.shape[-1]
    return x, np.eye(size, dtype=x.dtype), np.zeros(size, x.dtype)


def _ordered(array, order):
    """Reorder the gates along the last axis."""
    parts = np.split(array, len(order), axis=-1)
    return np.concatenate([parts[i] for i in order], axis=-1)


def _is_layer(*constants, mask):
    """Return True if an ONNX layer can compute the steps."""
    return not mask and all([x.value is not None for x in constants])


def _states(w, op, x, states, order, kernel, bias, **attributes):
    """Return the names of an ONNX layer's outputs, and the states of all steps."""
    inputs, own, own_bias = _inputs_of(x)
    gates, recurrent = order
    units = kernel.shape[0]
    weights = _ordered(own, gates).T[None]
    back = _ordered(kernel, recurrent).T[None]
    biases = np.concatenate([_ordered(own_bias, gates), _ordered(bias, recurrent)])
    first = [w.emit("Unsqueeze", s, w.axes(0)) for s in states]
    outputs = w.emit(
        op,
        inputs,
        np.ascontiguousarray(weights),
        np.ascontiguousarray(back),
        biases[None],
        None,
        *first,
        outputs=len(states) + 1,
        hidden_size=units,
        **attributes,
    )
    steps = w.emit("Squeeze", outputs[0], w.axes(1))
    return outputs, w.emit("Concat", first[0], steps, axis=0)


class LastOnly(Plan):
    """States of all steps, of which ONNX returns the last only."""

    def __init__(self, last):
        self.last = last

    def write(self, block):
        raise Untranslatable("the gates, or cell states, of all steps of a layer")


def _last(w, name):
    return LastOnly(w.emit("Squeeze", name, w.axes(0)))


def _scanned(w, x, states, mask, step):
    """Return the states of all steps, by a Scan; masked steps keep the states.

    ``step(x, *states)`` returns the new states of a step as names.
    """
    names = [w.new_name("state") for _ in states]
    row, kept = w.new_name("row"), w.new_name("kept")
    inputs = [w.value_info(n, s.dtype, s.rank) for n, s in zip(names, states)]
    inputs.append(w.value_info(row, x.dtype, x.rank - 1))
    inputs += [w.value_info(kept, m.dtype, m.rank - 1) for m in mask]

    def write():
        now = [Operand(s.shape, s.dtype, w.block, n) for n, s in zip(names, states)]
        after = step(Operand(x.shape[1:], x.dtype, w.block, row), *now)
        if mask:
            keeps = w.emit("Unsqueeze", kept, w.axes(-1)) if mask[0].rank == 2 else kept
            after = [w.emit("Where", keeps, new, s) for new, s in zip(after, now)]
        after = [Operand(s.shape, s.dtype, w.block, n) for n, s in zip(after, now)]
        return [*after, *after]

    body, count = w.subgraph("step", write, inputs), len(states)
    scanned = [x, *mask]
    outputs = w.emit(
        "Scan",
        *states,
        *scanned,
        outputs=2 * count,
        body=body,
        num_scan_inputs=len(scanned),
    )
    first = [w.emit("Unsqueeze", s, w.axes(0)) for s in states]
    return [w.emit("Concat", f, s, axis=0) for f, s in zip(first, outputs[count:])]


def _parts(w, x, count, size):
    """Split the last axis into parts of one size."""
    return w.emit("Split", x, w.axes(*[size] * count), outputs=count, axis=-1)


def _lstm_by_steps(w, x, h, c, kernel, mask):
    units = kernel.shape[0]

    def step(row, h, c):
        gates = w.emit("Add", w.emit("MatMul", h, kernel), row)
        i, f, n, o = _parts(w, gates, 4, units)
        i, f, o = [w.emit("Sigmoid", gate) for gate in (i, f, o)]
        new = w.emit("Mul", i, w.emit("Tanh", n))
        c = w.emit("Add", w.emit("Mul", f, c), new)
        return [w.emit("Mul", o, w.emit("Tanh", c)), c]

    return [*_scanned(w, x, (h, c), mask, step), LastOnly(None)]


def _gru_by_steps(w, x, h, kernel, bias, mask):
    units = kernel.shape[0]

    def step(row, h):
        product = w.emit("Add", w.emit("MatMul", h, kernel), bias)
        z, r, k = _parts(w, product, 3, units)
        n, z_in, r_in = _parts(w, row, 3, units)
        z, r = [w.emit("Sigmoid", w.emit("Add", *p)) for p in ((z, z_in), (r, r_in))]
        n = w.emit("Tanh", w.emit("Add", n, w.emit("Mul", r, k)))
        # n + z * (h - n)
        return [w.emit("Add", n, w.emit("Mul", z, w.emit("Sub", h, n)))]

    return [*_scanned(w, x, (h,), mask, step), LastOnly(None)]


def _rnn_by_steps(w, x, h, kernel, mask, function):
    def step(row, h):
        total = w.emit("Add", w.emit("MatMul", h, kernel), row)
        return [w.emit(function, total)]

    return [*_scanned(w, x, (h,), mask, step), LastOnly(None)]


def lstm_steps(w, x, h, c, kernel, *mask):
    if not _is_layer(kernel, mask=mask):
        return _lstm_by_steps(w, x, h, c, kernel, mask)
    order = (0, 3, 1, 2)  # i o f c, of i f c o
    none = np.zeros(kernel.shape[1], x.dtype)
    outputs, steps = _states(w, "LSTM", x, (h, c), (order, order), kernel.value, none)
    return [steps, _last(w, outputs[2]), LastOnly(None)]


def gru_steps(w, x, h, kernel, bias, *mask):
    if not _is_layer(kernel, bias, mask=mask):
        return _gru_by_steps(w, x, h, kernel, bias, mask)
    orders = (1, 2, 0), (0, 1, 2)  # z r n, of n z r and of z r n
    _, steps = _states(
        w, "GRU", x, (h,), orders, kernel.value, bias.value, linear_before_reset=1
    )
    return [steps, LastOnly(None)]


def simple_rnn_steps(w, x, h, kernel, *mask, activation, slopes):
    if not _is_layer(kernel, mask=mask):
        function = {"tanh": "Tanh", "relu": "Relu", "linear": "Identity"}[activation]
        return _rnn_by_steps(w, x, h, kernel, mask, function)
    names = {"tanh": "Tanh", "relu": "Relu", "linear": "Affine"}
    none = np.zeros(kernel.shape[1], x.dtype)
    function = {"activations": [names[activation]]}
    if activation == "linear":
        function |= {"activation_alpha": [1.0], "activation_beta": [0.0]}
    _, steps = _states(w, "RNN", x, (h,), ((0,), (0,)), kernel.value, none, **function)
    return [steps, LastOnly(None)]


RECURRENT = {
    "lstm_steps": lstm_steps,
    "gru_steps": gru_steps,
    "simple_rnn_steps": simple_rnn_steps,
}
