"""Traced functions that count their traces, and what they are called with."""

import collections
import warnings

import tapewright as tw

Point = collections.namedtuple("Point", "x y")


def counted(**options):
    """A traced function of any arguments; ``seen`` holds those for which its Python ran."""

    @tw.function(**options)
    def f(*args, **kwargs):
        f.seen.append((args, kwargs))
        leaves = [x for x in args if isinstance(x, tw.Tensor)]
        return leaves[0] * 2.0 if leaves else None

    f.seen = []
    return f


def traces(f, *calls):
    """How many traces each of these calls made."""
    made = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in calls:
            before = len(f.seen)
            f(*args)
            made.append(len(f.seen) - before)
    return made


def ones(*shape, dtype="float32"):
    return tw.ones(shape, dtype)


class Thing:
    pass


class Scaler:
    made = 0

    def __init__(self, factor):
        self.factor = tw.Variable(factor)

    @tw.function
    def scaled(self, x):
        Scaler.made += 1
        return x * self.factor

    @tw.function
    def __call__(self, x, power=1):
        return self.scaled(x) ** power

    @classmethod
    @tw.function
    def name_length(cls, x):
        return x + float(len(cls.__name__))

    @tw.function
    @classmethod
    def other_order(cls, x):
        return x + float(len(cls.__name__))

    @staticmethod
    @tw.function
    def plus_one(x):
        return x + 1.0

    @tw.function
    @staticmethod
    def plus_two(x):
        return x + 2.0
