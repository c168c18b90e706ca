"""`tw.keras`: the names of Keras and ``tf.keras``, for the same objects.

``from tapewright.keras.layers import Dense`` works too, in Python and in editors.
"""

import functools
import sys
from importlib import import_module

from tapewright.autodiff.custom_gradient import recompute_grad as remat
from tapewright.core.hardware.devices import device
from tapewright.core.names.lazy_import import (
    explain_missing,
    keep_public,
    lazy_imports,
)
from tapewright.core.names.name_scopes import name_scope
from tapewright.core.state.stateless_scope import StatelessScope
from tapewright.layers.base.input_layer import Input
from tapewright.layers.base.layer import InputSpec, Layer
from tapewright.layers.base.rematerialization import RematScope
from tapewright.layers.base.symbolic_tensor import KerasTensor, Operation
from tapewright.layers.dtype_policies import DTypePolicy, FloatDTypePolicy
from tapewright.layers.initializers import Initializer
from tapewright.layers.regularizers import Regularizer
from tapewright.optimizers import Optimizer
from tapewright.serialization.registry import register_later

from . import (
    activations,
    callbacks,
    config,
    constraints,
    datasets,
    dtype_policies,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    optimizers,
    random,
    regularizers,
    saving,
    tree,
    utils,
)
from .keras_version import VERSION, version
from .losses import Loss
from .metrics import Metric
from .models import Function, Model, Sequential
from .variable import Variable

with lazy_imports(globals()):
    from . import applications, backend, distribution, ops, preprocessing

__all__ = [
    "DTypePolicy",
    "FloatDTypePolicy",
    "Function",
    "Initializer",
    "Input",
    "InputSpec",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Operation",
    "Optimizer",
    "Regularizer",
    "RematScope",
    "Sequential",
    "StatelessScope",
    "Variable",
    "activations",
    "applications",
    "backend",
    "callbacks",
    "config",
    "constraints",
    "datasets",
    "device",
    "distribution",
    "dtype_policies",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "name_scope",
    "ops",
    "optimizers",
    "preprocessing",
    "random",
    "regularizers",
    "remat",
    "saving",
    "tree",
    "utils",
    "version",
]

__version__ = VERSION

register_later(
    ("FeatureSpace", "TFDConcat", "TFDIdentity"),
    functools.partial(import_module, "tapewright.keras.utils.feature_space"),
)
explain_missing(
    "tapewright.api.names.missing_names",
    __name__,
    *("", *[name for name in __all__ if name.islower()]),
    *"ops.image ops.linalg ops.nn optimizers.schedules".split(),
    *"preprocessing.image preprocessing.sequence preprocessing.text".split(),
    *"utils.bounding_boxes utils.legacy".split(),
)
keep_public(sys.modules[__name__], "files", "training")
