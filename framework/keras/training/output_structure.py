"""`OutputStructure`: labels, weights and losses in the order of a model's outputs.

Outputs, labels and weights may be single tensors, lists or dicts.
"""

from tapewright.core.nest import flatten, is_nested, pack
from tapewright.ops.array.shape import shape as shape_of

__all__ = ["OutputStructure", "batch_size_of", "check_names"]


class OutputStructure:
    """The outputs of a model as a list, to which labels, weights and losses are aligned.

    Attributes: ``count`` of outputs; ``numbers``: the nest of outputs with the number of
    each in its place; ``keys`` of a dict of outputs, ``names`` of all, None without.
    """

    def __init__(self, y_pred, names):
        self.count = len(flatten(y_pred))
        self.numbers = pack(y_pred, range(self.count))
        self.keys = None
        if isinstance(y_pred, dict) and len(y_pred) == self.count:
            self.keys = sorted(y_pred)
            if names and set(names) == set(y_pred):
                self.keys = list(names)
            names = self.keys
        given = names is not None and len(names) == self.count
        self.names = list(names) if given else None

    def align(self, what, y):
        """The leaves of ``y``, one for each output."""
        keys = self.keys or self.names
        if isinstance(y, dict) and keys and set(y) == set(keys):
            return [y[key] for key in keys]
        leaves = flatten(y)
        if isinstance(y, dict) and not self.is_flat:
            check_names(what, y, self.numbers)
        if len(leaves) != self.count:
            expected = f"the outputs {keys}" if keys else f"{self.count} outputs"
            found = list(y) if isinstance(y, dict) else f"{len(leaves)} tensors"
            raise ValueError(f"{what} must match {expected}; got {found}")
        if isinstance(y, dict) and keys and self.is_flat:
            check_names(what, y, keys)
        return leaves

    def align_labels(self, y_true, wanted):
        """A label for each output; None for outputs without a loss, which may lack one.

        ``wanted``: the numbers of the outputs that have a loss.
        """
        leaves = flatten(y_true)
        if not isinstance(y_true, dict) and len(leaves) == len(wanted) < self.count:
            rest = iter(leaves)  # labels for the outputs that have a loss
            return [next(rest) if i in wanted else None for i in range(self.count)]
        if isinstance(y_true, dict) and self.names and self.is_flat:
            check_names("y", y_true, self.names)
            return [y_true.get(name) for name in self.names]
        return self.align("y", y_true)

    @property
    def is_flat(self):
        """Return whether the outputs are one, a list, or a dict, with nothing deeper."""
        nest = self.numbers
        if not is_nested(nest):
            return True
        parts = nest.values() if isinstance(nest, dict) else nest
        return not any(map(is_nested, parts))

    def per_output(self, what, given):
        """A list with an entry for each output, of one for all, a list, or a dict by name."""
        if isinstance(given, dict):
            names = self.keys or self.names
            if names is None:
                raise ValueError(
                    f"{what}: a dict needs named outputs, but the model has "
                    f"{self.count} outputs without names; pass a list"
                )
            check_names(what, given, names)
            return [given.get(name) for name in names]
        if isinstance(given, (list, tuple)):
            if len(given) != self.count:
                raise ValueError(
                    f"{what}: {len(given)} were given for {self.count} outputs"
                    + (f", {self.names}" if self.names else "")
                )
            return list(given)
        return [given] * self.count

    def align_weights(self, sample_weight):
        """Weights for each output, or None; one array counts for all of them."""
        if sample_weight is None:
            return [None] * self.count
        leaves = flatten(sample_weight)
        if len(leaves) == 1 and not isinstance(sample_weight, dict):
            return leaves * self.count
        if isinstance(sample_weight, dict) and self.names and self.is_flat:
            check_names("sample_weight", sample_weight, self.names)
            return [sample_weight.get(name) for name in self.names]
        return self.align("sample_weight", sample_weight)


def check_names(what, given, known):
    """Refuse names that no output has, with the nearest one that there is."""
    unknown = set(given) - set(known)
    if unknown:
        import difflib  # a millisecond that only a mistake should cost

        name = sorted(unknown, key=str)[0]
        near = difflib.get_close_matches(str(name), [str(k) for k in known], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{what}: there is no output {name!r}; the outputs are {list(known)}{hint}"
        )


def batch_size_of(x):
    """The number of examples in a batch, as a tensor or number."""
    first = next(leaf for leaf in flatten(x) if leaf is not None)
    return shape_of(first)[0]
