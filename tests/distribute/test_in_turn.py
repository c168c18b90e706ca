"""Scripts that all ranks pass, in one job for each number of ranks: starting one takes long."""

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
# Arrays, tensors, parts of a batch with an idle replica, and at last arrays of a GPU, as their
# stand-ins stay in the process.
OF_THREE = (
    *("collectives.py", "tensors.py"),
    *("losses.py", "metrics.py", "optimizers.py", "normalization.py", "gpu.py"),
)


@pytest.mark.parametrize(
    ("count", "names"),
    [(2, ("tensors.py", "fit_together.py")), (3, OF_THREE)],
    ids=["two", "three"],
)
def test_all_ranks_pass(run_ranks, count, names):
    rc, stdout, stderr = run_ranks(count, SCRIPTS / "in_turn.py", *names, timeout=240)
    assert rc == 0, stderr
    assert stdout.split() == [*names]
