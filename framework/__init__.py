"""tapewright: a tape, its ops, and the training machinery of Keras, over NumPy and CuPy.

Code for TensorFlow's guides runs with the import changed: ``import tapewright as tf``.
"""

import sys
import warnings
from typing import TYPE_CHECKING

from .core import config as config

config.apply_defaults()  # before any array of a size worth speaking of is made

# Infinities and NaN are values here, as in TensorFlow: NumPy's remarks on them, where
# they come from our own calls, are left out.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapewright\b")

from tapewright import (
    datasets as datasets,
    layers as layers,
    optimizers as optimizers,
)
from tapewright.layers import Input as Input, initializers as initializers

from tapewright import (
    autodiff as autodiff,
    data as data,
    debugging as debugging,
    keras as keras,
)
from .api import (
    bitwise as bitwise,
    linalg as linalg,
    math as math,
    nn as nn,
    signal as signal,
)
from .autodiff.custom_gradient import *
from .autodiff.gradient_tape import *
from .autodiff.vectorized_map import *
from .compiler.control_flow.cond import (
    case as case,
    cond as cond,
    switch_case as switch_case,
)
from .compiler.control_flow.host_calls import (
    numpy_function as numpy_function,
    py_function as py_function,
)
from .compiler.control_flow.map_fn import (
    foldl as foldl,
    foldr as foldr,
    map_fn as map_fn,
    scan as scan,
)
from .compiler.control_flow.printing import Assert as Assert, print as print
from .compiler.control_flow.tensor_array import TensorArray as TensorArray
from .compiler.control_flow.while_loop import while_loop as while_loop
from .compiler.function.function import function as function
from .compiler.function.scopes import *
from .core import dtypes as dtypes, errors as errors, nest as nest
from .core.devices import device as device
from .core.dtypes import *
from .core.lazy_import import alias_modules, import_lazily
from .core.module import Module as Module
from .core.tensor import *
from .core.variable import Variable as Variable
from .ops.array.conversion import *
from .ops.array.creation import *
from .ops.array.gather import *
from .ops.array.indexing import *
from .ops.array.joining import *
from .ops.array.scatter import *
from .ops.array.shape import *
from .ops.array.sorting import *
from .ops.linalg.contraction import einsum as einsum, tensordot as tensordot
from .ops.linalg.matmul import matmul as matmul
from .ops.linalg.matrix_functions import norm as norm
from .ops.math.comparison import *
from .ops.math.counting import (
    histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins,
)
from .ops.math.elementwise import *
from .ops.math.gamma import *
from .ops.math.reduction import *
from .ops.math.scan import *
from .ops.math.special import *
from .ops.math.trigonometry import *
from .ops.math.xlogy import *
from .ops.nn.activation import (
    sigmoid as sigmoid,
    softmax as softmax,
    tanh as tanh,
)
from .keras.models import Model as Model, Sequential as Sequential

if TYPE_CHECKING:  # what is loaded when it is first asked for
    from .api import saved_model as saved_model, train as train
    from tapewright import plot as plot, profiler as profiler
    from .autodiff import testing as testing
    from .ops.image import processing
    from .ops.random import sampling
    from .keras import callbacks as callbacks, losses as losses, metrics as metrics

    image = processing
    random = sampling
    test = testing

import_lazily(
    sys.modules[__name__],
    callbacks="tapewright.keras.callbacks",
    image="tapewright.ops.image.processing",
    initializers="tapewright.layers.initializers",
    losses="tapewright.keras.losses",
    metrics="tapewright.keras.metrics",
    plot="tapewright.plot",
    profiler="tapewright.profiler",
    random="tapewright.ops.random.sampling",
    saved_model="tapewright.api.saved_model",
    test="tapewright.autodiff.testing",
    testing="tapewright.autodiff.testing",
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

import_lazily(
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
