"""Values of a checkpoint that nothing has used are saved again."""

import os
import signal

import numpy as np
import pytest

import tapewright as tw

keras, train = tw.keras, tw.train


def net(units=3):
    return keras.Sequential([keras.layers.Dense(units), keras.layers.Dense(1)])


def trained():
    model, optimizer = net(), keras.optimizers.Adam(0.1)
    step(model, optimizer)
    return model, optimizer


def step(model, optimizer):
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(model(tw.ones((2, 4))) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))


def values(model, optimizer):
    return [v.numpy() for v in [*model.variables, *optimizer.variables]]


def test_what_is_saved_before_the_first_step_is_all_that_was_restored(tmp_path):
    """As by SIGTERM right behind a restart: the older file may be removed then."""
    model, optimizer = trained()
    first = train.Checkpoint(net=model, opt=optimizer).save(f"{tmp_path}/ckpt")

    second = train.Checkpoint(net=net(), opt=keras.optimizers.Adam(0.1))
    second.restore(first)
    path = second.save(f"{tmp_path}/ckpt")
    assert train.list_variables(path) == train.list_variables(first)

    other, its_optimizer = net(), keras.optimizers.Adam(0.1)
    status = train.Checkpoint(net=other, opt=its_optimizer).restore(path)
    other.build((None, 4)), its_optimizer.build(other.trainable_variables)
    status.assert_consumed()
    for found, expected in zip(values(other, its_optimizer), values(model, optimizer)):
        np.testing.assert_array_equal(found, expected)


def test_values_of_modules_that_make_no_variables_yet_are_saved_again(tmp_path):
    class Lazy(tw.Module):
        def build(self):
            self.v = tw.Variable([1.0, 2.0])

    module = Lazy()
    module.build()
    module.v.assign([3.0, 4.0])
    first = train.Checkpoint(modules=[module]).write(tmp_path / "a")
    second = train.Checkpoint(modules=[Lazy()])
    second.restore(first)
    third = train.Checkpoint(modules=[Lazy()])
    third.restore(second.write(tmp_path / "b"))
    third.modules[0].build()
    assert third.modules[0].v.numpy().tolist() == [3.0, 4.0]


def test_values_under_another_name_are_saved_again_under_the_new_one(tmp_path):
    model, optimizer = trained()
    pretrained = train.Checkpoint(model=model).write(tmp_path / "a")
    other = net()
    train.Checkpoint(model=other).restore(pretrained)
    path = train.Checkpoint(student=other).write(tmp_path / "b")
    names = [name for name, _ in train.list_variables(path)]
    assert "student/layers/0/kernel" in names


def test_trained_values_are_saved_and_not_what_was_restored(tmp_path):
    model, optimizer = trained()
    path = train.Checkpoint(net=model, opt=optimizer).write(tmp_path / "a")
    other, its_optimizer = net(), keras.optimizers.Adam(0.1)
    checkpoint = train.Checkpoint(net=other, opt=its_optimizer)
    checkpoint.restore(path)
    step(other, its_optimizer)
    with_step = train.load_checkpoint(checkpoint.write(tmp_path / "b"))
    found = with_step.get_tensor("net/layers/0/kernel")
    np.testing.assert_array_equal(found, other.layers[0].kernel.numpy())
    assert with_step.get_tensor("opt/iteration") == 2


def test_values_that_are_lost_in_the_next_file_are_warned_of(tmp_path):
    v, w = tw.Variable(1.0), tw.Variable(2.0)
    path = train.Checkpoint(v=v, w=w).write(tmp_path / "a")
    checkpoint = train.Checkpoint(v=v)
    checkpoint.restore(path)
    with pytest.warns(UserWarning, match="no object matched w,"):
        checkpoint.write(tmp_path / "b")
    checkpoint.write(tmp_path / "c")  # once is enough


def test_a_restore_that_is_meant_to_be_partial_is_not_warned_of(tmp_path):
    v, w = tw.Variable(1.0), tw.Variable(2.0)
    path = train.Checkpoint(v=v, w=w).write(tmp_path / "a")
    checkpoint = train.Checkpoint(v=v)
    checkpoint.restore(path).expect_partial()
    checkpoint.write(tmp_path / "b")


def test_a_checkpoint_of_which_nothing_is_used_is_warned_of(tmp_path):
    model, _ = trained()
    path = train.Checkpoint(model=model).write(tmp_path / "a")
    with pytest.warns(UserWarning, match="'model'.*'net'"):
        train.Checkpoint(net=net()).restore(path)  # not built: it cannot miss anything


class Lazy(tw.Module):
    """Draws its weights, and then other numbers, at its first call."""

    w = None

    def __call__(self, x):
        if self.w is None:
            self.w = tw.Variable(tw.random.normal((2,)))
        return x * self.w + tw.random.normal((2,))


def test_numbers_that_were_drawn_for_nothing_are_warned_of(tmp_path):
    module = Lazy()
    module(1.0)
    path = train.Checkpoint(module=module).write(tmp_path / "a")
    again = Lazy()
    train.Checkpoint(module=again).restore(path)
    with pytest.warns(UserWarning, match="random numbers may differ"):
        again(1.0)


def test_variables_made_before_the_restore_let_the_numbers_go_on(tmp_path):
    module, again = Lazy(), Lazy()
    module(1.0), again(1.0)
    path = train.Checkpoint(module=module).write(tmp_path / "a")
    expected = module(1.0).numpy()
    train.Checkpoint(module=again).restore(path)
    assert again(1.0).numpy().tolist() == expected.tolist()


def test_layers_that_are_built_later_let_the_numbers_go_on_without_a_warning(tmp_path):
    def dropped(model):
        return model(tw.ones((3, 4)), training=True).numpy()

    def make():
        rate = keras.layers.Dropout(0.5)
        return keras.Sequential([keras.layers.Dense(3), rate, keras.layers.Dense(1)])

    model, again = make(), make()
    dropped(model)
    path = train.Checkpoint(model=model).write(tmp_path / "a")
    expected = dropped(model)
    train.Checkpoint(model=again).restore(path)
    assert dropped(again).tolist() == expected.tolist()


def test_sigterm_before_the_first_step_loses_nothing(tmp_path):
    told = []
    previous = signal.signal(signal.SIGTERM, lambda *_: told.append("end"))
    try:
        model, optimizer = trained()
        train.Checkpoint(net=model, opt=optimizer).save(tmp_path / "ckpt")
        checkpoint = train.Checkpoint(net=net(), opt=keras.optimizers.Adam(0.1))
        manager = train.CheckpointManager(checkpoint, tmp_path, 1, save_on_sigterm=True)
        with manager:
            manager.restore_or_initialize()
            os.kill(os.getpid(), signal.SIGTERM)
            manager.save_if_asked()
        names = [name for name, _ in train.list_variables(manager.latest_checkpoint)]
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert told == ["end"]
    assert "net/layers/1/kernel" in names and len(os.listdir(tmp_path)) == 1
