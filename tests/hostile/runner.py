"""Runs a program over many jobs, and starts it again where it hangs or crashes."""

import json
import os
import selectors
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
SECONDS = 10  # for one attempt
START = 20  # for the imports
PARALLEL = 2


def run(jobs, wanted=None, program="child.py"):
    """``{(job, action): what came of it}`` for jobs, ``(name, actions)`` in their order.

    ``wanted``: names of those that are run. The program gets a folder as its argument, and
    numbers of jobs on standard input; it says what came of each action in lines of JSON.
    """
    waiting = [
        n for n, (name, _) in enumerate(jobs) if wanted is None or name in wanted
    ]
    found = {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        shares = [waiting[i::PARALLEL] for i in range(PARALLEL)]
        for each in pool.map(lambda share: _run_share(jobs, share, program), shares):
            found.update(each)
    return found


def _run_share(jobs, waiting, program):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        while waiting:
            ending = _run_until_it_ends(waiting, program, folder, environment, found)
            done = [all((jobs[n][0], a) in found for a in jobs[n][1]) for n in waiting]
            waiting = waiting[done.index(False) :] if not all(done) else []
            if waiting:
                name, actions = jobs[waiting.pop(0)]
                for action in actions:
                    if (name, action) not in found:
                        found[name, action] = ending
                        ending = {"outcome": "not tried", "message": ""}
    return found


def _environment(folder):
    """What a case may try to execute or to read: a module, and a pipe that never ends."""
    (folder / "modules").mkdir()
    (folder / "modules" / "hostile_module.py").write_text(
        "import os\nopen(os.environ['CANARY'], 'w').close()\n\nclass Thing: pass\n"
    )
    os.mkfifo(folder / "pipe")
    return dict(
        os.environ,
        CANARY=str(folder / "canary"),
        PIPE=str(folder / "pipe"),
        PYTHONPATH=str(folder / "modules"),
        OPENBLAS_NUM_THREADS="1",
    )


def _run_until_it_ends(waiting, program, folder, environment, found):
    """Fills ``found``. Returns: how the program ended, as if it came of an action."""
    place = tempfile.mkdtemp(dir=folder)
    os.chmod(folder, 0o711)  # for the case in which another user may not read
    os.chmod(place, 0o711)
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        [sys.executable, str(HERE / program), place],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment,
    ) as child:  # fmt: skip
        child.stdin.write("".join(f"{number}\n" for number in waiting).encode())
        child.stdin.close()
        how = None
        for line in _lines(child.stdout):
            if line is None:
                child.kill()
                how = "hang"
                break
            told = json.loads(line)
            if "outcome" in told:
                found[told["job"], told["action"]] = told
        code = child.wait()
        errors.seek(0)
        how = how or f"ended with code {code}"
        return {"outcome": how, "message": errors.read()[-3000:]}


def _lines(pipe):
    """Lines of a pipe; None, and no more, when none comes for SECONDS."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        buffer, patience = b"", START
        while True:
            if not selector.select(patience):
                yield None
                return
            piece = os.read(pipe.fileno(), 1 << 16)
            if not piece:
                return
            *whole, buffer = (buffer + piece).split(b"\n")
            yield from whole
            patience = SECONDS
