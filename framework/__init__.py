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

import functools
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from .core.settings.config import apply_defaults
from .core.messages.tracebacks import install_traceback_hooks

apply_defaults()  # before any array of a size worth speaking of is made
install_traceback_hooks()

# Infinities and NaN are values here, as in TensorFlow: NumPy's remarks on them, where
# they come from our own calls, are left out.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapewright\b")

from .api import version
from .autodiff.gradient_tape import *
from .core import dtypes, hooks
from .core.communication import job as _job  # chooses the GPU of each process
from .core.hardware.devices import device
from .core.dtypes import *
from .core.names.lazy_import import (
    alias_modules,
    explain_missing,
    import_lazily,
    keep_public,
)
from .core.module import Module
from .core.names.name_scopes import name_scope
from .core.tensor import *
from .core.variable import Variable, VariableAggregation, VariableSynchronization
from .ops.array.conversion import *
from .ops.array.creation import *
from .ops.array.gather import *
from .ops.array.indexing import *
from .ops.array.joining import *
from .ops.array.scatter import *
from .ops.array.shape import *
from .ops.array.sizes import get_static_value
from .ops.linalg.matmul import matmul
from .ops.math.comparison import *
from .ops.math.elementwise import *
from .ops.math.reduction import *
from .serialization.registry import register_later

if TYPE_CHECKING:  # names that are loaded at their first use
    from tapewright import datasets, layers, optimizers
    from tapewright.layers import Input, initializers
    from tapewright.layers.initializers import Constant as constant_initializer
    from tapewright.layers.initializers import Ones as ones_initializer
    from tapewright.layers.initializers import RandomNormal as random_normal_initializer
    from tapewright.layers.initializers import (
        RandomUniform as random_uniform_initializer,
    )
    from tapewright.layers.initializers import Zeros as zeros_initializer

    from . import autodiff, data, debugging, io, keras, plot, profiler, summary
    from .api import (
        bitwise,
        compat,
        config,
        errors,
        experimental,
        image,
        linalg,
        lookup,
    )
    from .api import math, nest, nn, onnx, queue, ragged, raw_ops, saved_model, sets
    from .api import signal, sparse, strings, train
    from .autodiff import testing
    from .autodiff.custom_gradient import *
    from .autodiff.vectorized_map import *
    from .compiler.control_flow.cond import case, cond, switch_case
    from .compiler.control_flow.host_calls import numpy_function, py_function, timestamp
    from .compiler.control_flow.map_fn import foldl, foldr, map_fn, scan
    from .compiler.control_flow.printing import Assert, print
    from .compiler.control_flow.tensor_array import TensorArray
    from .compiler.control_flow.while_loop import while_loop
    from .compiler.function.function import function
    from .compiler.function.scopes import *
    from .compiler.tracing.graph_gradients import gradients, hessians
    from .core.messages.logger import get_logger
    from .debugging import assert_equal, assert_greater, assert_less, assert_rank
    from .formats.libraries.export import export_library
    from .io import audio
    from .io.tensor_messages import make_ndarray, make_tensor_proto
    from .keras import callbacks, losses, metrics
    from .keras.models import Model, Sequential
    from .ops.array.sorting import *
    from .ops.array.space_to_batch import *
    from .ops.linalg.contraction import einsum, tensordot
    from .ops.linalg.decompositions import eig, eigvals
    from .ops.linalg.matrix_functions import norm
    from .ops.linalg.matrix_roots import sqrtm as matrix_square_root
    from .ops.math.bessel import bessel_i0e, bessel_i1e
    from .ops.math.counting import histogram_fixed_width, histogram_fixed_width_bins
    from .ops.math.gamma import *
    from .ops.math.scan import *
    from .ops.math.special import *
    from .ops.math.trigonometry import *
    from .ops.math.xlogy import *
    from .ops.nn.activation import sigmoid, softmax
    from .ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
    from .ops.random import sampling
    from .ops.signal.fftnd import *
    from .ops.sparse.edit_distance import edit_distance
    from .ops.sparse.sparse_tensor import SparseTensor, SparseTensorSpec
    from .ops.strings.numbers import as_string

    random = sampling
    test = testing

__all__ = [
    "Assert",
    "DType",
    "GradientTape",
    "IndexedSlices",
    "Input",
    "Model",
    "Module",
    "RaggedTensor",
    "RaggedTensorSpec",
    "Reference",
    "RegisterGradient",
    "Sequential",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorArray",
    "TensorShape",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_n",
    "angle",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "audio",
    "autodiff",
    "autograph",
    "batch_to_space",
    "bessel_i0e",
    "bessel_i1e",
    "bfloat16",
    "bitcast",
    "bitwise",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "callbacks",
    "case",
    "cast",
    "ceil",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "compat",
    "complex",
    "complex128",
    "complex64",
    "concat",
    "cond",
    "config",
    "conj",
    "constant",
    "constant_initializer",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
    "custom_gradient",
    "data",
    "datasets",
    "debugging",
    "device",
    "digamma",
    "distribute",
    "divide",
    "divide_no_nan",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "edit_distance",
    "eig",
    "eigvals",
    "einsum",
    "ensure_shape",
    "equal",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "experimental",
    "expm1",
    "export_library",
    "eye",
    "fftnd",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "floordiv",
    "floormod",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_logger",
    "get_static_value",
    "global_norm",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "group",
    "guarantee_const",
    "half",
    "hessians",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "identity",
    "identity_n",
    "ifftnd",
    "igamma",
    "igammac",
    "imag",
    "image",
    "in_top_k",
    "init_scope",
    "initializers",
    "inside_function",
    "int16",
    "int32",
    "int64",
    "int8",
    "invert",
    "invert_permutation",
    "io",
    "irfftnd",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_strictly_increasing",
    "is_tensor",
    "keras",
    "layers",
    "lbeta",
    "left_shift",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lookup",
    "losses",
    "make_ndarray",
    "make_tensor_proto",
    "map_fn",
    "math",
    "matmul",
    "matrix_square_root",
    "maximum",
    "meshgrid",
    "metrics",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "name_scope",
    "ndtri",
    "negative",
    "nest",
    "newaxis",
    "nextafter",
    "nn",
    "no_op",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_initializer",
    "ones_like",
    "onnx",
    "optimizers",
    "pad",
    "plot",
    "polygamma",
    "polyval",
    "pow",
    "print",
    "profiler",
    "py_function",
    "queue",
    "ragged",
    "random",
    "random_normal_initializer",
    "random_uniform_initializer",
    "range",
    "rank",
    "raw_ops",
    "real",
    "realdiv",
    "reciprocal",
    "reciprocal_no_nan",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "repeat",
    "required_space_to_batch_paddings",
    "reshape",
    "resource",
    "reverse",
    "reverse_sequence",
    "rfftnd",
    "right_shift",
    "rint",
    "roll",
    "round",
    "rsqrt",
    "saturate_cast",
    "saved_model",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "sets",
    "shape",
    "sigmoid",
    "sign",
    "signal",
    "sin",
    "sinh",
    "size",
    "slice",
    "softmax",
    "sort",
    "space_to_batch",
    "space_to_batch_nd",
    "sparse",
    "split",
    "sqrt",
    "square",
    "squared_difference",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "strings",
    "subtract",
    "summary",
    "switch_case",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "test",
    "testing",
    "tile",
    "timestamp",
    "top_k",
    "train",
    "transpose",
    "truediv",
    "truncatediv",
    "truncatemod",
    "tuple",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "vectorized_map",
    "version",
    "where",
    "while_loop",
    "xdivy",
    "xlog1py",
    "xlogy",
    "zeros",
    "zeros_initializer",
    "zeros_like",
    "zeta",
]

_LATER = {  # module -> its names here
    "autodiff.custom_gradient": """
        RegisterGradient custom_gradient grad_pass_through recompute_grad
    """,
    "autodiff.vectorized_map": "vectorized_map",
    "compiler.control_flow.cond": "case cond switch_case",
    "compiler.control_flow.host_calls": "numpy_function py_function timestamp",
    "compiler.control_flow.map_fn": "foldl foldr map_fn scan",
    "compiler.control_flow.printing": "Assert print",
    "compiler.control_flow.tensor_array": "TensorArray",
    "compiler.control_flow.while_loop": "while_loop",
    "compiler.function.function": "function",
    "compiler.function.scopes": """
        control_dependencies executing_eagerly group init_scope inside_function no_op tuple
    """,
    "compiler.tracing.graph_gradients": "gradients hessians",
    "core.messages.logger": "get_logger",
    "debugging": "assert_equal assert_greater assert_less assert_rank",
    "formats.libraries.export": "export_library",
    "io.tensor_messages": "make_ndarray make_tensor_proto",
    "keras.models": "Model Sequential",
    "layers": "Input",
    "ops.array.sorting": """
        argsort in_top_k invert_permutation is_non_decreasing is_strictly_increasing
        searchsorted sort top_k unique unique_with_counts
    """,
    "ops.array.space_to_batch": """
        batch_to_space required_space_to_batch_paddings space_to_batch space_to_batch_nd
    """,
    "ops.linalg.contraction": "einsum tensordot",
    "ops.linalg.decompositions": "eig eigvals",
    "ops.linalg.matrix_functions": "norm",
    "ops.math.bessel": "bessel_i0e bessel_i1e",
    "ops.math.counting": "histogram_fixed_width histogram_fixed_width_bins",
    "ops.math.gamma": "digamma igamma igammac lbeta lgamma polygamma zeta",
    "ops.math.scan": "cumprod cumsum cumulative_logsumexp",
    "ops.math.special": "erf erfc erfcinv erfinv ndtri",
    "ops.math.trigonometry": """
        acos acosh angle asin asinh atan atan2 atanh cos cosh sin sinh tan tanh
    """,
    "ops.math.xlogy": "xdivy xlog1py xlogy",
    "ops.nn.activation": "sigmoid softmax",
    "ops.ragged.ragged_tensor": "RaggedTensor RaggedTensorSpec",
    "ops.signal.fftnd": "fftnd ifftnd irfftnd rfftnd",
    "ops.sparse.edit_distance": "edit_distance",
    "ops.sparse.sparse_tensor": "SparseTensor SparseTensorSpec",
    "ops.strings.numbers": "as_string",
}
import_lazily(
    sys.modules[__name__],
    **{n: f"tapewright.{m}:{n}" for m, names in _LATER.items() for n in names.split()},
    matrix_square_root="tapewright.ops.linalg.matrix_roots:sqrtm",
    **{
        name: f"tapewright.api.{name}"
        for name in (
            "bitwise config errors linalg math nest nn ragged sets signal sparse strings"
        ).split()
    },
    autodiff="tapewright.autodiff",
    debugging="tapewright.debugging",
    audio="tapewright.io.audio",
    autograph="tapewright.api.autograph",
    callbacks="tapewright.keras.callbacks",
    compat="tapewright.api.compat",
    constant_initializer="tapewright.layers.initializers:Constant",
    data="tapewright.data",
    datasets="tapewright.datasets",
    distribute="tapewright.distribute",
    experimental="tapewright.api.experimental",
    image="tapewright.api.image",
    initializers="tapewright.layers.initializers",
    io="tapewright.io",
    keras="tapewright.keras",
    layers="tapewright.layers",
    lookup="tapewright.api.lookup",
    losses="tapewright.keras.losses",
    metrics="tapewright.keras.metrics",
    ones_initializer="tapewright.layers.initializers:Ones",
    onnx="tapewright.api.onnx",
    optimizers="tapewright.optimizers",
    plot="tapewright.plot",
    profiler="tapewright.profiler",
    queue="tapewright.api.queue",
    random="tapewright.ops.random.sampling",
    raw_ops="tapewright.api.raw_ops",
    random_normal_initializer="tapewright.layers.initializers:RandomNormal",
    random_uniform_initializer="tapewright.layers.initializers:RandomUniform",
    saved_model="tapewright.api.saved_model",
    summary="tapewright.summary",
    test="tapewright.autodiff.testing",
    testing="tapewright.autodiff.testing",
    train="tapewright.api.train",
    zeros_initializer="tapewright.layers.initializers:Zeros",
)

alias_modules(  # `from tapewright.compat.v1 import logging`
    __name__,
    dtypes="tapewright.core.dtypes",
    image="tapewright.api.image",
    version="tapewright.api.version",
    **{
        "compat.v1": "tapewright.api.compat_v1",
        "compat.v1.logging": "tapewright.api.compat_v1_logging",
        "config.optimizer": "tapewright.core.settings.config_optimizer",
        "config.threading": "tapewright.core.settings.config_threading",
        "experimental.numpy": "tapewright.api.tnp",
        "math.special": "tapewright.api.special",
    },
)

import_lazily(
    dtypes,
    cast="tapewright.ops.array.conversion:cast",
    complex="tapewright.ops.array.conversion:complex",
    saturate_cast="tapewright.ops.array.conversion:saturate_cast",
)

# a file, or an argument that is a name, may be of a layer, a loss, an optimizer, ...
register_later("", functools.partial(import_module, "tapewright.keras"))


@hooks.class_path.fill
def _class_path(thing):
    from .keras.files.class_names import class_path

    return class_path(thing)


@hooks.translate_op.fill
def _translate_op(op, inputs, attributes):
    from .keras.ops.translation import translate

    return translate(op, inputs, attributes)


@hooks.translate_function.fill
def _translate_function(function, args, kwargs):
    from .keras.ops.translation import translate_function

    return translate_function(function, args, kwargs)


hooks.public_names.fill(lambda: __all__)

newaxis = None
guarantee_const = identity
realdiv = truediv

__version__ = version.VERSION

explain_missing(
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
keep_public(sys.modules[__name__], "compiler", "formats", "inspection", "storage")
