"""Convert operations between the layers of a model to Keras' configs, and back.

Keras has a class for each function of `keras.ops`. The arguments of its constructor are
the config; the arguments of its call, such as tensors, are in the nodes. The class of
each function is declared where the function is defined, see `keras.ops.operation`.
"""

from tapewright.core.primitive import get_primitive
from tapewright.serialization import registry
from tapewright.serialization.load_errors import load_error, reading_file
from tapewright.serialization.registry import get_registered_object, unregistered

from .keras_objects import argument_config, argument_from_config
from .limits import walk

PREFIX = "keras.ops."  # of the functions' names


def _definition(op):
    """Return the `OperationDef` of a function of `keras.ops`; None for our other ops."""
    if not op.startswith(PREFIX):
        return None
    from ..ops.operation import find_operation  # loads `keras.ops`

    return find_operation(op)


def _definition_of_class(name):
    """Return the `OperationDef` for a class of Keras, or None."""
    from ..ops.operation import find_class  # loads `keras.ops`

    return find_class(name)


# ------------------------------------------------------------------------- writing


def operation_config(operation):
    """Return the config of an op in a model: Keras' if it exists, else ours.

    Keras cannot load a model with ours, ``{"module": "tapewright", ...}``: for ops that
    it lacks, and for tensors where its classes accept only numbers.
    """
    op, attributes = operation.op, operation.attributes
    definition = operation.definition
    nodes = operation._inbound_nodes
    if (
        definition is None
        or definition.class_name is None
        or not _is_json(attributes)
        or not all([definition.is_called_with(node.kwargs) for node in nodes])
    ):
        attributes = argument_config(attributes, None)
        config = {"op": op, "attributes": attributes, "name": operation.name}
        return _entry("tapewright", "OpCall", config)
    config = {"name": operation.name, **_lists(attributes)}
    return _entry(f"keras.src.ops.{definition.module}", definition.class_name, config)


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


def _lists(value):
    if isinstance(value, dict):
        return {key: _lists(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lists(each) for each in value]
    return value


# ------------------------------------------------------------------------- reading


def is_operation(entry):
    """Return whether the entry of a layer in a config is an operation."""
    module, name = entry.get("module"), entry.get("class_name")
    if not isinstance(name, str):
        return False
    if module is None:  # as in a file of HDF5
        if get_registered_object(name) is not None:  # a layer of the user's
            return False
        if name == "OpCall":
            return True
        if registry.is_known("layer", name) and not _is_called_as_operation(entry):
            return False
        return _definition_of_class(name) is not None
    if not isinstance(module, str):
        return False
    return module.startswith(("keras.src.ops.", "keras.ops")) or (
        module == "tapewright" and name == "OpCall"
    )


def _is_called_as_operation(entry):
    """Return whether a layer class, such as Add, is called as an operation."""
    config, nodes = entry.get("config"), entry.get("inbound_nodes")
    if isinstance(config, dict) and ("newshape" in config or "trainable" in config):
        return "newshape" in config
    node = nodes[0] if isinstance(nodes, list) and nodes else None
    return isinstance(node, dict) and len(node.get("args", ())) > 1


def operation_from_config(entry):
    """Return ``(op, attributes, name)`` for the entry of an operation.

    Raises:
        ValueError: If the operation does not exist or rejects the config; from a file,
            ``SavingError``.
    """
    config = entry.get("config")
    if not isinstance(config, dict):
        raise load_error(
            f"{str(entry.get('class_name'))[:80]}: its config must be a dict"
        )
    if entry["class_name"] == "OpCall":
        return _own(config)
    definition = _definition_of_class(entry["class_name"])
    if definition is None:
        raise load_error(
            f"the operation {str(entry['class_name'])[:80]!r} of Keras is unknown"
        )
    fixed = definition.fixed
    config = {k: v for k, v in config.items() if k not in fixed or v != fixed[k]}
    name = config.pop("name", entry.get("name"))
    _check(definition, config, definition.call)
    return PREFIX + definition.name, config, name


def _own(config):
    op, attributes = config.get("op"), config.get("attributes")
    if not isinstance(op, str) or not isinstance(attributes, dict):
        raise load_error(
            "OpCall: its config must have the name of an op and its attributes"
        )
    attributes = argument_from_config(attributes, None)
    definition = _definition(op)
    if definition is not None:
        _check(definition, attributes, ())
        return op, attributes, config.get("name")
    try:
        primitive = get_primitive(op)
    except ValueError:
        raise load_error(f"the op {unregistered(op)}") from None
    odd = sorted(set(attributes) ^ set(primitive.attributes))
    if [n for n in odd if n in attributes or n not in primitive.defaults]:
        raise load_error(f"the op {op!r} has no attributes {odd[:5]}")
    for name, value in attributes.items():
        _check_value(op, name, value)
    return op, attributes, config.get("name")


def _check(definition, config, taken):
    """Reject arguments that the function lacks, or that are ``taken`` by its call."""
    known = definition.parameters
    odd = [str(key)[:40] for key in config if key not in known or key in taken]
    if odd:
        raise load_error(
            f"the operation {definition.name!r} has no argument {odd[0]!r} in its config"
        )
    for name, value in config.items():
        _check_value(definition.name, name, value)


MAX_SIZE = 1 << 20
_MAX_SHAPE = 1 << 27
_SHAPES = ("newshape", "shape")
_NUMBERS = ("x_min", "x_max", "initial", "nan", "posinf", "neginf", "default_value",
            "threshold", "fill_value", "constant_values", "max_val", "clip_value_min",
            "clip_value_max", "x", "y")  # fmt: skip


def _check_value(function, name, value):
    """Reject sizes in files that would allocate much memory before a model is called."""
    if not reading_file() or name in _NUMBERS:
        return
    limit = _MAX_SHAPE if name in _SHAPES else MAX_SIZE
    for each in walk(value):
        if hasattr(each, "tolist"):
            _check_value(function, name, each.tolist())
        elif type(each) is int and abs(each) > limit:
            raise load_error(
                f"the operation {function!r} has {each!r:.40} for {name!r}"
            )


def check_call(operation, kwargs):
    """Check the keyword arguments, other than tensors, of a call in a config.

    Raises:
        ValueError: If the op does not accept an argument, or a size is implausible;
            from a file, ``SavingError``.
    """
    op = getattr(operation, "op", None)
    definition = None if op is None else operation.definition
    if op is not None and definition is None and kwargs:
        raise load_error(
            f"the op {op!r} accepts no keyword arguments, got {list(kwargs)[:3]}"
        )
    taken = () if definition is None else definition.call
    for name, value in kwargs.items():
        if name not in taken:
            _check_value(operation.name, name, value)
