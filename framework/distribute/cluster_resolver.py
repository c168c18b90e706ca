"""`tw.distribute.cluster_resolver`: the search for TPUs, which finds none."""

from __future__ import annotations

from typing import Any

__all__ = ["TPUClusterResolver"]


class TPUClusterResolver:
    """A search for a TPU, as in TensorFlow; tapewright runs on CPUs and GPUs.

    Programs that use a TPU where there is one catch the error.

    Args:
        tpu: The name of the TPU; the other arguments are not looked at.

    Raises:
        ValueError: Always.

    Example:
        >>> try:
        ...     resolver = tw.distribute.cluster_resolver.TPUClusterResolver()
        ... except ValueError as error:
        ...     print(error)
        TPUClusterResolver: there is no TPU: tapewright runs on CPUs and GPUs
    """

    def __init__(self, tpu: str | None = None, *args: Any, **kwargs: Any):
        name = "" if tpu is None else f" {tpu!r}"
        raise ValueError(
            f"TPUClusterResolver: there is no TPU{name}: tapewright runs on CPUs and GPUs"
        )

    @staticmethod
    def connect(
        tpu: str | None = None, zone: str | None = None, project: str | None = None
    ) -> TPUClusterResolver:
        """Raise the ``ValueError`` of the constructor."""
        return TPUClusterResolver(tpu, zone, project)
