"""Objects of a loaded module: attributes, shared ones, variables."""

import numpy as np
import pytest

import tapewright as tw

from .saving import Net, X, again, changed, gradients_of, holding, put


def test_a_loaded_module_has_the_same_attributes_shared_as_before(tmp_path):
    net = again(Net(), tmp_path)
    assert repr(net) == "<loaded Net>"
    assert net.table["first"] is net.parts[0] and net.table["n"] == 3
    assert [v.path for v in net.variables] == ["w", "b", "frozen"]
    assert [v.path for v in net.trainable_variables] == ["w", "b"]
    assert net.submodules == tuple(net.parts)
    np.testing.assert_array_equal(net(X), Net()(X))


def test_variables_trained_after_loading_are_used(tmp_path):
    nets = [Net(), again(Net(), tmp_path)]
    for net in nets:
        optimizer = tw.keras.optimizers.Adam(0.1)
        for _ in range(3):
            with tw.GradientTape() as tape:
                loss = net.loss(X)
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    np.testing.assert_array_equal(nets[0].w, nets[1].w)
    np.testing.assert_array_equal(nets[0](X), nets[1](X))


def test_a_loaded_module_is_saved_again_as_it_was(tmp_path):
    net = Net()
    once = again(net, tmp_path, signatures=net.loss)
    twice = again(once, tmp_path)
    for net in (once, twice):
        with tw.GradientTape() as tape:
            loss = net.loss(X)
        gradients = tape.gradient(loss, net.trainable_variables)
        np.testing.assert_array_equal(gradients[0], gradients_of(Net())[0])
    assert list(twice.signatures) == ["serving_default"]


def test_variables_that_no_attribute_holds_are_kept(tmp_path):
    hidden = tw.Variable(3.0)
    module = holding(f=tw.function(lambda x: x * hidden))
    module.f(tw.constant(2.0))
    loaded = again(module, tmp_path)
    assert float(loaded.f(tw.constant(2.0))) == 6.0
    assert len(loaded.variables) == 1


def test_a_module_without_functions_keeps_its_variables(tmp_path):
    module = holding(v=tw.Variable([1, 2]), empty=[])
    loaded = again(module, tmp_path)
    np.testing.assert_array_equal(loaded.v, [1, 2])
    with pytest.raises(TypeError, match="traced __call__"):
        loaded(1.0)


def test_a_tree_of_objects_with_a_fault_is_refused(tmp_path):
    path = tmp_path / "net"
    for change in (
        put("root", 99),
        put("nodes", 0, "attributes", "w", -1),
        put("nodes", 0, "attributes", "__class__", 1),
        put("nodes", 1, {"variable": 40}),
        put("nodes", 1, {"pickle": "x"}),
        put("captured", [7]),
    ):
        tw.saved_model.save(Net(), path)
        changed(path, "/", "objects", change)
        with pytest.raises(tw.errors.SavingError, match="objects"):
            tw.saved_model.load(path)
