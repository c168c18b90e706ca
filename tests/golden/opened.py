"""Opens files in a process that knows no code of a user's: ``opened.py VERSION FOLDER``.

FOLDER has the files unpacked; what they give goes beside them, as ``<file>.npz``, or the
error as ``<file>.error``. What ``show`` and ``verify`` end with goes into ``commands.json``.
"""

import gc
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
from golden_folders import JSON, answers, cases_of


def main(version, folder):
    # Without it, commands read each file here: `tests/inspection` has them in a fork.
    del os.fork
    gc.freeze()  # or each collection would look at all that was imported
    commands = {}
    for case in cases_of(version):
        for name in case.files:
            path = Path(folder) / name
            if case.bare:
                keep_answers(case, path)
            if path.suffix != ".json":
                commands[name] = [run(c, str(path)) for c in ("show", "verify")]
    assert "golden_users" not in sys.modules
    (Path(folder) / "commands.json").write_text(json.dumps(commands))


def keep_answers(case, path):
    try:
        arrays, plain = answers(case, case.read(path))
    except Exception:
        path.with_name(path.name + ".error").write_text(traceback.format_exc())
    else:
        np.savez(
            path.with_name(path.name + ".npz"), **arrays, **{JSON: json.dumps(plain)}
        )


def run(*arguments):
    """``python -m tapewright`` with arguments: its exit code, and what it prints."""
    sys.argv[1:] = arguments
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile("w+") as printed:
        code = 0
        try:
            for number in (1, 2):  # of children, too
                os.dup2(printed.fileno(), number)
            runpy.run_module("tapewright", run_name="__main__")
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush()
            for number, old in zip((1, 2), kept):
                os.dup2(old, number)
                os.close(old)
        printed.seek(0)
        return [code, printed.read()]


if __name__ == "__main__":
    main(*sys.argv[1:])
