"""Image augmentation layers: random changes of geometry and pixel values."""

from . import (
    box_counts,
    colors,
    elastic,
    filters,
    geometric,
    histograms,
    intensity,
    mixing,
    policies,
    warping,
)
from .box_counts import *
from .colors import *
from .elastic import *
from .filters import *
from .geometric import *
from .histograms import *
from .intensity import *
from .mixing import *
from .policies import *
from .warping import *

__all__: list[str] = []
__all__ += box_counts.__all__
__all__ += colors.__all__
__all__ += elastic.__all__
__all__ += filters.__all__
__all__ += geometric.__all__
__all__ += histograms.__all__
__all__ += intensity.__all__
__all__ += mixing.__all__
__all__ += policies.__all__
__all__ += warping.__all__
__all__.sort()
