"""`tw.keras`: the names of Keras and ``tf.keras``, for the same objects.

``from tapewright.keras.layers import Dense`` works too: the modules are those of
tapewright, known under a second name.
"""

import importlib
import sys
from types import ModuleType

from tapewright import datasets, layers, optimizers
from tapewright.core.floatx import floatx, set_floatx
from tapewright.core.lazy_import import alias_modules, import_lazily
from tapewright.core.naming import reset_name_counts
from tapewright.core.tensor import is_tensor
from tapewright.core.variable import Variable
from tapewright.layers import activations, constraints, initializers, regularizers
from tapewright.layers.constraints import Constraint
from tapewright.layers.initializers import Initializer
from tapewright.layers.input_layer import Input, InputLayer
from tapewright.layers.layer import InputSpec, Layer
from tapewright.layers.regularizers import Regularizer
from tapewright.layers.symbolic import KerasTensor
from tapewright.optimizers import Optimizer
from tapewright.saving.keras_files.objects import (
    deserialize_keras_object,
    serialize_keras_object,
)
from tapewright.serialization.registration import (
    CustomObjectScope,
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)
from tapewright.serialization.registry import register_later
from tapewright.training import callbacks, losses, metrics
from tapewright.training.cloning import clone_model
from tapewright.training.data import normalize, pad_sequences, to_categorical
from tapewright.training.losses import Loss
from tapewright.training.losses.probabilistic import EPSILON
from tapewright.training.metrics import Metric
from tapewright.training.model import Model, model_from_json
from tapewright.training.packing import pack_x_y_sample_weight, unpack_x_y_sample_weight
from tapewright.training.py_dataset import PyDataset
from tapewright.training.seeds import set_random_seed
from tapewright.training.sequential import Sequential
from tapewright.training.splitting import split_dataset, timeseries_dataset_from_array

from . import random

__all__ = [
    "Initializer",
    "Input",
    "InputSpec",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Optimizer",
    "Regularizer",
    "Sequential",
    "Variable",
    "activations",
    "backend",
    "callbacks",
    "config",
    "constraints",
    "datasets",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "ops",  # noqa: F822  (loaded at first use)
    "optimizers",
    "preprocessing",
    "random",
    "regularizers",
    "saving",
    "utils",
]


def epsilon():
    """The small number of fuzzy comparisons: 1e-7."""
    return EPSILON


def image_data_format():
    """Where layers expect the channels unless told otherwise: "channels_last"."""
    return "channels_last"


def clear_session(free_memory=True):
    """Default names count from the beginning again; nothing else is held anywhere."""
    reset_name_counts()


def is_keras_tensor(x):
    """Whether ``x`` is symbolic, see `Input`."""
    return isinstance(x, KerasTensor)


def _namespace(name, later=(), **members):
    module = ModuleType(f"{__name__}.{name}", f"The names of ``keras.{name}``.")
    vars(module).update(members, __all__=sorted({*members, *later}))
    import_lazily(module, **dict(later))
    sys.modules[module.__name__] = module
    return module


backend = _namespace(
    "backend",
    clear_session=clear_session,
    epsilon=epsilon,
    floatx=floatx,
    image_data_format=image_data_format,
    set_floatx=set_floatx,
    is_keras_tensor=is_keras_tensor,
    is_tensor=is_tensor,
)
config = _namespace(
    "config",
    epsilon=epsilon,
    floatx=floatx,
    image_data_format=image_data_format,
    set_floatx=set_floatx,
)
_FILES = "tapewright.saving.keras_files"
_MODELS = {n: f"{_FILES}.models:{n}" for n in ("load_model", "save_model")}
_WEIGHTS = {n: f"{_FILES}.weights:{n}" for n in ("load_weights", "save_weights")}
models = _namespace(
    "models",
    _MODELS,
    Model=Model,
    Sequential=Sequential,
    clone_model=clone_model,
    model_from_json=model_from_json,
)
_OBJECTS = {
    "CustomObjectScope": CustomObjectScope,
    "custom_object_scope": custom_object_scope,
    "deserialize_keras_object": deserialize_keras_object,
    "get_custom_objects": get_custom_objects,
    "get_registered_name": get_registered_name,
    "get_registered_object": get_registered_object,
    "register_keras_serializable": register_keras_serializable,
    "serialize_keras_object": serialize_keras_object,
}
saving = _namespace(
    "saving",
    _MODELS | _WEIGHTS,
    **_OBJECTS,
)
sequence = _namespace("preprocessing.sequence", pad_sequences=pad_sequences)
preprocessing = _namespace(
    "preprocessing",
    sequence=sequence,
    timeseries_dataset_from_array=timeseries_dataset_from_array,
)
utils = _namespace(
    "utils",
    {
        "get_file": "tapewright.training.files:get_file",
        "plot_model": "tapewright.training.plot_model:plot_model",
    },
    PyDataset=PyDataset,
    Sequence=PyDataset,
    clear_session=clear_session,
    is_keras_tensor=is_keras_tensor,
    normalize=normalize,
    pack_x_y_sample_weight=pack_x_y_sample_weight,
    pad_sequences=pad_sequences,
    set_random_seed=set_random_seed,
    split_dataset=split_dataset,
    timeseries_dataset_from_array=timeseries_dataset_from_array,
    to_categorical=to_categorical,
    unpack_x_y_sample_weight=unpack_x_y_sample_weight,
    **_OBJECTS,
)

import_lazily(sys.modules[__name__], ops="tapewright.keras_ops")
# the config of a model may name functions of it
register_later("keras.ops.", lambda: importlib.import_module("tapewright.keras_ops"))

__path__ = []  # it holds modules, though it is none of a folder
alias_modules(
    __name__,
    **{
        name: module.__name__
        for name, module in globals().items()
        if name in __all__ and isinstance(module, ModuleType)
    },
)
