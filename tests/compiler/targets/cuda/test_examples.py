"""The steps of the example scripts as CUDA graphs: the numbers are those of the CPU.

NVRTC compiles what they launch, each example for another generation of GPUs: the code is the
same for all.
"""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.cuda import executable, modules
from tapewright.core.hardware import devices

from ....stand_in import driver, nvrtc
from ... import test_examples
from ...test_examples import (
    EXAMPLES as FOLDER,
)
from ...test_examples import (
    built,
    gan,
    images,
    input_gradient_regularization,
    labels,
    mnist_mlp,
    pinn,
    script,
    trained,
    wgan_gp,
)
from .program_runs import compile_launches


def compiled_step():
    step = script("compiled_step").make_step(16, seed=0)

    def one(n):
        one_hot = np.eye(10, dtype="float32")[labels(n)]
        return [tw.function(step)(images(n), tw.constant(one_hot))]

    return one, [], []


def distributed_loop():
    example = script("distributed_loop")
    model, optimizer = built(example.network()), tw.optimizers.Adam(0.001)

    def step(n):
        batch = images(n), tw.constant(labels(n))
        return [example.train_step(model, optimizer, *batch)]

    return step, [model], [optimizer]


def fitted(model, shape, scale=255.0):
    """The step of ``fit`` on images of a shape and their labels."""

    def step(n):
        x = images(n).numpy().reshape(-1, *shape)
        return model.train_on_batch((x + 1) * (scale / 2), labels(n))

    return step, [model], [model.optimizer]


def mnist_fit():
    return fitted(script("mnist_fit").network(), (28, 28))


def mnist_cnn():
    model = script("mnist_cnn").network(moving=True, steps=4)
    return fitted(model, (28, 28, 1), scale=1.0)


def distributed_mnist():
    return fitted(script("distributed_mnist").network(), (28, 28))


def save_and_reload():
    return fitted(script("save_and_reload").network(), (28, 28))


def dcgan_model():
    example = script("dcgan_model")
    model = example.DCGAN()
    optimizers = [tw.optimizers.Adam(0.0005, beta_1=0.5) for _ in range(2)]
    model.compile(*optimizers)

    def step(n):
        batch = images(n, rows=4).numpy().reshape(-1, 28, 28, 1)
        return model.train_on_batch(batch, return_dict=True).values()

    return step, [model.generator, model.discriminator], optimizers


def text_lstm():
    example = script("text_lstm")
    example.UNITS = 16
    model, _ = example.models()
    model.compile("adam", tw.losses.SparseCategoricalCrossentropy(from_logits=True))
    letters, following = example.spans()

    def step(n):
        rows = slice(4 * n, 4 * n + 4)
        return [model.train_on_batch(letters[rows, :12], following[rows, :12])]

    return step, [model], [model.optimizer]


def newton_hessian():
    example = script("newton_hessian")
    model = example.Fit()

    @tw.function
    def gradient_and_hessian():
        with tw.GradientTape(persistent=True) as tape:
            loss = model.loss()
        variables = model.trainable_variables
        gradient, _ = tw.autodiff.ravel(tape.gradient(loss, variables))
        return loss, gradient, tape.hessian(loss, variables, flat=True)

    return lambda n: gradient_and_hessian(), [model], []


def jacobian_patches():
    example = script("jacobian_patches")
    model = example.network(tw.layers.BatchNormalization())

    @tw.function
    def jacobians(x):
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = model(x, training=True)
        return tape.jacobian(y, x), tape.batch_jacobian(y, x)

    x = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")
    model(x)
    return lambda n: jacobians(tw.constant(x)), [model], []


def saved_custom_gradient():
    functions = script("saved_custom_gradient").Functions()

    def step(n):
        x = tw.constant(np.float32([-30.0, 0.5, 3.0, 30.0]))
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            found = functions.softplus(x), functions.clipped(x)
        return [*found, *[tape.gradient(y, x) for y in found]]

    return step, [], []


def serve():
    model = script("serve").network()
    predict = tw.function(lambda x: model(x, training=False))
    rows = np.random.default_rng(0).random((4, 784), "f4")
    return lambda n: [predict(tw.constant(rows + n))], [model], []


def sigmoid_derivative():
    example = script("sigmoid_derivative")
    derivatives = tw.function(lambda x: example.derivatives(tw.sigmoid, x, 3))
    x = np.linspace(-10, 10, 101, dtype="float32")
    return lambda n: derivatives(tw.constant(x)), [], []


EXAMPLES = [
    compiled_step,
    dcgan_model,
    distributed_loop,
    distributed_mnist,
    gan,
    input_gradient_regularization,
    jacobian_patches,
    mnist_cnn,
    mnist_fit,
    mnist_mlp,
    newton_hessian,
    pinn,
    save_and_reload,
    saved_custom_gradient,
    serve,
    sigmoid_derivative,
    text_lstm,
    wgan_gp,
]


@pytest.fixture
def launches(monkeypatch):
    """All that executables have compiled, by name."""

    def noting(xp, steps):
        found.update({each.name: each for each in steps if hasattr(each, "body")})
        return modules.compiled(xp, steps)

    found = {}
    monkeypatch.setattr(executable, "compiled", noting)
    return found


def test_no_example_is_left_out():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == {make.__name__ for make in EXAMPLES}


@pytest.mark.parametrize("make", EXAMPLES)
def test_an_example_trains_to_the_numbers_of_the_cpu(make, gpu, launches, monkeypatch):
    monkeypatch.setattr(test_examples, "STEPS", 2)
    found = trained(make, eagerly=False)
    assert ("begin_capture",) in driver.log
    with devices.use_module(np), config.use_target("numpy"):
        wanted = trained(make, eagerly=True)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        size = float(np.abs(b).max(initial=1.0))
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=5e-5 * size)
    if not nvrtc.missing():
        turn = EXAMPLES.index(make) % len(nvrtc.ARCHITECTURES)
        compile_launches(launches.values(), nvrtc.ARCHITECTURES[turn:][:1])
