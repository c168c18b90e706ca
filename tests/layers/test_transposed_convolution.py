"""Transposed convolutions: what the numbers of Keras do not show."""

import numpy as np

from tapewright.layers import (
    Conv2D,
    Conv2DTranspose,
    Conv3DTranspose,
)


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


def test_a_3d_transpose_takes_data_format_before_output_padding():
    layer = Conv3DTranspose(1, 2, 2, "same", "channels_first", 1)
    assert layer.data_format == "channels_first" and layer.output_padding == (1, 1, 1)


def test_upsampling_by_a_transpose_then_sampling_is_the_adjoint():
    # <conv(x), y> = <x, conv_transpose(y)>
    down = Conv2D(3, 3, 2, "same", use_bias=False)
    up = Conv2DTranspose(2, 3, 2, "same", use_bias=False)
    x, y = numbers(2, 6, 8, 2), numbers(2, 3, 4, 3)
    down.build(x.shape)
    up.build(y.shape)
    up.kernel.assign(down.kernel)
    left = np.vdot(down(x).numpy(), y)
    np.testing.assert_allclose(left, np.vdot(x, up(y).numpy()), rtol=1e-4)
