"""The whole state of a call of `fit`, saved to and restored from a file.

It consists of model, optimizer and metrics; the position in the data and its shuffling
orders; callbacks and history; epoch and logs; and the global random generators of
tapewright, Python and NumPy. Steps after a restore are bit for bit the same as without
the interruption.
"""

import warnings
from contextlib import suppress

import numpy as np

from tapewright.core.errors import SavingError
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.nest import map_structure
from tapewright.core.state.assignment import unchanged_on_error
from tapewright.formats.checkpoints.object_tree import explore
from tapewright.formats.checkpoints.restoring import listed, restore_into
from tapewright.formats.checkpoints.snapshot import snapshot
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .data_adapters.data_adapter_utils import unpack_x_y_sample_weight
from .train_steps import TrainSteps
from .worker_content import gather_content
from .workers import workers_of


class TrainingState:
    """The state of the current call of `fit` of a model.

    Attributes:
        epoch: Number of the epoch, from 0.
        within: True if the state lies within that epoch, False at its beginning.
        logs: Logs of the last step.
    """

    def __init__(self, model):
        self.model, self.loop = model, model._tw_loop
        self.epoch, self.within, self.logs = None, False, {}
        self.inputs = None  # dtype and shape of the x of a batch, as text
        self._restoration = None

    def _parts(self):
        parts = {
            "model": self.model,
            "batches": self.loop.epoch_iterator,
            "callbacks": self._named_callbacks(),
            "progress": _Progress(self),
            "random": {"numpy": _NumPyRandomState(), "python": _PythonRandomState()},
        }
        if self.loop.validation is not None:
            parts["validation"] = self.loop.validation
        return parts.items()

    def _named_callbacks(self):
        """Return callbacks with a state by class name; repeated classes are numbered."""
        named = {}
        for callback in self.loop.callbacks.callbacks:
            wanted = getattr(callback, "_tw_is_kept", True)
            get_state = getattr(type(callback), "get_state", None)
            if wanted and get_state is not None and get_state(callback):
                name = stem = type(callback).__name__
                count = 0
                while name in named:
                    count += 1
                    name = f"{stem}_{count}"
                named[name] = callback
        return named

    # --- saving

    def content(self, path, epoch, within, logs):
        """Return the state at the beginning of ``epoch``, or after a step within it.

        All workers call this method; the first gets the content for the file ``path``.

        Raises:
            TypeError: If the state of a callback cannot be saved.
        """
        self.epoch, self.within = epoch, within
        self.logs = dict(logs or {})
        if self.inputs is None:
            self.inputs = _inputs_of(self.loop.epoch_iterator.batch)
        content = snapshot(path, self._parts())
        workers = workers_of(self.model)
        return gather_content(content, self._metrics(), self.has_own_data, workers)

    @property
    def has_own_data(self):
        """True if each worker reads its own batches, rather than parts of common batches."""
        strategy = getattr(self.model, "distribute_strategy", None)
        divides = getattr(strategy, "_tw_auto_shard_dataset", True)
        return not divides and self.loop.epoch_iterator.adapter.arrays is None

    def _metrics(self):
        """Return the aggregation of each metric variable, by name."""
        owned = {id(v) for metric in self.model.metrics for v in metric.variables}
        variables = explore([("model", self.model)]).variables.items()
        return {
            n: getattr(v, "aggregation", "sum") for n, v in variables if id(v) in owned
        }

    # --- restoring

    def restore(self, content):
        """Restore the model and all other state of the loop from the content of a backup.

        Raises:
            SavingError: If the backup belongs to another model or other data; the model
                is unchanged.
        """
        with unchanged_on_error(explore([("", self.model)]).variables.values()):
            self._restore(content)
        self.loop.logs = self.logs
        self.loop.epochs = range(self.epoch, self.loop.epochs.stop)
        # One worker may have stopped when the backup was made, and not yet told the others.
        if workers_of(self.model).any(self.model.stop_training):
            self.model.stop_training = True
            if self.within:
                self.loop.epoch_iterator.stop_epoch()
            else:
                self.loop.epochs = range(0)

    def _restore(self, content):
        restoration, missing = restore_into(content, self._parts(), generator=True)
        if self._restoration is None:
            self._warn_of_callbacks(restoration, missing)
        self._restoration = restoration
        if self._restoration.names:
            self._build()
        optional = ("callbacks/", "validation", "model/compiled/")
        missing = [n for n in missing if not n.startswith(optional)]
        if missing:
            raise SavingError(
                content.path,
                "the backup belongs to another training run: it lacks "
                f"{listed(missing)}",
            )
        optimizer = self.model.optimizer
        if self.model.built and getattr(optimizer, "built", True):
            self.check_consumed()

    def _warn_of_callbacks(self, restoration, missing):
        """Warn if the callbacks have changed: this is no error, but results will differ."""
        start = "callbacks/"
        lost = [n.removeprefix(start) for n in restoration.states if start in n]
        new = [n.removeprefix(start) for n in missing if n.startswith(start)]
        for names, what in ((lost, "is not used: this callback no longer exists"),
                            (new, "is missing: this callback starts anew")):  # fmt: skip
            if names:
                warnings.warn(
                    f"{restoration.path}: the state of {listed(names)} {what}",
                    stacklevel=user_stacklevel(),
                )

    def _build(self):
        """Create weights and slots at once where possible, because callbacks may read them."""
        model, optimizer = self.model, self.model.optimizer
        if self.inputs:
            model._tw_make_weights(map_structure(_from_text, self.inputs))
        ours = type(model).train_step is TrainSteps.train_step
        waits = any(n.startswith("model/optimizer/") for n in self._restoration.names)
        if model._tw_all_built() and ours and waits and not optimizer.built:
            optimizer.build(model.trainable_variables)

    def check_consumed(self):
        """Raise `SavingError` if a part of the model's state has not been assigned."""
        if self._restoration is None:
            return
        left = [n for n in self._restoration.names if n.startswith("model/")]
        left = [n for n in left if not n.startswith("model/compiled/")]
        if left:
            raise SavingError(
                self._restoration.path,
                "the backup belongs to another model or optimizer: nothing here "
                f"matches {listed(left)}",
            )


class _Progress:
    """The epoch and logs of a `TrainingState`, as a part of a checkpoint."""

    def __init__(self, training):
        self._training = training

    def get_state(self):
        training = self._training
        return {
            "epoch": training.epoch,
            "within": training.within,
            "logs": training.logs,
            "inputs": training.inputs,
            "stop_training": bool(training.model.stop_training),
        }

    def set_state(self, state):
        training = self._training
        training.epoch, training.within = int(state["epoch"]), bool(state["within"])
        training.logs, training.inputs = dict(state["logs"]), state["inputs"]
        training.model.stop_training = bool(state["stop_training"])


def _inputs_of(batch):
    """Return dtypes and shapes of a batch's x, to build a model before its first batch."""
    with suppress(ValueError, TypeError, AttributeError):  # a train_step's own kind
        x, _, _ = unpack_x_y_sample_weight(batch)
        return map_structure(_as_text, x)
    return ""


def _as_text(tensor):
    """Return dtype and shape, without the batch, as text.

    Example:
        >>> import numpy as np
        >>> from tapewright.keras.training.training_state import _as_text
        >>> _as_text(np.zeros((32, 3), np.float32))
        'float32 3'
    """
    if tensor is None:
        return None
    if np.dtype(tensor.dtype.name).kind not in "fiub":
        raise TypeError("only numbers can be symbolic inputs")
    return " ".join([tensor.dtype.name, *map(str, tensor.shape[1:])])


def _from_text(text):
    if text is None:
        return None
    dtype, *sizes = text.split()
    return KerasTensor((None, *map(int, sizes)), dtype)


class _NumPyRandomState:
    """NumPy's global random generator, which data and callbacks may use."""

    def get_state(self):
        return np.random.get_state(legacy=False)

    def set_state(self, state):
        np.random.set_state(state)


class _PythonRandomState:
    """Python's global random generator."""

    def get_state(self):
        import random  # a good millisecond, and not needed before

        version, words, gauss = random.getstate()
        return {"version": version, "words": np.array(words, np.int64), "gauss": gauss}

    def set_state(self, state):
        import random

        words = tuple(state["words"].tolist())
        random.setstate((state["version"], words, state["gauss"]))
