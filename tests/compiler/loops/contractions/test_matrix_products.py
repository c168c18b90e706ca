"""Where the matrices of products lie: each is multiplied by hand at the place that is named."""

import itertools

import numpy as np
import pytest

from tapewright.compiler.loops.contractions.matrix_products import product_of
from tapewright.compiler.program.program import Buffer, Kind

from ...targets.cuda.program_runs import add_input, add_view, new_program

SEEDS = range(1000)


def matrix_at(memory, matrix, index, shape):
    """The matrix of this index in a batch."""
    start = matrix.offset + sum(
        i * s for i, s in zip(index, matrix.strides, strict=True)
    )
    down, along = matrix.steps
    assert matrix.rows >= shape[0 if matrix.transposed else 1]  # libraries ask for it
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    return memory[start + rows * down + columns * along]


def multiplied(product):
    """All entries of the output; those that no product makes are NaN."""
    m, n, k = product.m, product.n, product.k
    out = np.full(product.out.base.shape, np.nan).ravel()
    for index in itertools.product(*map(range, product.batch)):
        a, b = [
            matrix_at(each.base.source.ravel(), each, index, shape)
            for each, shape in ((product.a, (m, k)), (product.b, (k, n)))
        ]
        at = matrix_at(np.arange(out.size), product.out, index, (m, n))
        assert np.isnan(out[at]).all()
        out[at] = a @ b
    return out.reshape(product.out.base.shape)


def random_part(rng, program, shape, axis):
    """A buffer of a shape, which lies somewhere in a larger array, and its values.

    Some are repeated along an axis that has one entry.
    """
    rank = len(shape)
    order = rng.permutation(rank) if rng.random() < 0.6 else np.arange(rank)
    steps = rng.choice([1, 1, 1, 1, 2, -1], rank).tolist()
    whole = [n * abs(s) + int(rng.random() < 0.3) for n, s in zip(shape, steps)]
    values = rng.integers(-9, 9, [whole[axis] for axis in order]).astype("d")
    back = tuple(np.argsort(order).tolist())
    cut = [
        slice(0, n * s, s) if s > 0 else slice(n - 1, None, s)
        for n, s in zip(shape, steps)
    ]
    made = add_view(program, add_input(program, values), np.ndarray.transpose, back)
    made = add_view(program, made, np.ndarray.__getitem__, *cut)
    part = values.transpose(back)[tuple(cut)]
    if rank > 1 and shape[axis] == 1 and rng.random() < 0.5:
        wider = list(shape)
        wider[axis] = 3
        made = add_view(program, made, np.broadcast_to, tuple(wider))
        part = np.broadcast_to(part, wider)
    return made, part


def random_shapes(rng):
    m, k, n = rng.choice([1, 2, 3, 5], 3).tolist()
    batch = rng.choice([1, 2, 3], rng.integers(0, 3)).tolist()
    ones = [n if rng.random() < 0.7 else 1 for n in batch]
    shape_a = (*batch, m, k) if m > 1 or rng.random() < 0.5 else (k,)
    ones = ones[rng.integers(0, 3) :]
    shape_b = (*ones, k, n) if n > 1 or rng.random() < 0.5 else (k,)
    return (shape_a, shape_b) if rng.random() < 0.7 else (shape_a, shape_b[-2:])


@pytest.mark.parametrize("seed", SEEDS)
def test_matrices_lie_where_the_product_says(seed):
    rng, program = np.random.default_rng(seed), new_program()
    shape_a, shape_b = random_shapes(rng)
    a, left = random_part(rng, program, shape_a, -2)
    b, right = random_part(rng, program, shape_b, -1)
    wanted = np.matmul(left, right)
    out = Buffer(wanted.shape, wanted.dtype, Kind.NEW)
    product = product_of(a, b, out)
    if product is None:
        strides = [
            [s for s, n in zip(x.strides[-2:], x.shape[-2:]) if n > 1]
            for x in (left, right)
        ]
        assert any(8 not in each or min(each) <= 0 for each in strides if each)
        return
    np.testing.assert_array_equal(multiplied(product), wanted)


def count_of(*shapes, transposed=False):
    program = new_program()
    a, b = [add_input(program, np.ones(shape)) for shape in shapes]
    if transposed:
        a = add_view(program, a, np.ndarray.swapaxes, -1, -2)
    shape = np.matmul(np.ones(a.shape), np.ones(b.shape)).shape
    return product_of(a, b, Buffer(shape, a.dtype, Kind.NEW)).batch


def test_a_stack_times_one_matrix_is_one_product():
    assert count_of((4, 5, 3), (3, 2)) == ()
    assert count_of((7, 4, 5, 3), (1, 3, 2)) == ()
    assert count_of((7, 4, 1, 3), (3, 2)) == ()


def test_batches_have_as_few_axes_as_layouts_allow():
    assert count_of((7, 4, 5, 3), (7, 4, 3, 2)) == (28,)
    assert count_of((7, 4, 5, 3), (4, 3, 2)) == (7, 4)
    assert count_of((4, 3, 5), (3, 2), transposed=True) == (4,)
