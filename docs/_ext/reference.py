"""The reference: a page for each public namespace, where every object has one entry.

An object with several names (`tw.exp`, `tw.math.exp`) is described in the first of the
`NAMESPACES` that has it; the entry lists its other names, and all of them work as
references. A namespace of more than `MOST` entries has a page for each family.
"""

import builtins
import importlib
import inspect
import posixpath
import re
from pathlib import Path

from namespaces import FAMILIES, NAMESPACES, SAME, find_entries, full_name
from sphinx import addnodes
from sphinx.util import inspect as sphinx_inspect
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from tapewright.api.names.missing_names import ADVICE, known_names
from tapewright.core.primitive import Primitive

__all__ = ["setup"]

# A namespace of more entries has a page for each family.
MOST = 70

# ------------------------------------------------------------------------- pages


def heading(text, line):
    return f"{text}\n{line * len(text)}\n\n"


def directive(entry, documented):
    """The autodoc directive of an entry, with members inherited from private bases."""
    value, name = entry.value, entry.name
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        bases = [base for base in value.__mro__[1:-1] if base in documented]
        others = [base for base in value.__mro__[1:-1] if base not in documented]
        again = [
            name
            for name, member in vars(value).items()
            if inspect.isclass(member) and member in documented
        ]
        options = f"   :exclude-members: {', '.join(again)}\n" if again else ""
        if any(base.__module__.startswith("tapewright") for base in others):
            named = {c.__name__ for base in bases for c in base.__mro__} | {"object"}
            options += f"   :inherited-members: {', '.join(sorted(named))}\n"
        return f".. auto{kind}:: {name}\n{options}\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {name}\n\n"
    note = "" if type(value).__doc__ == value.__doc__ else inspect.getdoc(value) or ""
    module, _, short = name.rpartition(".")
    options = f"   :module: {module}\n   :value: {value!r}\n"
    return f".. py:data:: {short}\n{options}\n   {note}\n\n"


def table(entries):
    """A table of names and first lines."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for entry in entries:
        lines += [f"   * - :py:obj:`{entry.short} <{entry.name}>`"]
        lines += [f"     - {entry.summary or '..'}"]
    return "\n".join(lines) + "\n\n"


def named_elsewhere(full, own, entries):
    """A paragraph of the names of a namespace whose entries are on other pages."""
    found = [
        (name.rpartition(".")[2], entry.name)
        for entry in entries
        if entry not in own
        for name in entry.others
        if name.rpartition(".")[0] == full
    ]
    if not found:
        return ""
    links = (f":py:obj:`{short} <{name}>`" for short, name in sorted(found))
    return heading("Names described elsewhere", "-") + ", ".join(links) + "\n\n"


def write_pages(app):
    """Write the pages into ``reference/names``; leave those alone that do not change."""
    pages, entries = find_entries()
    documented = {entry.value for entry in entries if inspect.isclass(entry.value)}
    written = {}
    for namespace, own in pages.items():
        full = full_name(namespace)
        classes = [entry for entry in own if inspect.isclass(entry.value)]
        written |= {
            entry.name: class_page(entry, full, documented) for entry in classes
        }
        written |= namespace_pages(full, own, entries, documented)
    folder = Path(app.srcdir) / "reference" / "names"
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in written:
            path.unlink()
    for name, text in written.items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    app.entries = {entry.name: entry for entry in entries}
    app.names = {name: e.name for e in entries for name in (*e.others, e.name)}


def class_page(entry, namespace, documented):
    """The page of a class. It is in no toctree, which every page would show in full."""
    name, up = shown_name(entry.name), shown_name(namespace)
    text = ":orphan:\n\n" + heading(name, "=")
    text += f":doc:`{up} <{namespace}>`\n\n.. py:currentmodule:: {namespace}\n\n"
    return text + directive(entry, documented)


def namespace_pages(full, own, entries, documented):
    """The page of a namespace, and pages of its functions by family if there are many."""
    functions = [entry for entry in own if not inspect.isclass(entry.value)]
    families = {}
    for entry in sorted(own, key=lambda entry: family_order(entry.family)):
        families.setdefault(entry.family, []).append(entry)
    text = heading(shown_name(full), "=") + f".. py:currentmodule:: {full}\n\n"
    text += (inspect.getdoc(importlib.import_module(full)) or "") + "\n\n"
    if len(own) <= MOST:
        families = {"": own}
    for family, some in families.items():
        text += heading(family.capitalize(), "-") if family else ""
        text += table(some) if some else ""
    text += named_elsewhere(full, own, entries)
    if len(functions) <= MOST:
        body = "".join(directive(entry, documented) for entry in functions)
        return {full: text + (heading("Entries", "-") + body if body else "")}
    pages = {}
    for family, some in families.items():
        body = [directive(e, documented) for e in some if not inspect.isclass(e.value)]
        if body:
            title = f"{shown_name(full)}: {family}"
            name = f"{full}.{family.replace(' ', '_')}"
            pages[name] = heading(title, "=") + "".join(body)
    text += ".. toctree::\n   :hidden:\n\n"
    return {full: text + "".join(f"   {name}\n" for name in pages), **pages}


def family_order(family):
    """The key that sorts families: those of the table first, in its order."""
    known = list(FAMILIES)
    return (known.index(family) if family in known else len(known), family)


def shown_name(full):
    """The name that a user types: `keras.layers`, `tw.math`."""
    if full.startswith("tapewright.keras"):
        return full.removeprefix("tapewright.")
    return full.replace("tapewright.", "tw.", 1)


class Namespaces(SphinxDirective):
    """``.. namespaces:: data train``: a table of namespaces and their first lines.

    Their pages come into the navigation.
    """

    required_arguments, final_argument_whitespace = 1, True

    def run(self):
        lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
        names = [full_name(name) for name in self.arguments[0].split()]
        for full in names:
            doc = inspect.getdoc(importlib.import_module(full)) or ""
            first = re.sub(r"^`?[\w.]+`?: ", "", doc.partition("\n")[0])
            lines += [
                f"   * - :doc:`{full.replace('tapewright.', 'tw.')} <names/{full}>`"
            ]
            lines += [f"     - {first[:1].upper()}{first[1:]}"]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        lines += [f"   names/{full}" for full in names]
        return self.parse_text_to_nodes("\n".join(lines))


class MissingNames(SphinxDirective):
    """``.. missing-names::``: names that tapewright lacks, and what to use instead."""

    def run(self):
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 45 55", ""]
        lines += ["   * - missing name", "     - replacement"]
        advised = set()
        for spaces, names, advice in ADVICE:
            found = [f"{s}.{n}" for s in spaces.split() for n in names.split()]
            found = [name for name in found if not is_here(name)]
            advised |= {*found}
            if found:
                text = re.sub(r"\btw(\.\w+)+", lambda name: f"``{name[0]}``\\ ", advice)
                lines += [f"   * - {', '.join(f'``{name}``' for name in found)}"]
                lines += [f"     - {text or 'not planned'}"]
        lines += ["", "These have no direct replacement:", "", ".. list-table::"]
        lines += ["   :widths: 25 75", ""]
        for space, names in known_names().items():
            if is_here(space):
                names = [n for n in names if not is_here(f"{space}.{n}")]
                names = [n for n in names if f"{space}.{n}" not in advised]
                if names:
                    listed = ", ".join(f"``{n}``" for n in names)
                    lines += [f"   * - ``{space}``", f"     - {listed}"]
        return self.parse_text_to_nodes("\n".join(lines))


def is_here(name):
    """Return whether tapewright has a name of TensorFlow or Keras."""
    found = importlib.import_module("tapewright")
    for part in name.split(".")[name.startswith("tf") :]:
        found = getattr(found, part, None)
        if found is None:
            return False
    return True


# -------------------------------------------------------------------- docstrings

ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
KINDS = {"f": "floating", "c": "complex", "i": "integer", "u": "unsigned integer",
         "b": "boolean", "U": "string"}  # fmt: skip


def tidy(app, what, name, obj, options, lines):
    """Show indented formulas as literal blocks; add facts about ops and other names."""
    tidied = []
    for line in lines:
        if line.strip() and line[0] == " " and tidied and not tidied[-1]:
            before = next((text for text in reversed(tidied) if text), "")
            is_text = before[0] != " " and not re.match(
                r"[-*] |\d+\. |>>>|\.\. |:", before
            )
            if is_text and not before.endswith("::"):
                tidied += ["::", ""]
        tidied.append(line)
    op = getattr(obj, "primitive", None)
    if isinstance(op, Primitive):
        tidied += ["", *facts_of(op)]
    entry = app.entries.get(name)
    if entry is not None and entry.others:
        names = (f"``{n.replace('tapewright', 'tw', 1)}``" for n in entry.others)
        tidied += ["", f"**Also:** {', '.join(names)}", ""]
    lines[:] = tidied


def facts_of(op):
    """Shapes, dtypes and derivatives of a primitive, from its traits and rules."""
    facts = []
    if op.elementwise:
        several = len(op.inputs) > 1
        facts.append("elementwise, with broadcasting" if several else "elementwise")
    if op.kinds:
        kinds = list(dict.fromkeys(KINDS[k] for k in op.kinds if k in KINDS))
        facts.append(f"dtypes: {', '.join(kinds)}")
    with_rule = [i for i in op.inputs if i in op.rules or op.linear]
    if op.non_differentiable >= set(op.inputs):
        facts.append("no gradient")
    elif op.non_differentiable:
        named = [f"``{i}``" for i in op.inputs if i not in op.non_differentiable]
        facts.append(f"gradients of every order by {', '.join(named)}")
    elif with_rule:
        facts.append("gradients of every order")
    text = "; ".join(facts)
    return [f"*{text[0].upper()}{text[1:]}.*", ""] if text else []


def typed_signature(app, what, name, obj, options, signature, result):
    """The signature of an op with the types of its kernel; that of a class's ``__init__``."""
    op = getattr(obj, "primitive", None)
    if what == "class" and re.match(r"\(\*args: [\w.~]*Any,", signature or ""):
        found = sphinx_inspect.signature(
            obj.__init__,
            bound_method=True,
            type_aliases=app.config.autodoc_type_aliases,
        )
        signature = sphinx_inspect.stringify_signature(
            found, unqualified_typehints=True
        )
    elif what in ("function", "method") and isinstance(op, Primitive):
        signature = signature_of(obj, inspect.signature(op.kernel).parameters)
        result = "tuple[Tensor, ...]" if op.multiple else "Tensor"
    plain = [ALIAS.sub(r"\1", part) if part else part for part in (signature, result)]
    return tuple(plain)


def signature_of(function, of_kernel):
    """The signature of an op, with the types that its kernel names."""
    shown = []
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = "TensorLike"
        if name == "name":
            annotation = "str | None"
        elif name in of_kernel and of_kernel[name].annotation is not parameter.empty:
            annotation = of_kernel[name].annotation
        default = (
            "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        )
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        shown.append(f"{star}{name}: {annotation}{default}")
    return f"({', '.join(shown)})"


# Names of several classes, of which the plain name means `tw.NAME`.
AT_THE_TOP = ("Variable",)
# Pages made of docstrings, where words in backquotes may be internal names.
OF_DOCSTRINGS = ("reference/names/", "examples/")


def find_public(app, env, node, contnode):
    """References by another public name, by `tw.` or `tf.`, or from the top level."""
    if node.get("refdomain") != "py":
        return None
    target = re.sub(r"^~?(tw\.|tf\.|tapewright\.)?", "", node.get("reftarget", ""))
    objects = env.get_domain("py").objects
    namespace = SAME.get(target, target)
    if namespace in NAMESPACES:
        page = f"reference/names/{full_name(namespace)}"
        return make_refnode(app.builder, node["refdoc"], page, "", contnode)
    for start in ("tapewright.", "tapewright.keras.", *near(node)):
        known = app.names.get(start + target, start + target)
        stem, _, member = known.rpartition(".")
        if known not in objects:
            known = f"{app.names.get(stem, stem)}.{member}"
        if known in objects:
            entry = objects[known]
            place = entry.docname, entry.node_id
            return make_refnode(app.builder, node["refdoc"], *place, contnode)
    return contnode if node["refdoc"].startswith(OF_DOCSTRINGS) else None


def aim_links(app, doctree):
    """Let ``bool`` and ``complex`` in signatures be Python's, not names of this package.

    A plain name that two namespaces have, as `tw.Variable` and `keras.Variable`, is that
    of the top level.
    """
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py" and node.get("reftarget") in AT_THE_TOP:
            node["reftarget"] = f"tapewright.{node['reftarget']}"
        if node.get("refdomain") == "py" and hasattr(
            builtins, node.get("reftarget", "")
        ):
            if node.get("reftype") == "class":
                node.replace_self(node.children)


def correct_back_links(app, pagename, templatename, context, doctree):
    """Let the links of a source lead to entries of several namespaces, not of its first."""
    if not pagename.startswith("_modules/"):
        return
    objects = app.env.get_domain("py").objects

    def corrected(match):
        path, anchor = match.groups()
        docname = posixpath.normpath(posixpath.join(posixpath.dirname(pagename), path))
        if anchor in objects and f"{objects[anchor].docname}.html" == docname:
            return match[0]
        last = anchor.rpartition(".")[2]
        for name, entry in objects.items():
            if f"{entry.docname}.html" == docname and name.rpartition(".")[2] == last:
                return match[0].replace(anchor, name)
        return match[0].replace(f"#{anchor}", "")

    link = r'class="viewcode-back" href="([^"#]+)#([^"]+)"'
    context["body"] = re.sub(link, corrected, context.get("body", ""))


def near(node):
    """Where else a docstring may mean a name: in its namespace, and in its class."""
    module, owner = node.get("py:module"), node.get("py:class")
    if owner:
        yield f"{owner}."
        yield f"{owner.rpartition('.')[0]}."
    if module:
        yield f"{module}."
    yield "tapewright.keras.layers."
    yield "tapewright.keras.models.Model."
    yield "tapewright.math."
    yield "tapewright.nn."
    yield "tapewright.errors."


def setup(app):
    app.add_directive("missing-names", MissingNames)
    app.add_directive("namespaces", Namespaces)
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", tidy)
    app.connect("autodoc-process-signature", typed_signature)
    app.connect("doctree-read", aim_links)
    app.connect("missing-reference", find_public)
    app.connect("html-page-context", correct_back_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
