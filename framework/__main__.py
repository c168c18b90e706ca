"""Run programs written for TensorFlow, and inspect files of models.

    python -m tapewright run SCRIPT [ARGUMENTS]       run it with tapewright as tensorflow
    python -m tapewright run -m MODULE [ARGUMENTS]    run a module
    python -m tapewright run --device GPU SCRIPT      run it on a GPU
    python -m tapewright show FILE                    print the contents of a file
    python -m tapewright show --json FILE             print them as JSON
    python -m tapewright verify FILE...               check that files are undamaged

``run`` returns the exit code of the program. ``show`` and ``verify`` build no model; they
return 0 on success, 1 if a file is damaged, and 2 if it cannot be inspected or the command
is wrong.
"""

import argparse
import json
import os
import runpy
import select
import signal
import sys
import traceback

from .api.names.tensorflow_imports import answer_imports
from .core.errors import SavingError, printable
from .core.hardware.devices import device
from .inspection.description import describe
from .inspection.report import report
from .inspection.verification import verify

OURS = (__file__, runpy.__file__, "<frozen runpy>")
SECONDS = 60  # for a file, and one more for each SPEED bytes of it
SPEED = 10 << 20


def main(arguments=None, isolated=True):
    """Run the command line, and return the exit code.

    ``isolated``: open each file in a child process, since HDF5 may crash or loop on
    damaged files.
    """
    parsed = _parser().parse_args(arguments)
    if "program" in parsed:
        return _run(parsed)
    run = _isolated if isolated and hasattr(os, "fork") else _finished
    return max([run(parsed.run, path, parsed) for path in parsed.files])


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m tapewright",
        description="Run programs written for TensorFlow, and inspect files of models.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "run", help="run a program with tapewright in place of TensorFlow and Keras"
    )
    command.add_argument("-m", action="store_true", help="the program is a module")
    command.add_argument("--device", help="device to run on: CPU (default), GPU, GPU:1")
    command.add_argument(
        "program", metavar="SCRIPT", help="a file, or a module after -m"
    )
    command.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments"
    )
    command = commands.add_parser("show", help="print the contents of a file")
    command.add_argument("files", nargs=1, metavar="FILE")
    command.add_argument("--json", action="store_true", help="print it as JSON")
    command.set_defaults(run=_show)
    command = commands.add_parser("verify", help="check that files are undamaged")
    command.add_argument("files", nargs="+", metavar="FILE")
    command.set_defaults(run=_verify)
    return parser


def _run(parsed):
    """Run a program like ``python SCRIPT`` or ``python -m MODULE``; return the exit code."""
    if not parsed.m and not os.path.exists(parsed.program):
        print(f"there is no file {printable(parsed.program)!r}", file=sys.stderr)
        return 2
    answer_imports()
    sys.argv[:] = [parsed.program, *parsed.arguments]
    if not parsed.m and not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(parsed.program))
    try:
        with device(parsed.device):
            if parsed.m:
                runpy.run_module(parsed.program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(os.path.abspath(parsed.program), run_name="__main__")
    except Exception as error:
        trace = error.__traceback__
        while trace.tb_next and trace.tb_frame.f_code.co_filename in OURS:
            trace = trace.tb_next  # it begins where the program does
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _show(path, parsed):
    try:
        description = describe(path)
    except SavingError as error:
        print(printable(str(error)), file=sys.stderr)
        return 2
    text = json.dumps(description, indent=2) if parsed.json else report(description)
    print(text)
    return 0


def _verify(path, parsed):
    faults, notes = verify(path)
    for fault in faults:
        print(printable(f"{path}: {fault}"), file=sys.stderr)
    for note in notes:
        print(printable(f"{path}: note: {note}"))
    if not faults:
        print(printable(f"{path}: OK"))
    return 1 if faults else 0


def _isolated(run, path, parsed):
    """Run `_finished` in a child process, within a time that grows with the file's size."""
    sys.stdout.flush()
    reading, writing = os.pipe()  # closed when the child has ended
    child = os.fork()
    if not child:
        os._exit(_finished(run, path, parsed))
    os.close(writing)
    ended, *_ = select.select([reading], [], [], _allowance(path))
    os.close(reading)
    if not ended:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    crash = f"crashes HDF5 (signal {os.WTERMSIG(status)})"
    what = crash if ended else "takes HDF5 too long"
    print(printable(f"{path}: is damaged: reading it {what}"), file=sys.stderr)
    return 2


def _finished(run, path, parsed):
    """Return the exit code of ``run``, which prints the result."""
    try:
        code = run(path, parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has seen enough
        code = 0
    except MemoryError:
        print(f"{printable(path)}: does not fit into memory", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 2
    except OSError as error:  # the output cannot be written
        print(printable(f"{path}: {error}"), file=sys.stderr)
        code = 2
    except Exception:  # a fault of ours; the other files are inspected nevertheless
        traceback.print_exc()
        code = 2
    sys.stderr.flush()
    return code


def _allowance(path):
    try:
        return SECONDS + os.path.getsize(path) / SPEED
    except (OSError, ValueError):
        return SECONDS


if __name__ == "__main__":
    sys.exit(main())
