"""The examples of several processes, under mpiexec."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("count", [2, 4])
def test_a_loop_of_several_processes_learns(run_ranks, count):
    script = EXAMPLES / "distributed_loop.py"
    ended = run_ranks(count, script, "--epochs", "2", timeout=120)
    assert ended.rc == 0, ended.stderr
    *epochs, last = ended.stdout.splitlines()
    assert len(epochs) == 2  # one process prints
    assert last.startswith(f"{count} processes, ")
    assert float(last.split()[-1].rstrip("%")) > 90
