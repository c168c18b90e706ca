"""Families of layers, each implemented for Keras, torch and JAX.

The inputs and weights of a `Layer` have Keras' layouts. torch gets them in its fastest
layouts: for convolutions and pooling, channels first, as views of memory with channels last.
If "same" padding is odd, Keras adds more at the end, torch at the start: torch gets mirrored
images and kernels, so that both compute the same result.
"""

import math

import numpy as np

__all__ = [
    "Attention",
    "Convolution",
    "Dense",
    "Embedding",
    "Entrywise",
    "Join",
    "Layer",
    "Normalization",
    "Pooling",
    "Recurrent",
]

PLAIN = (None, ())  # layout: permutation to torch's order, axes to mirror
EPSILON = 1e-3


class Layer:
    """A layer of a given size; base class of all families.

    Attributes:
        name: Name of the class in Keras.
        shape: Shape of the input.
        units: Units of the output, if the family has them.
        layouts: Layouts of the inputs, followed by the layouts of the weights.

    A family implements Keras' class for the peers in the methods ``torch(torch, *tensors)``
    and ``jax(jax, *tensors)``; the tensors are inputs, followed by weights.
    """

    has_units = integers = False
    comparable = True  # results are deterministic
    mirrored = True  # for torch
    call_arguments = {}
    product = 0  # multiplications and additions in a forward pass

    def __init__(self, name, size, **arguments):
        self.name, self.arguments = name, arguments
        *self.shape, self.units = size if self.has_units else (*size, None)
        self.build()

    def build(self):
        """Set the attributes that follow from the sizes."""

    def inputs(self, rng):
        return [rng.standard_normal(self.shape, "f4")]

    def weights(self, rng):
        """Return kernels that preserve the variance of inputs, and small biases."""
        shapes = self.weight_shapes()
        return [rng.standard_normal(s, "f4") * self.scale(s) for s in shapes]

    def weight_shapes(self):
        return []

    def scale(self, shape):
        fan = math.prod(shape[:-1])
        return np.float32(1 / math.sqrt(fan) if len(shape) > 1 else 0.1)

    def keras(self, layers):
        return getattr(layers, self.name)(**self.arguments)

    def keras_call(self, layer, inputs):
        return layer(*inputs, **self.call_arguments)

    @property
    def layouts(self):
        return [PLAIN] * (1 + len(self.weight_shapes()))

    @property
    def output_layout(self):
        return PLAIN

    def for_torch(self, arrays):
        """Return inputs and weights in torch's layouts."""
        return [to_torch(a, layout) for a, layout in zip(arrays, self.layouts)]

    def from_torch(self, gradients):
        """Return gradients in Keras' layouts; trailing weights may be omitted."""
        pairs = zip(gradients, self.layouts)
        return [from_torch(g, layout) for g, layout in pairs if g is not None]


def to_torch(array, layout):
    import torch

    permutation, mirrored = layout
    array = torch.from_numpy(np.flip(array, mirrored).copy())
    if permutation is None:
        return array
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    memory_format = formats.get(array.ndim, torch.contiguous_format)
    return array.permute(permutation).contiguous(memory_format=memory_format)


def from_torch(tensor, layout):
    permutation, mirrored = layout
    array = tensor.detach().numpy()
    if permutation is not None:
        array = array.transpose(np.argsort(permutation))
    return np.flip(array, mirrored)


class Image(Layer):
    """A layer over ``[batch, *spatial, channels]``."""

    @property
    def rank(self):
        return len(self.shape) - 2

    @property
    def image_layout(self):
        spatial = tuple(range(1, self.rank + 1))
        return (0, self.rank + 1, *spatial), spatial if self.mirrored else ()

    @property
    def layouts(self):
        return [self.image_layout, *super().layouts[1:]]

    @property
    def output_layout(self):
        return self.image_layout


class Convolution(Image):
    """Convolutions, selected by Keras' class and arguments, with "same" padding."""

    has_units = True

    def build(self):
        given = self.arguments
        self.depthwise = self.name.startswith(("Depthwise", "Separable"))
        self.transposed = self.name.endswith("Transpose")
        self.window = (given["kernel_size"],) * self.rank
        self.stride = given.get("strides", 1)
        self.dilation = given.get("dilation_rate", 1)
        self.groups = self.shape[-1] if self.depthwise else given.get("groups", 1)
        if self.name.startswith("Depthwise"):
            self.units = self.shape[-1]
        else:
            self.arguments = {"filters": self.units, **given}
        self.arguments["padding"] = "same"

    def weight_shapes(self):
        channels, units = self.shape[-1], self.units
        kernel = (*self.window, channels // self.groups, units)
        if self.transposed:
            kernel = (*self.window, units, channels)
        if not self.depthwise:
            return [kernel, (units,)]
        kernel = (*self.window, channels, 1)
        if self.name.startswith("Depthwise"):
            return [kernel, (channels,)]
        return [kernel, (*(1,) * self.rank, channels, units), (units,)]

    def scale(self, shape):
        if self.depthwise and shape[-1] == 1:
            return np.float32(1 / math.sqrt(math.prod(self.window)))
        return super().scale(shape)

    @property
    def product(self):
        # Each kernel entry is applied at each output position (transposed: input position).
        positions = math.prod(self.shape[:-1])
        if not self.transposed:
            sides = [-(-n // self.stride) for n in self.shape[1:-1]]
            positions = self.shape[0] * math.prod(sides)
        return positions * sum(math.prod(s) for s in self.weight_shapes() if len(s) > 1)

    @property
    def layouts(self):
        n = self.rank
        spatial = tuple(range(n))
        mirrored = spatial if self.mirrored else ()
        kernels = [((n + 1, n, *spatial), mirrored)] * (len(self.weight_shapes()) - 1)
        if self.depthwise:
            kernels[0] = (n, n + 1, *spatial), mirrored
        return [self.image_layout, *kernels, PLAIN]

    def torch(self, torch, x, kernel, *others):
        functional, bias = torch.nn.functional, others[-1]
        if self.transposed:
            convolve = getattr(functional, f"conv_transpose{self.rank}d")
            padding = (self.window[0] - self.stride) // 2
            return convolve(x, kernel, bias, self.stride, padding)
        convolve = getattr(functional, f"conv{self.rank}d")
        side, covered = self.shape[1], self.dilation * (self.window[0] - 1) + 1
        missing = (-(-side // self.stride) - 1) * self.stride + covered - side
        if missing < 0 and self.mirrored:  # outside of Keras' windows
            x = x[(..., *[slice(-missing, None)] * self.rank)]
        padding = (max(missing, 0) + 1) // 2
        further = self.stride, padding, self.dilation, self.groups
        if len(others) == 1:
            return convolve(x, kernel, bias, *further)
        return convolve(convolve(x, kernel, None, *further), *others)

    def jax(self, jax, x, kernel, *others):
        spatial, lax = "DHW"[-self.rank :], jax.lax
        numbers = f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"
        strides = (self.stride,) * self.rank
        if self.transposed:
            return others[0] + lax.conv_transpose(
                x,
                kernel,
                strides,
                "SAME",
                dimension_numbers=numbers,
                transpose_kernel=True,
            )
        if self.depthwise:
            kernel = kernel.reshape((*self.window, 1, -1))
        x = lax.conv_general_dilated(
            x,
            kernel,
            strides,
            "SAME",
            rhs_dilation=(self.dilation,) * self.rank,
            dimension_numbers=numbers,
            feature_group_count=self.groups,
        )
        if len(others) == 2:
            x = x @ others[0].reshape(others[0].shape[-2:])
        return x + others[-1]


class Pooling(Image):
    """Maximum and average pooling, over windows with "same" padding or globally."""

    def build(self):
        self.mean, self.all = "Average" in self.name, self.name.startswith("Global")
        if not self.all:
            self.window = self.arguments["pool_size"]
            self.stride = self.arguments.get("strides", self.window)
            self.arguments["padding"] = "same"

    @property
    def output_layout(self):
        return PLAIN if self.all else self.image_layout

    def torch(self, torch, x):
        if self.all:
            return x.mean((2, 3)) if self.mean else x.amax((2, 3))
        functional = torch.nn.functional
        given = self.window, self.stride, (self.window - 1) // 2
        if self.mean:
            return functional.avg_pool2d(x, *given, count_include_pad=False)
        return functional.max_pool2d(x, *given)

    def jax(self, jax, x):
        if self.all:
            return x.mean((1, 2)) if self.mean else x.max((1, 2))
        lax = jax.lax
        window = (1, self.window, self.window, 1), (1, self.stride, self.stride, 1)
        if not self.mean:
            return lax.reduce_window(x, -np.inf, lax.max, *window, "SAME")
        sums = lax.reduce_window(x, 0.0, lax.add, *window, "SAME")
        ones = np.ones((1, *x.shape[1:-1], 1), "f4")
        return sums / lax.reduce_window(ones, 0.0, lax.add, *window, "SAME")


class Normalization(Image):
    """Layer, batch (in training mode) and group normalization."""

    def build(self):
        self.arguments = {"epsilon": EPSILON, **self.arguments}
        if self.name == "BatchNormalization":
            self.call_arguments = {"training": True}

    @property
    def image_layout(self):
        return PLAIN if self.name == "LayerNormalization" else super().image_layout

    def weights(self, rng):
        gamma, beta = rng.standard_normal((2, self.shape[-1]), "f4") * np.float32(0.1)
        return [1 + gamma, beta]

    def weight_shapes(self):
        return [(self.shape[-1],)] * 2

    def torch(self, torch, x, gamma, beta):
        functional = torch.nn.functional
        if self.name == "LayerNormalization":
            return functional.layer_norm(x, x.shape[-1:], gamma, beta, EPSILON)
        if self.name == "GroupNormalization":
            groups = self.arguments["groups"]
            return functional.group_norm(x, groups, gamma, beta, EPSILON)
        moving = torch.zeros_like(beta), torch.ones_like(gamma)
        return functional.batch_norm(x, *moving, gamma, beta, True, 0.01, EPSILON)

    def jax(self, jax, x, gamma, beta):
        shape, axes = x.shape, (-1,)
        if self.name == "BatchNormalization":
            axes = tuple(range(x.ndim - 1))
        if self.name == "GroupNormalization":
            x = x.reshape((*shape[:-1], self.arguments["groups"], -1))
            axes = (*range(1, x.ndim - 2), x.ndim - 1)
        x = x - x.mean(axes, keepdims=True)
        x = x * jax.lax.rsqrt((x * x).mean(axes, keepdims=True) + EPSILON)
        return x.reshape(shape) * gamma + beta


class Dense(Layer):
    """Matrix product with an activation."""

    has_units = True

    def build(self):
        self.activation = self.arguments.get("activation")
        self.arguments = {"units": self.units, **self.arguments}
        self.product = math.prod(self.shape) * self.units

    def weight_shapes(self):
        return [(self.shape[-1], self.units), (self.units,)]

    def for_torch(self, arrays):
        x, kernel, bias = super().for_torch(arrays)
        return [x, kernel.T.contiguous(), bias]

    def from_torch(self, gradients):
        x, kernel, bias = gradients
        return super().from_torch([x, kernel.T, bias])

    def torch(self, torch, x, kernel, bias):
        functional = torch.nn.functional
        x = functional.linear(x, kernel, bias)
        return getattr(functional, self.activation)(x) if self.activation else x

    def jax(self, jax, x, kernel, bias):
        x = x @ kernel + bias
        return entrywise(jax, self.activation, x) if self.activation else x


def entrywise(jax, name, x):
    further = {"approximate": False} if name == "gelu" else {}
    return getattr(jax.nn, name)(x, **further)


class Entrywise(Layer):
    """Activations, softmax and dropout: one input, no weights."""

    def build(self):
        self.activation = self.arguments.get("activation")
        if self.name == "Dropout":
            self.comparable, self.call_arguments = False, {"training": True}

    def torch(self, torch, x):
        if self.name == "Dropout":
            return torch.nn.functional.dropout(x, self.arguments["rate"])
        if self.name == "Softmax":
            return torch.softmax(x, -1)
        if self.name == "LeakyReLU":
            return torch.nn.functional.leaky_relu(x, self.arguments["negative_slope"])
        return getattr(torch.nn.functional, self.activation)(x)

    def jax(self, jax, x):
        if self.name == "Softmax":
            return jax.nn.softmax(x)
        if self.name == "LeakyReLU":
            return jax.nn.leaky_relu(x, self.arguments["negative_slope"])
        if self.name != "Dropout":
            return entrywise(jax, self.activation, x)
        kept = 1 - self.arguments["rate"]
        # The key depends on an input; otherwise the mask would be a compile-time constant.
        key = jax.random.key(x.ravel()[0].astype("i4"))
        return jax.numpy.where(jax.random.bernoulli(key, kept, x.shape), x / kept, 0)


class Join(Image):
    """Addition of two inputs, or concatenation along the channels."""

    def inputs(self, rng):
        return [*super().inputs(rng), *super().inputs(rng)]

    def keras_call(self, layer, inputs):
        return layer(inputs)

    @property
    def image_layout(self):
        return super().image_layout if self.rank > 1 else PLAIN

    @property
    def layouts(self):
        return [self.image_layout] * 2

    def torch(self, torch, a, b):
        channels = 1 if self.rank > 1 else -1
        return a + b if self.name == "Add" else torch.cat((a, b), channels)

    def jax(self, jax, a, b):
        return a + b if self.name == "Add" else jax.numpy.concatenate((a, b), -1)


class Embedding(Layer):
    """Embedding with a dense gradient; sizes: batch, time, rows, columns."""

    has_units = integers = True

    def build(self):
        *self.shape, self.rows = self.shape
        self.arguments = {"input_dim": self.rows, "output_dim": self.units}

    def inputs(self, rng):
        return [rng.integers(self.rows, size=self.shape, dtype="i4")]

    def weight_shapes(self):
        return [(self.rows, self.units)]

    def torch(self, torch, x, table):
        return torch.nn.functional.embedding(x, table)

    def jax(self, jax, x, table):
        return jax.numpy.asarray(table)[x]


class Recurrent(Layer):
    """LSTM, GRU and SimpleRNN over ``[batch, time, channels]``."""

    has_units = True
    GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}

    def build(self):
        self.arguments = {
            "units": self.units,
            "return_sequences": True,
        } | self.arguments
        self.times = slice(None) if self.arguments["return_sequences"] else -1
        self.product = math.prod(self.shape[:-1]) * sum(
            math.prod(s) for s in self.weight_shapes()[:2]
        )

    def weight_shapes(self):
        width = self.GATES[self.name] * self.units
        bias = (2, width) if self.name == "GRU" else (width,)
        return [(self.shape[-1], width), (self.units, width), bias]

    def for_torch(self, arrays):
        """Return transposed kernels, two biases, and gates in torch's order."""
        x, kernel, recurrent, bias = arrays
        biases = [bias, np.zeros_like(bias)]
        if self.name == "GRU":
            biases = list(bias)
        weights = [kernel.T, recurrent.T, *biases]
        if self.name == "GRU":
            n = self.units
            order = np.r_[n : 2 * n, :n, 2 * n : 3 * n]
            weights = [w[order] for w in weights]
        return [to_torch(a, PLAIN) for a in (x, *weights)]

    def from_torch(self, gradients):
        return super().from_torch(gradients[:1])

    def torch(self, torch, x, *weights):
        names = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "rnn_tanh"}
        start = x.new_zeros((1, x.shape[0], self.units))
        start = (start, start) if self.name == "LSTM" else start
        further = True, 1, 0.0, True, False, True  # biases, layers, ..., batch first
        h = getattr(torch, names[self.name])(x, start, weights, *further)[0]
        return h[:, self.times]

    def jax(self, jax, x, kernel, recurrent, bias):
        jnp, sigmoid = jax.numpy, jax.nn.sigmoid
        bias = bias if self.name == "GRU" else (bias, 0)
        projected = jnp.swapaxes(x @ kernel + bias[0], 0, 1)

        def lstm(state, z):
            h, c = state
            i, f, g, o = jnp.split(z + h @ recurrent, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        def gru(h, z):
            update, reset, new = jnp.split(z, 3, -1)
            u, r, n = jnp.split(h @ recurrent + bias[1], 3, -1)
            update = sigmoid(update + u)
            h = update * h + (1 - update) * jnp.tanh(new + sigmoid(reset + r) * n)
            return h, h

        def simple(h, z):
            h = jnp.tanh(z + h @ recurrent)
            return h, h

        cell = {"LSTM": lstm, "GRU": gru, "SimpleRNN": simple}[self.name]
        start = jnp.zeros((x.shape[0], self.units))
        start = (start, start) if self.name == "LSTM" else start
        h = jax.lax.scan(cell, start, projected)[1]
        return jnp.swapaxes(h, 0, 1)[:, self.times]


class Attention(Layer):
    """Self-attention with several heads; sizes: batch, time, channels, heads."""

    has_units = True

    def build(self):
        batch, time, channels = self.shape
        self.arguments = {"num_heads": self.units, "key_dim": channels // self.units}
        self.product = batch * time * channels * (4 * channels + 2 * time)

    def weight_shapes(self):
        channels, heads = self.shape[-1], self.units
        split = heads, channels // heads
        return [(channels, *split), split] * 3 + [(*split, channels), (channels,)]

    def scale(self, shape):
        channels = self.shape[-1]
        return np.float32(1 / math.sqrt(channels) if len(shape) == 3 else 0.1)

    def keras_call(self, layer, inputs):
        return layer(*inputs, *inputs)

    def for_torch(self, arrays):
        """Return joint projections of queries, keys and values, as in torch."""
        x, *pairs, out, bias = arrays
        n = self.shape[-1]
        kernel = np.concatenate([w.reshape(n, n) for w in pairs[::2]], 1)
        joined = np.concatenate([b.reshape(n) for b in pairs[1::2]])
        weights = kernel.T, joined, out.reshape(n, n).T, bias
        return [to_torch(a, PLAIN) for a in (x, *weights)]

    def from_torch(self, gradients):
        return super().from_torch(gradients[:1])

    def torch(self, torch, x, kernel, joined, out, bias):
        functional = torch.nn.functional
        h = functional.linear(x, kernel, joined)
        parts = h.view(*x.shape[:2], 3, self.units, -1).permute(2, 0, 3, 1, 4)
        h = functional.scaled_dot_product_attention(*parts)
        return functional.linear(h.transpose(1, 2).reshape(x.shape), out, bias)

    def jax(self, jax, x, *weights):
        *pairs, out, bias = weights
        einsum = jax.numpy.einsum
        pairs = zip(pairs[::2], pairs[1::2])
        q, k, v = [einsum("btn,nhd->bthd", x, w) + b for w, b in pairs]
        x = jax.nn.dot_product_attention(q, k, v)
        return einsum("bthd,hdn->btn", x, out) + bias
