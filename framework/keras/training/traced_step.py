"""`TracedStep`: `train_step`, `test_step` or `predict_step` of a model as a traced function."""

import weakref

from tapewright.compiler.function.function import Function

__all__ = ["TracedStep", "TracedSteps"]

# After so many traces a step is traced for all sizes.
TRACES = 4


class TracedSteps:
    """The traced steps of a model, ``by_name``; copies and pickles have none."""

    def __init__(self):
        self.by_name = {}

    def __getstate__(self):
        return {"by_name": {}}


class TracedStep:
    """A step of a model, traced for each size of batch, later once for all sizes."""

    def __init__(self, model, name):
        self._method = method = weakref.WeakMethod(getattr(model, name))

        def step(data):
            return method()(data)

        step.__name__ = name
        self._trained = None  # the layers, once the first trace has built them
        self._exact = Function(step)
        self._exact.retraces.warned = True  # there are few more than `TRACES`
        self._for_all_sizes = Function(step, reduce_retracing=True)

    def __call__(self, data):
        if self._exact.experimental_get_tracing_count() >= TRACES:
            return self._for_all_sizes(data)
        answer = self._exact(data)
        if self._trained is None:
            self._trained = _trained(self._method().__self__)
        return answer

    def holds(self, model):
        """Return whether the model has the same layers, and trainable ones, as when traced."""
        return self._trained is None or self._trained == _trained(model)


def _trained(model):
    """Weak references to all layers, each with whether it trains."""
    return [(weakref.ref(layer), layer._trainable) for layer, _ in model._walk()]
