"""The state of an optimizer in files: its variables, in the order of Keras.

Arrays are read in the same order, and all shapes are compared. Files of Keras 2 have
another order of slots, and store the slot in the name of each array.
"""

import warnings
from typing import Any

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.names.naming import snake_case
from tapewright.storage.reader import Group

from ..model_file import OWN_GROUP
from .weight_assignment import WeightAssignment

# Groups that hold the state: of ``.keras`` files and weights, of ours in ``.h5``.
_GROUPS = ("optimizer", f"{OWN_GROUP}/optimizer")
_KERAS2_GROUP = "optimizer_weights"
OPTIMIZER_GROUPS = (*_GROUPS, _KERAS2_GROUP)

# The slots by their names in files of Keras 2, where those differ from Keras 3's.
_SYNONYMS = {
    "m": ("momentum",),
    "v": ("velocity", "norm"),
    "u": ("norm",),
    "vhat": ("velocity_hat",),
    "v_hat": ("velocity_hat",),
    "rms": ("velocity",),
    "mg": ("average_gradient",),
    "momentum": ("momentum",),
    "velocity": ("velocity",),
    "accumulator": ("accumulator",),
    "accum_grad": ("accumulated_grad",),
    "accum_var": ("accumulated_delta_var",),
    "accumulated_grad": ("accumulated_grad",),
    "accumulated_delta_var": ("accumulated_delta_var",),
    "average_gradient": ("average_gradient",),
    "linear": ("linear",),
}


def write_optimizer(root: Any, optimizer: Any) -> None:
    """Write the variables of an optimizer, if not None, to the group ``optimizer``.

    Variables of wrapped optimizers are written to neighboring groups.
    """
    if optimizer is not None:
        _write(root.group("optimizer"), optimizer)


def _write(group, optimizer):
    variables = group.group("vars")
    variables.text("name", optimizer.name)
    for i, variable in enumerate(optimizer.variables):
        variables.array(str(i), variable._tw_whole_array())
    inner = getattr(optimizer, "_tw_inner", None)
    if inner is not None:
        _write(group.group("inner_optimizer"), inner)
    several = getattr(optimizer, "_tw_several", None) or ()
    for name, each in zip(_names(several), several):
        _write(group.group(f"optimizers/{name}"), each)


def _names(things):
    """Return the classes in snake case, numbered if repeated, as in Keras."""
    names = [snake_case(type(each).__name__) for each in things]
    for i, name in reversed([*enumerate(names)]):
        count = names[:i].count(name)
        names[i] = f"{name}_{count}" if count else name
    return names


# ------------------------------------------------------------------------------- reading


class StateMismatch(ValueError):
    """Error if the arrays of a file do not fit the state of an optimizer."""


def restore_optimizer(root: Group, model: Any) -> None:
    """Restore the state of the optimizer of a model that was compiled as saved.

    A state that does not fit is skipped, with a warning.
    """
    optimizer, assignment = model.optimizer, WeightAssignment(root.path)
    try:
        arrays, names = _stored_state(root, optimizer)
        if arrays is None:
            raise StateMismatch("the file has no state for it")
        if _by_name(names) or len(arrays) != len(optimizer.variables):
            optimizer.build(model.trainable_variables)
        for variable, array in _pairs(optimizer, arrays, names):
            assignment.add(variable, array)
        if assignment.problems:
            raise StateMismatch(assignment.problems[0][1])
    except StateMismatch as error:
        _warn(root, optimizer, error)
    else:
        assignment.apply()


def add_optimizer(root: Group, model: Any, assignment: WeightAssignment) -> None:
    """Add the state of an optimizer if it has as many variables as the file.

    Otherwise the optimizer keeps its state, with a warning: before it is built it has
    no slots.
    """
    optimizer = getattr(model, "optimizer", None)
    arrays, names = (None, ()) if optimizer is None else _stored_state(root, optimizer)
    if arrays is None:
        return
    try:
        if not optimizer.built and len(arrays) > len(optimizer.variables):
            raise StateMismatch(
                "it is not built yet; to restore it, call "
                "optimizer.build(model.trainable_variables) before load_weights"
            )
        for variable, array in _pairs(optimizer, arrays, names):
            assignment.add(variable, array)
    except StateMismatch as error:
        _warn(root, optimizer, error)


def _warn(root, optimizer, reason):
    warnings.warn(
        f"{root.path}: the state of the optimizer '{optimizer.name}' is not restored: "
        f"{reason}",
        stacklevel=user_stacklevel(),
    )


def _stored_state(root, optimizer):
    """Return the arrays of an optimizer, or None, and their names in files of Keras 2.

    If the saved optimizer scaled the loss and this one does not, these are the arrays
    of the inner optimizer.
    """
    groups = ["vars"]
    if getattr(optimizer, "_tw_inner", None) is None:
        groups.insert(0, "inner_optimizer/vars")
    for path in [f"{each}/{name}" for each in _GROUPS for name in groups]:
        group = root.find_group(path)
        if group is not None:
            return group.numbered(), ()
    group = root.find_group(_KERAS2_GROUP)
    if group is None:
        return None, ()
    names = group.texts("weight_names")
    return [group.array(name) for name in names], names


def has_loss_scale(root: Group) -> bool:
    """Return whether the saved optimizer was a `LossScaleOptimizer`."""
    groups = [root.find_group(f"{name}/inner_optimizer") for name in _GROUPS]
    return any([group is not None for group in groups])


def config_with_loss_scale(config: dict) -> dict:
    """Return a compile config whose optimizer scales the loss.

    Keras writes the optimizer that was passed to `compile`, not the
    `LossScaleOptimizer` around it, which is only in the state.
    """
    optimizer = config["optimizer"]
    if isinstance(optimizer, dict):
        if optimizer.get("class_name") == "LossScaleOptimizer":
            return config
    arguments = {"name": "loss_scale_optimizer", "inner_optimizer": optimizer}
    wrapped = {"class_name": "LossScaleOptimizer", "config": arguments}
    return config | {"optimizer": wrapped}


def _pairs(optimizer, arrays, names):
    """Return pairs of variable and array.

    Raises:
        StateMismatch: If they do not fit.
    """
    if _by_name(names):
        return _pairs_by_name(optimizer, names, arrays)
    return _pairs_in_order(optimizer, arrays)


def _by_name(names):
    return any([name.endswith(":0") for name in names])


def _pairs_in_order(optimizer, arrays):
    variables = optimizer.variables
    has_rate = len(arrays) > 1 and not arrays[1].shape
    if len(arrays) == len(variables) - 1 and not has_rate:  # a file of Keras 2
        variables = [v for v in variables if v is not optimizer._learning_rate]
    if len(arrays) != len(variables):
        raise StateMismatch(
            f"{len(arrays)} arrays are stored, it has {len(variables)} variables"
        )
    return [_pair(variable, array) for variable, array in zip(variables, arrays)]


def _pair(variable, array):
    if array.shape != tuple(variable.shape):
        raise StateMismatch(
            f"'{variable.path}' has shape {tuple(variable.shape)}, its stored array "
            f"{array.shape}"
        )
    return variable, array


def _pairs_by_name(optimizer, names, arrays):
    """Return pairs of variable and array by Keras 2 names: ``Adam/m/dense/kernel:0``."""
    variables, first = optimizer.variables, optimizer._iterations
    slots = {name: [] for group in optimizer._tw_rule.slots for name in group}
    pairs = []
    for name, array in zip(names, arrays):
        if not array.shape and name.rpartition("/")[2].startswith("iter"):
            pairs.append((first, array))
        elif not array.shape and "learning_rate" in name:
            pairs += [(v, array) for v in variables if v.name == "learning_rate"]
        else:
            slots[_slot_of(name, slots, optimizer)].append(array)
    for (name, stored), slot in zip(slots.items(), optimizer._tw_slots):
        if len(stored) != len(slot):
            raise StateMismatch(
                f"{len(stored)} arrays are stored for the slot '{name}' of {len(slot)}"
            )
        pairs += [_pair(variable, array) for variable, array in zip(slot, stored)]
    return pairs


def _slot_of(name, slots, optimizer):
    stems = [part.partition(":")[0] for part in name.split("/")]
    known = [
        name for stem in stems for name in _SYNONYMS.get(stem, ()) if name in slots
    ]
    if not known:
        raise StateMismatch(
            f"'{name}' belongs to no slot of {type(optimizer).__name__}"
        )
    return known[0]
