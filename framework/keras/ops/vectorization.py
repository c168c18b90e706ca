"""`keras.ops.vectorize`: map a function of scalars or small arrays over larger arrays."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from typing import Any

from tapewright.autodiff.vectorized_map import vectorized_map
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import checked_broadcast
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.shape import broadcast_to, reshape

from .operation import OperationFamily

__all__ = ["vectorize"]


operation = OperationFamily(__name__, "numpy")


@operation(class_name=None)
def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] | None = None,
    signature: str | None = None,
) -> Callable[..., Any]:
    """Return a function that applies ``pyfunc`` to the entries of arrays, which broadcast.

    Each op of ``pyfunc`` runs once, for all entries. Keyword arguments and None are
    passed unchanged.

    Args:
        pyfunc: Function of scalars, or of the arrays that ``signature`` names.
        excluded: Positions and names of arguments that are passed unchanged.
        signature: Names of the last axes of the arguments and results of ``pyfunc``,
            such as "(m,n),(n)->(m)"; by default they are scalars.

    Raises:
        ValueError: If ``signature`` is invalid; the function raises it as well, for
            arguments that do not match.

    Example:
        >>> keras.ops.vectorize(lambda a, b: a + b)([1, 2, 3], 2).numpy()
        array([3, 4, 5], dtype=int32)
    """
    if not callable(pyfunc):
        raise InvalidArgumentError(
            f"vectorize: pyfunc must be callable, got {type(pyfunc).__name__}"
        )
    core = None if signature is None else _parsed(signature)
    excluded = set(excluded or ())

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        mapped = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        names = core[0] if core else [()] * len(mapped)
        if len(names) != len(mapped):
            raise InvalidArgumentError(
                f"vectorize: {len(names)} arrays must be given for "
                f"signature={signature!r}, got {len(mapped)}"
            )
        inputs = [convert_to_tensor(args[i]) for i in mapped]

        def call(entries):
            given = list(args)
            for i, x in zip(mapped, entries):
                given[i] = x
            return pyfunc(*given, **kwargs)

        if not inputs:
            return pyfunc(*args, **kwargs)
        lead, sizes = _lead_of(inputs, names)
        ranks = [len(each) for each in names]
        if not lead:
            return _checked(call(inputs), core, sizes, signature)
        count = lead.num_elements()
        flat = []
        for x, rank in zip(inputs, ranks):
            inner = tuple(x.shape)[len(x.shape) - rank :]
            wide = broadcast_to(x, shape=(*lead, *inner))
            flat.append(reshape(wide, (count, *inner)))
        out = vectorized_map(lambda entries: call(entries), tuple(flat))
        out = _checked(out, core, sizes, signature, 1)
        one = not isinstance(out, (tuple, list))
        parts = [reshape(x, (*lead, *x.shape[1:])) for x in ([out] if one else out)]
        return parts[0] if one else tuple(parts)

    return vectorized


def _parsed(signature):
    """Return the names of the last axes of each input and each output."""
    group = r"\((?:\w+(?:,\w+)*)?\)"
    text = re.sub(r"\s", "", signature)
    if not re.fullmatch(f"(?:{group}(?:,{group})*)?->{group}(?:,{group})*", text):
        raise InvalidArgumentError(
            "vectorize: signature must be names of axes, such as '(m,n),(n)->(m)', got "
            f"{signature!r}"
        )
    return [
        [tuple(re.findall(r"\w+", each)) for each in re.findall(group, side)]
        for side in text.split("->")
    ]


def _lead_of(inputs, names):
    """Return the broadcast shape of the axes in front, and the sizes of the last axes."""
    lead, sizes = inputs[0].shape[:0], {}
    for x, axes in zip(inputs, names):
        rank = len(x.shape) - len(axes)
        if rank < 0:
            raise ShapeError(
                "vectorize", f"arguments must have the last axes {axes}", x=x
            )
        lead = checked_broadcast("vectorize", lead, x.shape[:rank], x=x)
        for name, size in zip(axes, x.shape[rank:]):
            if sizes.setdefault(name, size) != size:
                what = f"the axis {name!r} must have {sizes[name]} entries"
                raise ShapeError("vectorize", what, x=x)
    return lead, sizes


def _checked(out, core, sizes, signature, lead=0):
    if core is None:
        return out
    parts = list(out) if isinstance(out, (tuple, list)) else [out]
    ranks = [len(x.shape) - lead for x in parts]
    if ranks != [len(axes) for axes in core[1]]:
        raise InvalidArgumentError(
            f"vectorize: pyfunc must return arrays with the axes of "
            f"signature={signature!r}, got {ranks} axes"
        )
    for x, axes in zip(parts, core[1]):
        for name, size in zip(axes, x.shape[lead:]):
            if sizes.setdefault(name, size) != size:
                what = f"the axis {name!r} of a result must have {sizes[name]} entries"
                raise ShapeError("vectorize", what, result=x)
    return out
