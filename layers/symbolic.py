"""Models as graphs of layers: the tensors between them, and the calls that made these.

A `KerasTensor` has a shape and a dtype, and no values. A layer called on one notes a
`Node` and gives further ones; so does an op, as an `OpCall`. What lies between two sets of
them is a model, see `training/network.py`.
"""

from collections import namedtuple

from tapewright.dimension import NeedsSize
from tapewright.dtypes import as_dtype
from tapewright.graph.functions.function import Function
from tapewright.graph.tracing import Outline
from tapewright.nest import flatten, map_structure, pack
from tapewright.primitive import get_primitive
from tapewright.readers import Lost, reading
from tapewright.tensor import Tensor, TensorSpec
from tapewright.tensor_shape import TensorShape

from .names import unique_name

__all__ = ["KerasHistory", "KerasTensor", "Node", "OpCall", "node_of", "output_specs"]

KerasHistory = namedtuple("KerasHistory", ["operation", "node_index", "tensor_index"])


class KerasTensor(Tensor):
    """What flows between the layers of a model: a shape and a dtype, no values.

    Layers and ops take it, and note that they were called; see `Input`.
    """

    __slots__ = ("_shape", "name", "_keras_history", "sparse")
    _count = 0

    def __init__(self, shape, dtype="float32", sparse=False, ragged=False, name=None):
        dtype = as_dtype(dtype)
        self._shape = TensorShape(shape)
        self.array = Outline(tuple(self._shape.as_list()), dtype.dtype)
        self.key = None
        self.sparse = False
        if name is None:
            count, KerasTensor._count = KerasTensor._count, KerasTensor._count + 1
            name = f"keras_tensor_{count}" if count else "keras_tensor"
        self.name = name

    @property
    def shape(self):
        return self._shape

    @property
    def device(self):
        return "/CPU:0"

    def _no_value(self, what):
        raise TypeError(
            f"{what} needs values, but this is a KerasTensor, {self._shape} "
            f"{self.dtype.name}: it stands for the tensors that a model will be called "
            "with. Put the code into the call() of a Layer, or into a Lambda layer"
        )

    def record_op(self, op, inputs, attributes):
        """What an op gives for this: the call is noted."""
        for x in inputs:
            if type(x.key) is Lost and x.key.origins[0].reason == "variable":
                raise TypeError(
                    f"{op.name}: the variable '{x.key.origins[0].op}' would enter the "
                    "model as a constant, with its value now. Use it in the call() of a "
                    "Layer that keeps it as an attribute"
                )
        return OpCall(op.name, attributes)(*inputs)

    def numpy(self):
        self._no_value("numpy()")

    def __array__(self, dtype=None, copy=None):
        self._no_value("a NumPy function")

    def _scalar(self, kind):
        self._no_value(f"{kind.__name__}()")

    def __bool__(self):
        self._no_value("a Python condition (if, while, and, or, not)")

    def __index__(self):
        self._no_value("an index or a size")

    def __len__(self):
        size = self._shape[0] if len(self._shape) else None
        return self._no_value("len()") if size is None else size

    def __iter__(self):
        self._no_value("a Python loop")

    def __format__(self, spec):
        return format(str(self), spec)

    def __repr__(self):
        return (
            f"<KerasTensor shape={tuple(self._shape)}, dtype={self.dtype.name}, "
            f"name={self.name}>"
        )

    __str__ = __repr__

    def __reduce__(self):
        self._no_value("pickle")


class OpCall:
    """An op in a model, with its attributes: what stands where others have a layer."""

    def __init__(self, op, attributes, name=None):
        self.op = op
        self.attributes = {  # a config has lists for tuples
            key: tuple(value) if type(value) is list else value
            for key, value in attributes.items()
        }
        self.name = name or unique_name(op)
        self._inbound_nodes = []

    def __call__(self, *inputs):
        if not any([type(x) is KerasTensor for x in inputs]):
            return get_primitive(self.op).general(inputs, self.attributes)
        with reading(()):
            specs = output_specs(self, inputs, {})
        outputs = map_structure(lambda s: KerasTensor(s.shape, s.dtype), specs)
        Node(self, inputs, {}, outputs)
        return outputs

    def __repr__(self):
        return f"<OpCall {self.op}>"


class Node:
    """One call of a layer or op on symbolic tensors: arguments and outputs."""

    __slots__ = ("operation", "args", "kwargs", "inputs", "outputs")

    def __init__(self, operation, args, kwargs, outputs):
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.outputs = outputs
        found = [x for x in flatten((args, kwargs)) if type(x) is KerasTensor]
        self.inputs = args[0] if len(args) == 1 and not kwargs else found
        index = len(operation._inbound_nodes)
        for i, tensor in enumerate(flatten(outputs)):
            tensor._keras_history = KerasHistory(operation, index, i)
        operation._inbound_nodes.append(self)

    @property
    def input_tensors(self):
        """The symbolic tensors among the arguments, in order."""
        found = flatten((self.args, self.kwargs))
        return [x for x in found if type(x) is KerasTensor]

    @property
    def output_tensors(self):
        return flatten(self.outputs)

    @property
    def parents(self):
        """The nodes that made the inputs, each once."""
        made = [node_of(x) for x in self.input_tensors]
        return list({id(node): node for node in made}.values())

    def call(self, values, operation=None):
        """Calls the layer or op, or another in its place, on the tensors of ``values``:
        id of a symbolic tensor -> what it stands for."""

        def filled(nest):
            leaves = [
                values[id(x)] if type(x) is KerasTensor else x for x in flatten(nest)
            ]
            return pack(nest, leaves)

        operation = operation or self.operation
        return operation(*filled(self.args), **filled(self.kwargs))


def node_of(tensor):
    """The node that made a symbolic tensor."""
    operation, index, _ = tensor._keras_history
    return operation._inbound_nodes[index]


def output_specs(call, args, kwargs):
    """What ``call`` returns for these arguments, with a `TensorSpec` for each tensor.

    `KerasTensor`s among the arguments stand for tensors with their shapes and dtypes, of
    any size where that is None. The call is traced, and nothing computed.
    """
    nest = (args, kwargs)
    leaves = flatten(nest)
    places = [i for i, x in enumerate(leaves) if type(x) is KerasTensor]

    def run(*tensors):
        given = dict(zip(places, tensors))
        filled = [given.get(i, x) for i, x in enumerate(leaves)]
        own_args, own_kwargs = pack(nest, filled)
        return call(*own_args, **own_kwargs)

    shapes = [tuple(leaves[i].shape) for i in places]
    dtypes = [leaves[i].dtype for i in places]
    try:
        return _traced(run, shapes, dtypes)
    except NeedsSize:  # what two sizes disagree on is unknown
        some = [
            _traced(
                run, [[size if n is None else n for n in s] for s in shapes], dtypes
            )
            for size in (2, 3)
        ]
        return map_structure(_common, *some)


def _traced(run, shapes, dtypes):
    specs = [TensorSpec(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
    with reading(()):
        concrete = Function(run).get_concrete_function(*specs)
    return map_structure(_plain, concrete.structured_outputs)


def _plain(spec):
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(spec.shape.as_list(), spec.dtype)


def _common(a, b):
    if not isinstance(a, TensorSpec):
        return a
    return TensorSpec(
        [m if m == n else None for m, n in zip(a.shape, b.shape)], a.dtype
    )
