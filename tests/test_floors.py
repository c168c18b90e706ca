"""Who imports whom, read from the source and held against the floor table.

A file imports from lower floors, or from files of its own floor that are listed before
it. Imports inside functions count like any other.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# From the ground up; within a floor in the order in which files may build on each other.
# A name ending in "/" stands for a folder whose files follow their own order below.
FLOORS = [
    [
        "config",
        "later",
        "blas",
        "errors",
        "dimension",
        "assumptions",
        "open_shape",
        "tensor_shape",
        "dtypes",
        "nest",
        "floatx",
        "constructors",
        "registration",
        "literals",
        "shared_objects",
        "registry",
        "backend",
    ],
    ["tensor"],
    ["readers", "composite", "variable", "adjoint", "entry", "primitive", "rules"],
    ["ops/"],
    [
        "batching",
        "walk",
        "jacobian",
        "explain",
        "tape",
        "custom",
        "vectorize",
        "forward",
    ],
    ["graph/"],
    ["module", "testing", "assertions", "debugging", "timeline", "profiler", "saving/"],
    ["layers/", "optimizers/"],
    ["data/"],
    ["plot", "training/"],
    [
        "keras_ops/",
        "keras_random",
        "keras",
        "math",
        "nn",
        "linalg",
        "signal",
        "autodiff",
        "bitwise",
        "train",
        "__init__",
        "__main__",
    ],
]
OPS = [
    "sizes",
    "comparison",
    "conversion",
    "elementwise",
    "trigonometry",
    "special",
    "shape",
    "joining",
    "creation",
    "reduction",
    "gather",
    "scatter",
    "indexing",
    "diagonal",
    "scan",
    "segment",
    "counting",
    "sorting",
    "linalg",
    "contraction",
    "linear_systems",
    "decompositions",
    "matrix_functions",
    "fft",
    "windows",
    "activation",
    "cross_entropy",
    "bias",
    "moments",
    "normalization",
    "sliding",
    "columns",
    "correlation",
    "convolution",
    "pooling",
    "drawing",
    "distributions",
    "generators",
    "random",
    "dropout",
    "recurrence",
    "lstm",
    "gru",
    "simple_rnn",
    "attention",
    "resizing",
    "warping",
    "image",
    "operators",
]
# The folders inside of rooms; "" stands for the files that are in none.
FOLDERS = {
    "graph": ["", "transforms", "planning", "inspection", "control", "functions"],
    "saving": ["storage", "checkpoints", "graphs", "keras_files", "", "inspection"],
}
ASIDE = "datasets/"  # may import the ground floor only
# listings of op families: code of any floor may go by them
ALIASES = {"math", "nn", "linalg", "signal", "autodiff", "bitwise"}
PACKAGES = {
    "tapewright.layers": "layers",
    "tapewright.optimizers": "optimizers",
    "tapewright.datasets": "datasets",
    "tapewright": "framework",
}
ALLOWED_OUTSIDE = {"numpy", "h5py", "tqdm", "cupy", "tapewright"}
# Extras, imported where they are used: inside functions.
ALLOWED_OUTSIDE |= {"matplotlib", "tensorboardX"}


def sources():
    """Dotted module name -> file, for all of ours."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            found[".".join((package, *parts))] = path
    return found


SOURCES = sources()


def imports(module):
    """``(module, line)`` for everything that a file of ours imports, wherever it stands."""
    path = SOURCES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: -(node.level - 1) or None] if node.level else []
            name = ".".join([*base, *filter(None, [node.module])])
            submodules = [f"{name}.{a.name}" for a in node.names]
            if all(s in SOURCES for s in submodules):
                yield from ((s, node.lineno) for s in submodules)
            else:
                yield name, node.lineno
                yield from ((s, node.lineno) for s in submodules if s in SOURCES)


def place(module):
    """``(floor, room, position in the room)``, or None for what stands aside."""
    tail = module.removeprefix("tapewright").removeprefix(".")
    folder, _, rest = tail.partition(".")
    if f"{folder}/" == ASIDE:
        return None
    for floor, rooms in enumerate(FLOORS):
        if f"{folder}/" in rooms:
            position = 0
            if folder == "ops" and rest:
                position = OPS.index(rest)
            elif folder in FOLDERS and rest:
                inner = rest.partition(".")[0] if "." in rest else ""
                position = FOLDERS[folder].index(inner)
            return floor, rooms.index(f"{folder}/"), position
        if (tail or "__init__") in rooms:
            return floor, rooms.index(tail or "__init__"), 0
    raise AssertionError(f"{module} has no floor: add it to the table")


def own(module):
    return [(name, line) for name, line in imports(module) if name in SOURCES]


@pytest.mark.parametrize("module", SOURCES)
def test_every_file_has_a_floor(module):
    assert place(module) is not None or module.startswith("tapewright.datasets")


@pytest.mark.parametrize("module", [m for m in SOURCES if place(m) is not None])
def test_a_file_imports_from_below_or_from_before(module):
    here = place(module)
    for name, line in own(module):
        where = f"{SOURCES[module].relative_to(ROOT)}:{line} imports {name}"
        if name == "tapewright":  # `from tapewright import x`: x itself is checked
            continue
        there = place(name)
        assert there is not None or here[0] >= 9, f"{where}, which stands aside"
        if there is None or name.rpartition(".")[2] in ALIASES:
            continue
        same_room = here[:2] == there[:2]
        room = FLOORS[here[0]][here[1]]
        if same_room and room.rstrip("/") in FOLDERS:
            assert there[2] <= here[2], f"{where}, a later folder"
            continue
        if same_room and room != "ops/":
            continue  # the order inside other folders is theirs; cycles are checked below
        if SOURCES[module].name == "__init__.py" and same_room:
            continue  # the listing of a folder
        strangers = FLOORS[here[0]] == ["layers/", "optimizers/"] and not same_room
        assert not (strangers and here[0] == there[0]), f"{where}, a stranger"
        assert there < here, f"{where}: floor {there[0]} is not below floor {here[0]}"


@pytest.mark.parametrize("folder", FOLDERS["saving"])
def test_the_docstring_of_a_folder_lists_its_files(folder):
    path = ROOT / "framework" / "saving" / folder
    text = ast.get_docstring(ast.parse((path / "__init__.py").read_text()))
    inside = {each.name for each in path.iterdir() if (each / "__init__.py").exists()}
    if folder:
        inside = {each.stem for each in path.glob("*.py")} - {"__init__"}
    lines = [
        re.fullmatch(r" *([a-z_0-9]+) {3,}\S.*", each) for each in text.split("\n")
    ]
    assert {line[1] for line in lines if line} == inside


@pytest.mark.parametrize("module", [m for m in SOURCES if place(m) is None])
def test_datasets_know_the_ground_floor_only(module):
    for name, line in own(module):
        if name.startswith("tapewright.datasets") or name == "tapewright":
            continue
        assert place(name)[0] == 0, f"{SOURCES[module].name}:{line} imports {name}"


def test_there_are_no_import_cycles():
    graph = {
        module: {
            n for n, _ in own(module) if n != module and not _is_listing(n, module)
        }
        for module in SOURCES
        if SOURCES[module].name != "__init__.py"
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


def _is_listing(name, importer):
    """Whether ``name`` is the ``__init__`` of a folder, of which only members are used."""
    return SOURCES[name].name == "__init__.py"


@pytest.mark.parametrize("module", SOURCES)
def test_nothing_else_is_depended_on(module):
    import sys

    for name, line in imports(module):
        top = name.partition(".")[0]
        assert top in sys.stdlib_module_names or top in ALLOWED_OUTSIDE, (
            f"{SOURCES[module].name}:{line} imports {name}"
        )


@pytest.mark.parametrize("module", SOURCES)
def test_cupy_is_imported_by_the_backend_alone(module):
    names = {name.partition(".")[0] for name, _ in imports(module)}
    assert "cupy" not in names or module == "tapewright.backend"


@pytest.mark.parametrize("module", SOURCES)
def test_files_of_one_folder_import_each_other_relatively(module):
    path = SOURCES[module]
    package = max((p for p in PACKAGES if module.startswith(p)), key=len)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            inside = node.module in SOURCES and PACKAGES[package] == "framework"
            top = max(
                (p for p in PACKAGES if node.module.startswith(p)), key=len, default=""
            )
            same = inside and top == "tapewright" and node.module != "tapewright"
            same |= package != "tapewright" and top == package
            assert not same, (
                f"{path.name}:{node.lineno} imports {node.module} absolutely"
            )
