"""Convolutions and their gradients: kernels of the target, compared with eager mode."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.program.index_maps import Affine, IndexMaps
from tapewright.compiler.program.instructions.array_instructions import Contract
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.targets.cuda.kernel import Launch
from tapewright.compiler.targets.cuda.kernels import contraction, convolution
from tapewright.compiler.targets.cuda.kernels.convolution import (
    ContractionKernel,
    DirectKernel,
    WindowsKernel,
    windows_of,
)
from tapewright.compiler.targets.cuda.products.product import Multiply, ProductKernel

from ..program_runs import (
    NODE,
    Memory,
    add,
    add_input,
    compile_launches,
    new_program,
    run,
    sliced,
    transposed,
    use_kernel,
)

pytestmark = pytest.mark.usefixtures("numpy_target")
RNG = np.random.default_rng(5)
FIBERS = {"threads": "fibers", "grid": (2, 1, 1), "block": (32, 1, 1)}


def random(*shape, dtype="f"):
    return RNG.uniform(-1, 1, shape).astype(dtype)


def with_gradients(function):
    """The value of a function, and the gradients of its product with weights."""

    def run(x, y, weights):
        with tw.GradientTape() as tape:
            tape.watch([x, y])
            out = function(x, y)
            total = tw.reduce_sum(out * weights)
        return [out, *tape.gradient(total, [x, y])]

    return run


def program_of(function, arrays):
    """The program of a function for a target that compiles loops, and what eager computes."""
    wanted = [np.asarray(x) for x in function(*map(tw.constant, arrays))]
    traced = tw.function(function).get_concrete_function(*map(tw.constant, arrays))
    program = lower(optimize(traced.graph), in_loops=True)
    for buffer, array in zip(program.inputs, arrays, strict=True):
        buffer.source = array
    return program, wanted


def use(monkeypatch, kind):
    """Make a kind of kernels the only one."""
    if kind is DirectKernel:
        monkeypatch.setattr(convolution, "_is_large", lambda *_: False)
    if kind is WindowsKernel:
        monkeypatch.setattr(convolution, "_is_large", lambda *_: True)


def check(function, x, y, weights, how=None):
    """The kernels of a convolution and of its gradients."""
    program, wanted = program_of(with_gradients(function), [x, y, weights])
    kernels = use_kernel(program, ContractionKernel)
    assert len(kernels) == 3
    for found, exact in zip(run(program, **(how or {})), wanted, strict=True):
        assert (found.dtype, found.shape) == (exact.dtype, exact.shape)
        tolerance = 1e-12 if exact.dtype == "d" else 3e-5
        np.testing.assert_allclose(found, exact, tolerance, tolerance)
    return kernels


def launches_of(function, arrays):
    """The launches of the kernels of a convolution and its gradients."""
    program, _ = program_of(with_gradients(function), arrays)
    kernels, addresses = use_kernel(program, ContractionKernel), Memory().numbers
    return [step for each in kernels for step in each.steps_on(addresses)]


# name -> images, filters, and the arguments of the convolution
CASES = {
    "plain": ((2, 6, 7, 3), (3, 2, 3, 5), {}),
    "strides": ((2, 7, 9, 3), (3, 3, 3, 4), {"strides": (2, 3)}),
    "dilations": ((1, 8, 9, 2), (2, 3, 2, 3), {"dilations": (3, 2)}),
    "same": ((2, 5, 6, 3), (3, 4, 3, 2), {"padding": "SAME"}),
    "same, strides": (
        (2, 5, 6, 3),
        (3, 4, 3, 2),
        {"padding": "SAME", "strides": (2, 2)},
    ),
    "margins": (
        (1, 4, 5, 2),
        (3, 3, 2, 3),
        {"padding": ((0, 0), (2, 1), (0, 3), (0, 0))},
    ),
    "strides leave gaps": ((2, 7, 7, 2), (2, 2, 2, 3), {"strides": (3, 3)}),
    "groups": ((2, 5, 6, 6), (3, 2, 3, 4), {"padding": "SAME"}),
    "a group for each channel": ((2, 5, 6, 4), (3, 3, 1, 4), {"padding": "SAME"}),
    "two filters for each channel": ((2, 5, 6, 4), (3, 3, 1, 8), {"strides": (2, 2)}),
    "one place": ((3, 4, 4, 2), (4, 4, 2, 3), {}),
    "one entry, strides": ((2, 5, 5, 3), (1, 1, 3, 4), {"strides": (2, 2)}),
    "one entry, margins": (
        (2, 3, 4, 3),
        (1, 1, 3, 4),
        {"padding": ((0, 0), (0, 2), (0, 1), (0, 0))},
    ),
    "one entry, groups": ((2, 3, 3, 4), (1, 1, 2, 6), {}),
    "one channel": ((1, 5, 4, 1), (2, 2, 1, 1), {}),
}
RANKS = {
    1: ((2, 9, 3), (4, 3, 5), {"strides": (2,), "padding": "SAME"}),
    2: ((2, 6, 5, 3), (3, 2, 3, 5), {"dilations": (2, 2), "padding": "SAME"}),
    3: ((2, 4, 5, 3, 2), (2, 3, 2, 2, 3), {"strides": (1, 2, 1), "padding": "SAME"}),
}


def convolution_of(arguments):
    arguments = {"padding": "VALID", **arguments}
    return lambda x, y: tw.nn.convolution(x, y, **arguments)


def arrays_of(images, filters, arguments, dtype="f"):
    x, y = random(*images, dtype=dtype), random(*filters, dtype=dtype)
    out = convolution_of(arguments)(tw.constant(x), tw.constant(y))
    return x, y, random(*out.shape, dtype=dtype)


@pytest.mark.parametrize("kind", [DirectKernel, WindowsKernel])
@pytest.mark.parametrize("name", CASES)
def test_convolutions_and_gradients_are_those_of_eager_mode(
    stand_in, monkeypatch, name, kind
):
    use(monkeypatch, kind)
    images, filters, arguments = CASES[name]
    arrays = arrays_of(images, filters, arguments)
    kernels = check(convolution_of(arguments), *arrays)
    assert {type(each) for each in kernels} == {kind}


@pytest.mark.parametrize("kind", [DirectKernel, WindowsKernel])
@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("dtype", "fd")
def test_convolutions_have_one_to_three_axes(stand_in, monkeypatch, rank, dtype, kind):
    use(monkeypatch, kind)
    images, filters, arguments = RANKS[rank]
    arrays = arrays_of(images, filters, arguments, dtype)
    kernels = check(convolution_of(arguments), *arrays)
    assert {type(each) for each in kernels} == {kind}


@pytest.mark.parametrize("kind", [DirectKernel, WindowsKernel])
def test_kernels_compile_for_three_generations_of_gpus(stand_in, monkeypatch, kind):
    use(monkeypatch, kind)
    steps = []
    names = ("same, strides", "dilations", "groups", "one place")
    for images, filters, arguments in (*map(CASES.get, names), RANKS[3]):
        arrays = arrays_of(images, filters, arguments)
        steps += launches_of(convolution_of(arguments), arrays)
    monkeypatch.setattr(convolution, "count_parts", lambda *_: 5)
    steps += launches_of(convolution_of(arguments), arrays)
    compile_launches(steps)


@pytest.mark.parametrize("kind", [DirectKernel, WindowsKernel])
@pytest.mark.parametrize("name", ["same, strides", "groups"])
def test_any_number_of_threads_computes_the_same(stand_in, monkeypatch, name, kind):
    use(monkeypatch, kind)
    images, filters, arguments = CASES[name]
    arrays = arrays_of(images, filters, arguments)
    check(convolution_of(arguments), *arrays, FIBERS)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_windows_of_one_entry_are_products(stand_in, rank):
    images, filters = (2, *[3] * rank, 4), (*[1] * rank, 4, 5)
    kernels = check(convolution_of({}), *arrays_of(images, filters, {}))
    assert {type(each) for each in kernels} == {ProductKernel}
    assert len(stand_in.calls) == 3


def test_depthwise_convolutions_are_direct_sums(stand_in):
    def depthwise(x, y):
        return tw.nn.depthwise_conv2d(x, y, [1, 1, 1, 1], "SAME")

    x, y = random(2, 6, 5, 3), random(3, 3, 3, 2)
    kernels = check(depthwise, x, y, random(2, 6, 5, 6))
    assert {type(each) for each in kernels} == {DirectKernel}


@pytest.mark.parametrize(
    "images, filters, kind",
    [
        ((2, 8, 8, 16), (3, 3, 16, 16), DirectKernel),
        ((32, 8, 8, 16), (3, 3, 16, 16), WindowsKernel),
        ((32, 8, 8, 64), (3, 3, 16, 64), DirectKernel),
        ((8, 8, 8, 64), (3, 3, 32, 64), WindowsKernel),
    ],
)
def test_large_sums_of_wide_groups_are_products(stand_in, images, filters, kind):
    arguments = {"padding": "SAME"}
    function, arrays = convolution_of(arguments), arrays_of(images, filters, arguments)
    program, _ = program_of(with_gradients(function), arrays)
    kernels = use_kernel(program, ContractionKernel)
    assert [type(each) for each in kernels] == [kind] * 3


@pytest.mark.parametrize("at_once", [1, 2])
def test_images_are_taken_in_parts_where_the_matrix_is_large(
    stand_in, monkeypatch, at_once
):
    use(monkeypatch, WindowsKernel)
    images, filters, arguments = (5, 4, 5, 2), (3, 3, 2, 3), {"padding": "SAME"}
    bytes_of_one = 4 * 5 * 3 * 3 * 2 * 4
    arrays = arrays_of(images, filters, arguments)
    with use_limits(windows_bytes=at_once * bytes_of_one + 7):
        kernels = check(convolution_of(arguments), *arrays)
    parts = -(-5 // at_once)
    for each in kernels:
        assert each.scratch[0].shape[0] == at_once
        kinds = [type(step) for step in each.steps_on(Memory().numbers)]
        assert (kinds.count(Launch), kinds.count(Multiply)) == (parts, parts)


@pytest.mark.parametrize("how", [{}, FIBERS], ids=["one thread", "fibers"])
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_long_sums_are_cut_into_parts(stand_in, monkeypatch, parts, how):
    use(monkeypatch, DirectKernel)
    monkeypatch.setattr(convolution, "count_parts", lambda *_: parts)
    images, filters, arguments = (3, 4, 5, 2), (2, 3, 2, 3), {"strides": (2, 1)}
    check(convolution_of(arguments), *arrays_of(images, filters, arguments), how)


def test_a_gradient_of_few_filters_has_many_parts():
    loops, maps = (32, 56, 56, 64, 1, 3, 3, 1), (Affine(((5, 1),)), Affine(((6, 1),)))
    assert contraction.count_parts(loops, maps, 576) == 65536 // 576
    assert contraction.count_parts((2, 3), (Affine(((0, 1),)),), 2) == 1


def test_operands_may_be_views(stand_in):
    x, y = random(4, 5, 7, 2), random(3, 4, 2, 2)
    part, turned = x[1:3, ::2], y.transpose(3, 0, 2, 1)
    plain, (wanted,) = program_of(
        lambda a, b: [tw.nn.convolution(a, b)], [part, turned]
    )
    (found,) = [each for each in plain.instructions if type(each) is Contract]
    program = new_program()
    images = sliced(program, add_input(program, x), slice(1, 3), slice(None, None, 2))
    filters = transposed(program, add_input(program, y), 3, 0, 2, 1)
    operands, maps = (images, filters), found.maps
    made = Contract(found.function, operands, NODE, found.keywords, lambda: maps)
    program.outputs = [add(program, made, wanted.shape)]
    (kernel,) = use_kernel(program, DirectKernel)
    assert kernel.operands == operands
    np.testing.assert_allclose(run(program)[0], wanted, 1e-5, 1e-5)


def test_nan_stays_in_the_windows_that_hold_it(stand_in, monkeypatch):
    for kind in (DirectKernel, WindowsKernel):
        use(monkeypatch, kind)
        x, y = random(1, 6, 6, 2), random(3, 3, 2, 3)
        x[0, 2, 3, 1], x[0, 5, 5, 0] = np.nan, np.inf
        arguments = {"padding": "SAME"}
        with np.errstate(invalid="ignore"):
            check(convolution_of(arguments), x, y, random(1, 6, 6, 3))


# ------------------------------------------------------------- contractions of any kind

MAPS = {
    "diagonal": ((4, 3), [((0,), (1,)), ((0,), (1,))], [(0,), (0,)], (4, 4)),
    "outer": ((4, 3), [((0,),), ((1,),)], [(0,), (1,)], (4, 3)),
    "diagonal sum": ((4, 3), [((0,), (1,)), ((0,), (1,))], [(1,)], (3,)),
    "transposed": ((4, 3, 2), [((0,), (1,)), ((1,), (2,))], [(2,), (0,)], (2, 4)),
}


@pytest.mark.parametrize("name", MAPS)
def test_any_index_maps_are_contracted(stand_in, name):
    loops, of_operands, of_out, shape = MAPS[name]
    maps = IndexMaps(
        loops,
        tuple([tuple([Affine(((n[0], 1),)) for n in each]) for each in of_operands]),
        tuple([Affine(((n[0], 1),)) for n in of_out]),
    )
    check_maps(
        maps, [tuple([loops[n[0]] for n in each]) for each in of_operands], shape
    )


def test_entries_that_no_product_reaches_are_zero(stand_in):
    index = Affine(((0, 1),))
    maps = IndexMaps((4,), ((index,), (index,)), (Affine(((0, 1),), 1),))
    check_maps(maps, [(4,), (4,)], (4,))
    check_maps(maps, [(4,), (4,)], (7,))


def check_maps(maps, shapes, shape):
    program = new_program()
    a, b = [random(*s) for s in shapes]
    operands = add_input(program, a), add_input(program, b)
    made = Contract(np.einsum, operands, NODE, {"maps": 1}, lambda: maps)
    program.outputs = [add(program, made, shape)]
    (kernel,) = use_kernel(program, DirectKernel)
    wanted = maps.contracted(a.astype("d"), b.astype("d"), shape)
    for how in ({}, FIBERS):
        np.testing.assert_allclose(run(program, **how)[0], wanted, 1e-5, 1e-5)
    return kernel


def random_maps(rng):
    """Loops, and affine indices of all of them, which may lie outside of the arrays."""
    loops = tuple(rng.integers(1, 5, rng.integers(1, 5)).tolist())

    def index():
        count = rng.integers(0, min(3, len(loops)) + 1)
        terms = rng.choice(len(loops), count, replace=False).tolist()
        factors = rng.choice([-2, -1, 1, 1, 2, 3], count).tolist()
        return Affine(tuple(zip(terms, factors)), int(rng.integers(-2, 3)))

    def indices(rank):
        return tuple([index() for _ in range(rank)])

    ranks = rng.integers(1, 4, 3).tolist()
    maps = IndexMaps(loops, (indices(ranks[0]), indices(ranks[1])), indices(ranks[2]))
    return maps, [tuple(rng.integers(1, 6, rank).tolist()) for rank in ranks]


@pytest.mark.parametrize("seed", range(40))
def test_random_index_maps_are_contracted(stand_in, seed):
    maps, (a, b, out) = random_maps(np.random.default_rng(seed))
    check_maps(maps, [a, b], out)


def test_random_index_maps_compile(stand_in):
    kernels = []
    for seed in range(8):
        maps, (a, b, out) = random_maps(np.random.default_rng(seed))
        kernels.append(check_maps(maps, [a, b], out))
    compile_launches([s for each in kernels for s in each.steps_on(Memory().numbers)])


@pytest.mark.parametrize("seed", range(10))
def test_random_index_maps_are_contracted_in_parts(stand_in, monkeypatch, seed):
    monkeypatch.setattr(convolution, "count_parts", lambda *_: 3)
    maps, (a, b, out) = random_maps(np.random.default_rng(100 + seed))
    check_maps(maps, [a, b], out)


@pytest.mark.parametrize("window", [(1, 1), (2, 3)])
@pytest.mark.parametrize("stride, dilation", [(1, 1), (1, 2), (2, 1)])
def test_arguments_of_convolutions_are_found_in_their_maps(window, stride, dilation):
    arguments = {"strides": (stride, 1), "dilations": (dilation, 1), "padding": "SAME"}
    arrays = arrays_of((2, 5, 6, 4), (*window, 2, 6), arguments)
    program, _ = program_of(with_gradients(convolution_of(arguments)), arrays)
    found = [windows_of(i) for i in program.instructions if type(i) is Contract]
    assert {each.roles for each in found} == {(0, 1, 2), (2, 1, 0), (0, 2, 1)}
    for each in found:
        assert (each.images, each.window, each.groups) == ((2, 5, 6, 4), window, 2)
        assert each.strides == (stride, 1)
        assert each.dilations == (dilation, 1)
