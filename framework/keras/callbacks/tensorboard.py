"""`TensorBoard`: event files of a training, with the same tags as in Keras."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.text import make_text

from ..training.workers import is_first_worker
from .callback import Callback, OptionalLogs, only_when
from .learning_rate import current_rates

if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from ..models.model import Model

__all__ = ["TensorBoard"]

_MAX_IMAGES = 3  # of one weight


class TensorBoard(Callback):
    """Write event files for TensorBoard; requires tensorboardX.

    View them with ``tensorboard --logdir log_dir``. Scalars are written to ``train/``
    and ``validation/``: ``epoch_loss`` and the other metrics, with the learning rate,
    by epoch; ``batch_loss`` by batch; ``evaluation_loss_vs_iterations`` after each
    evaluation. Values that are not single numbers are omitted.

    Args:
        log_dir: Folder of the event files.
        histogram_freq: Number of epochs between histograms of the weights; 0 for none.
        write_graph: If True, write the model's summary as text.
        write_images: If True, write the weights as images along with the histograms;
            the smallest entry is black.
        write_steps_per_second: If True, write the speed of each epoch as a scalar.
        update_freq: "epoch", "batch", or the number of batches between values by batch.
        profile_batch: Batch to profile (from 1), or the first and last of several; 0
            for none. `profiler.trace` writes ``train/profile_batch_FIRST.json``, which
            opens in Perfetto.
        embeddings_freq: Not supported, must be 0.
        embeddings_metadata: Not supported, must be None.

    Raises:
        ImportError: If tensorboardX is not installed.
        ValueError: If an argument has an unsupported value.
    """

    state_names: tuple[str, ...] = ("_tw_train_batch", "_tw_test_batch")

    def __init__(
        self,
        log_dir: str | PathLike[str] = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: int | str = "epoch",
        profile_batch: int | tuple[int, int] | str = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
    ):
        super().__init__()
        if embeddings_freq or embeddings_metadata:
            raise ValueError(
                "TensorBoard: the embedding projector is not supported, embeddings_freq "
                f"must be 0 and embeddings_metadata None, got {embeddings_freq!r} and "
                f"{embeddings_metadata!r}; histogram_freq shows embeddings as weights"
            )
        if update_freq not in ("epoch", "batch") and not _is_count(update_freq, 1):
            raise ValueError(
                "TensorBoard: update_freq must be 'epoch', 'batch' or a number of "
                f"batches, got {update_freq!r}"
            )
        from tapewright.summary.event_file import require_tensorboardx

        require_tensorboardx("TensorBoard")
        self.log_dir: str = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_images = write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq: int | str = 1 if update_freq == "batch" else update_freq
        self.profile_batch = profile_batch
        self._tw_first_profiled, self._tw_last_profiled = _batches(profile_batch)
        self._writers = {}  # created at the first write
        self._tw_profile = None
        self._tw_wrote_summary = False
        self._tw_train_batch = self._tw_test_batch = 0
        self._tw_epoch_start = self._tw_batch_start = (0.0, 0)

    def _tw_writer(self, name):
        from tapewright.summary.event_file import EventFile  # at the first use

        if name not in self._writers:
            path = os.path.join(self.log_dir, name)
            writes = is_first_worker(self.model)
            self._writers[name] = EventFile(path if writes else None)
        return self._writers[name]

    def _tw_write_scalars(self, folder, logs, tag, step):
        writer = self._tw_writer(folder)
        for name, value in logs.items():
            if isinstance(value, (int, float)):
                writer.add_scalar(tag.format(name), value, step)

    # --- training

    def set_model(self, model: Model) -> None:
        super().set_model(model)
        self._tw_wrote_summary = False

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self._tw_train_batch = 0

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        self.on_close()

    def on_close(self) -> None:
        if self._tw_profile is not None:
            self._tw_end_profile()
        for writer in self._writers.values():
            writer.close()
        self._writers = {}  # a later fit opens new files

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.write_steps_per_second:
            self._tw_epoch_start = time.perf_counter(), self._tw_iterations()

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._tw_write_epoch(epoch, logs or {})
        if self.write_graph and not self._tw_wrote_summary:
            self._tw_wrote_summary = True  # by now the model is built
            self._tw_write_summary()
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._tw_write_weights(epoch)
        for writer in self._writers.values():
            writer.flush()

    def _tw_write_epoch(self, epoch, logs):
        validation = {k[4:]: v for k, v in logs.items() if k.startswith("val_")}
        training = {k: v for k, v in logs.items() if not k.startswith("val_")}
        if not training and not validation:
            return
        if getattr(self.model, "optimizer", None) is not None:
            training |= current_rates(self.model)
        if self.write_steps_per_second:
            start, iterations = self._tw_epoch_start
            seconds = max(time.perf_counter() - start, 1e-9)
            training["steps_per_second"] = (
                self._tw_iterations() - iterations
            ) / seconds
        self._tw_write_scalars("train", training, "epoch_{}", epoch)
        if validation:
            self._tw_write_scalars("validation", validation, "epoch_{}", epoch)

    def _tw_iterations(self):
        return int(self.model.optimizer.iterations.numpy())

    # --- batches

    def _tw_wants_batches(self):
        return self.update_freq != "epoch" or self._tw_first_profiled > 0

    @only_when(_tw_wants_batches)
    def on_train_batch_begin(self, batch: int, logs: OptionalLogs = None) -> None:
        self._tw_train_batch += 1
        if self.write_steps_per_second:
            self._tw_batch_start = time.perf_counter(), self._tw_train_batch
        is_first = self._tw_train_batch == self._tw_first_profiled
        if self._tw_profile is None and is_first and is_first_worker(self.model):
            self._tw_begin_profile()

    @only_when(_tw_wants_batches)
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        if (
            self._tw_profile is not None
            and self._tw_train_batch >= self._tw_last_profiled
        ):
            self._tw_end_profile()
        if self.update_freq == "epoch" or self._tw_train_batch % self.update_freq:
            return
        values = dict(logs or {})
        if self.write_steps_per_second:
            seconds = max(time.perf_counter() - self._tw_batch_start[0], 1e-9)
            values["steps_per_second"] = 1.0 / seconds
        self._tw_write_scalars("train", values, "batch_{}", self._tw_train_batch)

    def on_test_end(self, logs: OptionalLogs = None) -> None:
        if getattr(self.model, "optimizer", None) is None:
            return
        tag = "evaluation_{}_vs_iterations"
        self._tw_write_scalars("validation", logs or {}, tag, self._tw_iterations())
        self._tw_writer("validation").flush()

    def _tw_begin_profile(self):
        from tapewright.profiler import trace  # loaded with inspection and targets

        folder = os.path.join(self.log_dir, "train")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"profile_batch_{self._tw_first_profiled}.json")
        self._tw_profile = trace(path, table=False)
        self._tw_profile.__enter__()

    def _tw_end_profile(self):
        profile, self._tw_profile = self._tw_profile, None
        profile.__exit__(None, None, None)

    # --- the model

    def _tw_write_summary(self):
        if not hasattr(self.model, "summary"):
            return
        lines = []
        self.model.summary(print_fn=lambda text, **_: lines.append(str(text)))
        text = "\n".join(lines).replace("\n", "\n    ")  # a block of code in Markdown
        texts = make_text([f"    {text}".encode()], ())
        self._tw_writer("train").add_text("model", texts, 0)

    def _tw_write_weights(self, epoch):
        writer = self._tw_writer("train")
        for layer in self.model.layers:
            for weight in layer.weights:
                values = np.asarray(weight.numpy())
                writer.add_histogram(f"{weight.path}/histogram", values, epoch)
                if self.write_images:
                    self._tw_write_images(writer, f"{weight.path}/image", values, epoch)

    def _tw_write_images(self, writer, tag, values, epoch):
        images = _as_images(values)[:_MAX_IMAGES]
        for i, image in enumerate(images):
            name = tag if len(images) == 1 else f"{tag}/{i}"
            writer.add_image(name, image, epoch)


def _is_count(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _batches(profile_batch):
    """Return the first and the last batch to profile; both are 0 for none."""
    batches = profile_batch
    if isinstance(batches, str):
        batches = [int(part) if part.isdigit() else -1 for part in batches.split(",")]
        batches = batches[0] if len(batches) == 1 else batches
    pair = tuple(batches) if isinstance(batches, (list, tuple)) else (batches,) * 2
    if len(pair) == 2 and all(_is_count(n, 0) for n in pair) and pair[0] <= pair[1]:
        return pair
    raise ValueError(
        "TensorBoard: profile_batch must be a batch number, or a pair of first and "
        f"last, got {profile_batch!r}"
    )


def _as_images(values):
    """Return a list of images: a vector as a row, a matrix in landscape, stacks separately."""
    values = np.squeeze(values)
    if values.ndim < 2:
        values = values.reshape(1, -1)
    elif values.ndim == 2 and values.shape[0] > values.shape[1]:
        values = values.T
    images = np.atleast_3d(values).reshape(*values.shape[:2], -1)
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    scaled = (images - low) / (high - low) if high > low else np.zeros(images.shape)
    return [scaled[..., i] for i in range(scaled.shape[-1])] if values.size else []
