"""What branches and loops change in place, in what they call, and under another name."""

import dis
import functools
from collections import deque

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.autograph import contents

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
        r"the condition of the while loop changes 'steps\[0\]': change it in the loop"
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


class Gate(tw.keras.layers.Layer):
    """Counts its calls, in a method, and keeps what it has seen."""

    def __init__(self):
        super().__init__()
        self.size, self.inner, self.seen = None, tw.keras.layers.Dense(2), []
        self.reset()

    def build(self, shape):
        self.size, self.step = shape[-1], 2.0
        self.scale = self.add_weight(shape=(), initializer="ones")

    def reset(self):
        self.calls, self.last = 0.0, None
        self.seen[:] = [0.0]

    def note(self, x):
        self.calls += self.step
        self.seen[0] = self.seen[0] + tw.reduce_sum(x)

    def call(self, x):
        self.note(x)
        return self.inner(x) * self.scale + float(self.size)


class Gates(tw.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = Gate()
        self.rest = tw.keras.Sequential([Gate(), tw.keras.layers.Dropout(0.5)])

    def call(self, x):
        if tw.reduce_sum(x) > 0:
            y = self.rest(self.first(x))
        else:
            y = self.first(x)
        return y

    @property
    def gates(self):
        return self.first, self.rest.layers[0]


@pytest.mark.parametrize("is_built", [False, True])
def test_methods_of_layers(is_built):
    def f(x):
        for gate in model.gates:
            gate.reset()
        found = model(x), [(g.calls, g.seen[0]) for g in model.gates]
        for gate in model.gates:
            gate.reset()
        return found

    model, args = Gates(), [tw.constant([[a, 1.0]]) for a in (2.0, -3.0, 0.5)]
    if is_built:
        for x in args:
            model(x)
    traced = tw.function(f)
    first, *rest = [tw.nest.flatten(traced(x)) for x in args]
    assert len(model.variables) == 6
    for x, found in zip(args, [first, *rest]):
        for a, b in zip(found, tw.nest.flatten(f(x)), strict=True):
            np.testing.assert_allclose(a.numpy(), np.float32(b), 1e-6)
    assert [gate.calls for gate in model.gates] == [0.0, 0.0]


def test_methods_of_modules_in_loops():
    class Total(tw.Module):
        def __init__(self):
            self.total, self.parts = 0.0, {"even": 0.0}

        def add(self, k):
            self.total = self.total + tw.cast(k, "float32")
            self.parts["even"] += 1.0

    def f(n):
        module.total, module.parts["even"] = 0.0, 0.0
        for k in tw.range(n):
            if k % 2 == 0:
                module.add(k)
        found = module.total + 100.0 * module.parts["even"]
        module.total, module.parts["even"] = 0.0, 0.0
        return found

    module = Total()
    counts(f)


def test_a_layer_cannot_hold_what_only_one_branch_gives_it():
    class Keeps(tw.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.kept = None

        def call(self, x):
            self.kept = x
            return x * 2.0

    @tw.function
    def f(x):
        return layer(x) if x > 0 else x

    layer = Keeps()
    with pytest.raises(tw.errors.TracingError, match=r"'layer\.kept'"):
        f(tw.constant(1.0))


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


def test_names_of_attributes_are_those_of_the_instructions():
    for kind in (*tw.keras.Model.__mro__, *tw.keras.layers.LSTM.__mro__):
        for value in vars(kind).values():
            if code := getattr(value, "__code__", None):
                expected = [
                    each.argval
                    for each in dis.get_instructions(code)
                    if each.opname == "STORE_ATTR"
                ]
                assert list(contents._names_stored(code)) == expected
