"""The state of an optimizer in files: its variables, in the order of Keras.

Reading goes by that order too, with all shapes compared. Files of Keras 2 list the slots
otherwise; there the names of the arrays tell which slot each belongs to.
"""

__all__ = ["pairs_by_name", "pairs_in_order", "write_optimizer"]

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


def write_optimizer(group, optimizer):
    """Writes the variables into ``vars``, of a wrapped optimizer also beside it."""
    own = group.group("vars")
    own.text("name", optimizer.name)
    for i, variable in enumerate(optimizer.variables):
        own.array(str(i), variable._array)
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is not None:
        write_optimizer(group.group("inner_optimizer"), inner)


def pairs_in_order(optimizer, arrays):
    """Pairs of variable and array; or a text that says why they do not fit."""
    variables = optimizer.variables
    has_rate = len(arrays) > 1 and not arrays[1].shape
    if len(arrays) == len(variables) - 1 and not has_rate:  # a file of Keras 2
        variables = [v for v in variables if v is not optimizer._learning_rate]
    if len(arrays) != len(variables):
        return f"{len(arrays)} arrays are stored, it has {len(variables)} variables"
    for variable, array in zip(variables, arrays):
        if array.shape != tuple(variable.shape):
            return (
                f"'{variable.path}' has shape {tuple(variable.shape)}, what is stored "
                f"for it {array.shape}"
            )
    return list(zip(variables, arrays))


def pairs_by_name(optimizer, names, arrays):
    """The same for arrays whose names are those of Keras 2: ``Adam/m/dense/kernel:0``."""
    variables, first = optimizer.variables, optimizer._iterations
    slots = {name: [] for group in optimizer.slots for name in group}
    rest = []
    for name, array in zip(names, arrays):
        if not array.shape and name.rpartition("/")[2].startswith("iter"):
            rest.append((first, array))
        elif not array.shape and "learning_rate" in name:
            rest += [(v, array) for v in variables if v.name == "learning_rate"]
        else:
            kinds = [k for part in name.split("/") for k in _slots_named(part)]
            kinds = [kind for kind in kinds if kind in slots]
            if not kinds:
                return f"'{name}' belongs to no slot of {type(optimizer).__name__}"
            slots[kinds[0]].append(array)
    pairs = rest
    names = [name for group in optimizer.slots for name in group]
    for name, own in zip(names, optimizer._slots):
        stored = slots[name]
        if len(stored) != len(own):
            return (
                f"{len(stored)} arrays are stored for the slot '{name}' of {len(own)}"
            )
        for variable, array in zip(own, stored):
            if array.shape != tuple(variable.shape):
                return f"'{variable.path}' has another shape than what is stored for it"
        pairs += zip(own, stored)
    return pairs


def _slots_named(part):
    stem = part.partition(":")[0]
    return SYNONYMS.get(stem, ())
