"""No file can do anything but be read, or be refused by a `SavingError` that says why."""

import re
from pathlib import Path

import cases
import pytest
import runner

JOBS = list(cases.jobs())
MEMORY = 200 << 20  # bytes that an attempt may take

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is measured as in Linux"
)


@pytest.fixture(scope="session")
def outcomes(request, once):
    """What came of everything that is tested in this session."""
    wanted = {
        item.callspec.params["job"]
        for item in request.session.items
        if "outcomes" in getattr(item, "fixturenames", ())
    }
    jobs = [(name, case.actions(kind)) for name, case, kind in JOBS]
    return once("hostile", lambda folder: runner.run(jobs, wanted))


@pytest.mark.parametrize("job", [name for name, *_ in JOBS])
def test_a_hostile_file_is_refused_or_read_as_it_should_be(job, outcomes):
    _, case, kind = next(each for each in JOBS if each[0] == job)
    faults = []
    for action in case.actions(kind):
        told = outcomes[job, action]
        faults += [f"{action}: {fault}" for fault in _faults(case, action, told)]
    assert not faults, "\n".join(faults)


def _faults(case, action, told):
    """What is not as expected."""
    if told["outcome"] not in ("OK", "SavingError"):
        trace = told.get("trace", "")
        yield f"{told['outcome']}: {told['message']}\n{trace}"
        return
    yield from _common_faults(told)
    expected, message = case.expected[action], told.get("message", "")
    if told["outcome"] == "SavingError":
        if expected == cases.OK:
            yield f"must be read, is refused: {message}"
        elif expected != cases.ANY and not re.search(expected, message, re.I):
            yield f"must say {expected!r}, says {message!r}"
        if not told["path"]:
            yield f"does not name the file: {message!r}"
        if case.placed and not told.get("dataset", True):
            yield f"does not tell the place in the file: {message!r}"
    elif expected not in (cases.OK, cases.ANY):
        yield f"must be refused with {expected!r}"
    elif action in ("load_model", "load_weights"):
        yield from _false_facts(case, action, told)


def _common_faults(told):
    if told["canary"]:
        yield "something of the file was executed"
    if told["seconds"] > runner.SECONDS:
        yield f"took {told['seconds']:.1f} s"
    if told["bytes"] > MEMORY:
        yield f"took {told['bytes'] >> 20} MiB"


def _false_facts(case, action, told):
    kernel = case.facts.get("kernel")
    if kernel and told["kernel"] != kernel:
        yield f"the kernel is {told['kernel']!r}, should be {kernel!r}"
    warned = case.facts.get("warning")
    if warned and action == "load_model":
        if not any(warned in each for each in told["warnings"]):
            yield f"should warn of the {warned}, warns {told['warnings']}"
