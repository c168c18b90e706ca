"""`CallbackList`: a list of callbacks that is called like a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.nest import flatten

from ..training.workers import workers_of
from .callback import Callback, OptionalLogs
from .history import History
from .logs import Logs
from .progress_bars import ProgbarLogger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..models.model import Model

__all__ = ["CallbackList"]


class CallbackList(Callback):
    """List of callbacks whose hooks are called in turn with the same logs.

    Use it in custom training loops; `fit` creates one from its callbacks. Logs may
    contain tensors, which are converted to floats when a callback reads them. Errors in
    callbacks are not caught; call `on_close` in a ``finally`` clause to close files and
    progress bars.

    Args:
        callbacks: Callback, or a (nested) list of them.
        add_history: If True, append a `History` if the list has none.
        add_progbar: If True, append a `ProgbarLogger` if the list has none.
        model: `Model` of the callbacks.
        **params: ``epochs``, ``steps`` and ``verbose``, for all callbacks.

    Raises:
        TypeError: If an object is not a `Callback`.

    Example:
        >>> callbacks = keras.callbacks.CallbackList(add_history=True, epochs=1)
        >>> callbacks.on_train_begin()
        >>> callbacks.on_epoch_begin(0)
        >>> callbacks.on_epoch_end(0, {"loss": 0.5})
        >>> callbacks.callbacks[0].history
        {'loss': [0.5]}
    """

    def __init__(
        self,
        callbacks: Sequence[Callback] | None = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Model | None = None,
        **params: Any,
    ):
        super().__init__()
        self.callbacks: list[Any] = []
        self._hooks = {}  # of batches: those of the callbacks that want them
        for callback in flatten([] if callbacks is None else callbacks):
            self.append(callback)
        self._history = self._first(History)
        self._progbar = self._first(ProgbarLogger)
        if self._history is None and add_history:
            self._history = History()
            self.append(self._history)
        if self._progbar is None and add_progbar:
            self._progbar = ProgbarLogger()
            self.append(self._progbar)
        self.set_model(model)
        self.set_params(params)

    def append(self, callback: Callback) -> None:
        """Add a callback at the end.

        Args:
            callback: `Callback`.

        Raises:
            TypeError: If ``callback`` is not a `Callback`.
        """
        if isinstance(callback, type) or not hasattr(callback, "set_model"):
            hint = ""
            if isinstance(callback, type):
                hint = f"; create an instance: {callback.__name__}(...)"
            raise TypeError(
                f"callbacks must be Callback objects, got {callback!r}{hint}"
            )
        self.callbacks.append(callback)  # before those that come last
        self.callbacks.sort(key=lambda each: getattr(each, "_tw_comes_last", False))
        self._hooks.clear()
        if self._model is not None:
            callback.set_model(self._model)
        if self.params:
            callback.set_params(self.params)

    def _first(self, cls):
        return next((c for c in self.callbacks if isinstance(c, cls)), None)

    def set_model(self, model: Model) -> None:
        if model is None:
            return
        super().set_model(model)
        if self._history is not None:
            model.history = self._history
        for callback in self.callbacks:
            callback.set_model(model)

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        self._hooks.clear()
        if params:
            for callback in self.callbacks:
                callback.set_params(params)

    def on_close(self) -> None:
        """Close the files and progress bars of all callbacks, then raise the first error."""
        first = None
        for callback in self.callbacks:
            try:
                getattr(type(callback), "on_close", _nothing)(callback)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    # --- callbacks with hooks for batches

    @property
    def _tw_wants_train_batches(self) -> bool:
        """True if a callback has a hook for training batches; otherwise skip these hooks."""
        return self._wants("on_train_batch_begin", "on_train_batch_end")

    @property
    def _tw_wants_test_batches(self) -> bool:
        """True if a callback has a hook for evaluation batches."""
        return self._wants("on_test_batch_begin", "on_test_batch_end")

    def _wants(self, *names):
        return any(self._hooks_of(name) for name in names)

    def _hooks_of(self, name):
        hooks = self._hooks.get(name)
        if hooks is None:
            wanting = [c for c in self.callbacks if _wants_hook(c, name)]
            hooks = self._hooks[name] = [getattr(c, name) for c in wanting]
        return hooks

    def _call_for_batch(self, name, batch, logs):
        hooks = self._hooks.get(name)
        if hooks is None:
            hooks = self._hooks_of(name)
        if hooks:
            logs = Logs(logs)
            for hook in hooks:
                hook(batch, logs=logs)

    def _call(self, name, *args):
        *args, logs = args
        self._hooks.clear()  # hooks may come and go between epochs
        logs = Logs(logs)
        for callback in self.callbacks:
            getattr(callback, name)(*args, logs)

    # --- the hooks

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self._call("on_train_begin", logs)

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        self._call("on_train_end", logs)
        workers_of(self.model).barrier()  # the files of the first are there for all

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._call("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._call("on_epoch_end", epoch, logs)

    def on_test_begin(self, logs: OptionalLogs = None) -> None:
        self._call("on_test_begin", logs)

    def on_test_end(self, logs: OptionalLogs = None) -> None:
        self._call("on_test_end", logs)

    def on_predict_begin(self, logs: OptionalLogs = None) -> None:
        self._call("on_predict_begin", logs)

    def on_predict_end(self, logs: OptionalLogs = None) -> None:
        self._call("on_predict_end", logs)

    def on_train_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_train_batch_begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_train_batch_end", batch, logs)

    def on_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_batch_begin", batch, logs)

    def on_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_batch_end", batch, logs)

    def on_test_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_test_batch_end", batch, logs)

    def on_predict_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_predict_batch_begin", batch, logs)

    def on_predict_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._call_for_batch("on_predict_batch_end", batch, logs)


def _nothing(callback):
    pass


def _wants_hook(callback, name):
    """Return whether the hook ``name`` of ``callback`` has an effect now."""
    if not isinstance(callback, Callback) or name in vars(callback):
        return hasattr(callback, name)
    hook = getattr(type(callback), name)
    if isinstance(callback, CallbackList):
        return bool(callback._hooks_of(name))
    if hook is getattr(Callback, name):  # which hands on to the short name, if any
        short = name.replace("on_train_batch", "on_batch")
        return short != name and _wants_hook(callback, short)
    condition = getattr(hook, "only_when", None)
    return condition is None or bool(condition(callback))
