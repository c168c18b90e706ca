"""`InputSpec`: what a layer demands of the shapes of its inputs."""

__all__ = ["InputSpec"]


class InputSpec:
    """What a layer demands of the shape of an input: its rank, or sizes of axes.

    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((5, 4))
    'expected size 3 on axis -1 of the inputs, got shape (5, 4)'
    """

    def __init__(
        self,
        dtype=None,
        shape=None,
        ndim=None,
        max_ndim=None,
        min_ndim=None,
        axes=None,
        allow_last_axis_squeeze=False,
        name=None,
        optional=False,
    ):
        self.dtype, self.name, self.optional = dtype, name, optional
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if shape is None else len(self.shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        if shape is not None:
            self.axes |= {i: n for i, n in enumerate(self.shape) if n is not None}
        self.allow_last_axis_squeeze = allow_last_axis_squeeze

    def problem(self, shape):
        """What is wrong with this shape, or None."""
        rank = len(shape)
        if self.ndim is not None and rank != self.ndim:
            return f"expected inputs of rank {self.ndim}, got shape {shape}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected inputs of rank {self.min_ndim} or more, got shape {shape}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected inputs of rank {self.max_ndim} or less, got shape {shape}"
        for axis, size in self.axes.items():
            if size is not None and shape[axis] not in (size, None):
                return f"expected size {size} on axis {axis} of the inputs, got shape {shape}"
        return None

    def __repr__(self):
        return (
            f"InputSpec(ndim={self.ndim}, max_ndim={self.max_ndim}, "
            f"min_ndim={self.min_ndim}, axes={self.axes})"
        )
