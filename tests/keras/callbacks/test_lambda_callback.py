"""`LambdaCallback`: hooks as arguments."""

import pytest

from tapewright.keras.callbacks import (
    CallbackList,
    LambdaCallback,
)

from .loops_by_hand import HOOKS, train


def test_a_lambda_callback_refuses_names_that_are_no_hooks():
    with pytest.raises(TypeError, match="on_epoch_stop.*on_epoch_end"):
        LambdaCallback(on_epoch_stop=print)


def test_a_lambda_callback_takes_every_hook():
    calls = []
    every = {n: lambda *a, _n=n, **k: calls.append(_n) for n in HOOKS}
    train(CallbackList(LambdaCallback(**every)), epochs=1, batches=1)
    assert set(calls) == {
        n for n in HOOKS if "predict" not in n and not n.startswith("on_batch")
    }
