"""CIFAR-10 and CIFAR-100 from small archives of the true form, and hostile ones."""

import gzip
import hashlib
import io
import os
import pickle
import tarfile

import numpy as np
import pytest

from tapewright import keras
from tapewright.datasets import cifar, cifar10, cifar100
from tapewright.datasets.fetch import DownloadError, RemoteFile

from .python2_pickles import python2_pickle


def batch(n, seed, **labels):
    data = np.random.default_rng(seed).integers(0, 256, (n, 3072), np.uint8)
    return {"batch_label": "training batch", **labels, "data": data, "filenames": ["a"]}


def archive(path, members):
    """A ``.tar.gz`` file with these members, bytes or values to pickle."""
    with tarfile.open(path, "w:gz") as out:
        for name, content in members.items():
            if not isinstance(content, bytes):
                content = python2_pickle(content)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return path


def batches10():
    # Not in the order of the batches: an archive need not have it.
    order = [4, 1, 5, 2, 3]
    members = {
        f"cifar-10-batches-py/data_batch_{i}": batch(2, i, labels=[i, 9]) for i in order
    }
    members["cifar-10-batches-py/readme.html"] = b"<html>"
    members["cifar-10-batches-py/test_batch"] = batch(3, 6, labels=[0, 1, 2])
    return members


def images(batches):
    """Pixel by pixel: a row has 1024 reds, then greens, then blues, line by line."""
    data = np.concatenate([each["data"] for each in batches])
    found = np.empty((len(data), 32, 32, 3), np.uint8)
    for channel in range(3):
        plane = data[:, 1024 * channel : 1024 * (channel + 1)]
        for row in range(32):
            found[:, row, :, channel] = plane[:, 32 * row : 32 * (row + 1)]
    return found


def test_cifar10_has_the_order_of_its_batches(tmp_path):
    members = batches10()
    path = archive(tmp_path / "made.tar.gz", members)
    (x_train, y_train), (x_test, y_test) = cifar10.load_data(path)
    names = [f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6)]
    np.testing.assert_array_equal(x_train, images([members[n] for n in names]))
    np.testing.assert_array_equal(
        x_test, images([members["cifar-10-batches-py/test_batch"]])
    )
    assert y_train.tolist() == [[i] for n in range(1, 6) for i in (n, 9)]
    assert y_test.tolist() == [[0], [1], [2]]
    assert y_train.dtype == y_test.dtype == x_train.dtype == x_test.dtype == np.uint8


def test_cifar100_has_fine_and_coarse_labels_of_64_bits(tmp_path):
    members = {
        f"cifar-100-python/{name}": batch(
            2, i, fine_labels=[99, i], coarse_labels=[19, 0]
        )
        for i, name in enumerate(("meta", "test", "train"))
    }
    path = archive(tmp_path / "made.tar.gz", members)
    (x_train, y_train), (x_test, y_test) = cifar100.load_data(path=path)
    np.testing.assert_array_equal(x_train, images([members["cifar-100-python/train"]]))
    np.testing.assert_array_equal(x_test, images([members["cifar-100-python/test"]]))
    assert y_train.tolist() == [[99], [2]] and y_test.tolist() == [[99], [1]]
    assert y_train.dtype == y_test.dtype == np.int64
    (_, y_train), _ = cifar100.load_data("coarse", path)
    assert y_train.tolist() == [[19], [0]]
    with pytest.raises(ValueError, match="label_mode .*'all'"):
        cifar100.load_data("all", path)


def test_the_channels_are_where_the_setting_of_keras_has_them(tmp_path):
    path = archive(tmp_path / "ten.tar.gz", batches10())
    (last, _), _ = cifar10.load_data(path)
    keras.config.set_image_data_format("channels_first")
    try:
        (first, _), _ = cifar10.load_data(path)
    finally:
        keras.config.set_image_data_format("channels_last")
    assert last.shape[1:] == (32, 32, 3)
    np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_run_code_is_refused(tmp_path, protocol):
    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    hostile = pickle.dumps({"data": Runs(), "labels": [1]}, protocol)
    members = batches10() | {"cifar-10-batches-py/data_batch_3": hostile}
    path = archive(tmp_path / "hostile.tar.gz", members)
    with pytest.raises(
        ValueError, match=r"hostile.*data_batch_3: .* references .*mkdir"
    ):
        cifar10.load_data(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ([1], "a dict with 'data' and 'labels'"),
        ({"data": [1], "labels": [1]}, r"uint8 \[n, 3072\]"),
        ({"data": np.zeros((1, 3073), "u1"), "labels": [1]}, r"\(1, 3073\)"),
        ({"data": np.zeros((1, 3072), "f4"), "labels": [1]}, r"uint8 \[n, 3072\]"),
        ({"data": np.zeros((1, 3072), "u1"), "labels": [1, 2]}, "a list of 1 ints"),
        ({"data": np.zeros((1, 3072), "u1"), "labels": [100]}, "from 0 to 99"),
        ({"data": np.zeros((1, 3072), "u1"), "labels": ["1"]}, "from 0 to 99"),
    ],
)
def test_batches_of_another_form_are_refused(tmp_path, member, message):
    members = batches10() | {"cifar-10-batches-py/test_batch": member}
    path = archive(tmp_path / "odd.tar.gz", members)
    with pytest.raises(ValueError, match=f"odd.tar.gz: .*test_batch: .*{message}"):
        cifar10.load_data(path)


def test_archives_that_are_damaged_or_lack_a_batch_are_refused(tmp_path, monkeypatch):
    members = batches10()
    content = archive(tmp_path / "whole", members).read_bytes()
    changed = bytearray(gzip.decompress(content))
    changed[0] ^= 1
    for name, body in (
        ("half", content[: len(content) // 2]),
        ("page", b"<html>"),
        ("empty", b""),
        ("header", gzip.compress(bytes(changed))),
    ):
        (tmp_path / name).write_bytes(body)
        with pytest.raises(ValueError, match=f"{name}: not a .tar.gz file, or damaged"):
            cifar10.load_data(tmp_path / name)
    del members["cifar-10-batches-py/data_batch_2"]
    path = archive(tmp_path / "part", members)
    with pytest.raises(ValueError, match="part: the archive has no .*data_batch_2"):
        cifar10.load_data(path)
    monkeypatch.setattr(cifar, "LARGEST", 10000)
    with pytest.raises(ValueError, match="it unpacks to more than 10000 bytes"):
        cifar10.load_data(path)


def test_the_archive_is_downloaded_once_and_verified(
    tmp_path, server, cache, monkeypatch
):
    name = cifar10.ARCHIVE.name
    content = archive(tmp_path / "made", batches10()).read_bytes()
    server.pages[f"/{name}"] = content
    monkeypatch.setattr(cifar10, "MIRRORS", (server.url,))
    with pytest.raises(DownloadError, match="(?s)its sha256 is .* copy the file to"):
        cifar10.load_data()
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(cifar10, "ARCHIVE", RemoteFile(name, f"sha256:{digest}"))
    for _ in range(2):
        assert len(cifar10.load_data()[0][0]) == 10
    assert server.asked == [f"/{name}"] * 2 and (cache / name).exists()


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="cifar10.load_data: path .*no.tar.gz"):
        cifar10.load_data(tmp_path / "no.tar.gz")
