"""`tw.keras.ops` on symbolic tensors of unknown sizes: shapes as Keras infers them, models."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import KerasTensor, ops

N = None


def shapes(outputs):
    if isinstance(outputs, (list, tuple)):
        return [shapes(x) for x in outputs]
    return tuple(outputs.shape)


def symbol(*shape, dtype="float32"):
    return KerasTensor(shape, dtype)


BINARY = """add subtract multiply divide maximum minimum power mod floor_divide arctan2
    logaddexp equal less logical_and hypot""".split()


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ((N, 3), (2, N), (2, 3)), ((N, 3), (N, 3), (N, 3)), ((N,), (2, 3), (2, 3)),
        ((N, 3), (3,), (N, 3)), ((N, 1), (2, 3), (2, 3)), ((2, N), (1, N), (2, N)),
        ((N, N, 3), (2, 1), (N, 2, 3)), ((1, N), (4, 1), (4, N)),
    ],
)  # fmt: skip
def test_an_unknown_size_beside_a_known_one_is_that(name, first, second, result):
    for a, b in ((first, second), (second, first)):
        assert shapes(getattr(ops, name)(symbol(*a), symbol(*b))) == result
    assert shapes(ops.where(symbol(*first), symbol(*second), 0.0)) == result


def test_a_traced_function_knows_that_size_too():
    specs = [tw.TensorSpec([N, 3]), tw.TensorSpec([2, N])]
    traced = tw.function(lambda x, y: x + y, input_signature=specs)
    assert traced.get_concrete_function().structured_outputs.shape == (2, 3)


# call, shapes of the symbolic arguments, what Keras infers
CALLS = {
    "split": (lambda x: ops.split(x, 2), [(N, 3)], [(N, 3), (N, 3)]),
    "split by 7": (lambda x: ops.split(x, 7), [(N,)], [(N,)] * 7),
    "split at": (lambda x: ops.split(x, [1, 3]), [(N, 3)], [(1, 3), (2, 3), (N, 3)]),
    "array_split": (lambda x: ops.array_split(x, 3), [(N, 3)], [(N, 3)] * 3),
    "hsplit": (lambda x: ops.hsplit(x, 2), [(3, N)], [(3, N)] * 2),
    "vsplit": (lambda x: ops.vsplit(x, 2), [(N, 3)], [(N, 3)] * 2),
    "unstack": (lambda x: ops.unstack(x, 2), [(N, 3)], [(3,), (3,)]),
    "repeat": (lambda x: ops.repeat(x, [1, 2], axis=0), [(N, 3)], (N, 3)),
    "repeat each": (lambda x: ops.repeat(x, [1, 2]), [(N,)], (N,)),
    "repeat all": (lambda x: ops.repeat(x, 2), [(N, 3)], (N,)),
    "nonzero": (ops.nonzero, [(N, 3)], [(N,), (N,)]),
    "where": (ops.where, [(N, 3)], [(N,), (N,)]),
    "unique": (ops.unique, [(N, 3)], (N,)),
    "unique of a size": (lambda x: ops.unique(x, size=4), [(N, 3)], (4,)),
    "unique rows": (
        lambda x: ops.unique(x, axis=0, return_inverse=True, return_counts=True),
        [(N, 3)],
        [(N, 3), (N,), (N,)],
    ),
    "map": (lambda x: ops.map(lambda row: ops.sum(row) + row, x), [(N, 3)], (N, 3)),
    "vectorized_map": (
        lambda x, y: ops.vectorized_map(lambda xy: xy[0] + xy[1], (x, y)),
        [(N, 3), (N, 3)],
        (N, 3),
    ),
    "scan": (
        lambda start, xs: ops.scan(lambda c, x: (c + x, c * x), start, xs),
        [(3,), (N, 3)],
        [(3,), (N, 3)],
    ),
    "associative_scan": (
        lambda x: ops.associative_scan(lambda a, b: a + b, x), [(N, 3)], (N, 3)
    ),
    "associative_scan of rows": (
        lambda x: ops.associative_scan(ops.add, x, axis=1, reverse=True), [(N, 3)], (N, 3)
    ),
    "fori_loop": (
        lambda x: ops.fori_loop(0, 4, lambda i, v: v * 2 + ops.cast(i, "float32"), x),
        [(N, 3)],
        (N, 3),
    ),
    "while_loop": (
        lambda x: ops.while_loop(
            lambda i, v: i < 3.0, lambda i, v: (i + 1.0, v + 1.0), (ops.sum(x * 0), x)
        ),
        [(N, 3)],
        [(), (N, 3)],
    ),
    "cond": (
        lambda x: ops.cond(ops.sum(x) > 0, lambda: x + 1, lambda: x * 2), [(N, 3)], (N, 3)
    ),
    "cond of a nest": (
        lambda x: ops.cond(ops.sum(x) > 0, lambda: (x, -x), lambda: (x * 0, x)),
        [(N, 3)],
        [(N, 3), (N, 3)],
    ),
    "switch": (
        lambda x: ops.switch(
            ops.cast(ops.sum(x), "int32"), [lambda v: v, lambda v: v + 1, lambda v: v * 9], x
        ),
        [(N, 3)],
        (N, 3),
    ),
    "matmul": (ops.matmul, [(N, 3), (3, N)], (N, N)),
    "concatenate": (lambda x, y: ops.concatenate([x, y], 1), [(N, 3), (N, 2)], (N, 5)),
    "reshape": (lambda x: ops.reshape(x, (-1, 6)), [(N, 3, 2)], (N, 6)),
    "squeeze nothing": (lambda x: ops.squeeze(x, ()), [(N, 1)], (N, 1)),
}  # fmt: skip
BY_NUMBER = {
    "bincount": (ops.bincount, [(N,)], (N,)),
    "bincount of rows": (ops.bincount, [(2, N)], (2, N)),
    "segment_sum": (lambda x: ops.segment_sum(x * 2, x), [(N,)], (N,)),
    "segment_max": (lambda x: ops.segment_max(ops.stack([x, x], 1), x), [(N,)], (N, 2)),
    "segment_min of 3": (lambda x: ops.segment_min(x, x, 3), [(N,)], (3,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_unknown_sizes_lead_to_the_shapes_of_keras(name):
    call, given, expected = CALLS[name]
    assert shapes(call(*[symbol(*s) for s in given])) == expected


@pytest.mark.parametrize("name", BY_NUMBER)
def test_sizes_that_follow_from_values_are_unknown(name):
    call, given, expected = BY_NUMBER[name]
    assert shapes(call(*[symbol(*s, dtype="int32") for s in given])) == expected


def assert_alike(found, expected):
    found, expected = tw.nest.flatten(found), tw.nest.flatten(expected)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("reshape", "matmul")])
def test_a_model_of_such_a_call_gives_what_the_call_gives(name):
    call, given, _ = CALLS[name]
    inputs = [tw.keras.Input(batch_shape=s) for s in given]
    model = tw.keras.Model(inputs, call(*inputs))
    for size in {
        "unstack": [2],
        "repeat": [2],
        "repeat each": [2],
        "split by 7": [7, 14],
    }.get(name, [4, 6]):
        values = [
            tw.constant(np.arange(np.prod(s)).reshape(s) % 5 - 1.5, "float32")
            for s in [tuple(size if n is None else n for n in s) for s in given]
        ]
        assert_alike(model(values), call(*values))
        if name not in (
            "nonzero",
            "where",
            "unique",
            "unique of a size",
            "unique rows",
        ):
            assert_alike(tw.function(model)(values), call(*values))


@pytest.mark.parametrize("name", BY_NUMBER)
def test_a_model_whose_sizes_follow_from_values_gives_them(name):
    call, given, _ = BY_NUMBER[name]
    inputs = [tw.keras.Input(batch_shape=s, dtype="int32") for s in given]
    model = tw.keras.Model(inputs, call(*inputs))
    value = tw.constant([[0, 2, 1, 2], [1, 1, 0, 0]][: len(given[0])], "int32")
    value = value if len(given[0]) == 2 else value[0]
    assert_alike(model(value), call(value))
    assert_alike(tw.keras.Model.from_config(model.get_config())(value), call(value))


@pytest.mark.parametrize(
    "name",
    ["split", "repeat", "unstack", "cond", "switch", "nonzero", "unique"],
)
def test_a_model_of_such_a_call_is_made_from_its_config(name, tmp_path):
    call, given, _ = CALLS[name]
    inputs = [tw.keras.Input(batch_shape=s) for s in given]
    model = tw.keras.Model(inputs, call(*inputs))
    value = tw.constant([[0.5, 1.0, -2.0], [3.0, 0.0, 1.0]])
    copy = tw.keras.Model.from_config(model.get_config())
    assert_alike(copy(value), call(value))
    model.save(tmp_path / "model.keras")
    assert_alike(
        tw.keras.models.load_model(tmp_path / "model.keras")(value), call(value)
    )


def test_a_gradient_passes_through_a_choice_in_a_model():
    inputs = tw.keras.Input((3,))
    outputs = ops.cond(ops.sum(inputs) > 0, lambda: inputs * 3, lambda: inputs * 5)
    model = tw.keras.Model(inputs, outputs)
    for sign, slope in ((1.0, 3.0), (-1.0, 5.0)):
        x = tw.Variable([[sign] * 3])
        with tw.GradientTape() as tape:
            y = model(x)
        assert tape.gradient(y, x).numpy().tolist() == [[slope] * 3]


def test_the_functions_of_a_choice_return_the_same():
    pred = symbol(dtype="bool")
    with pytest.raises(ValueError, match="shapes"):
        ops.cond(pred, lambda: symbol(3), lambda: symbol(4))
    with pytest.raises(ValueError, match="dtypes"):
        ops.cond(pred, lambda: symbol(3), lambda: symbol(3, dtype="int32"))
    with pytest.raises(ValueError, match="pred"):
        ops.cond(symbol(3, dtype="bool"), lambda: symbol(3), lambda: symbol(3))
    assert ops.cond(pred, lambda: None, lambda: None) is None


def test_a_symbolic_tensor_is_no_tensor():
    assert ops.is_tensor(tw.constant(1.0)) and not ops.is_tensor(symbol(3))


def test_what_no_size_allows_is_refused():
    with pytest.raises(ValueError, match="7"):
        ops.split(symbol(N, 3), 7, axis=1)
    with pytest.raises(ValueError, match="broadcast"):
        ops.add(symbol(N, 3), symbol(N, 4))


def test_the_function_of_a_loop_uses_its_arguments_alone():
    x, other, weight = symbol(4, 3), symbol(3), tw.Variable(2.0)
    for call in (
        lambda f: ops.map(f, x),
        lambda f: ops.vectorized_map(f, x),
        lambda f: ops.fori_loop(0, 2, lambda i, v: f(v), x),
        lambda f: ops.while_loop(lambda v: True, f, x, maximum_iterations=2),
        lambda f: ops.scan(lambda c, row: (c, f(row)), 0.0, x),
    ):
        for captured in (other, weight):
            with pytest.raises(TypeError, match="KerasTensor|variable"):
                call(lambda v, captured=captured: v * captured)


def test_a_config_holds_no_function():
    inputs = tw.keras.Input((3,))
    model = tw.keras.Model(inputs, ops.map(lambda row: row + 1, inputs))
    assert model.predict(np.ones((4, 3)), verbose=0).tolist() == [[2.0] * 3] * 4
    with pytest.raises(TypeError, match="function"):
        model.get_config()


def test_a_slice_starts_where_a_tensor_says():
    x = np.arange(12, dtype="float32").reshape(3, 4)

    @tw.function
    def diagonal_blocks(start):
        first = ops.slice(x, ops.stack([start, start]), (1, 2))
        return ops.fori_loop(
            0, 2, lambda i, s: s + ops.slice(x, ops.stack([i, i]), (1, 2)), first
        )

    assert diagonal_blocks(tw.constant(2)).numpy().tolist() == [
        [10 + 0 + 5, 11 + 1 + 6]
    ]
    for start in ((2, 3), tw.constant([2, 3])):
        with pytest.raises(ValueError):
            ops.slice(x, start, (2, 2))
    assert shapes(ops.slice(symbol(N, 4), symbol(2, dtype="int32"), (1, 2))) == (1, 2)


def test_a_scan_may_have_no_results():
    xs = np.arange(4, dtype="float32")
    for wrap in (lambda f: f, tw.function):
        total, nothing = wrap(lambda xs: ops.scan(lambda c, x: (c + x, None), 0.0, xs))(
            xs
        )
        assert float(total) == 6 and nothing is None
        _, (sums, nothing) = ops.scan(lambda c, x: (c + x, (c, None)), 0.0, xs)
        assert sums.numpy().tolist() == [0, 0, 1, 3] and nothing is None
    total, nothing = ops.scan(lambda c, x: (c + x, None), symbol(3), symbol(N, 3))
    assert shapes(total) == (3,) and nothing is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.scan(lambda c, x: (c, x), 0, np.ones(3), unroll=-1), "unroll"),
        (lambda: ops.switch(0, []), "branches"),
        (lambda: ops.unstack(symbol(2, N, 3), axis=1), "num"),
        (lambda: ops.associative_scan(ops.add, [np.ones(3), np.ones(4)]), "axis"),
    ],
)
def test_a_wrong_argument_of_a_loop_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_each_nan_is_unique():
    x = np.array([2.0, np.nan, 1.0, np.nan, 2.0], "float32")
    found, counts = ops.unique(x, return_counts=True)
    np.testing.assert_array_equal(found, [1, 2, np.nan, np.nan])
    assert counts.numpy().tolist() == [1, 2, 1, 1]


def test_a_model_of_a_scan_without_results_runs():
    start, xs = tw.keras.Input(batch_shape=(3,)), tw.keras.Input(batch_shape=(N, 3))
    total, _ = ops.scan(lambda c, x: (c + x, None), start, xs)
    model = tw.keras.Model([start, xs], total)
    found = model([tw.constant([1.0, 0.0, 2.0]), tw.ones((4, 3))])
    assert found.numpy().tolist() == [5, 4, 6]


@pytest.mark.parametrize(
    ("call", "given", "expected"),
    [
        (ops.diag, [(N, 4)], (N,)),
        (lambda x: ops.diagonal(x, 1), [(4, N)], (N,)),
        (
            lambda x: ops.linalg.svd(x, full_matrices=False),
            [(N, 3)],
            [(N, N), (N,), (N, 3)],
        ),
        (ops.linalg.qr, [(N, 3)], [(N, N), (N, 3)]),
        (ops.correlate, [(N,), (N,)], (N,)),
        (lambda x, y: ops.correlate(x, y, "full"), [(N,), (N,)], (N,)),
        (lambda x: x[:5], [(N, 2)], (N, 2)),
    ],
)
def test_a_size_that_may_be_either_of_two_is_unknown(call, given, expected):
    assert shapes(call(*[symbol(*s) for s in given])) == expected


def test_ops_whose_results_grow_take_unknown_sizes():
    x = tw.keras.Input((4,))
    assert shapes(tw.pad(x, [[0, 0], [1, 2]])) == (N, 7)
    assert shapes(tw.tile(x, [1, 3])) == (N, 12)
    assert shapes(tw.broadcast_to(tw.keras.Input((1,)), [2, 5])) == (2, 5)
