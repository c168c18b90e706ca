"""Modules that few programs use are loaded on first use; their names are there before."""

import ast
import builtins
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tapewright as tw
from tapewright.core.names.lazy_import import keep_public, lazy_imports

from ...forks import Forks

FILES = "tapewright.keras.files"  # some of them are about the configs of models


@pytest.fixture(scope="module")
def in_a_new_process():
    """Runs code that is the first to import tapewright; returns the words that it prints."""
    with Forks("import numpy") as forks:
        yield lambda code: forks.output(code).split()


def test_import_loads_the_tape_and_the_ops_and_nothing_that_reads_or_writes_files():
    code = "import sys; before = {*sys.modules}; import numpy, tapewright; "
    code += "print(*sys.modules.keys() - before)"
    found = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    parts = ("data", "datasets", "distribute", "io", "keras", "layers", "optimizers")
    assert not {f"tapewright.{part}" for part in parts} & set(found)
    folders = ("tapewright.formats.", "tapewright.storage.", "tapewright.inspection.")
    assert not [name for name in found if name.startswith(folders)]
    assert not {f"{FILES}.model_file", f"{FILES}.save_and_load"} & set(found)
    assert not {"h5py", "zipfile", "hashlib", "secrets", "json", "tqdm"} & set(found)
    assert "ml_dtypes" not in found


def test_import_loads_110_modules_at_most(in_a_new_process):
    code = "import sys, tapewright; print(*sys.modules)"
    found = [name for name in in_a_new_process(code) if name.startswith("tapewright")]
    assert len(found) <= 110, found


def lazy_names():
    """Return ``{module: names that the front door imports from it lazily}``."""
    found = {}
    for block in ast.parse(Path(tw.__file__).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.With):
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = [each.name for each in node.names if each.asname[0] != "_"]
                    found.setdefault(node.module, []).extend(names)
    return {module: names for module, names in found.items() if names}


LAZY = lazy_names()


@pytest.mark.parametrize("module", LAZY)
def test_the_names_of_a_module_are_there_in_a_new_process(module, in_a_new_process):
    first, *_ = names = LAZY[module]
    in_a_new_process(
        "import tapewright as tw, importlib\n"
        f"assert {{*{names}}} <= {{*dir(tw)}}\n"
        f"value = tw.{first}\n"
        f"module = importlib.import_module('tapewright.{module}')\n"
        f"for name in {names}:\n"
        "    assert getattr(tw, name) is getattr(module, name), name\n"
        f"assert value is tw.{first}"
    )


def test_all_names_come_with_a_star(in_a_new_process):
    in_a_new_process(
        "from tapewright import *\nimport tapewright\n"
        "assert all(globals()[n] is vars(tapewright)[n] for n in tapewright.__all__)"
    )


REGISTRY = "tapewright.core.op_definition.op_registry"
OPS_OF_LATER = [
    # an op by its name, and all of them
    f"from {REGISTRY} import get_primitive; get_primitive('lgamma')",
    f"from {REGISTRY} import list_ops; assert len(list_ops()) > 300",
    # a user's op may not have the name of one
    """
from tapewright.core.primitive import primitive
try:
    primitive(name="lgamma")(lambda xp, x: x)
except ValueError:
    pass
else:
    raise AssertionError("it was made")
""",
    # gradients and rules that other files define
    """
x = tw.Variable([1.0, 2.0])
with tw.GradientTape() as tape:
    y = tw.reduce_logsumexp(x)
assert abs(tape.gradient(y, x).numpy().sum() - 1) < 1e-6
""",
    "assert tw.reduce_sum(tw.ragged.constant([[1, 2], [3]]), 1).numpy().tolist() == [3, 3]",
    "assert tw.tile(tw.ragged.constant([[1, 2], [3]]), [1, 2]).to_list()[1] == [3, 3]",
    "assert tw.matmul(tw.SparseTensor([[0, 0]], [2.0], [1, 1]), [[3.0]]).numpy() == 6",
    # effects that a file names
    """
from tapewright.formats.saved_model import saved_effects
from tapewright.compiler.control_flow.effects import find_effect_maker
assert all(map(find_effect_maker, ["print", "assert", "assert_near", "check_numerics"]))
""",
]


@pytest.mark.parametrize("code", OPS_OF_LATER)
def test_ops_that_are_loaded_later_are_found(code, in_a_new_process):
    in_a_new_process(f"import tapewright as tw\n{code}")


@pytest.mark.parametrize(
    "code",
    [
        "from tapewright import saved_model; saved_model.save",
        "from tapewright import train; train.Checkpoint",
        "import tapewright.train; tapewright.train.CheckpointManager",
        "import tapewright; tapewright.saved_model.load",
        "import tapewright; tapewright.test.check_op",
        "from tapewright.keras.models import load_model, save_model",
        "from tapewright.keras.saving import load_weights, save_weights",
        "import tapewright; tapewright.keras.models.load_model",
    ],
)
def test_a_name_of_files_is_there_in_a_new_process(code, in_a_new_process):
    in_a_new_process(code)


MODULES = [
    "autodiff", "bitwise", "callbacks", "data", "debugging", "dtypes", "errors", "image",
    "initializers", "layers", "linalg", "losses", "math", "metrics", "nn", "optimizers",
    "profiler", "random", "saved_model", "signal", "test", "train", "keras",
    "keras.activations", "keras.backend", "keras.callbacks", "keras.datasets",
    "keras.datasets.mnist", "keras.layers", "keras.losses", "keras.metrics",
    "keras.models", "keras.ops", "keras.ops.image", "keras.ops.linalg", "keras.ops.nn",
    "keras.optimizers", "keras.optimizers.schedules", "keras.preprocessing.sequence",
    "keras.random", "keras.saving", "keras.utils", "optimizers.schedules",
]  # fmt: skip


def test_a_name_in_a_file_is_found_before_keras_is_imported(in_a_new_process):
    in_a_new_process(
        "import tapewright, sys; from tapewright.serialization.registry import find\n"
        "assert 'tapewright.keras' not in sys.modules\n"
        "find('initializer', 'zeros', any_spelling=True)\n"
        "assert find('optimizer', 'Adam') is tapewright.optimizers.Adam"
    )


def test_every_namespace_is_a_module_for_import_statements(in_a_new_process):
    checks = [
        f"import tapewright.{name} as m; assert m is tw.{name}, '{name}'"
        for name in MODULES
    ]
    for first in ("image", "keras.ops.image", "saved_model", "keras.datasets.mnist"):
        lines = [f"import tapewright.{first}", "import tapewright as tw", *checks]
        in_a_new_process("\n".join(lines))


def test_the_casts_of_dtypes_are_those_of_the_top():
    assert tw.dtypes.cast is tw.cast and tw.dtypes.saturate_cast is tw.saturate_cast
    assert tw.dtypes.complex is tw.complex


def test_a_module_under_two_names_is_executed_once(in_a_new_process):
    in_a_new_process(
        "from tapewright.keras.optimizers.schedules import ExponentialDecay as one\n"
        "from tapewright.keras.layers import Dense\n"
        "from tapewright.random import gamma\n"
        "import tapewright as tw\n"
        "assert one is tw.optimizers.schedules.ExponentialDecay\n"
        "assert Dense is tw.layers.Dense and gamma is tw.random.gamma"
    )


def test_a_module_that_is_not_there_is_said_to_be_missing():
    for name in ("tapewright.imag", "tapewright.image.no", "tapewright.keras.no"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_names_that_come_later_are_listed():
    assert {"saved_model", "test", "train"} <= set(dir(tw))
    assert {"load_model", "save_model"} <= set(dir(tw.keras.models))
    assert {"load_weights", "load_model"} <= set(tw.keras.saving.__all__)


def test_a_name_that_comes_later_is_the_one_definition():
    from tapewright.keras.files.save_and_load import load_model

    assert tw.keras.models.load_model is load_model is tw.keras.saving.load_model


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'tapewright'.*'trian'"):
        tw.trian  # noqa: B018


def module_with(block, monkeypatch):
    """Return a module whose source has ``with lazy_imports(globals())`` and a block."""
    module = ModuleType("space")
    module.lazy_imports = lazy_imports
    module.__package__, module.__path__ = "space", []
    monkeypatch.setitem(sys.modules, "space", module)
    lines = ["with lazy_imports(globals()):", *block.split("; ")]
    exec("\n    ".join(lines), vars(module))
    return module


def test_a_name_is_looked_up_once(monkeypatch):
    space = module_with("from json import loads", monkeypatch)
    assert "loads" not in vars(space) and "loads" in dir(space)
    assert space.loads is json.loads is vars(space)["loads"]


def test_a_lazy_name_may_be_assigned_to_another(monkeypatch):
    space = module_with("from json import loads as _loads; read = _loads", monkeypatch)
    assert space.read is json.loads and "_loads" not in dir(space)


def test_a_lazy_submodule_is_imported(monkeypatch):
    space = module_with("from xml import dom; from xml.dom import minidom", monkeypatch)
    assert (
        space.minidom.__name__ == "xml.dom.minidom" and space.dom.__name__ == "xml.dom"
    )
    assert importlib.import_module("space.minidom") is space.minidom
    assert importlib.util.find_spec("tapewright.while_loop") is None  # a function


@pytest.mark.parametrize("block", ["import json", "from json import *"])
def test_other_imports_are_refused(block, monkeypatch):
    with pytest.raises(ImportError, match="expected 'from module import name'"):
        module_with(block, monkeypatch)
    assert builtins.__import__("json") is json


def test_imports_of_other_modules_are_not_delayed(monkeypatch):
    space = module_with("from json import loads; exec('import json', {})", monkeypatch)
    assert space.loads is json.loads


LATER = """
import tapewright, tapewright.formats.saved_model, tapewright.storage.zips, tapewright.plot
import tapewright.inspection.report, tapewright.keras.files.save_and_load, tapewright.train
from tapewright.keras.training import trainer
"""


def test_modules_show_their_public_names_alone_whatever_is_imported_later(
    in_a_new_process,
):
    for first in ("import tapewright", LATER):
        for name in ("tapewright", "tapewright.keras"):
            lines = [first, f"names = {{n for n in dir({name}) if n[0] != '_'}}"]
            lines += [f"print(*names ^ set({name}.__all__))"]
            assert in_a_new_process("\n".join(lines)) == []


def test_names_that_are_not_public_are_removed():
    space = ModuleType("space")
    space.__all__, space.exp, space.sys, space._one = ["exp"], abs, sys, 1
    keep_public(space)
    assert space.exp is abs and space._one == 1 and not hasattr(space, "sys")


def test_a_layer_has_its_config_before_keras_is_imported(in_a_new_process):
    code = "from tapewright.layers import Dense, regularizers; "
    code += "config = Dense(1, kernel_regularizer=regularizers.L2(0.5)).get_config(); "
    code += "print(config['kernel_regularizer']['config']['l2'])"
    assert in_a_new_process(code) == ["0.5"]


THREADS = """
import sys, threading
import tapewright as tw

sys.setswitchinterval(1e-6)
barrier, failed = threading.Barrier({count}), []

def use(code):
    barrier.wait()
    try:
        exec(code, {{"tw": tw}})
    except BaseException as error:
        failed.append((code, error))

threads = [threading.Thread(target=use, args=[code]) for code in {codes}]
[each.start() for each in threads]
[each.join() for each in threads]
assert not failed, failed
"""


@pytest.mark.parametrize(
    "codes",
    [
        ["tw.Model", "tw.layers.Dense", "tw.optimizers.Adam", "tw.nn.relu"],
        ["from tapewright.nn import relu"] * 3,  # another name of a module
    ],
)
def test_threads_may_be_the_first_to_use_a_name(codes, in_a_new_process):
    in_a_new_process(THREADS.format(count=len(codes), codes=codes))


def test_a_first_use_inside_an_import_waits_for_no_other_thread(in_a_new_process):
    in_a_new_process(
        "import threading, sys, types, importlib.util\n"
        "import tapewright as tw\n"
        "from tapewright.core.names import lazy_import\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'user_code':\n"
        "            return importlib.util.spec_from_loader(name, self)\n"
        "    def create_module(self, spec): return None\n"
        "    def exec_module(self, module): tw.linalg\n"
        "sys.meta_path.append(Finder())\n"
        "def use(): import user_code\n"
        "with lazy_import._LOCK:\n"
        "    thread = threading.Thread(target=use, daemon=True)\n"
        "    thread.start(); thread.join(30)\n"
        "    assert not thread.is_alive()\n"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_waits_for_no_thread_of_its_parent(in_a_new_process):
    in_a_new_process(
        "import os, threading\n"
        "import tapewright as tw\n"
        "from tapewright.core.names import lazy_import\n"
        "held, done = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with lazy_import._LOCK: held.set(); done.wait()\n"
        "threading.Thread(target=hold).start(); held.wait()\n"
        "child = os.fork()\n"
        "if not child: import signal; signal.alarm(30); tw.linalg; os._exit(0)\n"
        "status = os.waitpid(child, 0)[1]; done.set()\n"
        "assert status == 0\n"
    )


def test_a_module_keeps_its_first_name(in_a_new_process):
    in_a_new_process(
        "import sys, tapewright.nn, tapewright.api.nn as module\n"
        "assert module.__spec__.name == module.__name__ == 'tapewright.api.nn'\n"
        "assert module is tapewright.nn is sys.modules['tapewright.nn']"
    )
