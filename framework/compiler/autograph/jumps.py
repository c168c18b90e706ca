"""Rewrite ``break``, ``continue`` and ``return`` inside blocks as assignments of flags.

The code after a jump moves into the other branch of the ``if`` around it; a flag guards
the rest only where both branches may continue:

    if c:                    if c:
        return a                 ag__return = a
    rest                     else:
    return b                     rest
                                 ag__return = b
                             return ag__return

Loops end as soon as one of their flags is true; their nodes list these in ``stop``.
"""

import ast

from .liveness import assigned_names

RETURN_VALUE, RETURNED = "ag__return", "ag__returned"
JUMPS = ast.Return, ast.Break, ast.Continue
SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef


class Unconvertible(Exception):  # noqa: N818  (a reason, not an error of the user)
    """Code is left unchanged; the text says why."""


def lower_jumps(body):
    """Return the statements of a function without jumps, except for a final ``return``."""
    *before, last = body
    lowering = _Lowering()
    if not any([_jumps(node, ast.Return) for node in before]):
        if isinstance(last, ast.Return):
            return [*lowering.block(before, None)[0], last]
        if not _jumps(last, ast.Return):
            return lowering.block(body, None)[0]
    if not isinstance(last, ast.Return):
        body = [*body, _at(last, ast.Return(None))]
    lowered, _ = lowering.block(body, None)
    if _reads(lowered, RETURNED):
        lowered.insert(0, _set(RETURNED, False, body[0]))
    else:
        lowered = _without(lowered, RETURNED)
    return [*lowered, _at(last, ast.Return(_name(RETURN_VALUE)))]


class _Lowering:
    """Rewrite blocks; ``loop`` are the flags of the loop around a block."""

    def __init__(self):
        self.loops = 0

    def block(self, statements, loop):
        """Return the statements without jumps, and the flags that may be set after them."""
        done = []
        for k, node in enumerate(statements):
            rest = statements[k + 1 :]
            if isinstance(node, ast.Return):
                value = node.value or _at(node, ast.Constant(None))
                done.append(
                    _at(node, ast.Assign([_name(RETURN_VALUE, ast.Store())], value))
                )
                return [*done, _set(RETURNED, True, node)], {RETURNED}
            if isinstance(node, (ast.Break, ast.Continue)):
                flag = loop[isinstance(node, ast.Continue)]
                return [*done, _set(flag, True, node)], {flag}
            if isinstance(node, ast.If) and _jumps(node, JUMPS):
                for branch, other in (("body", "orelse"), ("orelse", "body")):
                    if _always_leaves(getattr(node, branch)) and rest:
                        setattr(node, other, [*getattr(node, other), *rest])
                        rest = []
                        break
            lowered, flags = self.statement(node, loop)
            done += lowered
            if _is_endless(node):
                return done, flags
            if flags and rest:
                inner, further = self.block(rest, loop)
                test = ast.UnaryOp(ast.Not(), _any_of(sorted(flags)))
                done.append(_at(rest[0], ast.If(test, inner, [])))
                return done, flags | further
            if flags:
                return done, flags
        return done, set()

    def statement(self, node, loop):
        """Return the statements that replace one, and the flags that it may set."""
        if isinstance(node, (ast.For, ast.While)):
            return self.loop(node, loop)
        if isinstance(node, SCOPES) or not _jumps(node, JUMPS):
            self.inner_loops(node)
            return [node], set()
        if isinstance(node, ast.If):
            node.body, a = self.block(node.body, loop)
            node.orelse, b = self.block(node.orelse, loop)
            node.body = node.body or [_at(node, ast.Pass())]
            return [node], a | b
        if isinstance(node, ast.With):
            node.body, flags = self.block(node.body, loop)
            return [node], flags
        if isinstance(node, ast.Match):
            flags = set()
            for case in node.cases:
                case.body, own = self.block(case.body, loop)
                flags |= own
            return [node], flags
        if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))):
            return self.try_block(node, loop)
        raise Unconvertible(f"line {node.lineno} jumps out of a {type(node).__name__}")

    def inner_loops(self, node):
        """Lower the jumps of loops inside a statement that no jump leaves."""
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and not isinstance(node, SCOPES):
                setattr(node, field, self.block(block, None)[0])
        for part in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
            part.body = self.block(part.body, None)[0]

    def try_block(self, node, loop):
        if any([_jumps(x, JUMPS) for x in node.finalbody]):
            raise Unconvertible(
                f"line {node.finalbody[0].lineno} jumps out of a finally"
            )
        node.finalbody, _ = self.block(node.finalbody, None)
        node.body, flags = self.block(node.body, loop)
        if node.orelse:
            orelse, further = self.block(node.orelse, loop)
            if flags:
                test = ast.UnaryOp(ast.Not(), _any_of(sorted(flags)))
                orelse = [_at(node.orelse[0], ast.If(test, orelse, []))]
            node.orelse, flags = orelse, flags | further
        for handler in node.handlers:
            handler.body, further = self.block(handler.body, loop)
            flags = flags | further
        return [node], flags

    def loop(self, node, around):
        if isinstance(node, ast.While) and assigned_names([node.test]):
            self.move_test(node)
        self.loops += 1
        broke, continued = f"ag__broke_{self.loops}", f"ag__continued_{self.loops}"
        body, flags = self.block(node.body, (broke, continued))
        if _reads(body, continued):
            body = [_set(continued, False, node), *body]
        else:
            body = _without(body, continued)
        node.body, node.stop = body, sorted(flags - {continued})
        before = [_set(broke, False, node)] if broke in flags else []
        orelse, node.orelse = node.orelse, []
        after, further = self.block(orelse, around)
        if after and node.stop:
            test = ast.UnaryOp(ast.Not(), _any_of(node.stop))
            after = [_at(orelse[0], ast.If(test, after, []))]
        return [*before, node, *after], flags & {RETURNED} | further

    def move_test(self, node):
        """Move a test with ``:=`` into the body, which uses the name."""
        if node.orelse:
            raise Unconvertible(f"the while of line {node.lineno} has := and an else")
        leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        node.body = [_at(node.test, leave), *node.body]
        node.test = _at(node.test, ast.Constant(True))


def _jumps(node, kinds):
    """Return whether a jump of these kinds leaves this statement."""
    if isinstance(node, JUMPS):
        return isinstance(node, kinds)
    if isinstance(node, SCOPES):
        return False
    if isinstance(node, (ast.For, ast.While)):  # the else belongs to what is around
        inside = any([_jumps(x, ast.Return) for x in node.body])
        return inside or any([_jumps(x, kinds) for x in node.orelse])
    return any([_jumps(x, kinds) for x in ast.iter_child_nodes(node)])


def _always_leaves(block):
    """Return whether every path through a block leaves it."""
    last = block[-1] if block else None
    if isinstance(last, (*JUMPS, ast.Raise)):
        return True
    if not isinstance(last, ast.If):
        return False
    return _always_leaves(last.body) and _always_leaves(last.orelse)


def _is_endless(node):
    """Return whether a lowered loop ends only by a `return`."""
    if not isinstance(node, ast.While) or not isinstance(node.test, ast.Constant):
        return False
    return bool(node.test.value) and set(node.stop) <= {RETURNED}


def _reads(statements, name):
    """Return whether a flag is read."""
    for tree in statements:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == name:
                if isinstance(node.ctx, ast.Load):
                    return True
            if name in getattr(node, "stop", ()):
                return True
    return False


class _Removal(ast.NodeTransformer):
    def __init__(self, name):
        self.name = name

    def visit_Assign(self, node):  # noqa: N802
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == self.name:
            return _at(node, ast.Pass())
        return node


def _without(statements, name):
    return [_Removal(name).visit(x) for x in statements]


def _name(name, ctx=None):
    return ast.Name(name, ctx or ast.Load())


def _set(name, value, at):
    return _at(at, ast.Assign([_name(name, ast.Store())], ast.Constant(value)))


def _any_of(flags):
    """Return an expression that is true if one of the flags is."""
    names = [_name(flag) for flag in flags]
    return names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)


def _at(origin, node):
    return ast.copy_location(node, origin)  # inner nodes get it in the end
