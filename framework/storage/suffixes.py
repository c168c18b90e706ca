"""Suffixes of files that name their format: a file must not have a wrong one."""

import os

# of other programs, and of Keras' files
_OTHERS = (
    ".keras", ".weights.h5", ".weights.json", ".json", ".npy", ".npz", ".onnx", ".pb",
    ".pbtxt", ".pickle", ".pkl", ".pt", ".pth", ".safetensors", ".tflite", ".tfrecord",
    ".zip",
)  # fmt: skip


def check_suffix(who: str, argument: str, path: str, content: str) -> None:
    """Raise ``ValueError`` for a path with the suffix of another format.

    Args:
        who: The function that would write the file.
        argument: The name of its argument.
        path: The path of the file.
        content: The content of the file, for the error.
    """
    other = foreign_suffix(path)
    if other:
        raise ValueError(
            f"{who}: {argument} must not end in {other}, since this writes {content}; "
            f"use .h5 or no suffix, got {path!r}"
        )


def foreign_suffix(path: str) -> str:
    """Return the suffix of a path if it belongs to another format, else ""."""
    name = os.fspath(path).lower()
    return max([s for s in _OTHERS if name.endswith(s)], key=len, default="")
