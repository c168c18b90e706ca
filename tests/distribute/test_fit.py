"""`fit`, `evaluate` and single batches on several workers."""

from pathlib import Path

import numpy as np

SCRIPTS = Path(__file__).parent / "scripts"
PROLOGUE = """
import numpy as np
import tapewright as tw

rank = tw.distribute.rank()
with tw.distribute.MultiWorkerMirroredStrategy().scope():
    model = tw.Sequential([tw.Input((3,)), tw.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((8, 3), "f4")
"""


def ranks_fail(run_ranks, script):
    """Return what two ranks print to stderr before they fail."""
    rc, _, stderr = run_ranks(2, PROLOGUE + script)
    assert rc != 0
    return stderr


def test_workers_get_the_numbers_of_one_process(run_ranks, tmp_path):
    def train(count, *names):
        path = tmp_path / f"{count}.npz"
        script = SCRIPTS / "same_numbers.py"
        rc, _, stderr = run_ranks(count, script, path, *names, timeout=240)
        assert rc == 0, stderr
        with np.load(path) as file:
            return dict(file)

    names = ["one_row_is_left", "fewer_rows_than_workers", "sparse_embedding"]
    one, two, three = train(1), train(2), train(3, *names)
    sharded = train(2, "--sharded"), train(3, "--sharded", *names)
    assert list(one) == list(two) == list(sharded[0])
    assert list(three) == [key for key in one if key.split(":")[0] in names]
    for several in two, three, *sharded:
        for key, value in several.items():
            peers = [k for k in one if k.split()[:2] == key.split()[:2]]
            # of all weights, or of one log
            scale = max(np.abs(one[k]).max() for k in peers)
            error = np.abs(one[key] - value).max() / scale
            limit = 1e-10 if "double" in key else 1e-6
            assert error < limit, f"{len(several)} results, {key}: {error}"


def test_workers_with_different_arrays_are_told(run_ranks):
    stderr = ranks_fail(run_ranks, "model.fit(x + rank, x[:, :1], verbose=0)")
    assert "the arrays of rank 1 differ from rank 0" in stderr


def test_a_variable_that_one_worker_changes_is_found_after_the_epoch(run_ranks):
    script = """
class Changes(tw.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1 and rank == 1:
            model.layers[0].bias.assign_add([1.0])

model.fit(x, x[:, :1], epochs=5, verbose=0, callbacks=[Changes()])
"""
    stderr = ranks_fail(run_ranks, script)
    assert "dense/bias' (1,) of rank 1 differs from rank 0" in stderr
    assert "failed in step 4:" in stderr


def test_a_mistake_in_the_labels_of_one_worker_ends_all_and_names_the_step(run_ranks):
    script = """
def batches():
    for i in range(4):
        yield x, np.full((8, 1), np.nan if i == 2 and rank == 1 else 1.0)

model.fit(batches(), epochs=1, verbose=0)
"""
    stderr = ranks_fail(run_ranks, script)
    assert "rank 1 of 2 failed in step 3: ValueError" in stderr
