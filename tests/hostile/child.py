"""Tries the cases whose numbers are read from standard input, one after the other.

A line of JSON tells what came of each attempt; a line before it, what is being tried. Run
by runner.py, which notices when nothing more is said.
"""

import gc
import json
import os
import resource
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import cases
import files
import h5py
import numpy as np
import own

ANSWERS = None  # where answers go, a copy of standard output
MEMORY = 1500 << 20


def main():
    folder = Path(sys.argv[1])
    limit_memory()
    everything = list(cases.jobs())
    for line in sys.stdin:
        name, case, kind = everything[int(line)]
        place = folder / line.strip()
        place.mkdir()
        place.chmod(0o777)
        path = place / f"model{case.suffix or files.SUFFIX.get(kind, '.h5')}"
        say({"making": name})
        case.make(path, kind)
        for action in case.actions(kind):
            say({"trying": action, "job": name})
            told = attempt(ACTIONS[action], path, case.name == "unreadable")
            say({"job": name, "action": action, **told})
        for holder in cases.HOLDERS:
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()
        cases.HOLDERS.clear()


@contextmanager
def as_user(wanted):
    """As one whom permissions mean something to, which they do not to root."""
    ids = os.getresuid()
    if wanted and ids[0] == 0:
        os.setresuid(65_534, 65_534, 0)
    try:
        yield
    finally:
        os.setresuid(*ids)


def limit_memory():
    """No more than MEMORY above what the imports took."""
    import tapewright
    import tapewright.__main__  # noqa: F401
    import tapewright.inspection.verification  # noqa: F401
    import tapewright.storage.zips  # noqa: F401

    tapewright.keras.Sequential  # noqa: B018
    gc.freeze()  # or each collection would look at all that was imported
    used = read_status("VmData")
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))


def read_status(key):
    """A number of bytes that Linux tells of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) << 10
    return 0


def say(what):
    print(json.dumps(what), file=ANSWERS, flush=True)


def attempt(action, path, as_other):
    """What comes of ``action(path)``: its outcome, what it took, what it left behind."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, begin = read_status("VmRSS"), time.monotonic()
    told = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with as_user(as_other):
                told.update(action(path))
            told.setdefault("outcome", "OK")
        except BaseException as error:
            told.update(description(error, path))
    told["seconds"] = time.monotonic() - begin
    told["bytes"] = read_status("VmHWM") - before
    told["warnings"] = [str(each.message) for each in caught]
    told["canary"] = os.path.exists(os.environ.get("CANARY", ""))
    return told


def description(error, path):
    import traceback

    from tapewright.errors import SavingError

    told = {"outcome": type(error).__name__, "message": str(error)}
    if isinstance(error, SavingError):
        told["path"] = error.path == str(path)
        told["dataset"] = error.dataset
    else:
        told["trace"] = "".join(traceback.format_exception(error))[-3000:]
    return told


def load_model(path):
    import tapewright as tw

    loaded = tw.keras.models.load_model(path, safe_mode=False)  # it is always safe
    return {"kernel": kernel_is(loaded.weights[0].numpy())}


def load_weights(path):
    model = build()
    before = [np.array(each.numpy()) for each in model.weights]
    try:
        model.load_weights(path)
    except BaseException:
        for old, each in zip(before, model.weights, strict=True):
            if not np.array_equal(old, each.numpy()):
                return {"outcome": "changed", "message": f"{each.path} was changed"}
        raise
    return {"kernel": kernel_is(model.weights[0].numpy())}


def load_fitting(path):
    """What fits only, or what has the same name."""
    build().load_weights(path, skip_mismatch=True)
    if h5py.is_hdf5(path) and not path.name.endswith(".weights.h5"):
        build().load_weights(path, by_name=True, skip_mismatch=True)
    return {}


def load(path):
    import tapewright as tw

    tw.saved_model.load(path)
    return {}


def restore(path):
    import tapewright as tw

    kept = own.objects()
    before = [kept["v"].numpy(), kept["n"].numpy(), repr(kept["counter"].state)]
    try:
        tw.train.Checkpoint(**kept).restore(path)
    except BaseException:
        after = [kept["v"].numpy(), kept["n"].numpy(), repr(kept["counter"].state)]
        if not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
            return {"outcome": "changed", "message": f"{before} became {after}"}
        raise
    return {}


def build():
    import tapewright as tw

    dense = tw.keras.layers.Dense
    layers = [dense(units, name=name)
              for name, units in zip(files.NAMES, files.UNITS, strict=True)]  # fmt: skip
    return tw.keras.Sequential([tw.keras.layers.InputLayer((4,)), *layers])


def kernel_is(found):
    """What became of the first kernel: "same", "rounded" as bfloat16 does, "nan"."""
    kernel = files.arrays()["first"][0]
    if found.shape == kernel.shape and found.dtype == kernel.dtype:
        if np.array_equal(found, kernel):
            return "same"
        if np.array_equal(found.view("u4"), kernel.view("u4") >> 16 << 16):
            return "rounded"
        if np.isnan(found).all():
            return "nan"
    return "other"


def command(name):
    """A command of ``python -m tapewright``."""

    def run(path):
        from tapewright.__main__ import main

        with captured(path) as (out, err):
            code = main([name, str(path)], isolated=False)
        text = err.read_text(errors="replace")
        if "Traceback" in text:
            return {"outcome": "traceback", "message": text[-3000:]}
        if code:
            lines = text.strip().splitlines()
            named = bool(lines) and all(str(path) in line for line in lines)
            return {"outcome": "SavingError", "message": text, "path": named}
        return {"message": out.read_text()[-2000:]}

    return run


@contextmanager
def captured(path):
    """Standard output and error go to files."""
    places = [path.parent / "out", path.parent / "err"]
    kept = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    for number, place in enumerate(places, 1):
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    try:
        yield places
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, handle in enumerate(kept, 1):
            os.dup2(handle, number)
            os.close(handle)


ACTIONS = {
    "load_model": load_model,
    "load_weights": load_weights,
    "load_fitting": load_fitting,
    "load": load,
    "restore": restore,
    "show": command("show"),
    "verify": command("verify"),
}

if __name__ == "__main__":
    ANSWERS = os.fdopen(os.dup(1), "w")  # standard output is taken away at times
    main()
