"""`Callback`: hooks that `fit`, `evaluate` and `predict` call."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from tapewright.core.names.reserved_names import Reserving, name_in_files
from tapewright.serialization.constructor_arguments import check_argument_names, is_own
from tapewright.serialization.constructor_call import constructor_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.model import Model

__all__ = ["Callback", "LambdaCallback", "OptionalLogs", "only_when"]

OptionalLogs: TypeAlias = dict[str, Any] | None


class Callback(Reserving):
    """Base class of callbacks: hooks that do nothing unless a subclass overrides them.

    ``epoch`` and ``batch`` count from 0; ``logs`` maps names ("loss", "val_accuracy")
    to floats. Values after a batch are means since the beginning of the epoch. A
    callback that overrides no batch hook has no cost per batch.

    With several workers (`tw.distribute`) each calls the hooks of its callbacks, with
    the same logs: pass the same callbacks on all of them. The callbacks in this
    namespace print lines and write files on the first worker only; your own can check
    ``tw.distribute.rank() == 0``.

    Attributes:
        model: The model. Setting ``model.stop_training = True`` ends its training;
            ``stop_evaluating`` and ``stop_predicting`` end `evaluate` and `predict`.
        params: Dict of "verbose", "epochs" and "steps" (None if unknown).

    Example:
        >>> class Loud(keras.callbacks.Callback):
        ...     def on_epoch_end(self, epoch, logs=None):
        ...         print(f"{epoch}: {logs['loss']}")
        >>> Loud().on_epoch_end(0, {"loss": 0.5})
        0: 0.5
    """

    # Names of the attributes that are the state of a training.
    state_names: tuple[str, ...] = ()
    _tw_is_kept = True  # a backup keeps them
    _tw_comes_last = False  # it is called after all others

    params: dict[str, Any] | None = None
    _model = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs and is_own(cls):
            check_argument_names(cls, kwargs)
        return super().__new__(cls)

    def __init__(self):
        self.params = None
        self._model = None

    def __repr__(self) -> str:
        return constructor_call(self)

    @property
    def model(self) -> Model:
        """The model that is trained, evaluated or used for prediction."""
        return self._model

    def set_model(self, model: Model) -> None:
        """Set `model`; called by `fit`.

        Args:
            model: The `Model`.
        """
        self._model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Set ``params``; called by `fit`.

        Args:
            params: Dict of "verbose", "epochs" and "steps".
        """
        self.params = params

    def get_state(self) -> dict[str, Any]:
        """Return the state of the callback as numbers, strings, lists and arrays.

        A subclass lists the attributes that form its state in ``state_names``.
        """
        names = type(self).state_names
        return {name_in_files(n): copy.copy(getattr(self, n)) for n in names}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state from `get_state`; called after ``on_train_begin``.

        Args:
            state: Dict returned by `get_state`.

        Raises:
            ValueError: If the names differ from the state of this callback.
        """
        names = {name_in_files(name): name for name in type(self).state_names}
        if state.keys() != names.keys():
            raise ValueError(
                f"{type(self).__name__}.set_state: the names must be "
                f"{sorted(names)}, got {sorted(state)}"
            )
        for name, value in state.items():
            setattr(self, names[name], copy.copy(value))

    # --- training

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        """Called at the beginning of `fit`.

        Args:
            logs: Empty dict.
        """

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        """Called at the end of `fit`, but not after an error.

        Args:
            logs: Logs of the last epoch.
        """

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        """Called at the beginning of an epoch.

        Args:
            epoch: Number of the epoch, from 0.
            logs: Empty dict.
        """

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        """Called at the end of an epoch, after its validation.

        Args:
            epoch: Number of the epoch, from 0.
            logs: Loss and metrics of the epoch; names of validation results begin with
                ``val_``.
        """

    def on_train_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        """Called before a training step.

        Args:
            batch: Number of the batch within the epoch, from 0.
            logs: Empty dict.
        """
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        """Called after a training step.

        Args:
            batch: Number of the batch within the epoch, from 0.
            logs: Loss and metrics, means since the beginning of the epoch.
        """
        self.on_batch_end(batch, logs=logs)

    def on_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        """Alias of `on_train_batch_begin`, which calls it.

        Args:
            batch: Number of the batch within the epoch, from 0.
            logs: Empty dict.
        """

    def on_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        """Alias of `on_train_batch_end`, which calls it.

        Args:
            batch: Number of the batch within the epoch, from 0.
            logs: Loss and metrics, means since the beginning of the epoch.
        """

    # --- evaluation and validation

    def on_test_begin(self, logs: OptionalLogs = None) -> None:
        """Called at the beginning of `evaluate`, or of the validation after an epoch.

        Args:
            logs: Empty dict.
        """

    def on_test_end(self, logs: OptionalLogs = None) -> None:
        """Called at the end of `evaluate`, or of the validation after an epoch.

        Args:
            logs: Loss and metrics of the evaluation.
        """

    def on_test_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        """Called before a batch of evaluation.

        Args:
            batch: Number of the batch, from 0.
            logs: Empty dict.
        """

    def on_test_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        """Called after a batch of evaluation.

        Args:
            batch: Number of the batch, from 0.
            logs: Loss and metrics, means since the beginning of the evaluation.
        """

    # --- prediction

    def on_predict_begin(self, logs: OptionalLogs = None) -> None:
        """Called at the beginning of `predict`.

        Args:
            logs: Empty dict.
        """

    def on_predict_end(self, logs: OptionalLogs = None) -> None:
        """Called at the end of `predict`.

        Args:
            logs: Empty dict.
        """

    def on_predict_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        """Called before a batch of prediction.

        Args:
            batch: Number of the batch, from 0.
            logs: Empty dict.
        """

    def on_predict_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        """Called after a batch of prediction.

        Args:
            batch: Number of the batch, from 0.
            logs: Dict with the outputs of the batch under "outputs".
        """

    # --- the very end

    def on_close(self) -> None:
        """Called last, also after errors and interrupts, to close files and progress bars."""


def only_when(condition: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Mark a batch hook that is called only while ``condition(callback)`` is true.

    The condition is evaluated at the beginning of training, an epoch, evaluation or
    prediction. `fit` skips work that no callback needs. An override in a subclass is
    always called.
    """

    def mark(hook):
        hook.only_when = condition
        return hook

    return mark


_HOOKS = [name for name in vars(Callback) if name.startswith("on_")]


class LambdaCallback(Callback):
    """Callback made from functions, passed under the names of the hooks.

    Each function is called with the arguments of its hook: ``epoch`` or ``batch``, if
    the hook has one, and ``logs``.

    Args:
        on_epoch_begin: Function ``(epoch, logs)``, called at the beginning of an epoch.
        on_epoch_end: Function ``(epoch, logs)``, called at the end of an epoch.
        on_train_begin: Function ``(logs)``, called at the beginning of `fit`.
        on_train_end: Function ``(logs)``, called at the end of `fit`.
        on_train_batch_begin: Function ``(batch, logs)``, called before a training step.
        on_train_batch_end: Function ``(batch, logs)``, called after a training step.
        **kwargs: Functions for other hooks of `Callback`.

    Raises:
        TypeError: If a name is not a hook, or a value is not a function.

    Example:
        >>> loud = keras.callbacks.LambdaCallback(
        ...     on_epoch_end=lambda epoch, logs: print(epoch, logs)
        ... )
        >>> loud.on_epoch_end(0, {"loss": 0.5})
        0 {'loss': 0.5}
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., object] | None = None,
        on_epoch_end: Callable[..., object] | None = None,
        on_train_begin: Callable[..., object] | None = None,
        on_train_end: Callable[..., object] | None = None,
        on_train_batch_begin: Callable[..., object] | None = None,
        on_train_batch_end: Callable[..., object] | None = None,
        **kwargs: Callable[..., object],
    ):
        super().__init__()
        unknown = [name for name in kwargs if name not in _HOOKS]
        if unknown:
            raise TypeError(
                f"LambdaCallback: there is no hook {', '.join(map(repr, unknown))}; the "
                f"hooks are {', '.join(_HOOKS)}"
            )
        functions = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_begin": on_train_batch_begin,
            "on_train_batch_end": on_train_batch_end,
        }
        for name, function in {**functions, **kwargs}.items():
            if function is not None:
                if not callable(function):
                    raise TypeError(
                        f"LambdaCallback: {name} must be a function, got {function!r}"
                    )
                # `on_close` is that of a class: a user may have such an attribute
                setattr(self, "_tw_close" if name == "on_close" else name, function)

    _tw_close = None

    def __repr__(self) -> str:
        return constructor_call(self, {name: vars(self).get(name) for name in _HOOKS})

    def on_close(self) -> None:
        if self._tw_close is not None:
            self._tw_close()
