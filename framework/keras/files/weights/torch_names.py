"""Map weight names of a model to PyTorch's: ``layers/dense/kernel`` to ``fc.weight``.

Without a ``name_map`` the layers of the model have the names of the modules, as
attributes or as names of layers; or the modules are numbered, as in ``nn.Sequential``,
and the layers of the model are a chain: then both are matched in order.
"""

import re
from collections import Counter
from typing import Any, NamedTuple

from tapewright.core.errors import SavingError

from .torch_layouts import TorchWeight, torch_weights
from .weights_by_path import layer_paths

MAX_LISTED = 30
NUMBERED = re.compile(r"((?:\d+\.)+)(.+)")  # a key in `nn.Sequential`
STACKED = re.compile(r"_l(\d+)(?=$|_reverse$)")  # of layers in one recurrent module


class _Owned(NamedTuple):
    """Weight, the layer whose rules it has, its name relative to it, and its rule."""

    weight: Any
    owner: Any
    local: str
    rule: TorchWeight

    @property
    def torch_name(self):
        """The name relative to the module."""
        return self.rule.name or self.local

    def keys(self, key):
        """Return the keys of all stored arrays, for the first one."""
        if self.rule.pair is None:
            return (key,)
        module, dot, name = key.rpartition(".")
        one, other = self.rule.pair
        if one not in name:
            raise ValueError(
                f"load_weights: name_map must map '{self.weight.name}' to a key with "
                f"{one!r}, to which that with {other!r} is added, got {key!r}"
            )
        return (key, f"{module}{dot}{name.replace(one, other)}")


def torch_sources(path, model, weights, arrays, renamed=None):
    """Return a dict from names of weights to keys of ``arrays`` and a `TorchWeight`.

    ``renamed``: function from the name of a weight to a key, or to a name that ends in
    our name of the weight, which PyTorch's replaces; None leaves the weight out.

    Raises:
        SavingError: If keys and weights cannot be matched.
    """
    owned = [_owned(weight) for weight in weights]
    if renamed is not None:
        keys = {}
        for each in owned:
            key = renamed(each.weight.name)
            if key is not None:
                keys[each.weight.name] = _torch_key(each, key, arrays)
    else:
        by_name = _by_name(owned, model)
        is_named = any([key in arrays for key in by_name.values()])
        keys = by_name if is_named else _by_order(owned, arrays)
        if keys is None:
            raise SavingError(path, _unmatched(owned, arrays, by_name))
    return {
        each.weight.name: (each.keys(keys[each.weight.name]), each.rule)
        for each in owned
        if each.weight.name in keys
    }


def check_rule(weight, rule):
    """Raise ``ValueError`` for a weight with several axes and no rule."""
    if rule is None or rule.name or len(weight.shape) < 2:
        return
    layer = weight.entry.layer
    raise ValueError(
        f"load_weights: transpose='torch' has no rule for '{weight.name}' "
        f"{weight.shape} of {type(layer).__name__} '{layer.name}'; name_map can map it "
        "to None, to leave it as it is"
    )


def _owned(weight):
    """Return the weight with the outermost layer that has a rule for it."""
    for entry in weight.layers:
        local = weight.name[len(entry.path) :].removeprefix("/")
        rule = torch_weights(entry.layer).get(local)
        if rule is not None:
            return _Owned(weight, entry, local, rule)
    return _Owned(weight, weight.entry, local, TorchWeight(""))


def _torch_key(each, key, arrays):
    """Translate the weight name at the end of a key to PyTorch's name."""
    if key in arrays:
        return key
    head, name = key[: -len(each.local)], each.rule.name
    if name and key.endswith(each.local) and head[-1:] in ("", "/", "."):
        key = head + name
    return key.replace("/", ".")


# ----------------------------------------------------------------- without a ``name_map``


def _by_name(owned, model):
    """Match weights to keys by names of attributes and of listed layers."""
    modules = _modules(model)
    return {
        each.weight.name: _join(modules[each.owner.path], each.torch_name)
        for each in owned
    }


def _join(*parts):
    return ".".join([part for part in parts if part])


def _modules(model):
    """Return a dict from the paths of layers to the names of their modules."""
    entries, names, counts = {}, {}, Counter()
    for entry in layer_paths(model, by_attribute=True):
        outer = entry.path
        while outer and outer not in names:
            outer = outer.rpartition("/")[0]
        step = entry.path[len(outer) :].removeprefix("/")
        if entry.counted:
            container = step.rpartition("/")[0]
            lists_layers = getattr(entries[outer].layer, "_tw_lists_layers", False)
            if container == "layers" and lists_layers:
                step = entry.layer.name
            else:  # its number, as in `nn.ModuleList`
                step = f"{container}/{counts[outer, container]}"
                counts[outer, container] += 1
        entries[entry.path] = entry
        names[entry.path] = _join(names.get(outer), step.replace("/", "."))
    return names


def _by_order(owned, arrays):
    """Return keys of numbered modules in order, or None if the order is not certain."""
    if not all([_is_in_chain(each) for each in owned]):
        return None
    modules, layers = {}, {}
    for key in arrays:
        match = NUMBERED.fullmatch(key)
        if match is None:
            return None
        numbers = [int(number) for number in match[1].split(".")[:-1]]
        stacked = STACKED.search(match[2])
        position = (*numbers, int(stacked[1]) if stacked else 0)
        modules.setdefault(position, (match[1], stacked and stacked[0]))
    for each in owned:
        layers.setdefault(each.owner.path, []).append(each)
    if len(modules) != len(layers):
        return None
    keys = {}
    for position, members in zip(sorted(modules), layers.values()):
        start, stacked = modules[position]
        for each in members:
            name = STACKED.sub(stacked or "", each.torch_name)
            keys[each.weight.name] = start + name
    return keys


def _is_in_chain(each):
    """Return True if all layers around a weight run their layers in sequence."""
    outer = [e for e in each.weight.layers if len(e.path) < len(each.owner.path)]
    return each.owner.path != "" and all([_is_chain(entry.layer) for entry in outer])


def _is_chain(model):
    if not getattr(model, "_tw_lists_layers", False):
        return False
    if not model._tw_is_functional:
        return True
    graph = model._tw_functional
    operations = {id(node.operation) for node in graph.nodes}
    return (
        len(graph.outputs) == 1
        and len(operations) == len(graph.nodes)
        and all([len(node.input_tensors) <= 1 for node in graph.nodes])
    )


def _unmatched(owned, arrays, by_name):
    ours = [
        f"  {each.weight.name} {each.weight.shape}, not found as "
        f"{by_name[each.weight.name]!r}"
        for each in owned
    ]
    theirs = [f"  {key} {array.shape}" for key, array in arrays.items()]
    return "\n".join(
        [
            "has no keys with the names of the layers, and their order is not certain, "
            "or differs; pass name_map. The model has",
            *few(ours),
            "and the file has",
            *few(theirs),
        ]
    )


def few(items):
    """Return the first items, and how many more there are."""
    rest = len(items) - MAX_LISTED
    return [*items[:MAX_LISTED], f"and {rest} more"] if rest > 0 else items
