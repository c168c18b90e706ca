"""A bar for files so large that their saving or loading is felt."""

__all__ = ["Progress"]

THRESHOLD = 200_000_000  # bytes


class Progress:
    """Counts bytes; shows a bar once they, or their ``total``, reach the threshold.

    Nothing is shown where standard error is no terminal.
    """

    def __init__(self, label, total=None):
        self._label, self._total, self._count, self._bar = label, total, 0, None

    def add(self, count):
        """``count`` bytes more are done."""
        self._count += count
        if self._bar is not None:
            self._bar.update(count)
        elif max(self._count, self._total or 0) >= THRESHOLD:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=self._label, total=self._total, unit="B", unit_scale=True,
                unit_divisor=1000, initial=self._count, disable=None, leave=False,
            )  # fmt: skip

    def close(self):
        if self._bar is not None:
            self._bar.close()
