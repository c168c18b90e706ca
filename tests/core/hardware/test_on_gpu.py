"""Facts about GPUs that no stand-in can show: memory, precision, devices, trained weights.

`--device cupy` runs all of them, and `--device strict` those that need no real memory or clock.
"""

import gc

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.settings import config

pytestmark = pytest.mark.gpu_first
layers = tw.keras.layers
RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def on_gpu(device):
    if device == "cpu":
        pytest.skip("a test of GPUs")
    # The stand-in would compile its kernels for minutes, and other tests do so.
    with config.use_target("auto" if device == "cupy" else "numpy"):
        yield


@pytest.fixture
def real(device):
    """CuPy, on a GPU."""
    if device != "cupy":
        pytest.skip("a test of a real GPU")
    import cupy

    return cupy


# ----------------------------------------------------------------------------- memory


@pytest.fixture
def limit(real):
    """Let the pool of memory grow by some MiB."""
    pool = real.get_default_memory_pool()

    def set_limit(size):
        gc.collect()  # cycles hold memory until then
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + (size << 20))

    yield set_limit
    pool.set_limit(size=0)
    pool.free_all_blocks()


def test_an_op_without_memory_names_itself_and_takes_none(real, limit):
    x = tw.ones((1024, 1024))
    limit(64)
    used = real.get_default_memory_pool().used_bytes()
    with pytest.raises(tw.errors.ResourceExhaustedError) as caught:
        tw.concat([x] * 64, 0)
    text = str(caught.value)
    assert text.startswith("concat: Out of memory allocating 268,435,456 bytes")
    assert "by the memory pool" in text and "the batch size" in text
    del caught
    gc.collect()
    assert real.get_default_memory_pool().used_bytes() == used
    assert float(tw.reduce_sum(x)) == 1024 * 1024


def test_a_gradient_without_memory_names_the_op(limit):
    x = tw.Variable(tw.ones((16, 1 << 20)))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(x[:1])
    limit(16)  # the gradient takes 64
    with pytest.raises(
        tw.errors.ResourceExhaustedError, match="^the gradient of getitem: Out"
    ):
        tape.gradient(y, x)
    assert float(tw.reduce_mean(x)) == pytest.approx(1)


def test_a_traced_step_without_memory_leaves_the_variables(limit):
    v = tw.Variable(tw.zeros((256, 1024)))
    optimizer = tw.optimizers.SGD(1.0)
    optimizer.build([v])

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(tw.matmul(x, v))
        optimizer.apply_gradients(zip(tape.gradient(loss, [v]), [v]))
        return tw.matmul(x, v)

    large = tw.ones((48_000, 256))
    step(tw.ones((4, 256)))
    before, count = v.numpy(), int(optimizer.iterations)
    limit(64)
    with pytest.raises(tw.errors.ResourceExhaustedError, match="Out of memory"):
        step(large)  # its result takes 197 MB
    np.testing.assert_array_equal(v.numpy(), before)
    assert int(optimizer.iterations) == count
    step(tw.ones((4, 256)))
    np.testing.assert_array_equal(v.numpy(), before - 4)


def test_more_memory_than_there_is_is_an_error_and_the_next_op_works(real):
    x = tw.ones((1 << 28,))  # 1 GiB
    with pytest.raises(
        tw.errors.ResourceExhaustedError, match="^concat: Out of memory"
    ):
        tw.concat([x] * 256, 0)
    assert float(tw.reduce_mean(x)) == pytest.approx(1)


def test_memory_info_counts_arrays(real):
    info = tw.config.experimental.get_memory_info
    gc.collect()
    before = info("GPU:0")["current"]
    x = tw.ones((1024, 1024))
    assert info("GPU:0")["current"] - before == x.numpy().nbytes


# ---------------------------------------------------------------------------- devices


def test_two_devices_in_one_op_are_named():
    with devices.use_module(np):
        here = tw.constant([1.0, 2.0])
    there = tw.constant([1.0, 2.0])
    for a, b in ((here, there), (there, here)):
        with pytest.raises(tw.errors.InvalidArgumentError) as caught:
            tw.add(a, b)
        assert f"got {a.device}, {b.device}" in str(caught.value)
    assert "GPU:0" in there.device and "CPU:0" in here.device


def test_a_traced_function_names_the_devices_of_its_inputs():
    with devices.use_module(np):
        here = tw.constant([1.0, 2.0])
    there = tw.constant([1.0, 2.0])
    add = tw.function(lambda a, b: a + b)
    with pytest.raises(tw.errors.InvalidArgumentError, match="CPU:0.*GPU:0"):
        add(here, there)
    np.testing.assert_array_equal(add(there, there).numpy(), [2.0, 4.0])


def test_a_gpu_that_is_not_there_is_named_with_those_that_are(real):
    count = real.cuda.runtime.getDeviceCount()
    with pytest.raises(RuntimeError, match=rf"GPU:{count}'.*/CPU:0, /GPU:0"):
        with tw.device(f"GPU:{count}"):
            pass


# -------------------------------------------------------------------------- precision


def product_error(dtype="float32"):
    a, b = RNG.standard_normal((2, 256, 256))
    exact = a @ b
    a, b = [tw.cast(tw.constant(x), dtype) for x in (a, b)]
    products = tw.matmul(a, b), tw.function(tw.matmul)(a, b)
    norm = np.linalg.norm
    found = [tw.cast(x, "float64").numpy() for x in products]
    return [norm(x - exact) / norm(exact) for x in found]


def test_products_are_float32_unless_tensor_float_32_is_enabled(real):
    switch = tw.config.experimental.enable_tensor_float_32_execution
    assert max(product_error()) < 1e-6
    switch(True)
    try:
        errors = product_error()
        assert 1e-5 < min(errors) and max(errors) < 2e-3
    finally:
        switch(False)
    assert max(product_error()) < 1e-6


@pytest.mark.parametrize("dtype, unit", [("float16", 2**-11), ("bfloat16", 2**-8)])
def test_products_of_halves_accumulate_in_float32(dtype, unit):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    assert max(product_error(dtype)) < 2 * unit


# ------------------------------------------------------------------------- the profiler


def test_a_profile_has_the_times_of_the_gpu(real):
    x = tw.ones((4096, 4096))
    y = tw.matmul(x, x)  # loads the library
    with tw.profiler.trace(table=False) as profile:
        for _ in range(3):
            y = tw.matmul(x, x)
    y.numpy()
    (row,) = [row for row in profile.rows if row.category == "gpu"]
    assert row.calls == 3
    # 137 GFLOP a product: from 1,000 TFLOP/s down to 100 GFLOP/s, in microseconds.
    assert 3 * 137 < row.total < 3 * 1_370_000


# ---------------------------------------------------------------------- trained weights


def image_net(*middle):
    return [tw.Input((8, 8, 3)), *middle, layers.GlobalAveragePooling2D()]


def sequence_net(*middle):
    return [tw.Input((6, 8)), *middle]


NETS = {
    "dense": lambda: [tw.Input((12,)), layers.Dense(16, "relu")],
    "gelu": lambda: [tw.Input((12,)), layers.Dense(16, "gelu")],
    "layer norm": lambda: [tw.Input((12,)), layers.LayerNormalization()],
    "dropout": lambda: [tw.Input((12,)), layers.Dense(16), layers.Dropout(0.5)],
    "convolutions": lambda: image_net(
        layers.Conv2D(4, 3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.Activation("relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(6, 3, strides=2, padding="same"),
    ),
    "separable": lambda: image_net(
        layers.SeparableConv2D(6, 3, padding="same"), layers.GroupNormalization(3)
    ),
    "transposed": lambda: image_net(
        layers.Conv2DTranspose(4, 4, strides=2, padding="same"),
        layers.AveragePooling2D(2),
    ),
    "lstm": lambda: sequence_net(layers.LSTM(5)),
    "gru": lambda: sequence_net(layers.Bidirectional(layers.GRU(5))),
    "embedding": lambda: [
        tw.Input((6,), dtype="int32"),
        layers.Embedding(20, 8),
        layers.Conv1D(8, 3, activation="tanh"),
        layers.GlobalMaxPooling1D(),
    ],
    "attention": lambda: sequence_net(Attending(), layers.GlobalAveragePooling1D()),
}
OPTIMIZERS = {
    "adam": lambda: tw.optimizers.Adam(0.01, clipnorm=1.0),
    "sgd": lambda: tw.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "lamb": lambda: tw.optimizers.Lamb(0.01, global_clipnorm=1.0),
}


class Attending(tw.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4)

    def call(self, x):
        return x + self.attention(x, x, use_causal_mask=True)


def trained(net, optimizer, policy="float32"):
    """Return the losses of three steps, and what the model predicts afterwards.

    Weights are not compared: those without an effect, such as the bias of keys, have rounding
    errors as gradients.
    """
    tw.keras.utils.set_random_seed(1)
    tw.keras.config.set_dtype_policy(policy)
    try:
        head = layers.Dense(4, dtype="float32")
        model = tw.keras.Sequential([*NETS[net](), head])
    finally:
        tw.keras.config.set_dtype_policy(None)
    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(OPTIMIZERS[optimizer](), loss)
    rng = np.random.default_rng(3)
    shape = (16, *model.input_shape[1:])
    integers = model.inputs[0].dtype == "int32"
    x = rng.integers(20, size=shape) if integers else rng.standard_normal(shape, "f4")
    losses = [model.train_on_batch(x, rng.integers(4, size=16)) for _ in range(3)]
    return [*map(float, losses)], model.predict_on_batch(x)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("net", NETS)
def test_training_gives_the_results_of_the_cpu(net, optimizer):
    losses, found = trained(net, optimizer)
    with devices.use_module(np):
        wanted, expected = trained(net, optimizer)
    np.testing.assert_allclose(losses, wanted, 1e-4)
    np.testing.assert_allclose(found, expected, 1e-3, 1e-4)


@pytest.mark.parametrize("net", ["dense", "convolutions", "attention"])
def test_mixed_precision_trains_as_float32_does(net):
    losses, found = trained(net, "adam", "mixed_float16")
    wanted, expected = trained(net, "adam")
    np.testing.assert_allclose(losses, wanted, 2e-2)
    np.testing.assert_allclose(found, expected, 0, 0.05)
