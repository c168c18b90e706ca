"""Ordinary steps of training as few CUDA graphs: metrics, embeddings, scales of losses."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.keras import metrics
from tapewright.ops.array import gather
from tapewright.optimizers.base import update

from .runtime_runs import asked, both, executable_of, graphs, new_log

RNG = np.random.default_rng(6)
LABELS, SCORES = RNG.integers(0, 5, 40), RNG.random((40, 5)).astype("f")
ONE_HOT = np.eye(5, dtype="f")[LABELS]
IS_ONE, CHANCE = (RNG.random((40, 1)) > 0.5).astype("f"), SCORES[:, :1].copy()
WEIGHTS = RNG.random(40).astype("f")


def is_one_graph(function, *args):
    """Return whether a replay is one graph, and nothing is left to CuPy and Python."""
    executable = executable_of(function, *args)
    new_log()
    function(*args)
    return len(executable.segments) == 1 and graphs()[1] == 1


METRICS = {
    "accuracy": (metrics.SparseCategoricalAccuracy, LABELS, SCORES),
    "AUC": (metrics.AUC, IS_ONE, CHANCE),
    "AUC of labels": (lambda: metrics.AUC(multi_label=True), ONE_HOT, SCORES),
    "binary accuracy": (metrics.BinaryAccuracy, IS_ONE, CHANCE),
    "binary IoU": (lambda: metrics.BinaryIoU(dtype="float32"), IS_ONE, CHANCE),
    "categorical accuracy": (metrics.CategoricalAccuracy, ONE_HOT, SCORES),
    "cosine": (metrics.CosineSimilarity, ONE_HOT, SCORES),
    "F1": (metrics.F1Score, ONE_HOT, SCORES),
    "mean IoU": (lambda: metrics.MeanIoU(5, dtype="float32"), LABELS, LABELS[::-1].copy()),
    "one-hot IoU": (lambda: metrics.OneHotIoU(5, [0, 2], dtype="float32"), ONE_HOT, SCORES),
    "precision": (metrics.Precision, IS_ONE, CHANCE),
    "precision of the best": (lambda: metrics.Precision(top_k=2), ONE_HOT, SCORES),
    "recall": (metrics.Recall, IS_ONE, CHANCE),
    "sparse top-k": (
        lambda: metrics.SparseTopKCategoricalAccuracy(2), LABELS, SCORES,
    ),
    "specificity": (lambda: metrics.SensitivityAtSpecificity(0.5), IS_ONE, CHANCE),
    "top-k": (lambda: metrics.TopKCategoricalAccuracy(2), ONE_HOT, SCORES),
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_an_update_of_a_metric_is_one_graph(name, gpu):
    new, *given = METRICS[name]

    def train():
        metric = new()

        @tw.function
        def update(y, x, weights):
            metric.update_state(y, x, sample_weight=weights)

        args = [tw.constant(a) for a in (*given, WEIGHTS)]
        for _ in range(2):
            update(*args)
        if type(args[0].array) is not np.ndarray:
            assert is_one_graph(update, *args)
        else:
            update(*args)
        return [v.numpy() for v in metric.variables] + [metric.result()]

    both(train, 1e-5)


def derivatives(function):
    @tw.function
    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.reduce_sum(function(x) ** 2)
        return tape.gradient(y, x)

    return slope


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tw.cumsum(x, 1),
        lambda x: tw.math.top_k(x, 2).values,
        lambda x: tw.sort(x, 0),
        lambda x: tw.gather_nd(x, [[0, 1], [2, 3], [0, 1]]),
        lambda x: tw.gather(x, tw.argsort(x, 1)[:, :2], batch_dims=1),
        lambda x: tw.math.unsorted_segment_mean(x, tw.constant(LABELS), 6),
        lambda x: tw.pad(x, [[1, 0], [2, 2]], constant_values=3.0),
        lambda x: x * tw.cast(tw.searchsorted([0.2, 0.5], x[:, 0:1]), "float32"),
    ],
)
def test_derivatives_are_one_graph(function, gpu):
    slope = derivatives(function)
    both(lambda: [derivatives(function)(tw.constant(SCORES))])
    x = tw.constant(SCORES)
    slope(x)
    assert is_one_graph(slope, x)


# ------------------------------------------------------------------------ embeddings

IDS = RNG.integers(0, 30, (5, 8, 6))


def embedding_step(optimizer):
    """A step of training of a model with an embedding, its variables, and its batches."""
    tw.keras.utils.set_random_seed(0)
    layers = [tw.layers.Embedding(30, 4), tw.layers.Flatten(), tw.layers.Dense(3)]
    model = tw.keras.Sequential(layers)
    model(tw.constant(IDS[0]))

    @tw.function
    def step(ids, factor):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(model(ids) ** 2) * factor
            scaled = optimizer.scale_loss(loss)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
        return loss

    return step, [*model.variables, *optimizer.variables]


def trained(optimizer, factors=(1, 1, 1, 1, 1)):
    step, variables = embedding_step(optimizer())
    losses = [
        step(tw.constant(ids), tw.constant(factor, tw.float32))
        for ids, factor in zip(IDS, factors)
    ]
    return [*losses, *[v.numpy() for v in variables]]


RULES = {
    "Adagrad": lambda: optimizers.Adagrad(0.1),
    "Adam": lambda: optimizers.Adam(0.1),
    "AdamW": lambda: optimizers.AdamW(0.1),
    "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
    "SGD": lambda: optimizers.SGD(0.1),
    "SGD with decay": lambda: optimizers.SGD(0.1, weight_decay=0.1),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_step_with_an_embedding_is_one_graph(rule, gpu):
    both(lambda: trained(RULES[rule]), 1e-5)
    step, _ = embedding_step(RULES[rule]())
    args = tw.constant(IDS[0]), tw.constant(1.0)
    step(*args)
    assert is_one_graph(step, *args)


@pytest.mark.parametrize("limit", ["clipnorm", "clipvalue", "global_clipnorm"])
def test_sparse_gradients_that_are_clipped_are_those_of_the_host(limit, gpu):
    both(lambda: trained(lambda: optimizers.Adam(0.1, **{limit: 0.05})), 1e-5)


def test_rows_of_a_large_variable_are_updated_alone(gpu, monkeypatch):
    monkeypatch.setattr(update, "DENSE", dict.fromkeys(update.DENSE, (50, 0)))
    scattered = []
    original = gather.scatter_rows
    monkeypatch.setattr(
        "tapewright.optimizers.base.update.scatter_rows",
        lambda *args, **kwargs: scattered.append(1) or original(*args, **kwargs),
    )
    both(lambda: trained(RULES["SGD"]), 1e-5)
    assert not scattered
    both(lambda: trained(RULES["Adam"]), 1e-5)  # which changes all rows
    assert scattered


# ------------------------------------------------------------------- scales of losses


@pytest.mark.parametrize(
    "inner",
    [
        lambda: optimizers.Adam(0.01),
        lambda: optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.1),
    ],
)
def test_a_scaled_step_is_skipped_at_infinity(inner, gpu):
    def optimizer():
        return optimizers.LossScaleOptimizer(inner(), 16.0, dynamic_growth_steps=2)

    both(lambda: trained(optimizer, (1, 1, 1, np.inf, 1)), 1e-5)
    assert _scales(optimizer(), (1, 1, 1, np.inf, 1, np.nan, 1, 1)) == [
        (16, 1, 1), (32, 0, 2), (32, 1, 3), (16, 0, 3), (16, 1, 4), (8, 0, 4), (8, 1, 5),
        (16, 0, 6),
    ]  # fmt: skip


def _scales(optimizer, factors):
    """Scale, counter and iterations after each step."""
    step, _ = embedding_step(optimizer)
    found = []
    for factor in factors:
        step(tw.constant(IDS[0]), tw.constant(factor, tw.float32))
        scalars = optimizer.dynamic_scale, optimizer.step_counter, optimizer.iterations
        found.append(tuple([int(x.numpy()) for x in scalars]))
    return found


def test_the_host_looks_once_at_a_scaled_step(gpu, unverified):
    step, _ = embedding_step(optimizers.LossScaleOptimizer(optimizers.Adam(0.01)))
    args = tw.constant(IDS[0]), tw.constant(1.0)
    for _ in range(3):
        step(*args)
    new_log()
    step(*args)
    assert asked().count("synchronize") == 1
    assert graphs() == (0, 2)  # gradients and the scale, the update


def test_the_host_looks_once_at_the_gradients_of_an_eager_step(gpu):
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.5), 2.0)
    variables = [tw.Variable(np.ones(n, np.float32)) for n in (2, 3, 4)]
    gradients = [tw.constant(np.ones(n, np.float32)) for n in (2, 3, 4)]
    optimizer.apply(gradients, variables)
    new_log()
    optimizer.apply(gradients, variables)
    assert asked().count("synchronize") <= 1
    assert [v.numpy()[0] for v in variables] == [0.5] * 3
    optimizer.dynamic_scale.assign(4.0)
    optimizer.apply(gradients, variables)
    assert [v.numpy()[0] for v in variables] == [0.375] * 3


# ------------------------------------------------------------------------------ draws


OVERWRITING = {
    "SGD": lambda: optimizers.SGD(0.1),
    "Adam": lambda: optimizers.Adam(0.1),
    "Lion": lambda: optimizers.Lion(0.1),  # reads gradients after it changes variables
}


@pytest.mark.parametrize("gradients", ["own", "swapped", "transposed"])
@pytest.mark.parametrize("rule", OVERWRITING)
def test_gradients_may_be_the_variables_that_an_update_overwrites(rule, gradients, gpu):
    """As of ``reduce_sum(a * b)``, whose gradients are the variables b and a."""
    values = (
        np.array([[1.0, 2.0], [3.0, -4.0]], "f"),
        np.array([[-1, 0.5], [2, 7]], "f"),
    )

    def trained(traced):
        a, b = variables = [tw.Variable(v) for v in values]
        optimizer = OVERWRITING[rule]()
        optimizer.build(variables)

        def step():
            given = [a, b] if gradients == "own" else [b, a]
            if gradients == "transposed":
                given = [tw.transpose(x) for x in given]
            optimizer.apply_gradients(zip(given, variables))

        step = tw.function(step) if traced else step
        for _ in range(3):
            step()
        return [v.numpy() for v in (*variables, *optimizer.variables)]

    for found, expected in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-7)


def test_numbers_that_the_host_draws_come_before_the_graph(gpu):
    def train():
        @tw.function
        def step(x):
            z = tw.matmul(x, tw.transpose(x)) + tw.random.normal((40, 40))
            return tw.matmul(tw.random.normal((40, 40)), z), tw.random.uniform((3,))

        args = (tw.constant(SCORES),)
        step(*args)
        if type(args[0].array) is not np.ndarray:
            assert len(executable_of(step, *args).segments) == 1
        return step(*args)

    both(train, 1e-4)


def test_a_draw_that_needs_a_result_of_the_graph_stays_behind_it(gpu):
    def train():
        @tw.function
        def step(x):
            logits = tw.matmul(x, tw.transpose(x)) * 50.0
            return tw.random.categorical(logits, 3), tw.random.normal((2,))

        return [*step(tw.constant(SCORES)), *step(tw.constant(SCORES))]

    both(train, 1e-4)


class InOps(optimizers.Optimizer):
    def update_step(self, gradient, variable, learning_rate):
        variable.assign_sub(gradient * learning_rate)


def test_a_draw_from_a_state_that_is_assigned_before_stays_behind(gpu):
    def train():
        generator, v = tw.random.Generator.from_seed(3), tw.Variable(tw.ones((5,)))
        optimizer = InOps(0.1)

        @tw.function
        def step(x):
            y = tw.reduce_sum(x, 0) + generator.normal((5,))
            optimizer.apply_gradients([(y, v)])  # may look at any variable
            return y * generator.normal((5,)), generator.normal((2,))

        found = [*step(tw.constant(SCORES)), *step(tw.constant(SCORES))]
        return [*found, v.numpy()]

    both(train, 1e-4)
