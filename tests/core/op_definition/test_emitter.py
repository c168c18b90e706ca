"""The emitter of Python source: names, indentation, and what a function is bound to."""

import pytest

from tapewright.core.op_definition.emitter import Source, identifier


def test_each_object_gets_a_name_of_its_own():
    source = Source("<test>")
    names = [source.bind("f", value) for value in (len, max, len)]
    assert len(set(names)) == 3
    assert [source.bound[name] for name in names] == [len, max, len]


@pytest.mark.parametrize("name", ["class", "a b", "1x", "é", "<lambda>", ""])
def test_any_name_becomes_an_identifier(name):
    assert identifier(name).isidentifier()
    exec(f"{identifier(name)} = 1")


def test_blocks_nest_and_lines_keep_their_tags():
    source = Source("<test>")
    with source.function("run", ["x"]):
        with source.block("if x:", "condition"):
            source.emit("x = -x", "negation")
        source.emit("return x")
    assert source.compiled()["run"](3) == -3
    assert source.tags == [None, "condition", "negation", None]
    assert len(source.tags) == source.text.count("\n")


def test_a_bound_object_can_be_replaced_in_each_function_made():
    source = Source("<test>")
    with source.function("run", []):
        source.emit(f"return {source.bind('c', 1)}")
    (name,) = source.bound
    first, second = source.compiled(), source.compiled(**{name: 2})
    assert (first["run"](), second["run"]()) == (1, 2)


def test_an_error_is_raised_in_the_line_that_it_came_from():
    source = Source("<where it was written>")
    with source.function("fail", []):
        source.emit("x = 1")
        source.emit("x / 0")
    with pytest.raises(ZeroDivisionError) as caught:
        source.compiled()["fail"]()
    last = caught.traceback[-1].frame.code.raw
    assert last.co_filename == "<where it was written>"
    assert caught.traceback[-1].lineno + 1 == 3
