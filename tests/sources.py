"""The source files of the package, each parsed once for all tests that read them."""

import ast
import functools
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "tapewright.layers": "layers",
    "tapewright.optimizers": "optimizers",
    "tapewright.datasets": "datasets",
    "tapewright": "framework",
}
_DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef
_IMPORTS = ast.Import, ast.ImportFrom


class Source(NamedTuple):
    """The parts of a file that tests read: the trees of all files would fill the memory."""

    imports: list  # nodes, wherever they stand
    run: list  # those not under ``if TYPE_CHECKING``, which never runs
    private: list  # nodes ``value._attribute``
    methods: set  # names that start with an underscore, defined in classes
    fields: set  # names that start with an underscore, assigned to objects
    docstrings: list
    strings: set  # all constants that are texts


def paths(*folders):
    """The Python files of some folders of the root, by default of all that are ours."""
    for folder in folders or PACKAGES.values():
        yield from sorted((ROOT / folder).rglob("*.py"))


def modules():
    """Return the file of each module of ours, by its full name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in paths(folder):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            found[".".join((package, *parts))] = path
    return found


def is_private(name):
    """Return whether other folders may not use a name."""
    return name.startswith("_") and not name.startswith(("__", "_tw_"))


@functools.cache
def source(path):
    """Return the `Source` of a file, parsed once in a process."""
    found = Source([], [], [], set(), set(), [], set())
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement in tree.body:
        never = isinstance(statement, ast.If) and (
            ast.unparse(statement.test) == "TYPE_CHECKING"
        )
        for node in ast.walk(statement):
            if isinstance(node, _IMPORTS):
                found.imports.append(node)
                if not never:
                    found.run.append(node)
            elif isinstance(node, ast.Attribute):
                if is_private(node.attr):
                    found.private.append(node)
                    if isinstance(node.ctx, ast.Store):
                        found.fields.add(node.attr)
            elif isinstance(node, ast.Constant):
                if isinstance(node.value, str):
                    found.strings.add(node.value)
            elif isinstance(node, _DOCUMENTED):
                found.docstrings.append(ast.get_docstring(node))
                if isinstance(node, ast.ClassDef):
                    names = [getattr(each, "name", "") for each in node.body]
                    found.methods.update(filter(is_private, names))
    found.docstrings.append(ast.get_docstring(tree))
    return found
