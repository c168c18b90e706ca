"""`tw.compat.v1`: messages, seeds and sessions of programs of eager mode."""

import logging
import subprocess
import sys

import pytest

import tapewright as tw
from tapewright.compat.v1 import logging as v1_logging

v1 = tw.compat.v1


@pytest.fixture
def messages(caplog):
    """A function that returns the levels and texts of new messages."""
    level = tw.get_logger().level
    tw.get_logger().setLevel(logging.NOTSET)

    def new():
        found = [(r.levelname, r.getMessage()) for r in caplog.records]
        caplog.clear()
        return found

    yield new
    tw.get_logger().setLevel(level)


def test_messages_of_the_level_and_above_are_logged(messages, caplog):
    assert v1_logging is v1.logging and v1.logging.get_verbosity() == v1.logging.WARN
    v1.logging.info("hidden")
    v1.logging.warn("w %s", 1)
    v1.logging.set_verbosity(v1.logging.DEBUG)
    for write in (
        v1.logging.debug,
        v1.logging.info,
        v1.logging.error,
        v1.logging.fatal,
    ):
        write("%d of %d", 1, 2)
    v1.logging.log(v1.logging.INFO, "x")
    assert {record.pathname for record in caplog.records} == {__file__}
    assert messages() == [
        ("WARNING", "w 1"), ("DEBUG", "1 of 2"), ("INFO", "1 of 2"), ("ERROR", "1 of 2"),
        ("CRITICAL", "1 of 2"), ("INFO", "x"),
    ]  # fmt: skip
    v1.logging.set_verbosity("ERROR")
    v1.logging.warning("hidden")
    assert messages() == [] and v1.logging.get_verbosity() == logging.ERROR


def test_some_calls_of_a_line_are_logged(messages):
    level = v1.logging.ERROR
    for i in range(5):
        v1.logging.log_first_n(level, "first %d", 2, i)
        v1.logging.log_every_n(level, "every %d", 3, i)
        v1.logging.log_if(level, "if %d", i == 4, i)
    texts = [text for _, text in messages()]
    assert texts == ["first 0", "every 0", "first 1", "every 3", "if 4"]


def test_messages_go_to_the_console_unless_logging_is_configured():
    program = """if True:
        import logging, tapewright as tw
        tw.get_logger().error("a")
        logging.basicConfig(format="root %(message)s")
        tw.get_logger().error("b")"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.stderr == "ERROR:tapewright:a\nroot b\n"


def test_the_seed_is_that_of_the_process():
    v1.set_random_seed(3)
    first = tw.random.uniform([2]).numpy()
    tw.random.set_seed(3)
    assert tw.random.uniform([2]).numpy().tolist() == first.tolist()


@pytest.mark.parametrize("make", [v1.Session, v1.InteractiveSession])
def test_a_session_holds_settings_and_runs_nothing(make):
    options = v1.GPUOptions(per_process_gpu_memory_fraction=0.3)
    config = v1.ConfigProto(gpu_options=options, intra_op_parallelism_threads=1)
    config.gpu_options.allow_growth = True
    v1.enable_eager_execution(config=config)
    with make(config=config) as session, session.as_default():
        with pytest.raises(
            RuntimeError, match="there are no graphs to run; call a @tw"
        ):
            session.run(tw.constant(1))
    session.close()
    with pytest.raises(AttributeError, match="allow_grow"):
        config.gpu_options.allow_grow = True
    with pytest.raises(TypeError, match="config must be a ConfigProto, got int"):
        make(config=3)
    with pytest.raises(ValueError, match="graph None"):
        make(graph=tw.function(tw.exp).get_concrete_function(1.0).graph)
    assert not v1.ConfigProto().gpu_options.allow_growth


def test_the_switches_of_eager_mode_are_on():
    for switch in (
        "enable_v2_behavior",
        "enable_v2_tensorshape",
        "reset_default_graph",
    ):
        assert getattr(v1, switch)() is None
    assert v1.executing_eagerly()
    for switch in (v1.disable_eager_execution, v1.disable_v2_behavior):
        with pytest.raises(RuntimeError, match="ops always run eagerly"):
            switch()
    with pytest.raises(RuntimeError, match="an argument of a @tw.function"):
        v1.placeholder(tw.float32, [None])


def test_other_names_are_those_of_tensorflow_2():
    with pytest.raises(
        AttributeError, match="instead of tf.compat.v1.Variable, use tw.Var"
    ):
        v1.Variable(1)
    with pytest.raises(
        AttributeError, match="use the TensorFlow 2 API, which has no sess"
    ):
        v1.get_variable("x")


@pytest.mark.parametrize(
    "arguments, scope",
    [(("a", "b"), "a/"), ((None, "b", [1]), "b/"), ((None,), ""), (("",), "")],
)
def test_a_name_scope_has_a_default_name(arguments, scope):
    with v1.name_scope(*arguments) as outer, v1.name_scope(None, "in") as inner:
        assert (outer, inner) == (scope, f"{scope}in/")
