"""MNIST and Fashion-MNIST from files, folders, the cache and mirrors on loopback."""

import gzip
import hashlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from tapewright.datasets import fashion_mnist, fetch, idx, local, mnist
from tapewright.datasets.fetch import DownloadError, RemoteFile

REAL = Path(__file__).parents[2] / ".." / "shared" / "data" / "mnist"
needs_real_files = pytest.mark.skipif(
    not REAL.is_dir(), reason=f"the MNIST files are not at {REAL}"
)
NAMES = {
    ("train", 0): "train-images-idx3-ubyte",
    ("train", 1): "train-labels-idx1-ubyte",
    ("t10k", 0): "t10k-images-idx3-ubyte",
    ("t10k", 1): "t10k-labels-idx1-ubyte",
}


@pytest.fixture
def splits(some_images):
    return {"train": some_images(15), "t10k": some_images(5, seed=1)}


@pytest.fixture
def fill(splits, idx_bytes):
    """A function that writes the IDX files of the given parts into a folder."""

    def into(folder, parts=("train", "t10k"), rename=lambda name: name, pack=bytes):
        folder.mkdir(parents=True, exist_ok=True)
        for (part, index), name in NAMES.items():
            if part in parts:
                content = pack(idx_bytes(splits[part][index]))
                (folder / rename(name)).write_bytes(content)
        return folder

    return into


@pytest.fixture
def archive(splits):
    """A function that writes Keras' .npz layout, with some arrays replaced."""

    def to(path, **replaced):
        (x_train, y_train), (x_test, y_test) = splits["train"], splits["t10k"]
        arrays = dict(x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
        arrays.update(replaced)
        np.savez(path, **{k: a for k, a in arrays.items() if a is not None})
        return path

    return to


@pytest.fixture
def mirrored(monkeypatch, server, cache, archive, fill, tmp_path):
    """A server that plays every mirror, with checksums to match its files."""
    monkeypatch.chdir(tmp_path)
    served = tmp_path / "served"
    fill(served, rename=lambda name: name + ".gz", pack=gzip.compress)
    archive(served / "mnist.npz")
    for path in served.iterdir():
        server.pages["/" + path.name] = path.read_bytes()
    files = [
        RemoteFile(name, f"md5:{hashlib.md5(body).hexdigest()}", len(body))
        for name, body in (
            (n + ".gz", server.pages[f"/{n}.gz"]) for n in NAMES.values()
        )
    ]
    digest = hashlib.sha256(server.pages["/mnist.npz"]).hexdigest()
    monkeypatch.setattr(mnist, "ARCHIVE", RemoteFile("mnist.npz", f"sha256:{digest}"))
    monkeypatch.setattr(mnist, "ARCHIVE_MIRRORS", (server.url,))
    for module in (mnist, fashion_mnist):
        monkeypatch.setattr(module, "FILES", files)
        monkeypatch.setattr(module, "MIRRORS", (server.url,))
    return server


def check(data, splits):
    for (x, y), (images, labels) in zip(data, splits.values(), strict=True):
        assert x.dtype == y.dtype == np.uint8
        np.testing.assert_array_equal(x, images)
        np.testing.assert_array_equal(y, labels)


def test_the_signature_is_that_of_keras():
    parameters = inspect.signature(mnist.load_data).parameters
    assert list(parameters) == ["path"]
    assert parameters["path"].default == "mnist.npz"


def test_slow_imports_wait_until_they_are_needed():
    late = {"tqdm", "urllib", "http", "gzip", "zlib", "zipfile", "hashlib"}
    for module in (fashion_mnist, fetch, idx, local, mnist):
        assert not late & set(vars(module))


# An .npz file


@pytest.mark.parametrize("kind", [str, Path])
def test_an_npz_file_is_used_as_it_is(archive, splits, tmp_path, kind):
    check(mnist.load_data(kind(archive(tmp_path / "mine.npz"))), splits)
    check(fashion_mnist.load_data(kind(tmp_path / "mine.npz")), splits)


def test_an_npz_file_in_the_working_directory_is_found_by_name(
    archive, splits, tmp_path, monkeypatch
):
    archive(tmp_path / "mine.npz")
    monkeypatch.chdir(tmp_path)
    check(mnist.load_data("mine.npz"), splits)


def test_missing_arrays_are_named(archive, tmp_path):
    path = archive(tmp_path / "part.npz", y_test=None)
    with pytest.raises(ValueError, match="part.npz: it has no y_test") as caught:
        mnist.load_data(path)
    assert "contains x_train, y_train, x_test" in str(caught.value)


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (
            {"x_train": np.zeros((15, 28, 28))},
            "x_train must be uint8 [n, rows, columns]",
        ),
        ({"x_test": np.zeros((5, 784), "u1")}, "got uint8 of shape (5, 784)"),
        ({"y_train": np.zeros((15, 10), "u1")}, "y_train must be uint8 [n]"),
        ({"y_test": np.zeros(5, "i8")}, "got int64 of shape (5,)"),
        ({"y_test": np.zeros(4, "u1")}, "5 images in x_test, but 4 labels in y_test"),
    ],
)
def test_arrays_of_another_form_are_refused(archive, tmp_path, replaced, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        mnist.load_data(archive(tmp_path / "odd.npz", **replaced))
    assert "odd.npz" in str(caught.value)


def test_pickled_objects_are_not_loaded(archive, tmp_path):
    path = archive(tmp_path / "objects.npz", y_test=np.array([{}], object))
    with pytest.raises(ValueError, match=r"objects.npz: unreadable"):
        mnist.load_data(path)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "page.npz").write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"page.npz: not an .npz file"):
        mnist.load_data(tmp_path / "page.npz")


def test_a_damaged_archive_is_refused(archive, tmp_path):
    path = archive(tmp_path / "damaged.npz")
    content = bytearray(path.read_bytes())
    content[300] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"damaged.npz: unreadable"):
        mnist.load_data(path)


def test_a_truncated_archive_is_refused(archive, tmp_path):
    path = archive(tmp_path / "half.npz")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ValueError, match="half.npz"):
        mnist.load_data(path)


@pytest.mark.parametrize("name", ["folder/mnist.npz", "./no/such", "other.npz"])
def test_a_path_that_is_not_there_is_never_downloaded(mirrored, name):
    with pytest.raises(FileNotFoundError, match=re.escape(str(Path(name)))):
        mnist.load_data(name)
    assert mirrored.asked == []


def test_an_absolute_path_that_is_not_there_is_never_downloaded(mirrored, tmp_path):
    for module in (mnist, fashion_mnist):
        with pytest.raises(FileNotFoundError):
            module.load_data(tmp_path / "mnist.npz")
    assert mirrored.asked == []


# A folder of IDX files


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("mark", ["-idx", ".idx"])
def test_a_folder_of_idx_files_is_read(fill, splits, tmp_path, pack, ending, mark):
    def rename(name):
        return name.replace("-idx", mark) + ending

    folder = fill(tmp_path / "idx", rename=rename, pack=pack)
    check(mnist.load_data(folder), splits)
    check(fashion_mnist.load_data(str(folder)), splits)


def test_load_folder_has_no_remark_on_a_whole_set(fill, splits, tmp_path):
    data, note = mnist.load_folder(fill(tmp_path / "idx"))
    check(data, splits)
    assert note == ""


def test_a_t10k_set_alone_is_divided_four_to_one(fill, splits, tmp_path):
    folder = fill(tmp_path / "idx", parts=("t10k",))
    ((x_train, y_train), (x_test, y_test)), note = mnist.load_folder(folder)
    x, y = splits["t10k"]
    np.testing.assert_array_equal(x_train, x[:4])
    np.testing.assert_array_equal(y_train, y[:4])
    np.testing.assert_array_equal(x_test, x[4:])
    np.testing.assert_array_equal(y_test, y[4:])
    assert "the first 4 images are for training, the last 1 for testing" in note
    assert str(folder) in note and "\n" not in note


def test_load_data_warns_of_the_division_at_the_callers_line(fill, tmp_path):
    folder = fill(tmp_path / "idx", parts=("t10k",))
    for module in (mnist, fashion_mnist):
        with pytest.warns(UserWarning, match="t10k set is split") as caught:
            module.load_data(folder)
        assert caught[0].filename == __file__


def test_training_labels_without_images_count_as_a_t10k_set(fill, tmp_path):
    folder = fill(tmp_path / "idx")
    (folder / NAMES["train", 0]).unlink()
    assert "no training images" in mnist.load_folder(folder)[1]


@pytest.mark.parametrize("gone", [("train", 1), ("t10k", 0), ("t10k", 1)])
def test_a_folder_that_lacks_a_file_is_refused_by_its_name(fill, tmp_path, gone):
    folder = fill(tmp_path / "idx")
    (folder / NAMES[gone]).unlink()
    with pytest.raises(FileNotFoundError, match=f"lacks {NAMES[gone]} "):
        mnist.load_data(folder)


def test_an_empty_folder_is_refused_with_the_names_it_should_hold(tmp_path):
    with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte"):
        mnist.load_data(tmp_path)


def test_mixed_up_files_are_refused(fill, tmp_path):
    folder = fill(tmp_path / "idx")
    images, labels = folder / NAMES["t10k", 0], folder / NAMES["t10k", 1]
    content = images.read_bytes(), labels.read_bytes()
    images.write_bytes(content[1])
    labels.write_bytes(content[0])
    with pytest.raises(ValueError, match="holds labels"):
        mnist.load_data(folder)


# The cache and the mirrors


@pytest.mark.parametrize("path", [(), (None,), ("mnist.npz",)])
def test_the_default_is_downloaded_once_into_the_cache(mirrored, cache, splits, path):
    check(mnist.load_data(*path), splits)
    check(mnist.load_data(*path), splits)
    assert mirrored.asked == ["/mnist.npz"]
    assert [p.name for p in cache.iterdir()] == ["mnist.npz"]


def test_idx_files_are_fetched_where_the_archive_is_not_to_be_had(
    mirrored, cache, splits
):
    del mirrored.pages["/mnist.npz"]
    check(mnist.load_data(), splits)
    assert len(list((cache / "mnist").iterdir())) == 4
    mirrored.asked.clear()
    check(mnist.load_data(), splits)
    assert mirrored.asked == []


def test_a_damaged_archive_in_the_cache_is_fetched_again(mirrored, cache, splits):
    cache.mkdir(parents=True)
    (cache / "mnist.npz").write_bytes(b"half a download")
    check(mnist.load_data(), splits)
    assert mirrored.asked == ["/mnist.npz"]


def test_without_any_mirror_the_error_names_them_all(mirrored, cache):
    mirrored.pages.clear()
    with pytest.raises(DownloadError, match="digits") as caught:
        mnist.load_data()
    urls = [url for url, _ in caught.value.failures]
    assert urls == [mirrored.url + "mnist.npz", f"{mirrored.url}{NAMES['train', 0]}.gz"]
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_fashion_mnist_is_downloaded_once_into_a_folder_of_its_own(
    mirrored, cache, splits
):
    check(fashion_mnist.load_data(), splits)
    check(fashion_mnist.load_data(), splits)
    assert mirrored.asked == [f"/{name}.gz" for name in NAMES.values()]
    assert len(list((cache / "fashion_mnist").iterdir())) == 4


# Real files


@needs_real_files
def test_the_real_t10k_set_is_divided_8000_to_2000():
    ((x_train, y_train), (x_test, y_test)), note = local.load_folder(REAL)
    assert x_train.shape == (8000, 28, 28) and y_train.shape == (8000,)
    assert x_test.shape == (2000, 28, 28) and y_test.shape == (2000,)
    # The classes of the 10,000 test digits, as their authors count them.
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(np.concatenate([y_train, y_test])).tolist() == counts
    assert y_train[:5].tolist() == [7, 2, 1, 0, 4]
    assert "first 8000 images" in note and "last 2000" in note


@needs_real_files
def test_the_real_files_have_the_checksums_in_the_table():
    found = [file.name for file in mnist.FILES if fetch.cached(file, REAL)]
    assert found == [NAMES[k] + ".gz" for k in [("train", 1), ("t10k", 0), ("t10k", 1)]]
