"""Save a traced function as an ONNX file."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from tapewright.compiler.function.concrete_function import ConcreteFunction
from tapewright.compiler.function.function import Function
from tapewright.compiler.function.outputs import output_names as names_in
from tapewright.compiler.tracing.graph import spec_of
from tapewright.compiler.tracing.tracer import EagerFallback
from tapewright.core.errors import SavingError
from tapewright.core.hardware.devices import use_module
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.shapes.symbolic_dim import DimSymbol, is_symbolic
from tapewright.core.shapes.tensor_shape import UnrankedShape
from tapewright.storage.atomic import replacing

from .graph_writer import OPSET, GraphWriter, names_read
from .package import require_onnx

IR_VERSION = 9  # of ONNX 1.15, which introduces the opset
# Bytes of constants that a protocol buffer can hold, with room for the rest.
LARGEST = (1 << 31) - (1 << 24)
CHECKED = 1 << 26  # bytes of a model that is checked again
EXTERNAL = 1 << 10  # bytes from which a constant is stored beside a large model


def save(
    function: Callable[..., Any],
    signature: Any,
    path: str | PathLike[str],
    output_names: Sequence[str] | None = None,
) -> None:
    """Save a function as an ONNX model, for runtimes such as onnxruntime.

    The function is traced, and each op of the trace becomes one or a few ONNX ops:
    custom layers and custom gradients need no registration. Variables become constants
    of the model. ``tw.cond`` and loops become ``If`` and ``Loop``, LSTM, GRU and simple
    RNN layers ``LSTM``, ``GRU`` and ``RNN``. The opset is 20.

    Sizes that the signature leaves open (None) stay open: the first axis is named
    ``batch``, others after the input and the axis. Sizes that must be equal get the
    same name. The model checks this, and other properties of open sizes on which the
    trace depends, for instance that one is even: a run with other sizes fails in a node
    whose name is the condition. The metadata ``tapewright.sizes`` lists them.

    Images keep their channels last in inputs and outputs; between them, convolutions and
    what follows have channels first, as ONNX requires.

    Prints and assertions are left out, with a warning.

    The file is written atomically. Constants beyond 2 GB are stored in a second file,
    ``path`` with ``.data`` appended, which belongs beside it.

    Args:
        function: Function of tensors, traced or not. A `ConcreteFunction` has a
            signature of its own.
        signature: List of the arguments, with a `TensorSpec` for each tensor; other
            values are constants. None for a function with an ``input_signature``.
        path: Path of the file.
        output_names: Names of the outputs; by default the keys of a dict, or
            ``output_0``, ``output_1`` and so on.

    Raises:
        SavingError: If the function contains ops that ONNX cannot express, which it
            lists with their lines, assigns variables, or needs the number of an open
            size (a ValueError and OSError).
        ImportError: If the package onnx is not installed.

    References:
        - [ONNX operators](https://onnx.ai/onnx/operators/)

    Example:
        >>> import os, tempfile, onnx
        >>> path = os.path.join(tempfile.mkdtemp(), "double.onnx")
        >>> tw.onnx.save(lambda x: x + x, [tw.TensorSpec([None, 3])], path)
        >>> [node.op_type for node in onnx.load(path).graph.node]
        ['Add', 'Identity']
    """
    onnx, path = require_onnx("tw.onnx.save"), os.fspath(path)
    with use_module(np):
        concrete, guards = _traced(function, signature, path)
        model, constants = _model(onnx, concrete, guards, path, output_names)
        _write(onnx, model, constants, path)


def _traced(function, signature, path):
    """Return the trace for all sizes, and its guards or None."""
    if isinstance(function, ConcreteFunction):
        concrete = function
    else:
        if not isinstance(function, Function):
            function = Function(function)
        try:
            concrete = function.get_concrete_function(*(signature or ()))
        except EagerFallback as error:
            raise SavingError(path, str(error)) from error
    specializations = concrete.specializations
    if specializations is None:
        return concrete, None
    if not specializations.traces:
        raise SavingError(
            path,
            f"{specializations.reason}. An ONNX model has one graph for all sizes: give "
            "the size in the signature",
        )
    trace = specializations.traces[-1]
    return trace.concrete, trace.guards


def _model(onnx, concrete, guards, path, output_names):
    """Return the model without constants, and these as pairs of a name and an array."""
    graph = concrete.graph
    for value in graph.inputs:
        if isinstance(value.shape, UnrankedShape):
            raise SavingError(
                path, f"the input {value.name!r} is of unknown rank: give its shape"
            )
        if value.dtype.kind == "c":
            raise SavingError(
                path, f"the input {value.name!r} is complex, which ONNX runtimes lack"
            )
    if not graph.outputs:
        raise SavingError(path, "the function returns no tensors")
    names = _input_names(graph)
    writer = GraphWriter(onnx, path, graph, names)
    dims = _DimensionNames(names, guards)
    writer.reserve(_output_names(concrete, output_names))
    conditions = dims.conditions()
    writer.write(conditions)
    if writer.left_out:
        warnings.warn(
            f"tw.onnx.save leaves out {', '.join(writer.left_out)}: ONNX graphs neither "
            "print nor raise",
            stacklevel=user_stacklevel(),
        )
    for value in graph.outputs:
        dtype = spec_of(value)[1]
        if dtype.kind == "c":
            raise SavingError(path, "an output is complex, which ONNX runtimes lack")
    make = onnx.helper.make_tensor_value_info
    inputs, outputs = [
        [
            make(name, writer.type_of(dtype), [dims.of(n) for n in shape])
            for name, (shape, dtype) in pairs
        ]
        for pairs in (
            zip(writer.inputs, map(spec_of, graph.inputs), strict=True),
            zip(writer.outputs, map(spec_of, graph.outputs), strict=True),
        )
    ]
    main = onnx.helper.make_graph(
        writer.root.nodes, _identifier(graph.name) or "graph", inputs, outputs
    )
    model = onnx.helper.make_model(
        main,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tapewright",
    )
    if conditions:
        text = "\n".join([text for text, *_ in conditions])
        onnx.helper.set_model_props(model, {"tapewright.sizes": text})
    used = {name for node in writer.root.nodes for name in names_read(node)}
    return model, [pair for pair in writer.initializers if pair[0] in used]


def _input_names(graph):
    return [_identifier(v.name) or f"input_{i}" for i, v in enumerate(graph.inputs)]


def _identifier(name):
    return re.sub(r"[^\w./-]", "_", name or "").strip("_")


def _output_names(concrete, given):
    count = len(concrete.graph.outputs)
    if given is not None:
        taken = {*given, *_input_names(concrete.graph)}
        are_names = all([isinstance(name, str) and name for name in given])
        if (
            not are_names
            or len(given) != count
            or len(taken) < count + len(concrete.graph.inputs)
        ):
            raise ValueError(
                f"tw.onnx.save: output_names must have {count} names, each once and "
                f"unlike those of the inputs, got {list(given)}"
            )
        return list(given)
    structure = concrete.structure
    if type(structure) is int:  # output_0, as in signatures of saved functions
        structure = [structure]
    return names_in(structure, count, "output")


class _DimensionNames:
    """Names of open sizes, the same for sizes that must be equal."""

    def __init__(self, inputs, guards):
        self._inputs = inputs
        conditions = {} if guards is None else dict(guards.conditions)
        symbols = [] if guards is None else guards.symbols()
        self._same = {symbol: symbol for symbol in symbols}
        self._sizes, self._rest, self._pairs = {}, [], []
        for (relation, expression), holds in conditions.items():
            if not self._is_equality(relation, expression, holds):
                self._rest.append((relation, expression, holds))
        self._names = {}
        for symbol in symbols:
            first = self._first(symbol)
            if first not in self._names:
                self._names[first] = self._new_name(first)

    def _is_equality(self, relation, expression, holds):
        """Note that two sizes are equal, or that one is a number; else return False."""
        if relation != "==" or not holds or expression[0] != "poly":
            return False
        terms = dict(expression[1])
        constant = terms.pop((), 0)
        symbols = [m[0] for m in terms if len(m) == 1 and type(m[0]) is DimSymbol]
        if len(symbols) != len(terms):
            return False
        factors = [terms[(s,)] for s in symbols]
        if len(symbols) == 2 and not constant and sum(factors) == 0:
            a, b = sorted(map(self._first, symbols))
            if a != b:
                self._same[b] = a
                self._pairs.append((symbols, expression))
            return True
        if len(symbols) == 1 and factors[0] in (1, -1):
            self._sizes[symbols[0]] = -constant * factors[0]
            return True
        return False

    def _first(self, symbol):
        while self._same[symbol] != symbol:
            symbol = self._same[symbol]
        return symbol

    def _new_name(self, symbol):
        if symbol.axis == 0 and "batch" not in self._names.values():
            return "batch"
        return f"{self._inputs[symbol.input]}_{symbol.axis}"

    def of(self, n):
        """Return a size for a declaration: a number, a name, or None."""
        if not is_symbolic(n):
            return int(n)
        terms = n.expression[1] if n.expression[0] == "poly" else ()
        if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1:
            (symbol,) = terms[0][0]
            if type(symbol) is DimSymbol:
                first = self._first(symbol)
                known = self._sizes.get(symbol, self._sizes.get(first))
                return self._names[first] if known is None else known
        return None

    def conditions(self):
        """Return the conditions on sizes, each behind its text.

        Runtimes do not compare sizes of the same name.
        """
        conditions = [(self._condition(*each), *each) for each in self._rest]
        for symbols, expression in self._pairs:
            texts = [f"{self._inputs[s.input]}_{s.axis}" for s in symbols]
            conditions.append((" == ".join(texts), "==", expression, True))
        return conditions

    def _condition(self, relation, expression, holds):
        words = {"==": ("==", "!="), "<": ("<", ">=")}
        return f"{self._text(expression)} {words[relation][not holds]} 0"

    def _text(self, expression):
        if not isinstance(expression, tuple):
            return str(expression)
        if expression[0] != "poly":
            operation, left, right = expression
            return f"({self._text(left)} {operation} {self._text(right)})"
        parts = []
        for monomial, c in expression[1]:
            factors = [
                self._names[self._first(s)]
                if type(s) is DimSymbol
                else f"({self._text(s[1])} {s[0]} {self._text(s[2])})"
                for s in monomial
            ]
            parts.append(
                " * ".join([*([str(c)] if c != 1 or not factors else []), *factors])
            )
        return " + ".join(parts)


# ---------------------------------------------------------------------------- files


def _write(onnx, model, constants, path):
    total = sum([value.nbytes for _, value in constants])
    to_tensor = onnx.numpy_helper.from_array
    if total <= LARGEST:
        tensors = [to_tensor(np.asarray(value, order="C"), n) for n, value in constants]
        model.graph.initializer.extend(tensors)
        if total <= CHECKED:
            try:
                onnx.checker.check_model(model, full_check=True)
            except onnx.shape_inference.InferenceError as error:
                raise SavingError(path, f"ONNX does not allow it: {error}") from error
        with replacing(path) as temporary:
            with open(temporary, "wb") as file:
                file.write(model.SerializeToString())
        return
    beside = f"{path}.data"
    with replacing(beside) as temporary:
        with open(temporary, "wb") as file:
            for name, value in constants:
                if value.nbytes < EXTERNAL or value.dtype.kind == "O":
                    model.graph.initializer.append(to_tensor(value, name))
                    continue
                file.write(bytes(-file.tell() % 64))
                tensor = model.graph.initializer.add()
                tensor.name, tensor.dims[:] = name, value.shape
                tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
                tensor.data_location = onnx.TensorProto.EXTERNAL
                location = {
                    "location": os.path.basename(beside),
                    "offset": file.tell(),
                    "length": value.nbytes,
                }
                for key, content in location.items():
                    entry = tensor.external_data.add()
                    entry.key, entry.value = key, str(content)
                file.write(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
    with replacing(path) as temporary:
        with open(temporary, "wb") as file:
            file.write(model.SerializeToString())
