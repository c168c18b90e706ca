"""Initializers: initial values of weights, with Keras' names and defaults.

An initializer is called with a shape and a dtype. Random initializers draw from the
global generator of ``tapewright.random``; with a ``seed``, from a generator that
restarts at every call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tapewright.core.dtypes import as_dtype, float64
from tapewright.core.hardware.devices import check_fits
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.settings.floatx import default_float
from tapewright.core.tensor import convert_to_tensor, is_tensor
from tapewright.ops.array import creation
from tapewright.ops.array.conversion import cast
from tapewright.ops.random import sampling
from tapewright.ops.random.generators import start_of
from tapewright.serialization.configured import Configured
from tapewright.serialization.object_config import ObjectFamily
from tapewright.serialization.registry import register

from .base.seeds import checked_seed

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike

    from .base.layer_types import SeedLike

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "IdentityInitializer",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "OrthogonalInitializer",
    "RandomNormal",
    "RandomUniform",
    "STFT",
    "STFTInitializer",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "deserialize",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "serialize",
    "stft",
    "truncated_normal",
    "variance_scaling",
    "zeros",
]


class Initializer(Configured):
    """Base class of initializers: subclasses define ``__call__(shape, dtype=None)``.

    Example:
        >>> class Tens(keras.initializers.Initializer):
        ...     def __call__(self, shape, dtype=None):
        ...         return tw.fill(shape, 10.0)
        >>> Tens()([2]).numpy()
        array([10., 10.], dtype=float32)
    """

    _tw_kind: str = "initializer"

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__")

    def clone(self) -> Self:
        """Return a new initializer with the same config."""
        return type(self).from_config(self.get_config())


class _Initializers(ObjectFamily):
    def get(self, identifier: Any) -> Any:
        """Return the initializer for a name, class, config or callable.

        Args:
            identifier: Name, class, config or callable; None for None; or an array or
                tensor, for a function that returns its values for its own shape.

        Raises:
            ValueError: If the name is unknown; the message lists the known names.
            TypeError: If ``identifier`` is of another type.

        Example:
            >>> keras.initializers.get("zeros")([2]).numpy()
            array([0., 0.], dtype=float32)
        """
        if is_tensor(identifier) or isinstance(identifier, (np.ndarray, np.generic)):
            return _giving(identifier)
        return super().get(identifier)


_family = _Initializers("initializer")
get, serialize, deserialize = _family.get, _family.serialize, _family.deserialize


def _giving(value):
    def initialize(shape, dtype=None):
        if tuple(shape) != tuple(value.shape):
            raise ValueError(
                f"initializer: an array of shape {tuple(value.shape)} cannot "
                f"initialize a weight of shape {tuple(shape)}"
            )
        return cast(value, dtype or default_float())

    return initialize


# ------------------------------------------------------------------------ constants


class Zeros(Initializer):
    """Initialize with zeros.

    Example:
        >>> keras.initializers.Zeros()([2]).numpy()
        array([0., 0.], dtype=float32)
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return creation.zeros(shape, dtype or default_float())


class Ones(Initializer):
    """Initialize with ones.

    Example:
        >>> keras.initializers.Ones()([2]).numpy()
        array([1., 1.], dtype=float32)
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return creation.ones(shape, dtype or default_float())


class Constant(Initializer):
    """Initialize with a constant value.

    Args:
        value: Number, or array that broadcasts to the shape of the weight.

    Example:
        >>> keras.initializers.Constant(3.0)([2]).numpy()
        array([3., 3.], dtype=float32)
    """

    def __init__(self, value: TensorLike = 0.0):
        self.value = value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        dtype = as_dtype(dtype or default_float())
        value = np.asarray(self.value).astype(dtype.as_numpy_dtype)
        if value.ndim:
            return convert_to_tensor(np.broadcast_to(value, shape))
        return creation.fill(shape, value[()])


class Identity(Initializer):
    """Initialize with the identity matrix, times ``gain``.

    Args:
        gain: Value on the diagonal.

    Raises:
        ValueError: If it is called with a shape that does not have two axes.

    Example:
        >>> keras.initializers.Identity()([2, 2]).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """

    def __init__(self, gain: float = 1.0):
        self.gain = gain

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        if len(shape) != 2:
            raise ValueError(f"Identity: shape must have two axes, got {shape}")
        return creation.eye(*shape, dtype=dtype or default_float()) * self.gain


class STFT(Initializer):
    """Initialize a convolution kernel that computes a short-time Fourier transform.

        kernel[t, 0, k] = window[t] * cos(2 pi t k / n) / scale    ("imag": -sin)

    with n = 2 (bins - 1).

    Args:
        side: "real" or "imag", for the real or the imaginary part.
        window: Name of a window function such as "hann", array of ``frame_length``
            numbers, or None for no window.
        scaling: "density" to divide by the norm of the window, "spectrum" to divide by
            the sum of its magnitudes, or None.
        periodic: If True, a window given by name is periodic instead of symmetric.

    Shapes:
        ``[frame_length, 1, bins]``.

    Raises:
        ValueError: If ``side``, ``scaling`` or ``window`` is invalid.

    Example:
        >>> initializer = keras.initializers.STFT("real", None, None)
        >>> initializer([4, 1, 3]).numpy().round(2)[:, 0] + 0.0
        array([[ 1.,  1.,  1.],
               [ 1.,  0., -1.],
               [ 1., -1.,  1.],
               [ 1.,  0., -1.]], dtype=float32)
    """

    def __init__(
        self,
        side: str = "real",
        window: TensorLike | None = "hann",
        scaling: str | None = "density",
        periodic: bool = False,
    ):
        self.side: str = one_of(self, "side", side, ("real", "imag"))
        if isinstance(window, str):
            window = one_of(self, "window", window, _WINDOWS)
        self.window = window
        self.scaling = one_of(self, "scaling", scaling, (None, "density", "spectrum"))
        self.periodic = periodic

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        length, _, bins = shape
        check_fits("STFT", (*shape, 2), float64.dtype)  # complex numbers
        time, bin_ = np.arange(length)[:, None, None], np.arange(bins)
        wave = np.exp(-2j * np.pi * time * bin_ / (2 * max(bins - 1, 1)))
        kernel = wave.real if self.side == "real" else wave.imag
        if self.window is not None:
            window = self._tw_window(length)
            scales = {
                "density": np.linalg.norm(window),
                "spectrum": np.abs(window).sum(),
            }
            kernel *= window[:, None, None] / scales.get(self.scaling, 1.0)
        return cast(convert_to_tensor(kernel), _floating(dtype))

    def _tw_window(self, length):
        if not isinstance(self.window, str):
            window = np.asarray(self.window, np.float64)
            if window.shape != (length,):
                raise ValueError(
                    f"STFT: window must be {length} numbers, one per step of the frame, "
                    f"got shape {window.shape}"
                )
            return window
        if length == 1:
            return np.ones(1)
        phase = 2 * np.pi * np.arange(length) / (length - (not self.periodic))
        terms = _WINDOWS[self.window]
        return sum([a * np.cos(i * phase) * (-1) ** i for i, a in enumerate(terms)])


# Windows that are sums of cosines: a[0] - a[1] cos(phase) + a[2] cos(2 phase) - ...
_WINDOWS = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}


# --------------------------------------------------------------------------- random


class _Random(Initializer):
    """Base of random initializers, with a ``seed``."""

    _tw_kind: str = "initializer"

    def __init__(self, seed: SeedLike = None):
        self.seed: SeedLike = checked_seed(self, seed)

    def _tw_draw(self, how, *args):
        if isinstance(self.seed, sampling.Generator):
            return getattr(self.seed, how)(*args)
        source = sampling if self.seed is None else start_of(self.seed)
        return getattr(source, how)(*args)


def _floating(dtype):
    return default_float() if dtype is None else as_dtype(dtype)


class RandomNormal(_Random):
    """Initialize with random numbers from a normal distribution.

    Args:
        mean: Mean of the distribution.
        stddev: Standard deviation of the distribution.
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.

    Example:
        >>> keras.initializers.RandomNormal(stddev=0.1, seed=1)([2, 3]).shape
        TensorShape([2, 3])
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: SeedLike = None):
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return self._tw_draw("normal", shape, self.mean, self.stddev, _floating(dtype))


class RandomUniform(_Random):
    """Initialize with random numbers from a uniform distribution.

    Args:
        minval: Lower bound of the numbers.
        maxval: Upper bound of the numbers.
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.

    Example:
        >>> keras.initializers.RandomUniform(seed=1)([2, 3]).shape
        TensorShape([2, 3])
    """

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: SeedLike = None
    ):
        super().__init__(seed)
        self.minval = minval
        self.maxval = maxval

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return self._tw_draw(
            "uniform", shape, self.minval, self.maxval, _floating(dtype)
        )


class TruncatedNormal(_Random):
    """Initialize with a truncated normal distribution, cut off at two ``stddev``.

    Args:
        mean: Mean of the distribution.
        stddev: Standard deviation before truncation.
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.

    Example:
        >>> w = keras.initializers.TruncatedNormal(stddev=0.1, seed=1)([1000]).numpy()
        >>> bool(abs(w).max() <= 0.2)
        True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: SeedLike = None):
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return self._tw_draw(
            "truncated_normal", shape, self.mean, self.stddev, _floating(dtype)
        )


class Orthogonal(_Random):
    """Initialize with a random orthogonal matrix, times ``gain``.

    The columns are orthonormal, or the rows if there are more columns than rows. All
    axes but the last are flattened.

    Args:
        gain: Factor of the matrix.
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.

    Raises:
        ValueError: If it is called with a shape of fewer than two axes.

    References:
        Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep
        linear neural networks" (2014).

    Example:
        >>> w = keras.initializers.Orthogonal(seed=1)([3, 2]).numpy()
        >>> (w.T @ w).round(3) + 0.0
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """

    def __init__(self, gain: float = 1.0, seed: SeedLike = None):
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        if len(shape) < 2:
            raise ValueError(
                f"Orthogonal: shape must have two axes or more, got {shape}"
            )
        rows, columns = math.prod(shape[:-1]), shape[-1]
        tall = (max(rows, columns), min(rows, columns))
        drawn = self._tw_draw("normal", tall, 0.0, 1.0, float64).numpy()
        q, r = np.linalg.qr(drawn)
        q *= np.sign(np.diag(r))  # makes the distribution uniform
        q = q if rows >= columns else q.T
        return cast(
            convert_to_tensor(self.gain * q.reshape(shape)), dtype or default_float()
        )


# A normal distribution cut off at two deviations has this deviation.
_CUT = 0.87962566103423978

_MODES = ("fan_in", "fan_out", "fan_avg")
_DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")


class VarianceScaling(_Random):
    """Initialize with random numbers of variance ``scale / n``, adapted to the shape.

    Here n is the fan in, the fan out, or their mean. For a shape
    ``[*window, inputs, outputs]``, the fans are inputs and outputs times the size of
    the window.

    Args:
        scale: Scale of the variance, positive.
        mode: Choice of n: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal", "untruncated_normal" or "uniform".
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    Raises:
        ValueError: If ``scale`` is not positive, or ``mode`` or ``distribution`` is
            unknown.

    Example:
        >>> initializer = keras.initializers.VarianceScaling(2.0, mode="fan_out", seed=1)
        >>> initializer([3, 4]).shape
        TensorShape([3, 4])
    """

    _tw_omit_defaults: dict[str, Any] = {"input_axes": None, "output_axes": None}

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: SeedLike = None,
        input_axes: Axes = None,
        output_axes: Axes = None,
    ):
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale must be positive, got {scale!r}")
        distribution = distribution.lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        for name, value, known in (
            ("mode", mode, _MODES),
            ("distribution", distribution, _DISTRIBUTIONS),
        ):
            if value not in known:
                raise ValueError(
                    f"VarianceScaling: {name} must be one of {', '.join(known)}, "
                    f"got {value!r}"
                )
        super().__init__(seed)
        self.scale = scale
        self.mode = mode
        self.distribution: str = distribution
        self.input_axes = input_axes
        self.output_axes = output_axes

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        fan_in, fan_out = _fans(tuple(shape), self.input_axes, self.output_axes)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        variance = self.scale / max(1.0, fans[self.mode])
        dtype = _floating(dtype)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return self._tw_draw("uniform", shape, -limit, limit, dtype)
        if self.distribution == "untruncated_normal":
            return self._tw_draw("normal", shape, 0.0, math.sqrt(variance), dtype)
        return self._tw_draw(
            "truncated_normal", shape, 0.0, math.sqrt(variance) / _CUT, dtype
        )


def _fans(shape, input_axes, output_axes):
    """Return fan in and fan out: the numbers of inputs per output and outputs per input."""
    if input_axes is not None and output_axes is not None:
        return [
            math.prod([shape[a] for a in axes]) for axes in (input_axes, output_axes)
        ]
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class _Named(VarianceScaling):
    """Base of the named special cases of `VarianceScaling`."""

    _tw_kind: str = "initializer"
    _tw_setting: tuple[float, str, str] = (1.0, "fan_in", "truncated_normal")

    def __init__(
        self, seed: SeedLike = None, input_axes: Axes = None, output_axes: Axes = None
    ):
        super().__init__(*self._tw_setting, seed, input_axes, output_axes)


class GlorotUniform(_Named):
    """The Glorot (Xavier) uniform initializer.

    Uniform in ``[-limit, limit]`` with ``limit = sqrt(6 / (fan_in + fan_out))``.

    Args:
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    References:
        Glorot & Bengio, "Understanding the difficulty of training deep feedforward
        neural networks" (2010).

    Example:
        >>> w = keras.initializers.GlorotUniform(seed=1)([2, 4]).numpy()
        >>> bool(abs(w).max() <= 1.0)
        True
    """

    _tw_setting: tuple[float, str, str] = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Named):
    """The Glorot (Xavier) normal initializer.

    Truncated normal with variance ``2 / (fan_in + fan_out)``.

    Args:
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    References:
        Glorot & Bengio, "Understanding the difficulty of training deep feedforward
        neural networks" (2010).

    Example:
        >>> keras.initializers.GlorotNormal(seed=1)([2, 4]).shape
        TensorShape([2, 4])
    """

    _tw_setting: tuple[float, str, str] = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Named):
    """The He (Kaiming) uniform initializer.

    Uniform in ``[-limit, limit]`` with ``limit = sqrt(6 / fan_in)``.

    Args:
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    References:
        He et al., "Delving deep into rectifiers" (2015).

    Example:
        >>> w = keras.initializers.HeUniform(seed=1)([2, 4]).numpy()
        >>> bool(abs(w).max() <= 3.0 ** 0.5)
        True
    """

    _tw_setting: tuple[float, str, str] = (2.0, "fan_in", "uniform")


class HeNormal(_Named):
    """The He (Kaiming) normal initializer.

    Truncated normal with variance ``2 / fan_in``.

    Args:
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    References:
        He et al., "Delving deep into rectifiers" (2015).

    Example:
        >>> keras.initializers.HeNormal(seed=1)([2, 4]).shape
        TensorShape([2, 4])
    """

    _tw_setting: tuple[float, str, str] = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Named):
    """The LeCun uniform initializer.

    Uniform in ``[-limit, limit]`` with ``limit = sqrt(3 / fan_in)``.

    Args:
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    References:
        LeCun et al., "Efficient BackProp" (1998).

    Example:
        >>> w = keras.initializers.LecunUniform(seed=1)([2, 4]).numpy()
        >>> bool(abs(w).max() <= 1.5 ** 0.5)
        True
    """

    _tw_setting: tuple[float, str, str] = (1.0, "fan_in", "uniform")


class LecunNormal(_Named):
    """The LeCun normal initializer.

    Truncated normal with variance ``1 / fan_in``.

    Args:
        seed: Integer seed for the same numbers at every call, a
            `keras.random.SeedGenerator` to continue its stream, or None to draw from
            the global generator.
        input_axes: Axes of the shape whose sizes multiply to the fan in; used only
            together with ``output_axes``.
        output_axes: Axes of the shape whose sizes multiply to the fan out; used only
            together with ``input_axes``.

    References:
        LeCun et al., "Efficient BackProp" (1998).

    Example:
        >>> keras.initializers.LecunNormal(seed=1)([2, 4]).shape
        TensorShape([2, 4])
    """

    _tw_setting: tuple[float, str, str] = (1.0, "fan_in", "truncated_normal")


# --------------------------------------------------------------------- further names

IdentityInitializer, OrthogonalInitializer = Identity, Orthogonal
constant = Constant
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
he_normal = HeNormal
he_uniform = HeUniform
identity = Identity
lecun_normal = LecunNormal
lecun_uniform = LecunUniform
ones = Ones
orthogonal = Orthogonal
random_normal = RandomNormal
random_uniform = RandomUniform
STFTInitializer = stft = STFT
truncated_normal = TruncatedNormal
variance_scaling = VarianceScaling
zeros = Zeros

for _name, _class in (
    ("zero", Zeros),
    ("one", Ones),
    ("normal", RandomNormal),
    ("uniform", RandomUniform),
    ("IdentityInitializer", Identity),
    ("OrthogonalInitializer", Orthogonal),
    ("STFTInitializer", STFT),
):
    register("initializer", _name, _class)
