"""Train with a sharded optimizer, save in all formats, or load and go on.

    mpiexec -n 2 python sharded_files.py (save|load) FOLDER

After "load" the file ``FOLDER/outcomes.npz`` has the weights after all steps by the format
that was loaded in between, and those of an uninterrupted training as "whole".
"""

import sys
from pathlib import Path

import numpy as np

import tapewright as tw

random = np.random.default_rng(2)
X, Y = (
    random.normal(size=(12, 5)).astype("f4"),
    random.normal(size=(12, 3)).astype("f4"),
)
keras = tw.keras


def make():
    keras.utils.set_random_seed(4)
    with keras.distribution.DataParallel(shard_optimizer=True).scope():
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(7, "tanh")])
        model.add(keras.layers.Dense(3))
        optimizer = keras.optimizers.Adam(0.05, amsgrad=True, global_clipnorm=0.5)
        model.compile(optimizer, "mse")
    return model


def fit(model, *callbacks):
    epochs = {"epochs": 2, "shuffle": False, "verbose": 0}
    model.fit(X, Y, batch_size=6, callbacks=[*callbacks], **epochs)
    return np.concatenate([w.ravel() for w in model.get_weights()])


def save(folder):
    model = make()
    fit(model, keras.callbacks.ModelCheckpoint(folder / "callback.keras"))
    model.save(folder / "keras.keras")
    model.save(folder / "h5.h5")
    model.save_weights(folder / "weights.weights.h5")
    checkpoint = tw.train.Checkpoint(model=model)
    checkpoint.save(folder / "checkpoint")
    manager = tw.train.CheckpointManager(checkpoint, folder / "managed", 1)
    for _ in range(2):
        manager.save()
    if tw.distribute.rank() == 0:
        assert len(list((folder / "managed").iterdir())) == 1


def loaded(folder):
    """Yield the names of formats, with a model whose state was loaded."""
    for name in ("keras.keras", "h5.h5"):
        with keras.distribution.DataParallel(shard_optimizer=True).scope():
            yield name.split(".")[0], keras.models.load_model(folder / name)
    model = make()
    model.optimizer.build(model.trainable_variables)
    model.load_weights(folder / "weights.weights.h5")
    yield "weights", model
    for name, path in (("checkpoint", folder), ("manager", folder / "managed")):
        model = make()
        model.optimizer.build(model.trainable_variables)
        found = tw.train.latest_checkpoint(path)
        tw.train.Checkpoint(model=model).restore(
            found
        ).assert_existing_objects_matched()
        yield name, model
    with keras.distribution.DataParallel(shard_optimizer=True).scope():
        yield "callback", keras.models.load_model(folder / "callback.keras")


def main(what, folder):
    folder = Path(folder)
    if what == "save":
        save(folder)
        return
    model = make()
    fit(model)
    outcomes = {"whole": fit(model)}
    outcomes |= {name: fit(model) for name, model in loaded(folder)}
    if tw.distribute.rank() == 0:
        np.savez(folder / "outcomes.npz", **outcomes)


if __name__ == "__main__":
    main(*sys.argv[1:])
