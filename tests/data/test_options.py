"""`Options`: which there are, how they merge, and what they do to a chain."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import Dataset, Options, experimental

from .elements_of import values


def settings(deterministic=None, **threading):
    options = Options()
    options.deterministic = deterministic
    for name, value in threading.items():
        setattr(options.threading, name, value)
    return options


def test_settings_have_the_names_and_types_of_tensorflow():
    options = Options()
    assert options == Options() and options.autotune.enabled is None
    options.experimental_optimization.map_fusion = True
    options.autotune.cpu_budget = 2
    options.experimental_deterministic = False  # the older name
    options.experimental_threading.private_threadpool_size = 3
    assert options.deterministic is False and options != Options()
    assert options.threading.private_threadpool_size == 3
    options.threading = tw.data.ThreadingOptions()
    assert options.threading.private_threadpool_size is None
    shards = options.experimental_distribute
    shards.auto_shard_policy = experimental.AutoShardPolicy.DATA
    for group, name, value, error in [
        (options, "foo", 1, AttributeError),
        (options, "deterministic", 1, TypeError),
        (options, "threading", None, TypeError),
        (options.threading, "private_threadpool_size", "2", TypeError),
        (shards, "auto_shard_policy", experimental.AutoShardPolicy.FILE, ValueError),
    ]:
        with pytest.raises(error, match=name):
            setattr(group, name, value)
    with pytest.raises(AttributeError):
        options.foo  # noqa: B018


def test_later_options_count_before_earlier_ones():
    first = settings(False, max_intra_op_parallelism=1)
    second = settings(None, private_threadpool_size=2)
    merged = first.merge(second)
    assert merged == settings(
        False, max_intra_op_parallelism=1, private_threadpool_size=2
    )
    ds = Dataset.range(2)
    assert ds.options() == Options()
    assert ds.with_options(first).map(abs).with_options(second).options() == merged
    both = Dataset.zip(ds.with_options(first), ds.with_options(settings(True)))
    assert both.options().deterministic is True
    with pytest.raises(TypeError, match="must be an Options, got int"):
        ds.with_options(3)


def test_options_leave_gathered_batches_as_they_are():
    ds = Dataset.from_tensor_slices(np.arange(7))
    plain = ds.shuffle(7, seed=1)
    expected = [values(plain.batch(3)), values(plain.batch(3))]
    ds = (
        ds.with_options(settings(False)).shuffle(7, seed=1).with_options(settings(True))
    )
    assert ds._node.rows is not None
    assert [values(ds.batch(3)), values(ds.batch(3))] == expected
    assert len(ds) == 7 and ds.element_spec == plain.element_spec
