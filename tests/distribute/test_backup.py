"""Backups and other files of several workers, which are killed and go on."""

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parent / "scripts"


def outcome(folder, rank=0):
    with np.load(folder / f"outcome_{rank}.npz") as found:
        return dict(found)


@pytest.fixture
def train(start_ranks, tmp_path):
    """Train in a folder to the end, or until a rank gets a signal after so many batches."""

    def run(
        size, name, kind, batches=None, delay=0, rank=0, number=signal.SIGKILL,
        options=(),
    ):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        job = start_ranks(size, SCRIPTS / "backup_trainee.py", kind, folder, *options)
        if batches is not None:
            process = job.started()[rank]
            lines = (line for line in job.lines() if line.startswith("batch"))
            for _, _ in zip(range(batches), lines):
                pass
            time.sleep(delay)
            os.kill(process, number)
        ended = job.end()
        assert (ended.rc == 0) == (batches is None), ended.stderr
        return folder, ended

    return run


def test_workers_that_are_killed_train_as_those_that_were_not(train):
    kind, chances = "py_dataset", random.Random(3)
    batches, delay = chances.randint(0, 12), chances.uniform(0, 0.02)
    train(2, "parts", kind, batches, delay, rank=chances.randint(0, 1))
    parts, _ = train(2, "parts", kind, 4, rank=1, number=signal.SIGTERM)
    assert os.path.exists(parts / "backup" / "latest.h5")
    train(2, "parts", kind)
    whole, _ = train(2, "whole", kind)
    for rank in range(2):
        np.testing.assert_equal(outcome(parts, rank), outcome(whole))
    assert sorted(os.listdir(parts)) == ["outcome_0.npz", "outcome_1.npz"]


@pytest.mark.parametrize("options", [(), ("2", "sharded")])
def test_another_number_of_workers_goes_on_to_the_same_results(train, options):
    whole, _ = train(1, "whole", "arrays")
    train(3, "parts", "arrays", batches=7, options=options)
    train(1, "parts", "arrays", batches=6, options=options)
    parts, ended = train(2, "parts", "arrays", options=options)
    assert ended.stdout.count("number of workers has changed from 1 to 2") == 1
    found, expected = outcome(parts), outcome(whole)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)


def test_only_rank_0_needs_the_folders_of_files(run_ranks, tmp_path):
    """Each rank is in a folder of its own, as on hosts of their own."""
    ended = run_ranks(
        2,
        """
        import os, sys
        import numpy as np
        import tapewright as tw
        from tapewright.keras import callbacks

        rank = tw.distribute.rank()
        os.makedirs(f"{sys.argv[1]}/{rank}")
        os.chdir(f"{sys.argv[1]}/{rank}")

        class Stop(callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                if epoch == 1:
                    raise KeyboardInterrupt

        def fit(*more):
            tw.keras.utils.set_random_seed(1)
            with tw.distribute.MultiWorkerMirroredStrategy().scope():
                model = tw.Sequential([tw.layers.Dense(1)])
            model.compile("adam", "mse")
            x = np.linspace(0, 1, 12, dtype="f4").reshape(12, 1)
            writers = [
                callbacks.ModelCheckpoint("best.keras", "loss", save_best_only=True),
                callbacks.CSVLogger("log.csv"),
                callbacks.TensorBoard("board", histogram_freq=1),
                callbacks.BackupAndRestore("backup", delete_checkpoint=False),
            ]
            history = model.fit(x, 2 * x, 4, 4, 2, callbacks=[*writers, *more])
            weights = [w.ravel() for w in model.get_weights()]
            return np.concatenate([history.history["loss"], *weights])

        try:
            fit(Stop())
        except KeyboardInterrupt:
            pass
        np.save("../continued_%d.npy" % rank, fit())
        names = sorted(os.listdir("."))
        tw.distribute.barrier()
        if rank == 0:
            assert names == ["backup", "best.keras", "board", "log.csv"], names
            assert len(open("log.csv").readlines()) == 5
            os.remove("best.keras")
            open("backup/latest.h5", "r+b").write(b"no backup")
        else:
            assert names == [], names
        tw.distribute.barrier()
        try:
            fit()
        except tw.errors.SavingError as error:
            print("rank", rank, error)
        """,
        tmp_path,
    )
    assert ended.rc == 0, ended.stderr
    assert ended.stdout.count("Epoch 2/4\n3/3") == 1
    assert ended.stdout.count("Epoch 3/4\n3/3") == 1
    for rank in range(2):
        assert f"rank {rank} backup/latest.h5" in ended.stdout
    first, other = (np.load(tmp_path / f"continued_{rank}.npy") for rank in range(2))
    np.testing.assert_array_equal(first, other)
    assert len(first) == 6
