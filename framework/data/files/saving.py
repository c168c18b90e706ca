"""Datasets in folders: `Dataset.save`, `Dataset.load` and `Dataset.snapshot`.

A folder has TFRecord files, the shards, and ``dataset.json``, an object with

- ``"format"``, ``"tapewright data set"``, and ``"version"``, 1;
- ``"element_spec"``: ``{"tensor": [shape, dtype]}``, None for unknown sizes or ranks;
  ``{"sparse": [shape, dtype]}``;
  ``{"ragged": [shape, dtype, ragged rank, dtype of the splits]}``; ``{"tuple": [...]}``
  and ``{"dict": {...}}`` of such;
- ``"compression"``: ``""``, ``"GZIP"`` or ``"ZLIB"``;
- ``"shards"``: for each file, in the order of reading, ``"file"``, ``"elements"`` and
  ``"bytes"``.

A record is a tuple of the tensors of an element; see `element_records`. Sparse and
ragged tensors are stored as their components. Files are data: nothing in them is
executed.
"""

import os
import re
from contextlib import contextmanager, nullcontext

from tapewright.core.composite import CompositeSpec
from tapewright.core.dtypes import as_dtype
from tapewright.core.errors import DataLossError, NotFoundError, SavingError
from tapewright.core.nest import flatten, map_structure, pack
from tapewright.core.tensor import TensorSpec, is_composite
from tapewright.core.text import make_text
from tapewright.ops.ragged.ragged_tensor import RaggedTensorSpec
from tapewright.ops.sparse.sparse_tensor import SparseTensorSpec
from tapewright.storage.atomic import sync
from tapewright.storage.folders import FolderReader, writing_folder
from tapewright.storage.records.lines import check_compression
from tapewright.storage.records.paths import as_path
from tapewright.storage.records.tf_records import RecordWriter, read_records

from ..elements import call_function, common_spec, concrete, spec_of
from ..nodes.node import INFINITE, Replayed
from ..nodes.sources import tensor_slices
from .element_records import decoded, encoded
from .record_files import Records

INDEX, FORMAT, VERSION = "dataset.json", "tapewright data set", 1
SHARD = re.compile(r"shard_\d{5,}\.tfrecord")
RECORD = 16  # bytes of a record without content
MAX_EXPANSION = 1100  # of what zlib compresses
OF_TENSORFLOW = ("dataset_spec.pb", "snapshot.metadata")


# ----------------------------------------------------------------------------- writing


def save(node, path, compression=None, shard_func=None):
    """Write all elements of a node into a folder, completely or not at all."""
    if node.size() == INFINITE:
        raise ValueError(
            "save: the dataset must be finite, got an infinite one; use take(count)"
        )
    with _writing("save", node, path, compression, shard_func) as add:
        for element in node.elements(node.begin()):
            add(element)


@contextmanager
def _writing(who, node, path, compression, shard_func):
    """Yield a function that adds an element to a new folder, which appears at the end."""
    compression = check_compression(who, compression)
    spec, varies = node.spec(), not node.declares()
    if varies:  # it is that of the first element
        spec = map_structure(_open, spec)
    whole = spec
    _describe_spec(who, spec)  # raises what is wrong before a file is made
    path, shards = os.fsdecode(as_path("path", path)), {}
    with writing_folder(path, _members(path)) as folder:

        def add(element):
            nonlocal whole
            if varies:
                whole = _common(who, whole, element)
            number = 0 if shard_func is None else _number(who, shard_func, element)
            if number not in shards:
                shards[number] = _Shard(folder, number, compression)
            shards[number].add(encoded(tuple(_parts(spec, element)), who))

        if shard_func is None:  # there is one, if there is no element
            shards[0] = _Shard(folder, 0, compression)
        try:
            yield add
        finally:
            for shard in shards.values():
                shard.writer.close()
        index = {
            "format": FORMAT,
            "version": VERSION,
            "element_spec": _describe_spec(who, whole),
            "compression": compression,
            "shards": [shards[number].entry() for number in sorted(shards)],
        }
        folder.json(INDEX, index)


def _open(spec):
    """Return the spec of sparse and ragged tensors of any sizes; other specs unchanged."""
    if not isinstance(spec, CompositeSpec):
        return spec
    return spec._tw_with_shape([None] * spec.shape.rank)


def _common(who, spec, element):
    """Return a spec with the sizes in which it agrees with ``element``."""
    pairs = zip(flatten(spec), flatten(element), strict=True)
    leaves = [
        a if isinstance(a, CompositeSpec) else common_spec(who, [a, spec_of(b)])
        for a, b in pairs
    ]
    return pack(spec, leaves)


class _Shard:
    """File that is being written."""

    def __init__(self, folder, number, compression):
        self.name, self.count = f"shard_{number:05d}.tfrecord", 0
        self.path = folder.location(self.name)
        self.writer = RecordWriter(self.path, compression)

    def add(self, record):
        self.writer.write(record)
        self.count += 1

    def entry(self):
        sync(self.path)
        size = os.path.getsize(self.path)
        return {"file": self.name, "elements": self.count, "bytes": size}


def _members(path):
    """Return the files of the dataset that the folder held before."""
    names = os.listdir(path) if os.path.isdir(path) else ()
    return [INDEX, *[name for name in names if SHARD.fullmatch(name)]]


def _number(who, shard_func, element):
    number = int(concrete(call_function(shard_func, element)))
    if number < 0:
        raise ValueError(f"{who}: shard_func must return 0 or more, got {number}")
    return number


def _parts(spec, element):
    """Return the tensors of an element, with sparse and ragged tensors as components."""
    for each, leaf in zip(flatten(spec), flatten(element), strict=True):
        if is_composite(leaf):
            yield from each._tw_fitted(leaf)._tw_components()
        else:
            yield leaf


def _describe_spec(who, spec):
    """Return a spec as plain values."""
    if isinstance(spec, dict):
        if not all([isinstance(key, str) for key in spec]):
            raise TypeError(
                f"{who}: dicts in files must have str keys, got {list(spec)}"
            )
        return {"dict": {key: _describe_spec(who, each) for key, each in spec.items()}}
    if isinstance(spec, tuple):
        return {"tuple": [_describe_spec(who, each) for each in spec]}
    if isinstance(spec, TensorSpec):
        return {"tensor": [_sizes(spec), spec.dtype.name]}
    if isinstance(spec, SparseTensorSpec):
        return {"sparse": [_sizes(spec), spec.dtype.name]}
    if isinstance(spec, RaggedTensorSpec):
        splits = spec.row_splits_dtype.name
        return {"ragged": [_sizes(spec), spec.dtype.name, spec.ragged_rank, splits]}
    raise TypeError(
        f"{who}: elements in files must be tensors in tuples and dicts, got {spec!r:.200}"
    )


def _sizes(spec):
    return None if spec.shape.rank is None else spec.shape.as_list()


# ----------------------------------------------------------------------------- reading


def load(path, join=None, element_spec=None, compression=None):
    """Return a node of the elements in a folder that `save` wrote.

    ``join`` makes it from a list of nodes, one for each shard.
    """
    path = os.fsdecode(as_path("path", path))
    spec, stored, shards = _index(path)
    if element_spec is not None and element_spec != spec:
        raise ValueError(
            f"load: element_spec must be None or match the dataset in {path}, {spec}; "
            f"got {element_spec}"
        )
    if compression is not None and check_compression("load", compression) != stored:
        raise ValueError(
            f"load: compression must be None or match the dataset in {path}, {stored!r}; "
            f"got {compression!r}"
        )
    if join is None:
        return _Shards(shards, stored, spec)
    return join([_Shards([shard], stored, spec) for shard in shards])


def is_saved(path):
    """Return whether a folder contains a dataset."""
    return os.path.isfile(os.path.join(path, INDEX))


def _index(path):
    """Return the spec, the compression, and pairs of path and count of the shards."""
    if not os.path.isdir(path):
        raise NotFoundError(f"load: there is no folder {path}")
    folder = FolderReader(path)
    if INDEX not in folder:
        by_tensorflow = any([name in folder for name in OF_TENSORFLOW])
        raise SavingError(
            path,
            "contains a dataset in TensorFlow's format, which cannot be read; write it as "
            "TFRecord files of tf.io.serialize_tensor or tf.train.Example"
            if by_tensorflow
            else f"contains no dataset: there is no {INDEX}",
        )
    index = folder.json_object(INDEX)
    if index.get("format") != FORMAT or index.get("version") != VERSION:
        raise SavingError(
            os.path.join(path, INDEX),
            f"must be a {FORMAT} of version {VERSION}, got {index.get('format')!r:.80}, "
            f"version {index.get('version')!r:.80}",
        )
    try:
        spec = _spec(index["element_spec"])
        compression = check_compression("load", index["compression"])
        expansion = MAX_EXPANSION if compression else 1
        shards = [_checked_shard(folder, each, expansion) for each in index["shards"]]
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, SavingError):
            raise
        raise SavingError(os.path.join(path, INDEX), f"is damaged: {error}") from None
    return spec, compression, shards


def _checked_shard(folder, entry, expansion):
    name, count, size = (entry[key] for key in ("file", "elements", "bytes"))
    if not isinstance(name, str) or SHARD.fullmatch(name) is None:
        raise ValueError(f"{name!r:.80} is not the name of a shard")
    if type(count) is not int or type(size) is not int or not 0 <= count < 1 << 63:
        raise ValueError(f"{name} has the invalid sizes {count!r:.80} and {size!r:.80}")
    shard = folder.file(name)
    actual = os.path.getsize(shard) if os.path.isfile(shard) else None
    if actual != size:
        raise SavingError(shard, f"must have {size} bytes, has {actual}")
    if count * RECORD > size * expansion:
        raise ValueError(f"{name} has {size} bytes, which cannot hold {count} elements")
    return shard, count


def _spec(value):
    """Return the spec that `_describe_spec` wrote."""
    ((kind, parts),) = value.items()
    if kind == "dict":
        return {key: _spec(each) for key, each in parts.items()}
    if kind == "tuple":
        return tuple([_spec(each) for each in parts])
    shape, dtype, *rest = parts
    dtype = as_dtype(dtype)
    if kind == "ragged":
        return RaggedTensorSpec(shape, dtype, *rest)
    if kind not in ("tensor", "sparse") or rest:
        raise ValueError(f"{kind!r:.80} is not a kind of spec")
    return (TensorSpec if kind == "tensor" else SparseTensorSpec)(shape, dtype)


class _Shards(Records):
    """The elements in shards, one file after the other."""

    def __init__(self, shards, compression, spec):
        self._count = sum([count for _, count in shards])
        super().__init__(
            tensor_slices(make_text([path for path, _ in shards], (len(shards),))),
            lambda path, offset: read_records(path, compression, offset),
            lambda record: _element(spec, record),
            spec,
        )

    def size(self):
        return self._count


def _element(spec, record):
    """Return the element of a record.

    Raises:
        DataLossError: If it does not fit the spec.
    """
    parts, leaves = decoded(record), []
    try:
        parts = iter(parts)
        for each in flatten(spec):
            # a row of a ragged tensor may be a tensor
            if isinstance(each, CompositeSpec) and getattr(each, "ragged_rank", 1):
                count = len(each._tw_components())
                leaf = each._tw_with_components([next(parts) for _ in range(count)])
            else:
                leaf = next(parts)
            if not each.is_compatible_with(leaf):
                raise ValueError(f"it has {leaf} where the spec has {each}")
            leaves.append(leaf)
        if next(parts, None) is not None:
            raise ValueError("it has more tensors than the spec")
    except (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError,
            ValueError) as error:  # fmt: skip
        raise DataLossError(f"a record is not an element of {spec}: {error}") from None
    return pack(spec, leaves)


# --------------------------------------------------------------------------- snapshots


class Snapshot(Replayed):
    """Elements of the first complete iteration in a folder, for all later iterations."""

    def __init__(self, source, path, compression, shard_func, join):
        super().__init__(source)
        self._path = os.fsdecode(as_path("path", path))
        self._writing = compression, shard_func
        self._join = join

    def processes_of(self, position):
        if is_saved(self._path):
            return nullcontext()
        return super().processes_of(position)

    def replay(self, position):
        if is_saved(self._path):
            node = load(self._path, self._join)
            yield from node.run(node.begin())
            return
        with _writing("snapshot", self.inputs[0], self._path, *self._writing) as add:
            for element in self.run_input(position):
                add(element)
                yield element
