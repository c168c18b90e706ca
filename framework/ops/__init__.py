"""The ops, one family a file, imported in the order in which they build on each other."""

# isort: off
from .array import sizes
from .math import comparison
from .array import conversion
from .math import elementwise, trigonometry, xlogy, special, gamma
from .array import shape, joining, creation
from .math import reduction
from .array import gather, scatter, indexing
from .linalg import diagonal
from .math import scan
from .array import segment
from .math import counting
from .array import sorting
from .linalg import (
    matmul,
    contraction,
    linear_systems,
    decompositions,
    matrix_functions,
)
from .signal import fft, window_functions
from .nn import activation, cross_entropy, bias, moments, normalization
from .convolution import windows, correlation, conv, pooling
from .random import philox, distributions, generators, sampling
from .nn import dropout, recurrence, lstm, gru, simple_rnn, attention
from .image import resizing, warping, processing
from .sparse import sparse_tensor, dense, structure, arithmetic, products
from .ragged import ragged_tensor, construction, rules
from .strings import characters, regex, joins, numbers, splitting
from . import operators
