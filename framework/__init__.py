"""tapewright: a tape, its ops, and the training machinery of Keras, over NumPy and CuPy.

Code for TensorFlow's guides runs with the import changed: ``import tapewright as tf``.
"""

import sys
import warnings

from . import config

config.apply_defaults()  # before any array of a size worth speaking of is made

# Infinities and NaN are values here, as in TensorFlow: NumPy's remarks on them, where
# they come from our own calls, are left out.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapewright\b")

from tapewright import datasets, layers, optimizers  # noqa: E402
from tapewright.layers import Input, initializers  # noqa: E402

from . import (  # noqa: E402
    autodiff,
    bitwise,
    data,
    debugging,
    dtypes,
    errors,
    keras,
    linalg,
    math,
    nn,
    plot,
    profiler,
    registry,
    signal,
)
from .backend import device  # noqa: E402
from .custom import *  # noqa: E402
from .dtypes import *  # noqa: E402
from .graph.control.control_flow import *  # noqa: E402
from .graph.control.host_calls import *  # noqa: E402
from .graph.functions.function import function  # noqa: E402
from .graph.functions.scopes import *  # noqa: E402
from .later import load_later  # noqa: E402
from .module import Module  # noqa: E402
from .ops.activation import sigmoid, softmax, tanh  # noqa: E402
from .ops.comparison import *  # noqa: E402
from .ops.contraction import einsum, tensordot  # noqa: E402
from .ops.conversion import *  # noqa: E402
from .ops.counting import (  # noqa: E402
    histogram_fixed_width,
    histogram_fixed_width_bins,
)
from .ops.creation import *  # noqa: E402
from .ops.elementwise import *  # noqa: E402
from .ops.gather import *  # noqa: E402
from .ops.indexing import *  # noqa: E402
from .ops.joining import *  # noqa: E402
from .ops.linalg import matmul  # noqa: E402
from .ops.matrix_functions import norm  # noqa: E402
from .ops.reduction import *  # noqa: E402
from .ops.scan import *  # noqa: E402
from .ops.scatter import *  # noqa: E402
from .ops.shape import *  # noqa: E402
from .ops.sorting import *  # noqa: E402
from .ops.special import *  # noqa: E402
from .ops.trigonometry import *  # noqa: E402
from .tape import *  # noqa: E402
from .tensor import *  # noqa: E402
from .training.model import Model  # noqa: E402
from .training.sequential import Sequential  # noqa: E402
from .variable import Variable  # noqa: E402
from .vectorize import *  # noqa: E402

load_later(
    sys.modules[__name__],
    callbacks="tapewright.training.callbacks",
    image="tapewright.ops.image",
    initializers="tapewright.layers.initializers",
    losses="tapewright.training.losses",
    metrics="tapewright.training.metrics",
    random="tapewright.ops.random",
    saved_model="tapewright.saving.saved_model",
    test="tapewright.testing",
    testing="tapewright.testing",
    train="tapewright.train",
)

load_later(
    dtypes,
    cast="tapewright.ops.conversion:cast",
    complex="tapewright.ops.conversion:complex",
    saturate_cast="tapewright.ops.conversion:saturate_cast",
)

newaxis = None

constant_initializer = initializers.Constant
ones_initializer = initializers.Ones
random_normal_initializer = initializers.RandomNormal
random_uniform_initializer = initializers.RandomUniform
zeros_initializer = initializers.Zeros

__version__ = "0.1.0"
