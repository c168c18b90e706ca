"""The op table is complete: no primitive without a case, none without its rules."""

from tapewright.core.op_definition.op_registry import list_ops

from ..sources import ROOT, paths, source

OURS = [op for op in list_ops() if op.is_own]
STRINGS = "ops.strings"  # compared with recordings of TensorFlow in tests of their own
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
    lacking = [op for op in OURS if op.inputs and op not in tried]
    assert not [op.name for op in lacking if STRINGS not in op.kernel.__module__]


def test_every_primitive_infers_its_result():
    assert not [op.name for op in OURS if op.infer_rule is None]


def test_every_primitive_with_inputs_can_be_batched():
    lacking = [op for op in OURS if op.inputs and op.batch_rule is None]
    assert {op.name for op in lacking} == NOT_BATCHED


def test_every_input_has_a_rule_or_is_declared_flat():
    for op in OURS:
        lacking = set(op.inputs) - set(op.rules) - op.non_differentiable
        assert not lacking or op.name in WITHOUT_GRADIENT, (op.name, lacking)


def test_every_case_has_a_name_of_its_own(table):
    names = [str(case) for case in table]
    assert sorted(set(names)) == sorted(names)


# Strings that are no op names, or ops that core needs before the ops exist, by file.
MEANT = {
    # methods of ndarray, functions of NumPy, operators of Python
    "compiler/loops/accesses.py": {"broadcast_to", "reshape", "transpose"},
    "compiler/loops/grouping.py": {"cast"},
    "compiler/loops/index_splitting.py": {"where"},
    "compiler/loops/pretty.py": {
        *"""add bitwise_and bitwise_or bitwise_xor cast divide equal greater greater_equal
        less less_equal multiply negative not_equal power reciprocal subtract""".split()
    },
    "compiler/loops/statements.py": {"add", "maximum", "minimum", "multiply"},
    "compiler/loops/threads/thread_scheduling.py": {"add", "cast"},
    "compiler/loops/value_graph.py": {"cast"},
    "compiler/program/instructions/array_instructions.py": {"cast"},
    "compiler/program/lowering/array_tracer.py": {
        *("abs", "add", "floordiv", "invert", "matmul", "reshape", "transpose")
    },
    "compiler/program/lowering/step_tracer.py": {"add", "invert", "matmul", "where"},
    "compiler/targets/numpy/source.py": {"reshape", "transpose"},
    # titles of loops, and names of arguments, attributes and dtypes
    "autodiff/batching.py": {"sizes"},
    "compiler/autograph/traced_loop.py": {"maximum"},
    "compiler/control_flow/loop_node.py": {"maximum", "reverse"},
    "compiler/control_flow/loop_source.py": {"add"},
    "compiler/control_flow/tensor_array.py": {"concat", "split", "stack", "unstack"},
    "compiler/inspection/pretty.py": {"complex"},
    "compiler/tracing/custom_calls.py": {"sizes"},
    "core/primitive.py": {"complex"},
    "core/shapes/symbolic_dim.py": {"add"},
    "core/shapes/symbolic_shape.py": {"sizes"},
    # ops whose functions are private to their families
    "compiler/passes/padded_convolutions.py": {"crop", "pad"},
    "compiler/program/lowering/lowering_rules.py": {"pad", "upsample"},
    # the reason that `explain` gives
    "autodiff/explain.py": {"stop_gradient"},
    "core/messages/provenance.py": {"stop_gradient"},
    # what generated records and the rules of core call
    "core/record.py": {"broadcast_to", "equal", "sum_to_shape"},
    "core/rules.py": {"broadcast_to", "reshape"},
    "core/op_definition/user_gradients.py": {"conj"},
}


def test_no_file_but_that_of_its_family_knows_an_op_by_its_name():
    names = {op.name for op in OURS}
    found = {}
    for room in ("core", "autodiff", "compiler", "debugging", "profiler"):
        for path in paths(f"framework/{room}"):
            # names of instructions and functions, kernels by the op that they compute, and
            # names of another library
            if not {"native", "cuda", "names_of_pytorch.py"}.isdisjoint(path.parts):
                continue
            if strings := source(path).strings & names:
                found[path.relative_to(ROOT / "framework").as_posix()] = strings
    assert found == MEANT


def test_every_rule_is_named_after_its_op_also_where_several_share_it():
    names = {}
    for op in OURS:
        for place, rule in op.rules.items():
            stem, _, inputs = rule.__name__.partition(".vjp[")
            assert stem == op.name and place in inputs[:-1].split(", "), rule
            names[rule] = rule.__name__
        for kind in ("infer", "batch", "batch_arrays", "densify", "diagonal"):
            rule = getattr(op, f"{kind}_rule")
            if rule is not None:
                names[rule] = f"{op.name}.{kind}"
    wrong = [rule for rule, name in names.items() if rule.__code__.co_name != name]
    assert not wrong
