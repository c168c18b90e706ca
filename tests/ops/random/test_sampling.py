"""Random numbers: they come back, and are spread as they should be."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive
from tapewright.ops.random.distributions import random_gamma_grad
from tapewright.test import case, check_op, floats, integers

GradientLookupError = tw.errors.GradientLookupError
ShapeError = tw.errors.ShapeError

KEY = np.array([7, 4])

CASES = [
    case("random_gamma", floats(2, 3, low=0.3, high=4.0), floats(2, 3, low=0.1, high=4.0),
         order=0, expect=lambda a, x: x),
    case("random_gamma", floats(low=1.0, high=2.0), floats(low=1.0, high=2.0), order=0,
         expect=lambda a, x: x),
    case("random_gamma_grad", floats(2, 3, low=0.3, high=4.0),
         floats(2, 3, low=0.1, high=4.0), order=0),
    case("random_gamma_grad", floats(low=1.0, high=2.0), floats(low=1.0, high=2.0), order=0),
    case("random_gamma_grad", floats(0), floats(0), order=0, expect=lambda a, x: x),
    case(lambda x: random_gamma_grad(tw.constant([0.5, 2.0, 7.0], tw.float64), x),
         floats(3, low=0.2, high=5.0), single=False, label="random_gamma_grad by the draw"),
    case(lambda mean, stddev: tw.random.stateless_normal(
            [2, 3], [1, 2], mean, stddev, mean.dtype),
         floats(2, 3), floats(low=0.5, high=1.0), single=False, label="normal"),
    case(lambda low, high: tw.random.stateless_uniform([2], [1, 2], low, high, low.dtype),
         floats(2), floats(low=2.0, high=3.0), single=False, label="uniform"),
    case(lambda beta: tw.random.stateless_gamma([2, 3], [1, 2], 1.5, beta, beta.dtype),
         floats(3, low=0.5, high=2.0), single=False, label="gamma by beta"),
    case("random_normal", KEY, shape=[2, 3], unmapped=["state"]),
    case("random_normal", KEY, shape=[5], mean=1.0, stddev=0.5, truncated=True, purpose=1),
    case("random_normal", KEY, shape=[], dtype="float16", purpose=1),
    case("random_uniform", KEY, shape=[2, 3], unmapped=["state"]),
    case("random_uniform", KEY, shape=[4], minval=2, maxval=9, dtype="int32", purpose=1),
    case("random_uniform", KEY, shape=[0], minval=None, dtype="uint8", purpose=1),
    case("random_integers", KEY, 2, 5, shape=[4], dtype="int32", unmapped=[0, 1, 2]),
    case("random_seeds", KEY, 3, shape=[2, 2], purpose=3),
    case("random_permutation", KEY, count=5, purpose=1),
    case("random_categorical", KEY, floats(2, 3), num_samples=4, purpose=1),
    case("random_categorical", KEY, floats(2, 3), num_samples=0, unmapped=[0, 1]),
    case("random_standard_gamma", KEY, floats(2, 3, low=0.5, high=2.0), purpose=1),
    case("random_poisson", KEY, floats(3, low=0.5, high=2.0), shape=[2, 3], purpose=1),
    case("random_binomial", KEY, integers(3, low=1, high=9), floats(low=0.1, high=0.9),
         shape=[2, 3], purpose=1),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


SEED = [3, 4]
STATELESS = [
    lambda seed: tw.random.stateless_normal((50,), seed),
    lambda seed: tw.random.stateless_truncated_normal((50,), seed, 1.0, 0.5),
    lambda seed: tw.random.stateless_uniform((50,), seed, -1.0, 1.0),
    lambda seed: tw.random.stateless_uniform((50,), seed, None, None, tw.int32),
    lambda seed: tw.random.stateless_categorical(tw.zeros((2, 9)), 20, seed),
    lambda seed: tw.random.stateless_gamma((50,), seed, 2.0),
    lambda seed: tw.random.stateless_poisson((50,), seed, 9.0),
    lambda seed: tw.random.stateless_binomial((50,), seed, 20, 0.5),
    lambda seed: tw.random.split(seed, 5),
    lambda seed: tw.random.fold_in(seed, 5),
    lambda seed: tw.random.experimental.stateless_shuffle(tw.range(50), seed),
]
DRAWS = [
    lambda **how: tw.random.normal((50,), **how),
    lambda **how: tw.random.uniform((50,), **how),
    lambda **how: tw.random.uniform((50,), 0, 1000, tw.int32, **how),
    lambda **how: tw.random.truncated_normal((50,), **how),
    lambda **how: tw.random.categorical(tw.zeros((2, 9)), 20, **how),
    lambda **how: tw.random.shuffle(tw.range(50), **how),
    lambda **how: tw.random.gamma((50,), 0.7, **how),
    lambda **how: tw.random.poisson((50,), 4.0, **how),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_gives_the_same_numbers_again(draw):
    tw.random.set_seed(5)
    first, second = draw().numpy(), draw().numpy()
    tw.random.set_seed(5)
    np.testing.assert_array_equal(draw().numpy(), first)
    assert (first != second).any()


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_has_a_stream_of_its_own_that_goes_on_as_in_tensorflow(draw):
    tw.random.set_seed(5)
    expected = tw.random.normal((3,)).numpy()
    traced = tw.function(lambda: draw(seed=1))
    for f in (lambda: draw(seed=1), traced):
        tw.random.set_seed(5)
        first, second, other = f().numpy(), f().numpy(), draw(seed=2).numpy()
        np.testing.assert_array_equal(tw.random.normal((3,)).numpy(), expected)
        assert (first != second).any() and (first != other).any()
        tw.random.set_seed(5)
        np.testing.assert_array_equal(traced().numpy(), first)
        np.testing.assert_array_equal(draw(seed=1).numpy(), second)
        tw.random.set_seed(6)
        assert (draw(seed=1).numpy() != first).any()


def test_the_state_of_a_generator_can_be_kept_and_put_back():
    generator = tw.random.Generator.from_seed(7)
    generator.normal((3,))
    state = generator.state.read()
    expected = generator.normal((3,)).numpy()
    generator.state.assign(state)
    np.testing.assert_array_equal(generator.normal((3,)).numpy(), expected)


METHODS = [
    lambda g: g.normal((5,)),
    lambda g: g.normal((2, 2), dtype=tw.float64),
    lambda g: g.truncated_normal((9,)),
    lambda g: g.uniform((3,), 0, 9, tw.int64),
    lambda g: g.uniform_full_int((3,)),
    lambda g: g.binomial((3,), 9, 0.5),
    lambda g: g.make_seeds(2),
    lambda g: g.split(1)[0].normal((3,)),
]


def test_what_follows_a_saved_state_is_the_same_for_every_kind_of_draw():
    generator = tw.random.Generator.from_seed(7)
    generator.normal((3,))
    state = generator.state.numpy()
    expected = [draw(generator).numpy() for draw in METHODS]
    generator.reset(state)
    other = tw.random.Generator.from_state(state)
    for draw, wanted in zip(METHODS, expected):
        np.testing.assert_array_equal(draw(generator).numpy(), wanted)
        np.testing.assert_array_equal(draw(other).numpy(), wanted)


def test_a_state_goes_on_in_another_process():
    generator = tw.random.Generator.from_seed(7)
    generator.uniform((3,))
    state = generator.state.numpy().tolist()
    code = (
        "import tapewright as tw; g = tw.random.Generator.from_state("
        f"{state}, alg='philox'); print(g.normal((4,)).numpy().tolist())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True
    )
    assert eval(found.stdout) == generator.normal((4,)).numpy().tolist()


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_a_copy_of_a_generator_goes_on_by_itself(copied):
    generator = tw.random.Generator.from_seed(7)
    generator.normal((3,))
    twin = copied(generator)
    first = generator.normal((3,)).numpy()
    np.testing.assert_array_equal(twin.normal((3,)).numpy(), first)


def test_the_stream_is_philox_with_the_number_of_the_draw_in_its_counter():
    generator = tw.random.Generator.from_seed(7)
    for draw in range(2):
        rng = np.random.Generator(np.random.Philox(key=7, counter=[0, 0, draw, 0]))
        wanted = rng.standard_normal(3, np.float32)
        np.testing.assert_array_equal(generator.normal((3,)).numpy(), wanted)


def test_a_stateless_draw_of_mapped_values_is_that_of_each():
    logits = tw.zeros((3, 2, 4))
    found = tw.vectorized_map(
        lambda x: tw.random.stateless_categorical(x, 5, SEED), logits
    )
    wanted = tw.random.stateless_categorical(logits[0], 5, SEED)
    np.testing.assert_array_equal(found[2], wanted)


def test_a_generator_can_skip_draws_and_go_back():
    generator = tw.random.Generator.from_seed(7)
    draws = [generator.normal((2,)).numpy() for _ in range(4)]
    generator.reset_from_seed(7)
    assert generator.skip(3).numpy().tolist() == [7, 3]
    np.testing.assert_array_equal(generator.normal((2,)).numpy(), draws[3])
    generator.reset_from_key_counter(7, 1)
    np.testing.assert_array_equal(generator.normal((2,)).numpy(), draws[1])
    twin = tw.random.Generator.from_key_counter(7, 2)
    np.testing.assert_array_equal(twin.normal((2,)).numpy(), draws[2])
    assert int(twin.key) == 7 and twin.algorithm == 1


def test_generators_split_off_have_streams_of_their_own():
    first, second = tw.random.Generator.from_seed(7).split(2)
    assert (first.normal((9,)).numpy() != second.normal((9,)).numpy()).any()
    unknown = [tw.random.Generator.from_non_deterministic_state() for _ in range(2)]
    assert (unknown[0].normal((9,)).numpy() != unknown[1].normal((9,)).numpy()).any()


def test_the_global_generator_can_be_exchanged():
    before = tw.random.get_global_generator()
    try:
        tw.random.set_global_generator(tw.random.Generator.from_seed(11))
        found = tw.random.normal((3,)).numpy()
    finally:
        tw.random.set_global_generator(before)
    wanted = tw.random.Generator.from_seed(11).normal((3,)).numpy()
    np.testing.assert_array_equal(found, wanted)


def test_a_created_state_is_that_of_the_seed():
    state = tw.random.create_rng_state(7, "philox")
    wanted = tw.random.Generator.from_seed(7).normal((3,)).numpy()
    found = tw.random.Generator.from_state(state).normal((3,)).numpy()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("draw", STATELESS)
def test_a_stateless_draw_depends_on_its_seed_alone(draw):
    first = draw(SEED).numpy()
    tw.random.normal((3,))
    np.testing.assert_array_equal(draw(tw.constant(SEED)).numpy(), first)
    assert (draw([4, 3]).numpy() != first).any()
    assert (draw([-3, 4]).numpy() != first).any()


def test_a_stateless_draw_is_none_of_a_generator():
    ours = tw.random.Generator.from_seed(3).normal((9,)).numpy()
    assert (tw.random.stateless_normal((9,), [3, 0]).numpy() != ours).any()


def test_new_seeds_differ_and_keep_the_dtype():
    seeds = tw.random.split([1, 2], 4)
    assert (
        seeds.dtype == tw.int32 and len({tuple(s) for s in seeds.numpy().tolist()}) == 4
    )
    steps = {tuple(tw.random.fold_in([1, 2], k).numpy().tolist()) for k in range(4)}
    assert len(steps) == 4
    assert tw.random.split(tw.constant([1, 2], tw.int64)).dtype == tw.int64
    assert tw.random.experimental.stateless_split is tw.random.split


def test_seeds_made_by_a_generator_start_stateless_draws():
    seeds = tw.random.Generator.from_seed(1).make_seeds(3)
    assert seeds.shape == (2, 3) and seeds.dtype == tw.int64
    draws = [tw.random.stateless_normal((4,), seeds[:, i]).numpy() for i in range(3)]
    assert (draws[0] != draws[1]).any() and (draws[1] != draws[2]).any()


def test_normal_numbers_have_the_mean_and_deviation_asked_for():
    x = tw.random.normal(
        (20_000,), mean=3.0, stddev=2.0, dtype=tw.float64, seed=0
    ).numpy()
    assert x.dtype == np.float64
    assert abs(x.mean() - 3) < 0.06 and abs(x.std() - 2) < 0.04


def test_uniform_numbers_fill_their_range_and_stay_in_it():
    x = tw.random.uniform((20_000,), -1.0, 3.0, seed=0).numpy()
    assert x.min() >= -1 and x.max() < 3 and x.dtype == np.float32
    assert abs(x.mean() - 1) < 0.05


def test_uniform_integers_take_each_value_and_none_beyond():
    x = tw.random.uniform((1000,), 2, 5, tw.int32, seed=0).numpy()
    assert sorted(set(x.tolist())) == [2, 3, 4] and x.dtype == np.int32


def test_uniform_numbers_stay_below_a_bound_to_which_they_would_be_rounded():
    x = tw.random.uniform((200_000,), 4096.0, 4096.001, seed=0).numpy()
    assert x.min() >= 4096 and x.max() < np.float32(4096.001)
    half = tw.random.uniform((20_000,), dtype=tw.float16, seed=0).numpy()
    assert half.max() < 1


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64"])
def test_full_integers_fill_the_dtype(dtype):
    x = tw.random.Generator.from_seed(0).uniform_full_int((2000,), dtype).numpy()
    limits, x = np.iinfo(dtype), x.astype(np.float64)
    assert x.min() < limits.min + 0.01 * (float(limits.max) - limits.min)
    assert x.max() > limits.max - 0.01 * (float(limits.max) - limits.min)


def test_gamma_numbers_have_the_mean_and_variance_of_their_distribution():
    x = tw.random.gamma(
        [20_000], [0.5, 3.0], [[2.0], [1.0]], tw.float64, seed=0
    ).numpy()
    assert x.shape == (20_000, 2, 2)
    np.testing.assert_allclose(x.mean(0), [[0.25, 1.5], [0.5, 3.0]], rtol=0.05)
    np.testing.assert_allclose(x.var(0), [[0.125, 0.75], [0.5, 3.0]], rtol=0.1)


def test_a_gamma_number_of_an_unknown_alpha_is_unknown_and_of_minus_0_as_of_0():
    drawn = tw.random.gamma([50], [math.nan, -0.0, 0.0], seed=1).numpy()
    assert np.isnan(drawn[:, 0]).all()
    assert (drawn[:, 1:] == np.finfo(np.float32).tiny).all()


def test_a_gamma_number_is_never_zero():
    assert (
        tw.random.gamma([1000], 1e-3, seed=0).numpy().min() >= np.finfo(np.float32).tiny
    )


def cumulative(a, x):
    """The cumulative distribution of a gamma variable, by its power series."""
    term = total = 1.0
    for n in range(1, 4000):
        term *= x / (a + n)
        total += term
    return math.exp(a * math.log(x) - x - math.lgamma(a + 1)) * total


DRAWN = [(0.1, 1e-4), (0.5, 0.2), (1.0, 1.5), (2.5, 0.3), (5.0, 4.0), (5.0, 14.0),
         (100.0, 110.0), (900.0, 850.0)]  # fmt: skip


@pytest.mark.parametrize("a, x", DRAWN)
def test_a_gamma_draw_moves_with_alpha_as_its_quantile_says(a, x):
    step = 1e-5 * a
    by_alpha = (cumulative(a + step, x) - cumulative(a - step, x)) / (2 * step)
    density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    found = random_gamma_grad(tw.constant(a, tw.float64), tw.constant(x, tw.float64))
    np.testing.assert_allclose(found.numpy(), -by_alpha / density, rtol=1e-6)


def test_the_slopes_of_gamma_draws_are_those_of_tensorflow():
    alpha = tw.constant([0.5, 1.0, 5.0, 100.0], tw.float64)
    sample = tw.constant([0.2, 1.5, 4.0, 110.0], tw.float64)
    recorded = [0.7940505663308433, 1.4309374423012804, 0.9227261342680146,
                1.050160621245713]  # fmt: skip
    np.testing.assert_allclose(
        random_gamma_grad(alpha, sample).numpy(), recorded, rtol=1e-9
    )


def test_the_slopes_for_large_alpha_join_those_of_the_series():
    deviations = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    ends = []
    for a in (3999.999, 4000.001):
        sample = tw.constant(a + deviations * math.sqrt(a))
        alpha = tw.constant(np.full(5, a))
        ends.append(random_gamma_grad(alpha, sample).numpy())
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-7)


def test_the_gradient_by_alpha_is_that_of_the_mean():
    alpha = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(alpha)
        mean = tw.reduce_mean(tw.random.gamma([20_000], alpha, 0.5, seed=0))
    assert abs(float(tape.gradient(mean, alpha)) - 2.0) < 0.05  # mean = alpha / beta


def test_the_second_derivative_by_alpha_is_refused():
    alpha = tw.constant(2.0)
    with tw.GradientTape() as outer:
        outer.watch(alpha)
        with tw.GradientTape() as tape:
            tape.watch(alpha)
            y = tw.random.gamma([3], alpha, seed=0)
        g = tape.gradient(y, alpha)
    with pytest.raises(GradientLookupError, match="alpha"):
        outer.gradient(g, alpha)


def test_whole_numbers_have_the_mean_of_their_distribution():
    x = tw.random.poisson([20_000], [0.5, 7.0], seed=0)
    assert x.shape == (20_000, 2) and x.dtype == tw.float32
    np.testing.assert_allclose(x.numpy().mean(0), [0.5, 7.0], rtol=0.05)
    generator = tw.random.Generator.from_seed(0)
    y = generator.binomial((20_000, 2), [10, 4], [0.2, 0.5])
    assert y.dtype == tw.int32 and y.numpy().max(0)[1] == 4
    np.testing.assert_allclose(y.numpy().mean(0), [2.0, 2.0], rtol=0.05)


def test_stateless_draws_are_told_the_whole_shape():
    assert tw.random.stateless_gamma((3, 2), SEED, [1.0, 2.0]).shape == (3, 2)
    assert tw.random.stateless_poisson((3, 2), SEED, [1.0, 2.0]).shape == (3, 2)


def test_truncated_numbers_stay_within_two_deviations():
    x = tw.random.truncated_normal((5000,), mean=1.0, stddev=0.5, seed=0).numpy()
    assert x.min() >= 0 and x.max() <= 2 and 0.4 < x.std() < 0.48


def test_classes_are_drawn_as_often_as_their_softmax_says():
    logits = tw.math.log([[0.7, 0.2, 0.1]])
    counts = np.bincount(tw.random.categorical(logits, 5000, seed=0).numpy()[0]) / 5000
    np.testing.assert_allclose(counts, [0.7, 0.2, 0.1], atol=0.03)


def test_a_shuffle_keeps_the_rows_together():
    x = tw.constant([[1, 10], [2, 20], [3, 30]])
    y = tw.random.shuffle(x, seed=0).numpy()
    assert sorted(y[:, 0].tolist()) == [1, 2, 3]
    np.testing.assert_array_equal(y[:, 1], y[:, 0] * 10)


def test_tensors_can_be_the_bounds():
    x = tw.random.uniform(
        (4,), tw.constant([0.0, 1, 2, 3]), tw.constant([1.0, 2, 3, 4])
    )
    assert np.floor(x.numpy()).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("call, kind, message", [
    (lambda: tw.random.normal((2,), dtype=tw.int32), TypeError, "floating"),
    (lambda: tw.random.uniform((2,), dtype=tw.int32), ValueError, "maxval"),
    (lambda: tw.random.categorical([0.0], 1), ShapeError, "batch, classes"),
    (lambda: tw.random.uniform((2,), 5, 2, tw.int32), ValueError, "minval must be below"),
    (lambda: tw.random.uniform((2,), 2, 2, tw.int32), ValueError, "minval must be below"),
    (lambda: tw.random.stateless_uniform((2,), SEED, None, 5, tw.int32), ValueError, "minval"),
    (lambda: tw.random.uniform((2,), dtype=tw.complex64), TypeError, "dtype .*complex64"),
    (lambda: tw.random.gamma((2,), -1.0), ValueError, r"alpha .*got -1\.0"),
    (lambda: tw.random.gamma((2,), 1.0, dtype=tw.int32), TypeError, "gamma: dtype .*got int32"),
    (lambda: tw.random.stateless_gamma((3,), SEED, [1.0, 2.0]), ShapeError, "broadcast"),
    (lambda: tw.random.poisson((2,), -1.0), ValueError, r"lam .*0.*got -1\.0"),
    (lambda: tw.random.poisson((2,), [1.0, math.nan]), ValueError, "lam .* got .* nan"),
    (lambda: tw.random.poisson((2,), 1e30), ValueError, r"lam .*9\.22e.18, got 1"),
    (lambda: tw.random.stateless_binomial((2,), SEED, math.nan, 0.5), ValueError, "counts nan"),
    (lambda: tw.random.stateless_binomial((2,), SEED, 1e30, 0.5), ValueError, "counts 1.*e.30"),
    (lambda: tw.random.stateless_binomial((2,), SEED, 3, math.nan), ValueError, "probs nan"),
    (lambda: tw.random.stateless_binomial((2,), SEED, "3", 0.5), TypeError, "string"),
    (lambda: get_primitive("random_standard_gamma").entry(KEY, [1j]), TypeError, "complex"),
    (lambda: tw.random.stateless_binomial((2,), SEED, 3, 1.5), ValueError, r"probs .*1\.5"),
    (lambda: tw.random.stateless_normal((2,), [1, 2, 3]), ValueError, "seed must be two int"),
    (lambda: tw.random.stateless_normal((2,), [1.0, 2.0]), ValueError, "seed must be two int"),
    (lambda: tw.random.stateless_normal((2,), SEED, alg="x"), ValueError, "alg .*'philox'"),
    (lambda: tw.random.Generator.from_seed(1, "threefry"), ValueError, "alg .*'philox'"),
    (lambda: tw.random.Generator.from_state([1, 2, 3]), ShapeError, "Shape mismatch"),
    (lambda: tw.random.set_global_generator(3), TypeError, "generator .*got int"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("dtype, large", [("uint8", 1000.0), ("int32", 1e12)])
@pytest.mark.parametrize("traced", [False, True])
def test_numbers_that_their_dtype_cannot_hold_are_refused(traced, dtype, large):
    def draws(size):
        return [
            lambda: tw.random.stateless_poisson([3], [1, 2], size, dtype=dtype),
            lambda: tw.random.stateless_binomial([3], [1, 2], size, 0.5, dtype),
        ]

    for small, over in zip(draws(20.0), draws(large)):
        small, over = (tw.function(f) if traced else f for f in (small, over))
        assert (small().numpy() < 60).all()
        with pytest.raises(
            ValueError,
            match=f"dtype must hold every draw, .* does not fit into {dtype}",
        ):
            over()
