"""The ops, one family per file; most families are imported at first use."""

from tapewright.core.op_registry import define_ops_later

define_ops_later("tapewright.ops.families")

# isort: off
from . import operators  # noqa: E402  gives Tensor and Variable their operators
from .nn import activation  # noqa: E402  has a gradient of `math.reduction`
