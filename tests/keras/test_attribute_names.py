"""Attributes of users: no name of ours that Keras lacks is in their way.

The names of Keras are in ``reference/attribute_names.json``. All other names are reserved
by a prefix, or a user's attribute may have them.
"""

import contextlib
import copy
import functools
import itertools
import json
import pathlib
import pickle
import re

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.names.reserved_names import PREFIX, Replaceable
from tapewright.serialization.constructor_arguments import constructor_arguments

from ..sources import ROOT

layers = keras.layers
X = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
Y = np.float32([[1], [0], [1], [0]])
FILE = pathlib.Path(__file__).parent / "reference" / "attribute_names.json"
KERAS = json.loads(FILE.read_text(encoding="utf-8"))
KERAS.pop("keras")
# What users define for a rule in blocks, a loss, a callback: see the pages "Write a ...".
EXTENSION_POINTS = {
    "optimizers.Optimizer": "advance coefficients initial needs_two slots takes_whole "
    "update_block zero_is_idle",
    "losses.Loss": "integer_labels",
    "callbacks.Callback": "get_state on_close set_state state_names",
    "metrics.Metric": "_direction",  # Keras reads it of any metric
}
# Public names that TensorFlow and Keras lack, of classes that users rarely extend.
ADDITIONS = {
    "KerasTensor": "mask_spec",
    "callbacks.CallbackList": "append",
    "layers.InputSpec": "problem",
    "tf.GradientTape": "explain hessian nbytes summary",
    "tf.IndexedSlices": "with_values",
    "tf.Tensor": "array assign key to_numpy",
    "tf.TensorShape": "count index",  # a tuple has them
    "tf.Variable": "autocast ndim path read to_numpy",
    "tf.data.Dataset": "from_hdf5 restore state",
    "tf.data.DatasetIterator": "restore state",
    "tf.dtypes.DType": "dtype is_differentiable kind",
    "tf.errors.OpError": "code",
    "tf.train.CheckpointManager": "best_checkpoint close save_if_asked",
}
# Methods of ours that no code here calls; notebooks call the last.
EXTRAS = {
    *("with_name_scope", "get_monitor_value", "plot", "history", "save_on_sigterm"),
    "_repr_html_",
}
NOT_EXTENDED = """
    KerasTensor Variable callbacks.CallbackList layers.InputSpec random.SeedGenerator
    utils.Progbar
""".split()
# Names that were in the way once.
ORDINARY = """
    kind slots reads writes advance coefficients initial at inputs outputs operations rank
    function setting gates own_variables submodules name_scope state_names get_state on_close
    is_kept block_rule take_step update_of device_update integer_labels config_exclude
    omit_defaults pooled data_format top_k input_names output_names is_functional
    _weights _added _policy _title _parts _walk _compiled _functional _run _test _rate
    _updates _segments _build_for _converted _first_call _signature _shapes _penalties
    _frozen _locked _pending_values _child_names _function _find _plain_arguments _warn
    _start _chain _check_complete _name _view
""".split()


def half(x):
    return x / 2


VALUES = {  # for the names of a class in turn: any name gets any value in some class
    "plain": lambda: [3, "text", half],
    "layers": lambda: [[layers.Dense(2), layers.Dense(3)]],
}


@functools.cache
def keras_names(path):
    base, names = KERAS[path]
    return frozenset(names.split()) | (keras_names(base) if base else frozenset())


def recorded_classes():
    found = {"Module": tw.Module}
    for path in KERAS:
        start, *parts = path.split(".")
        top = tw if start == "tf" else getattr(keras, start, None)
        with contextlib.suppress(AttributeError):  # Keras' alone
            if top is not None:
                found[path] = functools.reduce(getattr, parts, top)
    return dict(sorted(found.items()))


RECORDED = recorded_classes()
EXTENDED = {p for p in RECORDED if not p.startswith("tf.") and p not in NOT_EXTENDED}
CLASSES = {path: RECORDED[path] for path in sorted(EXTENDED)}


def is_of_python(name):
    return name.startswith("__") and name.endswith("__") or name == "_abc_impl"


def unknown_names(path, *objects):
    """The names of a class, and of objects of it, that Keras does not have."""
    cls = RECORDED[path]
    names = {name for name in dir(cls) if hasattr(cls, name)}
    names.update(*[vars(each) for each in objects])
    return {n for n in names - keras_names(path) if not is_of_python(n)}


def extension_points(cls):
    bases = [base for base in EXTENSION_POINTS if issubclass(cls, CLASSES[base])]
    return {name for base in bases for name in EXTENSION_POINTS[base].split()}


@pytest.mark.parametrize("path", CLASSES)
def test_names_that_keras_lacks_are_reserved_or_give_way(path):
    cls = CLASSES[path]
    names = {n for n in unknown_names(path) if not n.startswith(PREFIX)}
    given_way = {n for n in names if isinstance(getattr(cls, n), Replaceable)}
    known = extension_points(cls) | EXTRAS | {*constructor_arguments(cls)}
    assert names - given_way - known == set()


@pytest.mark.parametrize("path", sorted(RECORDED.keys() - EXTENDED))
def test_public_names_are_theirs_and_the_listed_additions(path):
    cls = RECORDED[path]
    bases = [each for each in RECORDED if issubclass(cls, RECORDED[each])]
    known = frozenset().union(*[keras_names(each) for each in bases])
    names = {n for n in dir(cls) if n[0] != "_" and hasattr(cls, n)}
    added = {n for each in bases for n in ADDITIONS.get(each, "").split()}
    assert names - known == (added | extension_points(cls)) - known


PAGES = [path.read_text("utf-8") for path in (ROOT / "docs" / "extend").glob("*.md")]


@pytest.mark.parametrize("path", RECORDED)
def test_each_addition_has_a_docstring_or_is_explained(path):
    cls = RECORDED[path]
    names = {n for n in unknown_names(path) if n[0] != "_"} - {
        *constructor_arguments(cls)
    }
    pages = PAGES if extension_points(cls) else []
    texts = [*pages, *[each.__doc__ or "" for each in cls.__mro__[:-1]]]

    def is_explained(name):
        members = [vars(each)[name] for each in cls.__mro__ if name in vars(each)]
        has_text = [m.__doc__ and m.__doc__ != type(m).__doc__ for m in members]
        found = re.compile(rf"`{name}\b|^ +{name}: ", re.MULTILINE)
        return any(has_text) or any(map(found.search, texts))

    assert not [name for name in sorted(names) if not is_explained(name)]


# ------------------------------------------------------------- attributes of users' classes
# Each function makes a class with the attribute, uses it in all ways that there are, and
# returns the object with the value that it was given last. `body` is the class's own part.


def as_attributes(values):
    """Return the ``__init__`` by which every object gets the attributes."""

    def after(base):
        def __init__(self, *args, **kwargs):
            base.__init__(self, *args, **kwargs)
            for name, value in values.items():
                setattr(self, name, value)

        return {"__init__": __init__}

    return after


def as_methods(names):
    def method(self, *args, **kwargs):
        return "mine"

    return lambda base: dict.fromkeys(names, method)


def defined(base, after, **body):
    cls = type("Own", (base,), {**body, **after(base), "__module__": __name__})
    globals()["Own"] = cls  # for pickle
    if not hasattr(cls, "get_config"):
        return cls
    return keras.saving.register_keras_serializable("names")(cls)


def fitted(model, optimizer="sgd", loss="mse", metrics=(), callbacks=()):
    model(X)
    model.compile(optimizer, loss, metrics=list(metrics))
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=list(callbacks))
    model.evaluate(X, Y, batch_size=4, verbose=0)
    return model


def reloaded(model, tmp_path):
    """Models from all files and copies of a model; their predictions are the same."""
    model.save(tmp_path / "m.keras")
    model.save(tmp_path / "m.h5")
    model.save_weights(tmp_path / "m.weights.h5")
    found = [
        keras.models.load_model(tmp_path / "m.keras"),
        keras.models.load_model(tmp_path / "m.h5"),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    clone, restored = keras.models.clone_model(model), keras.models.clone_model(model)
    for each in (clone, restored):
        each(X)  # builds a subclass
        if each.optimizer is not None:
            each.optimizer.build(each.trainable_variables)
    clone.load_weights(tmp_path / "m.weights.h5")
    saved = tw.train.Checkpoint(model=model).save(tmp_path / "ckpt")
    tw.train.Checkpoint(model=restored).restore(saved)
    expected = model.predict(X, verbose=0)
    for each in (*found, clone, restored):
        np.testing.assert_allclose(each.predict(X, verbose=0), expected)
    return [model, *found, clone, restored]


class Twice(layers.Layer):
    """A layer that holds another one twice."""

    def __init__(self, first, second, **kwargs):
        super().__init__(**kwargs)
        self.first, self.second = first, second

    def call(self, x):
        return self.second(self.first(x))

    def get_config(self):
        write = keras.saving.serialize_keras_object
        both = {"first": write(self.first), "second": write(self.second)}
        return super().get_config() | both

    @classmethod
    def from_config(cls, config):
        read = keras.saving.deserialize_keras_object
        both = {n: read(config.pop(n)) for n in ("first", "second")}
        return cls(**both, **config)


keras.saving.register_keras_serializable("names")(Twice)


def build_scale(self, input_shape):
    self.scale = self.add_weight((input_shape[-1],), "ones", name="scale")


def call_scale(self, x):
    return x * self.scale


def use_layer(after, tmp_path):
    own = defined(layers.Layer, after, build=build_scale, call=call_scale)()
    x = keras.Input((3,), batch_size=4)
    model = fitted(keras.Model(x, layers.Dense(1)(Twice(own, own)(x))))
    models = reloaded(model, tmp_path)
    assert all(each.layers[1].first is each.layers[1].second for each in models)
    assert not own.losses and own.count_params() == 3
    return [each.layers[1].first for each in models]


def use_of_ours(base, *args, shape=(3,), **arguments):
    def use(after, tmp_path):
        own = defined(base, after)(*args, **arguments)
        steps = [keras.Input((3,)), layers.Reshape(shape), own]
        model = fitted(keras.Sequential([*steps, layers.Flatten(), layers.Dense(1)]))
        return [each.layers[1] for each in reloaded(model, tmp_path)]

    return use


def use_cell(base):
    def use(after, tmp_path):
        own = defined(base, after)(2)
        steps = [
            keras.Input((3,), batch_size=4),
            layers.Reshape((3, 1)),
            layers.RNN(own),
        ]
        model = fitted(keras.Sequential([*steps, layers.Dense(1)]))
        return [each.layers[1].cell for each in reloaded(model, tmp_path)]

    return use


def use_model(after, tmp_path):
    def __init__(self, **kwargs):
        keras.Model.__init__(self, **kwargs)
        self.dense = layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    base = type("Base", (keras.Model,), {"__init__": __init__, "call": call})
    return reloaded(fitted(defined(base, after)()), tmp_path)


def use_sequential(after, tmp_path):
    parts = [keras.Input((3,)), layers.Dense(2), layers.Dense(1)]
    return reloaded(fitted(defined(keras.Sequential, after)(parts)), tmp_path)


def use_functional(after, tmp_path):
    x = keras.Input((3,))
    model = defined(keras.Model, after)(x, layers.Dense(1)(x))
    return reloaded(fitted(model), tmp_path)


def use_optimizer(base, **body):
    def use(after, tmp_path):
        own = defined(base, after, **body)(0.1)
        model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
        reloaded(fitted(model, own), tmp_path)
        before = model.layers[0].kernel.numpy()
        model.train_on_batch(X, Y)
        assert (model.layers[0].kernel.numpy() != before).all()
        own.save_own_variables(store := {})
        own.load_own_variables(store)
        again = type(own).from_config(own.get_config())
        saved = tw.train.Checkpoint(o=own).save(tmp_path / "of_rule")
        again.build(model.trainable_variables)
        tw.train.Checkpoint(o=again).restore(saved)
        assert again.iterations.numpy() == own.iterations.numpy() == 3
        return [own, again, pickle.loads(pickle.dumps(own))]

    return use


def build_momenta(self, variables):
    super(CLASSES["optimizers.Optimizer"], self).build(variables)
    self.momenta = self.add_optimizer_variables(variables, "momentum")


def update_step(self, gradient, variable, learning_rate):
    momentum = self.momenta[self._get_variable_index(variable)]
    self.assign(momentum, momentum * 0.9 - gradient * learning_rate)
    self.assign_add(variable, momentum)


def small_model():
    return keras.Sequential([keras.Input((3,)), layers.Dense(1)])


def use_loss(after, tmp_path):
    def call(self, y_true, y_pred):
        return tw.reduce_mean((y_true - y_pred) ** 2, -1)

    own = defined(keras.losses.Loss, after, call=call)()
    model = fitted(small_model(), loss=own)
    return [own, *[each.loss for each in reloaded(model, tmp_path)[:1]],
            type(own).from_config(own.get_config()), copy.deepcopy(own)]  # fmt: skip


def use_loss_of_ours(after, tmp_path):
    own = defined(keras.losses.MeanSquaredError, after)()
    fitted(small_model(), loss=own)
    return [own, type(own).from_config(own.get_config()), copy.deepcopy(own)]


def use_metric(after, tmp_path):
    def __init__(self, name="own", **kwargs):
        keras.metrics.Metric.__init__(self, name=name, **kwargs)
        self.seen = self.add_variable((), "zeros", name="seen")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.seen.assign_add(1.0)

    body = {"__init__": __init__, "update_state": update_state}
    body["result"] = lambda self: self.seen.read()
    base = type("Base", (keras.metrics.Metric,), body)
    own = defined(base, after)()
    reloaded(fitted(small_model(), metrics=[own]), tmp_path)
    assert own.result().numpy() == 1 and len(own.variables) == 1
    own.reset_state()
    return [
        own,
        type(own).from_config(own.get_config()),
        pickle.loads(pickle.dumps(own)),
    ]


def use_metric_of_ours(base):
    def use(after, tmp_path):
        own = defined(base, after)()
        reloaded(fitted(small_model(), metrics=[own]), tmp_path)
        assert np.isfinite(own.result().numpy()).all()
        return [own, copy.deepcopy(own)]

    return use


def use_callback(base, *args):
    def use(after, tmp_path):
        own = defined(base, after)(*[each(tmp_path) for each in args])
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", save_freq=1)
        fitted(small_model(), callbacks=[own, backup])
        return [
            own,
            pickle.loads(pickle.dumps(type(own)(*[x(tmp_path) for x in args]))),
        ]

    return use


def use_argument(argument, base, *args, **body):
    """An initializer, regularizer or constraint of a weight."""

    def use(after, tmp_path):
        own = defined(base, after, **body)(*args)
        dense = layers.Dense(1, **{argument: own})
        model = fitted(keras.Sequential([keras.Input((3,)), dense]))
        models = reloaded(model, tmp_path)
        return [getattr(each.layers[0], argument) for each in models]

    return use


def use_schedule(base, *args, **body):
    def use(after, tmp_path):
        own = defined(base, after, **body)(*args)
        model = fitted(small_model(), keras.optimizers.SGD(own))
        models = reloaded(model, tmp_path)
        return [own, models[1].optimizer._learning_rate]

    return use


def use_policy(after, tmp_path):
    own = defined(keras.DTypePolicy, after)("float32")
    model = fitted(keras.Sequential([keras.Input((3,)), layers.Dense(1, dtype=own)]))
    model.predict(X, verbose=0)
    return [own, pickle.loads(pickle.dumps(own))]


def use_module(after, tmp_path):
    def __init__(self):
        self.factor = tw.Variable(2.0)

    own = defined(type("Base", (tw.Module,), {"__init__": __init__}), after)()
    assert own.factor in own.variables
    saved = tw.train.Checkpoint(m=own).save(tmp_path / "ckpt")
    tw.train.Checkpoint(m=own).restore(saved).assert_consumed()
    return [own, pickle.loads(pickle.dumps(own)), copy.deepcopy(own)]


optimizers = keras.optimizers
USES = {
    "layers.Layer": use_layer,
    "models.Model": use_model,
    "models.Sequential": use_sequential,
    "Functional": use_functional,
    "optimizers.Optimizer": use_optimizer(
        optimizers.Optimizer, build=build_momenta, update_step=update_step
    ),
    "optimizers.SGD": use_optimizer(optimizers.SGD),
    "optimizers.Adam": use_optimizer(optimizers.Adam),
    "optimizers.RMSprop": use_optimizer(optimizers.RMSprop),
    "losses.Loss": use_loss,
    "losses.MeanSquaredError": use_loss_of_ours,
    "metrics.Metric": use_metric,
    "metrics.Mean": use_metric_of_ours(keras.metrics.BinaryAccuracy),
    "metrics.AUC": use_metric_of_ours(keras.metrics.AUC),
    "metrics.Precision": use_metric_of_ours(keras.metrics.Precision),
    "callbacks.Callback": use_callback(keras.callbacks.Callback),
    "callbacks.ModelCheckpoint": use_callback(
        keras.callbacks.ModelCheckpoint, lambda path: path / "best.keras"
    ),
    "initializers.Initializer": use_argument(
        "kernel_initializer",
        keras.initializers.Initializer,
        __call__=lambda self, shape, dtype=None, **kwargs: tw.ones(shape, dtype),
    ),
    "initializers.HeNormal": use_argument(
        "kernel_initializer", keras.initializers.HeNormal
    ),
    "regularizers.Regularizer": use_argument(
        "kernel_regularizer",
        keras.regularizers.Regularizer,
        __call__=lambda self, x: tw.reduce_sum(x * x),
    ),
    "constraints.Constraint": use_argument(
        "kernel_constraint",
        keras.constraints.Constraint,
        __call__=lambda self, x: x * 0.5,
    ),
    "optimizers.schedules.LearningRateSchedule": use_schedule(
        optimizers.schedules.LearningRateSchedule, __call__=lambda self, step: 0.1
    ),
    "optimizers.schedules.ExponentialDecay": use_schedule(
        optimizers.schedules.ExponentialDecay, 0.1, 2, 0.9
    ),
    "dtype_policies.DTypePolicy": use_policy,
    "Module": use_module,
    "layers.Dense": use_of_ours(layers.Dense, 2),
    "layers.BatchNormalization": use_of_ours(layers.BatchNormalization),
    "layers.Dropout": use_of_ours(layers.Dropout, 0.5),
    "layers.Conv1D": use_of_ours(layers.Conv1D, 2, 2, shape=(3, 1)),
    "layers.MaxPooling1D": use_of_ours(layers.MaxPooling1D, shape=(3, 1)),
    "layers.UpSampling1D": use_of_ours(layers.UpSampling1D, shape=(3, 1)),
    "layers.SpatialDropout1D": use_of_ours(layers.SpatialDropout1D, 0.5, shape=(3, 1)),
    "layers.LSTM": use_of_ours(layers.LSTM, 2, shape=(3, 1)),
    "layers.SimpleRNN": use_of_ours(layers.SimpleRNN, 2, shape=(3, 1)),
    "layers.LSTMCell": use_cell(layers.LSTMCell),
    "layers.GRUCell": use_cell(layers.GRUCell),
    "layers.RandomFlip": use_of_ours(layers.RandomFlip, shape=(3, 1, 1)),
    "layers.Rescaling": use_of_ours(layers.Rescaling, 0.5),
}


OF_TESTS = {
    "dense",
    "factor",
    "momenta",
    "scale",
    "seen",
}  # attributes of classes above


@pytest.mark.parametrize("path", USES)
def test_objects_have_no_more_names_than_keras_after_use(path, tmp_path):
    for each in USES[path](lambda base: {}, tmp_path):
        cls = type(each)
        bases = [base for base in RECORDED if issubclass(cls, RECORDED[base])]
        known = EXTRAS.union(extension_points(cls), *map(keras_names, [path, *bases]))
        for base in (cls, *[RECORDED[base] for base in bases]):
            known |= {*constructor_arguments(base)}
        assert {n for n in vars(each) if not n.startswith(PREFIX)} - known <= OF_TESTS


def kept(found, value):
    """Whether an attribute has a value, or holds layers of the same classes."""
    if isinstance(value, list):
        return [type(each) for each in found] == [type(each) for each in value]
    return found == value


def free_names(path):
    """The names to try for a class, of which none is reserved."""
    cls = CLASSES.get(path, keras.Model)
    names = unknown_names(path) if path in CLASSES else set()
    names |= {*ORDINARY} - keras_names(path)
    taken = EXTRAS | {
        n for n in constructor_arguments(cls) if n not in keras_names(path)
    }
    return sorted(n for n in names - taken if not n.startswith(PREFIX))


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("path", USES)
def test_an_attribute_may_have_any_name_that_keras_lacks(path, kind, tmp_path):
    in_turn = itertools.cycle(VALUES[kind]())
    first = list(USES).index(path) % 3
    names = dict(zip(free_names(path), itertools.islice(in_turn, first, None)))
    for each in USES[path](as_attributes(names), tmp_path):
        assert [n for n in names if not kept(getattr(each, n), names[n])] == []


@pytest.mark.parametrize("path", USES)
def test_a_method_may_have_any_name_that_keras_lacks(path, tmp_path):
    cls = CLASSES.get(path, keras.Model)
    names = {*free_names(path)} - extension_points(cls)
    (one, *others) = USES[path](as_methods(names), tmp_path)
    for each in (one, *others):
        assert [n for n in names if getattr(each, n)(1, two=2) != "mine"] == []
    check_reserved(cls, one)


def check_reserved(cls, one):
    """A user may use no reserved name that a class, or an object of it after use, has."""
    names = {n for n in {*dir(cls), *vars(one)} if n.startswith(PREFIX)}
    for name in [*names, f"{PREFIX}anything"]:
        refused = rf"Own: names that start with '_tw_' are reserved, rename '{name}'"
        with pytest.raises(AttributeError, match=refused):
            setattr(one, name, 3)
        with pytest.raises(TypeError, match=refused):
            type("Own", (cls,), {name: 3})
