"""Losses under Keras' names, with Keras' defaults and arithmetic.

Each loss is a function ``(y_true, y_pred) -> [batch, ...]`` and a class that reduces the
values of the function, weighted if asked, to one number. `get` finds one by name.
"""

from . import (
    focal,
    hinge_losses,
    loss,
    probabilistic,
    regression,
    segmentation,
    sequence,
    serialization,
    similarity,
)
from .focal import *
from .hinge_losses import *
from .loss import *
from .probabilistic import *
from .regression import *
from .segmentation import *
from .sequence import *
from .serialization import *
from .similarity import *

__all__ = []
__all__ += focal.__all__
__all__ += hinge_losses.__all__
__all__ += loss.__all__
__all__ += probabilistic.__all__
__all__ += regression.__all__
__all__ += segmentation.__all__
__all__ += sequence.__all__
__all__ += serialization.__all__
__all__ += similarity.__all__
__all__.sort()
