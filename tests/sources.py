"""The source files of the package, each parsed once for all tests that read them."""

import ast
import functools
import re
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
    run: list  # those not under ``if TYPE_CHECKING`` or ``with lazy_imports``
    private: list  # nodes ``value._attribute``
    members: set  # private names that classes define, or assign to their objects
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


def of_self(node):
    """Return whether an attribute is one of the object or the class of a method."""
    return ast.unparse(node.value) in ("self", "cls", "super()")


def names_in(node):
    """Return the names that the body of a class defines, those of slots among them."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            yield each.name
        elif isinstance(each, ast.Assign | ast.AnnAssign):
            for part in ast.walk(each):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.id
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


@functools.cache
def source(path):
    """Return the `Source` of a file, parsed once in a process."""
    found = Source([], [], [], set(), [], set())
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement in tree.body:
        later = isinstance(statement, ast.If | ast.With) and re.match(
            r"if TYPE_CHECKING:|with .*lazy_imports\(", ast.unparse(statement)
        )
        for node in ast.walk(statement):
            if isinstance(node, _IMPORTS):
                found.imports.append(node)
                if not later:
                    found.run.append(node)
            elif isinstance(node, ast.Attribute):
                if is_private(node.attr):
                    found.private.append(node)
                    if isinstance(node.ctx, ast.Store) and of_self(node):
                        found.members.add(node.attr)
            elif isinstance(node, ast.Constant):
                if isinstance(node.value, str):
                    found.strings.add(node.value)
            elif isinstance(node, _DOCUMENTED):
                found.docstrings.append(ast.get_docstring(node))
                if isinstance(node, ast.ClassDef):
                    found.members.update(filter(is_private, names_in(node)))
    found.docstrings.append(ast.get_docstring(tree))
    return found
