"""`tw.compat.v1`: the part of ``tf.compat.v1`` that programs in eager mode call.

Graphs and sessions are not supported; see `function` for traced functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Never, Self

from tapewright.compiler.function.scopes import executing_eagerly
from tapewright.core.names import name_scopes
from tapewright.ops.random.sampling import set_seed

from . import compat_v1_logging as logging

__all__ = [
    "ConfigProto",
    "GPUOptions",
    "InteractiveSession",
    "Session",
    "disable_eager_execution",
    "disable_v2_behavior",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "executing_eagerly",
    "logging",
    "name_scope",
    "placeholder",
    "reset_default_graph",
    "set_random_seed",
]

__path__: list[str] = []  # a package, below which `logging` is imported
_INSTEAD = "call a @tw.function with tensors, or look at them with .numpy()"


# ------------------------------------------------------------------------ sessions


@dataclass(slots=True, kw_only=True)
class GPUOptions:
    """Settings of GPUs, which have no effect: memory is allocated as needed.

    `config.set_logical_device_configuration` sets a limit, `config.set_visible_devices`
    selects GPUs.

    Args:
        per_process_gpu_memory_fraction: Ignored.
        allow_growth: Ignored.
        allocator_type: Ignored.
        deferred_deletion_bytes: Ignored.
        visible_device_list: Ignored.
        polling_active_delay_usecs: Ignored.
        polling_inactive_delay_msecs: Ignored.
        force_gpu_compatible: Ignored.
    """

    per_process_gpu_memory_fraction: float = 0.0
    allow_growth: bool = False
    allocator_type: str = ""
    deferred_deletion_bytes: int = 0
    visible_device_list: str = ""
    polling_active_delay_usecs: int = 0
    polling_inactive_delay_msecs: int = 0
    force_gpu_compatible: bool = False


@dataclass(slots=True, kw_only=True)
class ConfigProto:
    """Settings of a `Session`, which have no effect.

    Args:
        device_count: Ignored.
        intra_op_parallelism_threads: Ignored.
        inter_op_parallelism_threads: Ignored.
        use_per_session_threads: Ignored.
        placement_period: Ignored.
        device_filters: Ignored.
        gpu_options: A `GPUOptions`; ignored.
        allow_soft_placement: Ignored.
        log_device_placement: Ignored.
        operation_timeout_in_ms: Ignored.
        isolate_session_state: Ignored.

    Example:
        >>> config = tw.compat.v1.ConfigProto(allow_soft_placement=True)
        >>> config.gpu_options.allow_growth = True
        >>> session = tw.compat.v1.Session(config=config)
    """

    device_count: dict[str, int] = field(default_factory=dict)
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    use_per_session_threads: bool = False
    placement_period: int = 0
    device_filters: list[str] = field(default_factory=list)
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    operation_timeout_in_ms: int = 0
    isolate_session_state: bool = False


class Session:
    """Container of a configuration, for programs in eager mode that configure their GPUs.

    `run` always raises ``RuntimeError``.

    Args:
        target: Must be "".
        graph: Must be None.
        config: A `ConfigProto`, or None.

    Raises:
        ValueError: If ``target`` or ``graph`` is another one.
        TypeError: If ``config`` is not a `ConfigProto`.
    """

    def __init__(
        self, target: str = "", graph: None = None, config: ConfigProto | None = None
    ):
        who = f"compat.v1.{type(self).__name__}"
        if target or graph is not None:
            raise ValueError(
                f"{who}: target must be '' and graph None, since there are no graphs "
                f"to run, got {target!r} and {graph!r}; {_INSTEAD}"
            )
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError(
                f"{who}: config must be a ConfigProto, got {type(config).__name__}"
            )

    def run(self, *args: Any, **kwargs: Any) -> Never:
        """Raise ``RuntimeError``, since there are no graphs to run.

        Args:
            *args: Ignored.
            **kwargs: Ignored.
        """
        raise RuntimeError(
            f"compat.v1.Session.run: there are no graphs to run; {_INSTEAD}"
        )

    def as_default(self) -> Self:
        """Return the session, which is a context manager."""
        return self

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class InteractiveSession(Session):
    """Same as `Session`."""


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Never:
    """Raise ``RuntimeError``, as TensorFlow does in eager mode.

    Args:
        dtype: Ignored.
        shape: Ignored.
    """
    raise RuntimeError(
        "compat.v1.placeholder: ops run eagerly; use an argument of a "
        "@tw.function, or a tw.keras.Input"
    )


class name_scope(name_scopes.name_scope):  # noqa: N801
    """Name scope with the arguments of TensorFlow 1; see `tw.name_scope`.

    Args:
        name: Name of the scope; None for ``default_name``, or "" if that is None, too.
        default_name: Name if ``name`` is None.
        values: Ignored.

    Raises:
        ValueError: If the name is not a string.

    Example:
        >>> with tw.compat.v1.name_scope(None, "loss", [1.0, 2.0]) as scope:
        ...     scope
        'loss/'
    """

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Any = None
    ):
        super().__init__((default_name or "") if name is None else name)


# ------------------------------------------------------------------------- switches


def enable_eager_execution(
    config: ConfigProto | None = None,
    device_policy: Any = None,
    execution_mode: Any = None,
) -> None:
    """Do nothing, since ops run eagerly.

    Args:
        config: Ignored.
        device_policy: Ignored.
        execution_mode: Ignored.
    """


def enable_v2_behavior() -> None:
    """Do nothing, since everything behaves as in TensorFlow 2."""


enable_control_flow_v2 = enable_resource_variables = enable_v2_behavior
enable_tensor_equality = enable_v2_tensorshape = enable_v2_behavior


def disable_eager_execution() -> Never:
    """Raise ``RuntimeError``, since there are no graphs to run."""
    raise RuntimeError(f"compat.v1: ops always run eagerly; {_INSTEAD}")


disable_v2_behavior = disable_eager_execution


def reset_default_graph() -> None:
    """Do nothing, since there is no default graph."""


def set_random_seed(seed: int) -> None:
    """Set the seed of all random ops, as `random.set_seed`.

    Args:
        seed: Integer seed.
    """
    set_seed(seed)
