"""Processes for snippets of code, forked from one that has imported what takes long."""

import json
import os
import subprocess
import sys

__all__ = ["Forks"]

SERVER = """
import atexit, json, os, sys, tempfile, traceback, warnings

exec(sys.argv[1], {})
for line in sys.stdin:
    code, variables = json.loads(line)
    files = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]
    with files[0] as out, files[1] as errors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads; they are idle
            child = os.fork()
        if not child:
            status = 1
            try:
                os.environ.update(variables)
                os.dup2(out.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                exec(code, {"__name__": "__main__"})
                atexit._run_exitfuncs()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        errors.seek(0)
        print(json.dumps([status, out.read(), errors.read()]), flush=True)
"""


class Forks:
    """A context with a process that has run ``before``, and forks for each snippet.

    ``environment``: that of the process, by default ours. Where nothing can be forked, each
    snippet has a new process.
    """

    def __init__(self, before, environment=None):
        self._before, self._environment = before, dict(environment or os.environ)
        self._process = hasattr(os, "fork") and subprocess.Popen(
            [sys.executable, "-c", SERVER, before],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def output(self, code, **variables):
        """Return what the code prints, with further variables; it must end without an error."""
        status, out, errors = self.run(code, **variables)
        assert status == 0, errors
        return out

    def run(self, code, **variables):
        """Return the exit code, and what the code prints to standard output and error."""
        if self._process:
            print(json.dumps([code, variables]), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        done = subprocess.run(
            [sys.executable, "-c", f"{self._before}\n{code}"],
            env=self._environment | variables,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self._process:
            self._process.communicate()
