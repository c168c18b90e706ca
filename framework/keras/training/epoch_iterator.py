"""`Batches`: epochs over batches, from whatever source, with a position that can be kept.

A *pass* is one run through the source. An epoch is one pass, or, where a number of steps
is given, that many batches, for which passes follow each other.
"""

import warnings

__all__ = ["Batches"]


class Batches:
    """Batches for a training loop: ``for batch in batches`` is one epoch.

    A batch is ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, structures of tensors.
    ``num_batches`` is the length of an epoch, None while it is unknown; ``batch_size`` is
    None where the source decides. After an epoch that ended before its steps were done,
    with a ``UserWarning``, ``ran_out`` is True.

    Subclasses give `_open`, which starts a pass, and ``size``, the batches in one.
    """

    size = None
    batch_size = None
    source = "the data"
    restarts = True  # whether there can be another pass

    def __init__(self, steps=None):
        self.steps = steps
        self.epoch = 0  # epochs begun
        self.step = 0  # batches of this epoch that were given out
        self.ran_out = False
        self._number = -1  # of the pass
        self._taken = 0  # batches of this pass that were given out
        self._pass = None
        self._resumed = False
        self._within = False  # an epoch has begun, and not come to its end
        self._seen_any = False

    @property
    def num_batches(self):
        """The number of batches in an epoch; None if it is not known yet."""
        return self.steps if self.steps is not None else self.size

    @property
    def begins_at(self):
        """The number of the batch with which the next epoch begins: 0, unless restored."""
        return self.step if self._resumed else 0

    def _open(self, number, start):
        """An iterator over the batches of pass ``number``, from batch ``start`` on."""
        raise NotImplementedError(f"{type(self).__name__} must define _open")

    def on_epoch_begin(self):
        """Called at the start of each epoch: tells the source, if it wants to know."""

    def on_epoch_end(self):
        """Called at the end of each epoch: tells the source, if it wants to know."""

    def __iter__(self):
        if self._resumed:
            self._resumed = False
        else:
            self.epoch += 1
            self.step = 0
            if self.steps is None or self._pass is None:
                self._next_pass()
        self._within = True
        self.on_epoch_begin()
        while self.steps is None or self.step < self.steps:
            batch = next(self._pass, None)
            if batch is None and not self._goes_on():
                break
            if batch is None:
                continue
            self.step += 1
            self._taken += 1
            self._seen_any = True
            yield batch
        if self._taken == self.size:
            self._pass = None  # so that the next epoch opens a new one
        self._within = False
        self.on_epoch_end()

    def _next_pass(self):
        self._number += 1
        self._taken = 0
        self._pass = self._open(self._number, 0)

    def _goes_on(self):
        """At the end of a pass: whether this epoch takes its batches from another one."""
        began_here = self._taken == 0
        self._pass = None
        if self.steps is not None and self.step == 0 and not began_here:
            self._next_pass()  # the last epoch had taken this pass to its end
            return True
        if not self._seen_any:
            raise ValueError(f"{self.source} gave not a single batch")
        if self.steps is None and self._taken and self.size is None:
            self.size = self._taken
        if self.steps is not None or self.step == 0:
            self.ran_out = True
            warnings.warn(self._shortage(), stacklevel=3)
        return False

    def _shortage(self):
        wanted = (
            f"of the {self.steps} batches " if self.steps is not None else "batches "
        )
        return (
            f"{self.source} ran out of data: it gave {self.step} {wanted}of epoch "
            f"{self.epoch}, which ends here. A source for all epochs must give "
            "steps_per_epoch * epochs batches; a Dataset does with repeat()"
        )

    def reset(self):
        """The next epoch opens a new pass, whatever is left of this one."""
        self._pass = None
        self._resumed = False
        self.ran_out = False

    def state(self) -> dict:
        """The position, of plain values: ``json`` can keep it. See `restore`."""
        return {
            "epoch": self.epoch,
            "step": self.step,
            "pass": self._number,
            "taken": self._taken,
            "size": self.size,
            "within": self._within,
        }

    def restore(self, state):
        """Goes on where the `Batches` of the same data stood that gave this ``state``.

        If it stood within an epoch, the next one is the rest of that, which may be nothing.
        """
        self._check(state)
        self.epoch, self.step = state["epoch"], state["step"]
        self._number, self._taken = state["pass"], state["taken"]
        self._seen_any = self._taken > 0 or self._number > 0
        self._within = self._resumed = state["within"]
        self._pass = self._reopen(state) if self._number >= 0 else None

    def _reopen(self, state):
        return self._open(self._number, self._taken)

    def _check(self, state):
        missing = {"epoch", "step", "pass", "taken", "size", "within"} - set(state)
        if missing:
            raise ValueError(
                f"restore: the state lacks {', '.join(sorted(missing))}; it must be one "
                "that state() gave"
            )
        if self.size is not None and state["size"] not in (None, self.size):
            raise ValueError(
                f"restore: the state is of data with {state['size']} batches, these are "
                f"{self.size}; data and batch_size must be the same"
            )
