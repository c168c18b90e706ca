"""Variables of the host that functions on a GPU read, assign and give to regions."""

import numpy as np
import pytest

import tapewright as tw

from .runtime_runs import both


def sgd(rate=0.1):
    return tw.optimizers.SGD(rate), tw.Variable([1.0, 2.0])


def rate_halved_behind_an_update(rule, v, x):
    rule.apply_gradients([(x, v)])
    rule.learning_rate.assign(rule.learning_rate * 0.5)
    return v * 1.0


def rates_set_between_updates(rule, v, x):
    rule.apply_gradients([(x, v)])
    rule.learning_rate.assign(0.01)
    rule.apply_gradients([(x, v)])
    rule.learning_rate.assign(0.2)
    return v * 1.0


def steps_counted_anew(rule, v, x):
    rule.apply_gradients([(x, v)])
    rule.iterations.assign(0)
    return v * 1.0


def rate_of_the_device(rule, v, x):
    rule.learning_rate.assign(tw.reduce_sum(x) * 0.1)
    rule.apply_gradients([(x, v)])
    return v * 1.0


def count_before_and_behind_an_update(rule, v, x):
    before = rule.iterations.read_value()
    rule.apply_gradients([(v * x, v)])
    return rule.iterations - before


def count_given_to_a_region_and_used_again(rule, v, x):
    count = tw.cast(rule.iterations, "float32") + 1.0
    y = tw.cond(x[0] > 0, lambda: x * count, lambda: x)
    rule.apply_gradients([(y, v)])
    return tw.exp(y * 0.1) * count + count * 2.0


def count_given_to_a_call_of_cupy(rule, v, x):
    count = tw.cast(rule.iterations, "complex64")
    y = tw.math.real(tw.cast(x, "complex64") * count)
    rule.apply_gradients([(y, v)])
    return tw.math.real(count * 2.0) + y


def rate_set_in_a_region(rule, v, x):
    rate = rule.learning_rate.read_value()

    def halve():
        rule.learning_rate.assign(rate * 0.5)
        return rate

    y = tw.cond(x[0] > 0, halve, lambda: rate)
    rule.apply_gradients([(x, v)])
    return y + rate + rule.learning_rate


STEPS = [
    rate_halved_behind_an_update,
    rates_set_between_updates,
    steps_counted_anew,
    rate_of_the_device,
    count_before_and_behind_an_update,
    count_given_to_a_region_and_used_again,
    count_given_to_a_call_of_cupy,
    rate_set_in_a_region,
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("verified", [False, True])
def test_steps_see_the_values_in_their_order(step, verified, gpu, request):
    if not verified:
        request.getfixturevalue("unverified")

    def train():
        rule, v = sgd()
        f = tw.function(lambda x: step(rule, v, x))
        results = [f(tw.constant([1.0, 2.0])) for _ in range(4)]
        return [*results, v, rule.learning_rate, rule.iterations]

    both(train)


def drawn_before_a_region_and_inside(generator, x):
    a = generator.uniform([2])
    return a + tw.cond(x[0] > 0, lambda: generator.uniform([2]), lambda: x)


def drawn_inside_of_a_region_and_behind(generator, x):
    a = tw.cond(x[0] > 0, lambda: generator.uniform([2]), lambda: x)
    return a + generator.uniform([2])


@pytest.mark.parametrize(
    "draw", [drawn_before_a_region_and_inside, drawn_inside_of_a_region_and_behind]
)
def test_generators_go_on_through_regions(draw, gpu):
    def draws():
        generator = tw.random.Generator.from_seed(5)
        f = tw.function(lambda x: draw(generator, x))
        signs = (1.0, -1.0, 1.0)
        return [*[f(tw.constant([s, 2.0])) for s in signs], generator.state]

    both(draws)


def test_a_value_of_the_device_becomes_an_array_of_the_host(gpu):
    rule, generator = tw.optimizers.SGD(0.1), tw.random.Generator.from_seed(5)
    for variable in (rule.learning_rate, generator.state):
        value = tw.constant(variable.numpy())
        assert not isinstance(value.array, np.ndarray)
        variable.assign(value)
        tw.function(variable.assign)(value)
        assert isinstance(variable._array, np.ndarray)


# ------------------------------------------------------------------- random functions


def _small(x):
    return tw.clip_by_value(x, -4.0, 4.0)


class RandomSteps:
    """Steps on tensors of shape ``(4, 4)``, variables, optimizers and a generator.

    ``rate``, ``count`` and the generator's state are variables of the host; ``numbers``
    holds scalars of such variables.
    """

    def __init__(self, seed):
        self.values = np.random.default_rng(seed)
        self.variables = [tw.Variable(self.tensor()) for _ in range(2)]
        self.generator = tw.random.Generator.from_seed(seed)
        adam = tw.optimizers.Adam(0.125)
        self.rules = [adam, tw.optimizers.SGD(0.125, momentum=0.5)]
        for rule, variable in zip(self.rules, self.variables):
            rule.build([variable])
        with tw.device("CPU"):
            self.count = tw.Variable(1)

    def tensor(self):
        return tw.constant(self.values.integers(-3, 4, (4, 4)).astype("f"))

    def state(self):
        rates = [rule.learning_rate for rule in self.rules]
        counts = [rule.iterations for rule in self.rules]
        return [*self.variables, *rates, *counts, self.count, self.generator.state]

    def steps(self, rng, tensors, numbers, count, depth=0):
        for _ in range(count):
            move = rng.choice(MOVES if depth == 0 else MOVES[:-2])
            a, b = [tensors[i] for i in rng.integers(0, len(tensors), 2)]
            number = numbers[rng.integers(len(numbers))]
            found = move(self, rng, a, b, number, numbers, depth)
            tensors.append(_small(a if found is None else found))
        return tensors[-1]

    def multiply(self, rng, a, b, number, *_):
        return a * number + b

    def read_count(self, rng, a, b, number, numbers, depth):
        count = self.rules[rng.integers(2)].iterations
        numbers.append(tw.cast(count, "float32") % 3.0)

    def read_rate(self, rng, a, b, number, numbers, depth):
        numbers.append(self.rules[rng.integers(2)].learning_rate * 2.0)

    def set_rate(self, rng, a, b, number, *_):
        rate = tw.clip_by_value(number * 0.1, 0.01, 0.5)
        self.rules[rng.integers(2)].learning_rate.assign(rate)

    def set_rate_by_device(self, rng, a, *_):
        rate = tw.clip_by_value(tw.reduce_max(a) * 0.1, 0.01, 0.5)
        self.rules[rng.integers(2)].learning_rate.assign(rate)

    def add_uniform(self, rng, a, *_):
        return a + self.generator.uniform([4, 4])

    def add_normal(self, rng, a, *_):
        return a + self.generator.normal([4])

    def update(self, rng, a, *_):
        i = rng.integers(2)
        self.rules[i].apply_gradients([(a, self.variables[i])])
        return self.variables[i] * 1.0

    def assign(self, rng, a, b, *_):
        self.variables[rng.integers(2)].assign(a)
        return b

    def read(self, rng, *_):
        return self.variables[rng.integers(2)].read_value()

    def invert(self, rng, a, b, number, *_):
        return tw.linalg.inv(a * 0.01 + tw.eye(4) * (number + 5.0))

    def multiply_complex(self, rng, a, b, number, *_):
        return tw.math.real(tw.cast(number, "complex64") * tw.cast(b, "complex64"))

    def call_python(self, rng, a, b, *_):
        spec = tw.TensorSpec([4, 4], "float32")
        return tw.py_function(lambda x, y: x + y * 0.5, [a, b], spec)

    def gather_at_count(self, rng, a, *_):
        self.count.assign((self.count + 1) % 4)
        return tw.gather(a, tw.stack([self.count] * 4))

    def gather_at_values(self, rng, a, b, *_):
        return tw.gather(a, tw.cast(tw.math.floormod(b[0], 4.0), "int32"))

    def branch(self, rng, a, b, number, numbers, depth):
        def steps(seed):
            own = np.random.default_rng(seed)
            return self.steps(own, [a, b], list(numbers), 3, depth + 1)

        first, second = rng.integers(0, 1 << 30, 2)
        return tw.cond(
            tw.reduce_sum(a) > 0, lambda: steps(first), lambda: steps(second)
        )

    def loop(self, rng, a, b, number, numbers, depth):
        seed, rounds = rng.integers(1 << 30), int(rng.integers(4))

        def body(i, x):
            own = np.random.default_rng(seed)
            return i + 1, self.steps(own, [x, b], list(numbers), 3, depth + 1)

        return tw.while_loop(lambda i, x: i < rounds, body, [tw.constant(0), a])[1]


MOVES = [
    *(RandomSteps.multiply, RandomSteps.read_count, RandomSteps.read_rate),
    *(RandomSteps.set_rate, RandomSteps.set_rate_by_device, RandomSteps.add_uniform),
    *(RandomSteps.add_normal, RandomSteps.update, RandomSteps.assign, RandomSteps.read),
    *(RandomSteps.invert, RandomSteps.multiply_complex, RandomSteps.call_python),
    *(RandomSteps.gather_at_count, RandomSteps.gather_at_values),
    *(RandomSteps.branch, RandomSteps.loop),
]


@pytest.mark.parametrize("seed", range(30))
def test_random_functions_compute_what_numpy_does(seed, gpu, request):
    if seed % 2:
        request.getfixturevalue("unverified")

    def run():
        own, rng = RandomSteps(seed), np.random.default_rng(seed)

        def new_function():
            seed, count = rng.integers(1 << 30), int(rng.integers(4, 10))

            @tw.function
            def f(x, y):
                numbers = [tw.cast(own.rules[0].iterations, "float32") * 0.5 + 0.5]
                made = np.random.default_rng(seed)
                return own.steps(made, [x, y], numbers, count), numbers[-1]

            return f

        functions = [new_function() for _ in range(2)]
        tensors = [own.tensor(), own.tensor()]
        results = []
        for _ in range(4):
            for f in functions:
                results += f(*[tensors[i] for i in rng.integers(0, 2, 2)])
        return [*results, *own.state()]

    both(run, tolerance=1e-3)
