"""`keras.mixed_precision`: older names of dtype policies and loss scaling."""

from tapewright.layers.dtype_policies import (
    DTypePolicy,
    dtype_policy,
    set_dtype_policy,
)
from tapewright.optimizers.loss_scale import LossScaleOptimizer

__all__ = [
    "DTypePolicy",
    "LossScaleOptimizer",
    "Policy",
    "dtype_policy",
    "global_policy",
    "set_dtype_policy",
    "set_global_policy",
]

Policy = DTypePolicy
global_policy = dtype_policy
set_global_policy = set_dtype_policy
