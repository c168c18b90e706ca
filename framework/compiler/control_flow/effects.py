"""Side effects: Python code that runs in every call, eagerly or in each replay."""

from tapewright.autodiff.batching import BatchedTensor
from tapewright.core.errors import MappingError
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.tensor import convert_to_tensor

from ..tracing.interpret import perform_effect

_MAKERS = {}  # kind -> a function of plain values that makes the call of an effect
find_effect_maker = _MAKERS.get


def effect_maker(kind, on_host=True):
    """Register ``make(**attributes)``, which builds the call of effects of this kind.

    Attributes are plain values, so that such an effect can be saved and restored. If
    ``on_host`` is True, the call accepts NumPy arrays; GPU arrays are copied.
    """

    def register(make):
        _MAKERS[kind] = _host_maker(make) if on_host else make
        return make

    return register


def _host_maker(make):
    def make_on_host(**attributes):
        call = make(**attributes)

        def on_host(*arrays):
            return call(*[to_numpy(array) for array in arrays])

        return on_host

    return make_on_host


def serializable_effect(kind, inputs, **attributes):
    """Perform a `host_effect` without results whose kind has an `effect_maker`."""
    host_effect(kind, _MAKERS[kind](**attributes), inputs, attributes=attributes)


def host_effect(kind, call, inputs=(), specs=(), attributes=None):
    """Run ``call`` on the arrays of ``inputs``; return one tensor for each spec.

    In a traced function it runs in each replay, in the order of all effects.
    """
    inputs = [convert_to_tensor(x) for x in inputs]
    refuse_mapped(kind, inputs)
    return perform_effect(kind, call, inputs, attributes, specs)


def refuse_mapped(who, tensors):
    """Raise ``MappingError`` if a tensor is batched by `vectorized_map`."""
    for x in tensors:
        if type(x) is BatchedTensor:
            raise MappingError(
                f"{who} cannot be vectorized: compute the Jacobian with "
                "experimental_use_pfor=False, or use map_fn instead of vectorized_map"
            )
