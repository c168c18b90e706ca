"""The stack of interpreters, which process each op that is called.

The active interpreter of a thread (more precisely, of a context) is one of

    None                no interpreter: the op just runs
    `tape.Tape`         one tape, which records the op
    `ARRAY_EVAL`        a backward pass that is not recorded: arrays in, arrays out
    another             a batcher, a tracer, ...
    `InterpreterStack`  several; the innermost processes the op first
"""

import os
from contextvars import ContextVar

from . import hooks
from .errors import TracingError

_INTERPRETER = ContextVar("interpreter", default=None)
active_interpreter = _INTERPRETER.get


class Interpreter:
    """Base of the objects that process every op while they are active."""

    __slots__ = ()
    sees_plain_tensors = True  # also processes ops on tensors of no subclass only
    takes_records = False  # has `process_record`, for records of whole calls
    only_watches_variables = False  # processes reads of variables, but no ops
    hides_tapes = False  # tapes outside, which there are, do not see the ops
    traces = False  # builds a graph: tensors under it may have no value yet

    def process(self, op, inputs, attributes, below):
        """Return the outputs of the op; ``below`` are the interpreters under this one."""
        return process_op(op, inputs, attributes, below)

    def read_variable(self, variable, tensor):
        """Hook for each read of a Variable; ``tensor`` is the result of the read."""

    def before_value(self, variable):
        """Hook before Python takes the value of a Variable as a number or an array.

        It may raise to reject that.
        """

    def before_assign(self, variable, method, key):
        """Hook before an assignment to a Variable or to the state of a traced generator.

        It may raise to reject the assignment. ``method`` is "assign", "assign_add" or
        "assign_sub", and ``key`` is the key of the value; or ``method`` is the kind of
        an effect without a key: "apply_gradients", a step of an optimizer.
        """


class _ArrayEval(Interpreter):
    __slots__ = ()

    def __repr__(self):
        return "ARRAY_EVAL"


ARRAY_EVAL = _ArrayEval()


class InterpreterStack(tuple):
    """Several interpreters, the innermost at the end of the tuple."""

    __slots__ = ()
    sees_plain_tensors = True


def active_interpreters() -> tuple:
    """Return the interpreters of this thread, the innermost last."""
    interpreter = active_interpreter()
    if interpreter is None:
        return ()
    if type(interpreter) is InterpreterStack:
        return interpreter
    return (interpreter,)


def notify_of_writes(variables, kind):
    """Notify the active interpreters of the variables that an effect will assign to."""
    for interpreter in active_interpreters():
        for variable in variables:
            interpreter.before_assign(variable, kind, None)


def active_tracer():
    """Return the innermost interpreter of this thread that traces, or None."""
    interpreter = active_interpreter()
    if type(interpreter) is not InterpreterStack:
        return interpreter if interpreter is not None and interpreter.traces else None
    for each in reversed(interpreter):
        if each.traces:
            return each
    return None


def converted(function):
    """Return a callable of the user in the form in which the active trace calls it.

    In traced functions its Python control flow is converted; elsewhere it is unchanged.
    """
    if _INTERPRETER.get() is None:
        return function
    tracer = active_tracer()
    if tracer is None or not tracer.converts:
        return function
    return hooks.convert.call(function)


def check_not_traced(path):
    """Reject writing a file in a function that is being traced.

    Raises:
        TracingError: In a traced function.
    """
    if active_tracer() is not None:
        raise TracingError(
            f"{os.fspath(path)}: a traced function cannot write files: it would write "
            "once, while it is traced, and not in its calls. Save outside of traced "
            "functions"
        )


def set_interpreters(interpreters):
    """Set the interpreters of this thread (context)."""
    if len(interpreters) > 1:
        _INTERPRETER.set(InterpreterStack(interpreters))
    else:
        _INTERPRETER.set(interpreters[0] if interpreters else None)


class use_interpreters:  # noqa: N801  (used as a statement)
    """Context in which only the given interpreters process ops."""

    __slots__ = ("_interpreters", "_outer")

    def __init__(self, interpreters):
        self._interpreters = interpreters

    def __enter__(self):
        self._outer = active_interpreter()
        set_interpreters(self._interpreters)

    def __exit__(self, *exc):
        _INTERPRETER.set(self._outer)


def process_op(op, inputs, attributes, interpreters):
    """Return the outputs of an op on tensors, processed by these interpreters."""
    if not interpreters:
        return op.run(inputs, attributes)
    return interpreters[-1].process(op, inputs, attributes, interpreters[:-1])
