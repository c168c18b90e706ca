"""Layers: configuration and weights around the ops, with Keras' names."""

from . import (
    activation_layers,
    activations,
    applications,
    attention,
    augmentation,
    constraints,
    convolution,
    core,
    dtype_policies,
    embedding,
    initializers,
    lambda_layer,
    merging,
    noise,
    normalization,
    pooling,
    preprocessing,
    regularizers,
    reshaping,
    rnn,
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
from .convolution import *
from .core import *
from .embedding import *
from .lambda_layer import *
from .merging import *
from .noise import *
from .normalization import *
from .pooling import *
from .preprocessing import *
from .reshaping import *
from .rnn import *
from .wrappers import *

__all__ = ["deserialize", "serialize"]
__all__ += activation_layers.__all__
__all__ += attention.__all__
__all__ += augmentation.__all__
__all__ += input_layer.__all__
__all__ += layer.__all__
__all__ += saved_layer.__all__
__all__ += convolution.__all__
__all__ += core.__all__
__all__ += embedding.__all__
__all__ += lambda_layer.__all__
__all__ += merging.__all__
__all__ += noise.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += preprocessing.__all__
__all__ += reshaping.__all__
__all__ += rnn.__all__
__all__ += wrappers.__all__
__all__.sort()
