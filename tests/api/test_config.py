"""`tw.config.threading` and `tw.config.optimizer`: settings of programs for TensorFlow."""

import pytest

import tapewright as tw
from tapewright.config import optimizer, threading


def test_threads_are_set_under_the_names_of_tensorflow():
    assert threading.get_intra_op_parallelism_threads() == 0
    threading.set_inter_op_parallelism_threads(2)
    threading.set_intra_op_parallelism_threads(3)
    assert tw.config.threads() == 3
    assert threading.get_inter_op_parallelism_threads() == 2
    threading.set_intra_op_parallelism_threads(1000)
    assert tw.config.threads() == 64
    assert threading.get_intra_op_parallelism_threads() == 1000
    threading.set_inter_op_parallelism_threads(0)
    threading.set_intra_op_parallelism_threads(0)


def test_settings_of_the_optimizer_are_taken():
    for enabled, level in (True, "autoclustering"), (False, ""):
        optimizer.set_jit(enabled)
        assert optimizer.get_jit() == level
    with pytest.raises(ValueError, match="enabled must be True, False or"):
        optimizer.set_jit("yes")
    optimizer.set_experimental_options({"constant_folding": True})
    assert optimizer.get_experimental_options() == {
        "constant_folding": True,
        "disable_meta_optimizer": False,
        "disable_model_pruning": False,
    }
