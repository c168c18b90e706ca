"""Methods of `Dataset` that join elements, or split them: batches, windows, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import int64
from tapewright.core.suggestions import suggesting_methods
from tapewright.core.typing import as_shape

from .batching import Batch, PaddedBatch, RaggedBatch, Rebatch, SparseBatch, Unbatch
from .elements import checked_count, row_of_counts
from .grouping import BucketBySequenceLength, Buckets, GroupByWindow
from .nesting import Window
from .node_methods import NodeMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from tapewright.core.typing import DTypeLike, IntLike, ShapeLike

__all__ = ["GroupingMethods"]


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
        """Join ``batch_size`` elements along a new first axis.

        The last batch may be shorter, or is dropped with ``drop_remainder``. The two
        arguments after it have no effect: joining takes little time.

        Raises: ``ValueError`` for a ``batch_size`` below 1 or, in a run, if the
        elements of a batch differ in shape or dtype (`padded_batch` joins them).

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
        """`batch`, with each element padded at the end, to the longest one or a given shape.

        Args:
            padded_shapes: For each component a shape, or the size of its only axis,
                None for an axis padded to the longest of the batch.
            padding_values: By default 0, or "" for strings.

        Raises: ``ValueError``, in a run, for an element larger than ``padded_shapes``.

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
        """`batch`, of tensors whose first sizes differ as a `RaggedTensor`.

        Components of a known shape are batched as tensors.

        Raises: ``ValueError`` for a ``batch_size`` below 1, or other sizes that differ.

        Example:
            >>> from tapewright.data import Dataset
            >>> import tapewright as tw
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
        """`batch`, of tensors of different sizes as a `SparseTensor` of rows of one shape.

        Args: ``row_shape``: the shape of a row, no smaller than any element.

        Raises: ``ValueError`` for a ``batch_size`` below 1 or, in a run, for an element
        that is larger, or of another rank.

        Example:
            >>> from tapewright.data import Dataset
            >>> import tapewright as tw
            >>> ds = Dataset.range(3).map(lambda n: tw.fill([n], n)).sparse_batch(3, [4])
            >>> next(iter(ds)).indices.numpy().tolist()
            [[1, 0], [2, 0], [2, 1]]
        """
        batch_size = checked_count("sparse_batch", "batch_size", batch_size, 1)
        return self._new(SparseBatch(self._node, batch_size, as_shape(row_shape)))

    def unbatch(self, name: str | None = None) -> Self:
        """Split each element into its rows.

        Raises: ``ValueError``, in a run, if the components have no first axis of one
        size.
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
        """Make data sets of ``size`` elements, ``stride`` apart, each ``shift`` after the last.

        ``drop_remainder`` drops the shorter ones at the end.

        Raises: ``ValueError`` for numbers below 1.

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
        """Make batches of another size of batches: `unbatch` and `batch`, without rows.

        Several sizes come in turn, again and again.

        Raises: ``ValueError`` for a size below 1, and for elements that are scalars.

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
        """Join what ``reduce_func(key, window)`` returns for windows of one key.

        A window is a data set of ``window_size`` elements that follow each other among those
        for which ``key_func`` gives the same integer; ``window_size_func(key)`` gives each
        key a size of its own. Shorter windows come at the end, in the order of their keys.

        Raises: ``ValueError`` for both sizes or none and, in a run, for a size below 1;
        ``TypeError``, in a run, for other results of the functions.

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
                "group_by_window: give window_size or window_size_func, one of them"
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
        """`padded_batch` of elements of similar length.

        Bucket ``i`` has the elements with ``bucket_boundaries[i - 1] <= length <
        bucket_boundaries[i]``, and makes batches of ``bucket_batch_sizes[i]``, of which there
        is one more than boundaries.

        Args: ``padded_shapes``, ``padding_values``, ``drop_remainder``: those of
        `padded_batch`; ``pad_to_bucket_boundary``: pad to the greatest length of the bucket,
        rather than of the batch; ``no_padding``: `batch`, for elements of equal shapes.

        Raises: ``ValueError`` for boundaries that do not increase, or another number of
        batch sizes and, in a run, for an element of the last bucket if
        ``pad_to_bucket_boundary`` is set.

        Example:
            >>> import tapewright as tw
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
