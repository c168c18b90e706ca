"""Graphs with faults are refused."""

import pytest

import tapewright as tw

from .saving import X, changed, cube, holding, put, traced

TRACE = "functions/0/call_0/trace_0"
HOSTILE = {
    "an op that is not defined": put("nodes", 2, "op", "os.system"),
    "an input that is made later": put("nodes", 2, "in", [0, 90]),
    "a constant that there is not": put("nodes", 2, "in", [0, "c70"]),
    "a variable that there is not": put("nodes", 1, "read", 12),
    "a missing attribute": put("nodes", 2, "attributes", {}),
    "an attribute of another op": put("nodes", 2, "attributes", {"evil": 1}),
    "code for an attribute": put(
        "nodes", 2, "attributes", "transpose_a", "__import__('os').abort()"
    ),
    "another shape than the op gives": put("nodes", 2, "out", [["float32", [7, 7]]]),
    "a shape of exabytes": put("inputs", 0, ["float32", [2**40, 2**20], "x"]),
    "another dtype than the op gives": put("nodes", 2, "out", [["int8", [2, 2]]]),
    "a node of no kind": put("nodes", 2, {"run": "rm"}),
    "outputs that are not made": put("outputs", [77]),
    "no nodes": put("nodes", None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_graph_with_a_fault_is_refused_with_its_place(name, tmp_path):
    path = tmp_path / "net"
    module = holding(f=traced([2, 2])(lambda x: cube(tw.matmul(x + 1.0, v))))
    v = tw.Variable(X)
    tw.saved_model.save(module, path)
    changed(path, TRACE, "graph", HOSTILE[name])
    with pytest.raises(tw.errors.SavingError) as caught:
        tw.saved_model.load(path)
    assert caught.value.path == str(path)
    assert TRACE in caught.value.dataset


@pytest.mark.parametrize(
    "change, said",
    [
        (put("name", "f\nimport os"), "short string"),
        (put("parameters", 0, 0, "x: os.abort()"), "'x: os.abort.*identifier"),
    ],
)
def test_the_names_of_a_function_in_a_file_are_checked(change, said, tmp_path):
    path = tmp_path / "net"
    tw.saved_model.save(holding(f=traced([2])(lambda x: x)), path)
    changed(path, "functions/0", "function", change)
    with pytest.raises(tw.errors.SavingError, match=said):
        tw.saved_model.load(path)


def test_an_index_cannot_smuggle_code_into_an_executable(tmp_path):
    path = tmp_path / "net"
    tw.saved_model.save(holding(f=traced([None, 2])(lambda x: x[1:, 0])), path)
    index = {"tuple": [["__import__('os').abort()", None, None], 0]}
    changed(path, TRACE, "graph", put("nodes", 0, "attributes", "index", index))
    with pytest.raises(tw.errors.SavingError, match="not an attribute"):
        tw.saved_model.load(path)


def test_a_print_of_a_file_cannot_write_to_another_file(tmp_path):
    path, other = tmp_path / "net", tmp_path / "other"

    def shown(x):
        tw.print(x)
        return x

    tw.saved_model.save(holding(f=traced([2])(shown)), path)
    stream = {"dict": [["output_stream", f"file://{other}"]]}

    def change(value):
        pairs = value["nodes"][0]["attributes"]["dict"]
        pairs[:] = [pair for pair in pairs if pair[0] != "output_stream"] + stream[
            "dict"
        ]
        return value

    changed(path, TRACE, "graph", change)
    with pytest.raises(tw.errors.SavingError, match=r"sys\.stdout.*sys\.stderr"):
        tw.saved_model.load(path)
