"""`Trainer`: `fit`, `evaluate` and `predict`: epochs of steps, with callbacks."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tapewright.core.errors import ShapeError
from tapewright.core.messages.suggestions import suggesting_arguments
from tapewright.core.nest import flatten, map_structure
from tapewright.core.tensor import is_tensor

from ..callbacks.callback_list import CallbackList
from ..callbacks.logs import Logs
from ..config import limited
from .compile_metrics import CompileMetrics
from .data_adapters.array_adapter import ArrayAdapter, train_validation_split
from .data_adapters.data_adapter_utils import (
    as_batch,
    class_weight_to_sample_weight,
    unpack_x_y_sample_weight,
)
from .epoch_iterator import EpochIterator
from .outputs import Outputs
from .replicas import Replicas
from .traced_step import execute_steps
from .train_steps import TrainSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..callbacks.callback import Callback
    from ..callbacks.history import History


class Trainer(TrainSteps):
    """The part of a `Model` that trains it and runs it on data."""

    history = None
    stop_training: bool = False
    stop_evaluating: bool = False
    stop_predicting: bool = False
    _tw_loop = None  # a `TrainingLoop`, during `fit`

    @suggesting_arguments
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Sequence[Callback] | CallbackList | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
    ) -> History:
        """Train the model for ``epochs`` iterations over the data.

        Args:
            x: Inputs: an array, or a list or dict of arrays for several inputs; or a
                source of whole batches ``(x, y)`` or ``(x, y, sample_weight)``: a
                `data.Dataset`, a `PyDataset`, a generator or another iterable.
            y: Labels: an array, or a list or dict of arrays for several outputs. Leave
                it out if ``x`` is a source of batches.
            batch_size: Number of samples per batch if ``x`` consists of arrays; by
                default 32, or such that ``steps_per_epoch`` batches cover the arrays.
            epochs: Number of the epoch at which training ends; the number of epochs
                unless ``initial_epoch`` is set.
            verbose: 0 for no output, 1 or "auto" for a progress bar in a terminal or
                notebook and plain lines elsewhere, 2 for plain lines.
            callbacks: List of `keras.callbacks.Callback` objects, or a
                `keras.callbacks.CallbackList`.
            validation_split: Fraction of the arrays, between 0 and 1, to evaluate on
                after each epoch instead of training on it. The last samples are taken,
                before shuffling.
            validation_data: Data to evaluate on after each epoch: a tuple ``(x, y)`` or
                ``(x, y, sample_weight)``, or a source of batches. Overrides
                ``validation_split``.
            shuffle: If True, shuffle arrays before each epoch; "batch" shuffles only
                within each batch.
            class_weight: Dict from class number to the factor of its loss.
            sample_weight: Weights of the samples: an array, or a list or dict of arrays
                for several outputs.
            initial_epoch: Epoch at which to start, from 0, for example to resume a
                training.
            steps_per_epoch: Number of batches per epoch; required for infinite sources.
            validation_steps: Number of batches of ``validation_data`` to evaluate on,
                by default all.
            validation_batch_size: Batch size for ``validation_data``, ``batch_size`` by
                default.
            validation_freq: Number of epochs between evaluations on the validation
                data, or a list of the epochs, from 1, after which to evaluate.

        Shapes:
            Arrays ``[samples, ...]``, all with the same number of samples;
            ``sample_weight`` ``[samples]``.

        Returns:
            A `keras.callbacks.History`, whose ``history`` maps the name of each loss
            and metric to a list with one value per epoch.

        Raises:
            RuntimeError: If the model is not compiled.
            ValueError: If arrays, labels or names do not match, before anything is
                changed, or if workers pass different arrays.
            CollectiveError: If the variables of the workers have diverged.

        Example:
            >>> import numpy as np
            >>> model = keras.Sequential([keras.layers.Dense(1)])
            >>> model.compile("adam", "mse", metrics=["mae"])
            >>> x, y = np.ones((8, 3)), np.ones((8, 1))
            >>> history = model.fit(x, y, epochs=2, validation_split=0.25, verbose=0)
            >>> sorted(history.history), len(history.history["loss"])
            (['loss', 'mae', 'val_loss', 'val_mae'], 2)

        Note:
            With several workers (see `tw.distribute`) all of them pass the same data.
            ``batch_size`` is the size of the whole batch: each worker computes its
            part, and updates and logs are computed from the whole. The workers start
            with the variables of rank 0, stop as soon as one of them does, and compare
            digests of all variables after each epoch.
        """
        compiled = self._tw_need_compiled("fit")
        initial_epoch = _as_integer("initial_epoch", initial_epoch)
        epochs = limited("epochs", _as_integer("epochs", epochs))
        if validation_split and validation_data is None:
            arrays = (x, y, sample_weight)
            (x, y, sample_weight), validation_data = train_validation_split(
                arrays, validation_split
            )
        replicas = _replicas_of(self)
        epoch_iterator = EpochIterator(
            *(x, y, sample_weight, batch_size, steps_per_epoch, shuffle, class_weight),
            replicas,
            compiled.check_labels,
        )
        validation = _validation_iterator(
            validation_data,
            validation_batch_size or batch_size,
            validation_steps,
            replicas,
        )
        validates = _validation_schedule(validation_freq)
        self._tw_check_validation(epoch_iterator, validation)
        callbacks = self._tw_callbacks(
            callbacks, verbose, True, epochs=epochs, steps=epoch_iterator.num_batches
        )
        callbacks = replicas.synchronized(callbacks)
        self.stop_training = False
        self._tw_loop = loop = TrainingLoop(
            range(initial_epoch, epochs), epoch_iterator, validation, callbacks
        )
        try:
            callbacks.on_train_begin()  # `BackupAndRestore` restores `loop` here
            untracked = UntrackedVariables(self)
            for epoch in loop.epochs:
                # Made anew, because layers may have been frozen meanwhile.
                train_function = replicas.step(self.make_train_function())
                self.reset_metrics()
                loop.logs = {}
                callbacks.on_epoch_begin(epoch)  # and here, within an epoch
                steps = epoch_iterator.enumerate_epoch(self.steps_per_execution)
                for begin_step, end_step, batches in steps:
                    callbacks.on_train_batch_begin(begin_step)
                    loop.logs = execute_steps(train_function, batches)
                    callbacks.on_train_batch_end(end_step, loop.logs)
                    if self.stop_training:
                        break
                loop.logs = Logs(loop.logs).nested()
                if validation is not None and validates(epoch + 1):
                    loop.logs |= self._tw_validate(validation, callbacks, replicas)
                callbacks.on_epoch_end(epoch, loop.logs)
                untracked.warn_if_unchanged()
                if self.stop_training or epoch_iterator.is_exhausted:
                    break
            if epochs and hasattr(self.optimizer, "finalize_variable_values"):
                self.optimizer.finalize_variable_values(self.trainable_weights)
            callbacks.on_train_end(loop.logs)
        finally:
            self._tw_loop = None
            callbacks.on_close()
        return self.history

    def _tw_validate(self, validation, callbacks, replicas):
        """Evaluate on the validation data; return the logs under their names in `fit`."""
        validation.reset()  # the same batches each time
        logs = self._tw_evaluate(validation, callbacks, replicas)
        return {f"val_{name}": value for name, value in logs.items()}

    def _tw_check_validation(self, epoch_iterator, validation):
        """Reject validation arrays of wrong shapes before the first epoch, not after it."""
        if validation is None:
            return
        data, validation = epoch_iterator.adapter, validation.adapter
        are_arrays = all([type(x) is ArrayAdapter for x in (data, validation)])
        if not are_arrays or type(self).test_step is not TrainSteps.test_step:
            return
        y = unpack_x_y_sample_weight(data.arrays)[1]
        x, y_validation, _ = unpack_x_y_sample_weight(validation.arrays)
        if (
            y is not None
            and y_validation is None
            and self._tw_compiled.loss is not None
        ):
            raise ValueError("validation_data: must be (x, y), got x without labels")
        size = min(validation.batch_size, validation.num_samples)
        leaves = [leaf for leaf in flatten(x) if leaf is not None]
        specs = [(size, *leaf.shape[1:], leaf.dtype) for leaf in leaves]
        if not self._tw_all_built() or specs == self._tw_compiled.validated:
            return
        try:
            self._tw_call_symbolically(x, size)
        except ShapeError as error:
            error.add_note("in the x of validation_data")
            raise
        self._tw_compiled.validated = specs

    def _tw_callbacks(self, callbacks, verbose, add_history, **params):
        if isinstance(callbacks, CallbackList):
            return callbacks
        if verbose == "auto":
            verbose = 1
        if verbose not in (0, 1, 2):
            raise ValueError(f'verbose must be 0, 1, 2 or "auto", got {verbose!r}')
        return CallbackList(
            callbacks,
            add_history=add_history,
            add_progbar=verbose != 0,
            model=self,
            verbose=verbose,
            **params,
        )

    # --- evaluate

    @suggesting_arguments
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | CallbackList | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Compute the loss and the metrics on the data.

        Setting ``model.stop_evaluating = True`` in a callback ends the evaluation. With
        several workers each evaluates its part of the batches, and all return the
        result for the whole data.

        Args:
            x: Inputs: an array, or a list or dict of arrays, or a source of batches, as
                in `fit`.
            y: Labels: an array, or a list or dict of arrays for several outputs.
            batch_size: Number of samples per batch if ``x`` consists of arrays; by
                default 32, or such that ``steps`` batches cover the arrays.
            verbose: 0 for no output, 1 or "auto" for a progress bar in a terminal or
                notebook and a plain line elsewhere, 2 for a plain line.
            sample_weight: Weights of the samples ``[samples]``.
            steps: Number of batches to evaluate, by default all.
            callbacks: List of `keras.callbacks.Callback` objects, or a
                `keras.callbacks.CallbackList`.
            return_dict: If True, return a dict of all results by name.

        Returns:
            The loss if there are no metrics, else a list of the loss and the metrics in
            the order of `compile`.

        Raises:
            RuntimeError: If the model is not compiled.

        Example:
            >>> model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
            >>> model.compile(loss="mse", metrics=["mae"])
            >>> model.evaluate([[1.0, 2.0]], [[1.0]], verbose=0, return_dict=True)
            {'loss': 4.0, 'mae': 2.0}
        """
        self._tw_need_compiled("evaluate")
        replicas = _replicas_of(self)
        epoch_iterator = EpochIterator(
            x, y, sample_weight, batch_size, steps, replicas=replicas
        )
        callbacks = self._tw_callbacks(
            callbacks, verbose, False, epochs=1, steps=epoch_iterator.num_batches
        )
        callbacks = replicas.synchronized(callbacks)
        try:
            logs = self._tw_evaluate(epoch_iterator, callbacks, replicas)
        finally:
            callbacks.on_close()
        return self._tw_logs_of(logs, return_dict)

    def _tw_evaluate(self, epoch_iterator, callbacks, replicas):
        test_function, logs = replicas.step(self.make_test_function()), {}
        self.stop_evaluating = False
        self.reset_metrics()
        callbacks.on_test_begin()
        steps = epoch_iterator.enumerate_epoch(self.steps_per_execution)
        for begin_step, end_step, batches in steps:
            callbacks.on_test_batch_begin(begin_step)
            logs = execute_steps(test_function, batches)
            callbacks.on_test_batch_end(end_step, logs)
            if self.stop_evaluating:
                break
        logs = Logs(logs)
        callbacks.on_test_end(logs)
        return logs.copy()

    # --- predict

    @suggesting_arguments
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Sequence[Callback] | CallbackList | None = None,
    ) -> Any:
        """Compute the outputs for the data, batch by batch, as NumPy arrays.

        Setting ``model.stop_predicting = True`` in a callback ends the prediction.

        Args:
            x: Inputs: an array, or a list or dict of arrays, or a source of batches, as
                in `fit`; labels in it are ignored.
            batch_size: Number of samples per batch if ``x`` consists of arrays; by
                default 32, or such that ``steps`` batches cover the arrays.
            verbose: 0 for no output, 1 or "auto" for a progress bar in a terminal or
                notebook and a plain line elsewhere, 2 for a plain line.
            steps: Number of batches to predict, by default all.
            callbacks: List of `keras.callbacks.Callback` objects, or a
                `keras.callbacks.CallbackList`.

        Returns:
            A NumPy array, or arrays in the structure of the model's outputs; the
            batches are concatenated along axis 0. Sparse and ragged outputs are
            concatenated to sparse and ragged tensors.

        Example:
            >>> model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
            >>> model.predict([[1.0, 2.0], [3.0, 4.0]], verbose=0)
            array([[3.],
                   [7.]], dtype=float32)
        """
        epoch_iterator = EpochIterator(x, batch_size=batch_size, steps=steps)
        callbacks = self._tw_callbacks(
            callbacks, verbose, False, epochs=1, steps=epoch_iterator.num_batches
        )
        predict_function, outputs = self.make_predict_function(), Outputs(self.name)
        self.stop_predicting = False
        try:
            callbacks.on_predict_begin()
            for step, batch in enumerate(epoch_iterator):
                callbacks.on_predict_batch_begin(step)
                batch_outputs = predict_function(batch)
                outputs.append(batch_outputs)
                callbacks.on_predict_batch_end(step, {"outputs": batch_outputs})
                if self.stop_predicting:
                    break
            callbacks.on_predict_end()
        finally:
            callbacks.on_close()
        return outputs.joined()

    # --- single batches

    @suggesting_arguments
    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: dict[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Make one update on a single batch.

        The metrics are reset first. With several workers each passes its own part of
        the batch, of any positive size; the result is computed from the whole batch.
        The first call after `compile` copies the variables of rank 0 to all workers.

        Args:
            x: Inputs: an array, or a list or dict of arrays.
            y: Labels: an array, or a list or dict of arrays for several outputs.
            sample_weight: Weights of the samples ``[samples]``.
            class_weight: Dict from class number to the factor of its loss.
            return_dict: If True, return a dict of all results by name.

        Returns:
            The loss if there are no metrics, else a list of the loss and the metrics in
            the order of `compile`.

        Raises:
            RuntimeError: If the model is not compiled.
            ValueError: If both ``class_weight`` and ``sample_weight`` are given.

        Example:
            >>> model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
            >>> model.compile("sgd", loss="mse", metrics=["mae"])
            >>> model.train_on_batch([[1.0, 2.0]], [[1.0]], return_dict=True)
            {'loss': 4.0, 'mae': 2.0}
        """
        self._tw_need_compiled("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "train_on_batch: pass class_weight or sample_weight, not both"
                )
            sample_weight = class_weight_to_sample_weight(y, class_weight)
        data = _batch("train_on_batch", x, y, sample_weight)
        self._tw_compiled.check_labels(data)
        function = self.make_train_function()
        self.reset_metrics()
        logs = _replicas_of(self).step_on_own_batch("train_on_batch", function, data)
        return self._tw_logs_of(logs, return_dict)

    @suggesting_arguments
    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Compute the loss and the metrics for a single batch.

        Args:
            x: Inputs: an array, or a list or dict of arrays.
            y: Labels: an array, or a list or dict of arrays for several outputs.
            sample_weight: Weights of the samples ``[samples]``.
            return_dict: If True, return a dict of all results by name.

        Returns:
            The loss if there are no metrics, else a list of the loss and the metrics in
            the order of `compile`.

        Raises:
            RuntimeError: If the model is not compiled.
        """
        self._tw_need_compiled("test_on_batch")
        data = _batch("test_on_batch", x, y, sample_weight)
        function = self.make_test_function()
        self.reset_metrics()
        logs = _replicas_of(self).step_on_own_batch("test_on_batch", function, data)
        return self._tw_logs_of(logs, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Compute the outputs for a single batch, as NumPy arrays.

        Args:
            x: Inputs: an array, or a list or dict of arrays.
        """
        data = _batch("predict_on_batch", x, None, None)
        outputs = self.make_predict_function()(data)
        return map_structure(lambda t: t.numpy() if is_tensor(t) else t, outputs)

    def _tw_logs_of(self, logs, return_dict):
        """Return logs as a dict, or as a list in Keras' order.

        The order is: the loss, the metrics of a single output in their order, the
        losses of several outputs; then the others, by name.
        """
        logs = Logs(logs).copy()
        if return_dict:
            return logs
        names = []
        for metric in self.metrics:
            inner = isinstance(metric, CompileMetrics)
            names += [m.name for m in metric.metrics] if inner else [metric.name]
        names = dict.fromkeys([*names, *sorted(logs)])
        results = [logs[name] for name in names if name in logs]
        return results[0] if len(results) == 1 else results


@dataclass
class TrainingLoop:
    """The epochs, data, callbacks and latest logs of a call of `fit`.

    A `TrainingState` restores it.
    """

    epochs: range
    epoch_iterator: EpochIterator
    validation: EpochIterator | None
    callbacks: CallbackList
    logs: dict[str, Any] = field(default_factory=dict)


class UntrackedVariables:
    """Variables that look like weights, but are not, with their values as `fit` begins."""

    def __init__(self, model):
        variables = [v for v in model._tw_untracked() if v.trainable]
        self._values = [(v, v._array) for v in variables if v.dtype.is_floating]
        self._model = model

    def warn_if_unchanged(self):
        """Warn, once, about the variables that training does not change."""
        values, self._values = self._values, []
        names = [f"'{v.name}'" for v, before in values if v._array is before]
        if names and self._model.optimizer is not None:
            self._model._tw_warn(
                f"fit does not train the variable {', '.join(names[:8])}: as in "
                "Keras 3, a tw.Variable or tw.Module in an attribute is not a "
                "weight; use add_weight or keras.Variable, or trainable=False"
            )


def _as_integer(name, value):
    """Return an argument of `fit` as an integer, which may be 0 or negative."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"fit: {name} must be an integer, got {value!r}") from None


def _validation_iterator(data, batch_size, steps, replicas):
    if data is None:
        return None
    if isinstance(data, (list, tuple)):
        parts = (*unpack_x_y_sample_weight(data), batch_size, steps)
        return EpochIterator(*parts, replicas=replicas)
    return EpochIterator(data, steps=steps, replicas=replicas)


def _validation_schedule(validation_freq):
    """Return a function of the epoch number, from 1: whether to evaluate after that epoch."""
    if isinstance(validation_freq, int):
        if validation_freq < 1:
            raise ValueError(
                f"validation_freq must be 1 or more, got {validation_freq}"
            )
        return lambda epoch: epoch % validation_freq == 0
    if isinstance(validation_freq, (list, tuple, set, range)):
        return lambda epoch: epoch in validation_freq
    raise ValueError(
        "validation_freq must be an integer or a list of epochs, got "
        f"{validation_freq!r}"
    )


def _replicas_of(model):
    """Return the `Replicas` of a model, for one call of `fit` or a similar method."""
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync == 1:
        return Replicas()
    from .several_replicas import SeveralReplicas

    return SeveralReplicas(model, strategy)


def _batch(who, x, y, sample_weight):
    parts = (x, y, sample_weight)
    count = 3 if sample_weight is not None else 2 if y is not None else 1
    return as_batch(who, parts[:count])
