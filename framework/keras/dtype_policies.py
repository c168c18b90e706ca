"""`keras.dtype_policies`: dtypes of computations and of weights."""

from tapewright.layers.dtype_policies import (
    DTypePolicy,
    DTypePolicyMap,
    FloatDTypePolicy,
    deserialize,
    get,
    serialize,
)

__all__ = [
    "DTypePolicy",
    "DTypePolicyMap",
    "FloatDTypePolicy",
    "deserialize",
    "get",
    "serialize",
]
