"""The public face: what `__all__` lists is sorted, is there, and says what it does."""

import ast
import difflib
import importlib
import inspect
import itertools
import sys
import typing

import pytest

import tapewright as tw
from tapewright.core.names import lazy_import

from .reference import record_public_names
from .reference.record_public_names import namespaces
from .sources import ROOT, modules, paths, source

MODULES = {name: importlib.import_module(name) for name in sorted(modules())}
LISTED = {n: module for n, module in MODULES.items() if hasattr(module, "__all__")}
# Listings of names that are defined elsewhere.
LISTINGS = {
    "autodiff",
    *(
        f"api.{n}"
        for n in "math special nn linalg ragged signal bitwise strings image".split()
    ),
}


def own_names():
    """Functions and classes of tapewright that some `__all__` lists, by full name."""
    found = {}
    for module in LISTED.values():
        for name in module.__all__:
            value = getattr(module, name, None)
            is_plain = inspect.isfunction(value) or inspect.isclass(value)
            if is_plain and str(value.__module__).startswith("tapewright"):
                found[f"{value.__module__}.{name}"] = value
    return found


def test_every_module_has_a_docstring_and_a_list_of_names():
    for name, module in MODULES.items():
        assert inspect.getdoc(module), f"{name} does not say what it is"
        tail = name.removeprefix("tapewright.")
        is_listing = hasattr(module, "__path__") or tail in LISTINGS
        assert is_listing or hasattr(module, "__all__"), f"{name} has no __all__"


def test_all_is_sorted_without_repeats_and_resolvable():
    for module, space in LISTED.items():
        names = list(space.__all__)
        assert len(set(names)) == len(names), module
        missing = [n for n in names if not hasattr(space, n)]
        assert not missing, f"{module} lists {missing}, which it does not have"
        assert names in (sorted(names), sorted(names, key=str.lower)), module
        assert not [n for n in names if n.startswith("_")], module


def test_the_first_line_of_a_docstring_is_a_sentence():
    """It ends in a period, or in a colon before what it announces, and fits on a line."""
    wrong = []
    for name, value in own_names().items():
        own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        line = inspect.cleandoc(own or "").partition("\n")[0]
        if not line.endswith((".", ":")) or len(line) > 90:
            wrong.append(f"{name}: {line!r}")
    assert not wrong, "\n".join(wrong)


# Docstrings, the private ones too, open with a verb or with the thing itself.
OPENINGS = {"What", "Where", "Whether", "How", "Which", "That", "Those"}


def test_no_docstring_opens_with_a_question_word():
    found = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path in paths()
        for text in source(path).docstrings
        if text and text.split()[0].rstrip(",;:") in OPENINGS
    ]
    assert not found


def test_a_listing_has_no_names_of_its_tools():
    for name in sorted(LISTINGS):
        space = MODULES[f"tapewright.{name}"]
        tools = [sys, typing.TYPE_CHECKING, *vars(lazy_import).values()]
        found = [
            n for n, v in vars(space).items() if any([v is each for each in tools])
        ]
        assert not [n for n in found if n[0] != "_"], name


# Names that files of the package use, and `tw.config`, `tw.errors`, `tw.nest` leave out.
INTERNAL = {
    "config": "apply_defaults autotune_is_on functions_are_verified "
    "graph_pass_is_on target_product why_op_by_op",
    "errors": "as_saving_error cast_advice describe printable saving_error",
    "nest": "ByType is_container owned_leaves",
}


@pytest.mark.parametrize("name", INTERNAL)
def test_a_public_face_lists_all_of_core_that_is_not_internal(name):
    room = "settings." if name == "config" else ""
    core = importlib.import_module(f"tapewright.core.{room}{name}")
    face = importlib.import_module(f"tapewright.{name}")
    assert {*face.__all__} == {*core.__all__} - {*INTERNAL[name].split()}
    assert all(getattr(face, each) is getattr(core, each) for each in face.__all__)


def test_the_front_door_lists_all_that_it_imports():
    tree = ast.parse((ROOT / "framework" / "__init__.py").read_text(encoding="utf-8"))
    tools = {"TYPE_CHECKING", "alias_modules", "apply_defaults", "hooks"}
    tools |= {"explain_missing", "import_lazily", "import_module", "keep_public"}
    tools |= {"install_traceback_hooks", "register_later"}
    own = [each for each in tree.body if not isinstance(each, ast.FunctionDef)]
    imported = set()
    for node in itertools.chain.from_iterable(map(ast.walk, own)):
        if isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            for each in node.names:
                star = each.name == "*"
                found = importlib.import_module(name, "tapewright") if star else None
                imported |= set(found.__all__) if star else {each.asname or each.name}
        elif isinstance(node, ast.Assign):
            imported |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    imported = {name for name in imported if not name.startswith("_")}
    internal = {"sampling"}  # known by other names
    assert imported - tools - internal <= set(tw.__all__)


def test_each_public_name_has_the_recorded_signature():
    recorded = record_public_names.FILE.read_text(encoding="utf-8").splitlines()
    found = record_public_names.public_names()
    changes = [*difflib.unified_diff(recorded, found, n=0, lineterm="")][2:]
    advice = "To accept: python tests/reference/record_public_names.py"
    assert recorded == found, "\n".join(["", *changes[:60], advice])


def test_a_namespace_that_another_one_lists_is_in_the_reference():
    listed = {*namespaces.NAMESPACES, *namespaces.SAME, *namespaces.FOLDERS}
    for name in listed:
        space = importlib.import_module(namespaces.full_name(name))
        above = "" if name == "tapewright" else f"{name}."
        names = [
            n for n in getattr(space, "__all__", ()) if f"{above}{n}" not in listed
        ]
        assert not [n for n in names if inspect.ismodule(getattr(space, n))], name


TOP = """
    GradientTape UnconnectedGradients Variable constant convert_to_tensor TensorSpec
    TensorShape Tensor IndexedSlices is_tensor custom_gradient RegisterGradient
    recompute_grad grad_pass_through stop_gradient Module matmul einsum tensordot reshape
    transpose pad linspace eye zeros ones fill zeros_like ones_like range cast norm
    clip_by_norm clip_by_value clip_by_global_norm reduce_sum reduce_mean reduce_max
    reduce_min reduce_prod reduce_logsumexp exp sqrt square abs sign sin cos tan tanh
    sigmoid pow add subtract multiply divide maximum minimum where concat stack unstack
    split squeeze expand_dims tile repeat gather one_hot boolean_mask argmax argmin slice
    identity shape size rank equal not_equal greater greater_equal less less_equal
    logical_and logical_or logical_not round floor
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    complex64 complex128 string half double device errors math nn linalg random image
    constant_initializer zeros_initializer ones_initializer random_normal_initializer
    random_uniform_initializer
""".split()


NAMESPACES = {
    "nn": "relu elu leaky_relu sigmoid softmax log_softmax softplus tanh moments "
    "softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits",
    "math": "log exp sin sigmoid reduce_sum reduce_variance reduce_std real imag conj",
    "linalg": "matmul solve inv norm eye trace einsum adjoint matvec",
    "random": "normal uniform truncated_normal set_seed shuffle Generator",
    "image": "adjust_contrast",
    "nest": "assert_same_structure flatten map_structure pack_sequence_as",
}


def test_tensorflows_names_are_at_the_top():
    assert [name for name in TOP if not hasattr(tw, name)] == []


def test_the_namespaces_have_tensorflows_names():
    for namespace, names in NAMESPACES.items():
        space = getattr(tw, namespace)
        assert [n for n in names.split() if not hasattr(space, n)] == [], namespace


def test_namespaces_can_be_imported_from():
    for name in ("config", "dtypes", "errors", "keras", *NAMESPACES):
        assert importlib.import_module(f"tapewright.{name}") is getattr(tw, name)


def test_an_alias_is_the_same_object():
    assert tw.math.exp is tw.exp and tw.nn.sigmoid is tw.sigmoid is tw.math.sigmoid
    assert tw.linalg.matmul is tw.matmul and tw.math.reduce_sum is tw.reduce_sum
    assert tw.linalg.norm is tw.norm


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert tw.__version__ == tw.version.VERSION == version("tapewright")
