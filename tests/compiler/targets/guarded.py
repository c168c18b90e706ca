"""Programs on arrays that end, or begin, at pages which nobody may touch.

A script: it ends with a fault if machine code reads or writes outside of an array.
"""

import ctypes
import faulthandler
import mmap
import sys

import numpy as np

import tapewright as tw
from tapewright.compiler.loops import index_splitting
from tapewright.compiler.program import buffer_assignment
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.native.jit.output_memory import new_array
from tapewright.compiler.targets.numpy import executable

PAGE = mmap.PAGESIZE
C = ctypes.CDLL(None, use_errno=True)
HOLES = {}  # size of an arena -> where the pages between its buffers begin


def pages(nbytes):
    return -(-nbytes // PAGE) * PAGE


def mapped(size, closed):
    """New memory, of which the pages that begin at ``closed`` may not be touched."""
    memory = mmap.mmap(-1, size)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for place in closed:
        assert not C.mprotect(ctypes.c_void_p(start + place), PAGE, 0)
    return memory


def guarded(shape, dtype, at_end=True):
    """An array right before, or right behind, such a page."""
    dtype, count = np.dtype(dtype), int(np.prod(shape))
    room = pages(count * dtype.itemsize)
    memory = mapped(room + 2 * PAGE, (0, PAGE + room))
    start = PAGE + room - count * dtype.itemsize if at_end else PAGE
    return np.frombuffer(memory, dtype, count, start).reshape(shape)


def guarded_copy(array, at_end=True):
    copy = guarded(array.shape, array.dtype, at_end)
    copy[...] = array
    return copy


def with_pages_between(ranges):
    """Places for the buffers of an arena, each before a page of its own."""
    offsets, holes, end = [], [], 0
    for _, _, nbytes in ranges:
        end += pages(nbytes)
        offsets.append(end - -(-nbytes // 16) * 16)
        holes.append(end)
        end += PAGE
    HOLES[end] = holes
    return offsets, end


class GuardedInstance(executable.Instance):
    def __init__(self, assignment, replacing):
        super().__init__(assignment, replacing)
        memory = mapped(max(self.size, PAGE), HOLES.get(self.size, ()))
        self.arena, self.start = np.frombuffer(memory, np.uint8), 0


def run(function, arrays, at_end=True):
    """The results of a traced function, all arrays of which are guarded."""
    tensors = [tw.constant(a) for a in arrays]
    concrete = tw.function(function).get_concrete_function(*tensors)
    made = concrete.executable
    for name, value in made.bound.items():
        if value is np.empty or value is new_array:
            made.bound[name] = lambda shape, dtype: guarded(shape, dtype, at_end)
        elif type(value) is np.ndarray:
            made.bound[name] = guarded_copy(value, at_end)
    assert made.segments or not all([a.size for a in arrays])
    inputs = [guarded_copy(a, at_end) for a in arrays]
    captured = [
        guarded_copy(np.asarray(x), at_end) for x in concrete.graph.captures.values()
    ]
    return made.run([*inputs, *captured])


# ---------------------------------------------------------------------------- programs


def softmax(x):
    return tw.nn.softmax(x) + tw.nn.softmax(x, 0)


def layer_norm(x):
    mean, variance = tw.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tw.math.rsqrt(variance + 1e-3)


def batch_norm(x):
    mean, variance = tw.nn.moments(x, [0])
    return (x - mean) * tw.math.rsqrt(variance + 1e-3), mean


def strides(x):
    y = tw.transpose(x) * 2.0 + tw.reduce_max(tw.transpose(x), 0)
    return y[::-1] + 1.0, tw.exp(x[:, ::2]), tw.exp(x[1:]) * x[:-1]


def sums(x):
    y = tw.tanh(x)
    return (
        tw.reduce_sum(y),
        tw.reduce_sum(y, 0),
        tw.reduce_max(y, 1),
        tw.cast(y > 0, "int8"),
    )


def products(x):
    y = tw.nn.relu(tw.matmul(x, x, transpose_b=True))
    z = tw.matmul(x, x, transpose_a=True)
    return tw.matmul(y, x * 2.0), tw.reduce_sum(y, 1), z


def moves(x):
    rows = tw.gather(x, tw.constant([0, 0])) * 2.0
    padded = tw.pad(x, [[2, 1], [0, 3]], constant_values=1.0) + 1.0
    return tw.concat([x * 3.0, rows], 0), tw.concat([x, x * x], 1), padded


def pools(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        rows, columns = x[None], x[None, :, :, None]
        y = [
            pool(images, *window)
            for images in (rows, tw.transpose(rows, [0, 2, 1]))
            for pool in (tw.nn.max_pool1d, tw.nn.avg_pool1d)
            for window in ((3, 2, "SAME"), (2, 2, "SAME"))
        ]
        y += [
            tw.nn.max_pool2d(columns, 2, 2, "SAME"),
            tw.nn.avg_pool2d(columns, 3, 1, "SAME"),
        ]
        total = tw.add_n([tw.reduce_sum(each * each) for each in y])
    return tape.gradient(total, x), *y


def gradients(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.log_softmax(layer_norm(x)) * tw.gather(x, tw.constant([0]), axis=1)
        loss = tw.reduce_mean(y * y) + tw.reduce_sum(x[1:] * 0.5)
    return loss, tape.gradient(loss, x)


def convolutions(x):
    depth = x.shape[-1]
    filters = [[3, 3, depth, 20], [2, 1, depth, 3], [3, 3, depth, 1]]
    generator, y = np.random.default_rng(1), []
    filters = [
        tw.constant(generator.uniform(-1, 1, f).astype(x.dtype)) for f in filters
    ]
    with tw.GradientTape() as tape:
        tape.watch([x, *filters])
        y.append(tw.nn.conv2d(x, filters[0], 1, "SAME"))
        y.append(tw.nn.conv2d(x, filters[1], 2, "VALID"))
        y.append(tw.nn.depthwise_conv2d(x, filters[2], [1, 1, 1, 1], "SAME"))
        total = tw.add_n([tw.reduce_sum(each * each) for each in y])
    return *tape.gradient(total, [x, *filters]), *y


FUNCTIONS = [
    softmax, layer_norm, batch_norm, strides, sums, products, moves, pools, gradients,
]  # fmt: skip
SHAPES = [(1, 1), (1, 7), (13, 1), (3, 5), (17, 33), (67, 130), (0, 4)]
SMALL = dict.fromkeys(("block_work", "local_entries", "small_sum"), 64)
SMALL |= dict.fromkeys(("shared_work", "shared_product", "thread_product"), 1)
SMALL |= {"strip": 4, "strips": (8, 4), "kernel_work": 16}
SMALL |= {"reuse": 1, "contraction_work": 64, "band_bytes": 512, "summed_entries": 16}


def main():
    tw.config.set_target("native")
    buffer_assignment.lay_out = with_pages_between
    executable.Instance = GuardedInstance
    for limits, dtype in (({}, np.float64), (SMALL, np.float32)):
        index_splitting.MOST = 0 if limits else index_splitting.MOST  # loops stay whole
        with use_limits(**limits):
            for function in FUNCTIONS:
                for shape in SHAPES:
                    check(function, shape, dtype)
            for shape in ((2, 9, 9, 20), (3, 6, 7, 5)):
                check(convolutions, shape, dtype)
    print("no fault")


def check(function, shape, dtype):
    if not shape[0] and function in (
        sums,
        moves,
        strides,
        pools,
        gradients,
        batch_norm,
    ):
        return  # nothing has no maximum, no mean and no row 0
    x = np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)
    print(function.__name__, shape, np.dtype(dtype).name, flush=True)
    wanted = [np.asarray(y) for y in tw.nest.flatten([function(tw.constant(x))])]
    for at_end in (True, False):
        found = run(function, [x], at_end)
        for a, b in zip(found, wanted, strict=True):
            unit = 64 * np.finfo(dtype).eps if b.dtype.kind == "f" else 0
            size = np.abs(b).max(initial=0)
            np.testing.assert_allclose(a, b, unit, unit * size)


if __name__ == "__main__":
    faulthandler.enable(sys.stderr)
    main()
