"""Classes of a user's, as they were when the files were written.

None is changed later, others are added.
"""

import numpy as np

import tapewright as tw

layers = tw.keras.layers
register = tw.keras.saving.register_keras_serializable(package="golden")


@register
class Scale(layers.Layer):
    """``inputs * factor * gamma``, with a penalty and a weight that is not trained."""

    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, input_shape):
        self.gamma = self.add_weight((input_shape[-1],), "ones", name="gamma")
        self.calls = self.add_weight((), "zeros", name="calls", trainable=False)
        self.inner = layers.Dense(input_shape[-1], name="inner")
        self.inner.build(input_shape)

    def call(self, inputs):
        self.add_loss(0.01 * tw.reduce_sum(self.gamma**2))
        return self.inner(inputs) * self.factor * self.gamma

    def get_config(self):
        return super().get_config() | {"factor": self.factor}


@register
class Packed(layers.Layer):
    """Keeps its weights in files in a way of its own."""

    def build(self, input_shape):
        self.shift = self.add_weight((input_shape[-1],), "zeros", name="shift")

    def call(self, inputs):
        return inputs + self.shift

    def save_own_variables(self, store):
        store["halves"] = self.shift.numpy() / 2

    def load_own_variables(self, store):
        self.shift.assign(np.asarray(store["halves"]) * 2)


@register
class Pair(tw.keras.Model):
    """A subclassed model, with layers in a list and a dict, and a metric of its own."""

    def __init__(self, units=3, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.steps = [layers.Dense(units, "tanh", name="a"), Scale(1.5, name="s")]
        self.named = {"last": layers.Dense(1, name="last")}
        self.largest = tw.keras.metrics.Mean(name="largest")

    def call(self, inputs):
        for step in self.steps:
            inputs = step(inputs)
        return self.named["last"](inputs)

    def get_config(self):
        return super().get_config() | {"units": self.units}


@register
def cubed_error(y_true, y_pred):
    return tw.reduce_mean(tw.abs(y_true - y_pred) ** 3, axis=-1)


@register
class Span(tw.keras.metrics.Metric):
    """The largest prediction less the smallest."""

    def __init__(self, name="span", **kwargs):
        super().__init__(name=name, **kwargs)
        self.high = self.add_weight(name="high", initializer="zeros")
        self.low = self.add_weight(name="low", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.high.assign(tw.maximum(self.high, tw.reduce_max(y_pred)))
        self.low.assign(tw.minimum(self.low, tw.reduce_min(y_pred)))

    def result(self):
        return self.high - self.low


class Clipped(layers.Layer):
    """Not registered: gradients of its own, clipped; in training it scales twice."""

    def build(self, input_shape):
        self.scale = self.add_weight((input_shape[-1],), "ones", name="scale")
        self.drop = layers.Dropout(0.5, seed=3)

    def call(self, inputs, training=None):
        @tw.custom_gradient
        def scaled(x):
            def gradient(g, variables=None):
                return g * g * x, [tw.reduce_sum(3.0 * g * x, axis=0)]

            return x * self.scale, gradient

        once = scaled(self.drop(inputs, training=training))
        return scaled(once) if training else once


class Counter:
    """Has a state of its own."""

    def __init__(self, value=0):
        self.value, self.history = value, {}

    def get_state(self):
        return {
            "value": self.value, "history": self.history, 3: (None, float("inf")),
            "array": np.arange(3) + self.value,
        }  # fmt: skip

    def set_state(self, state):
        self.value, self.history = state["value"], state["history"]
        self.array = state["array"]


class Tower(tw.Module):
    """Nested modules, lists, dicts, private attributes, a generator."""

    def __init__(self, fill=0.0):
        super().__init__()
        self.w = tw.Variable(np.full((2, 2), fill, np.float32), name="w")
        self._hidden = tw.Variable(fill, name="hidden")
        self.parts = [tw.Module(), {"a/b": tw.Variable([fill] * 3), "..": [self.w]}]
        self.parts[0].bias = tw.Variable(np.full(2, fill), name="bias")
        self.draws = tw.random.Generator.from_seed(int(fill) + 5)
        self.table = {1: tw.Variable(int(fill)), "two": (tw.Variable(fill > 0),)}
