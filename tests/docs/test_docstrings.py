"""Docstrings of public names: sections in order, and each argument of the signature."""

import enum
import inspect
import re

import pytest

from ..reference.record_public_names import namespaces

SECTIONS = (
    "Args Attributes Shapes Returns Yields Raises References Example Note".split()
)


STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def parameters(function):
    """The names of a signature, with their stars."""
    if function is None:
        return []
    found = inspect.signature(function).parameters.values()
    unnamed = ("self", "cls", "_cls")
    return [STARS.get(p.kind, "") + p.name for p in found if p.name not in unnamed]


def find_constructor(cls, public):
    """The `__init__` or `__new__` behind a class: its own, or a private base's.

    A public base explains its arguments itself.
    """
    for base in cls.__mro__:
        if base is not cls and base in public or issubclass(cls, enum.Enum):
            break
        for name in ("__init__", "__new__"):
            found = vars(base).get(name)
            found = inspect.unwrap(getattr(found, "__func__", found))
            if inspect.isfunction(found) and parameters(found) != ["*args", "**kwargs"]:
                return found if namespaces.is_ours(base) else None
    return None


def find_documented():
    """``{name: (docstring, function with the signature or None)}`` of public callables."""
    found = {}
    entries = [e for e in ENTRIES if namespaces.is_ours(e.value)]
    public = {entry.value for entry in entries if inspect.isclass(entry.value)}
    for entry in entries:
        value = entry.value
        if inspect.isclass(value):
            found[entry.name] = inspect.getdoc(value), find_constructor(value, public)
            for name, member in namespaces.members(value, public):
                function = getattr(member, "__func__", member)
                ours = inspect.isfunction(function) and namespaces.is_ours(function)
                if ours and function.__doc__ and name[0] != "_":
                    found[f"{entry.name}.{name}"] = inspect.getdoc(function), function
        elif inspect.isroutine(value):
            found[entry.name] = inspect.getdoc(value), value
    return found


ENTRIES = namespaces.find_entries()[1]
DOCUMENTED = find_documented()
CLASSES = {each.name for each in ENTRIES if inspect.isclass(each.value)}


def sections(text):
    """``{name: lines}`` of the sections of a docstring, in their order."""
    found, current = {}, None
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z]\w+:", line):
            current = found.setdefault(line[:-1], [])
        elif line and line[0] != " ":
            current = None
        elif current is not None:
            current.append(line)
    return found


def arguments(lines):
    """The names that an ``Args`` section explains."""
    found = (re.match(r"    (\*{0,2}\w+): ", line) for line in lines)
    return [match[1] for match in found if match]


def test_args_are_the_parameters_of_the_signature_in_its_order():
    wrong = []
    for name, (text, function) in DOCUMENTED.items():
        expected = parameters(function)
        explained = arguments(sections(text or "").get("Args", ()))
        if "name" not in explained and name not in CLASSES:
            # ops accept `name` as TensorFlow's do, and one page explains it for all
            expected = [each for each in expected if each != "name"]
        if explained != expected:
            wrong.append(f"{name}: {explained} for {expected}")
    assert not wrong, f"{len(wrong)} docstrings:\n" + "\n".join(wrong)


def test_every_entry_of_args_has_a_name():
    wrong = []
    for name, (text, _) in DOCUMENTED.items():
        lines = sections(text or "").get("Args", ())
        entries = [line for line in lines if re.match("    \\S", line)]
        if len(entries) != len(arguments(lines)):
            wrong.append(f"{name}: {entries}")
    assert not wrong, "\n".join(wrong)


def test_sections_are_those_of_google_style_in_one_order():
    wrong = []
    for name, (text, _) in DOCUMENTED.items():
        found = [each for each in sections(text or "")]
        known = [each for each in found if each in SECTIONS]
        if found != known or known != sorted(known, key=SECTIONS.index):
            wrong.append(f"{name}: {found}")
    assert not wrong, f"{len(wrong)} docstrings:\n" + "\n".join(wrong)


def test_no_section_starts_on_the_line_of_its_heading():
    heading = re.compile(rf"^({'|'.join(SECTIONS)}|Reference|Shape|Examples): \S", re.M)
    wrong = [
        name for name, (text, _) in DOCUMENTED.items() if heading.search(text or "")
    ]
    assert not wrong, f"{len(wrong)} docstrings:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "text, found",
    [
        (
            "Add.\n\nArgs:\n    x: One.\n        More.\n    **kwargs: Rest.",
            ["x", "**kwargs"],
        ),
        ("Add.\n\nArgs:\n    y: One.\n\nReturns:\n    z: no argument.", ["y"]),
        ("Add ``x``.", []),
    ],
)
def test_the_arguments_of_a_docstring_are_found(text, found):
    assert arguments(sections(text).get("Args", ())) == found
