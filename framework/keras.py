"""`tw.keras`: the names of ``tf.keras``, for the same objects.

``from tapewright.keras.layers import Dense`` works too: the modules are those of
tapewright, known under a second name.
"""

import sys
from types import ModuleType

from tapewright import datasets, layers, optimizers
from tapewright.layers import activations, initializers, regularizers
from tapewright.layers.initializers import Initializer
from tapewright.layers.layer import InputSpec, Layer
from tapewright.layers.regularizers import Regularizer
from tapewright.optimizers import Optimizer

from .training import losses
from .training.data import to_categorical
from .training.losses import Loss
from .training.sequential import Sequential

__all__ = [
    "Initializer",
    "InputSpec",
    "Layer",
    "Loss",
    "Optimizer",
    "Regularizer",
    "Sequential",
    "activations",
    "datasets",
    "initializers",
    "layers",
    "losses",
    "models",
    "optimizers",
    "regularizers",
    "utils",
]


def _namespace(name, **members):
    module = ModuleType(f"{__name__}.{name}", f"The names of ``tf.keras.{name}``.")
    vars(module).update(members, __all__=sorted(members))
    return module


models = _namespace("models", Sequential=Sequential)
utils = _namespace("utils", to_categorical=to_categorical)

for _name in __all__:
    if isinstance(globals()[_name], ModuleType):
        sys.modules[f"{__name__}.{_name}"] = globals()[_name]
