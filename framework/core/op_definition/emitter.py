"""Generation of Python code: source is written line by line, then compiled.

Frequently executed code (the records of a tape, the replay of a traced step, the steps
of a loop) is specialized to each case, with its functions and constant arrays bound to
names.

>>> from tapewright.core.op_definition.emitter import Source
>>> import numpy as np
>>> source = Source("<example>")
>>> with source.function("shifted", ["x"]):
...     add, one = source.bind("add", np.add), source.bind("c", 1.0)
...     source.emit(f"return {add}(x, {one})")
>>> print(source.text, end="")
def shifted(x, add0=add0, c1=c1):
    return add0(x, c1)
>>> source.compiled()["shifted"](2.0)
np.float64(3.0)
"""

import keyword
from contextlib import contextmanager


def identifier(name, otherwise="f"):
    """Return the name with an underscore for each character that Python rejects."""
    name = "".join([c if c.isalnum() and c.isascii() else "_" for c in name])
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else f"{otherwise}_{name}"


class Source:
    """Lines of source, and the objects bound to the names in them.

    ``tags`` maps each line to the object that it was written for, ``bound`` each name
    to its object; ``filename`` appears in tracebacks.
    """

    def __init__(self, filename):
        self.filename = filename
        self.lines, self.tags, self.bound = [], [], {}
        self._indent = ""

    @property
    def text(self):
        """The source as one string."""
        return "\n".join(self.lines) + "\n"

    def emit(self, text, tag=None):
        """Write one line at the current indentation."""
        self.lines.append(self._indent + text)
        self.tags.append(tag)

    def bind(self, stem, value):
        """Bind an object to a new name that starts with ``stem``, and return the name."""
        name = f"{identifier(stem)}{len(self.bound)}"
        self.bound[name] = value
        return name

    @contextmanager
    def block(self, head, tag=None):
        """Write a line like ``for i in range(3):``, and indent the lines of the block."""
        self.emit(head, tag)
        outer, self._indent = self._indent, self._indent + "    "
        try:
            yield
        finally:
            self._indent = outer

    @contextmanager
    def function(self, name, parameters):
        """Write a function.

        Names bound inside become parameters with defaults: Python looks up locals
        faster than globals.
        """
        at, count = len(self.lines), len(self.bound)
        with self.block(""):  # the first line, which needs the names bound inside
            yield
        own = [f"{n}={n}" for n in list(self.bound)[count:]]
        self.lines[at] = f"def {name}({', '.join([*parameters, *own])}):"

    def compiled(self, **bound):
        """Execute the source and return its functions by name; ``bound`` replaces objects."""
        scope = {**self.bound, **bound}
        exec(compile(self.text, self.filename, "exec"), scope)
        return scope
