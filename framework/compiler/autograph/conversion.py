"""Convert functions when traced code calls them; each code object is converted once."""

import ast
import functools
import re
import sys
import threading
import types
import warnings
import weakref
from contextlib import nullcontext
from copy import deepcopy

from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.source_lines import is_own_code, user_code

from .builtin_functions import replacement_of
from .jumps import Unconvertible
from .source import NoSource, find_node, future_flags, is_convertible
from .transformer import OPERATORS, transform

# Functions of Python that call functions which they are given.
_TAKE_FUNCTIONS = map, filter, functools.reduce, sorted

# Code objects of different files may be equal: they are found by identity. The value is the
# converted code, None if the code is converted or has no control flow, or a reason.
_CONVERTED = {}  # id of a code object -> weak reference to it, value
_UNKNOWN = object()

# Python 3.11 counts the depth of syntax trees for all threads together, and then raises.
_LOCK = threading.Lock()

# Functions of the rewriting in the qualified name of what is inside of them.
_INNER = re.compile(rf"\.<locals>\.{OPERATORS}\w+")


def _known(code):
    reference, value = _CONVERTED.get(id(code), (None, None))
    return value if reference is not None and reference() is code else _UNKNOWN


def _remember(code, value):
    key = id(code)
    # `pop` is a default: at exit, code objects die after the names of this module.
    reference = weakref.ref(code, lambda _, pop=_CONVERTED.pop: pop(key, None))
    _CONVERTED[key] = reference, value


def convert(function):
    """Return a callable with its control flow converted.

    Functions, methods and callable objects of the user are converted, and functions
    among the arguments of tapewright functions. Everything else is returned unchanged.
    """
    kind = type(function)
    if kind is types.FunctionType:
        name = function.__code__.co_filename
        if is_own_code(name):
            return _with_converted_arguments(function)
        return _converted_function(function) if is_convertible(name) else function
    if kind is types.MethodType:
        new = convert(function.__func__)
        if new is function.__func__:
            return function
        return types.MethodType(new, function.__self__)
    if kind is functools.partial:
        return kind(convert(function.func), *function.args, **function.keywords)
    if isinstance(function, (type, types.BuiltinFunctionType)):
        if any([function is each for each in _TAKE_FUNCTIONS]):
            return _with_converted_arguments(function)
        return replacement_of(function)
    call = getattr(kind, "__call__", None)  # noqa: B004  (not whether, but which)
    if type(call) is types.FunctionType and is_convertible(call.__code__.co_filename):
        return types.MethodType(_converted_function(call), function)
    return function


def _with_converted_arguments(function):
    def call(*args, **kwargs):
        args = [_converted_argument(x) for x in args]
        kwargs = {key: _converted_argument(x) for key, x in kwargs.items()}
        return function(*args, **kwargs)

    return call


def _converted_argument(x):
    """Convert a function, or functions in a list, tuple or dict; return others unchanged."""
    if type(x) in (list, tuple):
        new = [_converted_argument(y) for y in x]
        return x if all(map(_same, x, new)) else type(x)(new)
    if type(x) is dict:
        new = {key: _converted_argument(y) for key, y in x.items()}
        return x if all(map(_same, x.values(), new.values())) else new
    function = x.__func__ if type(x) is types.MethodType else x
    if type(function) is not types.FunctionType:
        return x
    return convert(x) if is_convertible(function.__code__.co_filename) else x


def _same(a, b):
    return a is b


def _converted_function(function):
    """Return a function with the converted code and the same cells and defaults."""
    code = function.__code__
    converted = _converted_code(function)
    if converted is None or isinstance(converted, str):
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[OPERATORS] = _operators()
    closure = tuple([cells[name] for name in converted.co_freevars])
    new = types.FunctionType(
        converted,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        closure,
    )
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)
    new.__doc__, new.__qualname__ = function.__doc__, function.__qualname__
    new.__module__, new.__wrapped__ = function.__module__, function
    return new


@functools.cache
def _operators():
    """Return the cell by which converted code refers to the operators."""
    from . import operators  # which convert what they call

    return types.CellType(operators)


def _converted_code(function):
    """Return the converted code, None if there is nothing to convert, or a reason."""
    code = function.__code__
    converted = _known(code)
    if converted is _UNKNOWN:
        try:
            with _LOCK:
                converted = _compiled(code, _tree(function))
        except (NoSource, Unconvertible) as reason:
            converted = str(reason)
        _remember(code, converted)
    return converted


def _tree(function):
    """Return the rewritten tree of a function, nested in a function with its variables."""
    node, home = find_node(function)
    free = function.__code__.co_freevars
    tree = transform(deepcopy(node), home, "__class__" in free)
    tree.warns, tree.imports = node.warns, node.imports
    names = [ast.arg(name) for name in (OPERATORS, *free)]
    arguments = ast.arguments([], names, None, [], [], None, [])
    factory = ast.FunctionDef("ag__factory", arguments, [tree], [], None)
    if home is not None:  # private names are those of the class
        factory = ast.ClassDef(home, [], [], [factory], [])
    tree.factory = ast.fix_missing_locations(ast.copy_location(factory, node))
    if sys.version_info >= (3, 12):
        for x in ast.walk(factory):
            if isinstance(x, (ast.FunctionDef, ast.ClassDef)) and not hasattr(
                x, "type_params"
            ):
                x.type_params = []
    return tree


def _compiled(code, tree):
    """Compile a rewritten tree; return the code, or None if it uses no operator."""
    # Python writes `np.exp(x)` otherwise where the module imports `np`; by their code
    # functions inside of this one are found in its source.
    module = ast.Module([*tree.imports, tree.factory], [])
    with warnings.catch_warnings(action="ignore") if tree.warns else nullcontext():
        whole = compile(module, code.co_filename, "exec", future_flags(code), True)
    converted = _code_in(_code_named(whole, "ag__factory"))
    if OPERATORS not in converted.co_freevars:
        return None
    converted = _renamed(converted, code.co_name, code.co_qualname)
    _note(converted)
    return converted


def _code_named(code, name):
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            match = inner if inner.co_name == name else _code_named(inner, name)
            if match is not None:
                return match
    return None


def _code_in(code):
    return next(x for x in code.co_consts if isinstance(x, types.CodeType))


def _renamed(code, name, qualname):
    """Give code the qualified name of its original function, and rename nested code.

    Inner functions of the rewriting get the name of the function, for tracebacks.
    """
    prefix = code.co_qualname

    def qualified(text):
        return qualname + _INNER.sub("", text.removeprefix(prefix))

    def renamed(code):
        consts = []
        for x in code.co_consts:
            if isinstance(x, types.CodeType):
                x = renamed(x)
            elif isinstance(x, str) and x.startswith(f"{prefix}."):  # of a class
                x = qualified(x)
            consts.append(x)
        own = name if code.co_name.startswith(OPERATORS) else code.co_name
        return code.replace(
            co_consts=tuple(consts),
            co_name=own,
            co_qualname=qualified(code.co_qualname),
        )

    return renamed(code)


def _note(code):
    """Remember that code is converted, with the inner functions of the rewriting."""
    _remember(code, None)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType) and inner.co_name == code.co_name:
            _note(inner)


def converted_source(function):
    """Return the converted code of a function as text.

    Raises:
        ValueError: If it cannot be converted, with the reason.
    """
    try:
        with _LOCK:
            tree = _tree(function)
    except (NoSource, Unconvertible) as reason:
        raise ValueError(
            f"{function.__qualname__} is not converted: {reason}"
        ) from None
    tree.name = function.__name__.strip("<>")
    return ast.unparse(tree)


def do_not_convert(func=None):
    """Exclude ``func``, and all functions that it calls, from control flow conversion.

    A decorator, with or without parentheses.

    Args:
        func: Function to exclude; None to return a decorator.

    Example:
        >>> @tw.autograph.experimental.do_not_convert
        ... def sign(x):
        ...     return 1 if x > 0 else -1
        >>> sign(2.0)
        1
    """
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def call(*args, **kwargs):
        tracer = active_tracer()
        if tracer is None:
            return func(*args, **kwargs)
        before, tracer.converts = tracer.converts, False
        try:
            return func(*args, **kwargs)
        finally:
            tracer.converts = before

    return call


def why_not_converted():
    """Return why the running user code is not converted, or None if it is."""
    code, tracer = user_code(), active_tracer()
    known = _UNKNOWN if code is None else _known(code)
    if known is None:
        return None
    if tracer is not None and not tracer.converts and code is not None:
        return f"'{code.co_name}' runs with autograph=False or do_not_convert"
    return f"'{code.co_name}' is not converted: {known}" if type(known) is str else None
