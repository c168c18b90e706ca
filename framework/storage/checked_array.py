"""An array in an HDF5 file, checked before any of it is read."""

import math
from functools import cache, cached_property

import numpy as np

from tapewright.core.dtypes import bfloat16, kind_of
from tapewright.core.hardware.parallel import parallel_for

from .items import Item

# A compressed array may be this much larger than what is stored of it.
MAX_EXPANSION = 1000
MAX_CHUNK = 64 << 20  # bytes of a chunk in an array smaller than that
SLACK = 4096  # bytes that may be declared of what was never written
UNIT = 1 << 20  # bytes that a thread reads at a time
BLOCK = 64 << 20  # bytes between two steps of the progress bar
BFLOAT16 = np.dtype("V2")

# deflate, shuffle, checksum, szip, nbit, scaleoffset, and h5py's LZF. For any other HDF5
# would look for a library to load.
FILTERS = {1, 2, 3, 4, 5, 6, 32000}


class Array(Item):
    """An array of a file; it is not read before `read`."""

    _is_inside = _is_whole = False  # not known yet

    @cached_property
    def shape(self):
        self._check_inside()
        with self._guarded("has no shape"):
            shape = self._node.shape
        if shape is None:
            self.fail("holds no array")
        return tuple(shape)

    @cached_property
    def dtype(self):
        """The dtype that `read` returns: values stored as two bytes are bfloat16."""
        dtype = self._stored_dtype()
        if dtype == BFLOAT16:
            return bfloat16.dtype
        if dtype.kind not in "fiubc" or dtype.hasobject or dtype.subdtype is not None:
            import h5py

            what = "text" if h5py.check_string_dtype(dtype) else dtype
            self.fail(f"holds {what}, must hold numbers")
        return dtype.newbyteorder("=")

    def _stored_dtype(self):
        with self._guarded("has a type that NumPy does not support"):
            return self._node.dtype

    @cached_property
    def _creation(self):
        """The creation properties of the array: layout, filters."""
        return self._node.id.get_create_plist()

    @property
    def nbytes(self):
        """Size in memory in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def arrays(self):
        """Yield this array only, like `Group.arrays` for a group."""
        return iter([self])

    def expect(self, shape=None, kinds="fiubc"):
        """Return this array; raise `SavingError` for another shape or kind of numbers.

        ``kinds`` are NumPy's letters: ``f`` for floating, ``iu`` for integers.
        """
        if shape is not None and self.shape != tuple(shape):
            self.fail(f"has shape {self.shape}, expected {tuple(shape)}")
        if kind_of(self.dtype) not in kinds:
            self.fail(f"holds {self.dtype}, expected a dtype of kind {kinds!r}")
        return self

    def check(self):
        """Return this array; raise `SavingError` unless all declared data is in the file."""
        self.expect()._check()
        return self

    def read(self, shape=None, kinds="fiubc"):
        """Return the array in new memory; see `expect` for the arguments."""
        self.expect(shape, kinds)._check()
        with self._guarded("cannot be read"):
            array = np.empty(self.shape, self.dtype)
        self._read(array)
        return array

    @cached_property
    def chunk_rows(self):
        """The number of rows of a chunk, which are read together; None without chunks."""
        self._check_inside()
        chunks = self._node.chunks
        return chunks and chunks[0]

    def check_filters(self):
        """Raise if HDF5 lacks a filter that decompresses the array."""
        import h5py

        with self._guarded("cannot be inspected"):
            for code in self._filters():
                if not h5py.h5z.filter_avail(code):
                    self.fail(
                        f"is compressed with filter {code}, which HDF5 cannot find; "
                        "import hdf5plugin, which provides many filters"
                    )

    def read_rows(self, out, start):
        """Read rows from ``start`` into ``out``, which has their shape and dtype.

        The declaration in the file is trusted.
        """
        if start + len(out) > self.shape[0]:
            self.fail(f"has {self.shape[0]} rows, not {start + len(out)}")
        with self._guarded("cannot be read"):
            offset = self._offset
            if offset is None and self._stored_dtype() == BFLOAT16:
                out[...] = self._as_bfloat16(self._node[start : start + len(out)])
            elif offset is None:
                self._node.read_direct(out, np.s_[start : start + len(out)])
            elif out.size:
                content = memoryview(out.reshape(-1)).cast("B")
                offset += start * len(content) // len(out)
                if self._source.window.read_into(content, offset) < len(content):
                    self.fail("cannot be read: the file ends before the array does")

    def _read(self, array):
        with self._guarded("cannot be read"):
            offset = self._offset
            if offset is not None:
                self._read_plain(array, offset)
                return
            if not array.size or not array.ndim:
                array[...] = self._as_bfloat16(self._node[()])
            elif self._stored_dtype() == BFLOAT16:
                rows = max(BLOCK * len(array) // array.nbytes, 1)
                for i in range(0, len(array), rows):
                    array[i : i + rows] = self._as_bfloat16(self._node[i : i + rows])
            else:
                self._node.read_direct(array)
            self._source.progress.add(array.nbytes)

    def _as_bfloat16(self, values):
        """Return values unchanged, or two-byte values (low byte first) as bfloat16."""
        if values.dtype != BFLOAT16:
            return values
        return np.asarray(values).view("<u2").astype("u2").view(self.dtype)

    @cached_property
    def _offset(self):
        """Offset in the file of bytes stored in memory layout, or None."""
        dataset = self._node.id
        if self.dtype.kind not in "fiuc" or not self.nbytes:
            return None
        if not dataset.get_type().equal(_type_of(self.dtype)):
            return None
        # None unless it is contiguous, and was written at all
        return dataset.get_offset()

    def _read_plain(self, array, offset):
        """Read without HDF5, in several threads: three times as fast."""
        content = memoryview(array.reshape(-1)).cast("B")

        def work(i):
            piece = content[i : i + UNIT]
            if self._source.window.read_into(piece, offset + i) < len(piece):
                self.fail("cannot be read: the file ends before the array does")

        for start in range(0, len(content), BLOCK):
            stop = min(start + BLOCK, len(content))
            parallel_for(work, range(start, stop, UNIT))
            self._source.progress.add(stop - start)

    def _check_inside(self):
        """Raise if the data are in other files: HDF5 opens these to read the shape."""
        if self._is_inside:
            return
        import h5py

        with self._guarded("cannot be inspected"):
            outside = self._creation.get_external_count()
            virtual = self._creation.get_layout() == h5py.h5d.VIRTUAL
        if outside or virtual:
            self.fail("stores its data in other files, which is not allowed")
        self._is_inside = True

    def _filters(self):
        count = self._creation.get_nfilters()
        return {self._creation.get_filter(i)[0] for i in range(count)}

    def _check(self):
        """Raise unless the file itself holds what it declares."""
        if self._is_whole:
            return
        self._check_inside()
        with self._guarded("cannot be inspected"):
            filters = self._filters()
            size = self._node.id.get_type().get_size()  # of a number, in the file
            chunk = math.prod(self._node.chunks or ()) * size
            stored = self._node.id.get_storage_size()
        declared = math.prod(self.shape) * size
        if not filters <= FILTERS:
            self.fail(f"is compressed by an unknown method (filter {max(filters)})")
        if chunk > max(declared, MAX_CHUNK):
            self.fail(f"has {declared} bytes, in chunks of {chunk}")
        if stored > self._source.window.size:
            whole = self._source.window.size
            self.fail(f"declares {stored} bytes in a file of {whole}")
        if declared > stored * (MAX_EXPANSION if filters else 1) + SLACK:
            self.fail(f"declares {declared} bytes, stores {stored}")
        self._is_whole = True


@cache
def _type_of(dtype):
    """Return the HDF5 type of numbers in memory."""
    import h5py

    return h5py.h5t.py_create(dtype)
