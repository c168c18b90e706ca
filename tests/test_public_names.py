"""The public face: what `__all__` lists is sorted, is there, and says what it does."""

import ast
import difflib
import importlib.util
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

FILES = modules()
MODULES = {name: importlib.import_module(name) for name in sorted(FILES)}
LISTED = {n: module for n, module in MODULES.items() if hasattr(module, "__all__")}
# Listings of names that are defined elsewhere.
LISTINGS = {
    "autodiff",
    *(
        f"api.{n}"
        for n in "math special nn linalg ragged signal bitwise strings image".split()
    ),
}


def own_names(module):
    """Functions and classes that a module defines, without an underscore, by name."""
    return {
        name: value
        for name, value in vars(MODULES[module]).items()
        if inspect.isfunction(value) or inspect.isclass(value)
        if value.__module__ == module and not name.startswith("_")
    }


def folder(module):
    is_package = hasattr(MODULES[module], "__path__")
    return module if is_package else module.rpartition(".")[0]


def imported_names():
    """Pairs of a module and a name of it that a file in another folder imports."""
    for here, path in FILES.items():
        for node in source(path).imports:
            if isinstance(node, ast.ImportFrom):
                dots = "." * node.level + (node.module or "")
                there = importlib.util.resolve_name(dots, folder(here))
                if there in MODULES and folder(there) != folder(here):
                    yield from [(there, each.name) for each in node.names]


def test_every_module_has_a_docstring():
    for name, module in MODULES.items():
        assert inspect.getdoc(module), f"{name} does not say what it is"


def star_imported():
    """Names of modules from which another file of ours imports all names."""
    return {
        importlib.util.resolve_name("." * node.level + node.module, folder(module))
        for module, path in FILES.items()
        for node in source(path).imports
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    }


def test_modules_list_their_names_where_others_show_them():
    """Elsewhere an underscore tells the names of one folder from those of all."""
    spaces = [*namespaces.NAMESPACES, *namespaces.SAME]
    public = {importlib.import_module(namespaces.full_name(n)).__name__ for n in spaces}
    shown = star_imported() | public | {f"tapewright.core.{name}" for name in INTERNAL}
    listed = {n for n in LISTED if not hasattr(MODULES[n], "__path__")}
    assert {name for name in listed - shown if not is_listing(name)} == set()
    assert star_imported() - {*LISTED} == set()


def is_listing(name):
    """Whether a module lists names that it imports from others."""
    values = [getattr(MODULES[name], each) for each in MODULES[name].__all__]
    return any([getattr(each, "__module__", name) != name for each in values])


def test_all_is_sorted_without_repeats_and_resolvable():
    for module, space in LISTED.items():
        names = list(space.__all__)
        assert len(set(names)) == len(names), module
        missing = [n for n in names if not hasattr(space, n)]
        assert not missing, f"{module} lists {missing}, which it does not have"
        assert names in (sorted(names), sorted(names, key=str.lower)), module
        assert not [n for n in names if n.startswith("_")], module


def test_names_that_other_folders_use_have_a_docstring():
    assert [
        f"{module}.{name}"
        for module, name in sorted({*imported_names()})
        if not name.endswith("_p")  # a primitive: its function has the docstring
        and not inspect.getdoc(own_names(module).get(name, len))
    ] == []


def test_the_first_line_of_a_docstring_is_a_sentence():
    """It ends in a period, or in a colon before what it announces, and fits on a line."""
    wrong = []
    for name, value in [(n, v) for m in MODULES for n, v in own_names(m).items()]:
        own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        line = inspect.cleandoc(own or "").partition("\n")[0]
        if own and (not line.endswith((".", ":")) or len(line) > 90):
            wrong.append(f"{value.__module__}.{name}: {line!r}")
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
    assert {name for name in imported if not name.startswith("_")} == set(tw.__all__)


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
