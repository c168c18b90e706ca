"""Effects in files, rebuilt from their attributes: prints, assertions, updates."""

from collections.abc import Callable
from typing import Any

import tapewright.compiler.control_flow.printing  # noqa: F401  makes effects
import tapewright.debugging  # noqa: F401  likewise
from tapewright.compiler.control_flow.effects import find_effect_maker
from tapewright.core.errors import TracingError, printable

from .graph_checks import check_gradients

UPDATE = "apply_gradients"
STREAMS = ("stdout", "stderr")


def describe_effect(
    node: Any, variable: Callable[[Any], int], optimizer: Callable[[Any], int]
) -> dict:
    """Return the attributes from which an effect is rebuilt.

    ``variable(v)`` and ``optimizer(o)`` return the number of a variable or optimizer.

    Raises:
        TracingError: For an effect that exists only in this process.
    """
    if node.kind == UPDATE:
        return _update(**node.call.attributes(), variable=variable, number=optimizer)
    if (
        node.reads
        or node.writes
        or node.outputs
        or find_effect_maker(node.kind) is None
    ):
        raise TracingError(
            f"{node.kind} calls Python code, which cannot be saved: leave it out of "
            "saved functions"
        )
    _check(node.kind, node.attributes)
    return node.attributes


def _update(optimizer, variables, gradients, variable, number):
    return {
        "optimizer": number(optimizer),
        "variables": [variable(v) for v in variables],
        "gradients": gradients,
    }


def make_effect(
    kind: Any,
    attributes: Any,
    inputs: list,
    variable: Callable[[int], Any],
    optimizer: Callable[[int], Any],
) -> Any:
    """Return the call of an effect on these inputs.

    ``variable(n)`` and ``optimizer(n)`` return the variable or optimizer with a number.

    Raises:
        ValueError: For an effect that files may not contain.
    """
    make = find_effect_maker(kind) if isinstance(kind, str) else None
    if make is None or not isinstance(attributes, dict):
        raise ValueError(f"{kind!r} is not an effect that a file may contain")
    if kind == UPDATE:
        variables = [variable(n) for n in attributes["variables"]]
        check_gradients(attributes["gradients"], variables, inputs)
        numbers = {"optimizer": optimizer(attributes["optimizer"])}
        attributes = attributes | numbers | {"variables": variables}
    _check(kind, attributes)
    return make(**_harmless(attributes))


def _harmless(x):
    """Remove characters that could control a terminal from printed text."""
    if isinstance(x, str):
        return printable(x, "\n\r\t")
    if isinstance(x, dict):
        return {key: _harmless(item) for key, item in x.items()}
    if isinstance(x, list) or type(x) is tuple:
        return type(x)(map(_harmless, x))
    return x


def _check(kind, attributes):
    if kind == "print" and attributes.get("output_stream") not in STREAMS:
        raise TracingError(
            "print: only prints to sys.stdout and sys.stderr can be saved, not to "
            f"{attributes.get('output_stream')!r}"
        )
