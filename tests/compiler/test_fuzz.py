"""Random programs run traced as they run eagerly, and wrong ones would be found.

``python tests/compiler/fuzz.py`` runs as many more as one likes; `fuzzing` tells how the
programs are made.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tapewright.compiler import pipeline
from tapewright.compiler.program import buffer_assignment
from tapewright.compiler.program.instructions.array_instructions import Map
from tapewright.compiler.program.instructions.call_instructions import StoreVariable
from tapewright.compiler.targets.numpy.target import TARGET

from .fuzzing import checking, generating, shrinking

SEED = 0
# Machine code takes long to make.
PROGRAMS = 24 if os.environ.get("TAPEWRIGHT_TARGET") == "native" else 150
FUZZ = Path(__file__).parent / "fuzz.py"


@pytest.mark.parametrize("part", range(8))
def test_random_programs_run_traced_as_they_run_eagerly(part):
    for number in range(part, PROGRAMS, 8):
        program = generating.generate(SEED, number)
        try:
            checking.check(program.source())
        except checking.Refusal:
            continue
        except checking.Difference as difference:
            message = f"program {number}: {difference}\n\n{program.script()}"
            raise AssertionError(message) from difference


# -------------------------------------------------------------- mistakes put in on purpose


def turn_differences(program):
    for each in program.instructions:
        if type(each) is Map and each.function is np.subtract:
            each.operands = each.operands[::-1]


def lose_nan(program):
    for each in program.instructions:
        if type(each) is Map and each.function is np.maximum:
            each.function = np.fmax


def forget_stores(program):
    stores = [each for each in program.instructions if type(each) is StoreVariable]
    program.instructions = [e for e in program.instructions if e not in stores[1:]]


def all_in_one_place(spans):
    return [0] * len(spans), max([nbytes for _, _, nbytes in spans], default=0)


def with_mistake(mistake):
    """What to patch, so that the pass before the last one makes a mistake."""
    *passes, right, last = TARGET.program_passes

    @functools.wraps(right)
    def wrong(program):
        right(program)
        mistake(program)

    target = TARGET._replace(program_passes=(*passes, wrong, last))
    return pipeline, "current_target", lambda: target


MISTAKES = {
    "a difference of the wrong sign": with_mistake(turn_differences),
    "a kernel that loses NaN": with_mistake(lose_nan),
    "a store left out": with_mistake(forget_stores),
    "buffers that share memory": (buffer_assignment, "lay_out", all_in_one_place),
}


def first_found(mistake, monkeypatch, wanted=lambda program: True):
    """The first program that is right without a mistake, and wrong with it."""
    programs = (generating.generate(SEED, number) for number in range(2000))
    for program in filter(wanted, programs):
        with monkeypatch.context() as patch:
            patch.setattr(*mistake)
            found = checking.failure(program.source())
        if found is not None and checking.failure(program.source()) is None:
            return program
    return None


def runs_quickly(program):
    return program.exact and program.rows * program.columns < 100


@pytest.mark.usefixtures("numpy_target")  # a mistake that every target would make
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name, monkeypatch):
    assert first_found(MISTAKES[name], monkeypatch, runs_quickly) is not None


@pytest.mark.usefixtures("numpy_target")
def test_a_program_that_fails_is_made_small(monkeypatch):
    mistake = MISTAKES["a kernel that loses NaN"]
    program = first_found(mistake, monkeypatch, runs_quickly)
    monkeypatch.setattr(*mistake)
    small = shrinking.shrunk(
        program, lambda p: checking.failure(p.source()), seconds=30
    )
    assert checking.failure(small.source()) is not None
    assert sum(map(len, shrinking.lists(small.body))) <= 4
    assert len(small.calls) == 1


# ------------------------------------------------------------------------- the command


def run(*arguments, python=()):
    command = [sys.executable, *python, str(FUZZ), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_printed_program_runs_by_itself(tmp_path):
    (tmp_path / "program.py").write_text(generating.generate(SEED, 1).script())
    assert run(str(tmp_path / "program.py")).returncode == 0


def test_the_command_says_what_it_has_run():
    done = run("-n", "3", "--seed", str(SEED))
    assert done.returncode == 0
    assert f"seed {SEED}, 3 programs, 0 failed" in done.stdout


def test_the_command_says_that_tapewright_is_missing():
    done = run("-n", "1", python=["-S"])
    assert done.returncode != 0
    assert "tapewright cannot be imported" in done.stderr
