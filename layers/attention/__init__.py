"""Attention layers."""

from . import attention, multi_head_attention
from .attention import *
from .multi_head_attention import *

__all__: list[str] = []
__all__ += attention.__all__
__all__ += multi_head_attention.__all__
__all__.sort()
