"""Random numbers that come back: each draw is a function of a key and a counter.

A `Generator` holds both; every draw takes the next value of the counter, so that a seed
gives the same numbers anywhere. The ``stateless`` functions are told their key, a seed of
two integers, and count nothing. NumPy's Philox does the drawing (`distributions`).
"""

import secrets
from types import SimpleNamespace

import numpy as np

from .. import backend, dtypes
from ..primitive import Shape
from ..rules import broadcast_shape
from ..tensor import convert_to_tensor
from ..variable import Variable
from .distributions import (
    as_drawn,
    checked_bounds,
    checked_floating,
    checked_logits,
    checked_rates,
    draw_binomial,
    draw_categorical,
    draw_gamma,
    draw_integers,
    draw_normal,
    draw_poisson,
    draw_shuffled,
    draw_truncated_normal,
    draw_uniform,
)

__all__ = [
    "Generator",
    "categorical",
    "create_rng_state",
    "fold_in",
    "gamma",
    "get_global_generator",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]


# ------------------------------------------------------------------------- generators


class Generator:
    """A stream of random numbers: a key, and a counter that each draw advances.

    ``Generator.from_seed(7)`` always starts the same stream; ``state`` (key and counter,
    an int64 Variable of two entries) can be kept and put back, with `reset` or in another
    process with `from_state`, and what follows is the same again.

    >>> generator = Generator.from_seed(7)
    >>> state = generator.state.numpy()
    >>> first = generator.normal([3]).numpy()
    >>> bool((Generator.from_state(state).normal([3]).numpy() == first).all())
    True
    """

    def __init__(self, seed=None):
        key = secrets.randbits(63) if seed is None else int(seed) % 2**63
        with backend.use_module(np):  # read at each draw: a GPU would have to wait
            self.state = Variable(
                np.array([key, 0], np.int64), trainable=False, name="state"
            )

    @classmethod
    def from_seed(cls, seed, alg=None):
        """A generator at the start of the stream of ``seed``, an integer."""
        _check_algorithm("Generator.from_seed", alg)
        return cls(seed)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """A generator at the start of a stream that nobody knows."""
        _check_algorithm("Generator.from_non_deterministic_state", alg)
        return cls()

    @classmethod
    def from_state(cls, state, alg=None):
        """A generator that goes on where the one with this ``state`` stood."""
        _check_algorithm("Generator.from_state", alg)
        generator = cls(0)
        generator.reset(state)
        return generator

    @classmethod
    def from_key_counter(cls, key, counter, alg=None):
        """A generator with this key, before the draw of this number."""
        return cls.from_state([int(key), int(counter)], alg)

    @property
    def key(self):
        """The key, an int64 tensor."""
        return self.state.read()[0]

    @property
    def algorithm(self):
        """TensorFlow's number of Philox, 1."""
        return 1

    def reset(self, state):
        """Goes on where the generator with this ``state`` stood."""
        state = backend.to_numpy(convert_to_tensor(state, dtype_hint="int64").array)
        self.state.assign(np.array(state))

    def reset_from_seed(self, seed):
        """Goes back to the start of the stream of ``seed``."""
        self.reset([int(seed) % 2**63, 0])

    def reset_from_key_counter(self, key, counter):
        """Takes this key, and stands before the draw of this number."""
        self.reset([int(key), int(counter)])

    def skip(self, delta):
        """Goes on as if ``delta`` draws had been made; returns the new state."""
        key, counter = self._key_and_counter()
        self.reset([key, counter + int(delta)])
        return self.state.read()

    def split(self, count=1):
        """A list of ``count`` generators, each with a stream of its own."""
        return [Generator(key) for key in self.draw().integers(0, 2**63, int(count))]

    def make_seeds(self, count=1):
        """``[2, count]`` int64: in each column a seed for a ``stateless`` function."""
        keys = self.draw().integers(-(2**63), 2**63 - 1, int(count), endpoint=True)
        return as_drawn(np.stack([keys, np.zeros_like(keys)]), dtypes.int64)

    def _key_and_counter(self):
        return [int(n) for n in self.state._array]

    def draw(self):
        """NumPy's generator for one draw; advances the counter."""
        key, counter = self._key_and_counter()
        self.state.assign(np.array([key, counter + 1], np.int64))
        return _philox(key % 2**64, [0, 0, counter % 2**64, 0])

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        """Normally distributed numbers."""
        dtype = checked_floating("normal", dtype)
        return draw_normal(self.draw(), shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None
    ):
        """Normally distributed numbers no further than two ``stddev`` from ``mean``."""
        dtype = checked_floating("truncated_normal", dtype)
        return draw_truncated_normal(self.draw(), shape, mean, stddev, dtype)

    def uniform(self, shape, minval=0, maxval=None, dtype=dtypes.float32, name=None):
        """Numbers from ``minval`` up to, and without, ``maxval`` (1 for floating dtypes)."""
        minval, maxval, dtype = checked_bounds("uniform", minval, maxval, dtype)
        return draw_uniform(self.draw(), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape, dtype=dtypes.uint64, name=None):
        """Integers from all that the dtype can hold."""
        minval, maxval, dtype = checked_bounds("uniform_full_int", None, None, dtype)
        return draw_uniform(self.draw(), shape, minval, maxval, dtype)

    def binomial(self, shape, counts, probs, dtype=dtypes.int32, name=None):
        """How many of ``counts`` trials succeed, each with probability ``probs``.

        Both broadcast to ``shape``, the shape of the result.
        """
        return draw_binomial(self.draw(), shape, counts, probs, dtype)


def _philox(key, counter):
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def _check_algorithm(who, alg):
    if alg not in (None, 1, "philox", "auto_select"):
        raise ValueError(f"{who}: alg must be 'philox' or 'auto_select', got {alg!r}")


def create_rng_state(seed, alg="philox"):
    """The state of a `Generator` at the start of the stream of ``seed``.

    >>> create_rng_state(7).numpy()
    array([7, 0])
    """
    _check_algorithm("create_rng_state", alg)
    return as_drawn(np.array([int(seed) % 2**63, 0]), dtypes.int64)


_GLOBAL = None


def get_global_generator():
    """The generator behind the functions of this module."""
    global _GLOBAL
    if _GLOBAL is None:
        _GLOBAL = Generator()
    return _GLOBAL


def set_global_generator(generator):
    """Puts ``generator`` behind the functions of this module."""
    global _GLOBAL
    if not isinstance(generator, Generator):
        raise TypeError(
            "set_global_generator: generator must be a Generator, got "
            f"{type(generator).__name__}"
        )
    _GLOBAL = generator


def set_seed(seed):
    """Starts the global stream anew: what follows is the same for the same seed."""
    get_global_generator().reset_from_seed(seed)


def _generator(seed):
    return get_global_generator() if seed is None else Generator(seed)


# ------------------------------------------- draws from the global stream, or from a seed


def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Normally distributed numbers, from the global stream or, with ``seed``, from its own.

    Gradients pass to ``mean`` and ``stddev``.

    >>> set_seed(1)
    >>> normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _generator(seed).normal(shape, mean, stddev, dtype)


def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers from ``minval`` up to, and without, ``maxval`` (1 for floating dtypes).

    Gradients pass to bounds that are floating tensors.

    Raises: ``ValueError`` for integers without ``maxval``, or with no number between.
    """
    return _generator(seed).uniform(shape, minval, maxval, dtype)


def truncated_normal(
    shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None
):
    """Normally distributed numbers no further than two ``stddev`` from ``mean``."""
    return _generator(seed).truncated_normal(shape, mean, stddev, dtype)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """``num_samples`` classes a row, each drawn with probability ``softmax(logits)``.

    Shapes: ``logits`` ``[batch, classes]``, result ``[batch, num_samples]``, int64 unless
    ``dtype`` says int32.
    """
    logits = checked_logits(logits)
    return draw_categorical(_generator(seed).draw(), logits, num_samples, dtype)


def gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers with the density ``x ** (alpha - 1) * exp(-x * beta)``, up to a factor.

    ``alpha`` and ``beta`` (1) broadcast together; each pair gets ``shape`` draws, so that
    the result has the shape ``shape + alpha.shape``. Gradients pass to both: to ``beta``
    at every order, to ``alpha`` implicitly, at the first order.

    Reference: Figurnov, Mohamed & Mnih, "Implicit Reparameterization Gradients" (2018).

    >>> gamma([5], [0.5, 2.0], seed=1).shape
    TensorShape([5, 2])
    """
    alpha, beta = checked_rates("gamma", alpha, beta, dtype)
    dims = broadcast_shape(alpha.shape, () if beta is None else beta.shape)
    return draw_gamma(_generator(seed).draw(), Shape(shape) + tuple(dims), alpha, beta)


def poisson(shape, lam, dtype=dtypes.float32, seed=None, name=None):
    """Whole numbers with mean ``lam``: each entry of it gets ``shape`` draws.

    The result has the shape ``shape + lam.shape``. No gradient passes.

    >>> poisson([5], [0.5, 2.0], seed=1).shape
    TensorShape([5, 2])
    """
    lam = convert_to_tensor(lam)
    return draw_poisson(
        _generator(seed).draw(), Shape(shape) + tuple(lam.shape), lam, dtype
    )


def shuffle(value, seed=None, name=None):
    """The rows of ``value`` in random order; gradients go where the rows came from."""
    return draw_shuffled(_generator(seed).draw(), value)


# ------------------------------------------------------- draws that depend on a seed alone


def stateless_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None,
    alg="auto_select",
):  # fmt: skip
    """Normally distributed numbers, the same for the same ``seed``, two integers.

    >>> first, second = (stateless_normal([2], seed=[1, 2]).numpy() for _ in range(2))
    >>> bool((first == second).all())
    True
    """
    who = "stateless_normal"
    rng, dtype = _stateless(who, seed, alg), checked_floating(who, dtype)
    return draw_normal(rng, shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None,
    alg="auto_select",
):  # fmt: skip
    """As `truncated_normal`, the same for the same ``seed``, two integers."""
    who = "stateless_truncated_normal"
    rng, dtype = _stateless(who, seed, alg), checked_floating(who, dtype)
    return draw_truncated_normal(rng, shape, mean, stddev, dtype)


def stateless_uniform(
    shape, seed, minval=0, maxval=None, dtype=dtypes.float32, name=None,
    alg="auto_select",
):  # fmt: skip
    """As `uniform`, the same for the same ``seed``, two integers.

    Without both bounds (None) integers are drawn from all that the dtype can hold.
    """
    rng = _stateless("stateless_uniform", seed, alg)
    return draw_uniform(
        rng, shape, *checked_bounds("stateless_uniform", minval, maxval, dtype)
    )


def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64, name=None):
    """As `categorical`, the same for the same ``seed``, two integers."""
    rng = _stateless("stateless_categorical", seed)
    return draw_categorical(rng, checked_logits(logits), num_samples, dtype)


def stateless_gamma(shape, seed, alpha, beta=None, dtype=dtypes.float32, name=None):
    """As `gamma`, the same for the same ``seed``; ``shape`` is that of the result.

    It must end with the shape to which ``alpha`` and ``beta`` broadcast.
    """
    rng = _stateless("stateless_gamma", seed)
    alpha, beta = checked_rates("stateless_gamma", alpha, beta, dtype)
    return draw_gamma(rng, Shape(shape), alpha, beta)


def stateless_poisson(shape, seed, lam, dtype=dtypes.int32, name=None):
    """As `poisson`, the same for the same ``seed``; ``shape`` is that of the result."""
    rng = _stateless("stateless_poisson", seed)
    return draw_poisson(rng, Shape(shape), convert_to_tensor(lam), dtype)


def stateless_binomial(
    shape, seed, counts, probs, output_dtype=dtypes.int32, name=None
):
    """How many of ``counts`` trials succeed, the same for the same ``seed``."""
    rng = _stateless("stateless_binomial", seed)
    return draw_binomial(rng, shape, counts, probs, output_dtype)


def split(seed, num=2, alg="auto_select"):
    """``num`` seeds ``[num, 2]`` made of one, for independent ``stateless`` draws.

    >>> split([1, 2], num=3).shape
    TensorShape([3, 2])
    """
    rng = _stateless("split", seed, alg, purpose=2)
    return _new_seeds(rng, seed, (int(num), 2))


def fold_in(seed, data, alg="auto_select"):
    """A seed made of another and an integer, as the number of a step.

    >>> fold_in([1, 2], 7).shape
    TensorShape([2])
    """
    rng = _stateless("fold_in", seed, alg, purpose=3, data=int(data))
    return _new_seeds(rng, seed, (2,))


def _stateless(who, seed, alg="auto_select", purpose=1, data=0):
    """NumPy's generator for a seed; ``purpose`` keeps it apart from all other draws."""
    _check_algorithm(who, alg)
    words = np.asarray(seed)
    if words.shape != (2,) or words.dtype.kind not in "iu":
        raise ValueError(f"{who}: seed must be two integers, got {seed!r}")
    key = np.array([int(n) % 2**64 for n in words], np.uint64)
    return _philox(key, [0, 0, data % 2**64, purpose])


def _new_seeds(rng, seed, shape):
    dtype = convert_to_tensor(seed).dtype
    return as_drawn(draw_integers(rng, dtype, shape), dtype)


def _stateless_shuffle(value, seed, alg="auto_select", name=None):
    """As `shuffle`, the same for the same ``seed``, two integers."""
    return draw_shuffled(_stateless("stateless_shuffle", seed, alg), value)


experimental = SimpleNamespace(
    Generator=Generator,
    create_rng_state=create_rng_state,
    get_global_generator=get_global_generator,
    set_global_generator=set_global_generator,
    stateless_fold_in=fold_in,
    stateless_shuffle=_stateless_shuffle,
    stateless_split=split,
)
