"""The stand-in for CuPy's arrays answers as CuPy 14 does, by its source and documentation."""

import copy
import pickle

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")
cupyx = pytest.importorskip("cupyx")

from .arrays import AT, Array, Ufunc, signature_of, to_numpy, xp  # noqa: E402

MATRIX = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def x():
    return xp.asarray(MATRIX)


def test_what_cupy_lacks_the_stand_in_lacks(x):
    with pytest.raises(AttributeError, match="block"):
        xp.block([x])
    with pytest.raises(AttributeError, match="expm"):
        xp.linalg.expm(x)
    with pytest.raises(AttributeError, match="random"):
        xp.random.normal()
    with pytest.raises(AttributeError, match="partitioned"):
        x.partitioned()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: xp.clip(x, 0.0),
        lambda x: xp.linalg.svd(x, hermitian=True),
        lambda x: xp.take(x, [0], mode="clip"),
        lambda x: xp.add(x, x, where=x > 0),
        lambda x: x.sum(initial=1.0),
        lambda x: x.max(where=x > 0),
        lambda x: x.item(0),
    ],
)
def test_arguments_that_cupy_does_not_know_are_type_errors(x, call):
    with pytest.raises(TypeError):
        call(x)


def test_signatures_of_compiled_functions_are_read_from_their_docstrings():
    sort, reshape = cupy.ndarray.sort, cupy.ndarray.reshape
    assert str(signature_of(sort)) == "(self, axis=-1, kind=None)"
    assert str(signature_of(reshape)) == "(self, *shape, order='C', copy=None)"


def test_numpy_arrays_are_not_taken_beside_those_of_a_gpu(x):
    for call in (
        lambda: x + MATRIX,
        lambda: xp.add(x, MATRIX),
        lambda: xp.concatenate([x, MATRIX]),
        lambda: x[np.array([0])],
        lambda: np.asarray(x),
        lambda: np.exp(x),
    ):
        with pytest.raises(TypeError):
            call()


def test_reductions_and_entries_are_arrays_of_rank_0(x):
    for result in (x.sum(), xp.max(x), x[0, 0], xp.count_nonzero(x), xp.linalg.norm(x)):
        assert type(result) is Array and result.shape == ()
    assert xp.size(x) == 6 and x.item is not None and type(x[0, 0].item()) is float


def test_an_array_of_rank_0_has_no_axis():
    with pytest.raises(np.exceptions.AxisError):
        xp.asarray(1.0).sum(axis=0)


# ------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: xp.sqrt(xp.ones(2, "int8")), "float16"),
        (lambda: xp.sqrt(xp.ones(2, "int32")), "float64"),
        (lambda: xp.ones(2, "float32") + 1.5, "float32"),
        (lambda: xp.ones(2, "uint8") + 1.5, "float64"),
        (lambda: xp.ones(2, "float32") + np.float64(1), "float64"),
        (lambda: xp.ones(2, "int8") + 1, "int8"),
        (lambda: xp.ones(2, "int32") / xp.ones(2, "int32"), "float64"),
        (lambda: xp.ones(2, "int8").sum(), "int64"),
    ],
)
def test_dtypes_are_those_of_cupys_loops(make, dtype):
    assert make().dtype == dtype


def test_what_no_loop_takes_is_a_type_error():
    for call in (
        lambda: xp.floor(xp.ones(2, "complex64")),
        lambda: xp.subtract(xp.ones(2, bool), xp.ones(2, bool)),
        lambda: xp.add(xp.ones(2), "text"),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OverflowError):
        xp.ones(2, "uint8") + 300


def test_text_and_objects_have_no_dtype_of_cupys():
    for value in (["text"], [None], np.array([object()])):
        with pytest.raises((ValueError, TypeError)):
            xp.asarray(value)


@pytest.mark.parametrize("name", sorted(AT))
def test_at_takes_the_dtypes_that_cupys_kernels_have(name):
    for dtype in "bool int8 int16 int32 int64 uint64 float16 float32 complex64".split():
        a, ones = xp.zeros(3, dtype), xp.ones(2, dtype)
        if dtype in AT[name]:
            getattr(xp, name).at(a, xp.asarray([0, 0]), ones)
        else:
            with pytest.raises(TypeError, match="only supports"):
                getattr(xp, name).at(a, xp.asarray([0, 0]), ones)


def test_at_exists_where_cupy_has_an_atomic_function():
    ufuncs = [n for n in dir(cupy) if isinstance(getattr(cupy, n), cupy.ufunc)]
    assert {n for n in ufuncs if getattr(cupy, n)._scatter_op} == set(AT)
    with pytest.raises(NotImplementedError, match="multiply"):
        xp.multiply.at(xp.ones(2), xp.asarray([0]), 2.0)


# ------------------------------------------------------------------------ indices


def test_whole_numbers_of_arrays_wrap_around_the_axes(x):
    wide = xp.asarray([4, -5, 3])
    expected = MATRIX[:, [1, 1, 0]]
    for found in (xp.take(x, wide, axis=1), x[:, wide], x[..., wide]):
        np.testing.assert_array_equal(found.get(), expected)
    x[xp.asarray([3])] = 9.0
    assert x.get()[1].tolist() == [9.0] * 3
    rows = xp.take_along_axis(x, xp.asarray([[5], [2]]), axis=1)
    assert rows.get().tolist() == [[2.0], [9.0]]


def test_of_several_for_one_place_the_last_does_not_count(x):
    x[:, xp.asarray([1, 0, 1])] = xp.asarray([7.0, 8.0, 9.0])
    assert x.get().tolist() == [[8.0, 7.0, 2.0], [8.0, 7.0, 5.0]]


def test_numbers_out_of_range_are_index_errors(x):
    with pytest.raises(IndexError):
        x[2]


def test_masks_select_as_in_numpy(x):
    np.testing.assert_array_equal(x[x > 2].get(), MATRIX[MATRIX > 2])
    np.testing.assert_array_equal(
        x[xp.asarray([True, False]), 1:].get(), MATRIX[:1, 1:]
    )


# ------------------------------------------------------------------------- memory


def test_views_know_the_array_that_owns_their_memory(x):
    for view in (x[0], x.T, x.reshape(3, 2), x[:, ::2][1:], x[0, 0]):
        assert view.base is x and not view.flags.owndata
    assert x.base is None and xp.exp(x).base is None and x.flags.owndata
    assert xp.asarray(x) is x and x.astype("float32", copy=False) is x
    x[0, 1] += 7.0
    assert x.get()[0, 1] == 8.0


def test_an_array_made_of_numpys_has_memory_of_its_own():
    host = np.zeros(3)
    xp.asarray(host)[0] = 1.0
    assert not host.any()


def test_addresses_are_those_of_the_memory(x):
    assert x[1].data.ptr == x.data.ptr + 12 and xp.zeros((0, 3)).data.ptr == 0
    interface = x.T.__cuda_array_interface__
    assert interface["data"] == (x.data.ptr, False) and interface["strides"] == (4, 12)
    same = xp.ndarray((3,), "float32", x[1].data)
    same[...] = 5.0
    assert x.get()[1].tolist() == [5.0] * 3


def test_new_arrays_are_in_c_order_unless_a_function_keeps_it(x):
    for made in (
        xp.exp(x.T),
        x.T + 1,
        x.T.copy(),
        xp.where(x.T > 0, x.T, 0),
        x.T[:, [1]],
    ):
        assert made.flags.c_contiguous
    for kept in (xp.zeros_like(x.T), x.T.astype("f8"), xp.copy(x.T), xp.array(x.T)):
        assert kept.flags.f_contiguous and not kept.flags.c_contiguous


def test_results_go_to_out(x):
    out = xp.empty_like(x)
    assert xp.exp(x, out=out) is out and xp.sum(x, axis=0, out=out[0]) is not None
    before = x
    x += 1
    assert x is before
    with pytest.raises(TypeError):
        xp.add(x, x, out=xp.empty(x.shape, "int32"))


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda a: pickle.loads(pickle.dumps(a)),
        lambda a: a.copy(),
    ],
)
def test_copies_have_memory_of_their_own(x, copied):
    other = copied(x)
    other[...] = 0.0
    assert type(other) is Array and (to_numpy(x) == MATRIX).all()


# ---------------------------------------------------------------------- linalg, values

SINGULAR = np.ones((2, 2))


def test_a_singular_matrix_raises_nothing_unless_it_is_asked_for():
    a = xp.asarray(SINGULAR)
    for call in (lambda: xp.linalg.inv(a), lambda: xp.linalg.solve(a, a)):
        assert not np.isfinite(call().get()).all()
        with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
            call()
    with pytest.raises(np.linalg.LinAlgError):  # NumPy is as before
        np.linalg.inv(SINGULAR)


def test_a_matrix_that_is_not_positive_definite_gives_some_factor():
    a = xp.asarray(-np.eye(2))
    assert np.isfinite(xp.linalg.cholesky(a).get()).all()
    with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        xp.linalg.cholesky(a)


def test_sorts_are_stable_and_of_no_other_kind(x):
    assert xp.argsort(xp.zeros(3), kind="stable").tolist() == [0, 1, 2]
    for call in (
        lambda: xp.sort(x, kind="quicksort"),
        lambda: x.argsort(kind="heapsort"),
    ):
        with pytest.raises(ValueError, match="stable"):
            call()


def test_nothing_is_warned_of():
    with np.errstate(all="raise"):
        assert np.isnan(xp.log(xp.asarray([-1.0])).get()).all()
        assert np.isinf((xp.ones(1) / xp.zeros(1)).get()).all()


def test_sums_are_those_of_many_threads():
    total = xp.asarray(np.full((1 << 20, 2), 0.1, np.float32)).sum(axis=0)
    np.testing.assert_allclose(total.get(), (1 << 20) * 0.1, rtol=1e-6)


def test_reductions_by_ufuncs_are_sums_and_products_only(x):
    assert isinstance(xp.add, Ufunc) and float(xp.add.reduce(x).sum()) == 15.0
    with pytest.raises(NotImplementedError):
        xp.maximum.reduce(x)
    with pytest.raises(NotImplementedError):
        xp.logaddexp.accumulate(x)


def test_powers_are_those_of_the_function_pow():
    """NumPy's of a single exponent of 0.5 is a square root: NaN, and -0."""
    x = xp.asarray(np.float32([-np.inf, -0.0]))
    found = to_numpy(xp.power(x, 0.5))
    np.testing.assert_array_equal(found, [np.inf, 0.0])
    assert not np.signbit(found).any()
