"""The example scripts' steps of training, traced and eager, from the same seeds."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEPS, BATCH = 4, 24


def script(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def images(step, rows=BATCH):
    rng = np.random.default_rng(step)
    return tw.constant(rng.uniform(-1, 1, (rows, 784)), tw.float32)


def labels(step):
    return np.random.default_rng(step).integers(0, 10, BATCH)


def built(model, width=784):
    """With its weights: drawn in the first call they would come in another order."""
    model(tw.zeros([1, width]))
    return model


def mnist_mlp():
    example = script("mnist_mlp")
    model, optimizer = example.MLP(), tw.optimizers.Adam(0.001)

    def step(n):
        one_hot = np.eye(10, dtype="float32")[labels(n)]
        return [example.train_step(model, optimizer, images(n), tw.constant(one_hot))]

    return step, [model], [optimizer]


def gan():
    example = script("gan")
    networks = example.Generator(), example.Discriminator()
    optimizers = tw.optimizers.Adam(0.001), tw.optimizers.Adam(0.001)

    def step(n):
        return example.train_step(*networks, *optimizers, images(n))

    return step, networks, optimizers


def input_gradient_regularization():
    example = script("input_gradient_regularization")
    model, optimizer = built(example.classifier()), tw.optimizers.Adam(0.001)

    def step(n):
        batch = images(n), tw.constant(labels(n))
        return example.train_step(model, optimizer, *batch, 10.0)

    return step, [model], [optimizer]


def pinn():
    example = script("pinn")
    model = built(example.network(), 2)
    optimizer = tw.optimizers.Adam(lambda step: 0.01 * 0.5 ** (step / 2))
    return lambda n: [example.train_step(model, optimizer)], [model], [optimizer]


def wgan_gp():
    example = script("wgan_gp")
    generator, critic = networks = example.networks()
    built(generator, 32), built(critic)
    optimizers = [tw.optimizers.Adam(0.001, beta_1=0.5) for _ in range(2)]

    def step(n):
        gap = example.critic_step(generator, critic, optimizers[0], images(n))
        example.generator_step(generator, critic, optimizers[1])
        return [gap]

    return step, networks, optimizers


def trained(make, eagerly):
    """What the steps returned, and all variables after them."""
    tw.random.set_seed(3)
    before = tw.config.functions_run_eagerly()
    tw.config.run_functions_eagerly(eagerly)
    try:
        step, models, optimizers = make()
        returned = [np.array(x) for n in range(STEPS) for x in step(n)]
    finally:
        tw.config.run_functions_eagerly(before)
    variables = [v for model in models for v in model.trainable_variables]
    variables += [v for optimizer in optimizers for v in optimizer.variables]
    variables.append(tw.random.get_global_generator().state)
    return returned + [v.numpy() for v in variables]


# In the others a sum runs over a transposed array where eager mode has it laid out the
# other way round, and so adds in another order.
TO_THE_BIT = [gan, input_gradient_regularization, pinn]
TRAINED = [mnist_mlp, *TO_THE_BIT, wgan_gp]


@pytest.mark.parametrize("make", TO_THE_BIT)
def test_an_example_trains_to_the_same_bits_traced_and_eager(make, numpy_target):
    found = trained(make, eagerly=False)
    for a, b in zip(found, trained(make, eagerly=True), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", TRAINED)
def test_an_example_trains_to_the_same_numbers_with_every_step_on(make):
    with tw.config.graph_passes(True):
        found = trained(make, eagerly=False)
    for a, b in zip(found, trained(make, eagerly=True), strict=True):
        size = float(np.abs(b).max(initial=1e-3))
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * size)
