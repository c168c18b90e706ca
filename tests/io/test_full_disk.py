"""Files that a full disk cuts short: told at once, and never taken for whole ones."""

import os
import signal
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.data import Dataset, TFRecordDataset
from tapewright.errors import DataLossError, ResourceExhaustedError, SavingError
from tapewright.keras import callbacks, layers

resource = pytest.importorskip("resource")
NOISE = np.random.default_rng(0).bytes(1 << 20)
FULL = "File too large"  # the limit's word for "No space left on device"


@contextmanager
def disk_of(size):
    """Let no file of this process become larger than ``size`` bytes."""
    # Python would keep bytecode of a module that is cut short, and all processes would read it.
    writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
        sys.dont_write_bytecode = writes_none


@pytest.fixture
def old(tmp_path):
    """The path of a file that is there already."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def is_kept(path):
    return path.read_bytes() == b"old" and os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("traced", [False, True])
def test_write_file_keeps_the_older_file(old, traced):
    write = tw.function(tw.io.write_file) if traced else tw.io.write_file
    with disk_of(1000), pytest.raises(ResourceExhaustedError, match=f"file: .*{FULL}"):
        write(str(old), NOISE)
    assert is_kept(old)
    write(str(old), b"new")
    assert old.read_bytes() == b"new"


def test_a_copy_keeps_the_older_file(old, tmp_path_factory):
    source = tmp_path_factory.mktemp("other") / "source"
    source.write_bytes(NOISE)
    with disk_of(1000), pytest.raises(ResourceExhaustedError, match=FULL):
        tw.io.gfile.copy(source, old, overwrite=True)
    assert is_kept(old)


def test_an_image_keeps_the_older_file(old):
    pytest.importorskip("PIL")
    image = np.frombuffer(NOISE, np.uint8)[: 3 << 16].reshape(256, 256, 3)
    with disk_of(1000), pytest.raises(OSError, match=FULL):
        keras.utils.save_img(old, image, file_format="png")
    assert is_kept(old)


def test_a_model_keeps_the_older_file(tmp_path):
    model = keras.Sequential([keras.Input((300,)), layers.Dense(300)])
    for name in ("m.keras", "m.h5"):
        (tmp_path / name).write_bytes(b"old")
        with disk_of(20_000), pytest.raises(SavingError, match=FULL):
            model.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"old"
    with disk_of(20_000), pytest.raises(SavingError, match=FULL):
        model.save(tmp_path / "m", zipped=False)
    assert sorted(os.listdir(tmp_path)) == ["m.h5", "m.keras"]


def test_a_file_says_that_it_cannot_be_written(tmp_path):
    file = tw.io.gfile.GFile(tmp_path / "file", "wb")
    with disk_of(1000), pytest.raises(ResourceExhaustedError, match=f"file: {FULL}"):
        with file:
            file.write(NOISE)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [50, 5000, 50_000])
def test_records_end_within_one_and_the_writer_is_closed(tmp_path, compression, size):
    path = str(tmp_path / "records")
    records = [NOISE[i : i + size] for i in range(0, 300_000, size)]
    with disk_of(100_000):
        with pytest.raises(ResourceExhaustedError, match="records: .*is incomplete"):
            with tw.io.TFRecordWriter(path, compression) as writer:
                for record in records:
                    writer.write(record)
        with pytest.raises(ValueError, match="closed"):
            writer.write(b"one more")
        writer.close()
    assert os.path.getsize(path) <= 100_000
    found = []
    with pytest.raises(DataLossError):
        for record in TFRecordDataset(path, compression):
            found.append(record.numpy())
    assert found == records[: len(found)]


def test_records_that_are_flushed_too_late_are_told(tmp_path):
    for finish in ("flush", "close"):
        writer = tw.io.TFRecordWriter(str(tmp_path / "records"))
        writer.write(NOISE[:2000])  # held back
        with disk_of(1000), pytest.raises(ResourceExhaustedError, match="incomplete"):
            getattr(writer, finish)()
        writer.close()


def test_a_data_set_keeps_the_older_one(tmp_path):
    Dataset.range(3).save(tmp_path / "ds")
    with disk_of(10_000), pytest.raises(SavingError, match=f"ds: .*kept: {FULL}"):
        Dataset.from_tensors(NOISE).save(tmp_path / "ds")
    assert [int(x) for x in Dataset.load(tmp_path / "ds")] == [0, 1, 2]
    assert os.listdir(tmp_path) == ["ds"]


def test_the_cache_of_a_data_set_is_whole_or_not_there(tmp_path):
    path = tmp_path / "cache"
    data = Dataset.from_tensors(NOISE).cache(str(path))
    with disk_of(10_000), pytest.raises(OSError, match=FULL):
        list(data)
    assert os.listdir(tmp_path) == []
    assert [x.numpy() for x in data] == [NOISE]
    assert os.listdir(tmp_path) == ["cache"]


def test_a_log_ends_with_its_last_whole_line(tmp_path):
    path = tmp_path / "log.csv"
    logger = callbacks.CSVLogger(path)
    logger.on_train_begin()
    with disk_of(100), pytest.raises(OSError, match=f"{FULL}: .*log.csv"):
        for epoch in range(100):
            logger.on_epoch_end(epoch, {"loss": 0.125 + epoch})
    logger.on_train_end()
    lines = path.read_bytes().decode().split("\r\n")
    assert lines[:2] == ["epoch,loss,val_loss", "0,0.125,NA"] and lines[-1] == ""
    assert all(line.endswith(".125,NA") for line in lines[1:-1])
    logger = callbacks.CSVLogger(path, append=True)
    logger.on_train_begin()
    logger.on_epoch_end(50, {"loss": 1.0})
    logger.on_train_end()
    assert path.read_bytes().decode().split("\r\n") == [*lines[:-1], "50,1.0,NA", ""]


def test_training_ends_with_the_name_of_the_log_that_is_full(tmp_path):
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.zeros((4, 1), "f4")
    for logger in (
        callbacks.CSVLogger(tmp_path / "log.csv"),
        callbacks.TensorBoard(tmp_path / "events", update_freq=1),
    ):
        if isinstance(logger, callbacks.TensorBoard):
            pytest.importorskip("tensorboardX")
        with disk_of(200), pytest.raises(OSError, match=f"{FULL}.*(log.csv|tfevents)"):
            model.fit(x, x, epochs=50, verbose=0, callbacks=[logger])


def test_events_that_cannot_be_written_close_their_file(tmp_path):
    pytest.importorskip("tensorboardX")
    writer = tw.summary.create_file_writer(tmp_path, max_queue=1)
    with disk_of(300), writer.as_default():
        with pytest.raises(OSError, match=f"{FULL}: the file is incomplete.*tfevents"):
            for step in range(100):
                tw.summary.scalar("loss", 0.5, step=step)
        with pytest.raises(RuntimeError, match="the writer is closed"):
            tw.summary.scalar("loss", 0.5, step=0)
    writer.close()
    (name,) = os.listdir(tmp_path)
    with pytest.raises(DataLossError):
        list(TFRecordDataset(str(tmp_path / name)))


def test_a_line_that_cannot_be_printed_names_its_file(tmp_path):
    path = tmp_path / "lines"
    with disk_of(10), pytest.raises(OSError, match=f"{FULL}: .*lines"):
        tw.print("a line of many words", output_stream=f"file://{path}")
