"""`CompileMetrics`: the metrics of `compile`, matched with a model's outputs."""

from tapewright.core.nest import flatten
from tapewright.core.trackable import Trackable, assign_pending

from ..metrics.serialization import resolve as resolve_metric
from .output_structure import OutputStructure


class CompileMetrics(Trackable):
    """The metrics of all outputs; ``weighted_metrics`` receive the sample weights."""

    name = "compile_metrics"

    def __init__(self, metrics, weighted_metrics=None, output_names=None):
        self._user_metrics, self._user_weighted_metrics = metrics, weighted_metrics
        self.output_names = output_names
        self._entries = None  # (metric, its name in the logs, output, weighted) of each

    @property
    def metrics(self):
        """The metric objects; empty before the first batch."""
        return [metric for metric, *_ in self._entries or ()]

    @property
    def variables(self):
        return [v for metric in self.metrics for v in metric.variables]

    def _tw_all_variables(self):
        return [v for metric in self.metrics for v in metric._tw_all_variables()]

    def _build(self, y_true, y_pred):
        outputs = OutputStructure(y_pred, self.output_names)
        labels, predictions = outputs.align("y", y_true), flatten(y_pred)
        entries, names = [], set()
        for argument, metrics, weighted in (
            ("metrics", self._user_metrics, False),
            ("weighted_metrics", self._user_weighted_metrics, True),
        ):
            for i, each in _metrics_of_outputs(argument, metrics, outputs):
                metric = resolve_metric(each, labels[i], predictions[i])
                name = _new_name(metric.name, outputs, i, weighted, names)
                names.add(name)
                entries.append((metric, name, i, weighted))
        self._outputs, self._entries = outputs, entries
        assign_pending(self)

    def __children__(self):
        return dict(enumerate(self.metrics))

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self._entries is None:
            self._build(y_true, y_pred)
        outputs, predictions = self._outputs, flatten(y_pred)
        labels = outputs.align("y", y_true)
        weights = outputs.align_weights(sample_weight)
        for metric, _, i, weighted in self._entries:
            if weighted and weights[i] is not None:
                metric.update_state(labels[i], predictions[i], weights[i])
            else:
                metric.update_state(labels[i], predictions[i])

    def result(self):
        """Return the results so far, by name."""
        return {name: metric.result() for metric, name, *_ in self._entries or ()}

    def reset_state(self):
        for metric in self.metrics:
            metric.reset_state()


def _metrics_of_outputs(argument, metrics, outputs):
    """Return pairs of an output number and a metric, in the order of the outputs."""
    if not metrics:
        return []
    if outputs.count == 1 and not isinstance(metrics, dict):
        numbers = 0
    else:
        metrics, numbers = outputs.paired(argument, metrics)
    matches = outputs.match(argument, metrics, numbers)
    return sorted([match[1:] for match in matches], key=lambda pair: pair[0])


def _new_name(name, outputs, i, weighted, names):
    """Return a name for a metric of output ``i`` in the logs that is not in ``names``."""
    prefix = f"{outputs.names[i]}_" if outputs.count > 1 and outputs.names else ""
    stem = f"{prefix}{name}"
    if stem in names and weighted:
        stem = f"{prefix}weighted_{name}"
    new, count = stem, 0
    while new in names:
        count += 1
        new = f"{stem}_{count}"
    return new
