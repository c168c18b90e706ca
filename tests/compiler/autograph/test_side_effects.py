"""What branches and loops change in place, in what they call, and under another name."""

import functools
from collections import deque

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.autograph import contents, state

from .test_branches import SIGNS, check

COUNTS = [(3,), (0,), (1,)]


class Account:
    def __init__(self):
        self.total = 0.0
        self.entries = []

    def add(self, value):
        self.total = self.total + value

    def note(self, value):
        self.entries.append(value)


class Slots:
    __slots__ = ("inner", "count")


class Owner:
    def __init__(self, inner):
        self._inner = inner
        self._level, self.changes = 0.0, 0.0

    @property
    def inner(self):
        return self._inner

    @property
    def level(self):
        return self._level

    @level.setter
    def level(self, value):
        self._level, self.changes = value, self.changes + 1.0


def counts(function):
    """Call a traced function with numbers of steps as tensors."""
    traced = tw.function(function)
    for (n,) in COUNTS:
        assert float(traced(tw.constant(n))) == float(function(tw.constant(n)))


def test_a_method_that_a_branch_calls():
    def f(x):
        account = Account()
        if x > 0:
            account.add(x)
            account.add(1.0)
            account.note(1.0)
        else:
            account.note(2.0)
        return account.total + x, account.entries

    check(f, *SIGNS)


def test_a_method_that_a_loop_calls():
    def f(n):
        account = Account()
        for _ in tw.range(n):
            account.add(2.0)
        return account.total

    counts(f)


def test_a_function_inside_that_sets_a_variable():
    def f(x):
        n, found = 0.0, []

        def count(value):
            nonlocal n
            n = n + value
            found.append(value)

        if x > 0:
            count(1.0)
        else:
            count(3.0)
        return n + x, found

    check(f, *SIGNS)


def test_a_function_inside_that_counts_steps():
    def f(n):
        k = 0.0

        def count():
            nonlocal k
            k = k + 1.0

        for _ in tw.range(n):
            count()
        return k

    counts(f)


def test_an_object_under_another_name():
    def f(x):
        accounts = [Account(), Account()]
        if x > 0:
            for account in accounts:
                account.total = 5.0
        else:
            accounts[1].total = 7.0
        return x * accounts[0].total + accounts[1].total

    check(f, *SIGNS)


def test_an_object_behind_slots_and_properties():
    def f(x):
        slots = Slots()
        slots.inner, slots.count = Account(), [0.0]
        owner = Owner(slots.inner)
        if x > 0:
            owner.inner.total = 5.0
            owner.level = 2.0
        else:
            slots.inner.total = 7.0
            slots.count[0] = 1.0
        return x + owner.inner.total + slots.count[0], owner.level, owner.changes

    check(f, *SIGNS)


def test_an_object_changed_by_setattr():
    def f(x):
        account = Account()
        if x > 0:
            setattr(account, "total", 1.0)  # noqa: B010
        else:
            vars(account)["total"] = 2.0
        return x * account.total

    check(f, *SIGNS)


def test_augmented_assignment_of_a_list_and_a_dict():
    def f(x):
        row, named = [1.0], {"a": 1.0}
        alias = row
        if x > 0:
            row += [2.0]
            named |= {"a": 2.0}
        else:
            row += [3.0]
            named |= {"a": 3.0}
        return tw.stack(alias) * x, named

    check(f, *SIGNS)


def test_a_deque():
    def f(x):
        row = deque([0.0])
        if x > 0:
            row.appendleft(1.0)
        else:
            row.appendleft(2.0)
        return x * row[0] + row[1]

    check(f, *SIGNS)


def test_containers_in_a_changed_container_stay_themselves():
    def f(x):
        named = {"row": [1.0], "n": 0.0}
        row = named["row"]
        if x > 0:
            named["n"] = 1.0
        row[0] = 9.0
        return named["row"][0] + named["n"] * x

    def g(n):
        named = {"row": [1.0], "n": 0.0}
        row = named["row"]
        for _ in tw.range(n):
            named["n"] = named["n"] + 1.0
        row[0] = 9.0
        return named["row"][0] + named["n"]

    check(f, *SIGNS)
    counts(g)


def test_an_array_cannot_change_in_place():
    def f(x):
        row = np.zeros(2, "float32")
        if x > 0:
            row[0] = 1.0
        return x * row

    with pytest.raises(tw.errors.TracingError, match="'row' is a NumPy array"):
        tw.function(f)(tw.constant(1.0))


@pytest.mark.parametrize(
    "make", [lambda: iter([1.0, 2.0, 3.0]), lambda: (float(i) for i in (1, 2, 3))]
)
def test_an_iterator_cannot_advance_where_a_tensor_decides(make):
    def branch(x):
        numbers = make()
        if x > 0:
            x = x + next(numbers)
        return x

    def loop(x):
        numbers = make()
        for _ in tw.range(3):
            x = x + next(numbers)
        return x

    for f in (branch, loop):
        with pytest.raises(tw.errors.TracingError, match="'numbers' is an iterator"):
            tw.function(f)(tw.constant(1.0))

    def before(x):
        first = next(make())
        return x + first if x > 0 else x

    check(before, *SIGNS)


class Lazy:
    """Makes its variable when it is first called."""

    def __init__(self):
        self.weight = None

    def __call__(self, x):
        if self.weight is None:
            self.weight = tw.Variable(2.0)
        return x * self.weight


def test_an_object_may_make_variables_in_a_branch():
    def f(net, x):
        if x > 0:
            return net(x)
        return x

    net = Lazy()
    traced = tw.function(lambda x: f(net, x))
    assert float(traced(tw.constant(3.0))) == 6.0
    assert isinstance(net.weight, tw.Variable)
    assert float(traced(tw.constant(-3.0))) == -3.0


def test_names_of_functions_inside():
    names = []

    @tw.function
    def f(x):
        def inner():
            return lambda: x

        class Inner:
            pass

        if x > 0:
            x = x + 1.0
        names.extend([inner.__qualname__, inner().__qualname__, Inner.__qualname__])
        return x

    f(tw.constant(1.0))
    home = "test_names_of_functions_inside.<locals>.f.<locals>"
    assert names == [
        f"{home}.inner",
        f"{home}.inner.<locals>.<lambda>",
        f"{home}.Inner",
    ]


def test_calls_in_expressions():
    def f(x):
        account, row = Account(), [1.0, 2.0]

        def put(value):
            row[0] = value
            return value > 3

        found = x > 0 and put(x * 5.0)
        last = row.pop() if x > 1 else row.pop(0)
        account.add(1.0) if found else account.add(2.0)
        return account.total + x * last, row

    check(f, (2.0,), (0.5,), (-2.0,))


def test_the_condition_of_a_loop_cannot_change_things():
    def f(x):
        steps = [0.0]

        def goes_on():
            steps[0] = steps[0] + 1.0
            return x < 20

        while goes_on():
            x = x + 1.0
        return steps[0]

    message = (
        r"the condition of the while loop changes 'steps\[0\]': change it in the body"
    )
    with pytest.raises(tw.errors.TracingError, match=message):
        tw.function(f)(tw.constant(1.0))


def test_an_object_cannot_depend_on_a_tensor():
    def f(x):
        account = Account()
        account.entries = None
        if x > 0:
            account.entries = Account()
        return x if account.entries is None else -x

    with pytest.raises(tw.errors.TracingError, match="'account.entries' is"):
        tw.function(f)(tw.constant(1.0))


def test_methods_of_objects_around_and_behind_partial():
    around = Account()

    def f(x):
        account = Account()
        add = functools.partial(account.add, 2.0)
        around.total = 0.0
        if x > 0:
            around.add(3.0)
            add()
        found = around.total + account.total + x
        around.total = 0.0
        return found

    check(f, *SIGNS)
    assert around.total == 0.0


def test_a_function_inside_that_sets_a_list():
    def f(x):
        row, other = [1.0], [1.0]

        def reset():
            nonlocal row
            other[0] = 2.0
            row = [5.0]

        if x > 0:
            reset()
        return x + row[0] * other[0]

    check(f, *SIGNS)


def test_an_attribute_that_the_class_has():
    class Scale:
        factor, names = 1.0, ("a", "b")

        def grow(self, x):
            self.factor = self.factor + x

        @property
        def half(self):
            return self.factor * 0.5

    def f(x):
        first, second = Scale(), Scale()
        if x > 0:
            first.grow(x)
        for _ in tw.range(3):
            second.grow(2.0)
        return first.factor + x, first.half, second.factor

    check(f, *SIGNS)


def test_keys_of_the_same_text():
    class Key:
        def __repr__(self):
            return "key"

    def f(x):
        keys = Key(), Key()
        found = {keys[0]: [1.0], keys[1]: [2.0]}
        numbers = {keys[0]: 1.0, keys[1]: 2.0}

        def add(key):
            found[key][0] += 10.0
            numbers[key] += 100.0

        if x > 0:
            add(keys[0])
            add(keys[1])
        else:
            add(keys[1])
        return [found[key][0] + numbers[key] for key in keys], x

    check(f, *SIGNS)


def test_shapes_that_an_object_notes():
    def f(x):
        account = Account()
        account.shape = None if x.shape.rank else tw.TensorShape([])

        def note():
            account.shape = tw.TensorShape(x.shape)

        if x > 0:
            note()
        return x, account.shape.rank

    check(f, *SIGNS)


def test_nobody_looks_into_data_that_an_object_holds(monkeypatch):
    class Agent:
        def __init__(self):
            self.memory = [(np.zeros(4), [k], 0.5) for k in range(20_000)]
            self.steps = 0.0

        def note(self, x):
            self.steps = self.steps + x

        def act(self, x):
            self.steps = 0.0
            if x > 0:
                self.note(x)
            return self.steps, x

    seen, container_of = [], contents.container_of
    monkeypatch.setattr(
        state, "container_of", lambda x: seen.append(x) or container_of(x)
    )
    check(Agent().act, *SIGNS)
    assert len(seen) < 1000


# --------------------------------------------------------------------------- layers


class Positions(tw.keras.layers.Layer):
    """Makes weights, numbers, and tensors in `build`, and notes what it has seen."""

    def __init__(self):
        super().__init__()
        self.size, self.calls, self.seen, self.weights_made = None, 0, (), []

    def build(self, shape):
        self.size = shape[-1]
        self.places = tw.range(1.0, 1.0 + shape[-1])
        self.weights_made.append(self.add_weight(shape=(), initializer="ones"))

    def call(self, x):
        self.calls += 1
        self.seen = tuple(x.shape)
        self.last = x * 2.0
        return x * self.weights_made[0] + self.places * self.size


def test_a_layer_that_a_loop_builds():
    @tw.function
    def f(x):
        y = x[None, None]
        for _ in tw.range(tw.cast(x, "int32")):
            y = layer(y)
        return y

    layer = Positions()
    for x in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(f(tw.constant(x)), [[2 * x]])
    np.testing.assert_array_equal(layer(tw.zeros([1, 1])), [[1.0]])


@pytest.mark.parametrize("both", [False, True])
def test_a_layer_that_a_branch_builds_and_that_counts_its_calls(both):
    class Net(tw.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = Positions(), tw.keras.layers.Dense(1)

        def call(self, x):
            if tw.reduce_sum(x) > 0:
                x = self.inner(x)
            else:
                x = self.inner(-x) if both else x
            return self.outer(x)

    net, x = Net(), np.ones((8, 3), "float32")
    net.compile("sgd", "mse")
    net.fit(x, x[:, :1], epochs=2, batch_size=4, verbose=0)
    found = net.predict(-x, verbose=0)
    assert isinstance(net.inner.calls, int) and net.inner.seen == (8, 3)
    np.testing.assert_allclose(found, net.outer(net.inner(x) if both else -x), 1e-5)


def test_a_body_that_fails_leaves_layers_whole():
    @tw.function
    def f(x):
        total = 0
        for row in tw.ones((4, 1)) * x:
            total = total + layer(row[None])
        return total

    @tw.function
    def fails(x):
        if x > 0:
            x = tw.reshape(other(x[None, None]), [5])
        return x

    layer, other = Positions(), Positions()
    np.testing.assert_array_equal(f(tw.constant(2.0)), [[12.0]])
    with pytest.raises(ValueError):
        fails(tw.constant(1.0))
    np.testing.assert_array_equal(other(tw.zeros([1, 1])), [[1.0]])


LAYERS = {
    "Dense": (tw.keras.layers.Dense(3), (2, 4)),
    "BatchNormalization": (tw.keras.layers.BatchNormalization(), (2, 4)),
    "Bidirectional": (
        tw.keras.layers.Bidirectional(tw.keras.layers.LSTM(3)),
        (2, 5, 4),
    ),
    "MultiHeadAttention": (tw.keras.layers.MultiHeadAttention(2, 3), (2, 5, 4)),
    "Spectral": (
        tw.keras.layers.SpectralNormalization(tw.keras.layers.Dense(3)),
        (2, 4),
    ),
    "Sequential": (
        tw.keras.Sequential(
            [tw.keras.layers.Conv2D(3, 2), tw.keras.layers.Flatten()],
        ),
        (2, 5, 5, 4),
    ),
    "ActivityRegularization": (tw.keras.layers.ActivityRegularization(0.1), (2, 4)),
    "RandomFlip": (tw.keras.layers.RandomFlip(), (2, 4, 4, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_build_themselves_in_branches(name):
    layer, shape = LAYERS[name]
    args = (tw.ones(shape),) * (1 + (name == "MultiHeadAttention"))

    @tw.function
    def f(x):
        if x > 0:
            y = tw.reduce_sum(layer(*args, training=True))
        else:
            y = 0.0
        return y

    assert np.isfinite(float(f(tw.constant(1.0))))
    assert layer.built and float(f(tw.constant(-1.0))) == 0.0
    assert np.isfinite(float(tw.reduce_sum(layer(*args))))
