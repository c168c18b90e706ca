"""`TensorBoard`: event files, read by TensorBoard's own reader."""

import json
import sys

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tapewright as tw
from tapewright.keras.callbacks import CallbackList, TensorBoard


class Weight:
    def __init__(self, path, values):
        self.path, self.values = path, np.asarray(values, np.float32)

    def numpy(self):
        return self.values


class Layer:
    def __init__(self, *weights):
        self.weights = list(weights)


class Model:
    """As much of a model as the callback needs."""

    def __init__(self, *weights):
        self.optimizer = tw.optimizers.SGD(0.25)
        self.layers = [Layer(*weights)]
        self.stop_training = False

    def summary(self, print_fn=print):
        print_fn("Model: three\nlines of\ntext")


def fit(callback, model=None, epochs=2, batches=3):
    variable = tw.Variable(1.0)
    model = model or Model()
    callbacks = CallbackList(callback, model=model, epochs=epochs, steps=batches)
    try:
        callbacks.on_train_begin()
        for epoch in range(epochs):
            callbacks.on_epoch_begin(epoch)
            for batch in range(batches):
                callbacks.on_train_batch_begin(batch)
                model.optimizer.apply([tw.constant(0.0)], [variable])
                callbacks.on_train_batch_end(batch, {"loss": tw.constant(batch + 0.5)})
            callbacks.on_test_begin()
            callbacks.on_test_end({"loss": 2.0})
            logs = {"loss": 1.0 / (epoch + 1), "val_loss": 2.0, "matrix": np.eye(2)}
            callbacks.on_epoch_end(epoch, logs)
        callbacks.on_train_end()
    finally:
        callbacks.on_close()
    return model


def events(path):
    everything = dict.fromkeys(("images", "histograms", "scalars"), 0)
    return EventAccumulator(str(path), size_guidance=everything).Reload()


def scalars(path, tag):
    return [(e.step, round(e.value, 5)) for e in events(path).Scalars(tag)]


def test_values_of_epochs_have_the_tags_of_keras(tmp_path):
    fit(TensorBoard(tmp_path))
    train, validation = events(tmp_path / "train"), events(tmp_path / "validation")
    assert sorted(train.Tags()["scalars"]) == ["epoch_learning_rate", "epoch_loss"]
    assert sorted(validation.Tags()["scalars"]) == [
        "epoch_loss",
        "evaluation_loss_vs_iterations",
    ]
    assert scalars(tmp_path / "train", "epoch_loss") == [(0, 1.0), (1, 0.5)]
    assert scalars(tmp_path / "train", "epoch_learning_rate") == [(0, 0.25), (1, 0.25)]
    assert scalars(tmp_path / "validation", "epoch_loss") == [(0, 2.0), (1, 2.0)]
    by_iteration = scalars(tmp_path / "validation", "evaluation_loss_vs_iterations")
    assert by_iteration == [(3, 2.0), (6, 2.0)]


@pytest.mark.parametrize(
    ("freq", "steps"), [("batch", [1, 2, 3, 4, 5, 6]), (1, [1, 2, 3, 4, 5, 6]), (2, [2, 4, 6])]
)  # fmt: skip
def test_values_of_batches_come_as_often_as_asked(tmp_path, freq, steps):
    fit(TensorBoard(tmp_path, update_freq=freq))
    found = scalars(tmp_path / "train", "batch_loss")
    assert found == [(step, (step - 1) % 3 + 0.5) for step in steps]


def test_by_epoch_no_batches_are_wanted(tmp_path):
    assert not CallbackList(TensorBoard(tmp_path))._tw_wants_train_batches
    assert CallbackList(TensorBoard(tmp_path, update_freq=2))._tw_wants_train_batches


def test_speed_is_written_by_epoch_and_batch(tmp_path):
    fit(TensorBoard(tmp_path, write_steps_per_second=True, update_freq=1))
    for tag, count in (("epoch_steps_per_second", 2), ("batch_steps_per_second", 6)):
        found = events(tmp_path / "train").Scalars(tag)
        assert len(found) == count and all(e.value > 0 for e in found)


def test_weights_are_histograms(tmp_path):
    kernel = Weight("dense/kernel", [[1.0, 2.0], [3.0, 4.0]])
    model = Model(kernel, Weight("dense/bias", [0.0, 0.0]))
    fit(TensorBoard(tmp_path, histogram_freq=2), model, epochs=3)
    train = events(tmp_path / "train")
    assert sorted(train.Tags()["histograms"]) == [
        "dense/bias/histogram",
        "dense/kernel/histogram",
    ]
    found = train.Histograms("dense/kernel/histogram")
    assert [e.step for e in found] == [0, 2]
    value = found[0].histogram_value
    assert (value.min, value.max, value.num, value.sum) == (1.0, 4.0, 4.0, 10.0)


def test_weights_are_images(tmp_path):
    model = Model(
        Weight("dense/kernel", np.arange(6).reshape(2, 3)),
        Weight("tall/kernel", np.arange(12).reshape(4, 3)),
        Weight("conv/kernel", np.arange(90).reshape(3, 3, 1, 10)),
        Weight("dense/bias", np.zeros(5)),
        Weight("scale", 2.0),
    )
    fit(TensorBoard(tmp_path, histogram_freq=1, write_images=True), model, epochs=1)
    train = events(tmp_path / "train")
    sizes = {
        tag: (train.Images(tag)[0].height, train.Images(tag)[0].width)
        for tag in train.Tags()["images"]
    }
    assert sizes == {
        "conv/kernel/image/0": (3, 3),
        "conv/kernel/image/1": (3, 3),
        "conv/kernel/image/2": (3, 3),
        "dense/bias/image": (1, 5),
        "dense/kernel/image": (2, 3),
        "scale/image": (1, 1),
        "tall/kernel/image": (3, 4),
    }


def test_an_image_is_black_at_the_least_and_white_at_the_largest_entry(tmp_path):
    import io

    from PIL import Image

    model = Model(Weight("kernel", [[-1.0, 0.0, 3.0], [1.0, 1.0, 1.0]]))
    fit(TensorBoard(tmp_path, histogram_freq=1, write_images=True), model, epochs=1)
    (event,) = events(tmp_path / "train").Images("kernel/image")
    picture = np.asarray(
        Image.open(io.BytesIO(event.encoded_image_string)).convert("L")
    )
    np.testing.assert_allclose(picture, [[0, 64, 255], [127, 127, 127]], atol=1)


@pytest.mark.parametrize("write_graph", [True, False])
def test_the_summary_of_the_model_is_text(tmp_path, write_graph):
    fit(TensorBoard(tmp_path, write_graph=write_graph))
    train = events(tmp_path / "train")
    assert ("model" in train.Tags()["tensors"]) == write_graph
    if write_graph:
        (text,) = train.Tensors("model")[0].tensor_proto.string_val
        assert text.decode() == "    Model: three\n    lines of\n    text"


def test_profiled_batches_are_a_trace(tmp_path):
    fit(TensorBoard(tmp_path, profile_batch=(2, 3)), epochs=1)
    content = json.loads((tmp_path / "train" / "profile_batch_2.json").read_text())
    assert content["traceEvents"]


def test_an_error_closes_files_and_ends_the_profile(tmp_path):
    callback = TensorBoard(tmp_path, profile_batch=2, update_freq=1)
    callbacks = CallbackList(callback, model=Model())
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    callbacks.on_train_batch_begin(0)
    callbacks.on_train_batch_end(0, {"loss": 1.0})
    callbacks.on_train_batch_begin(1)
    callbacks.on_close()
    assert scalars(tmp_path / "train", "batch_loss") == [(1, 1.0)]
    with tw.profiler.trace(table=False):
        pass


def test_a_second_fit_adds_to_the_first(tmp_path):
    callback = TensorBoard(tmp_path, write_graph=False)
    fit(callback, epochs=1)
    fit(callback, epochs=1)
    files = list((tmp_path / "train").iterdir())
    assert len(files) == 2
    assert all(f.name.startswith("events.out.tfevents.") for f in files)
    assert scalars(tmp_path / "train", "epoch_loss") == [(0, 1.0), (0, 1.0)]


def test_nothing_is_written_where_nothing_happens(tmp_path):
    callbacks = CallbackList(TensorBoard(tmp_path / "logs"), model=Model())
    callbacks.on_predict_begin()
    callbacks.on_predict_end()
    callbacks.on_close()
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("batches", [-1, (3, 2), (1, 2, 3), "a", "1,b", 1.5, True])
def test_other_batches_to_profile_are_refused(batches):
    with pytest.raises(ValueError, match="profile_batch"):
        TensorBoard(profile_batch=batches)


@pytest.mark.parametrize("batches", [0, 3, (2, 5), [2, 5], "2", "2,5"])
def test_batches_to_profile_may_be_written_in_the_ways_of_keras(batches):
    TensorBoard(profile_batch=batches)


@pytest.mark.parametrize("freq", ["step", 0, -1, None, 2.5])
def test_another_update_freq_is_refused(freq):
    with pytest.raises(ValueError, match="update_freq .*'epoch'"):
        TensorBoard(update_freq=freq)


def test_the_projector_is_refused():
    with pytest.raises(ValueError, match="embeddings_freq.*0.*got 1 and None"):
        TensorBoard(embeddings_freq=1)


def test_without_tensorboardx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"'tapewright\[tensorboard\]'"):
        TensorBoard()
