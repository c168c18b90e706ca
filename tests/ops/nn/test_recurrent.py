"""Recurrent networks over sequences: the formulas, masks, derivatives, errors."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.nn.gru import gru
from tapewright.ops.nn.lstm import lstm
from tapewright.ops.nn.simple_rnn import simple_rnn
from tapewright.test import case, check_op, floats

MASK = np.array([[True, True, False], [False, True, True]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, h, c, kernel, r, b):
    i, f, n, o = np.split(x @ kernel + h @ r + b, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(n)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, h, kernel, r, b):
    x_z, x_r, x_n = np.split(x @ kernel + b[0], 3, -1)
    y_z, y_r, y_n = np.split(h @ r + b[1], 3, -1)
    z = sigmoid(x_z + y_z)
    return (z * h + (1 - z) * np.tanh(x_n + sigmoid(x_r + y_r) * y_n),)


def plain_step(activation):
    return lambda x, h, kernel, r, b: (activation(x @ kernel + h @ r + b),)


def formula(step, states, mask=None, zeros=False):
    """The network in NumPy: outputs, then the last states."""

    def run(x, *rest):
        now, weights = rest[:states], rest[states:]
        output, outputs = np.zeros_like(now[0]), []
        for t in range(x.shape[1]):
            counted = True if mask is None else mask[:, t, None]
            new = step(x[:, t], *now, *weights)
            output = np.where(counted, new[0], 0 * output if zeros else output)
            now = [np.where(counted, a, b) for a, b in zip(new, now)]
            outputs.append(output)
        return np.stack(outputs, 1), *now

    return run


def masked(op, **options):
    def run(*inputs):
        return op(*inputs, mask=MASK, **options)

    run.__name__ = f"masked_{op.__name__}"
    return run


def of(op, width, states, *, batch=2, time=3, features=2, units=2, bias=None):
    shape = (width * units,) if bias is None else (bias, width * units)
    return [floats(batch, time, features), *[floats(batch, units)] * states,
            floats(features, width * units), floats(units, width * units),
            floats(*shape)]  # fmt: skip


SMALL = {"features": 1, "units": 1}
STEPS = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "linear": lambda x: x}


def linear(name, width, kernel, states):
    """Cases of the linear maps behind a network's derivatives."""
    for given in ("0", "1", "".join(map(str, range(states + 1)))):
        driven = [floats(2, 1, width) if i == "0" else floats(3, 1, 1) for i in given]
        for kind in ("vjp", "jvp"):
            gates = floats(2, 1, width, low=0.05, high=0.95)
            yield case(f"{name}_{kind}", gates, floats(3, 1, 1),
                       floats(1, kernel), *driven, given=given, order=2,
                       label=f"given {given}")  # fmt: skip


CASES = [
    case("rest_of_sigmoid", floats(2, 3, low=0.1, high=0.9), floats(2, 3),
         expect=lambda s, x: 1 - s),
    case("lstm_steps", floats(2, 1, 4), floats(1, 1), floats(1, 1), floats(1, 4)),
    case("gru_steps", floats(2, 1, 3), floats(1, 1), floats(1, 3), floats(3)),
    *[case("simple_rnn_steps", floats(2, 1, 1), floats(1, 1), floats(1, 1), activation=a)
      for a in STEPS],
    case("simple_rnn_steps", floats(2, 1, 1), floats(1, 1), floats(1, 1), slopes=True,
         label="with slopes"),
    *linear("lstm", 4, 4, 2),
    *linear("gru", 4, 3, 1),
    *linear("simple_rnn", 1, 1, 1),
    case(lstm, *of(lstm, 4, 2), order=1, label="plain", expect=formula(lstm_step, 2)),
    case(gru, *of(gru, 3, 1, bias=2), order=1, label="plain",
         expect=formula(gru_step, 1)),
    *[case(simple_rnn, *of(simple_rnn, 1, 1), order=2, activation=name,
           expect=formula(plain_step(f), 1)) for name, f in STEPS.items()],
    case(masked(lstm), *of(lstm, 4, 2, **SMALL), label="third order",
         expect=formula(lstm_step, 2, MASK)),
    case(masked(gru), *of(gru, 3, 1, bias=2, **SMALL), label="third order",
         expect=formula(gru_step, 1, MASK)),
    case(masked(simple_rnn), *of(simple_rnn, 1, 1), label="third order",
         expect=formula(plain_step(np.tanh), 1, MASK)),
    case(masked(lstm, zero_output_for_mask=True), *of(lstm, 4, 2), order=1,
         label="zeros", expect=formula(lstm_step, 2, MASK, zeros=True)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


NETWORKS = [(lstm, 4, 2), (gru, 3, 1), (simple_rnn, 1, 1)]


def weights(width, features, units):
    rng = np.random.default_rng(0)
    shapes = (features, width * units), (units, width * units)
    return [tw.constant(rng.normal(size=s).astype("f")) for s in shapes]


@pytest.mark.parametrize("op, width, states", NETWORKS)
def test_large_inputs_do_not_overflow(op, width, states):
    x = tw.constant(np.array([[[1e4, -1e4]] * 3], np.float32))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = op(x, *[tw.zeros((1, 2))] * states, *weights(width, 2, 2))[0]
    assert np.isfinite(y.numpy()).all()
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


@pytest.mark.parametrize("op, width, states", NETWORKS)
def test_no_steps_leave_the_states_as_they_are(op, width, states):
    h = [tw.ones((2, 3))] * states
    with tw.GradientTape() as tape:
        tape.watch(h[0])
        y, *last = op(tw.zeros((2, 0, 2)), *h, *weights(width, 2, 3))
        total = tw.reduce_sum(last[0])
    assert y.shape == (2, 0, 3) and all((x.numpy() == 1).all() for x in last)
    assert (tape.gradient(total, h[0]).numpy() == 1).all()


@pytest.mark.parametrize("op, width, states", NETWORKS)
def test_an_empty_batch_gives_empty_outputs(op, width, states):
    y = op(tw.zeros((0, 3, 2)), *[tw.zeros((0, 3))] * states, *weights(width, 2, 3))[0]
    assert y.shape == (0, 3, 3)


@pytest.mark.parametrize("op, width, states", NETWORKS)
def test_a_step_that_never_counts_gives_zeros_and_leaves_the_states(op, width, states):
    h = [tw.ones((1, 2))] * states
    mask = tw.zeros((1, 3), tw.bool)
    y, *last = op(tw.ones((1, 3, 2)), *h, *weights(width, 2, 2), mask=mask)
    assert not y.numpy().any() and all((x.numpy() == 1).all() for x in last)


@pytest.mark.parametrize("op, width, states", NETWORKS)
def test_shapes_that_do_not_fit_are_explained(op, width, states):
    h = [tw.zeros((2, 4))] * states
    with pytest.raises(tw.errors.ShapeError, match="units=3"):
        op(tw.zeros((2, 5, 2)), *h, *weights(width, 2, 3))
    with pytest.raises(tw.errors.ShapeError, match=r"\[batch, time, features\]"):
        op(tw.zeros((2, 2)), *h, *weights(width, 2, 4))
    with pytest.raises(tw.errors.ShapeError, match=r"mask .*\[batch, time\]"):
        op(tw.zeros((2, 5, 2)), *h, *weights(width, 2, 4), mask=tw.ones((2,), tw.bool))


@pytest.mark.parametrize("op, width, states", NETWORKS)
def test_a_state_of_another_dtype_is_refused(op, width, states):
    h = [tw.zeros((2, 3), tw.float64)] * states
    with pytest.raises(tw.errors.DTypeError, match="the dtypes must be the same"):
        op(tw.zeros((2, 5, 2)), *h, *weights(width, 2, 3))


def test_an_activation_must_be_known():
    h = tw.zeros((1, 2))
    with pytest.raises(ValueError, match="activation .*'tanh'.*got 'gelu'"):
        simple_rnn(tw.zeros((1, 2, 2)), h, *weights(1, 2, 2), activation="gelu")
