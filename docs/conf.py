"""Settings of the site: `sphinx-build -W docs docs/_build/html` builds it."""

import gc
import os
import sys
from pathlib import Path

import tapewright

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

# TAPEWRIGHT_DOCS=short: examples of one epoch (see `gallery.arguments`), no pages of sources,
# which are more than all others, no indexes, and a navigation only beside the first page.
is_short = os.environ.get("TAPEWRIGHT_DOCS") == "short"

project = "tapewright"
author = "The tapewright developers"
copyright = "2026, the tapewright developers"
version = release = tapewright.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # sections of Google style in docstrings
    *(() if is_short else ("sphinx.ext.viewcode",)),
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "gallery",
    "reference",
    "run",
]
exclude_patterns = ["_build"]
nitpicky = True  # a reference that leads nowhere is an error

# ------------------------------------------------------------------------- pages

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
default_role = "py:obj"

# --------------------------------------------------------------------- reference

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Shapes"]
napoleon_use_ivar = (
    True  # `Attributes` of a class list its properties, which have entries
)
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False  # there are none
# names of unions, which would else be written out; `reference/types.md` explains them
autodoc_type_aliases = {
    name: name
    for name in """
        ActivationLike Array Axes Axis Band ConstraintLike Differentiated DTypeLike
        Gradient Index InitializerLike IntLike LearningRate Margin OptionalLogs Padding
        Paddings RegularizerLike SeedLike Shape ShapeLike Sizes StaticShapeLike
        TensorLike TensorNest Windows
    """.split()
}
python_display_short_literal_types = True
python_maximum_signature_line_length = 72
viewcode_line_numbers = True

# ----------------------------------------------------------------------- gallery

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "image_scrapers": ("gallery.written_pictures",),
    "reset_argv": "gallery.arguments",
    "reset_modules": (),
    "within_subsection_order": "gallery.in_reading_order",
    "min_reported_time": 1,
    "abort_on_example_error": True,
    "thumbnail_size": (400, 280),
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "notebook_extensions": set(),
}

# -------------------------------------------------------------------------- HTML

html_theme = "furo"
html_title = f"tapewright {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
pygments_dark_style = "github-dark"
html_use_index = not is_short
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e8f", "color-brand-content": "#0b6e8f"},
    "dark_css_variables": {"color-brand-primary": "#62c6e6", "color-brand-content": "#62c6e6"},
}  # fmt: skip
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def navigate_from_first_page(app, pagename, templatename, context, doctree):
    """Show the tree of all pages beside the first one only: it takes longer than a page."""
    if pagename != app.config.root_doc:
        context["toctree"] = lambda **options: ""


def leave_out_search(app):
    app.builder.search = False


def stop_garbage_collection(app, env, docnames):
    """Collect none after the examples: what is read stays, and each look at it takes long."""
    gc.disable()


def setup(app):
    app.connect("env-before-read-docs", stop_garbage_collection)
    if is_short:
        app.connect("builder-inited", leave_out_search)
        app.connect("html-page-context", navigate_from_first_page, 400)  # before furo
