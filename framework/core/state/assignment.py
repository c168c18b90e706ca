"""`assign_all`: assign to several variables, to all of them or to none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from .. import hooks
from ..tensor import Tensor
from ..typing import TensorLike
from ..variable import Variable, writing
from .commit import bind_all


def assign_all(
    who: str,
    variables: Iterable[Variable],
    values: Iterable[TensorLike],
    cast: bool = False,
) -> None:
    """Assign a value to each variable; on an error all variables keep their values.

    Args:
        who: Name of the caller, for error messages.
        variables: Variables to assign to.
        values: One value for each variable.
        cast: If True, cast the values to the dtypes of the variables, like NumPy.

    Raises:
        ValueError: If the number of values or a shape differs.
        DTypeError: If a dtype differs, as in `Variable.assign`.

    Example:
        >>> from tapewright.core.state.assignment import assign_all
        >>> v, w = tw.Variable(1.0), tw.Variable([1.0, 2.0])
        >>> assign_all("set_weights", [v, w], [3.0, [4.0]])
        Traceback (most recent call last):
            ...
        ValueError: set_weights: the value of 'Variable' must have shape (2,), got (1,)
        >>> v.numpy()
        np.float32(1.0)
    """
    variables, values = list(variables), list(values)
    if len(values) != len(variables):
        raise ValueError(
            f"{who}: needs {len(variables)} values, one for each variable, got "
            f"{len(values)}"
        )
    for variable, value in zip(variables, values):
        if tuple(np.shape(value)) != tuple(variable.shape):
            raise ValueError(
                f"{who}: the value of '{variable.path}' must have shape "
                f"{tuple(variable.shape)}, got {tuple(np.shape(value))}"
            )
    with unchanged_on_error(variables):
        for variable, value in zip(variables, values):
            variable.assign(_cast(variable, value) if cast else value)


def _cast(variable, value):
    """Cast the value to the dtype of a variable."""
    if isinstance(value, Tensor):  # on its device
        return hooks.cast.call(value, variable.dtype)
    if isinstance(value, Variable):
        return hooks.cast.call(value._tw_read_uncast(), variable.dtype)
    return np.asarray(value, variable._array.dtype)


@contextmanager
def unchanged_on_error(variables: Iterable[Variable]) -> Iterator[None]:
    """Context that restores the values of the variables if it exits with an error."""
    variables = list(variables)
    before = [variable._array for variable in variables]
    try:
        yield
    except BaseException:
        writing(variables).run(bind_all, variables, before)
        raise
