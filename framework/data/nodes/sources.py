"""Sources of elements: arrays, numbers, Python's generators."""

from itertools import count

import numpy as np

from tapewright.core.composite import CompositeSpec
from tapewright.core.dtypes import as_dtype, int64
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack,
)
from tapewright.core.tensor import (
    TensorSpec,
    convert_to_tensor,
    is_composite,
    is_tensor,
    new_tensor,
)
from tapewright.core.text import row
from tapewright.ops.random.generators import drawing_from

from ..elements import as_element, concrete, describe, spec_of
from ..products_at_fork import noted
from ..rng import Draws, Watch
from .node import INFINITE, UNKNOWN, Node, Replayed, Rows, Seeded, Selection


class Slices(Selection):
    """The rows of arrays of one length, nested in any way; None stays None."""

    def __init__(self, arrays):
        super().__init__()
        self._arrays = arrays
        self._rows = Rows(
            arrays, [leaf for leaf in flatten(arrays) if leaf is not None]
        )

    @property
    def rows(self):
        return self._rows

    source_rows = rows

    def start(self):
        return {"index": 0}

    def select(self, position, run):
        for index in range(position["index"], self.size()):
            position["index"] = index + 1
            yield index

    def blocks(self, position, size):
        end = self.size()
        for first in range(position["index"], end, size):
            position["index"] = min(first + size, end)
            yield slice(first, position["index"])

    def size(self):
        return len(self._rows)

    def spec(self):
        return map_structure(
            lambda array: array if array is None else _row_spec(array), self._arrays
        )


def tensor_slices(tensors):
    """Check the tensors of `Dataset.from_tensor_slices` and return their `Slices`."""
    element = as_element(tensors)
    if any(map(is_composite, flatten(element))):
        return _composite_slices(element)
    arrays = map_structure(lambda tensor: tensor.array, element)
    leaves = flatten(arrays)
    if not leaves or not all(map(np.ndim, leaves)):
        raise ValueError(
            "from_tensor_slices: tensors must have an axis to slice, got "
            f"{describe(element)}"
        )
    if len({len(array) for array in leaves}) > 1:
        raise ValueError(
            "from_tensor_slices: all arrays must have the same length, got "
            f"{describe(element)}"
        )
    return Slices(arrays)


def _composite_slices(element):
    """Return the rows of an element that contains sparse or ragged tensors."""
    columns = [
        leaf._tw_unstacked() if is_composite(leaf) else _rows_of(leaf)
        for leaf in flatten(element)
    ]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            "from_tensor_slices: all tensors must have the same length, got "
            f"{describe(element)}"
        )
    spec = map_structure(row_spec, spec_of(element))
    rows = [pack(element, list(row)) for row in zip(*columns, strict=True)]
    return Elements(rows, spec)


def _rows_of(tensor):
    if not np.ndim(tensor.array):
        raise ValueError(
            "from_tensor_slices: tensors must have an axis to slice, got a scalar"
        )
    return [new_tensor(row(tensor.array, i)) for i in range(len(tensor.array))]


def row_spec(spec):
    """Return the spec of the rows of an object with a spec."""
    if isinstance(spec, CompositeSpec):
        return spec._tw_of_a_row()
    return TensorSpec(spec.shape[1:], spec.dtype)


def _row_spec(array):
    return TensorSpec(array.shape[1:], as_dtype(array.dtype))


class Elements(Node):
    """Elements of a list."""

    def __init__(self, elements, spec=None):
        super().__init__()
        self._elements, self._spec = elements, spec

    def start(self):
        return {"index": 0}

    def run(self, position):
        for element in self._elements[position["index"] :]:
            position["index"] += 1
            yield element

    def size(self):
        return len(self._elements)

    def spec(self):
        return spec_of(self._elements[0]) if self._spec is None else self._spec


class Counter(Elements):
    """Integers, as in Python's ``range``."""

    def __init__(self, *bounds, output_type=int64):
        if not 1 <= len(bounds) <= 3:
            raise ValueError(f"range: must be given 1 to 3 numbers, got {len(bounds)}")
        numbers = range(*[int(concrete(bound)) for bound in bounds])
        super().__init__(numbers, TensorSpec((), output_type))

    def run(self, position):
        dtype = self._spec.dtype.dtype
        for number in super().run(position):
            yield new_tensor(np.array(number, dtype))


class Endless(Node):
    """The numbers ``start``, ``start + step``, ... without end."""

    def __init__(self, start, step, dtype):
        super().__init__()
        self._first, self._step, self._dtype = start, step, as_dtype(dtype)

    def start(self):
        return {"index": 0}

    def run(self, position):
        dtype = self._dtype.as_numpy_dtype
        while True:
            number = self._first + position["index"] * self._step
            position["index"] += 1
            yield new_tensor(np.array(number, dtype))

    def size(self):
        return INFINITE

    def spec(self):
        return TensorSpec((), self._dtype)


class FromGenerator(Seeded, Replayed):
    """The items of a generator function.

    Random numbers that it draws without a seed depend on the numbers of the run and the
    element.
    """

    name = "from_generator"

    def __init__(self, generator, args=(), spec=None):
        super().__init__()
        if not callable(generator):
            raise TypeError(
                "from_generator: generator must be a function that returns an iterator, "
                f"so that each iteration can start anew; got {type(generator).__name__}"
            )
        self._generator, self._args, self._spec = generator, tuple(args), spec
        self.watch = Watch(2)

    def run(self, position):
        if position.get("failed"):  # as Python's generators: there is no more
            return iter(())
        return self._noting_failure(super().run(position), position)

    def _noting_failure(self, elements, position):
        try:
            yield from elements
        except Exception:
            position["failed"] = True
            raise

    def replay(self, position):
        draws = Draws(position)
        with drawing_from(draws):
            values = iter(self.watch.call(self._generator, *self._args))
        for number in count(1):
            draws.at(number)
            with drawing_from(draws):
                value = self.watch.call(noted, next, values, values)
            if value is values:  # which no generator yields
                return
            yield self._checked(value)

    def _checked(self, value):
        if self._spec is None:
            return as_element(value)
        try:
            element = as_element(value, self._spec)
            assert_same_structure(self._spec, element)
        except (TypeError, ValueError, KeyError) as error:
            raise TypeError(
                f"from_generator: the generator yielded {describe(value)}, which does "
                f"not fit output_signature {self._spec}: {error}"
            ) from None
        for leaf, spec in zip(flatten(element), flatten(self._spec), strict=True):
            if isinstance(spec, CompositeSpec) and not spec.is_compatible_with(leaf):
                raise TypeError(
                    f"from_generator: the generator yielded {leaf!r} where "
                    f"output_signature says {spec}"
                )
            if not spec.shape.is_compatible_with(leaf.shape):
                raise TypeError(
                    f"from_generator: the generator yielded shape {leaf.shape} where "
                    f"output_signature says {spec.shape}"
                )
        return element

    def size(self):
        return UNKNOWN

    def declares(self):
        return self._spec is not None

    def spec(self):
        if self._spec is None:
            first = self.first()
            if first is None:
                raise ValueError(
                    "element_spec: cannot be inferred, since the generator yielded no element"
                )
            self._spec = spec_of(first)
        return self._spec


def signature(output_signature, output_types, output_shapes):
    """Return the specs of `from_generator`, from the new arguments or the old ones.

    Raises:
        TypeError: If both are given, or shapes without types.
    """
    if output_signature is not None and (output_types, output_shapes) != (None, None):
        raise TypeError(
            "from_generator: give output_signature, or output_types and output_shapes, "
            "not both"
        )
    if output_types is None and output_shapes is not None:
        raise TypeError("from_generator: output_shapes must be given with output_types")
    for leaf in [] if output_signature is None else flatten(output_signature):
        if not isinstance(leaf, (TensorSpec, CompositeSpec)):
            raise TypeError(
                "from_generator: output_signature must have a TensorSpec for each tensor, "
                f"got {leaf!r}"
            )
    if output_signature is not None or output_types is None:
        return output_signature
    if output_shapes is None:
        return map_structure(lambda dtype: TensorSpec(None, dtype), output_types)
    if isinstance(output_types, dict):
        return {
            key: signature(None, dtype, output_shapes[key])
            for key, dtype in output_types.items()
        }
    if is_nested(output_types):
        pairs = zip(output_types, output_shapes, strict=True)
        return tuple([signature(None, dtype, shape) for dtype, shape in pairs])
    return TensorSpec(output_shapes, output_types)


def joined_by(reader_func, dataset_of):
    """Return a function that joins nodes as ``reader_func`` joins datasets.

    ``dataset_of`` makes datasets from nodes. None returns None.
    """
    if reader_func is None:
        return None

    def join(nodes):
        joined = reader_func(dataset_of(Elements([dataset_of(node) for node in nodes])))
        if not hasattr(joined, "_node"):
            raise TypeError(
                f"load: reader_func must return a Dataset, got {type(joined).__name__}"
            )
        return joined._node

    return join


def matching_files(who, file_pattern):
    """Return the files that match a pattern, or several, sorted.

    Raises:
        InvalidArgumentError: If there are none (a ``ValueError``).
    """
    from tapewright.storage.records.paths import expand_pattern  # where it is needed

    patterns = file_pattern
    if is_tensor(patterns) or hasattr(patterns, "ravel"):
        patterns = np.ravel(convert_to_tensor(patterns).numpy()).tolist()
    if not isinstance(patterns, list | tuple):
        patterns = [patterns]
    paths = [path for each in patterns for path in expand_pattern(who, each)]
    if not paths:
        raise InvalidArgumentError(
            f"{who}: no file matches file_pattern {file_pattern!r}"
        )
    return sorted(paths)
