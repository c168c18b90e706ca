"""Constants and structures of cuBLASLt, as in its header.

References:
    `cublasLt.h` and `cublas_api.h` of cuBLAS 12.9.
"""

import ctypes
from enum import IntEnum


class Status(IntEnum):
    """`cublasStatus_t`."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    ALLOC_FAILED = 3
    INVALID_VALUE = 7
    ARCH_MISMATCH = 8
    MAPPING_ERROR = 11
    EXECUTION_FAILED = 13
    INTERNAL_ERROR = 14
    NOT_SUPPORTED = 15
    LICENSE_ERROR = 16


class DataType(IntEnum):
    """`cudaDataType_t`."""

    R_32F = 0
    R_64F = 1
    R_16F = 2
    R_16BF = 14


class ComputeType(IntEnum):
    """`cublasComputeType_t`."""

    F32 = 68
    F64 = 70
    F32_FAST_TF32 = 77


# Partial sums are kept in the workspace and added by a launch of their own.
REDUCTION_SCHEME_COMPUTE_TYPE = 2


class Epilogue(IntEnum):
    """`cublasLtEpilogue_t`: an operation on the product before it is stored.

    A bias has an entry for each row of the (column-major) output. BGRADA: the sum of
    the first factor over the reduced axis of the product is stored, too.
    """

    DEFAULT = 1
    RELU = 2
    BIAS = 4
    RELU_BIAS = 2 | 4
    BGRADA = 256

    @property
    def has_vector(self):
        """Return whether it reads a bias, or writes the gradient of one."""
        return bool(self & (Epilogue.BIAS | Epilogue.BGRADA))


class DescriptorAttribute(IntEnum):
    """`cublasLtMatmulDescAttributes_t`."""

    TRANSA = 3
    TRANSB = 4
    EPILOGUE = 7
    BIAS_POINTER = 8


class LayoutAttribute(IntEnum):
    """`cublasLtMatrixLayoutAttribute_t`."""

    BATCH_COUNT = 5
    STRIDED_BATCH_OFFSET = 6


class PreferenceAttribute(IntEnum):
    """`cublasLtMatmulPreferenceAttributes_t`."""

    MAX_WORKSPACE_BYTES = 1
    REDUCTION_SCHEME_MASK = 3
    MIN_ALIGNMENT_A_BYTES = 5
    MIN_ALIGNMENT_B_BYTES = 6
    MIN_ALIGNMENT_C_BYTES = 7
    MIN_ALIGNMENT_D_BYTES = 8


class Algorithm(ctypes.Structure):
    """`cublasLtMatmulAlgo_t`."""

    _fields_ = [("data", ctypes.c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):
    """`cublasLtMatmulHeuristicResult_t`."""

    _fields_ = [
        ("algorithm", Algorithm),
        ("workspace_size", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves_count", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


ADDRESS = ctypes.c_void_p
_OUT, _INT, _SIZE = ctypes.POINTER(ADDRESS), ctypes.c_int, ctypes.c_size_t
_SET = (ADDRESS, _INT, ADDRESS, _SIZE)

# The types of the arguments of each function; all return a `Status`.
SIGNATURES = {
    "cublasLtCreate": (_OUT,),
    "cublasLtMatmulDescCreate": (_OUT, _INT, _INT),
    "cublasLtMatmulDescSetAttribute": _SET,
    "cublasLtMatmulDescDestroy": (ADDRESS,),
    "cublasLtMatrixLayoutCreate": (
        *(_OUT, _INT),
        *(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64),
    ),
    "cublasLtMatrixLayoutSetAttribute": _SET,
    "cublasLtMatrixLayoutDestroy": (ADDRESS,),
    "cublasLtMatmulPreferenceCreate": (_OUT,),
    "cublasLtMatmulPreferenceSetAttribute": _SET,
    "cublasLtMatmulPreferenceDestroy": (ADDRESS,),
    "cublasLtMatmulAlgoGetHeuristic": (
        *(ADDRESS,) * 7,
        *(_INT, ctypes.POINTER(HeuristicResult), ctypes.POINTER(_INT)),
    ),
    "cublasLtMatmul": (
        *(ADDRESS,) * 12,
        ctypes.POINTER(Algorithm),
        ADDRESS,
        _SIZE,
        ADDRESS,
    ),
}

# kind of descriptor -> name -> the attribute, and the type of its value
_NUMBER, _LONG = ctypes.c_int32, ctypes.c_int64
ATTRIBUTES = {
    "MatmulDesc": {
        name: (number, _LONG if name == "BIAS_POINTER" else _NUMBER)
        for name, number in DescriptorAttribute.__members__.items()
    },
    "MatrixLayout": {
        "BATCH_COUNT": (LayoutAttribute.BATCH_COUNT, _NUMBER),
        "STRIDED_BATCH_OFFSET": (LayoutAttribute.STRIDED_BATCH_OFFSET, _LONG),
    },
    "MatmulPreference": {
        name: (number, _LONG if name == "MAX_WORKSPACE_BYTES" else _NUMBER)
        for name, number in PreferenceAttribute.__members__.items()
    },
}
