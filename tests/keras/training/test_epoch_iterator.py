"""Epochs of sources that end early, late or never."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.training.epoch_iterator import EpochIterator

from .small_models import linear


def test_generators_need_steps_and_go_on_from_epoch_to_epoch(data):
    seen = []

    def batches():
        i = 0
        while True:
            seen.append(i)
            yield data[0][:8], data[1][:8]
            i += 1

    linear().fit(batches(), steps_per_epoch=3, epochs=2, verbose=0)
    assert seen[:6] == [0, 1, 2, 3, 4, 5]


def test_a_generator_that_ends_early_ends_the_training_with_a_word(data):
    model = linear()
    batches = ((data[0][:8], data[1][:8]) for _ in range(4))
    with pytest.warns(UserWarning, match="ran out") as caught:
        history = model.fit(batches, steps_per_epoch=3, epochs=5, verbose=0)
    assert caught[0].filename == __file__
    assert len(history.history["loss"]) == 2
    assert history.epoch == [0, 1]


def test_a_data_set_that_is_short_of_steps_begins_again(data):
    """As in Keras: three batches, the fourth, three, the fourth."""
    dataset = tw.data.Dataset.from_tensor_slices(data).batch(10)
    steps = []
    count = tw.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: steps.append(step)
    )
    with pytest.warns(UserWarning, match="ran out"):
        linear().fit(dataset, steps_per_epoch=3, epochs=4, verbose=0, callbacks=[count])
    assert steps == [0, 1, 2, 0, 0, 1, 2, 0]


@pytest.mark.parametrize("repeat", [False, True])
def test_each_validation_of_some_steps_sees_the_same_batches(data, repeat):
    dataset = tw.data.Dataset.from_tensor_slices(data).batch(10)
    model = linear()
    model.optimizer.learning_rate = 0.0
    history = model.fit(
        *data,
        epochs=2,
        validation_data=dataset.repeat() if repeat else dataset,
        validation_steps=3,
        verbose=0,
    )
    first, second = history.history["val_loss"]
    expected = model.evaluate(data[0][:30], data[1][:30], verbose=0)
    assert first == second == pytest.approx(expected)


class StopAfter(tw.keras.callbacks.Callback):
    def __init__(self, count):
        super().__init__()
        self.count, self.seen = count, 0

    def _note(self, flag):
        self.seen += 1
        if self.seen == self.count:
            setattr(self.model, flag, True)

    def on_test_batch_end(self, batch, logs=None):
        self._note("stop_evaluating")

    def on_predict_batch_end(self, batch, logs=None):
        self._note("stop_predicting")


def endless(*arrays):
    while True:
        yield arrays


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_evaluate_and_predict_end_when_they_are_told_to(run_eagerly):
    model, x, y = linear(run_eagerly=run_eagerly), np.ones((2, 3)), np.ones((2, 1))
    for count in (3, 1):  # what was set before does not count
        stop = StopAfter(count)
        model.evaluate(endless(x, y), callbacks=[stop], verbose=0)
        assert stop.seen == count and model.stop_evaluating
        stop = StopAfter(count)
        outputs = model.predict(endless(x), callbacks=[stop], verbose=0)
        assert stop.seen == count and len(outputs) == 2 * count
    stop = StopAfter(2)  # in the evaluations of fit
    model.fit(x, y, validation_data=endless(x, y), callbacks=[stop], verbose=0)
    assert stop.seen == 2


def numbers():
    return tw.data.Dataset.range(4).batch(1)


def test_an_epoch_without_steps_that_was_broken_off_is_followed_by_a_whole_pass():
    batches = EpochIterator(numbers())
    assert int(next(iter(batches))) == 0
    assert [int(x) for x in batches] == [0, 1, 2, 3]


def test_an_epoch_of_some_steps_that_was_broken_off_is_followed_by_the_rest():
    batches = EpochIterator(numbers(), steps=2)
    assert int(next(iter(batches))) == 0
    assert [int(x) for x in batches] == [1, 2]


def test_a_reset_forgets_an_epoch_that_was_restored():
    batches = EpochIterator(numbers(), steps=2)
    assert int(next(iter(batches))) == 0
    other = EpochIterator(numbers(), steps=2)
    other.restore(batches.state())
    other.reset()
    assert [int(x) for x in other] == [0, 1]


def test_a_pass_that_ended_with_its_epoch_is_not_gone_through_to_restore_it():
    """A loader would have to make all of its batches."""
    made = []

    class Loader:
        def __len__(self):
            return 3

        def __iter__(self):
            for i in range(3):
                made.append(i)
                yield np.full((1, 1), i, "f4")

    batches = EpochIterator(Loader(), steps=3)
    list(batches)
    state = batches.state()
    del made[:]
    batches.restore(state)
    assert made == [] and len(list(batches)) == 3 == len(made)
