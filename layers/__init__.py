"""Layers: configuration and weights around the ops, with Keras' names."""

from . import (
    activation_layers,
    activations,
    applications,
    attention,
    augmentation,
    constraints,
    conv_lstm,
    convolution,
    core,
    dtype_policies,
    embedding,
    hashing,
    images,
    initializers,
    lambda_layer,
    lookup,
    merging,
    multi_head_attention,
    noise,
    normalization,
    pipeline,
    pooling,
    preprocessing,
    recurrent,
    recurrent_cells,
    regularizers,
    reshaping,
    rnn,
    spectrograms,
    text_vectorization,
    wrappers,
)
from .activation_layers import *
from .attention import *
from .augmentation import *
from .base import input_layer, layer, saved_layer
from .base.input_layer import *
from .base.layer import *
from .base.layer_serialization import deserialize, serialize
from .base.saved_layer import *
from .conv_lstm import *
from .convolution import *
from .core import *
from .embedding import *
from .hashing import *
from .images import *
from .lambda_layer import *
from .lookup import *
from .merging import *
from .multi_head_attention import *
from .noise import *
from .normalization import *
from .pipeline import *
from .pooling import *
from .preprocessing import *
from .recurrent import *
from .recurrent_cells import *
from .reshaping import *
from .rnn import *
from .spectrograms import *
from .text_vectorization import *
from .wrappers import *

__all__ = [
    "activations",
    "applications",
    "constraints",
    "dtype_policies",
    "initializers",
]
__all__ += ["regularizers", "deserialize", "serialize"]
__all__ += activation_layers.__all__
__all__ += attention.__all__
__all__ += augmentation.__all__
__all__ += input_layer.__all__
__all__ += layer.__all__
__all__ += saved_layer.__all__
__all__ += conv_lstm.__all__
__all__ += convolution.__all__
__all__ += core.__all__
__all__ += embedding.__all__
__all__ += hashing.__all__
__all__ += images.__all__
__all__ += lambda_layer.__all__
__all__ += lookup.__all__
__all__ += merging.__all__
__all__ += multi_head_attention.__all__
__all__ += noise.__all__
__all__ += normalization.__all__
__all__ += pipeline.__all__
__all__ += pooling.__all__
__all__ += preprocessing.__all__
__all__ += recurrent.__all__
__all__ += recurrent_cells.__all__
__all__ += reshaping.__all__
__all__ += rnn.__all__
__all__ += spectrograms.__all__
__all__ += text_vectorization.__all__
__all__ += wrappers.__all__
__all__.sort()
