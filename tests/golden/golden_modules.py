"""Cases of `saved_model`: functions, variables and optimizers in a file."""

import numpy as np
from golden_cases import Case, freshly, now, wave

import tapewright as tw

__all__ = ["CASES"]


def signed(*shapes, dtype="float32"):
    specs = [
        s if isinstance(s, tw.TensorSpec) else tw.TensorSpec(s, dtype) for s in shapes
    ]
    return tw.function(input_signature=specs)


def holding(**parts):
    module = tw.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def derivatives(f, *arguments):
    """A function's value, its gradients, and those of these."""
    x = [tw.constant(each) for each in arguments]
    told = {}
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.add_n([tw.reduce_sum(z * z) for z in tw.nest.flatten(f(*x))])
        first = tape.gradient(y, x)
        both = tw.add_n([tw.reduce_sum(g * g) / 8.0 for g in first if g is not None])
    second = outer.gradient(both, x)
    for name, values in (("value", [y]), ("first", first), ("second", second)):
        for i, each in enumerate(values):
            told[f"{name}/{i}"] = tw.convert_to_tensor(0.0 if each is None else each)
    return told


def below(name, told):
    return {f"{name}/{key}": value for key, value in told.items()}


# ------------------------------------------------------------------------- programs


def programs():
    """One function for each kind of thing that a graph may hold."""
    table = wave(5, 2)
    weights = tw.Variable(wave(3, 2), name="weights")
    count = tw.Variable(0, dtype="int64", trainable=False, name="count")

    @signed(None)
    def any_rank(x):
        return tw.reduce_sum(x * 2.0, -1) + tw.cast(tw.rank(x), "float32")

    @signed([None, None], [None])
    def shapes(x, y):
        n, m = tw.shape(x)[0], tw.shape(x)[1]
        z = tw.reshape(x, [n * m]) + tw.ones([n * m])
        return tw.concat([z, y], 0), tw.zeros([n + 1, m // 2]), tw.range(2 * n)

    @signed([None])
    def branches(x):
        total = tw.reduce_sum(x)
        a = tw.cond(total > 0, lambda: x * 2.0, lambda: tw.exp(x))
        index = tw.cast(tw.size(x), "int32") % 3
        return a + tw.switch_case(index, [lambda: x, lambda: -x, lambda: x * x])

    @signed([None], tw.TensorSpec([], "int32"))
    def loops(x, n):
        _, y = tw.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tw.sin(y) + x),
                             (tw.constant(0), x))  # fmt: skip
        return y

    @signed([None, 3])
    def mapped(x):
        first = tw.map_fn(lambda row: tw.reduce_sum(row) * row, x)
        second = tw.scan(lambda a, row: 0.5 * a + row, x)
        return first, second, tw.vectorized_map(lambda row: tw.tanh(row), x)

    @signed([None])
    def arrays(x):
        array = tw.TensorArray("float32", 3, element_shape=[None])
        for i in range(3):
            array = array.write(i, x * float(i))
        return array.stack(), array.read(1)

    @signed([None, 2])
    def checked(x):
        tw.print("sum", tw.reduce_sum(x))
        tw.debugging.assert_less(tw.reduce_max(x), 100.0, message="too large")
        tw.Assert(tw.reduce_min(x) > -100.0, [x])
        return tw.matmul(x, weights, transpose_b=True)

    @signed([None], dtype="int32")
    def looked_up(i):
        return tw.gather(tw.constant(table), i), tw.one_hot(i, 4), count.assign_add(2)

    @signed([2, 4, 4, 1])
    def convolved(x):
        kernel = tw.constant(wave(2, 2, 1, 2))
        y = tw.nn.relu(tw.nn.conv2d(x, kernel, 1, "SAME"))
        return tw.nn.max_pool2d(y, 2, 2, "VALID"), tw.nn.softmax(y, -1)

    @signed([3, 3])
    def algebra(x):
        a = tw.matmul(x, x, transpose_b=True) + 3.0 * tw.eye(3)
        wide = tw.signal.fft(tw.complex(x, tw.zeros_like(x)))
        return (
            tw.linalg.cholesky(a),
            tw.linalg.inv(a),
            tw.abs(wide),
            tw.einsum("ij,kj->ik", x, x),
        )

    @signed([None, 4])
    def sorted_(x):
        top = tw.nn.top_k(x, 2)
        mask = tw.where(x > 0.0, x, tw.zeros_like(x))
        return (
            top.values,
            top.indices,
            tw.sort(x, -1),
            tw.cumsum(mask, 1),
            x[:, 1:3],
            x[::-1],
        )

    @tw.function
    def of_kinds(x, mode="add", flag=True, *, parts=None):
        y = x + 1.0 if mode == "add" else x * 3.0
        return {
            "y": y if flag else -y,
            "parts": [y, (None if parts is None else parts["k"][0])],
        }

    of_kinds(tw.constant(1.0))
    of_kinds(tw.constant([1.0, 2.0]), "times", False)
    of_kinds(tw.constant(1.0), parts={"k": [tw.constant(2.0)]})
    return holding(
        any_rank=any_rank, shapes=shapes, branches=branches, loops=loops, mapped=mapped,
        arrays=arrays, checked=checked, looked_up=looked_up, convolved=convolved,
        algebra=algebra, sorted_=sorted_, of_kinds=of_kinds, weights=weights, count=count,
    )  # fmt: skip


def of_programs(module):
    calls = {
        "any_rank": [(wave(3),), (wave(2, 3),), (wave(1, 2, 2),)],
        "shapes": [(wave(2, 3), wave(2)), (wave(1, 4), wave(1))],
        "branches": [(wave(4),), (wave(3),), (wave(5),)],
        "loops": [(wave(3), 4), (wave(2), 0)],
        "mapped": [(wave(4, 3),)], "arrays": [(wave(3),)], "checked": [(wave(3, 2),)],
        "looked_up": [(np.int32([0, 3]),), (np.int32([1]),)],
        "convolved": [(wave(2, 4, 4, 1),)], "algebra": [(wave(3, 3),)],
        "sorted_": [(wave(2, 4),)],
    }  # fmt: skip
    told = now("kept", [module.weights, module.count])
    for name, listed in calls.items():
        for i, arguments in enumerate(listed):
            results = getattr(module, name)(*[tw.constant(a) for a in arguments])
            for j, each in enumerate(tw.nest.flatten(results)):
                told[f"{name}/{i}/{j}"] = tw.convert_to_tensor(each)
    for name in ("any_rank", "branches", "mapped", "arrays", "convolved"):
        told |= below(f"of/{name}", derivatives(getattr(module, name), *calls[name][0]))
    told |= below(
        "of/loops", derivatives(lambda x: module.loops(x, tw.constant(3)), wave(2))
    )
    try:
        module.checked(tw.constant(wave(3, 2) * 90.0))
    except tw.errors.InvalidArgumentError as error:
        told["message"] = "too large" in str(error)
    told["kinds"] = [
        module.of_kinds(tw.constant(5.0)),
        module.of_kinds(tw.constant([5.0, 1.0]), "times", False),
        module.of_kinds(tw.constant(5.0), parts={"k": [tw.constant(4.0)]}),
    ]  # fmt: skip
    return told


# ------------------------------------------------------------------------- gradients


def gradients():
    @tw.custom_gradient
    def cube(x):
        return x * x * x, lambda g: 3.5 * g * x * x

    factor = tw.Variable(2.0, name="factor")

    @tw.custom_gradient
    def scaled(x):
        def gradient(g, variables=None):
            return g * 5.0 * factor, [tw.reduce_sum(g * x) * 7.0]

        return x * factor, gradient

    @signed([None])
    def plain(x):
        return tw.clip_by_norm(cube(x), 3.0) + x

    @signed([None])
    def with_variable(x):
        return scaled(cube(x))

    @signed([None])
    def inside(x):
        return tw.cond(tw.reduce_sum(x) > 0, lambda: cube(x), lambda: x)

    remade = tw.recompute_grad(lambda x: tw.sin(cube(x)) * x)

    @signed([None])
    def recomputed(x):
        return remade(x)

    @signed([None])
    def stopped(x):
        return tw.stop_gradient(x) * x + tw.grad_pass_through(tw.round)(x)

    return holding(plain=plain, with_variable=with_variable, inside=inside,
                   recomputed=recomputed, stopped=stopped, factor=factor)  # fmt: skip


def of_gradients(module):
    told = {}
    for name in ("plain", "with_variable", "inside", "recomputed", "stopped"):
        f = getattr(module, name)
        told |= below(name, derivatives(f, wave(4)))
    x = tw.constant(wave(3))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(module.with_variable(x) ** 2)
    told["factor"] = tape.gradient(y, module.factor)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = module.inside(x)
    told["jacobian"] = tape.jacobian(y, x)
    return told


def write_without(folder):
    options = tw.saved_model.SaveOptions(experimental_custom_gradients=False)
    module = gradients()
    tw.saved_model.save(module, folder / "without_gradients.h5", options=options)
    return module


def of_module_without(module):
    return {name: getattr(module, name)(tw.constant(wave(4)))
            for name in ("plain", "with_variable", "inside")}  # fmt: skip


# ------------------------------------------------------------------------- training


def trainer():
    """Steps of two optimizers; random numbers; nested modules, lists and dicts."""
    w = tw.Variable(wave(3, 2), name="w")
    b = tw.Variable(np.zeros(2, "float32"), name="b")
    table = tw.Variable(wave(4, 2), name="table")
    rate = tw.keras.optimizers.schedules.PiecewiseConstantDecay(
        [2, 5], [0.1, 0.05, 0.01]
    )
    adam = tw.keras.optimizers.AdamW(rate, use_ema=True, ema_momentum=0.8, amsgrad=True,
                                     ema_overwrite_frequency=3)  # fmt: skip
    scaled = tw.keras.optimizers.LossScaleOptimizer(
        tw.keras.optimizers.Lamb(0.1), 64.0, dynamic_growth_steps=2
    )

    def loss_of(x, y):
        return tw.reduce_mean((tw.tanh(tw.matmul(x, w)) + b - y) ** 2)

    @signed([None, 3], [None, 2])
    def train(x, y):
        with tw.GradientTape() as tape:
            loss = loss_of(x, y)
        adam.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
        return loss

    @signed([None], dtype="int32")
    def train_rows(rows):
        with tw.GradientTape() as tape:
            loss = scaled.scale_loss(tw.reduce_sum(tw.gather(table, rows) ** 2))
        scaled.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    draws = tw.random.Generator.from_seed(4)

    @signed([None])
    def noisy(x):
        own = draws.normal(tw.shape(x)) + draws.uniform([1], 0.0, 2.0)
        fixed = tw.random.stateless_uniform([2], [1, 2])
        return x + own, fixed, draws.uniform([3], 0, 9, "int32")

    inner = holding(v=tw.Variable([1, 2], name="v"), train=train)
    module = holding(
        train=train, train_rows=train_rows, noisy=noisy, w=w, b=b, table=table, draws=draws,
        optimizers=[adam, scaled], parts={"inner": inner, "again": [inner, (b, 3)], 2: "two"},
    )  # fmt: skip
    for _ in range(3):
        module.train(tw.constant(wave(4, 3)), tw.constant(wave(4, 2)))
        module.train_rows(tw.constant([0, 2, 2]))
        module.noisy(tw.constant(wave(2)))
    return module


def of_trainer(module):
    own = [v for v in module.variables if v.name != "state"]  # of generators
    states = [v for each in module.optimizers for v in each.variables]
    told = now("kept", [*own, *states])
    told["paths"] = [v.path for v in [*own, *states]]
    told["shared"] = module.parts["again"][0] is module.parts["inner"]
    told["plain"] = [module.parts["again"][1][1], module.parts[2]]
    told["configs"] = [each.get_config() for each in module.optimizers]
    for step in range(3):
        told[f"loss/{step}"] = module.train(
            tw.constant(wave(4, 3)), tw.constant(wave(4, 2))
        )
        told[f"rows/{step}"] = module.train_rows(tw.constant([1, 2, 2]))
        for i, each in enumerate(module.noisy(tw.constant(wave(3)))):
            told[f"noisy/{step}/{i}"] = each
    return told | now("trained", [*own, *states])


# ------------------------------------------------------------------------- models


def write_model(folder):
    model = tw.keras.Sequential([
        tw.keras.Input((3,)), tw.keras.layers.Dense(2, "gelu", name="a"),
        tw.keras.layers.Dropout(0.5, name="b"),
    ], name="served")  # fmt: skip
    tw.saved_model.save(model, folder / "served.h5")
    return model


def of_served(model):
    x = tw.constant(wave(5, 3))
    told = {"outputs": model(x), "paths": [v.path for v in model.variables]}
    return told | now("kept", model.variables)


def write_recurrent(folder):
    """A compiled model: layers in layers, lists of weights, and its optimizer."""
    layers = tw.keras.layers
    freshly()
    inputs = tw.keras.Input((3, 2), name="seq")
    x = layers.Bidirectional(layers.LSTM(2, return_sequences=True), name="both")(inputs)
    x = layers.TimeDistributed(layers.Dense(2), name="each")(x)
    x = layers.RNN([layers.GRUCell(2), layers.LSTMCell(2)], name="cells")(x)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.SpectralNormalization(layers.Dense(1), name="spectral")(x)
    model = tw.keras.Model(inputs, x, name="recurrent")
    model.compile(tw.keras.optimizers.SGD(0.01, momentum=0.5), "mse", metrics=["mae"])
    model.fit(wave(4, 3, 2), wave(4, 1), verbose=0)
    tw.saved_model.save(model, folder / "recurrent.h5")
    return model


def of_recurrent(model):
    x = tw.constant(wave(3, 3, 2))
    told = now("kept/slots", model.optimizer.variables)
    for each in model.variables:
        told[f"kept/{each.path}"] = np.array(each.numpy())
    return told | below("of", derivatives(model, x))


def of_signatures(loaded):
    told = {"names": sorted(loaded.signatures)}
    for name in told["names"]:
        f = loaded.signatures[name]
        _, specs = f.structured_input_signature
        told[f"specs/{name}"] = sorted([str(spec) for spec in specs.values()])
        arguments = {key: tw.constant(wave(2)) for key in specs}
        told |= {f"{name}/{key}": value for key, value in f(**arguments).items()}
    return told


def write_signatures(folder):
    specs = [
        tw.TensorSpec([None], name="left"),
        {"k": tw.TensorSpec([None], name="right")},
    ]

    @tw.function(input_signature=specs)
    def f(x, y):
        return x - 2.0 * y["k"], x

    @tw.function(input_signature=[tw.TensorSpec([None])])
    def g(x):
        return {"double": x * 2.0 + tw.random.normal([2])}  # of the global generator

    path = folder / "signatures.h5"
    tw.random.set_seed(3)
    tw.saved_model.save(holding(f=f, g=g), path, signatures={"f": f, "g": g})
    return tw.saved_model.load(path)


def module_case(name, make, ask):
    def write(folder):
        module = make()
        tw.saved_model.save(module, folder / f"{name}.h5")
        return module

    return Case(name, [f"{name}.h5"], write, tw.saved_model.load, ask)


CASES = [
    module_case("programs", programs, of_programs),
    module_case("gradients", gradients, of_gradients),
    Case("without_gradients", ["without_gradients.h5"], write_without, tw.saved_model.load,
         of_module_without),
    module_case("trainer", trainer, of_trainer),
    Case("served", ["served.h5"], write_model, tw.saved_model.load, of_served),
    Case("recurrent", ["recurrent.h5"], write_recurrent, tw.saved_model.load, of_recurrent),
    Case("signatures", ["signatures.h5"], write_signatures, tw.saved_model.load, of_signatures),
]  # fmt: skip
