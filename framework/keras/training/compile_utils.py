"""What `compile` was given, matched with a model's outputs: losses and metrics for each.

Outputs, labels and weights may be single tensors, lists or dicts; losses and metrics are
given once for all, or in a list or dict for each. The first batch tells what belongs
together.
"""

from collections import namedtuple

from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import shape as shape_of
from tapewright.ops.math.elementwise import add

from .. import losses as losses_module
from .. import metrics as metrics_module
from ..losses import Loss
from ..metrics import Mean

__all__ = ["CompiledLoss", "CompiledMetrics", "batch_size_of"]


class _Outputs:
    """The outputs of a model in a row, and how labels and weights fall into it."""

    def __init__(self, y_pred, names):
        self.count = len(flatten(y_pred))
        self.numbers = pack(y_pred, range(self.count))  # of the leaves, in their places
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
        if isinstance(y, dict) and not self.is_flat:
            _refuse_names(what, set(y) - set(self.numbers), self.numbers)
        if len(leaves) != self.count:
            expected = f"the outputs {keys}" if keys else f"{self.count} outputs"
            found = list(y) if isinstance(y, dict) else f"{len(leaves)} tensors"
            raise ValueError(f"{what} must match {expected}; got {found}")
        if isinstance(y, dict) and keys and self.is_flat:
            _refuse_names(what, set(y) - set(keys), keys)
        return leaves

    def labels(self, y_true, wanted):
        """A label for each output; None for those without a loss, which may lack one.

        ``wanted``: the numbers of the outputs that have a loss.
        """
        leaves = flatten(y_true)
        if not isinstance(y_true, dict) and len(leaves) == len(wanted) < self.count:
            rest = iter(leaves)  # labels for the outputs that have a loss
            return [next(rest) if i in wanted else None for i in range(self.count)]
        if isinstance(y_true, dict) and self.names and self.is_flat:
            _refuse_names("y", set(y_true) - set(self.names), self.names)
            return [y_true.get(name) for name in self.names]
        return self.in_order("y", y_true)

    @property
    def is_flat(self):
        """Return whether the outputs are one, a list, or a dict, with nothing deeper."""
        nest = self.numbers
        if not is_nested(nest):
            return True
        parts = nest.values() if isinstance(nest, dict) else nest
        return not any(map(is_nested, parts))

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
    """The losses of all outputs, weighted and added up.

    What `compile` was given is matched with the structure of the outputs: a loss stands
    for every output, or for the outputs in its place, which may be a nest; a list in the
    place of one output holds several losses for it.
    """

    _awaited = None  # what a checkpoint has for trackers that are not made yet

    def __init__(self, loss, loss_weights=None, output_names=None):
        self.user_loss, self.user_weights = loss, loss_weights
        self.output_names = output_names
        self.metrics = []  # a mean for each loss, if there are several
        self.trackers = self.metrics  # in the order of the logs
        self._outputs = None

    def _build(self, y_true, y_pred):
        outputs = _Outputs(y_pred, self.output_names)
        places = _places_of(self.user_loss, self.user_weights, outputs)
        wanted = {i for place in places for i in flatten(place.outputs)}
        labels, predictions = outputs.labels(y_true, wanted), flatten(y_pred)
        self._places = [
            place._replace(
                loss=_loss_for(
                    place.loss,
                    _taken(place.outputs, labels),
                    _taken(place.outputs, predictions),
                )
            )
            for place in places
        ]
        self.metrics = []
        if len(self._places) > 1:
            names = [place.name(outputs.names) for place in self._places]
            self.metrics = [Mean(name=f"{name}_loss") for name in _distinct(names)]
        self.trackers = self.metrics
        self._outputs, self._wanted = outputs, wanted
        if self._awaited is not None:
            self._awaited.arrive(self)

    def checkpoint_parts(self):
        return dict(enumerate(self.trackers))

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The total loss; None if no output has one."""
        if self._outputs is None:
            self._build(y_true, y_pred)
        outputs, predictions = self._outputs, flatten(y_pred)
        labels = outputs.labels(y_true, self._wanted)
        weights = _weights(outputs, sample_weight)
        trackers = self.metrics or [None] * len(self._places)
        total = None
        for place, tracker in zip(self._places, trackers):
            value = place.value(labels, predictions, weights)
            if tracker is not None:
                batch = batch_size_of(_taken(place.outputs, predictions))
                tracker.update_state(value, sample_weight=batch)
            if place.weight is not None:
                value = value * place.weight
            if total is not None and total.dtype is not value.dtype:
                value = cast(value, total.dtype)
            total = value if total is None else add(total, value)
        return total


class _Place(namedtuple("_Place", ["path", "outputs", "loss", "weight"])):
    """A loss, and the outputs it is for: a number, or a nest of numbers, of leaves."""

    def value(self, labels, predictions, weights):
        """The loss of one batch, before its factor."""
        if not is_nested(self.outputs):
            y, weight = labels[self.outputs], weights[self.outputs]
        else:
            y = _taken(self.outputs, labels)
            own = [weights[i] for i in flatten(self.outputs)]
            same = all([weight is own[0] for weight in own])
            weight = own[0] if same else _taken(self.outputs, weights)
        if any([leaf is None for leaf in flatten(y)]):
            raise ValueError(
                f"loss '{self.loss.name}': there are no labels for it; pass y to fit"
            )
        return self.loss(y, _taken(self.outputs, predictions), weight)

    def name(self, names):
        """The name of the output, or the path to it, as Keras calls it in the logs."""
        path = [str(key) for key in self.path]
        if not is_nested(self.outputs):
            own = names[self.outputs] if names else self.loss.name
            if not path or type(self.path[-1]) is int:
                path[-1:] = [own]
        elif not path:
            path = ["_".join([names[i] if names else str(i) for i in self.outputs_in])]
        return "/".join(path)

    @property
    def outputs_in(self):
        return flatten(self.outputs)


def _taken(outputs, leaves):
    """The leaves with these numbers, in the structure of ``outputs``."""
    if not is_nested(outputs):
        return leaves[outputs]
    return map_structure(lambda i: leaves[i], outputs)


def _distinct(names):
    """The names; one that comes again gets a number."""
    seen, found = {}, []
    for name in names:
        count = seen[name] = seen.get(name, -1) + 1
        found.append(f"{name}_{count}" if count else name)
    return found


class _Weighted:
    """A loss and its factor, as one leaf of a structure."""

    __slots__ = ("loss", "weight")

    def __init__(self, loss, weight):
        self.loss, self.weight = loss, weight


def _places_of(loss, weights, outputs):
    """The `_Place`s of what `compile` was given as ``loss`` and ``loss_weights``."""
    numbers = outputs.numbers
    if isinstance(loss, dict) and not isinstance(numbers, dict):
        # by the names of outputs that are a list, or one
        loss, numbers = outputs.share("loss", loss), list(range(outputs.count))
    if not is_nested(loss):
        loss = pack(numbers, [loss] * outputs.count)
        if weights is not None and not is_nested(weights):
            weights = pack(numbers, [weights] * outputs.count)
    if weights is not None:
        weights = _factors(loss, weights, outputs)
    weights = weights or [None] * len(flatten(loss))
    leaves = [
        None if each is None else _Weighted(each, weight)
        for each, weight in zip(flatten(loss), weights)
    ]
    return _walked(pack(loss, leaves), numbers, (), outputs)


def _factors(loss, weights, outputs):
    """``loss_weights`` as a list, one for each leaf of ``loss``."""
    if not is_nested(weights):
        if outputs.count == 1 and len(flatten(loss)) == 1:
            return [weights]
        raise ValueError(
            "loss_weights must be a list or dict with a number for each output, got "
            f"{weights!r}"
        )
    if isinstance(weights, dict):
        if isinstance(loss, dict) and not any(map(is_nested, loss.values())):
            known = outputs.keys or outputs.names or list(loss)
            _refuse_names("loss_weights", set(weights) - {*known, *loss}, known)
            return flatten({name: weights.get(name) for name in loss})
        if not isinstance(loss, dict):
            return outputs.share("loss_weights", weights)
    count, given = len(flatten(loss)), flatten(weights)
    if len(given) != count:
        raise ValueError(
            f"loss_weights: {len(given)} were given for {count} losses"
            + (f"; the outputs are {outputs.names}" if outputs.names else "")
        )
    return given


def _walked(loss, numbers, path, outputs):
    """The places of the losses in a structure, for the outputs with these numbers."""
    if loss is None:
        return []
    if not is_nested(loss):
        return [_Place(path, numbers, loss.loss, loss.weight)]
    listed = not isinstance(loss, dict)
    if listed and not any(map(is_nested, loss)):
        if len(loss) == len(flatten(numbers)):
            loss = pack(numbers, loss)  # one for each output
            if not is_nested(loss):
                return _walked(loss, numbers, path, outputs)
            listed = not isinstance(loss, dict)
    if listed and not isinstance(numbers, type(loss)):
        return [p for each in loss for p in _walked(each, numbers, path, outputs)]
    if listed:
        pairs, there = list(enumerate(loss)), range(len(numbers))
    else:
        pairs, there = list(loss.items()), numbers if isinstance(numbers, dict) else ()
    where = "".join([f"[{key!r}]" for key in path])
    if not path and not listed:
        _refuse_names("loss", {key for key, _ in pairs} - set(there), there)
    if listed and not path and len(pairs) != len(there):
        raise ValueError(
            f"loss: {len(pairs)} were given for {len(there)} outputs"
            + (f", {outputs.names}" if outputs.names else "")
        )
    unknown = [key for key, each in pairs if each is not None and key not in there]
    if unknown:
        raise ValueError(
            f"loss{where}[{unknown[0]!r}]: there is no such output; "
            f"in this place there is {_shown(numbers, outputs)}"
        )
    return [
        p
        for key, each in pairs
        if each is not None
        for p in _walked(each, numbers[key], (*path, key), outputs)
    ]


def _shown(numbers, outputs):
    names = outputs.names or [f"output {i}" for i in range(outputs.count)]
    return f"{map_structure(lambda i: names[i], [numbers])[0]!r}"


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
    if isinstance(sample_weight, dict) and outputs.names and outputs.is_flat:
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
        shared = outputs.share(what, given)
    return [[m for m in flatten(each) if m is not None] for each in shared]


def _spread(given, numbers, found, what):
    """Notes in ``found`` what is given in the place of each output, by its number."""
    if given is None:
        return
    if not is_nested(numbers):
        found[numbers] = given
    elif isinstance(given, dict) and isinstance(numbers, dict):
        _refuse_names(what, set(given) - set(numbers), numbers)
        for key, each in given.items():
            _spread(each, numbers[key], found, what)
    elif isinstance(given, (list, tuple)) and len(given) == len(numbers):
        for each, inner in zip(given, numbers):
            _spread(each, inner, found, what)
    else:
        raise ValueError(
            f"{what}: {len(numbers)} outputs need a structure like theirs, got {given!r}"
        )
