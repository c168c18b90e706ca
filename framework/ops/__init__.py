"""The ops, one family a file, in the order in which they build on each other."""

from . import (  # isort: skip
    comparison,
    conversion,
    elementwise,
    shape,
    joining,
    creation,
    reduction,
    indexing,
    linalg,
    activation,
    cross_entropy,
    normalization,
    random,
    image,
    operators,
)
