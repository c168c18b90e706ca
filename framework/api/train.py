"""`tw.train`: checkpoints, under the names of ``tf.train``."""

from tapewright.saving.checkpoints.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tapewright.saving.checkpoints.checkpoint_manager import CheckpointManager

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
