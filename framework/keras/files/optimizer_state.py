"""The state of an optimizer in files: its variables, in the order of Keras.

Arrays are read in that order too, and all shapes are compared. Files of Keras 2 have another
order of slots; there the names of the arrays tell the slot of each.
"""

from typing import Any

from tapewright.storage.reader import Group

__all__ = [
    "StateMismatch",
    "optimizer_group",
    "pairs_by_name",
    "pairs_in_order",
    "write_optimizer",
]

# The slots by their names in files of Keras 2, where those differ from Keras 3's.
SYNONYMS = {
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


def write_optimizer(group: Any, optimizer: Any) -> None:
    """Write the variables into ``vars``, those of a wrapped optimizer beside it."""
    own = group.group("vars")
    own.text("name", optimizer.name)
    for i, variable in enumerate(optimizer.variables):
        own.array(str(i), variable._array)
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is not None:
        write_optimizer(group.group("inner_optimizer"), inner)


class StateMismatch(ValueError):
    """The arrays of a file are no state of the optimizer."""


def optimizer_group(root: Group, optimizer: Any) -> Group | None:
    """Return the group of the variables of an optimizer in a file, or None.

    If the saved optimizer scaled the loss and this one does not, the group of the inner one.
    """
    inner = root.find_group("optimizer/inner_optimizer/vars")
    if inner is not None and getattr(optimizer, "inner_optimizer", None) is None:
        return inner
    return root.find_group("optimizer/vars")


def pairs_in_order(optimizer: Any, arrays: list) -> list[tuple]:
    """Return pairs of variable and array, in order. Raises: `StateMismatch`."""
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


def pairs_by_name(optimizer: Any, names: list[str], arrays: list) -> list[tuple]:
    """Return pairs of variable and array by names of Keras 2: ``Adam/m/dense/kernel:0``."""
    variables, first = optimizer.variables, optimizer._iterations
    slots = {name: [] for group in optimizer.slots for name in group}
    pairs = []
    for name, array in zip(names, arrays):
        if not array.shape and name.rpartition("/")[2].startswith("iter"):
            pairs.append((first, array))
        elif not array.shape and "learning_rate" in name:
            pairs += [(v, array) for v in variables if v.name == "learning_rate"]
        else:
            slots[_slot_of(name, slots, optimizer)].append(array)
    for (name, stored), own in zip(slots.items(), optimizer._slots):
        if len(stored) != len(own):
            raise StateMismatch(
                f"{len(stored)} arrays are stored for the slot '{name}' of {len(own)}"
            )
        pairs += [_pair(variable, array) for variable, array in zip(own, stored)]
    return pairs


def _slot_of(name, slots, optimizer):
    stems = [part.partition(":")[0] for part in name.split("/")]
    kinds = [kind for stem in stems for kind in SYNONYMS.get(stem, ()) if kind in slots]
    if not kinds:
        raise StateMismatch(
            f"'{name}' belongs to no slot of {type(optimizer).__name__}"
        )
    return kinds[0]
