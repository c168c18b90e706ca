"""Text of loop nests, as a person reads them."""

from .statements import (
    Accumulate,
    Compute,
    Load,
    Loop,
    Reset,
    Span,
    Store,
)

__all__ = ["nest_text"]


def nest_text(nest, name_of=None):
    """The statements of a nest, a line each, indented by their loops."""
    name_of = name_of or (lambda array: _default_name(array, nest))
    lines = []
    for local in nest.locals:
        lines.append(f"local {local.dtype.name} {local!r}")
    lines.append(f"for {nest.blocks!r} in parallel:")
    _write(nest.body, lines, 1, name_of)
    if nest.finish:
        lines.append("then:")
        _write(nest.finish, lines, 1, name_of)
    return "\n".join(lines)


def _write(body, lines, depth, name_of):
    def access(place):
        terms = [str(place.offset)] if place.offset else []
        terms += [a.name if s == 1 else f"{s}*{a.name}" for a, s in place.strides]
        return f"{name_of(place.array)}[{' + '.join(terms) or '0'}]"

    for each in body:
        if type(each) is Loop:
            text = f"for {each.axis!r}"
            if each.span is Span.STRIPS:
                text += f" in strips of {each.width}"
            elif each.span is Span.STRIP:
                text += f" in its strip of {each.width}"
            lines.append("  " * depth + text + ":")
            _write(each.body, lines, depth + 1, name_of)
            continue
        if type(each) is Load:
            text = f"{each.out!r} = {access(each.access)}"
        elif type(each) is Compute:
            text = f"{each.out!r} = {each.function}({', '.join(map(repr, each.args))})"
        elif type(each) is Store:
            text = f"{access(each.access)} = {each.value!r}"
        elif type(each) is Reset:
            text = f"{access(each.access)} = neutral of {each.ufunc}"
        elif type(each) is Accumulate:
            text = f"{access(each.access)} = {each.ufunc}(it, {each.value!r})"
        lines.append("  " * depth + text)


def _default_name(array, nest):
    if array in nest.outputs:
        return f"out{nest.outputs.index(array)}"
    if array in nest.operands:
        return f"in{nest.operands.index(array)}"
    return getattr(array, "name", repr(array))
