"""Implementation of the external benchmark: TensorFlow's, with another import.

Add this folder to the PYTHONPATH of the benchmark's runner. Variants: ``eager``,
``function``. An epoch of `fit`, saving and loading use Keras' file in the same way.
"""

import sys

import tapewright

sys.modules["tensorflow"] = tapewright
sys.modules["keras"] = tapewright.keras

import impl_keras  # noqa: E402
import impl_tf  # noqa: E402


class Jacobian(impl_tf.Jac):
    """Traced Jacobian, with tensors as arguments: constants would be folded."""

    def __init__(self, workload, data, variant):
        tensors = {name: tapewright.constant(value) for name, value in data.items()}
        keys = ("x", "k") if workload == "W5_hessian" else ("x", "w1", "b1", "w2", "b2")
        self.inputs = [tensors[key] for key in keys]

        def jacobian(x, w1, b1, w2, b2):
            with tapewright.GradientTape() as tape:
                tape.watch(x)
                hidden = tapewright.nn.elu(tapewright.matmul(x, w1) + b1)
                y = tapewright.nn.elu(tapewright.matmul(hidden, w2) + b2)
            if workload == "W5_bjac_large":
                return tape.batch_jacobian(y, x)
            return tape.jacobian(y, x)

        def hessian(x, k):
            with tapewright.GradientTape() as outer:
                outer.watch(k)
                with tapewright.GradientTape() as inner:
                    inner.watch(k)
                    y = tapewright.tanh(tapewright.matmul(x, k))
                    loss = tapewright.reduce_mean(y**2)
                g = inner.gradient(loss, k)
            return outer.jacobian(g, k)

        traced = hessian if workload == "W5_hessian" else jacobian
        self.fn = tapewright.function(traced)

    def run(self, n):
        for _ in range(n):
            self.J = self.fn(*self.inputs)
        self.J.numpy()


def build(workload, data, variant):
    """Return the workload, or None if this version does not support it."""
    if workload.startswith("W9"):
        return impl_keras.Epoch(data) if variant == "function" else None
    if workload.startswith("W7"):
        load = workload == "W7_load"
        return impl_keras.SaveLoad(data, load) if variant == "function" else None
    if variant == "function" and workload.startswith("W5"):
        return Jacobian(workload, data, variant)
    return impl_tf.build(workload, data, variant)
