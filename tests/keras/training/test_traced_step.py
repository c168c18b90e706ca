"""Traces of steps, also those of replicas."""

import tapewright as tw
from tapewright import Model
from tapewright.core.state.replica_context import (
    ReplicaContext,
    in_replica_context,
    replica_context,
)


class Shares(Model):
    """A model whose steps return the context that they are in."""

    def __init__(self):
        super().__init__()
        self.traces = 0

    def call(self, x):
        return x

    def test_step(self, data):
        self.traces += 1
        context = replica_context()
        if context is None:
            return {"share": 1.0}
        return {"share": context.share * 2.0, "idle": float(context.is_idle)}


def in_context(step, size, share, is_idle=False):
    context = ReplicaContext(2, 0, tw.constant(share, "float64"), is_idle)
    with in_replica_context(context):
        logs = step(tw.zeros((size, 3)))
    return {name: float(value) for name, value in logs.items()}


def test_the_share_of_a_replica_is_an_input_of_one_trace():
    model = Shares()
    step = model.make_test_function()
    for share in (0.5, 0.25, 1 / 3):
        assert in_context(step, 4, share) == {"share": 2 * share, "idle": 0.0}
    assert model.traces == 1


def test_steps_of_idle_replicas_and_of_one_process_have_traces_of_their_own():
    model = Shares()
    step = model.make_test_function()
    assert in_context(step, 1, 0.5) == {"share": 1.0, "idle": 0.0}
    assert in_context(step, 1, 0.0, True) == {"share": 0.0, "idle": 1.0}
    assert step(tw.zeros((1, 3))) == {"share": 1.0}
    assert in_context(step, 1, 0.25) == {"share": 0.5, "idle": 0.0}
    assert model.traces == 3


def test_many_sizes_need_few_traces():
    model = Shares()
    step = model.make_test_function()
    for size in range(1, 20):
        assert in_context(step, size, 0.5)["share"] == 1.0
    assert model.traces <= 7
