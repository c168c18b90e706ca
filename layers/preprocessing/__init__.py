"""Layers that turn texts, numbers, categories, images and sounds into model inputs."""

from . import (
    hashing,
    images,
    lookup,
    numbers,
    pipeline,
    spectrograms,
    text_vectorization,
)
from .hashing import *
from .images import *
from .lookup import *
from .numbers import *
from .pipeline import *
from .spectrograms import *
from .text_vectorization import *

__all__: list[str] = []
__all__ += hashing.__all__
__all__ += images.__all__
__all__ += lookup.__all__
__all__ += numbers.__all__
__all__ += pipeline.__all__
__all__ += spectrograms.__all__
__all__ += text_vectorization.__all__
__all__.sort()
