"""Losses: what training makes small. Names, defaults and arithmetic are Keras'.

Each loss is a function ``(y_true, y_pred) -> [batch, ...]`` and a class that reduces
what the function gives, weighted if asked, to one number. `get` finds one by name.
"""

from . import (
    finding,
    focal,
    loss,
    margins,
    probabilistic,
    regression,
    segmentation,
    sequence,
    similarity,
)
from .finding import *
from .focal import *
from .loss import *
from .margins import *
from .probabilistic import *
from .regression import *
from .segmentation import *
from .sequence import *
from .similarity import *

__all__ = sorted(
    [
        name
        for module in (
            finding,
            focal,
            margins,
            loss,
            probabilistic,
            regression,
            segmentation,
            sequence,
            similarity,
        )
        for name in module.__all__
    ]
)
