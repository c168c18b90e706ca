"""`SwapEMAWeights`: evaluation with the moving averages of the weights."""

from __future__ import annotations

from .callback import Callback, OptionalLogs

__all__ = ["SwapEMAWeights"]


class SwapEMAWeights(Callback):
    """Evaluate and predict with the optimizer's exponential moving averages of the weights.

    Args:
        swap_on_epoch: If True, keep the averages in the model from the end of an epoch
            to the beginning of the next, so that a `ModelCheckpoint` after this
            callback saves them.

    Raises:
        ValueError: At the first swap, if neither the optimizer nor an inner one of a
            `MultiOptimizer` was created with ``use_ema=True``.

    Example:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile(keras.optimizers.SGD(0.1, use_ema=True), "mse")
        >>> x, y = np.ones((4, 3)), np.zeros((4, 1))
        >>> averages = keras.callbacks.SwapEMAWeights()
        >>> _ = model.fit(x, y, validation_data=(x, y), verbose=0, callbacks=[averages])
    """

    state_names: tuple[str, ...] = ("_tw_has_averages",)

    def __init__(self, swap_on_epoch: bool = False):
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        self._tw_has_averages = False  # the model holds the averages

    def _tw_pairs(self):
        """Return pairs of a trained variable and its average."""
        optimizer = self.model.optimizer
        optimizer = getattr(optimizer, "_tw_inner", None) or optimizer
        averaging = [
            each
            for each in getattr(optimizer, "_tw_several", None) or [optimizer]
            if getattr(each, "use_ema", False)
            and hasattr(each, "_model_variables_moving_average")
        ]
        if not averaging:
            raise ValueError(
                "SwapEMAWeights: the optimizer, or one of a MultiOptimizer, must "
                f"be created with use_ema=True, got {optimizer!r}"
            )
        return [
            pair
            for each in averaging
            for pair in zip(
                each._trainable_variables, each._model_variables_moving_average
            )
        ]

    def _tw_swap(self, has_averages):
        if self._tw_has_averages == has_averages:
            return
        for variable, average in self._tw_pairs():
            value = variable.numpy().copy()
            variable.assign(average)
            average.assign(value)
        self._tw_has_averages = has_averages

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.swap_on_epoch:
            self._tw_swap(False)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if not self.swap_on_epoch:
            return
        self._tw_swap(True)
        if epoch == self.params["epochs"] - 1 or self.model.stop_training:
            # At the end of `fit` the optimizer assigns its averages to the variables.
            for variable, average in self._tw_pairs():
                average.assign(variable)
            self._tw_has_averages = False

    def on_test_begin(self, logs: OptionalLogs = None) -> None:
        self._tw_swap(True)

    def on_test_end(self, logs: OptionalLogs = None) -> None:
        self._tw_swap(False)

    def on_predict_begin(self, logs: OptionalLogs = None) -> None:
        self._tw_swap(True)

    def on_predict_end(self, logs: OptionalLogs = None) -> None:
        self._tw_swap(False)

    def on_close(self) -> None:
        self._tw_swap(False)  # after an error
