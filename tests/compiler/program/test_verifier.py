"""The verifier of programs: it finds each kind of mistake that compilation could make.

Every test puts one mistake into a pass, on purpose, and sees it found; and sees that
the same function is verified without it.
"""

import functools

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.control_flow import loop_node, row_updates
from tapewright.compiler.control_flow.effects import host_effect
from tapewright.compiler.program import buffer_assignment
from tapewright.compiler.program.instructions.array_instructions import FusedMap
from tapewright.compiler.program.instructions.call_instructions import Opaque
from tapewright.compiler.program.lowering import lowering
from tapewright.compiler.program.passes import atomicity
from tapewright.compiler.program.verifier import verify_program
from tapewright.core.settings.config import functions_are_verified
from tapewright.ops.array.scatter import put_row
from tapewright.optimizers.base import update

from ..changed_passes import change_passes

N = 4096  # entries: enough for the calls of BLAS
X = tw.constant(np.linspace(-1, 1, N, dtype=np.float32))
ZERO = tw.constant(0)


def assert_found(function, *args, match=""):
    """Compiling ``function`` raises with the mistake in place."""
    with pytest.raises(tw.errors.VerificationError, match=match):
        tw.function(function)(*args)


def assert_verified(function, *args):
    found = tw.nest.flatten(tw.function(function)(*args))
    for a, b in zip(found, tw.nest.flatten(function(*args)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_it_runs_in_all_tests():
    assert functions_are_verified()


# ------------------------------------------------------------------- reads too late


def written(i, rows, before):
    """A step of a loop that replaces a row, and hands the matrix on as it was, too."""
    return i + 1, put_row(rows, i, tw.gather(rows, i) * 2.0), rows


def looped(x, start):
    return tw.while_loop(lambda i, *_: i < 3, written, [start, x, x])[1:]


def test_a_change_in_place_under_a_later_read_is_found(monkeypatch):
    assert_verified(looped, X, ZERO)
    monkeypatch.setattr(row_updates, "_leads_to", lambda *_: True)
    assert_found(
        looped, X, ZERO, match="is read, but its memory already holds another value"
    )


def test_a_change_of_what_is_not_owned_is_found(monkeypatch):
    def f(x, start):
        def step(i, rows):
            return written(i, rows, rows)[:2]

        return tw.while_loop(lambda i, _: i < 3, step, [start, x])[1]

    assert_verified(f, X, ZERO)
    right = loop_node.writing_body

    def forgets(node, body):
        body, _, sparse = right(node, body)
        return body, [], sparse

    monkeypatch.setattr(loop_node, "writing_body", forgets)
    assert_found(f, X, ZERO, match="the program does not own its memory")


def chain(x):
    for _ in range(4):
        x = tw.tanh(tw.linalg.matvec(tw.reshape(tw.sin(x), [64, 64]), tw.cos(x[:64])))
        x = tw.tile(x, [64])
    return tw.reduce_sum(x * 1.5)


def test_memory_used_again_too_early_is_found(monkeypatch):
    assert_verified(chain, X)
    right = buffer_assignment.last_uses

    def short(program):
        return {buffer: max(0, last - 1) for buffer, last in right(program).items()}

    monkeypatch.setattr(buffer_assignment, "last_uses", short)
    assert_found(chain, X, match="memory")


def test_a_view_by_a_kernel_of_memory_that_ends_is_found(monkeypatch):
    def f(x):  # NumPy's reshape of what a kernel gave is a view, unknown to the program
        y = tw.sin(x) * 2.0
        z = tw.stop_gradient(tw.tensor_scatter_nd_update(y, [[0]], [1.0]))
        w = tw.gather(y, tw.range(8))
        return tw.reduce_sum(w) + tw.reduce_sum(tw.exp(x)) + tw.reduce_sum(z)

    assert_verified(f, X)
    right = buffer_assignment.last_uses

    def without_aliases(program):
        with monkeypatch.context() as patch:
            patch.setattr(Opaque, "may_alias", False)
            return right(program)

    monkeypatch.setattr(buffer_assignment, "last_uses", without_aliases)
    assert_found(f, X, match="may be a view|another value")


def test_rows_read_after_a_block_wrote_over_them_are_found(monkeypatch, numpy_target):
    x = tw.constant(np.eye(1 << 10, dtype=np.float32))

    def f(x):
        # It ends with a block, and is read after the rows of its first output.
        y = x @ x
        return tw.exp(y) @ tw.cos(y)

    assert_verified(f, x)
    monkeypatch.setattr(FusedMap, "is_done_with", lambda self, operand, out: True)
    assert_found(f, x, match="other rows")


# ------------------------------------------------------------------ what must last


def test_an_output_in_the_arena_is_found(monkeypatch):
    def f(x):
        return tw.sin(x) * 2.0

    assert_verified(f, X)
    monkeypatch.setattr(buffer_assignment, "escaping_buffers", lambda program: set())
    assert_found(f, X, match="returned.*memory belongs to the executable")


def test_a_variable_bound_to_the_arena_is_found(monkeypatch):
    v = tw.Variable(X)

    def f(x):
        v.assign(tw.sin(x) * 2.0)
        return tw.reduce_sum(x)

    monkeypatch.setattr(buffer_assignment, "escaping_buffers", lambda program: set())
    assert_found(f, X, match="kept by a variable.*memory belongs to the executable")


def stored_in_a_branch():
    v, rule = tw.Variable(tw.zeros([4])), tw.optimizers.SGD(0.5)

    def f(x):
        z = tw.sin(x) * 2.0

        def branch():
            rule.apply_gradients([(z * 1.0, v)])
            v.assign(z)
            return 0.0

        tw.cond(tw.reduce_sum(x) > -9.0, branch, lambda: 1.0)
        return tw.reduce_sum(tw.exp(z))

    return f, v


def test_a_variable_bound_in_a_branch_to_memory_lent_to_it_is_found(monkeypatch):
    f, v = stored_in_a_branch()
    x = tw.constant([1.0, 2.0, 3.0, 4.0])
    traced = tw.function(f)
    for _ in range(2):
        traced(x)
        np.testing.assert_allclose(v.numpy(), np.sin(x.numpy()) * 2.0, rtol=1e-6)
    monkeypatch.setattr(lowering, "_may_be_an_input", lambda buffer: False)
    assert_found(stored_in_a_branch()[0], x, match="kept by a variable.*lent")


def test_memory_that_an_effect_keeps_turns_into_nan():
    kept = []
    f = tw.function(lambda x: host_effect("print", kept.append, [tw.sin(x) * 2.0]))
    f(X)
    assert np.isnan(kept[0]).all()


# ---------------------------------------------------------------------- gradients


def two_updates():
    a, b = tw.Variable(tw.ones([3])), tw.Variable(tw.ones([5]))
    rule = tw.optimizers.SGD(0.5)

    def f(x):
        with tw.GradientTape(persistent=True) as tape:
            first = tw.reduce_sum(a * a * x) + tw.reduce_sum(b * x)
            second = tw.reduce_sum(tw.sin(a)) + tw.reduce_sum(b * b)
        one = tape.gradient(first, [a, b])
        two = tape.gradient(second, [a, b])
        rule.apply_gradients(zip(one, [a, b]))
        rule.apply_gradients(zip(two, [a, b]))

    return f


def test_two_updates_with_one_memory_for_gradients_are_found(monkeypatch):
    tw.function(two_updates())(tw.constant(2.0))
    monkeypatch.setattr(update.TracedUpdate, "with_own_memory", lambda self: self)
    assert_found(two_updates(), tw.constant(2.0), match="another value|shares")


def test_a_gradient_read_after_its_update_took_it_over_is_found(
    monkeypatch, numpy_target
):
    def make():
        a, b = tw.Variable(tw.ones([3])), tw.Variable(tw.ones([5]))
        rule = tw.optimizers.SGD(0.5)

        def f(x):
            grads = [a * x, b * x]
            rule.apply_gradients(zip(grads, [a, b]))  # in place, as a new value is read
            return tw.reduce_sum(grads[0] * 1.5) + 0.0 * a[0]

        return f

    assert float(tw.function(make())(tw.constant(2.0))) == 9.0
    right = buffer_assignment.slots_of_updates

    def all_slots(assignment):
        last, assignment.last_use = assignment.last_use, {}
        instructions = assignment.program.instructions
        updates = [i for i, each in enumerate(instructions) if each.has_effect]
        assignment.last_use = dict.fromkeys(last, updates[0])
        try:
            return right(assignment)
        finally:
            assignment.last_use = last

    monkeypatch.setattr(buffer_assignment, "slots_of_updates", all_slots)
    assert_found(make(), tw.constant(2.0), match="another value")


# -------------------------------------------------------------------------- order


def test_a_read_that_moves_across_an_assignment_is_found(monkeypatch):
    v = tw.Variable(1.0)

    def f(x):
        v.assign(x)
        tw.py_function(lambda: None, [], [])
        y = v * 2.0
        v.assign(y)
        return y

    assert float(tw.function(f)(tw.constant(3.0))) == 6.0
    right = atomicity.fallible_first

    def reads_first(graph):
        nodes, kept = right(graph)
        return sorted(nodes, key=lambda n: not isinstance(n, lowering.Read)), kept

    monkeypatch.setattr(lowering, "fallible_first", reads_first)
    assert_found(f, tw.constant(3.0), match="other writes")


def test_a_value_that_is_used_before_it_is_made_is_found():
    graph = tw.function(lambda x: tw.exp(tw.sin(x))).get_concrete_function(X).graph
    program = lowering.lower(graph)
    verify_program(program, "lowering")
    program.instructions.reverse()
    with pytest.raises(tw.errors.VerificationError, match="before it is computed"):
        verify_program(program, "a step")


def test_a_step_that_names_another_shape_than_numpy_makes_is_found():
    graph = tw.function(lambda x: tw.exp(x) + 1.0).get_concrete_function(X).graph
    program = lowering.lower(graph)
    program.instructions[-1].outputs[0].shape = (N, 1)
    with pytest.raises(tw.errors.VerificationError, match="NumPy returns"):
        verify_program(program, "a step")


def reverse(program):
    program.instructions.reverse()


def misshape(program):
    """Change nothing but a shape: instructions, operands and outputs stay the same objects."""
    program.instructions[-1].outputs[0].shape = (N, 1)


@pytest.mark.parametrize(
    ("mistake", "match"),
    [
        (reverse, "after merge_equal.* before it is computed"),
        (misshape, "after all passes.*NumPy returns"),
    ],
)
def test_a_mistake_of_a_program_pass_is_found(
    mistake, match, numpy_target, monkeypatch
):
    def wrong(passes):
        right, *others = passes

        @functools.wraps(right)
        def wrong(program):
            right(program)
            mistake(program)

        return wrong, *others

    def f(x):
        return tw.exp(tw.sin(x))

    assert_verified(f, X)
    change_passes(monkeypatch, program=wrong)
    assert_found(f, X, match=match)
