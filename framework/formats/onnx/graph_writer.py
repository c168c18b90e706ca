"""Write the graph of a trace as an ONNX graph.

Constants are folded: a node that reads only variables and constants is computed once,
here, so that variables become initializers in the form in which their reader needs
them. Open sizes are computed by nodes from the shapes of the inputs.

Images: convolutions and pooling have channels first in ONNX, and last here. An
`Operand` may exist in either layout; elementwise ops keep the layout of their inputs,
and a transposition is written only where a value is needed in the other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapewright.compiler.control_flow.cond_node import Cond
from tapewright.compiler.control_flow.loop_node import LoopNode
from tapewright.compiler.tracing.custom_calls import CustomCall
from tapewright.compiler.tracing.graph import Effect, Read, ReadAgain, Write, is_value
from tapewright.core.errors import SavingError
from tapewright.core.shapes.symbolic_dim import DimSymbol, is_symbolic
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import new_tensor

from .operands import First, Operand, Untranslatable, channels_first
from .to_onnx import TRANSLATIONS

OPSET = 20
# Bytes of a folded constant that may be larger than what it is computed from.
SMALL = 1 << 16


class Block:
    """A graph that is being written: the main graph, or a region of control flow."""

    def __init__(self, writer):
        self.writer, self.nodes = writer, []

    def emit(self, op: str, *inputs: Any, outputs: int = 0, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list for ``outputs`` names.

        Inputs are operands, names, arrays, or None for one that is omitted. An Identity
        is left out: the result is its input.
        """
        if op == "Identity":
            return self.writer.reference(*inputs)
        return self.add(op, *inputs, outputs=outputs, **attributes)

    def add(self, op: str, *inputs: Any, outputs: int = 0, **attributes: Any) -> Any:
        """Add a node of any kind: see `emit`."""
        names = [self.writer.reference(x) for x in inputs]
        while names and not names[-1]:
            names.pop()
        made = [self.writer.new_name(op.lower()) for _ in range(outputs or 1)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        make_node = self.writer.onnx.helper.make_node
        self.nodes.append(make_node(op, names, made, name=made[0], **attributes))
        return made if outputs else made[0]


class GraphWriter:
    """Writer of one trace.

    Args:
        onnx: The package.
        path: Path of the file, for messages.
        graph: The `Graph`.
        names: The names of its inputs.
    """

    def __init__(self, onnx: Any, path: str, graph: Any, names: Sequence[str]):
        self.onnx, self.path, self.graph = onnx, path, graph
        self.block = self.root = Block(self)
        self.initializers = []
        self._names = Counter()
        self._known_constants, self._known_sizes = {}, {}
        self.transposed = {}  # (id of an array, order) -> name, and the array itself
        self._refused = {}  # (name, reason) -> lines
        self.inputs = [self.new_name(name) for name in names]
        self._sources = self.inputs  # of sizes
        self._zero = None  # a zero that is there if the conditions on sizes hold
        self.outputs = []
        self.left_out = []  # effects without results
        self._line = self._near = None  # of user code; the variable read last

    def subgraph(
        self,
        name: str,
        write: Callable[[], Sequence[Operand]],
        inputs: Sequence[Any] = (),
    ) -> Any:
        """Return an ONNX graph with the nodes that ``write`` adds; it returns the outputs."""
        around, self.block = self.block, Block(self)
        try:
            outputs = [
                self.value_info(self.block.add("Identity", x), x.dtype, x.rank)
                for x in write()
            ]
            make = self.onnx.helper.make_graph
            return make(self.block.nodes, name, list(inputs), outputs)
        finally:
            self.block = around

    # --- names and constants

    def new_name(self, hint):
        """Return an unused tensor name."""
        count = self._names[hint]
        self._names[hint] += 1
        name = f"{hint}_{count}" if count else hint
        return self.new_name(name) if count and self._names[name] else self._taken(name)

    def _taken(self, name):
        self._names[name] = max(self._names[name], 1)
        return name

    def reference(self, x):
        """Return the name of an input of a node."""
        if x is None or isinstance(x, str):
            return x or ""
        return x.name if isinstance(x, Operand) else self.initializer(x)

    def initializer(self, value, hint=None):
        """Return the name of a constant, an array or number of NumPy."""
        value = np.asarray(value)
        key = None
        if value.nbytes <= 1024 and value.dtype.kind != "O":
            key = value.dtype.str, value.shape, value.tobytes()
            if key in self._known_constants:
                return self._known_constants[key]
        name = self.new_name(hint or "constant")
        self.initializers.append((name, value))
        if key is not None:
            self._known_constants[key] = name
        return name

    def type_of(self, dtype):
        """Return ONNX' number of a dtype; complex numbers have none that runtimes know."""
        dtype = np.dtype(dtype)
        if dtype.kind == "O":
            return self.onnx.TensorProto.STRING
        if dtype.kind == "c":
            raise Untranslatable("complex numbers; use their real and imaginary parts")
        return self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    # --- what translations use

    def emit(self, op: str, *inputs: Any, **options: Any) -> Any:
        """Add a node to the current graph: see `Block.emit`."""
        return self.block.emit(op, *inputs, **options)

    def cast(self, x: Any, dtype: Any) -> Any:
        """Return the name of a tensor in another dtype."""
        return self.emit("Cast", x, to=self.type_of(dtype))

    def axes(self, *axes: int) -> np.ndarray:
        """Return axes, or other numbers, as the constant that ONNX ops take."""
        return np.array(axes, np.int64)

    def size(self, n: Any) -> Any:
        """Return a size as a tensor of one int64: a constant, or computed from inputs."""
        if not is_symbolic(n):
            return np.array([n], np.int64)
        if n.expression[0] != "poly":
            raise Untranslatable("a floating number that depends on open sizes")
        return self._polynomial(n.expression)

    def real(self, n: Any) -> Any:
        """Return a number that open sizes determine as a tensor of one float64."""
        if not is_symbolic(n):
            return np.array([n], np.float64)
        return self._real(n.expression)

    def _real(self, expression):
        if not isinstance(expression, tuple):
            return np.array([expression], np.float64)
        if expression[0] == "poly":
            return self.root.emit(
                "Cast", self._polynomial(expression), to=self.type_of(np.float64)
            )
        ops = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "**": "Pow"}
        operation, *parts = expression
        return self.root.emit(ops[operation], *[self._real(part) for part in parts])

    def number(self, n: Any) -> Any:
        """Return a size as an int64 of rank 0."""
        if is_symbolic(n):
            return self.root.emit("Squeeze", self.size(n), self.axes(0))
        return np.int64(n)

    def sizes(self, dims: Sequence[Any]) -> Any:
        """Return sizes as a tensor of rank 1 of int64."""
        if not has_symbolic_shape(tuple(dims)):
            return np.array([int(n) for n in dims], np.int64)
        key = tuple([n.expression if is_symbolic(n) else n for n in dims])
        if key not in self._known_sizes:
            parts = [self.size(n) for n in dims]
            self._known_sizes[key] = self.root.emit("Concat", *parts, axis=0)
        return self._known_sizes[key]

    def zeros(self, value: Any) -> Any:
        """Return zeros of the shape and dtype of a value of the graph."""
        if not value.shape:
            return np.zeros((), value.dtype)
        return self.emit("Expand", np.zeros((), value.dtype), self.sizes(value.shape))

    def value_info(self, name: str, dtype: Any, rank: int) -> Any:
        """Return the declaration of an input or output of a region."""
        make = self.onnx.helper.make_tensor_value_info
        return make(name, self.type_of(dtype), [None] * rank)

    def _polynomial(self, expression):
        size = self._known_sizes.get(expression)
        if size is None:
            emit, total = self.root.emit, None
            for monomial, c in expression[1]:
                term = np.array([c], np.int64) if c != 1 or not monomial else None
                for symbol in monomial:
                    factor = self._symbol(symbol)
                    term = factor if term is None else emit("Mul", term, factor)
                total = term if total is None else emit("Add", total, term)
            size = self._known_sizes[expression] = total
        return size

    def _symbol(self, symbol):
        size = self._known_sizes.get(symbol)
        if size is None:
            emit = self.root.emit
            if type(symbol) is DimSymbol:
                axis = symbol.axis
                source = self._sources[symbol.input]
                size = emit("Shape", source, start=axis, end=axis + 1)
            else:
                operation, *parts = symbol
                a, b = [self._polynomial(part) for part in parts]
                rest = emit("Mod", a, b)  # which has the sign of b, as in Python
                size = rest
                if operation == "//":
                    size = emit("Div", emit("Sub", a, rest), b)
            self._known_sizes[symbol] = size
        return size

    # --- graphs

    def reserve(self, names: Sequence[str]) -> None:
        """Set the names of the outputs."""
        self.outputs = [self.new_name(name) for name in names]

    def write(self, conditions: Sequence[tuple[Any, ...]] = ()) -> None:
        """Write all nodes.

        Args:
            conditions: What the graph assumes of open sizes: a text, a relation, a
                formula, and the answer, see `Guards`.

        Raises:
            SavingError: If ONNX cannot express the graph; it names all reasons.
        """
        known = {}
        try:
            self._sources = self._guarded_inputs(conditions)
            if conditions:  # sizes that are computed from now on are checked ones
                self._known_sizes.clear()
            for value, name in zip(self.graph.inputs, self._sources):
                known[value] = Operand(value.shape, value.dtype, self.root, name)
            outputs = self.region(self.graph, known)
            for x, name in zip(outputs, self.outputs):
                source = x.name if x.value is None else self._guarded_constant(x)
                node = self.onnx.helper.make_node(
                    "Identity", [source], [name], name=name
                )
                self.root.nodes.append(node)
        except Untranslatable as error:  # of a plan, when it is written
            self._refuse("", error)
        if self._refused:
            raise SavingError(self.path, _reasons(self._refused))
        self.root.nodes = _live(self.root.nodes, self.outputs)

    def _guarded_inputs(self, conditions):
        """Write checks of the conditions on open sizes; return the checked inputs.

        ONNX has no assertion. A number that is not there is gathered, by a node whose
        name is the condition, which runtimes show; it is 0 otherwise, and the inputs
        begin there.
        """
        if not conditions:
            return self.inputs
        emit, start = self.root.emit, None
        for text, relation, expression, answer in conditions:
            if expression[0] != "poly":
                raise Untranslatable(f"the condition on open sizes {text}")
            op = "Equal" if relation == "==" else "Less"
            holds = emit(op, self._polynomial(expression), self.axes(0))
            right, wrong = self.axes(0), self.axes(1)
            index = emit(
                "Where", holds, *((right, wrong) if answer else (wrong, right))
            )
            zero = emit("Gather", self.axes(0), index, axis=0)
            self.root.nodes[-1].name = self.new_name(f"sizes must satisfy {text}")
            start = zero if start is None else emit("Add", start, zero)
        self._zero = start
        last = self.axes(np.iinfo(np.int64).max)
        return [
            emit("Slice", name, start, last, self.axes(0))
            if has_symbolic_shape(tuple(value.shape))
            else name
            for value, name in zip(self.graph.inputs, self.inputs)
        ]

    def _guarded_constant(self, x):
        """Return the name of a constant output that checks the conditions on open sizes."""
        if self._zero is None:
            return x.name
        if x.dtype.kind not in "fiu":
            raise Untranslatable("a constant result that depends on open sizes")
        zero = self.root.emit("Squeeze", self._zero, self.axes(0))
        return self.root.emit("Add", x, self.cast(zero, x.dtype))

    def region(self, graph: Any, known: dict) -> list[Operand]:
        """Write the nodes of a graph whose inputs are known; return its outputs."""
        for value, tensor in graph.captures.items():
            symbol = getattr(tensor, "symbol", None)
            if symbol is None:
                known[value] = self._constant(np.asarray(tensor.array))
            else:
                known[value] = known[symbol]
        for other, value in graph.aliases.items():
            if other not in known and value in known:
                known[other] = known[value]
        live = graph.live_values(graph.outputs)
        for node in graph.nodes:
            if not node.is_kept and live.isdisjoint(node.outputs):
                continue
            outputs = self._node(node, known)
            known.update(zip(node.outputs, outputs))
        return [self._operand(x, known) for x in graph.outputs]

    def _operand(self, x, known):
        return known[x] if is_value(x) else self._constant(np.asarray(x.array))

    def _constant(self, value, hint=None):
        return Operand(value.shape, value.dtype, self.block, value=value, hint=hint)

    def _node(self, node, known):
        self._line = node.line
        kind = type(node)
        operands = [self._operand(x, known) for x in node.inputs]
        if kind is Read:
            return [self._variable(node.variable)]
        if kind is ReadAgain or kind is CustomCall:
            return operands[: len(node.outputs)]
        try:
            if kind is Write:
                raise Untranslatable(
                    f"it assigns the variable {node.variable.path!r}, and ONNX graphs have "
                    "no variables; pass training=False to layers"
                )
            if kind is Effect:
                return self._effect(node)
            if kind is Cond or kind is LoopNode:
                translate = TRANSLATIONS[kind.__name__]
                return self._results(node, translate(self, node, operands, known))
            if node.op is None:
                raise Untranslatable("it runs Python code; use ops instead")
            return self._op(node, operands)
        except Untranslatable as error:
            self._refuse(node.name, error)
            return [
                Operand(v.shape, v.dtype, self.block, "refused") for v in node.outputs
            ]

    def _refuse(self, name, error):
        near = "" if self._near is None else f"behind the variable {self._near!r}"
        where = ", ".join([part for part in (self._line, near) if part])
        self._refused.setdefault((name, str(error)), []).append(where)

    def _variable(self, variable):
        self._near = variable.path
        value = np.asarray(variable.numpy())
        return self._constant(value, variable.path)

    def _effect(self, node):
        if node.kind == "print" or node.kind.startswith("assert"):
            self.left_out.append(f"{node.kind} ({node.line})")
            return []
        raise Untranslatable("it has a side effect")

    def _op(self, node, operands):
        folded = self._folded(node, operands)
        if folded is not None:
            return folded
        translate = TRANSLATIONS.get(node.op.name)
        if translate is None:
            raise Untranslatable("")
        if node.op.elementwise:
            plan = self._absorbed(node, operands)
            if plan is not None:
                return self._results(node, plan)
            views = self._with_channels_first(operands, node.outputs[0].shape)
            if views is not None:
                name = translate(self, *views, **node.attributes)
                return self._results(node, First(name))
        outputs = translate(self, *operands, **node.attributes)
        return self._results(node, outputs)

    def _absorbed(self, node, operands):
        """Return a plan that fuses this op into its first operand, or None."""
        plan = operands[0].plan
        if plan is None or operands[0].is_written:
            return None
        return plan.absorbing(node.op.name, *operands[1:])

    def _results(self, node, outputs):
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        results = []
        for value, x in zip(node.outputs, outputs):
            if isinstance(x, First):
                x = Operand(value.shape, value.dtype, self.block, first=str(x))
            elif isinstance(x, str):
                x = Operand(value.shape, value.dtype, self.block, x)
            elif not isinstance(x, Operand):
                x = Operand(value.shape, value.dtype, self.block, plan=x)
            results.append(x)
        return results

    def _folded(self, node, operands):
        """Evaluate an op on constants; return its outputs as constants, or None."""
        if not operands or any([x.value is None for x in operands]):
            return None
        if has_symbolic_shape(node.attributes):
            return None
        own = sum([x.value.nbytes for x in operands])
        if sum([v.nbytes for v in node.outputs]) > 2 * own + SMALL:
            return None
        tensors = [new_tensor(x.value) for x in operands]
        outputs = node.op.general(tensors, node.attributes)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        hint = next((x.hint for x in operands if x.hint), None)
        return [self._constant(np.asarray(x.array), hint) for x in outputs]

    def _with_channels_first(self, operands, shape):
        """Return all operands with channels first if one is and the others can be."""
        rank = len(shape)
        if not 3 <= rank <= 5 or not any([x.is_first for x in operands]):
            return None
        views = []
        for x in operands:
            if x.rank == 0:
                views.append(x)
            elif x.rank == rank:
                views.append(self._view(x))
            elif x.value is not None:
                value = x.value.reshape((1,) * (rank - x.rank) + x.value.shape)
                value = value.transpose(channels_first(range(rank)))[0]
                views.append(
                    Operand(value.shape, x.dtype, self.block, value=value, hint=x.hint)
                )
            else:
                return None
        return views

    def _view(self, x):
        if x.value is not None:
            value = x.value.transpose(channels_first(range(x.rank)))
            return Operand(value.shape, x.dtype, self.block, value=value, hint=x.hint)
        return Operand(channels_first(x.shape), x.dtype, self.block, x.first)


def _live(nodes, outputs):
    """Return the nodes on which these outputs depend."""
    needed, live = {*outputs}, []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            live.append(node)
            needed.update(names_read(node))
    return live[::-1]


def names_read(node):
    """Yield the names that a node reads, also inside its regions."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from names_read(inner)


def _reasons(refused):
    """Format all reasons for a refusal, each with its first locations."""
    parts = []
    for (name, reason), locations in refused.items():
        locations = list(
            dict.fromkeys([location for location in locations if location])
        )
        more = "; ..." if len(locations) > 3 else ""
        where = f" ({'; '.join(locations[:3])}{more})" if locations else ""
        parts.append(f"{name}{where}{': ' if reason else ''}{reason}")
    return (
        "ONNX cannot express these ops, or these arguments of them: "
        f"{', '.join(parts)}. Write them with other ops, or leave them out of the function"
    )
