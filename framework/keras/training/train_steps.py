"""`TrainSteps`: a single step of training, evaluation and prediction.

The three steps are methods to override; they run as traced functions unless the model
was compiled with ``run_eagerly``.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core.interpreters import converted
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.nest import map_structure
from tapewright.core.state.commit import bound_again, undoing
from tapewright.layers.base.call_spec import CallSignature
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .compile_loss import track_loss
from .compiled import CompiledModel
from .data_adapters.data_adapter_utils import unpack_x_y_sample_weight
from .traced_step import TracedStep, TracedSteps

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class TrainSteps(CompiledModel):
    """The part of a `Trainer` that runs a single step."""

    def train_step(self, data: Any) -> dict[str, Any]:
        """Train on one batch: compute the loss and its gradients, and update the weights.

        Override this method to customize training. `fit` calls it for each batch, as a
        traced function unless the model was compiled with ``run_eagerly``.

        Args:
            data: Batch: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``; see
                `keras.utils.unpack_x_y_sample_weight`.

        Returns:
            Dict of the values to log.

        Example:
            >>> class Clipped(keras.Model):
            ...     def __init__(self):
            ...         super().__init__()
            ...         self.top = keras.layers.Dense(1)
            ...
            ...     def call(self, inputs):
            ...         return self.top(inputs)
            ...
            ...     def train_step(self, data):
            ...         x, y = data
            ...         with tw.GradientTape() as tape:
            ...             loss = self.compute_loss(x, y, self(x, training=True))
            ...         gradients = tape.gradient(loss, self.trainable_variables)
            ...         gradients, norm = tw.clip_by_global_norm(gradients, 1.0)
            ...         self.optimizer.apply(gradients, self.trainable_variables)
            ...         return {"loss": loss, "norm": norm}
            >>> model = Clipped()
            >>> model.compile("sgd", "mse")
            >>> history = model.fit([[1.0, 2.0]], [[1.0]], verbose=0)
            >>> sorted(history.history)
            ['loss', 'norm']
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        if not self._tw_has_weights:
            self._tw_make_weights(x)
        if self.optimizer is None and self.trainable_variables:
            raise ValueError(
                f"model '{self.name}': there is no optimizer; pass one to compile()"
            )
        with GradientTape() as tape:
            y_pred = self._tw_call_for(x, True)
            loss = self._tw_loss_of(x, y, y_pred, sample_weight, True)
            track_loss(self._tw_compiled.tracker, loss, x)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        if variables:
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply(gradients, variables)
        else:
            self._tw_warn(
                "the model has no trainable weights: training changes nothing"
            )
        return converted(self.compute_metrics)(x, y, y_pred, sample_weight)

    _tw_has_weights = False

    def _tw_make_weights(self, x):
        """Build all layers before a step draws random numbers.

        With a given seed, a step then draws the same numbers whether it is traced or
        not.
        """
        self._tw_has_weights = self._tw_all_built() or self._tw_call_symbolically(x)

    def _tw_build_for_batch(self, data):
        """Build the layers and the optimizer, as the first step on a batch does.

        A model that overrides `train_step` is not built.
        """
        if type(self).train_step is not TrainSteps.train_step:
            return
        x, _, _ = unpack_x_y_sample_weight(data)
        self._tw_make_weights(x)
        if not self._tw_has_weights:  # `call` needs values
            self._tw_call_for(x, False)
        if self.optimizer is not None and self.trainable_variables:
            self.optimizer.build(self.trainable_variables)

    def _tw_call_symbolically(self, x, batch_size=None):
        """Call the model on symbolic tensors like ``x``, which builds its layers.

        Returns:
            False if `call` needs values or a batch size that is not given; a step has
            both.
        """
        needs_more = [TypeError, AttributeError]  # the array in a tensor is none here
        needs_more += [] if batch_size else [ValueError, LookupError]

        def symbolic(leaf):
            shape = None if leaf is None else (batch_size, *leaf.shape[1:])
            return None if leaf is None else KerasTensor(shape, leaf.dtype)

        try:
            self.compute_output_spec(map_structure(symbolic, x))
        except tuple(needs_more):
            return False
        return True

    def test_step(self, data: Any) -> dict[str, Any]:
        """Compute loss and metrics for one batch, without an update; `evaluate` calls it.

        Override this method to customize evaluation.

        Args:
            data: Batch: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.

        Returns:
            Dict of the values to log.
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self._tw_call_for(x, False)
        loss = self._tw_loss_of(x, y, y_pred, sample_weight, False)
        track_loss(self._tw_compiled.tracker, loss, x)
        return converted(self.compute_metrics)(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Compute the outputs for one batch; `predict` calls it.

        Args:
            data: Batch: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``; only ``x`` is
                used.

        Returns:
            The outputs of the model.
        """
        x, _, _ = unpack_x_y_sample_weight(data)
        return self._tw_call_for(x, False)

    def _tw_call_for(self, x, training):
        signature = self._call_signature()
        if signature.takes_training or signature.takes_any:
            return self(x, training=training)
        return self(x)

    def _tw_loss_of(self, x, y, y_pred, sample_weight, training):
        signature = CallSignature(type(self).compute_loss)
        compute_loss = converted(self.compute_loss)
        if signature.takes_training or signature.takes_any:
            return compute_loss(x, y, y_pred, sample_weight, training=training)
        return compute_loss(x, y, y_pred, sample_weight)

    # --- steps as functions

    def make_train_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function that runs `train_step` on a batch, traced unless eager.

        Args:
            force: If True, trace it anew.
        """
        return self._tw_function("train_step", force)

    def make_test_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function that runs `test_step` on a batch, traced unless eager.

        Args:
            force: If True, trace it anew.
        """
        return self._tw_function("test_step", force)

    def make_predict_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function that runs `predict_step` on a batch, traced unless eager.

        Args:
            force: If True, trace it anew.
        """
        return self._tw_function("predict_step", force)

    def _tw_function(self, name, force=False):
        if self.run_eagerly:
            return partial(self._tw_whole_step, getattr(self, name))
        functions = self._tw_functions()
        known = functions.get(name)
        if known is None:  # of several threads, all have that of the first
            known = functions.setdefault(name, TracedStep(self, name))
        if force or not known.is_up_to_date(self):
            known = functions[name] = TracedStep(self, name)
        return known

    def _tw_whole_step(self, step, data):
        """Run an eager step; if it fails, statistics assigned in it are restored.

        Assignments of layers are kept once the optimizer has made its update.
        """
        statistics, metrics = self.non_trainable_variables, self.metrics_variables
        counter = getattr(self.optimizer, "_iterations", None)
        before = None if counter is None else counter._array
        of_layers, of_metrics = bound_again(statistics), bound_again(metrics)

        def restore():
            if counter is None or counter._array is before:
                of_layers()
            of_metrics()

        return undoing(restore, step, data)

    def _tw_functions(self):
        if self._tw_compiled is not None:
            return self._tw_compiled.functions.by_name
        return vars(self).setdefault("_own_functions", TracedSteps()).by_name

    def _tw_warn(self, text):
        warnings.warn(f"model '{self.name}': {text}", stacklevel=user_stacklevel())
