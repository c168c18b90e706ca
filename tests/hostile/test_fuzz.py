"""Files changed at random: the same values are read, or a `SavingError` says what is wrong."""

from pathlib import Path

import fuzz
import pytest
import runner

COUNT = 360

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is measured as in Linux"
)


@pytest.fixture(scope="module")
def fuzzed(once):
    jobs, _ = fuzz.jobs(COUNT)
    return once("fuzzed", lambda folder: runner.run(jobs, program="fuzz.py"))


def of(fuzzed, kinds):
    """What came of the jobs of these kinds, by their names."""
    _, wanted = fuzz.jobs(COUNT, kinds)
    return {job: told for (job, _), told in fuzzed.items() if job in wanted}


def faults(found, allowed):
    """What neither was loaded nor refused as it has to be."""
    return [
        f"{job}: {told['outcome']}: {told['message']}\n{told.get('trace', '')}"
        for job, told in found.items()
        if told["outcome"] not in allowed
    ]


def test_a_sealed_file_is_read_as_it_was_written_or_refused(fuzzed):
    found = of(fuzzed, fuzz.SEALED)
    assert not faults(found, ("OK", "SavingError"))
    assert all(told["same"] for told in found.values() if told["outcome"] == "OK")


def test_a_file_with_other_json_is_read_or_refused(fuzzed):
    assert not faults(of(fuzzed, fuzz.JSON), ("OK", "SavingError"))


def test_a_damaged_file_of_keras_is_read_or_refused(fuzzed):
    # HDF5 itself may crash or loop on what is damaged, for nothing tells it beforehand.
    wrong = faults(of(fuzzed, fuzz.UNSEALED), ("OK", "SavingError", "hang"))
    assert not [fault for fault in wrong if "ended with code -" not in fault]
