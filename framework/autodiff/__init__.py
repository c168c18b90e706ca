"""`tw.autodiff`: derivatives forward and of second order."""

from .forward import *
