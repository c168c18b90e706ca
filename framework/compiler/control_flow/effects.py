"""Python that runs in each call: at once in eager mode, in its place in a replay."""

import numpy as np

from tapewright.autodiff.batching import BatchedTensor
from tapewright.core import devices
from tapewright.core.errors import MappingError
from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import convert_to_tensor, new_tensor

__all__ = [
    "host_effect",
    "lasting_effect",
    "made_by",
    "maker_of",
    "refuse_mapped",
]

_MAKERS = {}  # kind -> the function of plain values that makes the call of an effect
maker_of = _MAKERS.get


def made_by(kind):
    """Register ``make(**attributes)``, which makes the call of effects of this kind.

    Attributes are plain values: with them an effect can be written into a file, and made
    again from there.
    """

    def register(make):
        _MAKERS[kind] = make
        return make

    return register


def lasting_effect(kind, inputs, **attributes):
    """Perform a `host_effect` without results, of a kind that attributes describe."""
    host_effect(kind, _MAKERS[kind](**attributes), inputs, attributes=attributes)


def host_effect(kind, call, inputs=(), specs=(), attributes=None):
    """Run ``call`` on the arrays of ``inputs``; return one tensor for each spec.

    In a traced function it runs in each replay, in the order of all effects.
    """
    inputs = [convert_to_tensor(x) for x in inputs]
    refuse_mapped(kind, inputs)
    tracer = active_tracer()
    if tracer is not None:
        return tracer.effect(kind, call, inputs, attributes, specs)
    arrays = call(*[np.asarray(devices.to_numpy(x.array)) for x in inputs])
    return tuple([new_tensor(a) for a in arrays or ()])


def refuse_mapped(who, tensors):
    """Raise ``MappingError`` if a tensor stands for many values at once."""
    for x in tensors:
        if type(x) is BatchedTensor:
            raise MappingError(
                f"{who} cannot be applied to many values at once: take a Jacobian with "
                "experimental_use_pfor=False, or map with map_fn instead of vectorized_map"
            )
