"""`Input`: the entry point of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.dtypes import as_dtype
from tapewright.core.messages.argument_validation import truth
from tapewright.core.settings.floatx import floatx
from tapewright.core.shapes.symbolic_shape import static_shapes

from .layer import Layer
from .symbolic_tensor import KerasTensor, Node

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike

    from .layer_types import RegularizedLayerOptions

__all__ = ["Input", "InputLayer"]


class InputLayer(Layer):
    """Layer of an `Input`: a placeholder for the data passed to a model.

    Pass the layer to a `Sequential`, or its `output` to other layers.

    Args:
        shape: Shape of one example, without the batch axis; None for sizes that vary.
        batch_size: Batch size, or None if it varies.
        dtype: Dtype of the input, `floatx` by default.
        sparse: If True, the model receives a `SparseTensor`, which `Dense` multiplies.
        ragged: Must be False: ragged inputs are not supported.
        batch_shape: Shape with the batch axis, instead of ``shape`` and ``batch_size``.
        input_tensor: Symbolic tensor to use as the input, such as the output of a
            layer.
        optional: If True, the model accepts None for this input.
        name: Name of the input, unique by default; its key if `fit` gets a dict.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Raises:
        ValueError: If neither ``shape`` nor ``batch_shape`` is given.

    Example:
        >>> keras.layers.InputLayer((3,), name="features").output.shape
        (None, 3)
    """

    def __init__(
        self,
        shape: Sequence[int | None] | None = None,
        batch_size: int | None = None,
        dtype: DTypeLike | None = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        batch_shape: Sequence[int | None] | None = None,
        input_tensor: Any = None,
        optional: bool = False,
        name: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        if ragged:
            raise ValueError(
                f"Input: ragged must be False, got {ragged!r}: ragged inputs are not "
                "supported; pad them, as by RaggedTensor.to_tensor"
            )
        super().__init__(name=name, **kwargs)
        if input_tensor is not None:
            given = shape, batch_size, batch_shape, dtype
            batch_shape, dtype = _of_tensor(input_tensor, *given)
        elif batch_shape is not None:
            for what, value in (("shape", shape), ("batch_size", batch_size)):
                if value is not None:
                    raise ValueError(
                        f"Input: pass {what} or batch_shape, not both; got {what}="
                        f"{value!r} and batch_shape={batch_shape!r}"
                    )
        if batch_shape is None:
            if self._tw_given_shape is not None:
                batch_shape = self._tw_given_shape
            elif shape is None:
                raise ValueError(
                    "Input: pass shape, without the batch axis: Input(shape=(32,)), "
                    "or batch_shape, with it"
                )
            else:
                batch_shape = (batch_size, *_shape("shape", shape))
        self.batch_shape: tuple[int | None, ...] = _shape("batch_shape", batch_shape)
        self.optional = optional
        self.sparse = sparse is not None and truth("Input", "sparse", sparse)
        self.dtype_policy = dtype or floatx()
        self.built = True
        tensor = input_tensor
        if tensor is None:
            tensor = KerasTensor(
                self.batch_shape, self.dtype, sparse=self.sparse, name=self.name
            )
        self._tw_output_shape = self.batch_shape
        Node(self, (), {}, tensor)

    def call(self, inputs: Tensor) -> Tensor:
        return inputs

    def get_config(self) -> dict[str, Any]:
        """Return a dict of the shape with the batch axis, the dtype and the name."""
        return {
            "batch_shape": self.batch_shape and list(self.batch_shape),
            "dtype": self.dtype,
            "name": self.name,
            **({"optional": True} if self.optional else {}),
            **({"sparse": True} if self.sparse else {}),
        }


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: Sequence[int | None] | None = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> Tensor:
    """Return a symbolic tensor, the input of a model: ``Model(inputs, outputs)``.

    Args:
        shape: Shape of one example, without the batch axis; None for sizes that vary.
        batch_size: Batch size, or None if it varies.
        dtype: Dtype of the input, `floatx` by default.
        sparse: If True, the model receives a `SparseTensor`, which `Dense` multiplies.
        ragged: Must be False: ragged inputs are not supported.
        batch_shape: Shape with the batch axis, instead of ``shape`` and ``batch_size``.
        name: Name of the input, unique by default; its key if `fit` gets a dict.
        tensor: Symbolic tensor to use as the input, such as the output of a layer.
        optional: If True, the model accepts None for this input.

    Shapes:
        The result is ``[batch_size, *shape]``.

    Raises:
        ValueError: If no shape is given, if the shape is an integer, or if both
            ``shape`` and ``batch_shape`` are given.

    Example:
        >>> from tapewright.layers import Dense, Input
        >>> x = Input((3,))
        >>> Dense(2)(x).shape
        (None, 2)
    """
    layer = InputLayer(
        shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name
    )
    return layer.output


def _of_tensor(tensor, shape, batch_size, batch_shape, dtype):
    """Return shape and dtype of a symbolic tensor; check the arguments against them."""
    if type(tensor) is not KerasTensor:
        raise ValueError(
            "Input: tensor must be symbolic, such as Input(...) or the output of "
            f"layers called on it, got {type(tensor).__name__}"
        )
    own = tuple(tensor.shape), tensor.dtype
    batch = own[0][:1] if batch_size is None else (batch_size,)
    given = (
        batch + (own[0][1:] if shape is None else tuple(shape)),
        own[0] if batch_shape is None else tuple(batch_shape),
        own[1] if dtype is None else as_dtype(dtype),
    )
    if given != (own[0], *own):
        raise ValueError(
            "Input: shape, batch_size, batch_shape and dtype must match the tensor, of "
            f"shape {own[0]} and dtype {own[1].name}; got shape {shape}, batch_size "
            f"{batch_size}, batch_shape {batch_shape} and dtype {dtype}; omit them"
        )
    return own


def _shape(name, shape):
    if isinstance(shape, int):
        raise ValueError(
            f"Input: {name} must be a tuple, ({shape},) for vectors of {shape}; got "
            f"{shape}"
        )
    sizes = tuple(static_shapes(shape))
    if not all([n is None or (hasattr(n, "__index__") and n >= 0) for n in sizes]):
        raise ValueError(
            f"Input: {name} must contain integers from 0, or None for unknown sizes; got "
            f"{shape!r}"
        )
    return tuple([n if n is None else int(n) for n in sizes])
