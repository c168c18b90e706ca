"""Outputs of a traced function: its tensors, and the nest that they are packed into."""

from tapewright.core.composite import CompositeTensor
from tapewright.core.hardware import devices
from tapewright.core.nest import flatten, is_nested, pack
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import is_tensor


def packer(structure):
    """Return the function that packs output tensors into ``structure``."""
    if structure is None:
        return lambda outputs: None
    if type(structure) is int and structure == 0:
        return lambda outputs: outputs[0]
    if type(structure) in (list, tuple) and all([type(n) is int for n in structure]):
        if list(structure) == [*range(len(structure))]:
            return type(structure)

    def filled(leaf, outputs):
        if isinstance(leaf, CompositeTensor):
            parts = [filled(part, outputs) for part in leaf._tw_components()]
            return leaf._tw_with_components(parts)
        return None if leaf is None else outputs[leaf]

    if not is_nested(structure):
        return lambda outputs: filled(structure, outputs)
    leaves = flatten(structure)
    return lambda outputs: pack(structure, [filled(x, outputs) for x in leaves])


def _is_value(x):
    """Return whether an output converts to a tensor: numbers, strings, arrays, shapes."""
    kinds = (bool, int, float, complex, str, bytes, TensorShape)
    return is_tensor(x) or devices.is_array(x) or isinstance(x, kinds)


def flatten_result(answer, who):
    """Return the leaves of a result that become tensors, and a nest of their numbers."""
    leaves = []

    def number(leaf):
        if leaf is None:
            return None
        if isinstance(leaf, CompositeTensor):
            return leaf._tw_with_components(
                [number(part) for part in leaf._tw_components()]
            )
        if not _is_value(leaf):
            raise TypeError(
                f"function '{who}' returned {leaf!r}, of type {type(leaf).__name__}: a "
                "traced function must return tensors, numbers, arrays or None, and nests "
                "of them"
            )
        leaves.append(leaf)
        return len(leaves) - 1

    if not is_nested(answer):
        return leaves, number(answer)
    numbers = [number(leaf) for leaf in flatten(answer)]
    return leaves, pack(answer, numbers)


def output_names(structure, count, stem):
    """Name the outputs of a trace by their positions in the structure.

    Args:
        structure: Nest of the numbers of the outputs, see `ConcreteFunction`.
        count: Number of outputs.
        stem: Start of names that do not begin with the key of a dict.

    Example:
        >>> from tapewright.compiler.function.outputs import output_names
        >>> output_names({"loss": 0, "parts": [1, 2]}, 3, "y"), output_names(0, 1, "y")
        (['loss', 'parts_0', 'parts_1'], ['y'])
    """
    names = {}

    def visit(part, path):
        if isinstance(part, dict):
            for key, each in part.items():
                visit(each, [*path, str(key)])
        elif isinstance(part, (list, tuple)):
            keys = getattr(part, "_fields", range(len(part)))
            for key, each in zip(keys, part):
                visit(each, [*path, str(key)])
        elif type(part) is int:
            names.setdefault(part, "_".join(path))

    visit(structure, [])
    stems = [names.get(n, str(n)) for n in range(count)]
    return [
        n if n and not n[0].isdigit() else "_".join([stem, n]).strip("_") for n in stems
    ]
