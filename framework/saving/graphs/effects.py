"""Effects in files: prints and assertions, made again from what describes them."""

from ...errors import TracingError
from ...graph.control.effects import maker_of

__all__ = ["describe_effect", "made_effect"]

STREAMS = ("stdout", "stderr")


def describe_effect(node):
    """The attributes from which an effect is made again.

    Raises: ``TracingError`` for what only this process can do.
    """
    if node.kind == "apply_gradients":
        raise TracingError(
            "apply_gradients: a file can keep no update of an optimizer; let the function "
            "return gradients, or assign the variables itself"
        )
    if node.reads or node.writes or node.outputs or maker_of(node.kind) is None:
        raise TracingError(
            f"{node.kind} calls what no file can keep: leave it out of functions that "
            "are saved"
        )
    _check(node.kind, node.attributes)
    return node.attributes


def made_effect(kind, attributes):
    """The call of an effect. Raises: ``ValueError`` for one that files may not have."""
    make = maker_of(kind) if isinstance(kind, str) else None
    if make is None or not isinstance(attributes, dict):
        raise ValueError(f"{kind!r} is no effect that a file can have")
    _check(kind, attributes)
    return make(**attributes)


def _check(kind, attributes):
    if kind == "print" and attributes.get("output_stream") not in STREAMS:
        raise TracingError(
            "print: a file can keep prints to sys.stdout and sys.stderr only, not to "
            f"{attributes.get('output_stream')!r}"
        )
