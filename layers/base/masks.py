"""Masks passed from layer to layer: which entries, usually time steps, are valid.

A tensor carries its mask as ``_keras_mask``, as in Keras. `in_use` returns whether any
tensor of this process ever had one: if not, layers need not look.
"""

import warnings

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.tensor import is_composite
from tapewright.ops.array.conversion import cast, identity

_seen = False


def in_use(inputs=None):
    """Return whether a mask was ever attached, also by hand to one of these inputs."""
    global _seen
    if not _seen:
        tensors = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        _seen = any([getattr(x, "_keras_mask", None) is not None for x in tensors])
    return _seen


def mask_of(value):
    """Return the mask of a tensor, or None; for a nest, return a nest of masks."""
    if is_nested(value):
        return map_structure(mask_of, value)
    if hasattr(value, "mask_spec"):  # of a `KerasTensor`: the later tensors carry it
        return None
    return getattr(value, "_keras_mask", None)


def attach(outputs, masks):
    """Attach masks to the tensors at the same positions in ``outputs``.

    A tensor that already has a mask keeps it; a mask of None is not attached.
    """
    global _seen
    masks = flatten(masks)
    for tensor, mask in zip(flatten(outputs), masks):
        if mask is not None and mask_of(tensor) is None:
            if is_composite(tensor):
                raise TypeError(
                    f"a {type(tensor).__name__} cannot have a mask; make the inputs dense, "
                    "or leave out mask_zero and Masking"
                )
            _seen = True
            tensor._keras_mask = mask


def cast_masked(tensor, dtype):
    """Cast a tensor to another dtype, and keep its mask."""
    converted = cast(tensor, dtype)
    if in_use():
        attach(converted, mask_of(tensor))
    return converted


def masked(tensor, mask):
    """Return a copy of the tensor with this mask; the tensor itself stays as it is."""
    if mask is None or mask is mask_of(tensor):
        return tensor
    twin = identity(tensor)
    attach(twin, mask)
    return twin


def fill_arguments(layer, inputs, args, kwargs):
    """Return the mask of the first input; fill the mask arguments of ``layer.call``."""
    signature = layer._tw_signature
    if signature.masks:
        given = signature.given(inputs, args, kwargs)
        for name, source in signature.masks.items():
            if given.get(name) is None and given.get(source) is not None:
                mask = mask_of(given[source])
                if any([m is not None for m in flatten(mask)]):
                    if name in given and name not in kwargs:
                        continue  # None was given by position
                    kwargs[name] = mask
    mask = kwargs.get("mask")
    if mask is not None:
        if any([m is not None for m in flatten(mask)]):
            kwargs["mask"] = mask = layer._tw_converted(mask)
        return mask
    mask = mask_of(inputs)
    return None if all([m is None for m in flatten(mask)]) else mask


def pass_on(layer, inputs, mask, outputs):
    """Attach the mask of the inputs of a call to its outputs, or warn that it is lost."""
    if not layer.supports_masking:
        warnings.warn(
            f"{layer._tw_title} was passed an input with a mask attached to it, but does "
            "not support masking: later layers will not see the mask. Set "
            "supports_masking = True, or define compute_mask",
            stacklevel=user_stacklevel(),
        )
    elif any([mask_of(x) is None for x in flatten(outputs)]):
        attach(outputs, layer.compute_mask(inputs, mask))
