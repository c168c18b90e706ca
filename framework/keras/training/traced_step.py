"""`TracedStep`: the training, test or prediction step of a model as a traced function."""

import weakref

from tapewright.compiler.function.function import Function
from tapewright.core.interpreters import converted
from tapewright.core.nest import flatten
from tapewright.core.state.replica_context import in_replica_context, replica_context

# After so many traces a step is traced for all sizes.
_TRACES = 4


class TracedSteps:
    """The traced steps of a model, ``by_name``; copies and pickles do not include them."""

    def __init__(self):
        self.by_name = {}

    def __getstate__(self):
        return {"by_name": {}}


class TracedStep:
    """A step of a model, traced for each batch size at first, then once for all sizes.

    In a replica context the replica's share of the batch is an input of the traces;
    steps of idle replicas are traced separately. `execute_steps` traces consecutive
    steps as one function.
    """

    def __init__(self, model, name):
        self._model, self._name = weakref.ref(model), name
        self._trained = None  # the layers, once the first trace has built them
        self._traces = _Traces(self._step(), name)
        self._of_replicas = {}  # context without its share -> traces
        self._of_groups = _Traces(self._steps(), name)

    def __call__(self, data):
        context = replica_context()
        if context is None:
            answer = self._traces(data)
        else:
            with in_replica_context(None):  # the share comes as an argument
                answer = self._for_replica(context)(data, context.share)
        self._note_layers()
        return answer

    def execute_together(self, batches):
        """Run the step for each of the batches in one trace; return the result of the last."""
        answer = self._of_groups(batches)
        self._note_layers()
        return answer

    @property
    def steps_per_execution(self):
        """The number of steps in one trace, as the model has it."""
        return self._model().steps_per_execution

    def _note_layers(self):
        if self._trained is None:
            self._trained = _trained(self._model())

    def _step(self):
        model, name = self._model, self._name
        return lambda data: converted(getattr(model(), name))(data)

    def _steps(self):
        step = self._step()

        def steps(batches):
            for batch in batches:
                answer = step(batch)
            return answer

        return steps

    def _for_replica(self, context):
        constant = context._replace(share=None)
        traces = self._of_replicas.get(constant)
        if traces is None:
            step = self._step()

            def replica_step(data, share):
                with in_replica_context(constant._replace(share=share)):
                    return step(data)

            traces = self._of_replicas[constant] = _Traces(replica_step, self._name)
        return traces

    def is_up_to_date(self, model):
        """Return whether layers, trainable flags and constants are the same as when traced."""
        return self._trained is None or self._trained == _trained(model)


def execute_steps(step, batches):
    """Run a step for each batch, in order; return the result of the last.

    ``steps_per_execution`` batches of equal shapes are one call of a `TracedStep`.
    """
    if len(batches) > 1 and isinstance(step, TracedStep):
        are_alike = all([_specs(batch) == _specs(batches[0]) for batch in batches])
        if are_alike and len(batches) == step.steps_per_execution:
            return step.execute_together(batches)
    for batch in batches:
        answer = step(batch)
    return answer


def _specs(batch):
    return [
        leaf if leaf is None else (leaf.shape, leaf.dtype) for leaf in flatten(batch)
    ]


class _Traces:
    """A function that is traced for each size of its arguments, later once for all sizes."""

    def __init__(self, function, name):
        function.__name__ = name
        self._exact = Function(function)
        self._exact.retraces.warned = True  # there are few more than `_TRACES`
        self._for_all_sizes = Function(function, reduce_retracing=True)

    def __call__(self, *args):
        if self._exact.experimental_get_tracing_count() >= _TRACES:
            return self._for_all_sizes(*args)
        return self._exact(*args)


def _trained(model):
    """Return weak references to all layers, each with its trainable flag and version."""
    return [
        (weakref.ref(layer), layer._trainable, layer._tw_constants_version)
        for layer, _ in model._tw_walk()
    ]
