"""Digit classification with fit
=============================

Classify handwritten digits with Keras: compile, fit, evaluate, predict.

::

    python examples/mnist_fit.py                  (about 6 s, 99 % on test)
    python examples/mnist_fit.py --data mnist     real images, downloaded once
    python examples/mnist_fit.py --data FOLDER    real images, from IDX files
    python examples/mnist_fit.py --eager          without tracing, for a debugger

A tenth of the training images is used for validation. When the validation loss stops
improving, a callback reduces the learning rate; if the loss still does not improve,
another one ends the training and restores the weights of the best epoch. With 1,500
synthetic digits, of which 1,350 are used for training, the test accuracy is 99 %. With
8,000 real ones, a split of MNIST's test files, it is 95.9 %, in the same time.

The script prints precision and recall per digit. If matplotlib is installed, it draws
the training curves, the confusion matrix and the misclassified images with the highest
confidence into ``out/mnist_fit_*.png``. Ctrl-C ends the training early: the current
results are printed and drawn, and the exit code is 130.
"""

# sphinx_gallery_thumbnail_number = 2
import argparse
import sys
from pathlib import Path

import numpy as np

import tapewright as tw
from tapewright import layers

# %%
# The network
# -----------


def network():
    """Map images ``[batch, 28, 28]`` in 0 ... 255 to probabilities of ten digits."""
    model = tw.Sequential(
        [
            tw.Input((28, 28)),
            layers.Rescaling(1 / 255),
            layers.Flatten(),
            layers.Dense(256, activation="relu"),
            layers.Dropout(0.4),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


# %%
# Training with callbacks
# -----------------------
#
# `ReduceLROnPlateau` reduces the learning rate when the validation loss stalls;
# `EarlyStopping` ends the training if that does not help.


def train(model, images, labels, epochs):
    """Train for at most ``epochs`` epochs; return False if interrupted by Ctrl-C."""
    slower = tw.callbacks.ReduceLROnPlateau(factor=0.3, patience=2)
    enough = tw.callbacks.EarlyStopping(patience=5, restore_best_weights=True)
    try:
        model.fit(
            images,
            labels,
            batch_size=128,
            epochs=epochs,
            validation_split=0.1,
            callbacks=[slower, enough],
        )
    except KeyboardInterrupt:
        return False
    return True


# %%
# Report and pictures
# -------------------


def report(labels, predicted):
    """Print precision, recall and F1 for each digit.

    Precision is the share of images predicted as the digit that show it, recall the
    share of images of the digit that are predicted as such, F1 their harmonic mean.
    """
    print("digit  precision  recall      F1  images")
    for digit in range(10):
        taken, own = predicted == digit, labels == digit
        right = np.sum(taken & own)
        precision, recall = right / max(np.sum(taken), 1), right / max(np.sum(own), 1)
        f1 = 2 * right / max(np.sum(taken) + np.sum(own), 1)
        print(f"{digit:5} {precision:10.1%} {recall:7.1%} {f1:7.1%} {np.sum(own):7}")


def draw(out, history, images, labels, chances):
    """Draw training curves, confusion matrix and the most confident mistakes."""
    predicted = chances.argmax(axis=1)
    mistakes = np.flatnonzero(predicted != labels)
    surest = mistakes[np.argsort(-chances[mistakes].max(axis=1))][:24]
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"mnist_fit_{name}.png" for name in ("curves", "matrix", "mistakes")]
    try:
        if history.epoch:  # empty if stopped in the first epoch
            history.plot(paths[0])
        tw.plot.confusion_matrix(labels, predicted, path=paths[1])
        if len(surest):
            tw.plot.images(
                images[surest], labels[surest], predicted[surest], path=paths[2]
            )
    except ImportError as error:
        print(f"no pictures: {error}")
        return
    print("wrote", *[path for path in paths if path.exists()])


# %%
# Data and command line
# ---------------------


def load(data):
    """Return images ``[n, 28, 28]`` and labels ``[n]``, for training and test."""
    note = ""
    if data == "digits":
        (images, labels), test_data = tw.datasets.digits.load_data()
        # With all training images, there are no mistakes.
        pairs = (images[:1500], labels[:1500]), test_data
    elif data == "mnist":
        pairs = tw.datasets.mnist.load_data()
    else:
        pairs, note = tw.datasets.mnist.load_folder(data)
    (x_train, _), (x_test, _) = pairs
    print(f"{data}: {len(x_train)} training, {len(x_test)} test images. {note}".strip())
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, mnist or a folder")
    parser.add_argument("--epochs", type=int, default=40, help="maximum number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    parser.add_argument("--eager", action="store_true", help="do not trace steps")
    args = parser.parse_args()

    tw.config.run_functions_eagerly(args.eager)
    tw.keras.utils.set_random_seed(args.seed)
    try:
        (x_train, y_train), (x_test, y_test) = load(args.data)
    except (OSError, ValueError) as error:
        parser.error(f"--data {args.data}: {error}")
    model = network()
    model.summary()
    finished = train(model, x_train, y_train, args.epochs)
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    chances = model.predict(x_test, verbose=0)
    report(y_test, chances.argmax(axis=1))
    state = "after the training" if finished else "stopped early"
    print(f"{state}: test loss {loss:.4f}, test accuracy {accuracy:.2%}")
    draw(args.out, model.history, x_test, y_test, chances)
    return 0 if finished else 130


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
