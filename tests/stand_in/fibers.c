/* The threads of a block as fibers, for kernels that were compiled with shim.h.

A barrier or shuffle hands over to the next thread that can go on. The order of the threads
changes from round to round, so that a missing barrier gives another result. */

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define VISIBLE __attribute__((visibility("default")))

typedef struct { unsigned x, y, z; } uint3;
VISIBLE uint3 threadIdx, blockIdx, blockDim, gridDim;

enum { SHIM_READY, SHIM_AT_BARRIER, SHIM_IN_SHUFFLE, SHIM_DONE };
enum { SHIM_THREADS = 1024, SHIM_STACK = 1 << 18 };

typedef struct {
  ucontext_t context;
  jmp_buf resume;
  uint3 index;
  int state, line, is_started, shuffles;
  char slots[2][8]; /* what it gives to others, in shuffles of even and odd numbers */
} shim_fiber;

static shim_fiber *shim_fibers, *shim_current;
static char *shim_stacks;
static jmp_buf shim_scheduler;
static int shim_count; /* threads of a block, 0 where there are no fibers */
static void (*shim_kernel)(void **);
static void **shim_arguments;
static char *shim_shared, *shim_shared_end; /* the arrays of a block */
static char shim_error[256];
static uint32_t shim_random;

static void shim_yield(int state, int line) {
  shim_fiber *own = shim_current;
  own->state = state, own->line = line;
  if (!_setjmp(own->resume)) _longjmp(shim_scheduler, 1);
}

VISIBLE void shim_barrier(int line) {
  if (shim_count) shim_yield(SHIM_AT_BARRIER, line);
}

/* Give ``value`` to the other threads of a warp; copy to ``out`` what lane ``from`` gives. */
VISIBLE void shim_exchange(const void *value, void *out, int size, int from, int line) {
  if (!shim_count) {
    memcpy(out, value, size);
    return;
  }
  shim_fiber *own = shim_current;
  int slot = own->shuffles++ & 1, number = own - shim_fibers;
  memcpy(own->slots[slot], value, size);
  shim_yield(SHIM_IN_SHUFFLE, line);
  int source = (number & ~31) + from;
  memcpy(out, shim_fibers[source < shim_count ? source : number].slots[slot], size);
}

VISIBLE int shim_lane(void) {
  return shim_count ? (shim_current - shim_fibers) & 31 : 0;
}

static void shim_enter(void) {
  shim_kernel(shim_arguments);
  shim_current->state = SHIM_DONE;
  _longjmp(shim_scheduler, 1);
}

static void shim_run(shim_fiber *fiber) {
  shim_current = fiber;
  threadIdx = fiber->index;
  if (_setjmp(shim_scheduler)) return;
  if (fiber->is_started) _longjmp(fiber->resume, 1);
  fiber->is_started = 1;
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = shim_stacks + (fiber - shim_fibers) * SHIM_STACK;
  fiber->context.uc_stack.ss_size = SHIM_STACK;
  makecontext(&fiber->context, shim_enter, 0);
  setcontext(&fiber->context);
}

/* Let fibers [start, stop) go on if all of them wait at the same place; return the number. */
static int shim_release(int start, int stop, int state) {
  for (int i = start; i < stop; i++)
    if (shim_fibers[i].state != state || shim_fibers[i].line != shim_fibers[start].line)
      return 0;
  for (int i = start; i < stop; i++) shim_fibers[i].state = SHIM_READY;
  return stop - start;
}

static int shim_stuck(void) {
  int counts[4] = {0};
  for (int i = 0; i < shim_count; i++) counts[shim_fibers[i].state]++;
  snprintf(shim_error, sizeof shim_error,
           "block (%u, %u, %u): %d threads wait at a barrier, %d in a shuffle, and %d are "
           "done", blockIdx.x, blockIdx.y, blockIdx.z, counts[SHIM_AT_BARRIER],
           counts[SHIM_IN_SHUFFLE], counts[SHIM_DONE]);
  return 1;
}

static int shim_block(void) {
  int order[SHIM_THREADS], done = 0;
  for (int i = 0; i < shim_count; i++) order[i] = i;
  while (done < shim_count) {
    int progress = 0;
    for (int i = shim_count - 1; i >= 0; i--) {
      shim_random = shim_random * 1664525u + 1013904223u;
      int j = (shim_random >> 8) % (i + 1), number = order[j];
      order[j] = order[i], order[i] = number;
      if (shim_fibers[number].state != SHIM_READY) continue;
      progress = 1;
      shim_run(&shim_fibers[number]);
      done += shim_fibers[number].state == SHIM_DONE;
    }
    for (int i = 0; i < shim_count; i += 32)
      progress += shim_release(i, i + 32 < shim_count ? i + 32 : shim_count,
                               SHIM_IN_SHUFFLE);
    progress += shim_release(0, shim_count, SHIM_AT_BARRIER);
    if (!progress && done < shim_count) return shim_stuck();
  }
  return 0;
}

static int shim_blocks_of_fibers(uint32_t seed) {
  shim_count = blockDim.x * blockDim.y * blockDim.z;
  if (shim_count < 1 || shim_count > SHIM_THREADS) {
    snprintf(shim_error, sizeof shim_error, "%d threads in a block", shim_count);
    return 1;
  }
  shim_random = seed;
  shim_fibers = calloc(shim_count, sizeof *shim_fibers);
  shim_stacks = malloc((size_t)shim_count * SHIM_STACK);
  int failed = 0, blocks = gridDim.x * gridDim.y * gridDim.z;
  for (int n = 0; n < blocks && !failed; n++) {
    int b = seed & 1 ? blocks - 1 - n : n;
    blockIdx = (uint3){b % gridDim.x, b / gridDim.x % gridDim.y,
                       b / gridDim.x / gridDim.y};
    memset(shim_shared, 0xCD, shim_shared_end - shim_shared);
    memset(shim_fibers, 0, shim_count * sizeof *shim_fibers);
    for (unsigned i = 0; i < (unsigned)shim_count; i++)
      shim_fibers[i].index = (uint3){i % blockDim.x, i / blockDim.x % blockDim.y,
                                     i / blockDim.x / blockDim.y};
    failed = shim_block();
  }
  free(shim_fibers);
  free(shim_stacks);
  shim_count = 0;
  return failed;
}

/* Run a kernel; a message where threads wait for each other in vain. */
VISIBLE const char *shim_launch(void (*kernel)(void **), const unsigned *sizes,
                                void **arguments, char **shared, int fibers,
                                unsigned seed) {
  shim_kernel = kernel, shim_arguments = arguments;
  shim_shared = shared[0], shim_shared_end = shared[1];
  gridDim = (uint3){sizes[0], sizes[1], sizes[2]};
  blockDim = (uint3){sizes[3], sizes[4], sizes[5]};
  if (fibers) return shim_blocks_of_fibers(seed) ? shim_error : 0;
  threadIdx = blockIdx = (uint3){0, 0, 0};
  memset(shim_shared, 0xCD, shim_shared_end - shim_shared);
  kernel(arguments);
  return 0;
}
