"""`GroupByWindow`: elements with equal keys, reduced in windows; buckets by length."""

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.nest import map_structure
from tapewright.core.tensor import new_tensor
from tapewright.ops.random.generators import drawing_from

from ..elements import call_function, spec_of
from ..rng import Draws
from .mapping import Applied
from .nesting import begin_run, checked_dataset
from .node import UNKNOWN, Replayed
from .sources import Elements

WHO = "group_by_window: reduce_func"


class GroupByWindow(Replayed, Applied):
    """Elements of ``reduce(key, window)`` for windows of elements with one key.

    A window is reduced when it has ``size(key)`` elements; smaller ones follow at the
    end, in the order of their keys.
    """

    name = "group_by_window"

    def __init__(self, source, wrap, key, reduce, size):
        super().__init__(source, key)
        self._wrap, self._reduce, self._size = wrap, reduce, size

    def start(self):
        return Applied.start(self)

    def replay(self, position):
        draws = Draws(position)
        # Another stream, so that the functions of windows draw numbers of their own.
        of_windows = Draws(position | {"seed": position["seed"] ^ 1})
        windows, reduced = {}, 0
        for number, element in enumerate(self.run_input(position), 1):
            key = _whole(self.name, "key_func", self.result(draws, number, element))
            if key not in windows:
                windows[key] = [], self._window_size(key)
            window, size = windows[key]
            window.append(element)
            if len(window) == size:
                reduced += 1
                of_windows.at(reduced)
                yield from self._reduced(of_windows, key, window)
                del windows[key]
        for key in sorted(windows):
            reduced += 1
            of_windows.at(reduced)
            yield from self._reduced(of_windows, key, windows[key][0])

    def _window_size(self, key):
        size = _whole(
            self.name, "window_size_func", call_function(self._size, _scalar(key))
        )
        if size < 1:
            raise InvalidArgumentError(
                f"group_by_window: a window must have at least 1 element, got {size}"
            )
        return size

    def _reduced(self, draws, key, window):
        dataset = self._wrap(Elements(window, self._window_spec(window)))
        with drawing_from(draws):
            made = call_function(self._reduce, (_scalar(key), dataset))
        return begin_run(WHO, made, draws)

    def _window_spec(self, window):
        return (
            self.inputs[0].spec() if self.inputs[0].declares() else spec_of(window[0])
        )

    def declares(self):
        return False

    def size(self):
        return UNKNOWN

    def spec(self):
        first = self.inputs[0].first()
        if first is None:
            raise ValueError("element_spec: cannot be inferred from an empty dataset")
        draws = Draws({"seed": self._seed, "run": 0, "round": 0})
        window = self._wrap(Elements([first], self.inputs[0].spec()))
        with drawing_from(draws):
            key = _whole(self.name, "key_func", call_function(self._function, first))
            made = call_function(self._reduce, (_scalar(key), window))
        return checked_dataset(WHO, made).element_spec


def _scalar(number):
    return new_tensor(np.array(number, np.int64))


def _whole(who, name, value):
    array = np.asarray(getattr(value, "array", value))
    if array.dtype.kind not in "iu" or array.ndim:
        raise TypeError(
            f"{who}: {name} must return an integer, got {array.dtype.name} of "
            f"shape {array.shape}"
        )
    return int(array)


class Buckets:
    """The functions of `group_by_window` for batches of sequences of similar length."""

    def __init__(self, length, boundaries, batch_sizes, shapes, values, options):
        self._length, self._boundaries = length, list(boundaries)
        self._batch_sizes = list(batch_sizes)
        if len(self._batch_sizes) != len(self._boundaries) + 1:
            raise ValueError(
                "bucket_by_sequence_length: bucket_batch_sizes must have one more entry "
                f"than bucket_boundaries, got {len(self._batch_sizes)} and "
                f"{len(self._boundaries)}"
            )
        if sorted(set(self._boundaries)) != self._boundaries:
            raise ValueError(
                "bucket_by_sequence_length: bucket_boundaries must increase, got "
                f"{self._boundaries}"
            )
        self._shapes, self._values = shapes, values
        self._to_boundary, self._no_padding, self._drop_remainder = options

    def key(self, *element):
        """Return the number of the bucket of an element."""
        value = self._length(*element)
        length = _whole("bucket_by_sequence_length", "element_length_func", value)
        return np.searchsorted(self._boundaries, length, side="right")

    def window_size(self, bucket):
        """Return the batch size of a bucket."""
        return self._batch_sizes[int(bucket)]

    def batch(self, bucket, window):
        """Return a batch of the elements of a window."""
        size = self.window_size(bucket)
        if self._no_padding:
            return window.batch(size, self._drop_remainder)
        shapes = self._shapes_in(int(bucket))
        return window.padded_batch(size, shapes, self._values, self._drop_remainder)

    def spec(self, elements):
        """Return the spec of the batches of all buckets."""
        if self._no_padding:
            return elements.batch(1).element_spec
        return elements.padded_batch(1, self._shapes, self._values).element_spec

    def complete(self, node):
        """Fill in shapes from the node of the elements.

        Raises:
            ValueError: If shapes are needed and unknown.
        """
        if not self._to_boundary or self._no_padding or self._shapes is not None:
            return
        if not node.declares():
            raise ValueError(
                "bucket_by_sequence_length: pad_to_bucket_boundary needs padded_shapes, "
                "since the sizes of the elements are unknown"
            )
        self._shapes = map_structure(lambda spec: list(spec.shape), node.spec())

    def _shapes_in(self, bucket):
        if not self._to_boundary:
            return self._shapes
        if bucket == len(self._boundaries):
            raise InvalidArgumentError(
                "bucket_by_sequence_length: with pad_to_bucket_boundary the length of "
                f"each element must be below {self._boundaries[-1:]}"
            )
        return _filled(self._shapes, self._boundaries[bucket] - 1)


class BucketBySequenceLength(GroupByWindow):
    """Batches of elements of similar length; see `Buckets`."""

    name = "bucket_by_sequence_length"

    def __init__(self, source, wrap, buckets):
        self._buckets = buckets
        buckets.complete(source)
        super().__init__(source, wrap, buckets.key, buckets.batch, buckets.window_size)

    def spec(self):
        return self._buckets.spec(self._wrap(self.inputs[0]))


def _filled(shapes, size):
    """Return shapes with a size in place of None; a list, or a tuple of sizes, is a shape."""
    if isinstance(shapes, dict):
        return {key: _filled(shape, size) for key, shape in shapes.items()}
    sizes = isinstance(shapes, tuple) and all(
        [n is None or isinstance(n, int) for n in shapes]
    )
    if isinstance(shapes, tuple) and not sizes and not hasattr(shapes, "rank"):
        return tuple([_filled(shape, size) for shape in shapes])
    return [size if n in (None, -1) else int(n) for n in shapes]
