"""Scopes: eager code in a trace, names, an order of effects."""

import pytest

import tapewright as tw


def test_code_can_ask_where_it_runs():
    seen = []

    @tw.function
    def f():
        seen.append((tw.executing_eagerly(), tw.inside_function()))
        with tw.init_scope():
            seen.append((tw.executing_eagerly(), tw.inside_function()))

    f()
    assert seen == [(False, True), (True, True)]
    assert tw.executing_eagerly() and not tw.inside_function()


def test_an_init_scope_computes_at_once_and_is_seen_by_no_tape():
    v = tw.Variable(2.0)

    @tw.function
    def f(x):
        with tw.init_scope():
            now = (v * 3.0).numpy()
        return x + now

    assert f(tw.constant(1.0)).numpy() == 7
    with tw.GradientTape() as tape:
        with tw.init_scope():
            y = v * v
    assert tape.gradient(y, v) is None


def test_a_traced_tensor_has_no_place_in_an_init_scope():
    @tw.function
    def f(x):
        with tw.init_scope():
            return x + 1.0

    with pytest.raises(tw.errors.TracingError, match="outside the trace"):
        f(tw.constant(1.0))


def test_control_dependencies_keep_the_order():
    v = tw.Variable(1.0)

    @tw.function
    def f(x):
        first = v.assign(x)
        with tw.control_dependencies([first]):
            second = v * 2.0
        second, _ = tw.tuple([second, None], control_inputs=[first])
        return tw.group(first, second) or second, tw.no_op()

    assert f(tw.constant(4.0))[0].numpy() == 8
    called = []
    with tw.control_dependencies([lambda: called.append(1)]):
        pass
    assert called == [1]


def test_name_scopes_nest():
    with tw.name_scope("a"):
        with tw.name_scope("b") as inner:
            with tw.name_scope("c/") as alone:
                pass
    assert (inner, alone) == ("a/b/", "c/")
    with pytest.raises(ValueError, match="name .*got 3"):
        tw.name_scope(3)

    class Block(tw.Module):
        @tw.Module.with_name_scope
        def __call__(self):
            with tw.name_scope("in") as inner:
                return inner

    assert Block(name="first")() == "first/in/"
