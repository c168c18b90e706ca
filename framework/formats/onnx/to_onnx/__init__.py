"""Translations of ops to ONNX: ``translation(w, *operands, **attributes)``.

``w`` is a `GraphWriter`; the result is the name of a tensor, or a list of names. Each
file has a table of one family.

elementwise    arithmetic, functions, comparisons, casts
arrays         shapes, indices, joining
reductions     reductions, cumulative sums, normalization, sorting
products       matrix products and einsum
windows        convolution, pooling, resizing
recurrent      LSTM, GRU, simple RNN
gradients      ops that gradients are made of
control_flow   conditionals and loops
"""

from .arrays import ARRAYS
from .control_flow import CONTROL_FLOW
from .elementwise import ELEMENTWISE
from .gradients import GRADIENTS
from .products import PRODUCTS
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .windows import WINDOWS

__all__ = ["TRANSLATIONS"]

TRANSLATIONS = {
    **ELEMENTWISE,
    **ARRAYS,
    **REDUCTIONS,
    **PRODUCTS,
    **WINDOWS,
    **RECURRENT,
    **GRADIENTS,
    **CONTROL_FLOW,
}
