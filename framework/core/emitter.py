"""Python source, written line by line and compiled: the only generator of code.

What the same few lines do again and again (the records of a tape, the replay of a traced
step, the steps of a loop) is written out once for each case, with the functions and arrays
that never change bound to names beforehand.

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

__all__ = ["Source", "identifier"]


def identifier(name, otherwise="f"):
    """The name with each character that Python does not allow replaced."""
    name = "".join([c if c.isalnum() and c.isascii() else "_" for c in name])
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else f"{otherwise}_{name}"


class Source:
    """Lines of source, and the objects bound to the names in them.

    ``tags`` has for each line the object that it was written for, ``bound`` the object of
    each name; ``filename`` is what tracebacks show.
    """

    def __init__(self, filename):
        self.filename = filename
        self.lines, self.tags, self.bound = [], [], {}
        self._indent = ""

    @property
    def text(self):
        """The source as one string."""
        return (
            "\n".join([line() if callable(line) else line for line in self.lines])
            + "\n"
        )

    def emit(self, text, tag=None):
        """Write one line at the present indentation."""
        self.lines.append(self._indent + text)
        self.tags.append(tag)

    def bind(self, stem, value):
        """A new name for an object; ``stem`` is how it begins."""
        name = f"{identifier(stem)}{len(self.bound)}"
        self.bound[name] = value
        return name

    @contextmanager
    def block(self, head, tag=None):
        """Write a head, as ``for i in range(3):``, and indent what follows."""
        self.emit(head, tag)
        outer, self._indent = self._indent, self._indent + "    "
        try:
            yield
        finally:
            self._indent = outer

    @contextmanager
    def function(self, name, parameters):
        """Write a function. What is bound by its end are defaults of its parameters:
        locals, which Python finds sooner than globals."""
        before = set(self.bound)

        def head():
            own = [f"{n}={n}" for n in self.bound if n not in before]
            return f"def {name}({', '.join([*parameters, *own])}):"

        self.lines.append(head)
        self.tags.append(None)
        outer, self._indent = self._indent, "    "
        try:
            yield
        finally:
            self._indent = outer

    def compiled(self, **bound):
        """Run the source; the functions in it, by name. ``bound`` replaces objects."""
        scope = {**self.bound, **bound}
        exec(compile(self.text, self.filename, "exec"), scope)
        return scope
