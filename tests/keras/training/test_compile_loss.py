"""Losses of compiled models: outputs, weights, structures, losses of layers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import Input, Model, Sequential
from tapewright.layers import Dense, Layer

from .small_models import affine, linear, unchanged


def test_sample_weights_count_in_the_loss(data):
    x, y = data
    weights = np.r_[np.zeros(20), np.ones(20)]
    model = linear()
    loss = model.evaluate(x, y, batch_size=40, sample_weight=weights, verbose=0)
    error = model(x[20:]).numpy() - y[20:]
    assert loss == pytest.approx((error**2).sum() / 40, rel=1e-5)


def test_class_weights_are_sample_weights():
    x, y = np.eye(4, 3).astype("f4"), np.array([0, 1, 1, 2])
    model = Sequential([Input((3,)), Dense(3)])
    loss = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    given = {0: 2.0, 1: 0.5}
    before = model.get_weights()
    first = model.train_on_batch(x, y, class_weight=given)
    model.set_weights(before)
    second = model.train_on_batch(x, y, sample_weight=np.array([2, 0.5, 0.5, 1]))
    assert first == pytest.approx(second, rel=1e-6)


def test_losses_that_layers_add_are_part_of_the_loss(data):
    class Penalty(Layer):
        def call(self, inputs):
            self.add_loss(100.0 * tw.reduce_mean(inputs**2))
            return inputs

    x, y = data
    model = Sequential([Input((3,)), Dense(1, kernel_regularizer="l2"), Penalty()])
    model.compile("sgd", "mse")
    out = model(x).numpy()
    expected = ((out - y) ** 2).mean() + 100 * (out**2).mean()
    expected += 0.01 * (model.get_weights()[0] ** 2).sum()
    assert model.evaluate(x, y, batch_size=40, verbose=0) == pytest.approx(
        expected, rel=1e-5
    )
    assert len(model.losses) == 2


def test_a_symbolic_loss_outside_of_a_call_is_refused():
    inputs = Input((3,))
    outputs = Dense(1)(inputs)
    model = Model(inputs, outputs)
    with pytest.raises(ValueError, match=r"computed in call\(\), got <KerasTensor"):
        model.add_loss(tw.reduce_sum(outputs))


def test_added_losses_alone_train_a_model(data):
    class Only(Layer):
        def build(self, input_shape):
            self.w = self.add_weight(shape=(), initializer="ones", name="w")

        def call(self, inputs):
            self.add_loss(self.w**2)
            return inputs

    model = Sequential([Input((3,)), Only()])
    model.compile(tw.optimizers.SGD(0.5))
    model.fit(data[0], batch_size=40, verbose=0)
    assert model.layers[0].w.numpy() == 0.0


def test_activity_regularizers_are_divided_by_the_batch_size(data):
    model = Sequential([Input((3,)), Dense(1, activity_regularizer="l2")])
    model.compile("sgd", "mse")
    x, y = data
    out = model(x).numpy()
    expected = ((out - y) ** 2).mean() + 0.01 * (out**2).sum() / 40
    assert model.evaluate(x, y, batch_size=40, verbose=0) == pytest.approx(
        expected, rel=1e-5
    )


def forked():
    x, z = Input((3,), name="x"), Input((2,), name="z")
    both = tw.concat([x, z], 1)
    return Model([x, z], {"a": Dense(1, name="da")(both), "b": Dense(2)(both)})


def test_losses_and_metrics_by_the_names_of_outputs(data):
    x, y = data
    inputs = {"x": x, "z": x[:, :2]}
    labels = {"a": y, "b": np.zeros(40, "i4")}
    model = forked()
    from_logits = tw.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        "adam",
        loss={"a": "mse", "b": from_logits},
        loss_weights={"a": 0.5, "b": 2.0},
        metrics={"b": ["accuracy"]},
    )
    history = model.fit(inputs, labels, verbose=0).history
    assert sorted(history) == ["a_loss", "b_accuracy", "b_loss", "loss"]
    total = 0.5 * history["a_loss"][0] + 2 * history["b_loss"][0]
    assert history["loss"][0] == pytest.approx(total, rel=1e-5)
    assert sorted(model.predict(inputs, verbose=0)) == ["a", "b"]


def test_labels_and_weights_go_by_name_whatever_the_order_of_the_outputs(data):
    x, _ = data
    inputs = Input((3,))
    zeros = {"kernel_initializer": "zeros"}
    outputs = [Dense(1, name=name, **zeros)(inputs) for name in ("second", "first")]
    model = Model(inputs, outputs)
    names = {"second": ["mae"], "first": ["mae"]}
    model.compile("sgd", {"second": "mae", "first": "mae"}, metrics=names)
    labels = {"first": np.full((40, 1), 1.0), "second": np.full((40, 1), 5.0)}
    logs = model.evaluate(x, labels, verbose=0, return_dict=True)
    assert (logs["first_mae"], logs["second_mae"]) == (1.0, 5.0)
    assert (logs["first_loss"], logs["second_loss"], logs["loss"]) == (1.0, 5.0, 6.0)
    weights = {"first": np.full(40, 3.0), "second": np.full(40, 2.0)}
    logs = model.evaluate(x, labels, sample_weight=weights, verbose=0, return_dict=True)
    assert (logs["first_loss"], logs["second_loss"]) == (3.0, 10.0)


def test_a_dict_of_outputs_goes_by_its_keys_whatever_the_order_of_output_names(data):
    class Two(Model):
        output_names = ["b", "a"]

        def call(self, x):
            return {"a": x * 0.0, "b": x * 0.0 + 1.0}

    x, model = data[0], Two()
    model.compile(None, "mae", metrics={"a": "mse"})
    labels = {"a": x * 0.0 + 3.0, "b": x * 0.0 + 5.0}
    logs = model.evaluate(x, labels, verbose=0, return_dict=True)
    assert logs == {"a_loss": 3.0, "b_loss": 4.0, "a_mse": 9.0, "loss": 7.0}


def test_an_output_may_have_no_loss(data):
    x, y = data
    model = forked()
    model.compile("adam", loss={"a": "mse"})
    reason = (
        r"Gradients do not exist.*\n  '.*' \(unrelated\): the target does not depend"
    )
    with pytest.warns(UserWarning, match=reason):
        history = model.fit({"x": x, "z": x[:, :2]}, {"a": y}, verbose=0).history
    assert list(history) == ["loss"]


def test_names_that_no_output_has_are_refused(data):
    x, y = data
    model = forked()
    model.compile("adam", loss={"aa": "mse"})
    before = model.get_weights()
    with pytest.raises(ValueError, match="output 'aa'. Did you mean 'a'"):
        model.fit({"x": x, "z": x[:, :2]}, {"a": y}, verbose=0)
    for old, new in zip(before, model.get_weights()):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("source", ["arrays", "generator"])
def test_nan_labels_change_nothing(data, source):
    model = linear()
    x, y = data[0], data[1].copy()
    y[7] = np.nan
    given = (x, y) if source == "arrays" else (iter([(x, y)]),)
    unchanged(model, lambda: model.fit(*given, verbose=0), ValueError, "NaN")


def test_a_loss_of_ones_own_may_make_something_of_nan_labels(data):
    x, y = data[0], data[1].copy()
    y[7] = np.nan

    def loss(y_true, y_pred):
        known = tw.where(tw.math.is_nan(y_true), y_pred, y_true)
        return tw.reduce_mean((known - y_pred) ** 2)

    model = Sequential([Input((3,)), Dense(1)])
    model.compile("sgd", loss)
    assert np.isfinite(model.fit(x, y, verbose=0).history["loss"][0])


def test_labels_are_needed_where_there_is_a_loss(data):
    model = linear()
    unchanged(model, lambda: model.fit(data[0], verbose=0), ValueError, "labels|y must")


def two_outputs(container):
    x = Input((3,), name="x")
    return Model(x, container([affine("a", x), affine("b", x)]))


def as_dict(pair):
    return dict(zip("ab", pair))


@pytest.mark.parametrize(
    ("container", "loss", "loss_weights"),
    [
        (list, ["mse", "mae"], None),
        (tuple, ("mse", "mae"), (2.0, 3.0)),
        (list, ["mse", ["mae"]], [2.0, 3.0]),
        (tuple, (["mse"], "mae"), None),
        (as_dict, {"a": ["mse"], "b": ["mae"]}, {"a": 2.0, "b": 3.0}),
        (as_dict, {"a": "mse", "b": "mae"}, None),
        (list, {"a": "mse", "b": "mae"}, {"a": 2.0, "b": 3.0}),
        (as_dict, ["mse", "mae"], None),
    ],
)
def test_a_loss_may_be_given_for_each_output_in_a_structure(
    data, container, loss, loss_weights
):
    x, y = data
    model = two_outputs(container)
    model.compile("sgd", loss, loss_weights=loss_weights)
    error = x.sum(1, keepdims=True) - y
    a, b = np.mean(error**2), np.mean(abs(error))
    first, second = (1.0, 1.0) if loss_weights is None else (2.0, 3.0)
    found = model.evaluate(x, container([y, y]), verbose=0, return_dict=True)
    expected = {"loss": first * a + second * b, "a_loss": a, "b_loss": b}
    assert found == pytest.approx(expected, rel=1e-5)
    assert model.fit(x, container([y, y]), verbose=0).history.keys() == expected.keys()


@pytest.mark.parametrize("container", [list, as_dict])
def test_one_loss_for_all_outputs_takes_one_weight(data, container):
    x, y = data
    model = two_outputs(container)
    model.compile("sgd", "mse", loss_weights=0.5)
    found = model.evaluate(x, container([y, y]), verbose=0, return_dict=True)
    error = np.mean((x.sum(1, keepdims=True) - y) ** 2)
    expected = {"loss": error, "a_loss": error, "b_loss": error}
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_loss_may_be_given_for_several_outputs_together(data):
    def total(y_true, y_pred):
        return tw.reduce_mean(
            abs(y_true["p"][0] - y_pred["p"][0]) + abs(y_true["q"] - y_pred["q"])
        )

    def pair(y_true, y_pred):
        return abs(y_true[0] - y_pred[0]) + abs(y_true[1] - y_pred[1])

    x, y = data
    start = Input((3,), name="x")
    a, b, c = (affine(name, start) for name in "abc")
    model = Model(start, {"p": (a, b), "q": c})
    labels = {"p": (y, y), "q": y}
    error = np.mean(abs(x.sum(1, keepdims=True) - y))
    cases = [
        ([total, {"q": "mae"}], {"loss": 3, "a_b_c_loss": 2, "q_loss": 1}),
        ({"p": [pair, (None, "mae")], "q": "mae"},
         {"loss": 4, "p_loss": 2, "p/b_loss": 1, "q_loss": 1}),
        ({"p": ["mae", "mae"]}, {"loss": 2, "p/a_loss": 1, "p/b_loss": 1}),
        ("mae", {"loss": 3, "p/a_loss": 1, "p/b_loss": 1, "q_loss": 1}),
    ]  # fmt: skip
    for loss, times in cases:
        model.compile("sgd", loss)
        found = model.evaluate(x, labels, verbose=0, return_dict=True)
        expected = {name: n * error for name, n in times.items()}
        assert found == pytest.approx(expected, rel=1e-5), loss


@pytest.mark.parametrize(
    ("loss", "loss_weights", "message"),
    [
        ({"c": "mse"}, None, "no output 'c'"),
        (["mse", "mse", "mse"], None, "2 entries.*got 3"),
        ({"a": {"x": "mse"}}, None, "'x'"),
        (["mse", "mae"], [1.0], "per loss .2., got 1"),
        (["mse", "mae"], 2.0, r"loss_weights .*got 2\.0"),
        ({"a": "mse"}, {"c": 1.0}, "no output 'c'"),
    ],
)
def test_losses_that_fit_no_structure_are_refused(data, loss, loss_weights, message):
    x, y = data
    model = two_outputs(list if isinstance(loss, list) else as_dict)
    model.compile("sgd", loss, loss_weights=loss_weights)
    with pytest.raises(ValueError, match=message):
        model.evaluate(x, [y, y] if isinstance(loss, list) else as_dict([y, y]))


def test_the_losses_of_outputs_are_means_over_examples_also_of_a_short_last_batch():
    x = Input((1,))
    a = Dense(1, name="a", kernel_initializer="zeros")(x)
    model = Model(x, [a, Dense(1, name="b", kernel_initializer="zeros")(x)])
    model.compile("sgd", ["mse", "mae"])
    y = np.arange(5.0, dtype="float32")[:, None]
    found = model.evaluate(y, [y, y], batch_size=3, verbose=0, return_dict=True)
    assert found == {"loss": 8.0, "a_loss": 6.0, "b_loss": 2.0}  # not (5/3 + 12.5) / 2
