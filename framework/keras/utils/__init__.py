"""`keras.utils`: data loading, random seeds, downloads, images, plots of models."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

from ..config import (
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from ..models.functional import get_source_inputs
from ..saving import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from ..session import clear_session, is_keras_tensor, standardize_dtype
from ..training.data_adapters.data_adapter_utils import (
    pack_x_y_sample_weight,
    unpack_x_y_sample_weight,
)
from ..training.data_adapters.py_dataset_adapter import PyDataset
from . import bounding_boxes
from .dataset_utils import split_dataset, timeseries_dataset_from_array
from .numerical import normalize, pad_sequences, to_categorical
from .progbar import Progbar
from .random_seed import set_random_seed

with _lazy_imports(globals()):
    from . import legacy
    from .directory_datasets import (
        audio_dataset_from_directory,
        image_dataset_from_directory,
        text_dataset_from_directory,
    )
    from .feature_space import FeatureSpace
    from .file_download import get_file
    from .image_utils import array_to_img, img_to_array, load_img, save_img
    from .model_visualization import model_to_dot, plot_model
    from .named_values import Config

__all__ = [
    "Config",
    "CustomObjectScope",
    "FeatureSpace",
    "Progbar",
    "PyDataset",
    "Sequence",
    "array_to_img",
    "audio_dataset_from_directory",
    "bounding_boxes",
    "clear_session",
    "custom_object_scope",
    "deserialize_keras_object",
    "disable_interactive_logging",
    "enable_interactive_logging",
    "get_custom_objects",
    "get_file",
    "get_registered_name",
    "get_registered_object",
    "get_source_inputs",
    "image_dataset_from_directory",
    "img_to_array",
    "is_interactive_logging_enabled",
    "is_keras_tensor",
    "legacy",
    "load_img",
    "model_to_dot",
    "normalize",
    "pack_x_y_sample_weight",
    "pad_sequences",
    "plot_model",
    "register_keras_serializable",
    "save_img",
    "serialize_keras_object",
    "set_random_seed",
    "split_dataset",
    "standardize_dtype",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
    "to_categorical",
    "unpack_x_y_sample_weight",
]

Sequence = PyDataset
