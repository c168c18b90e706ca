"""Traced methods: a trace for each owner, which copies and pickles like any other."""

import copy
import gc
import pickle
import weakref

import tapewright as tw

from .counting import Scaler, ones


def test_each_instance_has_its_own_traces():
    a, b, x = Scaler(2.0), Scaler(3.0), tw.constant(5.0)
    before = Scaler.made
    assert [a.scaled(x).numpy(), b.scaled(x).numpy(), a.scaled(x).numpy()] == [
        10,
        15,
        10,
    ]
    assert Scaler.made - before == 2
    assert a.scaled.experimental_get_tracing_count() == 1
    assert a.scaled == a.scaled and a.scaled != b.scaled


def test_a_method_can_be_called_through_its_class():
    a, x = Scaler(2.0), tw.constant(5.0)
    assert Scaler.scaled(a, x).numpy() == a.scaled(x).numpy() == 10
    assert a.scaled.experimental_get_tracing_count() == 1


def test_a_call_method_can_be_traced():
    assert Scaler(2.0)(tw.constant(5.0), power=2).numpy() == 100


def test_class_methods_and_static_methods_in_either_order():
    a, x = Scaler(1.0), tw.constant(1.0)
    for owner in (Scaler, a):
        assert owner.name_length(x).numpy() == owner.other_order(x).numpy() == 7
        assert owner.plus_one(x).numpy() == 2
        assert owner.plus_two(x).numpy() == 3


def test_traces_do_not_keep_an_instance_alive():
    a = Scaler(2.0)
    a.scaled(tw.constant(1.0))
    alive, factor = weakref.ref(a), weakref.ref(a.factor)
    del a
    gc.collect()
    assert alive() is None
    assert factor() is None


def test_a_method_keeps_the_instance_of_which_it_is_taken():
    method = Scaler(2.0).scaled
    gc.collect()
    assert method(tw.constant(4.0)).numpy() == 8
    assert Scaler(3.0).scaled(tw.constant(4.0)).numpy() == 12


def test_an_owner_without_weak_references_has_traced_methods():
    class Slots:
        __slots__ = ("n",)

        @tw.function
        def times(self, x):
            return x * self.n

    owner = Slots()
    owner.n = 3.0
    assert owner.times(tw.constant(2.0)).numpy() == 6


def test_equal_owners_are_not_confused():
    class Equal:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

        @tw.function
        def get(self):
            return tw.constant(self.n)

    a, b = Equal(1.0), Equal(2.0)
    assert [a.get().numpy(), b.get().numpy()] == [1, 2]


def test_owners_can_be_copied_and_pickled():
    a = Scaler(2.0)
    a.scaled(tw.constant(1.0))
    for twin in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        a.factor.assign(7.0)
        assert twin.scaled(tw.constant(1.0)).numpy() == 2
        a.factor.assign(2.0)


class Holder:
    def __init__(self):
        self.factor = tw.Variable(2.0)
        self.step = tw.function(self.plain)

    def plain(self, x):
        return x * self.factor


def test_an_owner_with_a_traced_function_in_an_attribute_can_be_copied():
    a = Holder()
    a.step(tw.constant(1.0))
    for twin in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        twin.factor.assign(5.0)
        assert twin.step(tw.constant(1.0)).numpy() == 5
        assert a.step(tw.constant(1.0)).numpy() == 2


@tw.function
def at_module_level(x):
    return x + 1.0


def test_a_function_of_a_module_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level
    assert copy.deepcopy(at_module_level) is at_module_level


def test_layers_and_modules_have_traced_methods():
    class Net(tw.Module):
        def __init__(self):
            self.dense = tw.layers.Dense(2, kernel_initializer="ones")

        @tw.function
        def __call__(self, x):
            return self.dense(x)

    net = Net()
    assert net(ones(1, 3)).numpy().tolist() == [[3, 3]]
    assert net(ones(1, 3)).numpy().tolist() == [[3, 3]]
    assert len(net.trainable_variables) == 2


def test_a_traced_call_of_a_layer_is_a_method_like_any_other():
    class Shift(tw.layers.Layer):
        @tw.function
        def call(self, inputs, training=False):
            return inputs + 1.0 if training else inputs - 1.0

    layer = Shift()
    assert layer(ones(2), training=True).numpy().tolist() == [2, 2]
    assert layer(ones(2)).numpy().tolist() == [0, 0]


def test_a_method_may_call_its_owner_anything():
    class Doubler(tw.Module):
        @tw.function(input_signature=[tw.TensorSpec([2])])
        def double(this, x):  # noqa: N805
            return x * 2.0

        @tw.function
        def total(this, x):  # noqa: N805
            return tw.reduce_sum(x)

    x = tw.constant([1.0, 2.0])
    assert Doubler().double(x).numpy().tolist() == [2.0, 4.0]
    assert Doubler().total(x).numpy() == 3.0
