"""Nodes that stack elements along a new axis, or split them: batch, padded_batch, unbatch."""

from collections import deque
from itertools import islice

import numpy as np

from tapewright.core.composite import CompositeSpec
from tapewright.core.hardware import devices
from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.core.tensor import (
    TensorSpec,
    convert_to_tensor,
    is_composite,
    new_tensor,
)
from tapewright.core.text import is_text, row
from tapewright.ops.ragged.ragged_tensor import RaggedTensorSpec
from tapewright.ops.sparse.sparse_tensor import SparseTensor, SparseTensorSpec

from ..elements import describe, packer, stack_elements
from .node import UNKNOWN, Node, copy_position, row_count
from .sources import row_spec


class Batch(Node):
    """``batch_size`` elements as one; rows of arrays are gathered, a batch at a time."""

    def __init__(self, source, batch_size, drop_remainder=False):
        super().__init__(source)
        self.batch_size, self._drop_remainder = batch_size, drop_remainder
        self._element_spec = None  # see `_ragged_spec`

    def run(self, position):
        source = self.inputs[0]
        if source.rows is None:
            return map(self._stack, self._lists(self.run_input(position)))
        if source.rows.reads_ahead:
            return (
                batch
                for batch, _ in self._batches_and_sizes(position, lambda rows: rows)
            )
        blocks = self._blocks(source, position["inputs"][0])
        return source.rows.batches(blocks, self.batch_size)

    def run_part(self, position, part):
        pairs = self._batches_and_sizes(position, part.choose)
        return (part.wrap(batch, size) for batch, size in pairs)

    def _batches_and_sizes(self, position, choose):
        """Yield pairs of a batch of the chosen rows and the number of all its rows."""
        source, live = self.inputs[0], copy_position(position["inputs"][0])
        taken = deque()  # of batches taken ahead: the size, and the position after each

        def chosen(batches):
            for rows in batches:
                taken.append((row_count(rows), copy_position(live)))
                yield choose(rows)

        if source.rows is not None:
            blocks = chosen(self._blocks(source, live))
            batches = source.rows.batches(blocks, self.batch_size)
        else:
            elements = source.materialize(chosen(self._lists(source.lazy_items(live))))
            batches = map(self._stack, elements)
        for batch in batches:
            size, position["inputs"][0] = taken.popleft()
            yield batch, size
        position["inputs"][0] = live

    def _blocks(self, source, position):
        return filter(self._is_kept, source.blocks(position, self.batch_size))

    def _lists(self, items):
        batches = iter(lambda: list(islice(items, self.batch_size)), [])
        return filter(self._is_kept, batches)

    def _is_kept(self, batch):
        return not self._drop_remainder or row_count(batch) == self.batch_size

    def _stack(self, elements):
        if hasattr(elements[0], "element_spec"):
            raise TypeError(
                "batch: elements must be tensors, got datasets; use flat_map first"
            )
        return stack_elements(elements, spec=self._ragged_spec())

    def _ragged_spec(self):
        """Return the spec of an element if it is known to contain ragged tensors, or None."""
        if self._element_spec is None:
            source = self.inputs[0]
            # A function returns ragged tensors, not their rows: these are seen.
            is_known = not source.traces() and source.declares()
            spec = source.spec() if is_known else ()
            plain = [not isinstance(x, CompositeSpec) for x in flatten(spec)]
            self._element_spec = () if all(plain) else (spec,)
        return self._element_spec[0] if self._element_spec else None

    def size(self):
        size = self.inputs[0].size()
        if size < 0:
            return size
        return (
            size // self.batch_size
            if self._drop_remainder
            else -(-size // self.batch_size)
        )

    def spec(self):
        count = self.batch_size if self._drop_remainder else None
        return map_structure(
            lambda spec: self._batch_spec(spec, count), self.inputs[0].spec()
        )

    def _batch_spec(self, spec, count):
        if isinstance(spec, CompositeSpec):
            return spec._tw_batched(count)
        return TensorSpec((count,) + spec.shape, spec.dtype)


class RaggedBatch(Batch):
    """Like `Batch`, with a ragged axis for each component of unknown size."""

    def __init__(self, source, batch_size, drop_remainder, row_splits_dtype):
        super().__init__(source, batch_size, drop_remainder)
        self._splits = row_splits_dtype

    def run(self, position):
        return map(self._stack, self._lists(self.run_input(position)))

    def run_part(self, position, part):
        return Node.run_part(self, position, part)

    def _ragged_spec(self):
        if self._element_spec is None:
            source = self.inputs[0]
            known = source.declares()
            self._element_spec = map_structure(
                lambda spec: self._row_spec(spec, known), source.spec()
            )
        return self._element_spec

    def _row_spec(self, spec, known):
        """Return the spec by which a component is stacked: ragged if its shape varies.

        A shape of the first element, which is not ``known``, may differ in the next
        one.
        """
        if isinstance(spec, CompositeSpec) or not spec.shape.rank:
            return spec
        if known and spec.shape.is_fully_defined():
            return spec
        if not spec.shape[1:].is_fully_defined():
            raise ValueError(
                f"ragged_batch: only the first size of an element may vary, got {spec}"
            )
        return RaggedTensorSpec([None, *spec.shape[1:]], spec.dtype, 0, self._splits)

    def spec(self):
        count = self.batch_size if self._drop_remainder else None
        return map_structure(
            lambda spec: self._batch_spec(spec, count), self._ragged_spec()
        )


class SparseBatch(Batch):
    """Elements, one tensor each, as a `SparseTensor` of rows of one shape."""

    def __init__(self, source, batch_size, row_shape):
        super().__init__(source, batch_size)
        self._row = row_shape

    def run(self, position):
        return map(self._stack, self._lists(self.run_input(position)))

    def run_part(self, position, part):
        return Node.run_part(self, position, part)

    def _stack(self, elements):
        with devices.use_module(np):
            rows = [self._as_row(element) for element in elements]
            return rows[0]._tw_stacked(rows)

    def _as_row(self, element):
        shape = getattr(element, "shape", None)
        if shape is None or shape.rank != len(self._row):
            raise ValueError(
                f"sparse_batch: elements must be tensors of rank {len(self._row)}, the "
                f"rank of row_shape, got {describe(element)}"
            )
        row = [n if m is None else m for n, m in zip(shape, self._row)]
        if any([n > m for n, m in zip(shape, row)]):
            raise ValueError(
                f"sparse_batch: an element has shape {tuple(shape)}, larger than "
                f"row_shape {self._row}"
            )
        indices = np.indices(tuple(shape)).reshape(len(row), -1).T.astype(np.int64)
        return SparseTensor(indices, element.array.reshape(-1), row)

    def spec(self):
        return SparseTensorSpec([None, *self._row], self.inputs[0].spec().dtype)


class PaddedBatch(Batch):
    """Like `Batch`, with each element padded at the end to a common shape."""

    def __init__(self, source, batch_size, shapes, values, drop_remainder=False):
        super().__init__(source, batch_size, drop_remainder)
        self._shapes, self._values = shapes, values

    def run(self, position):
        return map(self._stack, self._lists(self.run_input(position)))

    def run_part(self, position, part):
        # Whole batches: the longest element may be of another part.
        return Node.run_part(self, position, part)

    def _stack(self, elements):
        first = elements[0]
        if any(map(is_composite, flatten(first))):
            raise TypeError(
                "padded_batch: sparse and ragged tensors cannot be padded; use batch"
            )
        columns = zip(*map(flatten, elements), strict=True)
        count = len(flatten(first))
        shapes = _per_leaf(first, self._shapes, count, "padded_shapes")
        values = _per_leaf(first, self._values, count, "padding_values")
        padded = [_padded(*each) for each in zip(columns, shapes, values, strict=True)]
        return pack(first, padded)

    def spec(self):
        count = self.batch_size if self._drop_remainder else None
        spec = self.inputs[0].spec()
        leaves = flatten(spec)
        shapes = _per_leaf(spec, self._shapes, len(leaves), "padded_shapes")
        specs = [
            TensorSpec((count, *_sizes(shape, len(leaf.shape))), leaf.dtype)
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
        return pack(spec, specs)


def batch_size_of(dataset):
    """Return the batch size of a `Dataset`, or None if `batch` was not its last step."""
    return dataset._node.batch_size if isinstance(dataset._node, Batch) else None


def _per_leaf(element, argument, count, name):
    """Return one entry for each leaf, from a single value or a nest like the element."""
    if not isinstance(argument, (tuple, dict)) or not is_nested(element):
        return [argument] * count
    entries = _entries(element, argument)
    if len(entries) != count:
        raise ValueError(
            f"padded_batch: {name} must be nested like an element, got {argument!r}"
        )
    return entries


def _entries(element, argument):
    if isinstance(element, dict):
        keys = flatten({key: key for key in element})
        return [
            entry for key in keys for entry in _entries(element[key], argument[key])
        ]
    if isinstance(element, tuple):
        pairs = zip(element, argument, strict=False)
        return [entry for item, part in pairs for entry in _entries(item, part)]
    return [argument]


def _sizes(shape, rank):
    """Return the sizes of a padded element; None pads to the longest."""
    sizes = [None] * rank if shape is None else shape
    if not isinstance(sizes, (list, tuple)) and np.ndim(sizes) == 0:
        sizes = [sizes]  # a number is the size of one axis
    return [None if size in (None, -1) else int(size) for size in sizes]


def _padded(tensors, shape, value):
    arrays = [np.asarray(tensor.array) for tensor in tensors]
    longest = [
        max(sizes) for sizes in zip(*[array.shape for array in arrays], strict=True)
    ]
    wanted = _sizes(shape, len(longest))
    if len(wanted) != len(longest):
        raise ValueError(
            f"padded_batch: padded_shapes has {tuple(wanted)} for elements of shape "
            f"{arrays[0].shape}"
        )
    sizes = [n if w is None else w for n, w in zip(longest, wanted, strict=True)]
    if any(n > w for n, w in zip(longest, sizes, strict=True)):
        raise ValueError(
            f"padded_batch: an element has shape {tuple(longest)}, larger than "
            f"padded_shapes {tuple(sizes)}"
        )
    dtype = arrays[0].dtype
    empty = b"" if is_text(dtype) else 0
    fill = empty if value is None else np.asarray(convert_to_tensor(value))[()]
    out = np.full((len(arrays), *sizes), fill, dtype)
    for number, array in enumerate(arrays):
        out[(number, *[slice(0, n) for n in array.shape], ...)] = array
    return new_tensor(out)


class Unbatch(Node):
    """The rows of batches, one by one."""

    runs_ahead = True  # a batch is made once more for the rest of its rows

    def start(self):
        return {"inside": 0}

    def run(self, position):
        # The position of the input stays before the batch whose rows are being yielded.
        live = copy_position(position["inputs"][0])
        for batch in self.inputs[0].run(live):
            leaves, make = flatten(batch), packer(batch)
            taken = {
                i: x._tw_unstacked() for i, x in enumerate(leaves) if is_composite(x)
            }
            lengths = {
                (len(taken[i]),) if i in taken else np.shape(leaf.array)[:1]
                for i, leaf in enumerate(leaves)
            }
            if len(lengths) != 1 or lengths == {()}:
                raise ValueError(
                    "unbatch: all components must have a first axis of one length"
                )
            for number in range(position["inside"], *lengths.pop()):
                position["inside"] = number + 1
                rows = [
                    taken[i][number]
                    if i in taken
                    else new_tensor(row(leaf.array, number))
                    for i, leaf in enumerate(leaves)
                ]
                yield make(rows)
            position["inputs"][0], position["inside"] = copy_position(live), 0

    def size(self):
        size = self.inputs[0].size()
        if size <= 0:  # or not known
            return size
        first = flatten(self.inputs[0].spec())[0].shape
        known = first.rank and first[0] is not None
        return size * first[0] if known else UNKNOWN

    def spec(self):
        return map_structure(row_spec, self.inputs[0].spec())


class Rebatch(Node):
    """The rows of batches, in batches of other sizes that are used in turn."""

    runs_ahead = True  # a batch is made once more for the rest of its rows

    def __init__(self, source, sizes, drop_remainder=False):
        super().__init__(source)
        self._sizes, self._drop_remainder = sizes, drop_remainder
        self.check_spec()

    def start(self):
        return {"inside": 0, "turn": 0}

    def run(self, position):
        # The position of the input stays before the batch whose rows are being yielded.
        live = copy_position(position["inputs"][0])
        pieces, held = [], 0
        for batch in self.inputs[0].run(live):
            start, end = position["inside"], _row_count(batch)
            while start < end:
                wanted = self._sizes[position["turn"] % len(self._sizes)]
                stop = min(start + wanted - held, end)
                pieces.append(_rows(batch, start, stop))
                held, start = held + stop - start, stop
                if held == wanted:
                    position["inside"], position["turn"] = start, position["turn"] + 1
                    yield _join(pieces)
                    pieces, held = [], 0
            position["inputs"][0], position["inside"] = copy_position(live), 0
        if held and not self._drop_remainder:
            position["turn"] += 1
            yield _join(pieces)

    def size(self):
        return 0 if self.inputs[0].size() == 0 else UNKNOWN

    def spec(self):
        known = self._drop_remainder and len(self._sizes) == 1
        count = self._sizes[0] if known else None
        spec = self.inputs[0].spec()
        leaves = flatten(spec)
        if any([isinstance(leaf, CompositeSpec) for leaf in leaves]):
            raise _no_rows()
        if any([leaf.shape.rank == 0 for leaf in leaves]):
            raise ValueError(
                "rebatch: elements must have an axis of rows, got scalars; use batch first"
            )
        return map_structure(
            lambda spec: TensorSpec((count,) + spec.shape[1:], spec.dtype), spec
        )


def _no_rows():
    return TypeError(
        "rebatch: batches of sparse and ragged tensors are not cut; use unbatch, then batch"
    )


def _row_count(batch):
    leaves = flatten(batch)
    if any(map(is_composite, leaves)):
        raise _no_rows()
    lengths = {np.shape(leaf.array)[:1] for leaf in leaves}
    if len(lengths) != 1 or lengths == {()}:
        raise ValueError("rebatch: all components must have a first axis of one length")
    return lengths.pop()[0]


def _rows(batch, start, stop):
    leaves = [new_tensor(leaf.array[start:stop]) for leaf in flatten(batch)]
    return packer(batch)(leaves)


def _join(pieces):
    if len(pieces) == 1:
        return pieces[0]
    columns = zip(*map(flatten, pieces), strict=True)
    leaves = [
        new_tensor(np.concatenate([leaf.array for leaf in column]))
        for column in columns
    ]
    return packer(pieces[0])(leaves)
