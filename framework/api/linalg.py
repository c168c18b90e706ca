"""`tw.linalg`: products, decompositions, solvers and norms of matrices, as ``tf.linalg``."""

from tapewright.compiler.control_flow.conjugate_gradient import (
    conjugate_gradient as _conjugate_gradient,
)
from tapewright.ops.linalg.banded import *
from tapewright.ops.linalg.contraction import *
from tapewright.ops.linalg.decompositions import *
from tapewright.ops.linalg.diagonal import *
from tapewright.ops.linalg.linear_systems import *
from tapewright.ops.linalg.lu import *
from tapewright.ops.linalg.matmul import *
from tapewright.ops.linalg.matrix_functions import *
from tapewright.ops.linalg.matrix_roots import *
from tapewright.ops.math.reduction import global_norm as global_norm
from tapewright.ops.nn.normalization import l2_normalize as l2_normalize


class experimental:
    """Names of ``tf.linalg.experimental``."""

    conjugate_gradient = staticmethod(_conjugate_gradient)
