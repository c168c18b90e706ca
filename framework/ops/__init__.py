"""The ops, one family per file; most families are imported at first use."""

from tapewright.core import hooks


@hooks.define_ops.fill
def _define_ops():
    from . import families


# isort: off
from . import operators  # noqa: E402  gives Tensor and Variable their operators
from .nn import activation  # noqa: E402  has a gradient of `math.reduction`
