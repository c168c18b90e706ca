"""`tw.train`: checkpoints, under the names of ``tf.train``."""

from .saving.checkpoints.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from .saving.checkpoints.checkpoint_manager import CheckpointManager

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
