"""Read TensorFlow functions between the layers of a Keras 2 model.

Keras 2 represents them by layers ``TFOpLambda`` and ``SlicingOpLambda`` with the name
of the function. Only names in the table below are supported. Our function with that
name is called, so that the operations of `keras.ops` that it records replace the layer.
"""

import importlib
from types import SimpleNamespace

from tapewright.core.nest import flatten
from tapewright.layers.base.symbolic_tensor import OpCall, Operation, node_of
from tapewright.serialization.load_errors import load_error

# File of the ops -> its functions, by TensorFlow's names without the modules.
_TABLE = {
    "nn.activation": "elu gelu leaky_relu log_softmax relu relu6 selu sigmoid silu softmax "
    "softplus softsign swish tanh",
    "math.comparison": "equal greater greater_equal is_finite is_inf is_nan less less_equal "
    "logical_and logical_not logical_or not_equal where",
    "linalg.contraction": "einsum tensordot",
    "array.conversion": "cast identity stop_gradient",
    "array.creation": "ones_like zeros_like",
    "math.elementwise": "abs add add_n ceil clip_by_value divide divide_no_nan exp expm1 floor "
    "floordiv floormod log log1p maximum minimum mod multiply negative pow reciprocal round "
    "rsqrt sign sqrt square squared_difference subtract truediv",
    "array.gather": "gather repeat",
    "image.resizing": "resize",
    "array.indexing": "argmax argmin getitem one_hot",
    "array.joining": "concat pad reverse roll split stack tile unstack",
    "linalg.matmul": "matmul",
    "linalg.matrix_functions": "norm",
    "nn.moments": "moments",
    "nn.normalization": "l2_normalize",
    "convolution.pooling": "avg_pool avg_pool2d max_pool max_pool2d",
    "math.reduction": "reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean "
    "reduce_min reduce_prod reduce_std reduce_sum reduce_variance",
    "math.scan": "cumprod cumsum",
    "array.shape": "broadcast_to expand_dims reshape shape squeeze transpose",
    "array.sorting": "argsort sort top_k",
    "math.trigonometry": "acos asin atan atan2 cos cosh sin sinh tan",
}
_FILES = {name: file for file, names in _TABLE.items() for name in names.split()}
_MODULES = ("", "math", "nn", "linalg", "image", "compat.v1", "compat.v1.math",
            "compat.v1.nn", "__operators__")  # fmt: skip


def is_function_call(entry: dict) -> bool:
    """Return whether the entry of a layer is a function call."""
    return entry.get("class_name") in ("TFOpLambda", "SlicingOpLambda")


class FunctionCall(Operation):
    """Placeholder for such an entry while its model is read.

    Raises:
        ValueError: If the function is unknown; from a file, ``SavingError``.
    """

    _tw_kind = "operation"

    def __init__(self, entry):
        config = entry.get("config")
        named = config.get("function") if isinstance(config, dict) else None
        module, _, function = str(named).rpartition(".")
        if module not in _MODULES or function not in _FILES:
            raise load_error(
                f"the function {str(named)[:80]!r} of TensorFlow in a model of Keras "
                "2 is unknown"
            )
        file = importlib.import_module(f"tapewright.ops.{_FILES[function]}")
        self._tw_function = getattr(file, function)
        self.name = config.get("name") or entry.get("name")
        self._inbound_nodes = []

    def __call__(self, *args, **kwargs):
        if "slice_spec" in kwargs:
            kwargs["index"] = _index(kwargs.pop("slice_spec"))
        kwargs.pop("name", None)
        before = {id(x) for x in flatten((args, kwargs))}
        outputs = self._tw_function(*args, **kwargs)
        self._rename(outputs, before)
        self._inbound_nodes.append(SimpleNamespace(output_tensors=flatten(outputs)))
        return outputs

    def _rename(self, outputs, before):
        """Name the operations after the function call in the model."""
        pending, operations = flatten(outputs), []
        while pending:
            x = pending.pop()
            if id(x) in before or not hasattr(x, "_keras_history"):
                continue
            operation = x._keras_history.operation
            if isinstance(operation, OpCall) and operation not in operations:
                operations.append(operation)
                pending += node_of(x).input_tensors
        calls = len(self._inbound_nodes)
        for i, operation in enumerate(operations):
            numbers = [n for n in (calls, i) if n]
            operation.name = ".".join([self.name, *map(str, numbers)])


def _index(spec):
    if isinstance(spec, (list, tuple)):
        return tuple([_item(each) for each in spec])
    return _item(spec)


def _item(each):
    if isinstance(each, dict):
        return slice(each.get("start"), each.get("stop"), each.get("step"))
    return Ellipsis if isinstance(each, str) and each == "Ellipsis" else each
