"""What instructions declare: enough for a target to do the same without NumPy's calls."""

from inspect import isabstract

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.array_instructions import (
    Contract,
    Map,
    Reduce,
    View,
)
from tapewright.compiler.program.instructions.call_instructions import (
    Draw,
    Gather,
    LoadVariable,
    Scatter,
    StoreVariable,
    Update,
)
from tapewright.compiler.program.instructions.instruction import Instruction, Memory
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.targets.numpy.source import METHODS

RNG = np.random.default_rng(0)


def numbers(*shape):
    return tw.constant(RNG.normal(size=shape).astype(np.float32))


def instructions(function, *args, kind=Instruction):
    graph = tw.function(function).get_concrete_function(*args).graph
    return [each for each in lower(graph).instructions if isinstance(each, kind)]


def test_a_class_that_leaves_a_question_open_is_refused():
    with pytest.raises(TypeError, match="is_free"):

        class Incomplete(Instruction):
            memory, is_pure = Memory.ALLOCATED, True


# ------------------------------------------------------------------------ contractions


def array_of(buffer, known):
    """The value of a buffer, given those that are no views."""
    if buffer not in known and buffer.is_constant and not buffer.is_view:
        known[buffer] = np.asarray(buffer.source)
    if buffer not in known:
        view = buffer.instruction
        known[buffer] = view.apply(array_of(view.viewed, known))
    return known[buffer]


def check_contractions(function, *args):
    """Each contraction of a program by its maps, entry by entry, and by its function."""
    found = instructions(function, *args, kind=Contract)
    for each in found:
        a, b, *scratch = each.operands
        known = {}
        for buffer in (a.base, b.base):
            known[buffer] = RNG.normal(size=buffer.shape)
        a, b = array_of(a, known), array_of(b, known)
        space = [np.empty(buffer.shape) for buffer in scratch]
        (out,) = each.outputs
        expected = each.function(a, b, *space, **each.keywords)
        assert expected.shape == out.shape
        contracted = each.maps.contracted(a, b, out.shape)
        np.testing.assert_allclose(contracted, expected, rtol=1e-10, atol=1e-10)
    return len(found)


@pytest.mark.parametrize(
    "a, b",
    [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 5)),
     ((2, 3, 4), (1, 4, 5)), ((2, 3, 4), (4, 5)), ((6, 1, 3, 4), (2, 4, 5))],
)  # fmt: skip
def test_the_maps_of_a_product_say_what_is_multiplied(a, b):
    def product(x, y):
        x, y = (tw.reshape(v, (1, -1)) if len(v.shape) == 1 else v for v in (x, y))
        return tw.matmul(x, y if len(b) > 1 else tw.transpose(y))

    assert check_contractions(product, numbers(*a), numbers(*b)) == 1


CONVOLUTIONS = [
    dict(),
    dict(strides=2),
    dict(padding="SAME"),
    dict(padding="SAME", strides=2),
    dict(dilations=2),
    dict(groups=2, padding="SAME"),
]


@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
def test_the_maps_of_a_convolution_and_of_its_gradients_say_what_is_multiplied(options):
    options = {"strides": 1, "padding": "VALID", **options}
    groups = options.pop("groups", 1)
    x, f = numbers(2, 6, 7, 4), numbers(3, 2, 4 // groups, 6)

    def f_and_gradients(x, f):
        with tw.GradientTape() as tape:
            tape.watch([x, f])
            y = tw.nn.conv2d(x, f, **options)
        return y, tape.gradient(y, [x, f], output_gradients=tw.sin(y))

    assert check_contractions(f_and_gradients, x, f) == 3


def test_a_matrix_by_a_vector_is_a_contraction_over_the_last_axis():
    found = instructions(tw.linalg.matvec, numbers(3, 4), numbers(4), kind=Contract)
    assert all(each.maps.loops[-1] == 4 for each in found) and found


# ------------------------------------------------------------------ maps, views and more


def test_a_map_names_its_function_of_numbers():
    def f(x):
        return tw.cast(tw.exp(x) + 1.0, "float64")

    found = instructions(f, numbers(3), kind=Map)
    assert [each.scalar for each in found] == ["exp", "add", "cast"]


def test_a_reduction_names_what_it_combines_by_and_the_axes():
    (found,) = instructions(
        lambda x: tw.reduce_max(x, [0, -1]), numbers(2, 3, 4), kind=Reduce
    )
    assert (found.ufunc, found.axes, found.keepdims) == (np.maximum, (0, 2), False)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: tw.transpose(x, [2, 0, 1]),
        lambda x: x[1:, ::2],
        lambda x: x[:, ::-1, 1],
        lambda x: tw.reshape(x, [6, 4]),
        lambda x: tw.broadcast_to(x[:, :1], [2, 3, 4]),
        lambda x: tw.expand_dims(x, 1),
    ],
)
def test_a_view_says_where_its_entries_lie(view):
    found = instructions(view, numbers(2, 3, 4), kind=View)
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    offset, strides, seen = 0, array.strides, array
    for each in found:
        offset, strides = each.layout(offset, strides)
        seen = each.apply(seen)
    assert found
    laid_out = np.ndarray(seen.shape, array.dtype, array, offset, strides)
    np.testing.assert_array_equal(laid_out, seen)


def test_a_reshape_that_would_have_to_copy_has_no_layout():
    # Of rows that lie apart.
    (found,) = instructions(lambda x: tw.reshape(x, [12]), numbers(3, 4), kind=View)
    assert found.layout(0, (64, 4)) is None
    assert found.layout(0, (16, 4)) == (0, (4,))


def test_gathers_and_their_adjoints_name_rows_and_axis():
    def f(x, at):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.gather(x, at, axis=1)
        return y, tape.gradient(y, x, output_gradients=y)

    at = tw.constant([0, 2, 0])
    (gather,) = instructions(f, numbers(2, 3), at, kind=Gather)
    (scatter,) = instructions(f, numbers(2, 3), at, kind=Scatter)
    assert gather.axis == scatter.axis == 1
    assert gather.source.shape == (2, 3) and gather.indices.shape == (3,)
    assert scatter.rows.shape == (2, 3) and scatter.indices.shape == (3,)


def test_a_draw_names_distribution_parameters_and_state():
    def f(state):
        return tw.random.stateless_normal([3], state, mean=2.0)

    (draw,) = instructions(f, tw.constant([1, 2], "int64"), kind=Draw)
    assert (draw.distribution, draw.purpose) == ("normal", 1)
    assert draw.parameters["mean"] == 2.0 and draw.parameters["shape"] == (3,)
    assert draw.state.shape == (2,) and draw.state.dtype == np.int64


def test_an_update_declares_its_variables_and_the_memory_of_its_gradients():
    v, w = tw.Variable(tw.ones([3])), tw.Variable(tw.ones([2]))
    rule = tw.optimizers.Adam(0.1)

    def f(x):
        v.assign_add(x)
        rule.apply_gradients([(x * 2.0, v), (x[:2], w)])

    store, update = instructions(f, numbers(3), kind=(StoreVariable, Update))
    assert store.variable is v and not store.variables_overwritten
    assert {id(v), id(w)} <= {id(each) for each in update.variables_overwritten}
    assert len(update.variables_written) == 2 + 2 * 2 + 1  # slots, and the iteration
    assert [id(each) for each in update.variables_read] == [id(rule.learning_rate)]
    assert update.gradient_slots == [*zip(update.operands, range(2), strict=True)]
    assert not update.update.runs_user_code


def test_the_statistics_of_a_layer_are_loaded_and_stored():
    layer = tw.layers.BatchNormalization()
    layer.build((None, 3))
    found = instructions(lambda x: layer(x, training=True), numbers(4, 3))
    stored = {id(each.variable) for each in found if isinstance(each, StoreVariable)}
    loaded = {id(each.variable) for each in found if isinstance(each, LoadVariable)}
    assert {id(layer.moving_mean), id(layer.moving_variance)} == stored
    assert stored <= loaded


# ---------------------------------------------------------------------------- memory


def concrete_classes(cls=Instruction):
    """The classes of instructions that are no mere base of others."""
    is_base = cls is Instruction or cls.__name__.startswith("_") or isabstract(cls)
    found = set() if is_base else {cls}
    return found.union(*[concrete_classes(each) for each in cls.__subclasses__()])


def test_the_numpy_target_has_a_method_for_every_class():
    own = {c for c in concrete_classes() if c.__module__.startswith("tapewright.")}
    made_later = "tapewright.compiler.loops", "tapewright.compiler.targets"
    later = {c for c in own if c.__module__.startswith(made_later)}
    assert set(METHODS) == own - later


DRAWS = {
    "categorical": lambda s: tw.random.stateless_categorical([[0.5, 1.0]], 3, s),
    "standard_gamma": lambda s: tw.random.stateless_gamma([2], s, [1.0, 2.0]),
    "poisson": lambda s: tw.random.stateless_poisson([2], s, [1.0, 2.0]),
    "binomial": lambda s: tw.random.stateless_binomial([2], s, [3, 4], [0.5, 0.5]),
    "uniform": lambda s: tw.random.stateless_uniform([2], s),
    "seeds": lambda s: tw.random.split(s),
}


@pytest.mark.parametrize("distribution", DRAWS)
def test_a_draw_is_new_memory(distribution):
    state = tw.constant([1, 2], "int64")
    (draw,) = instructions(DRAWS[distribution], state, kind=Draw)
    assert draw.distribution == distribution and not draw.may_alias
    arrays = [np.ones(x.shape, x.dtype) for x in draw.operands]
    out = draw.function(*arrays, **draw.keywords)
    assert not any(np.may_share_memory(out, array) for array in arrays)


def test_a_scatter_of_all_rows_is_new_memory():
    def f(x, at):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.gather(x, at, axis=1)
        return tape.gradient(y, x, output_gradients=y)

    at = tw.constant([0, 1, 2])
    (scatter,) = instructions(f, numbers(2, 3), at, kind=Scatter)
    rows, at = np.ones((2, 3), np.float32), np.arange(3)
    out = scatter.function(rows, at, **scatter.keywords)
    assert not scatter.may_alias and not np.may_share_memory(out, rows)
