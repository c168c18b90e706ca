"""Check and measure tapewright on a GPU machine that is there for minutes.

    pip wheel --no-deps --wheel-dir dist .
    python benchmarks/gpu_check.py --wheels dist --folder out/gpu          (nine minutes)
    python benchmarks/gpu_check.py --folder out/cpu --stages threads --minutes 4
    python benchmarks/gpu_check.py --dry-run               (stand-in for a GPU, tiny sizes)

The stages, in order of value:

| stage | runs |
| --- | --- |
| first | tests with the markers `gpu` and `gpu_first`, and those in the file ``--failed`` |
| steps | `gpu.py`: W1 to W4, W10, an epoch of `fit`, beside PyTorch and JAX |
| programs | `gpu.py`: a GPT, an Xception, a WGAN-GP and a PINN, beside PyTorch and JAX |
| random | `tests/compiler/fuzz.py`: random programs, traced and eager |
| tests | further tests, folder by folder, until the time is over |
| threads | `threads.py`: steps on the CPU with 1 to 16 threads, beside PyTorch and JAX |

Each stage runs in processes of its own, and has a share of the time; it inherits what earlier
stages leave over. All rows of ``threads`` need four minutes. A stage that fails or runs out of
time is ended, and the next one starts. The folder then has a log of each stage,
``results.json``, and ``failed.txt`` with the ids of failed tests, which ``--failed`` accepts in
the next run. A table is printed at the end.

The machine needs Python with NumPy, h5py, tqdm, CuPy, llvmlite, pytest and pytest-xdist; peers
that are not installed are skipped. ``--wheels`` names a folder with the wheels that it lacks,
such as tapewright's own; they are installed in a temporary folder, without a network.
Without a GPU, the script prints a message and exits with code 3.
"""

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import outcomes
from turns import inherited, save, some_of

__all__ = ["NO_GPU", "Stage", "run_stages", "stages"]

NO_GPU = 3  # exit code
HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
STEPS = "W1,W2,W3,W4,W10,epoch,epoch_8"
PROGRAMS = "gpt,xception,wgan_gp,pinn"
# Folders of tests, and the target of their functions: CUDA graphs, or op by op.
FOLDERS = (
    (
        "auto",
        "compiler/test_every_op.py compiler/control_flow optimizers layers compiler/function "
        "keras/training keras/models keras/losses keras/metrics profiler",
    ),
    ("numpy", "ops autodiff core data"),
    ("auto", "keras formats io serialization storage guides compiler examples"),
)
END = 6  # seconds to print and save the results
SHOWN = 40  # failed tests that are printed


@dataclass
class Stage:
    """A part of the check.

    Attributes:
        name: Name in ``--stages``.
        seconds: Share of the time.
        commands: Commands to run one after another, or all at once if ``together``.
        summary: Function that returns a line about the text of the log.
        together: If True, run the commands at the same time.
        environment: Additional environment variables.
    """

    name: str
    seconds: float
    commands: list[list[str]]
    summary: Callable[[str], str]
    together: bool = False
    environment: dict[str, str] = field(default_factory=dict)


def stages(options, folder):
    """Return the stages of a check, which write to logs in a folder."""
    share = options.minutes / 9  # of the seconds below
    python, dry = sys.executable, ["--dry-run"] * options.dry_run
    peers = ["--peers", options.peers] if options.peers else []
    device = "strict" if options.dry_run else "cupy"
    processes = max(2, os.cpu_count() - 2)
    pytest = [python, "-m", "pytest", "-q", "--tb=short", "--device", device]
    pytest += ["-n", str(processes), "-p", "no:cacheprovider"]
    pytest += ["-p", "xdist", "-p", "outcomes"]  # other plugins may be installed

    def tests(name, seconds, *runs, **further):
        commands = [
            ["env", f"TAPEWRIGHT_TARGET={target}", *pytest, *arguments]
            for target, *arguments in runs
            if target == "numpy" or not options.dry_run  # gcc takes long for graphs
        ]
        further |= {"OUTCOMES": str(log_of(folder, name))}
        return Stage(name, seconds * share, commands, tests_summary, False, further)

    only = {"ONLY": options.failed} if options.failed else {}
    chosen = ["--all"] if only else ["--all", "-m", "gpu or gpu_first"]
    files = failed_files(options.failed) if only else marked_files()
    facts = [path for path in files if "on_gpu" in path]  # run before all others
    others = [path for path in files if path not in facts]
    runs = [("auto", facts), ("auto", others), ("numpy", files)]
    runs = [(target, *chosen, *paths) for target, paths in runs if paths]
    gpu = [python, str(HERE / "gpu.py"), "--together", "4", *peers, *dry]
    gpu += ["--rounds", "3", "--seconds", "0.3"]
    fuzz = [python, str(TESTS / "compiler/fuzz.py"), "--device", device]
    fuzz += f"-n 100000 --keep-going --shrink 0 --seconds {20 * share}".split()
    threads = [python, str(HERE / "threads.py"), "--minutes", str(1.1 * share), *dry]
    return [
        tests("first", 75, *runs, **only),
        Stage(
            "steps",
            130 * share,
            [[*gpu, "--works", STEPS, "--longest", "45"]],
            table_summary,
        ),
        Stage(
            "programs",
            90 * share,
            [[*gpu, "--works", PROGRAMS, "--longest", "60"]],
            table_summary,
        ),
        Stage(
            "random",
            40 * share,
            [[*fuzz, "--seed", str(seed)] for seed in range(min(8, processes))],
            fuzz_summary,
            together=True,
        ),
        tests("tests", 115, *[(target, *paths_of(names)) for target, names in FOLDERS]),
        Stage("threads", 90 * share, [threads], table_summary),
    ]


def paths_of(names):
    return [str(TESTS / name) for name in names.split()]


def marked_files():
    """Return the files with tests for a GPU, or which run first on one."""
    files = sorted(TESTS.rglob("test_*.py"))
    return [str(path) for path in files if "mark.gpu" in path.read_text()]


def failed_files(path):
    """Return the files of the tests with the ids in a file."""
    files = [line.partition("::")[0] for line in Path(path).read_text().splitlines()]
    return [str(TESTS.parent / file) for file in dict.fromkeys(files)]


def add_to_path(folder):
    """Put a folder in front of the import path of all processes that are started."""
    given = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *[given] * bool(given)])


# ----------------------------------------------------------------------------- running


def run_stages(chosen, folder, deadline):
    """Run stages one after another, and return the facts of each by name.

    The facts are ``seconds``, ``ended`` (``"done"``, ``"out of time"`` or ``"code N"``) and
    ``result``, a line about the log.

    Args:
        chosen: Stages.
        folder: Folder for the logs.
        deadline: Time of `time.monotonic` at which the last stage is ended.
    """
    results = {}
    for i, stage in enumerate(chosen):
        later = sum(each.seconds for each in chosen[i + 1 :])
        begin = time.monotonic()
        print(f"{stage.name}: started, {deadline - begin:.0f} s left", flush=True)
        path = log_of(folder, stage.name)
        ended = run_stage(stage, path, deadline - later)
        try:
            result = stage.summary(path.read_text(errors="replace"))
        except Exception as error:  # noqa: BLE001  (the next stage must start)
            result = f"no summary: {type(error).__name__}: {error}"
        facts = {"seconds": round(time.monotonic() - begin, 1)}
        results[stage.name] = facts | {"ended": ended, "result": result}
        print(line(stage.name, results[stage.name]), flush=True)
        save(results, folder / "results.json")
    return results


def run_stage(stage, path, deadline):
    """Run the commands of a stage, and return how they ended."""
    environment = inherited() | stage.environment
    found = []
    with open(path, "a") as log:

        def start(command):
            print(f"$ {shlex.join(command)}", file=log, flush=True)
            return subprocess.Popen(
                command,
                cwd=TESTS.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        if stage.together:
            processes = [start(command) for command in stage.commands]
            found = [ended(process, deadline) for process in processes]
        else:
            for i, command in enumerate(stage.commands):
                left = (
                    deadline - time.monotonic()
                )  # for this command and those after it
                share = left / (len(stage.commands) - i)
                found.append(ended(start(command), time.monotonic() + share))
    return ", ".join(dict.fromkeys(found))


def ended(process, deadline):
    """Wait for a process until the deadline, end it and all that it started."""
    try:
        code = process.wait(max(0, deadline - time.monotonic()))
        return "done" if code == 0 else f"code {code}"
    except subprocess.TimeoutExpired:
        return "out of time"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def log_of(folder, name):
    return folder / f"{name}.log"


# --------------------------------------------------------------------------- summaries


def tests_summary(log):
    found = outcomes.read(log)
    return ", ".join(f"{len(tests)} {outcome}" for outcome, tests in found.items())


def table_summary(log):
    """Return the number of rows and failures in a log of `gpu.py` or `threads.py`."""
    rows = table_lines(log)[2:]
    failures = [row for row in rows if "fails" in row]
    return f"{len(rows)} rows, {len(failures)} with failures"


def table_lines(log):
    return [line for line in log.splitlines() if line.startswith("|")]


def fuzz_summary(log):
    """Return the number of programs and of failures in a log of `fuzz.py`."""
    found = re.findall(r"^seed \d+, (\d+) programs, (\d+) failed", log, re.M)
    programs, failed = [sum([int(pair[i]) for pair in found]) for i in (0, 1)]
    return f"{programs} programs, {failed} failed"


def line(name, facts):
    """Return a line of the table of stages."""
    return (
        f"| {name} | {facts['seconds']:.0f} s | {facts['ended']} | {facts['result']} |"
    )


def show(results, folder):
    """Print the table of stages, their tables of times, and the failed tests."""
    print("\n| stage | time | ended | result |\n| --- | --: | --- | --- |")
    print(*[line(name, facts) for name, facts in results.items()], sep="\n")
    failed = []
    for name in results:
        log = log_of(folder, name).read_text(errors="replace")
        failed += outcomes.read(log)["failed"]
        if name in ("steps", "programs", "threads"):
            print(f"\n{name}\n", *table_lines(log), sep="\n")
            print(*re.findall(r"^FAILS: .{,300}", log, re.M), sep="\n")
    failed = list(dict.fromkeys(failed))
    (folder / "failed.txt").write_text("".join(f"{test}\n" for test in failed))
    print(f"\n{len(failed)} failed tests", *failed[:SHOWN], sep="\n")


# -------------------------------------------------------------------------------- main


@contextlib.contextmanager
def installed(wheels):
    """Install the wheels of a folder in a temporary one, for the processes of the stages."""
    if not wheels:
        yield
        return
    files = [str(path) for path in sorted(Path(wheels).glob("*.whl"))]
    with tempfile.TemporaryDirectory(prefix="wheels-") as folder:
        options = [
            "--quiet",
            "--no-index",
            "--no-deps",
            "--no-compile",
            "--no-cache-dir",
        ]
        install = [sys.executable, "-m", "pip", "install", *options, "--target", folder]
        subprocess.run([*install, *files], check=True)
        add_to_path(folder)
        yield


def why_no_gpu():
    """Return why there is no GPU, or an empty string."""
    code = "import tapewright as tw; tw.config.set_soft_device_placement(False); "
    code += "tw.config.show(); tw.device('GPU').__enter__(); tw.config.show()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=inherited(), capture_output=True, text=True)
    print(done.stdout, flush=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--folder", default="out/gpu", help="folder for logs and results")
    add("--minutes", type=float, default=9.0, help="time for all stages")
    add("--stages", help="some of first, steps, programs, random, tests, threads")
    add("--wheels", metavar="FOLDER", help="folder with wheels to install first")
    add("--failed", metavar="FILE", help="file with ids of tests for the stage first")
    add("--peers", help="implementations for gpu.py; all installed ones by default")
    add("--dry-run", action="store_true", help="tiny sizes on a stand-in for a GPU")
    options = parser.parse_args()
    options.failed = options.failed and os.path.abspath(options.failed)
    return parser, options


def main():
    begin = time.monotonic()
    parser, options = parsed()
    folder = Path(options.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = stages(options, folder)
    if options.stages:
        names = some_of(parser, "--stages", options.stages, [s.name for s in chosen])
        chosen = [stage for stage in chosen if stage.name in names]
    add_to_path(HERE)  # for pytest's plugin
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with installed(options.wheels):
        reason = "" if options.dry_run else why_no_gpu()
        if reason:
            print(f"gpu_check.py has nothing to check: {reason}", file=sys.stderr)
            return NO_GPU
        for stage in chosen:
            log_of(folder, stage.name).unlink(missing_ok=True)
        deadline = begin + 60 * options.minutes - END
        results = run_stages(chosen, folder, deadline)
    show(results, folder)
    return int(any(facts["ended"] != "done" for facts in results.values()))


if __name__ == "__main__":
    sys.exit(main())
