"""Restoring: values that do not fit, and values of objects made later."""

import pickle
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.formats.checkpoints.checkpoint_file import (
    Content,
    write_content,
)

from .training import assert_equal, data, model_of, trained

Checkpoint = tw.train.Checkpoint


def test_another_shape_is_told_and_nothing_is_changed(tmp_path):
    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    other = trained(5, 2)
    before = [v.numpy() for v in other.variables + other.optimizer.variables]
    with pytest.raises(ValueError, match=r"layers/0/kernel.* \(3, 4\).* \(3, 5\)"):
        Checkpoint(model=other).restore(path)
    assert_equal(other.variables + other.optimizer.variables, before)


def test_what_lacks_and_what_is_beyond_is_told_with_what_does_not_fit(tmp_path):
    path = Checkpoint(a=tw.Variable([1.0]), b=tw.Variable(2.0)).write(tmp_path / "f")
    others = Checkpoint(a=tw.Variable([0.0, 0.0]), c=tw.Variable(3.0))
    with pytest.raises(tw.errors.SavingError) as error:
        others.read(path)
    lines = str(error.value).splitlines()
    assert "'a' is float32 (1,), the variable 'Variable' float32 (2,)" in lines[1]
    assert lines[2:] == ["  it does not have c", "  and has besides b"]


def test_another_dtype_is_told(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    with pytest.raises(tw.errors.SavingError, match="float32 .* int32"):
        Checkpoint(v=tw.Variable(1)).restore(path)


def test_a_shape_is_told_when_it_is_known_at_last(tmp_path):
    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    other = model_of(5, 2)
    Checkpoint(model=other).restore(path)
    with pytest.raises(tw.errors.SavingError, match="kernel"):
        other(data()[0])


def test_variables_that_the_file_lacks_are_warned_of_and_asserted(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).save(tmp_path / "ckpt")
    with pytest.warns(UserWarning, match="does not have w, which"):
        status = Checkpoint(v=tw.Variable(0.0), w=tw.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="does not have w"):
        status.assert_existing_objects_matched()


def test_values_without_an_object_are_asserted_unless_expected(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0), w=tw.Variable(2.0)).save(tmp_path / "ckpt")
    v = tw.Variable(0.0)
    status = Checkpoint(v=v).restore(path).expect_partial()
    assert v.numpy() == 1.0
    status.assert_existing_objects_matched().assert_nontrivial_match()
    with pytest.raises(AssertionError, match="no object matches w"):
        status.assert_consumed()


def test_nothing_matched_is_asserted(tmp_path):
    path = Checkpoint(v=tw.Variable(1.0)).write(tmp_path / "ckpt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = Checkpoint(w=tw.Variable(1.0)).read(path)
    with pytest.raises(AssertionError, match="no value of it was used"):
        status.assert_nontrivial_match()


def test_a_state_of_other_data_is_told(tmp_path):
    first = iter(tw.data.Dataset.range(4).batch(2))
    path = Checkpoint(iterator=first).save(tmp_path / "ckpt")
    other = iter(tw.data.Dataset.range(4))
    with pytest.raises(tw.errors.SavingError, match="from another dataset"):
        Checkpoint(iterator=other).restore(path)


def test_no_path_restores_nothing():
    status = Checkpoint(v=tw.Variable(1.0)).restore(None)
    with pytest.raises(AssertionError, match="no checkpoint"):
        status.assert_consumed()


@pytest.mark.parametrize("states", [{"v": [1]}, {"iterator": {"place": 3}}])
def test_a_state_for_another_object_is_refused(tmp_path, states):
    path = str(tmp_path / "one")
    write_content(Content(path, {}, states, {}))
    iterator = iter(tw.data.Dataset.range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checkpoint = Checkpoint(iterator=iterator, v=tw.Variable(1.0))
        if "iterator" in states:
            with pytest.raises(tw.errors.SavingError):
                checkpoint.read(path)
        else:
            checkpoint.read(path)
    assert int(next(iterator)) == 0


layers = tw.keras.layers


def test_a_model_that_is_not_built_gets_its_weights_before_its_first_call(tmp_path):
    model, other = trained(4, 2), model_of(4, 2)
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    Checkpoint(model=other).restore(path)
    assert_equal(other(data()[0]), model(data()[0]))


def test_training_goes_on_as_before_in_a_model_that_was_not_built(tmp_path):
    def make():
        model = tw.keras.Sequential(
            [layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.5)]
        )
        model.compile(tw.keras.optimizers.Nadam(), "mse")
        return model

    x, _ = data()
    model = make()
    model.fit(x, np.ones((20, 4)), verbose=0)
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    model.fit(x, np.ones((20, 4)), verbose=0)
    other = make()
    status = Checkpoint(model=other).restore(path)
    other.fit(x, np.ones((20, 4)), verbose=0)
    status.assert_consumed()
    assert_equal(other.variables, model.variables)
    assert_equal(other.optimizer.variables, model.optimizer.variables)


def test_layers_made_in_build_and_in_call_get_their_weights(tmp_path):
    class Late(tw.keras.Model):
        def build(self, input_shape):
            self.first = layers.Dense(3)

        def call(self, inputs):
            if not hasattr(self, "second"):
                self.second = layers.Dense(2)
            return self.second(self.first(inputs))

    x = np.ones((1, 3), "f4")
    model, other = Late(), Late()
    expected = model(x)
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    status = Checkpoint(model=other).restore(path)
    other(x)
    status.assert_consumed()
    assert_equal(other(x), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.Bidirectional(layers.GRU(3)),
        lambda: layers.MultiHeadAttention(2, 3),
        lambda: layers.SeparableConv1D(2, 2),
        lambda: layers.TimeDistributed(layers.Dense(2)),
    ],
)
def test_layers_in_layers_get_their_weights(tmp_path, make):
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("f4")
    layer, other = make(), make()
    args = (x, x) if isinstance(layer, layers.MultiHeadAttention) else (x,)
    expected = layer(*args)
    path = Checkpoint(layer=layer).save(tmp_path / "ckpt")
    status = Checkpoint(layer=other).restore(path)
    assert_equal(other(*args), expected)
    status.assert_consumed()


@pytest.mark.parametrize("rule", ["Adam", "Adafactor", "Muon"])
def test_slots_of_an_optimizer_come_when_it_is_built(tmp_path, rule):
    make, gradient = getattr(tw.keras.optimizers, rule), [[1.0, 1.0]]
    optimizer, v = make(0.1), tw.Variable([[1.0, 2.0]])
    optimizer.apply_gradients([(gradient, v)])
    path = Checkpoint(v=v, optimizer=optimizer).save(tmp_path / "ckpt")
    other, w = make(0.5), tw.Variable([[0.0, 0.0]])
    Checkpoint(v=w, optimizer=other).restore(path)
    for each, variable in ((optimizer, v), (other, w)):
        each.apply_gradients([([[1.0, -1.0]], variable)])
    assert_equal([w, *other.variables], [v, *optimizer.variables])


def test_variables_of_modules_get_their_values_when_they_become_attributes(tmp_path):
    class Lazy(tw.Module):
        w = inner = None

        def __call__(self, x):
            if self.w is None:
                self.w = tw.Variable(tw.random.normal([2]))
                self.inner = [Lazy()]
            return self.w * x

    module, other = Lazy(), Lazy()
    module(1.0), module.inner[0](1.0)
    path = Checkpoint(module=module).save(tmp_path / "ckpt")
    status = Checkpoint(module=other).restore(path)
    with pytest.warns(UserWarning, match="variables .*Module .*created"):
        found = [other(1.0), other.inner[0](1.0)]
    assert_equal(found, [module.w, module.inner[0].w])
    status.assert_consumed()


def test_a_traced_function_that_makes_its_variable_sees_the_value(tmp_path):
    class Lazy(tw.Module):
        w = None

        @tw.function
        def __call__(self, x):
            if self.w is None:
                self.w = tw.Variable([1.0, 2.0])
            self.w.assign_add([1.0, 1.0])
            return self.w * x

    module, other = Lazy(), Lazy()
    module(1.0), module(1.0)
    path = Checkpoint(module=module).save(tmp_path / "ckpt")
    Checkpoint(module=other).restore(path)
    assert_equal([other(1.0), other(1.0)], [module(1.0), module(1.0)])


def make_loop():
    """A loop of one's own: objects, and a function that makes steps."""
    model = tw.keras.Sequential([layers.Dense(4), layers.Dropout(0.5), layers.Dense(2)])
    optimizer = tw.keras.optimizers.Adam(0.05)
    pairs = tw.data.Dataset.from_tensor_slices(data())
    iterator = iter(pairs.shuffle(20).repeat().batch(6))

    @tw.function
    def step(x, y):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean((model(x, training=True) - y) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    objects = {"model": model, "optimizer": optimizer, "iterator": iterator}

    def run(count):
        batches = [next(iterator) for _ in range(count)]
        return [step(*[tw.constant(t.numpy()) for t in b]).numpy() for b in batches]

    return objects, run


def test_a_loop_of_ones_own_goes_on_bit_for_bit(tmp_path):
    tw.keras.utils.set_random_seed(2)
    objects, run = make_loop()
    run(7)
    path = Checkpoint(**objects).save(tmp_path / "ckpt")
    expected = run(9)
    tw.keras.utils.set_random_seed(3)
    others, run = make_loop()
    status = Checkpoint(**others).restore(path)
    assert run(9) == expected
    status.assert_consumed()
    for name in ("model", "optimizer"):
        assert_equal(others[name].variables, objects[name].variables)


def test_reset_metrics_forgets_what_was_restored_for_metrics(tmp_path):
    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    other = model_of(4, 2)
    Checkpoint(model=other).restore(path)
    x, y = data()
    found = other.evaluate(x, y, verbose=0, return_dict=True)
    expected = np.mean(np.abs(other(x).numpy() - y))
    assert found["mae"] == pytest.approx(expected, rel=1e-6)


def test_what_is_kept_holds_no_model_alive(tmp_path):
    import gc
    import weakref

    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    model = model_of(4, 2)
    status = Checkpoint(model=model).restore(path)
    seen = weakref.ref(model)
    del model, status
    gc.collect()
    assert seen() is None


def test_a_model_with_awaited_weights_can_be_copied(tmp_path):
    path = Checkpoint(model=trained(4, 2)).save(tmp_path / "ckpt")
    model = tw.keras.Sequential([layers.Dense(4), layers.Dense(2)])
    Checkpoint(model=model).restore(path)
    copy = pickle.loads(pickle.dumps(model))
    assert_equal(copy(data()[0]), model(data()[0]))


def test_a_value_is_found_by_every_name_that_led_to_its_object(tmp_path):
    """The example of TensorFlow's guide on lists and dicts."""
    saved = Checkpoint(listed=[tw.Variable(1.0), tw.Variable(2.0)])
    saved.mapped = {"one": saved.listed[0], "two": saved.listed[1]}
    path = saved.save(tmp_path / "ckpt")
    restored = Checkpoint(mapped={"two": tw.Variable(0.0)})
    restored.restore(path)
    assert restored.mapped["two"].numpy() == 2
    restored.listed = []
    restored.listed.append(v := tw.Variable(0.0))
    assert v.numpy() == 1


def test_an_optimizer_is_found_beside_its_model_and_within(tmp_path):
    def make():
        model = tw.keras.Sequential([tw.keras.layers.Dense(1)])
        model.compile("adam", "mse")
        return model

    model = make()
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    expected = [v.numpy() for v in model.optimizer.variables]
    within = Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "a")
    beside = Checkpoint(optimizer=model.optimizer, model=model).save(tmp_path / "b")
    alone = tw.keras.optimizers.Adam()
    status = Checkpoint(optimizer=alone).restore(within).expect_partial()
    alone.build([tw.Variable(tw.zeros((2, 1))), tw.Variable(tw.zeros(1))])
    assert_equal(alone.variables, expected)
    status.assert_existing_objects_matched()

    other = make()
    other.build((None, 2)), other.optimizer.build(other.trainable_variables)
    Checkpoint(model=other).restore(beside).assert_existing_objects_matched()
    assert_equal(other.optimizer.variables, expected)
