"""All ops, one family a file, imported in the order in which they build on each other.

A program imports the families that it uses. `core.op_definition.op_registry` imports this file
for an op that is looked up by its name, and for the list of all ops.
"""

# isort: off
from .array import sizes
from .math import comparison
from .array import conversion
from .math import (
    elementwise,
    trigonometry,
    xlogy,
    special,
    bessel,
    integrals,
    gamma,
    beta,
)
from .array import shape, joining, creation
from .math import reduction
from .array import gather, scatter, indexing
from .linalg import diagonal
from .math import scan
from .array import segment, space_to_batch
from .math import counting
from .array import sorting, approx_top_k
from .linalg import (
    matmul,
    contraction,
    linear_systems,
    decompositions,
    lu,
    matrix_functions,
    matrix_roots,
    banded,
)
from .signal import fft, fftnd, window_functions, mdct, mel
from .nn import activation
from .math import smooth
from .nn import cross_entropy, bias, moments, normalization
from .convolution import windows, correlation, conv, pooling
from .random import philox, distributions, generators, candidate_sampling, sampling
from .nn import (
    dropout,
    sampled_loss,
    morphology,
    gates,
    recurrence,
    lstm,
    gru,
    simple_rnn,
    attention,
)
from .image import pixels, resampling, cropping, resizing, flipping, color, adjusting
from .image import (
    edges,
    quality,
    warping,
    blurring,
    interpolation,
    random_images,
    boxes,
    suppression,
)
from .sparse import (
    sparse_tensor,
    dense,
    structure,
    arithmetic,
    products,
    edit_distance,
    sets,
)
from .ragged import ragged_tensor, construction, rules, axis_rules, function_rules
from .strings import characters, regex, joins, numbers, splitting, categories
