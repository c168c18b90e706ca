"""Damaged and hostile ONNX files: a `SavingError` that names the file, or a working model."""

import os
import random
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import SavingError

onnx = pytest.importorskip("onnx")
helper = onnx.helper
REFERENCE = Path(__file__).parent / "reference"
FLOAT = 1


def saved(folder, nodes, initializers=(), functions=(), domains=(), output="y"):
    """Save a graph from ``x`` to an output; return its path."""
    inputs = [helper.make_tensor_value_info("x", FLOAT, [2])]
    outputs = [helper.make_tensor_value_info(output, FLOAT, [2])]
    proto = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    opsets = [
        helper.make_opsetid("", 17),
        *[helper.make_opsetid(d, 1) for d in domains],
    ]
    model = helper.make_model(proto, opset_imports=opsets, functions=list(functions))
    model.ir_version = 8
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def refused(path, match):
    with pytest.raises(SavingError, match=match) as caught:
        tw.onnx.load(path)
    assert str(path) in str(caught.value)


# ---------------------------------------------------------------------------- whole files


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    refused(tmp_path / "no.onnx", "no such file")
    refused(tmp_path, "is a folder")
    with pytest.raises(FileNotFoundError):
        tw.onnx.load(tmp_path / "no.onnx")


@pytest.mark.parametrize("content", [b"", b"\x08\x08", b"PK\3\4", b"{}", b"\xff" * 100])
def test_what_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    refused(path, "is not an ONNX model")


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    refused(tmp_path / "pipe.onnx", "pipe or device")


@pytest.mark.parametrize("name", ["mlp_script", "gpt_dynamo", "masked_script"])
@pytest.mark.parametrize("part", range(4))
def test_a_mutated_file_is_refused_or_works(tmp_path, name, part):
    """Random bytes change, or the end is missing: no other error than a `SavingError`."""
    content, path = (REFERENCE / f"{name}.onnx").read_bytes(), tmp_path / "model.onnx"
    rng, refusals = random.Random(f"{name}{part}"), 0
    for _ in range(40):
        mutated = bytearray(content)
        for _ in range(rng.choice([1, 1, 2, 8])):
            # Behind the weights there are few bytes of structure: look for them.
            at = rng.randrange(len(mutated))
            mutated[at] = rng.choice(
                [0, 1, 127, 128, 255, mutated[at] ^ 1 << rng.randrange(8)]
            )
        if rng.random() < 0.3:
            del mutated[rng.randrange(len(mutated)) :]
        path.write_bytes(mutated)
        try:
            assert callable(tw.onnx.load(path))
        except SavingError:
            refusals += 1
    assert refusals


# -------------------------------------------------------------------------------- graphs


def test_cycles_and_missing_values_are_refused(tmp_path):
    refused(saved(tmp_path, [node("Add", "x b", "a"), node("Abs", "a", "b"),
                             node("Abs", "b", "y")]), "is not a valid ONNX model")  # fmt: skip
    refused(saved(tmp_path, [node("Add", "x z", "y")]), "is not a valid ONNX model")
    refused(saved(tmp_path, [node("Abs", "x", "a")]), "output 'y'|is not a valid")


def test_functions_that_call_themselves_are_refused(tmp_path):
    call = helper.make_node("f", ["x"], ["y"], domain="my")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    function = helper.make_function("my", "f", ["x"], ["y"], [call], opsets)
    refused(
        saved(tmp_path, [call], functions=[function], domains=["my"]),
        "not a valid|Cycle",
    )


def calls(count, times):
    """Return functions that each call the next one so many times, and opsets."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    functions = []
    for i in range(count):
        names = ["x", *[f"a{k}" for k in range(times - 1)], "y"]
        last = i + 1 == count
        nodes = [helper.make_node("Abs" if last else f"f{i + 1}", [a], [b],
                                  domain="" if last else "my")
                 for a, b in zip(names, names[1:])]  # fmt: skip
        functions.append(
            helper.make_function("my", f"f{i}", ["x"], ["y"], nodes, opsets)
        )
    return functions


@pytest.mark.parametrize("count, times", [(60, 2), (5000, 1)])
def test_functions_that_grow_when_they_are_inlined_are_refused(tmp_path, count, times):
    call = helper.make_node("f0", ["x"], ["y"], domain="my")
    path = saved(tmp_path, [call], functions=calls(count, times), domains=["my"])
    refused(path, "nodes when inlined|recursion|depth")


def field(number, content):
    """Return a field of a protocol buffer: messages too deep for the package to make."""
    size, digits = len(content), bytearray()
    while size > 127:
        digits.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2]) + bytes([*digits, size]) + content


@pytest.mark.parametrize("depth, refusal", [(20, None), (500, "is not an ONNX model")])
def test_deeply_nested_graphs_are_refused(tmp_path, depth, refusal):
    output = helper.make_tensor_value_info("y", FLOAT, [2])
    proto = helper.make_graph([node("Identity", "x", "y")], "g", [], [output])
    leaf = helper.make_attribute("else_branch", proto).SerializeToString()
    around = node("If", "c", "y").SerializeToString() + field(5, leaf)
    end = field(2, b"g") + field(12, output.SerializeToString())
    branch, nodes = proto.SerializeToString(), b""
    for _ in range(depth):
        then = field(1, b"then_branch") + field(6, branch) + b"\xa0\1\5"
        nodes = field(1, around + field(5, then))
        branch = nodes + end
    path = saved(tmp_path, [], [helper.make_tensor("c", 9, [], [True])])
    model = onnx.load(path)
    rest = model.graph.SerializeToString()
    model.ClearField("graph")
    path.write_bytes(model.SerializeToString() + field(7, nodes + rest))
    if refusal:
        return refused(path, refusal)
    assert tw.onnx.load(path)(np.ones(2, "float32")).numpy().tolist() == [1.0, 1.0]


def test_wrong_attributes_are_refused(tmp_path):
    refused(saved(tmp_path, [node("Abs", "x", "y", speed=3)]), "Abs|attribute")
    wrong = node("Softmax", "x", "y", axis="last")
    refused(saved(tmp_path, [wrong]), "is not a valid ONNX model")


# -------------------------------------------------------------------------------- tensors


def tensor(data=b"", dims=(2,), kind=FLOAT, **fields):
    found = onnx.TensorProto(name="w", data_type=kind, raw_data=data, **fields)
    found.dims.extend(dims)
    return found


@pytest.mark.parametrize(
    "damaged",
    [
        tensor(b"\0" * 4),
        tensor(b"\0" * 12),
        tensor(b"\0" * 8, (1 << 40, 1 << 20)),
        tensor(b"\0" * 8, (-2,)),
        tensor(b"\0" * 8, (1 << 62, 4)),
        tensor(b"\0" * 8, kind=77),
        tensor(b"\0" * 2, kind=17),
        tensor(b"\0", kind=22),
    ],
    ids="short long huge negative overflow unknown float8 int4".split(),
)
def test_tensors_whose_data_do_not_fit_are_refused(tmp_path, damaged):
    refused(saved(tmp_path, [node("Add", "x w", "y")], [damaged]), "tensor|valid")


def external(location, **entries):
    found = tensor(dims=(2,))
    found.ClearField("raw_data")
    found.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        found.external_data.add(key=key, value=str(value))
    return found


def with_external(folder, *tensors):
    return saved(folder, [node("Add", "x w", "y")], tensors)


@pytest.fixture
def folder(tmp_path):
    """A folder with weights, beside a file that is none of its business."""
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    data = np.array([1, 2, 3, 4], "float32").tobytes()
    for place in (inside / "w.bin", inside / "sub" / "w.bin", tmp_path / "secret"):
        place.write_bytes(data)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "linked").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    return inside


@pytest.mark.parametrize("location", ["w.bin", "sub/w.bin"])
@pytest.mark.parametrize("offset, expected", [(0, [2.0, 3.0]), (8, [4.0, 5.0])])
def test_weights_in_a_file_in_the_folder_are_read(folder, location, offset, expected):
    path = with_external(folder, external(location, offset=offset, length=8))
    found = tw.onnx.load(path)(np.ones(2, "float32"))
    assert found.numpy().tolist() == expected


def test_weights_that_onnx_writes_beside_the_model_are_read(tmp_path):
    model = onnx.load(REFERENCE / "mlp_script.onnx")
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w", size_threshold=0)
    with np.load(REFERENCE / "mlp.npz") as arrays:
        found = tw.onnx.load(path)(arrays["a_x0"])
        np.testing.assert_allclose(found.numpy(), arrays["a_y0"], 1e-5, 1e-6)


def test_weights_of_half_precision_are_read_from_both_places(tmp_path):
    numbers, kind = np.array([1.5, -2.0], "float32"), onnx.TensorProto.BFLOAT16
    data = (numbers.view("uint32") >> 16).astype("<u2").tobytes()
    (tmp_path / "w.bin").write_bytes(data)
    outside = external("w.bin")
    outside.data_type = kind
    for weights in (tensor(data, kind=kind), outside):
        nodes = [node("Cast", "w", "a", to=FLOAT), node("Add", "x a", "y")]
        loaded = tw.onnx.load(saved(tmp_path, nodes, [weights]))
        assert loaded.weights["w"].dtype == tw.bfloat16
        assert loaded(np.zeros(2, "float32")).numpy().tolist() == numbers.tolist()


@pytest.mark.parametrize(
    "location",
    ["../secret", "sub/../../secret", "{tmp}/secret", "link", "linked/secret", "none", "",
     "pipe", "sub", ".", "w.bin\0", "C:/w.bin", "..\\secret"],
)  # fmt: skip
def test_weights_elsewhere_are_refused(folder, location):
    location = location.format(tmp=folder.parent)
    path = with_external(folder, external(location))
    with pytest.raises(
        SavingError, match="external data|no such file|pipe|is a folder"
    ) as caught:
        tw.onnx.load(path)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 12},
        {"offset": -4},
        {"length": 4},
        {"length": 1 << 40},
        {"offset": "many"},
        {"offset": 1 << 70},
    ],
    ids=str,
)
def test_weights_that_are_not_as_large_as_declared_are_refused(folder, entries):
    refused(with_external(folder, external("w.bin", **entries)), "external data")


def test_a_small_file_does_not_become_many_weights(folder):
    tensors = [external("w.bin") for _ in range(200)]
    for i, each in enumerate(tensors[1:]):
        each.name = f"w{i}"
    refused(with_external(folder, *tensors), "share more bytes")
