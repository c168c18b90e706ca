"""`Checkpoint`: what is made after it was restored gets its values before it is used."""

import pickle

import numpy as np
import pytest

import tapewright as tw

Checkpoint = tw.train.Checkpoint
layers = tw.keras.layers


def model_of(*sizes, optimizer="adam"):
    model = tw.keras.Sequential([layers.Dense(n, activation="tanh") for n in sizes])
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def data(seed=0):
    numbers = np.random.default_rng(seed)
    return numbers.normal(size=(20, 3)).astype("f4"), np.ones((20, 2), "f4")


def trained(*sizes, **options):
    model = model_of(*sizes, **options)
    model.fit(*data(), epochs=2, verbose=0)
    return model


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


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
    assert_equal([other(1.0), other.inner[0](1.0)], [module.w, module.inner[0].w])
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
