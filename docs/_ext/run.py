"""The directive `run`: Python code of a page, and below it what the code prints.

The build runs it, so that pages show output that nobody has copied by hand. The blocks of
a page share a namespace.
"""

import contextlib
import io
import linecache

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

__all__ = ["Run", "setup"]


class Run(SphinxDirective):
    """Code that runs when the page is built; it must not raise."""

    has_content = True
    option_spec = {
        "lines": directives.positive_int,  # the most lines of output to show
        "language": directives.unchanged,  # of the output
    }

    def run(self):
        source = "\n".join(self.content) + "\n"
        space = self.env.temp_data.setdefault("run", {"__name__": "__main__"})
        # A file of its own for each block, where functions with control flow are read from.
        where = f"{self.env.docname.rpartition('/')[2]}.py"
        code = compile("\n" * self.content_offset + source, where, "exec")
        lines = ["\n"] * self.content_offset + source.splitlines(True)
        linecache.cache[where] = 1, None, lines, where
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, space)
        shown = out.getvalue().rstrip("\n").split("\n")
        most = self.options.get("lines", len(shown))
        if len(shown) > most:
            shown = [*shown[:most], f"... and {len(shown) - most} more lines"]
        return [
            nodes.literal_block(source, source.rstrip("\n"), language="python"),
            nodes.literal_block(
                text := "\n".join(shown),
                text,
                language=self.options.get("language", "text"),
            ),
        ]


def setup(app):
    app.add_directive("run", Run)
    return {"parallel_read_safe": True}
