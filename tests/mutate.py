#!/usr/bin/env python
"""Plant mistakes in the product, and see which tests notice them.

    python tests/mutate.py --count 200 --seed 1 --out /tmp/mutants
    python tests/mutate.py --out /tmp/mutants --table      the results so far

The checkout is copied to ``--out`` with all mistakes at once, each behind a switch that is
off. A run of all tests notes which of them reach which switch. Then each switch is turned on
in forks of a process that has collected the tests: those of the default run that reach it
come first, the quick ones before the slow ones, up to the first that fails. A mistake that
only slow tests notice shows what the default run misses; what nothing notices is an
equivalent program, dead code or a missing test. A run that is stopped goes on where it was.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import time
import venv
from collections import Counter
from multiprocessing.pool import ThreadPool
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("framework", "layers", "optimizers", "datasets")
LIMIT = 20  # seconds for a test beyond ten times what it takes; one that hangs notices
WORTH = 400  # seconds for the tests of one mistake that the default run does not notice


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, required=True, help="a folder for all this")
    parser.add_argument("--table", action="store_true", help="only print what is known")
    args = parser.parse_args(arguments)
    out = args.out.resolve()
    if not args.table:
        if not (out / "mutants.json").exists():
            plant(out, args.count, args.seed)
        if not (out / "recorded").exists():
            record(out, args.jobs)
        notice(out, args.jobs)
    table(out)


# ------------------------------------------------------------------- planting mistakes


def plant(out, count, seed):
    """Copy the checkout with ``count`` mistakes, in an environment of its own."""
    checkout = out / "checkout"
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, names.split("\0")):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name)
    lines = {}  # (path, line) -> its edits
    for folder in PRODUCT:
        for path in sorted((checkout / folder).rglob("*.py")):
            for edit in Edits(path).found:
                lines.setdefault((path, edit[0][0]), []).append(edit)
    draw = random.Random(seed)
    # Every n-th line of the product, from a random one on: each folder by its size.
    keys, step = list(lines), len(lines) / count
    start = draw.random() * step
    chosen, mutants = {}, []
    for number in range(count):
        path, line = key = keys[int(start + number * step)]
        edit = draw.choice(lines[key])
        chosen.setdefault(path, []).append((number, *edit))
        place = f"{path.relative_to(checkout)}:{line}"
        mutants.append({"place": place, "was": edit[2][:80], "is": edit[3][:80]})
    for path, edits in chosen.items():
        rewrite(path, edits)
    venv.create(out / "venv", with_pip=True)
    python = out / "venv/bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--editable"]
    subprocess.check_call([*pip, f"{checkout}[native,test,test-cuda]"])
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-c", where], text=True).strip())
    shutil.copy2(__file__, site / "mutation_plugin.py")
    (site / "mutation_switches.py").write_text(SWITCH)
    (site / "mutation.pth").write_text("import mutation_switches\n")
    (out / "mutants.json").write_text(json.dumps(mutants, indent=1))


class Edits(ast.NodeVisitor):
    """Every mistake for a file: (start, end, old text, new text, whether a statement)."""

    def __init__(self, path):
        self.found, self.lines = [], path.read_bytes().splitlines(keepends=True)
        self.visit(ast.parse(path.read_bytes()))

    def text(self, node):
        start = node.lineno, node.col_offset
        end = node.end_lineno, node.end_col_offset
        return start, end, between(self.lines, start, end)

    def add(self, node, new):
        self.found.append((*self.text(node), new, False))

    def remove(self, node):
        start, end, old = self.text(node)
        if not self.lines[start[0] - 1][: start[1]].strip():  # nothing before it
            self.found.append((start, end, old, "pass", True))

    def negate(self, node):
        self.add(node, f"not ({ast.unparse(node)})")

    def visit_If(self, node):
        name = ast.unparse(node.test)
        if "TYPE_CHECKING" in name or "__name__" in name:
            return
        self.negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self.negate(node.test)
        self.generic_visit(node)

    visit_While = visit_IfExp

    def visit_comprehension(self, node):
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add(node.value, "None")
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            self.remove(node)
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.remove(node)
        self.visit(node.value)

    def visit_Compare(self, node):
        swapped = SWAPPED.get(type(node.ops[0]))
        if swapped:
            ops = [swapped(), *node.ops[1:]]
            self.add(node, ast.unparse(ast.Compare(node.left, ops, node.comparators)))
        self.generic_visit(node)

    def visit_BinOp(self, node):
        swapped = SWAPPED.get(type(node.op))
        if swapped and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self.add(node, ast.unparse(ast.BinOp(node.left, swapped(), node.right)))
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.add(node, ast.unparse(ast.BoolOp(op, node.values)))
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not | ast.USub):
            self.add(node, ast.unparse(node.operand))
        self.visit(node.operand)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self.add(node, repr(not node.value))
        elif isinstance(node.value, int | float):
            self.add(node, repr(node.value + 1))

    def visit_FunctionDef(self, node):  # annotations and decorators stay
        for each in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(each)
        for each in node.body:
            self.visit(each)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def stay(self, node):
        """A message, a pattern or a type: no mistake in it is one in the program."""

    visit_Raise = visit_JoinedStr = visit_Match = visit_Assert = stay


SWAPPED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


def between(lines, start, end):
    text = b"".join(lines[start[0] - 1 : end[0]])
    cut = len(lines[end[0] - 1]) - end[1]
    return text[start[1] : len(text) - cut].decode()


def rewrite(path, edits):
    """Put edits behind their switches, from the last to the first."""
    lines = path.read_bytes().splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    text = b"".join(lines)
    for number, start, end, old, new, is_statement in sorted(edits, reverse=True):
        first, stop = offsets[start[0] - 1] + start[1], offsets[end[0] - 1] + end[1]
        switch = f"_mutant_({number})"
        put = f"(({new}) if {switch} else ({old}))"
        if is_statement:
            put = f"if not {switch}: {old}"
        text = text[:first] + put.encode() + text[stop:]
    compile(text, str(path), "exec")
    path.write_bytes(text)


SWITCH = '''
"""Switches of mistakes: `_mutant_(k)` says whether mistake k is made."""
import builtins, os
HITS, ACTIVE = set(), [int(os.environ.get("MUTANT", -1))]
def _mutant_(number):
    if number not in HITS:
        HITS.add(number)
        if path := os.environ.get("MUTANT_HITS"):
            with open(path, "a") as file:
                file.write(f"{number}\\n")
    return number == ACTIVE[0]
builtins._mutant_ = _mutant_
'''


# ------------------------------------------------------------------- running the tests


def pytest(out, *options, **variables):
    """Start pytest on the copy; ``options`` and ``variables`` are for this file as plugin."""
    environment = {
        **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        "OPENBLAS_NUM_THREADS": "1",
        "TAPEWRIGHT_CACHE": str(out / "cache"),
        "MUTATION_OUT": str(out),
        **variables,
    }
    command = [out / "venv/bin/pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "mutation_plugin", *options]
    return subprocess.Popen(
        command,
        cwd=out / "checkout",
        env=environment,
        stdout=open(out / "output.txt", "a"),
        stderr=subprocess.STDOUT,
    )


def record(out, jobs):
    """Note for every test: how long it takes, whether it passes, what it reaches."""
    for old in out.glob("reached.*"):
        old.unlink()
    pytest(out, "--all", f"-n{jobs}", MUTATION_RECORD="yes").wait()
    (out / "recorded").touch()


def recorded(out):
    """What each test that passes reaches, and the tests that fail without a mistake.

    The first is a map: whether it is in the default run -> name -> seconds, mistakes. Of the
    others, some compare the sources with something.
    """
    tests, failing = {True: {}, False: {}}, set()
    for path in out.glob("reached.*.jsonl"):
        for name, in_default, seconds, passed, hits in map(json.loads, path.open()):
            if passed:
                tests[in_default][name] = seconds, hits
            else:
                failing.add(name.partition("[")[0])
    return tests, failing


def notice(out, jobs):
    """Make each mistake that is not known yet, and write down which test notices it."""
    known = results(out)
    mutants = json.loads((out / "mutants.json").read_text())
    tests, failing = recorded(out)
    skipped = [f"--deselect={name}" for name in sorted(failing)]
    loaded = set()
    for path in out.glob("reached.*.loaded"):
        loaded.update(json.loads(path.read_text()))
    plans, at_import = {}, []
    for number in range(len(mutants)):
        if number in known:
            continue
        if number in loaded:  # made when a module is imported, which no fork can change
            at_import.append(number)
            continue
        plans[number] = [
            (by, sorted([(t[n][0], n) for n in t if number in t[n][1]]))
            for by, t in (("default", tests[True]), ("all", tests[False]))
        ]
    shares = [dict(list(plans.items())[n::jobs]) for n in range(jobs)]
    running = []
    for n, share in enumerate(shares):
        (out / f"plan{n}.json").write_text(json.dumps(share))
        options = {"MUTATION_PLAN": str(out / f"plan{n}.json")}
        running.append(pytest(out, "--all", "-pno:xdist", **options))
    for process in running:
        process.wait()
    with ThreadPool(jobs) as pool:
        work = [(out, n, mutants[n]["place"], skipped) for n in at_import]
        pool.starmap(notice_at_import, work, chunksize=1)


def notice_at_import(out, number, place, skipped):
    """Run the tests of a mistake's folder, then all others, in processes that start with it."""
    tests = out / "checkout/tests"
    near = tests / Path(place.removeprefix("framework/")).parent
    while not near.is_dir():
        near = near.parent
    for by, *options in (("default", near), ("default",), ("all", "--all", near)):
        options += "-x", "-pno:xdist", *skipped
        process = pytest(out, *options, MUTANT=str(number))
        if process.wait() not in (0, 5):  # 5: there are no tests
            return note(out, number, by, "at import")
    return note(out, number, "nothing", "at import")


def note(out, number, by, test, seconds=0.0):
    with open(out / "results.jsonl", "a") as file:
        file.write(json.dumps([number, by, test, round(seconds, 1)]) + "\n")


def results(out):
    path = out / "results.jsonl"
    return {r[0]: r for r in map(json.loads, path.open())} if path.exists() else {}


# ------------------------------------------------------------------------- the plugin

try:
    import mutation_switches as switches
    import pytest as _pytest
except ImportError:
    pass
else:
    RECORD, PLAN = os.environ.get("MUTATION_RECORD"), os.environ.get("MUTATION_PLAN")
    OUT = Path(os.environ.get("MUTATION_OUT", "."))
    _failed, _default = [], set()

    def pytest_runtest_logreport(report):
        if report.failed:
            _failed.append(report.nodeid)

    @_pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(item, nextitem):
        if not RECORD or "PYTEST_XDIST_WORKER" not in os.environ:
            return (yield)
        worker = os.environ["PYTEST_XDIST_WORKER"]
        others = OUT / f"hits.{worker}"  # of processes that the test starts
        others.write_text("")
        os.environ["MUTANT_HITS"] = str(others)
        switches.HITS.clear()
        _failed.clear()
        start = time.perf_counter()
        result = yield
        seconds = time.perf_counter() - start
        hits = sorted(switches.HITS | set(map(int, others.read_text().split())))
        in_default = item in _default
        line = item.nodeid, in_default, round(seconds, 4), not _failed, hits
        with open(OUT / f"reached.{worker}.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        return result

    def pytest_collection_finish(session):
        if worker := RECORD and os.environ.get("PYTEST_XDIST_WORKER"):
            loaded = json.dumps(sorted(switches.HITS))
            (OUT / f"reached.{worker}.loaded").write_text(loaded)
            selection = session.config.pluginmanager.get_plugin("tests.selection")
            _default.update(selection.chosen(session.items))

    @_pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(session):
        if not PLAN:
            return None
        items = {item.nodeid: item for item in session.items}
        for number, stages in json.loads(Path(PLAN).read_text()).items():
            start, by, test = time.time(), "nothing", ""
            for which, tests in stages:
                chosen = [(s, items[name]) for s, name in tests if name in items]
                if test := _noticing(int(number), chosen):
                    by = which
                    break
            reached = any([tests for _, tests in stages])
            note(OUT, int(number), by, test if reached else "reached by no test",
                 time.time() - start)  # fmt: skip
        return True

    def _noticing(number, tests):
        """The first test that fails with a mistake, in a fork; or None."""
        if not tests:
            return None
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            os.setsid()
            switches.ACTIVE[0], os.environ["MUTANT"] = number, str(number)
            start = time.time()
            for (seconds, item), (_, nextitem) in zip(tests, [*tests[1:], (0, None)]):
                os.write(writer, f"{item.nodeid}\n{10 * seconds + LIMIT}\n".encode())
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
                if _failed:
                    os._exit(1)
                if time.time() - start > WORTH:
                    break
            os._exit(0)
        os.close(writer)
        return _wait_for(process, reader)

    def _wait_for(process, reader):
        import select

        text, limit = "", LIMIT
        while select.select([reader], [], [], limit)[0]:
            if not (more := os.read(reader, 1 << 16).decode(errors="replace")):
                _, status = os.waitpid(process, 0)
                os.close(reader)
                last = text.rstrip("\n").split("\n")[-2:]
                return (
                    last[0] + ("" if status == 256 else " (ended)") if status else None
                )
            text += more
            lines = text.rstrip("\n").split("\n")
            limit = float(lines[-1]) if len(lines) % 2 == 0 else LIMIT
        os.killpg(process, 9)
        os.waitpid(process, 0)
        os.close(reader)
        return text.rstrip("\n").split("\n")[-2] + " (hung)"


# -------------------------------------------------------------------------- the table


def table(out):
    mutants, known = json.loads((out / "mutants.json").read_text()), results(out)
    counts = {}
    for number, by, *_ in known.values():
        parts = mutants[number]["place"].split("/")
        folder = "/".join(parts[:2]) if parts[0] == "framework" else parts[0]
        counts.setdefault(folder.split(".py")[0], Counter())[by] += 1
    total = sum(counts.values(), Counter())
    print(f"{'folder':32} planted  default run  slow tests alone  nothing")
    for folder, c in [*sorted(counts.items()), ("all", total)]:
        print(
            f"{folder:32} {c.total():7} {c['default']:12} {c['all']:17} {c['nothing']:8}"
        )
    noticed = total["default"] + total["all"]
    print(
        f"the default run notices {total['default']} of {noticed} that all tests notice"
    )
    for by in ("all", "nothing"):
        for number, test in sorted(
            [(r[0], r[2]) for r in known.values() if r[1] == by]
        ):
            print(f"{by} {number}: {mutants[number]['place']}", test or "", sep="  ")
            print(f"    {mutants[number]['was']!r} -> {mutants[number]['is']!r}")


if __name__ == "__main__":
    main()
