"""Wrapper layers: `TimeDistributed`, `Bidirectional`, `SpectralNormalization`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from tapewright.compiler.control_flow.map_fn import map_fn
from tapewright.core.interpreters import active_tracer, converted
from tapewright.core.messages.argument_validation import whole
from tapewright.core.nest import flatten, is_nested
from tapewright.ops.array.conversion import cast, stop_gradient
from tapewright.ops.array.joining import concat, reverse, stack
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.comparison import equal, where
from tapewright.ops.math.reduction import reduce_all
from tapewright.ops.nn.normalization import l2_normalize
from tapewright.serialization.object_config import deserialize, serialize

from . import initializers
from .base.layer import InputSpec, Layer, call_context
from .rnn.rnn import time_first

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape, TensorLike
    from tapewright.core.variable import Variable

    from .base.layer_types import RegularizedLayerOptions

__all__ = [
    "Bidirectional",
    "SpectralNormalization",
    "TimeDistributed",
    "Wrapper",
]


class Wrapper(Layer):
    """Base class of layers that wrap another layer, their attribute ``layer``.

    Args:
        layer: Layer to wrap.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Raises:
        ValueError: If ``layer`` is not a `Layer`.
    """

    def __init__(self, layer: Layer, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.layer: Layer = _checked(type(self).__name__, "layer", layer)

    def build(self, input_shape: Any = None) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "layer": deserialize("layer", config["layer"])})


def _checked(who, name, layer):
    if not isinstance(layer, Layer):
        raise ValueError(f"{who}: {name} must be a Layer, got {layer!r}")
    return layer


class TimeDistributed(Wrapper):
    """Apply a layer to each time step of sequences.

    All steps share the weights of ``layer``. The arguments are listed in `Wrapper`.

    Shapes:
        Inputs ``[batch, time, ...]``, outputs ``[batch, time, ...]``; the inner layer
        is called with ``[batch, ...]``. A ``mask [batch, time, ...]`` is passed on step
        by step if the inner layer accepts one.

    Raises:
        ValueError: If ``layer`` is not a `Layer`, or the inputs have a rank below 3.

    Example:
        >>> from tapewright.layers import Dense, TimeDistributed
        >>> tuple(TimeDistributed(Dense(4))([[[1.0, 2.0], [3.0, 4.0]]]).shape)
        (1, 2, 4)
    """

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        super().build(self._tw_of_step(input_shape))

    def _tw_of_step(self, shape):
        if len(shape) < 3:
            raise ValueError(
                f"{self._tw_title}: inputs must be [batch, time, ...], with at least three "
                f"axes, got shape {tuple(shape)}"
            )
        return (shape[0], *shape[2:])

    def compute_output_shape(self, input_shape: Any) -> Any:
        batch, *rest = self.layer.compute_output_shape(self._tw_of_step(input_shape))
        return (batch, input_shape[1], *rest)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        self._tw_of_step(inputs.shape)
        rows = time_first(inputs)
        if mask is not None:
            self._tw_check_mask(inputs, mask)
            if "mask" in self.layer._tw_signature.masks:
                rows = (rows, time_first(mask))
        options = {}
        if self.layer._tw_signature.takes_training:
            options["training"] = training

        # With a policy of its own, the layer casts its inputs and weights.
        same = self.layer.dtype_policy == self.dtype_policy
        call = converted(self.layer.call) if same else self.layer

        def step(row):
            if is_nested(row):
                return call(row[0], mask=row[1], **options)
            return call(row, **options)

        return time_first(_each(step, rows))

    def _tw_check_mask(self, inputs, mask):
        shape, own = tuple(mask.shape), tuple(inputs.shape)
        fits = len(shape) >= 2
        for n, size in zip(shape[:2], own):
            fits = fits and (n is None or size is None or n == size)
        if not fits:
            raise ValueError(
                f"{self._tw_title}: the mask must be [batch, time, ...] like the "
                f"inputs, with shape {own}, got shape {shape}"
            )


def _each(step, rows):
    """Apply ``step`` to each row along the first axis, and stack the results."""
    if active_tracer() is not None:
        return map_fn(step, rows)
    if not is_nested(rows):
        return stack([step(row) for row in rows])
    return stack([step(row) for row in zip(*rows)])


_MERGE_MODES = ("sum", "mul", "ave", "concat", None)


class Bidirectional(Layer):
    """Bidirectional wrapper: run a recurrent layer forwards and backwards, and merge.

    The layer works with copies created from the configs. Outputs of the backward layer
    are in the order of the inputs. With ``return_state`` the outputs are followed by
    the states of the forward layer, then of the backward layer; ``initial_state`` has
    the same order.

    Args:
        layer: Recurrent layer, such as `RNN`, `LSTM` or `GRU`.
        merge_mode: "concat", "sum", "mul", "ave", or None for a pair of outputs.
        weights: Arrays of initial weights: first of ``layer``, then of
            ``backward_layer``; None to initialize them.
        backward_layer: Layer with ``go_backwards=True``; a copy of ``layer`` by
            default.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, features]``, outputs ``[batch, 2 * units]`` ("concat") or
        ``[batch, units]``, with ``time`` as second axis if ``layer`` has
        ``return_sequences``.

    Raises:
        ValueError: If ``layer`` is not recurrent, ``merge_mode`` is unknown, or the
            options of ``backward_layer`` do not match ``layer``.

    Example:
        >>> from tapewright.layers import LSTM, Bidirectional
        >>> tuple(Bidirectional(LSTM(4))([[[1.0, 2.0], [3.0, 4.0]]]).shape)
        (1, 8)
    """

    supports_masking = True

    def __init__(
        self,
        layer: Layer,
        merge_mode: str = "concat",
        weights: Sequence[TensorLike] | None = None,
        backward_layer: Layer | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        who = type(self).__name__
        _checked(who, "layer", layer)
        if backward_layer is not None:
            _checked(who, "backward_layer", backward_layer)
        if not hasattr(layer, "go_backwards"):
            raise ValueError(
                f"{who}: layer must be recurrent, with go_backwards, "
                f"return_sequences and return_state, got {layer!r}"
            )
        if merge_mode not in _MERGE_MODES:
            raise ValueError(
                f"{who}: merge_mode must be one of {_MERGE_MODES}, got {merge_mode!r}"
            )
        super().__init__(**kwargs)
        self.forward_layer: Any = _copy(layer, "forward")
        self.backward_layer: Any = backward_layer
        if backward_layer is None:
            self.backward_layer = _copy(layer, "backward", go_backwards=True)
        self._tw_check_that_they_fit()
        for each in (self.forward_layer, self.backward_layer):
            if hasattr(each, "zero_output_for_mask"):
                each.zero_output_for_mask = each.return_sequences
        self.merge_mode = merge_mode
        self.stateful = layer.stateful
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.input_spec: InputSpec | Sequence[Any] | dict[str, Any] | None = (
            layer.input_spec
        )
        self._tw_start = weights

    @property
    def layer(self) -> Layer:
        """Forward layer."""
        return self.forward_layer

    def _tw_check_that_they_fit(self):
        forward, backward = self.forward_layer, self.backward_layer
        if forward.go_backwards == backward.go_backwards:
            raise ValueError(
                f"{self._tw_title}: exactly one of the two layers must have "
                f"go_backwards=True, got {forward.go_backwards} for both"
            )
        for name in ("stateful", "return_sequences", "return_state"):
            values = getattr(forward, name), getattr(backward, name)
            if values[0] != values[1]:
                raise ValueError(
                    f"{self._tw_title}: both layers must have the same {name}, got "
                    f"{values[0]} and {values[1]}"
                )

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape)
        if self._tw_start is not None:
            start, self._tw_start = self._tw_start, None
            self.set_weights(start)

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool | None = None,
    ) -> Any:
        half = 0 if initial_state is None else len(initial_state) // 2
        parts = [initial_state[:half], initial_state[half:]] if half else [None, None]
        with call_context(training):
            results = [
                layer(sequences, initial_state=part, mask=mask)
                for layer, part in zip((self.forward_layer, self.backward_layer), parts)
            ]
        states = ()
        if self.return_state:
            states = tuple(results[0][1:] + results[1][1:])
            results = [each[0] for each in results]
        forward, backward = map(self._tw_as_own_dtype, results)
        if self.return_sequences:
            backward = reverse(backward, [1])
        outputs = self._tw_merged(forward, backward)
        if not self.return_state:
            return outputs
        return (*outputs, *states) if self.merge_mode is None else (outputs, *states)

    def _tw_merged(self, forward, backward):
        if self.merge_mode == "concat":
            return concat([forward, backward], len(forward.shape) - 1)
        if self.merge_mode == "mul":
            return forward * backward
        if self.merge_mode is None:
            return forward, backward
        total = forward + backward
        return total * 0.5 if self.merge_mode == "ave" else total

    def __children__(self) -> Any:
        children = super().__children__()
        return children | {"states": self.states or []} if self.stateful else children

    @property
    def states(self) -> Any:
        """States of both layers if ``stateful``, otherwise None."""
        forward, backward = self.forward_layer.states, self.backward_layer.states
        return (*forward, *backward) if forward and backward else None

    def reset_state(self) -> None:
        """Set the states of ``stateful`` layers to zero."""
        if not self.stateful:
            raise AttributeError(f"{self._tw_title}: only stateful layers keep states")
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    reset_states = reset_state

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        mask = None if mask is None else flatten(mask)[0]
        mask = mask if self.return_sequences else None
        masks = (mask, mask) if self.merge_mode is None else (mask,)
        if self.return_state:
            count = len(self.forward_layer.state_size)
            return *masks, *[None] * (2 * count)
        return masks if self.merge_mode is None else mask

    def compute_output_shape(
        self, sequences_shape: Any, initial_state_shape: Any = None
    ) -> Any:
        shape, states = self.forward_layer.compute_output_shape(sequences_shape), ()
        if self.return_state:
            shape, *states = shape
        if self.merge_mode == "concat":
            shape = (*shape[:-1], 2 * shape[-1])
        if self.merge_mode is None:
            return shape, shape, *states, *states
        return (shape, *states, *states) if self.return_state else shape

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("weights", None)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        config = dict(config)
        for name in ("layer", "backward_layer"):
            if config.get(name) is not None:
                config[name] = deserialize("layer", config[name])
        return cls(**config)


def _copy(layer, prefix, **changes):
    """Create a layer from the same config, with the name ``prefix_name``."""
    config = serialize(layer)
    name = f"{prefix}_{layer.name.removeprefix(f'{prefix}_')}"
    config["config"] = {**config["config"], "name": name, **changes}
    return deserialize("layer", config)


class SpectralNormalization(Wrapper):
    """Spectral normalization: divide a kernel by its largest singular value.

        v <- u @ K^T / |u @ K^T|,  u <- v @ K / |v @ K|,  K <- K / (v @ K @ u^T)

    ``K`` is the ``kernel`` (or ``embeddings``) as a matrix ``[..., outputs]``. Each
    call in training updates it in place. As in Keras, no gradient flows through the
    division.

    Args:
        layer: Layer with a ``kernel`` or ``embeddings``.
        power_iterations: Number of power iterations (updates of ``v`` and ``u``) per
            call.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs as for ``layer``; weight ``vector_u [1, outputs]``, not
        trainable.

    Raises:
        ValueError: If ``layer`` has neither a kernel nor embeddings.

    References:
        Miyato et al., "Spectral normalization for generative adversarial networks"
        (2018).

    Example:
        >>> dense = keras.layers.Dense(2, kernel_initializer="ones")
        >>> layer = keras.layers.SpectralNormalization(dense, power_iterations=5)
        >>> _ = layer([[1.0, 1.0]], training=True)
        >>> layer.kernel.numpy().round(3)
        array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
    """

    def __init__(
        self,
        layer: Layer,
        power_iterations: int = 1,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(layer, **kwargs)
        self.power_iterations: int = whole(
            self, "power_iterations", power_iterations, most=1000
        )

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        self.input_spec: InputSpec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        self.kernel: Any = self._tw_kernel_of_layer()
        self.vector_u: Variable = self.add_weight(
            name="vector_u",
            shape=(1, self.kernel.shape[-1]),
            initializer=initializers.TruncatedNormal(stddev=0.02),
            trainable=False,
            dtype=self.kernel.dtype,
        )

    def call(self, inputs: Tensor, training: bool | None = False) -> Any:
        if training:
            self._tw_normalize()
        outputs = self.layer(inputs)
        return cast(outputs, inputs.dtype) if inputs.dtype.is_floating else outputs

    def _tw_kernel_of_layer(self):
        for name in ("kernel", "embeddings"):
            if hasattr(self.layer, name):
                return getattr(self.layer, name)
        raise ValueError(
            f"{self._tw_title}: layer must have a kernel or embeddings, got {self.layer!r}"
        )

    def _tw_normalize(self):
        kernel, u = stop_gradient(self.kernel), stop_gradient(self.vector_u)
        matrix = reshape(kernel, (-1, kernel.shape[-1]))
        for _ in range(self.power_iterations):
            v = l2_normalize(matmul(u, matrix, transpose_b=True), epsilon=1e-14)
            u = l2_normalize(matmul(v, matrix), epsilon=1e-14)
        norm = matmul(matmul(v, matrix), u, transpose_b=True)
        zero = reduce_all(equal(kernel, 0.0))  # has no direction, and stays as it is
        self.vector_u.assign(where(zero, self.vector_u, u))
        self.kernel.assign(kernel / reshape(where(zero, 1.0, norm), ()))

    def compute_output_shape(self, input_shape: Shape) -> Any:
        return self.layer.compute_output_shape(input_shape)
