"""Recurrent layers and their cells."""

from . import cells, conv_lstm, recurrent, rnn
from .cells import *
from .conv_lstm import *
from .recurrent import *
from .rnn import *

__all__: list[str] = []
__all__ += cells.__all__
__all__ += conv_lstm.__all__
__all__ += recurrent.__all__
__all__ += rnn.__all__
__all__.sort()
