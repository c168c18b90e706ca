"""`benchmarks/gpu_check.py`: its stages on the stand-in, and what a stage leaves that fails."""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tapewright.core.hardware import devices

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def run(*options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment.pop("TAPEWRIGHT_VERIFY", None)
    return subprocess.run(
        [sys.executable, "gpu_check.py", *map(str, options)],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def gpu_check(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import gpu_check

    return gpu_check


def options(**given):
    defaults = {"minutes": 9, "dry_run": False, "peers": None, "failed": None}
    return SimpleNamespace(**defaults | given)


def stage(gpu_check, name, *codes, seconds=5, **further):
    commands = [[sys.executable, "-c", code] for code in codes]
    return gpu_check.Stage(name, seconds, commands, lambda log: log[-20:], **further)


def test_without_a_gpu_it_says_so_with_a_code_of_its_own(tmp_path):
    if devices.gpu_count()[0]:
        pytest.skip("there is a GPU")
    done = run("--folder", tmp_path)
    assert done.returncode == 3
    assert "gpu_check.py has nothing to check: " in done.stderr and "GPU" in done.stderr


def test_a_dry_run_has_a_table_of_the_stages_and_their_logs(tmp_path):
    if not find_spec("cupy"):
        pytest.skip("the stand-in reads CuPy's names and signatures")
    test = "tests/core/hardware/test_on_gpu.py::test_two_devices_in_one_op_are_named"
    (tmp_path / "ids.txt").write_text(f"{test}\ntests/core/test_text.py::test_gone\n")
    given = ["--dry-run", "--folder", tmp_path / "out", "--stages", "first,random"]
    done = run(*given, "--minutes", 2, "--failed", tmp_path / "ids.txt")
    assert "| first |" in done.stdout and "| random |" in done.stdout
    facts = json.loads((tmp_path / "out" / "results.json").read_text())
    assert facts["first"]["result"] == "1 passed, 0 failed, 0 skipped"
    assert facts["random"]["result"].endswith("programs, 0 failed")
    assert test in (tmp_path / "out" / "first.log").read_text()
    assert (tmp_path / "out" / "failed.txt").read_text() == ""


def test_a_stage_that_fails_or_hangs_does_not_stop_the_next_one(gpu_check, tmp_path):
    hang = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    hang = hang.replace("input()", "import time; time.sleep(600)")
    chosen = [
        stage(gpu_check, "fails", "raise SystemExit(7)", "print('second')"),
        stage(gpu_check, "hangs", f"print('started', flush=True); {hang}", seconds=1),
        stage(gpu_check, "no summary", "print(1)", seconds=20),
        stage(gpu_check, "last", "print('end')", seconds=20),
    ]
    chosen[2].summary = lambda log: log[1000]
    found = gpu_check.run_stages(chosen, tmp_path, time.monotonic() + 46)
    assert found["fails"]["ended"] == "code 7, done"
    assert found["fails"]["result"].endswith("second\n")
    assert found["hangs"]["ended"] == "out of time"
    assert found["hangs"]["result"].endswith("started\n")
    assert found["no summary"]["result"].startswith("no summary: IndexError")
    assert found["last"]["ended"] == "done"
    assert json.loads((tmp_path / "results.json").read_text()) == found


def test_a_stage_leaves_time_for_the_later_ones_and_inherits_the_rest(
    gpu_check, tmp_path
):
    sleep = "import time; time.sleep(600)"
    chosen = [
        stage(gpu_check, "short", "pass", seconds=2),
        stage(gpu_check, "long", sleep, sleep, seconds=1),
        stage(gpu_check, "last", sleep, seconds=1),
    ]
    found = gpu_check.run_stages(chosen, tmp_path, time.monotonic() + 4)
    assert found["long"]["ended"] == found["last"]["ended"] == "out of time"
    assert found["long"]["seconds"] > 0.5  # both commands have a half
    assert found["last"]["seconds"] > 0.5


def test_processes_that_a_stage_started_are_ended_with_it(gpu_check, tmp_path):
    child = "import time; time.sleep(3); open('late', 'w')"
    code = "import os, subprocess, sys, time; os.chdir({!r}); "
    code += "subprocess.Popen([sys.executable, '-c', {!r}]); time.sleep({})"
    codes = [code.format(str(tmp_path), child, seconds) for seconds in (0.5, 600)]
    stages = [stage(gpu_check, f"{i}", c, seconds=1.5) for i, c in enumerate(codes)]
    gpu_check.run_stages(stages, tmp_path, time.monotonic() + 2.5)
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


def test_all_paths_of_the_stages_exist(gpu_check, tmp_path):
    found = gpu_check.stages(options(), tmp_path)
    assert [each.name for each in found][:2] == ["first", "steps"]
    for command in [command for each in found for command in each.commands]:
        for argument in command[1:]:
            assert not argument.startswith("/") or Path(argument).exists(), argument
    assert sum(each.seconds for each in found) <= 9 * 60


def test_files_with_marked_tests_run_first(gpu_check):
    names = {Path(path).name for path in gpu_check.marked_files()}
    assert {"test_on_gpu.py", "test_products_on_gpu.py"} <= names


def test_summaries_count_tests_rows_and_programs(gpu_check):
    log = "passed\ta\nfailed\tb[1]\nreport\nfailed\tb[1]\npassed\ta\nskipped\tc\n"
    assert gpu_check.tests_summary(log) == "1 passed, 1 failed, 1 skipped"
    log = "| work | ms |\n|--|--|\n| W1 | 2 |\n| W2 | fails |\nFAILS: W2, torch: no\n"
    assert gpu_check.table_summary(log) == "2 rows, 1 with failures"
    log = "seed 0, 12 programs, 1 failed; calls: {}\nseed 1, 3 programs, 0 failed; c\n"
    assert gpu_check.fuzz_summary(log) == "15 programs, 1 failed"
    assert gpu_check.fuzz_summary("") == "0 programs, 0 failed"
