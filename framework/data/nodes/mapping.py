"""Nodes that call functions, or join inputs: map, filter, enumerate, zip, concatenate."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from tapewright.compiler.function.function import function as traced
from tapewright.core.nest import flatten
from tapewright.core.tensor import TensorSpec, new_tensor
from tapewright.ops.random.generators import drawing_from

from ..elements import as_element, call_function, common_spec, spec_of
from ..rng import Draws, Watch
from .node import INFINITE, UNKNOWN, Node, Seeded


class Applied(Seeded):
    """Node that calls a function of each element.

    Random numbers that the function draws without a seed depend on the number of the
    element only, so that they are the same in a thread ahead and after a restore. A
    position may list elements that `ParallelMap` yielded ahead: these are skipped.
    """

    name = "map"

    def __init__(self, source, function, seed=None):
        super().__init__(source, seed=seed)
        self._function = function
        self.watch = Watch()

    def results(self, position):
        """Yield pairs of an element and the result of the function."""
        draws, ahead = Draws(position), position.get("ahead", ())
        for element in self.run_input(position):
            position["given"] += 1
            if position["given"] not in ahead:
                yield element, self.result(draws, position["given"], element)

    def result(self, draws, number, element):
        """Return the result of the function; ``number`` counts elements from 1."""
        draws.at(number)
        with drawing_from(draws):
            try:
                return self.watch.call(call_function, self._function, element)
            except Exception as error:
                error.add_note(f"In Dataset.{self.name}, at element {number - 1}")
                raise

    def traced_outputs(self, spec):
        """Trace the function and return the specs of its results, or None if that fails.

        Unknown sizes stay None in the specs.
        """
        arguments = spec if type(spec) is tuple else (spec,)
        if not all(isinstance(leaf, TensorSpec) for leaf in flatten(spec)):
            return None
        try:
            concrete = traced(self._function).get_concrete_function(*arguments)
            outputs = concrete.structured_outputs
        except (TypeError, ValueError, LookupError, AttributeError):
            return None  # it needs values, arrays or open sizes
        if type(outputs) is list:
            outputs = tuple(outputs)
        known = all(isinstance(leaf, TensorSpec) for leaf in flatten(outputs))
        return outputs if known else None


class Mapped(Applied):
    """Node of the results of a function; their spec comes from a trace or the first result."""

    _spec = None
    _is_declared = None  # whether by a trace: another result may differ from the first

    def spec(self):
        if self._spec is None:
            traced = self._traced_spec()
            self._is_declared = traced is not None and super().declares()
            self._spec = traced or self._first_spec()
        return self._spec

    def declares(self):
        if self._is_declared is None and super().declares():
            self._spec = self._traced_spec()
            self._is_declared = self._spec is not None
        return bool(self._is_declared)

    def traces(self):
        return self._spec is None

    def _traced_spec(self):
        return self.traced_outputs(self.inputs[0].spec())

    def _first_spec(self):
        first = self.first()
        if first is None:
            raise ValueError("element_spec: cannot be inferred from an empty dataset")
        return spec_of(first)


class Map(Mapped):
    """The results of a function of each element."""

    def run(self, position):
        for _, result in self.results(position):
            yield as_mapped(result)

    def lazy_items(self, position):
        draws = Draws(position)
        for item in self.inputs[0].lazy_items(position["inputs"][0]):
            position["given"] += 1
            item = _Call(draws, position["given"], item)
            # Draws from other generators than ours depend on all the calls before.
            if self.watch.is_open or self.watch.has_drawn:
                ((item.result,),) = Map.materialize(self, [[item]])
            yield item

    def materialize(self, groups):
        for calls in self.calls(groups):
            yield [self.called(*each) for each in calls]

    def calls(self, groups):
        """Return for each group a list of pairs of a call and its element."""
        taken = deque()  # groups taken ahead

        def inner():
            for group in groups:
                taken.append(group)
                yield [call.item for call in group]

        for elements in self.inputs[0].materialize(inner()):
            yield list(zip(taken.popleft(), elements, strict=True))

    def called(self, call, element):
        """Return the result of a call of `lazy_items`."""
        if call.result is None:
            return as_mapped(self.result(call.draws, call.number, element))
        return call.result


@dataclass(slots=True)
class _Call:
    """Item of `Map.lazy_items`: a call of the function, which may never be made."""

    draws: Draws
    number: int
    item: object
    result: object = None


def as_mapped(result):
    """Return the result of a function as an element."""
    # A list is a tuple here, not one tensor: tf.data makes this exception, too.
    return as_element(tuple(result) if type(result) is list else result)


def truth(who, value):
    """Return the value of a boolean scalar.

    Raises:
        TypeError: If it is anything else.
    """
    array = np.asarray(getattr(value, "array", value))
    if array.dtype != bool or array.ndim:
        raise TypeError(
            f"{who}: predicate must return a bool, got {array.dtype.name} of shape "
            f"{array.shape}"
        )
    return bool(array)


class Filter(Applied):
    """The elements for which a function is true."""

    name = "filter"

    def run(self, position):
        for element, kept in self.results(position):
            if truth("filter", kept):
                yield element

    def size(self):
        size = self.inputs[0].size()
        return size if size in (0, INFINITE) else UNKNOWN


class Enumerate(Node):
    """Pairs of a number, counted from ``start``, and an element."""

    def __init__(self, source, start):
        super().__init__(source)
        self._first = start

    def start(self):
        return {"number": self._first}

    def run(self, position):
        for element in self.run_input(position):
            position["number"] += 1
            yield new_tensor(np.array(position["number"] - 1)), element

    def spec(self):
        return TensorSpec((), "int64"), self.inputs[0].spec()


class Zip(Node):
    """One element of each input, together; ends with the shortest."""

    def __init__(self, pack, inputs):
        super().__init__(*inputs)
        self._pack = pack

    def run(self, position):
        pairs = zip(self.inputs, position["inputs"], strict=True)
        runs = [node.run(its_position) for node, its_position in pairs]
        for elements in zip(*runs, strict=False):
            yield self._pack(elements)

    def size(self):
        sizes = [node.size() for node in self.inputs]
        if 0 in sizes or UNKNOWN in sizes:
            return 0 if 0 in sizes else UNKNOWN
        return min([size for size in sizes if size >= 0], default=INFINITE)

    def spec(self):
        return self._pack([node.spec() for node in self.inputs])


class Concatenate(Node):
    """The elements of one input, followed by the elements of the other."""

    def __init__(self, *inputs):
        super().__init__(*inputs)
        self.check_spec()

    def start(self):
        return {"part": 0}

    def run(self, position):
        return self._in_turn(position, lambda node, start: node.run(start))

    def run_part(self, position, part):
        return self._in_turn(position, lambda node, start: node.run_part(start, part))

    def _in_turn(self, position, run):
        while position["part"] < len(self.inputs):
            part = position["part"]
            yield from run(self.inputs[part], position["inputs"][part])
            position["part"] += 1

    def size(self):
        sizes = [node.size() for node in self.inputs]
        if INFINITE in sizes:
            return INFINITE
        return UNKNOWN if UNKNOWN in sizes else sum(sizes)

    def spec(self):
        return common_spec("concatenate", [node.spec() for node in self.inputs])
