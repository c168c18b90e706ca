"""A stand-in for CuPy that runs anywhere: what would break on a GPU breaks here.

`StrictArray` holds a NumPy array but is none, and does not turn into one: like CuPy's
arrays it refuses implicit conversion, its reductions give arrays of rank 0 and no NumPy
scalars, and the functions of `xp` take no NumPy arrays. `xp` has CuPy's names only.
"""

import operator

import numpy as np

# Names of NumPy's that CuPy has too, from its reference, "Comparison Table".
NAMES = frozenset(
    """
    abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array
    array_equal array_split asanyarray asarray ascontiguousarray asfortranarray atleast_1d
    atleast_2d atleast_3d average bincount bitwise_and bitwise_not bitwise_or bitwise_xor
    broadcast_arrays broadcast_to cbrt ceil choose clip column_stack compress concatenate
    conj conjugate convolve copy copysign copyto corrcoef cos cosh count_nonzero cov cross
    cumprod cumsum deg2rad degrees diag diag_indices diagflat diagonal diff digitize divide
    divmod dot dsplit dstack einsum empty empty_like equal exp exp2 expand_dims expm1 extract
    eye fabs fill_diagonal fix flatnonzero flip fliplr flipud float_power floor floor_divide
    fmax fmin fmod frexp full full_like gcd greater greater_equal heaviside histogram hsplit
    hstack hypot i0 identity imag indices inner interp invert isclose iscomplex iscomplexobj
    isfinite isin isinf isnan isneginf isposinf isreal isrealobj ix_ kron lcm ldexp
    left_shift less less_equal lexsort linspace log log10 log1p log2 logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor logspace matmul max maximum
    may_share_memory mean median meshgrid min minimum mod modf moveaxis multiply nan_to_num
    nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar negative nextafter
    nonzero not_equal ones ones_like outer pad partition percentile permute_dims positive
    power prod ptp quantile rad2deg radians ravel real reciprocal remainder repeat require
    reshape resize right_shift rint roll rollaxis rot90 round searchsorted select shape sign
    signbit sin sinc sinh size sort split sqrt square squeeze stack std subtract sum swapaxes
    take take_along_axis tan tanh tensordot tile trace transpose trapz tri tril tril_indices
    triu triu_indices true_divide trunc unique unravel_index unwrap vander var vdot vsplit
    vstack where zeros zeros_like
    """.split()
)
LINALG = frozenset(
    "cholesky cond det eig eigh eigvalsh inv lstsq matrix_power matrix_rank norm pinv qr "
    "slogdet solve svd tensorinv tensorsolve".split()
)
FFT = frozenset("fft fftn ifft ifftn irfft irfftn rfft rfftn".split())
CONSTANTS = frozenset(
    "bool_ complex128 complex64 e float16 float32 float64 inf int16 int32 int64 int8 intp nan "
    "newaxis pi uint16 uint32 uint64 uint8 dtype finfo iinfo result_type promote_types "
    "can_cast ndim".split()
)
FROM_THE_HOST = frozenset("array asarray asanyarray ascontiguousarray".split())


def to_numpy(array):
    """A copy in host memory: the one way out, by its own name."""
    return array.held.copy()


def unwrap(value, from_the_host=False):
    if isinstance(value, StrictArray):
        return value.held
    if isinstance(value, np.ndarray) and not from_the_host:
        raise TypeError(f"Unsupported type {type(value)}: a NumPy array beside a GPU's")
    if isinstance(value, (list, tuple)):
        return type(value)([unwrap(v, from_the_host) for v in value])
    return value


def wrap(result):
    if isinstance(result, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(result))
    if isinstance(result, tuple):  # or a named one, such as LAPACK's results
        return tuple([wrap(r) for r in result])
    if isinstance(result, list):
        return [wrap(r) for r in result]
    return result


class Function:
    """A function of NumPy's for `StrictArray`; a GPU warns of nothing."""

    def __init__(self, function, from_the_host=False):
        self.function, self.from_the_host = function, from_the_host
        self.__name__ = function.__name__

    def __call__(self, *args, **kwargs):
        args = [unwrap(a, self.from_the_host) for a in args]
        kwargs = {k: unwrap(v, self.from_the_host) for k, v in kwargs.items()}
        with np.errstate(all="ignore"):
            return wrap(self.function(*args, **kwargs))

    @property
    def at(self):
        return Function(self.function.at)


class Namespace:
    """A module with CuPy's names."""

    def __init__(self, name, module, functions, constants=()):
        self.__name__, self._module = name, module
        self._functions, self._constants = functions, constants

    def __getattr__(self, name):
        if name == "linalg" and self._constants:
            return Namespace(f"{self.__name__}.linalg", np.linalg, LINALG)
        if name == "fft" and self._constants:
            return Namespace(f"{self.__name__}.fft", np.fft, FFT)
        if name == "ndarray" and self._constants:
            return StrictArray
        if name in self._constants:
            return getattr(self._module, name)
        if name not in self._functions:
            raise AttributeError(f"CuPy has no {name!r}")
        return Function(getattr(self._module, name), name in FROM_THE_HOST)


class StrictArray:
    """An array that NumPy cannot touch; attributes and methods are those of CuPy's."""

    __slots__ = ("held",)
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self):
        return to_numpy(self)

    def __len__(self):
        return len(self.held)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"strict {self.held!r}"

    def __getitem__(self, index):
        return wrap(self.held[unwrap(index)])

    def __setitem__(self, index, value):
        self.held[unwrap(index)] = unwrap(value)


ATTRIBUTES = "dtype shape ndim size itemsize nbytes strides flags real imag T".split()
METHODS = (
    "all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot "
    "fill flatten item max mean min nonzero prod ptp ravel repeat reshape round sort squeeze "
    "std sum swapaxes take tolist trace transpose var view".split()
)
BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
COMPARISONS = "lt le eq ne gt ge".split()


def _attribute(name):
    return property(lambda self: wrap(getattr(self.held, name)))


def _method(name):
    def method(self, *args, **kwargs):
        return Function(getattr(self.held, name))(*args, **kwargs)

    return method


def _binary(name):
    function = Function(getattr(operator, f"__{name}__"))

    def straight(self, other):
        return function(self, other) if _is_operand(other) else NotImplemented

    def reflected(self, other):
        return function(other, self) if _is_operand(other) else NotImplemented

    return straight, reflected


def _is_operand(other):
    known = (StrictArray, bool, int, float, complex, np.ndarray, np.generic)
    return isinstance(other, known)


def _in_place(name):
    function = getattr(operator, f"__i{name}__")

    def method(self, other):
        with np.errstate(all="ignore"):
            self.held = function(self.held, unwrap(other))
        return self

    return method


def _scalar(kind):
    return lambda self: kind(self.held)


for _name in ATTRIBUTES:
    setattr(StrictArray, _name, _attribute(_name))
for _name in METHODS:
    setattr(StrictArray, _name, _method(_name))
for _name in BINARY:
    straight, reflected = _binary(_name)
    setattr(StrictArray, f"__{_name}__", straight)
    setattr(StrictArray, f"__r{_name}__", reflected)
    setattr(StrictArray, f"__i{_name}__", _in_place(_name))
for _name in COMPARISONS:
    setattr(StrictArray, f"__{_name}__", _binary(_name)[0])
for _name in ("neg", "pos", "abs", "invert"):
    setattr(StrictArray, f"__{_name}__", _method(f"__{_name}__"))
for _kind in (bool, int, float, complex):
    setattr(StrictArray, f"__{_kind.__name__}__", _scalar(_kind))

xp = Namespace("strict", np, NAMES, CONSTANTS)
