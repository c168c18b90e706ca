"""`OutputStructure`: labels, weights and losses in the order of a model's outputs.

Outputs, labels and weights may be single tensors, lists or dicts.
"""

from tapewright.core.messages.suggestions import suggestion
from tapewright.core.nest import flatten, is_nested, map_structure, pack
from tapewright.ops.array.shape import shape as shape_of
from tapewright.ops.ragged.ragged_tensor import RaggedTensor


class OutputStructure:
    """The outputs of a model as a list, to which labels, weights and losses are aligned.

    Attributes:
        count: Number of outputs.
        numbers: The nest of outputs with a number in place of each.
        names: Names in the order of the numbers, which are the keys of a dict, or None.
    """

    def __init__(self, y_pred, names):
        self.count = len(flatten(y_pred))
        self.numbers = pack(y_pred, range(self.count))
        if isinstance(y_pred, dict) and len(y_pred) == self.count:
            names = sorted(y_pred)
        has_names = names is not None and len(names) == self.count
        self.names = list(names) if has_names else None

    def align(self, what, y):
        """Return the leaves of ``y``, one per output."""
        names, leaves = self.names, flatten(y)
        if isinstance(y, dict) and names and set(y) == set(names):
            return [y[name] for name in names]
        if isinstance(y, dict) and not self.is_flat:
            check_names(what, y, self.numbers)
        if len(leaves) != self.count:
            expected = f"the outputs {names}" if names else f"{self.count} outputs"
            actual = list(y) if isinstance(y, dict) else f"{len(leaves)} tensors"
            raise ValueError(f"{what} must match {expected}; got {actual}")
        if isinstance(y, dict) and names and self.is_flat:
            check_names(what, y, names)
        return leaves

    def align_labels(self, y_true, with_loss):
        """Return a label per output; None for outputs without a loss.

        The labels of outputs without a loss may be missing. ``with_loss`` contains the
        numbers of the outputs that have a loss.
        """
        leaves = flatten(y_true)
        if not isinstance(y_true, dict) and len(leaves) == len(with_loss) < self.count:
            rest = iter(leaves)  # labels for the outputs that have a loss
            return [next(rest) if i in with_loss else None for i in range(self.count)]
        if isinstance(y_true, dict) and self.names and self.is_flat:
            return self.by_name("y", y_true)
        return self.align("y", y_true)

    @property
    def is_flat(self):
        """True if there is a single output, or a flat list or dict of outputs."""
        nest = self.numbers
        if not is_nested(nest):
            return True
        parts = nest.values() if isinstance(nest, dict) else nest
        return not any(map(is_nested, parts))

    def by_name(self, what, values):
        """Return the values of a dict keyed by output names as a list, None if missing."""
        if self.names is None:
            raise ValueError(
                f"{what}: a dict needs named outputs, but the model has {self.count} "
                "outputs without names; pass a list"
            )
        check_names(what, values, self.names)
        return [values.get(name) for name in self.names]

    def paired(self, what, spec):
        """Return a nest of losses or metrics, and the output numbers in the same structure."""
        if isinstance(spec, dict) and not isinstance(self.numbers, dict):
            return self.by_name(what, spec), list(range(self.count))
        return spec, self.numbers

    def match(self, what, spec, numbers, together=False, path=()):
        """Yield ``(path, outputs, leaf)`` for each loss or metric in a nest.

        A dict is matched by the names of the outputs, a list by their order; a list for
        a single output holds several leaves for it. ``outputs`` is the number of an
        output, or with ``together`` also a nest of numbers, to all of which a leaf or
        list applies.

        Raises:
            ValueError: If an output does not exist, or, without ``together``, if
                outputs are left out.
        """
        if spec is None:
            return
        is_one = not is_nested(numbers)
        if not is_nested(spec) and (is_one or together):
            yield path, numbers, spec
            return
        if isinstance(spec, (list, tuple)):
            for_each = not together or not any(map(is_nested, spec))
            if for_each and not is_one and len(spec) == len(flatten(numbers)):
                spec = pack(numbers, spec)
            elif is_one or (together and not isinstance(numbers, type(spec))):
                for each in spec:
                    yield from self.match(what, each, numbers, together, path)
                return
        for key in self._keys(what, spec, numbers, together, path):
            inner = (*path, key)
            yield from self.match(what, spec[key], numbers[key], together, inner)

    def _keys(self, what, spec, numbers, together, path):
        """Return the keys of a nest, all of which the nest of outputs must have."""
        where = "".join([f"[{key!r}]" for key in path])
        names = self.names or [f"output {i}" for i in range(self.count)]
        outputs = map_structure(lambda i: names[i], [numbers])[0]
        if isinstance(spec, dict):
            keys, known = spec, numbers if isinstance(numbers, dict) else ()
            if known and not path:
                check_names(what, spec, known)
        else:
            count = len(spec) if is_nested(spec) else 1
            is_like = is_nested(spec) and not isinstance(numbers, dict)
            if not is_like or count != len(numbers) and not (path and together):
                raise ValueError(
                    f"{what}{where}: must have {len(numbers)} entries, one per output, "
                    f"{outputs!r}, got {count}; pass a list, or a dict by name"
                )
            keys, known = range(count), range(len(numbers))
        keys = [key for key in keys if spec[key] is not None]
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise ValueError(
                f"{what}{where}[{unknown[0]!r}]: there is no such output; the outputs here "
                f"are {outputs!r}"
            )
        return keys

    def align_weights(self, sample_weight):
        """Return the weights of each output, or None; a single array applies to all."""
        if sample_weight is None:
            return [None] * self.count
        leaves = flatten(sample_weight)
        if len(leaves) == 1 and not isinstance(sample_weight, dict):
            return leaves * self.count
        if isinstance(sample_weight, dict) and self.names and self.is_flat:
            return self.by_name("sample_weight", sample_weight)
        return self.align("sample_weight", sample_weight)


def check_names(what, names, known):
    """Reject names that no output has; the message suggests the nearest name."""
    unknown = set(names) - set(known)
    if unknown:
        name = sorted(unknown, key=str)[0]
        hint = suggestion(name, known, "the outputs are")
        raise ValueError(f"{what}: there is no output {name!r}{hint}")


def batch_size_of(x):
    """Return the number of examples in a batch, as a tensor or number."""
    first = next(leaf for leaf in flatten(x) if leaf is not None)
    return first.nrows() if isinstance(first, RaggedTensor) else shape_of(first)[0]
