"""`LambdaCallback`: a callback of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .callback import Callback

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LambdaCallback"]

_HOOKS = [name for name in vars(Callback) if name.startswith("on_")]


class LambdaCallback(Callback):
    """Each hook is a function that is given by its name.

    Raises: ``TypeError`` for names that are no hooks.

    >>> loud = LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch, logs))
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
                setattr(self, name, function)
