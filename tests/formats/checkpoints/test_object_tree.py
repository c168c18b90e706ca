"""The tree of objects that a checkpoint names."""

import pytest

import tapewright as tw
from tapewright.formats.checkpoints.checkpoint_file import (
    Content,
    write_content,
)

from .training import assert_equal, trained

Checkpoint = tw.train.Checkpoint
layers = tw.keras.layers


def test_metrics_and_modules_in_lists_and_dicts_are_kept(tmp_path):
    def make(value):
        module = tw.Module()
        module.parts = {
            "a/b": [tw.Variable(value)],
            "": tw.Variable(value),
            3: (1, "x"),
        }
        return module

    metric, other = tw.keras.metrics.Mean(), tw.keras.metrics.Mean()
    metric.update_state([1.0, 2.0])
    module = make(1.0)
    path = Checkpoint(metrics=[metric], module=module).save(tmp_path / "ckpt")
    module = make(0.0)
    Checkpoint(metrics=[other], module=module).restore(path).assert_consumed()
    assert float(other.result()) == 1.5
    assert [float(v) for v in module.variables] == [1.0, 1.0]


@pytest.mark.parametrize("name", ["_layers", "_chain", "_start", "_kept", "x"])
def test_private_attributes_are_kept_whatever_their_name(tmp_path, name):
    module = tw.Module()
    setattr(module, name, [tw.Variable(1.0)])
    path = Checkpoint(module=module).write(tmp_path / "one")
    assert tw.train.list_variables(path) == [(f"module/{name}/0", [])]


def test_an_object_is_kept_once_however_it_is_reached(tmp_path):
    v = tw.Variable(1.0)
    path = Checkpoint(a=v, b=[v, v]).save(tmp_path / "ckpt")
    assert tw.train.list_variables(path) == [("a", []), ("save_counter", [])]


def test_a_root_has_its_parts_at_the_top(tmp_path):
    layer = layers.Dense(2)
    layer.build((None, 3))
    path = Checkpoint(layer, step=tw.Variable(0)).write(tmp_path / "one")
    names = [name for name, _ in tw.train.list_variables(path)]
    assert names == ["bias", "kernel", "step"]
    other = layers.Dense(2)
    Checkpoint(other, step=tw.Variable(1)).read(path)
    other.build((None, 3))
    assert_equal(other.weights, layer.weights)


def test_names_do_not_depend_on_the_names_of_layers(tmp_path):
    names = []
    for i in range(2):
        path = Checkpoint(model=trained(4, 2)).write(tmp_path / f"{i}")
        names.append([name for name, _ in tw.train.list_variables(path)])
    assert names[0] == names[1]


def test_aliases_that_are_no_names_are_refused(tmp_path):
    content = Content(str(tmp_path / "f"), {}, {}, {"aliases": {"a": 3}})
    write_content(content)
    with pytest.raises(tw.errors.SavingError, match=r"'aliases'.*\{'a': 3\}"):
        Checkpoint().restore(content.path)
