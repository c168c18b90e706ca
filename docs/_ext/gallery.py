"""The examples in the gallery: their arguments, their order, and the pictures they write."""

import os
import shutil
from pathlib import Path

from docutils import nodes
from sphinx_gallery.scrapers import figure_rst

__all__ = ["arguments", "in_reading_order", "setup", "written_pictures"]

# The folder that the scripts write to, beside them; it is emptied between two of them.
OUT = Path(__file__).resolve().parents[2] / "examples" / "out"

ORDER = [
    *("mnist_fit", "mnist_mlp", "mnist_cnn", "text_lstm", "compiled_step"),
    *("sigmoid_derivative", "newton_hessian", "jacobian_patches", "pinn"),
    *("input_gradient_regularization", "gan", "wgan_gp", "dcgan_model"),
    *("save_and_reload", "saved_custom_gradient", "serve"),
    *("distributed_mnist", "distributed_loop"),
]


def arguments(gallery_conf, script_vars):
    """The command line of an example: its folder, and one epoch in a short build."""
    shutil.rmtree(OUT, ignore_errors=True)
    short = os.environ.get("TAPEWRIGHT_DOCS") == "short"
    return ["--out", OUT.name, *(["--epochs", "1"] if short else [])]


def written_pictures(block, block_vars, gallery_conf):
    """Show the pictures that a block of an example has written, in the order of names."""
    shown = []
    paths = block_vars["image_path_iterator"]
    for written in sorted(OUT.glob("*.png")) if OUT.is_dir() else ():
        path = next(paths)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(written, path)
        shown.append(path)
    return figure_rst(shown, gallery_conf["src_dir"])


def in_reading_order(filename):
    """The key by which the gallery sorts: from the first steps to many processes."""
    return ORDER.index(Path(filename).stem)


def show_commands_plainly(app, doctree):
    """Literal blocks in the docstring of an example are commands, not Python."""
    if app.env.docname.startswith("examples/"):
        for block in doctree.findall(nodes.literal_block):
            block.setdefault("language", "none")


def setup(app):
    app.connect("doctree-read", show_commands_plainly)
    app.connect("build-finished", lambda *_: shutil.rmtree(OUT, ignore_errors=True))
    return {"parallel_read_safe": True}
