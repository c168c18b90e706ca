"""`tw.train`: checkpoints, under the names of ``tf.train``."""

from tapewright.formats.checkpoints.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tapewright.formats.checkpoints.checkpoint_manager import CheckpointManager

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
