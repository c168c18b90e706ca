"""Files of released versions open in this one, to the numbers of the time of writing."""

import functools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from golden_cases import assert_same, wave
from golden_folders import (
    ALL,
    HERE,
    PRESENT,
    answers,
    cases_of,
    numbers_of,
    packed,
    sums,
    unpack,
    versions,
)

import tapewright as tw

FILES = [
    (v, case, name) for v in versions() for case in cases_of(v) for name in case.files
]
each_version = pytest.mark.parametrize("version", versions())


def of_files(pick):
    chosen = [each for each in FILES if pick(*each)]
    names = [f"{version}-{name}" for version, _, name in chosen]
    return pytest.mark.parametrize("version, case, name", chosen, ids=names)


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """version -> the folder of its files."""
    top = tmp_path_factory.mktemp("golden")
    return {version: unpack(HERE / version, top / version) for version in versions()}


@pytest.fixture(scope="session")
def opened(once):
    """version -> the folder with what a fresh process has found in its files."""
    run = functools.partial(subprocess.run, capture_output=True, text=True)

    def open_all(top):
        folders = {
            version: unpack(HERE / version, top / version) for version in versions()
        }
        commands = [
            [sys.executable, "-W", "error", HERE / "opened.py", version, folder]
            for version, folder in folders.items()
        ]
        with ThreadPoolExecutor() as pool:  # side by side
            for done in pool.map(run, commands):
                assert done.returncode == 0, done.stderr
        return folders

    return once("opened", open_all)


def beside(path, ending):
    return path.with_name(path.name + ending)


# ------------------------------------------------------------------------- the numbers


@of_files(lambda version, case, name: case.bare)
def test_a_process_without_code_of_the_user_s_gets_the_numbers(
    version, case, name, opened
):
    path = opened[version] / name
    error = beside(path, ".error")
    assert not error.exists(), error.read_text()
    wanted = numbers_of(HERE / version / f"{case.name}.npz")
    assert_same(numbers_of(beside(path, ".npz")), wanted)


@of_files(lambda version, case, name: not case.bare)
def test_objects_of_the_user_s_get_the_numbers(version, case, name, unpacked):
    import golden_users  # noqa: F401  which registers them

    wanted = numbers_of(HERE / version / f"{case.name}.npz")
    assert_same(answers(case, case.read(unpacked[version] / name)), wanted)


@of_files(lambda version, case, name: not name.endswith(".json"))
def test_files_are_shown_and_verified(version, case, name, opened):
    (shown, text), (verified, told) = json.loads(
        (opened[version] / "commands.json").read_text()
    )[name]
    assert shown == 0 and "intact" in text, text
    assert verified == 0 and "OK" in told, told


@each_version
def test_gradients_that_were_not_written_are_missed(version, unpacked):
    module = tw.saved_model.load(unpacked[version] / "without_gradients.h5")
    x = tw.constant(wave(4))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = module.plain(x)
    with pytest.raises(LookupError, match="No gradient defined"):
        tape.gradient(y, x)


# ------------------------------------------------------------------------- the folders


def test_the_present_version_has_a_folder():
    assert PRESENT in versions(), f"run tests/golden/write.py {PRESENT}"


@each_version
def test_each_file_of_a_folder_is_opened_by_a_case(version):
    found = [p.relative_to(HERE / version) for p in (HERE / version).rglob("*")]
    found = {p.as_posix() for p in found if (HERE / version / p).is_file()}
    wanted = {name for case in cases_of(version) for name in packed(case)}
    assert found == wanted | {"README.md", "SHA256SUMS"}


@each_version
def test_files_are_as_they_were_written(version):
    assert sums(HERE / version) == (HERE / version / "SHA256SUMS").read_text()


def test_a_folder_is_not_written_again():
    command = [sys.executable, HERE / "write.py", PRESENT]
    before = sums(HERE / PRESENT)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode and "already" in done.stderr
    assert sums(HERE / PRESENT) == before


def test_cases_have_names_of_their_own():
    names = [name for case in ALL for name in packed(case)]
    assert len(names) == len(set(names))


def test_cases_use_what_is_public():
    """Files are moved inside, and what was written by then has to be read as before."""
    for path in HERE.glob("*.py"):
        lines = path.read_text().splitlines()
        assert not [
            x for x in lines if x.startswith(("from tapewright", "import tapewright."))
        ]
