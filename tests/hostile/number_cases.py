"""A config of each class that a file may name, and the hostile numbers that it gets.

Most are recorded from Keras; `MORE` has those that Keras 3 has not, or not with a plain
config.
"""

import json
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "keras" / "files" / "reference"
SKIPPED = (
    "module", "class_name", "registered_name", "name", "dtype", "build_config",
)  # fmt: skip
# Bases that cannot be used alone, and classes with code of the user or of a model.
BASES = {
    "BaseNoise", "CategoryLayer", "CellLayer", "ConvolutionBase", "CustomScaleLayer",
    "ImageLayer", "IndexLookup", "LSTMBase", "Lambda", "Layer", "LossFunctionWrapper",
    "MeanMetricWrapper", "Model", "RandomLayer", "RecurrentCell", "SavedLayer",
    "SeedGenerator", "Sequential", "Warping", "Wrapper", "FloatDTypePolicy",
    "DTypePolicyMap", "FeatureSpace", "TFDConcat", "TFDIdentity", "OptimizerMap",
}  # fmt: skip
MORE = {
    "AugMix": {"num_chains": 2, "chain_depth": 2, "factor": 0.3, "alpha": 1.0, "seed": 1},
    "AutoContrast": {"value_range": [0, 255]},
    "CenterCrop": {"height": 3, "width": 4},
    "ContrastLimitedAdaptiveHistogramEqualization":
        {"value_range": [0, 255], "clip_limit": 4.0, "tile_grid_size": [2, 2]},
    "ConvLSTMCell": {"filters": 2, "kernel_size": 3, "rank": 2,
                     "padding": "same"},
    "CutMix": {"factor": 1.0, "seed": 1},
    "Discretization": {"bin_boundaries": [0.0, 0.5], "num_bins": None},
    "Equalization": {"value_range": [0, 255], "bins": 256},
    "HashedCrossing": {"num_bins": 5},
    "Hashing": {"num_bins": 5, "salt": 3},
    "IntegerLookup": {"vocabulary": [1, 2], "num_oov_indices": 1, "max_tokens": None},
    "LayerScale": {"projection_dim": 4, "init_values": 0.5},
    "MaxNumBoundingBoxes": {"max_number": 3, "fill_value": -1},
    "MelSpectrogram": {"fft_length": 64, "sequence_stride": 16, "sequence_length": 32,
                       "sampling_rate": 8000, "num_mel_bins": 4, "min_freq": 20.0,
                       "max_freq": 4000.0, "top_db": 80.0, "mag_exp": 2.0,
                       "min_power": 1e-10, "ref_power": 1.0},
    "MixUp": {"alpha": 0.2, "seed": 1},
    "RandomColorDegeneration": {"factor": 0.5, "seed": 1},
    "RandomElasticTransform": {"factor": 1.0, "scale": 1.0, "seed": 1},
    "RandomErasing": {"factor": 1.0, "scale": [0.02, 0.33], "fill_value": None, "seed": 1},
    "RandomGaussianBlur": {"factor": 1.0, "kernel_size": 3, "sigma": 1.0, "seed": 1},
    "RandomGrayscale": {"factor": 0.5, "seed": 1},
    "RandomHeight": {"factor": 0.25, "interpolation": "bilinear", "seed": 1},
    "RandomInvert": {"factor": 0.5, "seed": 1},
    "RandomPerspective": {"factor": 1.0, "scale": 0.5, "fill_value": 0.0, "seed": 1},
    "RandomPosterization": {"factor": 3, "seed": 1},
    "RandomSaturation": {"factor": 0.5, "seed": 1},
    "RandomSharpness": {"factor": 0.5, "seed": 1},
    "RandomWidth": {"factor": [-0.1, 0.2], "interpolation": "bilinear", "seed": 1},
    "StochasticDepth": {"drop_path_rate": 0.5},
    "StringLookup": {"vocabulary": ["a", "b"], "num_oov_indices": 1, "max_tokens": None},
    "TextVectorization": {"max_tokens": 10, "ngrams": 2, "output_sequence_length": 4,
                          "vocabulary": ["a", "b"]},
    "ThresholdedReLU": {"theta": 1.0},
    "Adafactor": {"learning_rate": 0.01, "beta_2_decay": -0.8, "epsilon_1": 1e-30,
                  "epsilon_2": 0.001, "clip_threshold": 1.0},
    "LossScaleOptimizer": {"inner_optimizer": {"class_name": "SGD", "config": {}},
                           "initial_scale": 4.0, "dynamic_growth_steps": 2},
    "Muon": {"learning_rate": 0.01, "ns_steps": 5, "exclude_layers": ["x"],
             "momentum": 0.9, "rms_rate": 0.2},
    "ScheduleFreeAdamW": {"learning_rate": 0.01, "warmup_steps": 2},
}  # fmt: skip
LEGACY = "RandomHeight", "RandomWidth", "ThresholdedReLU"
OPTIMIZERS = "Adafactor", "LossScaleOptimizer", "Muon", "ScheduleFreeAdamW"
# What asks for memory alone is not tried with sizes that a large machine has.
MEMORY = {
    "d_model", "depth_multiplier", "dilation_rate", "fft_length", "filters", "frame_length",
    "head_dim", "height", "input_dim", "key_dim", "kernel_size", "n", "num_bins",
    "num_classes", "num_heads", "num_key_value_heads", "num_oov_indices",
    "num_query_heads", "num_tokens", "output_dim", "output_padding", "output_shape",
    "output_size", "padding", "pool_size", "projection_dim", "size", "strides",
    "target_shape", "units", "value_dim", "width", "max_number", "max_tokens",
    "output_sequence_length", "sequence_stride", "bins", "tile_grid_size",
}  # fmt: skip
NOT_FINITE = [float("nan"), float("inf"), 1e300, 2.5]
HUGE = [-1, 0, 10**10, 10**30]


def hostile_values(path):
    name = next((key for key in reversed(path) if type(key) is str), "")
    return NOT_FINITE + HUGE + ([] if name in MEMORY else [10**6, 10**8])


def _configs():
    recorded = [
        each
        for name in ("layers", "objects")
        for each in json.loads((REFERENCE / f"configs_{name}.json").read_text())
    ]
    found = {}
    for config in recorded:
        if "class_name" in config:
            config = {k: x for k, x in config.items() if not k.endswith("_config")}
            found.setdefault(config["class_name"], config)
    for name, config in MORE.items():
        module = "keras.optimizers" if name in OPTIMIZERS else "keras.layers"
        module = "keras._legacy.layers" if name in LEGACY else module
        found[name] = {
            "module": module, "class_name": name, "config": config,
            "registered_name": None,
        }  # fmt: skip
    return found


CONFIGS = _configs()
