"""`tw.onnx.load`: an ONNX file as a `Module` with a traced function."""

from __future__ import annotations

import copy
import inspect
import os
import re
from keyword import iskeyword
from typing import Any

from tapewright.compiler.function.function import function
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError, as_saving_error
from tapewright.core.module import Module
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.variable import Variable

from .from_onnx.graph import Context, Graph, Refusals, spec_of
from .from_onnx.model_file import read_model

# Operands of floating numbers that are no weights: op -> their positions.
_SETTINGS = {
    "Clip": (1, 2), "DequantizeLinear": (1,), "Pad": (2,), "QuantizeLinear": (1,),
    "Range": (0, 1, 2), "Resize": (1, 2), "Upsample": (1,),
}  # fmt: skip
# Operands that training computes without gradients.
_STATISTICS = {"BatchNormalization": (3, 4)}


def load(path: str | os.PathLike[str], trainable: bool = True) -> OnnxModel:
    """Read an ONNX file as a callable `tw.Module`, for inference and fine-tuning.

    The graph becomes one `tw.function`. Floating initializers of rank 1 or more become
    variables with the names in the file: trainable, except for the moving moments of batch
    normalization. Other initializers, such as shapes and indices, and all in branches and
    loops, stay constants. Dropout does nothing, and batch normalization uses the moments in
    the file.

    Sizes that the file leaves open may differ from call to call. Functions in the file are
    inlined; no code of the file runs. Weights in files beside the model are read if they
    are in its folder.

    Args:
        path: Path of the file.
        trainable: If False, all variables are untrainable.

    Returns:
        A module ``f``. ``f(x)`` takes tensors in the order of ``f.input_names``, or by
        name, and returns a tensor, or a tuple in the order of ``f.output_names`` if the
        graph has several outputs. ``f.input_signature`` lists a `tw.TensorSpec` per input,
        ``f.weights`` maps names to variables.

    Raises:
        SavingError: If the file is damaged, of an unsupported opset, or contains ops that
            tapewright does not translate; it lists all of them (a ValueError and OSError).
        ImportError: If the package onnx is not installed.

    Example:
        >>> import onnx, tempfile
        >>> graph = onnx.parser.parse_model('''
        ...     <ir_version: 8, opset_import: ["": 17]>
        ...     double (float[n] x) => (float[n] y) <float[1] two = {2}> {
        ...         y = Mul(x, two)
        ...     }''')
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     onnx.save(graph, folder + "/double.onnx")
        ...     double = tw.onnx.load(folder + "/double.onnx")
        >>> double(tw.constant([1.0, 3.0])).numpy()
        array([2., 6.], dtype=float32)
        >>> [weight.name for weight in double.trainable_variables]
        ['two']
    """
    model, opset, tensors = read_model(path)
    refusals = Refusals()
    with as_saving_error(os.fspath(path), "is not a valid ONNX model"):
        graph = Graph.of(model.graph, opset, Context(tensors.onnx, tensors, refusals))
        specs = {value.name: spec_of(value, refusals)
                 for value in [*model.graph.output, *model.graph.input]}  # fmt: skip
        if refusals.locations:
            raise SavingError(
                path,
                f"contains what tapewright does not translate: {refusals}. Export the "
                "model for another opset or without these, or run it with onnxruntime",
            )
        signature = [specs[name] for name in graph.inputs]
        return OnnxModel(graph, signature, _take_weights(graph, trainable))


class OnnxModel(Module):
    """The result of `load`: an ONNX graph as a traced function, and its weights."""

    def __init__(
        self, graph: Graph, signature: list[TensorSpec], weights: dict[str, Variable]
    ):
        self.input_names: list[str] = graph.inputs
        self.output_names: list[str] = graph.outputs
        self.input_signature: list[TensorSpec] = signature
        self.weights: dict[str, Variable] = weights
        self._graph = graph

        def run(*inputs):
            scope = {name: convert_to_tensor(v) for name, v in weights.items()}
            outputs = graph(scope, *inputs)
            return outputs[0] if len(outputs) == 1 else outputs

        run = _with_parameters(run, graph.inputs)
        vars(self)["__call__"] = function(run, signature, autograph=False)

    def __deepcopy__(self, memo: Any) -> OnnxModel:
        weights = copy.deepcopy(self.weights, memo)
        return memo.setdefault(
            id(self), OnnxModel(self._graph, self.input_signature, weights)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor | tuple[Tensor, ...]:
        """Run the graph on tensors in the order of ``input_names``, or by name."""
        names = self.input_names
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if missing or len(args) + len(kwargs) != len(names):
            raise TypeError(
                f"the ONNX model takes the inputs {names}; got {len(args)} positional "
                f"arguments and the names {list(kwargs)}"
            )
        rest = [kwargs[name] for name in names[len(args) :]]
        return vars(self)["__call__"](*args, *rest)

    def __repr__(self) -> str:
        return f"<ONNX model {self.input_names} -> {self.output_names}>"


def _take_weights(graph, trainable):
    """Replace the floating constants of a graph by variables; return these by name."""
    settings, statistics = _uses(graph, _SETTINGS), _uses(graph, _STATISTICS)
    weights = {
        name: Variable(array, name not in statistics and trainable, name=name)
        for name, array in graph.constants.items()
        if kind_of(array.dtype) == "f" and array.ndim and name not in settings
    }
    for name in weights:
        del graph.constants[name]
    return weights


def _uses(graph, table):
    """Return the names of operands at the positions that a table of ops lists."""
    return {
        step.inputs[i]
        for step in graph.steps
        for i in table.get(step.op, ())
        if i < len(step.inputs)
    }


def _with_parameters(run, names):
    """Give a function of ``*inputs`` named parameters, for errors and signatures."""
    used = []
    for name in names:
        safe = re.sub(r"\W", "_", name)
        if not safe.isidentifier() or iskeyword(safe):
            safe = f"input_{safe}"
        used.append(f"{safe}_{len(used)}" if safe in used else safe)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in used])
    run.__name__ = run.__qualname__ = "onnx_graph"
    return run
