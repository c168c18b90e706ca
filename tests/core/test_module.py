"""Module: the variables and submodules that it finds."""

import weakref

import pytest

import tapewright as tw


class Dense(tw.Module):
    def __init__(self, name=None):
        super().__init__(name)
        self.w = tw.Variable([[1.0]], name="w")
        self.b = tw.Variable([0.0], name="b")

    def __call__(self, x):
        return tw.matmul(x, self.w) + self.b


class Net(tw.Module):
    def __init__(self):
        self.blocks = [Dense(), {"inner": (Dense(),)}]
        self.scale = tw.Variable(2.0, name="scale")
        self.steps = tw.Variable(0, trainable=False, name="steps")
        self.shared = self.blocks[0]
        self.label = "no variable"


def names(variables):
    return [v.name for v in variables]


def test_variables_are_found_in_lists_tuples_and_dicts_own_ones_first():
    assert names(Net().variables) == ["scale", "steps", "b", "w", "b", "w"]


def test_each_variable_and_module_comes_once():
    net = Net()
    assert len({v.ref() for v in net.variables}) == len(net.variables) == 6
    assert net.submodules == (net.blocks[0], net.blocks[1]["inner"][0])


def test_trainable_variables_leave_the_others_out():
    net = Net()
    assert names(net.trainable_variables) == ["scale", "b", "w", "b", "w"]
    assert names(net.non_trainable_variables) == ["steps"]


def test_a_cycle_of_modules_ends():
    a, b = tw.Module(), tw.Module()
    a.other, b.other, b.v = b, a, tw.Variable(1.0)
    assert a.variables == (b.v,) and a.submodules == (b,)


def test_an_attribute_set_later_is_found():
    module = tw.Module()
    assert module.variables == () == module.submodules
    module.z, module.a = tw.Variable(1.0, name="z"), tw.Variable(2.0, name="a")
    assert names(module.variables) == ["a", "z"]


def test_a_module_trains():
    net, x = Dense(), tw.constant([[3.0]])
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(net(x) ** 2)
    by_b, by_w = tape.gradient(loss, net.trainable_variables)
    assert by_w.numpy() == [[18.0]] and by_b.numpy() == [6.0]
    for variable, gradient in zip(net.trainable_variables, (by_b, by_w), strict=True):
        variable.assign_sub(0.1 * gradient)
    assert net.b.numpy() == pytest.approx(-0.6) and net.w.numpy() == pytest.approx(-0.8)


def test_a_subclass_need_not_call_the_constructor():
    assert Net().name == "net"


def test_names_default_to_the_class_and_must_be_identifiers():
    assert Dense().name == "dense" and Dense(name="first").name == "first"
    for wrong in ("a b", "", "1st", "a/b"):
        with pytest.raises(ValueError, match="identifier"):
            Dense(name=wrong)


def test_a_variable_that_is_replaced_by_a_tensor_is_freed():
    module = tw.Module()
    module.w = tw.Variable(1.0)
    gone = weakref.ref(module.w)
    module.w = module.w + 1.0
    assert gone() is None and module.variables == ()
