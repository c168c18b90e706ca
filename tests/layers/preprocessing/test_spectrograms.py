"""`MelSpectrogram` and `STFTSpectrogram`, beside recordings of Keras."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import MelSpectrogram, STFTSpectrogram

REFERENCE = Path(__file__).parents[1] / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_spectrograms", REFERENCE / "record_spectrograms.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "spectrograms.npz", allow_pickle=False))


@pytest.mark.parametrize("name", ["MelSpectrogram", "STFTSpectrogram"])
def test_outputs_gradients_and_configs_are_those_of_keras(name):
    configs = json.loads(str(KERAS["configs"]))
    for (cls, config, shape), keras in zip(record.CASES, configs):
        if cls != name:
            continue
        layer, entry = getattr(layers, cls)(**config, name="layer"), f"{cls} {config}"
        x = tw.constant(record.numbers(entry, shape))
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = tw.reduce_sum(y * record.numbers(f"c {entry}", y.shape))
        assert tuple(y.shape) == tuple(KERAS[f"{entry}|shape"])
        assert tuple(y.shape) == tuple(layer.compute_output_shape(shape))
        values = [y, *tape.gradient(loss, [x, *layer.trainable_variables])]
        values = np.concatenate([np.ravel(v) for v in values])
        wanted = KERAS[entry].copy()
        if layer.get_config().get("mode") == "angle":  # pi is as good as -pi
            ends = slice(0, np.size(y))
            values[ends], wanted[ends] = np.cos(values[ends]), np.cos(wanted[ends])
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(values / scale, wanted / scale, atol=2e-5)
        call = tw.function(layer, input_signature=[tw.TensorSpec([None, *shape[1:]])])
        np.testing.assert_allclose(call(x), y, rtol=1e-4, atol=1e-4)
        ours = json.loads(json.dumps(layer.get_config()))
        assert ours | {"dtype": 0} == keras | {"dtype": 0}
        again = type(layer).from_config(keras)
        assert again.get_config() == layer.get_config()


def test_shapes_of_unknown_size():
    layer = STFTSpectrogram(frame_length=8)
    assert layer.compute_output_shape((None, None, 2)) == (None, None, 10)
    x = tw.keras.Input((None, 2))
    assert tuple(layer(x).shape) == (None, None, 10)
    mel = MelSpectrogram(fft_length=16, sequence_stride=4, num_mel_bins=3)
    assert tuple(mel(tw.keras.Input((None,))).shape) == (None, 3, None)


def test_wrong_arguments_are_named():
    for make, said in (
        (lambda: STFTSpectrogram("power"), "mode .*'log'.*got 'power'"),
        (lambda: STFTSpectrogram(window="hat"), "window .*'hann'.*got 'hat'"),
        (lambda: STFTSpectrogram(frame_step=300), "frame_step .*got 300 and 256"),
        (lambda: STFTSpectrogram(fft_length=128), "fft_length .*got 128 and 256"),
        (lambda: STFTSpectrogram(scaling="l2"), "scaling .*'density'.*got 'l2'"),
        (lambda: MelSpectrogram(64, sequence_length=65), "fft_length .*64 and 65"),
        (lambda: MelSpectrogram(min_freq=9, max_freq=9), "min_freq .*got 9 and 9"),
    ):
        with pytest.raises(ValueError, match=said):
            make()
    with pytest.raises(TypeError, match="must be floating, got int32"):
        STFTSpectrogram(frame_length=4)(np.ones((1, 9, 1), np.int32))
    with pytest.warns(UserWarning, match="power of two, got 300"):
        STFTSpectrogram(fft_length=300)
