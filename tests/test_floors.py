"""Who imports whom, read from the source and held against the table of floors.

A file imports from lower floors, or from its own folder. Imports inside functions count
like any other.
"""

import ast
import re
import sys

import pytest

from .sources import ROOT, is_private, modules, of_self, source

# Room -> floor. A room is a folder of `framework/` or one of the top-level folders, and ""
# the front door. Rooms of one floor do not import each other.
FLOORS = {
    "datasets": 0,
    "core": 1,
    "storage": 1.5,  # of ours it knows `BELOW_STORAGE` alone
    "ops": 2,
    "autodiff": 3,
    "compiler": 4,
    "serialization": 5,
    "data": 5,
    "io": 5,
    "profiler": 5,
    "debugging": 5,
    "summary": 6,
    "distribute": 6,
    "formats": 6,
    "layers": 7,
    "optimizers": 7,
    "plot": 7,
    "keras": 8,
    "inspection": 9,
    "api": 9,
    "": 10,
    "__main__": 10,
}
# Folders inside of rooms, in the order in which they build on each other; "" stands for
# the files that are in none.
FOLDERS = {
    "compiler": [
        "tracing",
        "passes",
        "program",
        "loops",
        "targets",
        "",
        "inspection",
        "control_flow",
        "autograph",
        "function",
    ],
    "formats": ["checkpoints", "saved_model", "onnx", "libraries", ""],
}
ALLOWED_OUTSIDE = {"numpy", "h5py", "tqdm", "cupy", "tapewright"}
# Extras, imported where they are used: inside functions.
ALLOWED_OUTSIDE |= {"llvmlite", "matplotlib", "ml_dtypes", "mpi4py", "nccl", "pydot"}
ALLOWED_OUTSIDE |= {"PIL", "onnx", "safetensors", "tensorboardX"}
ALLOWED_OUTSIDE |= {"cuda"}  # what CuPy brings to find CUDA's libraries


SOURCES = modules()


def imports(module, for_types=True):
    """``(module, line)`` for everything that a file of ours imports, wherever it stands;
    with or without what stands under ``if TYPE_CHECKING``."""
    here = source(SOURCES[module])
    for node in here.imports if for_types else here.run:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            name = base_of(module, node)
            submodules = [f"{name}.{a.name}" for a in node.names]
            if all(s in SOURCES for s in submodules):
                yield from ((s, node.lineno) for s in submodules)
            else:
                yield name, node.lineno
                yield from ((s, node.lineno) for s in submodules if s in SOURCES)


def base_of(module, node):
    """The full name of the module of ``from module import name``."""
    package = module if is_package(module) else module.rpartition(".")[0]
    base = package.split(".")[: -(node.level - 1) or None] if node.level else []
    return ".".join([*base, *filter(None, [node.module])])


def room(module):
    """The room of a module, and the folder in it."""
    tail = module.removeprefix("tapewright").removeprefix(".")
    first, _, rest = tail.partition(".")
    return first, rest.partition(".")[0] if "." in rest else ""


def own(module, for_types=True):
    return [
        (name, line) for name, line in imports(module, for_types) if name in SOURCES
    ]


def where(module, line):
    return f"{SOURCES[module].relative_to(ROOT)}:{line}"


def is_package(module):
    return SOURCES[module].name == "__init__.py"


def test_every_file_has_a_floor():
    assert not [module for module in SOURCES if room(module)[0] not in FLOORS]


def test_a_file_imports_from_lower_floors_or_its_own_room():
    wrong = []
    for module in SOURCES:
        here, _ = room(module)
        for name, line in own(module):
            there, _ = room(name)
            # In `from tapewright import x`, x may be a module.
            if here == there or name == "tapewright":
                continue  # looked at itself
            if (
                FLOORS[there] >= FLOORS[here]
                or there == "datasets"
                and FLOORS[here] < 8
            ):
                wrong.append(f"{where(module, line)} imports {name}")
    assert not wrong, "\n".join(wrong)


# The ground that bytes on disk stand on: callers hand over NumPy arrays.
BELOW_STORAGE = {
    f"tapewright.core.{name}"
    for name in (
        "dtypes",
        "errors",
        "hardware",
        "hardware.devices",
        "hardware.parallel",
    )
}


def test_storage_knows_of_ours_devices_dtypes_errors_and_threads_alone():
    wrong = [
        f"{where(module, line)} imports {name}"
        for module in SOURCES
        if room(module)[0] == "storage"
        for name, line in own(module)
        if room(name)[0] != "storage" and name not in BELOW_STORAGE
    ]
    assert not wrong, "\n".join(wrong)


def test_folders_of_a_room_build_on_those_before_them():
    wrong = []
    for module in SOURCES:
        here, folder = room(module)
        for name, line in own(module):
            there, other = room(name)
            if here != there or here not in FOLDERS or is_package(name):
                continue
            order = FOLDERS[here]
            if not is_package(module) and order.index(other) > order.index(folder):
                wrong.append(f"{where(module, line)} imports {name}, a later folder")
    assert not wrong, "\n".join(wrong)


# Folders whose docstrings list what is in them, a line each.
LISTING = (
    "storage formats formats/checkpoints formats/saved_model formats/onnx "
    "formats/onnx/to_onnx keras/files keras/files/weights keras/legacy inspection"
).split()


def test_the_docstring_of_a_folder_of_files_lists_what_is_in_it():
    for folder in LISTING:
        path = ROOT / "framework" / folder
        text = ast.get_docstring(ast.parse((path / "__init__.py").read_text()))
        inside = {
            each.name for each in path.iterdir() if (each / "__init__.py").exists()
        }
        inside |= {each.stem for each in path.glob("*.py")} - {"__init__"}
        lines = [
            re.fullmatch(r" *([a-z_0-9]+) {3,}\S.*", each) for each in text.split("\n")
        ]
        assert {line[1] for line in lines if line} == inside, folder


def test_there_are_no_import_cycles():
    graph = {
        module: {n for n, _ in own(module, False) if n != module and not is_package(n)}
        for module in SOURCES
        if not is_package(module)
    }
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for name in sorted(graph.get(module, ())):
            visit(name)
        path.pop()
        done.add(module)

    for module in graph:
        visit(module)


def test_nothing_else_is_depended_on():
    wrong = [
        f"{where(module, line)} imports {name}"
        for module in SOURCES
        for name, line in imports(module)
        if (top := name.partition(".")[0]) not in sys.stdlib_module_names
        and top not in ALLOWED_OUTSIDE
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "package, place",
    [
        ("cupy", "tapewright.core.hardware.devices"),
        ("ml_dtypes", "tapewright.core.dtypes"),
        ("PIL", "tapewright.storage.records.images"),
        ("onnx", "tapewright.formats.onnx.package"),
        ("safetensors", "tapewright.storage.safetensors_file"),
        ("tensorboardX", "tapewright.summary.event_file"),
        ("cuda", "tapewright.compiler.targets.cuda.products.cublaslt"),
        ("llvmlite", "tapewright.compiler.targets.native.jit.engine"),
        ("nccl", "tapewright.core.communication.nccl"),
    ],
)
def test_it_is_imported_in_one_place(package, place):
    importers = {
        module
        for module in SOURCES
        if package in {name.partition(".")[0] for name, _ in imports(module)}
    }
    assert importers == {place}


def test_files_of_one_room_import_each_other_relatively_and_others_by_full_name():
    wrong = []
    for module in SOURCES:
        here, _ = room(module)
        if here in ("", "plot", "__main__"):
            continue
        for node in source(SOURCES[module]).imports:
            if not isinstance(node, ast.ImportFrom):
                continue
            if node.level:
                package = module if is_package(module) else module.rpartition(".")[0]
                base = package.split(".")[: -(node.level - 1) or None]
                crossing = len(base) < 2
            else:
                crossing = node.module.startswith(f"tapewright.{here}.")
            if crossing:
                wrong.append(f"{where(module, node.lineno)}: {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)


# Private names of `Variable` that all floors use for speed, names of named tuples, and
# names that Keras gives to tensors.
USED_EVERYWHERE = {"_array", "_bind", "_fitting", "_fields", "_make"}
USED_EVERYWHERE |= {"_keras_history", "_keras_mask"}
FILE = ROOT / "tests" / "keras" / "reference" / "attribute_names.json"
KERAS = {*re.findall(r"\w+", FILE.read_text(encoding="utf-8"))}


def test_a_private_name_is_used_in_its_own_folder_alone():
    homes = {}
    for path in SOURCES.values():
        for name in source(path).members - USED_EVERYWHERE - KERAS:
            homes.setdefault(name, set()).add(path.parent)
    wrong = []
    for module, path in SOURCES.items():
        others, here = {}, set()  # local names of modules in other folders, and in this
        for node in source(path).imports:
            base = base_of(module, node) if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                name = f"{base}.{alias.name}"
                origin = name if name in SOURCES else base
                if origin in SOURCES and SOURCES[origin].parent != path.parent:
                    others[alias.asname or alias.name] = name
                    if is_private(alias.name):
                        wrong.append(f"{where(module, node.lineno)}: {alias.name}")
                elif name in SOURCES:
                    here.add(alias.asname or alias.name)
        for node in source(path).private:
            value, folders = ast.unparse(node.value), homes.get(node.attr)
            is_module = others.get(value) in SOURCES
            is_foreign = folders and path.parent not in folders
            if is_module or is_foreign and value not in here and not of_self(node):
                wrong.append(f"{where(module, node.lineno)}: {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)
