"""`CompileMetrics`: the metrics given to `compile`, matched with a model's outputs."""

from tapewright.core.nest import flatten, is_nested
from tapewright.core.trackable import Trackable, assign_pending

from .. import metrics as metrics_module
from .output_structure import OutputStructure, check_names

__all__ = ["CompileMetrics"]


class CompileMetrics(Trackable):
    """The metrics of all outputs, with sample weights for those that want them."""

    name = "compile_metrics"

    def __init__(self, metrics, weighted_metrics=None, output_names=None):
        self.user_metrics, self.user_weighted = metrics, weighted_metrics
        self.output_names = output_names
        self._found = None  # for each metric: its name in the logs, output, weighted

    @property
    def metrics(self):
        """The metric objects; empty before the first batch."""
        return [metric for metric, *_ in self._found or ()]

    @property
    def variables(self):
        return [v for metric in self.metrics for v in metric.variables]

    def _build(self, y_true, y_pred):
        outputs = OutputStructure(y_pred, self.output_names)
        labels = outputs.align("y", y_true)
        pairs, found, names = list(zip(labels, flatten(y_pred))), [], set()
        for what, given, weighted in (
            ("metrics", self.user_metrics, False),
            ("weighted_metrics", self.user_weighted, True),
        ):
            for i, own in enumerate(_metrics_of_outputs(outputs, what, given)):
                for metric in [metrics_module.resolve(each, *pairs[i]) for each in own]:
                    name = _new_name(metric.name, outputs, i, weighted, names)
                    names.add(name)
                    found.append((metric, name, i, weighted))
        self._outputs, self._found = outputs, found
        assign_pending(self)

    def __children__(self):
        return dict(enumerate(self.metrics))

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self._found is None:
            self._build(y_true, y_pred)
        outputs, predictions = self._outputs, flatten(y_pred)
        labels = outputs.align("y", y_true)
        weights = outputs.align_weights(sample_weight)
        for metric, _, i, weighted in self._found:
            if weighted and weights[i] is not None:
                metric.update_state(labels[i], predictions[i], weights[i])
            else:
                metric.update_state(labels[i], predictions[i])

    def result(self):
        """The results so far, by name."""
        return {name: metric.result() for metric, name, *_ in self._found or ()}

    def reset_state(self):
        for metric in self.metrics:
            metric.reset_state()


def _new_name(name, outputs, i, weighted, names):
    """The name of a metric of output ``i`` in the logs, other than ``names``."""
    prefix = f"{outputs.names[i]}_" if outputs.count > 1 and outputs.names else ""
    stem = f"{prefix}{name}"
    if stem in names and weighted:
        stem = f"{prefix}weighted_{name}"
    found, count = stem, 0
    while found in names:
        count += 1
        found = f"{stem}_{count}"
    return found


def _metrics_of_outputs(outputs, what, given):
    """For each output the list of its metrics."""
    if not given:
        return [[] for _ in range(outputs.count)]
    if outputs.count == 1 and not isinstance(given, dict):
        return [flatten(given)]
    count = outputs.count if outputs.is_flat else len(outputs.numbers)
    if not isinstance(given, dict) and not (
        isinstance(given, (list, tuple)) and len(given) in (count, outputs.count)
    ):
        raise ValueError(
            f"{what}: pass a list with an entry, or a list of them, for each of the "
            f"{outputs.count} outputs, or a dict by their names {outputs.names}; got "
            f"{given!r}"
        )
    if not outputs.is_flat and isinstance(given, type(outputs.numbers)):
        shared = [None] * outputs.count
        _spread(given, outputs.numbers, shared, what)
    else:
        shared = outputs.per_output(what, given)
    return [[m for m in flatten(each) if m is not None] for each in shared]


def _spread(given, numbers, found, what):
    """Set ``found`` at the number of each output to the part of ``given`` for it."""
    if given is None:
        return
    if not is_nested(numbers):
        found[numbers] = given
    elif isinstance(given, dict) and isinstance(numbers, dict):
        check_names(what, given, numbers)
        for key, each in given.items():
            _spread(each, numbers[key], found, what)
    elif isinstance(given, (list, tuple)) and len(given) == len(numbers):
        for each, inner in zip(given, numbers):
            _spread(each, inner, found, what)
    else:
        raise ValueError(
            f"{what}: {len(numbers)} outputs need a structure like theirs, got {given!r}"
        )
