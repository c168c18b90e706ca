"""C functions that precede the kernels of a module.

They are CUDA C and, with a few macros in front, C that gcc accepts. float16 is stored
as `half_bits` and computed as float; bfloat16 is stored as `bfloat16_bits`, the upper
half of a float.
"""

_HALF = r"""
typedef unsigned short half_bits;
typedef unsigned char boolean;

#ifdef __CUDACC__
__device__ __forceinline__ float float_of_half(half_bits h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
__device__ __forceinline__ half_bits half_of_float(float x) {
  half_bits h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
__device__ __forceinline__ half_bits half_of_double(double x) {
  half_bits h;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h) : "d"(x));
  return h;
}
#else
__device__ __forceinline__ float float_of_half(half_bits h) {
  _Float16 x;
  __builtin_memcpy(&x, &h, 2);
  return x;
}
__device__ __forceinline__ half_bits half_of_double(double x) {
  _Float16 y = x;
  half_bits h;
  __builtin_memcpy(&h, &y, 2);
  return h;
}
__device__ __forceinline__ half_bits half_of_float(float x) { return half_of_double(x); }
#endif

typedef unsigned short bfloat16_bits;

__device__ __forceinline__ float float_of_bfloat16(bfloat16_bits h) {
  return __int_as_float((int)((unsigned)h << 16));
}
/* The nearest number, of two as near the even one; NaN stays NaN. */
__device__ __forceinline__ bfloat16_bits bfloat16_of_float(float x) {
  unsigned bits = (unsigned)__float_as_int(x);
  if (x != x) return bits >> 16 & 0x8000 | 0x7FC0;
  return bits + 0x7FFF + (bits >> 16 & 1) >> 16;
}
__device__ __forceinline__ float bfloat16_rounded(float x) {
  return float_of_bfloat16(bfloat16_of_float(x));
}

/* The nearest number of float16, and that next to one. */
__device__ __forceinline__ float half_rounded(float x) {
  return float_of_half(half_of_float(x));
}
__device__ __forceinline__ float half_rounded_double(double x) {
  return float_of_half(half_of_double(x));
}
__device__ __forceinline__ float nextafter_half(float x, float y) {
  half_bits bits = half_of_float(x);
  if (x != x || y != y) return x + y;
  if (x == y) return y; /* as in C, with y's sign of zero */
  if (x == 0) return float_of_half(half_of_float(y) & 0x8000 | 1);
  return float_of_half((x < y) == (x > 0) ? bits + 1 : bits - 1);
}
"""

_FLOATS = r"""
__device__ __forceinline__ T heaviside_T(T x, T at_zero) {
  return x > 0 ? 1 : x < 0 ? 0 : x == 0 ? at_zero : x;
}
__device__ __forceinline__ T logaddexp_T(T x, T y) {
  T d = x - y;
  if (x == y) return x + (T)0.693147180559945309417232121458176568;
  return d > 0 ? x + log1pF(expF(-d)) : d <= 0 ? y + log1pF(expF(d)) : d;
}
/* The quotient rounded down, and the rest with the sign of the divisor. */
__device__ __forceinline__ T remainder_T(T x, T y) {
  T rest = fmodF(x, y);
  if (y == 0) return rest;
  if (rest == 0) return copysignF((T)0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}
__device__ __forceinline__ T floor_divide_T(T x, T y) {
  T rest = fmodF(x, y), quotient = (x - rest) / y, whole = floorF(quotient);
  if (y == 0) return x / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1, whole = floorF(quotient);
  if (quotient == 0) return copysignF((T)0, x / y);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
/* Integers: out of the range the lowest one, as on x86. */
__device__ __forceinline__ int int_of_T(T x) {
  return x >= (T)-2147483648.0 && x < (T)2147483648.0 ? (int)x : -2147483647 - 1;
}
__device__ __forceinline__ long long long_of_T(T x) {
  const T bound = (T)9223372036854775808.0;
  return x >= -bound && x < bound ? (long long)x : -9223372036854775807LL - 1;
}
__device__ __forceinline__ unsigned unsigned_of_T(T x) {
  const T bound = (T)2147483648.0;
  return x >= bound ? (unsigned)int_of_T(x - bound) ^ 0x80000000u : (unsigned)int_of_T(x);
}
__device__ __forceinline__ unsigned long long unsigned_long_of_T(T x) {
  const T bound = (T)9223372036854775808.0;
  if (x >= bound) return (unsigned long long)long_of_T(x - bound) ^ (1ULL << 63);
  return (unsigned long long)long_of_T(x);
}
"""

_INTEGERS = r"""
/* Of 0 as divisor: 0; the quotient of the lowest number and -1 wraps around. */
__device__ __forceinline__ T fmod_N(T x, T y) { return y == 0 || y == -1 ? 0 : x % y; }
__device__ __forceinline__ T remainder_N(T x, T y) {
  T rest = fmod_N(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
__device__ __forceinline__ T floor_divide_N(T x, T y) {
  if (y == 0) return 0;
  if (y == -1) return (T)(0 - (unsigned T)x);
  T rest = x % y;
  return x / y - (rest != 0 && (rest < 0) != (y < 0));
}
"""


def _floats(type, suffix):
    named = _FLOATS.replace("_T(", f"_{type}(").replace("F(", f"{suffix}(")
    return named.replace("(T)", f"({type})").replace("T ", f"{type} ")


def _integers(type, name):
    return _INTEGERS.replace("_N(", f"_{name}(").replace("T", type)


PRELUDE = "".join(
    [
        _HALF,
        _floats("float", "f"),
        _floats("double", ""),
        _integers("int", "int"),
        _integers("long long", "long"),
    ]
)
