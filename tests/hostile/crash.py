"""Kills a process that saves again and again, at random moments, and reads what is there.

    python tests/hostile/crash.py [KILLS] [FOLDER]

Each process writes files of all kinds over those of the one before: a checkpoint, weights,
whole models. After each kill every file must be whole, and of one save: all its numbers
are the same, and no smaller than before.
"""

import gc
import os
import random
import signal
import sys
import tempfile
import time
import warnings

import numpy as np

import tapewright as tw

SIZES = (64, 256, 32)


def make():
    layers = [tw.keras.layers.Dense(n) for n in SIZES[1:]]
    model = tw.keras.Sequential([tw.keras.Input((SIZES[0],)), *layers])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def fill(model, number):
    for variable in model.weights:
        variable.assign(np.full(variable.shape, number, "float32"))


def places(folder):
    return {
        "checkpoint": os.path.join(folder, "ckpt.h5"),
        "weights": os.path.join(folder, "model.weights.h5"),
        "whole": os.path.join(folder, "model.h5"),
        "zip": os.path.join(folder, "model.keras"),
    }


def save_all(model, folder, number):
    """One round: all files, full of this number."""
    paths = places(folder)
    checkpoint = tw.train.Checkpoint(model=model)
    fill(model, number)
    checkpoint.write(paths["checkpoint"])
    model.save_weights(paths["weights"])
    model.save(paths["whole"])
    model.save(paths["zip"])
    tw.train.CheckpointManager(checkpoint, os.path.join(folder, "many"), 2).save()


def save_for_ever(model, folder, number):
    """The process that is killed."""
    while True:
        number += 1
        save_all(model, folder, number)


def numbers(model, folder):
    """What each file holds, by reading all of it."""
    paths, found = places(folder), {}
    if os.path.exists(paths["checkpoint"]):
        fill(model, -1)
        tw.train.Checkpoint(model=model).read(paths["checkpoint"]).assert_consumed()
        found["checkpoint"] = only_number(model)
    if os.path.exists(paths["weights"]):
        fill(model, -1)
        model.load_weights(paths["weights"])
        found["weights"] = only_number(model)
    for kind in ("whole", "zip"):
        if os.path.exists(paths[kind]):
            found[kind] = only_number(tw.keras.models.load_model(paths[kind]))
    fill(model, -1)
    manager = tw.train.CheckpointManager(
        tw.train.Checkpoint(model=model), os.path.join(folder, "many"), 2
    )
    if manager.restore_or_initialize():
        found["many"] = only_number(model)
    return found


def only_number(model):
    values = {float(x) for v in model.weights for x in np.unique(v.numpy())}
    assert len(values) == 1, f"numbers of several saves in one file: {values}"
    return values.pop()


def kill_one(model, folder, number, delay):
    """A process that saves, killed after so many seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; ours are idle
        process = os.fork()
    if not process:
        try:
            save_for_ever(model, folder, number)
        finally:
            os._exit(1)  # never reached, but for an error
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status), "the process ended by itself, with an error"


def main(kills=50, folder=None):
    warnings.simplefilter("error")  # a damaged file is warned of
    with tempfile.TemporaryDirectory() as own:
        folder, model = folder or own, make()
        gc.freeze()  # or each collection would look at all that was imported
        save_all(model, folder, 1)  # the first one takes longer
        began = time.perf_counter()
        save_all(model, folder, 2)
        longest = 1.25 * (time.perf_counter() - began)
        before, chances = numbers(model, folder), random.Random(0)
        for _ in range(kills):
            number = max(before.values())
            kill_one(model, folder, number, chances.uniform(0, longest))
            found = numbers(model, folder)
            assert before.keys() == found.keys(), "a file is gone"
            assert all(found[k] >= before[k] for k in before), "an older file is back"
            before = found
        left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    saves = int(max(before.values()))
    print(f"{kills} kills in {saves} rounds of saving: every file was whole each time")
    print(f"{len(left)} temporary files were left by killed processes")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
