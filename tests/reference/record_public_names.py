"""Write the public names of the package with their signatures: the surface to keep.

    python tests/reference/record_public_names.py

Each line of ``public_names.txt`` is one name: a function or a class with its arguments and
defaults, the bases of the class that are public or not ours, a constant with its value, an
alias with the name that describes the object. A class has the public members that it, or a
base without an entry, defines; a member of a described base is listed there, and again
only where it looks different. The namespaces are those of the reference pages.
"""

import abc
import enum
import importlib.util
import inspect
import io
import re
import sys
import typing
from pathlib import Path

FILE = Path(__file__).with_name("public_names.txt")


def load_namespaces():
    """Import the walk over the public names, which the reference pages use."""
    path = Path(__file__).parents[2] / "docs" / "_ext" / "namespaces.py"
    spec = importlib.util.spec_from_file_location("namespaces", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks for its own module
    spec.loader.exec_module(module)
    return module


namespaces = load_namespaces()


class Literal(str):
    """A text that shows as it is in the signature that has it as a default."""

    __repr__ = str.__str__


def show(value):
    """Return the text of a constant or a default, the same on every machine."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, io.IOBase):
        return "<stream>"
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))}{',' * (len(value) == 1)})"
    return getattr(value, "__qualname__", None) or re.sub(
        " at 0x.*?>", ">", repr(value)
    )


def signature(function):
    """Return the arguments and defaults: ``tests/typing`` holds the types."""
    parameters = []
    for each in inspect.signature(function).parameters.values():
        if each.default is not each.empty:
            each = each.replace(default=Literal(show(each.default)))
        parameters.append(each.replace(annotation=each.empty))
    return str(inspect.Signature(parameters))


def bases(cls, public):
    """Return the nearest bases that are public or not of this package."""
    found = []
    for base in cls.__mro__[1:]:
        is_ours = base.__module__.startswith("tapewright")
        is_plain = base in (object, abc.ABC, typing.Generic, typing.Protocol)
        if not is_plain and (base in public or not is_ours):
            if not any(issubclass(each, base) for each in found):
                found.append(base)
    return [public.get(each, each.__qualname__) for each in found]


def describe_class(cls, public):
    """Return a class without its name: arguments and bases."""
    has_signature = not issubclass(cls, (enum.Enum, BaseException))
    found = ", ".join(bases(cls, public))
    return (signature(cls) if has_signature else "") + (f": {found}" if found else "")


def describe_member(name, member, public):
    """Return a member of a class without its name."""
    function = getattr(member, "__func__", member)
    if inspect.isclass(member):
        return f" = {public.get(member, member.__qualname__)}"
    if inspect.isfunction(function):
        return signature(function)
    if isinstance(member, enum.Enum):
        return f" = {member.value!r}"
    if name.isupper():
        return f" = {show(member)}"
    is_fixed = isinstance(member, property) and member.fset is None
    return " (read-only)" if is_fixed else ""


def describe_members(cls, public):
    """Yield name and text of the members that no described base has just so."""
    above = {}
    for base in reversed(cls.__mro__[1:]):
        if base in public:
            above |= dict(describe_members(base, public))
    for name, member in namespaces.members(cls, public):
        if name == "__call__" or not name.startswith("_"):
            text = describe_member(name, member, public)
            if above.get(name) != text:
                yield name, text


def public_names():
    """Return the lines of the file."""
    entries = namespaces.find_entries()[1]
    public = {each.value: each.name for each in entries if inspect.isclass(each.value)}
    lines = []
    for entry in entries:
        value, name = entry.value, entry.name
        lines += [f"{other} = {name}" for other in entry.others]
        if inspect.isclass(value):
            lines.append(name + describe_class(value, public))
            members = describe_members(value, public)
            lines += [f"{name}.{member}{text}" for member, text in members]
        elif inspect.isroutine(value):
            lines.append(name + signature(value))
        else:
            lines.append(f"{name} = {show(value)}")
    return sorted(lines)


if __name__ == "__main__":
    FILE.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
