"""`if`, conditional expressions, and, or, not, comparisons and assert on tensors."""

import contextlib

import numpy as np
import pytest

import tapewright as tw


def check(function, *calls):
    """Compare Python on values with the converted function, for each tuple of arguments."""
    traced = tw.function(function)
    for args in calls:
        args = [tw.constant(x) if isinstance(x, float) else x for x in args]
        expected, found = function(*args), traced(*args)
        flat = tw.nest.flatten([expected]), tw.nest.flatten([found])
        for a, b in zip(*flat, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert not traced._eager
    return traced


SIGNS = [(2.0,), (-2.0,), (0.0,)]


def test_if_elif_else():
    def f(x):
        if x > 0:
            y = x * 2.0
        elif x < 0:
            y = -x
        else:
            y = x + 7.0
        return y

    traced = check(f, *SIGNS)
    assert traced.experimental_get_tracing_count() == 1


def test_a_variable_that_only_one_branch_changes():
    def f(x):
        y, z = x, 3.0
        if x > 0:
            y = y * 2.0
        return y + z

    check(f, *SIGNS)


def test_returns_in_branches():
    def f(x):
        if x > 0:
            if x > 1:
                return x * 100.0
            x = x + 1.0
        elif x < -5:
            return x
        return x * 3.0

    check(f, (2.0,), (0.5,), (-1.0,), (-9.0,))


def test_names_of_one_branch_that_nobody_reads_need_no_value():
    def f(x):
        if x > 0:
            scale = x * 2.0
            x = x + scale
        else:
            shift = x - 1.0
            x = x * shift
        return x

    check(f, *SIGNS)


def test_conditions_of_python_stay_python():
    ran = []

    @tw.function
    def f(x, flag):
        if flag:
            ran.append("yes")
            return x
        ran.append("no")
        return -x

    assert f(tw.constant(1.0), True).numpy() == 1
    assert f(tw.constant(1.0), False).numpy() == -1
    assert ran == ["yes", "no"]


def test_and_or_not_and_chains():
    def f(x):
        a = 0.0 < x < 1.0
        b = x > 0 and not x > 1
        c = x > 5 or x < -1 or a
        d = not (a and b) or c
        return [a, b, c, d, 1 if a else 2, x if c else -x]

    check(f, (0.5,), (2.0,), (7.0,), (-1.0,), (-3.0,))


def test_what_follows_and_or_or_is_evaluated_only_if_it_takes_that():
    calls = tw.Variable(0.0)

    def costly(x):
        calls.assign_add(1.0)
        return x > 1

    f = tw.function(lambda x: x > 0 and costly(x))
    assert [bool(f(tw.constant(x))) for x in (-1.0, 0.5, 2.0)] == [False, False, True]
    assert calls.numpy() == 2


def test_and_of_values_of_python_returns_them():
    found = []

    @tw.function
    def f(x):
        found.append([] or "none")
        found.append(x is not None and [1])
        return x

    f(tw.constant(1.0))
    assert found == ["none", [1]]


def test_nests_merge():
    def f(x):
        state = {"a": x, "b": (x, 1)}
        if x > 0:
            state = {"a": x * 2.0, "b": (x + 1.0, 2)}
        return state

    check(f, *SIGNS)


def test_keys_of_dicts_may_come_in_another_order():
    def f(x):
        d = {"a": x, "b": 1.0}
        kept = dict(d)
        if x > 0:
            d = {"b": x * 2.0, "a": 3.0}
            kept["a"] = kept.pop("a") + 1.0
        return d["a"] + 10.0 * d["b"], kept["a"] - kept["b"]

    check(f, *SIGNS)


def test_lists_and_dicts_that_branches_change():
    def f(x):
        items, named = [x, x + 1.0], {"k": x}
        if x > 0:
            items[0] = x * 5.0
            named["k"] = named["k"] + 1.0
            items.append(x)
        else:
            items[1] = -x
            items.append(x * 3.0)
        return items, named

    check(f, *SIGNS)


def test_attributes():
    class Box:
        pass

    def f(x):
        box = Box()
        box.value, box.label = x, "start"
        if x > 0:
            box.value = box.value * 2.0
        return box.value if box.label == "start" else x

    check(f, *SIGNS)


def test_variables_and_their_choice():
    a, b = tw.Variable(1.0), tw.Variable(10.0)

    @tw.function
    def f(x):
        if x > 0:
            a.assign_add(x)
            chosen = a
        else:
            b.assign_sub(x)
            chosen = b
        return chosen + 0.0

    assert f(tw.constant(2.0)).numpy() == 3
    assert f(tw.constant(-2.0)).numpy() == 12
    assert (a.numpy(), b.numpy()) == (3, 12)


def test_assert():
    @tw.function
    def f(x):
        assert x > 0, "x must be positive"
        return x

    assert f(tw.constant(1.0)).numpy() == 1
    with pytest.raises(ValueError, match=r"test_branches.py:\d+: x must be positive"):
        f(tw.constant(-1.0))


def test_match_with_branches_inside():
    def f(x, kind):
        match kind:
            case "double":
                if x > 0:
                    return x * 2.0
            case [first, *rest]:
                return x + first + len(rest)
        return x

    check(f, (1.0, "double"), (-1.0, "double"), (1.0, (3.0, 4, 5)), (1.0, "other"))


def test_try_and_with():
    def f(x):
        total = x
        try:
            with tw.name_scope("inner"):
                if len(x.shape) > 3:
                    return total * 2.0, 0
                if x > 0:
                    total = total * 3.0
                total = total + 1.0
        finally:
            total = total * 1.0
        try:
            raise KeyError("k")
        except KeyError as error:
            if x < -1:
                total = total * 10.0
            name = len(error.args[0])
        else:
            total = x
        return total, name

    check(f, (-3.0,), (-0.5,))

    def g(x):
        try:
            y = tw.sqrt(x)
            if x > 4:
                return y
        except ZeroDivisionError:
            y = x
        else:
            y = y + 1.0
        finally:
            y = y * 1.0
        return y

    check(g, (9.0,), (4.0,))


def test_derivatives_of_every_order():
    def f(x):
        if x > 1:
            return x**4
        return tw.sin(x) if x > 0 else x * x * x

    def nested(function, x, order):
        if not order:
            return function(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = nested(function, x, order - 1)
        return tape.gradient(y, x)

    traced = tw.function(f)
    for value in (2.0, 0.5, -1.5):
        x = tw.constant(value, "float64")
        for order in range(4):
            expected = nested(f, x, order).numpy()
            np.testing.assert_allclose(nested(traced, x, order).numpy(), expected)
            inside = tw.function(lambda x, n=order: nested(f, x, n))
            np.testing.assert_allclose(inside(x).numpy(), expected)


def test_each_trace_checks_its_own_types():
    @tw.function
    def f(x):
        return x * 2 if x > 0 else x

    assert f(tw.constant(2)).numpy() == 4
    assert f(tw.constant(2.0)).numpy() == 4.0


def test_integers_bools_and_shapes_of_one_entry_are_conditions():
    def f(x):
        return tw.constant(1) if x else tw.constant(2)

    traced = tw.function(f)
    for x in (0, 1, 5, True, False, [3.0], [[0.0]]):
        assert traced(tw.constant(x)).numpy() == f(tw.constant(x)).numpy()


def test_shapes_that_differ_run_eagerly():
    @tw.function
    def f(x):
        if x > 0:
            y = tw.zeros([2])
        else:
            y = tw.ones([3])
        return y

    assert f(tw.constant(1.0)).shape == (2,)
    assert f(tw.constant(-1.0)).shape == (3,)
    assert f._eager


# ------------------------------------------------------------------------ errors


def line_of(function, text):
    """Return ``file:line`` of the first line with a text in a function."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    number = next(i for i, line in enumerate(lines, first) if text in line)
    return rf"test_branches.py:{number}: "


def refused(function, text, match, *args):
    kinds = (TypeError, ValueError)
    for kind in kinds:
        with pytest.raises(kind, match=line_of(function, text) + match):
            tw.function(function)(*[tw.constant(x) for x in args])


def test_a_name_that_one_branch_sets():
    def f(x):
        if x > 0:
            y = x
        return y

    refused(f, "if x", "'y' is set only if the condition is true", 1.0)

    def g(x):
        if x > 0:
            pass
        else:
            z = x
        return z

    refused(g, "if x", "'z' is set only if it is false", 1.0)


def test_dtypes_that_differ():
    def f(x):
        if x > 0:
            y = tw.constant(1)
        else:
            y = 2.5
        return y

    refused(f, "if x", "'y' has dtype int32 .* and float32", 1.0)


def test_a_return_value_of_one_branch():
    def f(x):
        if x > 0:
            return x

    refused(f, "if x", "the return value is .* and None", 1.0)


def test_objects_of_python_that_differ():
    def f(x):
        if x > 0:
            name = "a"
        else:
            name = "b"
        return name

    refused(f, "if x", "'name' is 'a' if .* and 'b'", 1.0)


def test_a_list_that_one_branch_lets_grow():
    def f(x):
        found = []
        if x > 0:
            found.append(x)
        return found

    refused(f, "if x", "'found' is .* and \\[\\]", 1.0)


def test_a_condition_of_several_entries():
    def f(x):
        if x > 0:
            return x
        return -x

    refused(f, "if x", r"the condition of if .* shape \(2,\)", [1.0, 2.0])


def test_an_exception_in_a_branch_is_explained():
    @tw.function
    def f(x):
        if x > 0:
            raise KeyError("positive")
        return x

    with pytest.raises(KeyError) as caught:
        f(tw.constant(-1.0))
    assert "both branches of this if are traced" in caught.value.__notes__[0]


def test_tracebacks_show_lines_of_the_user():
    @tw.function
    def f(x):
        if x > 0:
            y = x
            y = tw.matmul(y, y)
        else:
            y = x
        return y

    with pytest.raises(ValueError) as caught:
        f(tw.constant(1.0))
    frames = [(e.frame.code.name, str(e.statement)) for e in caught.traceback]
    assert ("f", "y = tw.matmul(y, y)") in [(n, s.strip()) for n, s in frames]


def test_except_cannot_catch_what_a_traced_branch_raises():
    def f(x):
        try:
            if x > 0:
                raise KeyError("positive")
            return x
        except KeyError:
            return x * 100.0

    message = (
        r"test_branches.py:\d+: KeyError is raised depending on a tensor, and caught"
    )
    with pytest.raises(tw.errors.TracingError, match=message):
        tw.function(f)(tw.constant(1.0))


def test_except_catches_what_python_raises():
    def f(x):
        for k in range(3):
            try:
                if k == 1:
                    raise KeyError
                if x > 0:
                    x = x + 1.0
            except KeyError:
                x = x * 2.0
        return x

    check(f, *SIGNS)


def test_loops_with_jumps_in_finally():
    def f(x):
        n = 0.0
        for _ in range(2):
            try:
                if x > 0:
                    continue
                n = n + 10.0
            finally:
                for k in range(3):
                    if k == 2:
                        break
                    n = n + 1.0
        return x + n

    check(f, *SIGNS)


def test_with_cannot_swallow_what_a_traced_branch_raises():
    def f(x):
        with contextlib.suppress(KeyError):
            if x > 0:
                raise KeyError("positive")
            x = x * 2.0
        return x

    message = r"KeyError is raised depending on a tensor, and swallowed by the with"
    with pytest.raises(tw.errors.TracingError, match=message):
        tw.function(f)(tw.constant(1.0))


def test_with_swallows_what_python_raises():
    def f(x):
        for k in range(3):
            with contextlib.suppress(KeyError):
                if x > 0:
                    x = x + 1.0
                if k == 1:
                    raise KeyError
                x = x * 2.0
        return x

    check(f, *SIGNS)
