"""Conditions: detect traced ones, convert them to scalars, and handle their errors."""

import sys

from tapewright.core.errors import TracingError
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.source_lines import line_of_error, user_line
from tapewright.core.shapes.symbolic_operand import TracedOperand
from tapewright.core.tensor import convert_to_tensor, is_tensor
from tapewright.ops.array.shape import reshape

from ..control_flow.regions import any_traced


class ControlFlowError(TracingError, ValueError):
    """Python control flow that a trace cannot follow; a ``ValueError``, as in TensorFlow.

    ``is_lasting`` means that the effect cannot be undone, so that Python cannot repeat
    it.
    """

    is_lasting = False


def is_traced(x):
    """Return whether the value of ``x`` is known only when the trace runs."""
    if active_tracer() is None or not is_tensor(x):
        return False
    if hasattr(type(x), "__tensor__"):
        x = convert_to_tensor(x)
    is_size = isinstance(x, TracedOperand) and x.known_sizes() is not None
    return any_traced([x]) and not is_size


def scalar_condition(test, what):
    """Return a condition as one boolean tensor of rank 0."""
    test = convert_to_tensor(test)
    if test.shape.num_elements() != 1:
        raise ControlFlowError(
            f"{user_line(always=True)}: the condition of {what} must be a single value, got "
            f"shape {test.shape}: reduce it with tw.reduce_all or tw.reduce_any"
        )
    return reshape(test if test.dtype.dtype.kind == "b" else test != 0, ())


def note_conditional(error, line, what):
    """Record that a user's error was raised in traced code, which may not run."""
    error.add_note(f"{line}: {what}. Use tw.debugging.Assert to check values")
    error.is_conditional = True


def check_caught():
    """Reject an ``except`` that catches an error of a traced branch or loop.

    Only a run of the trace shows whether the error is raised, so the handler cannot
    decide whether to run.

    Raises:
        ControlFlowError: If such an error is being handled.
    """
    error = conditional_error()
    if error is not None:
        _refuse(error, f"caught at {user_line(always=True)}: no except")


def conditional_error():
    """Return the error that is being handled if a traced branch or loop has raised it."""
    error = sys.exception()
    return error if getattr(error, "is_conditional", False) else None


def check_swallowed(error):
    """Reject the context manager of a ``with`` that swallows an error, if there is one.

    Raises:
        ControlFlowError: As in `check_caught`.
    """
    if error is not None:
        _refuse(error, f"swallowed by the with of {user_line(always=True)}: no with")


def _refuse(error, what):
    if isinstance(error, ControlFlowError):
        raise error
    refusal = ControlFlowError(
        f"{line_of_error(error)}: {type(error).__name__} is raised depending on a "
        f"tensor, and {what} can depend on a tensor. Use if, or check with "
        "tw.debugging.Assert"
    )
    refusal.is_conditional = True  # nothing around catches it
    raise refusal from error
