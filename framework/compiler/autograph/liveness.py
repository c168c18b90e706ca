"""Names that code assigns, and names whose values are still needed after a statement.

Runs on functions without jumps (`jumps`). Each ``if``, ``while`` and ``for`` gets two
attributes: ``needed``, the names read after it, and ``again``, the names that a further
step of a loop reads.
"""

import ast

SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp

# Methods that change a list, dict or set.
CHANGES = frozenset(
    "append extend insert pop popitem remove clear update setdefault add discard sort "
    "reverse appendleft popleft extendleft".split()
)


def assigned_names(statements):
    """Return the names that statements bind in the scope of their function."""
    names = set()
    for node in statements:
        _collect_assigned(node, names)
    return names


def _collect_assigned(node, names):
    if isinstance(node, (*SCOPES, ast.Lambda)):
        if hasattr(node, "name"):
            names.add(node.name)
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        names.add(node.id)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names.update([(x.asname or x.name).partition(".")[0] for x in node.names])
    elif (
        isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name
    ):
        names.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        names.add(node.rest)
    if isinstance(node, COMPREHENSIONS):  # only `:=` binds a name outside of them
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                names.add(inner.target.id)
        return
    for child in ast.iter_child_nodes(node):
        _collect_assigned(child, names)


def read_names(*trees):
    """Return the names that expressions or statements read, inner functions included."""
    return set().union(*[_reads(tree) for tree in trees if tree is not None])


def _reads(node):
    names = getattr(node, "reads", None)
    if names is None:  # kept: a loop in loops is annotated many times
        if isinstance(node, ast.Name):
            names = {node.id} if isinstance(node.ctx, ast.Load) else set()
        else:
            names = set().union(*map(_reads, ast.iter_child_nodes(node)))
        node.reads = names
    return names


def used_later(statements):
    """Return the names that inner functions and classes use, whenever they are called."""
    names = set()
    for tree in statements:
        for node in ast.walk(tree):
            if isinstance(node, (*SCOPES, ast.Lambda)):
                names |= read_names(node) | assigned_names(ast.iter_child_nodes(node))
                nested = [x for x in ast.walk(node) if isinstance(x, ast.Nonlocal)]
                names.update(*[x.names for x in nested])
    return names


def changed_attributes(statements):
    """Return chains like ``self.x`` that are assigned, or whose containers are modified."""
    assigned, changed = set(), set()
    for tree in statements:
        for node in _of_this_function(tree):
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                assigned.add(_chain(node))
            elif isinstance(node, ast.AugAssign):  # of a list in place
                changed.add(_chain(node.target))
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                changed.add(_chain(node.value))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in CHANGES:
                    changed.add(_chain(node.func.value))
    return assigned - {None}, changed - {None}


def _of_this_function(tree):
    if isinstance(tree, (*SCOPES, ast.Lambda)):
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _of_this_function(child)


def _chain(node):
    """Return a chain of attributes as text, "a.b.c"; None for another expression."""
    if isinstance(node, ast.Name):
        return node.id
    inner = _chain(node.value) if isinstance(node, ast.Attribute) else None
    return None if inner is None else f"{inner}.{node.attr}"


def annotate(statements, live=frozenset(), kept=frozenset()):
    """Annotate the blocks of statements; return the names that are live before them.

    ``live`` are the names needed after them. ``kept`` are the names that stay live
    throughout, because an exception may lead to code that reads them.
    """
    for node in reversed(statements):
        live = _before(node, frozenset(live), kept) | kept
    return live


def _before(node, live, kept):
    if isinstance(node, ast.If):
        node.needed, node.again = live, frozenset()
        inner = annotate(node.body, live, kept) | annotate(node.orelse, live, kept)
        return inner | read_names(node.test)
    if isinstance(node, ast.While):
        return _loop(node, live, kept, read_names(node.test), set())
    if isinstance(node, ast.For):
        targets = assigned_names([node.target])
        head = _loop(node, live, kept, read_names(node.target), targets)
        return head | read_names(node.iter)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        inner = annotate(node.body, live, kept)
        names = [x.optional_vars for x in node.items if x.optional_vars is not None]
        inner = (inner - assigned_names(names)) | read_names(*names) | kept
        return inner | read_names(*[x.context_expr for x in node.items])
    if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))):
        end = annotate(node.finalbody, live, kept)
        handlers = frozenset().union(
            *[annotate(h.body, end, kept) | read_names(h.type) for h in node.handlers]
        )
        orelse = annotate(node.orelse, end, kept | end)
        return annotate(node.body, orelse | end, kept | end | handlers)
    if isinstance(node, ast.Match):
        inner = [annotate(case.body, live, kept) for case in node.cases]
        patterns = [x for case in node.cases for x in (case.pattern, case.guard)]
        return live.union(*inner) | read_names(node.subject, *patterns)
    if isinstance(node, SCOPES):
        return (live - {node.name}) | read_names(node)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        written = {x.id for t in targets for x in _plain_targets(t)}
        if node.value is None:
            return live
        return (live - written) | read_names(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return live | {node.target.id} | read_names(node.value)
    return live | read_names(node)


def _plain_targets(target):
    """Return the names of an assignment's target that it surely binds."""
    if isinstance(target, ast.Name):
        return [target]
    if isinstance(target, ast.Starred):
        return _plain_targets(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for each in target.elts for name in _plain_targets(each)]
    return []


def _loop(node, live, kept, read, targets):
    """Annotate a loop, whose body may precede itself; return the names live before it."""
    stop = set(node.stop)
    head = live | read | stop
    while True:
        again = (annotate(node.body, head, kept) - targets) | read | stop
        if again <= head:
            break
        head = head | again
    node.needed, node.again = live, again
    return head
