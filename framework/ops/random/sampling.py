"""`tw.random`: random numbers, each draw a function of a key and a counter.

A `Generator` holds both; every draw uses the next value of the counter, so that a seed
produces the same numbers on any machine. The ``stateless`` functions receive their key,
a seed of two integers, and count nothing. NumPy's Philox draws the numbers (`philox`).
"""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.rules import broadcast_shape
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import (
    DTypeLike,
    IntLike,
    ShapeLike,
    TensorLike,
    as_shape,
)

from .candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from .distributions import (
    checked_bounds,
    checked_floating,
    checked_logits,
    checked_rates,
    draw_binomial,
    draw_categorical,
    draw_gamma,
    draw_normal,
    draw_poisson,
    draw_shuffled,
    draw_uniform,
    has_value,
)
from .generators import (
    Generator,
    create_rng_state,
    get_global_generator,
    on_the_host,
    one_stream,
    set_global_generator,
    set_seed,
    stateless_stream,
)
from .philox import FOLD_IN, SPLIT, random_seeds

__all__ = [
    "Generator",
    "all_candidate_sampler",
    "categorical",
    "create_rng_state",
    "fixed_unigram_candidate_sampler",
    "fold_in",
    "gamma",
    "get_global_generator",
    "log_uniform_candidate_sampler",
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
    "uniform_candidate_sampler",
]


# ------------------------------------------- draws from the global stream, or from a seed


def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw normally distributed random numbers.

    The numbers come from the global stream or, with ``seed``, from a separate one. As
    in TensorFlow, both advance from call to call, and `set_seed` restarts them; a
    function of a `Dataset` draws other numbers for each element. For the same numbers
    in each call, use `stateless_normal`.

    Gradients pass to ``mean`` and ``stddev``.

    Args:
        shape: Shape of the result.
        mean: Mean; it broadcasts with ``shape``.
        stddev: Standard deviation; it broadcasts with ``shape``.
        dtype: Floating dtype of the result.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> tw.random.set_seed(1)
        >>> tw.random.normal([2, 3]).shape
        TensorShape([2, 3])
    """
    dtype = checked_floating("normal", dtype)
    return draw_normal(one_stream(seed), shape, mean, stddev, dtype)


def uniform(
    shape: ShapeLike,
    minval: TensorLike | None = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw uniformly distributed random numbers from ``minval`` up to, without, ``maxval``.

    Gradients pass to bounds that are floating tensors.

    Args:
        shape: Shape of the result.
        minval: Lower bound, inclusive; it broadcasts with ``shape``.
        maxval: Upper bound, exclusive, 1 by default for floating dtypes; it broadcasts
            with ``shape``.
        dtype: Floating or integer dtype of the result.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        ValueError: If ``dtype`` is an integer dtype and ``maxval`` is None or not above
            ``minval``.

    Example:
        >>> numbers = tw.random.uniform([100], 0, 10, dtype="int32").numpy()
        >>> int(numbers.min()) >= 0 and int(numbers.max()) < 10
        True
    """
    bounds = checked_bounds("uniform", minval, maxval, dtype)
    return draw_uniform(one_stream(seed), shape, *bounds)


def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw normally distributed random numbers within two ``stddev`` of ``mean``.

    Gradients pass to ``mean`` and ``stddev``.

    Args:
        shape: Shape of the result.
        mean: Mean; it broadcasts with ``shape``.
        stddev: Standard deviation; it broadcasts with ``shape``.
        dtype: Floating dtype of the result.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        TypeError: If ``dtype`` is not floating.

    Example:
        >>> numbers = tw.random.truncated_normal([100], stddev=2.0)
        >>> bool((abs(numbers) <= 4.0).numpy().all())
        True
    """
    dtype = checked_floating("truncated_normal", dtype)
    return draw_normal(one_stream(seed), shape, mean, stddev, dtype, truncated=True)


def categorical(
    logits: TensorLike,
    num_samples: IntLike,
    dtype: DTypeLike | None = None,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw ``num_samples`` classes for each row, with probabilities ``softmax(logits)``.

    Args:
        logits: Unnormalized log-probabilities ``[batch, classes]``.
        num_samples: Number of draws per row.
        dtype: Integer dtype of the result, int64 by default.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Shapes:
        ``logits`` ``[batch, classes]``, result ``[batch, num_samples]``.

    Raises:
        ValueError: If ``num_samples`` is negative.

    Example:
        >>> tw.random.categorical([[0.0, 0.0], [-99.0, 0.0]], 3, seed=1).numpy()[1]
        array([1, 1, 1])
    """
    logits = checked_logits(logits)
    return draw_categorical(one_stream(seed), logits, num_samples, dtype)


def gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw gamma distributed random numbers.

    Their density is proportional to ``x ** (alpha - 1) * exp(-x * beta)``. Gradients
    pass to ``beta`` at every order, and to ``alpha`` at the first, implicitly.

    Args:
        shape: Shape of the draws for each pair of ``alpha`` and ``beta``.
        alpha: Shape parameter, not negative.
        beta: Rate (inverse scale), 1 by default.
        dtype: Floating dtype of the result.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Shapes:
        ``alpha`` and ``beta`` broadcast together; each pair gets ``shape`` draws, so
        that the result has the shape ``shape + (alpha + beta).shape``.

    Raises:
        ValueError: If ``alpha`` is negative.
        TypeError: If ``dtype`` is not floating.

    References:
        Figurnov, Mohamed & Mnih, "Implicit Reparameterization Gradients" (2018).

    Example:
        >>> tw.random.gamma([5], [0.5, 2.0], seed=1).shape
        TensorShape([5, 2])
    """
    alpha, beta = checked_rates("gamma", alpha, beta, dtype)
    dims = broadcast_shape(alpha.shape, () if beta is None else beta.shape)
    return draw_gamma(one_stream(seed), as_shape(shape) + tuple(dims), alpha, beta)


def poisson(
    shape: ShapeLike,
    lam: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw Poisson distributed whole numbers with mean ``lam``; there is no gradient.

    Args:
        shape: Shape of the draws for each entry of ``lam``.
        lam: Mean, not negative.
        dtype: Dtype of the result.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Shapes:
        Each entry of ``lam`` gets ``shape`` draws: the result has the shape
        ``shape + lam.shape``.

    Raises:
        ValueError: If ``lam`` is negative.

    Example:
        >>> tw.random.poisson([5], [0.5, 2.0], seed=1).shape
        TensorShape([5, 2])
    """
    lam = convert_to_tensor(lam)
    return draw_poisson(
        one_stream(seed), as_shape(shape) + tuple(lam.shape), lam, dtype
    )


def shuffle(
    value: TensorLike, seed: IntLike | None = None, name: str | None = None
) -> Tensor:
    """Shuffle the rows of ``value``, along its first axis.

    Gradients pass back to the rows' original positions.

    Args:
        value: Tensor of rank 1 or more.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Example:
        >>> sorted(tw.random.shuffle([3, 1, 2]).numpy().tolist())
        [1, 2, 3]
    """
    return draw_shuffled(one_stream(seed), value)


# ------------------------------------------------------- draws that depend on a seed alone


def stateless_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """`normal` as a pure function of ``seed``: the same seed returns the same numbers.

    Args:
        shape: Shape of the result.
        seed: Two integers; the same seed always returns the same result.
        mean: Mean; it broadcasts with ``shape``.
        stddev: Standard deviation; it broadcasts with ``shape``.
        dtype: Floating dtype of the result.
        alg: "philox" or "auto_select"; Philox is the only algorithm.

    Raises:
        ValueError: If ``seed`` is not two integers, or ``alg`` is neither "philox" nor
            "auto_select".

    Example:
        >>> first = tw.random.stateless_normal([2], seed=[1, 2]).numpy()
        >>> second = tw.random.stateless_normal([2], seed=[1, 2]).numpy()
        >>> bool((first == second).all())
        True
    """
    who = "stateless_normal"
    stream, dtype = stateless_stream(who, seed, alg), checked_floating(who, dtype)
    return draw_normal(stream, shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """`truncated_normal` as a pure function of ``seed``.

    Args:
        shape: Shape of the result.
        seed: Two integers; the same seed always returns the same result.
        mean: Mean; it broadcasts with ``shape``.
        stddev: Standard deviation; it broadcasts with ``shape``.
        dtype: Floating dtype of the result.
        alg: "philox" or "auto_select"; Philox is the only algorithm.

    Example:
        >>> tw.random.stateless_truncated_normal([2, 3], seed=[1, 2]).shape
        TensorShape([2, 3])
    """
    who = "stateless_truncated_normal"
    stream, dtype = stateless_stream(who, seed, alg), checked_floating(who, dtype)
    return draw_normal(stream, shape, mean, stddev, dtype, truncated=True)


def stateless_uniform(
    shape: ShapeLike,
    seed: TensorLike,
    minval: TensorLike | None = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """`uniform` as a pure function of ``seed``.

    If ``minval`` and ``maxval`` are both None, integers are drawn from the full range
    of the dtype.

    Args:
        shape: Shape of the result.
        seed: Two integers; the same seed always returns the same result.
        minval: Lower bound, inclusive; it broadcasts with ``shape``.
        maxval: Upper bound, exclusive, 1 by default for floating dtypes; it broadcasts
            with ``shape``.
        dtype: Floating or integer dtype of the result.
        alg: "philox" or "auto_select"; Philox is the only algorithm.

    Example:
        >>> tw.random.stateless_uniform([2, 3], seed=[1, 2]).shape
        TensorShape([2, 3])
    """
    stream = stateless_stream("stateless_uniform", seed, alg)
    return draw_uniform(
        stream, shape, *checked_bounds("stateless_uniform", minval, maxval, dtype)
    )


def stateless_categorical(
    logits: TensorLike,
    num_samples: IntLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """`categorical` as a pure function of ``seed``.

    Args:
        logits: Unnormalized log-probabilities ``[batch, classes]``.
        num_samples: Number of draws per row.
        seed: Two integers; the same seed always returns the same result.
        dtype: Integer dtype of the result.

    Example:
        >>> tw.random.stateless_categorical([[-99.0, 0.0]], 3, seed=[1, 2]).numpy()
        array([[1, 1, 1]])
    """
    stream = stateless_stream("stateless_categorical", seed)
    return draw_categorical(stream, checked_logits(logits), num_samples, dtype)


def stateless_gamma(
    shape: ShapeLike,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """`gamma` as a pure function of ``seed``.

    Args:
        shape: Shape of the result; it ends with the shape to which ``alpha`` and
            ``beta`` broadcast.
        seed: Two integers; the same seed always returns the same result.
        alpha: Shape parameter, not negative.
        beta: Rate (inverse scale), 1 by default.
        dtype: Floating dtype of the result.

    Example:
        >>> tw.random.stateless_gamma([5, 2], [1, 2], alpha=[0.5, 2.0]).shape
        TensorShape([5, 2])
    """
    stream = stateless_stream("stateless_gamma", seed)
    alpha, beta = checked_rates("stateless_gamma", alpha, beta, dtype)
    return draw_gamma(stream, as_shape(shape), alpha, beta)


def stateless_poisson(
    shape: ShapeLike,
    seed: TensorLike,
    lam: TensorLike,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """`poisson` as a pure function of ``seed``.

    Args:
        shape: Shape of the result, to which ``lam`` broadcasts.
        seed: Two integers; the same seed always returns the same result.
        lam: Mean, not negative.
        dtype: Dtype of the result.

    Example:
        >>> tw.random.stateless_poisson([5, 2], [1, 2], lam=[0.5, 2.0]).shape
        TensorShape([5, 2])
    """
    stream = stateless_stream("stateless_poisson", seed)
    return draw_poisson(stream, as_shape(shape), convert_to_tensor(lam), dtype)


def stateless_binomial(
    shape: ShapeLike,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Draw the number of successes in ``counts`` trials of probability ``probs``.

    Args:
        shape: Shape of the result.
        seed: Two integers; the same seed always returns the same result.
        counts: Number of trials, not negative; it broadcasts to ``shape``.
        probs: Probability of success, from 0 to 1; it broadcasts to ``shape``.
        output_dtype: Dtype of the result.

    Shapes:
        ``counts`` and ``probs`` broadcast to ``shape``, the shape of the result.

    Raises:
        ValueError: If ``counts`` is negative, or ``probs`` is not from 0 to 1.

    Example:
        >>> tw.random.stateless_binomial([3], [1, 2], counts=5, probs=1.0).numpy()
        array([5, 5, 5], dtype=int32)
    """
    stream = stateless_stream("stateless_binomial", seed)
    return draw_binomial(stream, shape, counts, probs, output_dtype)


def split(seed: TensorLike, num: IntLike = 2, alg: str = "auto_select") -> Tensor:
    """Split a seed into ``num`` independent seeds ``[num, 2]`` for ``stateless`` draws.

    Args:
        seed: Two integers.
        num: Number of seeds.
        alg: "philox" or "auto_select"; Philox is the only algorithm.

    Raises:
        ValueError: If ``seed`` is not two integers.

    Example:
        >>> tw.random.split([1, 2], num=3).shape
        TensorShape([3, 2])
    """
    return _new_seeds("split", seed, 0, (int(num), 2), alg, SPLIT)


def fold_in(seed: TensorLike, data: TensorLike, alg: str = "auto_select") -> Tensor:
    """Derive a seed ``[2]`` from another seed and an integer, such as a step number.

    Args:
        seed: Two integers.
        data: Integer to combine with ``seed``.
        alg: "philox" or "auto_select"; Philox is the only algorithm.

    Raises:
        ValueError: If ``seed`` is not two integers.

    Example:
        >>> tw.random.fold_in([1, 2], 7).shape
        TensorShape([2])
    """
    return _new_seeds("fold_in", seed, data, (2,), alg, FOLD_IN)


def _new_seeds(who, seed, data, shape, alg, purpose):
    state = stateless_stream(who, seed, alg).state
    if has_value(data):
        data = on_the_host((int(data) + 2**63) % 2**64 - 2**63)  # as signed, 64 bits
    return random_seeds(state, data, shape=shape, dtype=state.dtype, purpose=purpose)


def _stateless_shuffle(value, seed, alg="auto_select", name=None):
    """`shuffle` as a pure function of ``seed``, two integers."""
    return draw_shuffled(stateless_stream("stateless_shuffle", seed, alg), value)


class experimental:  # noqa: N801  (a namespace)
    """Names of ``tf.random.experimental``."""

    Generator: type = Generator
    create_rng_state = staticmethod(create_rng_state)
    get_global_generator = staticmethod(get_global_generator)
    set_global_generator = staticmethod(set_global_generator)
    stateless_fold_in = staticmethod(fold_in)
    stateless_shuffle = staticmethod(_stateless_shuffle)
    stateless_split = staticmethod(split)
