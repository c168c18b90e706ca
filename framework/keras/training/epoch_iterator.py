"""`EpochIterator`: epochs of batches from any source, with a position that can be saved.

A *pass* is one run through the source. An epoch is one pass, or ``steps`` batches,
which may extend over several passes.
"""

import warnings
from itertools import islice

from tapewright.core.messages.argument_validation import whole
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.data.nodes.node import skip

from ..config import limited
from .data_adapters import get_data_adapter
from .data_adapters.array_adapter import ArrayAdapter
from .data_adapters.data_adapter_utils import as_arrays
from .replicas import Replicas

_END = object()


class EpochIterator:
    """Batches for a training loop: ``for batch in iterator`` is one epoch.

    A batch is ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, structures of tensors.
    ``num_batches`` is the length of an epoch, None while it is unknown. If the data
    ends before ``steps`` batches, a ``UserWarning`` is issued and ``ran_out`` is True.

    Args:
        x: Arrays, tensors, objects with ``__array__``, or lists, tuples and dicts of
            them; or a source of whole batches: a `data.Dataset`, a `PyDataset` or
            similar object, a generator, an iterator or any iterable.
        y: Labels, if ``x`` consists of arrays.
        sample_weight: Weights of the samples, if ``x`` consists of arrays.
        batch_size: Batch size for arrays; by default 32, or such that ``steps`` batches
            cover the data.
        steps: Number of batches in an epoch, by default one pass through the data.
        shuffle: Shuffle arrays and PyDatasets; "batch" keeps the samples of a batch
            together.
        class_weight: Dict from label to weight.
        replicas: The `Replicas` among which each batch is divided.
        check_labels: Function that raises an error for batches with wrong labels. ``y``
            is checked at once; the batches of other sources, in `enumerate_epoch`.

    Example:
        >>> from tapewright.keras.training.epoch_iterator import EpochIterator
        >>> import numpy as np
        >>> batches = EpochIterator(np.zeros((70, 3)), np.zeros(70))
        >>> [x.shape[0] for x, y in batches], batches.num_batches
        ([32, 32, 6], 3)
    """

    def __init__(
        self,
        x=None,
        y=None,
        sample_weight=None,
        batch_size=None,
        steps=None,
        shuffle=False,
        class_weight=None,
        replicas=None,
        check_labels=None,
    ):
        batch_size = _positive("batch_size", batch_size)
        self.steps = _positive("steps (or steps_per_epoch)", steps)
        self.adapter = get_data_adapter(
            x, y, sample_weight, batch_size, self.steps, shuffle, class_weight
        )
        length = self.steps if self.steps is not None else self.adapter.size
        self._length = limited("steps_per_epoch", length)
        self._is_cut = self._length != length
        self._replicas = replicas or Replicas()
        self._replicas.divide(self.adapter)
        self._check_labels = check_labels
        if y is not None and check_labels is not None:
            check_labels((x, as_arrays("y", y)))
            self._check_labels = None
        self.batch = None  # the latest
        self.epoch = 0  # epochs begun
        self.step = 0  # batches of this epoch that were yielded
        self.ran_out = False
        self._pass = None  # an iterator of the data; None: the next epoch opens one
        self._within = False  # an epoch has begun, and not come to its end
        self._resumed = False  # the next epoch is the rest of a restored one
        self._is_stopped = False  # the next epoch has no batches

    @property
    def num_batches(self):
        """Number of batches in an epoch; None if it is not known yet."""
        if self._is_cut:  # by `max_steps_per_epoch`
            return self._length
        return self.steps if self.steps is not None else self.adapter.size

    @property
    def is_exhausted(self):
        """True if the data ended early and cannot be iterated again."""
        return self.ran_out and not self.adapter.restarts

    def __iter__(self):
        if self._is_stopped:
            self._is_stopped = self._resumed = False
            return
        if self._resumed:
            self._resumed = False
        else:
            self.epoch += 1
            self.step = 0
            if self.steps is None:
                self._pass = None  # an epoch is one pass
        is_new = self._pass is None
        if is_new:
            self._pass = iter(self.adapter.data)
        self._within = True
        self.adapter.notify("on_epoch_begin")
        steps = self._length if self._is_cut else self.steps
        while steps is None or self.step < steps:
            batch = next(self._pass, _END)
            if batch is not _END:
                self.batch = self._replicas.convert(batch, self.adapter)
                self.step += 1
                yield self.batch
            elif self.step or is_new:
                self._end_with_pass()
                break
            else:  # the last epoch had taken this pass to its end
                self._pass, is_new = iter(self.adapter.data), True
        if self.step == self.adapter.size:
            self._pass = None  # it is at its end
        self._within = False
        self.adapter.notify("on_epoch_end")

    def enumerate_epoch(self, steps_per_execution=1):
        """Yield ``(begin_step, end_step, batches)`` for each execution of steps.

        Several replicas execute the steps one by one.

        Example:
            >>> from tapewright.keras.training.epoch_iterator import EpochIterator
            >>> batches = EpochIterator([[0.0]] * 70, batch_size=10)
            >>> [(begin, end) for begin, end, group in batches.enumerate_epoch(3)]
            [(0, 2), (3, 5), (6, 6)]
        """
        size = steps_per_execution if self._replicas.runs_steps_in_groups else 1
        begin = self.step if self._resumed else 0
        epoch = iter(self)
        while batches := list(islice(epoch, size)):
            if self._check_labels is not None:
                for batch in batches:
                    self._check_labels(batch)
            yield begin, begin + len(batches) - 1, batches
            begin += len(batches)

    def stop_epoch(self):
        """Leave out the rest of a restored epoch, in which the training was stopped."""
        self._is_stopped = True

    def _end_with_pass(self):
        """End the epoch because the pass has ended, with fewer batches than ``steps``."""
        self._pass = None
        if self.step == 0 and self.epoch == 1:
            raise ValueError(f"{self.adapter.source} yielded no batches")
        if self.steps is not None or self.step == 0:
            self.ran_out = True
            warnings.warn(self._shortage(), stacklevel=user_stacklevel())
        else:
            self.adapter.seen_size = self.step

    def _shortage(self):
        wanted = (
            f"of the {self.steps} batches " if self.steps is not None else "batches "
        )
        return (
            f"{self.adapter.source} ran out of data: it yielded {self.step} "
            f"{wanted}of epoch {self.epoch}, which ends here. A source for all "
            "epochs must yield steps_per_epoch * epochs batches; repeat() makes a "
            "Dataset do so"
        )

    def reset(self):
        """Start a new pass for the next epoch, and drop the rest of the current one."""
        self._pass = None
        self._within = self._resumed = self._is_stopped = self.ran_out = False

    def state(self) -> dict:
        """Return the position as plain values for ``json``. See `restore`."""
        source = self.adapter.data if self._pass is None else self._pass
        return {
            "epoch": self.epoch,
            "step": self.step,
            "size": self.adapter.size,
            "within": self._within,
            "source": source.state(),
        }

    def restore(self, state):
        """Restore the position in ``state``, taken from an iterator over the same data.

        If it lies within an epoch, the next epoch is the rest of that epoch, which may
        be empty.
        """
        self._check(state)
        self.epoch, self.step = state["epoch"], state["step"]
        self._within = self._resumed = state["within"]
        self._is_stopped = False
        source = state.get("source") or self._source_of_version_01(state)
        if "place" in source:
            self._pass = iter(self.adapter.data)
            self._pass.restore(source)
        else:
            self._pass = None
            self.adapter.data.restore(source)

    def _source_of_version_01(self, state):
        """Return the state of the data from a backup of version 0.1.

        It counts passes and the batches of a pass, and has a seed; for a generator it
        counts all batches.
        """
        data, is_arrays = self.adapter.data, isinstance(self.adapter, ArrayAdapter)
        source = data.state()
        runs = source["runs"]["inputs"][0] if is_arrays else source["runs"]
        runs |= {key: state[key] for key in ("seed", "given") if key in state}
        runs["run"] = max(state["pass"], 0)
        if state["pass"] < 0:
            return source
        data.restore(source)
        iterator = iter(data)
        if is_arrays:
            skip(iterator, state["taken"])
        source = iterator.state()
        if not is_arrays:
            source["place"]["given"] = state.get("given", state["taken"])
        return source

    def _check(self, state):
        position = "taken" if "pass" in state else "source"
        missing = {"epoch", "step", "size", "within", position} - set(state)
        if missing:
            raise ValueError(
                f"restore: the state lacks {', '.join(sorted(missing))}; it must "
                "come from state()"
            )
        size = self.adapter.size
        if size is not None and state["size"] not in (None, size):
            raise ValueError(
                "restore: data and batch_size must be the same as in the state, "
                f"which has {state['size']} batches, got {size}"
            )


def _positive(name, value):
    return None if value is None else whole("data", name, value)
