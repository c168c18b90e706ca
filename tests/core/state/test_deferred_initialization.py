"""Variables whose values follow from elsewhere are blank until then."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.deferred_initialization import deferred_initialization


def accept(weight, shape):
    pass


def test_weights_are_blank_until_values_follow_and_draw_nothing():
    state = tw.random.get_global_generator().state.numpy().tolist()
    layer = tw.layers.Dense(2)
    with deferred_initialization(accept) as deferred:
        layer.build((None, 3))
        assert not layer.kernel.numpy().any()
        layer.kernel.assign(np.ones((3, 2), np.float32))
        deferred.initialize()
    assert layer.kernel.numpy().tolist() == [[1, 1]] * 3
    assert tw.random.get_global_generator().state.numpy().tolist() == state


def test_weights_without_a_value_are_initialized():
    with deferred_initialization(accept) as deferred:
        layer = tw.layers.Dense(2, bias_initializer="ones")
        layer.build((None, 3))
        deferred.initialize()
    assert layer.kernel.numpy().any() and layer.bias.numpy().tolist() == [1, 1]


def test_a_weight_may_be_refused_before_it_takes_memory():
    def refuse(weight, shape):
        raise MemoryError(f"{weight}, {shape}")

    layer = tw.layers.Dense(1 << 30, name="huge")
    with pytest.raises(MemoryError, match="'kernel'.*layer 'huge'.*1048576"):
        with deferred_initialization(refuse):
            layer.build((None, 1 << 20))
