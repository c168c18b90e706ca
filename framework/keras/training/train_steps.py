"""`TrainSteps`: `compile`, and one step of training, testing and predicting.

The three steps are methods to override; they run as traced functions unless the model was
compiled with ``run_eagerly``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tapewright import optimizers
from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core import config
from tapewright.core.nest import flatten, map_structure
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.elementwise import add
from tapewright.ops.math.reduction import reduce_sum
from tapewright.serialization.constructor_arguments import is_own

from ..callbacks.logs import Logs
from ..losses import Loss
from .compile_config import Compiled, arguments_of_compile, compile_config
from .compile_metrics import CompileMetrics
from .data_adapters.data_adapter_utils import (
    check_labels,
    unpack_x_y_sample_weight,
)
from .output_structure import batch_size_of
from .traced_step import TracedStep, TracedSteps

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.optimizers.optimizer import Optimizer

    from ..metrics.metric import Metric

__all__ = ["TrainSteps", "symbolic_batch"]


class TrainSteps:
    """The part of a `Trainer` that makes one step."""

    optimizer: Any = None
    loss: Any = None
    stop_training: bool = False
    stop_evaluating: bool = False
    stop_predicting: bool = False
    _runs_eagerly = False
    _compiled = None

    def compile(
        self,
        optimizer: Optimizer | str | dict[str, Any] | None = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Set optimizer, losses and metrics for training.

        Args: ``optimizer``: one, or its name; ``loss``: a loss, its name or a function
        ``loss(y_true, y_pred)``, for models with several outputs a list or dict of them;
        ``loss_weights``: factors in the sum of several losses; ``metrics``: a list of
        names, `Metric` objects or functions, or a list or dict of lists for several
        outputs; ``weighted_metrics``: those that sample weights count for;
        ``run_eagerly``: steps run as plain Python, not traced. In a further `compile` a
        loss, or metrics, that are not given stay those of the last one, as in Keras.

        ``steps_per_execution`` and ``jit_compile`` are Keras', and change nothing here:
        a traced step has no cost between one and the next; nor does
        ``auto_scale_loss``, since no layer computes in a dtype other than its weights'.

        Raises: ``ValueError`` for an unknown name, with those that are near, and for
        ``jit_compile=True`` with ``run_eagerly``.
        """
        if run_eagerly and jit_compile is True:
            raise ValueError(
                "compile: jit_compile=True needs traced steps; run_eagerly must be False"
            )
        options = {
            "optimizer": optimizers.get(optimizer),
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
            "run_eagerly": bool(run_eagerly),
            "steps_per_execution": steps_per_execution,
            "jit_compile": jit_compile,
        }
        output_names = getattr(self, "output_names", None)
        self._compiled = Compiled(options, output_names, self._compiled)
        self.optimizer, self.loss = options["optimizer"], options["loss"]
        self._runs_eagerly = options["run_eagerly"]
        self.stop_training = False

    def get_compile_config(self) -> dict[str, Any]:
        """Return the arguments of `compile` as Keras writes them; empty before it was called.

        Raises: ``ValueError`` for a lambda, which no config can hold.
        """
        return {} if self._compiled is None else compile_config(self._compiled.options)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Call `compile` with the arguments that `get_compile_config` gave, ours or Keras'.

        Raises: ``ValueError`` for an unknown key, class or function.
        """
        if config:
            self.compile(**arguments_of_compile(config))

    @property
    def compiled(self) -> bool:
        return self._compiled is not None

    @property
    def run_eagerly(self) -> bool:
        """True if steps run as plain Python; may be set, also before `compile`."""
        return self._runs_eagerly or config.functions_run_eagerly()

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        self._runs_eagerly = bool(value)
        if self._compiled is not None:
            self._compiled.options["run_eagerly"] = bool(value)

    def _need_compiled(self, what):
        if self._compiled is None:
            raise RuntimeError(
                f"model '{self.name}': call compile(optimizer, loss) before {what}"
            )
        return self._compiled

    # --- one step

    def train_step(self, data: Any) -> dict[str, Any]:
        """Make one update by a batch: ``x`` alone, ``(x, y)`` or ``(x, y, sample_weight)``.

        Returns a dict of what is to be logged. Override it for a training loop of your
        own; `fit` does the rest.
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        if not self._has_weights:
            self._make_weights(x)
        if self.optimizer is None and self.trainable_variables:
            raise ValueError(
                f"model '{self.name}': there is no optimizer; pass one to compile()"
            )
        with GradientTape() as tape:
            y_pred = self._call_for(x, True)
            loss = self._loss_of(x, y, y_pred, sample_weight, True)
            self._compiled.tracker.update_state(loss, sample_weight=batch_size_of(x))
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        if variables:
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply(gradients, variables)
        else:
            self._warn("the model has no trainable weights: training changes nothing")
        return self.compute_metrics(x, y, y_pred, sample_weight)

    _has_weights = False

    def _make_weights(self, x):
        """Build all layers before a step draws random numbers: a seed then gives the
        same numbers whether the step is traced or not."""
        self._has_weights = True
        if all([layer.built for layer, _ in self._walk()]):
            return

        try:
            self.compute_output_spec(symbolic_batch(x))
        except Exception:  # what is wrong with x or with the layers, the step will tell
            self._has_weights = False

    def test_step(self, data: Any) -> dict[str, Any]:
        """Compute loss and metrics for one batch, without an update."""
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self._call_for(x, False)
        loss = self._loss_of(x, y, y_pred, sample_weight, False)
        self._compiled.tracker.update_state(loss, sample_weight=batch_size_of(x))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Compute the outputs for one batch."""
        x, _, _ = unpack_x_y_sample_weight(data)
        return self._call_for(x, False)

    def _call_for(self, x, training):
        if self._signature.takes_training or self._signature.takes_any:
            return self(x, training=training)
        return self(x)

    def _loss_of(self, x, y, y_pred, sample_weight, training):
        code = type(self).compute_loss.__code__
        if "training" in code.co_varnames or code.co_flags & 0x08:
            return self.compute_loss(x, y, y_pred, sample_weight, training=training)
        return self.compute_loss(x, y, y_pred, sample_weight)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Add up the loss of `compile` and `losses`. Raises: ``ValueError`` without any."""
        total = None
        if self._compiled is not None and self._compiled.loss is not None:
            if y_pred is None:
                raise TypeError(
                    f"model '{self.name}': call() returned None; is a return "
                    "statement missing?"
                )
            total = self._compiled.loss(y, y_pred, sample_weight)
        for loss in self.losses:
            if not loss.dtype.is_floating:
                loss = cast(loss, "float32")
            loss = reduce_sum(loss) if len(loss.shape) else loss
            if total is not None and loss.dtype is not total.dtype:
                loss = cast(loss, total.dtype)
            total = loss if total is None else add(total, loss)
        if total is None:
            raise ValueError(
                f"model '{self.name}': there is no loss; pass loss= to compile(), or call "
                "add_loss() in a layer"
            )
        return total

    def compute_metrics(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
    ) -> dict[str, Any]:
        """Update the metrics of `compile`; return `get_metrics_result`."""
        if self._compiled is not None and self._compiled.metrics is not None:
            self._compiled.metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def compiled_loss(
        self,
        y: Any,
        y_pred: Any,
        sample_weight: Any = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        """`compute_loss` by its name in Keras 2."""
        return self.compute_loss(None, y, y_pred, sample_weight)

    @property
    def compiled_metrics(self) -> Any:
        """The metrics of `compile`, with `update_state`."""
        return self._compiled and self._compiled.metrics

    # --- metrics

    @property
    def metrics(self) -> list[Metric]:
        """The loss' running mean, the metrics of `compile`, then those of the layers."""
        found = []
        compiled = self._compiled
        if compiled is not None:
            found.append(compiled.tracker)
            if compiled.metrics is not None:
                found.append(compiled.metrics)
            if compiled.loss is not None:
                found += compiled.loss.metrics
        return found + super().metrics

    @property
    def metrics_names(self) -> list[str]:
        return [metric.name for metric in self.metrics]

    def reset_metrics(self) -> None:
        """Reset the state of all metrics; `fit` does it before each epoch."""
        for metric in self.metrics:
            metric.reset_state()
        if self._compiled is not None:
            self._compiled.drop_pending()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the results of all `metrics`, by name."""
        found = {}
        for metric in self.metrics:
            result = metric.result()
            if isinstance(result, dict):
                found |= result
            else:
                found[metric.name] = result
        return found

    # --- steps as functions

    def make_train_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function of a batch that runs `train_step`, traced unless eager."""
        return self._function("train_step", force)

    def make_test_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function of a batch that runs `test_step`."""
        return self._function("test_step", force)

    def make_predict_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function of a batch that runs `predict_step`."""
        return self._function("predict_step", force)

    def _function(self, name, force=False):
        if self.run_eagerly:
            return getattr(self, name)
        functions = self._functions()
        known = functions.get(name)
        if known is None:  # of several threads, all have that of the first
            known = functions.setdefault(name, TracedStep(self, name))
        if force or not known.holds(self):
            known = functions[name] = TracedStep(self, name)
        return known

    def _functions(self):
        if self._compiled is not None:
            return self._compiled.functions.by_name
        return vars(self).setdefault("_own_functions", TracedSteps()).by_name

    def _logs_of(self, logs, return_dict):
        """Return logs as a dict, or in Keras' order: the loss, metrics of a single output
        as they were given, the losses of several outputs; then the others, by name."""
        logs = Logs(logs).copy()
        if return_dict:
            return logs
        names = []
        for metric in self.metrics:
            inner = isinstance(metric, CompileMetrics)
            names += [m.name for m in metric.metrics] if inner else [metric.name]
        names = list(dict.fromkeys(names))
        found = [logs[name] for name in names if name in logs]
        found += [logs[name] for name in sorted(logs) if name not in names]
        return found[0] if len(found) == 1 else found

    def _check_labels(self, data):
        """Refuse NaN in labels, which make every built-in loss, and the weights, NaN."""
        loss = self.loss
        known = isinstance(loss, str) or _all_own(loss)
        if known and isinstance(data, tuple) and len(data) > 1:
            check_labels(data[1])

    def _warn(self, text):
        warnings.warn(f"model '{self.name}': {text}", stacklevel=3)


def _all_own(loss):
    if isinstance(loss, (list, tuple, dict)):
        return all(
            [isinstance(x, str) or x is None or _all_own(x) for x in flatten(loss)]
        )
    return is_own(type(loss) if isinstance(loss, Loss) else loss)


def symbolic_batch(x, size=None):
    """A `KerasTensor` for each array or tensor of ``x``, for batches of this size."""

    def symbolic(leaf):
        shape = None if leaf is None else (size, *leaf.shape[1:])
        return None if leaf is None else KerasTensor(shape, leaf.dtype)

    return map_structure(symbolic, x)
