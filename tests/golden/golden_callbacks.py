"""Cases of callbacks: the files of `ModelCheckpoint`, and states of callbacks in backups."""

import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from golden_cases import Case, freshly, now, wave
from golden_checkpoints import Interrupt
from golden_models import after_training

import tapewright as tw

__all__ = ["CASES"]

keras, layers = tw.keras, tw.keras.layers


def line(seed, use_ema=False):
    freshly(seed)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(2, "tanh", name="a"),
            layers.Dense(1, name="b"),
        ],
        name="line",
    )
    model.compile(keras.optimizers.SGD(0.01, momentum=0.5, use_ema=use_ema), "mse")
    return model


# ------------------------------------------------------------------------- ModelCheckpoint


def write_best(folder):
    model = line(7)
    best = keras.callbacks.ModelCheckpoint(
        folder / "best.keras", "loss", save_best_only=True
    )
    last = keras.callbacks.ModelCheckpoint(
        folder / "last.weights.h5", "loss", save_weights_only=True, save_freq=4
    )
    model.fit(
        wave(14, 3),
        wave(14, 1),
        batch_size=4,
        epochs=3,
        callbacks=[best, last],
        verbose=0,
    )
    return model


def read_best(path):
    if path.suffix == ".keras":
        return keras.models.load_model(path)
    model = line(99)
    model.optimizer.build(model.trainable_variables)
    model.load_weights(path)
    return model


def of_best(model):
    told = now("kept/weights", model.weights) | now(
        "kept/slots", model.optimizer.variables
    )
    told["outputs"] = model.predict(wave(4, 3), verbose=0)
    return told | after_training(model, wave(4, 3), wave(4, 1))


# ------------------------------------------------------------------------- backups


class Steps:
    """Event files for TensorBoard, of which only the steps are kept."""

    def __init__(self):
        self.steps = []

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    def add_scalar(self, name, value, step):
        self.steps.append(step)


def watched(seed, folder=None, after=None):
    """Train with callbacks that keep a state under private names."""
    steps, c = Steps(), keras.callbacks
    with (
        tempfile.TemporaryDirectory() as work,
        patch("tapewright.summary.event_file.EventFile", steps),
    ):
        worst = c.ModelCheckpoint(
            f"{work}/worst.keras", "loss", save_best_only=True, mode="max"
        )
        told = [
            c.SwapEMAWeights(swap_on_epoch=True),
            worst,
            c.ModelCheckpoint(
                f"{work}/{{epoch}}-{{batch}}.weights.h5",
                save_weights_only=True,
                save_freq=3,
            ),
            c.TensorBoard(work, update_freq="batch"),
        ]
        if folder is not None:
            told.append(c.BackupAndRestore(folder, delete_checkpoint=False))
        told += [Interrupt(after)] if after else []
        model = line(seed, use_ema=True)
        model.fit(
            wave(14, 3), wave(14, 1), batch_size=4, epochs=4, callbacks=told, verbose=0
        )
        names = sorted([path.name for path in Path(work).glob("[234]-*.h5")])
    return model, names, worst.best, max(steps.steps)


def write_watched(folder):
    try:
        watched(7, folder / "callbacks", after=6)
    except KeyboardInterrupt:
        pass
    return watched(7)


def read_watched(path):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path.parent, copy := Path(folder) / "backup")
        return watched(99, copy)


def of_watched(result):
    model, names, best, step = result
    told = now("weights", model.weights) | now("slots", model.optimizer.variables)
    return told | {"files": names, "best": np.float32(best), "last step": step}


CASES = [
    Case("model_checkpoint", ["best.keras", "last.weights.h5"], write_best, read_best, of_best),
    Case("backup_callbacks", ["callbacks/latest.h5"], write_watched, read_watched, of_watched),
]  # fmt: skip
