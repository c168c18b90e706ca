"""Every metric gives the result of the whole from states of unequal parts."""

import numpy as np
from parts import RANK, SIZE, check_same, communicator, part, replica

import tapewright as tw
from tapewright.keras.metrics.replica_states import aggregated_states

random = np.random.default_rng(5)
COUNTS = 7, 2, 8  # of the batches
probabilities = [random.dirichlet([1.0] * 4, n).astype("float32") for n in COUNTS]
classes = [random.integers(0, 4, n) for n in COUNTS]
one_hot = [np.eye(4, dtype="float32")[c] for c in classes]
weights = [random.random(n).astype("float32") for n in COUNTS]

ARGUMENTS = {
    "IoU": (4, [1, 2]),
    "MeanIoU": (4,),
    "OneHotIoU": (4, [1, 2]),
    "OneHotMeanIoU": (4,),
    "PrecisionAtRecall": (0.4,),
    "RecallAtPrecision": (0.4,),
    "SensitivityAtSpecificity": (0.4,),
    "SpecificityAtSensitivity": (0.4,),
    "MeanMetricWrapper": (tw.losses.mean_squared_error,),
}
OF_CLASSES = {"IoU", "MeanIoU"}


class Largest(tw.metrics.Metric):
    """A metric of a user, with states of each aggregation."""

    def __init__(self):
        super().__init__(name="largest")
        for name in ("none", "mean", "sum", "only_first_replica"):
            options = {"aggregation": name, "name": name}
            setattr(self, name, self.add_variable((), "zeros", **options))

    def update_state(self, value):
        for variable in self.variables:
            variable.assign_add(value)

    def result(self):
        return tw.stack([v.read() for v in self.variables])


def metrics():
    """Return all metrics; of each the name, a maker, and whether it takes classes."""
    for name in sorted(dir(tw.metrics)):
        kind = getattr(tw.metrics, name)
        if isinstance(kind, type) and name not in ("Metric", "Mean", "Sum"):
            sparse = name.startswith("Sparse")
            makers = [lambda k=kind, n=name: k(*ARGUMENTS.get(n, ()))]
            if name in ("AUC", "R2Score", "F1Score"):
                option = {
                    "AUC": {"multi_label": True},
                    "R2Score": {"num_regressors": 2},
                    "F1Score": {"average": "weighted"},
                }[name]
                makers.append(lambda k=kind, o=option: k(**o))
            for make in makers:
                yield name, make, name in OF_CLASSES, sparse
    scalar = lambda y, p: tw.reduce_mean(tw.square(y - p))  # noqa: E731
    yield "scalar", lambda: tw.metrics.MeanMetricWrapper(scalar), False, False


def update(metric, of_classes, sparse, weighted, i, cut):
    y = classes[i] if of_classes or sparse else one_hot[i]
    p = probabilities[i].argmax(-1) if of_classes else probabilities[i]
    arguments = [cut(y), cut(p)]
    if weighted:
        arguments.append(cut(weights[i]))
    metric.update_state(*arguments)


def results(entries, metrics, cut, step):
    for i in range(len(COUNTS)):
        step(entries, metrics, i, cut)
    return {
        f"{i} {entry[0]}": np.asarray(metric.result())
        for i, (entry, metric) in enumerate(zip(entries, metrics))
    }


def eager(entries, metrics, i, cut):
    for (name, _, of_classes, sparse), metric in zip(entries, metrics):
        weighted = name not in (*OF_CLASSES, "OneHotIoU", "OneHotMeanIoU", "BinaryIoU")
        weighted = weighted and name != "scalar"
        update(metric, of_classes, sparse, weighted, i, cut)


entries = list(metrics())
assert len(entries) > 45
whole = results(entries, [make() for _, make, *_ in entries], np.asarray, eager)
for traced in (False, True):
    own = [make() for _, make, *_ in entries]
    last = {}

    def step(entries, metrics, i, cut, last=last):
        with replica(COUNTS[i]):
            eager(entries, metrics, i, cut)
            with aggregated_states(metrics):
                last |= {j: metric.result() for j, metric in enumerate(metrics)}
        return last

    if traced:
        function = tw.function(step)
        answers = [function(entries, own, i, part) for i in range(len(COUNTS))]
        last = answers[-1]
    else:
        results(entries, own, part, step)
    for (key, expected), j in zip(whole.items(), range(len(own))):
        got = np.asarray(last[j])
        np.testing.assert_allclose(got, expected, 2e-6, 2e-7, err_msg=key)
    check_same("results", [np.asarray(last[j]) for j in range(len(own))])
    before = [v.numpy() for metric in own for v in metric.variables]
    number = getattr(communicator(), "_number", 0)
    with replica(7), aggregated_states(own):
        pass
    dtypes = {v.dtype for metric in own for v in metric.variables}
    if SIZE > 1:  # one all-reduce for each dtype
        assert communicator()._number - number == len(dtypes) == 2, dtypes
    for old, v in zip(before, [v for metric in own for v in metric.variables]):
        np.testing.assert_array_equal(old, v.numpy())  # the states stay the replica's

metric = Largest()
with replica(7):
    metric.update_state(RANK + 1.0)
    active = [r + 1.0 for r in range(min(SIZE, 2))]
    with aggregated_states([metric]):
        inside = metric.result().numpy()
np.testing.assert_allclose(
    inside,
    [active[RANK] if RANK < 2 else 0, sum(active) / SIZE, sum(active), 1],
    1e-6,
)

metric.undeclared = tw.Variable(0.0)
try:
    with replica(7), aggregated_states([metric]):
        raise AssertionError("no error")
except ValueError as error:
    assert "metric 'largest'" in str(error) and "add_variable" in str(error)
