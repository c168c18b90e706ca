"""`tw.onnx.load`: models that PyTorch and Keras have exported, and what a module offers.

The recordings are made by ``reference/record_models.py`` and ``record_keras.py``.
"""

import copy
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import SavingError
from tapewright.formats.onnx.from_onnx import NEWEST, OPS, translation

onnx = pytest.importorskip("onnx")
REFERENCE = Path(__file__).parent / "reference"
EXPORTS = sorted([path.stem for path in REFERENCE.glob("*.onnx")])
# Keras' RNN layers become loops whose conditions count steps.
TRACED_PER_SIZE = {"keras_recurrent"}


def recorded(name):
    """Return the recording of an export, and its inputs and outputs for two sizes."""
    with np.load(REFERENCE / f"{name.rpartition('_')[0]}.npz") as file:
        arrays = dict(file)
    pairs, of = [], f"{name.removeprefix('keras_')}:" if "keras" in name else ""
    for key in "ab":
        names = sorted([n for n in arrays if n.startswith(f"{of}{key}_")])
        pairs.append(tuple([[arrays[n] for n in names if n.startswith(f"{of}{key}_{kind}")]
                            for kind in "xy"]))  # fmt: skip
    return arrays, pairs


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def parsed(text, folder, **initializers):
    """Save a model in ONNX' text format; return its path."""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(
        [onnx.numpy_helper.from_array(x, n) for n, x in initializers.items()]
    )
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def graph(body, folder, inputs="float[n, 3] x", outputs="y", opset=17, **initializers):
    """Save a graph of nodes whose outputs have unknown types of rank 2."""
    outputs = ", ".join([f"float[a, b] {name}" for name in outputs.split()])
    text = (
        f'<ir_version: 8, opset_import: ["": {opset}]> '
        f"g ({inputs}) => ({outputs}) {{ {body} }}"
    )
    return parsed(text, folder, **initializers)


def with_a_dot(path):
    """Rename ``z_1`` to ``z.1``, a name that the text format lacks; return the path."""
    path.write_bytes(path.read_bytes().replace(b"z_1", b"z.1"))
    return path


# ------------------------------------------------------------------------------- exports


@pytest.mark.parametrize("name", EXPORTS)
def test_an_exported_model_gives_the_outputs_of_its_maker_for_open_sizes(name):
    loaded = tw.onnx.load(REFERENCE / f"{name}.onnx")
    _, pairs = recorded(name)
    for inputs, outputs in pairs:
        for found, expected in zip(as_tuple(loaded(*inputs)), outputs, strict=True):
            np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-5)
    assert not vars(loaded)["__call__"].eager_reasons


@pytest.mark.parametrize("name", sorted(set(EXPORTS) - TRACED_PER_SIZE))
def test_one_trace_of_an_exported_model_serves_all_sizes(name):
    loaded = tw.onnx.load(REFERENCE / f"{name}.onnx")
    for inputs, _ in recorded(name)[1]:
        loaded(*inputs)
    assert vars(loaded)["__call__"].experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", ["convnet_script", "encoder_dynamo"])
def test_gradients_of_weights_are_those_of_pytorch(name):
    arrays, pairs = recorded(name)
    loaded, weights = tw.onnx.load(REFERENCE / f"{name}.onnx"), None
    weights = {n: v for n, v in loaded.weights.items() if f"grad:{n}" in arrays}
    assert len(weights) >= 9
    with tw.GradientTape() as tape:
        loss = tw.reduce_mean(tw.square(loaded(*pairs[0][0])))
    for (n, _), g in zip(weights.items(), tape.gradient(loss, list(weights.values()))):
        np.testing.assert_allclose(
            g.numpy(), arrays[f"grad:{n}"], 1e-4, 1e-6, err_msg=n
        )


def test_derivatives_agree_with_differences_in_float64(tmp_path):
    w = np.random.default_rng(0).normal(size=(2, 1, 3, 3))
    body = """
        c = Conv <pads = [1, 0, 1, 2], strides = [2, 1]> (x, w)
        r = Elu (c)
        p = AveragePool <kernel_shape = [2, 2], ceil_mode = 1> (r)
        y = Flatten (p)
    """
    path = graph(body, tmp_path, "double[n, 1, 5, 6] x", w=w)
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    onnx.save(model, path)
    loaded = tw.onnx.load(path)
    x = np.random.default_rng(1).normal(size=(2, 1, 5, 6))
    (variable,) = loaded.trainable_variables

    def loss(value):
        variable.assign(value)
        return tw.reduce_sum(tw.sin(loaded(x)))

    with tw.GradientTape() as tape:
        total = loss(w)
    found, step = tape.gradient(total, variable).numpy(), 1e-6
    for index in np.ndindex(w.shape):
        change = np.zeros_like(w)
        change[index] = step
        slope = (loss(w + change) - loss(w - change)).numpy() / (2 * step)
        assert slope == pytest.approx(found[index], abs=1e-7)


def test_training_a_loaded_model_lowers_its_loss():
    loaded = tw.onnx.load(REFERENCE / "convnet_script.onnx")
    x, target = recorded("convnet_script")[1][0][0][0], tw.ones((3, 5))
    optimizer, losses = tw.optimizers.SGD(0.05), []

    @tw.function
    def step():
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(tw.square(loaded(x) - target))
        variables = loaded.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    for _ in range(20):
        losses.append(float(step()))
    assert losses[-1] < losses[0] / 2


# -------------------------------------------------------------------------------- modules


def test_floating_initializers_are_variables_with_their_names(tmp_path):
    path = graph(
        "a = Mul (x, w) b = Add (a, half) c = Reshape (b, shape) y = Identity (c)",
        tmp_path,
        w=np.ones(3, "float32"),
        half=np.float32(0.5),
        shape=np.array([-1, 3]),
    )
    loaded = tw.onnx.load(path)
    assert [v.name for v in loaded.variables] == ["w"]
    assert loaded.weights["w"] is loaded.trainable_variables[0]
    assert not tw.onnx.load(path, trainable=False).trainable_variables


def test_moving_moments_are_variables_that_are_not_trained():
    loaded = tw.onnx.load(REFERENCE / "convnet_script.onnx")
    fixed = {v.name for v in loaded.non_trainable_variables}
    assert fixed == {f"norm{i}.running_{n}" for i in (1, 2) for n in ("mean", "var")}


def test_a_model_lists_its_inputs_and_outputs(tmp_path):
    path = graph(
        "y = Mul (x, z_1) y2 = Sub (x, z_1)",
        tmp_path,
        "float[n, 3] x, float[3] z_1",
        "y y2",
    )
    loaded = tw.onnx.load(with_a_dot(path))
    assert (loaded.input_names, loaded.output_names) == (["x", "z.1"], ["y", "y2"])
    assert [s.shape.as_list() for s in loaded.input_signature] == [[None, 3], [3]]
    assert repr(loaded) == "<ONNX model ['x', 'z.1'] -> ['y', 'y2']>"


def test_inputs_are_given_in_order_or_by_name(tmp_path):
    path = graph("y = Sub (x, z_1)", tmp_path, "float[n, 3] x, float[3] z_1")
    loaded = tw.onnx.load(with_a_dot(path))
    x, z = np.full((2, 3), 5.0, "float32"), np.ones(3, "float32")
    for found in (loaded(x, z), loaded(x, **{"z.1": z}), loaded(**{"z.1": z, "x": x})):
        assert found.numpy().tolist() == [[4.0] * 3] * 2
    with pytest.raises(TypeError, match=r"takes the inputs \['x', 'z.1'\]; got 1"):
        loaded(x)
    with pytest.raises(TypeError, match="the names"):
        loaded(x, z, other=z)


def test_several_outputs_are_a_tuple_in_order(tmp_path):
    loaded = tw.onnx.load(graph("y = Abs (x) z = Neg (x)", tmp_path, outputs="z y"))
    z, y = loaded(-np.ones((1, 3), "float32"))
    assert z.numpy()[0, 0] == 1.0 and y.numpy()[0, 0] == 1.0


def test_arguments_of_other_shapes_and_dtypes_are_refused(tmp_path):
    loaded = tw.onnx.load(graph("y = Abs (x)", tmp_path))
    for wrong in (np.ones((2, 4), "float32"), tw.ones((2, 3), "float64")):
        with pytest.raises(
            TypeError, match="the argument 'x' must be a tensor of shape"
        ):
            loaded(wrong)


def test_a_loaded_model_is_saved_as_a_saved_model(tmp_path):
    loaded = tw.onnx.load(REFERENCE / "mlp_script.onnx")
    tw.saved_model.save(loaded, str(tmp_path / "saved"))
    again, (inputs, outputs) = (
        tw.saved_model.load(str(tmp_path / "saved")),
        recorded("mlp_script")[1][1],
    )
    np.testing.assert_allclose(again(*inputs).numpy(), outputs[0], 1e-5, 1e-6)
    assert len(again.trainable_variables) == len(loaded.trainable_variables)


def test_a_copy_has_its_own_weights(tmp_path):
    loaded = tw.onnx.load(graph("y = Mul (x, w)", tmp_path, w=np.ones(3, "float32")))
    copied, x = copy.deepcopy(loaded), np.ones((1, 3), "float32")
    copied.weights["w"].assign([5.0, 6.0, 7.0])
    assert copied(x).numpy().tolist() == [[5.0, 6.0, 7.0]]
    assert loaded(x).numpy().tolist() == [[1.0, 1.0, 1.0]]


def test_indices_count_from_the_end_and_are_checked(tmp_path):
    path = graph("i = Cast <to = 7> (x) y = Gather (w, i)", tmp_path, "float[n] x",
                 w=np.ones((3, 2), "float32"))  # fmt: skip
    loaded = tw.onnx.load(path)
    assert loaded(np.array([-1.0, 2.0], "float32")).shape == (2, 2)
    with pytest.raises(IndexError, match="gather: indices must be from 0 to 2, got 3"):
        loaded(np.array([3.0], "float32"))


def test_errors_while_tracing_name_the_node(tmp_path):
    path = graph("s = Squeeze (x, axis) y = Abs (s)", tmp_path, axis=np.array([1]))
    with pytest.raises(ValueError) as caught:
        tw.onnx.load(path)(np.ones((2, 3), "float32"))
    assert "in the node 's' (Squeeze) of the ONNX graph" in caught.value.__notes__


# --------------------------------------------------------------------------------- graphs


def test_shapes_are_computed_with_open_sizes_in_one_trace(tmp_path):
    body = """
        s = Shape (x)
        n = Gather <axis = 0> (s, zero)
        t = Gather <axis = 0> (s, one)
        h = Div (t, two)
        n1 = Unsqueeze (n, zero1)
        h1 = Unsqueeze (h, zero1)
        shape = Concat <axis = 0> (n1, minus, h1)
        r = Reshape (x, shape)
        m = ReduceMax <axes = [2], keepdims = 0> (r)
        rows = Slice (m, zero1, n1)
        ones = ConstantOfShape <value = float[1] {1.0}> (n1)
        o = Unsqueeze (ones, one1)
        i = Range (zero, n, one)
        f = Cast <to = 1> (i)
        g = Unsqueeze (f, one1)
        a = Add (rows, g)
        wide = Concat <axis = 0> (n1, two1)
        e = Expand (o, wide)
        y = Add (a, e)
    """
    constants = {"zero": 0, "one": 1, "two": 2, "zero1": [0], "one1": [1], "two1": [2],
                 "minus": [-1]}  # fmt: skip
    constants = {n: np.array(v, "int64") for n, v in constants.items()}
    loaded = tw.onnx.load(graph(body, tmp_path, "float[n, t] x", **constants))
    for n, t in ((3, 4), (5, 6)):
        x = np.random.default_rng(n).normal(size=(n, t)).astype("float32")
        expected = x.reshape(n, 2, t // 2).max(2) + np.arange(n)[:, None] + 1
        np.testing.assert_allclose(loaded(x).numpy(), expected, 1e-6)
    assert vars(loaded)["__call__"].experimental_get_tracing_count() == 1


def test_a_shape_that_needs_numbers_is_traced_for_each_size(tmp_path):
    body = """
        s = Size (x)
        f = Cast <to = 1> (s)
        r = Sqrt (f)
        i = Cast <to = 7> (r)
        u = Unsqueeze (i, zero)
        shape = Concat <axis = 0> (u, u)
        y = Reshape (x, shape)
    """
    loaded = tw.onnx.load(graph(body, tmp_path, "float[n] x", zero=np.array([0])))
    for n in (2, 3):
        x = np.arange(n * n, dtype="float32")
        assert loaded(x).numpy().tolist() == x.reshape(n, n).tolist()
    assert not vars(loaded)["__call__"].eager_reasons


def test_results_whose_sizes_depend_on_values_are_computed_eagerly(tmp_path):
    body = "i = NonZero (x) t = Transpose (i) y = Cast <to = 1> (t)"
    loaded = tw.onnx.load(graph(body, tmp_path))
    assert loaded(np.array([[0, 1, 2]], "float32")).numpy().tolist() == [[0, 1], [0, 2]]
    assert vars(loaded)["__call__"].eager_reasons


BRANCHES = """
    s = ReduceSum <keepdims = 0> (x)
    c = Greater (s, zero)
    y = If (c) <
        then_branch = a () => (float[n, 3] p) { p = Mul (x, w) },
        else_branch = b () => (float[n, 3] q) { q = Neg (x) }>
"""


def test_a_branch_is_chosen_by_values_and_sees_the_weights_around_it(tmp_path):
    w = np.array([2.0, 3.0, 4.0], "float32")
    loaded = tw.onnx.load(graph(BRANCHES, tmp_path, w=w, zero=np.float32(0)))
    x = np.ones((2, 3), "float32")
    with tw.GradientTape() as tape:
        y = loaded(x)
    assert y.numpy().tolist() == [[2.0, 3.0, 4.0]] * 2
    assert tape.gradient(y, loaded.weights["w"]).numpy().tolist() == [2.0] * 3
    assert loaded(-x).numpy().tolist() == [[1.0] * 3] * 2
    assert not vars(loaded)["__call__"].eager_reasons


LOOP = """
    y, rows = Loop ({trips}, {go}, x) <
        body = b (int64 i, bool go, float[n, 3] s) => (bool more, float[n, 3] t, float r) {{
            t = Mul (s, w)
            r = ReduceMax <keepdims = 0> (t)
            {more}
        }}>
    z = Unsqueeze (rows, axis)
"""


@pytest.mark.parametrize("trips", [3, 40])
def test_a_loop_of_known_length_is_traced(tmp_path, trips):
    body = LOOP.format(trips="trips", go="", more="more = Identity (go)")
    w = np.full(3, 1.1, "float32")
    loaded = tw.onnx.load(
        graph(
            body,
            tmp_path,
            outputs="y z",
            w=w,
            trips=np.int64(trips),
            axis=np.array([1]),
        )
    )
    x = np.ones((2, 3), "float32")
    with tw.GradientTape() as tape:
        y, z = loaded(x)
    np.testing.assert_allclose(y.numpy(), x * 1.1**trips, 1e-4)
    np.testing.assert_allclose(z.numpy()[:, 0], 1.1 ** np.arange(1, trips + 1), 1e-4)
    g = tape.gradient(y, loaded.weights["w"]).numpy()
    np.testing.assert_allclose(g, [2 * trips * 1.1 ** (trips - 1)] * 3, 1e-4)
    assert not vars(loaded)["__call__"].eager_reasons


def test_a_loop_ends_at_its_condition(tmp_path):
    body = LOOP.format(trips="trips", go="go", more="more = Less (r, limit)")
    constants = {"trips": np.int64(100), "go": np.bool_(True), "axis": np.array([1]),
                 "limit": np.float32(5), "w": np.full(3, 2.0, "float32")}  # fmt: skip
    loaded = tw.onnx.load(graph(body, tmp_path, outputs="y z", **constants))
    y, z = loaded(np.ones((1, 3), "float32"))
    assert y.numpy().tolist() == [[8.0] * 3]
    assert z.numpy().tolist() == [[2.0], [4.0], [8.0]]


def test_a_loop_whose_condition_counts_is_traced(tmp_path):
    body = """
        end, y, rows = Loop (trips, go, start, x) <
            body = b (int64 i, bool go, int32 k, float[n, 3] s)
                => (bool more, int32 l, float[n, 3] t, float r) {
                l = Add (k, two)
                t = Mul (s, w)
                r = ReduceMax <keepdims = 0> (t)
                more = Less (l, limit)
            }>
        z = Unsqueeze (rows, axis)
    """
    constants = {"trips": np.int64(100), "go": np.bool_(True), "axis": np.array([1]),
                 "start": np.int32(0), "two": np.int32(2), "limit": np.int32(5),
                 "w": np.full(3, 2.0, "float32")}  # fmt: skip
    loaded = tw.onnx.load(graph(body, tmp_path, outputs="y z", **constants))
    y, z = loaded(np.ones((1, 3), "float32"))
    assert y.numpy().tolist() == [[8.0] * 3]
    assert z.numpy().tolist() == [[2.0], [4.0], [8.0]]
    assert not vars(loaded)["__call__"].eager_reasons


def test_a_loop_with_a_condition_alone_is_traced(tmp_path):
    body = """
        y = Loop (, go, x) <
            body = b (int64 i, bool go, float[n, 3] s) => (bool more, float[n, 3] t) {
                t = Mul (s, w)
                r = ReduceMax <keepdims = 0> (t)
                more = Less (r, limit)
            }>
    """
    constants = {
        "go": np.bool_(True),
        "limit": np.float32(5),
        "w": np.full(3, 2.0, "float32"),
    }
    loaded = tw.onnx.load(graph(body, tmp_path, **constants))
    assert loaded(np.ones((1, 3), "float32")).numpy().tolist() == [[8.0] * 3]
    assert not vars(loaded)["__call__"].eager_reasons


def test_functions_of_the_file_are_inlined(tmp_path):
    path = parsed(
        """<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[n] x) => (float[n] y) { y = local.twice (x) }
        <domain: "local", opset_import: ["": 17]>
        twice (a) => (b) { b = Add (a, a) }""",
        tmp_path,
    )
    assert tw.onnx.load(path)(np.ones(2, "float32")).numpy().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("size", ["n", "4"])
@pytest.mark.parametrize(
    "start, end, step, expected",
    [(-9, -9, -1, [0]), (9, -9, -2, [3, 1]), (-1, -(2**63) + 1, -1, [3, 2, 1, 0]),
     (-9, 2**63 - 1, 3, [0, 3]), (1, -1, 1, [1, 2]), (2, 1, 1, [])],
)  # fmt: skip
def test_slices_are_clamped_as_the_standard_says(
    tmp_path, size, start, end, step, expected
):
    names = dict(zip("sepa", [start, end, step, 0]))
    path = graph("y = Slice (x, s, e, a, p)", tmp_path, f"float[{size}, 1] x",
                 **{n: np.array([v]) for n, v in names.items()})  # fmt: skip
    found = tw.onnx.load(path)(np.arange(4, dtype="float32")[:, None])
    assert found.numpy()[:, 0].tolist() == expected


@pytest.mark.parametrize("reset_first", [0, 1])
def test_a_gru_resets_before_or_after_the_product(tmp_path, reset_first):
    rng = np.random.default_rng(0)
    w, r, b = [
        rng.normal(size=s).astype("float32") for s in ((1, 6, 3), (1, 6, 2), (1, 12))
    ]
    body = f"""
        s, h = GRU <hidden_size = 2, linear_before_reset = {reset_first}> (x, w, r, b)
        y = Squeeze (h, axis)
    """
    path = graph(body, tmp_path, "float[t, n, 3] x", w=w, r=r, b=b, axis=np.array([0]))
    x, h = rng.normal(size=(4, 2, 3)).astype("float32"), np.zeros((2, 2))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    (wz, wr, wn), (rz, rr, rn) = np.split(w[0], 3), np.split(r[0], 3)
    bwz, bwr, bwn, bz, br, bn = np.split(b[0], 6)
    for row in x:
        z = sigmoid(row @ wz.T + h @ rz.T + bwz + bz)
        reset = sigmoid(row @ wr.T + h @ rr.T + bwr + br)
        inner = reset * (h @ rn.T + bn) if reset_first else (reset * h) @ rn.T + bn
        h = (1 - z) * np.tanh(row @ wn.T + inner + bwn) + z * h
    np.testing.assert_allclose(tw.onnx.load(path)(x).numpy(), h, 1e-5, 1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_sequences_of_different_lengths_end_where_they_end(
    tmp_path, direction, op, gates
):
    """Each sequence alone gives the rows and the last state that it has in a batch."""
    rng, count = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    shapes = (count, gates * 2, 3), (count, gates * 2, 2), (count, gates * 4)
    w, r, b = [rng.normal(size=s).astype("float32") for s in shapes]
    inputs = "float[t, n, 3] x, int32[n] lengths"
    body = f"""
        s, h = {op} <hidden_size = 2, direction = "{direction}"> (x, w, r, b, lengths)
        a = Reshape (s, flat)
        c = Reshape (h, flat)
        y = Concat <axis = 0> (a, c)
    """
    loaded = tw.onnx.load(
        graph(body, tmp_path, inputs, w=w, r=r, b=b, flat=np.array([-1, 2]))
    )
    x, lengths = rng.normal(size=(5, 2, 3)).astype("float32"), [3, 5]
    both = loaded(x, np.array(lengths, "int32")).numpy()
    rows, last = both[: 5 * count * 2].reshape(5, count, 2, 2), both[5 * count * 2 :]
    last = last.reshape(count, 2, 2)
    for i, n in enumerate(lengths):
        one = loaded(x[:n, i : i + 1], np.array([n], "int32")).numpy()
        np.testing.assert_allclose(
            rows[:n, :, i].reshape(-1, 2), one[: n * count], 1e-5
        )
        np.testing.assert_allclose(last[:, i], one[n * count :], 1e-5)
        assert not rows[n:, :, i].any()


X = np.arange(6, dtype="float32").reshape(2, 3)
SHARES = np.exp(X - 5) / np.exp(X - 5).sum()


@pytest.mark.parametrize(
    "opset, body, expected",
    [
        (11, "y = Softmax <axis = 0> (x)", SHARES),
        (11, "y = LogSoftmax <axis = 0> (x)", np.log(SHARES)),
        (11, "y = Hardmax <axis = 0> (x)", X == 5),
        (13, "y = Softmax <axis = 0> (x)", np.exp(X) / np.exp(X).sum(0)),
        (7, "y = Pad <pads = [0, 1, 0, 0], value = 2.0> (x)", np.insert(X, 0, 2, 1)),
        (7, "y = Clip <min = 1.0, max = 4.0> (x)", X.clip(1, 4)),
        (7, "y = Clip <max = 4.0> (x)", X.clip(None, 4)),
        (7, "y = Slice <axes = [1], starts = [1], ends = [-1]> (x)", X[:, 1:-1]),
        (7, "z, y = Split <axis = 1, split = [1, 2]> (x)", X[:, 1:]),
        (7, "y, z, w = Split <axis = 1> (x)", X[:, :1]),
        (7, "y, i = TopK <k = 2> (x)", X[:, :0:-1]),
        (7, "y = Dropout <ratio = 0.3> (x)", X),
        (7, "z = Unsqueeze <axes = [0, -1]> (x) y = Squeeze <axes = [0, 3]> (z)", X),
        (7, "y = ReduceSum <axes = [1]> (x)", X.sum(1, keepdims=True)),
        (7, "y = ReduceSum <axes = [-1], keepdims = 0> (x) ", X.sum(1)),
        (7, "y = Upsample <scales = [1.0, 2.0]> (x)", X.repeat(2, 1)),
        (7, "y = ArgMax <axis = 1, keepdims = 0> (x)", [2, 2]),
        (7, "y = Flatten (x)", X),
    ],
)  # fmt: skip
def test_old_opsets_have_attributes_in_place_of_inputs(tmp_path, opset, body, expected):
    path = graph(body, tmp_path, "float[2, 3] x", opset=opset)
    found = tw.onnx.load(path)(X).numpy()
    np.testing.assert_allclose(found, np.asarray(expected, found.dtype), 1e-5)


# ------------------------------------------------------------------------------- refusals


def test_all_ops_that_are_refused_are_named_in_one_error(tmp_path):
    path = parsed(
        """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[n, 3] x) => (float[n, 3] y) {
            a = com.microsoft.FusedGelu (x)
            b = com.microsoft.FusedGelu (a)
            c = RandomNormalLike (b)
            d = LRN <size = 3> (c)
            y, j = MaxPool <kernel_shape = [2]> (d)
        }""",
        tmp_path,
    )
    with pytest.raises(SavingError) as caught:
        tw.onnx.load(path)
    text = str(caught.value)
    assert "com.microsoft::FusedGelu (2, first at 'a')" in text
    assert "RandomNormalLike (1, first at 'c')" in text
    assert "MaxPool with indices of maxima (1, first at 'y')" in text
    assert "LRN" not in text and "onnxruntime" in text and str(path) in text


@pytest.mark.parametrize(
    "opset, advice", [(6, "convert"), (29, "use a newer tapewright")]
)
def test_opsets_without_tables_are_refused(tmp_path, opset, advice):
    path = graph("y = Abs (x)", tmp_path)
    model = onnx.load(path)
    model.opset_import[0].version = opset
    path.write_bytes(model.SerializeToString())
    with pytest.raises(SavingError, match=f"has opset {opset}; .*{advice}"):
        tw.onnx.load(path)


def test_importing_tapewright_does_not_import_onnx():
    code = "import sys, tapewright; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_defaults_of_attributes_are_those_of_onnx():
    wrong = []
    for op in OPS:
        if op in ("Scatter", "Upsample"):  # deprecated in the newest opset
            continue
        schema = onnx.defs.get_schema(op, NEWEST, "")
        for name, p in inspect.signature(translation(op, NEWEST)).parameters.items():
            attribute = schema.attributes.get(name)
            if attribute is None or not attribute.default_value.type:
                continue
            default = onnx.helper.get_attribute_value(attribute.default_value)
            default = default.decode() if isinstance(default, bytes) else default
            if isinstance(default, float):
                default = pytest.approx(default, 1e-6)
            if p.default not in (None, default) and list(p.default) != default:
                wrong.append((op, name, p.default, default))
    assert not wrong
