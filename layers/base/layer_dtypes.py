"""`LayerDtypes`: the dtype policy of a layer, and the dtypes in which `call` reads.

Inputs are converted to tensors of the compute dtype before `call`, and weights are cast to
it where `call` reads them (`autocast`).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.dtypes import as_dtype, float32, kind_of
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.state.autocast import autocast, autocast_dtype
from tapewright.core.tensor import convert_to_tensor, is_composite, is_tensor
from tapewright.ops.array.conversion import cast

from .. import dtype_policies
from .masks import cast_masked

if TYPE_CHECKING:
    from ..dtype_policies import DTypePolicy
    from .layer_types import DTypePolicyLike


class LayerDtypes:
    """Mixin of `Layer`: its dtypes, the conversion of inputs, and autocast."""

    path: Any
    autocast: bool = True
    _tw_casts_inputs = True  # if autocast does; False leaves it to the layers inside
    _tw_policy: Any = None
    _tw_by_path = False  # whether the policy is a map
    _tw_compute_dtype = _tw_variable_dtype = float32
    # Whether any layer of this process ever had two dtypes, or a map of policies.
    _tw_uses_mixed_precision = False

    @property
    def dtype_policy(self) -> DTypePolicy:
        """Policy with the dtypes of the computation and of the weights; can be set.

        Existing weights keep their dtype.
        """
        return self._tw_policy

    @dtype_policy.setter
    def dtype_policy(self, value: DTypePolicyLike) -> None:
        self._tw_policy = policy = dtype_policies.get(value)
        self._tw_by_path = isinstance(policy, dtype_policies.DTypePolicyMap)
        self._tw_find_dtypes()

    def _tw_find_dtypes(self):
        """Look up the dtypes in the policy, which may be a map of policies by path."""
        policy = self._tw_policy[self.path] if self._tw_by_path else self._tw_policy
        self._tw_compute_dtype = as_dtype(policy.compute_dtype)
        self._tw_variable_dtype = as_dtype(policy.variable_dtype)
        if self._tw_by_path or self._tw_compute_dtype is not self._tw_variable_dtype:
            LayerDtypes._tw_uses_mixed_precision = True

    @property
    def variable_dtype(self) -> str:
        """Name of the dtype of the weights."""
        return self._tw_variable_dtype.name

    @property
    def compute_dtype(self) -> str:
        """Name of the compute dtype, to which floating-point inputs are cast."""
        return self._tw_compute_dtype.name

    # One property each: an error names the last attribute that a property became.
    dtype: property = property(variable_dtype.fget)
    input_dtype: property = property(compute_dtype.fget)

    # --- inputs

    def _tw_converted(self, inputs):
        """Convert inputs to tensors; cast floating-point inputs to the compute dtype."""
        if inputs is None:
            return None
        own = self._tw_compute_dtype
        casts = self.autocast and self._tw_casts_inputs and own.is_floating
        if is_nested(inputs):
            if any(getattr(leaf, "ndim", 0) for leaf in flatten(inputs)):
                return map_structure(self._tw_converted, inputs)
        elif is_composite(inputs):
            return cast(inputs, own) if casts and inputs.dtype.is_floating else inputs
        elif not is_tensor(inputs):
            is_array = isinstance(getattr(inputs, "dtype", None), np.dtype)
            array = inputs if is_array else np.asarray(inputs)
            if casts and kind_of(array.dtype) == "f":
                return convert_to_tensor(array, own)
        tensor = convert_to_tensor(inputs)
        fits = tensor.dtype is own or not tensor.dtype.is_floating
        return cast_masked(tensor, own) if casts and not fits else tensor

    def _tw_as_own_dtype(self, tensor):
        own = self._tw_compute_dtype
        if tensor.dtype is own or not own.is_floating:
            return tensor
        return cast(tensor, own)

    def _tw_converted_if_array(self, value):
        if is_tensor(value) or (getattr(value, "ndim", 0) and hasattr(value, "dtype")):
            return self._tw_converted(value)
        if is_nested(value) and any([is_tensor(leaf) for leaf in flatten(value)]):
            return map_structure(self._tw_converted_if_array, value)
        return value

    # --- reads of variables

    def _tw_reads_in_another_dtype(self):
        """Return whether `call` may have to change the dtype of variable reads."""
        is_mixed = self._tw_compute_dtype is not self._tw_variable_dtype
        return is_mixed or autocast_dtype() is not None

    def _tw_autocast(self):
        """Return the context in which `call` reads variables in the compute dtype.

        They keep their own dtype in a layer whose compute dtype is not floating-point,
        and in one without autocast inside another layer, both as in Keras.
        """
        if not self._tw_reads_in_another_dtype():
            return nullcontext()
        dtype = self._tw_compute_dtype
        casts = dtype.is_floating and (self.autocast or autocast_dtype() is None)
        return autocast(dtype if casts else None)
