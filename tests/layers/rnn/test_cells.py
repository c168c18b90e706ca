"""Cells: gates, dropout, traces."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers

from ..recorded_recurrent import record, some


def test_a_cell_is_traced_once_for_all_lengths():
    layer = layers.RNN(layers.LSTMCell(3), return_sequences=True)
    layer(some(2, 3, 2))
    record.fill(layer)
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, None, 2])])
    for count in (1, 2, 7, 30):
        x = some(2, count, 2)
        np.testing.assert_allclose(traced(x).numpy(), layer(x).numpy(), atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("implementation", [1, 2])
def test_one_mask_serves_all_steps(implementation):
    cell = layers.SimpleRNNCell(
        3,
        activation="linear",
        kernel_initializer="identity",
        recurrent_initializer="zeros",
        dropout=0.5,
        implementation=implementation,
    )
    layer = layers.RNN(cell, return_sequences=True)
    y = layer(tw.ones((4, 6, 3)), training=True).numpy()
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0.0, 2.0}
    traced = tw.function(layer)(tw.ones((4, 6, 3)), training=True).numpy()
    assert (traced == traced[:, :1]).all() and set(np.unique(traced)) == {0.0, 2.0}


def test_the_forget_gate_starts_open():
    layer = layers.LSTM(2)
    layer.build((None, None, 3))
    assert layer.cell.bias.numpy().tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    layer = layers.LSTM(2, unit_forget_bias=False)
    layer.build((None, None, 3))
    assert not layer.cell.bias.numpy().any()


@pytest.mark.parametrize("units", [0, -3, 2.5, None])
def test_units_must_be_positive(units):
    with pytest.raises(ValueError, match="units must be a positive integer"):
        layers.LSTM(units)
