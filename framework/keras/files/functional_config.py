"""The config of a `FunctionalGraph`: its layers and the calls between them.

The form is Keras'. A call is stored as ``{"args", "kwargs"}``, each tensor in it as the
layer, the number of the call and the number of the output that it comes from. Calls are
numbered from 0, except that where outputs of the model are named, calls of nested
models are numbered from 1.
"""

from collections import deque
from typing import Any

from tapewright.core.nest import flatten, is_nested
from tapewright.layers.base.input_layer import InputLayer
from tapewright.layers.base.layer import Layer
from tapewright.layers.base.symbolic_tensor import (
    KerasTensor,
    OpCall,
    Operation,
    node_of,
)
from tapewright.serialization.load_errors import load_error, load_errors
from tapewright.serialization.object_config import deserialize, serialize
from tapewright.serialization.registry import find_in_module

from ..legacy import configs, functions
from .class_names import is_functional
from .keras_objects import (
    argument_config,
    argument_from_config,
    is_history,
    tensor_config,
)
from .operations import (
    check_call,
    is_operation,
    operation_config,
    operation_from_config,
)


def graph_config(graph: Any) -> dict[str, Any]:
    """Return layers, each with its calls in the model, inputs and outputs."""
    node_ids = {id(node) for node in graph.nodes}
    numbers = {}
    for operation in graph.operations:
        kept = [n for n in operation._inbound_nodes if id(n) in node_ids]
        numbers |= {id(node): i for i, node in enumerate(kept)}

    def history_of(x):
        history = x._keras_history
        number = numbers[id(node_of(x))]
        return [history.operation.name, number, history.tensor_index]

    def end(x):
        name, number, index = history_of(x)
        return [name, number + is_functional(x._keras_history.operation), index]

    def tensor(x):
        return tensor_config(x, history_of(x))

    layers = []
    for operation in graph.operations:
        kept = [n for n in operation._inbound_nodes if id(n) in node_ids and n.args]
        calls = [_call_config(node, tensor) for node in kept]
        is_op = isinstance(operation, OpCall)
        entry = operation_config(operation) if is_op else serialize(operation)
        if not isinstance(operation, (OpCall, Layer)) and entry["module"] is None:
            entry["module"] = "__main__"  # None is a module of ops
        entry |= {"name": operation.name, "inbound_nodes": calls}
        layers.append(entry)
    return {
        "layers": layers,
        "input_layers": _mapped(end, graph.input_nest),
        "output_layers": _mapped(end, graph.output_nest),
    }


def _call_config(node, tensor):
    kwargs = {key: argument_config(x, tensor) for key, x in node.kwargs.items()}
    call = {"args": [argument_config(x, tensor) for x in node.args], "kwargs": kwargs}
    # Keras notes `training` whether it is passed or not, and overrides it when it runs.
    return call | {"keeps_training": True} if "training" in kwargs else call


def _mapped(function, nest):
    if isinstance(nest, dict):
        return {key: _mapped(function, value) for key, value in nest.items()}
    if is_nested(nest):
        return _container(nest, [_mapped(function, value) for value in nest])
    return function(nest)


def _container(like, values):
    """Return a container of the values with the type of ``like``: tuples stay tuples."""
    if hasattr(like, "_fields"):
        return type(like)(*values)
    return tuple(values) if isinstance(like, tuple) else values


# -------------------------------------------------------------------- from a config


def graph_from_config(config: dict[str, Any]) -> tuple[Any, Any]:
    """Return ``(inputs, outputs)`` of new layers created from the config.

    Entries may have any order.

    Raises:
        ValueError: If a layer is called on an unknown tensor, two layers have the same
            name, or calls depend on each other.
    """
    return _Builder(configs.keras3_calls(config)).built()


class _Builder:
    """The layers of a config, and the calls that are not made yet."""

    def __init__(self, config):
        self.config = config
        self.made, self.calls = {}, {}
        self.nodes = {}  # name, number of the call -> the `Node` that it made
        entries = config["layers"]
        if not isinstance(entries, list):
            raise load_error(f"Model: layers must be a list, got {str(entries)[:80]}")
        for entry in entries:
            self._add(entry)

    def _add(self, entry):
        inner = entry.get("config") if isinstance(entry, dict) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        if name is None and isinstance(inner, dict):
            name = inner.get("name")
        if not isinstance(name, str) or not isinstance(entry.get("class_name"), str):
            raise load_error(
                "Model: each of the layers must be a dict with class_name, config and "
                f"name, got {str(entry)[:80]}"
            )
        if name in self.made:
            raise load_error(f"Model: two layers have the name {name[:80]!r}")
        operation = self._operation(entry)
        if not isinstance(operation, Operation):
            raise load_error(
                f"Model: {name[:80]!r} is not a layer, but {operation!r:.80}"
            )
        self.made[name] = operation
        if isinstance(operation, InputLayer):  # which has its node already
            self.nodes[name, 0] = operation._inbound_nodes[-1]
        self.calls[name] = _calls(name, entry)

    def _operation(self, entry):
        if functions.is_function_call(entry):
            return functions.FunctionCall(entry)
        if is_operation(entry):
            return OpCall(*operation_from_config(entry))
        module, name = str(entry.get("module")), entry["class_name"]
        is_of_user = find_in_module("operation", module, name) is not None
        return deserialize("operation" if is_of_user else "layer", entry)

    # --- making the calls

    def built(self):
        """Make all calls, each after the calls that it depends on."""
        needed, waiting = {}, {}
        for name, calls in self.calls.items():
            for i, call in enumerate(calls):
                needs = self._needs(name, i, call)
                needed[name, i] = len(needs)
                for key in needs:
                    waiting.setdefault(key, []).append((name, i))
        ready = deque([key for key, count in needed.items() if not count])
        while ready:
            key = ready.popleft()
            self._call(*key)
            for other in waiting.get(key, ()):
                needed[other] -= 1
                if not needed[other]:
                    ready.append(other)
        stuck = list(dict.fromkeys([name for (name, _), n in needed.items() if n]))
        if stuck:
            raise load_error(
                f"Model: the layers {', '.join(stuck[:5])[:200]} depend on each "
                "other in a cycle"
            )
        ends = self.config["input_layers"], self.config["output_layers"]
        return tuple([self._ends(each) for each in ends])

    def _needs(self, name, i, call):
        """Return the calls that must be made first."""
        needed = {(name, i - 1)} if i else set()

        def note(config):
            other, number, _ = self._history(config)
            if not isinstance(self.made[other], InputLayer):
                needed.add((other, number))

        self._arguments(call, note)
        return needed

    def _history(self, config):
        history = config.get("keras_history") if isinstance(config, dict) else None
        if not is_history(history):
            raise load_error(
                "Model: a tensor must come from [layer, number of its call, number of the "
                f"output], got {str(history)[:80]}"
            )
        name, number, index = history[:3]
        if name not in self.made:
            raise load_error(f"Model: there is no layer {name[:80]!r} in the config")
        count = max(len(self.calls[name]), isinstance(self.made[name], InputLayer))
        if not 0 <= number < count:
            raise load_error(
                f"Model: the layer {name[:80]!r} is called {count} times in the config, "
                f"there is no call {history[1]} of it"
            )
        return name, number, index

    def _tensor(self, config):
        name, number, index = self._history(config)
        tensors = self.nodes[name, number].output_tensors
        if not 0 <= index < len(tensors):
            raise load_error(
                f"Model: the layer {name[:80]!r} has {len(tensors)} outputs, there is "
                f"no output {index}"
            )
        return tensors[index]

    def _arguments(self, call, tensor):
        args = argument_from_config(call.get("args", []), tensor)
        kwargs = argument_from_config(call.get("kwargs", {}), tensor)
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise load_error(
                f"Model: a call needs args and kwargs, got {str(call)[:80]}"
            )
        if not call.get("keeps_training"):
            kwargs.pop("training", None)
        return args, kwargs

    def _call(self, name, i):
        args, kwargs = self._arguments(self.calls[name][i], self._tensor)
        symbolic = [x for x in flatten((args, kwargs)) if type(x) is KerasTensor]
        if not symbolic:  # it would compute now
            what = "layer" if isinstance(self.made[name], Layer) else "operation"
            raise load_error(f"the {what} {name[:80]!r} is called on no tensor")
        if isinstance(self.made[name], (OpCall, functions.FunctionCall)):
            check_call(self.made[name], kwargs)
        with load_errors(
            f"the layer {name[:80]!r} cannot be called with the arguments in the config"
        ):
            self.made[name](*args, **kwargs)
        # A model inside may have the layer too, and calls it while entries are read.
        self.nodes[name, i] = self.made[name]._inbound_nodes[-1]

    def _ends(self, nest):
        if isinstance(nest, dict):
            return {key: self._ends(each) for key, each in nest.items()}
        if not isinstance(nest, (list, tuple)):
            raise load_error(
                "Model: inputs and outputs must be [layer, call, output], or nests of "
                f"these, got {nest!r:.80}"
            )
        if not is_history(nest):
            return _container(nest, [self._ends(each) for each in nest])
        name, number, index = nest[:3]
        operation = self.made.get(name)
        if is_functional(operation):
            several = len(self.calls[name]) > 1
            number = number - 1 if number or several else 0
        return self._tensor({"keras_history": [name, number, index]})


def _calls(name, entry):
    """Return the calls of a layer."""
    nodes = entry.get("inbound_nodes", [])
    if not isinstance(nodes, list):
        raise load_error(
            f"Model: inbound_nodes of {name[:80]!r} must be a list, got {str(nodes)[:80]}"
        )
    for node in nodes:
        if node != [] and not isinstance(node, dict):
            raise load_error(
                f"Model: a call of {name[:80]!r} must be a dict, got {str(node)[:80]}"
            )
    return [node for node in nodes if node]
