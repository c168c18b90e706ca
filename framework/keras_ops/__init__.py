"""`tw.keras.ops`: Keras' functions of tensors, for layers and losses of one's own.

NumPy's names with Keras' arguments and dtypes, composed of tapewright's ops: traced and
differentiated like these. Called on what `Input` gives they become part of the model.
"""

from . import (
    arrays,
    core,
    elementwise,
    image,
    indexing,
    linalg,
    making,
    nn,
    products,
    reductions,
    signals,
)
from .arrays import *
from .core import *
from .elementwise import *
from .indexing import *
from .linalg import *
from .making import *
from .nn import *
from .products import *
from .reductions import *
from .signals import *

_FAMILIES = (
    arrays, core, elementwise, indexing, linalg, making, nn, products, reductions, signals,
)  # fmt: skip
__all__ = [name for family in _FAMILIES for name in family.__all__]
__all__ = sorted([*__all__, "image"])
