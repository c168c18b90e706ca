"""Signatures: names of arguments and outputs."""

import numpy as np
import pytest

import tapewright as tw

from .saving import Net, X, again, holding


def test_signatures_give_dicts(tmp_path):
    net = Net()
    loaded = again(net, tmp_path, signatures={"loss": net.loss, "call": net.__call__})
    assert list(loaded.signatures["loss"](x=X)) == ["output_0"]
    np.testing.assert_array_equal(loaded.signatures["call"](X)["output_0"], net(X))


def test_signatures_take_the_names_of_specs_or_of_parameters(tmp_path):
    specs = [tw.TensorSpec([], name="a"), {"k": tw.TensorSpec([None], name="b")}]

    @tw.function(input_signature=specs)
    def f(x, y, scale=2.0):
        return x - scale * y["k"], x

    @tw.function(input_signature=[tw.TensorSpec([]), tw.TensorSpec([])])
    def g(x, y):
        return {"difference": x - y}

    module = holding(f=f, g=g, v=tw.Variable(1.0))
    loaded = again(module, tmp_path, signatures={"f": f, "g": g}).signatures
    found = loaded["f"](b=tw.constant([1.0]), a=tw.constant(5.0))
    assert {k: v.numpy().tolist() for k, v in found.items()} == {
        "output_0": [3.0],
        "output_1": 5.0,
    }
    assert float(loaded["g"](y=1.0, x=3.0)["difference"]) == 2.0
    for wrong in ({"a": 1.0}, {"a": 1.0, "c": [2.0]}, {"a": 1.0, "b": [1.0], "c": 1.0}):
        with pytest.raises(TypeError):
            loaded["f"](**wrong)


def test_a_signature_tells_what_it_takes_and_gives(tmp_path):
    net = Net()
    loaded = again(net, tmp_path, signatures={"loss": net.loss, "call": net.__call__})
    call = loaded.signatures["call"]
    spec = tw.TensorSpec([None, 2], name="x")
    assert call.structured_input_signature == ((), {"x": spec})
    assert call.structured_outputs == {"output_0": tw.TensorSpec([None, 2])}
    assert [v.path for v in call.variables] == ["w", "b"]
    assert len(call.trainable_variables) == 2


def test_a_signature_takes_indexed_slices(tmp_path):
    @tw.function
    def f(scale, slices):
        return scale * tw.reduce_sum(slices.values), slices.indices

    def slices(rows):
        values, indices = tw.ones([rows, 2]), tw.range(rows)
        return tw.IndexedSlices(values, indices, tw.constant([5, 2]))

    f(tw.constant(2.0), slices(3))
    signature = again(holding(f=f), tmp_path, signatures=f).signatures[
        "serving_default"
    ]
    _, specs = signature.structured_input_signature
    assert [(spec.shape.as_list(), spec.dtype.name) for spec in specs.values()] == [
        ([], "float32"), ([3, 2], "float32"), ([3], "int32"), ([2], "int32"),
    ]  # fmt: skip
    given = slices(3)
    tensors = tw.constant(2.0), given.values, given.indices, given.dense_shape
    for outputs in (
        signature(tw.constant(2.0), given),
        signature(**dict(zip(specs, tensors))),
    ):
        assert float(outputs["output_0"]) == 12.0
        assert outputs["output_1"].numpy().tolist() == [0, 1, 2]
