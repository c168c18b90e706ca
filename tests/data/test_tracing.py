"""Iterators and data sets in traced functions: each call goes on, each pass is fresh."""

import concurrent.futures
import contextlib
import gc
import itertools
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset, Optional

ways = pytest.mark.parametrize(
    "wrap", [lambda f: f, tw.function], ids=["eager", "traced"]
)


class Reader(tw.Module):
    def __init__(self, iterator):
        self.iterator = iterator

    @tw.function
    def __call__(self):
        return next(self.iterator)


def by_name(iterator):
    f = tw.function(lambda: next(iterator))
    return lambda: f()


def by_argument(iterator):
    f = tw.function(lambda iterator: next(iterator))
    return lambda: f(iterator)


def by_keyword_in_a_nest(iterator):
    f = tw.function(lambda x, its: next(its["a"][0]) + x)
    return lambda: f(tw.constant(0, "int64"), its={"a": [iterator]})


def in_a_nested_function(iterator):
    inner = tw.function(lambda it: next(it))
    f = tw.function(lambda it: inner(it) + 0)
    return lambda: f(iterator)


def by_get_next(iterator):
    f = tw.function(lambda it: it.get_next())
    return lambda: f(iterator)


def by_optional(iterator):
    f = tw.function(lambda it: it.get_next_as_optional().get_value())
    return lambda: f(iterator)


def for_a_signature_of_unknown_sizes(iterator):
    spec = [tw.TensorSpec([None], "int64")]
    f = tw.function(lambda x: next(iterator) + x[0], input_signature=spec)
    sizes = iter([1, 2, 1, 3, 1])
    return lambda: f(np.zeros(next(sizes), "int64"))


def by_concrete_function(iterator):
    f = tw.function(lambda it: next(it)).get_concrete_function(iterator)
    return lambda: f(iterator)


def under_a_tape(iterator):
    f = tw.function(lambda it, x: tw.cast(next(it), "float32") * x)

    def call():
        x = tw.constant(1.0)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(iterator, x)
        assert tape.gradient(y, x).numpy() == y.numpy()
        return y

    return call


READERS = [
    Reader, by_name, by_argument, by_keyword_in_a_nest, in_a_nested_function, by_get_next,
    by_optional, for_a_signature_of_unknown_sizes, by_concrete_function, under_a_tape,
]  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_each_call_goes_on_where_the_last_ended(reader):
    call = reader(iter(Dataset.range(5)))
    assert [int(call()) for _ in range(5)] == [0, 1, 2, 3, 4]


@ways
def test_eager_and_traced_calls_share_the_position(wrap):
    iterator = iter(Dataset.range(6))
    f = wrap(lambda it: next(it) * 10)
    found = [int(f(iterator)), int(next(iterator)), int(f(iterator))]
    state = iterator.state()
    found += [int(f(iterator)), int(f(iterator))]
    iterator.restore(state)
    assert [*found, int(f(iterator))] == [0, 1, 20, 30, 40, 30]


def test_one_trace_serves_all_iterators_over_elements_of_one_spec():
    f = tw.function(lambda it: next(it) + 1)
    first, second = iter(Dataset.range(5)), iter(Dataset.range(10, 15).skip(1))
    assert [int(f(it)) for it in (first, second, first)] == [1, 12, 2]
    assert f.experimental_get_tracing_count() == 1
    assert float(f(iter(Dataset.from_tensor_slices([0.5])))) == 1.5
    assert f.experimental_get_tracing_count() == 2


def test_the_end_is_an_error_of_its_own():
    iterator = iter(Dataset.range(1))
    f = tw.function(lambda it: next(it))
    f(iterator)
    for _ in range(2):
        with pytest.raises(tw.errors.OutOfRangeError):
            f(iterator)
    with pytest.raises(tw.errors.OutOfRangeError):
        iterator.get_next()
    with pytest.raises(StopIteration):
        next(iterator)


@ways
def test_only_the_branch_that_runs_takes_an_element(wrap):
    iterator = iter(Dataset.range(5))
    none = tw.constant(-1, "int64")
    f = wrap(lambda p: tw.cond(p, lambda: next(iterator), lambda: none))
    found = [int(f(tw.constant(p))) for p in (True, False, True, False, True)]
    assert found == [0, -1, 1, -1, 2]


@ways
def test_a_loop_takes_an_element_in_each_step(wrap):
    iterator = iter(Dataset.range(10))

    def f(n):
        def body(i, total):
            return i + 1, total + next(iterator)

        return tw.while_loop(lambda i, _: i < n, body, [0, tw.constant(0, "int64")])[1]

    f = wrap(f)
    assert [int(f(tw.constant(n))) for n in (2, 0, 3)] == [1, 0, 9]


@ways
def test_a_loop_runs_until_there_is_no_element(wrap):
    def f(iterator):
        def body(optional, total):
            return iterator.get_next_as_optional(), total + optional.get_value()

        first = iterator.get_next_as_optional()
        zero = tw.constant(0, "int64")
        return tw.while_loop(lambda x, _: x.has_value(), body, (first, zero))[1]

    iterator, f = iter(Dataset.range(5)), wrap(f)
    assert int(next(iterator)) == 0
    assert [int(f(iterator)), int(f(iterator))] == [10, 0]


@ways
def test_an_optional_without_a_value_has_none_to_give(wrap):
    f = wrap(lambda it: it.get_next_as_optional().get_value())
    with pytest.raises(tw.errors.InvalidArgumentError, match="Optional .*value"):
        f(iter(Dataset.range(0)))


def test_optionals_are_made_of_values_and_specs():
    value = Optional.from_value((1.0, {"a": [2, 3]}))
    assert bool(value.has_value()) and value.get_value()[1]["a"].numpy().tolist() == [
        2,
        3,
    ]
    assert value.element_spec[1]["a"] == tw.TensorSpec([2], "int32")
    assert not bool(Optional.empty(tw.TensorSpec([], "int64")).has_value())


def test_structured_elements_keep_their_structure():
    data = {"b": np.arange(3.0), "a": (np.arange(3), np.ones((3, 2), "float32"))}
    iterator = iter(Dataset.from_tensor_slices(data))
    f = tw.function(lambda it: next(it))
    f(iterator)
    found = f(iterator)
    assert float(found["b"]) == 1.0 and int(found["a"][0]) == 1
    assert found["a"][1].numpy().tolist() == [1.0, 1.0]


def test_a_variable_is_not_bound_to_the_memory_of_the_data():
    rows = np.ones((4, 3), "float32")
    data = Dataset.from_tensor_slices(rows)
    iterator, v = iter(data.repeat()), tw.Variable(np.zeros(3, "float32"))

    @tw.function
    def f():
        v.assign(next(iterator))
        v.assign_add([1.0, 1.0, 1.0])

    for _ in range(6):
        f()
    v.assign_add([5.0, 5.0, 5.0])
    assert [x.numpy().tolist() for x in data] == [[1.0, 1.0, 1.0]] * 4


@ways
def test_functions_of_elements_see_what_was_assigned_before(wrap):
    def f():
        v.assign_add(10)
        return next(iterator)

    f = wrap(f)
    with tw.device("CPU"):  # where functions of elements run
        v = tw.Variable(0, dtype="int64")
        iterator = iter(Dataset.range(5).map(lambda x: x + v))
        assert [int(f()) for _ in range(3)] == [10, 21, 32]


def test_a_gradient_takes_no_further_element():
    iterator = iter(Dataset.range(1, 9).map(lambda x: tw.cast(x, "float32")))

    @tw.function
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.foldl(lambda a, r: a * r * next(iterator), tw.ones(6), x)
        return y, tape.gradient(y, x)

    y, g = f(tw.constant(2.0))
    assert (y.numpy(), g.numpy(), int(next(iterator))) == (1440.0, 720.0, 7)


# --------------------------------------------------- elements whose sizes are not known


def batches(count=7, size=3):
    return Dataset.range(count).batch(size)


SIZED_READERS = [
    Reader,
    by_name,
    by_argument,
    by_keyword_in_a_nest,
    in_a_nested_function,
    by_get_next,
]


@pytest.mark.parametrize("reader", SIZED_READERS)
def test_elements_of_other_sizes_have_a_trace_of_their_own(reader):
    call = reader(iter(batches().repeat(2)))
    found = [call().numpy().tolist() for _ in range(6)]
    assert found == [[0, 1, 2], [3, 4, 5], [6]] * 2
    with pytest.raises(tw.errors.OutOfRangeError):
        call()


def test_a_concrete_function_is_for_elements_of_one_size():
    iterator = iter(batches())
    call = by_concrete_function(iterator)
    assert [call().numpy().tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(tw.errors.InvalidArgumentError, match=r"\(1,\)"):
        call()
    assert next(iterator).numpy().tolist() == [6]  # it was not taken


@pytest.mark.parametrize("make", [lambda: Dataset.range(300), lambda: batches(300, 7)])
def test_threads_share_the_elements(make):
    iterator, found = iter(make().map(lambda x: x + 0)), []
    f = tw.function(lambda: tw.reduce_sum(next(iterator)))

    def work():
        with contextlib.suppress(tw.errors.OutOfRangeError):
            while True:
                found.append(int(f()))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(work) for _ in range(6)]:
            future.result()
    assert sorted(found) == sorted([int(tw.reduce_sum(x)) for x in make()])


def test_there_is_one_trace_for_each_size():
    f = tw.function(lambda it: tw.reduce_sum(next(it)))
    for _ in range(3):
        iterator, found = iter(batches()), []
        with pytest.raises(tw.errors.OutOfRangeError):
            while True:
                found.append(int(f(iterator)))
        assert found == [3, 12, 6]
    assert f.experimental_get_tracing_count() <= 3  # sizes 3 and 1, and the end


def test_a_trace_keeps_no_iterator_that_was_an_argument():
    f = tw.function(lambda it: next(it))
    for data in (Dataset.range(3), batches()):
        iterator = iter(data)
        f(iterator)
        reference = weakref.ref(iterator)
        del iterator
        gc.collect()
        assert reference() is None


def test_elements_that_were_peeked_at_are_given_once():
    iterator = iter(batches(20))
    f = tw.function(lambda it: (next(it), next(it)))
    found = [x.numpy()[0] for x in f(iterator)] + [next(iterator).numpy()[0]]
    state = iterator.state()
    found += [x.numpy()[0] for x in f(iterator)]
    iterator.restore(state)
    found += [x.numpy()[0] for x in f(iterator)] + [x.numpy()[0] for x in iterator]
    assert found == [0, 3, 6, 9, 12, 9, 12, 15, 18]


def test_what_an_element_depends_on_is_done_before_it_is_made():
    with tw.device("CPU"):  # where functions of elements run
        v = tw.Variable(0, dtype="int64")
    made = []

    def scaled(x):
        made.append(int(v))
        return x * v

    iterator = iter(batches().map(lambda x: tw.py_function(scaled, [x], "int64")))

    @tw.function
    def f():
        v.assign_add(1)
        return next(iterator)

    found = [f().numpy().tolist() for _ in range(3)]
    assert found == [[0, 1, 2], [6, 8, 10], [18]] and made == [1, 2, 3]


@ways
def test_a_loop_over_elements_of_any_size(wrap):
    def f(iterator, n):
        def body(i, total):
            return i + 1, total + tw.reduce_sum(next(iterator))

        return tw.while_loop(lambda i, _: i < n, body, [0, tw.constant(0, "int64")])[1]

    iterator, f = iter(batches()), wrap(f)
    assert [int(f(iterator, tw.constant(n))) for n in (1, 2)] == [3, 18]


def test_a_training_step_that_takes_its_batch():
    x = np.arange(7.0, dtype="float32").reshape(7, 1)
    data = Dataset.from_tensor_slices((x, 2.0 * x)).shuffle(7, seed=1).batch(3)

    def train(wrap):
        w, optimizer = tw.Variable([[0.0]]), tw.optimizers.Adam(0.1)

        @wrap
        def step(iterator):
            x, y = next(iterator)
            with tw.GradientTape() as tape:
                loss = tw.reduce_mean((x @ w - y) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        losses, start = [], data.state()
        for _ in range(3):
            iterator = iter(data)
            losses += [float(step(iterator)) for _ in range(3)]
        data.restore(start)
        return losses, w.numpy().tolist()

    assert train(lambda f: f) == train(tw.function)


# ------------------------------------------------------------------ loops over data sets


@ways
def test_each_call_goes_through_a_data_set_anew(wrap):
    def epoch(data):
        total, count = tw.constant(0, "int64"), 0
        for x in data:
            total, count = total + x, count + 1
        return total, count

    f, data = wrap(epoch), Dataset.range(5)
    assert [tuple(map(int, f(data))) for _ in range(3)] == [(10, 5)] * 3
    iterator = iter(data)
    next(iterator)
    assert [tuple(map(int, f(iterator))) for _ in range(2)] == [(10, 4), (0, 0)]


@pytest.mark.parametrize("seed", [3, None])
def test_orders_are_drawn_as_they_are_eagerly(seed):
    def orders(wrap):
        tw.random.set_seed(5)
        data = Dataset.range(8).shuffle(8, seed=seed)
        f = wrap(lambda data: tw.stack(list(data)))
        return [f(data).numpy().tolist() for _ in range(3)]

    eager = orders(lambda f: f)
    assert orders(tw.function) == eager and eager[0] != eager[1]


@ways
def test_optimizers_follow_a_data_set_in_each_call(wrap):
    w = tw.Variable(1.0)
    optimizer = tw.optimizers.SGD(0.5)

    def epoch(data):
        for x in data:
            with tw.GradientTape() as tape:
                loss = w * x
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return w + 0.0

    f = wrap(epoch)
    data = Dataset.from_tensor_slices(np.array([1.0, 2.0, 3.0], "float32")).batch(1)
    data = data.map(tw.squeeze)
    assert [float(f(data)) for _ in range(3)] == [-2.0, -5.0, -8.0]
    assert int(optimizer.iterations) == 9


def test_a_call_within_a_traced_call_follows_a_data_set_too():
    data = Dataset.range(4)
    inner = tw.function(lambda scale: tw.add_n([x * scale for x in data]))
    outer = tw.function(lambda x: inner(x) + tw.cond(x > 2, lambda: x, lambda: 0 * x))
    found = [int(outer(tw.constant(n, "int64"))) for n in (1, 2, 3, 1)]
    assert found == [6, 12, 21, 6]


@ways
def test_data_sets_are_made_of_traced_tensors(wrap):
    def f(x):
        data = Dataset.from_tensor_slices(x).map(lambda x: x * 2.0).batch(2)
        return data.reduce(0.0, lambda total, x: total + tw.reduce_max(x))

    f = wrap(f)
    assert float(f(tw.constant([1.0, 2.0, 3.0]))) == 10.0
    assert float(f(tw.constant([5.0, 2.0, 3.0]))) == 16.0


NUMBERED = {
    "range": Dataset.range,
    "take": lambda n: Dataset.range(9).take(n),
    "skip": lambda n: Dataset.range(9).skip(n),
    "repeat": lambda n: Dataset.range(2).repeat(n),
    "batch": lambda n: Dataset.range(9).batch(n, drop_remainder=True).unbatch(),
    "shard": lambda n: Dataset.range(9).shard(n, 1),
    "shuffle": lambda n: Dataset.range(9).shuffle(n, seed=1).take(3),
    "enumerate": lambda n: Dataset.range(9).enumerate(n).map(lambda i, x: i * x),
    "window": lambda n: Dataset.range(9).window(n).flat_map(lambda window: window),
    "from_tensors": Dataset.from_tensors,
    "from_generator": lambda n: Dataset.from_generator(lambda n: range(int(n)), args=(n,)),
}  # fmt: skip


@pytest.mark.parametrize("make", NUMBERED.values(), ids=NUMBERED)
def test_data_sets_are_made_with_traced_numbers(make):
    def total(n):
        return tw.add_n([tw.cast(x, "int64") for x in make(n)])

    f = tw.function(total)
    for n in (2, 4, 2):
        assert int(f(tw.constant(n))) == int(total(n))


@ways
def test_a_position_is_that_of_the_call(wrap):
    iterator = iter(Dataset.range(9))
    f = wrap(lambda: next(iterator) * 0 + iterator.state()["place"]["index"])
    assert [int(f()) for _ in range(3)] == [1, 2, 3]


@ways
def test_strings_are_read_in_each_call(wrap):
    iterator = iter(Dataset.from_tensor_slices(["a", "bb", "c"]))
    f = wrap(lambda: next(iterator))
    assert [f().numpy() for _ in range(3)] == [b"a", b"bb", b"c"]


@ways
def test_an_iterator_that_is_made_inside_starts_anew(wrap):
    data = Dataset.range(5)

    def f():
        iterator = iter(data)
        return next(iterator) * 10 + next(iterator)

    f = wrap(f)
    assert [int(f()), int(f())] == [1, 1]


@ways
def test_the_number_of_elements_is_known(wrap):
    def f(data):
        return data.cardinality(), len(data), data.repeat().cardinality()

    f = wrap(f)
    assert [int(x) for x in f(Dataset.range(5))] == [5, 5, -1]
    assert [int(x) for x in f(Dataset.range(3))] == [3, 3, -1]


@pytest.mark.parametrize(
    "read",
    [
        lambda data: next(iter(data)),
        lambda data: [x for x in data][-1],
        lambda data: [x for x in iter(data)][-1],
        lambda data: list(zip(data, range(3)))[-1],
        lambda data: list(data.as_numpy_iterator())[-1],
        lambda data: data.take(1).get_single_element(),
        lambda data: next(iter(Dataset.from_tensor_slices(tw.constant([1]) + 1))),
    ],
)
def test_a_trace_ahead_of_any_call_says_what_to_write(read):
    f = tw.function(lambda: read(Dataset.range(3)))
    with pytest.raises(tw.errors.TracingError, match=r"reduce|made in each call"):
        f.get_concrete_function()
    f()


# -------------------------------------------------------------------------- reduce


@ways
def test_reduce_goes_through_a_data_set_anew_in_each_call(wrap):
    data = Dataset.range(5).filter(lambda x: x != 2)
    f = wrap(lambda start: data.reduce(start, lambda total, x: total * 10 + x))
    found = [int(f(tw.constant(n, "int64"))) for n in (0, 7, 0)]
    assert found == [134, 70134, 134]


def test_reduce_is_traced_once():
    data, traces = Dataset.range(100), []

    def step(state, x):
        traces.append(1)
        return state[0] + x, state[1] + 1

    f = tw.function(lambda: data.reduce((np.int64(0), 0), step))
    assert [[int(x) for x in f()] for _ in range(3)] == [[4950, 100]] * 3
    assert f.experimental_get_tracing_count() == 1 and len(traces) < 5


def test_reduce_draws_a_new_order_in_each_call():
    def orders(wrap):
        data = Dataset.range(6).shuffle(6, seed=2)
        f = wrap(lambda: data.reduce(np.int64(0), lambda total, x: total * 10 + x))
        return [int(f()) for _ in range(3)]

    eager = orders(lambda f: f)
    assert orders(tw.function) == eager and len(set(eager)) == 3


@pytest.mark.parametrize("size", [4, 7], ids=["even", "short last batch"])
@ways
def test_reduce_trains(wrap, size):
    x = np.arange(8.0, dtype="float32").reshape(8, 1)
    data = Dataset.from_tensor_slices((x, 2.0 * x)).batch(size)
    w = tw.Variable([[0.0]])
    optimizer = tw.optimizers.SGD(0.01, momentum=0.9)

    def step(count, x, y=None):
        x, y = x if y is None else (x, y)
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean((x @ w - y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return count + 1

    f = wrap(lambda: data.reduce(0, step))
    assert [int(f()), int(f())] == [2, 2]

    weight = velocity = np.float32(0.0)
    for rows in 2 * np.split(x, [size]):
        gradient = np.mean(2 * rows * (rows * weight - 2 * rows))
        velocity = 0.9 * velocity - 0.01 * gradient
        weight += velocity
    np.testing.assert_allclose(w.numpy(), [[weight]], rtol=1e-5)


@ways
def test_no_gradient_passes_through_reduce(wrap):
    data = Dataset.from_tensor_slices([1.0, 2.0])

    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = data.reduce(x, lambda a, b: a * b) + x
        return y, tape.gradient(y, x)

    assert [float(t) for t in wrap(f)(tw.constant(3.0))] == [9.0, 1.0]


# -------------------------------------------------------------------- Python's iterators

NUMBERS = itertools.count()


class Holder(tw.Module):
    def __init__(self, iterator):
        self.iterator = iterator

    @tw.function
    def __call__(self, x):
        return x + next(self.iterator)


def captured(iterator):
    return tw.function(lambda x: x + next(iterator))


def given(iterator):
    f = tw.function(lambda x, its: x + next(its[0]))
    return lambda x: f(x, [iterator])


def inside(iterator):
    inner = tw.function(lambda x: x + next(iterator))
    return tw.function(lambda x: inner(x) + tw.cond(x > 0, lambda: x, lambda: -x))


@pytest.mark.parametrize("read", [Holder, captured, given, inside])
def test_iterators_of_python_go_on_too(read):
    f = read(n * n for n in range(9))
    assert [int(f(tw.constant(0))) for _ in range(4)] == [0, 1, 4, 9]


def test_global_iterators_of_python_go_on_too():
    f = tw.function(lambda: tw.constant(0) + next(NUMBERS))
    assert [int(f()) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tw.errors.TracingError, match="'NUMBERS'.*from_generator"):
        f.get_concrete_function()


# ---------------------------------------------------------- traced functions of elements


def draw(x):
    return tw.random.uniform([])


@pytest.mark.parametrize(
    "make",
    [
        lambda f: Dataset.range(4).map(f),
        lambda f: Dataset.range(4).map(f).prefetch(2),
        lambda f: Dataset.range(20).filter(lambda x: f(x) > 0.5),
        lambda f: Dataset.range(2).flat_map(lambda _: Dataset.range(2).map(f)),
        lambda f: Dataset.range(2).map(f).concatenate(Dataset.range(2).map(f)),
        lambda f: Dataset.range(3).map(lambda x: tw.cond(x > 0, lambda: f(x), lambda: -1.0)),
    ],
    ids=["map", "prefetch", "filter", "flat_map", "concatenate", "cond"],
)  # fmt: skip
def test_traced_functions_draw_what_they_draw_eagerly(make):
    def passes(wrap):
        tw.random.set_seed(7)
        f = wrap(draw)
        before = f(
            tw.constant(0, "int64")
        ).numpy()  # it draws from the global generator
        data = make(f)
        found = [[float(x) for x in data] for _ in range(2)]
        return [before, *found, f(tw.constant(0, "int64")).numpy()]

    eager = passes(lambda f: f)
    assert passes(tw.function) == eager and eager[1] != eager[2]


def test_positions_of_traced_draws_are_found_again():
    iterator = iter(Dataset.range(6).map(tw.function(draw)))
    next(iterator)
    state = iterator.state()
    found = [float(x) for x in iterator]
    iterator.restore(state)
    assert [float(x) for x in iterator] == found
