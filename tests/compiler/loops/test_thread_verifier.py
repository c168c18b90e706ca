"""Mistakes in thread nests are found before they run."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.loops.fusion import form_loops
from tapewright.compiler.loops.statements import (
    Access,
    Axis,
    Compute,
    Load,
    Scalar,
    Store,
    statements_in,
)
from tapewright.compiler.loops.threads.thread_nest import ThreadNest
from tapewright.compiler.loops.threads.thread_scheduling import thread_nests
from tapewright.compiler.loops.threads.thread_statements import (
    Begin,
    Combine,
    Fold,
    Guard,
    Members,
)
from tapewright.compiler.loops.verifier import verify_thread_nest
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.passes.pass_manager import run_passes
from tapewright.compiler.program.program import Buffer
from tapewright.compiler.targets.target import SIMPLIFICATION


def nests_of(function, *shapes):
    tensors = [tw.constant(np.ones(shape, np.float32)) for shape in shapes]
    graph = tw.function(function).get_concrete_function(*tensors).graph
    program = lower(optimize(graph), in_loops=True)
    run_passes(program, SIMPLIFICATION)
    form_loops(program, lambda _: True, schedule=thread_nests, has_totals=False)
    return [each for each in program.instructions if type(each) is ThreadNest]


def softmax_of_rows():
    (nest,) = nests_of(tw.nn.softmax, (50, 100))
    assert nest.geometry.team == 32 and nest.geometry.is_row
    return nest


def sums_of_columns():
    (nest,) = nests_of(lambda x: tw.reduce_sum(x, 0), (50, 100))
    assert nest.geometry.team > 1 and not nest.geometry.is_row
    return nest


def map_of_matrix():
    (nest,) = nests_of(lambda x, y: tw.exp(x) * y, (50, 100), (100,))
    return nest


def sum_in_parts():
    parts, total = nests_of(tw.reduce_sum, (3000, 100))
    assert parts.parts.extent > 1 and total.parts is None
    return parts, total


def mistakes(nest):
    """What the verifier finds wrong."""
    found = []
    verify_thread_nest(nest, found.append)
    return found


def assert_found(nest, what):
    found = mistakes(nest)
    assert any([what in each for each in found]), found


def rewritten(body, change):
    """Statements with ``change(statement)``, a list, for each that is no branch or loop."""
    result = []
    for each in body:
        if type(each) in (Members, Guard):
            each = each._replace(body=rewritten(each.body, change))
            result += change(each)
        else:
            result += change(each)
    return result


def change(nest, kind, function):
    """Replace the statements of a kind in a nest by those that a function returns."""
    nest.body = rewritten(
        nest.body, lambda each: function(each) if type(each) is kind else [each]
    )
    return nest


def moved(each, **fields):
    return each._replace(access=each.access._replace(**fields))


NESTS = [softmax_of_rows, sums_of_columns, map_of_matrix]


@pytest.mark.parametrize("make", NESTS)
def test_what_the_scheduler_makes_is_right(make):
    assert mistakes(make()) == []


def test_parts_are_right():
    assert [mistakes(nest) for nest in sum_in_parts()] == [[], []]


# ------------------------------------------------------------------------------ memory


@pytest.mark.parametrize("make", NESTS)
@pytest.mark.parametrize("kind", [Load, Store])
def test_a_stride_beyond_the_array_is_found(make, kind):
    def wrong(each):
        pairs = [(axis, 2 * stride) for axis, stride in each.access.strides]
        return [moved(each, strides=tuple(pairs))]

    assert_found(change(make(), kind, wrong), "accesses entries 0 to")


@pytest.mark.parametrize("make", [softmax_of_rows, map_of_matrix])
def test_swapped_strides_of_an_output_are_found(make):
    def wrong(each):
        (a, m), (b, n) = each.access.strides
        return [moved(each, strides=((a, n), (b, m)))]

    nest = change(make(), Store, wrong)
    assert_found(nest, "skips entries, or writes some twice")


@pytest.mark.parametrize("make", NESTS)
@pytest.mark.parametrize("kind", [Load, Store])
def test_an_offset_is_found(make, kind):
    assert_found(
        change(make(), kind, lambda e: [moved(e, offset=1)]), "accesses entries 1"
    )
    assert_found(
        change(make(), kind, lambda e: [moved(e, offset=-1)]), "accesses entries -1 to"
    )


@pytest.mark.parametrize("make", NESTS)
def test_an_output_that_is_not_written_is_found(make):
    assert_found(change(make(), Store, lambda _: []), "is never written")


@pytest.mark.parametrize("make", NESTS)
def test_an_output_that_is_written_twice_is_found(make):
    assert_found(change(make(), Store, lambda e: [e, e]), "written twice")


def test_one_entry_written_by_many_indices_is_found():
    nest = map_of_matrix()
    nest.teams = (*nest.teams, Axis("other", 2))
    assert_found(nest, "writes one entry several times")


def test_the_index_of_another_axis_is_found():
    def wrong(each):
        return [moved(each, strides=((Axis("other", 2), 1),))]

    assert_found(change(map_of_matrix(), Load, wrong), "needs an index for other")


def test_members_indices_outside_of_their_loop_are_found():
    nest = softmax_of_rows()
    nest.body += [each for each in nest.body if type(each) is Members][0].body[:1]
    assert_found(nest, "needs an index for")


# ----------------------------------------------------------------------------- threads


def test_a_store_by_all_threads_of_a_team_is_found():
    nest = change(sums_of_columns(), Guard, lambda e: [e._replace(is_first=False)])
    assert_found(nest, "is executed by all members of a team")


def test_a_store_in_a_pass_by_the_first_member_is_found():
    nest = change(softmax_of_rows(), Guard, lambda e: [e._replace(is_first=True)])
    assert_found(nest, "is executed by the first member of a team")


@pytest.mark.parametrize("make", NESTS)
def test_a_store_for_indices_past_the_end_is_found(make):
    nest = change(make(), Guard, lambda e: e.body)
    assert_found(nest, "runs for indices out of range")


def test_a_store_at_the_first_index_only_is_found():
    nest = map_of_matrix()
    change(nest, Guard, lambda e: [e._replace(zeros=nest.teams[:1])])
    assert_found(nest, "skips all indices but the first")


@pytest.mark.parametrize("make", [softmax_of_rows, sums_of_columns])
def test_a_barrier_that_not_all_threads_reach_is_found(make):
    nest = change(make(), Combine, lambda e: [Guard(True, (), [e])])
    assert_found(nest, "not all threads of a block reach a barrier")
    nest = change(make(), Members, lambda e: [])
    nest.body = [Members([e]) if type(e) is Combine else e for e in nest.body]
    assert_found(nest, "not all threads of a block reach a barrier")


@pytest.mark.parametrize("make", [softmax_of_rows, sums_of_columns])
def test_a_sum_that_is_not_combined_is_found(make):
    nest = change(make(), Combine, lambda _: [])
    assert_found(nest, "is used before it is computed")
    assert_found(nest, "is never combined")


@pytest.mark.parametrize("make", [softmax_of_rows, sums_of_columns])
def test_a_sum_that_is_not_begun_is_found(make):
    assert_found(
        change(make(), Begin, lambda _: []), "accumulates into a sum that was not begun"
    )


def test_a_sum_that_is_begun_for_each_index_is_found():
    nest = sums_of_columns()
    (begin,) = [e for e in nest.body if type(e) is Begin]
    change(nest, Members, lambda e: [e._replace(body=[begin, *e.body])])
    assert_found(nest, "is repeated inside of a loop")


def test_a_sum_that_is_combined_by_another_function_is_found():
    def wrong(each):
        return [Combine(tuple([(out, "maximum") for out, _ in each.sums]))]

    assert_found(
        change(sums_of_columns(), Combine, wrong), "not accumulated by maximum"
    )


def test_a_number_that_is_added_once_per_thread_is_found():
    nest = sums_of_columns()
    (combine,) = [e for e in nest.body if type(e) is Combine]
    number = Scalar(None, np.dtype(np.float32), 1.0)
    fold = Fold(combine.sums[0][0], "add", number)
    nest.body.insert(nest.body.index(combine), fold)
    assert_found(nest, "does not run for each index of the members")


def test_a_number_of_a_pass_that_is_used_after_it_is_found():
    nest = softmax_of_rows()
    (value,) = [e for _, e in statements_in(nest.body) if type(e) is Store]
    out = Scalar("twice", np.dtype(np.float32))
    nest.body.append(Compute(out, "add", (value.value, value.value)))
    assert_found(nest, "is used before it is computed")


def test_reading_what_another_thread_has_written_is_found():
    nest = sums_of_columns()
    (store,) = [e for _, e in statements_in(nest.body) if type(e) is Store]
    load = Load(Scalar("load", np.dtype(np.float32)), store.access)
    nest.body.append(load)
    assert_found(nest, "reads an entry that another thread has written")
    nest.body.insert(0, nest.body.pop())
    assert_found(nest, "reads an entry that was not written")


@pytest.mark.parametrize("make, count", [(softmax_of_rows, 0), (sums_of_columns, 1)])
def test_an_output_may_overwrite_only_entries_of_the_same_thread(make, count):
    nest, found = make(), []
    nest.verify(lambda buffer: (0, 0, 50 * 100 * 4), found.append)
    assert len(found) == count and all(["still in use" in each for each in found])


def test_a_store_of_a_value_that_depends_on_further_axes_is_found():
    nest = map_of_matrix()
    rows, columns = nest.teams
    out = Buffer((rows.extent,), np.dtype(np.float32))
    store = Access(out, 0, ((rows, 1),))

    def wrong(each):
        value = each.body[0].value
        return [each, Guard(False, (columns,), [Store(store, value)])]

    change(nest, Guard, wrong)
    nest.outputs = (*nest.outputs, out)
    assert_found(nest, "stores one entry for all indices along")


# ------------------------------------------------------------------------------- parts


def test_a_part_that_is_missing_is_found():
    parts, _ = sum_in_parts()
    parts.chunk -= 1
    assert_found(parts, "do not make 300000 entries")
    parts.chunk += 2000
    assert_found(parts, "do not make 300000 entries")


def test_parts_that_are_not_all_written_are_found():
    parts, _ = sum_in_parts()
    change(parts, Guard, lambda e: [e._replace(zeros=(parts.parts,))])
    assert_found(parts, "skips all indices but the first")


def test_values_that_only_one_part_stores_are_found():
    parts, *_ = nests_of(lambda x: (tw.exp(x), tw.reduce_sum(tw.exp(x))), (3000, 100))
    assert mistakes(parts) == []

    def wrong(each):
        return [each if each.is_first else each._replace(zeros=(parts.parts,))]

    assert_found(change(parts, Guard, wrong), "skips all parts but the first")


def test_parts_that_are_not_all_read_are_found():
    _, total = sum_in_parts()
    change(total, Load, lambda e: [moved(e, strides=((Axis("few", 3), 1),))])
    assert_found(total, "skips parts")


def test_the_sum_over_one_part_as_a_result_is_found():
    parts, total = sum_in_parts()
    (store,) = [e for _, e in statements_in(total.body) if type(e) is Store]
    change(parts, Store, lambda e: [e, e._replace(access=store.access)])
    parts.outputs = (*parts.outputs, store.access.array)
    assert_found(parts, "stores one entry for all indices along")


# ---------------------------------------------------------------------------- geometry


@pytest.mark.parametrize(
    "team, lanes, what",
    [
        (48, 2, "do not fit warps"),
        (16, 1, "do not fit warps"),
        (64, 32, "are not a valid block"),
    ],
)
def test_a_block_that_cannot_be_is_found(team, lanes, what):
    nest = softmax_of_rows()
    nest.geometry = nest.geometry._replace(team=team, lanes=lanes)
    assert_found(nest, what)
    nest.geometry = nest.geometry._replace(team=32, lanes=8, blocks=0)
    assert_found(nest, "are not a valid block")
