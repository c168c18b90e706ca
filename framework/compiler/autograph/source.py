"""Source of functions: which are converted, and the syntax tree of a code object.

Source comes from `linecache`, as for tracebacks: files, notebook cells, docstring
examples, and the prompt from Python 3.13 on. In older versions, lines of the prompt are
in its history. A tree is used only if it compiles to the code of the function, so a
file that has changed since its import is not mistaken for it.
"""

import __future__

import ast
import functools
import linecache
import operator
import re
import sys
import sysconfig
import warnings
from pathlib import Path

from tapewright.core.messages.source_lines import is_own_code

# Lines of the history of the prompt that are searched for a function.
HISTORY = 3000
DECORATORS, LONGEST = 8, 400  # lines above its head, and of a function
# Installed packages that do not compute with our tensors.
_FOREIGN = frozenset(
    "numpy cupy scipy pandas matplotlib PIL h5py tqdm llvmlite mpi4py pytest _pytest "
    "pluggy IPython ipykernel".split()
)
_INSTALLED = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
_STANDARD = sysconfig.get_path("stdlib")

_FUTURES = [getattr(__future__, name) for name in __future__.all_feature_names]
SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
BLOCKS = ast.stmt, ast.excepthandler, ast.match_case
ALL_SYNTAX = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@functools.lru_cache(maxsize=4096)
def is_convertible(filename):
    """Return whether a file may hold code that computes with tensors."""
    if is_own_code(filename) or filename.startswith("<frozen"):
        return False
    for folder in _INSTALLED:
        if filename.startswith(folder):
            top = Path(filename).relative_to(folder).parts[0]
            return top.removesuffix(".py") not in _FOREIGN
    return not filename.startswith(_STANDARD)


class NoSource(Exception):  # noqa: N818  (a reason, not an error of the user)
    """The source of a function is not available; the text says why."""


def future_flags(code):
    """Return the flags of the ``from __future__`` imports under which code was compiled."""
    flags = [feature.compiler_flag for feature in _FUTURES]
    return code.co_flags & functools.reduce(operator.or_, flags)


def find_node(function):
    """Return the node of a function, and the name of the enclosing class or None.

    Its attribute ``warns`` is True if Python warns about the source; ``imports`` are
    the imports of its module.

    Raises:
        NoSource: If the source is not available.
    """
    code = function.__code__
    name, flags = code.co_filename, future_flags(code)
    lines = linecache.getlines(name, function.__globals__)
    if lines:
        return _match(_Module.of("".join(lines), name, flags), code)
    if name == "<string>" and "-c" in sys.orig_argv:
        module = _Module.of(sys.orig_argv[sys.orig_argv.index("-c") + 1], name, flags)
        node = None if module is None else module.find(code)
        if node is not None:
            return node
    if name == "<stdin>":
        return _typed(code, flags)
    raise NoSource(f"its source, {name}, cannot be found")


def _match(module, code):
    node = None if module is None else module.find(code)
    if node is None:
        raise NoSource(f"its source, {code.co_filename}, has changed since")
    return node


class _Module:
    """A parsed module: the nodes of its functions, and their compiled code."""

    def __init__(self, source, filename, flags):
        # Python has given the warnings on the source. `catch_warnings` makes Python forget
        # which lines have warned, so that it is called once for each module.
        with warnings.catch_warnings(record=True, action="always") as caught:
            tree = ast.parse(source, filename)
            whole = compile(source, filename, "exec", flags | ALL_SYNTAX, True)
        self.length, self.warns = len(tree.body), bool(caught)
        self.imports = list(_imports(tree))
        self.nodes = {}  # name and first line -> nodes, each with its class
        self._collect(tree, None)
        self.codes = {}
        self._collect_codes(whole)

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, source, filename, flags):
        """Return the module of this source, or None if it cannot be parsed."""
        try:
            return cls(source, filename, flags)
        except (SyntaxError, ValueError):
            return None

    def _collect(self, tree, home):
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                first = min(
                    [x.lineno for x in (node, *getattr(node, "decorator_list", ()))]
                )
                name = getattr(node, "name", "<lambda>")
                node.warns, node.imports = self.warns, self.imports
                self.nodes.setdefault((name, first), []).append((node, home))
            is_class = isinstance(node, ast.ClassDef)
            self._collect(node, node.name if is_class else home)

    def _collect_codes(self, code):
        for inner in code.co_consts:
            if hasattr(inner, "co_code"):
                key = inner.co_name, inner.co_firstlineno
                self.codes.setdefault(key, []).append(inner)
                self._collect_codes(inner)

    def find(self, code):
        """Return the node that compiles to this code and its class, or None."""
        key = code.co_name, code.co_firstlineno
        nodes, codes = self.nodes.get(key, ()), self.codes.get(key, ())
        if len(nodes) == len(codes) == 1:
            return nodes[0] if _alike(codes[0], code) else None
        spans = [span for span in map(_span, codes) if span is not None]
        for node, home in nodes:  # several lambdas of one line
            if _span(code) in spans and _holds(node, _span(code)):
                return node, home
        return None


def _imports(node):
    """Yield the import statements at the top level of a module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif isinstance(child, BLOCKS) and not isinstance(child, SCOPES):
            yield from _imports(child)


def _alike(compiled, code):
    """Return whether code comes from a source, even if pytest has rewritten its asserts."""
    if compiled.co_code == code.co_code:
        return compiled.co_names == code.co_names
    rewritten = any([name.startswith("@py") for name in _names(code)])
    return rewritten and _names(compiled) <= _names(code) | {"AssertionError"}


def _names(code):
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    for inner in code.co_consts:
        if hasattr(inner, "co_code"):
            names |= _names(inner)
    return names


def _span(code):
    """Return where the expression of a lambda begins and ends."""
    positions = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    if not positions:
        return None
    return min([(a, c) for a, _, c, _ in positions]), max(
        [(b, d) for _, b, _, d in positions]
    )


def _holds(node, span):
    body = node.body
    if not isinstance(node, ast.Lambda) or span is None:
        return False
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return span == (start, end)


def _typed(code, flags):
    """Find a function in the lines typed at the prompt."""
    readline = sys.modules.get("readline")
    if readline is None:
        raise NoSource("its source was read from the standard input, which is not kept")
    count = readline.get_current_history_length()
    numbers = range(max(1, count - HISTORY), count + 1)
    lines = [readline.get_history_item(i) or "" for i in numbers]
    name = re.escape(code.co_name)
    head = re.compile(r"lambda\b" if name == "<lambda>" else rf"def\s+{name}\b")
    starts = [
        start
        for k in reversed(range(len(lines)))
        if head.search(lines[k])
        for start in range(k, max(-1, k - DECORATORS), -1)
    ]
    for start in starts:
        node = _find_in_first(lines[start : start + LONGEST], code, flags)
        if node is not None:
            return node
    raise NoSource("its source is not among the lines typed at the prompt")


def _find_in_first(lines, code, flags):
    """Find a function in the first statement of these lines, or return None."""
    for end in range(1, len(lines) + 1):
        module = _Module.of("\n".join(lines[:end]) + "\n", code.co_filename, flags)
        node = None if module is None else module.find(code)
        if node is not None or (module is not None and module.length > 1):
            return node
    return None
