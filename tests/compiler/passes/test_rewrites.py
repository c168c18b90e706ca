"""Every rewrite and fusion rule: one line a rule, tried on special values in every role.

The lines are in `algebra_lines`, `graph_lines`, `image_lines`, `program_lines` and
`loop_lines`; `lines` says what a line holds, and runs its programs. The rules themselves are
counted, so that a line fails where its rule does not fire, and fires where it should not; a
rule without a line fails, too. `TAPEWRIGHT_TRY_ALL=1 pytest` tries every program, dtype and
size in every two roles.
"""

import functools
import itertools
import os
from collections import Counter

import pytest

import tapewright as tw
from tapewright.compiler.control_flow import loop_node
from tapewright.compiler.passes import algebra
from tapewright.compiler.passes.patterns import RewriteRule
from tapewright.compiler.program.lowering.lowering_rules import (
    LOOP_RULES,
    LOWERING_RULES,
)
from tapewright.compiler.targets.numpy.target import TARGET as NUMPY

from ..changed_passes import change_passes
from .algebra_lines import ALGEBRA
from .graph_lines import PASSES
from .image_lines import IMAGES
from .lines import ROLES, check
from .loop_lines import LOOPS
from .program_lines import FORMS, STEPS

TRY_ALL = os.environ.get("TAPEWRIGHT_TRY_ALL", "") not in ("", "0")
TABLE = ALGEBRA | PASSES | IMAGES | FORMS | STEPS | LOOPS


def _rule(name):
    return name.partition(",")[0]


# ----------------------------------------------------------------------------- counting


@pytest.fixture
def fired(monkeypatch):
    """Counts how often each rule changed something, by its name."""
    counts = Counter()

    def counted(name, function, changed):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            before = changed(*args) if changed is written else None
            result = function(*args, **kwargs)
            after = changed(*args) if changed is written else changed(result, *args)
            counts[name] += bool(after != before if changed is written else after)
            return result

        return wrapper

    def replaced(result, *args):
        return result is not None

    def another(result, graph):
        return result is not graph

    def applied(rule, *args, inner=RewriteRule.apply):
        return counted(rule.name, inner, replaced)(rule, *args)

    monkeypatch.setattr(RewriteRule, "apply", applied)

    def all_counted(changed):
        return lambda passes: [counted(p.__name__, p, changed) for p in passes]

    change_passes(monkeypatch, all_counted(another), all_counted(written))
    for rules in (LOWERING_RULES, LOOP_RULES):
        for op, rule in list(rules.items()):
            monkeypatch.setitem(rules, op, counted(op.name, rule, replaced))

    def in_place(node, body, inner=loop_node.writing_body):
        body, owned, sparse = inner(node, body)
        counts["owned"] += len(owned)
        counts["sparse"] += len(sparse)
        return body, owned, sparse

    monkeypatch.setattr(loop_node, "writing_body", in_place)
    return counts


def written(program):
    """What a program says, to see whether a step changes it."""
    return [
        (type(each), each.name, each.operands, [id(step) for step in each.steps])
        for each in program.instructions
    ]


# Rule -> the target that has it.
OF_ONE_TARGET = {
    **dict.fromkeys([n for n in map(_rule, TABLE) if n.startswith("gelu")], "numpy"),
    "row_blocks": "numpy",
    "pool_first": "native",
    "cropped_convolutions": "native",
    "add_to_maxima": "native",
}


def every_rule():
    passes = (*NUMPY.graph_passes, *NUMPY.program_passes)
    names = {each.__name__ for each in passes} | {
        "pool_first",
        "cropped_convolutions",
        "add_to_maxima",
    }
    rules = algebra.RULES.names() | {op.name for op in LOWERING_RULES}
    return rules | names | {"owned", "sparse"}


# -------------------------------------------------------------------------------- tests


def combinations(line):
    """Roles of the operands: each in turn beside made ones; all, if asked for."""
    if TRY_ALL:
        found = [*itertools.product(line.roles, repeat=line.operands)]
    else:
        plain = ["made"] * line.operands
        found = [
            (*plain[:at], name, *plain[at + 1 :])
            for at, name in itertools.product(range(line.operands), line.roles)
        ]
    found = [names for names in found if not ROLES[names[0]].shared]
    return sorted(set(found), key=lambda names: [n != "made" for n in names])


@pytest.mark.parametrize("name", TABLE)
def test_a_rule_fires_where_it_should_and_changes_no_number(name, fired):
    line, rule = TABLE[name], _rule(name)
    problems = []
    target = OF_ONE_TARGET.get(rule, tw.config.target())
    if target == "native":
        pytest.importorskip("llvmlite")
    passes = tw.config.graph_passes(True, **dict.fromkeys(line.off, False))
    with passes, tw.config.use_target(target):
        for dtype, side, make in itertools.product(line.dtypes, line.sides, line.make):
            arrays = make(dtype, side, line.operands)
            is_large = arrays[0].nbytes >= line.least
            for kind in ("fires", "stays", "also"):
                for k, program in enumerate(getattr(line, kind)):
                    where = f"{kind}[{k}] of {dtype}, side {side}"
                    largest = side == line.sides[-1] and dtype == line.dtypes[0]
                    in_all = TRY_ALL or (kind == "fires" and largest)
                    found, can_run = tried(line, program, arrays, fired, in_all)
                    problems += [f"{where}{problem}" for problem in found]
                    wanted = kind == "fires" and is_large
                    if kind != "also" and can_run and (fired[rule] > 0) != wanted:
                        problems.append(f"{where} fired {fired[rule]} times")
    assert not problems, "\n".join(problems)


def tried(line, program, arrays, fired, in_all):
    """What goes wrong; whether it can be run. Counts where all operands are made ones."""
    plain, *others = combinations(line)
    problems, can_run = [], False
    for names in (*(others if in_all else ()), plain):
        fired.clear()
        try:
            can_run = check(program, arrays, [ROLES[n] for n in names], line.exact)
        except AssertionError as error:
            problems.append(f", operands {', '.join(names)}: {error}")
    return problems, can_run


def test_every_rule_has_a_line():
    of_several_processes = {"overlap_all_reduces"}  # see `test_overlapping`
    tabled = {name.partition(",")[0] for name in TABLE}
    assert tabled == every_rule() - of_several_processes
