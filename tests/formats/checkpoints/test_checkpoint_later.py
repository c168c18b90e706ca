"""`Checkpoint`: what is made after it was restored gets its values before it is used."""

import pickle

import numpy as np
import pytest

import tapewright as tw

from .training import assert_equal, data, model_of, trained

Checkpoint = tw.train.Checkpoint
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


def test_slots_of_an_optimizer_come_when_it_is_built(tmp_path):
    v = tw.Variable([1.0, 2.0])
    optimizer = tw.keras.optimizers.Adam(0.1)
    optimizer.apply_gradients([([1.0, 1.0], v)])
    path = Checkpoint(v=v, optimizer=optimizer).save(tmp_path / "ckpt")
    other, w = tw.keras.optimizers.Adam(0.5), tw.Variable([0.0, 0.0])
    Checkpoint(v=w, optimizer=other).restore(path)
    for each, variable in ((optimizer, v), (other, w)):
        each.apply_gradients([([1.0, -1.0], variable)])
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
    with pytest.warns(UserWarning, match="variables of a Module were made after"):
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


def test_elements_put_in_lists_later_come_when_it_is_asserted(tmp_path):
    path = Checkpoint(many=[tw.Variable(3.0)]).save(tmp_path / "ckpt")
    many = []
    status = Checkpoint(many=many).restore(path)
    many.append(tw.Variable(0.0))
    status.assert_consumed()
    assert many[0].numpy() == 3.0


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


# ------------------------------------------------------------------ parts of a Checkpoint


def test_a_part_that_is_added_after_the_restore_gets_its_value(tmp_path):
    path = Checkpoint(v=tw.Variable(3.0)).save(tmp_path / "ckpt")
    checkpoint = Checkpoint()
    status = checkpoint.restore(path)
    checkpoint.v = tw.Variable(0.0)
    assert checkpoint.v.numpy() == 3
    status.assert_consumed()


def test_a_part_of_a_checkpoint_in_a_checkpoint_gets_its_value(tmp_path):
    layer = tw.keras.layers.Dense(2)
    layer.build((None, 3))
    path = Checkpoint(net=Checkpoint(layer=layer)).save(tmp_path / "ckpt")
    inner = Checkpoint(bias=tw.Variable(tw.zeros(2)))
    Checkpoint(net=Checkpoint(layer=inner)).restore(path)
    inner.kernel = tw.Variable(tw.zeros((3, 2)))
    assert_equal([inner.kernel], [layer.kernel])


@pytest.mark.parametrize(
    "put",
    [
        lambda c, v: c.many.append(v),
        lambda c, v: c.many.extend([v]),
        lambda c, v: c.many.insert(0, v),
        lambda c, v: c.many.__iadd__([v]),
    ],
)
def test_what_is_put_into_a_list_of_a_checkpoint_gets_its_value(tmp_path, put):
    path = Checkpoint(many=[tw.Variable(3.0)]).save(tmp_path / "ckpt")
    many = []
    checkpoint = Checkpoint(many=many)
    status = checkpoint.restore(path)
    put(checkpoint, v := tw.Variable(0.0))
    assert v.numpy() == 3 and many == [v]
    status.assert_consumed()


@pytest.mark.parametrize(
    "put",
    [
        lambda c, v: c.named.__setitem__("a", v),
        lambda c, v: c.named.update(a=v),
        lambda c, v: c.named.__ior__({"a": v}),
        lambda c, v: c.named.setdefault("a", v),
    ],
)
def test_what_is_put_into_a_dict_of_a_checkpoint_gets_its_value(tmp_path, put):
    path = Checkpoint(named={"a": tw.Variable(3.0)}).save(tmp_path / "ckpt")
    checkpoint = Checkpoint(named={})
    checkpoint.restore(path)
    put(checkpoint, v := tw.Variable(0.0))
    assert v.numpy() == 3 and checkpoint.named["a"] is v


def test_lists_and_dicts_of_a_checkpoint_are_those_that_were_given():
    many, named = [tw.Variable(1.0)], {}
    checkpoint = Checkpoint(many=many, named=named)
    assert checkpoint.many is many and checkpoint.named is named
    with pytest.raises(AttributeError, match="no part 'other'"):
        checkpoint.other  # noqa: B018


# ------------------------------------------------------------------ other names


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
