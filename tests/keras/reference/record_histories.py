"""Records what Keras' `fit` makes of the models in `histories.py`.

    KERAS_BACKEND=jax python tests/keras/reference/record_histories.py

Needs Keras 3 with JAX, not tapewright: on TensorFlow, Keras squares the rows of sparse
gradients one by one, and so departs from the papers. Writes ``histories.npz`` beside
itself: for each model the initial weights, the loss and metrics of three epochs without
shuffling, the weights after them and the predictions for the first inputs. With
``--compare`` nothing is written: tapewright runs beside Keras, from the same weights, and
the largest differences are printed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from histories import MODELS  # noqa: E402

EPOCHS = 3


def first_rows(x, count=5):
    if isinstance(x, dict):
        return {key: value[:count] for key, value in x.items()}
    return x[:count]


def trained(keras, name, weights=None):
    """What training gives, as a dict of arrays."""
    keras.utils.set_random_seed(7)
    model, arguments = MODELS[name](keras)
    if weights is not None:
        model.set_weights(weights)
    found = {f"initial/{i}": np.asarray(w) for i, w in enumerate(model.get_weights())}
    history = model.fit(**arguments, epochs=EPOCHS, shuffle=False, verbose=0)
    found |= {f"history/{key}": np.array(v) for key, v in history.history.items()}
    found |= {f"final/{i}": np.asarray(w) for i, w in enumerate(model.get_weights())}
    outputs = model.predict(first_rows(arguments["x"]), verbose=0)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    return found | {f"outputs/{i}": np.asarray(y) for i, y in enumerate(outputs)}


def compare(keras):
    import tapewright

    for name in MODELS:
        theirs = trained(keras, name)
        weights = [theirs[k] for k in theirs if k.startswith("initial/")]
        ours = trained(tapewright.keras, name, weights)
        assert sorted(ours) == sorted(theirs), (sorted(ours), sorted(theirs))
        for part in ("history", "final", "outputs"):
            keys = [k for k in theirs if k.startswith(part)]
            worst = max(keys, key=lambda k: np.abs(ours[k] - theirs[k]).max())
            largest = np.abs(ours[worst] - theirs[worst]).max()
            print(f"{name:12} {part:8} largest difference {largest:.1e} ({worst})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", action="store_true", help="run tapewright beside")
    arguments = parser.parse_args()
    import keras

    if arguments.compare:
        compare(keras)
        return
    found = {}
    for name in MODELS:
        found |= {f"{name}/{k}": v for k, v in trained(keras, name).items()}
        print(name, found[f"{name}/history/loss"])
    np.savez_compressed(Path(__file__).parent / "histories.npz", **found)


if __name__ == "__main__":
    main()
