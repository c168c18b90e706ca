"""Methods of `Dataset` that join or split elements: batches, windows, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import int64
from tapewright.core.messages.suggestions import suggesting_methods
from tapewright.core.typing import as_shape

from ..elements import checked_count, row_of_counts
from ..nodes.batching import (
    Batch,
    PaddedBatch,
    RaggedBatch,
    Rebatch,
    SparseBatch,
    Unbatch,
)
from ..nodes.grouping import BucketBySequenceLength, Buckets, GroupByWindow
from ..nodes.nesting import Window
from .node_methods import NodeMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from tapewright.core.typing import DTypeLike, IntLike, ShapeLike


@suggesting_methods
class GroupingMethods(NodeMethods):
    """See `Dataset`."""

    def batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        num_parallel_calls: IntLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Stack ``batch_size`` consecutive elements along a new first axis.

        Args:
            batch_size: Number of elements of a batch.
            drop_remainder: If True, drop the last batch if it is smaller than
                ``batch_size``.
            num_parallel_calls: Has no effect, as stacking takes little time.
            deterministic: Has no effect.

        Raises:
            ValueError: If ``batch_size`` is below 1 or, during iteration, if the
                elements of a batch differ in shape or dtype; `padded_batch` joins
                different shapes.

        Example:
            >>> from tapewright.data import Dataset
            >>> [x.numpy().tolist() for x in Dataset.range(5).batch(2)]
            [[0, 1], [2, 3], [4]]
        """
        batch_size = checked_count("batch", "batch_size", batch_size, 1)
        return self._new(Batch(self._node, batch_size, drop_remainder))

    def padded_batch(
        self,
        batch_size: IntLike,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Stack elements along a new first axis, padding them at the end to one shape.

        Args:
            batch_size: Number of elements of a batch.
            padded_shapes: Shape of each component, or the size of its only axis; None,
                for a shape or a size, pads to the largest element of the batch.
            padding_values: Value that fills each component, by default 0, or "" for
                strings.
            drop_remainder: If True, drop the last batch if it is smaller than
                ``batch_size``.

        Raises:
            ValueError: If an element is larger than ``padded_shapes``, during
                iteration.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(1, 4).flat_map(lambda n: Dataset.range(n).batch(3))
            >>> [x.numpy().tolist() for x in ds.padded_batch(3, padding_values=9)]
            [[[0, 9, 9], [0, 1, 9], [0, 1, 2]]]
        """
        batch_size = checked_count("padded_batch", "batch_size", batch_size, 1)
        return self._new(
            PaddedBatch(
                self._node, batch_size, padded_shapes, padding_values, drop_remainder
            )
        )

    def ragged_batch(
        self,
        batch_size: IntLike,
        drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = int64,
        name: str | None = None,
    ) -> Self:
        """Batch tensors of different lengths as a `RaggedTensor`.

        Components of a known shape are batched as tensors.

        Args:
            batch_size: Number of elements of a batch.
            drop_remainder: If True, drop the last batch if it is smaller than
                ``batch_size``.
            row_splits_dtype: Dtype of the row splits, int32 or int64.

        Raises:
            ValueError: If ``batch_size`` is below 1, or sizes other than the first
                differ.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(3).map(lambda n: tw.fill([n], n))
            >>> list(ds.ragged_batch(3))
            [<tf.RaggedTensor [[], [1], [2, 2]]>]
        """
        batch_size = checked_count("ragged_batch", "batch_size", batch_size, 1)
        return self._new(
            RaggedBatch(self._node, batch_size, drop_remainder, row_splits_dtype)
        )

    def sparse_batch(
        self, batch_size: IntLike, row_shape: ShapeLike, name: str | None = None
    ) -> Self:
        """Batch tensors of different sizes as a `SparseTensor` with rows of one shape.

        Args:
            batch_size: Number of elements of a batch.
            row_shape: Shape of a row, at least as large as each element.

        Raises:
            ValueError: If ``batch_size`` is below 1 or, during iteration, if an element
                is larger than ``row_shape`` or of another rank.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(3).map(lambda n: tw.fill([n], n)).sparse_batch(3, [4])
            >>> next(iter(ds)).indices.numpy().tolist()
            [[1, 0], [2, 0], [2, 1]]
        """
        batch_size = checked_count("sparse_batch", "batch_size", batch_size, 1)
        return self._new(SparseBatch(self._node, batch_size, as_shape(row_shape)))

    def unbatch(self, name: str | None = None) -> Self:
        """Split each element into its rows along the first axis.

        Raises:
            ValueError: If the components have no first axis of one common size, during
                iteration.

        Example:
            >>> from tapewright.data import Dataset
            >>> [int(x) for x in Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch()]
            [1, 2, 3, 4]
        """
        return self._new(Unbatch(self._node))

    def window(
        self,
        size: IntLike,
        shift: IntLike | None = None,
        stride: IntLike = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Group elements into windows, each a dataset of ``size`` elements.

        Args:
            size: Number of elements of a window.
            shift: Distance between the first elements of consecutive windows, by
                default ``size``.
            stride: Distance between consecutive elements of a window.
            drop_remainder: If True, drop the windows at the end that have fewer
                elements.

        Raises:
            ValueError: If a number is below 1.

        Example:
            >>> from tapewright.data import Dataset
            >>> windows = Dataset.range(5).window(3, shift=1, drop_remainder=True)
            >>> [w.numpy().tolist() for w in windows.flat_map(lambda w: w.batch(3))]
            [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        size = checked_count("window", "size", size, 1)
        shift = size if shift is None else checked_count("window", "shift", shift, 1)
        stride = checked_count("window", "stride", stride, 1)
        return self._new(
            Window(self._node, self._new, size, shift, stride, drop_remainder)
        )

    def rebatch(
        self,
        batch_size: IntLike | Sequence[int],
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Change the batch size of a dataset of batches.

        As `unbatch` and `batch`, but without making single rows.

        Args:
            batch_size: Number of rows of a batch; several sizes are used in turn,
                repeatedly.
            drop_remainder: If True, drop the last batch if it is too small.

        Raises:
            ValueError: If a size is below 1, or elements are scalars.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(7).batch(4)
            >>> [x.numpy().tolist() for x in ds.rebatch(3)]
            [[0, 1, 2], [3, 4, 5], [6]]
            >>> [x.numpy().tolist() for x in ds.rebatch([2, 1])]
            [[0, 1], [2], [3, 4], [5], [6]]
        """
        sizes = row_of_counts("rebatch", "batch_size", batch_size)
        return self._new(Rebatch(self._node, sizes, drop_remainder))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: IntLike | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Group elements by key, and reduce windows of elements with equal keys.

        A window is a dataset of ``window_size`` consecutive elements of one key.
        Smaller windows come at the end, in the order of their keys.

        Args:
            key_func: Function of an element that returns its key, an integer.
            reduce_func: Function ``reduce_func(key, window)`` that returns a dataset;
                the results are concatenated.
            window_size: Number of elements of a window.
            window_size_func: Function of a key that returns the size of its windows, in
                place of ``window_size``.

        Raises:
            ValueError: Unless exactly one of ``window_size`` and ``window_size_func``
                is given or, during iteration, if a size is below 1.
            TypeError: If a function returns something else, during iteration.

        Example:
            >>> from tapewright.data import Dataset
            >>> ds = Dataset.range(7).group_by_window(
            ...     lambda x: x % 2, lambda key, window: window.batch(2), window_size=2
            ... )
            >>> [x.numpy().tolist() for x in ds]
            [[0, 2], [1, 3], [4, 6], [5]]
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "group_by_window: give either window_size or window_size_func"
            )
        if window_size_func is None:
            size = checked_count("group_by_window", "window_size", window_size, 1)
            window_size_func = lambda key: size  # noqa: E731
        node = GroupByWindow(
            self._node, self._new, key_func, reduce_func, window_size_func
        )
        return self._new(node)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Make padded batches of elements of similar length.

        Bucket ``i`` contains the elements with
        ``bucket_boundaries[i - 1] <= length < bucket_boundaries[i]``, in batches of
        ``bucket_batch_sizes[i]``.

        Args:
            element_length_func: Function of an element that returns its length.
            bucket_boundaries: Lengths that separate the buckets, increasing.
            bucket_batch_sizes: Batch size of each bucket, one more than there are
                boundaries.
            padded_shapes: Shapes to pad to, as in `padded_batch`.
            padding_values: Values to pad with, as in `padded_batch`.
            pad_to_bucket_boundary: If True, pad to the greatest length of the bucket
                rather than of the batch.
            no_padding: If True, use `batch`, for elements of equal shapes.
            drop_remainder: If True, drop batches that are too small.

        Raises:
            ValueError: If boundaries do not increase, the number of batch sizes is
                wrong or, during iteration, if ``pad_to_bucket_boundary`` is set and an
                element belongs to the last bucket.

        Example:
            >>> words = tw.data.Dataset.from_generator(
            ...     lambda: ([n] * n for n in (1, 3, 1, 2)),
            ...     output_signature=tw.TensorSpec([None], "int32"),
            ... )
            >>> ds = words.bucket_by_sequence_length(len, [2], [2, 2])
            >>> [x.numpy().tolist() for x in ds]
            [[[1], [1]], [[3, 3, 3], [2, 2, 0]]]
        """
        buckets = Buckets(
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            padded_shapes,
            padding_values,
            (pad_to_bucket_boundary, no_padding, drop_remainder),
        )
        return self._new(BucketBySequenceLength(self._node, self._new, buckets))
