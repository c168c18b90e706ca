"""The op table is complete: no primitive without a case, none without its rules."""

from tapewright.core.primitive import list_ops

OURS = [op for op in list_ops() if op.is_own]
WITHOUT_GRADIENT = {"adjust_contrast"}  # as in TensorFlow
# A batch of these is refused: their outputs have no shape beforehand, they are steps of
# recurrent layers, or parts of rewritten graphs.
NOT_BATCHED = {
    *("flatnonzero", "nonzero", "add_to_maxima", "clear_row", "put_row"),
    *(f"{cell}_{part}" for cell in ("gru", "lstm") for part in ("steps", "jvp", "vjp")),
    *(f"simple_rnn_{part}" for part in ("steps", "jvp", "vjp")),
}


def test_every_primitive_with_inputs_has_a_case(table):
    tried = {case.primitive for case in table}
    assert not [op.name for op in OURS if op.inputs and op not in tried]


def test_every_primitive_infers_its_result():
    assert not [op.name for op in OURS if op.infer_rule is None]


def test_every_primitive_with_inputs_can_be_batched():
    lacking = [op for op in OURS if op.inputs and op.batch_rule is None]
    assert {op.name for op in lacking} == NOT_BATCHED


def test_every_input_has_a_rule_or_is_declared_flat():
    for op in OURS:
        lacking = set(op.inputs) - set(op.rules) - op.flat
        assert not lacking or op.name in WITHOUT_GRADIENT, (op.name, lacking)


def test_every_case_has_a_name_of_its_own(table):
    names = [str(case) for case in table]
    assert sorted(set(names)) == sorted(names)
