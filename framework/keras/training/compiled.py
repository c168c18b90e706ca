"""`CompiledModel`: `compile`, and the losses and metrics that it adds to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright import optimizers
from tapewright.core.messages.argument_validation import whole
from tapewright.core.messages.suggestions import suggesting_arguments
from tapewright.core.nest import flatten
from tapewright.core.settings import config
from tapewright.core.settings.floatx import default_float
from tapewright.core.state.replica_context import replica_context
from tapewright.core.trackable import Trackable, drop_pending
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.reduction import reduce_sum
from tapewright.optimizers.loss_scale import LossScaleOptimizer
from tapewright.serialization.constructor_arguments import is_own

from .. import losses as losses_module
from .. import metrics as metrics_module
from ..losses import Loss
from ..losses.loss import scale_by_share
from ..metrics import Mean
from ..metrics.replica_states import aggregated_states
from ..metrics.serialization import BY_LABELS
from .compile_config import arguments_of_compile, compile_config
from .compile_loss import CompileLoss, sum_of, track_loss
from .compile_metrics import CompileMetrics
from .data_adapters.data_adapter_utils import check_labels
from .traced_step import TracedSteps

if TYPE_CHECKING:
    from typing import Any

    from tapewright.core.tensor import Tensor
    from tapewright.optimizers.base.optimizer import Optimizer

    from ..metrics.metric import Metric


class CompiledModel:
    """The part of a `Trainer` that holds the optimizer, losses and metrics."""

    optimizer: Any = None
    loss: Any = None
    _tw_runs_eagerly = False
    _tw_compiled = None

    @suggesting_arguments
    def compile(
        self,
        optimizer: Optimizer | str | dict[str, Any] | None = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int | None = 1,
        jit_compile: bool | str = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Configure the model for training: set its optimizer, losses and metrics.

        If `compile` is called again without ``loss`` or without ``metrics``, the
        previous losses or metrics are kept, as in Keras.

        Args:
            optimizer: `Optimizer`, or its name or config.
            loss: `Loss`, its name, or a function ``loss(y_true, y_pred)``; for models
                with several outputs also a list or dict of losses.
            loss_weights: Factors by which the losses are multiplied before they are
                added up: a list or dict with one number per loss.
            metrics: List of metric names, `Metric` objects or functions
                ``metric(y_true, y_pred)``; for models with several outputs also a list
                or dict of such lists.
            weighted_metrics: Like ``metrics``, for metrics that apply the sample
                weights.
            run_eagerly: If True, run each step as plain Python code instead of a traced
                function, for example to debug it.
            steps_per_execution: Number of steps of `fit` and `evaluate` that are traced
                as one function; callbacks are called once for all of them. Values above
                1 save launch time on a GPU if steps are short; on the CPU they only
                lengthen compilation. The remaining steps at the end of an epoch, and
                all steps in training with several workers, run one by one.
            jit_compile: Accepted for compatibility with Keras; has no effect.
            auto_scale_loss: If True and the dtype policy of the model is
                "mixed_float16", wrap the optimizer in a `LossScaleOptimizer`.

        Raises:
            ValueError: If a name is unknown (the message lists similar names), if
                ``jit_compile`` and ``run_eagerly`` are both True, or if
                ``steps_per_execution`` is not a positive integer.
            TypeError: If a loss or metric has an unsupported type.

        Example:
            >>> model = keras.Sequential([keras.layers.Dense(10)])
            >>> model.compile(
            ...     optimizer=keras.optimizers.Adam(1e-3),
            ...     loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            ...     metrics=["accuracy"],
            ... )
        """
        if steps_per_execution is not None:  # as in files of Keras 2
            whole("compile", "steps_per_execution", steps_per_execution)
        if run_eagerly and jit_compile is True:
            raise ValueError(
                "compile: jit_compile=True requires traced steps; pass "
                "run_eagerly=False"
            )
        optimizer = optimizers.get(optimizer)
        if (
            auto_scale_loss
            and optimizer is not None
            and self.dtype_policy.name == "mixed_float16"
            and not isinstance(optimizer, LossScaleOptimizer)
        ):
            optimizer = LossScaleOptimizer(optimizer, name="loss_scale_optimizer")
        if optimizer is not None and self.distribute_strategy._tw_shard_optimizer:
            optimizer._tw_shard()
        options = {
            "optimizer": optimizer,
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
            "run_eagerly": bool(run_eagerly),
            "steps_per_execution": steps_per_execution,
            "jit_compile": jit_compile,
        }
        output_names = self._tw_output_names()
        self._tw_compiled = Compiled(options, output_names, self._tw_compiled)
        self.optimizer, self.loss = options["optimizer"], options["loss"]
        self._tw_runs_eagerly = options["run_eagerly"]
        self.stop_training = False

    def get_compile_config(self) -> dict[str, Any]:
        """Return the arguments of `compile` in Keras' format; ``{}`` before `compile`.

        Raises:
            ValueError: If an argument is a lambda, which cannot be serialized.
        """
        return (
            {}
            if self._tw_compiled is None
            else compile_config(self._tw_compiled.options)
        )

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compile the model with the arguments in a config.

        Args:
            config: Result of `get_compile_config`, of tapewright or Keras.

        Raises:
            ValueError: If a key, class or function is unknown.
        """
        if config:
            self.compile(**arguments_of_compile(config))

    @property
    def compiled(self) -> bool:
        """True if `compile` has been called."""
        return self._tw_compiled is not None

    @property
    def run_eagerly(self) -> bool:
        """True if steps run as plain Python code; can be set, also before `compile`."""
        return self._tw_runs_eagerly or config.functions_run_eagerly()

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        self._tw_runs_eagerly = bool(value)
        if self._tw_compiled is not None:
            self._tw_compiled.options["run_eagerly"] = bool(value)

    @property
    def steps_per_execution(self) -> int:
        """Number of steps traced as one function; can be set after `compile`."""
        if self._tw_compiled is None:
            return 1
        return self._tw_compiled.options["steps_per_execution"] or 1

    @steps_per_execution.setter
    def steps_per_execution(self, value: int) -> None:
        compiled = self._tw_need_compiled("setting steps_per_execution")
        compiled.options["steps_per_execution"] = whole(
            "steps_per_execution", "value", value
        )

    def _tw_need_compiled(self, what):
        if self._tw_compiled is None:
            raise RuntimeError(
                f"model '{self.name}': call compile(optimizer, loss) before {what}"
            )
        return self._tw_compiled

    # --- losses

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Compute the total loss: the losses of `compile` plus `losses` of the layers.

        In training with several replicas the result is this replica's part; the parts
        add up to the loss of the whole batch. An override that adds its own mean must
        multiply it by the replica's share of the batch, as the losses of `keras.losses`
        do.

        Args:
            x: Inputs of the batch; not used, for overrides.
            y: Labels of the batch.
            y_pred: Outputs of the model.
            sample_weight: Weights of the examples, or None.
            training: True in a training step; not used, for overrides.

        Returns:
            The loss: a number, or one value per example if the losses are not reduced.

        Raises:
            ValueError: If there is no loss.
        """
        losses, in_each = [], False
        if self._tw_compiled is not None and self._tw_compiled.loss is not None:
            if y_pred is None:
                raise TypeError(
                    f"model '{self.name}': call() returned None; is a return "
                    "statement missing?"
                )
            loss = self._tw_compiled.loss(y, y_pred, sample_weight)
            context = replica_context()
            is_idle = context is not None and context.is_idle
            # Without a reduction it is in the loss of each example.
            in_each = loss is not None and len(loss.shape) > 0 and not is_idle
            losses.append(loss)
        for loss in self.losses:
            if not loss.dtype.is_floating or loss.dtype.size == 2:
                loss = cast(loss, default_float())
            loss = reduce_sum(loss) if len(loss.shape) else loss
            losses.append(loss if in_each else scale_by_share(loss))
        total = sum_of([loss for loss in losses if loss is not None])
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
        """Update the metrics of `compile` and return `get_metrics_result`.

        Args:
            x: Inputs of the batch; not used, for overrides.
            y: Labels of the batch.
            y_pred: Outputs of the model.
            sample_weight: Weights of the examples, or None.

        Returns:
            Dict of the results of all metrics, by name.
        """
        if self._tw_compiled is not None and self._tw_compiled.metrics is not None:
            self._tw_compiled.metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def compiled_loss(
        self,
        y: Any,
        y_pred: Any,
        sample_weight: Any = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        """Compute the loss and add it to the metric ``loss``, as in Keras 2.

        Args:
            y: Labels of the batch.
            y_pred: Outputs of the model.
            sample_weight: Weights of the examples, or None.
            regularization_losses: Ignored; `compute_loss` adds `losses`.

        Returns:
            The result of `compute_loss`.
        """
        loss = self.compute_loss(None, y, y_pred, sample_weight)
        track_loss(self._tw_compiled.tracker, loss, y_pred)
        return loss

    @property
    def compiled_metrics(self) -> Any:
        """The metrics of `compile`, with `update_state`; None before `compile`."""
        return self._tw_compiled and (self._tw_compiled.metrics or CompileMetrics(None))

    # --- metrics

    @property
    def metrics(self) -> list[Metric]:
        """All metrics: the mean loss, the metrics of `compile`, then the layers' metrics."""
        metrics, compiled = [], self._tw_compiled
        if compiled is not None:
            metrics.append(compiled.tracker)
            if compiled.metrics is not None:
                metrics.append(compiled.metrics)
            if compiled.loss is not None:
                metrics += compiled.loss.metrics
        return metrics + super().metrics

    @property
    def metrics_names(self) -> list[str]:
        """Names of `metrics`; the metrics of `compile` count as one, as in Keras 3."""
        return [metric.name for metric in self.metrics]

    def reset_metrics(self) -> None:
        """Reset the state of all metrics; `fit` does so before each epoch."""
        for metric in self.metrics:
            metric.reset_state()
        if self._tw_compiled is not None:
            self._tw_compiled.drop_pending()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the results of all `metrics`, by name.

        In training with several replicas they are computed from the data of all
        replicas.
        """
        results, metrics = {}, self.metrics
        with aggregated_states(metrics):
            for metric in metrics:
                result = metric.result()
                results |= result if isinstance(result, dict) else {metric.name: result}
        return results


class Compiled(Trackable):
    """The losses, metrics and traced steps created by a call of `compile`.

    If ``options`` has no loss, or no metrics, they are taken from the previous call
    ``before``.
    """

    def __init__(self, options, output_names=None, before=None):
        _check_names(options)
        _check_weights(options["loss_weights"])
        self.options = options
        self.loss = self.metrics = None
        if options["loss"] is not None:
            self.loss = CompileLoss(
                options["loss"], options["loss_weights"], output_names
            )
        elif before is not None:
            self._keep(before, "loss", "loss", "loss_weights")
        metrics, weighted = options["metrics"], options["weighted_metrics"]
        if metrics or weighted:
            self.metrics = CompileMetrics(metrics, weighted, output_names)
        elif before is not None and metrics is None and weighted is None:
            self._keep(before, "metrics", "metrics", "weighted_metrics")
        losses = flatten(self.options["loss"])
        self._checks_labels = self.loss is not None and all(map(_is_builtin, losses))
        self.tracker = Mean(name="loss")
        self.functions = TracedSteps()
        self.is_shared = False  # several workers have begun with the same variables
        self.validated = None  # shapes of validation data that fitted

    def _keep(self, before, part, *names):
        setattr(self, part, getattr(before, part))
        self.options |= {name: before.options[name] for name in names}

    def __children__(self):
        parts = {"tracker": self.tracker, "loss": self.loss, "metrics": self.metrics}
        return {name: part for name, part in parts.items() if part is not None}

    def check_labels(self, batch):
        """Reject NaN in labels, which turns built-in losses, and the weights, into NaN."""
        if self._checks_labels and isinstance(batch, tuple) and len(batch) > 1:
            check_labels(batch[1])

    def drop_pending(self):
        """Drop the restored state of metrics that do not exist yet."""
        for part in (self.loss, self.metrics):
            if part is not None:
                drop_pending(part)


def _check_names(options):
    """Reject unknown names of losses and metrics in `compile`, before the first batch."""
    for module, key in (
        (losses_module, "loss"),
        (metrics_module, "metrics"),
        (metrics_module, "weighted_metrics"),
    ):
        for each in flatten(options[key]):
            stem = BY_LABELS.get(each.lower()) if isinstance(each, str) else None
            by_labels = f"binary_{stem}"
            if not callable(each):
                module.get(by_labels if hasattr(module, by_labels) else each)


def _check_weights(loss_weights):
    for weight in flatten(loss_weights):
        if isinstance(weight, (str, bytes)) or callable(weight):
            raise TypeError(f"loss_weights: must be numbers, got {weight!r}")


def _is_builtin(loss):
    """Return whether a loss, given as object, name or function, is part of tapewright."""
    if loss is None or isinstance(loss, str):
        return True
    return is_own(type(loss) if isinstance(loss, Loss) else loss)
