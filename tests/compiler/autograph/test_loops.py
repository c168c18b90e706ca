"""`while` and `for` on tensors, ranges, arrays and data sets."""

import sys

import numpy as np
import pytest

import tapewright as tw

from .test_branches import check


def loops_of(function, *args):
    """Return the `Loop` nodes of a trace."""
    graph = tw.function(function).get_concrete_function(*args).graph
    return [node for node in graph.nodes if type(node).__name__ == "LoopNode"]


def test_while():
    def f(x):
        steps = 0
        while tw.reduce_sum(x) > 1:
            x = x * 0.5
            steps += 1
        return x, steps

    check(f, (5.0,), (0.5,))
    assert len(loops_of(f, tw.constant(5.0))) == 1


def test_break_continue_else_and_return():
    def f(x, n):
        total = x
        for i in tw.range(n):
            if i == 2:
                continue
            if total > 10:
                break
            total = total + tw.cast(i, "float32")
        else:
            total = -total
        while total < 0:
            total = total + 3.0
            if total > 100:
                return total
        return total * 2.0, i if n > 0 else -1

    def g(x, n):
        for i in tw.range(n):
            for j in tw.range(i):
                if tw.cast(i * j, "float32") > x:
                    return i, j
        return -1, -1

    for n in (0, 1, 3, 8):
        check(g, (5.0, tw.constant(n)), (100.0, tw.constant(n)))
    with pytest.raises(ValueError, match="the return value"):
        tw.function(f)(tw.constant(1.0), tw.constant(3))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_ranges(n):
    def f(n):
        a, b, c, d = 0, 0, 0, 0.0
        for i in tw.range(n):
            a += i
        for i in range(1, n + 3, 2):
            b = b * 2 + i
        for i in tw.range(n, -3, -2):
            c = c * 3 + i
        for i in tw.range(0.5, tw.cast(n, "float32"), 0.75):
            d = d * 2.0 + i
        return a, b, c, d

    traced = tw.function(f)
    for value in (n, n + 3):
        found = [x.numpy() for x in traced(tw.constant(value))]
        expected = [np.asarray(x) for x in f(tw.constant(value))]
        np.testing.assert_allclose(found, expected)
    assert traced.experimental_get_tracing_count() == 1


def test_rows_zip_and_enumerate():
    def f(xs, ys):
        total, last = 0.0, 0
        for i, (x, y) in enumerate(zip(xs, ys), 1):
            total = total + x * y * tw.cast(i, "float32")
            last = i
        for x in xs:
            total = total * 0.5 + x
        return total, last

    xs, ys = tw.constant([1.0, 2.0, 3.0, 4.0]), tw.constant([2.0, -1.0, 0.5])
    check(f, (xs, ys))
    nodes = loops_of(f, xs, ys)
    assert [node.length for node in nodes] == [3, 4]


def test_a_loop_whose_length_is_known_is_a_scan():
    def f(x):
        i = tw.constant(0)
        while i < 30:
            x = x * 0.9
            i += 1
        for _ in tw.range(12):
            x = x + 1.0
        return x

    assert [node.length for node in loops_of(f, tw.constant(1.0))] == [30, 12]
    check(f, (2.0,))


def test_loops_of_python_stay_python():
    def f(x):
        for i in range(3):
            x = x * float(i + 1)
        for name in ["a", "b"]:
            x = x + len(name)
        while len(x.shape) < 2:
            x = x[None]
        return x

    check(f, (2.0,))
    assert not loops_of(f, tw.constant(2.0))


def test_a_tensor_ends_a_loop_of_python():
    def f(x):
        for i in range(6):  # noqa: B007  (it is used behind the loop)
            x = x * 2.0
            if x > 10:
                break
        while True:
            x = x - 1.5
            if x < 3:
                return x, i

    check(f, (1.0,), (0.01,), (-4.0,))


def test_lists_in_loops_of_known_length():
    def f(xs):
        found, pairs = [], []
        for i, x in enumerate(xs):
            found.append(x * 2.0)
            pairs.append((i, x))
        return tw.stack(found), len(found), pairs

    check(f, (tw.constant([1.0, 2.0, 3.0]),))


def test_lists_and_dicts_as_state():
    def f(x, n):
        pair, named = [x, 0.0], {"s": x}
        for _ in tw.range(n):
            pair[0], pair[1] = pair[1] + 1.0, pair[0]
            named["s"] = named["s"] * 0.5
        return pair, named

    check(f, (2.0, tw.constant(3)), (2.0, tw.constant(0)))


def test_keys_of_dicts_may_come_in_another_order():
    @tw.function
    def f(n):
        d, kept = {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 0.0}
        for _ in tw.range(n):
            d = {"b": d["a"], "a": d["b"]}
            kept["a"] = kept.pop("a") + 1.0
        return d["a"] + 10.0 * d["b"] + 100.0 * kept["a"]

    assert [float(f(tw.constant(n))) for n in (0, 1, 2)] == [121.0, 212.0, 321.0]


def test_attributes_as_state():
    class Counter(tw.Module):
        def __init__(self):
            self.total = tw.Variable(0.0)

        @tw.function
        def run(self, n):
            self.last = tw.constant(0)
            for i in tw.range(n):
                self.total.assign_add(1.0)
                self.last = self.last + i
            return self.last

    counter = Counter()
    assert counter.run(tw.constant(4)).numpy() == 6
    assert counter.total.numpy() == 4


def test_numbers_take_the_dtype_they_get():
    def f(x):
        total, count = 0, 0
        while x > 1:
            total = total + x
            count += 1
            x = x / 2
        return total, count

    found = tw.function(f)(tw.constant(5.0, "float64"))
    assert [y.dtype.name for y in found] == ["float64", "int32"]
    assert [y.numpy() for y in found] == [8.75, 3]


def test_numbers_whose_dtypes_depend_on_each_other():
    def f(x, n):
        a, b, c = 0, 0, 0
        for _ in tw.range(n):
            c = b
            b = a
            a = x
            d = c * 2
        return a, b, c, d

    for dtype in ("float64", "bfloat16"):
        found = tw.function(f)(tw.constant(1.5, dtype), tw.constant(4))
        assert [y.dtype.name for y in found] == [dtype] * 4
        assert [float(y) for y in found] == [1.5, 1.5, 1.5, 3.0]


def test_jumps_of_python_in_loops_of_python():
    def f(x):
        for i in range(9):
            if i == 1:
                continue
            if i == 4:
                break
            x = x * 2.0 if x > 1 else x + float(i)
        else:
            x = x * 0.0
        return x, i

    check(f, (0.5,), (2.0,))


def test_names_that_only_a_step_sets():
    def f(n):
        for i in tw.range(n):
            y = i * 2
            z = y + 1
        return z

    traced = tw.function(f)
    assert traced(tw.constant(3)).numpy() == 5
    with pytest.raises(ValueError, match="'z' has no value: .* at least one step"):
        traced(tw.constant(0))


def test_a_first_step_that_differs():
    def f(xs):
        total = None
        for x in xs:
            total = x if total is None else total + x
        return total

    xs = tw.constant(np.arange(9.0))
    check(f, (xs,))
    assert [node.length for node in loops_of(f, xs)] == [8]


def test_bodies_that_need_values_are_unrolled():
    weights = [tw.constant(1.0), tw.constant(10.0), tw.constant(100.0)]

    def f(x):
        for i in tw.range(3):
            x = x + weights[i]
            x = tw.concat([x[None], x[None]], 0)[0]
        return x

    check(f, (1.0,))

    def grow(x):
        rows = x[None]
        for _ in tw.range(3):
            rows = tw.concat([rows, rows[-1:] * 2.0], 0)
        return rows

    check(grow, (1.0,))


def test_tensor_arrays():
    def f(x, n):
        array = tw.TensorArray("float32", size=5)
        for i in tw.range(n):
            array = array.write(i, x * tw.cast(i, "float32"))
        total = 0.0
        for row in array:
            total = total + row
        return array.stack(), total

    check(f, (2.0, tw.constant(3)))


def test_data_sets_and_their_iterators():
    data = tw.data.Dataset.range(10).batch(2, drop_remainder=True)

    @tw.function
    def f(data, limit):
        total, count = tw.constant(0, "int64"), 0
        for i, x in enumerate(data):
            if tw.reduce_sum(x) > limit:
                break
            total = total + tw.reduce_sum(x)
            count = i + 1
        return total, count

    found = [y.numpy() for y in f(data, tw.constant(10, "int64"))]
    assert found == [15, 3]
    assert [y.numpy() for y in f(data, tw.constant(99, "int64"))] == [45, 5]
    assert not f._eager
    iterator = iter(data)

    @tw.function
    def until(iterator, limit):
        x = tw.zeros([2], "int64")
        for x in iterator:
            if x[0] >= limit:
                break
        return x

    assert until(iterator, tw.constant(2, "int64")).numpy().tolist() == [2, 3]
    assert next(iterator).numpy().tolist() == [
        4,
        5,
    ]  # the loop takes no more than it needs
    assert until(iterator, tw.constant(9, "int64")).numpy().tolist() == [8, 9]


def test_elements_of_unknown_size_run_eagerly():
    data = tw.data.Dataset.range(5).batch(2)

    @tw.function
    def f(data):
        total = tw.constant(0, "int64")
        for x in data:
            total = total + tw.reduce_sum(x)
        return total

    assert f(data).numpy() == 10
    assert f._eager


def test_print_in_a_loop_runs_once_and_effects_in_each_step(capsys):
    steps = []

    @tw.function
    def f(n):
        for i in tw.range(n):
            steps.append("traced")
            tw.print(i, output_stream=sys.stdout)

    f(tw.constant(3))
    assert steps == ["traced"]
    assert capsys.readouterr().out.split() == ["0", "1", "2"]


def test_a_test_has_its_effects_once_a_step(capsys):
    @tw.function
    def f(x):
        def goes_on():
            tw.print("test", output_stream=sys.stdout)
            return x > 1

        while goes_on():
            x = x * 0.5
        return x

    f(tw.constant(4.0))
    assert capsys.readouterr().out.split() == ["test"] * 3


def test_derivatives_of_every_order():
    def f(x, n):
        y = x
        for _ in tw.range(n):
            if y > 2:
                y = tw.sin(y) * x
            else:
                y = y * x
            if y > 50:
                break
        return y

    def nested(function, x, n, order):
        if not order:
            return function(x, n)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = nested(function, x, n, order - 1)
        return tape.gradient(y, x)

    traced = tw.function(f)
    for value in (1.7, -0.8):
        x, n = tw.constant(value, "float64"), tw.constant(4)
        for order in range(4):
            expected = nested(f, x, n, order).numpy()
            np.testing.assert_allclose(nested(traced, x, n, order).numpy(), expected)
            inside = tw.function(lambda x, n, k=order: nested(f, x, n, k))
            np.testing.assert_allclose(inside(x, n).numpy(), expected)


def test_loop_options():
    @tw.function
    def f(x):
        while x < 100:
            tw.autograph.experimental.set_loop_options(maximum_iterations=3)
            x = x * 2.0
        return x

    assert f(tw.constant(1.0)).numpy() == 8

    @tw.function
    def grow(x, n):
        for _ in tw.range(n):
            tw.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tw.TensorShape([None]))]
            )
            x = tw.concat([x, x], 0)
        return x

    assert grow(tw.constant([1.0]), tw.constant(3)).shape == (8,)


def test_saved_functions(tmp_path):
    class Model(tw.Module):
        def __init__(self):
            self.scale = tw.Variable(2.0)

        @tw.function(input_signature=[tw.TensorSpec([], "float32")])
        def run(self, x):
            steps = 0
            while x < 50:
                x = x * self.scale if x > 1 else x + 1.0
                steps += 1
            return x, steps

    model = Model()
    tw.saved_model.save(model, tmp_path / "model.h5")
    loaded = tw.saved_model.load(tmp_path / "model.h5")
    for value in (0.5, 3.0, 60.0):
        x = tw.constant(value)
        assert [y.numpy() for y in loaded.run(x)] == [y.numpy() for y in model.run(x)]
        slopes = []
        for each in (model, loaded):
            with tw.GradientTape() as tape:
                tape.watch(x)
                y, _ = each.run(x)
            slopes.append(tape.gradient(y, x).numpy())
        assert slopes[0] == slopes[1]


# ------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    "step, match",
    [
        ("x = tw.concat([x, x], 0)", r"'x' has shape \(1,\).*TensorArray"),
        ("x = tw.cast(x, 'float64') * 0.5", "'x' has dtype float32 .* float64 after"),
        ("found.append(x)", "'found' grows in a loop .*TensorArray"),
        ("name = name + 'a'", "'name' is 'a' before the loop, but 'aa'"),
        ("y = y + x", "'y' is read in the loop before a step has set it"),
        ("named['b'] = x", "'named' is {} before"),
    ],
)
def test_states_that_cannot_be(step, match, tmp_path):
    path = tmp_path / "looped.py"
    path.write_text(
        "import tapewright as tw\n\n\ndef f(x, n):\n    found, name, named = [], 'a', {}\n"
        f"    while tw.reduce_sum(x) < n:\n        {step}\n        x = x + 1.0\n"
        "    if False:\n        y = 0\n    return x, found, name, named\n"
    )
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises(ValueError, match=rf"looped.py:[67]: {match}"):
        tw.function(space["f"])(tw.constant([1.0]), tw.constant(5.0))


def test_except_cannot_catch_what_a_traced_loop_raises():
    def f(n):
        try:
            for _ in tw.range(n):
                raise KeyError
        except KeyError:
            n = n + 100
        return n

    with pytest.raises(
        tw.errors.TracingError, match="KeyError is raised depending on a tensor"
    ):
        tw.function(f)(tw.constant(0))
