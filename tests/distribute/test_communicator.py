"""The communicator of one process, of a fork, and the end of a job."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "scripts" / "collectives.py"


def test_collectives_of_one_process_are_copies():
    subprocess.run([sys.executable, os.fspath(SCRIPT)], check=True)


def test_a_process_that_is_forked_has_no_part_in_the_job(run_ranks):
    rc, _, stderr = run_ranks(
        2,
        """
        import multiprocessing, os, subprocess, sys
        import numpy as np
        from tapewright.core.communication.job import communicator
        from tapewright.errors import CollectiveError

        job = communicator()

        def collective():
            try:
                job.barrier()
            except CollectiveError as error:
                assert f"forked from rank {job.rank} of 2" in str(error)
                raise SystemExit(7)

        def failure():
            raise ValueError("of a child")

        fork = multiprocessing.get_context("fork")
        for target, code in [(collective, 7), (failure, 1)]:
            child = fork.Process(target=target)
            child.start()
            child.join()
            assert child.exitcode == code, child.exitcode
            job.barrier()  # the job goes on
        if os.fork() == 0:  # without the handler of multiprocessing
            try:
                failure()
            except ValueError:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        os.wait()
        assert subprocess.run([sys.executable, "-c", "1/0"]).returncode == 1
        job.barrier()
        """,
    )
    assert rc == 0, stderr
    assert "tapewright:" not in stderr


def test_ranks_wait_at_the_end_for_one_that_works_on(run_ranks):
    rc, stdout, stderr = run_ranks(
        2,
        """
        import time
        from tapewright.core.communication.job import communicator

        job = communicator()
        job.timeout = 0.5
        if job.rank == 0:
            time.sleep(1)  # more than the timeout
            print("done")
        """,
    )
    assert (rc, stdout, stderr) == (0, "done\n", "")
