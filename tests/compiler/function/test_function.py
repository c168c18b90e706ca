"""`tw.function`: which arguments share a trace, what tracing leaves behind, and calls."""

import collections
import copy
import functools
import gc
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.function.function import Function
from tapewright.core import devices
from tapewright.core.interpreters import active_interpreters
from tapewright.core.replica_context import ReplicaContext, in_replica_context

Point = collections.namedtuple("Point", "x y")


def counted(**options):
    """A traced function of any arguments; ``count`` is how often its Python ran."""

    @tw.function(**options)
    def f(*args, **kwargs):
        f.seen.append((args, kwargs))
        leaves = [x for x in args if isinstance(x, tw.Tensor)]
        return leaves[0] * 2.0 if leaves else None

    f.seen = []
    return f


def traces(f, *calls):
    """How many traces each of these calls made."""
    made = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in calls:
            before = len(f.seen)
            f(*args)
            made.append(len(f.seen) - before)
    return made


def ones(*shape, dtype="float32"):
    return tw.ones(shape, dtype)


# ------------------------------------------------------------------- kinds of arguments


def test_python_runs_once_for_tensors_of_one_shape_and_dtype():
    f = counted()
    assert traces(f, [ones(2)], [ones(2) * 3], [ones(3)], [ones(2)]) == [1, 0, 1, 0]


def test_a_replay_computes_with_the_tensors_of_its_own_call():
    f = tw.function(lambda x: x * x + 1.0)
    assert [f(tw.constant(float(n))).numpy() for n in range(4)] == [1, 2, 5, 10]


def test_dtypes_tell_tensors_apart():
    f = counted()
    assert traces(f, [ones(2)], [ones(2, dtype="float64")], [ones(2)]) == [1, 1, 0]


def test_numbers_are_told_apart_by_type_and_value():
    f = counted()
    calls = [[1], [1.0], [True], [1], [2], [1.0], [1j], ["1"], [b"1"], [None], [None]]
    assert traces(f, *calls) == [1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0]


def test_negative_zero_is_not_zero_and_nan_is_nan():
    f = counted()
    calls = [[0.0], [-0.0], [float("nan")], [float("nan")], [0.0]]
    assert traces(f, *calls) == [1, 1, 1, 0, 0]


def test_numpy_arrays_and_scalars_are_tensors():
    f = counted()
    calls = [[np.ones(2, np.float32)], [ones(2)], [np.float32(3)], [tw.constant(1.0)]]
    assert traces(f, *calls) == [1, 0, 1, 0]


def test_a_numpy_array_that_changes_is_read_in_every_call():
    f = tw.function(lambda x: x + 1)
    x = np.zeros(2)
    first = f(x)
    x[:] = 5
    assert f(x).numpy().tolist() == [6, 6]
    assert first.numpy().tolist() == [1, 1]


def test_defaults_and_keywords_share_the_trace_of_positions():
    seen = []

    @tw.function
    def f(x, factor=2.0, *, shift=1.0):
        seen.append(factor)
        return x * factor + shift

    x = tw.constant(3.0)
    results = [f(x), f(x, 2.0), f(x=x), f(factor=2.0, x=x), f(x, shift=1.0)]
    assert [r.numpy() for r in results] == [7] * 5
    assert seen == [2.0]


def test_further_arguments_come_by_position_and_by_name():
    @tw.function
    def f(*args, **kwargs):
        return sum(args) + kwargs["a"] * 10.0 + kwargs["b"] * 100.0

    one = tw.constant(1.0)
    assert f(one, one * 2, b=one, a=one * 3).numpy() == 1 + 2 + 30 + 100
    assert f(one, one, a=one * 3, b=one).numpy() == 1 + 1 + 30 + 100
    assert f.experimental_get_tracing_count() == 1


def test_nests_of_arguments_are_walked():
    @tw.function
    def f(nest):
        return nest["a"][0] + nest["b"].y * nest["c"]

    nest = {"a": [ones(2)], "b": Point(1, ones(2)), "c": 3.0}
    assert f(nest).numpy().tolist() == [4, 4]
    assert f({"c": 3.0, "b": Point(1, ones(2)), "a": [ones(2)]}).numpy()[0] == 4
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.filterwarnings("ignore:function 'nesting' was traced")
def test_tuples_of_the_same_tensors_are_told_apart_at_every_call():
    @tw.function
    def nesting(*args):
        return tw.constant(str(tw.nest.map_structure(lambda _: 0, args)))

    a, b = tw.constant(1.0), tw.constant(2.0)
    calls = [(a, b), ((a, b),), ((a,), b), (a, (b,)), ((a,), (b,)), (((a, b),),)]
    calls += [((a, 1), b), ((a, 2), b), ((a, True), b), ((a,), 1, b)]
    first = [nesting(*args).numpy() for args in calls]
    assert len(set(first[:6])) == 6
    assert [nesting(*args).numpy() for args in calls] == first
    assert nesting.experimental_get_tracing_count() == len(calls)
    swapped = tw.function(lambda pair: pair[0] - pair[1])
    for _ in range(2):
        assert [swapped((a, b)).numpy(), swapped((b, a)).numpy()] == [-1, 1]


def test_the_kind_of_container_matters():
    f = counted()
    calls = [[[1, 2]], [(1, 2)], [Point(1, 2)], [{"a": 1}], [{"b": 1}], [[1, 2]]]
    assert traces(f, *calls) == [1, 1, 1, 1, 1, 0]


def test_slices_sets_and_ranges_count_by_what_they_hold():
    f = counted()
    calls = [[slice(1)], [slice(2)], [slice(1)], [{1}], [{2}], [{1}], [range(2)], [...]]
    assert traces(f, *calls) == [1, 1, 0, 1, 1, 0, 1, 1]


def test_variables_are_known_by_identity():
    f = tw.function(lambda v: v.assign_add(1.0) * 1.0)
    a, b = tw.Variable(1.0), tw.Variable(10.0)
    assert [f(a).numpy(), f(b).numpy(), f(a).numpy()] == [2, 11, 3]
    assert f.experimental_get_tracing_count() == 2


class Thing:
    pass


def test_objects_are_known_by_identity():
    f, a, b = counted(), Thing(), Thing()
    assert traces(f, [a], [b], [a], [b]) == [1, 1, 0, 0]


def test_a_trace_does_not_keep_an_object_and_goes_with_it():
    f, thing = counted(), Thing()
    f(thing, ones(1))
    alive = weakref.ref(thing)
    f.seen.clear()
    del thing
    assert alive() is None
    assert not f._concrete


def test_a_new_object_in_the_place_of_an_old_one_is_another():
    f = counted()
    made = 0
    for _ in range(8):
        thing = Thing()
        made += traces(f, [thing])[0]
        f.seen.clear()
        del thing
    assert made == 8


def test_an_object_that_cannot_be_referred_to_weakly_counts_by_its_value():
    f = counted()
    assert traces(f, [np.dtype("f4")], [np.dtype("f8")], [np.dtype("f4")]) == [1, 1, 0]


def test_indexed_slices_go_in_and_out():
    @tw.function
    def f(slices):
        return tw.IndexedSlices(slices.values * 2.0, slices.indices, slices.dense_shape)

    slices = tw.IndexedSlices(ones(1, 2), tw.constant([1]), (3, 2))
    doubled = tw.convert_to_tensor(f(slices))
    assert doubled.numpy().tolist() == [[0, 0], [2, 2], [0, 0]]
    f(tw.IndexedSlices(ones(1, 2) * 5.0, tw.constant([0]), (3, 2)))
    assert f.experimental_get_tracing_count() == 1


def test_slices_whose_dense_shape_is_a_tensor_pass_through_nested_functions():
    ranks = []

    @tw.function
    def inner(slices):
        ranks.append(slices.shape.rank)
        return tw.IndexedSlices(slices.values * 2.0, slices.indices, slices.dense_shape)

    slices = tw.IndexedSlices(ones(1, 2), tw.constant([1]), tw.constant([3, 2]))
    found = tw.function(lambda slices: inner(slices))(slices)
    np.testing.assert_array_equal(found.values.numpy(), [[2.0, 2.0]])
    np.testing.assert_array_equal(found.dense_shape.numpy(), [3, 2])
    assert ranks == [2]


def test_missing_and_unknown_arguments_are_named():
    f = tw.function(lambda x, y: x)
    with pytest.raises(TypeError, match="required.*'y'"):
        f(ones(1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        f(ones(1), ones(1), z=1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(1, 2, 3)


def test_a_spec_is_no_argument_of_a_call():
    with pytest.raises(TypeError, match="get_concrete_function"):
        tw.function(lambda x: x)(tw.TensorSpec([2]))


# ----------------------------------------------------------------------- what is returned


def test_nests_with_none_numbers_and_variables_are_returned():
    v = tw.Variable(4.0)
    f = tw.function(lambda x: {"a": [x, None], "b": Point(v, 7), "c": ()})
    for _ in range(2):
        out = f(tw.constant(1.0))
        assert out["a"][1] is None and out["c"] == ()
        assert type(out["b"]) is Point
        assert [out["a"][0].numpy(), out["b"].x.numpy(), out["b"].y.numpy()] == [
            1,
            4,
            7,
        ]
        assert type(out["b"].x) is tw.Tensor


def test_a_list_is_returned_anew_in_every_call():
    f = tw.function(lambda x: [x, x + 1.0])
    first = f(tw.constant(1.0))
    first.clear()
    assert [x.numpy() for x in f(tw.constant(1.0))] == [1, 2]


def test_nothing_is_returned_by_a_function_without_return():
    v = tw.Variable(0.0)

    @tw.function
    def f():
        v.assign_add(1.0)

    assert f() is None and f() is None
    assert v.numpy() == 2


def test_an_array_that_is_returned_is_a_tensor():
    assert tw.function(lambda: np.arange(3))().numpy().tolist() == [0, 1, 2]


def test_an_object_cannot_be_returned():
    with pytest.raises(TypeError, match="'f'.*Thing"):

        @tw.function
        def f():
            return Thing()

        f()


# ------------------------------------------------------------------------ input_signature


@pytest.fixture
def signed():
    @tw.function(
        input_signature=[
            tw.TensorSpec([None, 2], name="image"),
            tw.TensorSpec([], tw.int32),
        ]
    )
    def f(a, b):
        return tw.reduce_sum(a) + tw.cast(b, tw.float32)

    return f


def test_one_trace_serves_a_signature(signed):
    values = [signed(ones(n, 2), 1).numpy() for n in (3, 4, 5)]
    assert values == [7, 9, 11]
    assert signed.experimental_get_tracing_count() == 1


def test_arguments_are_converted_as_the_signature_says(signed):
    assert signed([[1, 2]], 1).numpy() == 4
    assert signed(b=tw.Variable(1), a=np.ones((3, 2))).numpy() == 7


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((np.ones(3, "f4"), 1), r"'a'.*shape \(None, 2\).*float32"),
        ((tw.ones([3, 2], "float64"), 1), r"'a' .* got TensorSpec.*float64"),
        ((tw.ones([3, 2]), 1.5), r"'b'.*shape \(\).*int32.*got 1\.5"),
        (("text", 1), r"'a'.*shape \(None, 2\).*got 'text'"),
        ((tw.ones([3, 2]),), "required.*'b'"),
        ((tw.ones([3, 2]), 1, 2), "too many positional arguments"),
    ],
)
def test_what_a_signature_does_not_allow_is_refused(signed, args, named):
    with pytest.raises(TypeError, match=named):
        signed(*args)


def test_a_signature_may_hold_nests():
    f = tw.function(
        lambda d: d["q"][0] - d["p"],
        input_signature=[{"q": [tw.TensorSpec([])], "p": tw.TensorSpec([])}],
    )
    assert f({"p": 1.0, "q": [3.0]}).numpy() == 2
    with pytest.raises(TypeError, match=r"d\['q'\].*list of 1.*got \[1\.0, 2\.0\]"):
        f({"q": [1.0, 2.0], "p": 1.0})
    with pytest.raises(TypeError, match=r"'d'.*\['q', 'p'\].*got \[1\.0\]"):
        f([1.0])


def test_parameters_beyond_the_signature_keep_their_defaults():
    f = tw.function(lambda a, b=2.0: a * b, input_signature=[tw.TensorSpec([])])
    assert f(3.0).numpy() == f(3.0, 2.0).numpy() == 6
    with pytest.raises(TypeError, match=r"'b'.*2\.0.*got 3\.0"):
        f(3.0, 3.0)


def test_a_signature_for_any_number_of_arguments():
    f = tw.function(lambda *xs: xs[0] - xs[1], input_signature=[tw.TensorSpec([])] * 2)
    assert f(5.0, 3.0).numpy() == 2
    with pytest.raises(TypeError, match=r"2.*'\*xs'.*got 1"):
        f(1.0)


@pytest.mark.parametrize(
    ("signature", "named"),
    [
        ([tw.TensorSpec([])] * 2, "1.*extra.*constraints"),
        ([], "missing type constraint for a"),
        ([3], r"input_signature .*TensorSpec.*got \[3\]"),
        (tw.TensorSpec([]), "input_signature .*got TensorSpec"),
    ],
)
def test_a_signature_that_does_not_fit_the_function_is_refused(signature, named):
    with pytest.raises(TypeError, match=named):
        tw.function(lambda a: a, input_signature=signature)


def test_a_signature_of_a_method_leaves_out_self():
    class Model:
        @tw.function(input_signature=[tw.TensorSpec([None])])
        def double(self, x):
            return x * 2.0

    model = Model()
    assert model.double([1.0]).numpy() == [2]
    assert model.double([1.0, 2.0]).numpy().tolist() == [2, 4]
    assert Model.double(model, [3.0]).numpy() == [6]
    assert model.double.experimental_get_tracing_count() == 1


# ------------------------------------------------------------------- fewer traces, warnings


def test_reduce_retracing_leaves_open_what_differs():
    shapes = []

    @tw.function(reduce_retracing=True)
    def f(x):
        shapes.append(str(x.shape))
        return x + 1.0

    for n in (1, 2, 3, 4):
        assert f(ones(n)).shape == (n,)
    assert shapes[:2] == ["(1,)", "(None,)"]
    assert f.experimental_get_tracing_count() == 2


def test_experimental_relax_shapes_is_reduce_retracing():
    f = counted(experimental_relax_shapes=True)
    assert traces(f, *[[ones(n)] for n in (2, 3, 4, 5)])[2:] == [0, 0]


def test_tracing_again_and_again_warns_once_and_names_the_argument():
    f = tw.function(lambda x, rate: x * rate)
    with pytest.warns(UserWarning) as found:
        for n in range(12):
            f(ones(2), n)
    assert len(found) == 1
    text = str(found[0].message)
    assert "traced 5 times" in text
    assert "'rate' varies (0, 1, 2, 3, 4)" in text
    assert "tw.constant" in text and "'x'" not in text
    assert found[0].filename == __file__


def test_the_warning_of_changing_shapes_names_the_ways_out():
    f = tw.function(lambda x: x)
    with pytest.warns(UserWarning, match="reduce_retracing.*True.*input_signature"):
        for n in range(6):
            f(ones(n))


def test_traces_that_are_used_often_are_no_reason_to_warn():
    f = tw.function(lambda x: x)
    for n in range(6):
        for _ in range(10):
            f(ones(n))


# ---------------------------------------------------------------------------- variables


def test_variables_may_be_made_in_the_first_call():
    class Count:
        value = None

        @tw.function
        def step(self, x):
            if self.value is None:
                self.value = tw.Variable(tw.zeros([2]))
            return self.value.assign_add(x) + 0.0

    count = Count()
    assert [count.step(ones(2)).numpy()[0] for _ in range(3)] == [1, 2, 3]
    other = Count()
    assert other.step(ones(2)).numpy()[0] == 1


def test_an_initial_value_may_depend_on_the_arguments():
    held = []

    @tw.function
    def f(x):
        if not held:
            held.append(tw.Variable(tw.Variable(x * 2.0)))
        return held[0] + x

    assert f(tw.constant(3.0)).numpy() == 9
    assert held[0].numpy() == 6
    assert f(tw.constant(1.0)).numpy() == 7


def test_an_initial_value_that_depends_on_a_spec_is_refused():
    f = tw.function(lambda x: tw.Variable(x * 2.0) + 1.0)
    with pytest.raises(ValueError, match="depends on the argument 'x'"):
        f.get_concrete_function(tw.TensorSpec([]))


def test_a_random_initial_value_is_drawn_once():
    held = []

    @tw.function
    def f():
        if not held:
            held.append(tw.Variable(tw.random.normal([3])))
        return held[0] * 1.0

    first = f().numpy()
    assert (f().numpy() == first).all()
    assert (held[0].numpy() == first).all()


def test_an_initial_value_may_come_from_a_function():
    held = []

    @tw.function
    def f():
        if not held:
            held.append(tw.Variable(lambda: tw.ones([2])))
        return held[0] * 2.0

    assert f().numpy().tolist() == [2, 2]


def test_variables_made_in_every_call_are_refused():
    @tw.function
    def f(x):
        return tw.Variable(1.0) + x

    for _ in range(2):
        with pytest.raises(
            ValueError, match="singleton tf.Variables created on the first"
        ):
            f(tw.constant(1.0))


def test_variables_made_in_a_later_trace_are_refused():
    @tw.function
    def f(x, late):
        return tw.Variable(1.0, name="late one") + x if late else x

    f(tw.constant(1.0), False)
    with pytest.raises(ValueError, match="'f'.*'late one'"):
        f(tw.constant(1.0), True)


def test_an_optimizer_may_be_built_in_the_first_call():
    v, optimizer = tw.Variable(1.0), tw.optimizers.SGD(0.5, momentum=0.9)

    @tw.function
    def step():
        optimizer.apply_gradients([(tw.constant(1.0), v)])

    step()
    step()
    assert v.numpy() == pytest.approx(1 - 0.5 - 0.5 * 1.9)
    assert optimizer.iterations.numpy() == 2


# ------------------------------------------------------------------------------ methods


class Scaler:
    made = 0

    def __init__(self, factor):
        self.factor = tw.Variable(factor)

    @tw.function
    def scaled(self, x):
        Scaler.made += 1
        return x * self.factor

    @tw.function
    def __call__(self, x, power=1):
        return self.scaled(x) ** power

    @classmethod
    @tw.function
    def name_length(cls, x):
        return x + float(len(cls.__name__))

    @tw.function
    @classmethod
    def other_order(cls, x):
        return x + float(len(cls.__name__))

    @staticmethod
    @tw.function
    def plus_one(x):
        return x + 1.0

    @tw.function
    @staticmethod
    def plus_two(x):
        return x + 2.0


def test_each_instance_has_its_own_traces():
    a, b, x = Scaler(2.0), Scaler(3.0), tw.constant(5.0)
    before = Scaler.made
    assert [a.scaled(x).numpy(), b.scaled(x).numpy(), a.scaled(x).numpy()] == [
        10,
        15,
        10,
    ]
    assert Scaler.made - before == 2
    assert a.scaled.experimental_get_tracing_count() == 1
    assert a.scaled == a.scaled and a.scaled != b.scaled


def test_a_method_can_be_called_through_its_class():
    a, x = Scaler(2.0), tw.constant(5.0)
    assert Scaler.scaled(a, x).numpy() == a.scaled(x).numpy() == 10
    assert a.scaled.experimental_get_tracing_count() == 1


def test_a_call_method_can_be_traced():
    assert Scaler(2.0)(tw.constant(5.0), power=2).numpy() == 100


def test_class_methods_and_static_methods_in_either_order():
    a, x = Scaler(1.0), tw.constant(1.0)
    for owner in (Scaler, a):
        assert owner.name_length(x).numpy() == owner.other_order(x).numpy() == 7
        assert owner.plus_one(x).numpy() == 2
        assert owner.plus_two(x).numpy() == 3


def test_traces_do_not_keep_an_instance_alive():
    a = Scaler(2.0)
    a.scaled(tw.constant(1.0))
    alive, factor = weakref.ref(a), weakref.ref(a.factor)
    del a
    gc.collect()
    assert alive() is None
    assert factor() is None


def test_a_method_keeps_the_instance_of_which_it_is_taken():
    method = Scaler(2.0).scaled
    gc.collect()
    assert method(tw.constant(4.0)).numpy() == 8
    assert Scaler(3.0).scaled(tw.constant(4.0)).numpy() == 12


def test_an_owner_without_weak_references_has_traced_methods():
    class Slots:
        __slots__ = ("n",)

        @tw.function
        def times(self, x):
            return x * self.n

    owner = Slots()
    owner.n = 3.0
    assert owner.times(tw.constant(2.0)).numpy() == 6


def test_equal_owners_are_not_confused():
    class Equal:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

        @tw.function
        def get(self):
            return tw.constant(self.n)

    a, b = Equal(1.0), Equal(2.0)
    assert [a.get().numpy(), b.get().numpy()] == [1, 2]


def test_owners_can_be_copied_and_pickled():
    a = Scaler(2.0)
    a.scaled(tw.constant(1.0))
    for twin in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        a.factor.assign(7.0)
        assert twin.scaled(tw.constant(1.0)).numpy() == 2
        a.factor.assign(2.0)


class Holder:
    def __init__(self):
        self.factor = tw.Variable(2.0)
        self.step = tw.function(self.plain)

    def plain(self, x):
        return x * self.factor


def test_an_owner_with_a_traced_function_in_an_attribute_can_be_copied():
    a = Holder()
    a.step(tw.constant(1.0))
    for twin in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        twin.factor.assign(5.0)
        assert twin.step(tw.constant(1.0)).numpy() == 5
        assert a.step(tw.constant(1.0)).numpy() == 2


@tw.function
def at_module_level(x):
    return x + 1.0


def test_a_function_of_a_module_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level
    assert copy.deepcopy(at_module_level) is at_module_level


def test_layers_and_modules_have_traced_methods():
    class Net(tw.Module):
        def __init__(self):
            self.dense = tw.layers.Dense(2, kernel_initializer="ones")

        @tw.function
        def __call__(self, x):
            return self.dense(x)

    net = Net()
    assert net(ones(1, 3)).numpy().tolist() == [[3, 3]]
    assert net(ones(1, 3)).numpy().tolist() == [[3, 3]]
    assert len(net.trainable_variables) == 2


# -------------------------------------------------------------------- what can be traced


def test_partial_functions_callable_objects_and_lambdas_can_be_traced():
    class Adder:
        n, name = 3.0, "mine"

        def __call__(self, x):
            return x + self.n

    x = tw.constant(1.0)
    partial = tw.function(functools.partial(lambda x, y: x - y, y=3.0))
    assert [partial(x).numpy(), partial(x, y=1.0).numpy()] == [-2, 0]
    assert tw.function(Adder())(x).numpy() == 4
    assert tw.function(lambda x: x * 5.0)(x).numpy() == 5


def test_what_cannot_be_called_cannot_be_traced():
    with pytest.raises(TypeError, match="3.*callable.*object"):
        tw.function(3)


def test_the_decorator_takes_the_arguments_of_tensorflow():
    f = tw.function(
        autograph=False, jit_compile=True, experimental_attributes={"a": 1}
    )(lambda x: x + 1.0)
    assert f(tw.constant(1.0)).numpy() == 2
    assert type(f) is Function


def test_a_traced_function_looks_like_the_one_that_it_traces():
    @tw.function
    def documented(x: int):
        """Its text."""

    assert documented.__name__ == documented.name == "documented"
    assert documented.__doc__ == "Its text."
    assert str(documented.signature) == "documented(x: int)"
    assert documented.python_function(3) is None


# ------------------------------------------------------------------------------ nesting


def test_a_function_in_a_function_is_traced_once():
    made = []

    @tw.function
    def inner(x):
        made.append(1)
        return x * 2.0

    outer = tw.function(lambda x: inner(x) + inner(x + 1.0))
    assert outer(tw.constant(1.0)).numpy() == 2 + 4
    assert made == [1]
    assert inner(tw.constant(2.0)).numpy() == 4
    assert made == [1]


def test_an_inner_function_may_use_the_tensors_around_it():
    @tw.function
    def outer(x):
        return tw.function(lambda y: y * x)(x + 1.0)

    assert [outer(tw.constant(n)).numpy() for n in (2.0, 3.0)] == [6, 12]


def test_an_inner_function_does_not_keep_tensors_of_a_trace_that_is_over():
    held = []
    inner = tw.function(lambda y: y * held[-1])

    @tw.function
    def outer(x, n):
        held.append(x + n)
        return inner(x)

    assert outer(tw.constant(2.0), 1.0).numpy() == 6
    assert outer(tw.constant(2.0), 2.0).numpy() == 8


def test_a_recursion_ends_where_python_values_decide():
    @tw.function
    def power(x, n):
        return tw.ones_like(x) if n == 0 else x * power(x, n - 1)

    assert power(tw.constant(2.0), 5).numpy() == 32


def test_a_recursion_without_end_is_named():
    @tw.function
    def f(x):
        return f(x + 1.0)

    with pytest.raises(tw.errors.TracingError, match="'f'.*itself"):
        f(tw.constant(1.0))
    assert active_interpreters() == ()


def test_effects_of_an_inner_function_happen_in_their_place():
    v = tw.Variable(1.0)

    @tw.function
    def double():
        v.assign(v * 2.0)

    @tw.function
    def outer():
        v.assign_add(1.0)
        double()
        return v + 0.0

    assert [outer().numpy() for _ in range(2)] == [4, 10]


# ----------------------------------------------------------------- tapes and other interpreters


def test_a_tape_around_a_call_sees_through_it():
    v, x = tw.Variable(3.0), tw.constant(2.0)
    f = tw.function(lambda x: x * x * v)
    for _ in range(2):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        dx, dv = tape.gradient(y, [x, v])
        assert [dx.numpy(), dv.numpy()] == [12, 4]


def test_a_tape_inside_is_traced():
    @tw.function
    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    assert [slope(tw.constant(n)).numpy() for n in (1.0, 2.0)] == [3, 12]


@pytest.mark.parametrize("watched_first", [True, False])
def test_a_tensor_of_the_closure_has_a_gradient(watched_first):
    c, x = tw.constant(3.0), tw.constant(2.0)
    f = tw.function(lambda x: c * c * x)
    if not watched_first:
        assert f(x).numpy() == 18
    with tw.GradientTape() as tape:
        tape.watch(c)
        y = f(x)
    assert tape.gradient(y, c).numpy() == 12
    assert f(x).numpy() == 18


def test_a_tensor_of_the_closure_of_an_inner_function_has_a_gradient():
    c, x = tw.constant(3.0), tw.constant(2.0)
    inner = tw.function(lambda x: c * c * x)
    outer = tw.function(lambda x: inner(x) * 2.0)
    outer(x)
    with tw.GradientTape() as tape:
        tape.watch(c)
        y = outer(x)
    assert tape.gradient(y, c).numpy() == 24


def test_a_tape_outside_does_not_record_the_trace():
    c = tw.Variable(1.0)
    f = tw.function(lambda x: [x * c for _ in range(50)][0])
    with tw.GradientTape() as tape:
        f(tw.constant(1.0))
    assert len(tape._tape.records) < 10


def test_numbers_are_checked_in_a_traced_function():
    f = tw.function(lambda x: tw.math.log(x) + 1.0)
    f(tw.constant(1.0))
    tw.debugging.enable_check_numerics()
    try:
        with pytest.raises(FloatingPointError, match="log made an infinity"):
            f(tw.constant(0.0))
    finally:
        tw.debugging.disable_check_numerics()
    assert f(tw.constant(0.0)).numpy() == -np.inf


def test_a_call_can_be_vectorized():
    f = tw.function(lambda x: x * x)
    rows = tw.vectorized_map(f, tw.constant([1.0, 2.0, 3.0]))
    assert rows.numpy().tolist() == [1, 4, 9]


# -------------------------------------------------------------------- errors and leaks


def test_an_error_while_tracing_leaves_nothing_behind():
    v, optimizer = tw.Variable(1.0), tw.optimizers.SGD(0.5)
    optimizer.build([v])

    @tw.function
    def f(x, fail):
        v.assign_add(x)
        optimizer.apply_gradients([(x, v)])
        if fail:
            raise KeyError("mine")
        return v + 0.0

    with pytest.raises(KeyError, match="mine"):
        f(tw.constant(1.0), True)
    assert active_interpreters() == ()
    assert not f._concrete and f.experimental_get_tracing_count() == 0
    assert v.numpy() == 1 and optimizer.iterations.numpy() == 0
    assert f(tw.constant(1.0), False).numpy() == 1.5


def test_a_tensor_that_leaks_is_named():
    leaked = []

    @tw.function
    def leaky(x):
        leaked.append(x + 1.0)
        return x

    leaky(tw.constant(1.0))
    one = tw.constant(1.0)
    other = tw.function(lambda x: x + leaked[0])
    for use in (
        lambda: leaked[0] + 1.0,
        lambda: one + leaked[0],
        lambda: tw.exp(leaked[0]),
        lambda: tw.stack([one, leaked[0]]),
        lambda: leaked[0].numpy(),
        lambda: float(leaked[0]),
        lambda: tw.Variable(0.0).assign(leaked[0]),
        lambda: other(one),
        lambda: other(leaked[0]),
        lambda: tw.Variable(leaked[0]),
    ):
        with pytest.raises(tw.errors.TracingError, match="'leaky'"):
            use()


def test_a_tensor_of_a_trace_that_failed_is_a_leak():
    leaked = []

    @tw.function
    def f(x):
        leaked.append(x)
        raise KeyError

    with pytest.raises(KeyError):
        f(tw.constant(1.0))
    with pytest.raises(tw.errors.TracingError, match="is over"):
        leaked[0] + 1.0


# ----------------------------------------------------------------------------- concrete


@pytest.fixture
def power():
    @tw.function
    def power(a, b):
        return a**b

    return power


def test_a_concrete_function_knows_the_values_it_was_traced_for(power):
    square = power.get_concrete_function(a=tw.TensorSpec([], tw.float32), b=2)
    ten = tw.constant(10.0)
    for result in (square(ten), square(ten, b=2), square(ten, 2), square(a=ten)):
        assert result.numpy() == 100
    with pytest.raises(TypeError, match="'b'.*2.*got 3"):
        square(ten, b=3)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "'a'.*missing"),
        ((np.int32(1),), "float32"),
        ((np.ones(2, "f4"),), r"'a'.*shape \(\).*got shape \(2,\), float32"),
        (("x",), "'a'"),
    ],
)
def test_a_concrete_function_refuses_other_tensors(power, args, named):
    square = power.get_concrete_function(tw.TensorSpec([]), 2)
    with pytest.raises(TypeError, match=named):
        square(*[x if type(x) is str else tw.constant(x) for x in args])


def test_a_concrete_function_takes_its_tensors_alone():
    f = tw.function(lambda k, nest: nest["a"] * 10.0 + nest["b"] * k)
    nest = {"b": tw.constant(2.0), "a": tw.constant(1.0)}
    concrete = f.get_concrete_function(3.0, nest)
    assert concrete(3.0, nest).numpy() == 16
    assert concrete(nest["a"], nest["b"]).numpy() == 16
    assert concrete(nest_b=nest["b"], nest_a=nest["a"]).numpy() == 16


def test_a_concrete_function_is_the_trace_of_the_calls(power):
    concrete = power.get_concrete_function(tw.TensorSpec([3]), 2)
    power(ones(3), 2)
    assert power.experimental_get_tracing_count() == 1
    assert power.get_concrete_function(ones(3), 2) is concrete


def test_a_concrete_function_tells_what_it_is_made_of():
    v, w = tw.Variable(1.0, name="v"), tw.Variable(1.0, trainable=False, name="w")
    f = tw.function(lambda image, k: {"out": image * v * w * k})
    c = f.get_concrete_function(tw.TensorSpec([2, 3], name="x"), 2.0)
    assert c.name == "<lambda>"
    assert [(x.name, tuple(x.shape)) for x in c.inputs] == [("x", (2, 3))]
    assert [tuple(x.shape) for x in c.outputs] == [(2, 3)]
    assert c.structured_input_signature == ((tw.TensorSpec([2, 3]), 2.0), {})
    assert c.structured_input_signature[0][0].name == "x"
    assert c.structured_outputs == {"out": tw.TensorSpec([2, 3])}
    assert [x.name for x in c.variables] == ["v", "w"]
    assert [x.name for x in c.trainable_variables] == ["v"]
    assert c.captured_inputs == []
    assert c.graph.nodes


def test_captured_tensors_are_listed():
    x = tw.constant(2.0)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        c = tw.function(lambda: y + 1.0).get_concrete_function()
    assert [t is y for t in c.captured_inputs] == [True]
    assert c().numpy() == 7


def test_signatures_print_as_in_tensorflow(power):
    power.get_concrete_function(tw.TensorSpec([2], name="t"), 3)
    assert power.pretty_printed_concrete_signatures() == (
        "Input Parameters:\n"
        "  a (POSITIONAL_OR_KEYWORD): "
        "TensorSpec(shape=(2,), dtype=tf.float32, name='t')\n"
        "  b (POSITIONAL_OR_KEYWORD): Literal[3]\n"
        "Output Type:\n"
        "  TensorSpec(shape=(2,), dtype=tf.float32, name=None)\n"
        "Captures:\n"
        "  None"
    )


def test_pretty_shows_the_executable_of_the_latest_trace(power, numpy_target, device):
    with pytest.raises(ValueError, match="was not traced yet"):
        power.pretty()
    power(ones(2), 2.0)
    assert ("def power" if device == "cpu" else "graph_0") in power.pretty()
    assert power.pretty(ones(2), 2.0) == power.pretty()
    assert str(power.explain(ones(2), 2.0))


# --------------------------------------------------------------- eager runs and scopes


def test_functions_can_be_run_eagerly():
    f, seen = tw.function(lambda x: seen.append(1) or x * 2.0), []
    f(tw.constant(1.0))
    tw.config.run_functions_eagerly(True)
    try:
        assert tw.config.functions_run_eagerly()
        assert f(tw.constant(2.0)).numpy() == 4
        assert Scaler(2.0).scaled(tw.constant(2.0)).numpy() == 4
        assert f.get_concrete_function(ones(5))(ones(5)).numpy()[0] == 2
    finally:
        tw.config.run_functions_eagerly(False)
    assert not tw.config.functions_run_eagerly()
    f(tw.constant(3.0))
    assert seen == [1, 1, 1]


def test_code_can_ask_where_it_runs():
    seen = []

    @tw.function
    def f():
        seen.append((tw.executing_eagerly(), tw.inside_function()))
        with tw.init_scope():
            seen.append((tw.executing_eagerly(), tw.inside_function()))

    f()
    assert seen == [(False, True), (True, True)]
    assert tw.executing_eagerly() and not tw.inside_function()


def test_an_init_scope_computes_at_once_and_is_seen_by_no_tape():
    v = tw.Variable(2.0)

    @tw.function
    def f(x):
        with tw.init_scope():
            now = (v * 3.0).numpy()
        return x + now

    assert f(tw.constant(1.0)).numpy() == 7
    with tw.GradientTape() as tape:
        with tw.init_scope():
            y = v * v
    assert tape.gradient(y, v) is None


def test_a_traced_tensor_has_no_place_in_an_init_scope():
    @tw.function
    def f(x):
        with tw.init_scope():
            return x + 1.0

    with pytest.raises(tw.errors.TracingError, match="outside of the trace"):
        f(tw.constant(1.0))


def test_control_dependencies_keep_the_order():
    v = tw.Variable(1.0)

    @tw.function
    def f(x):
        first = v.assign(x)
        with tw.control_dependencies([first]):
            second = v * 2.0
        return tw.group(first, second) or second, tw.no_op()

    assert f(tw.constant(4.0))[0].numpy() == 8
    called = []
    with tw.control_dependencies([lambda: called.append(1)]):
        pass
    assert called == [1]


def test_name_scopes_nest():
    with tw.name_scope("a"):
        with tw.name_scope("b") as inner:
            with tw.name_scope("c/") as alone:
                pass
    assert (inner, alone) == ("a/b/", "c/")
    with pytest.raises(ValueError, match="name .*got 3"):
        tw.name_scope(3)

    class Block(tw.Module):
        @tw.Module.with_name_scope
        def __call__(self):
            with tw.name_scope("in") as inner:
                return inner

    assert Block(name="first")() == "first/in/"


# ------------------------------------------------------------------- threads, devices


def test_one_function_serves_several_threads():
    made = []

    @tw.function
    def f(x):
        made.append(1)
        for _ in range(20):
            x = x * 1.5 - 1.0
        return x

    starts = [np.full(1000, n, np.float32) for n in range(4)]
    expected = [f.python_function(tw.constant(x)).numpy() for x in starts]
    made.clear()
    wrong, gate = [], threading.Barrier(4)

    def work(n):
        gate.wait()
        for _ in range(50):
            if not (f(tw.constant(starts[n])).numpy() == expected[n]).all():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert made == [1]


def test_a_trace_is_seen_by_its_own_thread_only():
    eager = []

    @tw.function
    def f(x):
        thread = threading.Thread(target=lambda: eager.append(tw.executing_eagerly()))
        thread.start()
        thread.join()
        return x

    f(tw.constant(1.0))
    assert eager == [True]


def test_another_array_module_has_its_own_trace(strict, device):
    if device != "cpu":
        pytest.skip("needs two array modules")
    f = counted()
    f(ones(2))
    with devices.use_module(strict):
        x = tw.constant([1.0, 2.0])
        assert type(x.array) is not np.ndarray
        y = f(x)
    assert type(y.array) is type(x.array)
    assert y.numpy().tolist() == [2, 4]
    assert f.experimental_get_tracing_count() == 2


def test_an_array_of_the_caller_is_not_kept():
    v, x = tw.Variable(np.zeros(2)), np.ones(2)
    same = tw.function(lambda x: [x, tw.reshape(x, [2, 1]), x + 0.0])

    @tw.function
    def keep(x):
        v.assign(x)

    first, second, third = same(x)
    keep(x)
    x[:] = 7
    for kept in (first, second, third, v):
        assert kept.numpy().ravel().tolist() == [1, 1]


def test_names_of_inputs_come_from_specs_or_parameters(signed):
    concrete = signed.get_concrete_function()
    assert [x.name for x in concrete.inputs] == ["image", "b"]
    assert concrete(image=ones(1, 2), b=tw.constant(1)).numpy() == 3
    assert "name='image'" in str(concrete) and "name='b'" not in str(concrete)


def test_a_traced_call_of_a_layer_is_a_method_like_any_other():
    class Shift(tw.layers.Layer):
        @tw.function
        def call(self, inputs, training=False):
            return inputs + 1.0 if training else inputs - 1.0

    layer = Shift()
    assert layer(ones(2), training=True).numpy().tolist() == [2, 2]
    assert layer(ones(2)).numpy().tolist() == [0, 0]


def test_a_trace_for_all_sizes_keeps_no_argument():
    f = tw.function(lambda x, thing: x + 1.0, reduce_retracing=True)
    thing = Thing()
    alive = weakref.ref(thing)
    for n in (2, 3, 4):
        x = ones(n)
        f(x, thing)
    del thing
    gc.collect()
    assert alive() is None


def test_numbers_drawn_for_a_new_variable_are_not_drawn_again():
    def program():
        held = []

        def f():
            if not held:
                held.append(tw.Variable(tw.random.normal([2])))
            return tw.stack([held[0], tw.random.normal([2])])

        return f

    tw.random.set_seed(1)
    eager = program()
    expected = [eager().numpy().tolist() for _ in range(2)]
    tw.random.set_seed(1)
    traced = tw.function(program())
    assert [traced().numpy().tolist() for _ in range(2)] == expected


@pytest.mark.parametrize("shape", [None, [4, 2]])
def test_slices_with_or_without_a_shape_are_arguments(shape):
    def slices():
        dense = None if shape is None else tw.constant(shape)
        return tw.IndexedSlices(
            tw.constant([[1.0, 2.0], [3.0, 4.0]]), tw.constant([0, 2]), dense
        )

    v, rule = tw.Variable(tw.ones([4, 2])), tw.optimizers.SGD(1.0)

    @tw.function
    def step(gradient):
        rule.apply_gradients([(gradient, v)])
        return gradient

    returned = step(slices())
    assert returned.values.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert returned.indices.numpy().tolist() == [0, 2]
    assert v.numpy().tolist() == [[0.0, -1.0], [1.0, 1.0], [-2.0, -3.0], [1.0, 1.0]]
    concrete = step.get_concrete_function(slices())
    concrete(slices())
    assert v.numpy()[0].tolist() == [-1.0, -3.0]


def test_a_method_may_call_its_owner_anything():
    class Doubler(tw.Module):
        @tw.function(input_signature=[tw.TensorSpec([2])])
        def double(this, x):  # noqa: N805
            return x * 2.0

        @tw.function
        def total(this, x):  # noqa: N805
            return tw.reduce_sum(x)

    x = tw.constant([1.0, 2.0])
    assert Doubler().double(x).numpy().tolist() == [2.0, 4.0]
    assert Doubler().total(x).numpy() == 3.0


def test_a_replica_context_has_traces_of_its_own_for_each_share():
    loss = tw.losses.MeanSquaredError()
    f = tw.function(lambda x: loss([[0.0]], x))
    x = tw.constant([[2.0]])
    contexts = [
        (None, 4.0),
        (ReplicaContext(2, 0, 0.25), 1.0),
        (ReplicaContext(2, 0, tw.constant(0.75)), 3.0),
        (ReplicaContext(2, 1, 0.5, is_idle=True), 0.0),
    ]
    for _ in range(3):  # traced; replayed; by the fast path
        for context, expected in contexts:
            with in_replica_context(context):
                assert f(x).numpy() == expected
    assert f.experimental_get_tracing_count() == len(contexts)


def test_a_function_in_a_trace_takes_the_share_that_is_an_argument_there():
    loss = tw.losses.MeanSquaredError()
    inner = tw.function(lambda x: loss([[0.0]], x))

    @tw.function
    def outer(x, share):
        with in_replica_context(ReplicaContext(2, 0, share)):
            return inner(x)

    x = tw.constant([[2.0]])
    assert inner(x).numpy() == 4.0
    for share in 0.25, 0.75:
        assert outer(x, tw.constant(share)).numpy() == 4.0 * share
    assert outer.experimental_get_tracing_count() == 1


# ------------------------------------------------------- sizes that follow from values


@tw.function
def positive_sum(x):
    return tw.reduce_sum(tw.boolean_mask(x, x > 0))


def in_branches(x):
    if tw.reduce_sum(x) > 0:
        return tw.reduce_sum(x[x > 0])
    return tw.constant(0.0)


def in_steps(x):
    total, n = tw.constant(0.0), tw.constant(0)
    while n < tw.cast(tw.reduce_sum(x), "int32"):
        total, n = total + tw.reduce_sum(x[x > 0]), n + 1
    return total


def in_rows(x):
    return tw.map_fn(
        lambda y: tw.reduce_sum(tw.range(tw.cast(abs(y), "int32"))), x, "int32"
    )


@pytest.mark.parametrize("call", [positive_sum, in_branches, in_steps, in_rows])
@pytest.mark.parametrize("open_size", [False, True])
def test_a_function_runs_eagerly_where_a_size_depends_on_values(call, open_size):
    calls = []

    def run(x):
        calls.append(1)
        return call(x)

    traced = tw.function(
        run, input_signature=[tw.TensorSpec([None if open_size else 3])]
    )
    for values in ([1.0, -2.0, 5.0], [3.0, 1.0, 0.0]):
        x = tw.constant(values)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        found = tape.gradient(y, x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            wanted = call(x)
        np.testing.assert_array_equal(y, wanted)
        if call is not in_rows:
            np.testing.assert_array_equal(found, tape.gradient(wanted, x))
    assert len(calls) <= 6  # the traces that were tried, and the two calls
    with pytest.raises(tw.errors.TracingError):
        tw.function(run).get_concrete_function(tw.constant([1.0]))


def test_a_loop_over_known_steps_needs_no_values_of_a_trace():
    @tw.function
    def total(x):
        for i in tw.range(3):
            x = x + tw.reduce_sum(tw.zeros([i + 1]) + 1.0)
        return x

    assert total(tw.constant(1.0)).numpy() == 7.0 and not total._eager


def test_objects_that_convert_to_arrays_are_tensors():
    class Column:
        """It stands for a Series of pandas."""

        def __init__(self, values):
            self.values = np.float32(values)

        def __array__(self, dtype=None, copy=None):
            return self.values

    doubled = tw.function(lambda x, y: x + y["column"] * 2)
    column = Column([1, 2])
    np.testing.assert_array_equal(doubled(column, {"column": column}), [3, 6])
    column.values += 1
    np.testing.assert_array_equal(doubled(column, {"column": column}), [6, 9])
    assert doubled.experimental_get_tracing_count() == 1
