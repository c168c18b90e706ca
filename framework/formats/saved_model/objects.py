"""A module with its attributes as JSON, and the object that is loaded from it.

``{"nodes": [...], "root": 0, "signatures": {...}, "captured": [...]}``: a node is
``{"module": name, "attributes": {...}}``, ``{"list": [...]}``, ``{"tuple": [...]}``,
``{"dict": [[key, node]...]}``, ``{"variable": 2}``, ``{"function": 0}``,
``{"optimizer": 0}`` or ``{"value": 3}``; attributes and items are numbers of nodes.
``captured`` are variables that functions use but no object holds.
"""

from tapewright.compiler.function.concrete_function import ConcreteFunction
from tapewright.compiler.function.function import Function
from tapewright.compiler.function.methods import Method
from tapewright.core.errors import TracingError
from tapewright.core.module import Module
from tapewright.core.names.reserved_names import Replaceable
from tapewright.core.nest import flatten, is_nested
from tapewright.core.trackable import children
from tapewright.core.variable import Variable

from .functions import has_traces, why_untraced
from .graph_reader import FAULTS
from .saved_optimizers import OptimizerWriter, is_optimizer
from .signature_functions import Signatures
from .values import decode, encode, item_of, number_of

FUNCTIONS = (Function, Method, ConcreteFunction)
# What compiled models keep of their training: made again when it is needed.
MADE_AGAIN = {"train_function", "test_function", "predict_function"}
DEEPEST = 200
# Items of a list with all that is in it, counted as often as it is there.
MOST = 1_000_000


class ObjectWriter:
    """Number the functions, variables and optimizers of a module.

    ``call`` is a function for a root that has none; ``signatures`` are functions by
    name; ``path`` is the file, for messages. ``untraced`` are the functions that cannot
    be written, and why.
    """

    def __init__(self, root, signatures, path, call=None):
        self.nodes, self.variables, self.functions = [], [], []
        self.optimizers, self.untraced = OptimizerWriter(path), []
        self._numbers, self._kept = {}, []
        self._root = self._node(root)
        if call is not None:
            self.nodes[self._root]["attributes"]["__call__"] = self._node(call)
        self._held = len(self.variables)
        self._signatures = {
            name: number_of(function, self.functions)
            for name, function in signatures.items()
        }

    def form(self, states):
        """Return the JSON, once all functions are written.

        ``states`` are the numbers of the variables that belong to optimizers.
        """
        captured = set(range(self._held, len(self.variables))).difference(states)
        return {
            "nodes": self.nodes,
            "root": self._root,
            "signatures": self._signatures,
            "captured": sorted(captured),
        }

    def _node(self, thing, name="", depth=0):
        """Return the node number of an object, or None if it is not written."""
        if type(thing) is Method:
            thing = getattr(thing, "_tw_function", thing)
        number = self._numbers.get(id(thing))
        if number is not None:
            return number
        if isinstance(thing, FUNCTIONS) and not has_traces(thing):
            self.untraced.append(f"'{name}' {why_untraced(thing)}")
            return None
        if is_optimizer(thing) and not self._can_be_saved(thing):
            return None
        number = self._numbers[id(thing)] = len(self.nodes)
        self._kept.append(thing)  # a kept object keeps its id
        self.nodes.append(None)
        self.nodes[number] = self._form(thing, name, depth)
        return number

    def _can_be_saved(self, optimizer):
        """Return whether a file can store it; one that no function runs may be left out."""
        try:
            self.optimizers.number(optimizer)
        except TracingError:
            return False
        return True

    def _form(self, thing, name, depth):
        if isinstance(thing, Variable):
            return {"variable": number_of(thing, self.variables)}
        if isinstance(thing, FUNCTIONS):
            return {"function": number_of(thing, self.functions)}
        if is_optimizer(thing):
            return {"optimizer": self.optimizers.number(thing)}
        if isinstance(thing, Module):
            attributes = {}
            for key, value in _attributes(thing):
                below = self._node(value, f"{name}.{key}" if name else key, depth + 1)
                if below is not None:
                    attributes[key] = below
            kind = getattr(thing, "_tw_saved_kind", None) or type(thing).__name__
            return {"module": kind, "attributes": attributes}
        if isinstance(thing, dict):
            return {
                "dict": [[encode(k), self._item(x, name)] for k, x in thing.items()]
            }
        tag = "list" if isinstance(thing, list) else "tuple"
        return {tag: [self._item(x, name) for x in thing]}

    def _item(self, x, name):
        if _is_kept(x):
            return self._node(x, name)
        try:
            self.nodes.append({"value": encode(x)})
        except TypeError:
            self.nodes.append({"value": None})
        return len(self.nodes) - 1


def _attributes(module):
    """Yield pairs of a name and an attribute to write: functions, variables, modules."""
    held = dict(children(module))
    own = {n: held[n] for n in sorted(held) if not _is_computed(module, n)}
    for kind in type(module).__mro__:
        for name, value in vars(kind).items():
            function = getattr(value, "__func__", value)  # of a static method
            if isinstance(function, Function) and name not in own:
                own[name] = getattr(module, name)
    for name, value in own.items():
        if name in MADE_AGAIN or isinstance(value, Signatures):
            continue
        if _is_kept(value):
            yield name, value


def _is_computed(module, name):
    """Return whether a child is a property, of objects that attributes also hold."""
    return isinstance(getattr(type(module), name, None), property)


def _is_kept(x):
    if is_nested(x):
        return any(_is_kept(leaf) for leaf in flatten(x))
    return isinstance(x, (Variable, Module, *FUNCTIONS)) or is_optimizer(x)


# --------------------------------------------------------------------------- reading


class Loaded(Module):
    """The result of `load`: the saved attributes, without their Python code."""

    def __call__(self, *args, **kwargs):
        function = vars(self).get("__call__")
        if function is None:
            names = [n for n, x in vars(self).items() if isinstance(x, Function)]
            raise TypeError(
                f"the loaded {self._tw_saved_kind} was saved without a traced __call__; its "
                f"functions are {names}"
            )
        return function(*args, **kwargs)

    def __repr__(self):
        return f"<loaded {self._tw_saved_kind}>"


# Attributes that would take the place of what a module does by itself.
TAKEN = {"signatures", "_tw_saved_kind", "__dict__", "__class__"}
TAKEN |= {
    name
    for name in dir(Loaded)
    if not name.startswith("__")
    and hasattr(Loaded, name)
    and not isinstance(getattr(Loaded, name), Replaceable)
}


class ObjectReader:
    """Build the objects of a file; ``item`` is the group with the attribute ``objects``."""

    def __init__(self, item, variables, functions, optimizers):
        self.item, self.variables, self.functions = item, variables, functions
        self.optimizers = optimizers
        self.form, self._objects = item.json("objects"), {}
        self._counts = {}  # number of a list, tuple or dict -> its items, at any depth

    def read(self):
        """Return the root."""
        try:
            return self._root()
        except FAULTS as error:
            return self.item.fail(f"contains no valid objects: {error}", "objects")

    def _root(self):
        root = self._object(self.form["root"])
        if not isinstance(root, Loaded):
            raise ValueError("the root must be a module")
        captured = [
            item_of(self.variables, n, "variable") for n in self.form["captured"]
        ]
        if captured:
            root._captured = captured
        root.signatures = Signatures({
            name: item_of(self.functions, n, "function")
            for name, n in self.form["signatures"].items()
        })  # fmt: skip
        return root

    def _object(self, number, depth=0):
        if depth > DEEPEST:
            raise ValueError(f"objects are nested deeper than {DEEPEST}")
        if number in self._objects:
            return self._objects[number]
        ((tag, inner), *more) = item_of(self.form["nodes"], number, "node").items()
        if tag == "module":
            return self._module(number, inner, dict(more)["attributes"], depth)
        value = self._objects[number] = self._plain(number, tag, inner, depth)
        return value

    def _plain(self, number, tag, inner, depth):
        if tag in ("variable", "function", "optimizer"):
            return item_of(getattr(self, f"{tag}s"), inner, tag)
        if tag == "value":
            return decode(inner)
        pairs = inner if tag == "dict" else [[None, n] for n in inner]
        items = [(decode(k), self._object(n, depth + 1)) for k, n in pairs]
        self._count(number, [n for _, n in pairs])
        if tag == "dict":
            return dict(items)
        return {"list": list, "tuple": tuple}[tag]([x for _, x in items])

    def _count(self, number, inner):
        """Check that walking the lists is bounded: a list may contain one list many times."""
        count = self._counts[number] = 1 + sum([self._counts.get(n, 1) for n in inner])
        if count > MOST:
            raise ValueError(f"nested lists have more than {MOST} items in total")

    def _module(self, number, kind, attributes, depth):
        module = self._objects[number] = Loaded()
        if not isinstance(kind, str) or len(kind) > 400:
            raise ValueError("the name of a class must be a string")
        module._tw_saved_kind = kind
        module._tw_name = kind if kind.isidentifier() else None
        for name, below in attributes.items():
            value = self._object(below, depth + 1)
            if name in TAKEN or (
                name == "__call__" and not isinstance(value, Function)
            ):
                raise ValueError(f"{name!r} is not an attribute of a module")
            vars(module)[name] = value
        return module
