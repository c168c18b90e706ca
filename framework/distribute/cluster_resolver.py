"""`tw.distribute.cluster_resolver`: the search for TPUs, which always fails."""

from __future__ import annotations

from typing import Any

__all__ = ["TPUClusterResolver"]


class TPUClusterResolver:
    """Cluster resolver for TPUs; always raises an error, as there are no TPUs.

    tapewright runs on CPUs and GPUs. Programs that use a TPU if there is one catch the
    error.

    Args:
        tpu: Name of the TPU; ignored.
        *args: Ignored.
        **kwargs: Ignored.

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
        """Raise the error of the constructor.

        Args:
            tpu: Name of the TPU; ignored.
            zone: Ignored.
            project: Ignored.

        Raises:
            ValueError: Always.
        """
        return TPUClusterResolver(tpu, zone, project)
