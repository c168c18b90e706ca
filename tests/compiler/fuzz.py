#!/usr/bin/env python
"""Random programs, traced against eager.

    python tests/compiler/fuzz.py -n 2000 --seed 0         makes up and checks 2000 programs
    python tests/compiler/fuzz.py --seed 0 --only 17       one of them, by its number
    python tests/compiler/fuzz.py program.py               a program that was printed

A program that fails is made smaller and printed as Python source; the exit status is 1.
"""

import argparse
import collections
import os
import sys
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

    if args.program:
        checking.check(Path(args.program).read_text())
        return 0
    numbers = args.only or range(args.first, args.first + args.n)
    return fuzz(args.seed, numbers, args.keep_going, args.shrink)


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
    return parser.parse_args(arguments)


def fuzz(seed, numbers, keep_going=False, seconds=60.0):
    """Checks programs of a seed; prints those that fail, and how many there were."""
    from fuzzing import checking, generating
    from tqdm import tqdm

    counts, failed = collections.Counter(), 0
    for number in tqdm(numbers, disable=None, desc=f"seed {seed}"):
        program = generating.generate(seed, number)
        try:
            errors = checking.check(program.source())
            counts.update([type(e).__name__ if e else "returned" for e in errors])
        except checking.Refusal as refusal:
            counts[type(refusal).__name__] += 1
        except checking.Difference as difference:
            failed += 1
            report(program, seed, number, difference, seconds)
            if not keep_going:
                break
    print(
        f"seed {seed}, {len(numbers)} programs, {failed} failed; calls: {dict(counts)}"
    )
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
