"""`aggregated_states` in one process; `tests/distribute/test_step.py` has several."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context
from tapewright.keras.metrics.replica_states import aggregated_states

SECOND_OF_TWO = ReplicaContext(2, 1, 0.25)
IDLE = ReplicaContext(2, 1, 0.0, True)


def test_without_a_replica_context_states_stay():
    metric = tw.metrics.Mean()
    metric.update_state([1.0, 2.0])
    with aggregated_states([metric]):
        assert metric.result() == 1.5


@pytest.mark.parametrize(
    "aggregation, expected",
    [("sum", 3.0), ("mean", 1.5), ("only_first_replica", 0.0), ("none", 3.0)],
)
@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_the_aggregation_of_a_variable_is_that_of_its_value(
    aggregation, expected, wrap
):
    metric = tw.metrics.Sum()
    metric.total.aggregation = aggregation
    metric.update_state(3.0)

    @wrap
    def result():
        with in_replica_context(SECOND_OF_TWO), aggregated_states([metric]):
            return metric.result()

    assert result().numpy() == expected
    assert metric.total.numpy() == 3.0


def test_states_come_back_after_an_error():
    metric = tw.metrics.Sum()
    metric.total.aggregation = "mean"
    metric.update_state(3.0)
    with pytest.raises(KeyError):
        with in_replica_context(SECOND_OF_TWO), aggregated_states([metric]):
            raise KeyError
    assert metric.total.numpy() == 3.0


def test_a_variable_without_an_aggregation_is_refused():
    metric = tw.metrics.Sum(name="sum")
    metric.own = tw.Variable(0.0, name="table")
    with pytest.raises(ValueError, match="'sum'.*'table'.*add_variable"):
        with in_replica_context(SECOND_OF_TWO), aggregated_states([metric]):
            pass


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function])
def test_an_idle_replica_leaves_states_as_they_are_and_makes_them(wrap):
    mean, score = tw.metrics.Mean(), tw.metrics.R2Score()
    mean.update_state([1.0, 2.0])

    @wrap
    def update():
        with in_replica_context(IDLE):
            mean.update_state([100.0])
            score.update_state([[1.0, 2.0]], [[3.0, 4.0]])

    update()
    assert mean.result() == 1.5
    assert [v.shape for v in score.variables] == [(), (2,), (2,), (2,), (2,)]
    assert not np.concatenate([np.ravel(v.numpy()) for v in score.variables]).any()


def test_one_value_of_a_batch_counts_by_the_share_of_the_replica():
    metric = tw.metrics.MeanMetricWrapper(lambda y, p: tw.reduce_mean(p))
    with in_replica_context(SECOND_OF_TWO):
        metric.update_state([0.0], [8.0])
    assert (metric.total.numpy(), metric.count.numpy()) == (2.0, 0.25)
