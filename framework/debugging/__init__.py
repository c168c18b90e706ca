"""`tw.debugging`: assertions, NaN checks, the user's lines in explanations, devices.

The last three are off by default and then have no overhead; they apply to the whole
process.
"""

from __future__ import annotations

import sys

from tapewright.compiler.control_flow.effects import (
    effect_maker,
    serializable_effect,
)
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import NumericsError
from tapewright.core.hardware import devices
from tapewright.core.messages.source_lines import record_lines, user_line
from tapewright.core.messages.tracebacks import (
    disable_traceback_filtering,
    enable_traceback_filtering,
    is_traceback_filtering_enabled,
)
from tapewright.core.primitive import kernels_are_wrapped, wrap_kernels
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from . import assertions
from .assertions import *

__all__ = sorted(
    [
        *assertions.__all__,
        "check_numerics",
        "disable_check_numerics",
        "disable_traceback",
        "disable_traceback_filtering",
        "enable_check_numerics",
        "enable_traceback",
        "enable_traceback_filtering",
        "get_log_device_placement",
        "is_traceback_filtering_enabled",
        "set_log_device_placement",
    ]
)


def enable_traceback() -> None:
    """Record the user's file and line of each op on tapes created from now on.

    `GradientTape.explain`, `GradientTape.summary` and the errors of
    `enable_check_numerics` in a gradient then show them. Recording takes several times
    as long.

    Example:
        >>> tw.debugging.enable_traceback()
        >>> tw.debugging.disable_traceback()
    """
    record_lines(True)


def disable_traceback() -> None:
    """Undo `enable_traceback`."""
    record_lines(False)


def enable_check_numerics() -> None:
    """Raise an error at the first op that outputs a NaN or an infinity.

    Forward and backward passes are checked. The ``FloatingPointError`` contains the
    name of the op, the shapes and ranges of its inputs, the user's line and, if there
    is one, a numerically stable alternative. An infinity that an op only passes on (the
    ``-inf`` of a mask) raises no error.

    Example:
        >>> import tapewright as tw
        >>> tw.debugging.enable_check_numerics()
        >>> try:
        ...     tw.math.log(tw.constant([1.0, 0.0]))
        ... except FloatingPointError as error:
        ...     print(str(error).splitlines()[0])
        ... finally:
        ...     tw.debugging.disable_check_numerics()
        log produced an infinity (1 of 2 entries)
    """
    wrap_kernels(_checked_kernel)


def disable_check_numerics() -> None:
    """Undo `enable_check_numerics`."""
    wrap_kernels(None)


def set_log_device_placement(enabled: bool) -> None:
    """Print each op that runs, and the device of its result, to ``sys.stderr``.

    Traced functions run op by op while it is on.

    Args:
        enabled: True to print ops, False to stop.

    Example:
        >>> tw.debugging.set_log_device_placement(True)
        >>> y = tw.ones([2])  # doctest: +SKIP
        >>> tw.debugging.set_log_device_placement(False)
    """
    wrap_kernels(_logged_kernel if enabled else None, "placement")


def get_log_device_placement() -> bool:
    """Return whether ops are printed, see `set_log_device_placement`."""
    return kernels_are_wrapped("placement")


def _logged_kernel(op, kernel):
    """Return the kernel with a line printed for each call."""

    def run(*arrays, **attributes):
        result = kernel(*arrays, **attributes)
        outputs = result if type(result) is tuple else (result,)
        names = {devices.device_of(out) for out in outputs if devices.is_array(out)}
        device = " and ".join(sorted(names)) or "no device"
        print(f"Executing op {op.type_name} in device {device}", file=sys.stderr)
        return result

    return run


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Return ``tensor`` after a check that no entry is NaN or infinite.

    In a traced function the check runs in each call.

    Args:
        tensor: Tensor to check.
        message: Start of the error message.

    Raises:
        FloatingPointError: If an entry is NaN or infinite.

    Example:
        >>> import tapewright as tw
        >>> try:
        ...     tw.debugging.check_numerics(tw.constant([1.0, float("nan")]), "loss")
        ... except FloatingPointError as error:
        ...     print(error)
        loss: the tensor has NaN (1 of 2 entries)
    """
    tensor = convert_to_tensor(tensor)
    serializable_effect("check_numerics", [tensor], message=message)
    return tensor


@effect_maker("check_numerics")
def _numerics_check(message):
    def check(array):
        problem = _non_finite(array)
        if problem:
            raise NumericsError(f"{message}: the tensor has {problem}")

    return check


def _checked_kernel(op, kernel):
    """Return the kernel with a check of its outputs."""

    def run(*arrays, **attributes):
        result = kernel(*arrays, **attributes)
        for out in result if type(result) is tuple else (result,):
            problem = _non_finite(out)
            if problem and _is_new(out, arrays):
                raise NumericsError(_report(op, problem, arrays, attributes))
        return result

    return run


def _is_floating(array):
    return getattr(getattr(array, "dtype", None), "kind", None) in ("f", "c")


def _non_finite(array):
    """Describe the entries of an array that are not finite; None if there are none."""
    if not _is_floating(array):
        return None
    xp = devices.array_module(type(array))
    if bool(xp.isfinite(array).all()):
        return None
    total = array.size
    parts = []
    for count, one in (
        (int(xp.isnan(array).sum()), "NaN"),
        (int(xp.isinf(array).sum()), "an infinity"),
    ):
        if count:
            parts.append(f"{one} ({count} of {total} entries)")
    return " and ".join(parts)


def _is_new(out, arrays):
    """Return whether an op created its non-finite output, or NaN came from outside."""
    xp = devices.array_module(type(out))
    inputs = [x for x in arrays if _is_floating(x)]
    if any(bool(xp.isnan(x).any()) for x in inputs):
        return True  # no op made it, or that op would have raised
    if any(bool(xp.isinf(x).any()) for x in inputs):
        return bool(xp.isnan(out).any())
    return True


def _report(op, problem, arrays, attributes):
    lines = [f"{op.name} produced {problem}"]
    names = op.names(arrays)
    for name, array in zip(names, arrays):
        lines.append(f"    {name}: {_range(array)}")
    for name, value in attributes.items():
        lines.append(f"    {name} = {value!r}")
    line = user_line(always=True)
    if line:
        lines.append(f"    at {line}")
    if op.stable_form is not None:
        lines.append(f"    stable instead: {op.stable_form}")
    return "\n".join(lines)


def _range(array):
    if not hasattr(array, "dtype"):
        return repr(array)
    text = f"shape {tuple(array.shape)}, {array.dtype}"
    if not array.size or kind_of(array.dtype) not in "fciu":
        return text
    values = devices.to_numpy(array)
    if values.dtype.kind == "c":
        values = abs(values)
        text += ", modulus"
    finite = (
        values[abs(values) < float("inf")] if kind_of(values.dtype) == "f" else values
    )
    if finite.size:
        text += f" from {finite.min():.6g} to {finite.max():.6g}"
    other = values.size - finite.size
    return text + (f", {other} not finite" if other else "")
