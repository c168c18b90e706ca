"""`tw.keras.ops`: Keras' functions of tensors, for layers and losses of one's own.

NumPy's names with Keras' arguments and dtypes, composed of tapewright's ops: traced and
differentiated like these. Called on what `Input` gives they become part of the model.
"""

from . import (
    arrays,
    core,
    creation,
    elementwise,
    image,
    indexing,
    linalg,
    linear_algebra,
    nn,
    reductions,
    sequences,
    signal,
)
from .arrays import *
from .core import *
from .creation import *
from .elementwise import *
from .function_translation import translate_function as _translate_function
from .indexing import *
from .linalg import *
from .linear_algebra import *
from .nn import *
from .nodes import as_nodes
from .reductions import *
from .sequences import *
from .signal import *
from .translation import translate as _translate

_FAMILIES = (
    arrays, core, creation, elementwise, indexing, linalg, linear_algebra, nn, reductions,
    sequences,
    signal,
)  # fmt: skip
__all__ = [name for family in _FAMILIES for name in family.__all__]
__all__ = sorted([*__all__, "image"])

for _family in _FAMILIES:
    as_nodes(vars(_family), _family.__all__)
    globals().update({_name: vars(_family)[_name] for _name in _family.__all__})
as_nodes(vars(image), image.__all__, "image.")
