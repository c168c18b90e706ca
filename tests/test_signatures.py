"""Classes take Keras' arguments, in its order and with its defaults, as recorded."""

import inspect
import json
from pathlib import Path

import pytest

import tapewright as tw
from tapewright.serialization.constructor_arguments import constructor_arguments

RECORDED = json.loads(
    (Path(__file__).parent / "reference" / "signatures.json").read_text()
)
# Of what does not exist here, they are refused unless they ask for nothing.
REFUSED = {
    "gptq_unpacked_column_size", "lora_alpha", "lora_rank", "quantization_config",
}  # fmt: skip


def find(module, name):
    found = tw.keras
    for part in module.split("."):
        found = getattr(found, part)
    return getattr(found, name, None)


def same(default, wanted):
    """Keras writes one number for each axis where here one stands for all."""
    if isinstance(default, tuple):
        default = list(map(list, default)) if default and isinstance(
            default[0], tuple) else list(default)  # fmt: skip
    if default == wanted and type(default) is type(wanted):
        return True
    if isinstance(wanted, list) and not isinstance(default, list):
        return all(same(default, each) for each in wanted)
    return default == wanted and isinstance(default, (int, float))


# Classes of Keras that are not here. All others are: a class that goes missing fails.
LACKING = {
    "callbacks": """
        OrbaxCheckpoint RemoteMonitor
    """,
    "initializers": """
        STFT
    """,
    "layers": """
        AugMix AutoContrast ContrastLimitedAdaptiveHistogramEqualization ConvLSTM1D
        ConvLSTM2D ConvLSTM3D CutMix Equalization FlaxLayer HashedCrossing Hashing
        IntegerLookup JaxLayer MaxNumBoundingBoxes MelSpectrogram MixUp Pipeline
        RandAugment RandomColorDegeneration RandomColorJitter RandomElasticTransform
        RandomErasing RandomGaussianBlur RandomGrayscale RandomHue RandomInvert
        RandomPerspective RandomPosterization RandomSaturation RandomSharpness
        RandomShear ReversibleEmbedding STFTSpectrogram Solarization StringLookup
        TFSMLayer TextVectorization TorchModuleWrapper
    """,
    "optimizers": """
        Adafactor MultiOptimizer Muon OptimizerMap ScheduleFreeAdamW
    """,
}
CASES = [
    (module, name)
    for module, classes in RECORDED.items()
    if module != "keras"
    for name in classes
    if name not in LACKING.get(module, "").split()
]


def test_what_is_lacking_is_not_there():
    for module, names in LACKING.items():
        assert not [name for name in names.split() if find(module, name) is not None]


@pytest.mark.parametrize("module, name", CASES)
def test_arguments_and_defaults_are_those_of_keras(module, name):
    cls, wanted = find(module, name), RECORDED[module][name]
    parameters = inspect.signature(cls.__init__).parameters.values()
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    ours = [p for p in parameters if p.kind not in kinds][1:]
    for mine, theirs in zip(ours, wanted):
        assert mine.name == theirs[0]
        if len(theirs) == 1:
            assert mine.default is mine.empty
        else:
            assert same(mine.default, theirs[1]), (mine, theirs)
    taken = {p.name for p in ours} | set(constructor_arguments(cls))
    assert {name for name, *_ in wanted} - REFUSED <= taken
