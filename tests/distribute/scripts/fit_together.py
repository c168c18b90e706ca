"""Checks of `fit`, `evaluate` and single batches on two workers."""

import tempfile

import numpy as np

import tapewright as tw
from tapewright import layers
from tapewright.keras import distribution

RANK = tw.distribute.rank()
X = np.random.default_rng(0).normal(size=(30, 4)).astype("f4")
Y = X.sum(1, keepdims=True)


def linear(**options):
    with tw.distribute.MultiWorkerMirroredStrategy().scope():
        model = tw.Sequential([tw.Input((4,)), layers.Dense(1)])
    model.compile(tw.optimizers.SGD(0.05, momentum=0.9), "mse", **options)
    return model


def check_same(*arrays):
    for array in arrays:
        everywhere = tw.distribute.all_gather(np.asarray(array).reshape(1, -1)).numpy()
        np.testing.assert_array_equal(everywhere[0], everywhere[1])


def the_variables_become_those_of_rank_0():
    model = linear()
    model.set_weights([np.full((4, 1), RANK + 1.0), np.zeros(1)])
    assert model.evaluate(X, Y, verbose=0) < 1e-6  # those of rank 0 are right
    model.optimizer.learning_rate = 0.05 + RANK
    model.set_weights([np.full((4, 1), RANK + 2.0), np.zeros(1)])
    model.fit(X, Y, epochs=2, verbose=0)
    check_same(*model.get_weights(), model.optimizer.learning_rate)


def orders_are_those_of_rank_0():
    seen = []

    class Seeing(tw.Sequential):
        def train_step(self, data):
            seen.append(data[0].numpy()[:, 0])
            return super().train_step(data)

    tw.random.set_seed(RANK)
    data = tw.data.Dataset.from_tensor_slices((X, Y)).shuffle(30).batch(8)
    with tw.distribute.MultiWorkerMirroredStrategy().scope():
        model = Seeing([tw.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    for options in ({"x": X, "y": Y, "batch_size": 8}, {"x": data}):
        tw.random.set_seed(RANK)
        seen.clear()
        model.fit(**options, epochs=2, verbose=0)
        assert [len(rows) for rows in seen] == [4, 4, 4, 3] * 2
        rows = tw.distribute.all_gather(np.concatenate(seen)).numpy()
        np.testing.assert_array_equal(np.sort(rows), np.sort(np.tile(X[:, 0], 2)))


class StopAt(tw.callbacks.Callback):
    """Stop rank 1 alone, after a step or an epoch; count the steps."""

    def __init__(self, step=None, epoch=None):
        super().__init__()
        self.step, self.epoch, self.steps = step, epoch, 0

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training |= bool(RANK) and epoch == self.epoch

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        self.model.stop_training |= bool(RANK) and self.steps == self.step

    def on_test_batch_end(self, batch, logs=None):
        self.model.stop_evaluating |= bool(RANK) and batch == 1


def all_stop_with_one():
    for stop, steps in ((StopAt(step=5), 5), (StopAt(epoch=1), 8)):
        model = linear()
        model.fit(X, Y, batch_size=8, epochs=9, verbose=0, callbacks=[stop])
        assert stop.steps == steps and model.stop_training
        model.evaluate(X, Y, batch_size=8, verbose=0, callbacks=[stop])
        assert model.stop_evaluating


def all_stop_with_one_as_an_epoch_begins():
    def stop(epoch, logs):
        model.stop_training |= bool(RANK) and epoch == 1

    model, callback = linear(), tw.callbacks.LambdaCallback(on_epoch_begin=stop)
    model.fit(X, Y, batch_size=8, epochs=9, verbose=0, callbacks=[callback])
    assert model.stop_training and int(model.optimizer.iterations) == 4 + 1


def a_training_that_one_has_stopped_stays_stopped_after_a_backup():
    for freq, position in ((1, {"step": 5}), ("epoch", {"epoch": 1})):
        folder = tempfile.mkdtemp()  # of rank 0
        results = []
        for _ in range(2):
            backup = tw.keras.callbacks.BackupAndRestore(
                folder, save_freq=freq, delete_checkpoint=False
            )
            model, callbacks = linear(), [StopAt(**position), backup]
            model.fit(X, Y, batch_size=8, epochs=9, verbose=0, callbacks=callbacks)
            results.append([*model.get_weights(), model.optimizer.iterations.numpy()])
            assert model.stop_training
        np.testing.assert_equal(*results)


def single_batches_are_parts_of_one():
    own = slice(0, 20) if RANK == 0 else slice(20, 30)
    model, alone = linear(metrics=["mae"]), linear(metrics=["mae"])
    weights = model.get_weights()
    for _ in range(3):
        logs = model.train_on_batch(X[own], Y[own])
    final = model.test_on_batch(X[own], Y[own], return_dict=True)
    check_same(*weights, *model.get_weights(), logs, list(final.values()))
    alone.set_weights(weights)
    alone.fit(X, Y, batch_size=30, epochs=3, verbose=0)
    for one, other in zip(model.get_weights(), alone.get_weights()):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(alone.test_on_batch(X, Y), list(final.values()), 1e-5)
    try:
        model.test_on_batch(X[: 5 * RANK], Y[: 5 * RANK])
        raise AssertionError
    except ValueError as error:
        assert "[0, 5]" in str(error)


def workers_bring_batches_of_their_own():
    wholes = [slice(0, 8), slice(8, 16), slice(16, 22), slice(22, 30)]
    parts = [slice(0, 3), slice(8, 9), slice(16, 22), slice(22, 30)]
    if RANK:  # which has no row of the third batch, and no fourth one
        parts = [slice(3, 8), slice(9, 16), slice(22, 22)]
    spec = tw.TensorSpec((None, 4)), tw.TensorSpec((None, 1))

    def logs_and_weights(batches):
        data = tw.data.Dataset.from_generator(
            lambda: [(X[rows], Y[rows]) for rows in batches], output_signature=spec
        )
        model = tw.Sequential([tw.Input((4,)), layers.Dense(1)])
        model.set_weights([np.ones((4, 1)), np.ones(1)])
        model.compile(tw.optimizers.SGD(0.05, momentum=0.9), "mse", metrics=["mae"])
        history = model.fit(data, epochs=3, verbose=0).history
        return [*history.values(), *model.get_weights()]

    with distribution.DataParallel(auto_shard_dataset=False).scope():
        together = logs_and_weights(parts)
    check_same(*together)
    for one, other in zip(together, logs_and_weights(wholes)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def divided_data_sets_are_not_divided_again():
    strategy = tw.distribute.MultiWorkerMirroredStrategy()
    data = tw.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    model = linear()
    whole = model.evaluate(data, verbose=0)
    assert model.evaluate(X, Y, batch_size=8, verbose=0) == whole
    parts = strategy.experimental_distribute_dataset(data)
    assert model.evaluate(parts, verbose=0) == whole
    parts = strategy.distribute_datasets_from_function(
        lambda context: data.unbatch().shard(2, context.input_pipeline_id).batch(4)
    )
    np.testing.assert_allclose(
        model.evaluate(parts.prefetch(1), verbose=0), whole, 1e-6
    )


def a_model_without_a_strategy_trains_alone():
    model = tw.Sequential([tw.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X[: 10 + RANK], Y[: 10 + RANK], verbose=0, epochs=1 + RANK)


the_variables_become_those_of_rank_0()
orders_are_those_of_rank_0()
all_stop_with_one()
all_stop_with_one_as_an_epoch_begins()
a_training_that_one_has_stopped_stays_stopped_after_a_backup()
single_batches_are_parts_of_one()
workers_bring_batches_of_their_own()
divided_data_sets_are_not_divided_again()
a_model_without_a_strategy_trains_alone()
