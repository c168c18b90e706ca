"""What the base class does for every rule: checks, state, names, configuration."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.optimizers import SGD, Adam, Optimizer
from tapewright.serialization import registry


def variable(*values, dtype="float32", name="v"):
    return tw.Variable(list(values), dtype=dtype, name=name)


def stepped(optimizer, start, gradient, steps=1):
    v = variable(*start)
    for _ in range(steps):
        optimizer.apply_gradients([(tw.constant(gradient), v)])
    return v.numpy()


# --- gradients of every kind


def test_sgd_subtracts_the_gradient_times_the_learning_rate():
    assert stepped(SGD(0.5), [1.0, 2.0], [2.0, -4.0]).tolist() == [0.0, 4.0]


def test_the_first_step_of_adam_has_the_length_of_the_learning_rate():
    found = stepped(Adam(0.1), [1.0, 2.0], [1e-2, -30.0])
    np.testing.assert_allclose(found, [0.9, 2.1], rtol=1e-4)


@pytest.mark.parametrize("gradient", [np.ones(2), [1.0, 1.0], np.ones(2, "float32")])
def test_arrays_and_lists_are_gradients_too(gradient):
    v = variable(1.0, 2.0)
    SGD(1.0).apply_gradients([(gradient, v)])
    assert v.numpy().tolist() == [0.0, 1.0]


def test_a_broadcast_view_is_a_gradient():
    v, big = variable(1.0, 2.0), tw.Variable(np.zeros((300, 100), np.float32))
    row = np.broadcast_to(np.float32(1), (2,))
    rows = np.broadcast_to(np.arange(100, dtype=np.float32), (300, 100))
    SGD(1.0).apply_gradients([(tw.constant(row), v), (rows, big)])
    assert v.numpy().tolist() == [0.0, 1.0]
    assert (big.numpy() == -np.arange(100)).all()


def test_a_transposed_gradient_lands_in_the_right_places():
    big = tw.Variable(np.zeros((300, 100), np.float32))
    g = np.arange(30000, dtype=np.float32).reshape(100, 300)
    SGD(1.0).apply_gradients([(tw.transpose(g), big)])
    assert (big.numpy() == -g.T).all()


def test_two_variables_may_share_one_gradient():
    a, b, g = variable(1.0), variable(5.0), tw.constant([2.0])
    SGD(0.5, clipvalue=1.0).apply_gradients([(g, a), (g, b)])
    assert (a.numpy(), b.numpy(), g.numpy()) == (0.5, 4.5, 2.0)


def test_a_variable_may_be_its_own_gradient():
    v = variable(1.0, 2.0)
    optimizer = SGD(0.5)
    for _ in range(2):
        optimizer.apply_gradients([(v, v)])
    assert v.numpy().tolist() == [0.25, 0.5]


def test_scalars_and_empty_variables_are_updated():
    scalar, empty = tw.Variable(1.0), tw.Variable(np.zeros((0, 3), np.float32))
    gradients = [tw.constant(0.5), tw.zeros((0, 3))]
    for optimizer in (SGD(1.0), SGD(1.0)):
        optimizer.apply_gradients(zip(gradients, [scalar, empty]))
    nothing = tw.IndexedSlices(tw.zeros((0, 3)), np.zeros(0, np.int64), (0, 3))
    for gradient in (gradients[1], nothing):
        Adam().apply_gradients([(gradient, empty)])
    assert scalar.numpy() == 0.0 and scalar.shape == ()


def test_variables_of_two_dtypes_are_updated_in_one_call():
    a, b = variable(1.0), variable(1.0, dtype="float64")
    optimizer = SGD(0.5)
    for _ in range(2):
        optimizer.apply_gradients([(tw.constant([1.0]), a), (np.ones(1), b)])
    assert a.numpy() == b.numpy() == 0.0
    assert (a.dtype, b.dtype) == ("float32", "float64")


def test_a_gradient_of_none_is_skipped_with_a_warning_that_names_the_variable():
    a, b = variable(1.0, name="a"), variable(1.0, name="b")
    with pytest.warns(UserWarning, match=r"variables \['a'\]") as caught:
        SGD(1.0).apply_gradients([(None, a), (tw.constant([1.0]), b)])
    assert (a.numpy(), b.numpy()) == (1.0, 0.0)
    assert caught[0].filename == __file__


def test_no_gradient_at_all_is_an_error():
    v = variable(1.0)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        SGD().apply_gradients([(None, v)])
    with pytest.raises(ValueError, match="no pairs"):
        SGD().apply_gradients([])


def test_infinite_gradients_make_no_noise():
    assert np.isnan(stepped(Adam(), [1.0], [np.inf])).all()


# --- clipping and decay, by hand


def test_clipnorm_limits_each_variable():
    a, b = variable(0.0, 0.0), variable(0.0)
    grads = [tw.constant([3.0, 4.0]), tw.constant([0.5])]
    SGD(1.0, clipnorm=1.0).apply_gradients(zip(grads, [a, b]))
    np.testing.assert_allclose(a.numpy(), [-0.6, -0.8], rtol=1e-6)
    assert b.numpy() == -0.5


def test_global_clipnorm_limits_all_together():
    a, b = variable(0.0), variable(0.0)
    grads = [tw.constant([3.0]), tw.constant([4.0])]
    SGD(1.0, global_clipnorm=1.0).apply_gradients(zip(grads, [a, b]))
    np.testing.assert_allclose([a.numpy()[0], b.numpy()[0]], [-0.6, -0.8], rtol=1e-6)


def test_a_global_norm_that_is_not_finite_spoils_every_gradient():
    a, b = variable(0.0), variable(0.0)
    grads = [tw.constant([np.inf]), tw.constant([4.0])]
    SGD(1.0, global_clipnorm=1.0).apply_gradients(zip(grads, [a, b]))
    assert np.isnan(a.numpy()) and np.isnan(b.numpy())


@pytest.mark.parametrize("size", [1000, 100_000])
@pytest.mark.parametrize("length", [0.5, 30.0, 1e7, 1e16, 1e25])
def test_adam_clips_gradients_of_every_length(size, length):
    """A long block of a gradient is not scaled by itself; its squares may not overflow."""
    rng = np.random.default_rng(0)
    directions = [rng.standard_normal(size) for _ in range(3)]
    v = tw.Variable(np.zeros(size, "float32"))
    optimizer = Adam(0.1, clipnorm=1.0)
    momentum = velocity = 0.0
    for direction in directions:
        gradient = direction / np.linalg.norm(direction) * length
        optimizer.apply([tw.constant(gradient, "float32")], [v])
        # Beyond 1e19 the norm overflows, and what is divided by it is lost, as in Keras.
        clipped = gradient * (min(1.0, 1 / length) if length < 1e19 else 0.0)
        momentum = 0.9 * momentum + 0.1 * clipped
        velocity = 0.999 * velocity + 0.001 * clipped**2
    slots = {w.path.rpartition("_")[2]: w.numpy() for w in optimizer.variables[2:]}
    np.testing.assert_allclose(slots["momentum"], momentum, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(slots["velocity"], velocity, rtol=1e-5, atol=1e-12)


def test_weight_decay_spares_excluded_variables():
    kernel, bias, other = (variable(1.0, name=n) for n in ("kernel", "bias", "other"))
    optimizer = SGD(0.5, weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_list=[other], var_names=["bias"])
    zero = tw.constant([0.0])
    optimizer.apply_gradients((zero, v) for v in (kernel, bias, other))
    assert kernel.numpy() == np.float32(0.95)
    assert bias.numpy() == other.numpy() == 1.0
    with pytest.raises(ValueError, match="before the optimizer is built"):
        optimizer.exclude_from_weight_decay(var_names=["kernel"])


# --- refusals change nothing


@pytest.mark.parametrize(
    "bad, error, message",
    [
        (tw.ones((3,)), ValueError, r"'b' must have its shape\."),
        (tw.constant(1.0), ValueError, r"'b' must have its shape\."),
        (tw.ones((2,), "complex64"), TypeError, "'b' must have its dtype"),
        (
            tw.IndexedSlices(tw.ones((1,)), tw.constant([2]), (2,)),
            ValueError,
            "outside its 2 rows",
        ),
        (
            tw.IndexedSlices(tw.ones((1,)), tw.constant([0]), (3,)),
            ValueError,
            "dense_shape is",
        ),
        (
            tw.IndexedSlices(tw.ones((1, 2)), tw.constant([0]), (2,)),
            ValueError,
            "one row of values per entry",
        ),
        (
            tw.IndexedSlices(tw.ones((1,)), tw.constant([0.0]), (2,)),
            TypeError,
            "must be integers",
        ),
    ],
)
@pytest.mark.parametrize("rule", [SGD, Adam])
def test_a_gradient_that_does_not_fit_changes_nothing(rule, bad, error, message):
    a, b = variable(1.0, 2.0, name="a"), variable(3.0, 4.0, name="b")
    optimizer = rule(weight_decay=0.5)
    optimizer.apply([tw.ones((2,)), tw.ones((2,))], [a, b])
    before = [v.numpy() for v in [a, b, *optimizer.variables]]
    with pytest.raises(error, match=message):
        optimizer.apply([tw.ones((2,)), bad], [a, b])
    for v, old in zip([a, b, *optimizer.variables], before):
        assert np.array_equal(v.numpy(), old)


def test_an_unknown_variable_is_refused():
    a, b = variable(1.0), variable(1.0)
    optimizer = SGD()
    optimizer.build([a])
    with pytest.raises(ValueError, match="Unknown variable: .*originally built with"):
        optimizer.apply_gradients([(tw.constant([1.0]), b)])


def test_a_variable_that_comes_twice_is_refused():
    v, g = variable(1.0), tw.constant([1.0])
    with pytest.raises(ValueError, match="twice"):
        SGD().apply_gradients([(g, v), (g, v)])


def test_gradients_alone_need_a_built_optimizer_and_one_for_each_variable():
    optimizer, v = SGD(0.5), variable(1.0)
    with pytest.raises(ValueError, match="must already be built"):
        optimizer.apply([tw.constant([1.0])])
    optimizer.build([v])
    with pytest.raises(ValueError, match="1 variables, but 2 gradients"):
        optimizer.apply([tw.constant([1.0])] * 2)
    optimizer.apply([tw.constant([1.0])])
    assert v.numpy() == 0.5


def test_only_variables_of_a_floating_dtype_can_be_trained():
    with pytest.raises(TypeError, match="floating"):
        SGD().build([tw.Variable([1])])
    with pytest.raises(TypeError, match="must be Variables"):
        SGD().build([tw.constant([1.0])])


def test_a_subset_of_the_variables_can_be_updated():
    vs = [variable(float(i), name=f"v{i}") for i in range(4)]
    optimizer = SGD(1.0, momentum=0.5)
    optimizer.build(vs)
    g = tw.constant([1.0])
    optimizer.apply_gradients([(g, vs[3]), (g, vs[1])])
    optimizer.apply_gradients([(g, vs[1])])
    assert [v.numpy()[0] for v in vs] == [0.0, 1 - 1 - 1.5, 2.0, 2.0]


# --- state


def test_state_is_listed_in_the_order_and_with_the_names_of_keras():
    a, b = variable(1.0, name="kernel"), variable(1.0, name="bias")
    a.path, b.path = "net/dense/kernel", "net/dense/bias"
    optimizer = Adam(amsgrad=True)
    assert [v.path for v in optimizer.variables] == [
        "adam/iteration",
        "adam/learning_rate",
    ]
    optimizer.build([a, b])
    assert [v.path for v in optimizer.variables] == [
        "adam/iteration",
        "adam/learning_rate",
        "adam/net_dense_kernel_momentum",
        "adam/net_dense_kernel_velocity",
        "adam/net_dense_bias_momentum",
        "adam/net_dense_bias_velocity",
        "adam/net_dense_kernel_velocity_hat",
        "adam/net_dense_bias_velocity_hat",
    ]
    assert [v.name for v in optimizer.variables[:3]] == [
        "iteration",
        "learning_rate",
        "net_dense_kernel_momentum",
    ]
    assert [v.dtype for v in optimizer.variables[:3]] == ["int64", "float32", "float32"]


def test_sgd_has_slots_only_with_momentum():
    v = variable(1.0)
    plain, heavy = SGD(), SGD(momentum=0.9)
    plain.build([v])
    heavy.build([v])
    assert [len(o.variables) for o in (plain, heavy)] == [2, 3]


def test_iterations_count_the_updates():
    optimizer, v = SGD(), variable(1.0)
    for _ in range(3):
        last = optimizer.apply_gradients([(tw.constant([1.0]), v)])
    assert last is optimizer.iterations
    assert optimizer.iterations.numpy() == 3


@pytest.mark.parametrize("rule", [Adam(0.1, amsgrad=True), SGD(0.1, momentum=0.9)])
def test_zeroed_state_is_as_new(rule):
    gradient = [1.0, -2.0]
    first = stepped(rule, [1.0, 1.0], gradient, steps=3)
    again = type(rule).from_config(rule.get_config())
    v = variable(7.0, 7.0)
    for _ in range(2):
        again.apply_gradients([(tw.constant([5.0, 5.0]), v)])
    for state in again.variables:
        if not state.path.endswith("learning_rate"):
            state.assign(np.zeros(state.shape, state.dtype))
    v.assign([1.0, 1.0])
    for _ in range(3):
        again.apply_gradients([(tw.constant(gradient), v)])
    assert np.array_equal(v.numpy(), first)


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))]
)
def test_a_copy_goes_on_alone_from_the_same_state(clone):
    v, g = variable(1.0, 2.0), tw.constant([1.0, -1.0])
    optimizer = Adam(0.1)
    optimizer.apply_gradients([(g, v)])
    twin, w = clone((optimizer, v))
    optimizer.apply_gradients([(g, v)])
    after = v.numpy()
    twin.apply_gradients([(g, w)])
    assert np.array_equal(w.numpy(), after) and np.array_equal(v.numpy(), after)


# --- learning rates


def test_the_learning_rate_can_be_read_and_set():
    optimizer, v = SGD(0.5), variable(1.0)
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25
    optimizer.apply_gradients([(tw.constant([1.0]), v)])
    assert v.numpy() == 0.75


def test_a_schedule_is_given_the_iteration():
    optimizer, v = SGD(lambda step: 0.5 / (1 + step)), variable(1.0)
    for _ in range(2):
        optimizer.apply_gradients([(tw.constant([1.0]), v)])
    assert v.numpy() == 0.25
    assert len(optimizer.variables) == 1
    with pytest.raises(TypeError, match="not settable"):
        optimizer.learning_rate = 0.1


def test_a_function_of_nothing_is_called_with_nothing():
    assert stepped(SGD(lambda: tw.constant(0.5)), [1.0], [1.0]) == 0.5


def test_a_schedule_can_take_the_place_of_a_number():
    optimizer = SGD(0.5)
    optimizer.learning_rate = lambda step: 0.25
    assert optimizer.learning_rate == 0.25
    assert [v.name for v in optimizer.variables] == ["iteration"]


def test_a_learning_rate_must_be_a_number_or_callable():
    with pytest.raises(ValueError, match="learning_rate must be a number"):
        SGD("fast")


# --- construction and configuration


def test_only_one_way_of_clipping_may_be_set():
    with pytest.raises(ValueError, match="Only one of `clipnorm`, `clipvalue`"):
        Adam(clipnorm=1.0, clipvalue=1.0)


def test_an_unknown_argument_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'learning_rte'.*clipnorm.*beta_1"):
        Adam(learning_rte=0.1)


def test_momentum_must_be_from_0_to_1():
    with pytest.raises(ValueError, match=r"`momentum` .*1\.5"):
        SGD(momentum=1.5)


@pytest.mark.parametrize(
    "optimizer",
    [
        SGD(0.25, momentum=0.5, nesterov=True, clipnorm=2.0, name="mine"),
        Adam(0.5, beta_1=0.8, beta_2=0.9, epsilon=1e-3, amsgrad=True, weight_decay=0.1),
    ],
)
def test_a_config_makes_the_same_optimizer(optimizer):
    twin = optimizers.deserialize(optimizers.serialize(optimizer))
    assert type(twin) is type(optimizer) and twin is not optimizer
    assert twin.get_config() == optimizer.get_config()


def test_a_config_of_keras_is_understood():
    adam = Adam.from_config(
        {
            "name": "adam",
            "learning_rate": 0.0010000000474974513,
            "weight_decay": None,
            "clipnorm": None,
            "global_clipnorm": None,
            "clipvalue": None,
            "use_ema": False,
            "ema_momentum": 0.99,
            "ema_overwrite_frequency": None,
            "loss_scale_factor": None,
            "gradient_accumulation_steps": None,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-07,
            "amsgrad": False,
        }
    )
    assert adam.beta_1 == 0.9 and float(adam.learning_rate) == np.float32(0.001)


def test_a_schedule_with_a_config_is_part_of_the_config():
    class Halving:
        def __init__(self, initial):
            self.initial = initial

        def __call__(self, step):
            return self.initial * 0.5**step

        def get_config(self):
            return {"initial": self.initial}

        @classmethod
        def from_config(cls, config):
            return cls(**config)

    config = SGD(Halving(0.5)).get_config()
    rate = config["learning_rate"]
    assert rate["class_name"] == "Halving" and rate["config"] == {"initial": 0.5}
    twin = SGD.from_config(config, custom_objects={"Halving": Halving})
    assert twin.learning_rate == 0.5


def test_a_function_of_the_iteration_is_named_in_the_config():
    def halving(step):
        return 0.5**step

    config = SGD(halving).get_config()
    assert config["learning_rate"]["config"] == "halving"
    with registry.custom_object_scope({"halving": halving}):
        assert SGD.from_config(config).learning_rate == 1.0


def test_optimizers_are_found_by_name():
    assert type(optimizers.get("adam")) is Adam
    assert type(optimizers.get("SGD")) is SGD
    own = SGD()
    assert optimizers.get(own) is own
    assert optimizers.get(None) is None
    with pytest.raises(ValueError, match="Unknown optimizer 'adm'"):
        optimizers.get("adm")
    with pytest.raises(ValueError, match="Could not interpret"):
        optimizers.get(3)


def test_a_rule_of_the_user_is_registered_and_trained():
    class Plain(Optimizer):
        def update_block(self, xp, gradient, variable, scratch, coefficients):
            xp.multiply(gradient, coefficients[0], out=scratch)
            xp.subtract(variable, scratch, out=variable)

    config = {"class_name": "Plain", "config": {"learning_rate": 0.5}}
    assert type(optimizers.get(config)) is Plain
    assert stepped(Plain(0.5), [1.0], [1.0]) == 0.5


def test_a_constraint_is_applied_after_the_update():
    v = variable(1.0, -1.0)
    v.constraint = tw.nn.relu
    optimizer = SGD(0.5)
    for _ in range(2):
        optimizer.apply_gradients([(tw.constant([1.0, 1.0]), v)])
    assert v.numpy().tolist() == [0.0, 0.0]


def test_names_that_are_not_given_count_as_in_keras():
    adams = [tw.optimizers.Adam(), tw.optimizers.Adam(), tw.optimizers.SGD()]
    assert [each.name for each in adams] == ["adam", "adam_1", "sgd"]
    assert tw.optimizers.Adam.from_config(adams[1].get_config()).name == "adam_1"
    assert tw.optimizers.Adam(name="mine").name == "mine"
