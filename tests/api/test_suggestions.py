"""A misspelt or foreign name is answered with the name to write here."""

import functools
import inspect
import pickle
import re
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.compiler import pipeline
from tapewright.core.messages.names_of_pytorch import (
    MODULES,
    OF_LAYERS,
    OF_OPTIMIZERS,
    OF_TENSORS,
)
from tapewright.core.messages.suggestions import (
    RENAMED_ARGUMENTS,
    did_you_mean,
    explain_uncaught,
)
from tapewright.keras import layers, optimizers
from tapewright.serialization.constructor_arguments import argument_names

PAGE = Path(__file__).parents[2] / "docs" / "coming_from" / "pytorch.md"
X = np.ones((4, 2), np.float32)
x = tw.constant(X)
v = tw.Variable([1.0, 2.0])
data = tw.data.Dataset.range(3)


@functools.cache
def model():
    made = keras.Sequential([layers.Input((2,)), layers.Dense(3, name="last")])
    made.compile("sgd", "mse")
    return made


def labelled(y):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made = keras.Sequential([layers.Input((2,)), layers.Dense(3)])
    made.compile("sgd", loss)
    made.fit(X, np.array(y), verbose=0)


@tw.function
def with_wrong_shapes(x):
    return tw.matmul(x, tw.ones([5, 5]))


@tw.function
def with_wrong_index(x):
    return tw.gather(x, [9])


def on_device(name):
    with tw.device(name):
        pass


def one_argument(x):
    return x


MISTAKES = {
    # arguments
    "Dense: unknown argument 'activaton' (given 'relu'). Did you mean 'activation'?":
        lambda: layers.Dense(3, activaton="relu"),
    "unknown argument 'in_features' (given 2): leave it out: the size of the inputs":
        lambda: layers.Dense(in_features=2, out_features=3),
    "unknown argument 'out_features' (given 3). Did you mean 'units'?":
        lambda: layers.Dense(in_features=2, out_features=3),
    "Dropout: unknown argument 'p' (given 0.5). Did you mean 'rate'?":
        lambda: layers.Dropout(p=0.5),
    "'bias' (given False). Did you mean 'use_bias'?": lambda: layers.Dense(3, bias=False),
    "'stride' (given 2). Did you mean 'strides'?": lambda: layers.Conv2D(8, 3, stride=2),
    "Sequential: unknown argument 'layer' (given []). Did you mean 'layers'?":
        lambda: keras.Sequential(layer=[]),
    "Adam: unknown argument 'lr' (given 0.1). Did you mean 'learning_rate'?":
        lambda: optimizers.Adam(lr=0.1),
    "Adam: unknown argument 'betas' (given (0.9, 0.99)): use 'beta_1' and 'beta_2'":
        lambda: optimizers.Adam(betas=(0.9, 0.99)),
    "'from_logit' (given True). Did you mean 'from_logits'?":
        lambda: keras.losses.CategoricalCrossentropy(from_logit=True),
    "EarlyStopping: unknown argument 'patiense' (given 3). Did you mean 'patience'?":
        lambda: keras.callbacks.EarlyStopping(patiense=3),
    "fit: unknown argument 'epoch' (given 2). Did you mean 'epochs'?":
        lambda: model().fit(X, X, epoch=2),
    "predict: unknown argument 'batchsize' (given 2). Did you mean 'batch_size'?":
        lambda: model().predict(X, batchsize=2),
    "compile: unknown argument 'optimiser' (given 'sgd'). Did you mean 'optimizer'?":
        lambda: model().compile(optimiser="sgd"),
    "save_model: unknown argument 'overwite' (given True). Did you mean 'overwrite'?":
        lambda: model().save("a.keras", overwite=True),
    "call() got an unexpected keyword argument 'trainning'. Did you mean 'training'?":
        lambda: model()(x, trainning=True),
    "batch: unknown argument 'drop_last' (given True). Did you mean 'drop_remainder'?":
        lambda: data.batch(2, drop_last=True),
    "reduce_sum: unknown argument 'dim' (given 0). Did you mean 'axis'?":
        lambda: tw.reduce_sum(x, dim=0),
    "sum: unknown argument 'keepdim' (given True). Did you mean 'keepdims'?":
        lambda: keras.ops.sum(x, keepdim=True),
    "is one_argument(x). Did you mean 'x'?":
        lambda: tw.function(one_argument)(X=1),
    # names in text
    "Unknown loss 'mes'. Did you mean 'mse' or 'mae'?": lambda: model().compile(loss="mes"),
    "Unknown optimizer 'adm'. Did you mean 'adam'?": lambda: optimizers.get("adm"),
    "Unknown activation 'rellu'. Did you mean 'relu'?":
        lambda: layers.Dense(1, activation="rellu"),
    "Unknown initializer 'glorot_unifrm'. Did you mean 'glorot_uniform'?":
        lambda: keras.initializers.get("glorot_unifrm"),
    "Unknown regularizer 'x'; known are L1, L1L2, L2": lambda: keras.regularizers.get("x"),
    "Cannot convert 'flaot32' to a dtype. Did you mean 'float32'?":
        lambda: tw.cast(x, "flaot32"),
    "padding must be one of 'valid', 'same', got 'sane'. Did you mean 'same'?":
        lambda: layers.Conv2D(8, 3, padding="sane"),
    "get_layer: there is no layer 'lst'. Did you mean 'last'?":
        lambda: model().get_layer("lst"),
    "got 'mixed_flot16'. Did you mean 'mixed_float16'?":
        lambda: keras.mixed_precision.set_global_policy("mixed_flot16"),
    "got 'cuda:0'. Did you mean 'GPU:0'?": lambda: on_device("cuda:0"),
    "got 'cuda'. Did you mean 'GPU'?": lambda: tw.device("cuda"),
    "got 'mps'; the devices are CPUs, and GPUs of NVIDIA": lambda: on_device("mps"),
    # attributes
    "'tapewright.nn' has no attribute 'relu_'. Did you mean 'relu'?": lambda: tw.nn.relu_,
    "'tapewright.nn' has no attribute 'Linear': use tw.layers.Dense(units)":
        lambda: tw.nn.Linear,
    "'tapewright.nn' has no attribute 'Module': use tw.keras.Layer or tw.keras.Model":
        lambda: tw.nn.Module,
    "'tapewright.nn' has no attribute 'Sequential': use tw.keras.Sequential":
        lambda: tw.nn.Sequential,
    'tw.config.list_physical_devices("GPU") for cuda.is_available()': lambda: tw.cuda,
    "has no attribute 'Lnear'. Did you mean 'Linear'? Here, use tw.layers.Dense(units)":
        lambda: layers.Lnear,
    "'tapewright' has no attribute 'from_numpy': use tw.convert_to_tensor(a)":
        lambda: tw.from_numpy,
    "'Tensor' object has no attribute 'mean': use tw.reduce_mean(x)": lambda: x.mean(),
    "'Tensor' object has no attribute 'detach': use tw.stop_gradient(x)":
        lambda: x.detach(),
    "'Variable' object has no attribute 'item': use float(x)": lambda: v.item(),
    "type object 'Tensor' has no attribute 'view': use tw.reshape": lambda: tw.Tensor.view,
    "'Sequential' object has no attribute 'parameters': use layer.trainable_variables":
        lambda: model().parameters(),
    "'Adam' object has no attribute 'step': use optimizer.apply(gradients, variables)":
        lambda: optimizers.Adam().step(),
    "has no attribute 'requires_grad': use tw.Variable(data, trainable=False)":
        lambda: setattr(v, "requires_grad", False),
    # other mistakes
    "labels (y of fit, y_true of a loss) must be from 0 to 2, got 3; 1 of 4 labels are out "
    "of range. The output has 3 classes": lambda: labelled([0, 1, 2, 3]),
    "in the function 'with_wrong_shapes', ": lambda: with_wrong_shapes(x),
    "in the op gather of the function 'with_wrong_index', ": lambda: with_wrong_index(x),
}  # fmt: skip


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_answered_with_what_to_write(message):
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        MISTAKES[message]()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert message in text
    assert len(text) < 600  # no list of all names in front


@pytest.mark.parametrize(
    "call, end",
    [
        (lambda: tw.nn.softmax(x, dim=1), "'dim'. Did you mean 'axis'?"),
        (lambda: tw.concat([x, x], dim=0), "'dim'. Did you mean 'axis'?"),
        (lambda: tw.random.normal([2], std=2.0), "'std'. Did you mean 'stddev'?"),
        (lambda: tw.GradientTape(persistant=True), "Did you mean 'persistent'?"),
        (lambda: tw.Variable(1.0, requires_grad=True), "Did you mean 'trainable'?"),
        (
            lambda: tw.constant(1.0, requires_grad=True),
            "use tape.watch(x), or tw.Variable",
        ),
        (lambda: tw.function(jit=True), "'jit'. Did you mean 'jit_compile'?"),
        (lambda: one_argument(X=1), "got an unexpected keyword argument 'X'"),
    ],
)
def test_errors_of_python_name_the_argument_before_they_are_printed(call, end):
    with pytest.raises(TypeError) as caught:
        call()
    explain_uncaught(caught.value)
    assert str(caught.value).endswith(end)


OTHER = ModuleType("other_library")
exec("def softmax(x, axes): return x", vars(OTHER))


def call_a_function_of_the_user():
    def softmax(x, axes):
        return x

    softmax(1, dim=2)


@pytest.mark.parametrize(
    "call",
    [
        call_a_function_of_the_user,
        lambda: OTHER.softmax(1, dim=2),
        lambda: (OTHER.softmax(1, dim=2), tw.nn.softmax(x)),
    ],
)
def test_functions_of_others_get_no_suggestions_of_ours(call):
    with pytest.raises(TypeError) as caught:
        call()
    explain_uncaught(caught.value)
    assert str(caught.value).endswith("'dim'")


def test_only_the_best_names_are_suggested_and_none_that_is_unlike():
    names = ["Adam", "AdamW", "Nadam", "adam", "SGD"]
    assert did_you_mean("Adm", names) == ". Did you mean 'Adam'?"
    assert did_you_mean("ADAM_", names) == ". Did you mean 'Adam'?"
    assert did_you_mean("Lion", names) == ""


def test_names_of_a_file_cost_no_more_than_a_moment():
    start = time.process_time()
    did_you_mean("x" * 10**6, [f"{'x' * 500}{i}" for i in range(5000)])
    assert time.process_time() - start < 5


def test_renamed_arguments_are_known_somewhere_or_a_sentence():
    owners = [tw, tw.nn, tw.random, tw.image, layers, tw.initializers, optimizers]
    owners += [
        optimizers.schedules,
        tw.data.Dataset,
        keras.Model,
        keras.losses,
        keras.utils,
    ]
    known = set()
    for owner in owners:
        public = [name for name in dir(owner) if name[0] != "_"]
        for each in [getattr(owner, name, None) for name in public]:
            if isinstance(each, type):
                known.update(argument_names(each))
            elif callable(each):
                known.update(inspect.signature(each).parameters)
    advised = {each for names in RENAMED_ARGUMENTS.values() for each in names}
    assert {each for each in advised if " " not in each} <= known


# ------------------------------------------------------------------------ names of PyTorch


class WithNamesOfPyTorch(layers.Layer):
    def train(self):
        return "mine"


def test_names_of_pytorch_are_absent_and_may_be_those_of_users():
    assert not hasattr(x, "mean") and not hasattr(tw.Tensor, "mean")
    assert np.mean(x) == 1.0  # NumPy looks for a method first
    assert not hasattr(model(), "train")

    layer = WithNamesOfPyTorch()
    layer.weight = 3
    assert (layer.train(), layer.weight) == ("mine", 3)
    assert pickle.loads(pickle.dumps(layer)).weight == 3


@pytest.mark.parametrize("made", [lambda: x, lambda: v, model, optimizers.Adam])
def test_names_of_pytorch_are_not_listed(made):
    tables = (OF_TENSORS, OF_LAYERS, OF_OPTIMIZERS)
    theirs = {name for table in tables for name in table}
    assert all([hasattr(made(), name) for name in theirs.intersection(dir(made()))])


def test_attributes_of_users_with_names_of_pytorch_are_listed():
    layer = WithNamesOfPyTorch()
    layer.weight = 3
    assert {"train", "weight", "built"} <= set(dir(layer)) and "eval" not in dir(layer)


def table_rows():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [
        line.strip("| ").split(" | ")[:2] for line in lines if line.startswith("| ")
    ]


def names_in_code(cell):
    spans = re.findall("`([^`]+)`", cell)
    return {name for span in spans for name in re.findall(r"\w+", span)}


@pytest.mark.parametrize("table", [OF_TENSORS, OF_LAYERS, OF_OPTIMIZERS, MODULES])
def test_the_tables_are_those_of_the_page(table):
    rows = table_rows()
    for name, here in table.items():
        cells = [row[1] for row in rows if name in names_in_code(row[0])]
        assert cells, f"{name} is not on the page"
        path = re.search(r"\b(?:tw|tape|layer|model|optimizer|x|v)(?:\.\w+)+", here)
        assert path is None or any([path[0] in cell for cell in cells]), (name, here)


def test_the_page_has_no_name_that_no_message_explains():
    missing = set()
    for left, _ in table_rows():
        for owner, name in re.findall(r"\b(x|module|optimizer|torch)\.(\w+)", left):
            table, cls = {
                "x": (OF_TENSORS, tw.Tensor),
                "module": (OF_LAYERS, layers.Layer),
                "optimizer": (OF_OPTIMIZERS, optimizers.Optimizer),
                "torch": (MODULES, tw),
            }[owner]
            if name not in table and not hasattr(cls, name):
                missing.add(f"{owner}.{name}")
    assert missing <= {"torch.float64", "torch.amp", "torch.func", "torch.fft"}


def test_what_is_advised_for_names_of_pytorch_is_there():
    for table in (OF_TENSORS, OF_LAYERS, OF_OPTIMIZERS, MODULES):
        for here in table.values():
            for path in re.findall(r"\btw((?:\.\w+)+)", here):
                functools.reduce(getattr, path[1:].split("."), tw)


# ------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize("name", ["lr", "learning_rte"])
def test_setting_an_attribute_that_an_optimizer_lacks_warns(name):
    optimizer = optimizers.Adam()
    message = f"Adam: setting '{name}' has no effect. Did you mean 'learning_rate'?"
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        setattr(optimizer, name, 0.1)
    assert caught[0].filename == __file__


def test_other_attributes_of_optimizers_and_those_of_users_do_not_warn():
    class Own(optimizers.SGD):
        def __init__(self):
            super().__init__()
            self.lr = 0.1

    Own().momentun = 0.3
    optimizers.Adam().comment = "first"


def test_a_softmax_with_from_logits_warns_once_in_fit():
    made = keras.Sequential([layers.Input((2,)), layers.Dense(3, activation="softmax")])
    made.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with pytest.warns(UserWarning, match="y_pred is the output of a softmax") as caught:
        made.fit(X, np.array([0, 1, 2, 0]), epochs=3, batch_size=2, verbose=0)
    assert len(caught) == 1


def test_a_long_compilation_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(pipeline, "SLOW", 0.01)
    pipeline._told.clear()
    for _ in range(2):
        with pipeline._telling_if_slow("step"):
            time.sleep(0.1)
    (record,) = caplog.records
    assert record.getMessage().startswith("compiling 'step', which takes a while")
    assert "later runs of the program load it from the cache" in record.getMessage()


def test_a_short_compilation_is_silent_and_leaves_no_thread(caplog):
    import threading

    before = threading.active_count()
    pipeline._told.clear()
    with pipeline._telling_if_slow("step"):
        pass
    assert threading.active_count() == before and not caplog.records


@pytest.mark.parametrize("name", ["requires_grad", "data"])
def test_an_attribute_that_would_change_nothing_cannot_be_set(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        setattr(tw.Variable(1.0), name, 2.0)


def test_a_class_of_the_user_may_take_its_arguments_in_new():
    class Scaled(tw.keras.initializers.Initializer):
        def __new__(cls, scale):
            made = super().__new__(cls, scale)
            made.scale = scale
            return made

    assert Scaled(3.0).scale == 3.0
