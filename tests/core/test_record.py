"""Records: what a tape keeps of a call, whatever made it."""

import traceback

import numpy as np
import pytest

import tapewright as tw
from tapewright.core import tape as core_tape
from tapewright.core.interpreters import active_interpreters, use_interpreters
from tapewright.core.op_definition.op_registry import list_ops
from tapewright.core.primitive import primitive
from tapewright.core.record import Pullback
from tapewright.core.rules import elementwise


def recorded(f, *inputs):
    """The records of a call, and its inputs and output."""
    tape = core_tape.Tape()
    for x in inputs:
        tape.watch(x)
    with use_interpreters((*active_interpreters(), tape)):
        out = f(*inputs)
    return tape.records, out


@elementwise(floating=True)
def doubled_for_a_test(xp, x):
    return x + x


@primitive
def copies_for_a_test(xp, *values):
    return values[0]


@tw.custom_gradient
def halved(x):
    return x * 1.0, lambda g: g / 2.0


@tw.function
def squared(x):
    return x * x


def looped(x):
    (out,) = tw.while_loop(lambda y: y < 100.0, lambda y: (y * y,), (x,))
    return out


CALLS = {
    "tanh": tw.tanh,
    "stack": lambda x: tw.stack([x, x]),
    "halved": halved,
    "squared": squared,
    "unstack": lambda x: tw.unstack(tw.stack([x, x]))[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_every_kind_of_call_makes_the_same_kind_of_record(name, device):
    if device != "cpu" and name == "squared":
        pytest.skip("ops of a trace are called one by one, and recorded so")
    x = tw.constant([1.0, 2.0])
    records, out = recorded(CALLS[name], x)
    for pullback, output, inputs, *_ in records:
        assert type(pullback) is Pullback
        assert {type(key) for key in (*inputs, *np.ravel(output).tolist())} == {int}
        assert type(inputs) is tuple
    pullback, output, *_ = records[-1]
    assert pullback.name == name and out.key in np.ravel(output)
    assert x.key in records[0][2]


def test_control_flow_inside_a_trace_is_one_record():
    seen = []

    @tw.function
    def traced(x):
        records, out = recorded(looped, x)
        seen.extend(records)
        return out

    traced(tw.constant(2.0))
    (inputs,) = [inputs for pullback, _, inputs, *_ in seen if pullback.op is None]
    assert {type(pullback) for pullback, *_ in seen} == {Pullback} and len(inputs) == 1


def test_a_record_keeps_what_the_rules_name_and_nothing_else():
    x, y = tw.constant([2.0]), tw.constant([3.0])
    (((_, _, inputs, *residuals),), _) = recorded(tw.multiply, x, y)
    assert inputs == (x.key, y.key)
    assert {id(kept) for kept in residuals} == {id(x), id(y)}
    (((_, _, _, *residuals),), _) = recorded(tw.add, x, y)
    assert residuals == []


@pytest.mark.parametrize("on_arrays", [True, False])
def test_a_pullback_adds_to_the_cotangents_of_useful_inputs(on_arrays):
    x, y = tw.constant([2.0]), tw.constant([3.0])
    ((record,), _) = recorded(tw.multiply, x, y)
    g, old = tw.constant([10.0]), tw.constant([1.0])
    pullback, *_ = record
    cotangents = {x.key: old.array if on_arrays else old}
    if on_arrays:
        pullback.on_arrays(record, g.array, cotangents, {x.key})
    else:
        pullback.on_tensors(record, g, cotangents, {x.key})
    assert list(cotangents) == [x.key]
    assert tw.convert_to_tensor(cotangents[x.key]).numpy().tolist() == [31.0]


# ------------------------------------------------------------------- names of rules


def test_a_traceback_through_a_rule_names_op_and_input():
    @doubled_for_a_test.vjp("x")
    def _(g, x):
        raise ArithmeticError("inside of the rule")

    x = tw.constant([1.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = doubled_for_a_test(x)
    with pytest.raises(ArithmeticError) as caught:
        tape.gradient(y, x)
    frames = traceback.extract_tb(caught.tb)
    assert frames[-1].name == "doubled_for_a_test.vjp[x]"


def test_the_rules_of_all_kinds_carry_the_name_of_their_op():
    op = doubled_for_a_test.primitive
    assert op.infer_rule.__name__ == "doubled_for_a_test.infer"
    assert op.batch_rule.__code__.co_name == "doubled_for_a_test.batch"


def test_no_rule_of_ours_is_without_a_name():
    for op in list_ops():
        rules = [*op.rules.values(), op.infer_rule, op.batch_rule, op.diagonal_rule]
        for rule in rules:
            assert rule is None or rule.__code__.co_name not in ("_", "<lambda>")


def test_a_rule_with_a_name_keeps_it():
    @copies_for_a_test.vjp("values")
    def first_takes_all(g, values):
        return [g, *[None] * (len(values) - 1)]

    assert first_takes_all.__name__ == "first_takes_all"
