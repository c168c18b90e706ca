"""`keras.backend`: settings, the session, and functions that older programs call.

`arrays` and `networks` have the functions of `tf.keras.backend`, loaded at their first
use. New code uses `keras.ops` and `keras.config`.
"""

import sys

from tapewright.core.names.lazy_import import import_lazily
from tapewright.core.names.name_scopes import name_scope
from tapewright.core.tensor import is_tensor

from ... import session
from ...config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from ...session import *

__all__ = [
    "backend",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_tensor",
    "name_scope",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]
__all__ += session.__all__
_LATER = {
    "arrays": """
        abs all any arange argmax argmin batch_dot batch_flatten batch_get_value
        batch_set_value cast cast_to_floatx clip concatenate constant cos count_params
        cumprod cumsum dot dtype elu equal eval exp expand_dims eye flatten foldl foldr
        gather get_value greater greater_equal hard_sigmoid in_top_k int_shape is_sparse
        l2_normalize less less_equal log map_fn max maximum mean min minimum
        moving_average_update ndim not_equal one_hot ones ones_like permute_dimensions pow
        prod random_bernoulli random_normal random_normal_variable random_uniform
        random_uniform_variable relu repeat repeat_elements reshape reverse round set_value
        shape sigmoid sign sin softmax softplus softsign sqrt square squeeze stack std
        stop_gradient sum switch tanh tile to_dense transpose truncated_normal update
        update_add update_sub var variable zeros zeros_like
    """,
    "networks": """
        batch_normalization bias_add binary_crossentropy binary_focal_crossentropy
        categorical_crossentropy categorical_focal_crossentropy conv1d conv2d
        conv2d_transpose conv3d ctc_batch_cost ctc_decode depthwise_conv2d dropout pool2d
        pool3d resize_images resize_volumes rnn separable_conv2d
        sparse_categorical_crossentropy spatial_2d_padding spatial_3d_padding
        temporal_padding
    """,
}

import_lazily(
    sys.modules[__name__],
    **{
        name: f"{__name__}.{module}:{name}"
        for module, names in _LATER.items()
        for name in names.split()
    },
)
for _names in _LATER.values():
    __all__ += _names.split()
__all__.sort()
