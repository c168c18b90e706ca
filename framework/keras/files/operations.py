"""Operations between the layers of a model, in the forms of Keras, and the way back.

Keras has a class for each function of `keras.ops`. What its constructor takes is the
config, and what its call takes, such as tensors, stands in the nodes. Names are looked up
in the table below and nowhere else.
"""

from collections import namedtuple

from tapewright.core.primitive import get_primitive
from tapewright.serialization import registry
from tapewright.serialization.load_errors import load_error, reading_file
from tapewright.serialization.registry import get_registered_object, unregistered

from .call_arguments import argument_config, argument_from_config

__all__ = [
    "call_names",
    "canonical",
    "check_call",
    "default_name",
    "is_operation",
    "kind_of",
    "operation_config",
    "operation_from_config",
]

PREFIX = "keras.ops."  # of the functions' names

# Module -> what the call takes -> functions whose Keras classes are like this.
_TABLE = {
    "core": {
        "x": "cast convert_to_tensor saturate_cast unstack",
        "indices values": "scatter",
        "inputs indices updates": "scatter_update",
        "inputs start_indices": "slice",
        "inputs start_indices updates": "slice_update",
        "variable": "stop_gradient",
    },
    "numpy": {
        "x": """
            absolute all amax amin angle any arccos arccosh arcsin arcsinh arctan arctanh
            argmax argmin argpartition argsort array array_split bincount bitwise_invert
            bitwise_not broadcast_to cbrt ceil clip conjugate copy corrcoef cos cosh
            count_nonzero cumprod cumsum deg2rad diag diagflat diagonal dsplit empty_like
            exp exp2 expand_dims expm1 fabs flip fliplr flipud floor histogram hsplit imag
            isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not
            max mean median min moveaxis nan_to_num nanargmax nanargmin nancumprod
            nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ndim
            negative nonzero ones_like prod ptp rad2deg ravel real reciprocal repeat reshape
            roll round sign signbit sin sinc sinh size slogdet sort split sqrt square
            squeeze stack std sum swapaxes tan tanh tile trace transpose tril triu trunc
            unique vander var view vsplit zeros_like""",
        "x1 x2": """
            add allclose append arctan2 correlate cross divide divide_no_nan dot equal
            floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot inner isin
            kron lcm ldexp less less_equal logaddexp logaddexp2 logical_and logical_or
            logical_xor matmul maximum minimum mod multiply nextafter not_equal outer power
            subtract tensordot true_divide vdot""",
        "x y": """
            bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
            left_shift right_shift""",
        "xs": "concatenate dstack hstack vstack",
        "*x": "meshgrid",
        "*operands": "einsum",
        "x q": "nanpercentile nanquantile percentile quantile",
        "x indices": "take take_along_axis",
        "x weights": "average",
        "x bins": "digitize",
        "x key": "get_item",
        "x fill_value": "full_like",
        "x constant_values": "pad",
        "x1 x2 rtol atol": "isclose",
        "a": "diff",
        "y": "trapezoid",
        "array": "rot90",
        "indices": "unravel_index",
        "condition x1 x2": "where",
        "condlist choicelist default": "select",
        "sorted_sequence values": "searchsorted",
        "start stop": "geomspace linspace logspace",
        "start stop step": "arange",
        "fill_value": "full",
    },
    "nn": {
        "x": """
            celu depth_to_space elu fold gelu glu hard_shrink hard_sigmoid hard_silu
            hard_tanh leaky_relu log_sigmoid log_softmax moments normalize one_hot relu
            relu6 selu sigmoid silu soft_shrink softmax softplus softsign space_to_depth
            sparse_plus sparse_sigmoid sparsemax squareplus tanh_shrink threshold unfold""",
        "inputs": "adaptive_average_pool adaptive_max_pool average_pool max_pool multi_hot",
        "inputs kernel": "conv conv_transpose depthwise_conv",
        "inputs depthwise_kernel pointwise_kernel": "separable_conv",
        "x mean variance offset scale": "batch_normalization",
        "x gamma beta": "layer_normalization",
        "x scale": "rms_normalization",
        "target output target_length output_length": "ctc_loss",
        "inputs sequence_lengths": "ctc_decode",
        "x1 x2": "psnr",
        "abs_ angle": "polar",
        "target output": """
            binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy""",
        "query key value bias mask scale": "dot_product_attention",
    },
    "math": {
        "x": """
            erf erfc erfinv extract_sequences fft fft2 ifft2 irfft istft logdet logsumexp
            rfft rsqrt stft top_k view_as_complex view_as_real""",
        "x y": "cdist",
        "targets predictions": "in_top_k",
        "data segment_ids": "segment_max segment_min segment_prod segment_sum",
    },
    "linalg": {
        "x": "cholesky cholesky_inverse det eig eigh inv matrix_rank norm pinv qr svd",
        "a b": "lstsq solve solve_triangular",
    },
    "image": {
        "images": """
            image.crop_images image.extract_patches image.gaussian_blur image.hsv_to_rgb
            image.pad_images image.resize image.rgb_to_grayscale image.rgb_to_hsv
            image.sobel_edges""",
        "images transform": "image.affine_transform",
        "images start_points end_points": "image.perspective_transform",
        "inputs coordinates": "image.map_coordinates",
        "image1 image2": "image.ssim",
    },
}

# Classes that are not named as their functions are, in capitals.
_CLASSES = {
    "allclose": "AllClose",
    "batch_normalization": "BatchNorm",
    "cdist": "CDist",
    "ctc_decode": "CTCDecode",
    "ctc_loss": "CTCLoss",
    "fft": "FFT",
    "fft2": "FFT2",
    "ifft2": "IFFT2",
    "image.hsv_to_rgb": "HSVToRGB",
    "image.rgb_to_grayscale": "RGBToGrayscale",
    "image.rgb_to_hsv": "RGBToHSV",
    "image.ssim": "SSIM",
    "irfft": "IRFFT",
    "isin": "IsIn",
    "istft": "ISTFT",
    "layer_normalization": "LayerNorm",
    "psnr": "PSNR",
    "rfft": "RFFT",
    "rms_normalization": "RMSNorm",
    "searchsorted": "SearchSorted",
    "stft": "STFT",
    "svd": "SVD",
}

_NAMES = {"allclose": "all_close", "isin": "is_in", "searchsorted": "search_sorted"}

_ALIASES = {"abs": "absolute", "conj": "conjugate", "swish": "silu",
            "hard_swish": "hard_silu"}  # fmt: skip

# Keys of Keras' configs that our functions lack, and the one value that we agree with.
_FIXED = {("layer_normalization", "rms_scaling"): False}

# Classes of Keras' layers that are also the names of operations; an entry without a
# module, as a file of HDF5 has it, is a layer unless its call is one of an operation.
_AMBIGUOUS = {"Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply",
              "Reshape", "Softmax", "Subtract"}  # fmt: skip

Form = namedtuple("Form", ["module", "class_name", "call"])


def _forms():
    for module, rows in _TABLE.items():
        for call, names in rows.items():
            for name in names.split():
                yield name, Form(module, _class_name(name), tuple(call.split()))


def _class_name(function):
    words = function.rpartition(".")[2].split("_")
    return _CLASSES.get(function, "".join([word.capitalize() for word in words]))


_FORMS = dict(_forms())
_FUNCTIONS = {form.class_name: name for name, form in _FORMS.items()}
_FUNCTIONS |= {_class_name(alias): name for alias, name in _ALIASES.items()}


# --------------------------------------------------------------------- what is what


def canonical(function):
    """The name by which Keras knows a function that has several."""
    return _ALIASES.get(function, function)


def call_names(function):
    """The arguments that stand in the nodes, in order; None if Keras has no such class."""
    return _FORMS[function].call if function in _FORMS else None


def kind_of(op):
    """What a summary calls an operation: its class in Keras, else its own name."""
    form = _FORMS.get(op.removeprefix(PREFIX)) if op.startswith(PREFIX) else None
    return op if form is None else form.class_name


def default_name(op):
    """What the name of an operation begins with, as Keras has it.

    >>> default_name("keras.ops.get_item"), default_name("keras.ops.batch_normalization")
    ('get_item', 'batch_norm')
    """
    name = op.removeprefix(PREFIX).rpartition(".")[2]
    name = _NAMES.get(name, name)
    if kind_of(op).endswith("Norm"):
        return name.removesuffix("alization")
    return name


# ------------------------------------------------------------------------- writing


def operation_config(operation):
    """The config of an op in a model: Keras' where it has one, else one of our own.

    Keras does not open a model with ours, ``{"module": "tapewright", ...}``: for ops
    that it lacks, and for tensors where its classes take numbers alone.
    """
    op, attributes = operation.op, operation.attributes
    form = _FORMS.get(op.removeprefix(PREFIX)) if op.startswith(PREFIX) else None
    nodes = operation._inbound_nodes
    if (
        form is None
        or not _is_json(attributes)
        or any([not set(node.kwargs) <= set(form.call) for node in nodes])
    ):
        attributes = argument_config(attributes, None)
        config = {"op": op, "attributes": attributes, "name": operation.name}
        return _entry("tapewright", "OpCall", config)
    config = {"name": operation.name, **_listed(attributes)}
    return _entry(f"keras.src.ops.{form.module}", form.class_name, config)


def _entry(module, class_name, config):
    return {
        "module": module,
        "class_name": class_name,
        "config": config,
        "registered_name": class_name,
    }


def _is_json(value):
    if isinstance(value, dict):
        return all([_is_json(each) for each in value.values()])
    if isinstance(value, (list, tuple)):
        return all([_is_json(each) for each in value])
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor NaN
    return value is None or isinstance(value, (bool, int, str))


def _listed(value):
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(each) for each in value]
    return value


# ------------------------------------------------------------------------- reading


def is_operation(entry):
    """Whether the entry of a layer in a config is that of an operation."""
    module, name = entry.get("module"), entry.get("class_name")
    if not isinstance(name, str):
        return False
    if module is None:
        if get_registered_object(name) is not None:  # a layer of the user's
            return False
        return name == "OpCall" or (name in _FUNCTIONS and _is_called_so(entry))
    if not isinstance(module, str):
        return False
    return module.startswith(("keras.src.ops.", "keras.ops")) or (
        module == "tapewright" and name == "OpCall"
    )


def _is_called_so(entry):
    """Whether what may be a layer or an operation is called as the latter."""
    if entry["class_name"] not in _AMBIGUOUS:
        return True
    config, nodes = entry.get("config"), entry.get("inbound_nodes")
    if isinstance(config, dict) and ("newshape" in config or "trainable" in config):
        return "newshape" in config
    node = nodes[0] if isinstance(nodes, list) and nodes else None
    return isinstance(node, dict) and len(node.get("args", ())) > 1


def operation_from_config(entry):
    """``(op, attributes, name)`` of the entry of an operation.

    Raises: ``ValueError``, or ``SavingError`` from a file, if there is no such operation
    or it does not take what the config says.
    """
    config = entry.get("config")
    if not isinstance(config, dict):
        raise load_error(
            f"{str(entry.get('class_name'))[:80]}: its config must be a dict"
        )
    if entry["class_name"] == "OpCall":
        return _own(config)
    function = _FUNCTIONS.get(entry["class_name"])
    if function is None:
        raise load_error(
            f"the operation {str(entry['class_name'])[:80]!r} of Keras is not known here"
        )
    config = {
        key: value
        for key, value in config.items()
        if (function, key) not in _FIXED or value != _FIXED[function, key]
    }
    name = config.pop("name", entry.get("name"))
    _check(function, config, set(_FORMS[function].call))
    return PREFIX + function, config, name


def _own(config):
    op, attributes = config.get("op"), config.get("attributes")
    if not isinstance(op, str) or not isinstance(attributes, dict):
        raise load_error(
            "OpCall: its config must have the name of an op and its attributes"
        )
    attributes = argument_from_config(attributes, None)
    if op.startswith(PREFIX):
        _check(op.removeprefix(PREFIX), attributes, set())
        return op, attributes, config.get("name")
    try:
        primitive = get_primitive(op)
    except ValueError:
        raise load_error(f"the op {unregistered(op)}") from None
    odd = sorted(set(attributes) ^ set(primitive.attributes))
    if [n for n in odd if n in attributes or n not in primitive.defaults]:
        raise load_error(f"the op {op!r} has other attributes than {odd[:5]}")
    for name, value in attributes.items():
        _check_value(op, name, value)
    return op, attributes, config.get("name")


def _check(function, config, taken):
    """Whether the function takes these arguments, beside those that are ``taken``."""
    known = registry.find("composite", PREFIX + function).names
    odd = [str(key)[:40] for key in config if key not in known or key in taken]
    if odd:
        raise load_error(
            f"the operation {function!r} has no argument {odd[0]!r} in its config"
        )
    for name, value in config.items():
        _check_value(function, name, value)


MAX_SIZE = 1 << 20
MAX_SHAPE = 1 << 27
_SHAPES = ("newshape", "shape")
_NUMBERS = ("x_min", "x_max", "initial", "nan", "posinf", "neginf", "default_value",
            "threshold", "fill_value", "constant_values", "max_val", "clip_value_min",
            "clip_value_max", "x", "y")  # fmt: skip


def _check_value(function, name, value):
    """What a file says is a size must not ask for memory before a model is called."""
    if not reading_file() or name in _NUMBERS:
        return
    limit = MAX_SHAPE if name in _SHAPES else MAX_SIZE
    ahead = [value]
    while ahead:
        each = ahead.pop()
        if type(each) in (list, tuple):
            ahead += each
        elif isinstance(each, dict):
            ahead += each.values()
        elif hasattr(each, "tolist"):
            ahead.append(each.tolist())
        elif type(each) is int and abs(each) > limit:
            raise load_error(
                f"the operation {function!r} has {each!r:.40} for {name!r}"
            )


def check_call(operation, kwargs):
    """What a config says of the arguments of a call by name, beside tensors.

    Raises: ``ValueError``, or ``SavingError`` from a file, for what an op does not take,
    and for sizes that no model has.
    """
    op = getattr(operation, "op", None)
    taken = ()
    if op is not None and not op.startswith(PREFIX) and kwargs:
        raise load_error(
            f"the op {op!r} takes no arguments by name, got {list(kwargs)[:3]}"
        )
    if op is not None:
        taken = call_names(op.removeprefix(PREFIX)) or ()
    for name, value in kwargs.items():
        if name not in taken:
            _check_value(operation.name, name, value)
