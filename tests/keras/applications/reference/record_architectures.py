"""Writes ``architectures.json``: digests of the networks of `keras.applications`.

    KERAS_BACKEND=tensorflow python tests/keras/applications/reference/record_architectures.py

with Keras 3. ``--compare`` builds all of them with tapewright instead, and prints what
differs from the recording; ``--show CASE`` prints a network, with Keras or ``--compare``.
"""

import hashlib
import importlib
import inspect
import json
import math
import sys
import time
from contextlib import nullcontext
from pathlib import Path

FILE = Path(__file__).with_name("architectures.json")
VARIANTS = """
    MobileNet MobileNetV2 MobileNetV3Small MobileNetV3Large ResNet50 ResNet101 ResNet152
    ResNet50V2 ResNet101V2 ResNet152V2 VGG16 VGG19 DenseNet121 DenseNet169 DenseNet201
    Xception InceptionV3 InceptionResNetV2 EfficientNetB0 EfficientNetB1 EfficientNetB2
    EfficientNetB3 EfficientNetB4 EfficientNetB5 EfficientNetB6 EfficientNetB7
    EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2S
    EfficientNetV2M EfficientNetV2L ConvNeXtTiny ConvNeXtSmall ConvNeXtBase ConvNeXtLarge
    ConvNeXtXLarge NASNetMobile NASNetLarge
""".split()
SMALL = {"include_top": False, "input_shape": (64, 64, 3)}
OPTIONS = {
    "MobileNet": (
        {"alpha": 0.5, "depth_multiplier": 2, "dropout": 0.5, "classes": 7},
        {"alpha": 0.25, **SMALL, "pooling": "max"},
        {"input_shape": (128, 128, 1), "classifier_activation": None},
    ),
    "MobileNetV2": (
        {"alpha": 0.35, "input_shape": (96, 96, 3)},
        {"alpha": 1.4, "classes": 5},
        {**SMALL, "pooling": "max"},
    ),
    "MobileNetV3Small": (
        {"minimalistic": True, "dropout_rate": 0.0},
        {"alpha": 1.25, "include_preprocessing": False, "classes": 3},
        {"alpha": 0.75, **SMALL, "pooling": "max"},
    ),
    "MobileNetV3Large": (
        {"minimalistic": True, "include_top": False, "pooling": "avg"},
        {"input_shape": (96, 65, 3)},
    ),
    "ResNet50": ({**SMALL, "pooling": "max"}, {"classes": 4, "name": "own"}),
    "ResNet50V2": ({**SMALL, "pooling": "avg"},),
    "VGG16": ({"classes": 2, "input_shape": (32, 32, 1)}, {**SMALL, "pooling": "max"}),
    "DenseNet121": ({**SMALL, "pooling": "max"},),
    "Xception": ({"include_top": False, "pooling": "avg"},),
    "InceptionV3": ({"include_top": False, "pooling": "max"},),
    "EfficientNetB0": (
        {**SMALL, "pooling": "max"},
        {"input_shape": (33, 64, 1), "classes": 4, "classifier_activation": "relu"},
    ),
    "EfficientNetV2B0": (
        {"include_preprocessing": False, "classes": 9},
        {**SMALL, "input_shape": (64, 64, 1), "pooling": "avg"},
    ),
    "EfficientNetV2S": ({**SMALL, "pooling": "max"},),
    "ConvNeXtTiny": (
        {"include_preprocessing": False, "classes": 3, "name": "own"},
        {**SMALL, "pooling": "max"},
        {"input_shape": (32, 32, 1)},
    ),
    "NASNetMobile": ({**SMALL, "pooling": "max"}, {"input_shape": (65, 65, 3)}),
}
CASES = {
    f"{name} {arguments}".removesuffix(" {}"): (name, arguments)
    for name in VARIANTS
    for arguments in ({}, {"include_top": False}, *OPTIONS.get(name, ()))
}
# A network of each family, with the channels in front; in Keras ConvNeXt, DenseNet and
# NASNet refuse that.
FIRST = """
    MobileNet MobileNetV2 MobileNetV3Small MobileNetV3Large ResNet50 ResNet50V2 VGG16
    Xception InceptionV3 InceptionResNetV2 EfficientNetB0 EfficientNetV2B0
""".split()
# Arguments of networks with weights for ImageNet, each with the top and without.
IMAGES = {"input_shape": (224, 224, 3)}
WEIGHTS = {name: [IMAGES if name.startswith("Mobile") else {}] for name in VARIANTS}
WEIGHTS["MobileNet"] += [{"alpha": alpha, **IMAGES} for alpha in (0.25, 0.5, 0.75)]
WEIGHTS["MobileNet"] += [{"input_shape": (size, size, 3)} for size in (128, 160, 192)]
WEIGHTS["MobileNetV2"] += [{"alpha": alpha, **IMAGES} for alpha in (0.35, 0.5, 1.3)]
WEIGHTS["MobileNetV2"] += [{"input_shape": (size, size, 3)} for size in (96, 160)]
for name in ("MobileNetV3Small", "MobileNetV3Large"):
    WEIGHTS[name] += [{"alpha": 0.75, **IMAGES}, {"minimalistic": True, **IMAGES}]
# Arguments of layers in Keras that no network gives, and tapewright has not.
ABSENT = """
    activity_regularizer dtype input_axes optional output_axes quantization_config ragged
    renorm renorm_clipping renorm_momentum sparse
""".split()


def plain(value):
    """A config without the arguments that only one side has."""
    if isinstance(value, dict):
        dropped = [*ABSENT, "build_config", "registered_name"]
        found = {k: plain(v) for k, v in sorted(value.items()) if k not in dropped}
        if type(found.get("axis")) is int and "rms_scaling" in found:
            found["axis"] = [found["axis"]]  # of LayerNormalization
        return found
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")  # constants of ops are float32 in tapewright
    return value


def parts(model):
    """What the digests are of, part by part."""
    config = plain(model.get_config())
    layers = config["layers"]
    for layer in layers:
        for node in layer["inbound_nodes"]:
            kwargs = node["kwargs"].items()
            node["kwargs"] = {
                k: v for k, v in kwargs if v
            }  # drops defaults, such as mask=None
    return {
        "names": [(each["class_name"], each["name"]) for each in layers],
        "connections": [each["inbound_nodes"] for each in layers],
        "configs": [each["config"] for each in layers],
        "ends": [config[key] for key in ("name", "input_layers", "output_layers")],
        "shapes": [
            list(each._inbound_nodes[0].output_tensors[0].shape)
            for each in model.operations
        ],
        "weights": [
            # the layer and the weight: NASNet's paths in Keras begin with its cells
            ("/".join(w.path.split("/")[-2:]), list(w.shape), w.trainable)
            for w in model.weights
        ],
    }


def digests(model):
    """Numbers of layers, of parameters and of trainable ones, and a digest of each part."""
    texts = {key: json.dumps(value) for key, value in parts(model).items()}
    found = {k: hashlib.sha256(v.encode()).hexdigest()[:12] for k, v in texts.items()}
    trainable = sum(math.prod(map(int, w.shape)) for w in model.trainable_weights)
    return [len(model.layers), model.count_params(), trainable, *found.values()]


def build(keras, case):
    """A network of a fresh session, so that default names count from the start."""
    name, arguments = CASES[case]
    keras.backend.clear_session()
    return getattr(keras.applications, name)(weights=None, **arguments)


def build_first(keras, name):
    """A network with the channels in front, of images that are no squares."""
    keras.backend.clear_session()
    keras.config.set_image_data_format("channels_first")
    try:
        architecture = getattr(keras.applications, name)
        return architecture(weights=None, input_shape=(3, 96, 81), classes=10)
    finally:
        keras.config.set_image_data_format("channels_last")


def signatures(keras):
    return {
        name: [
            [p.name, p.default]
            for p in inspect.signature(
                getattr(keras.applications, name)
            ).parameters.values()
        ]
        for name in VARIANTS
    }


class Asked(Exception):
    """What `get_file` was asked for."""


def files(keras, name):
    """Name in the cache, URL and checksum of each file of weights; see `asking`."""
    found = []
    for arguments in WEIGHTS[name]:
        for include_top in (True, False):
            try:
                getattr(keras.applications, name)(include_top=include_top, **arguments)
            except Asked as asked:
                found.append(list(asked.args))
    return found


def asking(fname, origin, cache_subdir, file_hash=None):
    """Stand for `get_file`: no download, but `Asked`."""
    raise Asked(fname, origin, file_hash)


def zeros(keras):
    """Let random initializers of Keras return zeros, for speed."""
    random = importlib.import_module("keras.src.initializers.random_initializers")
    for cls in vars(random).values():
        if isinstance(cls, type) and cls.__module__ == random.__name__:
            cls.__call__ = lambda self, shape, dtype=None: keras.ops.zeros(shape, dtype)


def main():
    compare = "--compare" in sys.argv
    if compare:
        from tapewright import keras
        from tapewright.core.state.deferred_initialization import (
            deferred_initialization,
        )
    else:
        import keras

        zeros(keras)

    def made(case, part):
        blank = deferred_initialization(lambda *_: None) if compare else nullcontext()
        with blank:
            return part(build(keras, case))

    if "--show" in sys.argv:
        print(json.dumps(made(sys.argv[-1], parts), indent=1))
        return 0
    recorded = json.loads(FILE.read_text())["networks"] if compare else {}
    found, differing = {}, 0
    for case in CASES:
        start = time.perf_counter()
        found[case] = made(case, digests)
        seconds = time.perf_counter() - start
        differs = compare and found[case] != recorded[case]
        differing += differs
        note = "  DIFFERS" if differs else ""
        print(f"{case}: {found[case][:3]} {seconds:.2f} s{note}", flush=True)
    if compare:
        print(f"{differing} of {len(CASES)} differ")
        return differing
    utils = importlib.import_module("keras.src.utils.file_utils")
    utils.get_file = asking
    tables = {
        "signatures": signatures(keras),
        "files": {name: files(keras, name) for name in VARIANTS},
        "networks": found,
        "channels_first": {name: digests(build_first(keras, name)) for name in FIRST},
    }
    lines = [
        f'"{title}": {{\n'
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items())
        + "\n}"
        for title, table in tables.items()
    ]
    head = f'"keras": "{keras.version()}"'
    FILE.write_text("{\n" + ",\n".join([head, *lines]) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
