"""The arguments of `compile`: checked, kept together, written as Keras' config and read."""

from tapewright.core.nest import flatten
from tapewright.core.trackable import Trackable, drop_pending
from tapewright.serialization import object_config, registry
from tapewright.serialization.load_errors import load_error

from .. import losses as losses_module
from .. import metrics as metrics_module
from ..files.keras_objects import serialize_keras_object
from ..metrics import Mean
from ..metrics.serialization import BY_LABELS
from .compile_loss import CompileLoss
from .compile_metrics import CompileMetrics
from .traced_step import TracedSteps

__all__ = ["Compiled", "arguments_of_compile", "compile_config"]


class Compiled(Trackable):
    """The losses, metrics and traced steps that a call of `compile` made.

    A loss, or metrics, that ``options`` lack are those of the call ``before``.
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
        self.tracker = Mean(name="loss")
        self.functions = TracedSteps()
        self.validated = None  # shapes of validation data that fitted

    def _keep(self, before, part, *names):
        setattr(self, part, getattr(before, part))
        self.options |= {name: before.options[name] for name in names}

    def __children__(self):
        parts = {"tracker": self.tracker, "loss": self.loss, "metrics": self.metrics}
        return {name: part for name, part in parts.items() if part is not None}

    def drop_pending(self):
        """Start metrics of a checkpoint that are still to be made from nothing."""
        for part in (self.loss, self.metrics):
            if part is not None:
                drop_pending(part)


def _check_names(options):
    """Refuse names of no loss or metric in `compile`, not at the first batch."""
    for module, key in (
        (losses_module, "loss"),
        (metrics_module, "metrics"),
        (metrics_module, "weighted_metrics"),
    ):
        for each in flatten(options[key]):
            known = isinstance(each, str) and each.lower() in BY_LABELS
            if not known and not callable(each):
                module.get(each)


def _check_weights(loss_weights):
    for weight in flatten(loss_weights):
        if isinstance(weight, (str, bytes)) or callable(weight):
            raise TypeError(f"loss_weights: must be numbers, got {weight!r}")


_KINDS = {
    "optimizer": "optimizer",
    "loss": "loss",
    "metrics": "metric",
    "weighted_metrics": "metric",
}
_PLAIN = ("loss_weights", "run_eagerly", "steps_per_execution", "jit_compile")
_OFF = {"auto_scale_loss": True}  # of other versions of Keras: what they may say


def compile_config(options):
    """The arguments of `compile` as plain values; names and numbers as they were given.

    Raises: ``ValueError`` for a lambda, which no config can hold.
    """
    config = {}
    for key, value in options.items():
        try:
            config[key] = serialize_keras_object(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"compile's {key} cannot be saved: {error}. A model can be saved "
                "without it, by include_optimizer=False"
            ) from error
    return config


def arguments_of_compile(config):
    """The arguments for `compile` that `compile_config` wrote down, ours or Keras'.

    Raises: ``ValueError`` for an unknown key, class or function.
    """
    if not isinstance(config, dict):
        raise load_error(f"the compile config must be a dict, got {str(config)[:80]}")
    arguments = {}
    for key, value in config.items():
        if key in _KINDS:
            arguments[key] = _revived(_KINDS[key], value)
        elif key in _PLAIN:
            arguments[key] = value
        elif value is not None and _OFF.get(key) != value:
            raise load_error(
                f"the compile config has {str(key)[:80]!r}: {str(value)[:80]}, which is "
                f"not supported; known are {', '.join([*_KINDS, *_PLAIN])}"
            )
    return arguments


def _revived(kind, value):
    """Replace configs by their objects; names stay names, as `compile` takes them."""
    if isinstance(value, (list, tuple)):
        return [_revived(kind, each) for each in value]
    if isinstance(value, str):  # Keras has functions of the user's so in HDF5
        known = registry.get_registered_object(value)
        return value if known is None or isinstance(known, type) else known
    if not isinstance(value, dict):
        return value
    if "class_name" in value:
        return object_config.deserialize(kind, value)
    return {key: _revived(kind, each) for key, each in value.items()}
