"""Rewrite the control flow of a function as calls of `operators`.

    if c:                          def ag__if():
        x = a                          nonlocal x
    else:                              x = a
        x = b                      def ag__else():
                                       nonlocal x
                                       x = b
                                   ag__.if_stmt(c, ag__if, ag__else, ("x",), ...)

Variables are shared with these inner functions by cells, as usual in Python; the
operators read and write the cells. Every new node has the line of the statement that it
replaces: tracebacks show the user's lines.
"""

import ast

from .jumps import Unconvertible, lower_jumps
from .liveness import (
    annotate,
    assigned_names,
    changed_attributes,
    read_names,
    used_later,
)

OPERATORS = "ag__"
FUNCTION = "ag__function"  # its own name may be that of a global, in a recursion
COMPARISONS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt",
    ast.GtE: "ge", ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in",
}  # fmt: skip
OF_THE_FRAME = "locals", "vars", "eval", "exec", "dir"
SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef


def transform(node, home, has_class_cell):
    """Return the node of a function with its control flow rewritten.

    ``home`` is the name of the enclosing class, or None; ``has_class_cell`` says
    whether the function calls ``super()``.

    Raises:
        Unconvertible: If the function cannot be rewritten.
    """
    _check(node)
    if isinstance(node, ast.Lambda):
        body = [ast.copy_location(ast.Return(node.body), node.body)]
    else:
        body = node.body
    arguments = node.args
    first = [*arguments.posonlyargs, *arguments.args][:1]
    body, declared = _without_declarations(body)
    docstring = ast.get_docstring(ast.Module(body, []), clean=False) is not None
    body = body[docstring:] or [ast.copy_location(ast.Pass(), node)]
    body = lower_jumps(body)
    annotate(body)
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [x for x in (arguments.vararg, arguments.kwarg) if x is not None]
    bound = assigned_names(body) - {x.arg for x in every} - set(declared)
    own = bound | {x.arg for x in every}
    owner = first[0].arg if has_class_cell and first else None
    rewriter = _Rewriter(declared, own, used_later(body), home, owner)
    body = rewriter.block(body)
    # A name that only inner functions assign is bound by its annotation.
    shared = sorted(rewriter.shared & bound)
    head = [
        ast.AnnAssign(ast.Name(x, ast.Store()), ast.Constant(...), None, 1)
        for x in shared
    ]
    head = [*_declarations(declared, declared), *head]
    head = [ast.copy_location(x, node) for x in head]
    for argument in every:
        argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [x and ast.Constant(None) for x in arguments.kw_defaults]
    function = ast.FunctionDef(FUNCTION, arguments, [*head, *body], [], None)
    return ast.fix_missing_locations(ast.copy_location(function, node))


def _check(node):
    """Raise for code that cannot be moved into inner functions."""
    if isinstance(node, ast.AsyncFunctionDef):
        raise Unconvertible("it is a coroutine")
    for inner in _own_nodes(node):
        if isinstance(inner, (ast.Yield, ast.YieldFrom)):
            raise Unconvertible("it is a generator")
        if isinstance(inner, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            raise Unconvertible("it is a coroutine")
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            if inner.func.id in OF_THE_FRAME and not (
                inner.func.id == "vars" and inner.args
            ):
                raise Unconvertible(f"it calls {inner.func.id}()")
        if isinstance(inner, ast.Name) and inner.id.startswith(OPERATORS):
            raise Unconvertible(f"it uses the name {inner.id}")


def _own_nodes(node):
    """Yield the nodes of a function, excluding nested functions and classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, SCOPES):
            yield child
            yield from _own_nodes(child)


def _without_declarations(body):
    """Return the body without ``global`` and ``nonlocal``, and the names with their kind."""
    declared = {}

    class Removal(ast.NodeTransformer):
        def visit_Global(self, node):  # noqa: N802
            declared.update(dict.fromkeys(node.names, ast.Global))
            return ast.copy_location(ast.Pass(), node)

        def visit_Nonlocal(self, node):  # noqa: N802
            declared.update(dict.fromkeys(node.names, ast.Nonlocal))
            return ast.copy_location(ast.Pass(), node)

        def visit_FunctionDef(self, node):  # noqa: N802
            return node

        visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    return [Removal().visit(x) for x in body], declared


def _declarations(names, declared):
    """Return the statements that declare names of an inner function."""
    statements = []
    for kind in (ast.Global, ast.Nonlocal):
        own = sorted([x for x in names if declared.get(x, ast.Nonlocal) is kind])
        statements += [kind(own)] if own else []
    return statements


class _Rewriter(ast.NodeTransformer):
    """Rewrite one function.

    ``declared`` maps the names that it declares to the kind of statement, ``own`` are
    its variables, ``used_later`` the names that nested functions use, ``home`` is the
    name of the enclosing class, and ``first`` its first argument if it calls
    ``super()``. ``shared`` collects the names that the new inner functions assign.
    """

    def __init__(self, declared, own, used_later, home, first):
        self.declared, self.own = declared, own
        self.used_later = used_later | set(declared)
        self.home, self.first = home, first
        self.shared, self.count = set(), 0

    def block(self, statements):
        block = []
        for node in statements:
            new = self.visit(node)
            block += new if isinstance(new, list) else [new]
        return block

    # --- statements

    def visit_If(self, node):  # noqa: N802
        names = assigned_names([*node.body, *node.orelse])
        attributes, reachable = self.chains([*node.body, *node.orelse], names)
        needed = names & (node.needed | self.used_later)
        yes, no = self.fresh("if"), self.fresh("else")
        call = self.operator(
            "if_stmt", self.visit(node.test), _load(yes), _load(no),
            self.texts(needed), self.texts(names & node.needed),
            self.texts(attributes),
            self.texts(reachable),
        )  # fmt: skip
        return self.located(
            node,
            self.inner(node, yes, [], names, self.block(node.body)),
            self.inner(node, no, [], names, self.block(node.orelse)),
            ast.Expr(call),
        )

    def visit_While(self, node):  # noqa: N802
        names, call = assigned_names(node.body), self.loop(node, set())
        test, body = self.fresh("test"), self.fresh("body")
        returned = [ast.copy_location(ast.Return(self.visit(node.test)), node.test)]
        return self.located(
            node,
            self.inner(node, test, [], (), returned),
            self.inner(node, body, [], names, self.block(node.body)),
            call("while_stmt", _load(test), _load(body)),
        )

    def visit_For(self, node):  # noqa: N802
        targets = assigned_names([node.target])
        names, call = assigned_names(node.body) | targets, self.loop(node, targets)
        body, item = self.fresh("body"), "ag__item"
        assign = ast.Assign([self.visit(node.target)], _load(item))
        statements = [ast.copy_location(assign, node.target), *self.block(node.body)]
        return self.located(
            node,
            self.inner(node, body, [item], names, statements),
            call("for_stmt", self.iterable(node.iter), _load(body)),
        )

    def loop(self, node, names):
        """Return a function that makes the call of a loop, given the current names.

        Its variables are the variables that a further step, or the following code,
        reads.
        """
        names = names | assigned_names(node.body)
        later = node.needed | self.used_later
        head = node.target if isinstance(node, ast.For) else node.test
        attributes, reachable = self.chains([*node.body, head], names)
        described = [
            self.texts(names & (later | node.again)),
            self.texts(names & later),
            self.texts(attributes),
            self.texts(reachable),
            self.texts(node.stop),
        ]
        return lambda name, *operands: ast.Expr(
            self.operator(name, *operands, *described)
        )

    def visit_Assert(self, node):  # noqa: N802
        if not __debug__:
            return node
        message = (
            ast.Constant(None) if node.msg is None else _thunk(self.visit(node.msg))
        )
        if assigned_names([node]):
            return self.generic_visit(node)
        test = self.visit(node.test)
        return self.located(node, ast.Expr(self.operator("assert_stmt", test, message)))

    def visit_FunctionDef(self, node):  # noqa: N802
        return node  # converted when it is called

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def visit_ExceptHandler(self, node):  # noqa: N802
        self.generic_visit(node)
        check = ast.Expr(self.operator("check_caught"))
        node.body = [*self.located(node.body[0], check), *node.body]
        return node

    def visit_With(self, node):  # noqa: N802
        """Record the error that leaves the body, as the context manager may swallow it."""
        self.generic_visit(node)
        left = self.fresh("left")
        note = ast.Assign(
            [ast.Name(left, ast.Store())], self.operator("conditional_error")
        )
        handler = ast.ExceptHandler(None, None, [note, ast.Raise(None, None)])
        node.body = self.located(node.body[0], ast.Try(node.body, [handler], [], []))
        reset = ast.Assign([ast.Name(left, ast.Store())], ast.Constant(None))
        check = ast.Expr(self.operator("check_swallowed", _load(left)))
        return [*self.located(node, reset), node, *self.located(node, check)]

    # --- expressions

    def iterable(self, node):
        """Return the expression that a loop iterates over: ranges need not become tensors."""
        if not isinstance(node, ast.Call) or assigned_names([node]):
            return self.visit(node)
        node.args = [
            x if isinstance(x, ast.Starred) else self.iterable(x) for x in node.args
        ]
        node.args = [
            self.visit(x) if isinstance(x, ast.Starred) else x for x in node.args
        ]
        node.keywords = [self.visit(x) for x in node.keywords]
        node.func = self.operator("iterable", self.visit(node.func))
        return node

    def visit_Call(self, node):  # noqa: N802
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super"
        if is_super and not node.args and not node.keywords and self.first:
            node.args = [_load("__class__"), _load(self.first)]
            return node
        self.generic_visit(node)
        if not is_super:
            node.func = ast.copy_location(
                self.operator("converted", node.func), node.func
            )
        return node

    def visit_BoolOp(self, node):  # noqa: N802
        if assigned_names(node.values[1:]):  # `:=` stays in its scope
            return self.generic_visit(node)
        first, *rest = [self.visit(x) for x in node.values]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        call = self.operator(name, first, *map(_thunk, rest))
        call.keywords = self.effects(rest)
        return ast.copy_location(call, node)

    def visit_UnaryOp(self, node):  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(self.operator("not_", node.operand), node)

    def visit_IfExp(self, node):  # noqa: N802
        if assigned_names([node.body, node.orelse]):
            return self.generic_visit(node)
        self.generic_visit(node)
        branches = _thunk(node.body), _thunk(node.orelse)
        call = self.operator("if_exp", node.test, *branches)
        call.keywords = self.effects([node.body, node.orelse])
        return ast.copy_location(call, node)

    def visit_Compare(self, node):  # noqa: N802
        if len(node.ops) == 1 or assigned_names(node.comparators[1:]):
            self.generic_visit(node)
            return self.test_of_none(node) or node
        self.generic_visit(node)
        names = [ast.Constant(COMPARISONS[type(op)]) for op in node.ops]
        pairs = [
            ast.Tuple([name, _thunk(x)], ast.Load())
            for name, x in zip(names, node.comparators, strict=True)
        ]
        return ast.copy_location(self.operator("compare", node.left, *pairs), node)

    def test_of_none(self, node):
        """Return ``x is None``, or ``is not``, as an operator; None for another comparison."""
        left, right = node.left, node.comparators[0]
        given = [x for x in (left, right) if not _is_none(x)]
        if len(given) != 1 or type(node.ops[0]) not in (ast.Is, ast.IsNot):
            return None
        name = "is_none" if type(node.ops[0]) is ast.Is else "is_not_none"
        return ast.copy_location(self.operator(name, *given), node)

    # --- building

    def operator(self, name, *arguments):
        function = ast.Attribute(_load(OPERATORS), name, ast.Load())
        return ast.Call(function, list(arguments), [])

    def fresh(self, name):
        self.count += 1
        return f"ag__{name}_{self.count}"

    def inner(self, node, name, parameters, names, body):
        """Return an inner function that assigns the names of the enclosing function."""
        self.shared.update(names)
        arguments = ast.arguments(
            [], [ast.arg(x) for x in parameters], None, [], [], None, []
        )
        declared = _declarations(names, self.declared)
        body = [*declared, *body] if body else [*declared, ast.Pass()]
        return ast.FunctionDef(name, arguments, body, [], None)

    def texts(self, names):
        names = sorted([self.mangled(x) for x in names])
        return ast.Tuple([ast.Constant(x) for x in names], ast.Load())

    def mangled(self, name):
        """Return the name as the compiler mangles it in a class: ``__x`` is ``_Home__x``."""
        parts = []
        for part in name.split("."):
            if self.home and part.startswith("__") and not part.endswith("__"):
                part = f"_{self.home.lstrip('_')}{part}"
            parts.append(part)
        return ".".join(parts)

    def chains(self, block, names):
        """Return the attributes that a block assigns, and where it may modify containers.

        The latter are the variables of the function, including variables of nested
        functions that the block may call, and attributes like ``self.items``. Lists of
        the enclosing code change once, while it is traced, as everywhere in Python.
        """
        assigned, changed = changed_attributes(block)
        assigned = {x for x in assigned if x.partition(".")[0] not in names}
        reachable = changed | read_names(*block) | self.used_later
        return assigned, {x for x in reachable if x.partition(".")[0] in self.own}

    def effects(self, expressions):
        """Return the argument that lists the containers that called code may modify."""
        nodes = [node for each in expressions for node in ast.walk(each)]
        if not any([isinstance(node, ast.Call) for node in nodes]):
            return []
        names = (read_names(*expressions) | self.used_later) & self.own
        return [ast.keyword("reachable", self.texts(names))] if names else []

    @staticmethod
    def located(node, *statements):
        """Give new statements the lines of the statement that they replace.

        For a block this is its header, which tracebacks then show.
        """
        for x in statements:
            ast.copy_location(x, node)
        head, call = getattr(node, "iter", getattr(node, "test", node)), statements[-1]
        if head.end_lineno is not None:  # a test may be new, and have no line
            call.end_lineno, call.end_col_offset = head.end_lineno, head.end_col_offset
        return list(statements)


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def _load(name):
    return ast.Name(name, ast.Load())


def _thunk(node):
    """Return a function without arguments for an expression, evaluated where needed."""
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, node), node)
