"""The op table is complete: no primitive without a case, none without its rules."""

import pytest

from tapewright.core.primitive import list_ops


def primitives():
    """Every primitive that tapewright itself defines, each once."""
    return sorted([op for op in list_ops() if op.is_own], key=lambda op: op.name)


@pytest.mark.parametrize(
    "op", [op for op in primitives() if op.inputs], ids=lambda op: op.name
)
def test_every_primitive_with_inputs_has_a_case(op, table):
    assert any(case.primitive is op for case in table), f"add a case for {op.name}"


@pytest.mark.parametrize("op", primitives(), ids=lambda op: op.name)
def test_every_primitive_infers_its_result(op):
    assert op.infer_rule is not None


WITHOUT_GRADIENT = {"adjust_contrast"}  # as in TensorFlow


@pytest.mark.parametrize("op", primitives(), ids=lambda op: op.name)
def test_every_input_has_a_rule_or_is_declared_flat(op):
    open_inputs = set(op.inputs) - set(op.rules) - op.flat
    assert not open_inputs or op.name in WITHOUT_GRADIENT


def test_every_case_has_a_name_of_its_own(table):
    names = [str(case) for case in table]
    assert sorted(set(names)) == sorted(names)
