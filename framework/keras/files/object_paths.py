"""The paths of layers in Keras' files, which follow the objects, not their names.

The layers of a model that is a list or graph of them are ``layers/dense``,
``layers/dense_1``, ...: their classes, counted. A layer inside another goes by the name of
its attribute, one in a list there again by its class. Attributes come in alphabetical
order, private ones last; each layer comes once.
"""

from typing import NamedTuple

from tapewright.core.naming import snake_case
from tapewright.core.nest import is_nested
from tapewright.core.trackable import children

__all__ = ["LayerPath", "layer_paths"]


class LayerPath(NamedTuple):
    """A layer, its path in a file, and the variables that are its own."""

    path: str
    layer: object
    variables: list
    counted: bool = False  # goes by its class and its number, in a list

    @property
    def vars(self):
        """The group that holds the variables."""
        return f"{self.path}/vars" if self.path else "vars"


def layer_paths(model):
    """The `LayerPath`s of a model and of all layers inside, in Keras' order, each once."""
    found, seen = [], set()
    _visit(model, "", found, seen)
    return found


def _visit(layer, path, found, seen, counted=False):
    if id(layer) in seen:
        return
    seen.add(id(layer))
    if hasattr(layer, "filed_weights"):  # of a class that is not known here
        for inner, variables in layer.filed_weights():
            at = f"{path}/{inner}".strip("/")
            found.append(LayerPath(at, layer, variables, counted and not inner))
        return
    found.append(LayerPath(path, layer, layer.own_variables(), counted))
    for name, part in _parts(layer):
        inner = f"{path}/{name}" if path else name
        if is_nested(part):
            _visit_all(part, inner, found, seen)
        else:
            _visit(part, inner, found, seen)


def _parts(layer):
    """Layers and containers of them, by the names that Keras sees."""
    attributes = {}
    for name, value in children(layer):
        if is_nested(value) or hasattr(value, "own_variables"):
            attributes[_public(layer, name)] = value
    if hasattr(type(layer), "layers"):
        # what is private to a model is among its layers, where it was met before
        attributes = {k: v for k, v in attributes.items() if k[0] != "_"}
        attributes.setdefault("layers", layer.layers)
    if getattr(layer, "lists_layers", False):
        yield "layers", attributes.pop("layers", [])
    for name in sorted(attributes, key=lambda name: (name[0] == "_", name)):
        yield name, attributes[name]


def _public(layer, name):
    """The name of the property that shows a private attribute, if there is one."""
    if name[0] == "_" and isinstance(getattr(type(layer), name[1:], None), property):
        return name[1:]
    return name


def _visit_all(container, path, found, seen):
    """Items of a container go by their class, with a number where it comes again."""
    if id(container) in seen:
        return
    seen.add(id(container))
    items = container.values() if isinstance(container, dict) else container
    counts = {}
    for item in items:
        if is_nested(item):
            kind = "container"
        elif hasattr(item, "own_variables"):
            kind = getattr(item, "kind_in_files", None) or snake_case(
                type(item).__name__
            )
        else:
            continue
        number = counts[kind] = counts.get(kind, -1) + 1
        inner = f"{path}/{kind}_{number}" if number else f"{path}/{kind}"
        if is_nested(item):
            _visit_all(item, inner, found, seen)
        else:
            _visit(item, inner, found, seen, counted=True)
