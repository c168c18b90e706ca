"""Ops that process strings one by one, and their loops over the entries of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from tapewright.core.op_definition.traits import ElementwiseTraits
from tapewright.core.rules import elementwise
from tapewright.core.tensor import Tensor
from tapewright.core.text import make_text
from tapewright.core.typing import Array, Kernel, Op, P


def string_op(
    **traits: Unpack[ElementwiseTraits],
) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator for `elementwise` ops of strings; the inputs may have different dtypes."""
    own = ElementwiseTraits(kinds="O", no_gradient=True, new_memory=True, cost=(0, 0))
    return elementwise(**own | traits)


def map_text(function: Callable[[bytes], bytes], texts: Array) -> Array:
    """Map ``function`` from string to string over the entries of an array."""
    return make_text([function(text) for text in texts.ravel().tolist()], texts.shape)


def map_numbers(function: Callable[[bytes], Any], texts: Array, dtype: Any) -> Array:
    """Map ``function`` from string to number over the entries of an array."""
    numbers = [function(text) for text in texts.ravel().tolist()]
    with np.errstate(over="ignore"):  # numbers that are infinite in float32
        return np.array(numbers, dtype).reshape(texts.shape)
