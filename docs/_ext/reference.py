"""The reference: a page for each public namespace, where every object has one entry.

An object with several names (`tw.exp`, `tw.math.exp`) is described in the first of the
`NAMESPACES` that has it; the entry lists its other names, and all of them work as
references. A namespace with more than `MOST` entries has a page for each family, which is
the file that defines them.
"""

import importlib
import inspect
import re
import types
from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes
from sphinx.util.osutil import ensuredir

__all__ = ["setup"]

# In the order in which they claim objects: ops belong to a namespace before the top level.
NAMESPACES = """
    keras.layers keras.models keras.losses keras.metrics keras.callbacks keras.optimizers
    keras.optimizers.schedules keras.initializers keras.regularizers keras.constraints
    keras.activations keras.saving keras.utils keras.preprocessing.sequence keras.random
    keras.config keras.distribution keras.ops keras.ops.image keras.backend keras
    autodiff bitwise linalg signal image random nn math nest dtypes errors config
    data datasets datasets.digits datasets.mnist datasets.fashion_mnist
    saved_model train distribute debugging profiler plot test
""".split() + [""]  # fmt: skip
MOST = 40


@dataclass
class Entry:
    """A public object: the name of its entry, and its other names."""

    value: object
    name: str
    others: list[str] = field(default_factory=list)

    @property
    def family(self):
        """The file that defines it, without the folders."""
        module = getattr(self.value, "__module__", None) or ""
        return module.rpartition(".")[2]

    @property
    def summary(self):
        """The first line of its docstring."""
        return (inspect.getdoc(self.value) or "").partition("\n")[0]


def public_names(module):
    """The names of a namespace that are no modules."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    return [n for n in names if not isinstance(getattr(module, n), types.ModuleType)]


def find_entries():
    """``{namespace: its entries}``, and the entry of each object."""
    pages, entries = {}, {}
    for namespace in NAMESPACES:
        full = ".".join(filter(None, ("tapewright", namespace)))
        module, pages[namespace] = importlib.import_module(full), []
        names = public_names(module)
        # the name by which it was defined comes first, then aliases: `AvgPool2D`
        names.sort(key=lambda n: getattr(getattr(module, n), "__name__", n) != n)
        for name in names:
            value = getattr(module, name)
            plain = inspect.isroutine(value) or inspect.isclass(value)
            key = id(value) if plain else f"{full}.{name}"
            if key in entries:
                entries[key].others.append(f"{full}.{name}")
            else:
                entries[key] = Entry(value, f"{full}.{name}")
                pages[namespace].append(entries[key])
    return pages, list(entries.values())


# ------------------------------------------------------------------------- pages


def heading(text, line):
    return f"{text}\n{line * len(text)}\n\n"


def directive(entry, documented):
    """The autodoc directive of an entry; inherited members are those nobody describes."""
    value, name = entry.value, entry.name
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        bases = [base for base in value.__mro__[1:] if base in documented]
        hidden = [b for b in value.__mro__[1:-1] if b not in documented]
        options = ""
        if any(b.__module__.startswith("tapewright") for b in hidden):
            named = {c.__name__ for b in bases for c in b.__mro__}
            options = f"   :inherited-members: {', '.join(sorted({*named, 'object'}))}\n"
        return f".. auto{kind}:: {name}\n{options}\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {name}\n\n"
    return f".. autodata:: {name}\n   :annotation: = {value!r}\n\n"


def table(rows):
    """A table of two columns: ``(name, summary)``."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for name, summary in rows:
        lines += [f"   * - {name}", f"     - {summary}"]
    return "\n".join(lines) + "\n\n"


def summary_row(entry):
    short = entry.name.rpartition(".")[2]
    return f":py:obj:`{short} <{entry.name}>`", as_rst(entry.summary)


def page(title, intro, entries, elsewhere, documented):
    """The text of one page: tables of names, then the entries."""
    text = heading(title, "=") + (f"{intro}\n\n" if intro else "")
    entries = sorted(entries, key=lambda e: e.name.lower())
    if entries:
        text += table(map(summary_row, entries))
    if elsewhere:
        text += heading("Described elsewhere", "-")
        text += ", ".join(f":py:obj:`{n} <{entry.name}>`" for n, entry in elsewhere)
        text += "\n\n"
    if entries:
        text += heading("Entries", "-") + ".. rst-class:: entries\n\n" * 0
        text += "".join(directive(entry, documented) for entry in entries)
    return text


def intro_of(module):
    """The docstring of a namespace, without its first word."""
    return as_rst(inspect.getdoc(module) or "")


def write_pages(app):
    """Write the pages below ``reference/``; leave those alone that do not change."""
    pages, entries = find_entries()
    documented = {e.value for e in entries if inspect.isclass(e.value)}
    folder, written = Path(app.srcdir) / "reference" / "names", {}
    top = []
    for namespace, own in pages.items():
        full = ".".join(filter(None, ("tapewright", namespace)))
        intro = intro_of(importlib.import_module(full))
        mine = [e for e in entries if any(n.rpartition(".")[0] == full for n in e.others)]
        elsewhere = sorted(
            ((n.rpartition(".")[2], e) for e in mine for n in e.others
             if n.rpartition(".")[0] == full and e not in own),
            key=lambda pair: pair[0].lower(),
        )  # fmt: skip
        top.append(full)
        if len(own) <= MOST:
            written[full] = page(full, intro, own, elsewhere, documented)
            continue
        families = {}
        for entry in own:
            families.setdefault(entry.family, []).append(entry)
        text = heading(full, "=") + intro + "\n\n"
        children = []
        for family, some in sorted(families.items()):
            title = f"{full}: {family.replace('_', ' ')}"
            children.append(f"{full}.{family}" if family else f"{full}.names")
            written[children[-1]] = page(title, "", some, [], documented)
            text += heading(family.replace("_", " ") or "other names", "-")
            some.sort(key=lambda e: e.name.lower())
            text += table(map(summary_row, some))
        if elsewhere:
            text += heading("Described elsewhere", "-")
            text += ", ".join(f":py:obj:`{n} <{e.name}>`" for n, e in elsewhere) + "\n\n"
        text += ".. toctree::\n   :hidden:\n\n" + "".join(f"   {c}\n" for c in children)
        written[full] = text
    ensuredir(folder)
    for path in folder.glob("*.rst"):
        if path.stem not in written:
            path.unlink()
    for name, text in written.items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    app.env.tapewright_names = {
        other: e.name for e in entries for other in (*e.others, e.name)
    }
    app.env.tapewright_others = {e.name: e.others for e in entries}


# -------------------------------------------------------------------- docstrings

LABELS = re.compile(
    r"^(Args|Arguments|Shapes?|Inputs?|Outputs?|Returns|Yields|Raises|References?|Dtypes?|"
    r"Units?|Source|Example|Note|Defaults)(:)(?= |$)"
)


def as_rst(line):
    return line


def tidy(app, what, name, obj, options, lines):
    """Make reST of a docstring: labels open paragraphs, indented formulas are literal."""
    tidied = []
    for line in lines:
        label = LABELS.match(line)
        if label:
            if tidied and tidied[-1]:
                tidied.append("")
            line = f"**{label[1]}:**{line[label.end():]}"
        indented = line[:1] == " " and line.strip()
        if indented and tidied and not tidied[-1]:
            before = next((t for t in reversed(tidied) if t), "")
            opens = before[:1] not in (" ", "-", "*") or before.startswith("**")
            if opens and not re.match(r"\d+\. |>>>|\.\. ", before):
                tidied += ["::", ""]
        tidied.append(line)
    others = getattr(app.env, "tapewright_others", {}).get(name)
    if others:
        names = ", ".join(f"``{n.replace('tapewright', 'tw', 1)}``" for n in others)
        tidied += ["", f"**Also:** {names}", ""]
    lines[:] = tidied


def find_public(app, env, node, contnode):
    """References by another public name, and by `tw.` for `tapewright.`."""
    if node.get("refdomain") != "py":
        return None
    names, target = env.tapewright_names, node.get("reftarget", "")
    target = re.sub(r"^~?(tw\.|tf\.|tapewright\.)?", "tapewright.", target)
    domain = env.get_domain("py")
    known = names.get(target) or names.get(target.replace("tapewright.", "tapewright.keras.", 1))
    if known is None or known not in domain.objects:
        return contnode if node.get("reftype") in ("obj", "class", "data", "exc") else None
    entry = domain.objects[known]
    from sphinx.util.nodes import make_refnode

    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode)


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", tidy)
    app.connect("missing-reference", find_public)
    return {"parallel_read_safe": True}
