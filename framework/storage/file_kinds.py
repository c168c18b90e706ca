"""What kind of file it is, told by the content: names may mislead."""

from .reader import opened_window, regular_file

__all__ = [
    "WEIGHTS_MEMBER",
    "check_format",
    "holds_layers",
    "is_format",
    "kind_of",
    "write_format",
]

WEIGHTS_MEMBER = "model.weights.h5"  # of a `.keras` file


def kind_of(path):
    """``"zip"``, ``"json"``, or ``"hdf5"`` for all else: HDF5's reader tells what it is.

    Raises: `SavingError` unless there is a file that can be read.
    """
    with opened_window(regular_file(path)) as window:
        head = window.read_at(0, 64)
    if head.startswith(b"PK\3\4"):
        return "zip"
    return "json" if head.lstrip()[:1] == b"{" else "hdf5"


def holds_layers(root):
    """Whether an HDF5 file holds weights by layer, `legacy_h5`, not as a tree."""
    return (
        "model_weights" in root or root.has("layer_names") or root.has("layer_names0")
    )


def write_format(root, name, version):
    """Notes in an HDF5 file of our own what it is: "tapewright checkpoint", say."""
    root.text("format", name)
    root.integer("version", version)


def is_format(root, name):
    """Whether `write_format` noted this name."""
    return root.has("format") and root.text("format") == name


def check_format(root, name, version, writer):
    """Raises: `SavingError` for another file, or one of a version that is not known."""
    if not is_format(root, name):
        root.fail(f"is no {name}: it must be a file that {writer} wrote")
    found = root.integer("version")
    if found != version:
        root.fail(
            f"is a {name} of version {found}, known here is {version}: a newer tapewright "
            "may read it",
            "version",
        )
