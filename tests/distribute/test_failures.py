"""A rank that fails ends the whole job within seconds, with a message that says which."""

import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
# A job that fails ends in a few seconds. A busy machine may need longer; ranks that miss the
# failure would wait for each other for 600 s.
SECONDS = 120
KILLED = r"rank 1 of 2 \(process \d+ on .+\) was killed, crashed or exited in step 3"


@pytest.mark.parametrize(
    ("way", "message"),
    {
        "raise": "rank 1 of 2 failed in step 3: ValueError: bad example",
        "raise while others wait in threads": "rank 1 of 2 failed in step 3: ValueError",
        "interrupt": "rank 1 of 2 failed in step 3: KeyboardInterrupt",
        "exit": r"rank 0: all_reduce.*\n  rank 1: leave the job",
        "leave": r"rank 0: all_reduce.*\n  rank 1: leave the job",
        "call another collective": r"rank 0: all_reduce.*\n  rank 1: barrier \(step 3, ",
        "call another shape": r"float32\[1000\].*\n  rank 1: .*float32\[999\]",
        "call another operation": r"all_reduce sum.*\n  rank 1: all_reduce max",
        "call in another order": r"all_reduce sum.*\n  rank 1: all_gather of float64\[\?\]",
        "catch the error and go on": r"float32\[1000\].*\n  rank 1: .*float32\[7\]",
        "catch the error and leave": r"float32\[1000\].*\n  rank 1: .*float32\[7\]",
        "hang": r"rank 0 of 2 has waited \d+ s .* step 3; rank 1 is in step 3",
        "fork and crash": KILLED,
        "exit at once": KILLED,
        "crash": KILLED,
        "terminate": KILLED,
    }.items(),
)
def test_the_job_ends_with_a_message_when_a_rank_does(start_ranks, way, message):
    timeout = {"TAPEWRIGHT_TIMEOUT": "5"} if way == "hang" else {}
    job = start_ranks(2, SCRIPTS / "failure.py", way, env=timeout)
    result = job.end(SECONDS)
    assert result.rc != 0
    assert job.is_gone(SECONDS)
    assert result.stdout.count("before") == 2, result
    assert re.search(message, result.stderr), result.stderr
    assert result.stderr.count("tapewright: rank") == 1, result.stderr


@pytest.mark.parametrize(
    ("work", "options"),
    [
        ("reduce", []),
        ("compute", []),
        ("sleep", []),
        ("sleep", ["-disable-auto-cleanup"]),  # a launcher that does nothing
    ],
)
def test_the_job_ends_when_a_rank_is_killed(start_ranks, work, options):
    job = start_ranks(2, SCRIPTS / "steps.py", work, options=options)
    killed = random.randrange(2)
    kill(job, killed, signal.SIGKILL)
    result = job.end(SECONDS)
    assert result.rc != 0
    assert job.is_gone(SECONDS)
    assert re.findall(r"tapewright: rank (\d)", result.stderr) == [str(killed)], result


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        ("01", []),
        ("1", ["-hosts", "localhost,127.0.0.1"]),  # alone on its host
        ("0", ["-disable-auto-cleanup"]),
    ],
)
def test_the_job_fails_if_a_rank_exits_with_code_0(start_ranks, ranks, options):
    script = """
        import os, sys

        import tapewright as tw

        tw.distribute.barrier()
        if str(tw.distribute.rank()) in sys.argv[1]:
            os._exit(0)
        tw.distribute.barrier()
    """
    job = start_ranks(2, script, ranks, options=options)
    result = job.end(SECONDS)
    assert result.rc == 1
    assert job.is_gone(SECONDS)
    ended = r"tapewright: rank (\d) of 2 .* was killed, crashed or exited in step 1"
    assert set(re.findall(ended, result.stderr)) <= set(ranks), result.stderr
    assert re.search(ended, result.stderr), result.stderr


@pytest.mark.parametrize(
    ("count", "way"),
    [
        (2, "raise before the import"),
        (3, "exit before the import"),
        (2, "exit after the import"),
    ],
)
def test_the_job_ends_when_a_rank_does_before_it_joins(start_ranks, count, way):
    script = """
        import os, sys

        way, ends = sys.argv[1], os.environ["PMI_RANK"] == "1"
        if ends and way == "raise before the import":
            raise ImportError("no such module")
        if ends and way == "exit before the import":
            sys.exit(0)

        import tapewright as tw

        if ends and way == "exit after the import":
            sys.exit(0)
        tw.distribute.size()
        print("joined")
    """
    job = start_ranks(count, script, way)
    result = job.end(SECONDS)
    assert result.rc != 0
    assert job.is_gone(SECONDS)
    assert "joined" not in result.stdout
    message = rf"tapewright: rank 1 of {count} on .* ended before joining the job"
    assert len(re.findall(message, result.stderr)) == 1, result.stderr


def test_a_rank_that_is_late_is_waited_for(start_ranks):
    """One that another program runs, and one that has overwritten its environment."""
    script = """
        import ctypes, os, subprocess, sys, time

        late = os.environ["PMI_RANK"]
        if late == "1" and "RUN" not in os.environ:
            os.environ["RUN"] = "1"
            sys.exit(subprocess.call([sys.executable, *sys.argv], close_fds=False))
        if late == "2":
            with open("/proc/self/stat") as file:
                start, end = map(int, file.read().split()[49:51])
            ctypes.memset(start, 0, end - start)
            for name, value in os.environ.items():
                os.putenv(name, value)
        if late != "0":
            time.sleep(4)

        import tapewright as tw

        print(tw.distribute.size())
    """
    result = start_ranks(3, script).end(SECONDS)
    assert result.rc == 0, result.stderr
    assert result.stdout.split() == ["3"] * 3


def test_ranks_wait_for_one_that_does_not_join_until_the_timeout(start_ranks):
    script = """
        import os, time

        import tapewright as tw

        if os.environ["PMI_RANK"] == "1":
            time.sleep(1000)
        tw.distribute.size()
    """
    job = start_ranks(2, script, env={"TAPEWRIGHT_TIMEOUT": "0.3"})
    result = job.end(SECONDS)
    assert result.rc != 0
    assert "in _wait_for_all_ranks_to_join" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_process_is_left_when_the_launcher_is_interrupted(start_ranks, number):
    job = start_ranks(2, SCRIPTS / "steps.py", "sleep")
    job.started()
    job.send(number)
    assert job.end(SECONDS).rc != 0
    assert job.is_gone(SECONDS)


def test_no_process_is_left_when_the_launcher_is_killed(start_ranks):
    job = start_ranks(2, SCRIPTS / "steps.py", "sleep")
    job.started()
    job.send(signal.SIGKILL)
    assert job.is_gone(SECONDS)


def test_no_process_is_left_when_a_rank_is_killed_at_its_start(start_ranks):
    for seconds in (0.0, 0.2, 0.4):
        job = start_ranks(2, SCRIPTS / "steps.py", "reduce")
        ranks = wait_for_ranks(job)
        time.sleep(seconds)
        os.kill(random.choice(ranks), signal.SIGKILL)
        assert job.end(SECONDS).rc != 0
        assert job.is_gone(SECONDS)


def wait_for_ranks(job):
    """Return the processes of the ranks, as soon as there are any."""
    last = time.monotonic() + SECONDS
    while not (ranks := job.processes("steps.py")):
        assert time.monotonic() < last, "no rank has started"
        time.sleep(0.01)
    return ranks


def kill(job, rank, number):
    """Send a signal to a rank, some time after its first steps."""
    process = job.started()[rank]
    time.sleep(random.uniform(0.1, 0.4))
    os.kill(process, number)
