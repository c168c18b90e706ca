"""`clone_model`: a model of the same layers with weights of its own."""

from tapewright.layers.input_layer import InputLayer

from .model import Model
from .sequential import Sequential

__all__ = ["clone_model"]


def clone_model(model, input_tensors=None, clone_function=None):
    """A new model like ``model``, newly initialized.

    Args: ``clone_function``: makes a layer from a layer, by default from its config;
    ``input_tensors`` is Keras', and must be None.

    Raises: ``ValueError`` for a subclass of `Model`, whose ``call`` is Python.
    """
    if input_tensors is not None:
        raise ValueError(
            "clone_model: input_tensors must be None; call the clone on them"
        )
    if not isinstance(model, Sequential) and model._network is None:
        raise ValueError(
            "clone_model: only Sequential models and Model(inputs, outputs) can be "
            f"cloned, {type(model).__name__} is defined by its own call(); make another "
            "one by its constructor"
        )
    if clone_function is None:
        return type(model).from_config(model.get_config())
    if isinstance(model, Sequential):
        layers = [clone_function(x) for x in model.layers]
        clone = type(model)(name=model.name)
        if model._start is not None:
            clone.add(model._start._keras_history.operation.from_config(
                model._start._keras_history.operation.get_config()))  # fmt: skip
        for layer in layers:
            clone.add(layer)
        if not model.trainable:
            clone.trainable = False
        return clone
    return _cloned_network(model, clone_function)


def _cloned_network(model, clone_function):
    """The model made anew, layer by layer, of what the function gives."""
    made = {}

    def copy(operation):
        if id(operation) not in made:
            kept = isinstance(operation, InputLayer) or not hasattr(
                operation, "weights"
            )
            if kept:
                made[id(operation)] = _twin(operation)
            else:
                made[id(operation)] = clone_function(operation)
        return made[id(operation)]

    inputs, outputs = model._network.rebuilt(copy)
    return Model(inputs=inputs, outputs=outputs, name=model.name)


def _twin(operation):
    if isinstance(operation, InputLayer):
        return InputLayer.from_config(operation.get_config())
    return type(operation)(operation.op, operation.attributes, operation.name)
