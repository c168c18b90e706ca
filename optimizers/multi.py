"""`MultiOptimizer`: several optimizers, each of which trains a subset of the variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from operator import attrgetter
from typing import Any, NoReturn, Self

import numpy as np

from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.patterns import pattern_of
from tapewright.core.settings.floatx import floatx
from tapewright.core.settings.ufunc_settings import ignoring_float_errors
from tapewright.core.state.commit import commit
from tapewright.core.variable import Variable, writing
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_call import constructor_call

from .base.gradients import check_is_list
from .base.optimizer import Optimizer
from .loss_scale import LossScaleOptimizer

__all__ = ["MultiOptimizer", "OptimizerMap"]


class OptimizerMap(MutableMapping):
    """Mapping from variable paths such as ``sequential/dense/kernel`` to optimizers.

    A key is a path, or a regular expression that must match the whole path.

    Args:
        default_optimizer: Optimizer of the variables that no key matches.
        optimizer_map: Dict of keys and optimizers.

    Raises:
        TypeError: If a value is not an optimizer.
        ValueError: If a key is set twice, or several keys match a path.

    Example:
        >>> from tapewright.optimizers import SGD, Adam
        >>> slow = Adam(1e-4, name="slow")
        >>> optimizers = keras.optimizers.OptimizerMap(SGD(), {"encoder/.*": slow})
        >>> optimizers["encoder/dense/kernel"].name
        'slow'
    """

    _tw_kind: str = "optimizer"

    def __init__(
        self,
        default_optimizer: Optimizer,
        optimizer_map: dict[str, Optimizer] | None = None,
    ):
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(
                "OptimizerMap: default_optimizer must be an Optimizer, got "
                f"{default_optimizer!r}"
            )
        if not isinstance(optimizer_map, (dict, type(None))):
            raise TypeError(
                f"OptimizerMap: optimizer_map must be a dict, got {optimizer_map!r}"
            )
        self.default_optimizer: Optimizer = default_optimizer
        self._optimizers = {}
        for key, optimizer in (optimizer_map or {}).items():
            self[key] = optimizer

    def __repr__(self) -> str:
        return constructor_call(self, {"optimizer_map": self._optimizers})

    def __getitem__(self, key: str) -> Optimizer:
        if key in self._optimizers:
            return self._optimizers[key]
        matching = [e for e in self._optimizers if pattern_of(e).fullmatch(key)]
        if len(matching) > 1:
            raise ValueError(
                f"OptimizerMap: one key must match the variable '{key}', got "
                f"{len(matching)} keys: {', '.join(matching)}"
            )
        return self._optimizers[matching[0]] if matching else self.default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        if not isinstance(key, str):
            raise ValueError(f"OptimizerMap: a key must be a string, got {key!r}")
        if key in self._optimizers:
            raise ValueError(
                f"OptimizerMap: keys must be unique, '{key}' exists already"
            )
        pattern_of(key)  # refuses what is no regular expression
        self._optimizers[key] = _checked("OptimizerMap", optimizer)

    def __delitem__(self, key: str) -> None:
        del self._optimizers[key]

    def __len__(self) -> int:
        return len(self._optimizers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._optimizers)

    def __call__(self, variable: Variable) -> Optimizer:
        """Return the optimizer of a variable."""
        return self[variable.path]

    def get_config(self) -> dict[str, Any]:
        """Return the configs of the optimizers."""
        optimizers = self._optimizers.items()
        return {
            "default_optimizer": object_config.serialize(self.default_optimizer),
            "optimizer_map": {k: object_config.serialize(x) for k, x in optimizers},
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        """Return the map of a config.

        Args:
            config: Dict from `get_config`.
            custom_objects: Dict ``{name: class or function}``, searched before the
                registered objects.
        """
        with registry.custom_object_scope(custom_objects):
            default = object_config.deserialize(
                "optimizer", config["default_optimizer"]
            )
            optimizers = {
                key: object_config.deserialize("optimizer", each)
                for key, each in config["optimizer_map"].items()
            }
        return cls(default, optimizers)


class MultiOptimizer(Optimizer):
    """Train subsets of the variables with different optimizers.

    The list ``optimizers`` holds the optimizers with their learning rates; the
    callbacks of `keras.callbacks` set and log each rate.

    Args:
        optimizer_map: `OptimizerMap`, or a function that returns the optimizer of a
            variable.
        loss_scale_factor: Factor of `scale_loss` and divisor of the gradients; replaces
            the factors of the optimizers.
        name: Name of the optimizer, unique by default.

    Raises:
        ValueError: If the map returns anything but an optimizer for a variable, or
            returns a `LossScaleOptimizer` or another `MultiOptimizer`.
        AttributeError: If `learning_rate` is used.

    Example:
        >>> from tapewright.optimizers import SGD
        >>> v, w = tw.Variable([1.0], name="v"), tw.Variable([1.0], name="w")
        >>> rates = keras.optimizers.OptimizerMap(SGD(0.5), {"w": SGD(0.25)})
        >>> optimizer = keras.optimizers.MultiOptimizer(rates)
        >>> optimizer.apply([[1.0], [1.0]], [v, w])
        >>> v.numpy(), w.numpy()
        (array([0.5], dtype=float32), array([0.75], dtype=float32))
    """

    def __init__(
        self,
        optimizer_map: OptimizerMap | Callable[[Variable], Optimizer],
        loss_scale_factor: float | None = None,
        name: str | None = None,
    ):
        if not callable(optimizer_map):
            raise ValueError(
                "MultiOptimizer: optimizer_map must be an OptimizerMap or a function of "
                f"a variable, got {optimizer_map!r}"
            )
        self.optimizers: list[Optimizer] = []
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        self.optimizer_map = optimizer_map
        self._tw_of_variables = {}  # id of a variable -> its optimizer
        if isinstance(optimizer_map, OptimizerMap):
            for each in (*optimizer_map.values(), optimizer_map.default_optimizer):
                self._tw_add_optimizer(each)

    def __repr__(self) -> str:  # a function may have no config
        return f"{type(self).__name__}(optimizers={self.optimizers})"

    def _tw_add_optimizer(self, optimizer):
        if all([each is not optimizer for each in self.optimizers]):
            _checked(self.name, optimizer).loss_scale_factor = self.loss_scale_factor
            if self._tw_is_sharded:
                optimizer._tw_shard()
            self.optimizers.append(optimizer)

    # --- state, followed by that of the optimizers

    @property
    def variables(self) -> list[Variable]:
        own = [self._iterations, self._learning_rate]
        return own + [v for each in self.optimizers for v in each.variables]

    @property
    def learning_rate(self) -> NoReturn:
        """Not available: each optimizer in ``optimizers`` has a learning rate."""
        raise AttributeError(
            "Learning rate cannot be accessed on a MultiOptimizer. Access the learning "
            "rate on the individual sub-optimizers instead."
        )

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if self._learning_rate is not None:
            raise AttributeError(
                "Learning rate cannot be set on a MultiOptimizer. Set the learning rate "
                "on the individual sub-optimizers instead."
            )
        self._learning_rate = self._tw_scalar("learning_rate", value, floatx())

    @property
    def loss_scale_factor(self) -> float | None:
        """The factor of `scale_loss`, common to all ``optimizers``."""
        return self._loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, value: float | None) -> None:
        self._loss_scale_factor = value
        for each in self.optimizers:
            each.loss_scale_factor = value

    def __children__(self) -> dict[str, Any]:
        children = super().__children__()
        optimizers = {f"optimizer_{i}": x for i, x in enumerate(self.optimizers)}
        children.pop("optimizers", None)
        return children | optimizers

    def build(self, variables: Sequence[Variable]) -> None:
        for variable in variables:
            optimizer = self.optimizer_map(variable)
            self._tw_add_optimizer(optimizer)
            self._tw_of_variables[id(variable)] = optimizer
        for optimizer in self.optimizers:
            own = [v for v in variables if self._tw_of_variables[id(v)] is optimizer]
            if own:
                optimizer.build(own)
        self._trainable_variables = list(variables)  # kept alive: their ids stay theirs
        self.built = True

    def _tw_shard(self) -> None:
        super()._tw_shard()
        for optimizer in self.optimizers:
            optimizer._tw_shard()

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        if not self.optimizers:
            raise ValueError(
                "MultiOptimizer.exclude_from_weight_decay: call it on the optimizer that "
                "optimizer_map returns for the variables"
            )
        for optimizer in self.optimizers:
            optimizer.exclude_from_weight_decay(var_list, var_names)

    _tw_several = property(attrgetter("optimizers"))

    def _tw_excluded_from_weight_decay(self) -> list[Any]:
        return [v for x in self.optimizers for v in x._tw_excluded_from_weight_decay()]

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        for optimizer, variables in self._tw_parts(var_list):
            optimizer.finalize_variable_values([v for (v,) in variables])

    # --- steps

    def apply(
        self,
        grads: Sequence[Any],
        trainable_variables: Sequence[Variable] | None = None,
    ) -> None:
        check_is_list(trainable_variables)
        if not len(grads):
            return
        if trainable_variables is None:
            trainable_variables = self._tw_all_variables(grads)
        if len(grads) != len(trainable_variables):
            raise ValueError(
                f"apply: {len(grads)} gradients were given for "
                f"{len(trainable_variables)} variables"
            )
        with use_interpreters(()):
            self.build(trainable_variables)
        parts = [
            (optimizer, *zip(*pairs))
            for optimizer, pairs in self._tw_parts(trainable_variables, grads)
        ]
        if active_tracer() is not None:
            for optimizer, variables, gradients in parts:
                optimizer.apply(gradients, variables)
            self._iterations.assign_add(1)
            return
        updates = [
            (optimizer, optimizer._tw_update_of(variables, gradients), gradients)
            for optimizer, variables, gradients in parts
        ]
        written = [self._iterations]
        for optimizer, update, _ in updates:
            update.announce(optimizer)
            written += optimizer._tw_writes(update)
        writing(written).run(self._tw_commit, updates)

    @ignoring_float_errors
    def _tw_commit(self, updates):
        """Take the steps of all optimizers, and count one step."""
        for _, update, gradients in updates:
            update.checked(gradients)  # before code of the user runs
        steps = [
            update.make_step(optimizer, gradients)
            for optimizer, update, gradients in updates
        ]
        made = np.asarray(self._iterations._array + 1)
        commit(steps, [self._iterations], [made])

    def _tw_new_update(self, key, variables, grads):
        raise ValueError(
            "MultiOptimizer cannot be wrapped in a LossScaleOptimizer; compile with "
            "auto_scale_loss=False, use the policy 'mixed_bfloat16', or set "
            "loss_scale_factor"
        )

    def _tw_parts(self, variables, *others):
        """Return pairs of an optimizer and a list of tuples: a variable and its values."""
        parts = {id(each): (each, []) for each in self.optimizers}
        for entry in zip(variables, *others):
            optimizer = self._tw_of_variables.get(id(entry[0]))
            if optimizer is None:
                raise ValueError(
                    f"Unknown variable: {entry[0]!r}. The optimizer was built without it"
                )
            parts[id(optimizer)][1].append(entry)
        return [part for part in parts.values() if part[1]]

    # --- configuration

    def get_config(self) -> dict[str, Any]:
        return {
            "optimizer_map": object_config.serialize(self.optimizer_map),
            "loss_scale_factor": self.loss_scale_factor,
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        with registry.custom_object_scope(custom_objects):
            optimizer_map = config["optimizer_map"]
            if isinstance(optimizer_map, dict):
                kind = "optimizer" if _is_map(optimizer_map) else "function"
                optimizer_map = object_config.deserialize(kind, optimizer_map)
        return cls(**{**config, "optimizer_map": optimizer_map})


registry.register("optimizer", "OptimizerMap", OptimizerMap)


def _is_map(config):
    return config.get("class_name") == "OptimizerMap"


def _checked(who, optimizer):
    if not isinstance(optimizer, Optimizer) or isinstance(
        optimizer, (LossScaleOptimizer, MultiOptimizer)
    ):
        raise ValueError(
            f"{who}: the optimizer of a variable must be an Optimizer other than "
            f"LossScaleOptimizer and MultiOptimizer, got {optimizer!r}"
        )
    return optimizer
