"""Train on a large HDF5 file that is not loaded into memory; measure memory and speed.

python benchmarks/hdf5_data.py   (writes 4 GB into a temporary folder, about half a minute)

The script runs one epoch of `fit` on a shuffled `Dataset.from_hdf5`, on one process, then on
two. It prints the peak memory of each process, the rate, and the accuracy, which shows that
rows and labels match. Each process reads its own part. The system's page cache is not counted.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from tqdm import tqdm

import tapewright as tw

FEATURES, CLASSES, BATCH = 1024, 10, 256
AT_ONCE = 1 << 14  # rows to write at once


def write(path, rows, chunk_rows):
    """Write rows of noise in which a class is marked, and the labels."""
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        chunks = (chunk_rows, FEATURES) if chunk_rows else None
        images = file.create_dataset(
            "images", (rows, FEATURES), "float32", chunks=chunks
        )
        labels = file.create_dataset("labels", (rows,), "int64")
        for start in tqdm(range(0, rows, AT_ONCE), desc="writing", unit="part"):
            count = min(AT_ONCE, rows - start)
            y = rng.integers(0, CLASSES, count)
            x = rng.standard_normal((count, FEATURES), np.float32)
            x[np.arange(count), y] += 6
            images[start : start + count], labels[start : start + count] = x, y


def train(path):
    """Train one epoch on the file, on all processes of the job; print the figures."""
    tw.random.set_seed(0)
    strategy = tw.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        layers = tw.keras.layers
        hidden = layers.Dense(64, activation="relu")
        model = tw.keras.Sequential([hidden, layers.Dense(CLASSES)])
        loss = tw.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
    rows = tw.data.Dataset.from_hdf5(path, ("images", "labels"), shuffle=True, seed=0)
    before = _peak()
    begin = time.perf_counter()
    history = model.fit(rows.batch(BATCH).prefetch(2), epochs=1, verbose=0).history
    seconds = time.perf_counter() - begin
    peaks = [before, _peak()]
    if tw.distribute.size() > 1:
        peaks = tw.distribute.all_reduce(tw.constant(peaks), "max").numpy().tolist()
    if tw.distribute.rank() == 0:
        rate = os.path.getsize(path) / seconds
        print(
            f"{tw.distribute.size():9} {peaks[0]:11.0f} {peaks[1]:11.0f} {seconds:8.1f} "
            f"{rate / 1e6:7.0f} {history['accuracy'][-1]:9.4f}"
        )


def _peak():
    """Return the peak memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # on other systems the peak includes the parent process
        (line,) = [t for t in status.read_text().split("\n") if t.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def start(count, options, path):
    """Run this script on ``count`` processes, on the file."""
    command = [sys.executable, __file__, "--file", os.fspath(path)]
    if count > 1:
        beside = os.fspath(Path(sys.executable).parent)
        launcher = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
        if launcher is None:
            print(f"{count:9} (mpiexec not found: pip install mpi4py mpich)")
            return
        command = [launcher, "-n", str(count), *command]
    subprocess.run(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--gigabytes", type=float, default=4.0, help="size of the file")
    add("--chunk-rows", type=int, default=64, help="rows per chunk; 0: contiguous")
    add("--processes", default="1,2")
    add("--out", help="folder for the temporary file")
    add("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.file:
        train(options.file)
        return
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        path = Path(folder) / "data.h5"
        write(path, int(options.gigabytes * 1e9 / FEATURES / 4), options.chunk_rows)
        print(f"{path.stat().st_size / 1e9:.2f} GB, {BATCH} rows per batch")
        print(
            "processes  MB, before    MB, peak  seconds    MB/s  accuracy", flush=True
        )
        for count in map(int, options.processes.split(",")):
            start(count, options, path)


if __name__ == "__main__":
    main()
