"""What kind of file it is, told by the content: names may mislead."""

from .reader import regular_file

__all__ = ["WEIGHTS_MEMBER", "holds_layers", "kind_of"]

WEIGHTS_MEMBER = "model.weights.h5"  # of a `.keras` file


def kind_of(path):
    """``"zip"``, ``"json"``, or ``"hdf5"`` for all else: HDF5's reader tells what it is.

    Raises: `SavingError` unless there is a file that can be read.
    """
    with open(regular_file(path), "rb") as file:
        head = file.read(64)
    if head.startswith(b"PK\3\4"):
        return "zip"
    return "json" if head.lstrip()[:1] == b"{" else "hdf5"


def holds_layers(root):
    """Whether an HDF5 file holds weights by layer, `legacy_h5`, not as a tree."""
    return (
        "model_weights" in root or root.has("layer_names") or root.has("layer_names0")
    )
