"""`Optimizer`: updates, checks, learning rates, configuration."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import optimizers
from tapewright.optimizers import SGD, Adam, Optimizer, RMSprop
from tapewright.serialization import registry

from ..steps import EVERY_RULE, run, stepped, variable


def test_a_schedule_counts_calls_and_not_updates():
    rates = []

    def rate(step):
        rates.append(int(step))
        return 1.0

    optimizer = SGD(rate, gradient_accumulation_steps=2)
    run(optimizer, [variable(1.0)], *[[[1.0]]] * 4)
    assert rates == [1, 3]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"gradient_accumulation_steps": 1}, "gradient_accumulation_steps .*2"),
        ({"gradient_accumulation_steps": 2.5}, "gradient_accumulation_steps .*2"),
        ({"use_ema": True, "ema_momentum": 1.5}, r"ema_momentum .*0.*1.*got 1\.5"),
        (
            {"use_ema": True, "ema_overwrite_frequency": 0.5},
            "ema_overwrite_frequency must be .*got 0.5",
        ),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SGD(**arguments)


@pytest.mark.parametrize("name", EVERY_RULE)
def test_every_option_of_every_rule_is_in_its_config(name):
    options = {
        "learning_rate": 0.5,
        "weight_decay": 0.25,
        "clipvalue": 2.0,
        "use_ema": True,
        "ema_momentum": 0.5,
        "ema_overwrite_frequency": 3,
        "loss_scale_factor": 4.0,
        "gradient_accumulation_steps": 2,
        "name": "mine",
    }
    optimizer = getattr(optimizers, name)(**options)
    config = optimizer.get_config()
    assert config.items() >= options.items()
    assert optimizers.get({"class_name": name, "config": config}).get_config() == config
    assert type(optimizers.get(name.lower())) is type(optimizer)


@pytest.mark.parametrize("name", EVERY_RULE)
def test_every_rule_goes_down_a_bowl(name):
    rate = {"Adadelta": 50.0, "Adagrad": 0.5, "Ftrl": 0.5, "Lion": 0.03}.get(name, 0.05)
    v = variable(1.0, -2.0)
    optimizer = getattr(optimizers, name)(rate)
    for _ in range(60):
        optimizer.apply([2 * v.read()], [v])
    assert np.abs(v.numpy()).max() < 0.7


def test_rules_refuse_numbers_out_of_range():
    with pytest.raises(ValueError, match=r"`beta_1` .*\(0, 1\].*0.0"):
        optimizers.Lion(beta_1=0.0)
    with pytest.raises(ValueError, match="`weight_decay` .*None"):
        optimizers.AdamW(weight_decay=None)
    with pytest.raises(
        ValueError, match="Ftrl: l1_regularization_strength must be .*-1.0"
    ):
        optimizers.Ftrl(l1_regularization_strength=-1.0)
    with pytest.raises(ValueError, match="`learning_rate_power` .*1.0"):
        optimizers.Ftrl(learning_rate_power=1.0)


def test_optimizers_are_numbered_as_in_keras():
    names = [rule().name for rule in (Adam, Adam, SGD, Adam)]
    assert names == ["adam", "adam_1", "sgd", "adam_2"]
    assert Adam(name="mine").variables[0].path == "mine/iteration"


def test_the_argument_decay_of_older_versions_is_passed_over_with_a_warning():
    with pytest.warns(UserWarning, match="`decay`"):
        assert SGD(decay=0.1).weight_decay is None


def test_sgd_subtracts_the_gradient_times_the_learning_rate():
    assert stepped(SGD(0.5), [1.0, 2.0], [2.0, -4.0]).tolist() == [0.0, 4.0]


def test_the_first_step_of_adam_has_the_length_of_the_learning_rate():
    found = stepped(Adam(0.1), [1.0, 2.0], [1e-2, -30.0])
    np.testing.assert_allclose(found, [0.9, 2.1], rtol=1e-4)


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
    with pytest.raises(ValueError, match="1.*variables.*2.*gradients"):
        optimizer.apply([tw.constant([1.0])] * 2)
    optimizer.apply([tw.constant([1.0])])
    assert v.numpy() == 0.5


def test_only_variables_of_a_floating_dtype_can_be_trained():
    with pytest.raises(TypeError, match="floating"):
        SGD().build([tw.Variable([1])])
    with pytest.raises(TypeError, match="variables .*got Tensor"):
        SGD().build([tw.constant([1.0])])


def test_a_subset_of_the_variables_can_be_updated():
    vs = [variable(float(i), name=f"v{i}") for i in range(4)]
    optimizer = SGD(1.0, momentum=0.5)
    optimizer.build(vs)
    g = tw.constant([1.0])
    optimizer.apply_gradients([(g, vs[3]), (g, vs[1])])
    optimizer.apply_gradients([(g, vs[1])])
    assert [v.numpy()[0] for v in vs] == [0.0, 1 - 1 - 1.5, 2.0, 2.0]


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
    with pytest.raises(ValueError, match="learning_rate .*got 'fast'"):
        SGD("fast")


def test_only_one_way_of_clipping_may_be_set():
    with pytest.raises(ValueError, match="Only one of `clipnorm`, `clipvalue`"):
        Adam(clipnorm=1.0, clipvalue=1.0)


def test_an_unknown_argument_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'other'.*clipnorm.*beta_1"):
        Adam(other=0.1)


def test_momentum_must_be_from_0_to_1():
    with pytest.raises(ValueError, match=r"SGD: momentum must be .*1\.5"):
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
    with pytest.raises(ValueError, match="optimizer 'adm'"):
        optimizers.get("adm")
    with pytest.raises(ValueError, match="optimizer .*got 3"):
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bias_corrections_have_powers_in_the_dtype_of_the_variable_as_in_keras(dtype):
    v, real = tw.Variable([0.0], dtype=dtype), np.dtype(dtype).type
    Adam(1000.0).apply([tw.constant([1.0], dtype)], [v])
    rate = (1 - float(real(0.999))) ** 0.5 / (1 - float(real(0.9)))
    step = 1000 * rate * 0.1 / (0.001**0.5 + 1e-7)
    np.testing.assert_allclose(v.numpy(), [-step], rtol=1e-6)


def test_the_learning_rate_has_the_dtype_floatx_as_in_keras(floatx64):
    assert tw.optimizers.SGD(0.1).learning_rate.dtype == "float64"
    v = tw.Variable([1.0], dtype="float64")
    RMSprop().apply([tw.constant([1.0], "float64")], [v])
    assert v.numpy()[0] == 0.9968377239209693  # of Keras


@pytest.fixture
def floatx64():
    tw.keras.config.set_floatx("float64")
    yield
    tw.keras.config.set_floatx("float32")
