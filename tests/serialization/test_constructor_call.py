"""`constructor_call`: objects in print as the call that makes them."""

import inspect

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import callbacks, initializers, losses, optimizers


def test_only_what_differs_from_the_defaults_is_shown():
    assert repr(optimizers.Adam()) == "Adam()"
    assert repr(optimizers.Adam(0.01, clipnorm=1.0)) == (
        "Adam(learning_rate=0.01, clipnorm=1.0)"
    )
    assert repr(losses.MeanSquaredError()) == "MeanSquaredError()"


@pytest.mark.parametrize("rate", [0.1, 0.3, 1e-5, 1 / 3])
def test_a_number_in_single_precision_has_no_more_digits_than_it_holds(rate):
    shown = str(np.float32(rate))
    assert repr(optimizers.SGD(rate)) == f"SGD(learning_rate={shown})"


def test_an_argument_without_a_default_is_shown():
    schedule = optimizers.schedules.CosineDecay(0.1, 1000)
    shown = "CosineDecay(initial_learning_rate=0.1, decay_steps=1000)"
    assert repr(schedule) == shown
    assert repr(optimizers.SGD(schedule)) == f"SGD(learning_rate={shown})"


def test_a_function_is_shown_by_its_name():
    assert repr(optimizers.Adam(lambda: 0.1)) == "Adam(learning_rate=<lambda>)"
    rounds = callbacks.LearningRateScheduler(schedule=round)
    assert repr(rounds) == "LearningRateScheduler(schedule=round)"


def test_names_made_from_the_class_are_not_shown():
    first, second = optimizers.Adam(), optimizers.Adam()
    assert first.name != second.name and repr(first) == repr(second)
    assert repr(optimizers.Adam(name="slow")) == "Adam(name='slow')"


def test_an_optimizer_inside_of_another_is_shown():
    scaled = optimizers.LossScaleOptimizer(optimizers.Adam(0.5), initial_scale=8.0)
    assert repr(scaled) == (
        "LossScaleOptimizer(inner_optimizer=Adam(learning_rate=0.5), initial_scale=8.0)"
    )


def test_long_values_are_shortened():
    assert repr(initializers.Constant(np.zeros([3, 4]))) == (
        "Constant(value=<array (3, 4)>)"
    )
    assert repr(initializers.Constant(list(range(9)))) == (
        "Constant(value=[0, 1, 2, 3, 4, 5, ...])"
    )
    text = repr(callbacks.CSVLogger("a" * 200))
    assert len(text) < 110 and text.endswith("...')")


def test_arguments_that_a_users_class_does_not_keep_are_shown():
    class Slow(optimizers.SGD):
        def __init__(self, learning_rate=0.1, factor=2.0, **options):
            super().__init__(learning_rate / factor, **options)

    assert repr(Slow(1.0, factor=4.0)) == "Slow(learning_rate=0.25, factor=4.0)"


def test_users_callbacks_are_shown_by_the_arguments_that_they_keep():
    class Saver(callbacks.Callback):
        def __init__(self, folder, every=1):
            super().__init__()
            self.folder, self._every = folder, every

    assert repr(Saver("here", every=3)) == "Saver(folder='here')"


def test_of_a_lambda_callback_the_hooks_that_were_given_are_shown():
    shown = repr(callbacks.LambdaCallback(on_epoch_end=print))
    assert shown == "LambdaCallback(on_epoch_end=print)"


def test_options_show_what_was_set():
    options = tw.data.Options()
    assert repr(options) == "Options()"
    options.deterministic = False
    options.threading.private_threadpool_size = 3
    threads = "ThreadingOptions(private_threadpool_size=3)"
    assert repr(options) == f"Options(deterministic=False, threading={threads})"


NAMESPACES = [
    callbacks, initializers, losses, optimizers, optimizers.schedules, keras.metrics,
    keras.regularizers, keras.constraints, keras.layers, keras.models, keras.utils,
    tw.data, tw.train, tw.lookup, tw.queue,
]  # fmt: skip
# Constants by name, contexts, and initializers of tables, which are looked at by tables.
WITHOUT = {"Reduction", "Optional", "CustomObjectScope", "TextFileIndex",
           "KeyValueTensorInitializer", "TextFileInitializer"}  # fmt: skip


@pytest.mark.parametrize("space", NAMESPACES, ids=lambda space: space.__name__)
def test_no_public_class_shows_an_address(space):
    names = space.__all__ if "__all__" in dir(space) else dir(space)
    things = [getattr(space, name) for name in names if name[:1].isupper()]
    classes = [x for x in things if inspect.isclass(x) and x.__name__ not in WITHOUT]
    plain = [c.__name__ for c in classes if c.__repr__ is object.__repr__]
    assert classes and not plain
