"""`tw.train`: checkpoints, examples and moving averages, as in ``tf.train``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tapewright.compiler.function.scopes import init_scope
from tapewright.core.typing import TensorLike
from tapewright.core.variable import Variable
from tapewright.formats.checkpoints.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tapewright.formats.checkpoints.checkpoint_manager import CheckpointManager
from tapewright.io.messages import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.elementwise import minimum
from tapewright.serialization.constructor_call import constructor_call

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]


class ExponentialMovingAverage:
    """Exponential moving averages of variables.

    ``average += (1 - decay) * (variable - average)``. `apply` creates an average for
    each variable, starting at its value, and updates all averages; call it after each
    step. ``use_ema=True`` of an optimizer does the same for the variables that it
    trains.

    Args:
        decay: Decay rate from 0 to 1, or a variable.
        num_updates: Number of updates so far, a number or a variable, which limits the
            decay to ``(1 + num_updates) / (10 + num_updates)``; None for no limit.
        zero_debias: Has no effect, since an average starts at the value of its
            variable.
        name: Part of the names of the averages.

    Example:
        >>> weight, ema = tw.Variable(1.0), tw.train.ExponentialMovingAverage(decay=0.9)
        >>> ema.apply([weight])
        >>> _ = weight.assign(2.0)
        >>> ema.apply([weight])
        >>> ema.average(weight).numpy()
        np.float32(1.1)
    """

    def __init__(
        self,
        decay: TensorLike,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ):
        self._decay, self._num_updates = decay, num_updates
        self._name = name
        self._averages: dict[Any, Variable] = {}

    def __repr__(self) -> str:
        known = {"decay": self._decay, "num_updates": self._num_updates}
        return constructor_call(self, known)

    @property
    def name(self) -> str:
        """Name, at the end of the names of the averages."""
        return self._name

    def apply(self, var_list: Iterable[Variable]) -> None:
        """Update the averages of variables, and create missing averages.

        Args:
            var_list: Floating variables.

        Raises:
            TypeError: If ``var_list`` contains anything else.
        """
        variables = list(var_list)
        for variable in variables:
            is_variable = isinstance(variable, Variable)
            if not is_variable or not variable.dtype.is_floating:
                raise TypeError(
                    "ExponentialMovingAverage.apply: var_list must contain floating "
                    f"variables, got {variable!r}"
                )
        for variable in variables:
            if variable.ref() not in self._averages:
                with init_scope():
                    average = Variable(
                        variable, trainable=False, name=self.average_name(variable)
                    )
                self._averages[variable.ref()] = average
        decay = cast(self._decay, "float32")
        if self._num_updates is not None:
            count = cast(self._num_updates, "float32")
            decay = minimum(decay, (1 + count) / (10 + count))
        for variable in variables:
            average = self._averages[variable.ref()]
            rate = cast(1 - decay, variable.dtype)
            average.assign_sub((average - variable) * rate)

    def average(self, var: Variable) -> Variable | None:
        """Return the average of a variable, or None before the first `apply`.

        Args:
            var: Variable that is averaged.

        Returns:
            The average, a variable.
        """
        return self._averages.get(var.ref())

    def average_name(self, var: Variable) -> str:
        """Return the name of the average of a variable.

        Args:
            var: Variable that is averaged.
        """
        return f"{var.path}/{self._name}"
