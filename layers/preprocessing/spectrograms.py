"""Spectrograms of signals: `MelSpectrogram`, `STFTSpectrogram`."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tapewright.core.hardware.devices import check_fits
from tapewright.core.messages.argument_validation import one_of, positive, whole
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.settings.floatx import epsilon
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import concat, pad
from tapewright.ops.array.shape import reshape, transpose
from tapewright.ops.convolution.conv import conv1d
from tapewright.ops.linalg.contraction import tensordot
from tapewright.ops.math.elementwise import abs, log, maximum, pow, sqrt, square
from tapewright.ops.math.reduction import reduce_max
from tapewright.ops.math.trigonometry import atan2
from tapewright.ops.signal.centered_stft import centered_stft

from .. import initializers
from ..base.layer import InputSpec, Layer
from ..base.spatial import checked_format, checked_padding, window_counts

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, Shape, TensorLike

    from ..base.layer_types import RegularizedLayerOptions

__all__ = ["MelSpectrogram", "STFTSpectrogram"]

_MAX_LENGTH = 1 << 17  # of a window: 2.7 seconds at 48 kHz


class MelSpectrogram(Layer):
    """Mel spectrogram of audio signals: power per mel band over time, in decibels.

        outputs = 10 log10(max(mel @ abs(stft(x)) ** mag_exp, min_power) / ref_power)

    Args:
        fft_length: Length of the FFT.
        sequence_stride: Number of samples between the starts of frames.
        sequence_length: Number of samples in a frame; ``fft_length`` by default.
        window: Window function of `keras.ops.stft`: "hann", "hamming", a vector or
            None.
        sampling_rate: Sampling rate of the signal, in hertz.
        num_mel_bins: Number of mel bands.
        min_freq: Lowest frequency of the bands, in hertz.
        max_freq: Highest frequency of the bands, in hertz; half of the sampling rate by
            default.
        power_to_db: If False, omit the logarithm.
        top_db: Dynamic range: outputs more than this below the maximum of all outputs
            are raised to this level.
        mag_exp: Exponent of the magnitudes; 2 for power.
        min_power: Smallest power in the logarithm.
        ref_power: Power of 0 decibels.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time]`` or ``[time]``, outputs
        ``[batch, num_mel_bins, frames]`` or ``[num_mel_bins, frames]``. Computed in
        float32 at least.

    Raises:
        ValueError: If ``sequence_length`` is larger than ``fft_length``, ``min_freq``
            is not below ``max_freq``, or ``window`` is unknown.

    Example:
        >>> options = {"fft_length": 64, "sequence_stride": 16, "num_mel_bins": 8}
        >>> keras.layers.MelSpectrogram(**options)(tw.ones([2, 160])).shape
        TensorShape([2, 8, 11])
    """

    def __init__(
        self,
        fft_length: int = 2048,
        sequence_stride: int = 512,
        sequence_length: int | None = None,
        window: str | TensorLike | None = "hann",
        sampling_rate: int = 16000,
        num_mel_bins: int = 128,
        min_freq: float = 20.0,
        max_freq: float | None = None,
        power_to_db: bool = True,
        top_db: float = 80.0,
        mag_exp: float = 2.0,
        min_power: float = 1e-10,
        ref_power: float = 1.0,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.fft_length: int = whole(self, "fft_length", fft_length, most=_MAX_LENGTH)
        self.sequence_stride: int = whole(self, "sequence_stride", sequence_stride)
        self.sequence_length: int = whole(
            self, "sequence_length", sequence_length or fft_length
        )
        if self.sequence_length > self.fft_length:
            raise ValueError(
                "MelSpectrogram: fft_length must be at least sequence_length, got "
                f"{fft_length} and {sequence_length}"
            )
        self.window: Any = window
        self.sampling_rate: float = positive(self, "sampling_rate", sampling_rate)
        self.num_mel_bins: int = whole(self, "num_mel_bins", num_mel_bins, most=4096)
        self.min_freq: float = min_freq
        self.max_freq: float = max_freq or int(sampling_rate / 2)
        if not 0 <= self.min_freq < self.max_freq:
            raise ValueError(
                "MelSpectrogram: min_freq must be at least 0 and below max_freq, got "
                f"{min_freq} and {self.max_freq}"
            )
        self.power_to_db: bool = bool(power_to_db)
        self.top_db: float = top_db
        self.mag_exp: float = mag_exp
        self.min_power: float = min_power
        self.ref_power: float = ref_power
        self.input_spec: InputSpec = InputSpec(min_ndim=1, max_ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        x = cast(inputs, self._tw_inner_dtype)
        spectra = centered_stft(
            "MelSpectrogram", x, self.sequence_length, self.sequence_stride,
            self.fft_length, self.window,
        )  # fmt: skip
        matrix = self.linear_to_mel_weight_matrix(
            self.num_mel_bins, self.fft_length // 2 + 1, self.sampling_rate,
            self.min_freq, self.max_freq, x.dtype,
        )  # fmt: skip
        powers = tensordot(pow(abs(spectra), self.mag_exp), matrix, 1)
        if self.power_to_db:
            powers = self._tw_decibels(powers)
        axes = (1, 0) if len(powers.shape) == 2 else (0, 2, 1)
        return self._tw_as_own_dtype(transpose(powers, axes))

    @property
    def _tw_inner_dtype(self):
        return "float64" if self.compute_dtype == "float64" else "float32"

    def _tw_decibels(self, powers):
        levels = 10.0 / math.log(10.0) * log(maximum(powers, self.min_power))
        reference = max(math.fabs(self.ref_power), self.min_power)
        levels = levels - 10.0 * math.log10(reference)
        return maximum(levels, reduce_max(levels) - self.top_db)

    def linear_to_mel_weight_matrix(
        self,
        num_mel_bins: int = 20,
        num_spectrogram_bins: int = 129,
        sampling_rate: float = 8000,
        lower_edge_hertz: float = 125.0,
        upper_edge_hertz: float = 3800.0,
        dtype: DTypeLike = "float32",
    ) -> Tensor:
        """Return the matrix of triangular mel filters, ``[frequencies, bands]``.

        The centers of the bands are evenly spaced on the mel scale; a triangle spans
        from the center of the previous band to the center of the next.

        Args:
            num_mel_bins: Number of bands.
            num_spectrogram_bins: Number of frequencies, evenly spaced from 0 to half of
                the sampling rate.
            sampling_rate: Sampling rate of the signal, in hertz.
            lower_edge_hertz: Lowest frequency of the bands.
            upper_edge_hertz: Highest frequency of the bands.
            dtype: Dtype of the result.
        """
        shape = num_spectrogram_bins, num_mel_bins
        check_fits("MelSpectrogram", shape, np.float64)
        frequencies = np.linspace(0.0, sampling_rate / 2.0, num_spectrogram_bins)[1:]
        ends = [_mel(hertz) for hertz in (lower_edge_hertz, upper_edge_hertz)]
        edges = np.linspace(*ends, num_mel_bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        mel = _mel(frequencies)[:, None]
        rising = (mel - lower) / (center - lower)
        falling = (upper - mel) / (upper - center)
        weights = np.maximum(0.0, np.minimum(rising, falling))
        return convert_to_tensor(np.pad(weights, ((1, 0), (0, 0))), dtype=dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        *batch, time = input_shape
        step = self.sequence_stride
        margin = self.fft_length // 2 * 2 - self.fft_length
        frames = None if time is None else (time + margin) // step + 1
        return (*batch, self.num_mel_bins, frames)


def _mel(hertz):
    return 1127.0 * np.log(1.0 + hertz / 700.0)


class STFTSpectrogram(Layer):
    """Short-time Fourier transform of signals, as a convolution with trainable kernels.

    Args:
        mode: "stft" (real and imaginary parts), "real", "imag", "angle", "magnitude",
            "log" (of the magnitude) or "psd" (power, of both halves of the spectrum).
        frame_length: Number of samples in a frame.
        frame_step: Number of samples between the starts of frames; half of
            ``frame_length`` by default.
        fft_length: Number of frequencies of the whole spectrum; the next power of two
            by default.
        window: Window function of `keras.initializers.STFT`: a name, ``frame_length``
            numbers, or None.
        periodic: If True, the window is periodic, otherwise symmetric.
        scaling: "density", "spectrum" or None, see `keras.initializers.STFT`.
        padding: "valid" or "same".
        expand_dims: If True, put the frequencies on a separate axis.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, time, channels]``, floating-point; outputs
        ``[batch, frames, channels * frequencies]``, or
        ``[batch, frames, frequencies, channels]`` with ``expand_dims``, for
        ``fft_length // 2 + 1`` frequencies, twice as many for "stft". With
        "channels_first", inputs ``[batch, channels, time]``, outputs
        ``[batch, channels * frequencies, frames]`` or
        ``[batch, channels, frames, frequencies]``. Weights ``real_kernel`` and
        ``imag_kernel`` ``[frame_length, 1, frequencies]``.

    Raises:
        ValueError: If a name is unknown, ``frame_step`` is above ``frame_length``, or
            ``fft_length`` below it.
        TypeError: If the inputs are integers.

    Example:
        >>> layer = keras.layers.STFTSpectrogram(frame_length=16, frame_step=8)
        >>> layer(tw.ones([2, 160, 1])).shape
        TensorShape([2, 19, 9])
    """

    def __init__(
        self,
        mode: str = "log",
        frame_length: int = 256,
        frame_step: int | None = None,
        fft_length: int | None = None,
        window: str | TensorLike | None = "hann",
        periodic: bool = False,
        scaling: str | None = "density",
        padding: str = "valid",
        expand_dims: bool = False,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        modes = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")
        self.mode: str = one_of(self, "mode", mode, modes)
        self.frame_length: int = whole(
            self, "frame_length", frame_length, most=_MAX_LENGTH
        )
        self.frame_step: int | None = frame_step
        if (
            frame_step is not None
            and whole(self, "frame_step", frame_step) > frame_length
        ):
            raise ValueError(
                "STFTSpectrogram: frame_step must be at most frame_length, got "
                f"{frame_step} and {frame_length}"
            )
        self.fft_length: int | None = fft_length
        if (
            fft_length is not None
            and whole(self, "fft_length", fft_length, most=_MAX_LENGTH) < frame_length
        ):
            raise ValueError(
                "STFTSpectrogram: fft_length must be at least frame_length, got "
                f"{fft_length} and {frame_length}"
            )
        if fft_length is not None and fft_length & (fft_length - 1):
            warnings.warn(
                "STFTSpectrogram: fft_length should be a power of two, got "
                f"{fft_length}",
                stacklevel=user_stacklevel(),
            )
        self._tw_step = frame_step or max(frame_length // 2, 1)
        self._tw_frequencies = (
            fft_length or 1 << (frame_length - 1).bit_length()
        ) // 2 + 1
        self.window: Any = window
        self.scaling: str | None = scaling
        self.periodic: bool = periodic
        self._tw_waves = {  # which check their arguments
            side: initializers.STFT(side, window, scaling, periodic)
            for side in ("real", "imag")
        }
        self.padding: str = checked_padding(self, padding)
        self.expand_dims: bool = bool(expand_dims)
        self.data_format: str = checked_format(self, data_format)
        self.input_spec: InputSpec = InputSpec(ndim=3)

    def build(self, input_shape: Shape) -> None:
        shape = self.frame_length, 1, self._tw_frequencies
        self.real_kernel: Any = None
        self.imag_kernel: Any = None
        if self.mode != "imag":
            self.real_kernel = self.add_weight(
                shape, self._tw_waves["real"], name="real_kernel"
            )
        if self.mode != "real":
            self.imag_kernel = self.add_weight(
                shape, self._tw_waves["imag"], name="imag_kernel"
            )

    def call(self, inputs: Tensor) -> Tensor:
        if not inputs.dtype.is_floating:
            raise TypeError(
                f"{self._tw_title}: inputs must be floating, got {inputs.dtype.name}"
            )
        if self.data_format == "channels_last":
            inputs = transpose(inputs, (0, 2, 1))
        return self._tw_arranged(self._tw_spectra(inputs))

    def _tw_spectra(self, signals):
        """Transform signals ``[batch, channels, time]`` to spectra.

        The result is ``[batch, channels, frames, frequencies]``.
        """
        batch, channels, time = signals.shape
        signals = reshape(signals, (batch * channels, time, 1))

        def part(kernel):
            waves = conv1d(signals, kernel, self._tw_step, self.padding.upper())
            return reshape(waves, (batch, channels, *waves.shape[1:]))

        if self.mode == "real":
            return part(self.real_kernel)
        if self.mode == "imag":
            return part(self.imag_kernel)
        real, imaginary = part(self.real_kernel), part(self.imag_kernel)
        if self.mode == "angle":
            return atan2(imaginary, real)
        if self.mode == "stft":
            return concat([real, imaginary], axis=-1)
        power = square(real) + square(imaginary)
        if self.mode == "psd":  # the inner frequencies stand for two
            margins = [(0, 0), (0, 0), (0, 0), (1, 1)]
            return power + pad(power[..., 1:-1], margins)
        magnitude = sqrt(maximum(power, epsilon()))
        if self.mode == "magnitude":
            return magnitude
        return log(maximum(magnitude, epsilon()))

    def _tw_arranged(self, spectra):
        batch, channels, frames, frequencies = spectra.shape
        last = self.data_format == "channels_last"
        if self.expand_dims:
            return transpose(spectra, (0, 2, 3, 1)) if last else spectra
        spectra = transpose(spectra, (0, 2, 1, 3) if last else (0, 1, 3, 2))
        merged = channels * frequencies
        return reshape(
            spectra, (batch, frames, merged) if last else (batch, merged, frames)
        )

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        last = self.data_format == "channels_last"
        batch, channels, time = input_shape
        if last:
            channels, time = time, channels
        (frames,) = window_counts(
            self, [time], [self.frame_length], [self._tw_step], self.padding
        )
        frequencies = self._tw_frequencies * (2 if self.mode == "stft" else 1)
        if self.expand_dims:
            rest = (frames, frequencies, channels)
            return (batch, *(rest if last else (channels, frames, frequencies)))
        merged = None if channels is None else channels * frequencies
        return (batch, frames, merged) if last else (batch, merged, frames)
