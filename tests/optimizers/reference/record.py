"""Writes steps and configs of Keras' optimizers, to hold ours against.

Needs Keras 3 and TensorFlow, which tapewright does not:

    KERAS_BACKEND=tensorflow python tests/optimizers/reference/record.py
    KERAS_BACKEND=jax python tests/optimizers/reference/record.py

An entry ``RULE|EXTRA|KIND`` of ``keras.npz`` or ``more.npz`` holds the entries of both
variables after each of eight steps, then those of the state (but the counts and the
learning rate) after the last. Gradients and starting values come from `problem`.
``more.npz`` also has the learning rates of `SCHEDULES` at `STEPS_SEEN`, and a run with a
dynamic loss scale; ``configs.json`` what ``serialize`` gives for each rule and schedule.
``own.npz`` has the same entries for the rules of `own_rules`.
"""

import json
import os
import pathlib

import numpy as np

RULES = {
    "sgd": ("SGD", {"learning_rate": 0.1}),
    "momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"learning_rate": 0.01}),
    "amsgrad": ("Adam", {"learning_rate": 0.01, "amsgrad": True}),
}
MORE_RULES = {
    "adamw": ("AdamW", {"learning_rate": 0.01}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.01}),
    "rmsprop_full": (
        "RMSprop",
        {"learning_rate": 0.01, "rho": 0.8, "momentum": 0.7, "centered": True},
    ),
    "adamax": ("Adamax", {"learning_rate": 0.01}),
    "nadam": ("Nadam", {"learning_rate": 0.01}),
    "adagrad": ("Adagrad", {"learning_rate": 0.1}),
    "adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "lion": ("Lion", {"learning_rate": 0.01}),
    "ftrl": ("Ftrl", {"learning_rate": 0.1}),
    "ftrl_full": (
        "Ftrl",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.7,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.02,
            "l2_shrinkage_regularization_strength": 0.01,
            "beta": 0.1,
        },
    ),
    "lamb": ("Lamb", {"learning_rate": 0.01}),
    "adafactor": ("Adafactor", {"learning_rate": 0.01}),
    "adafactor_free": (
        "Adafactor",
        {"learning_rate": 0.5, "relative_step": False, "clip_threshold": 0.3},
    ),
    "muon": ("Muon", {"learning_rate": 0.01}),
    "muon_plain": (
        "Muon",
        {"learning_rate": 0.01, "nesterov": False, "rms_rate": None, "ns_steps": 3},
    ),
}
# Runs that fail in Keras: it multiplies dtypes that differ, or takes no sparse gradient.
DENSE_RULES = ("adafactor", "adafactor_free", "muon", "muon_plain")
NOT_OF_KERAS = {(rule, "sparse") for rule in DENSE_RULES}
NOT_OF_KERAS |= {("muon", "float64"), ("muon_plain", "float64")}
# Recorded on JAX: on TensorFlow Keras 3.15 takes the new momentum for the old one.
JAX_RULES = {
    "schedule_free": (
        "ScheduleFreeAdamW",
        {"learning_rate": 0.01, "beta_2": 0.9, "warmup_steps": 3},
    ),
    "schedule_free_cold": (
        "ScheduleFreeAdamW",
        {"learning_rate": 0.1, "beta_1": 0.6, "beta_2": 0.9},
    ),
}
EXTRAS = {
    "plain": {},
    "clipnorm": {"clipnorm": 1.5},
    "global_clipnorm": {"global_clipnorm": 2.0},
    "clipvalue": {"clipvalue": 0.5},
    "weight_decay": {"weight_decay": 0.05},
}
MORE_EXTRAS = {
    "ema": {"use_ema": True, "ema_momentum": 0.8},
    "ema_overwrite": {
        "use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 3,
    },
    "accumulate": {"gradient_accumulation_steps": 3},
    "accumulate_all": {
        "gradient_accumulation_steps": 3, "use_ema": True, "ema_momentum": 0.8,
        "ema_overwrite_frequency": 2, "weight_decay": 0.05, "global_clipnorm": 1.0,
        "loss_scale_factor": 3.0,
    },
    "loss_scale": {"loss_scale_factor": 3.0, "clipnorm": 0.5},
    "loss_scale_cut": {"loss_scale_factor": 3.0, "clipvalue": 0.2},
}  # fmt: skip
ALL_RULES, ALL_EXTRAS = RULES | MORE_RULES | JAX_RULES, EXTRAS | MORE_EXTRAS
# Keras cannot scale sparse gradients.
SPARSE_EXTRAS = ("ema", "ema_overwrite", "accumulate")
# A repeated row is left out of the sparse runs of rules that square: Keras 3 squares its
# values before it adds them up, which is not the square of the gradient. It also clips
# them before, so where gradients are clipped Keras gets the sum of each row (`summed`).
# Of a "mixed" one the variables are float64, the gradients float32.
KINDS = ("float32", "float64", "sparse", "repeated")
OWN_RULES = {
    "Momentum": 0.1,
    "Moments": 0.01,
    "RootMeanSquare": 0.01,
    "Signs": 0.01,
    "Factored": 0.02,
    "Product": 0.1,
}
STEPS = 8
SHAPES = (4, 2), (3,)
# Each with the arguments of the class of its name.
SCHEDULES = {
    "exponential": ("ExponentialDecay", (0.5, 10, 0.8)),
    "exponential_stairs": ("ExponentialDecay", (0.5, 10, 0.8, True)),
    "piecewise": ("PiecewiseConstantDecay", ([5, 12, 30], [0.5, 0.25, 0.1, 0.01])),
    "piecewise_float": ("PiecewiseConstantDecay", ([5.5, 12.0], [0.5, 0.25, 0.1])),
    "polynomial": ("PolynomialDecay", (0.5, 20, 0.01, 2.0)),
    "polynomial_cycle": ("PolynomialDecay", (0.5, 20, 0.01, 0.5, True)),
    "inverse": ("InverseTimeDecay", (0.5, 10, 0.8)),
    "inverse_stairs": ("InverseTimeDecay", (0.5, 10, 0.8, True)),
    "cosine": ("CosineDecay", (0.5, 30, 0.1)),
    "cosine_warm": ("CosineDecay", (0.1, 30, 0.1, "warm", 0.5, 8)),
    "restarts": ("CosineDecayRestarts", (0.5, 10)),
    "restarts_even": ("CosineDecayRestarts", (0.5, 10, 1.0, 0.7, 0.1)),
    "restarts_slow": ("CosineDecayRestarts", (0.5, 7, 1.5, 0.9, 0.05)),
}
STEPS_SEEN = (
    0,
    1,
    2,
    5,
    6,
    8,
    9,
    10,
    11,
    12,
    13,
    20,
    21,
    29,
    30,
    31,
    38,
    39,
    69,
    70,
    99,
)
SCALED = {"initial_scale": 8.0, "dynamic_growth_steps": 2}


def wanted():
    """``(file, rule, extra, kind)`` of every run."""
    for rule in RULES:
        for extra in EXTRAS:
            for kind in KINDS:
                if kind != "repeated" or RULES[rule][0] != "Adam":
                    yield "keras.npz", rule, extra, kind
        yield "own.npz", rule, "plain", "mixed"
    for rule in MORE_RULES:
        for kind in ("float32", "float64", "sparse"):
            if (rule, kind) not in NOT_OF_KERAS:
                yield "more.npz", rule, "plain", kind
        if rule != "adamw":
            yield "more.npz", rule, "weight_decay", "float32"
        kind = "float32" if rule in DENSE_RULES else "sparse"
        yield "more.npz", rule, "global_clipnorm", kind
    for rule in ("sgd", "nesterov", "adam", "nadam"):
        for extra in MORE_EXTRAS:
            yield "more.npz", rule, extra, "float32"
            if extra in SPARSE_EXTRAS:
                yield "more.npz", rule, extra, "sparse"


def wanted_of_own():
    """``(rule, extra, kind)`` of every run of an own rule."""
    for rule in OWN_RULES:
        for kind in ("float32", "float64"):
            yield rule, "plain", kind
    for rule in ("Momentum", "Moments", "Product"):
        for extra in (EXTRAS | MORE_EXTRAS).keys() - {"plain"}:
            yield rule, extra, "float32"


def problem(kind):
    """Starting values, and for each step the two gradients.

    The first is dense, or ``(values, indices)`` where the kind is sparse.
    """
    random = np.random.default_rng(3)
    dtype = "float64" if kind == "float64" else "float32"
    starts = [random.normal(size=s).astype(dtype) for s in SHAPES]
    if kind == "mixed":
        starts = [start.astype("float64") for start in starts]
    steps = []
    for step in range(STEPS):
        first = random.normal(size=SHAPES[0]).astype(dtype)
        second = (random.normal(size=SHAPES[1]) * (1 + step % 3)).astype(dtype)
        if kind in ("sparse", "repeated"):
            rows = random.permutation(SHAPES[0][0])[:3]
            if kind == "repeated":
                rows[2] = rows[0]
            first = first[:3], rows
        steps.append((first, second))
    return starts, steps


def summed(steps):
    """The same steps with dense gradients in place of sparse ones."""
    dense_steps = []
    for (values, rows), second in steps:
        dense = np.zeros(SHAPES[0], values.dtype)
        np.add.at(dense, rows, values)
        dense_steps.append((dense, second))
    return dense_steps


def scaled_problem():
    """As `problem`, but the third and the fifth step have gradients that run over."""
    starts, steps = problem("float32")
    steps[2][1][1], steps[4][0][0, 1] = np.inf, np.nan
    return starts, steps


def take(optimizer, starts, steps):
    import keras

    if keras.config.backend() == "jax":
        convert = keras.ops.convert_to_tensor
    else:
        import tensorflow as tf

        convert = tf.constant
    variables = [keras.Variable(s, dtype=s.dtype.name) for s in starts]
    seen = []
    for first, second in steps:
        if isinstance(first, tuple):
            values, rows = map(convert, first)
            first = tf.IndexedSlices(values, rows, convert(SHAPES[0]))
        else:
            first = convert(first)
        optimizer.apply([first, convert(second)], variables)
        seen += [np.asarray(v).ravel() for v in variables]
    seen += [np.asarray(v).ravel() for v in optimizer.variables[2:]]
    return np.concatenate(seen)


def record_on_jax():
    import keras

    found = {}
    for rule, (name, arguments) in JAX_RULES.items():
        for extra in EXTRAS:
            options = arguments | EXTRAS[extra]
            optimizer = getattr(keras.optimizers, name)(**options)
            found[f"{rule}|{extra}|float32"] = take(optimizer, *problem("float32"))
    path = pathlib.Path(__file__).with_name("jax.npz")
    np.savez_compressed(path, version=keras.__version__, **found)


def main():
    from own_rules import rules

    import keras

    if keras.config.backend() == "jax":
        record_on_jax()
        return
    files, configs = {"keras.npz": {}, "more.npz": {}, "own.npz": {}}, {}
    for rule, extra, kind in wanted_of_own():
        optimizer = rules(keras)[rule](OWN_RULES[rule], **ALL_EXTRAS[extra])
        run = take(optimizer, *problem(kind))
        files["own.npz"][f"{rule}|{extra}|{kind}"] = run
    for file, rule, extra, kind in wanted():
        name, arguments = ALL_RULES[rule]
        optimizer = getattr(keras.optimizers, name)(**arguments, **ALL_EXTRAS[extra])
        starts, steps = problem(kind)
        if kind == "repeated" and "clip" in extra:
            steps = summed(steps)
        files[file][f"{rule}|{extra}|{kind}"] = take(optimizer, starts, steps)
    more = files["more.npz"]
    inner = keras.optimizers.Adam(0.01)
    scaled = keras.optimizers.LossScaleOptimizer(inner, **SCALED)
    more["scaled"] = take(scaled, *scaled_problem())
    for name, (kind, arguments) in SCHEDULES.items():
        schedule = getattr(keras.optimizers.schedules, kind)(*arguments)
        rates = [float(schedule(step)) for step in STEPS_SEEN]
        more[f"schedule {name}"] = np.array(rates, np.float32)
        configs[name] = keras.optimizers.schedules.serialize(schedule)
    for name, _ in ALL_RULES.values():
        keras.utils.clear_session()  # names are not numbered
        optimizer = getattr(keras.optimizers, name)()
        configs[name] = keras.optimizers.serialize(optimizer)
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.Ftrl())
    configs["LossScaleOptimizer"] = keras.optimizers.serialize(scaled)
    text = json.dumps(configs, indent=1, sort_keys=True)
    pathlib.Path(__file__).with_name("configs.json").write_text(text + "\n")
    for file, found in files.items():
        path = pathlib.Path(__file__).with_name(file)
        np.savez_compressed(path, version=keras.__version__, **found)
        print(path, os.path.getsize(path), "bytes, Keras", keras.__version__)


if __name__ == "__main__":
    main()
