"""Random numbers of orders and of functions of elements, reproducible at each position.

Draws of ops without a seed depend on the number of the element. Numbers of the global
generators of NumPy or Python cannot be restored where elements are made ahead or a
second time: such draws are detected, for a warning.
"""

import hashlib
import sys
import threading
import warnings
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType

import numpy as np

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.ops.random.generators import Generator
from tapewright.ops.random.philox import draw_at


def shuffle_generator(seed, run, round=0):
    """Return the generator of the order of one run, or of one round of an outer `repeat`."""
    bits = np.random.Philox(key=seed, counter=[0, 0, run, round])
    return np.random.Generator(bits)


def permutation(size, seed, run, round=0):
    """Return the first permutation of a `shuffle_generator`, without making the generator."""
    return draw_at([seed, 0], [0, 0, run, round], lambda rng: rng.permutation(size))


class Draws(threading.local):
    """Generator for one element after the other, created on first use.

    Its numbers are a function of the seed, the run and the round of ``position``, and
    of the number of the element. Each thread has its own generator and element.
    """

    def __init__(self, position):
        self.words = [position["seed"], position["run"], position["round"]]
        self._generator = self._key = None
        self._number, self._moved = 0, False

    def at(self, number):
        """Move to the element with this number."""
        self._number, self._moved = number, False

    def __call__(self):
        if self._generator is None:
            self._generator = Generator(_mixed(*self.words))
            self._key = int(self._generator.key)
        if not self._moved:
            self._moved = True
            self._generator.reset([self._key, self._number << 32])
        return self._generator

    def run_within(self):
        """Return a number for the run of a dataset that is opened for this element."""
        return _mixed(*self.words, self._number)


def _mixed(*words):
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]) >> 1


class Watch:
    """Detector of draws from global generators other than tapewright's.

    Only the first calls are watched; later calls cost nothing.
    """

    def __init__(self, calls=1):
        self.has_drawn = self.has_warned = False
        self._left = calls

    @property
    def is_open(self):
        """True while there are calls to watch."""
        return self._left > 0

    def call(self, function, *args):
        """Return ``function(*args)``."""
        if not self._left:
            return function(*args)
        self._left -= 1
        before = _positions()
        result = function(*args)
        self.has_drawn |= before != _positions()
        return result


def _positions():
    """Return the states of the global generators of NumPy and Python."""
    state = np.random.get_state(legacy=False)["state"]
    states = [np.asarray(value).tobytes() for value in state.values()]
    if "random" in sys.modules:  # else nobody draws from it
        states.append(sys.modules["random"].getstate())
    return states


def captured_generators(function, depth=6):
    """Return generators of NumPy and Python: the global ones and those a function reaches.

    It reaches what is in its closure, its default values, the globals that it names and
    the attributes of its object, and what functions and objects there reach.
    """
    import random

    kinds = np.random.Generator, np.random.RandomState, random.Random
    found, seen, level = [np.random, random], set(), [function]
    for _ in range(depth):
        level = list(
            {id(each): each for each in level if id(each) not in seen}.values()
        )
        seen.update(map(id, level))
        found += [each for each in level if isinstance(each, kinds)]
        level = [inner for each in level for inner in _reached(each)]
    return found


def _reached(value):
    """Return the objects that a function or an object holds."""
    if isinstance(value, (type, ModuleType)):
        return []
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if not isinstance(value, FunctionType):
        methods = [getattr(type(value), name, None) for name in _CALLED]
        return [*methods, *getattr(value, "__dict__", {}).values()]
    held = [value.__globals__.get(name) for name in value.__code__.co_names]
    for cell in value.__closure__ or ():
        with suppress(ValueError):  # empty as yet
            held.append(cell.cell_contents)
    return [*held, *(value.__defaults__ or ())]


_CALLED = ("__call__", "__getitem__")  # methods that a pipeline calls


def seed_generators(generators, words):
    """Seed the generators of `captured_generators` from integers, each in another way."""
    seed = int.from_bytes(hashlib.blake2b(repr(words).encode()).digest())
    for number, generator in enumerate(generators):
        if isinstance(generator, np.random.Generator):
            bits = generator.bit_generator
            bits.state = type(bits)(seed + number).state
        elif generator is np.random or isinstance(generator, np.random.RandomState):
            generator.seed((seed + number) % 2**32)
        else:
            generator.seed(seed + number)


def warn_of_draws(node):
    """Warn once for each node of a chain if positions do not determine the elements."""
    ahead = [(node, node.runs_ahead)]
    while ahead:
        node, is_ahead = ahead.pop()
        watch = node.watch
        new = watch is not None and watch.has_drawn and not watch.has_warned
        if new and is_ahead:
            watch.has_warned = True
            warnings.warn(
                f"the function of Dataset.{node.name} draws from the global "
                "generator of NumPy or Python, whose state is not restored: after a "
                "restore the elements differ. Use tw.random instead",
                stacklevel=user_stacklevel(),
            )
        ahead += [(each, is_ahead or each.runs_ahead) for each in node.inputs]
