"""`CompileLoss`: the losses of `compile`, matched with a model's outputs.

There is one loss for all outputs, or a list or dict with a loss for each. The structure
is determined by the first batch.
"""

from collections import namedtuple

from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.trackable import Trackable, assign_pending
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.elementwise import add, divide_no_nan

from .. import losses as losses_module
from ..losses import Loss
from ..metrics import Mean
from ..metrics.serialization import name_for_labels
from .output_structure import OutputStructure, batch_size_of, check_names


class CompileLoss(Trackable):
    """Weighted sum of the losses of all outputs.

    The argument of `compile` is matched with the structure of the outputs: a single
    loss applies to every output; in a nest, a loss applies to the outputs at its path,
    which may be a nest, and a list at the path of a single output holds several losses
    for it.
    """

    def __init__(self, loss, loss_weights=None, output_names=None):
        self.user_loss, self.user_weights = loss, loss_weights
        self.output_names = output_names
        self.metrics = []  # a mean for each loss, if there are several
        self._outputs = None

    def _build(self, y_true, y_pred):
        outputs = OutputStructure(y_pred, self.output_names)
        losses = _output_losses(self.user_loss, self.user_weights, outputs)
        with_loss = {i for each in losses for i in flatten(each.outputs)}
        labels, predictions = outputs.align_labels(y_true, with_loss), flatten(y_pred)
        self._losses = [each.resolved(labels, predictions) for each in losses]
        self.metrics = []
        if len(self._losses) > 1:
            names = [each.name(outputs.names) for each in self._losses]
            self.metrics = [Mean(name=f"{name}_loss") for name in _distinct(names)]
        self._outputs, self._with_loss = outputs, with_loss
        assign_pending(self)

    def __children__(self):
        return dict(enumerate(self.metrics))

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Return the total loss; None if no output has a loss."""
        if self._outputs is None:
            self._build(y_true, y_pred)
        outputs, predictions = self._outputs, flatten(y_pred)
        labels = outputs.align_labels(y_true, self._with_loss)
        weights = outputs.align_weights(sample_weight)
        trackers = self.metrics or [None] * len(self._losses)
        values = []
        for each, tracker in zip(self._losses, trackers):
            value = each.value(labels, predictions, weights)
            if tracker is not None:
                track_loss(tracker, value, _select(each.outputs, predictions))
            values.append(value if each.weight is None else value * each.weight)
        return sum_of(_added_to_each(values))


def _added_to_each(values):
    """Return losses for a sum: if some are not reduced, add the others to each entry.

    The reduced losses are this replica's part, as are the entries.
    """
    context = replica_context()
    if context is None or not any([len(value.shape) for value in values]):
        return values
    return [
        value
        if len(value.shape)
        else divide_no_nan(value, cast(context.share, value.dtype))
        for value in values
    ]


def track_loss(tracker, loss, batch):
    """Add the loss of a batch to a running mean in which each example counts once.

    In a replica context the losses of the replicas add up to the loss of the whole
    batch; each replica counts it for its own examples.
    """
    context, weight = replica_context(), batch_size_of(batch)
    if context is not None:
        loss = convert_to_tensor(loss)
        if not loss.shape.rank:  # else losses of examples, which have no reduction
            loss = divide_no_nan(loss, cast(context.share, loss.dtype))
    tracker.update_state(loss, sample_weight=weight)


def sum_of(losses):
    """Return the sum of losses in the dtype of the first; None for an empty list."""
    total = None
    for loss in losses:
        if total is not None and total.dtype is not loss.dtype:
            loss = cast(loss, total.dtype)
        total = loss if total is None else add(total, loss)
    return total


class _OutputLoss(namedtuple("_OutputLoss", ["path", "outputs", "loss", "weight"])):
    """A loss and the outputs it applies to: the number of a leaf, or a nest of numbers."""

    def resolved(self, labels, predictions):
        """Return a copy with a `Loss` in place of a name or function."""
        y_true = _select(self.outputs, labels)
        y_pred = _select(self.outputs, predictions)
        return self._replace(loss=_loss_for(self.loss, y_true, y_pred))

    def value(self, labels, predictions, weights):
        """Return the loss of one batch, before it is multiplied by its weight."""
        if not is_nested(self.outputs):
            y, weight = labels[self.outputs], weights[self.outputs]
        else:
            y = _select(self.outputs, labels)
            first, *others = [weights[i] for i in flatten(self.outputs)]
            same = all([weight is first for weight in others])
            weight = first if same else _select(self.outputs, weights)
        if any([leaf is None for leaf in flatten(y)]):
            raise ValueError(
                f"loss '{self.loss.name}' requires labels, got None; pass y to fit"
            )
        return self.loss(y, _select(self.outputs, predictions), weight)

    def name(self, names):
        """Return the name of the output, or the path to it, as Keras shows it in the logs."""
        path = [str(key) for key in self.path]
        if not is_nested(self.outputs):
            if not path or type(self.path[-1]) is int:
                path[-1:] = [names[self.outputs] if names else self.loss.name]
        elif not path:
            numbers = flatten(self.outputs)
            path = ["_".join([names[i] if names else str(i) for i in numbers])]
        return "/".join(path)


def _select(outputs, leaves):
    """Return the leaves with these numbers, in the structure of ``outputs``."""
    if not is_nested(outputs):
        return leaves[outputs]
    return map_structure(lambda i: leaves[i], outputs)


def _distinct(names):
    """Return the names, with a number appended to repeated names."""
    counts, distinct = {}, []
    for name in names:
        count = counts[name] = counts.get(name, -1) + 1
        distinct.append(f"{name}_{count}" if count else name)
    return distinct


def _output_losses(loss, weights, outputs):
    """Return the `_OutputLoss`es for ``loss`` and ``loss_weights`` of `compile`."""
    loss, numbers = outputs.paired("loss", loss)
    if not is_nested(loss):
        loss = pack(numbers, [loss] * outputs.count)
        if weights is not None and not is_nested(weights):
            weights = pack(numbers, [weights] * outputs.count)
    losses = flatten(loss)
    weights = (
        [None] * len(losses) if weights is None else _factors(loss, weights, outputs)
    )
    indices = [None if each is None else i for i, each in enumerate(losses)]
    matches = outputs.match("loss", pack(loss, indices), numbers, together=True)
    return [_OutputLoss(path, part, losses[i], weights[i]) for path, part, i in matches]


def _factors(loss, weights, outputs):
    """Return ``loss_weights`` as a list with one entry per leaf of ``loss``."""
    count = len(flatten(loss))
    if not is_nested(weights):
        if outputs.count == 1 and count == 1:
            return [weights]
        raise ValueError(
            "loss_weights must be a list or dict with a number for each output, got "
            f"{weights!r}"
        )
    if isinstance(weights, dict):
        if not isinstance(loss, dict):
            weights = outputs.by_name("loss_weights", weights)
        elif not any(map(is_nested, loss.values())):
            known = outputs.names or list(loss)
            check_names("loss_weights", set(weights) - set(loss), known)
            weights = {name: weights.get(name) for name in loss}
    factors = flatten(weights)
    if len(factors) != count:
        raise ValueError(
            f"loss_weights: must have one number per loss ({count}), got {len(factors)}"
            + (f"; the outputs are {outputs.names}" if outputs.names else "")
        )
    return factors


def _loss_for(identifier, y_true, y_pred):
    if identifier is None or isinstance(identifier, Loss):
        return identifier
    name = identifier if isinstance(identifier, str) else None
    loss = losses_module.get(
        name_for_labels(name, y_true, y_pred) if name else identifier
    )
    if isinstance(loss, Loss):
        return loss
    name = name or getattr(loss, "__name__", type(loss).__name__)
    return losses_module.LossFunctionWrapper(loss, name=name)
