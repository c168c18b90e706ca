/* CUDA C as plain C, in front of the source of kernels, which fibers.c runs. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__ static
#define __device__ static
#define __constant__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
/* An array of a block: filled with nonsense before each one. */
#define __shared__ static __attribute__((section("shim_shared")))
#define __syncthreads() shim_barrier(__LINE__)
#define __syncwarp(...) shim_shuffle(0, 0, -1, __LINE__)
#define __threadfence()
#define __ldg(pointer) (*(pointer))

typedef struct { unsigned x, y, z; } uint3;
typedef uint3 dim3;
extern uint3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

__shared__ char shim_first_byte __attribute__((used)); /* so that the section exists */
extern char __start_shim_shared[], __stop_shim_shared[]; /* where it is, says the linker */

/* ------------------------------------------------------------------------- threads */

void shim_barrier(int line);
int shim_lane(void);
void shim_exchange(const void *value, void *out, int size, int from, int line);

#define SHIM_SHUFFLE(value, from)                                        \
  ({                                                                     \
    __typeof__(value) shim_in = (value), shim_out;                       \
    shim_exchange(&shim_in, &shim_out, sizeof shim_in, from, __LINE__);  \
    shim_out;                                                            \
  })
#define SHIM_4(_1, _2, _3, _4, name, ...) name
#define __shfl_xor_sync(...) \
  SHIM_4(__VA_ARGS__, shim_xor_width, shim_xor, , )(__VA_ARGS__)
#define __shfl_sync(...) SHIM_4(__VA_ARGS__, shim_from_width, shim_from, , )(__VA_ARGS__)
#define __shfl_down_sync(...) \
  SHIM_4(__VA_ARGS__, shim_down_width, shim_down, , )(__VA_ARGS__)
#define __shfl_up_sync(...) SHIM_4(__VA_ARGS__, shim_up_width, shim_up, , )(__VA_ARGS__)
#define shim_xor(mask, value, m) shim_xor_width(mask, value, m, 32)
#define shim_from(mask, value, lane) shim_from_width(mask, value, lane, 32)
#define shim_down(mask, value, n) shim_down_width(mask, value, n, 32)
#define shim_up(mask, value, n) shim_up_width(mask, value, n, 32)
#define shim_xor_width(mask, value, m, w) SHIM_SHUFFLE(value, shim_lane() ^ (int)(m))
#define shim_from_width(mask, value, lane, w) \
  SHIM_SHUFFLE(value, (shim_lane() & -(w)) + ((int)(lane) & ((w)-1)))
#define shim_down_width(mask, value, n, w) SHIM_SHUFFLE(value, shim_down_lane((int)(n), w))
#define shim_up_width(mask, value, n, w) SHIM_SHUFFLE(value, shim_down_lane(-(int)(n), w))
#define shim_shuffle(...) SHIM_SHUFFLE(0, shim_lane())

static int shim_down_lane(int n, int width) {
  int lane = shim_lane(), other = lane + n;
  return (other & -width) == (lane & -width) ? other : lane;
}

/* ---------------------------------------------------------------- functions of CUDA */

#define SHIM_BITS(name, from, to)      \
  static inline to name(from x) {      \
    to bits;                           \
    memcpy(&bits, &x, sizeof bits);    \
    return bits;                       \
  }
SHIM_BITS(__float_as_int, float, int)
SHIM_BITS(__float_as_uint, float, unsigned)
SHIM_BITS(__int_as_float, int, float)
SHIM_BITS(__uint_as_float, unsigned, float)
SHIM_BITS(__double_as_longlong, double, long long)
SHIM_BITS(__longlong_as_double, long long, double)

#define SHIM_ATOMIC(pointer, changed)                     \
  ({                                                      \
    __typeof__(pointer) shim_at = (pointer);              \
    __typeof__(*shim_at) shim_old = *shim_at;             \
    *shim_at = (changed);                                 \
    shim_old;                                             \
  })
#define atomicCAS(pointer, compared, value) \
  SHIM_ATOMIC(pointer, shim_old == (compared) ? (value) : shim_old)
#define atomicAdd(pointer, value) SHIM_ATOMIC(pointer, shim_old + (value))
#define atomicExch(pointer, value) SHIM_ATOMIC(pointer, value)
#define atomicMax(pointer, value) \
  SHIM_ATOMIC(pointer, shim_old < (value) ? (value) : shim_old)
#define atomicMin(pointer, value) \
  SHIM_ATOMIC(pointer, shim_old > (value) ? (value) : shim_old)

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned __int128)a * b >> 64;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned long long)a * b >> 32;
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
#define min(x, y) ((x) < (y) ? (x) : (y))
#define max(x, y) ((x) > (y) ? (x) : (y))
