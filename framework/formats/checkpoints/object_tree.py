"""The variables and states of objects, named by the path that leads to them.

The path to a variable consists of attributes, keys and positions:
``model/layers/0/kernel``. It does not depend on automatically numbered names.
"""

import sys
from dataclasses import dataclass, field

from tapewright.core.names.reserved_names import class_attribute
from tapewright.core.nest import is_nested
from tapewright.core.trackable import Trackable, children
from tapewright.core.variable import Variable
from tapewright.ops.random.generators import Generator


@dataclass
class Tree:
    """Variables, objects with a state, and the containers of both, by name.

    ``aliases`` maps other names that lead to one of these to its primary name.
    """

    variables: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)
    containers: dict = field(default_factory=dict)
    aliases: dict = field(default_factory=dict)


def explore(pairs) -> Tree:
    """Return the `Tree` below pairs of name and object; the first name of an object counts.

    Example:
        >>> from tapewright.formats.checkpoints.object_tree import explore
        >>> sorted(explore([("a", tw.Variable(1.0)), ("b", [tw.Variable(2.0)])]).variables)
        ['a', 'b/0']
    """
    tree, seen, ahead = Tree(), {}, list(pairs)[::-1]
    while ahead:  # no recursion: what is nested may be deep
        name, item = ahead.pop()
        if isinstance(item, type):
            continue
        if isinstance(item, Generator):
            item = item.state
        if id(item) in seen:
            if not f"/{name}".count("/_"):  # which mostly list what others hold
                tree.aliases[name] = seen[id(item)]
            continue
        if isinstance(item, Variable):
            tree.variables[name] = item
        elif (inner := children(item)) is not None:
            tree.containers[name] = item
            if not is_nested(item):  # callbacks are attributes, but no part of a model
                inner = [pair for pair in inner if not _is_callback(pair[1])]
            below = [(child_name(name, key), child) for key, child in inner]
            ahead += below[::-1]
        elif _has_state(item):
            tree.states[name] = item
        else:
            continue
        seen[id(item)] = name
    return tree


def child_name(prefix, key):
    """Append a part to a name, with special characters escaped.

    Example:
        >>> from tapewright.formats.checkpoints.object_tree import child_name
        >>> child_name("model/table", "a/b"), child_name("", "..")
        ('model/table/a%2Fb', '%..')
    """
    part = str(key).replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    if part in ("", ".", ".."):
        part = f"%{part}"
    return f"{prefix}/{part}" if prefix else part


def is_kept(item):
    """Return whether a checkpoint can save an object, or something that it contains."""
    kinds = (Variable, Generator)
    return isinstance(item, kinds) or children(item) is not None or _has_state(item)


# ------------------------------------------------------------------ objects with a state


def _is_callback(item):
    return hasattr(item, "set_model") and not isinstance(item, Trackable)


def _has_state(item):
    return _methods(item) is not None


def _methods(item):
    """Return the functions that get and set the state of an object, or None."""
    for get, put in (("get_state", "set_state"), ("state", "restore")):
        methods = _method(item, get), _method(item, put)
        if all([callable(method) for method in methods]):
            return methods
    if hasattr(item, "bit_generator") and hasattr(item.bit_generator, "state"):
        bits = item.bit_generator  # of NumPy
        return (lambda: bits.state), (lambda state: setattr(bits, "state", state))
    random = sys.modules.get("random")
    if random is not None and isinstance(item, random.Random):
        return item.getstate, item.setstate
    return None


def _method(item, name):
    """Return a method of the class: an object may have a user attribute of the same name."""
    if hasattr(type(item), name):
        return class_attribute(item, name)
    return getattr(item, name, None)  # of a module


def get_state(item):
    """Return the state of an object as plain values and arrays."""
    return _methods(item)[0]()


def set_state(item, state):
    """Restore the state of an object."""
    _methods(item)[1](state)
