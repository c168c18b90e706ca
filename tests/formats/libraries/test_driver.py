import resource
import shutil

import numpy as np
import pytest

import tapewright as tw
from tapewright.formats.libraries.driver import CODES, FAILED
from tapewright.formats.libraries.weights_file import HEADER, checksums

from .libraries import Library, exported

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")

NUMBER = {name: n for n, name in enumerate(CODES)}
SPEC = [tw.TensorSpec([3])]
X = np.array([1, 2, 3], "f4")


def counter():
    """A function that adds its argument to a variable, and reads another one."""
    total, factor = tw.Variable(np.arange(3, dtype="f4")), tw.Variable([1.0, 10, 100])

    @tw.function
    def add(x):
        total.assign_add(x * factor)
        return total * 2

    return add


def table(size=3):
    weights = tw.Variable(np.arange(size, dtype="f4"))
    return tw.function(lambda x: x * weights)


def test_nothing_runs_before_init_or_after_free(tmp_path):
    library = exported(table(), SPEC, tmp_path)
    assert library.run(X)[0].tolist() == [0, 2, 6]
    library.call("free")
    y = np.full(3, 7, "f4")
    assert library.call("run", X, y, 1) == NUMBER["NOT_READY"] and (y == 7).all()
    library.call("free")  # of nothing
    assert library.init() == 0
    assert library.run(X)[0].tolist() == [0, 2, 6]


@pytest.mark.parametrize("threads", [0, 2, -1])
def test_one_thread_only(threads, tmp_path):
    library = exported(table(), SPEC, tmp_path)
    assert library.call("run", X, X.copy(), threads) == NUMBER["BAD_ARGUMENT"]


def test_null_pointers_are_found(tmp_path):
    library = exported(table(), SPEC, tmp_path)
    assert library.call("run", X, None, 1) == NUMBER["BAD_ARGUMENT"]
    assert library.call("run", None, X.copy(), 1) == NUMBER["BAD_ARGUMENT"]


@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_variables_are_kept_read_written_and_initialized_again(weights, tmp_path):
    library = exported(counter(), SPEC, tmp_path, weights=weights)
    assert library.variables()[0].tolist() == [0, 1, 2]
    assert library.run(X)[0].tolist() == [2, 42, 604]
    assert library.variables()[0].tolist() == [1, 21, 302]
    assert library.call("set", 0, np.full(3, 5, "f4")) == 0
    assert library.run(0 * X)[0].tolist() == [10, 10, 10]
    assert (
        library.init(tmp_path / "model.weights" if weights == "beside" else None) == 0
    )
    assert library.variables()[0].tolist() == [0, 1, 2]


def test_another_init_frees_the_memory(tmp_path):
    big = tw.Variable(np.zeros(1 << 20, "f4"))
    function = tw.function(lambda x: big.assign(big + x))
    options = {"weights": "beside"}
    library = exported(function, [tw.TensorSpec([])], tmp_path, **options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50):
        assert library.init(tmp_path / "model.weights") == 0
        library.run(np.float32(1))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 << 10


def test_only_variables_that_change_have_an_index(tmp_path):
    library = exported(counter(), SPEC, tmp_path)
    assert len(library.state) == 1
    for index in (-1, 1):
        assert library.call("get", index, X.copy()) == NUMBER["BAD_ARGUMENT"]
        assert library.call("set", index, X) == NUMBER["BAD_ARGUMENT"]
    assert library.call("get", 0, None) == NUMBER["BAD_ARGUMENT"]
    library.call("free")
    assert library.call("get", 0, X.copy()) == NUMBER["NOT_READY"]


def test_a_library_with_its_weights_takes_no_file(tmp_path):
    library = exported(table(), SPEC, tmp_path)
    assert library.init(tmp_path / "model.weights") == NUMBER["BAD_ARGUMENT"]


# -------------------------------------------------------------------------- weights files


@pytest.fixture
def beside(tmp_path):
    library = exported(table(40), [tw.TensorSpec([40])], tmp_path, weights="beside")
    return library, tmp_path / "model.weights"


def test_a_file_must_be_there(beside, tmp_path):
    library, _ = beside
    assert library.init(tmp_path / "missing") == NUMBER["NO_FILE"]
    assert library.init() == NUMBER["BAD_ARGUMENT"]
    assert library.call("run", X, X, 1) == NUMBER["NOT_READY"]


def test_every_changed_word_is_found(beside):
    library, path = beside
    content = path.read_bytes()
    unread = range(5 * 8, HEADER.size)
    for at in (n for n in range(0, len(content), 4) if n not in unread):
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        assert library.init(path) == NUMBER["WRONG_FILE"], at
    path.write_bytes(content)
    assert library.init(path) == 0


def test_exchanged_words_and_other_lengths_are_found(beside):
    library, path = beside
    head, rest = path.read_bytes()[: HEADER.size], path.read_bytes()[HEADER.size :]
    wrong = [rest[8:16] + rest[:8] + rest[16:], rest[:-8], rest + b"\0", b""]
    for image in wrong:
        path.write_bytes(head + image)
        assert library.init(path) == NUMBER["WRONG_FILE"]
    path.write_bytes(head[:20])
    assert library.init(path) == NUMBER["WRONG_FILE"]


def test_the_file_of_another_library_is_refused(beside, tmp_path):
    library, path = beside
    other = tmp_path / "other.so"
    for size, fits in ((41, False), (39, False), (40, True)):
        spec = [tw.TensorSpec([size])]
        tw.export_library(table(size), spec, other, weights="beside")
        code = library.init(other.with_suffix(".weights"))
        assert code == (0 if fits else NUMBER["WRONG_FILE"])


def test_checksums_are_those_of_the_formula():
    image = np.array([5, 7, 11], "<u8").tobytes()
    assert checksums(image) == (23, 5 * 3 + 7 * 2 + 11)
    assert checksums(b"") == (0, 0)
    big = np.full(4, (1 << 64) - 1, "<u8").tobytes()
    assert checksums(big) == ((1 << 64) - 4, (1 << 64) - 10)


# ------------------------------------------------------------------------ what runs refuse


def test_an_instruction_that_fails_has_a_number_and_changes_nothing(tmp_path):
    rows = tw.Variable(np.arange(6, dtype="f4").reshape(3, 2))
    count = tw.Variable(0)

    @tw.function
    def look_up(i):
        count.assign_add(1)
        return tw.gather(rows, i)

    library = exported(look_up, [tw.TensorSpec([2], tw.int32)], tmp_path)
    assert library.run(np.array([2, 0], "i4"))[0].tolist() == [[4, 5], [0, 1]]
    y = np.full((2, 2), 7, "f4")
    assert library.call("run", np.array([3, 0], "i4"), y, 1) == FAILED
    assert library.variables()[0] == 1
    assert f"MODEL_FAILED_0 = {FAILED}" in library.header
    assert "gather rejected its values" in library.header and __file__ in library.header


def test_packed_matrices_have_memory(tmp_path):
    x = np.random.default_rng(0).normal(size=(70, 300)).astype("f4")
    kernel = tw.Variable(np.random.default_rng(1).normal(size=(300, 90)).astype("f4"))
    function = tw.function(lambda x: x @ kernel)
    library = exported(function, [tw.TensorSpec(x.shape)], tmp_path)
    (y,) = library.run(x)
    np.testing.assert_allclose(y, x @ kernel.numpy(), 1e-4, 1e-4)


def test_memory_is_in_the_header(tmp_path):
    library = exported(table(1000), [tw.TensorSpec([1000])], tmp_path)
    assert "Allocate all memory: 64 bytes" in library.header
    tw.export_library(
        table(1000), [tw.TensorSpec([1000])], tmp_path / "b.so", weights="beside"
    )
    assert "Allocate all memory: 4096 bytes" in Library(tmp_path / "b.so", "b").header
