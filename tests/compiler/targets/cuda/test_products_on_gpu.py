"""Products, epilogues and convolutions on a GPU, with NVIDIA's library, against NumPy."""

import numpy as np
import pytest

from tapewright.compiler.targets.cuda.kernels import convolution
from tapewright.compiler.targets.cuda.kernels.convolution import (
    DirectKernel,
    WindowsKernel,
)
from tapewright.compiler.targets.cuda.prelude import PRELUDE
from tapewright.compiler.targets.cuda.products.cublaslt import WORKSPACE
from tapewright.compiler.targets.cuda.products.cublaslt_header import Epilogue
from tapewright.compiler.targets.cuda.products.epilogues import (
    EpilogueProduct,
    epilogues,
)
from tapewright.compiler.targets.cuda.products.product import ProductKernel
from tapewright.core.hardware import devices

from .kernels import test_convolution as convolutions
from .products import test_epilogues as epilogues
from .products import test_product as products
from .program_runs import add_input, add_product, new_program, run, use_kernel

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("numpy_target")]


class Gpu:
    """Takes steps on the GPU: copies memory there before, and back after them.

    The steps are captured in a graph, which is launched twice.
    """

    def __init__(self, functions):
        import cupy

        self.cupy = cupy
        self.module = cupy.RawModule(code=PRELUDE + functions, backend="nvrtc")

    def __call__(self, steps, memory):
        cupy = self.cupy
        keys = [root.key or root.kind for root, _ in memory.numbers.where]
        held = {key: self.copied(memory.bytes(key)) for key in dict.fromkeys(keys)}
        offsets = [offset for _, offset in memory.numbers.where]
        addresses = [held[key].data.ptr + n for key, n in zip(keys, offsets)]
        kernels = {s.name: s for s in steps if s.name != "cublasLtMatmul"}
        functions = {name: self.module.get_function(name) for name in kernels}
        stream = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
        before = {key: each.copy() for key, each in held.items() if key != WORKSPACE}
        with stream:
            for step in steps:  # which loads the kernels of the library
                step.enqueue(functions, addresses, stream)
            for key, each in before.items():
                held[key][...] = each
            stream.begin_capture()
            for step in steps:
                step.enqueue(functions, addresses, stream)
            graph = stream.end_capture()
            if steps:
                graph.launch(stream)
        stream.synchronize()
        for key in before:
            memory.bytes(key)[...] = held[key].get()

    def copied(self, values):
        return self.cupy.asarray(values)


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch):
    """Runs of programs in the functions of other tests take their steps on the GPU."""

    def run_there(program, *buffers, **how):
        return run(program, *buffers, machine=Gpu)

    for module in (convolutions, epilogues, products):
        monkeypatch.setattr(module, "run", run_there)
    for name in ("program_of", "arrays_of"):
        monkeypatch.setattr(convolutions, name, on_the_cpu(getattr(convolutions, name)))


def on_the_cpu(function):
    """A function whose eager ops run on the CPU."""

    def call(*args):
        with devices.device("CPU"):
            return function(*args)

    return call


@pytest.mark.parametrize("dtype, made", products.DTYPES)
@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (3, 5, 7), (65, 130, 33), (0, 3, 2), (2, 0, 3)]
)
def test_products(dtype, made, m, k, n):
    a, b = products.random(m, k, dtype=dtype), products.random(k, n, dtype=dtype)
    products.check_product(a, b, dtype=made)


@pytest.mark.parametrize("of_a", products.KINDS)
@pytest.mark.parametrize("of_b", products.KINDS)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_views(of_a, of_b, lead):
    program = new_program()
    a, x = products.views(program, (*lead, 4, 5), of_a)
    b, y = products.views(program, (*lead, 5, 6), of_b)
    products.check(program, add_product(program, a, b), x @ y)


@pytest.mark.parametrize(
    "a, b",
    [((2, 3, 4, 5), (5, 6)), ((4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (1, 3, 5, 6))],
)
def test_batches(a, b):
    products.check_product(products.random(*a), products.random(*b))


def test_a_product_has_the_same_bits_each_time():
    program = new_program()
    operands = [
        add_input(program, products.random(*s)) for s in ((300, 5000), (5000, 70))
    ]
    program.outputs = [add_product(program, *operands)]
    use_kernel(program, ProductKernel)
    first, again = [run(program, machine=Gpu)[0] for _ in range(2)]
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("kind", [DirectKernel, WindowsKernel])
@pytest.mark.parametrize("name", convolutions.CASES)
def test_convolutions(monkeypatch, name, kind):
    convolutions.use(monkeypatch, kind)
    images, filters, arguments = convolutions.CASES[name]
    arrays = convolutions.arrays_of(images, filters, arguments)
    convolutions.check(convolutions.convolution_of(arguments), *arrays)


def test_long_sums_in_parts(monkeypatch):
    monkeypatch.setattr(convolution, "count_parts", lambda *_: 7)
    convolutions.use(monkeypatch, DirectKernel)
    arguments = {"padding": "SAME"}
    arrays = convolutions.arrays_of((9, 6, 7, 3), (3, 2, 3, 4), arguments)
    convolutions.check(convolutions.convolution_of(arguments), *arrays)


@pytest.mark.parametrize("m, n", [(9, 5), (1, 1), (64, 128), (2, 130), (200, 3)])
def test_epilogues_compute_what_numpy_does(m, n):
    program = new_program()
    program.outputs = epilogues.relu_and_sum(program, m, n)
    program.inputs[0].source[0, 0] = np.nan
    program.inputs[2].source[-1] = np.inf
    wanted = run(program)
    use_kernel(program, ProductKernel)
    epilogues(program)
    found = [each.epilogue for each in program.instructions if _is_fused(each)]
    assert found == [Epilogue.RELU_BIAS, Epilogue.BGRADA]
    for made, exact in zip(run(program, machine=Gpu), wanted, strict=True):
        np.testing.assert_allclose(made, exact, 1e-5, 1e-5)


def _is_fused(instruction):
    return type(instruction) is EpilogueProduct
