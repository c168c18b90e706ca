"""Nodes that take elements of one of several datasets: choose, sample, resample."""

import itertools

import numpy as np

from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.tensor import TensorSpec, new_tensor

from ..elements import common_spec
from ..rng import shuffle_generator
from .node import INFINITE, UNKNOWN, Node, Seeded


class Chosen(Node):
    """Elements of all inputs but the first, which yields the index of an input.

    Exhausted inputs are skipped, or end the dataset.
    """

    def __init__(self, who, choices, datasets, stop_on_empty):
        super().__init__(choices, *datasets)
        self._who, self._stop_on_empty = who, stop_on_empty
        self.check_spec()

    def start(self):
        return {"over": [False] * (len(self.inputs) - 1)}

    def run(self, position):
        over = position["over"]
        pairs = zip(self.inputs, position["inputs"], strict=True)
        choices, *runs = [node.run(its_position) for node, its_position in pairs]
        while not self._is_over(over):
            choice = next(choices, None)
            if choice is None:
                return
            index = self._index(choice.array, len(runs))
            element = self if over[index] else next(runs[index], self)
            if element is self:
                over[index] = True
            else:
                yield element

    def _index(self, choice, count):
        is_number = choice.dtype.kind in "iu" and not np.ndim(choice)
        if not is_number or not 0 <= choice < count:
            raise InvalidArgumentError(
                f"{self._who}: choice_dataset must yield numbers below {count}, got "
                f"{choice}"
            )
        return int(choice)

    def _is_over(self, over):
        return any(over) if self._stop_on_empty else all(over)

    def size(self):
        choices, *sizes = [node.size() for node in self.inputs]
        ends = self._stop_on_empty or choices != INFINITE or INFINITE not in sizes
        return UNKNOWN if ends else INFINITE

    def spec(self):
        return common_spec(self._who, [node.spec() for node in self.inputs[1:]])


class _Random(Seeded):
    """Node of random numbers in [0, 1), the same in all iterations or different in each."""

    def __init__(self, *inputs, seed=None, rerandomize=None):
        super().__init__(*inputs, seed=seed)
        self._rerandomize = rerandomize

    def uniform(self, position):
        """Yield the numbers from ``position`` on, and count them there."""
        turn = (position["run"], position["round"]) if self._rerandomize else (0, 0)
        random = shuffle_generator(position["seed"], *turn)
        skipped, rest = divmod(position["given"], 1 << 16)
        for size in (*itertools.repeat(1 << 16, skipped), rest):
            random.random(size)
        while True:
            number = random.random()
            position["given"] += 1
            yield number

    def size(self):
        return INFINITE

    def declares(self):
        return True


class RandomNumbers(_Random):
    """Random int64 numbers in ``[0, 2**32)``."""

    def run(self, position):
        for number in self.uniform(position):
            yield new_tensor(np.array(int(number * 2**32), np.int64))

    def spec(self):
        return TensorSpec((), "int64")


class RandomChoices(_Random):
    """Indices of datasets, drawn by weights that are fixed or yielded by the input."""

    def __init__(self, weights, seed=None, rerandomize=None):
        is_node = isinstance(weights, Node)
        inputs = [weights] if is_node else []
        super().__init__(*inputs, seed=seed, rerandomize=rerandomize)
        self._weights = None if is_node else _cumulative(weights)

    def run(self, position):
        if self._weights is None:
            weights = (
                _cumulative(to_numpy(each.array)) for each in self.run_input(position)
            )
        else:
            weights = itertools.repeat(self._weights)
        for each, number in zip(weights, self.uniform(position), strict=False):
            yield new_tensor(np.array(np.searchsorted(each, number, side="right")))

    def size(self):
        return INFINITE if self._weights is not None else self.inputs[0].size()

    def spec(self):
        return TensorSpec((), "int64")


def _cumulative(weights):
    """Return bounds in [0, 1] between the choices; weights need not sum to one."""
    weights = np.asarray(weights, np.float64)
    if weights.ndim != 1 or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise InvalidArgumentError(
            "sample_from_datasets: weights must be numbers of at least 0, not all 0, "
            f"got {weights}"
        )
    bounds = np.cumsum(weights) / weights.sum()
    bounds[np.flatnonzero(weights)[-1] :] = 1  # whatever was rounded
    return bounds


def mixing(initial, target):
    """Return the share of all elements in a resampling, and what to accept of the others.

    The result is ``m * initial + (1 - m) * accepted``, with the greatest ``m``;
    ``accepted`` is proportional to ``accept * initial``.
    """
    initial, target = np.float64(initial), np.float64(target)
    ratio = target / np.maximum(initial, np.finfo(np.float32).tiny)
    share = min(ratio.min(), 1.0)
    left = ratio - share
    return share, left / (left.max() or 1.0)
