"""`tw.summary`: events of eager and traced code, read by TensorBoard's own reader."""

import io
import sys
import threading

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tapewright as tw
from tapewright import summary
from tapewright.summary import recording

from ..ways import ways


@pytest.fixture(autouse=True)
def fresh():
    """No default writer and no default step, before and after."""
    with recording._defaults(writer=None, step=None, condition=True):
        yield


@pytest.fixture
def writer(tmp_path):
    made = tw.summary.create_file_writer(tmp_path)
    yield made
    made.close()


def events(folder):
    everything = dict.fromkeys(("images", "histograms", "scalars", "tensors"), 0)
    return EventAccumulator(str(folder), size_guidance=everything).Reload()


def scalars(writer, folder, tag="x"):
    writer.flush()
    found = events(folder)
    if tag not in found.Tags()["scalars"]:
        return []
    return [(event.step, event.value) for event in found.Scalars(tag)]


def test_scalars_have_steps_and_the_names_of_scopes(writer, tmp_path):
    with writer.as_default(), tw.name_scope("a"), tw.name_scope("b"):
        for step, value in ((3, 1.5), (tw.constant(4), tw.constant(2)), (2**40, True)):
            done = tw.summary.scalar("x", value, step=step, description="words")
            assert done.numpy() and done.dtype == tw.bool
    assert scalars(writer, tmp_path, "a/b/x") == [(3, 1.5), (4, 2.0), (2**40, 1.0)]
    assert events(tmp_path).SummaryMetadata("a/b/x").summary_description == "words"


def test_every_kind_of_event_has_its_description(writer, tmp_path):
    with writer.as_default(step=0):
        tw.summary.image("x", tw.zeros([1, 2, 2, 1]), description="an image")
        tw.summary.histogram("y", [1.0, 2.0], description="a histogram")
        tw.summary.text("z", "words", description="a text")
    writer.flush()
    metadata = events(tmp_path).SummaryMetadata
    assert metadata("x").summary_description == "an image"
    assert metadata("y").summary_description == "a histogram"
    assert metadata("z").summary_description == "a text"


def test_without_a_default_writer_nothing_is_written(writer, tmp_path):
    assert not tw.summary.scalar("x", 1.0).numpy()
    assert not tw.summary.should_record_summaries().numpy()
    tw.summary.flush()
    writer.set_as_default(step=5)
    assert tw.summary.should_record_summaries().numpy()
    tw.summary.scalar("x", 1.0)
    tw.summary.scalar("x", 2.0, step=0)
    assert scalars(writer, tmp_path) == [(5, 1.0), (0, 2.0)]


def test_the_default_step_may_be_a_variable(writer, tmp_path):
    step = tw.Variable(7, dtype=tw.int64)
    tw.summary.experimental.set_step(step)
    assert tw.summary.experimental.get_step() is step

    @tw.function
    def write(x):
        tw.summary.scalar("x", x)
        step.assign_add(1)

    with writer.as_default():
        for x in (1.0, 2.0):
            write(tw.constant(x))
        tw.summary.scalar("x", 3.0)
        with writer.as_default(step=1):
            tw.summary.scalar("x", 4.0)
    assert scalars(writer, tmp_path) == [(7, 1.0), (8, 2.0), (9, 3.0), (1, 4.0)]


def test_a_traced_function_writes_in_each_call(writer, tmp_path):
    traces = []

    @tw.function
    def write(x, step):
        traces.append(1)
        with tw.summary.record_if(step % 2 == 0):
            done = tw.summary.scalar("x", tw.reduce_sum(x), step)
        tw.summary.histogram("all", x, step)
        tw.summary.text("note", "**traced**", step)
        tw.summary.image("pictures", tw.reshape(x, [1, 1, 2, 1]), step)
        tw.summary.flush()
        return done

    with writer.as_default():
        done = [write(tw.constant([i, 1.0]), tw.constant(i)) for i in range(3)]
    assert len(traces) == 1 and [bool(each) for each in done] == [True, False, True]
    assert scalars(writer, tmp_path) == [(0, 1.0), (2, 3.0)]
    found = events(tmp_path)
    assert [event.step for event in found.Histograms("all")] == [0, 1, 2]
    assert [event.step for event in found.Images("pictures")] == [0, 1, 2]
    texts = found.Tensors("note")
    assert [event.tensor_proto.string_val[0] for event in texts] == [b"**traced**"] * 3


@pytest.mark.parametrize("make", [bool, tw.constant, lambda value: lambda: value])
def test_a_condition_decides_what_is_written(writer, tmp_path, make):
    with writer.as_default(step=0):
        with tw.summary.record_if(make(False)):
            assert not tw.summary.scalar("x", 1.0).numpy()
            with tw.summary.record_if(make(True)):
                assert tw.summary.scalar("x", 2.0).numpy()
            assert not tw.summary.should_record_summaries().numpy()
    assert scalars(writer, tmp_path) == [(0, 2.0)]


def test_images_are_clipped_and_have_numbers(writer, tmp_path):
    floats = np.array([[[[0.0], [0.5], [1.5], [-1.0], [np.nan]]]] * 4)
    colours = np.arange(24, dtype=np.uint8).reshape(1, 2, 3, 4)
    with writer.as_default(step=0):
        tw.summary.image("gray", floats)
        tw.summary.image("colour", colours)
        tw.summary.image("one", floats, max_outputs=1)
    writer.flush()
    found = events(tmp_path)
    assert sorted(found.Tags()["images"]) == [
        "colour", "gray/0", "gray/1", "gray/2", "one",
    ]  # fmt: skip

    def pixels(tag, mode):
        (event,) = found.Images(tag)
        with Image.open(io.BytesIO(event.encoded_image_string)) as image:
            return np.asarray(image.convert(mode))

    assert pixels("gray/2", "L").tolist() == [[0, 127, 255, 0, 0]]
    np.testing.assert_array_equal(pixels("colour", "RGBA"), colours[0])


def test_a_histogram_counts_all_entries(writer, tmp_path):
    with writer.as_default(step=2):
        tw.summary.histogram("h", tw.constant([[1, 2], [3, 4]]), buckets=3)
    writer.flush()
    (event,) = events(tmp_path).Histograms("h")
    value = event.histogram_value
    assert (value.min, value.max, value.num, value.sum) == (1.0, 4.0, 4.0, 10.0)
    assert sum(value.bucket) == 4 and 2.0 in value.bucket_limit


SOUNDS = np.float32([[[0.5], [2.0]], [[-2.0], [np.nan]]])


@ways
def test_sounds_are_wav_files_in_one_event(writer, tmp_path, wrap):
    @wrap
    def write(sounds, step):
        return tw.summary.audio("a", sounds, 8000, step, 2, description="words")

    with writer.as_default():
        assert write(tw.constant(np.tile(SOUNDS, (2, 1, 1))), tw.constant(3)).numpy()
    writer.flush()
    (event,) = events(tmp_path).Tensors("a")
    files = event.tensor_proto.string_val[::2]  # each with an empty label
    decoded = [tw.audio.decode_wav(file) for file in files]
    assert [sound.audio.numpy().ravel().tolist() for sound in decoded] == [
        [0.5, 0.999969482421875], [-1.0, 0.0],
    ]  # fmt: skip
    assert event.step == 3 and decoded[0].sample_rate.numpy() == 8000
    metadata = events(tmp_path).SummaryMetadata("a")
    assert metadata.plugin_data.plugin_name == "audio"
    assert metadata.plugin_data.content == b"\x10\x0b"  # TensorFlow's
    assert metadata.summary_description == "words"


def test_a_table_of_strings_is_text(writer, tmp_path):
    with writer.as_default(step=2):
        tw.summary.text("t", [["a", "b"]])
    writer.flush()
    (event,) = events(tmp_path).Tensors("t")
    assert [dim.size for dim in event.tensor_proto.tensor_shape.dim] == [1, 2]
    assert list(event.tensor_proto.string_val) == [b"a", b"b"]


def test_a_string_tensor_is_text(writer, tmp_path):
    with writer.as_default(step=2):
        tw.summary.text("t", tw.constant("né"))
    writer.flush()
    (event,) = events(tmp_path).Tensors("t")
    assert event.tensor_proto.string_val[0].decode() == "né"


def test_writers_are_defaults_of_one_thread_and_write_files_of_their_own(tmp_path):
    writers = [tw.summary.create_file_writer(tmp_path, 1, 10, ".v2") for _ in "ab"]
    seen = []
    with writers[0].as_default(step=0):
        tw.summary.scalar("x", 1.0)
        with writers[1].as_default():
            tw.summary.scalar("x", 2.0)
        thread = threading.Thread(
            target=lambda: seen.append(tw.summary.scalar("x", 3.0).numpy())
        )
        thread.start()
        thread.join()
    for each in writers:
        each.close()
        each.close()
    assert seen == [False]
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == 2 and all(name.endswith(".v2") for name in names)
    assert sorted(e.value for e in events(tmp_path).Scalars("x")) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "seen"), [({"max_queue": 2}, 2), ({"flush_millis": 0}, 3), ({}, 0)]
)
def test_a_queue_and_a_time_limit_what_waits(tmp_path, arguments, seen):
    writer = tw.summary.create_file_writer(tmp_path, **arguments)
    with writer.as_default(step=0):
        for _ in range(3):
            tw.summary.scalar("x", 1.0)
    found = events(tmp_path)
    assert len(found.Scalars("x") if seen else found.Tags()["scalars"]) == seen
    del writer  # which closes the file
    assert len(events(tmp_path).Scalars("x")) == 3


def test_a_closed_writer_is_an_error(tmp_path):
    writer = tw.summary.create_file_writer(tmp_path)
    writer.close()
    with writer.as_default(step=0), pytest.raises(RuntimeError, match="is closed"):
        tw.summary.scalar("x", 1.0)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: summary.scalar("x", 1.0), "scalar: step must be set"),
        (lambda: summary.scalar("x", 1.0, 1.5), "scalar: step must be an int .*float"),
        (lambda: summary.scalar("x", 1.0, [1]), r"step must be an int .*\(1,\)"),
        (lambda: summary.scalar("x", [1.0], 0), r"data must be a number .*\(1,\)"),
        (lambda: summary.scalar("x", "a", 0), "data must be a number .*string"),
        (lambda: summary.image("x", np.zeros((2, 2)), 0), r"image: data .*\(2, 2\)"),
        (lambda: summary.image("x", np.zeros((1, 2, 2, 5)), 0), "1 to 4 channels"),
        (lambda: summary.image("x", np.zeros((1, 2, 2, 1), int), 0), "int64"),
        (lambda: summary.histogram("x", [], 0), "at least one"),
        (lambda: summary.histogram("x", [np.nan], 0), "finite"),
        (lambda: summary.histogram("x", [1j], 0), "real numbers, got complex"),
        (lambda: summary.text("x", 1, 0), "strings, got int32"),
        (lambda: summary.audio("x", np.zeros((1, 2, 1)), 8000, 0), "got float64"),
        (lambda: summary.audio("x", tw.zeros((2, 1)), 8000, 0), r"shape \(2, 1\)"),
        (lambda: summary.audio("x", tw.zeros((1, 2, 0)), 8000, 0), "one channel"),
        (lambda: summary.audio("x", SOUNDS, 0, 0), "sample_rate must be positive"),
        (lambda: summary.audio("x", SOUNDS, 8000, 0, -1), "max_outputs must not be"),
        (
            lambda: summary.audio("x", SOUNDS, 8000, 0, 1, "mp3"),
            "must be 'wav', got 'mp3'",
        ),
    ],
)
def test_other_data_and_steps_are_refused(writer, write, message):
    with writer.as_default(), pytest.raises(ValueError, match=message):
        write()


def test_another_condition_is_refused(writer):
    with (
        writer.as_default(step=0),
        summary.record_if(1),
        pytest.raises(ValueError, match="record_if: condition must be a bool, got 1"),
    ):
        summary.scalar("x", 1.0)


def test_without_tensorboardx_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"'tapewright\[tensorboard\]'"):
        tw.summary.create_file_writer(tmp_path)
