"""The examples of several processes, under mpiexec."""

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_loop_of_several_processes_learns(run_ranks):
    script = EXAMPLES / "distributed_loop.py"
    ended = run_ranks(3, script, "--epochs", "2", timeout=120)
    assert ended.rc == 0, ended.stderr
    *epochs, last = ended.stdout.splitlines()
    assert len(epochs) == 2  # one process prints
    assert last.startswith("3 processes, ")
    assert float(last.split()[-1].rstrip("%")) > 90
