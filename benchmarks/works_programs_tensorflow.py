"""`works_programs` with TensorFlow's and Keras' names, for tapewright and TensorFlow."""

import works_tensorflow
from works import CLASSES, EPSILON, weights_of
from works_programs import (
    BETAS_1,
    LEAK,
    PENALTY,
    RATES,
    SIZES,
    VISCOSITY,
    arrays,
    checked,
)
from works_tensorflow import _resets, _tracer

__all__ = ["make"]

tf = keras = layers = None  # the package; the first call of `make` sets them


def make(name, work, tiny, device, folder):
    """Return ``(step, numbers)`` of a workload; a GPU remains the current device."""
    global tf, keras, layers
    tf = works_tensorflow.load(name, device)
    keras, layers = tf.keras, tf.keras.layers
    data = arrays(work, tiny)
    given = [tf.constant(data[key]) for key in ("x", "y", "z") if key in data]
    train, models = PROGRAMS[work](given, *SIZES[work][tiny])
    optimizers = [
        keras.optimizers.Adam(RATES[work], beta_1=BETAS_1[work], epsilon=EPSILON)
        for _ in models
    ]
    variables = [v for model in models for v in model.trainable_variables]
    by_name = dict(zip(weights_of(data), variables, strict=True))
    for key, variable in by_name.items():
        variable.assign(data[key])
    for optimizer, model in zip(optimizers, models, strict=True):
        optimizer.build(model.trainable_variables)
    train = _tracer(name)(train)

    def step():
        return train(optimizers, *given)

    def numbers(losses):
        sizes = [tf.reduce_sum(tf.abs(by_name[key])) for key in checked(data)]
        return [float(value) for value in (*losses, *sizes)]

    step.wait = lambda losses: losses[-1].numpy()
    return _resets(
        step, [v for m in (*models, *optimizers) for v in m.variables]
    ), numbers


def _update(optimizer, tape, loss, model):
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))


def _classification(model):
    """Return the training step of a model with integer labels."""
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train(optimizers, x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        _update(*optimizers, tape, loss, model)
        return (loss,)

    return train


# ------------------------------------------------------------------------ Transformer


def _gpt(given, batch, length, width, heads, blocks, vocabulary):
    class Embedding(layers.Layer):
        def __init__(self):
            super().__init__()
            self.tokens = layers.Embedding(vocabulary, width)
            self.positions = layers.Embedding(length, width)

        def call(self, x):
            return self.tokens(x) + self.positions(tf.range(x.shape[1]))

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.norm1 = layers.LayerNormalization()
            self.attention = layers.MultiHeadAttention(heads, width // heads)
            self.norm2 = layers.LayerNormalization()
            self.widen = layers.Dense(4 * width, activation="gelu")
            self.narrow = layers.Dense(width)

        def call(self, x):
            y = self.norm1(x)
            x = x + self.attention(y, y, use_causal_mask=True)
            return x + self.narrow(self.widen(self.norm2(x)))

    model = keras.Sequential(
        [
            Embedding(),
            *[Block() for _ in range(blocks)],
            layers.LayerNormalization(),
            layers.Dense(vocabulary),
        ]
    )
    model(given[0])  # creates the weights
    return _classification(model), [model]


# --------------------------------------------------------------- separable convolutions


def _xception(given, batch, side, stem, middle, last):
    def separable(x, size):
        x = layers.SeparableConv2D(size, 3, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    inputs = keras.Input((side, side, 3))
    x = layers.Conv2D(stem, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = residual = layers.Activation("relu")(layers.BatchNormalization()(x))
    for size in middle:
        for _ in range(2):
            x = separable(layers.Activation("relu")(x), size)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        residual = layers.Conv2D(size, 1, strides=2, padding="same")(residual)
        x = residual = layers.add([x, residual])
    x = layers.Activation("relu")(separable(x, last))
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, layers.Dense(CLASSES)(x))
    return _classification(model), [model]


# -------------------------------------------------------------------- gradient penalty


def _wgan_gp(given, batch, side, noise, sizes):
    critic = keras.Sequential([keras.Input((side, side, 1))])
    for size in sizes:
        critic.add(layers.Conv2D(size, 5, strides=2, padding="same"))
        critic.add(layers.LeakyReLU(LEAK))
    critic.add(layers.Flatten())
    critic.add(layers.Dense(1))
    small = side // 2 ** len(sizes)
    seed = small, small, sizes[-1]
    generator = keras.Sequential([keras.Input((noise,))])
    generator.add(layers.Dense(small * small * sizes[-1]))
    generator.add(layers.Reshape(seed))
    for size in reversed(sizes):
        generator.add(layers.BatchNormalization())
        generator.add(layers.LeakyReLU(LEAK))
        generator.add(
            layers.Conv2DTranspose(size, 5, strides=2, padding="same", use_bias=False)
        )
    generator.add(layers.Conv2D(1, 5, padding="same", activation="tanh"))

    def train(optimizers, images, shares, noises):
        made = generator(noises[0], training=True)
        with tf.GradientTape() as tape:
            between = images + shares * (made - images)
            with tf.GradientTape() as inner:
                inner.watch(between)
                scores = critic(between, training=True)
            slopes = inner.gradient(scores, between)
            norms = tf.sqrt(tf.reduce_sum(slopes * slopes, axis=[1, 2, 3]) + 1e-12)
            gap = tf.reduce_mean(critic(made, training=True))
            gap -= tf.reduce_mean(critic(images, training=True))
            loss = gap + PENALTY * tf.reduce_mean((norms - 1.0) ** 2)
        _update(optimizers[0], tape, loss, critic)
        with tf.GradientTape() as tape:
            made = generator(noises[1], training=True)
            of_generator = -tf.reduce_mean(critic(made, training=True))
        _update(optimizers[1], tape, of_generator, generator)
        return loss, of_generator

    return train, [critic, generator]


# --------------------------------------------------------------- differential equation


def _pinn(given, points, boundary, hidden):
    model = keras.Sequential([keras.Input((2,))])
    for units in hidden:
        model.add(layers.Dense(units, activation="tanh"))
    model.add(layers.Dense(1))

    def residual(t, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch([t, x])
                u = model(tf.concat([t, x], axis=1))
            u_t, u_x = inner.gradient(u, [t, x])
        u_xx = outer.gradient(u_x, x)
        return u_t + u * u_x - VISCOSITY * u_xx

    def train(optimizers, inside, known, boundary):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(residual(inside[:, :1], inside[:, 1:]) ** 2)
            loss += tf.reduce_mean((model(boundary) - known) ** 2)
        _update(*optimizers, tape, loss, model)
        return (loss,)

    return train, [model]


PROGRAMS = {"gpt": _gpt, "xception": _xception, "wgan_gp": _wgan_gp, "pinn": _pinn}
