"""Layers: configuration and weights around the ops, under Keras' names."""

from . import activations, applications, constraints, initializers, regularizers
from .activation_layers import *
from .adaptive_pooling import *
from .attention import *
from .augmentation import *
from .convolution import *
from .core import *
from .embedding import *
from .finding import *
from .images import *
from .input_layer import *
from .lambdas import *
from .layer import *
from .merging import *
from .multi_head_attention import *
from .noise import *
from .normalization import *
from .pooling import *
from .preprocessing import *
from .recurrent import *
from .recurrent_cells import *
from .reshaping import *
from .rnn import *
from .saved_layer import *
from .separable_convolution import *
from .spectral import *
from .transposed_convolution import *
from .wrappers import *
