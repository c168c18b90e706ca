"""The operations of a graph by name: types of TensorFlow, inputs, outputs and regions."""

from collections import Counter

import pytest

import tapewright as tw

factor = tw.Variable(2.0, name="factor")


@tw.function
def scaled(x, y):
    z = tw.matmul(x, y) * factor + 1.0
    return tw.cond(tw.reduce_sum(z) > 0, lambda: tw.nn.relu(z), lambda: -z)


@pytest.fixture
def graph():
    specs = tw.TensorSpec([None, 3]), tw.TensorSpec([3, 2])
    return scaled.get_concrete_function(*specs).graph


def test_types_are_those_of_tensorflow(graph):
    counts = Counter(op.type for op in graph.get_operations())
    assert counts == {
        "Placeholder": 3, "MatMul": 1, "ReadVariableOp": 1, "Mul": 1, "Const": 2,
        "AddV2": 1, "Sum": 1, "Greater": 1, "If": 1,
    }  # fmt: skip


def test_an_operation_has_its_inputs_and_outputs(graph):
    product = graph.get_operation_by_name("matmul_0")
    assert [x.name for x in product.inputs] == ["x:0", "y:0"]
    assert product.get_attr("transpose_a") is False and product.graph is graph
    (out,) = product.outputs
    assert out is graph.get_tensor_by_name("matmul_0:0") and out.op is product
    assert out.get_shape() == (None, 2) and out.dtype == tw.float32
    assert repr(product) == "<tf.Operation 'matmul_0' type=MatMul>"
    assert repr(out) == "<tf.Tensor 'matmul_0:0' shape=(None, 2) dtype=float32>"
    (consumer,) = out.consumers()
    assert [x.op.type for x in consumer.inputs] == ["MatMul", "ReadVariableOp"]
    (handle,) = graph.get_operation_by_name("factor").inputs
    assert handle.name == "factor/resource:0" and handle.dtype == tw.resource


def test_names_are_unique_and_inputs_come_first(graph):
    names, made = [], set()
    for op in graph.get_operations():
        assert made.issuperset(op.inputs)
        made.update(op.outputs)
        names.append(op.name)
    assert len(set(names)) == len(names) and names[:2] == ["x", "y"]


def test_a_graph_def_has_the_operations_of_branches_too(graph):
    definition = graph.as_graph_def()
    product = next(node for node in definition.node if node.op == "MatMul")
    assert (product.name, product.input) == ("matmul_0", ["x", "y"])
    branches = [[n.op for n in f.node_def] for f in definition.library.function]
    assert branches == [["Placeholder", "Relu"], ["Placeholder", "Neg"]]


def test_names_that_are_not_there_are_errors(graph):
    with pytest.raises(KeyError, match="no operation 'nope'; it has .*matmul_0"):
        graph.get_operation_by_name("nope")
    with pytest.raises(ValueError, match="'matmul_0:0' is the name of a tensor"):
        graph.get_operation_by_name("matmul_0:0")
    with pytest.raises(ValueError, match="such as 'matmul_0:0'"):
        graph.get_tensor_by_name("matmul_0")
    with pytest.raises(KeyError, match="has 1 outputs, not 'matmul_0:1'"):
        graph.get_tensor_by_name("matmul_0:1")
    with pytest.raises(
        ValueError, match="no attribute 'strides'; it has .*transpose_a"
    ):
        graph.get_operation_by_name("matmul_0").get_attr("strides")
