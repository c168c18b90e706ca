"""Writes ``operations_*.json``: models of Keras' operations, and what they give.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/keras/files/reference/record_operations.py

A file holds the config of one functional model for each family of `CASES`, whose outputs
are a dict with an entry for each case, and the outputs for the `inputs` of this script,
flat. The cases are functions of ``ops`` and the symbolic inputs, so that a test can make
the same model of ``tapewright.keras.ops``.
"""

import json
import pathlib

import numpy as np

SHAPES = {
    "x": ((2, 3, 4), "float32"),
    "y": ((2, 3, 4), "float32"),
    "p": ((2, 3, 4), "float32"),  # between 0.1 and 0.9
    "v": ((2, 3), "float32"),
    "m": ((2, 3, 3), "float32"),
    "i": ((2, 3), "int32"),  # 0, 1 or 2
    "j": ((2, 3), "int32"),
    "b": ((2, 3), "bool"),
    "c": ((2, 3), "bool"),
    "im": ((2, 6, 6, 3), "float32"),  # between 0 and 1
}

KERNEL = np.arange(24, dtype="float32").reshape(2, 4, 3) / 10 - 1


class Case:
    """``make(ops, t)``: tensors made of the inputs ``t``, by name."""

    def __init__(self, name, make):
        self.name, self.make = name, make


def _of(names, *arguments):
    """Cases of the functions that take these inputs and nothing else."""
    return [
        Case(
            name, lambda ops, t, name=name: _get(ops, name)(*[t[a] for a in arguments])
        )
        for name in names.split()
    ]


def _get(ops, name):
    for part in name.split("."):
        ops = getattr(ops, part)
    return ops


def _with(**makers):
    return [Case(name.rstrip("_0123456789"), make) for name, make in makers.items()]


OPERATORS = [
    Case("add", lambda ops, t: t["x"] + t["y"]),
    Case("add", lambda ops, t: t["x"] + 1.5),
    Case("add", lambda ops, t: 2 + t["i"]),
    Case("subtract", lambda ops, t: 1.0 - t["x"]),
    Case("multiply", lambda ops, t: t["x"] * t["y"]),
    Case("true_divide", lambda ops, t: t["x"] / 3.0),
    Case("power", lambda ops, t: t["p"] ** 1.5),
    Case("floor_divide", lambda ops, t: t["x"] // 0.5),
    Case("mod", lambda ops, t: t["x"] % 0.75),
    Case("negative", lambda ops, t: -t["x"]),
    Case("absolute", lambda ops, t: abs(t["x"])),
    Case("greater", lambda ops, t: t["x"] > 0.0),
    Case("greater_equal", lambda ops, t: t["x"] >= t["y"]),
    Case("less", lambda ops, t: t["x"] < 0.5),
    Case("less_equal", lambda ops, t: t["x"] <= t["y"]),
    Case("matmul", lambda ops, t: t["x"] @ np.ones((4, 2), "float32")),
    Case("get_item", lambda ops, t: t["x"][:, 0]),
    Case("get_item", lambda ops, t: t["x"][..., None, 1:3]),
    Case("get_item", lambda ops, t: t["x"][:, ::-1, -1]),
    Case("get_item", lambda ops, t: t["x"][1]),
]

NUMPY = [
    *_of(
        "abs absolute fabs angle arcsinh arctan cbrt ceil conj conjugate copy cos cosh "
        "deg2rad exp exp2 expm1 floor imag isfinite isinf isnan isneginf isposinf isreal "
        "logical_not negative ones_like rad2deg ravel real reciprocal sign signbit sin "
        "sinc sinh size square tan tanh trunc zeros_like nan_to_num transpose flipud "
        "fliplr ndim",
        "x",
    ),
    *_of("arccos arcsin arctanh log log10 log1p log2 sqrt", "p"),
    Case("arccosh", lambda ops, t: ops.arccosh(t["p"] + 1.0)),
    *_of(
        "add subtract multiply divide true_divide divide_no_nan maximum minimum fmax fmin "
        "mod fmod floor_divide arctan2 heaviside hypot logaddexp logaddexp2 nextafter "
        "equal not_equal greater greater_equal less less_equal isclose vdot",
        "x",
        "y",
    ),
    *_of("power", "p", "y"),
    *_of("logical_and logical_or logical_xor", "b", "c"),
    *_of(
        "bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift "
        "bitwise_right_shift gcd lcm",
        "i",
        "j",
    ),
    *_of("bitwise_invert bitwise_not", "i"),
    *_of("all any", "b"),
    *_of("kron outer", "v", "v"),
    *_of("ldexp", "v", "i"),
    *_of("cross", "v", "v"),
]

SHAPED = [
    Case("all", lambda ops, t: ops.all(t["b"], axis=1, keepdims=True)),
    Case("any", lambda ops, t: ops.any(t["b"], axis=1)),
    Case("sum", lambda ops, t: ops.sum(t["x"])),
    Case("sum", lambda ops, t: ops.sum(t["x"], axis=(1, 2), keepdims=True)),
    Case("mean", lambda ops, t: ops.mean(t["x"], axis=1)),
    Case("max", lambda ops, t: ops.max(t["x"], axis=-1)),
    Case("max", lambda ops, t: ops.max(t["x"], axis=-1, initial=0.5)),
    Case("min", lambda ops, t: ops.min(t["x"], axis=-1, keepdims=True)),
    Case("amax", lambda ops, t: ops.amax(t["x"], axis=1)),
    Case("amin", lambda ops, t: ops.amin(t["x"], axis=1)),
    Case("prod", lambda ops, t: ops.prod(t["x"], axis=1)),
    Case("var", lambda ops, t: ops.var(t["x"], axis=1)),
    Case("std", lambda ops, t: ops.std(t["x"], axis=(0, 1))),
    Case("ptp", lambda ops, t: ops.ptp(t["x"], axis=1)),
    Case("argmax", lambda ops, t: ops.argmax(t["x"], axis=1)),
    Case("argmin", lambda ops, t: ops.argmin(t["x"], axis=-1, keepdims=True)),
    Case("argsort", lambda ops, t: ops.argsort(t["x"], axis=1)),
    Case("average", lambda ops, t: ops.average(t["x"], axis=1)),
    Case("average", lambda ops, t: ops.average(t["x"], axis=1, weights=t["p"])),
    Case("count_nonzero", lambda ops, t: ops.count_nonzero(t["i"], axis=1)),
    Case("cumsum", lambda ops, t: ops.cumsum(t["x"], axis=1)),
    Case("cumprod", lambda ops, t: ops.cumprod(t["x"], axis=-1)),
    Case("median", lambda ops, t: ops.median(t["x"], axis=1)),
    Case("quantile", lambda ops, t: ops.quantile(t["x"], 0.3, axis=1)),
    Case("percentile", lambda ops, t: ops.percentile(t["x"], 30.0, axis=1)),
    Case("nansum", lambda ops, t: ops.nansum(t["x"], axis=1)),
    Case("nanmean", lambda ops, t: ops.nanmean(t["x"], axis=1)),
    Case("nanmax", lambda ops, t: ops.nanmax(t["x"], axis=1)),
    Case("append", lambda ops, t: ops.append(t["x"], t["y"], axis=1)),
    Case("concatenate", lambda ops, t: ops.concatenate([t["x"], t["y"]], axis=1)),
    Case("stack", lambda ops, t: ops.stack([t["x"], t["y"]], axis=-1)),
    Case("hstack", lambda ops, t: ops.hstack([t["x"], t["y"]])),
    Case("vstack", lambda ops, t: ops.vstack([t["x"], t["y"]])),
    Case("dstack", lambda ops, t: ops.dstack([t["x"], t["y"]])),
    Case("split", lambda ops, t: ops.split(t["x"], 2, axis=2)[1]),
    Case("split", lambda ops, t: ops.split(t["x"], [1, 3], axis=2)[1]),
    Case("array_split", lambda ops, t: ops.array_split(t["x"], 3, axis=2)[1]),
    Case("reshape", lambda ops, t: ops.reshape(t["x"], (2, 12))),
    Case("reshape", lambda ops, t: ops.reshape(t["x"], (-1, 2, 2))),
    Case("transpose", lambda ops, t: ops.transpose(t["x"], (0, 2, 1))),
    Case("swapaxes", lambda ops, t: ops.swapaxes(t["x"], 1, 2)),
    Case("moveaxis", lambda ops, t: ops.moveaxis(t["x"], 1, -1)),
    Case("expand_dims", lambda ops, t: ops.expand_dims(t["x"], 1)),
    Case("squeeze", lambda ops, t: ops.squeeze(ops.expand_dims(t["x"], 1), 1)),
    Case("broadcast_to", lambda ops, t: ops.broadcast_to(t["v"], (4, 2, 3))),
    Case("repeat", lambda ops, t: ops.repeat(t["x"], 2, axis=1)),
    Case("tile", lambda ops, t: ops.tile(t["x"], (1, 2, 1))),
    Case("flip", lambda ops, t: ops.flip(t["x"], axis=1)),
    Case("roll", lambda ops, t: ops.roll(t["x"], 1, axis=2)),
    Case("rot90", lambda ops, t: ops.rot90(t["x"], axes=(1, 2))),
    Case("pad", lambda ops, t: ops.pad(t["x"], ((0, 0), (1, 1), (0, 2)))),
    Case("pad", lambda ops, t: ops.pad(t["v"], ((1, 1), (1, 0)), constant_values=2.0)),
    Case("pad", lambda ops, t: ops.pad(t["v"], ((0, 0), (1, 1)), mode="reflect")),
    Case("clip", lambda ops, t: ops.clip(t["x"], -0.5, 0.5)),
    Case("round", lambda ops, t: ops.round(t["x"], 1)),
    Case("diag", lambda ops, t: ops.diag(t["v"][0])),
    Case("diagonal", lambda ops, t: ops.diagonal(t["m"], axis1=1, axis2=2)),
    Case("trace", lambda ops, t: ops.trace(t["m"], axis1=1, axis2=2)),
    Case("tril", lambda ops, t: ops.tril(t["m"])),
    Case("triu", lambda ops, t: ops.triu(t["m"], k=1)),
    Case("diff", lambda ops, t: ops.diff(t["x"], axis=1)),
    Case("digitize", lambda ops, t: ops.digitize(t["v"], np.array([-0.5, 0.0, 0.5]))),
    Case("dot", lambda ops, t: ops.dot(t["x"], np.ones((4, 2), "float32"))),
    Case("inner", lambda ops, t: ops.inner(t["v"], t["v"])),
    Case("matmul", lambda ops, t: ops.matmul(t["m"], t["x"])),
    Case("einsum", lambda ops, t: ops.einsum("bij,bkj->bik", t["x"], t["y"])),
    Case("tensordot", lambda ops, t: ops.tensordot(t["x"], t["y"], axes=[[2], [2]])),
    Case("full_like", lambda ops, t: ops.full_like(t["x"], 2.0)),
    Case("where", lambda ops, t: ops.where(t["x"] > 0, t["x"], 0.0)),
    Case("take", lambda ops, t: ops.take(t["x"], [0, -1], axis=1)),
    Case("take_along_axis", lambda ops, t: ops.take_along_axis(t["v"], t["i"], axis=1)),
    Case("sort", lambda ops, t: ops.sort(t["x"], axis=1)),
    Case("get_item", lambda ops, t: ops.get_item(t["x"], (slice(None), 1))),
    Case("select", lambda ops, t: ops.select([t["b"], t["c"]], [t["v"], -t["v"]], 9.0)),
    Case("isin", lambda ops, t: ops.isin(t["i"], [0, 2])),
    Case("vander", lambda ops, t: ops.vander(t["v"][0], 3)),
    Case("trapezoid", lambda ops, t: ops.trapezoid(t["v"], dx=0.5)),
    Case("cast", lambda ops, t: ops.cast(t["i"], "float32")),
    Case("saturate_cast", lambda ops, t: ops.saturate_cast(t["x"] * 300.0, "uint8")),
    Case("stop_gradient", lambda ops, t: ops.stop_gradient(t["x"])),
    Case("convert_to_tensor", lambda ops, t: ops.convert_to_tensor(t["x"])),
    Case("unstack", lambda ops, t: ops.unstack(t["x"], axis=1)[2]),
    Case("slice", lambda ops, t: ops.slice(t["x"], (0, 1, 1), (2, 2, 2))),
    Case(
        "slice_update",
        lambda ops, t: ops.slice_update(t["v"], (0, 1), np.ones((1, 2), "float32")),
    ),
    Case("scatter", lambda ops, t: ops.scatter([[1], [3]], t["v"], (5, 3))),
    Case(
        "scatter_update",
        lambda ops, t: ops.scatter_update(t["v"], [[0, 1]], np.array([7.0], "float32")),
    ),
]

NN = [
    *_of(
        "celu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh "
        "leaky_relu log_sigmoid log_softmax relu relu6 selu sigmoid silu soft_shrink "
        "softmax softplus softsign sparse_plus sparse_sigmoid squareplus swish "
        "tanh_shrink normalize",
        "x",
    ),
    Case("threshold", lambda ops, t: ops.threshold(t["x"], 0.2, -1.0)),
    Case("leaky_relu", lambda ops, t: ops.leaky_relu(t["x"], 0.3)),
    Case("gelu", lambda ops, t: ops.gelu(t["x"], approximate=False)),
    Case("softmax", lambda ops, t: ops.softmax(t["x"], axis=1)),
    Case("normalize", lambda ops, t: ops.normalize(t["x"], axis=1, order=1)),
    Case("moments", lambda ops, t: ops.moments(t["x"], [0, 1])[1]),
    Case("one_hot", lambda ops, t: ops.one_hot(t["i"], 4)),
    Case("multi_hot", lambda ops, t: ops.multi_hot(t["i"], 4)),
    Case("max_pool", lambda ops, t: ops.max_pool(t["im"], 2, padding="same")),
    Case("average_pool", lambda ops, t: ops.average_pool(t["im"], (2, 2), 2)),
    Case("conv", lambda ops, t: ops.conv(t["x"], KERNEL, 1, "same")),
    Case(
        "layer_normalization",
        lambda ops, t: ops.layer_normalization(
            t["x"], np.ones(4, "float32"), epsilon=1e-3
        ),
    ),
    Case(
        "rms_normalization", lambda ops, t: ops.rms_normalization(t["x"], epsilon=1e-3)
    ),
    Case(
        "batch_normalization",
        lambda ops, t: ops.batch_normalization(
            t["x"], np.zeros(4, "float32"), np.ones(4, "float32"), -1
        ),
    ),
    Case(
        "binary_crossentropy",
        lambda ops, t: ops.binary_crossentropy(
            ops.cast(t["b"], "float32"), t["v"], True
        ),
    ),
    Case(
        "categorical_crossentropy",
        lambda ops, t: ops.categorical_crossentropy(t["p"], t["x"], from_logits=True),
    ),
    Case(
        "sparse_categorical_crossentropy",
        lambda ops, t: ops.sparse_categorical_crossentropy(t["i"], t["m"], True),
    ),
    Case("depth_to_space", lambda ops, t: ops.depth_to_space(t["x"][:, None], 2)),
    Case("space_to_depth", lambda ops, t: ops.space_to_depth(t["im"], 2)),
    Case("psnr", lambda ops, t: ops.psnr(t["x"], t["y"], 2.0)),
    Case("polar", lambda ops, t: ops.real(ops.polar(t["p"], t["x"]))),
    Case("erf", lambda ops, t: ops.erf(t["x"])),
    Case("rsqrt", lambda ops, t: ops.rsqrt(t["p"])),
    Case("logsumexp", lambda ops, t: ops.logsumexp(t["x"], axis=-1)),
    Case("top_k", lambda ops, t: ops.top_k(t["x"], 2)[0]),
    Case("in_top_k", lambda ops, t: ops.in_top_k(t["i"][0], t["m"][0], 1)),
    Case("segment_sum", lambda ops, t: ops.segment_sum(t["v"][0], t["i"][0], 3)),
    Case("cholesky", lambda ops, t: ops.cholesky(SPD(ops, t))),
    Case("det", lambda ops, t: ops.det(t["m"])),
    Case("inv", lambda ops, t: ops.inv(t["m"])),
    Case("norm", lambda ops, t: ops.norm(t["m"], axis=-1, keepdims=True)),
    Case("solve", lambda ops, t: ops.solve(t["m"], t["x"])),
    Case("image.resize", lambda ops, t: ops.image.resize(t["im"], (4, 8))),
    Case(
        "image.resize",
        lambda ops, t: ops.image.resize(t["im"], (3, 3), interpolation="nearest"),
    ),
    Case("image.rgb_to_grayscale", lambda ops, t: ops.image.rgb_to_grayscale(t["im"])),
    Case("image.rgb_to_hsv", lambda ops, t: ops.image.rgb_to_hsv(t["im"])),
    Case(
        "image.crop_images", lambda ops, t: ops.image.crop_images(t["im"], 1, 1, 2, 2)
    ),
    Case("image.pad_images", lambda ops, t: ops.image.pad_images(t["im"], 1, 1, 0, 0)),
    Case("image.extract_patches", lambda ops, t: ops.image.extract_patches(t["im"], 3)),
    Case(
        "image.map_coordinates",
        lambda ops, t: ops.image.map_coordinates(
            t["m"], ops.transpose(t["m"], (1, 0, 2)) * 2.0, 1, "nearest"
        ),
    ),
    Case(
        "image.scale_and_translate",
        lambda ops, t: ops.image.scale_and_translate(
            t["im"],
            (2, 8, 4, 3),
            np.array([1.5, 0.5], "f4"),
            np.array([-2, 0.5], "f4"),
            (1, 2),
            "cubic",
        ),
    ),
]


def SPD(ops, t):  # noqa: N802
    """Symmetric positive definite matrices."""
    return ops.matmul(t["m"], ops.transpose(t["m"], (0, 2, 1))) + np.eye(3, dtype="f4")


CASES = {"operators": OPERATORS, "numpy": NUMPY, "shaped": SHAPED, "nn": NN}


def inputs() -> dict:
    """Name -> values of the inputs."""
    rng = np.random.default_rng(0)
    found = {}
    for name, (shape, dtype) in SHAPES.items():
        if dtype == "float32":
            low, high = {"p": (0.1, 0.9), "im": (0, 1)}.get(name, (-2, 2))
            values = rng.uniform(low, high, shape)
        else:
            values = rng.integers(0, 3 if dtype == "int32" else 2, shape)
        found[name] = values.round(3).astype(dtype)
    return found


def model(keras, ops, cases):
    """``(model, {key: case})`` of the cases, each an output under a key of its own."""
    tensors = {
        name: keras.Input(batch_shape=shape, dtype=dtype, name=name)
        for name, (shape, dtype) in SHAPES.items()
    }
    outputs = {
        f"{k:03d} {case.name}": case.make(ops, tensors) for k, case in enumerate(cases)
    }
    return keras.Model(tensors, outputs)


def _flat(array):
    array = np.asarray(array)
    if array.dtype.kind in "fc":
        return [float(f"{n:.8g}") for n in array.real.ravel().tolist()]
    return array.ravel().tolist()


def main():
    import keras

    folder = pathlib.Path(__file__).parent
    for family, cases in CASES.items():
        keras.backend.clear_session()
        made = model(keras, keras.ops, cases)
        found = made(inputs())
        recorded = {
            "config": made.get_config(),
            "outputs": {k: _flat(v) for k, v in found.items()},
        }
        text = json.dumps(recorded, separators=(",", ":"), default=str)
        (folder / f"operations_{family}.json").write_text(text + "\n")
        print(family, len(cases), "cases", len(text) // 1024, "KB")


if __name__ == "__main__":
    main()
