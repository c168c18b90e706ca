"""Code as users write it, and the types that their editors and type checkers see.

``reveal_type(x)  # T``: the checker must find the type ``T`` for ``x``; what runs must be of
that class. ``# error``: the checker must refuse the line. `test_user_code.py` holds both.
"""

# ruff: noqa: E501
# fmt: off

from typing import reveal_type

import numpy as np

import tapewright as tw
from tapewright.core.primitive import primitive
from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike
from tapewright.keras import ops
from tapewright.keras.layers import Dense, Layer
from tapewright.keras.ops import relu

x = tw.constant([[1.0, 2.0], [3.0, 4.0]])
v = tw.Variable([1.0, 2.0], name="v")

# ----------------------------------------------------------------------------- ops

reveal_type(tw.exp)  # Op[(x: TensorLike), Tensor]
reveal_type(tw.add)  # Op[(x: TensorLike, y: TensorLike), Tensor]
reveal_type(tw.reshape)  # Op[(tensor: TensorLike, shape: ShapeLike), Tensor]
reveal_type(tw.reduce_sum)  # Op[(input_tensor: TensorLike, axis: Axes = None, keepdims: bool = False), Tensor]
reveal_type(tw.nn.relu)  # Op[(features: TensorLike), Tensor]
reveal_type(tw.softmax)  # (logits: TensorLike, axis: SupportsIndex = -1, name: str | None = None) -> Tensor
reveal_type(tw.zeros_like)  # (input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor
reveal_type(tw.matmul)  # (a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: DTypeLike | None = None, grad_a: bool = False, grad_b: bool = False, name: str | None = None) -> Tensor

reveal_type(tw.exp(x))  # Tensor
reveal_type(tw.exp([1.0, 2.0]))  # Tensor
reveal_type(tw.exp(np.ones(3)))  # Tensor
reveal_type(tw.exp(x, name="e"))  # Tensor
reveal_type(tw.matmul(x, [[1.0, 2.0]], False, True, name="m"))  # Tensor
reveal_type(tw.reduce_sum(v, 0, True))  # Tensor
reveal_type(tw.reduce_mean(input_tensor=x, axis=[0, -1]))  # Tensor
reveal_type(tw.reshape(x, [-1, tw.constant(2), x.shape[0]]))  # Tensor
reveal_type(tw.cast(x, tw.int32))  # Tensor
reveal_type(tw.zeros([2, 3], dtype="float64"))  # Tensor
reveal_type(tw.stack([x, x], axis=1))  # Tensor
reveal_type(tw.split(x, 2))  # list[Tensor]
reveal_type(tw.where(x > 1.0, x, 0.0))  # Tensor
reveal_type(tw.math.top_k(x).values)  # Tensor
reveal_type(tw.linalg.svd(x))  # tuple[Tensor, Tensor, Tensor]
reveal_type(tw.linalg.svd(x, compute_uv=False))  # Tensor
reveal_type(tw.nn.moments(x, [0]))  # tuple[Tensor, Tensor]
reveal_type(tw.random.normal([2, 3]))  # Tensor
reveal_type(tw.random.Generator.from_seed(1).uniform([2]))  # Tensor
reveal_type(tw.image.flip_left_right(tw.ones([1, 2, 2, 3])))  # Tensor

# ----------------------------------------------------------------- tensors, variables

reveal_type(x + 1)  # Tensor
reveal_type(2.0 * x)  # Tensor
reveal_type([[1.0, 2.0]] @ x)  # Tensor
reveal_type(x * v)  # Tensor
reveal_type(-v)  # Tensor
reveal_type(x == x)  # Tensor
reveal_type(x[0, ..., tw.newaxis])  # Tensor
reveal_type(x.shape)  # TensorShape
reveal_type(x.shape[1:])  # TensorShape
reveal_type(x.dtype)  # DType
reveal_type(x.numpy())  # ndarray[Any, Any]
reveal_type(v)  # Variable
reveal_type(v.assign_add([1.0, 1.0]))  # Variable
reveal_type(v.value())  # Tensor
reveal_type(tw.keras.Variable("ones", (2,)).assign([1.0, 2.0]))  # Variable
reveal_type(float(tw.reduce_sum(v)))  # float
reveal_type(tw.TensorSpec([None, 3], "float32"))  # TensorSpec

# ------------------------------------------------------------------------ gradients

with tw.GradientTape(persistent=True) as tape:
    y = tw.reduce_sum(x * v)
reveal_type(tape)  # GradientTape
reveal_type(tape.gradient(y, v))  # Tensor | Any
reveal_type(tape.gradient(y, [v, v]))  # list[Tensor | Any]
reveal_type(tape.gradient(y, (v, v)))  # tuple[Tensor | Any, ...]
reveal_type(tape.gradient(y, {"v": v}))  # dict[str, Tensor | Any]
reveal_type(tape.jacobian(y, v, unconnected_gradients="zero"))  # Tensor | Any
reveal_type(tape.watched_variables())  # tuple[Variable, ...]
v.assign_sub(0.1 * tape.gradient(y, v))

with tw.autodiff.ForwardAccumulator(v, [1.0, 0.0]) as accumulator:
    w = v * v
reveal_type(accumulator.jvp(w))  # Tensor | Any


@tw.custom_gradient
def clipped(a: tw.Tensor):
    def gradient(g: tw.Tensor):
        return tw.clip_by_norm(g, 1.0)

    return a, gradient


reveal_type(clipped)  # (a: Tensor) -> Tensor
reveal_type(clipped(x))  # Tensor
reveal_type(tw.vectorized_map(tw.exp, x))  # Tensor

# --------------------------------------------------------------- primitives of users


@elementwise(linear=True, zero_when=[{"values"}], cost=(1, 0))
def halved(xp, values: TensorLike):
    return xp.divide(values, 2)


@primitive(name="both_halves", multiple=True, same_dtype=())
def both_halves(xp, values: TensorLike):
    return xp.divide(values, 2), xp.divide(values, 2)


reveal_type(halved)  # Op[(values: TensorLike), Tensor]
reveal_type(both_halves)  # Op[(values: TensorLike), tuple[Tensor, ...]]

# ------------------------------------------------------------------ traced functions


@tw.function
def scaled(a: tw.Tensor, factor: float = 1.0) -> tw.Tensor:
    return a * factor


@tw.function(reduce_retracing=True)
def doubled(a: tw.Tensor):
    return a * 2.0, a


class Model(tw.Module):
    @tw.function
    def call(self, a: tw.Tensor, *, training: bool = False) -> tw.Tensor:
        return a if training else a + 1.0


reveal_type(scaled)  # Function[(a: Tensor, factor: float = 1), Tensor]
reveal_type(scaled(x, factor=2.0))  # Tensor
reveal_type(doubled)  # Function[(a: Tensor), tuple[Tensor, Tensor]]
reveal_type(doubled(x)[1])  # Tensor
reveal_type(Model().call)  # Method[(a: Tensor, *, training: bool = False), Tensor]
reveal_type(Model().call(x, training=True))  # Tensor
reveal_type(Model().trainable_variables)  # tuple[Variable, ...]
reveal_type(tw.cond(y > 0.0, lambda: x, lambda: -x))  # Tensor
reveal_type(tw.TensorArray("float32", size=1).write(0, 1.0).stack())  # Tensor
with tw.device("/CPU:0"), tw.name_scope("scope") as scope:
    reveal_type(scope)  # str

# ------------------------------------------------------------- data sets and training

pairs = tw.data.Dataset.from_tensor_slices((np.ones([4, 2]), np.ones(4))).batch(2)
reveal_type(pairs.shuffle(4).prefetch(1))  # Dataset
reveal_type(iter(pairs))  # DatasetIterator
network = tw.keras.Sequential([tw.keras.Input((2,)), tw.keras.layers.Dense(1)])
network.compile("sgd", "mse")
reveal_type(network.fit(pairs, epochs=1, verbose=0))  # History
reveal_type(network.layers)  # list[Layer]
reveal_type(network.get_layer(index=0).name)  # str
reveal_type(tw.keras.utils.to_categorical([0, 1]))  # ndarray[Any, Any]
tw.keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)

# ------------------------------------------------------------------------ keras.ops

reveal_type(ops.softmax)  # (x: TensorLike, axis: Axes = -1) -> Tensor
reveal_type(ops.reshape)  # (x: TensorLike, newshape: ShapeLike) -> Tensor
reveal_type(ops.cos)  # (x: TensorLike) -> Tensor
reveal_type(ops.arctan2)  # (x1: TensorLike, x2: TensorLike) -> Tensor
reveal_type(ops.mean)  # (x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor
reveal_type(ops.max(x, initial=0.0))  # Tensor
reveal_type(relu(x))  # Tensor
reveal_type(ops.add(x, 1.0))  # Tensor
reveal_type(ops.sum(x, axis=-1, keepdims=True))  # Tensor
reveal_type(ops.nansum(x, axis=0))  # Tensor
reveal_type(ops.split(x, 2))  # list[Tensor]
reveal_type(ops.where(x > 1.0, x, 0.0))  # Tensor
reveal_type(ops.where(x > 1.0))  # tuple[Tensor, ...]
reveal_type(ops.svd(x))  # tuple[Tensor, Tensor, Tensor]
reveal_type(ops.segment_sum([1.0, 2.0], [0, 0]))  # Tensor
reveal_type(ops.max_pool(tw.ones([1, 4, 4, 1]), 2))  # Tensor
reveal_type(ops.image.resize(tw.ones([1, 4, 4, 1]), (2, 2)))  # Tensor
reveal_type(tw.keras.ops.celu(x))  # Tensor
reveal_type(ops.shape(x))  # tuple[Any, ...]

# ---------------------------------------------------- layers, models, and their training

reveal_type(Dense(3))  # Dense
reveal_type(Dense(3)(x))  # Tensor
reveal_type(Dense(3, "relu", kernel_initializer=tw.initializers.HeNormal(), name="d").units)  # int
reveal_type(tw.layers.Dropout(0.5)(x, training=True))  # Tensor
reveal_type(tw.keras.layers.Add()([x, x]))  # Tensor
reveal_type(tw.layers.Dense(2).trainable_variables)  # list[Variable]
reveal_type(tw.layers.Dense(2).get_config())  # dict[str, Any]


class Scale(Layer):
    def build(self, input_shape):
        self.gamma = self.add_weight((input_shape[-1],), "ones", name="gamma")

    def call(self, inputs: tw.Tensor, factor: float = 1.0):
        return inputs * self.gamma * factor, factor


reveal_type(Scale()(x))  # tuple[Tensor, float]
reveal_type(tw.layers.Embedding(4, 2)([1]))  # Tensor
reveal_type(tw.layers.ReversibleEmbedding(4, 2)(x, reverse=True))  # Tensor
reveal_type(tw.losses.MeanSquaredError()(x, x))  # Tensor
reveal_type(tw.losses.huber(x, [[1.0, 1.0], [0.0, 0.0]], delta=2.0))  # Tensor
reveal_type(tw.metrics.Mean()([1.0, 3.0]))  # Tensor
reveal_type(tw.keras.metrics.Mean(name="m").name)  # str
reveal_type(tw.optimizers.Adam())  # Adam
reveal_type(tw.optimizers.OptimizerMap(tw.optimizers.Adam())["dense/kernel"])  # Optimizer
reveal_type(tw.optimizers.Adam(1e-3, clipnorm=1.0).apply_gradients([(v * 0.1, v)]))  # Variable
reveal_type(tw.optimizers.schedules.ExponentialDecay(0.1, 100, 0.9)(3))  # Tensor
reveal_type(tw.initializers.GlorotUniform(seed=1)((2, 3)))  # Tensor
reveal_type(tw.keras.regularizers.L2(0.1)(x))  # Tensor
reveal_type(tw.keras.activations.relu(x, max_value=6.0))  # Tensor
reveal_type(tw.keras.random.normal((2, 3), seed=1))  # Tensor

model = tw.keras.Sequential([Dense(3, activation="relu"), tw.layers.Dense(1)])
reveal_type(model)  # Sequential
reveal_type(tw.data.Dataset.range(3).map(lambda i: i * 2).batch(2))  # Dataset


def wrong_calls():
    Dense("three")  # error
    Dense(3, activations="relu")  # error
    Dense(3, kernel_initializer=None, use_bias="no")  # error
    tw.layers.Dropout(0.5, trainable="no")  # error
    tw.losses.MeanSquaredError(reduction=1)  # error
    tw.losses.MeanSquaredError()(x)  # error
    tw.optimizers.Adam(learning_rate="fast")  # error
    tw.optimizers.Adam(beta1=0.9)  # error
    tw.metrics.Mean(axis=0)  # error
    tw.metrics.BinaryAccuracy(treshold=0.3)  # error
    tw.keras.applications.ConvNeXtTiny(include_tops=False)  # error
    model.fits(x)  # error
    tw.exp(None)  # error
    tw.exp(y=1.0)  # error
    ops.add(x)  # error
    ops.sum(x, axes=0)  # error
    ops.tile(x)  # error
    tw.reduce_sum(x, axes=0)  # error
    tw.reshape(x)  # error
    tw.softmax(x, axis="last")  # error
    tw.zeros_like(x, shape=[2])  # error
    tw.cast(x, 3.5)  # error
    tw.no_such_op(x)  # error
    x.no_such_method()  # error
    v.assign()  # error
    tape.gradient(y)  # error
    clipped(x, 1.0)  # error
    scaled(x, factor="two")  # error
    doubled(b=x)  # error
    primitive(linaer=True)  # error
    primitive(kinds=3)  # error
    elementwise(zero_wen=[{"x"}])  # error
    elementwise(exact="yes")  # error
    Model().call(x, True)  # error
    pairs.batch("two")  # error
    network.fit(pairs, epochs="two")  # error
    network.fit(pairs, epoch=2)  # error
    tw.keras.callbacks.EarlyStopping(patience="two")  # error
