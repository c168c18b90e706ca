"""Measure all-reduce and train steps on several processes, and test a cost model.

python benchmarks/distributed.py   (about 30 s; starts mpiexec -n 2, then -n 4)

Each process runs on its own core if there are enough cores. Figures are minima over
interleaved rounds, for the slowest process. Tables:

- all-reduce of tapewright, MPI (`MPI.Allreduce`) and torch (gloo, if it is installed)
- traced steps of 784-w-w-10 with BatchNormalization and Adam: one worker with the whole
  batch; N workers with a part each, with all-reduce, with a sharded optimizer (and the
  part of the slots that a worker has), and without communication; N workers with a whole
  batch each (the speedup is then in examples per second); the prediction of `step_seconds`
- with ``--expect``, predictions for other numbers of workers and other networks

``--tcp`` sends messages through sockets instead of shared memory (MPICH).
"""

import argparse
import functools
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import tapewright as tw

BATCH, WIDTHS = 256, (256, 512, 1024, 2048)  # 1024: the network of the README's table
SIZES = (0.001, 1, 10, 100)  # MB
TCP = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
# name: seconds per message, bytes per second (assumptions)
NETWORKS = {"10 Gbit/s, TCP": (30e-6, 1.1e9), "100 Gbit/s, RDMA": (3e-6, 11e9)}


# ----------------------------------------------------------------------------- the model


def all_reduce_seconds(nbytes, workers, latency, copying, bandwidth=math.inf):
    """Return the seconds of an all-reduce, and the seconds of its network transfers.

    ``latency``: seconds per message; ``copying``: seconds per byte for copies and sums on
    each worker; ``bandwidth``: bytes per second between two workers.
    """
    if workers == 1:
        return 0.0, 0.0
    messages = math.ceil(math.log2(workers)) + 2 * (workers - 1)
    sent = 2 * (workers - 1) / workers * nbytes
    network = messages * latency + sent / bandwidth
    return network + copying * nbytes, network


def step_seconds(
    own, nbytes, workers, latency, copying, bandwidth=math.inf, bucket=25e6
):
    """Return the seconds of a train step on several workers.

    ``own``: seconds of a step on a part of the batch, without all-reduce. Two thirds of it,
    the rest of the backward pass, overlap with network transfers, except for the last bucket.
    """
    total, network = all_reduce_seconds(nbytes, workers, latency, copying, bandwidth)
    buckets = math.ceil(nbytes / bucket)
    hidden = min(network, own * 2 / 3) * (1 - 1 / buckets)
    return own + total - hidden


# -------------------------------------------------------------------------- measurements


class Job:
    """The processes of this run, each on its own core if there are enough cores."""

    def __init__(self, realtime):
        from mpi4py import MPI

        self.world, self.max = MPI.COMM_WORLD, MPI.MAX
        self.rank, self.size = self.world.rank, self.world.size
        cores = sorted(os.sched_getaffinity(0))
        core = cores[self.rank % len(cores)]
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})
            if realtime:
                os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))
        tw.config.set_threads(1)

    def wait(self):
        """Wait for all processes without using the cores."""
        request = self.world.Ibarrier()
        while not request.Test():
            time.sleep(1e-3)

    def seconds(self, call, count=1):
        """Return the seconds of a call on the slowest process."""
        self.world.Barrier()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return self.world.allreduce((time.perf_counter() - begin) / count, self.max)

    def seconds_alone(self, call, count=1):
        """Return the seconds of a call on the first process while the others wait."""
        self.wait()
        taken = 0.0
        if self.rank == 0:
            begin = time.perf_counter()
            for _ in range(count):
                call()
            taken = (time.perf_counter() - begin) / count
        self.wait()
        return self.world.bcast(taken)

    def minima(self, calls, rounds):
        """Call each ``time()`` of a dictionary in turn; return their minimum results."""
        best = dict.fromkeys(calls, math.inf)
        for _ in range(rounds):
            for name, measure in calls.items():
                best[name] = min(best[name], measure())
        return best

    def say(self, *line):
        if self.rank == 0:
            print(*line, flush=True)


def time_all_reduce(job, rounds):
    """Print the table of all-reduces; return its rows."""
    dist = gloo(job)
    job.say(f"\nall-reduce, {job.size} processes, ms")
    names = ["tapewright", "MPI", *(["gloo"] if dist else [])]
    job.say(f"{'MB':>8}", *[f"{name:>11}" for name in names], "  / MPI", "  / gloo")
    rows = []
    for size in SIZES:
        own = np.full(int(size * 250_000), job.rank + 1, np.float32)
        total, tensor = np.empty_like(own), tw.constant(own)
        calls = {
            "tapewright": lambda t=tensor: tw.distribute.all_reduce(t, "sum"),
            "MPI": lambda a=own, b=total: job.world.Allreduce(a, b),
        }
        if dist:
            import torch

            zeros = torch.zeros(own.size)
            calls["gloo"] = lambda t=zeros: dist.all_reduce(t)
        job.world.Allreduce(own, total)
        assert (calls["tapewright"]().numpy() == total).all()
        count = max(1, round(1 / size))
        measured = {
            k: functools.partial(job.seconds, c, count) for k, c in calls.items()
        }
        best = job.minima(measured, rounds)
        rows.append({"MB": size, **best})
        ratios = [f"{best['tapewright'] / best[name]:7.2f}" for name in names[1:]]
        job.say(f"{size:8}", *[f"{best[n] * 1e3:11.3f}" for n in names], *ratios)
    return rows


def gloo(job):
    """Return ``torch.distributed`` with a group of all processes.

    Return None without torch, or with processes on several hosts.
    """
    if job.world.allreduce(tw.distribute.rank() != tw.distribute.local_rank()):
        return None
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        return None
    torch.set_num_threads(1)
    port = None
    if job.rank == 0:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    port = job.world.bcast(port)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=job.rank,
        world_size=job.size,
    )
    return dist


def make_step(width, batch, reduced, sharded=False):
    """Return a traced train step, the model and the optimizer.

    ``reduced``: with all-reduce; ``sharded``: with a divided optimizer.
    """
    import numpy as np

    import tapewright as tw
    from tapewright.keras import layers

    hidden = []
    for _ in range(2):
        hidden += [layers.Dense(width, use_bias=False), layers.BatchNormalization()]
        hidden += [layers.ReLU()]
    model = tw.keras.Sequential([tw.keras.Input((784,)), *hidden, layers.Dense(10)])
    optimizer = tw.optimizers.Adam()
    if sharded:
        tw.distribute.shard_optimizer(optimizer)
    optimizer.build(model.trainable_variables)
    tw.distribute.broadcast_variables(model.variables)
    generator = np.random.default_rng(tw.distribute.rank())
    x = tw.constant(generator.random((batch, 784), np.float32))
    y = tw.constant(generator.integers(0, 10, batch))

    @tw.function
    def step(x, y):
        with tw.GradientTape() as tape:
            logits = model(x, training=True)
            losses = tw.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tw.reduce_mean(losses)
        if reduced:
            tape = tw.distribute.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return lambda: step(x, y), model, optimizer


def time_steps(job, rounds, widths, network):
    """Print the tables of steps; return their rows."""
    rows = []
    for width in widths:
        whole, *_ = make_step(width, BATCH, False)
        part, model, optimizer = make_step(width, BATCH // job.size, False)
        step, replica, _ = make_step(width, BATCH // job.size, True)
        sharded, twin, divided = make_step(width, BATCH // job.size, True, True)
        weak, *_ = make_step(width, BATCH, True)
        for call in 2 * (whole, part, step, sharded, weak):
            call()
        weights = model.trainable_variables
        gradients = [tw.ones_like(v) for v in weights]
        count = max(1, round(512 / width) ** 2) * 2
        best = job.minima(
            {
                "whole": lambda c=whole, n=count: job.seconds_alone(c, n),
                "part": lambda c=part, n=count: job.seconds_alone(c, n),
                "parts": lambda c=part, n=count: job.seconds(c, n),
                "steps": lambda c=step, n=count: job.seconds(c, n),
                "sharded": lambda c=sharded, n=count: job.seconds(c, n),
                "weak": lambda c=weak, n=count: job.seconds(c, n),
                "update": lambda o=optimizer, g=gradients, n=count: job.seconds(
                    lambda: o.apply(g), n
                ),
            },
            rounds,
        )
        for each in replica, twin:
            tw.distribute.check_variables(each.trainable_variables)
        nbytes = sum(v.numpy().nbytes for v in weights)
        # workers that share a core take turns
        turns = math.ceil(job.size / os.cpu_count())
        own, saved = best["parts"] * turns, best["update"] * turns * (1 - 1 / job.size)
        every = {
            "steps": step_seconds(own, nbytes, job.size, **network),
            "sharded": step_seconds(own - saved, nbytes, job.size, **network),
        }
        slots = sum(v._array.nbytes for v in divided.variables) / (2 * nbytes)
        found = {"width": width, "bytes": nbytes, "slots": slots, "predicted": every}
        rows.append({**found, **best})
    job.say(
        f"\nsteps of 784-w-w-10, batch {BATCH}, {job.size} workers with {BATCH // job.size}"
        f" each, ms; sharded: with 1/{job.size} of the slots and of the update\n"
        f"{'w':>6} {'MB':>5} {'1 worker':>9} {f'{job.size} workers':>10} {'speedup':>8} "
        f"{'predicted':>10} {'sharded':>8} {'speedup':>8} {'predicted':>10} {'slots':>6}"
    )
    for row in rows:
        whole, line = row["whole"], f"{row['width']:6} {row['bytes'] / 1e6:5.1f} "
        line += f"{whole * 1e3:9.2f} "
        for name, places in (("steps", 10), ("sharded", 8)):
            took, off = row[name], row["predicted"][name] / row[name] - 1
            line += f"{took * 1e3:{places}.2f} {whole / took:8.2f} {off:+10.0%} "
        job.say(f"{line}{row['slots']:6.2f}")
    job.say(
        f"\n{'w':>6} {f'{BATCH} each':>9} {'speedup':>8} {'no all-reduce':>14} {'share':>6} "
        f"{'update':>7}"
    )
    for row in rows:
        job.say(
            f"{row['width']:6} {row['weak'] * 1e3:9.2f} "
            f"{job.size * row['whole'] / row['weak']:8.2f} {row['parts'] * 1e3:14.2f} "
            f"{1 - row['parts'] / row['steps']:6.0%} {row['update'] * 1e3:7.2f}"
        )
    return rows


def fit_network(rows, workers):
    """Return latency and copying, from all-reduces of the smallest size and of 10 MB."""
    seconds = {row["MB"]: row["tapewright"] for row in rows}
    messages = math.ceil(math.log2(workers)) + 2 * (workers - 1)
    small, large = SIZES[0], 10
    latency = seconds[small] / messages
    return {"latency": latency, "copying": (seconds[large] - seconds[small]) / 10e6}


def expect(job, row, copying, batch=8192):
    """Print predictions for other numbers of workers and other networks."""
    part = BATCH // job.size
    each = (row["whole"] - row["part"]) / (BATCH - part)
    fixed = row["whole"] - BATCH * each
    job.say(
        f"\npredicted for w = {row['width']}: {fixed * 1e3:.2f} ms and {each * 1e6:.1f} us per "
        f"example; weak: {BATCH} examples each, strong: {batch} in all\n"
        f"{'network':>16} {'workers':>8} {'weak, ms':>9} {'efficiency':>10} "
        f"{'strong, ms':>10} {'speedup':>8}"
    )
    for name, (latency, bandwidth) in NETWORKS.items():
        for workers in (8, 64, 512):
            arguments = row["bytes"], workers, latency, copying, bandwidth
            weak = step_seconds(fixed + BATCH * each, *arguments)
            strong = step_seconds(fixed + batch / workers * each, *arguments)
            job.say(
                f"{name:>16} {workers:8} {weak * 1e3:9.2f} "
                f"{(fixed + BATCH * each) / weak:10.0%} {strong * 1e3:10.2f} "
                f"{(fixed + batch * each) / strong:8.1f}"
            )


# -------------------------------------------------------------------------------- script


def start(count, options):
    """Run this script on ``count`` processes."""
    beside = os.fspath(Path(sys.executable).parent)
    launcher = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if launcher is None:
        raise SystemExit("there is no mpiexec: pip install mpi4py mpich")
    environment = {k: v for k, v in os.environ.items() if k not in UNSET}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "TAPEWRIGHT_MPI": "1"}
    environment |= TCP if options.tcp else {}
    command = [launcher, "-n", str(count), sys.executable, *sys.argv]
    subprocess.run(command, env=environment, check=True)


def measure(options):
    """Measure in the processes of this job."""
    job = Job(options.realtime)
    figures = {
        "processes": job.size,
        "all_reduce": time_all_reduce(job, options.rounds),
    }
    network = fit_network(figures["all_reduce"], job.size)
    job.say(
        f"\nfitted: {network['latency'] * 1e6:.0f} us per message, "
        f"{1e-9 / network['copying']:.2f} GB/s"
    )
    figures["network"] = network
    figures["steps"] = time_steps(job, options.rounds, options.widths, network)
    if options.expect:
        for row in figures["steps"]:
            expect(job, row, network["copying"])
    if options.json and job.rank == 0:
        path = Path(options.json)
        earlier = json.loads(path.read_text()) if path.exists() else []
        path.write_text(json.dumps([*earlier, figures], indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    numbers = functools.partial(map, int)
    add("--processes", type=lambda t: [*numbers(t.split(","))], default=[2, 4])
    add("--widths", type=lambda t: [*numbers(t.split(","))], default=WIDTHS)
    add("--rounds", type=int, default=7)
    add("--realtime", action="store_true", help="run with real-time priority (root)")
    add("--tcp", action="store_true", help="use sockets, with MPICH")
    add("--expect", action="store_true", help="print predictions for other systems")
    add("--json", metavar="FILE", help="append the figures to a file")
    options = parser.parse_args()
    if tw.distribute.size() > 1:
        measure(options)
        return
    for count in options.processes:
        start(count, options)


if __name__ == "__main__":
    main()
