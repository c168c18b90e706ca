"""`tw.experimental.numpy`: the functions of NumPy on tensors, as ``tf.experimental.numpy``.

They have the arguments of TensorFlow's functions, and NumPy's promotion of dtypes: a
Python float is a float64, and operands are cast to ``np.result_type``. Results are
tensors, which work with tapes, traces and `vectorized_map`.

>>> import tapewright as tw
>>> import tapewright.experimental.numpy as tnp
>>> x = tw.constant([1.0, 2.0])
>>> tnp.add(x, 1.5).dtype, tnp.add(x, tnp.arange(2)).dtype
(tf.float32, tf.float64)
"""

import sys

from numpy import bytes_ as string_
from numpy import complex64, complex128, float16, float32, float64
from numpy import complex128 as complex_
from numpy import e, iinfo, inexact, inf, newaxis, pi
from numpy import float64 as float_
from numpy import int8, int16, int32, int64, int_, uint8, uint16, uint32, uint64
from numpy import bool_, object_
from numpy import str_ as unicode_

from tapewright.core.names.lazy_import import keep_public
from tapewright.core.tensor import Tensor as ndarray

from . import arrays, behavior, creation, elementwise, products, random, reductions
from .arrays import *
from .behavior import *
from .creation import *
from .elementwise import *
from .products import *
from .promotion import finfo, issubdtype, promote_types, result_type
from .reductions import *

__all__ = [
    "bool_",
    "complex128",
    "complex64",
    "complex_",
    "e",
    "finfo",
    "float16",
    "float32",
    "float64",
    "float_",
    "iinfo",
    "inexact",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "int_",
    "issubdtype",
    "ndarray",
    "newaxis",
    "object_",
    "pi",
    "promote_types",
    "random",
    "result_type",
    "string_",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unicode_",
]
__all__ += arrays.__all__
__all__ += behavior.__all__
__all__ += creation.__all__
__all__ += elementwise.__all__
__all__ += products.__all__
__all__ += reductions.__all__
__all__.sort()

keep_public(sys.modules[__name__])
