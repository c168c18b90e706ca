"""Variable: what it takes, assignments, reads, names, copies."""

import copy
import operator as operators
import pickle

import numpy as np
import pytest

import tapewright as tw

# -------------------------------------------------------------------- construction


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.0, "float32"),
        (1, "int32"),
        (np.ones(2), "float64"),
        ([True], "bool"),
        ("a", "string"),
    ],
)
def test_a_variable_takes_what_a_constant_takes(value, dtype):
    v = tw.Variable(value)
    assert v.dtype == dtype and v.shape == np.shape(value)
    np.testing.assert_array_equal(v.numpy(), b"a" if dtype == "string" else value)


def test_a_function_gives_the_initial_value():
    assert tw.Variable(lambda: tw.ones([2])).shape == (2,)


def test_a_tensor_or_variable_gives_its_value():
    v = tw.Variable(tw.constant([1.0]))
    w = tw.Variable(v)
    v.assign([5.0])
    assert w.numpy() == [1.0]


def test_a_list_may_hold_tensors():
    np.testing.assert_array_equal(
        tw.Variable([tw.constant(1.0), 2.0]).numpy(), [1.0, 2.0]
    )


def test_the_dtype_can_be_demanded_and_the_shape_checked():
    assert tw.Variable(1, dtype="float64").dtype == tw.float64
    assert tw.Variable([1.0, 2.0], shape=[None]).shape == (2,)
    with pytest.raises(ValueError, match=r"shape .*\(3,\)"):
        tw.Variable([1.0, 2.0], shape=[3])
    with pytest.raises(TypeError):
        tw.Variable(1.5, dtype="int32")


def test_a_value_must_be_given():
    with pytest.raises(ValueError, match="initial_value"):
        tw.Variable(None)
    with pytest.raises(TypeError):
        tw.Variable()


def test_the_array_given_is_copied():
    array = np.zeros(2)
    v = tw.Variable(array)
    array[0] = 9.0
    np.testing.assert_array_equal(v.numpy(), [0.0, 0.0])
    v.numpy()[0] = 9.0
    np.testing.assert_array_equal(v.numpy(), [0.0, 0.0])
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(v)[0] = 9.0


def test_trainable_is_kept_as_a_bool():
    assert tw.Variable(1.0).trainable is True
    assert tw.Variable(1.0, trainable=None).trainable is True
    assert tw.Variable(1.0, trainable=False).trainable is False


def test_names_and_paths():
    v = tw.Variable(1.0, name="kernel")
    assert (v.name, v.path) == ("kernel", "kernel")
    v.path = "dense/kernel"
    assert (v.name, v.path) == ("kernel", "dense/kernel")
    assert tw.Variable(1.0).name == "Variable"


def test_a_variable_prints_shape_dtype_and_value():
    v = tw.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    text = (
        "<tf.Variable 'w' shape=(2, 2) dtype=float32, numpy=\n"
        "array([[1., 2.],\n       [3., 4.]], dtype=float32)>"
    )
    assert repr(v) == str(v) == text
    assert (
        repr(tw.Variable(3.0))
        == "<tf.Variable 'Variable' shape=() dtype=float32, numpy=3.0>"
    )
    assert f"{tw.Variable(2.0):.3f}" == "2.000"


def test_a_variable_of_a_layer_prints_as_in_keras():
    layer = tw.layers.Dense(2, name="top", kernel_initializer="ones")
    layer.build((None, 2))
    text = "<Variable path=top/kernel, shape=(2, 2), dtype=float32, value=[[1. 1.]\n [1. 1.]]>"
    assert repr(layer.kernel) == str(layer.kernel) == text


# ---------------------------------------------------------------------- assignment


def test_assignments_change_the_value_and_return_the_variable():
    v = tw.Variable([1.0, 2.0])
    assert v.assign([5.0, 6.0]) is v
    assert v.assign_add([1.0, 1.0]) is v
    assert v.assign_sub(tw.constant([2.0, 2.0])) is v
    np.testing.assert_array_equal(v.numpy(), [4.0, 5.0])
    v.assign(tw.Variable([0.0, 1.0])).assign_add(np.array([1.0, 1.0]))
    np.testing.assert_array_equal(v.numpy(), [1.0, 2.0])


def test_tensors_read_before_keep_their_value():
    v = tw.Variable([1.0])
    before, view = v.read(), np.asarray(v)
    v.assign_add([1.0])
    v.assign([7.0])
    assert before.numpy() == [1.0] and view == [1.0]


def test_the_array_assigned_is_not_shared():
    array, v = np.zeros(2, np.float32), tw.Variable([1.0, 1.0])
    v.assign(array)
    array[:] = 9.0
    np.testing.assert_array_equal(v.numpy(), [0.0, 0.0])


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("value", [3.0, [1.0], [[1.0, 2.0]], [1.0, 2.0, 3.0]])
def test_another_shape_is_a_value_error_that_names_the_variable(method, value):
    v = tw.Variable([1.0, 2.0], name="bias")
    with pytest.raises(ValueError, match=rf"{method}: Shape mismatch.*'bias'.*\(2,\)"):
        getattr(v, method)(value)
    np.testing.assert_array_equal(v.numpy(), [1.0, 2.0])


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize(
    "value",
    [
        tw.constant([1, 2]),
        tw.constant([1.0, 2.0], dtype="float64"),
        [1j, 2j],
        ["a", "b"],
    ],
)
def test_another_dtype_is_a_type_error_that_names_the_variable(method, value):
    v = tw.Variable([1.0, 2.0], name="bias")
    with pytest.raises(TypeError, match="'bias'.*dtype float32"):
        getattr(v, method)(value)


def test_numbers_and_arrays_are_converted_to_the_dtype_of_the_variable():
    v = tw.Variable([1.0, 2.0])
    v.assign([1, 2])
    v.assign(np.array([3.0, 4.0]))
    assert v.dtype == "float32" and v.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(TypeError):
        tw.Variable([1, 2]).assign([1.5, 2.5])


def test_a_variable_cannot_be_assigned_by_index():
    with pytest.raises(TypeError, match="item assignment"):
        tw.Variable([1.0])[0] = 2.0


# ------------------------------------------------------------------- as a value


def test_every_way_to_read_is_recorded():
    for read in (
        lambda v: v.read(),
        lambda v: v.read_value(),
        lambda v: v.value(),
        lambda v: +v,
        lambda v: v[...],
        lambda v: tw.convert_to_tensor(v),
        lambda v: tw.identity(v),
        lambda v: tw.stack([v, v])[0],
    ):
        v = tw.Variable([1.0, 2.0])
        with tw.GradientTape() as tape:
            y = read(v) * 3.0
        assert isinstance(y, tw.Tensor)
        np.testing.assert_array_equal(tape.gradient(y, v), [3.0, 3.0])


def test_looking_at_the_value_is_not_recorded():
    v = tw.Variable([2.0])
    with tw.GradientTape() as tape:
        (
            float(v),
            int(v),
            bool(v),
            complex(v),
            v.numpy(),
            np.mean(v),
            repr(v),
            len(v),
            v.shape,
        )
    assert tape.watched_variables() == ()


def test_a_variable_has_pythons_protocols():
    v = tw.Variable([1.0, 2.0])
    assert len(v) == 2 and [float(x) for x in v] == [1.0, 2.0]
    assert float(tw.Variable(2.5)) == 2.5 and [5, 6][tw.Variable(1)] == 6
    assert v.ndim == 1 and v.get_shape() == (2,)
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)
    assert {v.ref(): 1}[v.ref()] == 1 and v.ref().deref() is v


def test_a_variable_has_the_operators_of_a_tensor():
    v = tw.Variable([1.0, 2.0])
    for result in (
        v + 1,
        1 - v,
        v * v,
        2 / v,
        v**2,
        -v,
        abs(v),
        v // 1,
        v % 2,
        v[::-1],
    ):
        assert type(result) is tw.Tensor
    assert (v == v).numpy().all() and not (v != v).numpy().any()
    assert (v == None) is False and (v < 2).numpy().tolist() == [True, False]  # noqa: E711
    assert ([[1.0, 2.0]] @ tw.Variable([[1.0], [1.0]])).numpy() == [[3.0]]


# ------------------------------------------------------------------ copies, weakrefs


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_is_another_variable_with_the_same_value_and_name(duplicate):
    v = tw.Variable([1, 2], trainable=False, name="n", dtype="int64")
    v.path = "owner/n"
    twin = duplicate(v)
    assert (twin.name, twin.path, twin.trainable) == ("n", "owner/n", False)
    assert twin.dtype == "int64" and twin.numpy().tolist() == [1, 2]
    v.assign([3, 4])
    assert twin.numpy().tolist() == [1, 2]


def test_a_deep_copy_keeps_shared_variables_shared():
    v = tw.Variable(1.0)
    a, b = copy.deepcopy([v, v])
    assert a is b and a is not v


def test_serial_numbers_rise():
    a, b = tw.Variable(1.0), tw.Variable(1.0)
    assert a._tw_serial < b._tw_serial


def test_other_code_may_leave_attributes():
    v = tw.Variable(1.0)
    v.regularizer = "l2"
    assert v.regularizer == "l2"


# ------------------------------------------------------- value: a property and a method


def test_value_is_a_tensor_and_gives_it_when_called():
    v = tw.Variable([1.0, 2.0])
    assert tw.is_tensor(v.value) and isinstance(v.value(), tw.Tensor)
    for value in (v.value, v.value()):
        assert value.shape == (2,) and value.dtype == tw.float32
        np.testing.assert_array_equal(value, [1.0, 2.0])
        np.testing.assert_array_equal(1.0 - value * 2.0, [-1.0, -3.0])
        np.testing.assert_array_equal(np.ones(2, "f4") + value, [2.0, 3.0])
        np.testing.assert_array_equal(tw.stack([value, v]), [[1.0, 2.0]] * 2)
        assert float(value[1]) == 2.0 and len(value) == 2 and list(value)[0] == 1.0
        assert (value == v).numpy().all() and f"{value[0]:.2f}" == "1.00"


def test_value_stays_when_the_variable_changes():
    v = tw.Variable(1.0)
    before, copied = v.value, copy.deepcopy(v.value)
    v.assign(5.0)
    assert (float(before), float(copied), float(v.value)) == (1.0, 1.0, 5.0)
    v.assign_add(before)
    assert float(v) == 6.0


def test_value_is_an_index_a_size_and_a_condition():
    n = tw.Variable(2)
    assert [10, 20, 30][n.value] == 30 and tw.zeros([n.value]).shape == (2,)
    assert bool(tw.Variable(True).value) and int(n.value) == 2


def test_gradients_pass_through_value():
    v = tw.Variable([1.0, 2.0])
    with tw.GradientTape(persistent=True) as tape:
        x = v.value
        y = tw.reduce_sum(x * x * v.value())
        target = v.value
    for source in (v, x):
        np.testing.assert_array_equal(tape.gradient(y, source), [3.0, 12.0])
    np.testing.assert_array_equal(tape.gradient(target, v), [1.0, 1.0])
    x = v.value
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_array_equal(tape.jacobian(y, x), np.diag([2.0, 4.0]))


def test_value_in_a_traced_function_is_that_of_the_moment():
    v = tw.Variable(1.0)

    @tw.function
    def step():
        before = v.value
        v.assign_add(2.0)
        return before, v.value, v.value() * 2.0

    assert [float(x) for x in step()] == [1.0, 3.0, 6.0]
    assert [float(x) for x in step()] == [3.0, 5.0, 10.0]


def test_value_as_an_argument_is_a_tensor_and_not_a_constant():
    v, f = tw.Variable(1.0), tw.function(lambda pair: pair[0] * 2.0)
    assert float(f([v.value])) == 2.0
    v.assign(4.0)
    assert float(f([v.value])) == 8.0
    assert f.experimental_get_tracing_count() == 1


def test_a_learning_rate_has_a_value_as_in_keras():
    optimizer = tw.keras.optimizers.Adam(0.25)
    assert float(optimizer.learning_rate.value) == 0.25
    assert float(optimizer.learning_rate.value()) == 0.25


# ------------------------------------------------------------------------------ parts

INDICES = [
    0, -1, slice(1, 3), slice(None, None, -2), ..., (slice(None), 2), (..., slice(0, 2)),
    (None, 1, 3), (1, 2), [2, 0], ([0, 2], [1, 3]), np.eye(3, 4) > 0,
]  # fmt: skip


@pytest.mark.parametrize("traced", [False, True])
def test_a_part_is_assigned_as_in_numpy(traced):
    def assign(index, value):
        returned = variable[index].assign(value)
        assert returned is variable
        return variable.read_value()

    for index in INDICES:
        variable = tw.Variable(np.arange(12.0, dtype=np.float32).reshape(3, 4))
        expected = variable.numpy()
        for value in (7.5, 100.0 + np.arange(expected[index].size, dtype=np.float32)):
            value = np.reshape(value, np.shape(value) and expected[index].shape)
            expected[index] = value
            if traced and not isinstance(index, np.ndarray):  # of a size that is known
                step = tw.function(lambda value, index=index: assign(index, value))
                found = step(tw.constant(value, tw.float32))
            else:
                found = assign(index, value)
            np.testing.assert_array_equal(found.numpy(), expected, str(index))
            np.testing.assert_array_equal(variable.numpy(), expected, str(index))


def test_a_loop_assigns_parts_at_its_index():
    variable = tw.Variable(tw.zeros([4], tw.int32))

    @tw.function
    def fill(n):
        for i in tw.range(n):
            variable[i].assign(i * i)
            variable[-1].assign(variable[-1] + variable[i])

    fill(tw.constant(3))
    assert variable.numpy().tolist() == [0, 1, 4, 5]


def test_what_surrounds_a_part_keeps_its_bits():
    for value in ([np.inf, np.nan, 1.0], [True, False, True], [1, 2**31 - 1, 3]):
        variable = tw.Variable(value)
        variable[2].assign(value[0])
        expected = np.array([*value[:2], value[0]])
        np.testing.assert_array_equal(
            variable.numpy(), expected.astype(variable.numpy().dtype)
        )


def test_gradients_are_those_of_the_value_that_is_read():
    variable = tw.Variable([1.0, 2.0])
    with tw.GradientTape() as tape:
        before = variable[0] * 3.0
        variable[0].assign(5.0)
        y = before + tw.reduce_sum(variable * variable)
    np.testing.assert_array_equal(tape.gradient(y, variable).numpy(), [13.0, 4.0])


def test_only_a_part_of_a_variable_can_be_assigned_to():
    variable = tw.Variable([1.0, 2.0])
    for tensor in (variable[0] + 1.0, tw.constant([1.0])[0], variable.read_value()):
        assert not hasattr(tensor, "assign")
        with pytest.raises(AttributeError, match=r"part v\[index\]"):
            tensor.assign(1.0)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1.0, 2.0, 3.0], tw.errors.ShapeError, r"part of 'Variable' has shape \(2,\)"),
        (tw.constant([1, 2]), tw.errors.DTypeError, "'Variable' has dtype float32"),
        ("a", TypeError, "Cannot convert .a. to float32"),
    ],
)
def test_a_value_that_does_not_fit_a_part_changes_nothing(value, error, message):
    variable = tw.Variable([1.0, 2.0, 3.0])
    with pytest.raises(error, match=message):
        variable[:2].assign(value)
    with pytest.raises(IndexError):
        variable[3].assign(1.0)
    assert variable.numpy().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "operator, advice",
    [
        ("iadd", r"variable.assign_add\(value\)"),
        ("isub", r"variable.assign_sub\(value\)"),
        ("imul", r"variable.assign\(variable \* value\)"),
        ("itruediv", r"variable.assign\(variable / value\)"),
        ("ipow", r"variable.assign\(variable \*\* value\)"),
    ],
)
def test_an_operator_in_place_names_the_assignment(operator, advice, traced):
    v, apply = tw.Variable(3.0, name="v"), getattr(operators, operator)
    call = tw.function(lambda: apply(v, 2.0)) if traced else lambda: apply(v, 2.0)
    with pytest.raises(RuntimeError, match=f"would not change.* 'v'. Use {advice}"):
        call()
    assert v.numpy() == 3


def test_an_operator_in_place_on_a_variable_of_keras_gives_a_tensor():
    for v in (tw.keras.Variable(3.0), tw.keras.metrics.Sum().add_weight()):
        v.assign(3.0)
        w = v
        w += 2.0
        assert type(w) is tw.Tensor and w.numpy() == 5 and v.numpy() == 3


def test_a_tensor_takes_a_variable_in_place():
    v, x = tw.Variable(3.0), tw.constant(1.0)
    x += v
    assert x.numpy() == 4


def test_a_constraint_is_applied_after_an_update():
    v = tw.Variable([1.0, -2.0], constraint=lambda x: tw.clip_by_value(x, 0.0, 1.0))
    tw.keras.optimizers.SGD(0.1).apply_gradients([(tw.constant([1.0, 1.0]), v)])
    np.testing.assert_allclose(v, [0.9, 0.0], rtol=1e-6)


def test_notes_for_replicas_are_kept():
    v = tw.Variable(
        1.0,
        validate_shape=False,
        synchronization=tw.VariableSynchronization.ON_READ,
        aggregation=tw.VariableAggregation.MEAN,
    )
    assert v.synchronization.name == "ON_READ" and v.aggregation.name == "MEAN"
    assert tw.Variable(1.0).aggregation is tw.VariableAggregation.NONE
    with pytest.raises(ValueError, match="is not a valid VariableAggregation"):
        tw.Variable(1.0, aggregation="mean")
