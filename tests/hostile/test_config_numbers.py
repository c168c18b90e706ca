"""Every number of every config, replaced by hostile ones, is refused or soon used."""

import number_cases
import pytest
import runner

import tapewright as tw
from tapewright.serialization import registry
from tapewright.serialization.constructor_arguments import is_own

KINDS = (
    "constraint", "initializer", "layer", "loss", "metric", "optimizer", "regularizer",
    "schedule",
)  # fmt: skip


@pytest.fixture(scope="module")
def found(once):
    jobs = [(name, ("sweep",)) for name in number_cases.CONFIGS]
    program = "numbers_child.py"
    return once("numbers", lambda folder: runner.run(jobs, program=program))


@pytest.mark.parametrize("name", number_cases.CONFIGS)
def test_a_hostile_number_is_refused_or_soon_used(name, found):
    told = found[name, "sweep"]
    assert told["outcome"] == "OK", told["message"]


def test_each_class_that_a_file_may_name_has_a_config():
    for name in ("layers", "losses", "metrics", "optimizers"):
        getattr(tw.keras, name)
    classes = {}
    for kind in KINDS:
        for name, thing in registry._OBJECTS[kind].items():
            if isinstance(thing, type) and is_own(thing) and ":" not in name:
                classes.setdefault(thing, set()).add(name)
    known = number_cases.CONFIGS.keys() | number_cases.BASES
    assert [names for names in classes.values() if not names & known] == []


# What a person may ask for, close to the bounds, and the least of what is refused.
BOUNDS = [
    ("layers", "RandAugment", {}, "num_ops", 20, 101),
    ("layers", "AugMix", {}, "num_chains", 10, 21),
    ("layers", "AugMix", {}, "chain_depth", 10, 21),
    ("layers", "TextVectorization", {}, "ngrams", 20, 101),
    ("layers", "TextVectorization", {}, "ngrams", (1, 20), (1, 101)),
    ("layers", "StringLookup", {}, "num_oov_indices", 500_000, 1_000_001),
    ("layers", "IntegerLookup", {}, "num_oov_indices", 500_000, 1_000_001),
    ("layers", "MelSpectrogram", {}, "fft_length", 65_536, 2**17 + 1),
    ("layers", "MelSpectrogram", {}, "num_mel_bins", 1024, 4097),
    ("layers", "STFTSpectrogram", {}, "frame_length", 16_384, 2**17 + 1),
    ("layers", "STFTSpectrogram", {}, "fft_length", 65_536, 2**18),
    ("layers", "Conv1D", {"filters": 2}, "kernel_size", 16_384, 16_385),
    ("layers", "Conv2D", {"filters": 2}, "kernel_size", 128, 129),
    ("layers", "DepthwiseConv2D", {}, "kernel_size", (64, 256), (64, 257)),
    ("layers", "MaxPooling2D", {}, "pool_size", 1024, 1025),
    ("layers", "Dense", {}, "units", 2**31 - 1, 2**31),
    ("layers", "Embedding", {"output_dim": 1}, "input_dim", 2**31 - 1, 10**30),
    ("layers", "ZeroPadding2D", {}, "padding", 2**31 - 1, 2**31),
    ("metrics", "AUC", {}, "num_thresholds", 1_000_000, 1_000_001),
    ("metrics", "PrecisionAtRecall", {"recall": 0.5}, "num_thresholds", 100_000, 10**9),
    ("optimizers", "Muon", {}, "ns_steps", 20, 101),
    ("optimizers", "SGD", {}, "gradient_accumulation_steps", 10**6, 2**31),
]


@pytest.mark.parametrize(
    ("module", "name", "options", "argument", "fine", "refused"), BOUNDS
)
def test_bounds_are_far_above_what_is_of_use(
    module, name, options, argument, fine, refused
):
    cls = getattr(getattr(tw.keras, module), name)
    made = cls(**options, **{argument: fine})
    assert argument in made.get_config()
    with pytest.raises(ValueError, match=f"{name}: .*{argument}.* at most [0-9]+"):
        cls(**options, **{argument: refused})


def test_spectral_normalization_takes_a_bounded_number_of_iterations():
    layers = tw.keras.layers
    assert layers.SpectralNormalization(layers.Dense(2), 100).power_iterations == 100
    with pytest.raises(ValueError, match="power_iterations must be at most 1000"):
        layers.SpectralNormalization(layers.Dense(2), 10**9)
