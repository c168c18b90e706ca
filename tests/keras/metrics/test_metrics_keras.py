"""Metrics give the numbers that Keras gave: eager, and traced for any batch size."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import metrics

REFERENCE = pathlib.Path(__file__).parent.parent / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_metrics", REFERENCE / "record_metrics.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)

KERAS = dict(np.load(REFERENCE / "metrics.npz"))
FACTS = json.loads(str(KERAS["facts"]))
PAIRS = [(case, extra) for case in record.CASES for extra in record.extras(case)]


class Traced:
    """A metric whose updates run as one traced function, the batch size left open."""

    def __init__(self, metric):
        self.metric, self.result, self.variables = metric, metric.result, None
        self.reset_state = metric.reset_state
        self.functions = {}

    def update_state(self, *arguments, sample_weight=None):
        mask = getattr(arguments[-1], "_keras_mask", None)
        given = [a for a in (*arguments, sample_weight, mask) if a is not None]
        kinds = len(arguments), sample_weight is not None, mask is not None
        if kinds not in self.functions:
            specs = [tw.TensorSpec([None, *a.shape[1:]], a.dtype) for a in given]
            self.functions[kinds] = tw.function(self._update(*kinds), specs)
        self.functions[kinds](*[tw.constant(a) for a in given])
        self.variables = self.metric.variables

    def _update(self, count, weighted, masked):
        def update(*given):
            given = list(given)
            y_pred = given[count - 1]
            if masked:
                y_pred._keras_mask = given.pop()
            weight = given.pop() if weighted else None
            self.metric.update_state(*given, sample_weight=weight)

        return update


def masked(array, mask):
    tensor = tw.constant(array)
    tensor._keras_mask = tw.constant(mask)
    return tensor


def check(metric, case, extra):
    found = record.followed(metric, case, extra, masked, lambda x: x.numpy())
    expected = KERAS[f"{case}|{extra}"]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def made(case):
    name, arguments, _ = record.CASES[case]
    return getattr(metrics, name)(**arguments)


@pytest.mark.filterwarnings("ignore:R2Score")
@pytest.mark.parametrize("case, extra", PAIRS)
def test_results_are_those_of_keras(case, extra):
    check(made(case), case, extra)


@pytest.mark.parametrize("case, extra", PAIRS)
def test_traced_updates_give_the_same_for_any_batch_size(case, extra):
    check(Traced(made(case)), case, extra)


@pytest.mark.parametrize("case", record.CASES)
def test_variables_have_the_names_of_keras_in_its_order(case):
    metric = made(case)
    metric.update_state(*record.batch(record.CASES[case][2], 0))
    assert [v.name for v in metric.variables] == FACTS[case]["variables"]
    assert all(v.path == f"{metric.name}/{v.name}" for v in metric.variables)


@pytest.mark.parametrize("case", record.CASES)
def test_the_config_of_keras_makes_the_metric_and_is_its_config(case):
    name, config = record.CASES[case][0], FACTS[case]["config"]
    metric = metrics.deserialize({"class_name": name, "config": dict(config)})
    found = metric.get_config()
    assert found.pop("name") == metric.name
    if name == "CosineSimilarity":  # Keras leaves its axis out
        assert found.pop("axis") == -1
    assert found == config
