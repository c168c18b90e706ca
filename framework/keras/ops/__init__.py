"""`tw.keras.ops`: Keras' functions of tensors, for custom layers and losses.

They have NumPy's names with Keras' arguments and dtypes, and are composed of
tapewright's ops, which trace and differentiate them. Called on the result of `Input`,
they become part of the model.
"""

from . import (
    arrays,
    core,
    creation,
    ctc,
    einops,
    elementwise,
    image,
    indexing,
    linalg,
    nn,
    reductions,
    signal,
    translation,  # noqa: F401 (the ops that enter models as these functions)
    vectorization,
)
from .arrays import *
from .core import *
from .creation import *
from .ctc import *
from .einops import *
from .elementwise import *
from .indexing import *
from .linalg import *
from .nn import *
from .reductions import *
from .signal import *
from .vectorization import *

__all__ = ["image"]
__all__ += arrays.__all__
__all__ += core.__all__
__all__ += creation.__all__
__all__ += ctc.__all__
__all__ += einops.__all__
__all__ += elementwise.__all__
__all__ += indexing.__all__
__all__ += linalg.__all__
__all__ += nn.__all__
__all__ += reductions.__all__
__all__ += signal.__all__
__all__ += vectorization.__all__
__all__.sort()
