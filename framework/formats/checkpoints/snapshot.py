"""The values of objects at one moment, as the content of a checkpoint."""

from tapewright.core.hardware.devices import to_numpy
from tapewright.core.variable import writing
from tapewright.ops.random.generators import get_global_generator

from .checkpoint_file import Content
from .object_tree import explore, get_state


def snapshot(path, pairs, **info) -> Content:
    """Return the content of a file for the objects in pairs of name and object.

    It includes values that wait for objects to be built, as the file may be written
    before that, and the state of the global random generator.
    """
    tree = explore(pairs)
    states = {name: get_state(item) for name, item in tree.states.items()}
    with writing(tree.variables.values()):
        arrays = {n: to_numpy(v._tw_whole_array()) for n, v in tree.variables.items()}
    pending_arrays, pending_states = _pending_values(tree)
    step = _step(tree)
    state = get_global_generator().state.numpy()
    info = {"generator": [int(n) for n in state], **info}
    info = info if step is None else {"step": step, **info}
    if tree.aliases:
        info["aliases"] = tree.aliases
    return Content(path, arrays | pending_arrays, states | pending_states, info)


def _step(tree):
    """Return the number of updates, if there is at least one optimizer."""
    for name, variable in tree.variables.items():
        if name.rpartition("/")[2] == "iteration":
            return int(variable.numpy())
    return None


def _pending_values(tree):
    """Return arrays and states that objects of a tree get when they are built."""
    arrays, states, unbuilt = {}, {}, {}
    for name, container in tree.containers.items():  # the outer ones first
        pending = getattr(container, "_tw_pending_values", None)
        if pending is None:
            continue
        unbuilt[name] = not getattr(container, "built", False)
        for values, added in ((arrays, pending.arrays), (states, pending.states)):
            values |= {n: (name, value) for n, value in added(name).items()}
    known = tree.variables.keys() | tree.states.keys()
    return [
        {n: v for n, (name, v) in values.items() if unbuilt[name] and n not in known}
        for values in (arrays, states)
    ]
