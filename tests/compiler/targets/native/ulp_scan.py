#!/usr/bin/env python
"""The largest errors of functions of numbers as machine code.

    python tests/compiler/targets/native/ulp_scan.py                  all functions
    python tests/compiler/targets/native/ulp_scan.py exp tanh         some
    python tests/compiler/targets/native/ulp_scan.py --every 64       one in 64 of all floats

Of one argument, all 2^32 numbers of float32 are tried against NumPy's float64, and
samples of float64 against long doubles; of two arguments, samples. About a minute per
function. The table is Markdown.
"""

import argparse
import functools
import itertools
import multiprocessing
import sys
from pathlib import Path

import numpy as np

UNARY = """exp exp2 expm1 log log2 log10 log1p tanh sinh cosh sin cos tan arcsin arccos
arctan arcsinh arccosh arctanh cbrt sqrt reciprocal""".split()
BINARY = "power arctan2 hypot".split()
CHUNK = 1 << 16


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=UNARY + BINARY)
    parser.add_argument("--every", type=int, default=1, help="1 in so many float32")
    parser.add_argument("--samples", type=int, default=1 << 23, help="of float64")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cpu", help="LLVM's name of another CPU, such as haswell")
    args = parser.parse_args()
    print("| function | float32 | at | float64 | at |\n| --- | --- | --- | --- | --- |")
    with multiprocessing.Pool(args.processes) as pool:
        for name in args.names:
            cells = [scanned(pool, name, code, args) for code in "fd"]
            print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


def scanned(pool, name, code, args):
    """The largest error and where it is, as two cells of the table."""
    from tqdm import tqdm

    from tapewright.compiler.targets.native.math_functions import is_supported

    nin = getattr(np, name).nin
    if not is_supported(name, code * nin, code):
        return " | "
    everything = code == "f" and nin == 1
    numbers = (
        range(0, 1 << 16, args.every) if everything else range(args.samples // CHUNK)
    )
    work = [(name, code, args.cpu, everything, each) for each in numbers]
    batches = [work[i : i + 64] for i in range(0, len(work), 64)]
    found = tqdm(
        pool.imap_unordered(worst_of, batches),
        total=len(batches),
        desc=f"{name} {np.dtype(code)}",
        leave=False,
        file=sys.stderr,
    )
    error, at = max(found, key=lambda pair: pair[0])
    return f"{error:.3f} | {', '.join([f'{x:.9g}' for x in at])}"


def worst_of(batch):
    return max(itertools.starmap(worst, batch), key=lambda pair: pair[0])


def worst(name, code, cpu, everything, number):
    """The largest error in one chunk of numbers, and the arguments."""
    from native_loops import ulps

    dtype, ufunc = np.dtype(code), getattr(np, name)
    if everything:
        bits = np.arange(number * CHUNK, (number + 1) * CHUNK, dtype=np.uint32)
        args = [bits.view(np.float32)]
    else:
        args = samples(np.random.default_rng(number), dtype, ufunc.nin)
    with np.errstate(all="ignore"):
        result = loop(name, code * ufunc.nin, cpu)(name, *args)
        wide = np.float64 if code == "f" else np.longdouble
        exact = ufunc(*[x.astype(wide) for x in args])
        errors = ulps(result, exact)
    at = errors.argmax()
    return float(errors[at]), [float(x[at]) for x in args]


@functools.cache
def loop(name, codes, cpu):
    from native_loops import Loops

    return Loops([(name, codes, codes[0])], cpu)


def samples(rng, dtype, count):
    """Arguments of all sizes, and more of the usual ones."""
    quarter = CHUNK // 4
    kinds = [
        lambda: rng.integers(
            0, 2 ** (8 * dtype.itemsize), quarter, dtype=f"u{dtype.itemsize}"
        ).view(dtype),
        lambda: rng.normal(0, 1, quarter),
        lambda: rng.normal(0, 20, quarter),
        lambda: 1 + rng.normal(0, 0.2, quarter),
    ]
    args = [
        np.concatenate([kind() for kind in kinds], dtype=dtype) for _ in range(count)
    ]
    return [args[0], *[rng.permutation(x) for x in args[1:]]]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
