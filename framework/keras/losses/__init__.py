"""`keras.losses`: losses with Keras' names, defaults and arithmetic.

Each loss is available as a function ``(y_true, y_pred) -> [batch, ...]`` and as a class
that reduces the values of the function, optionally weighted, to one number. `get` finds
either by name.
"""

from tapewright.serialization.object_config import ObjectFamily
from tapewright.serialization.registry import register

from . import (
    focal,
    hinge_losses,
    loss,
    probabilistic,
    regression,
    segmentation,
    sequence,
    similarity,
)
from .focal import *
from .hinge_losses import *
from .loss import *
from .probabilistic import *
from .regression import *
from .segmentation import *
from .sequence import *
from .similarity import *

# Other names of functions, as in `tf.keras.losses`.
KLD = kld = kullback_leibler_divergence = probabilistic.kl_divergence
MAE = mae = regression.mean_absolute_error
MAPE = mape = regression.mean_absolute_percentage_error
MSE = mse = regression.mean_squared_error
MSLE = msle = regression.mean_squared_logarithmic_error
logcosh = regression.log_cosh

__all__ = ["KLD", "MAE", "MAPE", "MSE", "MSLE", "kld", "kullback_leibler_divergence"]
__all__ += ["logcosh", "mae", "mape", "mse", "msle"]
_aliases = {name: globals()[name] for name in __all__}
_aliases["BCE"] = _aliases["bce"] = probabilistic.binary_crossentropy

__all__ += ["deserialize", "get", "serialize"]
__all__ += focal.__all__
__all__ += hinge_losses.__all__
__all__ += loss.__all__
__all__ += probabilistic.__all__
__all__ += regression.__all__
__all__ += segmentation.__all__
__all__ += sequence.__all__
__all__ += similarity.__all__
__all__.sort()

_family = ObjectFamily("loss", function_names=False)
get, serialize, deserialize = _family.get, _family.serialize, _family.deserialize

for _module in (focal, hinge_losses, probabilistic, regression, segmentation,
                sequence, similarity):  # fmt: skip
    for _name in filter(str.islower, _module.__all__):
        register("loss", _name, getattr(_module, _name))
for _name, _function in _aliases.items():
    register("loss", _name, _function)
