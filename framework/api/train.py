"""`tw.train`: checkpoints and examples, under the names of ``tf.train``."""

from tapewright.formats.checkpoints.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tapewright.formats.checkpoints.checkpoint_manager import CheckpointManager
from tapewright.io.messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
