"""Random numbers of orders and of functions of elements, reproducible at each position.

Draws of ops without a seed depend on the number of the element. Numbers of the global
generators of NumPy or Python cannot be restored where elements are made ahead or a
second time: such draws are detected, for a warning.
"""

import gc
import hashlib
import sys
import threading
import warnings
from collections import deque
from types import CodeType, FunctionType, ModuleType

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


def captured_generators(function):
    """Return generators of NumPy and Python: the global ones and those a function reaches.

    It reaches what its code names (globals, attributes of modules), its closure and its
    default values, and what objects there hold, including the code of their classes.
    Modules of Python, NumPy and tapewright are not entered. No code of these objects
    is called, and the order is that of names and attributes. After `MOST_OBJECTS` the
    search ends; the contents of large containers come last.
    """
    import random

    kinds = np.random.Generator, np.random.RandomState, np.random.BitGenerator
    kinds += (random.Random,)
    found = [np.random, random]
    # With the objects, whose numbers would be used again.
    seen = {id(each): each for each in (np.random.mtrand._rand, random._inst)}
    near, far = deque([function]), deque()
    while (near or far) and len(seen) < MOST_OBJECTS:
        value = (near or far).popleft()
        if type(value) in _PLAIN or id(value) in seen:
            continue
        seen[id(value)] = value
        if issubclass(type(value), kinds):
            found.append(value)
            continue
        held = _reached(value)
        if len(held) <= LARGE:
            near.extend(held)
        else:
            far.extend(held[:MOST_OBJECTS])
    return found


MOST_OBJECTS = 10_000
LARGE = 256  # entries of a container
_PLAIN = {type(None), bool, int, float, complex, str, bytes, CodeType, ModuleType}
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "tapewright"} - {"__main__"}
# These read the object itself: no `__getattr__` is called.
_attributes = ModuleType.__dict__["__dict__"].__get__
_class_attributes = type.__dict__["__dict__"].__get__
_bases = type.__dict__["__mro__"].__get__


def _is_library(name):
    return type(name) is str and name.partition(".")[0] in _LIBRARIES


def _reached(value):
    """Return the objects that a function, a class or another object holds."""
    kind = type(value)
    if kind is FunctionType:
        held = [value.__closure__, value.__defaults__, value.__kwdefaults__]
        return [*held, value.__dict__, *_named(value)]
    if issubclass(kind, type):
        attributes = _class_attributes(value)
        if _is_library(attributes.get("__module__", "builtins")):
            return []
        return [*attributes.values(), *_bases(value)]
    if kind is np.ndarray:
        return value.ravel().tolist() if value.dtype.hasobject else []
    return gc.get_referents(value)


def _named(function):
    """Return the globals and the attributes of modules that the code of a function names."""
    known = function.__globals__
    if _is_library(known.get("__name__")):
        return []
    names, codes = [], [function.__code__]
    for code in codes:
        names += code.co_names
        codes += [each for each in code.co_consts if type(each) is CodeType]
    held = []
    for name in names:
        value = known.get(name)
        if value is None:
            value = sys.modules.get(name)  # imported by the function
        held.append(value)
    for cell in function.__closure__ or ():
        held += [each for each in gc.get_referents(cell) if type(each) is ModuleType]
    entered = set()
    for value in held:
        if issubclass(type(value), ModuleType) and id(value) not in entered:
            entered.add(id(value))
            attributes = _attributes(value)
            if not _is_library(attributes.get("__name__")):
                held += [attributes[name] for name in names if name in attributes]
    return held


def seed_generators(generators, words):
    """Seed the generators of `captured_generators` from integers, each in another way."""
    seed = int.from_bytes(hashlib.blake2b(repr(words).encode()).digest())
    for number, generator in enumerate(generators):
        if isinstance(generator, np.random.BitGenerator):
            _seed_bits(generator, seed + number)
        elif isinstance(generator, np.random.Generator):
            _seed_bits(generator.bit_generator, seed + number)
        elif isinstance(generator, np.random.RandomState):
            bits = generator._bit_generator
            _seed_bits(bits, seed + number)
            np.random.RandomState.__init__(
                generator, bits
            )  # forgets the second of two normal numbers
        elif generator is np.random:
            generator.seed((seed + number) % 2**32)
        else:
            generator.seed(seed + number)


def _seed_bits(bits, seed):
    bits.state = type(bits)(seed).state


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
