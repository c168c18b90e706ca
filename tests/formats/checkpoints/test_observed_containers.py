"""Parts, lists and dicts of a checkpoint that are filled after the restore."""

import pytest

import tapewright as tw

from .training import assert_equal

Checkpoint = tw.train.Checkpoint


def test_elements_put_in_lists_later_come_when_it_is_asserted(tmp_path):
    path = Checkpoint(many=[tw.Variable(3.0)]).save(tmp_path / "ckpt")
    many = []
    status = Checkpoint(many=many).restore(path)
    many.append(tw.Variable(0.0))
    status.assert_consumed()
    assert many[0].numpy() == 3.0


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
    with pytest.raises(AttributeError, match="Checkpoint .*'other'"):
        checkpoint.other  # noqa: B018
