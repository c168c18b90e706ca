#!/usr/bin/env python
"""Random programs, traced against eager.

    python tests/compiler/fuzz.py -n 2000 --seed 0         makes up and checks 2000 programs
    python tests/compiler/fuzz.py --seed 0 --only 17       one of them, by its number
    python tests/compiler/fuzz.py program.py               a program that was printed
    python tests/compiler/fuzz.py --device cupy            on a GPU, or strict

A program that fails is made smaller and printed as Python source; the exit status is 1.
"""

import argparse
import collections
import os
import sys
import time
from pathlib import Path


def main(arguments=None):
    args = parsed(arguments)
    os.environ.setdefault("TAPEWRIGHT_VERIFY", "1")  # each program is verified, too
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import tapewright  # noqa: F401
    except ImportError as error:
        sys.exit(f"fuzz: tapewright cannot be imported ({error}): pip install -e .")
    from fuzzing import checking

    with used(args.device):
        if args.program:
            checking.check(Path(args.program).read_text())
            return 0
        numbers = args.only or range(args.first, args.first + args.n)
        return fuzz(args.seed, numbers, args.keep_going, args.shrink, args.seconds)


def used(device):
    """Return a context in which arrays are made on a device, named as for pytest."""
    import tapewright
    from tapewright.core.hardware import devices

    if device != "strict":
        tapewright.config.set_soft_device_placement(False)
        return devices.device("GPU" if device == "cupy" else "CPU")
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from stand_in.arrays import registered

    return devices.use_module(registered())


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", help="a file with a program")
    parser.add_argument("-n", type=int, default=200, help="number of programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of some programs")
    parser.add_argument(
        "--keep-going", action="store_true", help="not only to the first failure"
    )
    parser.add_argument(
        "--shrink", type=float, default=60.0, help="seconds for making one smaller"
    )
    parser.add_argument(
        "--seconds", type=float, help="start no further program after this time"
    )
    parser.add_argument("--device", choices=("cpu", "cupy", "strict"), default="cpu")
    return parser.parse_args(arguments)


def fuzz(seed, numbers, keep_going=False, shrink=60.0, seconds=None):
    """Checks programs of a seed; prints those that fail, and how many there were."""
    from fuzzing import checking, generating
    from tqdm import tqdm

    counts, checked, failed = collections.Counter(), 0, 0
    deadline = None if seconds is None else time.monotonic() + seconds
    for number in tqdm(numbers, disable=None, desc=f"seed {seed}"):
        if deadline is not None and time.monotonic() > deadline:
            break
        checked += 1
        program = generating.generate(seed, number)
        try:
            errors = checking.check(program.source())
            counts.update([type(e).__name__ if e else "returned" for e in errors])
        except checking.Refusal as refusal:
            counts[type(refusal).__name__] += 1
        except checking.Difference as difference:
            failed += 1
            report(program, seed, number, difference, shrink)
            if not keep_going:
                break
    print(f"seed {seed}, {checked} programs, {failed} failed; calls: {dict(counts)}")
    return 1 if failed else 0


def report(program, seed, number, difference, seconds):
    from fuzzing import checking, shrinking

    def fails(candidate):
        found = checking.failure(candidate.source())
        return found is not None and found.kind == difference.kind

    print(f"\nseed {seed}, program {number}: {difference}", flush=True)
    if seconds:
        program = shrinking.shrunk(program, fails, seconds)
        print(f"\nmade smaller: {checking.failure(program.source())}", flush=True)
        print(f"\n{program.script()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
