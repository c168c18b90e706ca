"""What one graph holds: which instructions, in which order, and the memory of each."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.program import Kind
from tapewright.compiler.targets.cuda.kernel import STATUS, Launch
from tapewright.compiler.targets.cuda.kernels.stores import StoreKernel
from tapewright.compiler.targets.cuda.kernels.updates import UpdateKernel
from tapewright.compiler.targets.cuda.segments import PINNED, REPORT, can_fail

from .runtime_runs import both, executable_of

X = np.arange(6, dtype="f").reshape(2, 3)


def segments_of(function, *args):
    function = tw.function(function)
    function(*args)
    return executable_of(function, *args).segments


def test_the_steps_are_captured_in_the_order_of_the_program(gpu, captured):
    v = tw.Variable(tw.zeros([2, 3]))

    def f(x):
        y = tw.matmul(x, tw.transpose(x)) * 2.0
        v.assign(tw.gather(tw.exp(x), tw.constant([1, 0])))
        return tw.matmul(y, y)

    (segment,) = segments_of(f, tw.constant(X))
    names = [s.name if type(s) is Launch else "product" for s in segment.steps]
    asked = ["product" if v[0] == "product" else v[1] for v in captured[-1].verbs]
    assert asked == names and len(names) > 3


def test_inputs_hosts_and_results_are_each_listed_once(gpu):
    def f(x):
        y = tw.exp(x)
        return y[0] + x[1] + tw.transpose(x)[0, 0], y, y[1:]

    (segment,) = segments_of(f, tw.constant(X))
    assert len(segment.inputs) == 1 and len(segment.results) == len(
        set(segment.results)
    )


def test_python_between_divides_a_program(gpu):
    spec = tw.TensorSpec([2, 3], "float32")

    def f(x):
        y = tw.py_function(lambda a: a + 1.0, [tw.exp(x)], spec)
        return tw.sin(y) * x

    first, second = segments_of(f, tw.constant(X))
    assert len(first.inputs) == 1 and len(second.inputs) == 2


def test_a_result_of_one_graph_is_read_where_it_lies_by_the_next(gpu):
    spec = tw.TensorSpec([2, 3], "float32")

    def f(x):
        y = tw.exp(x)
        z = tw.py_function(lambda a: a + 1.0, [y], spec)
        return z * y

    _, second = segments_of(f, tw.constant(X))
    kinds = [root.kind for root, _ in second.addresses.where]
    assert kinds.count("input") == 1 and ("static" in kinds or "arena" in kinds)
    assert np.allclose(
        tw.function(f)(tw.constant(X)).numpy(), np.exp(X) * (np.exp(X) + 1)
    )


def updates(*rules):
    v = tw.Variable(tw.ones([3]))
    w = tw.Variable(tw.ones([3]))
    for rule in rules:
        rule.build([v, w])
    return v, w


def test_updates_of_one_optimizer_share_a_graph_and_those_of_two_do_not(gpu):
    first, second = tw.optimizers.SGD(0.1), tw.optimizers.SGD(0.1)
    v, w = updates(first, second)

    def one(x):
        first.apply_gradients([(v * x, v)])
        first.apply_gradients([(w * x, w)])

    def two(x):
        first.apply_gradients([(v * x, v)])
        second.apply_gradients([(w * x, w)])

    assert len(segments_of(one, tw.ones([]))) == 1
    assert len(segments_of(two, tw.ones([]))) == 2


def test_two_optimizers_of_different_variables_share_a_graph(gpu):
    first, second = tw.optimizers.SGD(0.1), tw.optimizers.Adam(0.1)
    v, w = tw.Variable(tw.ones([3])), tw.Variable(tw.ones([3]))

    def step(x):
        first.apply_gradients([(v * x, v)])
        second.apply_gradients([(w * x, w)])

    assert len(segments_of(step, tw.ones([]))) == 1


def test_a_store_to_a_frozen_neighbour_of_an_update_is_in_another_graph(gpu):
    rule = tw.optimizers.SGD(0.1)
    v, w = updates(rule)

    def step(x):
        rule.apply_gradients([(v * x, v)])
        w.assign_add(x * tw.ones([3]))

    first, second = segments_of(step, tw.ones([]))
    assert [type(e) for e in first.instructions].count(UpdateKernel) == 1
    assert [type(e) for e in second.instructions].count(StoreKernel) == 1


# ----------------------------------------------------------------------- wrong values


def checked(x, v, w, labels, rule):
    v.assign_add(x)
    losses = tw.nn.sparse_softmax_cross_entropy_with_logits(labels, tw.stack([x, x]))
    rule.apply_gradients([(w * tw.reduce_sum(losses), w)])
    v.assign_sub(tw.reduce_sum(losses) * x)


def test_all_that_changes_variables_behind_a_check_is_guarded(gpu):
    rule, labels = tw.optimizers.Adam(0.1), tw.constant([0, 1])
    v, w = tw.Variable(tw.zeros([3])), tw.Variable(tw.ones([3]))
    segments = segments_of(lambda x: checked(x, v, w, labels, rule), tw.ones([3]))
    failed = False
    for segment in segments:
        status = segment.addresses[STATUS]
        variables = {
            n
            for n, (root, _) in enumerate(segment.addresses.where)
            if root.kind in ("stored", "flat", "variable")
        }
        for step in segment.steps:
            written = [p.position for p in step.parameters if p.is_written]
            if failed and variables.intersection(written):
                condition = step.parameters[-1]
                assert condition.position == status
                look = f"  if (p{len(step.parameters) - 1}[0] != 0) return;"
                assert step.body.startswith(look)
            failed = failed or status in written
    assert failed


def test_the_last_step_reports_what_was_found(gpu):
    labels = tw.constant([0, 1])

    def f(x):
        return tw.nn.sparse_softmax_cross_entropy_with_logits(labels, x)

    (segment,) = segments_of(f, tw.constant(X))
    last = segment.steps[-1]
    assert last.body == REPORT and segment.reports
    assert [p.position for p in last.parameters] == [
        segment.addresses[STATUS],
        segment.addresses[PINNED],
    ]
    assert [can_fail(e) for e in segment.instructions].count(True) >= 1


def test_a_graph_without_checks_reports_nothing(gpu):
    (segment,) = segments_of(lambda x: tw.exp(x), tw.constant(X))
    assert not segment.reports and STATUS not in [
        r.kind for r, _ in segment.addresses.where
    ]


def test_each_instruction_that_can_fail_has_a_number_of_its_own(gpu):
    def f(x, i):
        return tw.gather(x, i) + tw.gather(x * 2.0, i + 0)

    segments = segments_of(f, tw.constant(X), tw.constant([0, 1]))
    numbers = [e.number for s in segments for e in s.instructions if can_fail(e)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1)) and len(numbers) >= 2


@pytest.mark.parametrize("which", [0, 1])
def test_of_two_checks_the_one_that_found_something_is_named(which, gpu):
    @tw.function
    def f(x, i, j):
        first = tw.gather(x, i)
        second = tw.gather(x * 2.0, j)
        return first + second

    indices = [tw.constant([0, 1]), tw.constant([0, 1])]
    indices[which] = tw.constant([0, 2])
    with pytest.raises((IndexError, ValueError)) as caught:
        f(tw.constant(X), *indices)
    line = (
        test_of_two_checks_the_one_that_found_something_is_named.__code__.co_firstlineno
    )
    assert f"test_segments.py:{line + 4 + which}" in "".join(caught.value.__notes__)


# ---------------------------------------------------------------------------- memory


def test_no_two_values_that_live_together_share_memory_of_the_arena(gpu):
    def f(x):
        a, b = tw.matmul(x, tw.transpose(x)), tw.matmul(tw.transpose(x), x)
        for _ in range(3):
            a, b = tw.matmul(a, a) * 0.1, tw.matmul(b, b) * 0.1
        return a, b

    both(lambda: tw.function(f)(tw.constant(X)), 1e-5)


def test_the_values_of_variables_have_the_addresses_of_their_arrays(gpu):
    v = tw.Variable(X)
    (segment,) = segments_of(lambda x: tw.exp(v * x), tw.constant(X))
    (root,) = [r for r, _ in segment.addresses.where if r.kind == "variable"]
    assert root.key is v
    assert all([b.kind is not Kind.VARIABLE for b in segment.inputs])
