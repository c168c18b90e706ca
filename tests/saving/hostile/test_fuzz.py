"""Files changed at random: the same values are read, or a `SavingError` says what is wrong."""

from pathlib import Path

import fuzz
import pytest
import runner

COUNT = 360

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is measured as in Linux"
)


def faults(found, allowed):
    """What neither was loaded nor refused as it has to be."""
    return [
        f"{job}: {told['outcome']}: {told['message']}\n{told.get('trace', '')}"
        for (job, _), told in found.items()
        if told["outcome"] not in allowed
    ]


def run(kinds):
    jobs, wanted = fuzz.jobs(COUNT, kinds)
    return runner.run(jobs, wanted, "fuzz.py")


def test_a_sealed_file_is_read_as_it_was_written_or_refused():
    found = run(fuzz.SEALED)
    assert not faults(found, ("OK", "SavingError"))
    assert all(told["same"] for told in found.values() if told["outcome"] == "OK")


def test_a_file_with_other_json_is_read_or_refused():
    assert not faults(run(fuzz.JSON), ("OK", "SavingError"))


def test_a_damaged_file_of_keras_is_read_or_refused():
    # HDF5 itself may crash or loop on what is damaged, for nothing tells it beforehand.
    found = run(fuzz.UNSEALED)
    wrong = faults(found, ("OK", "SavingError", "hang"))
    assert not [fault for fault in wrong if "ended with code -" not in fault]
