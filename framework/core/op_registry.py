"""All primitives by name: our own (``matmul``) and the type that TensorFlow gives an op
(``MatMul``). Lower code that needs an op which does not exist yet asks here, too.
"""

__all__ = ["find_op", "list_ops", "register_op"]

_OPS = {}


def register_op(op):
    """Make an op known. An op of the user's never replaces one of tapewright's own."""
    for name in (op.name, op.type_name):
        known = _OPS.get(name)
        if known is None or op.is_own or not known.is_own:
            _OPS[name] = op


def find_op(name):
    """The op of this name. Raises: ``ValueError`` with the names that come nearest."""
    try:
        return _OPS[name]
    except KeyError:
        raise ValueError(f"Unknown op {name!r}{_suggestion(name)}") from None


def list_ops():
    """Every op once."""
    return list({id(op): op for op in _OPS.values()}.values())


def _suggestion(name):
    import difflib  # a millisecond that only a mistake should cost

    near = difflib.get_close_matches(str(name), _OPS, 3)
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
