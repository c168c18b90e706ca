"""Computations with substituted values of variables, which are restored afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Self

from ..errors import TracingError
from ..interpreters import (
    Interpreter,
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from ..tape import Tape
from ..tensor import Tensor, convert_to_tensor
from ..variable import Variable, writing


def paired(
    who: str, argument: str, variables: list[Variable], values: Any
) -> list[tuple[Variable, Tensor]]:
    """Return pairs of a variable and a tensor for it.

    Args:
        who: Name of the caller, for error messages.
        argument: Name of the argument that holds the values.
        variables: Variables to pair.
        values: One value for each variable.

    Raises:
        ValueError: If the number of values differs.
        ShapeError: If a value has another shape than its variable.
        DTypeError: If a value has another dtype than its variable.
    """
    values = list(values)
    if len(values) != len(variables):
        raise ValueError(
            f"{who}: {argument} must have {len(variables)} values, got {len(values)}"
        )
    pairs = []
    for variable, value in zip(variables, values):
        tensor = convert_to_tensor(value, dtype_hint=variable.dtype)
        variable._tw_check_assigned("assign", tensor.array)
        pairs.append((variable, tensor))
    return pairs


@contextmanager
def substituted(pairs: Iterable[tuple[Variable, Tensor]]) -> Iterator[None]:
    """Context in which variables have other values; they are restored at the end.

    Reads return the tensors themselves, so gradients with respect to them are
    available. Assignments inside only change the values inside.

    Example:
        >>> from tapewright.core.state.stateless_scope import substituted
        >>> v = tw.Variable(1.0)
        >>> with substituted([(v, tw.convert_to_tensor(2.0))]):
        ...     print(v.assign_add(1.0).numpy())
        3.0
        >>> v.numpy()
        np.float32(1.0)
    """
    pairs = list(pairs)
    tracer = active_tracer()
    tapes = [each for each in active_interpreters() if isinstance(each, Tape)]
    with writing([variable for variable, _ in pairs]), ExitStack() as stack:
        if tracer is not None:
            stack.enter_context(tracer.substituting(pairs))
        else:
            stack.callback(_rebind, [(v, v._array) for v, _ in pairs])
            _rebind([(v, tensor.array) for v, tensor in pairs])
        for tape in tapes:
            stack.callback(tape.reads.update, tape.reads.copy())
            tape.reads.update({id(v): tensor for v, tensor in pairs})
        yield


def _rebind(pairs):
    for variable, array in pairs:
        variable._bind(array)


class _Assigned(Interpreter):
    """Interpreter that saves the value of a variable before its first assignment."""

    __slots__ = ("before",)
    only_watches_variables = True

    def __init__(self):
        self.before = {}  # id -> the variable, and its array

    def before_assign(self, variable, method, key):
        if method == "apply_gradients" and active_tracer() is not None:
            raise TracingError(
                "an optimizer cannot be applied in a StatelessScope in a traced function; "
                "call its stateless_apply"
            )
        if isinstance(variable, Variable):  # other states end with their trace
            self.before.setdefault(id(variable), (variable, variable._array))


class StatelessScope:
    """Scope in which variables have other values, and which restores them at its end.

    The states of random generators are variables, too: the same numbers are drawn
    again.

    Args:
        state_mapping: Pairs of a variable and its value inside the scope, or None.
        collect_losses: Must be False; read `Layer.losses` instead.
        initialize_variables: Ignored: variables created inside are initialized
            immediately.

    Raises:
        ValueError: If ``collect_losses`` is True, a key is not a variable, or a value
            does not fit its variable.

    Example:
        >>> v = tw.Variable(1.0)
        >>> with keras.StatelessScope([(v, 5.0)]) as scope:
        ...     _ = v.assign_add(1.0)
        >>> v.numpy(), scope.get_current_value(v).numpy()
        (np.float32(1.0), np.float32(6.0))
    """

    def __init__(
        self,
        state_mapping: Iterable[tuple[Variable, Any]] | None = None,
        collect_losses: bool = False,
        initialize_variables: bool = True,
    ):
        if collect_losses:
            raise ValueError(
                "StatelessScope: collect_losses must be False; losses are in layer.losses"
            )
        pairs = list(state_mapping or ())
        for key, _ in pairs:
            if not isinstance(key, Variable):
                raise ValueError(
                    f"StatelessScope: state_mapping must map variables, got {key!r}"
                )
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        self._pairs = paired("StatelessScope", "state_mapping", keys, values)
        self._values = {}

    def __enter__(self) -> Self:
        tracer = active_tracer()
        with ExitStack() as stack:
            stack.enter_context(tracer.assigning_nothing() if tracer else nullcontext())
            stack.enter_context(substituted(self._pairs))
            self._assigned = _Assigned()
            watched = (self._assigned, *active_interpreters())
            stack.enter_context(use_interpreters(watched))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        mapped = {id(variable): variable for variable, _ in self._pairs}
        assigned = self._assigned.before
        known = mapped | {name: variable for name, (variable, _) in assigned.items()}
        self._values = {name: v._tw_read_uncast() for name, v in known.items()}
        self._known = known  # keeps the ids
        self._stack.close()
        if active_tracer() is None:
            _rebind([pair for name, pair in assigned.items() if name not in mapped])

    def add_update(self, update: tuple[Variable, Any]) -> None:
        """Assign a value inside the scope.

        Args:
            update: Pair of a variable and its new value.
        """
        variable, value = update
        variable.assign(value)

    def get_current_value(self, variable: Variable) -> Tensor | None:
        """Return the value at the end of the scope, or None if it was never set.

        Args:
            variable: Variable to look up.
        """
        return self._values.get(id(variable))
