"""Calls of cuBLASLt: what is passed, what is refused, and the numbers of NVIDIA's header."""

import ctypes

import numpy as np
import pytest

from tapewright.compiler.targets.cuda.products import cublaslt
from tapewright.compiler.targets.cuda.products.cublaslt import (
    WORKSPACE_BYTES,
    CublasLtError,
    MatrixLayout,
    Problem,
)
from tapewright.compiler.targets.cuda.products.cublaslt_header import (
    ADDRESS,
    ATTRIBUTES,
    SIGNATURES,
    DescriptorAttribute,
    Epilogue,
    HeuristicResult,
    LayoutAttribute,
    PreferenceAttribute,
    Status,
)

from .....stand_in.cublaslt import SIZES, CublasLt, provided
from ..program_runs import library

PLAIN = Problem(
    (np.dtype("f"), np.dtype("f")),
    (False, False),
    MatrixLayout(2, 3, 2),
    MatrixLayout(3, 4, 3),
    MatrixLayout(2, 4, 2),
)


class Arrays:
    """Memory for a product of some floats, at 256-byte aligned addresses."""

    def __init__(self, *sizes, offsets=(0, 0, 0, 0)):
        self.held, self.arrays = [], []
        for size, offset in zip(sizes, offsets):
            whole = np.zeros(size + 256, "f")
            start = -whole.ctypes.data % 256 // 4 + offset
            self.held.append(whole)
            self.arrays.append(whole[start : start + size])
        self.room = np.empty(WORKSPACE_BYTES + 256, np.uint8)
        self.workspace = self.room.ctypes.data + -self.room.ctypes.data % 256

    @property
    def addresses(self):
        return [a.ctypes.data for a in self.arrays]


def multiply(problem=PLAIN, arrays=None, addresses=None, workspace=None):
    arrays = arrays or Arrays(6, 12, 8, 4)
    for array in arrays.arrays[:2]:
        array[:] = np.arange(1, array.size + 1)
    cublaslt.library().multiply(
        problem, addresses or arrays.addresses, workspace or arrays.workspace, 0
    )
    return arrays.arrays


def test_matrices_are_in_column_major_order(stand_in):
    a, b, d, *_ = multiply()
    exact = a.reshape(3, 2).T @ b.reshape(4, 3).T
    np.testing.assert_array_equal(d.reshape(4, 2).T, exact)


def test_a_product_may_be_added_to_what_is_there(stand_in):
    arrays = Arrays(6, 12, 8, 4)
    multiply(arrays=arrays)
    once = arrays.arrays[2].copy()
    multiply(PLAIN._replace(adds=True), arrays)
    np.testing.assert_array_equal(arrays.arrays[2], 2 * once)


def test_a_failure_names_the_call_and_the_status(stand_in):
    wrong = PLAIN._replace(b=MatrixLayout(4, 4, 4))
    with pytest.raises(
        CublasLtError, match="cublasLtMatmulAlgoGetHeuristic failed: CUBLAS_"
    ):
        multiply(wrong)
    assert stand_in.reasons == ["B does not fit"]
    assert not stand_in.descriptors


def test_a_status_without_a_name_is_told_as_a_number(stand_in, monkeypatch):
    monkeypatch.setattr(stand_in, "cublasLtCreate", lambda handle: 1234)
    with pytest.raises(CublasLtError, match="cublasLtCreate failed: 1234"):
        multiply()


def test_a_problem_without_an_algorithm_is_told():
    with library(needs_workspace=WORKSPACE_BYTES + 1):
        assert not cublaslt.library().supports(PLAIN)
        with pytest.raises(CublasLtError, match="no algorithm for Problem"):
            multiply()


def test_a_combination_that_is_not_supported_is_found_out(stand_in):
    half = PLAIN._replace(dtypes=(np.dtype("d"),) * 2, epilogue=Epilogue.BIAS)
    assert not cublaslt.library().supports(half)
    assert cublaslt.library().supports(PLAIN._replace(epilogue=Epilogue.BIAS))


def test_the_library_is_loaded_at_the_first_call():
    calls = []
    with provided(lambda: calls.append(1) or CublasLt()):
        assert not calls
        cublaslt.library(), cublaslt.library()
        assert calls == [1]


def test_handles_and_algorithms_belong_to_a_device():
    made, device = CublasLt(), [0]
    with provided(lambda: made, lambda: device[0]):
        for number in (0, 1, 0):
            device[0] = number
            multiply()
        kinds = [each.kind for each in made.objects.values()]
        assert kinds == ["handle"] * 2
        assert len(made.algorithms) == 2


def test_algorithms_fit_the_alignment_of_the_arrays(stand_in):
    sizes = 6, 12, 8, 4
    multiply(arrays=Arrays(*sizes))
    multiply(arrays=Arrays(*sizes, offsets=(1, 2, 4, 0)))
    (_, whole, _), (_, shifted, _) = stand_in.algorithms.values()
    assert (whole, shifted) == ([256] * 4, [4, 8, 16, 16])


def test_products_with_epilogues_know_few_alignments(stand_in):
    biased = PLAIN._replace(epilogue=Epilogue.BIAS)
    for offset in (0, 1, 2, 3, 4, 8, 32, 64):
        offsets = (offset, 0, 0, 0)
        multiply(biased, Arrays(6, 12, 8, 4, offsets=offsets))
    assert {tuple(each[1]) for each in stand_in.algorithms.values()} == {
        (256,) * 4,
        (16,) * 4,
        (4,) * 4,
    }


def test_sums_of_parts_are_added_in_a_fixed_order(stand_in):
    multiply()
    ((_, _, schemes),) = stand_in.algorithms.values()
    assert schemes == 2  # CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE


# --------------------------------------------------------- the stand-in refuses mistakes

WRONG = {
    "columns that overlap": {"a": MatrixLayout(2, 3, 1)},
    "other rows": {"a": MatrixLayout(3, 3, 3)},
    "an empty matrix": {"a": MatrixLayout(2, 0, 2), "b": MatrixLayout(0, 4, 1)},
}


@pytest.mark.parametrize("name", WRONG)
def test_layouts_that_do_not_fit_are_refused(stand_in, name):
    with pytest.raises(CublasLtError, match="INVALID_VALUE"):
        multiply(PLAIN._replace(**WRONG[name]))


def test_an_output_over_an_input_is_refused(stand_in):
    arrays = Arrays(6, 12, 8, 4)
    a, b, *rest = arrays.addresses
    with pytest.raises(CublasLtError, match="cublasLtMatmul failed"):
        multiply(arrays=arrays, addresses=[a, b, b + 4 * 11, *rest[1:]])
    assert stand_in.reasons == ["D lies over an input"]


def test_a_workspace_that_is_not_aligned_is_refused(stand_in):
    arrays = Arrays(6, 12, 8, 4)
    with pytest.raises(CublasLtError, match="cublasLtMatmul failed"):
        multiply(arrays=arrays, workspace=arrays.workspace + 16)


@pytest.mark.parametrize("epilogue", [Epilogue.BIAS, Epilogue.BGRADA])
def test_an_epilogue_needs_the_address_of_a_vector(stand_in, epilogue):
    arrays = Arrays(6, 12, 8, 4)
    addresses = [*arrays.addresses[:3], 0]
    with pytest.raises(CublasLtError, match="INVALID_VALUE"):
        multiply(PLAIN._replace(epilogue=epilogue), arrays, addresses)
    assert stand_in.reasons == ["there is no address of a vector"]


def test_an_algorithm_is_for_one_problem(stand_in, monkeypatch):
    lib = cublaslt.library()
    other = PLAIN._replace(a=MatrixLayout(2, 3, 4))
    found = lib.heuristic(PLAIN, (256,) * 4)
    monkeypatch.setattr(lib, "algorithm", lambda *_: found)
    with pytest.raises(CublasLtError, match="cublasLtMatmul failed"):
        multiply(other, Arrays(12, 12, 8, 4))


def test_an_attribute_of_a_wrong_size_is_refused(stand_in):
    made, value = ADDRESS(), ctypes.c_int64(1)
    assert stand_in.cublasLtMatmulDescCreate(ctypes.byref(made), 68, 0) == 0
    place = ctypes.addressof(value)
    status = stand_in.cublasLtMatmulDescSetAttribute(made, 7, place, 8)
    assert status == Status.INVALID_VALUE
    assert stand_in.cublasLtMatmulDescDestroy(made) == 0
    assert stand_in.cublasLtMatmulDescDestroy(made) == Status.INVALID_VALUE


# --------------------------------------------------------------------- NVIDIA's library


@pytest.fixture
def nvidias():
    """NVIDIA's library, whose descriptors need no GPU."""
    try:
        return cublaslt.nvidias()
    except RuntimeError as error:
        pytest.skip(str(error))


def value_of(functions, kind, made, attribute, size):
    """What an attribute is set to, by ``cublasLt...GetAttribute``."""
    get = getattr(functions, f"cublasLt{kind}GetAttribute")
    get.argtypes = (*SIGNATURES["cublasLtMatmulDescSetAttribute"], ADDRESS)
    value, written = ctypes.c_int64(0), ctypes.c_size_t(0)
    place = ctypes.addressof(value), size, ctypes.addressof(written)
    assert get(made, attribute, *place) == Status.SUCCESS
    assert written.value == size
    return value.value


CREATED = {
    "MatmulDesc": ((68, 0), DescriptorAttribute),
    "MatrixLayout": ((0, 5, 7, 9), LayoutAttribute),
    "MatmulPreference": ((), PreferenceAttribute),
}


@pytest.mark.parametrize("kind", CREATED)
def test_attributes_have_the_size_that_nvidias_library_takes(nvidias, kind):
    args, attributes = CREATED[kind]
    made = ADDRESS()
    create = getattr(nvidias, f"cublasLt{kind}Create")
    assert create(ctypes.byref(made), *args) == Status.SUCCESS
    for attribute in attributes:
        size, value = SIZES[kind][attribute], ctypes.c_int64(16)
        assert ctypes.sizeof(ATTRIBUTES[kind][attribute.name][1]) == size
        place = ctypes.addressof(value)
        setter = getattr(nvidias, f"cublasLt{kind}SetAttribute")
        assert setter(made, attribute, place, size) == Status.SUCCESS
        assert setter(made, attribute, place, 12 - size) == Status.INVALID_VALUE
        assert value_of(nvidias, kind, made, attribute, size) == 16
    assert getattr(nvidias, f"cublasLt{kind}Destroy")(made) == Status.SUCCESS


def test_results_of_the_heuristic_have_the_size_of_the_header():
    assert ctypes.sizeof(HeuristicResult) == 96  # 64 + 8 + 4 + 4 + 16
