"""`FitRun`: the data, callbacks and schedule of one call of `fit`."""

import operator

__all__ = ["FitRun", "as_integer", "validation_schedule"]


class FitRun:
    """A call of `fit`: its data and callbacks, and the point at which a backup resumes it.

    ``validates``: a function of the number of an epoch, see `validation_schedule`.
    """

    def __init__(self, batches, validation, validates, callbacks):
        self.batches, self.validation, self.callbacks = batches, validation, callbacks
        self.validates = validates
        self.batch = None  # the latest
        self.first_epoch, self.logs = None, {}  # of a backup that was restored
        self.is_over = False  # True if the run of the backup had stopped


def as_integer(name, value):
    """Return an argument of `fit` as an integer, which may be 0 or less."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"fit: {name} must be an integer, got {value!r}") from None


def validation_schedule(validation_freq):
    """A function of the number of an epoch, from 1: whether to evaluate after it."""
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
