"""Writes ``callbacks.json``: what Keras' callbacks do with made-up values of epochs.

Needs Keras 3, which tapewright does not:

    KERAS_BACKEND=numpy python tests/keras/reference/record_callbacks.py

`drive` leads one callback through epochs whose losses are written down here, with a model
that only notes what is done to it.
"""

import json
import pathlib
import tempfile

FALLING = [1.0, 0.8, 0.7, 0.71, 0.69, 0.695, 0.7, 0.72, 0.5, 0.6]
FLAT = [1.0, 0.9999, 0.9998, 0.9997, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
RISING = [0.1, 0.3, 0.2, 0.25, 0.4, 0.35, 0.3, 0.39, 0.2, 0.41]

# name of the case: class, its arguments, values by epoch
CASES = {
    "stop": ("EarlyStopping", {}, FALLING),
    "stop patient": ("EarlyStopping", {"patience": 2}, FALLING),
    "stop restore": (
        "EarlyStopping",
        {"patience": 3, "restore_best_weights": True},
        FALLING,
    ),
    "stop delta": ("EarlyStopping", {"min_delta": -0.05, "patience": 2}, FALLING),
    "stop max": ("EarlyStopping", {"mode": "max", "patience": 2}, RISING),
    "stop baseline": (
        "EarlyStopping",
        {"baseline": 0.75, "patience": 2, "restore_best_weights": True},
        FALLING,
    ),
    "stop hopeless": (
        "EarlyStopping",
        {"baseline": 0.01, "patience": 4, "restore_best_weights": True},
        FALLING,
    ),
    "stop late": ("EarlyStopping", {"start_from_epoch": 5, "patience": 1}, FALLING),
    "reduce": ("ReduceLROnPlateau", {"patience": 1}, FALLING),
    "reduce delta": ("ReduceLROnPlateau", {"patience": 2, "min_delta": 0.01}, FLAT),
    "reduce cooldown": (
        "ReduceLROnPlateau",
        {"patience": 1, "cooldown": 2, "factor": 0.5},
        FLAT,
    ),
    "reduce least": (
        "ReduceLROnPlateau",
        {"patience": 1, "factor": 0.5, "min_lr": 0.02},
        FLAT,
    ),
    "reduce max": ("ReduceLROnPlateau", {"patience": 2, "mode": "max"}, RISING),
    "save": (
        "ModelCheckpoint",
        {"filepath": "{epoch:02d}-{val_loss:.2f}.weights.h5"},
        FALLING,
    ),
    "save best": (
        "ModelCheckpoint",
        {"filepath": "{epoch}.weights.h5", "save_best_only": True},
        FALLING,
    ),
    "save best of a threshold": (
        "ModelCheckpoint",
        {
            "filepath": "{epoch}.weights.h5",
            "save_best_only": True,
            "initial_value_threshold": 0.7,
        },
        FALLING,
    ),
    "save highest": (
        "ModelCheckpoint",
        {"filepath": "{epoch}.weights.h5", "save_best_only": True, "mode": "max"},
        RISING,
    ),
    "save every fifth batch": (
        "ModelCheckpoint",
        {"filepath": "{epoch}-{batch}-{loss:.1f}.weights.h5", "save_freq": 5},
        FALLING,
    ),
    "csv": ("CSVLogger", {"filename": "log.csv"}, FALLING[:3]),
    "csv tabs": ("CSVLogger", {"filename": "log.csv", "separator": "\t"}, FLAT[:2]),
}
BATCHES = 3


class Model:
    """Notes what callbacks do; its one weight is the number of the epoch."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.stop_training = False
        self.weight = -1
        self.saved = []

    def get_weights(self):
        return [self.weight]

    def set_weights(self, weights):
        (self.weight,) = weights

    def save_weights(self, path, overwrite=True):
        self.saved.append(pathlib.Path(path).name)


def drive(callbacks, case, optimizer, folder):
    """What one callback did: ``callbacks`` is Keras' module or ours."""
    name, arguments, values = CASES[case]
    arguments = dict(arguments)
    for key in ("filepath", "filename"):
        if key in arguments:
            arguments[key] = f"{folder}/{arguments[key]}"
    if name == "ModelCheckpoint":
        arguments["save_weights_only"] = True
    callback = getattr(callbacks, name)(**arguments)
    model = Model(optimizer)
    callback.set_model(model)
    callback.set_params({"epochs": len(values), "steps": BATCHES, "verbose": 0})
    rates = []
    callback.on_train_begin({})
    for epoch, value in enumerate(values):
        callback.on_epoch_begin(epoch, {})
        for batch in range(BATCHES):
            callback.on_train_batch_begin(batch, {})
            callback.on_train_batch_end(batch, {"loss": value + batch})
        model.weight = epoch
        callback.on_epoch_end(epoch, {"loss": value / 2, "val_loss": value})
        rates.append(round(float(optimizer.learning_rate), 7))
        if model.stop_training:
            break
    callback.on_train_end({})
    found = {"rates": rates, "saved": model.saved, "weight": model.weight}
    for key in ("best", "best_epoch", "stopped_epoch", "wait"):
        if hasattr(callback, key):
            found[key] = getattr(callback, key)
    if name == "CSVLogger":
        found["text"] = pathlib.Path(arguments["filename"]).read_bytes().decode()
    return found


def main():
    import keras

    found = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            optimizer = keras.optimizers.SGD(0.1)
            found[case] = drive(keras.callbacks, case, optimizer, folder)
    target = pathlib.Path(__file__).parent / "callbacks.json"
    target.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{target}: {len(found)} cases, Keras {keras.__version__}")


if __name__ == "__main__":
    main()
