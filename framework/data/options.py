"""`Options`: settings of a dataset, under the names of ``tf.data.Options``.

``deterministic=False`` allows any order of elements. The other settings are hints for the
speed of TensorFlow's runtime: they are kept, compared and merged, without effect.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from tapewright.core.messages.suggestions import did_you_mean, suggestion

from .nodes.node import Selection
from .nodes.parallel import allow_any_order

if TYPE_CHECKING:
    from typing import Any

    from .nodes.node import Node


class AutoShardPolicy(enum.IntEnum):
    """Policies by which a distribution strategy divides a dataset among workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class AutotuneAlgorithm(enum.Enum):
    """Algorithms by which TensorFlow tunes the number of threads."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class ExternalStatePolicy(enum.Enum):
    """Policies of TensorFlow for functions with state when it copies a dataset."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Settings:
    """Attributes of given types, None until they are set."""

    _types: dict[str, Any] = {}

    def __init__(self) -> None:
        for name, kind in self._types.items():
            is_group = issubclass(kind, _Settings)
            object.__setattr__(self, name, kind() if is_group else None)

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self._types}
        shown = [
            f"{name}={value!r}"
            for name, value in given.items()
            if value is not None and repr(value) != f"{type(value).__name__}()"
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._types.get(name)
        if kind is None:
            hint = suggestion(name, self._types, "there are")
            raise AttributeError(f"{type(self).__name__} has no setting {name!r}{hint}")
        is_kind = type(value) is bool if kind is bool else isinstance(value, kind)
        may_be_unset = not issubclass(kind, _Settings)
        if not is_kind and not (value is None and may_be_unset):
            raise TypeError(
                f"{type(self).__name__}: {name} must be of type {kind.__name__}, got "
                f"{value!r}"
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all([getattr(self, n) == getattr(other, n) for n in self._types])

    def _merged(self, other: Any) -> Any:
        """Return the settings of ``other``, and of this one where those are None."""
        merged = type(self)()
        for name, kind in self._types.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if issubclass(kind, _Settings):
                theirs = mine._merged(theirs)
            setattr(merged, name, mine if theirs is None else theirs)
        return merged


class AutotuneOptions(_Settings):
    """Settings of TensorFlow's automatic tuning; they have no effect."""

    _types: dict[str, Any] = {
        "enabled": bool,
        "cpu_budget": int,
        "ram_budget": int,
        "autotune_algorithm": AutotuneAlgorithm,
        "initial_parallelism": int,
        "min_parallelism": int,
    }


class DistributeOptions(_Settings):
    """Division of a dataset by a strategy: `AutoShardPolicy.AUTO` and ``DATA`` work."""

    _types: dict[str, Any] = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        supported = None, AutoShardPolicy.AUTO, AutoShardPolicy.DATA
        if name == "auto_shard_policy" and value not in supported:
            super().__setattr__(name, None)
            raise ValueError(
                f"DistributeOptions: auto_shard_policy={value.name} is not supported: "
                "rows of batches are divided, as with DATA; use shard(...) for files"
            )


class OptimizationOptions(_Settings):
    """Settings of TensorFlow's rewrites of datasets; they have no effect."""

    _types: dict[str, Any] = dict.fromkeys(
        "apply_default_optimizations filter_fusion filter_parallelization inject_prefetch"
        " map_and_batch_fusion map_and_filter_fusion map_fusion map_parallelization"
        " noop_elimination parallel_batch seq_interleave_prefetch"
        " shuffle_and_repeat_fusion".split(),
        bool,
    )


class ThreadingOptions(_Settings):
    """Settings of TensorFlow's threads; they have no effect.

    Use the ``num_parallel_calls`` of `Dataset.map` instead.
    """

    _types: dict[str, Any] = {
        "max_intra_op_parallelism": int,
        "private_threadpool_size": int,
    }


class Options(_Settings):
    """Settings of a dataset, for `Dataset.with_options`.

    With ``deterministic=False``, a `map` with several threads yields elements as they
    are finished, in any order, unless its own ``deterministic`` is set. The other
    settings are accepted for compatibility, and have no effect.

    Raises:
        AttributeError: If a setting of another name is set.
        TypeError: If a value has the wrong type.

    Example:
        >>> from tapewright import data
        >>> options = data.Options()
        >>> options.deterministic = False
        >>> data.Dataset.range(3).with_options(options).options().deterministic
        False
    """

    _types: dict[str, Any] = {
        "autotune": AutotuneOptions,
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "dataset_name": str,
        "framework_type": str,
        "threading": ThreadingOptions,
    }
    _renamed = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._renamed.get(name, name), value)

    def __getattr__(self, name: str) -> Any:
        if name in self._renamed:
            return getattr(self, self._renamed[name])
        hint = did_you_mean(name, self._types)
        raise AttributeError(f"Options has no setting {name!r}{hint}")

    def merge(self, options: Options) -> Options:
        """Return the settings of both; ``options`` takes precedence.

        Args:
            options: Settings that override the settings of this object.
        """
        return self._merged(options)


class Configured(Selection):
    """The input, with `Options`."""

    def __init__(self, source, options):
        super().__init__(source)
        self.options = options

    def begin(self):
        position = super().begin()
        if self.options.deterministic is False:
            allow_any_order(self.inputs[0], position["inputs"][0])
        return position

    def select(self, position, run):
        return run(self.inputs[0], position["inputs"][0])

    def blocks(self, position, size):
        return self.inputs[0].blocks(position["inputs"][0], size)


def options_of(node: Node) -> Options:
    """Return the settings of a node, and of its inputs for those that it does not set."""
    options = Options()
    for each in node.inputs:
        options = options.merge(options_of(each))
    return options.merge(node.options) if isinstance(node, Configured) else options
