"""Models of any kind of file: made of a config, filled, compiled, and their state.

Beside the groups of Keras, files have one of our own, ``tapewright``, which Keras ignores:
``random`` has the states of the model's random generators, so that a run goes on as if it
had never stopped; ``calls`` the graphs of the user's layers, see `custom_layer_graphs`.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

from tapewright.core.deferred_initialization import deferred_initialization
from tapewright.core.errors import SavingError
from tapewright.serialization.load_errors import from_file, load_errors
from tapewright.storage.reader import Group

from .custom_layer_graphs import using_layer_graphs, write_layer_graphs
from .keras2_configs import keras3_config
from .keras_objects import deserialize_keras_object
from .limits import WeightLimit, check_size
from .optimizer_state import StateMismatch, pairs_by_name, pairs_in_order
from .weight_assignment import WeightAssignment

__all__ = [
    "OWN_GROUP",
    "compile_as_saved",
    "restore_optimizer",
    "restored_model",
    "state_of",
    "write_own_state",
]  # fmt: skip

OWN_GROUP = "tapewright"
FORMAT = 1


def state_of(model: Any) -> list:
    """Return all variables of a model and of its optimizer."""
    optimizer = getattr(model, "optimizer", None)
    return [*model.variables, *getattr(optimizer, "variables", ())]


def write_own_state(root: Any, model: Any) -> Any:
    """Write the group of our own. Returns it."""
    group = root.group(OWN_GROUP)
    group.integer("format", FORMAT)
    for i, state in enumerate(_random_states(model)):
        group.array(f"random/{i}", state._array)
    write_layer_graphs(group, model)
    return group


def _random_states(model):
    weights = {id(v) for v in model.weights}
    return [v for v in model.variables if id(v) not in weights]


# ------------------------------------------------------------------------------- reading


def restored_model(
    root: Group,
    place: str,
    config: Any,
    build_config: Any,
    weights: list,
    read: Callable[[Any, WeightAssignment], Any],
) -> Any:
    """Return the model of a config and the weights of a file.

    ``place``: the place of the config, for errors; ``weights``: the groups that hold them;
    ``read(model, assignment)`` notes the array of each variable. No more memory is taken than
    the weights in the file need, and nothing is drawn at random for them.
    """
    path = root.path
    check_size(config, path, place)
    config, others = keras3_config(config)
    if others:
        warnings.warn(
            f"{path}: layers of dtype {' and '.join(sorted(others))} compute in "
            "float32 here: results differ from Keras' by rounding",
            stacklevel=4,
        )
    numbers = sum([_numbers_in(group) for group in weights])
    calls = using_layer_graphs(root.find_group(OWN_GROUP))
    with calls, deferred_initialization(WeightLimit(path, numbers, place)) as new:
        with from_file(path, place):
            model = deserialize_keras_object(config, kind="layer")
        if not hasattr(model, "compile"):
            kind = type(model).__name__
            raise SavingError(
                path, f"the config describes a {kind}, not a model", place
            )
        _build(model, build_config, path, place)
        assignment = WeightAssignment(path)
        read(model, assignment)
        _note_random(root, model, assignment)
        assignment.apply()
        new.initialize()
    return model


def _numbers_in(group):
    """The number of entries of the arrays below. Raises: `SavingError` for unstored ones."""
    return sum([math.prod(array.check().shape) for array in group.arrays()])


def _build(model, build_config, path, place):
    if not build_config or model.built:
        return
    what = f"the model cannot be built for {build_config!r:.200}"
    with from_file(path, place), load_errors(what):
        model.build_from_config(build_config)


def _note_random(root, model, assignment):
    group = root.find_group(f"{OWN_GROUP}/random")
    if group is None:
        return
    arrays, states = group.numbered(), _random_states(model)
    if len(arrays) == len(states):
        for state, array in zip(states, arrays):
            assignment.add(state, array)
        return
    warnings.warn(
        f"{root.path}: the states of {len(arrays)} random generators are stored, but "
        f"the model has {len(states)}: they are not restored",
        stacklevel=6,
    )


def compile_as_saved(model: Any, config: Any, path: str, place: str) -> bool:
    """Compile by the ``compile_config`` of a file. Returns whether it did."""
    if not isinstance(config, dict):
        raise SavingError(path, "the compile config must be a dict", place)
    if not config.get("optimizer"):
        warnings.warn(
            f"{path}: the model was saved with a compile config that lacks an optimizer; "
            "it is not compiled, call compile()",
            stacklevel=5,
        )
        return False
    try:
        with (
            from_file(path, place),
            load_errors("the model cannot be compiled as it was"),
        ):
            config, _ = keras3_config(config)
            model.compile_from_config(config)
    except SavingError as error:
        error.add_note("compile=False loads the model without it")
        raise
    return True


def restore_optimizer(
    model: Any, arrays: list | None, path: str, names: list | None = None
) -> None:
    """Restore the state of the optimizer from ``arrays``, None if there are none.

    A state that does not fit is left out, with a warning. ``names``: of the arrays, if they
    are in the order of Keras 2.
    """
    optimizer = model.optimizer
    if arrays is None:
        _warn_fresh(path, optimizer, "the file holds no state of it")
        return
    by_name = any([name.endswith(":0") for name in names or ()])
    if by_name or len(arrays) != len(optimizer.variables):
        optimizer.build(model.trainable_variables)
    assignment = WeightAssignment(path)
    try:
        if by_name:
            pairs = pairs_by_name(optimizer, names, arrays)
        else:
            pairs = pairs_in_order(optimizer, arrays)
        for variable, array in pairs:
            assignment.add(variable, array)
        if assignment.problems:
            raise StateMismatch(assignment.problems[0][1])
    except StateMismatch as error:
        _warn_fresh(path, optimizer, error)
    else:
        assignment.apply()


def _warn_fresh(path, optimizer, reason):
    warnings.warn(
        f"{path}: the state of the optimizer '{optimizer.name}' is not restored: "
        f"{reason}",
        stacklevel=5,
    )
