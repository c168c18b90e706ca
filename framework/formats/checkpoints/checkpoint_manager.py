"""`CheckpointManager`: several checkpoints in a folder, which to keep and to resume from.

There is no index file that could be wrong: the folder's content counts, and training
resumes from the newest undamaged file.
"""

from __future__ import annotations

import math
import os
import time
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from tapewright.core.errors import SavingError
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.state.sharded_variable import sharing
from tapewright.serialization.constructor_call import constructor_call
from tapewright.storage.atomic import clear_leftovers

from .checkpoint import (
    Checkpoint,
    numbered_files,
    prefix_of,
    restore_content,
    save_numbered,
    valid_info,
)
from .checkpoint_file import read_content, read_info
from .termination import Termination


class CheckpointManager:
    """Save checkpoints ``directory/checkpoint_name-<number>.h5`` and delete old ones.

    Args:
        checkpoint: The `tw.train.Checkpoint` to save.
        directory: Folder of the checkpoints.
        max_to_keep: Number of newest checkpoints to keep, None for all.
        keep_checkpoint_every_n_hours: Of the older checkpoints, keep one for each
            interval of so many hours.
        checkpoint_name: Prefix of the file names.
        step_counter: Variable or number that counts steps, required with
            ``checkpoint_interval``.
        checkpoint_interval: Number of steps that must pass before `save` writes again.
        init_fn: Function that `restore_or_initialize` calls if there is no checkpoint.
        last_checkpoint_step: Value of ``step_counter`` at the last save, if known.
        keep_best: ``(name, "min" or "max")`` or ``(name, "min" or "max", number)``,
            such as ``("val_loss", "min", 3)``: keep the best checkpoints by this entry
            of the ``metrics`` passed to `save`.
        keep_every: Keep checkpoints whose step (or number) is a multiple of this
            integer.
        save_on_sigterm: If True, the next `save` or `save_if_asked` after SIGTERM
            saves, then the process ends.

    Raises:
        ValueError: If an argument is invalid.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = tw.train.Checkpoint(v=tw.Variable(1.0))
        ...     manager = tw.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        ...     _ = [manager.save() for _ in range(3)]
        ...     [os.path.basename(path) for path in manager.checkpoints]
        ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Any,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
        *,
        keep_best: Any = None,
        keep_every: int | None = None,
        save_on_sigterm: bool = False,
    ):
        if not isinstance(checkpoint, Checkpoint):
            raise ValueError(
                f"CheckpointManager: checkpoint must be a Checkpoint, got {checkpoint!r}"
            )
        _check("max_to_keep", max_to_keep)
        _check("keep_every", keep_every)
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "CheckpointManager: step_counter must be given with checkpoint_interval"
            )
        self.checkpoint = checkpoint
        self.directory = os.fspath(directory)
        self.checkpoint_interval = checkpoint_interval
        self._prefix = os.path.join(self.directory, checkpoint_name)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._step_counter, self._last_step = step_counter, last_checkpoint_step
        self._init_fn = init_fn
        self._best = _best(keep_best)
        self._every = keep_every
        self._infos = {}  # path -> its info, as far as it was looked at
        self._whole = {}  # path -> size and time of what was found to be whole
        clear_leftovers(self.directory)
        self._last_preserved = self._recovered()
        self._termination = Termination()
        if save_on_sigterm:
            self._termination.install()
            weakref.finalize(self, self._termination.remove)

    def __repr__(self) -> str:
        return constructor_call(self, {"max_to_keep": self._max_to_keep})

    def _recovered(self):
        """Return when the latest file was saved that is kept because of the hours."""
        for path in reversed(self._files()):
            saved = self._info(path).get("last_preserved")
            if isinstance(saved, (int, float)):
                return min(saved, time.time())
        return time.time() - 1.0

    # --- what is there

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints in the folder without ".h5", from oldest to newest."""
        return [prefix_of(path) for path in self._files()]

    @property
    def latest_checkpoint(self) -> str | None:
        """The newest undamaged checkpoint, or None.

        Damaged files are skipped with a warning.
        """
        return self._first_whole(reversed(self._files()))

    @property
    def best_checkpoint(self) -> str | None:
        """The best undamaged checkpoint according to ``keep_best``, or None."""
        return self._first_whole(self._by_merit(self._files()))

    def _files(self):
        return list(numbered_files(self._prefix).values())

    def _first_whole(self, paths):
        return next((prefix_of(path) for path in paths if self._is_whole(path)), None)

    def _is_whole(self, path):
        mark = _mark(path)
        if self._whole.get(path) != mark:
            if valid_info(path) is None:
                return False
            self._whole[path] = mark
        return True

    def _info(self, path):
        """Return the info of a checkpoint, or an empty dict if it cannot be read."""
        if path not in self._infos:
            try:
                self._infos[path] = read_info(path)
            except SavingError:
                self._infos[path] = {}
        return self._infos[path]

    # --- saving

    def save(
        self,
        checkpoint_number: int | None = None,
        check_interval: bool = True,
        options: Any = None,
        *,
        metrics: Any = None,
    ) -> str | None:
        """Save a checkpoint, then delete checkpoints that need not be kept.

        Args:
            checkpoint_number: Number of the checkpoint, by default one more than the
                last.
            check_interval: If False, save regardless of ``checkpoint_interval``.
            options: Ignored.
            metrics: Dict of numbers for ``keep_best``.

        Returns:
            The path of the checkpoint without ".h5", or None if the interval has not
            passed.

        Raises:
            SavingError: If the file cannot be written; then no checkpoint is deleted.
        """
        is_due = self._is_due(check_interval and not self._termination.asked)
        if not self._processes().any(is_due):
            return None
        if checkpoint_number is not None:
            checkpoint_number = int(checkpoint_number)
        save = partial(self._save, checkpoint_number, metrics)
        path = self.checkpoint._tw_together(save)
        if self._step_counter is not None:
            self._last_step = int(self._step_counter)
        if self._termination.asked:
            self._termination.pass_on()
        return prefix_of(path)

    def _save(self, checkpoint_number, metrics):
        info = {"saved": time.time(), "last_preserved": self._last_preserved}
        info["metrics"] = self._checked(metrics)
        if self._step_counter is not None:
            info["step"] = int(self._step_counter)
        path = save_numbered(self.checkpoint, self._prefix, checkpoint_number, **info)
        self._infos[path], self._whole[path] = info, _mark(path)
        self._sweep(path)
        return path

    def save_if_asked(self, metrics: Any = None) -> str | None:
        """Save and end the process if SIGTERM was received; call it after each step.

        Args:
            metrics: Dict of numbers for ``keep_best``.
        """
        if self._processes().any(self._termination.asked):
            return self.save(check_interval=False, metrics=metrics)
        return None

    def _processes(self):
        """Return the processes that save together, which must agree on it."""
        return sharing(self.checkpoint._tw_shared_variables())

    def close(self) -> None:
        """Restore the previous SIGTERM handler."""
        self._termination.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def sync(self) -> None:
        """Do nothing: `save` returns when the file is on disk."""

    def _is_due(self, check_interval):
        if self.checkpoint_interval is None or self._last_step is None:
            return True
        passed = int(self._step_counter) - self._last_step
        if not passed:
            if self._termination.asked:
                self._termination.pass_on()
            return False
        return not check_interval or passed >= self.checkpoint_interval

    def _checked(self, metrics):
        """Return metrics as finite floats; others are dropped and never the best."""
        values = {name: float(value) for name, value in (metrics or {}).items()}
        if self._best and values and self._best[0] not in values:
            raise ValueError(
                f"save: metrics must contain {self._best[0]!r}, the name in "
                f"keep_best; got {sorted(values)}"
            )
        return {name: value for name, value in values.items() if math.isfinite(value)}

    # --- keeping

    def _sweep(self, newest):
        """Remove old checkpoints that need not be kept; never ``newest``."""
        if self._max_to_keep is None:
            return
        files = numbered_files(self._prefix)
        old = list(files)[: -self._max_to_keep]
        best = self._by_merit(files.values())[: self._best[2]] if self._best else []
        for number in old:
            path = files[number]
            if path == newest or path in best or self._stays(number, path):
                continue
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                warnings.warn(
                    f"cannot remove an old checkpoint: {error}",
                    stacklevel=user_stacklevel(),
                )
            self._infos.pop(path, None)
            self._whole.pop(path, None)

    def _stays(self, number, path):
        info = self._info(path)
        if self._every is not None and info.get("step", number) % self._every == 0:
            return True
        if not self._hours:
            return False
        saved = info.get("saved", 0.0)
        if saved >= self._last_preserved + self._hours * 3600:
            self._last_preserved = saved
            return True
        return 0 < saved <= self._last_preserved  # that was decided before

    def _by_merit(self, paths):
        """Return checkpoints with the metric of ``keep_best``, best first.

        Ties are broken in favour of the older checkpoint.
        """
        if self._best is None:
            return []
        name, mode, _ = self._best
        values = {path: self._info(path).get("metrics") for path in paths}
        values = {p: m.get(name) for p, m in values.items() if isinstance(m, dict)}
        rated = [p for p, v in values.items() if isinstance(v, (int, float))]
        return sorted(rated, key=lambda p: values[p] if mode == "min" else -values[p])

    # --- restoring

    def restore_or_initialize(self) -> str | None:
        """Restore the newest undamaged checkpoint; call ``init_fn`` if no checkpoint exists.

        Damaged files are skipped with a warning.

        Returns:
            The path of the restored checkpoint without ".h5", or None.

        Raises:
            SavingError: If the checkpoint does not match the objects.
        """
        for path in reversed(self._files()):
            try:
                content = read_content(path)
            except SavingError as error:
                warnings.warn(
                    f"a checkpoint is skipped: {error}", stacklevel=user_stacklevel()
                )
                continue
            restore_content(self.checkpoint, content)
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
            return prefix_of(path)
        if self._init_fn is not None:
            self._init_fn()
        return None


def _check(name, value):
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(
            f"CheckpointManager: {name} must be a positive integer or None, got {value!r}"
        )


def _best(keep_best):
    """Return name, direction and number of the best checkpoints to keep."""
    if keep_best is None:
        return None
    parts = (*keep_best, 1) if len(keep_best) == 2 else tuple(keep_best)
    if (
        len(parts) != 3
        or parts[1] not in ("min", "max")
        or not isinstance(parts[0], str)
    ):
        raise ValueError(
            'CheckpointManager: keep_best must be (name, "min" or "max") or (name, '
            f'"min" or "max", number), got {keep_best!r}'
        )
    _check("keep_best's number", parts[2])
    return parts


def _mark(path):
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
