"""tapewright: a tape, its ops, and the training machinery of Keras, over NumPy and CuPy.

Code for TensorFlow's guides runs with the import changed: ``import tapewright as tf``.
"""

import sys
import warnings

from .core import config

config.apply_defaults()  # before any array of a size worth speaking of is made

# Infinities and NaN are values here, as in TensorFlow: NumPy's remarks on them, where
# they come from our own calls, are left out.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapewright\b")

from tapewright import datasets, layers, optimizers  # noqa: E402
from tapewright.layers import Input, initializers  # noqa: E402

from . import autodiff, data, debugging, keras, plot, profiler  # noqa: E402
from .api import bitwise, linalg, math, nn, signal  # noqa: E402
from .autodiff.custom_gradient import *  # noqa: E402
from .autodiff.gradient_tape import *  # noqa: E402
from .autodiff.vectorized_map import *  # noqa: E402
from .compiler.control_flow.cond import case, cond, switch_case  # noqa: E402
from .compiler.control_flow.host_calls import numpy_function, py_function  # noqa: E402
from .compiler.control_flow.map_fn import foldl, foldr, map_fn, scan  # noqa: E402
from .compiler.control_flow.printing import Assert, print  # noqa: E402
from .compiler.control_flow.tensor_array import TensorArray  # noqa: E402
from .compiler.control_flow.while_loop import while_loop  # noqa: E402
from .compiler.function.function import function  # noqa: E402
from .compiler.function.scopes import *  # noqa: E402
from .core import dtypes, errors, nest  # noqa: E402
from .core.devices import device  # noqa: E402
from .core.dtypes import *  # noqa: E402
from .core.lazy_import import alias_modules, load_later  # noqa: E402
from .core.module import Module  # noqa: E402
from .core.tensor import *  # noqa: E402
from .core.variable import Variable  # noqa: E402
from .ops.array.conversion import *  # noqa: E402
from .ops.array.creation import *  # noqa: E402
from .ops.array.gather import *  # noqa: E402
from .ops.array.indexing import *  # noqa: E402
from .ops.array.joining import *  # noqa: E402
from .ops.array.scatter import *  # noqa: E402
from .ops.array.shape import *  # noqa: E402
from .ops.array.sorting import *  # noqa: E402
from .ops.linalg.contraction import einsum, tensordot  # noqa: E402
from .ops.linalg.matmul import matmul  # noqa: E402
from .ops.linalg.matrix_functions import norm  # noqa: E402
from .ops.math.comparison import *  # noqa: E402
from .ops.math.counting import (  # noqa: E402
    histogram_fixed_width,
    histogram_fixed_width_bins,
)
from .ops.math.elementwise import *  # noqa: E402
from .ops.math.reduction import *  # noqa: E402
from .ops.math.scan import *  # noqa: E402
from .ops.math.special import *  # noqa: E402
from .ops.math.trigonometry import *  # noqa: E402
from .ops.nn.activation import sigmoid, softmax, tanh  # noqa: E402
from .training.model import Model  # noqa: E402
from .training.sequential import Sequential  # noqa: E402

load_later(
    sys.modules[__name__],
    callbacks="tapewright.training.callbacks",
    image="tapewright.ops.image.processing",
    initializers="tapewright.layers.initializers",
    losses="tapewright.training.losses",
    metrics="tapewright.training.metrics",
    random="tapewright.ops.random.sampling",
    saved_model="tapewright.saving.saved_model",
    test="tapewright.autodiff.gradient_check",
    testing="tapewright.autodiff.gradient_check",
    train="tapewright.api.train",
)

alias_modules(  # `from tapewright.errors import ShapeError`
    __name__,
    bitwise="tapewright.api.bitwise",
    config="tapewright.core.config",
    dtypes="tapewright.core.dtypes",
    errors="tapewright.core.errors",
    linalg="tapewright.api.linalg",
    math="tapewright.api.math",
    nest="tapewright.core.nest",
    nn="tapewright.api.nn",
    signal="tapewright.api.signal",
)

load_later(
    dtypes,
    cast="tapewright.ops.array.conversion:cast",
    complex="tapewright.ops.array.conversion:complex",
    saturate_cast="tapewright.ops.array.conversion:saturate_cast",
)

newaxis = None

constant_initializer = initializers.Constant
ones_initializer = initializers.Ones
random_normal_initializer = initializers.RandomNormal
random_uniform_initializer = initializers.RandomUniform
zeros_initializer = initializers.Zeros

__version__ = "0.1.0"
