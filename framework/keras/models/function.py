"""`Function`: a graph of layers and ops between symbolic tensors, as one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.core.tensor import convert_to_tensor
from tapewright.layers.base.symbolic_tensor import KerasTensor, Operation

from .functional import FunctionalGraph

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor


class Function(Operation):
    """Graph of layers and ops that computes ``outputs`` from ``inputs``.

    Unlike a `Model` it has no weights to save or train, and no `fit`. Called on a
    `KerasTensor`, it is a single operation.

    Args:
        inputs: `KerasTensor`, or a nest of them.
        outputs: `KerasTensor` computed from ``inputs``, or a nest of them.
        name: Name of the operation, unique by default.

    Shapes:
        A call accepts tensors with the structure and the shapes of ``inputs``.

    Raises:
        ValueError: If there are no inputs or outputs, if an output depends on another
            input, or if a call passes another structure or shape.

    Example:
        >>> x, y = keras.KerasTensor((None, 2)), keras.KerasTensor((None, 2))
        >>> function = keras.Function([x, y], keras.ops.relu(x - y))
        >>> function([[[1.0, 5.0]], [[2.0, 3.0]]]).numpy()
        array([[0., 2.]], dtype=float32)
    """

    _tw_kind = "operation"

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None):
        super().__init__(name=name)
        for what, nest in (("inputs", inputs), ("outputs", outputs)):
            if not flatten(nest):
                raise ValueError(f"Function: {what} must not be empty, got {nest!r}")
        self._tw_graph = FunctionalGraph(inputs, outputs)
        self._tw_nests = inputs, outputs

    @property
    def inputs(self) -> list[Tensor]:
        """The symbolic inputs, as a flat list."""
        return list(self._tw_graph.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The symbolic outputs, as a flat list."""
        return list(self._tw_graph.outputs)

    @property
    def operations(self) -> list[Any]:
        """The layers and ops, in order from inputs to outputs."""
        return list(self._tw_graph.operations)

    def call(self, inputs: Any) -> Any:
        """Compute the outputs.

        Args:
            inputs: Tensors in the structure of the symbolic inputs.
        """
        tensors = self._tw_parts(self._tw_nests[0], inputs)
        for x, symbol in zip(tensors, self._tw_graph.inputs):
            if not symbol.shape.is_compatible_with(x.shape):
                raise ValueError(
                    f"{self._tw_title}: the input '{symbol.name}' must have shape "
                    f"{tuple(symbol.shape)}, got {tuple(x.shape)}"
                )
        return pack(self._tw_nests[1], flatten(self._tw_graph.run(tensors)))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shapes of the outputs.

        Args:
            input_shape: Shape of the input, or a nest of shapes.
        """
        shapes = self._tw_parts(self._tw_nests[0], input_shape, tuple)
        specs = [KerasTensor(s, x.dtype) for s, x in zip(shapes, self._tw_graph.inputs)]
        outputs = self.compute_output_spec(pack(self._tw_nests[0], specs))
        return map_structure(lambda x: tuple(x.shape), outputs)

    def _tw_parts(self, nest, value, converted=convert_to_tensor):
        """Return the converted leaves of ``value``, in the order of the leaves of ``nest``."""
        if not is_nested(nest):
            return [converted(value)]
        keys = sorted(nest) if isinstance(nest, dict) else range(len(nest))
        fits = isinstance(value, dict) == isinstance(nest, dict) and is_nested(value)
        if not fits or len(value) != len(nest) or _lacks(nest, value):
            names = map_structure(lambda x: x.name, self._tw_nests[0])
            raise ValueError(
                f"{self._tw_title}: inputs must have the structure {names}, got "
                f"{value!r:.200}"
            )
        return [x for k in keys for x in self._tw_parts(nest[k], value[k], converted)]


def _lacks(nest, value):
    return isinstance(nest, dict) and any([key not in value for key in nest])
