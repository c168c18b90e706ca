"""`saved_model`: modules with their functions and variables in one file, and back."""

import collections
import itertools
import json
import subprocess
import sys
import warnings

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.core.errors import SavingError

Pair = collections.namedtuple("Pair", "a b")
X = np.array([[1.0, 2.0], [0.5, -1.0]], np.float32)


@tw.custom_gradient
def cube(x):
    return x * x * x, lambda g: 3.5 * g * x * x


class Net(tw.Module):
    def __init__(self):
        self.w = tw.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.parts = [tw.Module(), tw.Module()]
        self.parts[0].b = tw.Variable(5.0, name="b")
        self.parts[1].b = tw.Variable(6.0, trainable=False, name="frozen")
        self.table = {"first": self.parts[0], "n": 3}

    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def __call__(self, x):
        return cube(tw.matmul(x, self.w)) + self.parts[0].b

    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def loss(self, x):
        return tw.reduce_sum(self(x) ** 2)


def holding(**functions):
    module = tw.Module()
    for name, function in functions.items():
        setattr(module, name, function)
    return module


def again(module, folder, **options):
    path = folder / "module"
    tw.saved_model.save(module, path, **options)
    return tw.saved_model.load(path)


def fresh(source):
    """What a new interpreter prints."""
    code = f"import json\nimport numpy as np\nimport tapewright as tw\n{source}"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --------------------------------------------------------------------------- objects


def test_a_loaded_module_has_the_same_attributes_shared_as_before(tmp_path):
    net = again(Net(), tmp_path)
    assert repr(net) == "<loaded Net>"
    assert net.table["first"] is net.parts[0] and net.table["n"] == 3
    assert [v.path for v in net.variables] == ["w", "b", "frozen"]
    assert [v.path for v in net.trainable_variables] == ["w", "b"]
    assert net.submodules == tuple(net.parts)
    np.testing.assert_array_equal(net(X), Net()(X))


def test_variables_trained_after_loading_are_used(tmp_path):
    nets = [Net(), again(Net(), tmp_path)]
    for net in nets:
        optimizer = tw.keras.optimizers.Adam(0.1)
        for _ in range(3):
            with tw.GradientTape() as tape:
                loss = net.loss(X)
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    np.testing.assert_array_equal(nets[0].w, nets[1].w)
    np.testing.assert_array_equal(nets[0](X), nets[1](X))


def test_a_loaded_module_is_saved_again_as_it_was(tmp_path):
    net = Net()
    once = again(net, tmp_path, signatures=net.loss)
    twice = again(once, tmp_path)
    for net in (once, twice):
        with tw.GradientTape() as tape:
            loss = net.loss(X)
        gradients = tape.gradient(loss, net.trainable_variables)
        np.testing.assert_array_equal(gradients[0], _gradients(Net())[0])
    assert list(twice.signatures) == ["serving_default"]


def _gradients(net):
    with tw.GradientTape() as tape:
        loss = net.loss(X)
    return tape.gradient(loss, net.trainable_variables)


def test_variables_that_no_attribute_holds_are_kept(tmp_path):
    hidden = tw.Variable(3.0)
    module = holding(f=tw.function(lambda x: x * hidden))
    module.f(tw.constant(2.0))
    loaded = again(module, tmp_path)
    assert float(loaded.f(tw.constant(2.0))) == 6.0
    assert len(loaded.variables) == 1


def test_a_module_without_functions_keeps_its_variables(tmp_path):
    module = holding(v=tw.Variable([1, 2]), empty=[])
    loaded = again(module, tmp_path)
    np.testing.assert_array_equal(loaded.v, [1, 2])
    with pytest.raises(TypeError, match="without a traced __call__"):
        loaded(1.0)


def test_a_model_with_known_inputs_is_called_for_inference(tmp_path):
    model = tw.Sequential([tw.Input((2,)), tw.layers.Dense(3), tw.layers.Dropout(0.5)])
    model.compile("sgd", "mse")
    model.fit(X, np.ones((2, 3), np.float32), verbose=0)
    loaded = again(model, tmp_path)
    np.testing.assert_array_equal(loaded(X), model(X))
    assert loaded.signatures["serving_default"](inputs=X)["output_0"].shape == (2, 3)


# ------------------------------------------------------------------------- functions


def test_a_loaded_function_is_differentiated_mapped_and_traced(tmp_path):
    net, loaded = Net(), again(Net(), tmp_path)

    def results(net):
        x = tw.constant(X)
        with tw.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = net(x)
        yield tape.jacobian(y, x)
        yield tape.batch_jacobian(y, x)
        yield tw.vectorized_map(lambda row: net(row[None])[0], x)
        yield tw.function(lambda x: net(x) * 2.0)(x)
        with tw.autodiff.ForwardAccumulator(x, tw.ones_like(x)) as forward:
            y = net(x)
        yield forward.jvp(y)

    for found, wanted in zip(results(loaded), results(net), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def arranged(x, y=2.0, *, flag=True, nest=None):
    r = x * y + (1.0 if flag else 0.0)
    r = r if nest is None else r + nest["k"][0]
    return {"r": r, "list": [r, None, (r * 2.0,)], "pair": Pair(r, -r)}


CALLS = [
    ((tw.constant(1.0),), {}),
    ((tw.constant(1.0), 4.0), {"flag": False}),
    ((), {"x": tw.constant([1.0, 2.0]), "nest": {"k": [tw.constant(2.0)]}}),
    ((tw.constant(1.0), tw.constant(5.0)), {}),
]


@pytest.fixture
def called(tmp_path):
    function = tw.function(arranged)
    for args, kwargs in CALLS:
        function(*args, **kwargs)
    return function, again(holding(f=function), tmp_path).f


def test_a_function_without_a_signature_is_kept_for_what_it_was_called_with(called):
    function, loaded = called
    for args, kwargs in CALLS:
        found = loaded(*args, **kwargs)
        assert str(found) == str(function(*args, **kwargs))
        assert found["pair"]._fields == ("a", "b") and type(found["list"][2]) is tuple


def test_arguments_are_converted_to_what_was_saved(called):
    _, loaded = called
    assert float(loaded(np.float32(3.0))["r"]) == 7.0
    assert float(loaded(x=3.0, y=5.0)["r"]) == 16.0


def test_another_call_is_refused_with_the_signatures_that_there_are(called):
    _, loaded = called
    for args, kwargs in [
        ((tw.constant([[1.0]]),), {}),
        ((tw.constant(1.0), "two"), {}),
        ((tw.constant(1.0),), {"nest": {"other": [tw.constant(2.0)]}}),
        ((tw.constant(1),), {}),
    ]:
        with pytest.raises(
            (TypeError, ValueError), match=r"(?s)Its signatures are.*x: "
        ):
            loaded(*args, **kwargs)
    with pytest.raises(TypeError, match="arranged"):
        loaded()


def test_a_variable_may_be_an_argument(tmp_path):
    v = tw.Variable(3.0)
    module = holding(f=tw.function(lambda x, v: x * v), v=v)
    module.f(tw.constant(2.0), v)
    loaded = again(module, tmp_path)
    assert float(loaded.f(tw.constant(2.0), loaded.v)) == 6.0


def test_a_number_is_taken_for_a_tensor_in_every_call(tmp_path):
    loaded = again(holding(f=_signed([])(lambda x: x * 2.0)), tmp_path)
    assert [float(loaded.f(n)) for n in (1.0, 1.0, 2, 2)] == [2.0, 2.0, 4.0, 4.0]


def _signed(*shapes):
    return tw.function(input_signature=[tw.TensorSpec(shape) for shape in shapes])


def test_signatures_give_dicts(tmp_path):
    net = Net()
    loaded = again(net, tmp_path, signatures={"loss": net.loss, "call": net.__call__})
    assert list(loaded.signatures["loss"](x=X)) == ["output_0"]
    np.testing.assert_array_equal(loaded.signatures["call"](X)["output_0"], net(X))


def test_signatures_take_the_names_of_specs_or_of_parameters(tmp_path):
    specs = [tw.TensorSpec([], name="a"), {"k": tw.TensorSpec([None], name="b")}]

    @tw.function(input_signature=specs)
    def f(x, y, scale=2.0):
        return x - scale * y["k"], x

    @tw.function(input_signature=[tw.TensorSpec([]), tw.TensorSpec([])])
    def g(x, y):
        return {"difference": x - y}

    module = holding(f=f, g=g, v=tw.Variable(1.0))
    loaded = again(module, tmp_path, signatures={"f": f, "g": g}).signatures
    found = loaded["f"](b=tw.constant([1.0]), a=tw.constant(5.0))
    assert {k: v.numpy().tolist() for k, v in found.items()} == {
        "output_0": [3.0],
        "output_1": 5.0,
    }
    assert float(loaded["g"](y=1.0, x=3.0)["difference"]) == 2.0
    for wrong in ({"a": 1.0}, {"a": 1.0, "c": [2.0]}, {"a": 1.0, "b": [1.0], "c": 1.0}):
        with pytest.raises(TypeError):
            loaded["f"](**wrong)


def test_a_signature_tells_what_it_takes_and_gives(tmp_path):
    net = Net()
    loaded = again(net, tmp_path, signatures={"loss": net.loss, "call": net.__call__})
    call = loaded.signatures["call"]
    spec = tw.TensorSpec([None, 2], name="x")
    assert call.structured_input_signature == ((), {"x": spec})
    assert call.structured_outputs == {"output_0": tw.TensorSpec([None, 2])}
    assert [v.path for v in call.variables] == ["w", "b"]
    assert len(call.trainable_variables) == 2


def test_static_methods_are_functions_like_others(tmp_path):
    class Halves(tw.Module):
        @staticmethod
        @tw.function(input_signature=[tw.TensorSpec([])])
        def half(x):
            return x / 2.0

    assert float(again(Halves(), tmp_path).half(3.0)) == 1.5


def test_a_variable_may_be_a_default(tmp_path):
    v = tw.Variable(3.0)

    @tw.function(input_signature=[tw.TensorSpec([])])
    def f(x, by=v):
        return x * by

    loaded = again(holding(f=f, v=v), tmp_path)
    loaded.v.assign(4.0)
    assert float(loaded.f(2.0)) == 8.0 and float(loaded.f(2.0, by=loaded.v)) == 8.0


def test_a_function_that_was_never_traced_is_named_and_left_out(tmp_path):
    module = holding(f=tw.function(abs), inner=holding(g=tw.function(abs)))
    with pytest.warns(UserWarning, match="f, inner.g was not traced yet"):
        tw.saved_model.save(module, tmp_path / "m")
    assert not hasattr(tw.saved_model.load(tmp_path / "m"), "f")
    with pytest.raises(SavingError, match="was not traced yet"):
        tw.saved_model.save(tw.Module(), tmp_path / "m", signatures=module.f)


def test_a_loaded_function_has_no_code_to_pickle_or_run_eagerly(tmp_path):
    import pickle

    loaded = again(Net(), tmp_path)
    with pytest.raises(TypeError, match="loaded from a file"):
        pickle.dumps(loaded.loss)
    tw.config.run_functions_eagerly(True)
    try:
        np.testing.assert_array_equal(loaded(X), Net()(X))
    finally:
        tw.config.run_functions_eagerly(False)


# --------------------------------------------------------------------- fresh processes


def test_a_fresh_process_needs_nothing_but_the_file(tmp_path):
    net, path = Net(), tmp_path / "net"
    tw.saved_model.save(net, path)
    x = tw.constant(X)
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            loss = net.loss(x)
        first = tape.gradient(loss, [x, net.w])
    second = outer.gradient(first[0], x)
    wanted = [y.numpy().tolist() for y in (loss, *first, second)]
    found = fresh(f"""
net, x = tw.saved_model.load({str(path)!r}), tw.constant({X.tolist()})
with tw.GradientTape() as outer:
    outer.watch(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = net.loss(x)
    first = tape.gradient(loss, [x, net.w])
second = outer.gradient(first[0], x)
print(json.dumps([y.numpy().tolist() for y in (loss, *first, second)]))
""")
    assert found == wanted


def test_without_custom_gradients_only_this_process_knows_them(tmp_path):
    options = tw.saved_model.SaveOptions(experimental_custom_gradients=False)
    path = tmp_path / "net"
    tw.saved_model.save(Net(), path, options=options)
    loaded = tw.saved_model.load(path)
    np.testing.assert_array_equal(_gradients(loaded)[0], _gradients(Net())[0])
    value, error = fresh(f"""
net, x = tw.saved_model.load({str(path)!r}), tw.constant({X.tolist()})
with tw.GradientTape() as tape:
    y = net(x)
try:
    tape.gradient(y, net.w)
except LookupError as problem:
    error = str(problem)
print(json.dumps([y.numpy().tolist(), error]))
""")
    np.testing.assert_array_equal(np.float32(value), Net()(X))
    assert error.startswith(
        "No gradient defined for operation 'IdentityN' (op type: IdentityN)"
    )


# ------------------------------------------------------------------ files and options


def test_the_file_is_one_sealed_hdf5_file_at_exactly_that_path(tmp_path):
    tw.saved_model.save(Net(), tmp_path / "net.any")
    assert [p.name for p in tmp_path.iterdir()] == ["net.any"]
    with h5py.File(tmp_path / "net.any") as file:
        assert file.attrs["format"] == "tapewright saved_model"
        names = [file[f"variables/{i}"].attrs["name"] for i in range(3)]
        assert names == ["b", "frozen", "w"]
    data = bytearray((tmp_path / "net.any").read_bytes())
    data[-40] ^= 1
    (tmp_path / "net.any").write_bytes(data)
    with pytest.raises(SavingError, match="damaged"):
        tw.saved_model.load(tmp_path / "net.any")


def test_a_folder_is_not_written_over(tmp_path):
    with pytest.raises(FileExistsError, match="folder"):
        tw.saved_model.save(Net(), tmp_path)


def test_a_save_that_fails_leaves_the_older_file(tmp_path):
    path = tmp_path / "net"
    tw.saved_model.save(Net(), path)
    bad = holding(f=_signed([])(lambda x: tw.py_function(abs, [x], tw.TensorSpec([]))))
    with pytest.raises(SavingError, match=r"test_saved_model.py:\d+"):
        tw.saved_model.save(bad, path)
    assert tw.saved_model.load(path).w.shape == (2, 2)


def _boom(x):
    raise KeyError("boom")


def _endless(x):
    return _endless(x)


@pytest.mark.parametrize(
    "code, words",
    [
        (_boom, "KeyError: 'boom'"),
        (_endless, "RecursionError"),
        (lambda x: x * (1 / 0), "ZeroDivisionError"),
        (lambda x: x.nothing, "AttributeError"),
        (lambda x: tw.matmul(x, tw.zeros([7, 7])), "matmul: inner dimensions"),
        (lambda x: x if tw.reduce_sum(x) > 0.0 else -x, "a Python condition"),
        (lambda x: tw.numpy_function(np.sort, [x], "float32"), "numpy_function"),
    ],
)
@pytest.mark.parametrize("sizes", [(3, 3), (None, 3)])
def test_whatever_cannot_be_traced_is_told_with_function_and_line(
    code, words, sizes, tmp_path
):
    with pytest.raises(SavingError) as caught:
        tw.saved_model.save(holding(f=_signed(sizes)(code)), tmp_path / "m")
    text = str(caught.value)
    assert f"function '{code.__name__}'" in text and words in text
    assert "test_saved_model.py:" in text
    assert not list(tmp_path.iterdir())


def test_a_function_that_fails_for_every_rank_tells_what_one_of_them_has(tmp_path):
    module = holding(f=_signed(None)(lambda x: tw.reshape(x, [2, 3])[0, 0, 0, 0]))
    with pytest.raises(SavingError, match=r"For the ranks \[8\]: .*does not hold"):
        tw.saved_model.save(module, tmp_path / "m")


def test_inputs_of_unknown_rank_broadcast_as_before(tmp_path):
    loaded = again(holding(f=_signed(None, None)(lambda x, y: x + y)), tmp_path)
    for ranks in [(3, 3), (3, 1), (2, 4), (0, 3), (7, 7)]:
        ways = [(1, 1), (0, 1), (1, 0)] if max(ranks) < 7 else [(1, 1)]
        for kept in itertools.product(ways, repeat=min(ranks)):
            shapes = [[2, 3, 4, 5, 2, 2, 2][:rank][::-1] for rank in ranks]
            for axis, each in enumerate(kept, 1):
                for shape, keeps in zip(shapes, each):
                    shape[-axis] = shape[-axis] if keeps else 1
            x, y = [np.ones(shape, np.float32) for shape in shapes]
            assert tuple(loaded.f(x, y).shape) == np.broadcast_shapes(*shapes)


def test_contains_saved_model_knows_its_own_files(tmp_path):
    contains = tw.saved_model.contains_saved_model
    tw.saved_model.save(Net(), tmp_path / "net")
    with h5py.File(tmp_path / "other", "w") as file:
        file["x"] = [1.0]
    (tmp_path / "text").write_text("no file of ours")
    assert contains(tmp_path / "net")
    assert not any(contains(tmp_path / n) for n in ("other", "text", "missing", ""))
    with pytest.raises(SavingError, match="that saved_model.save wrote"):
        tw.saved_model.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        tw.saved_model.load(tmp_path / "missing")


def test_options_that_would_do_nothing_are_refused(tmp_path):
    assert tw.saved_model.SaveOptions().experimental_custom_gradients is True
    with pytest.raises(ValueError, match="function_aliases is not supported"):
        tw.saved_model.SaveOptions(function_aliases={"f": abs})
    with pytest.raises(ValueError, match="experimental_io_device"):
        tw.saved_model.LoadOptions(experimental_io_device="/job:localhost")
    with pytest.raises(TypeError, match="SaveOptions"):
        tw.saved_model.save(Net(), tmp_path / "net", options={"x": 1})
    with pytest.raises(TypeError, match="must be a tw.Module"):
        tw.saved_model.save(abs, tmp_path / "net")
    tw.saved_model.save(Net(), tmp_path / "net")
    assert tw.saved_model.load(tmp_path / "net", tags=["serve"])(X).shape == (2, 2)
    with pytest.raises(ValueError, match="tags"):
        tw.saved_model.load(tmp_path / "net", tags="train")


# ---------------------------------------------------------------------- hostile files


def changed(path, place, key, change):
    """The file with the JSON of one attribute changed, and without its seal."""
    with h5py.File(path, "r+") as file:
        attributes = file[place].attrs
        value = json.loads(attributes[key])
        attributes[key] = json.dumps(change(value))
    with open(path, "r+b") as file:
        file.write(bytes(512))


def put(*place_and_value):
    """A change: the value at a place inside of JSON replaced."""
    *place, last, new = place_and_value

    def change(value):
        inner = value
        for key in place:
            inner = inner[key]
        inner[last] = new
        return value

    return change


TRACE = "functions/0/call_0/trace_0"
HOSTILE = {
    "an op that is not defined": put("nodes", 2, "op", "os.system"),
    "an input that is made later": put("nodes", 2, "in", [0, 90]),
    "a constant that there is not": put("nodes", 2, "in", [0, "c70"]),
    "a variable that there is not": put("nodes", 1, "read", 12),
    "a missing attribute": put("nodes", 2, "attributes", {}),
    "an attribute of another op": put("nodes", 2, "attributes", {"evil": 1}),
    "code for an attribute": put(
        "nodes", 2, "attributes", "transpose_a", "__import__('os').abort()"
    ),
    "another shape than the op gives": put("nodes", 2, "out", [["float32", [7, 7]]]),
    "a shape of exabytes": put("inputs", 0, ["float32", [2**40, 2**20], "x"]),
    "another dtype than the op gives": put("nodes", 2, "out", [["int8", [2, 2]]]),
    "a node of no kind": put("nodes", 2, {"run": "rm"}),
    "outputs that are not made": put("outputs", [77]),
    "no nodes": put("nodes", None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_graph_with_a_fault_is_refused_with_its_place(name, tmp_path):
    path = tmp_path / "net"
    module = holding(f=_signed([2, 2])(lambda x: cube(tw.matmul(x + 1.0, v))))
    v = tw.Variable(X)
    tw.saved_model.save(module, path)
    changed(path, TRACE, "graph", HOSTILE[name])
    with pytest.raises(SavingError) as caught:
        tw.saved_model.load(path)
    assert caught.value.path == str(path)
    assert TRACE in caught.value.dataset


def test_an_index_cannot_smuggle_code_into_an_executable(tmp_path):
    path = tmp_path / "net"
    tw.saved_model.save(holding(f=_signed([None, 2])(lambda x: x[1:, 0])), path)
    index = {"tuple": [["__import__('os').abort()", None, None], 0]}
    changed(path, TRACE, "graph", put("nodes", 0, "attributes", "index", index))
    with pytest.raises(SavingError, match="no attribute"):
        tw.saved_model.load(path)


def test_a_print_of_a_file_cannot_write_to_another_file(tmp_path):
    path, other = tmp_path / "net", tmp_path / "other"

    def shown(x):
        tw.print(x)
        return x

    tw.saved_model.save(holding(f=_signed([2])(shown)), path)
    stream = {"dict": [["output_stream", f"file://{other}"]]}

    def change(value):
        pairs = value["nodes"][0]["attributes"]["dict"]
        pairs[:] = [pair for pair in pairs if pair[0] != "output_stream"] + stream[
            "dict"
        ]
        return value

    changed(path, TRACE, "graph", change)
    with pytest.raises(SavingError, match="sys.stdout and sys.stderr only"):
        tw.saved_model.load(path)


def test_a_tree_of_objects_with_a_fault_is_refused(tmp_path):
    path = tmp_path / "net"
    for change in (
        put("root", 99),
        put("nodes", 0, "attributes", "w", -1),
        put("nodes", 0, "attributes", "__class__", 1),
        put("nodes", 1, {"variable": 40}),
        put("nodes", 1, {"pickle": "x"}),
        put("captured", [7]),
    ):
        tw.saved_model.save(Net(), path)
        changed(path, "/", "objects", change)
        with pytest.raises(SavingError, match="objects"):
            tw.saved_model.load(path)


def test_loading_and_saving_warn_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(again(Net(), tmp_path), tmp_path)(X)


def test_reshape_of_several_unknown_sizes_is_saved(tmp_path):
    class Flat(tw.Module):
        def __init__(self):
            self.w = tw.Variable(tw.ones([784, 2]))

        @tw.function(input_signature=[tw.TensorSpec([None, None, None])])
        def __call__(self, x):
            return tw.reshape(x, [-1, 784]) @ self.w

    tw.saved_model.save(Flat(), tmp_path / "flat")
    loaded = tw.saved_model.load(tmp_path / "flat")
    for shape, rows in (((2, 28, 28), 2), ((4, 14, 28), 2)):
        np.testing.assert_array_equal(loaded(tw.ones(shape)), np.full((rows, 2), 784.0))
