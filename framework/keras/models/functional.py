"""`FunctionalGraph`: layers and ops between symbolic inputs and outputs.

Layers are in Keras' order, because files store weights in it: by decreasing distance
from the outputs; at equal distance, in the order in which a walk from the outputs
visits them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tapewright.core.nest import flatten, pack
from tapewright.layers.base.input_layer import Input, InputLayer
from tapewright.layers.base.layer import Layer
from tapewright.layers.base.symbolic_tensor import KerasTensor, node_of


def get_source_inputs(tensor: Any) -> list[KerasTensor]:
    """Return the inputs that a symbolic tensor is computed from, found depth first.

    Args:
        tensor: `KerasTensor`.

    Raises:
        TypeError: If ``tensor`` is not symbolic.

    Example:
        >>> from tapewright.layers import Add, Dense, Input
        >>> a, b = Input((2,), name="a"), Input((2,), name="b")
        >>> [x.name for x in keras.utils.get_source_inputs(Add()([Dense(2)(a), b]))]
        ['a', 'b']
    """
    if type(tensor) is not KerasTensor:
        raise TypeError(f"get_source_inputs: tensor must be symbolic, got {tensor!r}")
    inputs, seen, left = [], set(), [tensor]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if _is_input(each):
            inputs.append(each)
        else:
            left += reversed(node_of(each).input_tensors)
    return inputs


class FunctionalGraph:
    """The graph of layers between symbolic inputs and outputs, nests of `KerasTensor`.

    It may start at inner tensors, which are replaced by new `Input`s.

    Raises:
        ValueError: If an output does not depend on the inputs, a tensor is not
            symbolic, or two layers have the same name.
    """

    inputs: list[Any]
    outputs: list[Any]

    def __init__(self, inputs, outputs):
        self._find(inputs, outputs)
        if not all([_is_input(x) for x in self.inputs]):
            self._find(*self.rebuilt(lambda operation: operation, self._new_inputs()))
        self._check_names()

    # --- copies

    def __setstate__(self, state):
        vars(self).update(state)
        for node in self.nodes:
            if node not in node.operation._inbound_nodes:  # another model may have it
                node.join()

    # --- the nodes of the graph

    def _find(self, inputs, outputs):
        self.inputs, self.outputs = flatten(inputs), flatten(outputs)
        # A copy: the user may change theirs.
        self.input_nest = pack(inputs, self.inputs)
        self.output_nest = pack(outputs, self.outputs)
        for what, tensors in (("inputs", self.inputs), ("outputs", self.outputs)):
            for x in tensors:
                if type(x) is not KerasTensor:
                    raise ValueError(
                        f"Model: {what} must come from Input(...) and layers called on "
                        f"it, got {x!r}"
                    )
        for x in self.inputs:
            if not hasattr(x, "_keras_history"):  # made by hand
                InputLayer(input_tensor=x, name=x.name)
        if len({id(x) for x in self.inputs}) < len(self.inputs):
            raise ValueError(
                "Model: the inputs must be distinct, got one of them twice"
            )
        self.nodes, visits = self._collect()
        depths = self._depths()
        self.operations = sorted(visits, key=lambda op: (-depths[id(op)], visits[op]))

    def _new_inputs(self):
        """Return symbolic inputs by the id of the tensors that they replace."""
        return {
            id(x): x if _is_input(x) else Input(batch_shape=x.shape, dtype=x.dtype)
            for x in self.inputs
        }

    def _collect(self):
        """Return the nodes, each after its inputs, and the visit number of each operation."""
        given = {id(x) for x in self.inputs}
        nodes, visited, visits = [], set(), {}
        stack = [(self._origin(x), False) for x in reversed(self.outputs)]
        while stack:
            node, complete = stack.pop()
            if complete:
                nodes.append(node)
                continue
            is_inner_input = node.args and given.issuperset(
                map(id, node.output_tensors)
            )
            if id(node) in visited or is_inner_input:
                continue
            if not node.args and id(node.outputs) not in given:
                self._refuse_input(node.outputs)
            visited.add(id(node))
            visits.setdefault(node.operation, len(visits))
            stack.append((node, True))
            for x in reversed(node.input_tensors):
                if id(x) not in given or _is_input(x):
                    stack.append((self._origin(x), False))
        inputs = [node_of(x) for x in self.inputs]
        unused = [n for n in inputs if not n.args and id(n) not in visited]
        return unused + nodes, dict.fromkeys([n.operation for n in unused], -1) | visits

    def _origin(self, x):
        """Return the node that created a tensor."""
        if not hasattr(x, "_keras_history"):
            self._refuse_input(x)
        return node_of(x)

    def _refuse_input(self, x):
        known = ", ".join([x.name for x in self.inputs])
        raise ValueError(
            f"Model: the outputs depend on the input '{x.name}', which is not "
            f"among the inputs ({known})"
        )

    def _depths(self):
        """Return the distance of each operation from the outputs, by its id."""
        nodes = {id(node) for node in self.nodes}
        of_nodes, of_operations = {}, {}
        for node in reversed(self.nodes):
            depth = of_nodes.setdefault(id(node), 0)
            depth = max(depth, of_operations.get(id(node.operation), 0))
            of_nodes[id(node)] = of_operations[id(node.operation)] = depth
            for parent in node.parents:
                if id(parent) in nodes:
                    of_nodes[id(parent)] = max(depth + 1, of_nodes.get(id(parent), 0))
        return of_operations

    def _check_names(self):
        names = [operation.name for operation in self.operations]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"Model: {names.count(name)} layers have the name '{name}'; names "
                    "must differ, pass name= to one of them"
                )

    @property
    def layers(self):
        return [op for op in self.operations if isinstance(op, Layer)]

    # --- running

    def run(self, inputs):
        """Compute the outputs for tensors in the order of the inputs."""
        values = {id(x): y for x, y in zip(self.inputs, inputs, strict=True)}
        for node in self.nodes:
            if all([id(x) in values for x in node.output_tensors]):
                continue
            results = flatten(node.call(values))
            for x, y in zip(node.output_tensors, results, strict=True):
                values[id(x)] = y
        return sole(pack(self.output_nest, [values[id(x)] for x in self.outputs]))

    def rebuilt(self, copy, values=(), call=None):
        """Repeat the calls with ``copy(operation)`` of each operation.

        ``values`` maps the id of a symbolic tensor to the tensor that replaces it;
        ``call(operation, *args, **kwargs)`` makes the calls.

        Returns:
            ``(inputs, outputs)`` of the new graph.
        """
        values = dict(values)
        for node in self.nodes:
            if all([id(x) in values for x in node.output_tensors]):
                continue
            operation = copy(node.operation)
            if not node.args:
                values[id(node.outputs)] = operation.output
                continue
            operation = operation if call is None else partial(call, operation)
            results = flatten(node.call(values, operation))
            for x, y in zip(node.output_tensors, results, strict=True):
                values[id(x)] = y
        nests = self.input_nest, self.output_nest
        return tuple([pack(n, [values[id(x)] for x in flatten(n)]) for n in nests])


def sole(tensors):
    """Return the only element of a list or tuple of length 1, else the argument."""
    if isinstance(tensors, (list, tuple)) and len(tensors) == 1:
        return tensors[0]
    return tensors


def _is_input(x):
    return isinstance(x._keras_history.operation, InputLayer)


def standardized(graph, inputs, title):
    """Convert the argument of a model to a list of tensors in the order of its inputs.

    Raises:
        ValueError: If the number, names or shapes differ; the message names the inputs.
    """
    expected = graph.input_nest
    names = [x.name for x in graph.inputs]
    if isinstance(inputs, dict) and not isinstance(expected, dict):
        missing = [name for name in names if name not in inputs]
        if missing:
            raise ValueError(
                f"{title}: inputs must have the keys {names}, got {list(inputs)} "
                f"without {missing}"
            )
        flat = [inputs[name] for name in names]
    elif isinstance(expected, dict) and isinstance(inputs, dict):
        missing = sorted(set(expected) - set(inputs))
        if missing:
            raise ValueError(
                f"{title}: inputs must have the keys {sorted(expected)}, got a "
                f"dict without {missing}"
            )
        flat = flatten({key: inputs[key] for key in expected})
    else:
        flat = flatten(inputs)
    if len(flat) != len(names):
        raise ValueError(
            f"{title}: inputs must be one tensor for each of {names}, got {len(flat)}"
        )
    return flat
