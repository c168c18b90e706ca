"""The job of a process: alone, or one of several that a launcher has started."""

import os
import subprocess
import sys

ASK = """
import sys

{first}
from tapewright.core.communication.job import communicator, launched_size

job = communicator()
print(job.rank, job.size, launched_size(), "mpi4py" in sys.modules)
"""


def test_ranks_of_a_job_know_their_number_and_that_of_all(run_ranks):
    rc, stdout, stderr = run_ranks(
        2,
        """
        import subprocess, sys
        import tapewright as tw
        from tapewright.core.communication.job import communicator, launched_size

        job = communicator()
        print(job.rank, job.size, job.local_rank, job.local_size, launched_size())
        if len(sys.argv) == 1:  # a process that a rank starts is alone
            subprocess.run([sys.executable, __file__, "child"], check=True)
        job.barrier()
        """,
    )
    assert rc == 0, stderr
    assert sorted(stdout.split("\n")) == [
        "",
        "0 1 0 1 1",
        "0 1 0 1 1",
        "0 2 0 2 2",
        "1 2 1 2 2",
    ]


def test_a_job_may_have_one_process_and_mpi4py_may_come_first(run_ranks):
    rc, stdout, stderr = run_ranks(1, ASK.format(first=""))
    assert (rc, stdout) == (0, "0 1 1 False\n"), stderr
    rc, stdout, stderr = run_ranks(2, ASK.format(first="from mpi4py import MPI"))
    assert rc == 0, stderr
    assert sorted(stdout.splitlines()) == ["0 2 2 True", "1 2 2 True"]


def test_a_job_is_joined_where_stderr_is_no_file(run_ranks):
    first = "import io; from mpi4py import MPI; sys.stderr = io.StringIO()"
    rc, stdout, stderr = run_ranks(1, ASK.format(first=first))
    assert (rc, stdout) == (0, "0 1 1 True\n"), stderr


def test_several_processes_without_mpi4py_are_an_error_on_every_rank(run_ranks):
    rc, stdout, stderr = run_ranks(2, ASK.format(first="sys.modules['mpi4py'] = None"))
    assert rc != 0
    assert stdout.count("mpi4py") == 0
    assert (
        "ImportError: 2 processes were started by an MPI launcher, but mpi4py" in stderr
    )
    assert "pip install 'tapewright[mpi]'" in stderr


def alone(first="", **environment):
    """Run `ASK` in one process, without a launcher."""
    code, environment = ASK.format(first=first), {**os.environ, **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_a_process_without_a_launcher_is_alone_and_imports_no_mpi():
    assert alone().stdout == "0 1 1 False\n"
    result = alone("sys.modules['mpi4py'] = None", TAPEWRIGHT_MPI="1")
    assert "ImportError: TAPEWRIGHT_MPI is set, but mpi4py" in result.stderr


def test_a_process_that_the_launcher_of_another_mpi_started_is_an_error(run_ranks):
    result = alone(OMPI_COMM_WORLD_SIZE="4")
    assert result.returncode == 1
    expected = (
        "RuntimeError: 4 processes were started by an MPI launcher, but mpi4py sees 1"
    )
    assert expected in result.stderr
    assert alone(TAPEWRIGHT_MPI="1").stdout == "0 1 1 True\n"
