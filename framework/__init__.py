"""tapewright: tape autodiff, NumPy-style ops and Keras-style training on NumPy and CuPy.

Names, arguments and defaults follow TensorFlow and Keras 3: code from TensorFlow's guides
runs with ``import tapewright as tf``.

Example:
    >>> import tapewright as tw
    >>> x = tw.Variable(3.0)
    >>> with tw.GradientTape() as tape:
    ...     y = x**2
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)

`tw.keras` has models, layers and ``fit``, `tw.data` input pipelines, `tw.function` traces
Python to compiled programs. In the repository, start with ``docs/getting_started.md``;
``docs/guide/training.md`` covers ``fit`` and custom loops, ``docs/guide/tapes.md``
gradients, ``docs/coming_from`` the differences from other libraries.
"""

import sys as _sys
import warnings as _warnings

from .core.names import lazy_import as _lazy_import
from .core.settings.config import apply_defaults as _apply_defaults
from .core.messages.tracebacks import (
    install_traceback_hooks as _install_traceback_hooks,
)

_apply_defaults()  # before any array of a size worth speaking of is made
_install_traceback_hooks()

# Infinities and NaN are values here, as in TensorFlow: NumPy's remarks on them, where
# they come from our own calls, are left out.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapewright\b")

from .api.version import VERSION as _VERSION
from .autodiff.gradient_tape import *
from .core import dtypes as _dtypes, hooks as _hooks
from .core.communication import job as _job  # chooses the GPU of each process
from .core.hardware.devices import device as device
from .core.dtypes import *
from .core.module import Module as Module
from .core.names.name_scopes import name_scope as name_scope
from .core.tensor import *
from .core.variable import (
    Variable as Variable,
    VariableAggregation as VariableAggregation,
    VariableSynchronization as VariableSynchronization,
)
from .ops.array.conversion import *
from .ops.array.creation import *
from .ops.array.gather import *
from .ops.array.indexing import *
from .ops.array.joining import *
from .ops.array.scatter import *
from .ops.array.shape import *
from .ops.array.sizes import get_static_value as get_static_value
from .ops.linalg.matmul import matmul as matmul
from .ops.math.comparison import *
from .ops.math.elementwise import *
from .ops.math.reduction import *
from .serialization.registry import register_later as _register_later

__version__ = _VERSION
newaxis = None
guarantee_const = identity
realdiv = truediv

# Type checkers take names imported as `x as x` for public.
with _lazy_import.lazy_imports(globals()):
    from . import (
        autodiff as autodiff,
        data as data,
        datasets as datasets,
        debugging as debugging,
        distribute as distribute,
        io as io,
        keras as keras,
        layers as layers,
        optimizers as optimizers,
        plot as plot,
        profiler as profiler,
        summary as summary,
    )
    from .api import (
        autograph as autograph,
        bitwise as bitwise,
        compat as compat,
        config as config,
        errors as errors,
        experimental as experimental,
        image as image,
        linalg as linalg,
        lookup as lookup,
        math as math,
        nest as nest,
        nn as nn,
        onnx as onnx,
        queue as queue,
        ragged as ragged,
        raw_ops as raw_ops,
        saved_model as saved_model,
        sets as sets,
        signal as signal,
        sparse as sparse,
        strings as strings,
        train as train,
        version as version,
    )
    from .autodiff import testing as testing
    from .autodiff.custom_gradient import (
        RegisterGradient as RegisterGradient,
        custom_gradient as custom_gradient,
        grad_pass_through as grad_pass_through,
        recompute_grad as recompute_grad,
    )
    from .autodiff.vectorized_map import vectorized_map as vectorized_map
    from .compiler.control_flow.cond import (
        case as case,
        cond as cond,
        switch_case as switch_case,
    )
    from .compiler.control_flow.host_calls import (
        numpy_function as numpy_function,
        py_function as py_function,
        timestamp as timestamp,
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
    from .compiler.function.scopes import (
        control_dependencies as control_dependencies,
        executing_eagerly as executing_eagerly,
        group as group,
        init_scope as init_scope,
        inside_function as inside_function,
        no_op as no_op,
        tuple as tuple,
    )
    from .compiler.tracing.graph_gradients import (
        gradients as gradients,
        hessians as hessians,
    )
    from .core import dtypes as dtypes
    from .core.messages.logger import get_logger as get_logger
    from .debugging import (
        assert_equal as assert_equal,
        assert_greater as assert_greater,
        assert_less as assert_less,
        assert_rank as assert_rank,
    )
    from .formats.libraries.export import export_library as export_library
    from .io import audio as audio
    from .io.tensor_messages import (
        make_ndarray as make_ndarray,
        make_tensor_proto as make_tensor_proto,
    )
    from .keras import callbacks as callbacks, losses as losses, metrics as metrics
    from .keras.models import Model as Model, Sequential as Sequential
    from .layers import Input as Input, initializers as initializers
    from .ops.array.sorting import (
        argsort as argsort,
        in_top_k as in_top_k,
        invert_permutation as invert_permutation,
        is_non_decreasing as is_non_decreasing,
        is_strictly_increasing as is_strictly_increasing,
        searchsorted as searchsorted,
        sort as sort,
        top_k as top_k,
        unique as unique,
        unique_with_counts as unique_with_counts,
    )
    from .ops.array.space_to_batch import (
        batch_to_space as batch_to_space,
        required_space_to_batch_paddings as required_space_to_batch_paddings,
        space_to_batch as space_to_batch,
        space_to_batch_nd as space_to_batch_nd,
    )
    from .ops.linalg.contraction import einsum as einsum, tensordot as tensordot
    from .ops.linalg.decompositions import eig as eig, eigvals as eigvals
    from .ops.linalg.matrix_functions import norm as norm
    from .ops.math.bessel import bessel_i0e as bessel_i0e, bessel_i1e as bessel_i1e
    from .ops.math.counting import (
        histogram_fixed_width as histogram_fixed_width,
        histogram_fixed_width_bins as histogram_fixed_width_bins,
    )
    from .ops.math.gamma import (
        digamma as digamma,
        igamma as igamma,
        igammac as igammac,
        lbeta as lbeta,
        lgamma as lgamma,
        polygamma as polygamma,
        zeta as zeta,
    )
    from .ops.math.scan import (
        cumprod as cumprod,
        cumsum as cumsum,
        cumulative_logsumexp as cumulative_logsumexp,
    )
    from .ops.math.special import (
        erf as erf,
        erfc as erfc,
        erfcinv as erfcinv,
        erfinv as erfinv,
        ndtri as ndtri,
    )
    from .ops.math.trigonometry import (
        acos as acos,
        acosh as acosh,
        angle as angle,
        asin as asin,
        asinh as asinh,
        atan as atan,
        atan2 as atan2,
        atanh as atanh,
        cos as cos,
        cosh as cosh,
        sin as sin,
        sinh as sinh,
        tan as tan,
        tanh as tanh,
    )
    from .ops.math.xlogy import xdivy as xdivy, xlog1py as xlog1py, xlogy as xlogy
    from .ops.nn.activation import sigmoid as sigmoid, softmax as softmax
    from .ops.ragged.ragged_tensor import (
        RaggedTensor as RaggedTensor,
        RaggedTensorSpec as RaggedTensorSpec,
    )
    from .ops.signal.fftnd import (
        fftnd as fftnd,
        ifftnd as ifftnd,
        irfftnd as irfftnd,
        rfftnd as rfftnd,
    )
    from .ops.sparse.edit_distance import edit_distance as edit_distance
    from .ops.sparse.sparse_tensor import (
        SparseTensor as SparseTensor,
        SparseTensorSpec as SparseTensorSpec,
    )
    from .ops.strings.numbers import as_string as as_string
    from .layers.initializers import (
        Constant as _Constant,
        Ones as _Ones,
        RandomNormal as _RandomNormal,
        RandomUniform as _RandomUniform,
        Zeros as _Zeros,
    )
    from .ops.linalg.matrix_roots import sqrtm as _sqrtm
    from .ops.random import sampling as _sampling

    constant_initializer = _Constant
    matrix_square_root = _sqrtm
    ones_initializer = _Ones
    random = _sampling
    random_normal_initializer = _RandomNormal
    random_uniform_initializer = _RandomUniform
    test = testing
    zeros_initializer = _Zeros

# Functions of ``tf.dtypes``, for which the file of the dtypes is too low.
_dtypes.cast, _dtypes.complex, _dtypes.saturate_cast = cast, complex, saturate_cast

_lazy_import.alias_modules(  # in pickles of version 0.2
    f"{__name__}.core", tensor_shape="tapewright.core.shapes.tensor_shape"
)
_lazy_import.alias_modules(  # `from tapewright.compat.v1 import logging`
    __name__,
    **{
        "compat.v1": "tapewright.api.compat_v1",
        "compat.v1.logging": "tapewright.api.compat_v1_logging",
        "config.optimizer": "tapewright.core.settings.config_optimizer",
        "config.threading": "tapewright.core.settings.config_threading",
        "experimental.numpy": "tapewright.api.tnp",
        "math.special": "tapewright.api.special",
    },
)


def _load_keras():
    from . import keras


# a file, or an argument that is a name, may be of a layer, a loss, an optimizer, ...
_register_later("", _load_keras)


@_hooks.class_path.fill
def _class_path(thing):
    from .keras.files.class_names import class_path

    return class_path(thing)


@_hooks.find_operation.fill
def _find_operation(name):
    from .keras.ops.operation import find_operation

    return find_operation(name)


@_hooks.translate_op.fill
def _translate_op(op, inputs, attributes):
    from .keras.ops.translation import translate

    return translate(op, inputs, attributes)


@_hooks.translate_function.fill
def _translate_function(function, args, kwargs):
    from .keras.ops.translation import translate_function

    return translate_function(function, args, kwargs)


_lazy_import.explain_missing(
    "tapewright.api.names.missing_names",
    __name__,
    *(
        "",
        *"audio bitwise compat config data debugging distribute dtypes errors".split(),
    ),
    *"compat.v1 compat.v1.logging config.optimizer config.threading".split(),
    *"autodiff autograph image linalg lookup math math.special nest nn profiler".split(),
    *"data.experimental io io.gfile onnx ragged saved_model sets signal sparse strings".split(),
    *"experimental experimental.numpy experimental.numpy.random".split(),
    *"queue random summary test train version".split(),
    *"distribute.cluster_resolver layers optimizers optimizers.schedules".split(),
)
_lazy_import.keep_public(
    _sys.modules[__name__], "compiler", "formats", "inspection", "storage"
)
_hooks.public_names.fill(lambda: _sys.modules[__name__].__all__)
