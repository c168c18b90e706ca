"""`Metric`: running measures of model quality, kept in variables."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tapewright.core.dtypes import as_dtype, float32, float64
from tapewright.core.interpreters import (
    active_interpreter,
    active_interpreters,
    converted,
    use_interpreters,
)
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.module import Module
from tapewright.core.names.naming import snake_case, unique_name
from tapewright.core.settings.floatx import default_float
from tapewright.core.state.replica_context import replica_context
from tapewright.core.state.stateless_scope import paired, substituted
from tapewright.core.tape import Tape
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.trackable import owned
from tapewright.core.variable import Variable
from tapewright.layers import initializers
from tapewright.layers.dtype_policies import compute_dtype
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.math.comparison import where
from tapewright.serialization.configured import Configured

from .replica_states import aggregated_states

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike
    from tapewright.layers.base.layer_types import InitializerLike

__all__ = ["Metric"]

_AGGREGATIONS = ("none", "mean", "sum", "only_first_replica")


class Metric(Module, Configured):
    """Base class of metrics: `update_state`, `result` and `reset_state`.

    `update_state` adds a batch to the state, `result` computes the value of all batches
    so far, `reset_state` clears the state. Calling a metric updates it and returns the
    result. A subclass creates its state with `add_variable`; constructor arguments kept
    as attributes form the config.

    Tapes do not record `update_state`, because no gradient can pass through an
    assignment. With several replicas, each keeps the state of its part of the batches;
    in a step that they take together, `result` is computed from the states of all, and
    updates of an idle replica have no effect.

    Args:
        dtype: Dtype of the result, `floatx` by default.
        name: Name of the metric, by default the class name in snake case, made unique.

    Example:
        >>> class Largest(keras.metrics.Metric):
        ...     def __init__(self, name="largest", dtype=None):
        ...         super().__init__(dtype, name)
        ...         self.value = self.add_variable((), "zeros", name="value")
        ...
        ...     def update_state(self, values, sample_weight=None):
        ...         self.value.assign(max(self.value, max(values)))
        ...
        ...     def result(self):
        ...         return self.value.read()
        >>> metric = Largest()
        >>> metric([1.0, 3.0]).numpy(), metric([2.0, 1.0]).numpy()
        (np.float32(3.0), np.float32(3.0))
    """

    _tw_kind: str = "metric"
    _direction = None  # "up" or "down": which way is better, if that is known
    _tw_keeps_variables = True
    _tw_result_dtype = float32
    _tw_added_variables = None  # in order of creation
    _tw_child_names = {"_tw_added_variables": "_own"}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "update_state" in vars(cls):
            cls.update_state = _unrecorded(cls.update_state)
        if "result" in vars(cls):
            cls.result = _of_all_replicas(cls.result)

    def __init__(self, dtype: DTypeLike | None = None, name: str | None = None):
        self._tw_added_variables = []
        self.name = name or unique_name(snake_case(type(self).__name__))
        self._dtype = compute_dtype(dtype)

    # --- what subclasses define

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch to the state; subclasses must override it.

        Args:
            *args: Usually ``y_true`` and ``y_pred``.
            **kwargs: Usually ``sample_weight``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update_state")

    def result(self) -> Tensor:
        """Return the value for all batches since the last reset: a tensor or a dict."""
        raise NotImplementedError(f"{type(self).__name__} must define result")

    def reset_state(self) -> None:
        """Set all variables to zero."""
        for variable in self.variables:
            variable.assign(zeros_like(variable))

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Call `update_state`, and return `result` for all batches including this one."""
        self._tw_check_initialized()
        self.update_state(*args, **kwargs)
        return self.result()

    # --- with other values of the variables, which then are as before

    def stateless_update_state(
        self, metric_variables: Sequence[Any], *args: Any, **kwargs: Any
    ) -> list[Tensor]:
        """Return the values of the variables after an `update_state`; assign nothing.

        Args:
            metric_variables: Values of `variables` before the update.
            *args: Arguments of `update_state`.
            **kwargs: Keyword arguments of `update_state`.

        Example:
            >>> metric = keras.metrics.Sum()
            >>> metric.stateless_update_state([1.0], [2.0, 3.0])[0].numpy()
            np.float64(6.0)
            >>> metric.result().numpy()
            np.float32(0.0)
        """
        with self._tw_substituted("stateless_update_state", metric_variables):
            self.update_state(*args, **kwargs)
            return [variable._tw_read_uncast() for variable in self.variables]

    def stateless_result(self, metric_variables: Sequence[Any]) -> Any:
        """Return the `result` for these values of the variables.

        Args:
            metric_variables: Values of `variables`.
        """
        with self._tw_substituted("stateless_result", metric_variables):
            return self.result()

    def stateless_reset_state(self) -> list[Tensor]:
        """Return the values of the variables after a `reset_state`; assign nothing."""
        with self._tw_substituted("stateless_reset_state", self.variables):
            self.reset_state()
            return [variable._tw_read_uncast() for variable in self.variables]

    def _tw_substituted(self, method, values):
        self._tw_check_initialized()
        who = f"{self.name}.{method}"
        return substituted(paired(who, "metric_variables", self.variables, values))

    # --- state

    def add_variable(
        self,
        shape: Sequence[int],
        initializer: InitializerLike,
        dtype: DTypeLike | None = None,
        aggregation: str | None = "sum",
        name: str | None = None,
    ) -> Variable:
        """Create a non-trainable variable as part of the state.

        Args:
            shape: Shape of the variable.
            initializer: Initializer: an object, its name, or None for zeros.
            dtype: Dtype of the variable, `floatx` by default.
            aggregation: Reduction of the values of several replicas: "sum", "mean",
                "only_first_replica", or "none" or None to keep one value per replica.
            name: Name of the variable.

        Raises:
            ValueError: If ``aggregation`` is unknown.
        """
        self._tw_check_initialized()
        aggregation = "none" if aggregation is None else aggregation
        one_of(self, "aggregation", aggregation, _AGGREGATIONS)
        dtype = default_float() if dtype is None else as_dtype(dtype)
        initializer = initializers.get("zeros" if initializer is None else initializer)
        with use_interpreters(()):  # created now, even while a function is traced
            value = initializer(tuple(shape), dtype=dtype)
            variable = Variable(value, False, name=name, dtype=dtype)
        variable.path = f"{self.name}/{variable.name}"
        variable.aggregation = aggregation
        variable.autocast = False  # also in the call of a layer in half precision
        self._tw_added_variables.append(variable)
        return variable

    def _tw_add_sum(self, name, shape=(), dtype=None):
        """Create a variable for a sum or a count over all batches.

        Counting in float32 ends at 2 ** 24: floating sums are kept in float64, and
        `_tw_as_result` casts results to ``dtype`` (default `floatx`).
        """
        self._tw_result_dtype = default_float() if dtype is None else as_dtype(dtype)
        kept = float64 if self._tw_result_dtype.is_floating else self._tw_result_dtype
        variable = self.add_variable(shape, "zeros", kept, name=name)
        variable._tw_was_narrower = True
        return variable

    def _tw_as_result(self, value):
        return cast(value, self._tw_result_dtype)

    def add_weight(
        self,
        shape: Sequence[int] = (),
        initializer: InitializerLike = None,
        dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> Variable:
        """Create a variable as part of the state: `add_variable` with default arguments.

        Args:
            shape: Shape of the variable, a scalar by default.
            initializer: Initializer: an object, its name, or None for zeros.
            dtype: Dtype of the variable, `floatx` by default.
            name: Name of the variable.
        """
        return self.add_variable(shape, initializer, dtype, name=name)

    @property
    def variables(self) -> list[Variable]:
        """The variables in order of creation, followed by the variables of inner metrics.

        As in Keras 3, a ``tw.Variable`` in an attribute is not included, and not reset.
        """
        return [v for v in self._tw_all_variables() if v._tw_is_weight]

    def _tw_all_variables(self):
        parts = owned(self)
        variables = [part for part in parts if isinstance(part, Variable)]
        for part in parts:
            if isinstance(part, Metric):
                variables += part._tw_all_variables()
        return list({id(variable): variable for variable in variables}.values())

    def _tw_check_initialized(self):
        if self._tw_added_variables is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )

    # --- describing

    @property
    def name(self) -> str:
        """Name of the metric, and of its result in the logs."""
        return self._tw_name

    @name.setter
    def name(self, name: str) -> None:
        self._tw_name = name

    @property
    def dtype(self) -> str:
        """Name of the dtype."""
        return self._dtype.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _unrecorded(update_state):
    """Return ``update_state``, hidden from tapes but not from traces.

    Its variables must remain variables: a tensor in place of one is rejected.
    """

    def update(self, args, kwargs):
        vars(self).pop("_tw_replaced", None)
        returned = converted(update_state)(self, *args, **kwargs)
        if self._tw_replaced is not None:
            self._tw_reject_replaced("update_state")
        return returned

    @functools.wraps(update_state)
    def update_quietly(self, *args, **kwargs):
        if active_interpreter() is None and replica_context() is None:
            return update(self, args, kwargs)
        others = [r for r in active_interpreters() if not isinstance(r, Tape)]
        with use_interpreters(tuple(others)), _unchanged_if_idle(self):
            return update(self, args, kwargs)

    return update_quietly


def _of_all_replicas(result):
    """Return ``result``, computed from the states of all replicas that share a step."""

    @functools.wraps(result)
    def result_of_all(self):
        if replica_context() is None:
            return converted(result)(self)
        with aggregated_states([self]):
            return converted(result)(self)

    return result_of_all


@contextmanager
def _unchanged_if_idle(metric):
    """Keep the state of an idle replica; variables created by a first update stay zero."""
    context = replica_context()
    if context is None or not context.is_idle:
        yield
        return
    before = {id(v): v.read() for v in metric.variables}
    yield
    variables = metric.variables
    updated = [v.read() for v in variables]
    if len(variables) > len(before):
        metric.reset_state()
    # By a value that is known in the step alone: traces of all replicas have the same
    # order among all-reduces in the update and those of the states.
    counts = convert_to_tensor(context.share) > 0
    for variable, value in zip(variables, updated):
        kept = before.get(id(variable))
        variable.assign(where(counts, value, variable.read() if kept is None else kept))
