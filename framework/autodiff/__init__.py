"""`tw.autodiff`: forward mode, Hessian-vector products, vectors of variables."""

from .forward import *
