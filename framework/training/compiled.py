"""What `compile` was given, matched with a model's outputs: losses and metrics for each.

Outputs, labels and weights may be single tensors, lists or dicts; losses and metrics are
given once for all, or in a list or dict for each. The first batch tells what belongs
together.
"""

from ..nest import flatten, is_nested
from ..ops.conversion import cast
from ..ops.elementwise import add
from ..ops.shape import shape as shape_of
from . import losses as losses_module
from . import metrics as metrics_module
from .losses import Loss
from .metrics import Mean

__all__ = ["CompiledLoss", "CompiledMetrics", "batch_size_of"]


class _Outputs:
    """The outputs of a model in a row, and how labels and weights fall into it."""

    def __init__(self, y_pred, names):
        self.count = len(flatten(y_pred))
        self.keys = None
        if isinstance(y_pred, dict) and len(y_pred) == self.count:
            self.keys = sorted(y_pred)
            if names and set(names) == set(y_pred):
                self.keys = list(names)
            names = self.keys
        given = names is not None and len(names) == self.count
        self.names = list(names) if given else None

    def in_order(self, what, y):
        """The leaves of ``y``, one for each output."""
        keys = self.keys or self.names
        if isinstance(y, dict) and keys and set(y) == set(keys):
            return [y[key] for key in keys]
        leaves = flatten(y)
        if len(leaves) != self.count:
            expected = f"the outputs {keys}" if keys else f"{self.count} outputs"
            found = list(y) if isinstance(y, dict) else f"{len(leaves)} tensors"
            raise ValueError(f"{what} must match {expected}; got {found}")
        if isinstance(y, dict) and keys:
            _refuse_names(what, set(y) - set(keys), keys)
        return leaves

    def share(self, what, given):
        """What was given for each output: one for all, a list, or a dict by name."""
        if isinstance(given, dict):
            names = self.keys or self.names
            if names is None:
                raise ValueError(
                    f"{what}: a dict needs outputs with names, but the model gives "
                    f"{self.count} without; pass a list"
                )
            _refuse_names(what, set(given) - set(names), names)
            return [given.get(name) for name in names]
        if isinstance(given, (list, tuple)):
            if len(given) != self.count:
                raise ValueError(
                    f"{what}: {len(given)} were given for {self.count} outputs"
                    + (f", {self.names}" if self.names else "")
                )
            return list(given)
        return [given] * self.count


def _refuse_names(what, unknown, known):
    if unknown:
        import difflib  # a millisecond that only a mistake should cost

        name = sorted(unknown, key=str)[0]
        near = difflib.get_close_matches(str(name), [str(k) for k in known], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{what}: there is no output {name!r}; the outputs are {list(known)}{hint}"
        )


def batch_size_of(x):
    """The number of examples in a batch, as a tensor or number."""
    first = next(leaf for leaf in flatten(x) if leaf is not None)
    return shape_of(first)[0]


# -------------------------------------------------------------------------- losses


class CompiledLoss:
    """The losses of all outputs, weighted and added up."""

    _awaited = None  # what a checkpoint has for trackers that are not made yet

    def __init__(self, loss, loss_weights=None, output_names=None):
        self.user_loss, self.user_weights = loss, loss_weights
        self.output_names = output_names
        self.metrics = []  # a mean for each loss, if there are several
        self.trackers = []  # those of them that there are, in the order of the logs
        self._outputs = None

    def _build(self, y_true, y_pred):
        outputs = _Outputs(y_pred, self.output_names)
        given = outputs.share("loss", self.user_loss)
        labels = self._labels(outputs, given, y_true)
        self._losses = [
            _loss_for(loss, y, p) for loss, y, p in zip(given, labels, flatten(y_pred))
        ]
        weights = self.user_weights
        if outputs.count == 1 and weights is not None and not is_nested(weights):
            weights = [weights]
        if weights is not None and not is_nested(weights):
            raise ValueError(
                "loss_weights must be a list or dict with a number for each output, got "
                f"{weights!r}"
            )
        self._weights = outputs.share("loss_weights", weights)
        self.metrics = []
        if sum(loss is not None for loss in self._losses) > 1:
            names = outputs.names or self._names_of_losses()
            self.metrics = [
                None if loss is None else Mean(name=f"{name}_loss")
                for name, loss in zip(names, self._losses)
            ]
        found = self.metrics
        if found and outputs.keys:  # the order of dicts, as they were written
            of = dict(zip(outputs.keys, found))
            order = self.user_loss if isinstance(self.user_loss, dict) else y_pred
            found = [of[name] for name in order]
        self.trackers = [metric for metric in found if metric is not None]
        self._outputs = outputs
        if self._awaited is not None:
            self._awaited.arrive(self)

    def checkpoint_parts(self):
        return dict(enumerate(self.trackers))

    def _names_of_losses(self):
        names = []
        for loss in self._losses:
            name = "none" if loss is None else loss.name
            names.append(f"{name}_{names.count(name)}" if name in names else name)
        return names

    def _labels(self, outputs, given, y_true):
        leaves = flatten(y_true)
        wanted = [loss is not None for loss in given]
        if not isinstance(y_true, dict) and len(leaves) == sum(wanted) < outputs.count:
            rest = iter(leaves)  # labels for the outputs that have a loss
            return [next(rest) if each else None for each in wanted]
        if isinstance(y_true, dict) and outputs.names:
            _refuse_names("y", set(y_true) - set(outputs.names), outputs.names)
            return [y_true.get(name) for name in outputs.names]
        return outputs.in_order("y", y_true)

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The total loss; None if no output has one."""
        if self._outputs is None:
            self._build(y_true, y_pred)
        outputs, predictions = self._outputs, flatten(y_pred)
        labels = self._labels(outputs, self._losses, y_true)
        weights = _weights(outputs, sample_weight)
        trackers = self.metrics or [None] * outputs.count
        total, values = None, zip(
            self._losses, self._weights, labels, predictions, weights, trackers
        )  # fmt: skip
        for loss, factor, y, p, weight, tracker in values:
            if loss is None:
                continue
            if y is None:
                raise ValueError(
                    f"loss '{loss.name}': there are no labels for it; pass y to fit"
                )
            value = loss(y, p, weight)
            if tracker is not None:
                tracker.update_state(value, sample_weight=batch_size_of(p))
            if factor is not None:
                value = value * factor
            if total is not None and total.dtype is not value.dtype:
                value = cast(value, total.dtype)
            total = value if total is None else add(total, value)
        return total


def _loss_for(identifier, y_true, y_pred):
    if identifier is None or isinstance(identifier, Loss):
        return identifier
    name = identifier if isinstance(identifier, str) else None
    if name and name.lower() in ("crossentropy", "ce"):
        identifier = f"{metrics_module.kind_of_labels(y_true, y_pred)}_crossentropy"
    found = losses_module.get(identifier)
    if isinstance(found, Loss):
        return found
    return losses_module.LossFunctionWrapper(found, name=name or _name_of(found))


def _name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def _weights(outputs, sample_weight):
    if sample_weight is None:
        return [None] * outputs.count
    leaves = flatten(sample_weight)
    if len(leaves) == 1 and not isinstance(sample_weight, dict):
        return leaves * outputs.count
    if isinstance(sample_weight, dict) and outputs.names:
        _refuse_names(
            "sample_weight", set(sample_weight) - set(outputs.names), outputs.names
        )
        return [sample_weight.get(name) for name in outputs.names]
    return outputs.in_order("sample_weight", sample_weight)


# ------------------------------------------------------------------------- metrics


class CompiledMetrics:
    """The metrics of all outputs, with sample weights for those that want them."""

    name = "compile_metrics"
    _awaited = None  # what a checkpoint has for metrics that are not made yet

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
        outputs = _Outputs(y_pred, self.output_names)
        labels = outputs.in_order("y", y_true)
        pairs, found, names = list(zip(labels, flatten(y_pred))), [], set()
        for what, given, weighted in (
            ("metrics", self.user_metrics, False),
            ("weighted_metrics", self.user_weighted, True),
        ):
            for i, own in enumerate(_shared_metrics(outputs, what, given)):
                for metric in [metrics_module.resolve(each, *pairs[i]) for each in own]:
                    prefix = ""
                    if outputs.count > 1 and outputs.names:
                        prefix = f"{outputs.names[i]}_"
                    name = f"{prefix}{metric.name}"
                    if name in names and weighted:
                        name = f"{prefix}weighted_{metric.name}"
                    stem, count = name, 0
                    while name in names:
                        count += 1
                        name = f"{stem}_{count}"
                    names.add(name)
                    found.append((metric, name, i, weighted))
        self._outputs, self._found = outputs, found
        if self._awaited is not None:
            self._awaited.arrive(self)

    def checkpoint_parts(self):
        return dict(enumerate(self.metrics))

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self._found is None:
            self._build(y_true, y_pred)
        outputs, predictions = self._outputs, flatten(y_pred)
        labels = outputs.in_order("y", y_true)
        weights = _weights(outputs, sample_weight)
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


def _shared_metrics(outputs, what, given):
    """For each output the list of its metrics."""
    if not given:
        return [[] for _ in range(outputs.count)]
    if outputs.count == 1 and not isinstance(given, dict):
        return [flatten(given)]
    if not isinstance(given, dict) and not (
        isinstance(given, (list, tuple)) and len(given) == outputs.count
    ):
        raise ValueError(
            f"{what}: pass a list with an entry, or a list of them, for each of the "
            f"{outputs.count} outputs, or a dict by their names {outputs.names}; got "
            f"{given!r}"
        )
    shared = outputs.share(what, given)
    return [[m for m in flatten(each) if m is not None] for each in shared]
