"""All-reduces of a program: joined into buckets, early to start and late to wait for."""

import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.pipeline import make_program
from tapewright.compiler.program import buffer_assignment
from tapewright.compiler.program.instructions import all_reduce_instructions
from tapewright.compiler.program.instructions.all_reduce_instructions import (
    AllReduce,
    StartAllReduce,
    WaitAllReduce,
)
from tapewright.compiler.program.instructions.call_instructions import (
    RegionCall,
    StoreVariable,
    Update,
)
from tapewright.compiler.program.lowering import lowering
from tapewright.compiler.program.verifier import verify_program
from tapewright.core.communication.communicator import Communicator, Pending
from tapewright.core.settings import config
from tapewright.ops import collective
from tapewright.ops.collective import all_reduce

pytestmark = pytest.mark.gpu_first

RNG = np.random.default_rng(0)
COLLECTIVES = (AllReduce, StartAllReduce, WaitAllReduce)


class Twins(Communicator):
    """Two processes that compute the same. What is started is read when it is waited for."""

    size = 2

    def __init__(self):
        self.calls = []  # (name, shapes)

    def all_reduce(self, arrays, op="sum", compression=None):
        self.calls.append(("all", [a.shape for a in arrays]))
        return self.joined(arrays, op)

    def start_all_reduce(self, arrays, op="sum", compression=None):
        self.calls.append(("start", [a.shape for a in arrays]))
        twins = self

        class Late(Pending):
            def wait(self):
                twins.calls.append(("wait", [a.shape for a in arrays]))
                return twins.joined(arrays, op)

        return Late(None)

    def joined(self, arrays, op):
        """The results, views of one array."""
        factor = 2 if op == "sum" else 1
        flat = np.concatenate([np.ravel(a) * a.dtype.type(factor) for a in arrays])
        stops = np.cumsum([a.size for a in arrays])
        parts = np.split(flat, stops[:-1])
        return [
            p.astype(a.dtype, copy=False).reshape(a.shape)
            for p, a in zip(parts, arrays)
        ]


@pytest.fixture
def twins(monkeypatch):
    """The communicator of one of two processes, which every function here takes."""
    made = Twins()
    for module in (collective, lowering, all_reduce_instructions):
        monkeypatch.setattr(module, "communicator", lambda: made)
    return made


@pytest.fixture
def small_buckets():
    before = tw.config.bucket_bytes()
    tw.config.set_bucket_bytes(0)
    yield
    tw.config.set_bucket_bytes(before)


@pytest.fixture(params=["numpy", "native"])
def target(request):
    if request.param == "native":
        pytest.importorskip("llvmlite")
    with tw.config.use_target(request.param):
        yield request.param


def numbers(*shape):
    return tw.constant(RNG.normal(size=shape).astype(np.float32))


def program_of(function, *args):
    return make_program(tw.function(function).get_concrete_function(*args).graph)


def names(program):
    return [type(each).__name__ for each in program.instructions]


def collectives(program):
    """The instructions of all-reduces, with the number of operands of each."""
    found = [each for each in program.instructions if isinstance(each, COLLECTIVES)]
    return [
        (type(each).__name__, len(each.operands) - (type(each) is WaitAllReduce))
        for each in found
    ]


def index(program, instruction):
    return program.instructions.index(instruction)


WEIGHTS = [RNG.normal(size=(6, 6)).astype(np.float32) for _ in range(4)]
X = numbers(5, 6)


def weights():
    return [tw.Variable(w) for w in WEIGHTS]


def gradients(variables, x):
    with tw.GradientTape() as tape:
        y = x
        for w in variables:
            y = tw.tanh(y @ w)
        loss = tw.reduce_sum(y * y)
    return loss, tape.gradient(loss, variables)


def trained(variables, x):
    """A step of training, and its loss."""
    loss, found = gradients(variables, x)
    for w, g in zip(variables, found, strict=True):
        w.assign_sub(all_reduce(g, "mean") * 0.1)
    return all_reduce(loss, "mean")


def assert_as_eager(function, *args, **close):
    """The same numbers as eager, to the bit on NumPy."""
    expected = [x.numpy() for x in tw.nest.flatten(function(*args))]
    found = [x.numpy() for x in tw.nest.flatten(tw.function(function)(*args))]
    exact = tw.config.target() == "numpy"
    for a, b in zip(found, expected, strict=True):
        close = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-5, "atol": 1e-6}
        np.testing.assert_allclose(a, b, **close)


# ----------------------------------------------------------------------------- buckets


def test_gradients_are_joined_into_one_message(twins, numpy_target):
    program = program_of(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]], X)
    assert collectives(program) == [("AllReduce", 4)]


vs = weights()


def test_a_bucket_starts_when_its_operands_are_there(twins, small_buckets, target):
    program = program_of(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]], X)
    starts = [e for e in program.instructions if type(e) is StartAllReduce]
    assert len(starts) == 4
    for start in starts:
        made = max(index(program, a.instruction) for a in start.operands)
        assert index(program, start) == made + 1
    waits = [
        index(program, e) for e in program.instructions if type(e) is WaitAllReduce
    ]
    assert min(waits) > index(program, starts[-1])


def test_the_last_gradients_that_are_asked_for_start_first(twins, small_buckets):
    variables = [tw.Variable(RNG.normal(size=s).astype("f")) for s in ((6, 7), (7, 8))]
    tw.function(lambda x: [all_reduce(g) for g in gradients(variables, x)[1]])(X)
    assert twins.calls[0] == ("start", [(7, 8)])
    assert twins.calls[1] == ("start", [(6, 7)])


def test_buckets_are_filled_up_to_their_size(twins, monkeypatch):
    monkeypatch.setattr(config, "_bucket_bytes", 2 * 6 * 6 * 4)
    program = program_of(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]], X)
    assert [n for name, n in collectives(program) if "Wait" not in name] == [2, 2]


def test_several_dtypes_share_a_bucket_and_kinds_of_compression_do_not(twins):
    def f(x):
        y, z = tw.exp(x), tw.cast(x, "float64") * 3
        return all_reduce(y), all_reduce(z), all_reduce(x * 2, compression="float16")

    found = collectives(program_of(f, X))
    assert [n for name, n in found if name == "StartAllReduce"] == [1, 2]
    assert_as_eager(f, X)


def test_a_result_that_another_all_reduce_needs_ends_a_group(twins, target):
    def moments(x):
        mean = all_reduce(tw.reduce_mean(x, 0), "mean")
        square = all_reduce(tw.reduce_mean(tw.square(x - mean), 0), "mean")
        return tw.reduce_sum((x - mean) / tw.sqrt(square + 1e-3), 1)

    assert [n for _, n in collectives(program_of(moments, X))] == [1, 1]
    assert_as_eager(moments, X)


def test_readers_between_all_reduces_wait_until_all_have_started(twins, target):
    def f(x):
        a = all_reduce(tw.sin(x))
        b = tw.exp(-tw.square(a))
        return b, all_reduce(tw.cos(x) * 2.0), x - b

    assert collectives(program_of(f, X)) == [("AllReduce", 2)]
    assert_as_eager(f, X)


def test_the_order_does_not_depend_on_the_number_of_examples(twins, small_buckets):
    """One example needs no sum over examples: its gradient is there sooner."""
    table = tw.Variable(RNG.normal(size=(1, 6)).astype(np.float32))
    variables = [*weights()[:2], table]

    def step(x):
        with tw.GradientTape() as tape:
            y = tw.tanh(tw.tanh(x @ variables[0]) @ variables[1] + table)
            loss = tw.reduce_sum(y)
        return [all_reduce(g) for g in tape.gradient(loss, variables)]

    orders = []
    for count in (1, 2, 5):
        twins.calls.clear()
        tw.function(step)(numbers(count, 6))
        orders.append([shapes for name, shapes in twins.calls if name != "wait"])
    assert orders[0] == orders[1] == orders[2]


def test_no_loop_nest_changes_the_order(twins, small_buckets, target):
    """Also where an operand is made in one nest with what has to wait for something."""

    @tw.function
    def function(x, y, w):
        early = tw.tanh(x)
        second, first = all_reduce(y), all_reduce(early)  # a group starts from its end
        return first, second, early * tw.matmul(w, w)

    function(numbers(4, 4), numbers(5), numbers(4, 4))
    started = [shapes for name, shapes in twins.calls if name != "wait"]
    assert started == [[(4, 4)], [(5,)]]


def test_the_pass_can_be_switched_off(twins, small_buckets):
    with tw.config.graph_passes(overlap_all_reduces=False):
        program = program_of(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]], X)
    assert collectives(program) == [("AllReduce", 1)] * 4


def test_a_negative_size_of_buckets_is_refused():
    with pytest.raises(ValueError, match="nbytes must not be negative, got -1"):
        tw.config.set_bucket_bytes(-1)


# ------------------------------------------------------------- each call is made, as eager


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: (all_reduce(tw.constant([3.0])), x)[1], id="unused"),
        pytest.param(lambda x: all_reduce(tw.constant(3.0)) * x, id="constant"),
        pytest.param(lambda x: (all_reduce(x), all_reduce(x)), id="twice"),
        pytest.param(lambda x: all_reduce(all_reduce(x)), id="chain"),
    ],
)
def test_no_call_is_left_out_folded_or_merged(function, twins, target):
    """Processes with other constants or shapes would make other calls."""
    traced = tw.function(function)
    traced(X)
    function(X)
    twins.calls.clear()
    for _ in range(2):
        traced(X)
    in_replays = sum([len(shapes) for name, shapes in twins.calls if name != "wait"])
    twins.calls.clear()
    for _ in range(2):
        function(X)
    assert in_replays == len(twins.calls)
    assert_as_eager(function, X)


def test_a_branch_whose_results_are_not_used_is_run(twins, numpy_target):
    def f(x):
        tw.cond(x[0, 0] > -9.0, lambda: all_reduce(x), lambda: x)
        return x + 1.0

    traced = tw.function(f)
    traced(X)
    assert twins.calls == [("all", [(5, 6)])]


def test_all_reduces_of_regions_stay_where_they_are(twins, small_buckets, target):
    def f(x):
        before = all_reduce(tw.sin(x))
        looped = tw.while_loop(
            lambda a: a[0, 0] > -9.0, lambda a: all_reduce(a) - 9.0, [tw.tanh(x)]
        )[0]
        return before, looped, all_reduce(tw.cos(x))

    tw.function(f)(X)
    twins.calls.clear()
    assert_as_eager(f, X)
    program = program_of(f, X)
    (loop,) = [e for e in program.instructions if type(e) is RegionCall]
    before, after = [e for e in program.instructions if type(e) is not WaitAllReduce
                     and isinstance(e, COLLECTIVES)]  # fmt: skip
    assert index(program, before) < index(program, loop) < index(program, after)


def test_a_call_of_python_keeps_its_place_among_collectives(twins, small_buckets):
    def called(x):
        twins.calls.append(("host", []))
        return x

    def f(x):
        a = all_reduce(tw.sin(x))
        b = tw.py_function(called, [tw.cos(x)], tw.TensorSpec([5, 6], "float32"))
        return a, b, all_reduce(tw.sin(x) * 2.0)

    tw.function(f)(X)
    names = [name for name, _ in twins.calls if name != "wait"]
    assert [name == "host" for name in names] == [False, True, False]


def test_in_one_process_there_is_no_instruction(numpy_target):
    def f(x):
        return all_reduce(tw.sin(x)) * 2.0, all_reduce(x, "max")

    assert names(program_of(f, X)) == ["Map", "Map"]
    assert_as_eager(f, X)


# ----------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("limit", [0, 300, 1 << 20])
def test_a_step_of_training_is_as_eager(limit, twins, target, monkeypatch):
    monkeypatch.setattr(config, "_bucket_bytes", limit)
    ours, theirs = weights(), weights()
    step = tw.function(lambda x: trained(ours, x))
    for _ in range(3):
        found, expected = step(X), trained(theirs, X)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    exact = (
        {"rtol": 0, "atol": 0} if target == "numpy" else {"rtol": 1e-4, "atol": 1e-6}
    )
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), **exact)


def test_an_optimizer_takes_the_results(twins, small_buckets, target):
    def made():
        return weights(), tw.optimizers.Adam(0.01)

    def step(variables, optimizer, x):
        loss, found = gradients(variables, x)
        optimizer.apply_gradients(zip([all_reduce(g) for g in found], variables))
        return loss

    (ours, own), (theirs, other) = made(), made()
    traced = tw.function(lambda x: step(ours, own, x))
    for _ in range(3):
        traced(X)
        step(theirs, other, X)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_second_derivatives_through_all_reduces(twins, small_buckets, target):
    def f(x):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = tw.reduce_sum(tw.tanh(all_reduce(tw.square(x)) * 0.1))
            g = inner.gradient(y, x)
        return outer.gradient(g, x)

    assert_as_eager(f, X)


def test_a_tape_around_a_function(twins, small_buckets, target):
    traced = tw.function(lambda x: tw.sin(all_reduce(tw.square(x))) * all_reduce(x))

    def gradient(function):
        with tw.GradientTape() as tape:
            tape.watch(X)
            y = function(X)
        return tape.gradient(y, X).numpy()

    expected = gradient(traced.python_function)
    np.testing.assert_allclose(gradient(traced), expected, rtol=1e-5, atol=1e-6)


def test_results_that_leave_do_not_keep_the_bucket_alive(twins):
    large = tw.function(
        lambda x: (all_reduce(x * 2), all_reduce(tw.tile(x, [99, 1]))[0])
    )
    small, _ = large(X)
    kept = small.array
    assert kept.base is None or kept.base.nbytes == kept.nbytes


def test_functions_run_in_several_threads(twins, small_buckets):
    traced = tw.function(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]])
    inputs = [numbers(5, 6) for _ in range(8)]
    expected = [[g.numpy() for g in traced(x)] for x in inputs]
    found = [None] * 8

    def work(i):
        for _ in range(20):
            found[i] = [g.numpy() for g in traced(inputs[i])]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for a, b in zip(found, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            assert np.array_equal(x, y)


def test_memory_of_what_is_pending_is_not_used_again_after_an_error(
    twins, small_buckets
):
    """The operands of an all-reduce that has started are read by another thread."""
    starts, failing = [], [False]

    class Noted(Twins):
        def start_all_reduce(self, arrays, op="sum", compression=None):
            starts.append([(a, a.copy()) for a in arrays])
            return super().start_all_reduce(arrays, op, compression)

    twins.__class__ = Noted

    def check(x):
        if failing[0]:
            raise KeyError("stop")
        return x

    @tw.function
    def f(x):
        a = all_reduce(tw.sin(x) * 2.0)
        y = tw.py_function(check, [tw.cos(x)], tw.TensorSpec([5, 6], "float32"))
        return a + y

    f(X)
    failing[0] = True
    starts.clear()
    with pytest.raises(KeyError):
        f(X)
    failing[0] = False
    pending = starts[:]
    for _ in range(3):
        f(numbers(5, 6))
    assert pending
    for arrays in pending:
        for array, before in arrays:
            assert np.array_equal(array, before)


def test_costs_and_times_show_both_parts(twins, small_buckets, numpy_target):
    f = tw.function(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]])
    f(X)
    with tw.profiler.trace(table=False) as trace:
        f(X)
    shown = {event.name for event in trace.events if event.category == "instruction"}
    assert {"all_reduce_sum (start)", "all_reduce_sum (wait)"} <= shown


# ------------------------------------------------------------ mistakes put in on purpose


@pytest.fixture
def program(twins, small_buckets, numpy_target):
    """A program with all-reduces that go on beside it, and the number of each."""
    made = program_of(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]], X)
    verify_program(made, "the passes")
    return made


def of_kind(program, kind):
    return [i for i, each in enumerate(program.instructions) if type(each) is kind]


def assert_found(program, match):
    with pytest.raises(tw.errors.VerificationError, match=match):
        verify_program(program, "a mistake")


def test_a_missing_wait_is_found(program):
    wait = program.instructions[of_kind(program, WaitAllReduce)[0]]
    program.instructions.remove(wait)
    program.outputs = [a for a in program.outputs if a not in wait.outputs]
    assert_found(program, "nothing waits for this all-reduce")


def test_a_wait_behind_a_read_is_found(program):
    i = of_kind(program, WaitAllReduce)[0]
    wait = program.instructions.pop(i)
    program.instructions.append(wait)
    tanh = next(e for e in program.instructions if e.name == "tanh")
    program.append(
        type(tanh)(np.tanh, wait.outputs, tanh.node), ((6, 6), X.array.dtype)
    )
    program.instructions.insert(-1, program.instructions.pop())
    assert_found(program, "is read before it is computed")


def test_a_second_wait_is_found(program):
    i = of_kind(program, WaitAllReduce)[0]
    program.instructions.insert(i, program.instructions[i])
    assert_found(program, "does not wait for an all-reduce that was started")


def test_a_wait_before_the_start_is_found(program):
    start = of_kind(program, StartAllReduce)[0]
    wait = of_kind(program, WaitAllReduce)[0]
    program.instructions.insert(start, program.instructions.pop(wait))
    assert_found(program, "does not wait for an all-reduce that was started")


def test_another_order_of_starts_is_found(program):
    i, j, *_ = of_kind(program, StartAllReduce)
    instructions = program.instructions
    instructions.insert(j, instructions.pop(i))
    assert_found(program, "collectives run in the order")


def test_a_collective_that_was_dropped_is_found(program):
    start = of_kind(program, StartAllReduce)[0]
    wait = of_kind(program, WaitAllReduce)[0]
    for i in sorted((start, wait), reverse=True):
        del program.instructions[i]
    assert_found(program, "collectives run in the order")


def test_memory_used_again_before_the_wait_is_found(twins, small_buckets, numpy_target,
                                                    monkeypatch):  # fmt: skip
    f = tw.function(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]])
    f(X)  # nothing is found
    monkeypatch.setattr(
        buffer_assignment, "last_uses", _without_waits(buffer_assignment.last_uses)
    )
    g = tw.function(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]])
    with pytest.raises(
        tw.errors.VerificationError, match="already holds another value"
    ):
        g(X)


def _without_waits(right):
    """The last uses, if a start were the last read of its operands."""

    def wrong(program):
        waits = [e for e in program.instructions if type(e) is WaitAllReduce]
        before = [e.operands for e in waits]
        for each in waits:
            each.operands = each.operands[:1]
        try:
            return right(program)
        finally:
            for each, operands in zip(waits, before):
                each.operands = operands

    return wrong


def test_a_change_in_place_before_the_wait_is_found(twins, small_buckets, numpy_target):
    """An instruction that overwrites what is being sent."""
    program = program_of(lambda x: [all_reduce(g) for g in gradients(vs, x)[1]], X)
    i = of_kind(program, StartAllReduce)[0]
    start = program.instructions[i]

    class Overwriting(AllReduce):
        collectives = ()

        @property
        def donated(self):
            return self.operands[0]

    (operand,) = start.operands
    each = Overwriting((operand,), X, {})
    each.node = program.instructions[0].node
    program.append(each, (operand.shape, operand.dtype))
    program.instructions.insert(i + 1, program.instructions.pop())
    assert_found(program, "is read, but its memory already holds another value")


def test_commits_behind_a_wait_stay_behind_it(twins, small_buckets, numpy_target):
    variables = weights()
    program = program_of(lambda x: trained(variables, x), X)
    commits = [*of_kind(program, StoreVariable), *of_kind(program, Update)]
    assert max(of_kind(program, WaitAllReduce)) < min(commits)
