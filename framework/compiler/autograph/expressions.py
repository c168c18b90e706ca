"""Expressions of converted code: ``and``, ``or``, ``not``, comparisons, ``assert``."""

import operator

from tapewright.core.messages.source_lines import user_line
from tapewright.core.shapes.symbolic_dim import UnknownSize
from tapewright.ops.math.comparison import logical_not

from ..control_flow.printing import assert_true
from .branches import choose
from .conditions import is_traced, scalar_condition


def and_(first, *others, reachable=()):
    """Evaluate ``first and other() and ...``; ``others`` are called only if needed."""
    if not others:
        return first

    def rest():
        return and_(others[0](), *others[1:], reachable=reachable)

    if is_traced(first):
        return choose(first, rest, lambda: first, others, reachable)
    return rest() if first else first


def or_(first, *others, reachable=()):
    """Evaluate ``first or other() or ...``; ``others`` are called only if needed."""
    if not others:
        return first

    def rest():
        return or_(others[0](), *others[1:], reachable=reachable)

    if is_traced(first):
        return choose(first, lambda: first, rest, others, reachable)
    return first if first else rest()


def not_(x):
    """Evaluate ``not x``."""
    return logical_not(scalar_condition(x, "not")) if is_traced(x) else not x


def is_none(x):
    """Evaluate ``x is None``; an unknown size of a shape is None, as in TensorFlow.

    Values computed from sizes, which TensorFlow cannot compute, are numbers.
    """
    return x is None or (type(x) is UnknownSize and x.is_dimension)


def is_not_none(x):
    """Evaluate ``x is not None``."""
    return not is_none(x)


def if_exp(test, true_fn, false_fn, reachable=()):
    """Evaluate ``true_fn() if test else false_fn()``."""
    if is_traced(test):
        return choose(test, true_fn, false_fn, (true_fn, false_fn), reachable)
    return true_fn() if test else false_fn()


def compare(left, first, *others):
    """Evaluate ``left < x() < y()``; ``others`` are pairs of a comparison and a function."""
    name, right = first
    right = right()
    value = _COMPARISONS[name](left, right)
    return and_(value, lambda: compare(right, *others)) if others else value


_COMPARISONS = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "is_": lambda a, b: is_none(a) if b is None else a is b,
    "is_not": lambda a, b: not _COMPARISONS["is_"](a, b),
    "in_": lambda a, b: a in b,
    "not_in": lambda a, b: a not in b,
}


def assert_stmt(test, message):
    """Run ``assert test, message()``; for a traced test, in each call.

    Raises:
        AssertionError: If the test is false.
        InvalidArgumentError: If a traced test is false in a replay.
    """
    if is_traced(test):
        text = "assertion failed" if message is None else message()
        line = user_line(always=True)
        assert_true(scalar_condition(test, "assert"), f"{line}: {text}")
    elif not test:
        raise AssertionError(*(() if message is None else (message(),)))
