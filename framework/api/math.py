"""`tw.math`: arithmetic, reductions, scans and special functions, as ``tf.math``."""

from tapewright.ops.array.approx_top_k import *
from tapewright.ops.array.conversion import *
from tapewright.ops.array.indexing import argmax as argmax, argmin as argmin
from tapewright.ops.array.segment import *
from tapewright.ops.array.sorting import *
from tapewright.ops.math.bessel import (
    bessel_i0 as bessel_i0,
    bessel_i0e as bessel_i0e,
    bessel_i1 as bessel_i1,
    bessel_i1e as bessel_i1e,
)
from tapewright.ops.math.beta import *
from tapewright.ops.math.comparison import *
from tapewright.ops.math.counting import *
from tapewright.ops.math.elementwise import *
from tapewright.ops.math.gamma import *
from tapewright.ops.math.reduction import *
from tapewright.ops.math.scan import *
from tapewright.ops.math.special import *
from tapewright.ops.math.trigonometry import *
from tapewright.ops.math.xlogy import *
from tapewright.ops.nn.activation import (
    log_sigmoid as log_sigmoid,
    log_softmax as log_softmax,
    sigmoid as sigmoid,
    softmax as softmax,
    softplus as softplus,
    softsign as softsign,
)
from tapewright.ops.nn.cross_entropy import *
from tapewright.ops.nn.moments import zero_fraction as zero_fraction
from tapewright.ops.nn.normalization import l2_normalize as l2_normalize

from . import special as special

__path__: list[str] = []  # a package, below which `special` is imported
