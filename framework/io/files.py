"""Files as string tensors: reading, writing and pattern matching."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tapewright.core.tensor import TensorSpec
from tapewright.core.text import make_text, to_bytes
from tapewright.storage.atomic import writing_whole
from tapewright.storage.records.paths import as_path, expand_pattern, file_errors

from .host_ops import host_op, scalar_text, text_tensor, texts

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import TensorLike

STRING = TensorSpec((), "string")


def read_file(filename: TensorLike) -> Tensor:
    """Return the contents of a file as a scalar string.

    Args:
        filename: Path of a local file, a scalar string.

    Raises:
        NotFoundError: If the file does not exist.
        UnimplementedError: If the path is not local.

    Example:
        >>> tw.io.read_file("missing.txt")
        Traceback (most recent call last):
        ...
        tapewright.errors.NotFoundError: missing.txt: No such file or directory
    """

    def call(name):
        path = as_path("read_file", name.item())
        with file_errors(), open(path, "rb") as file:
            return [make_text([file.read()], ())]

    return host_op(
        "read_file", call, [scalar_text("read_file", "filename", filename)], [STRING]
    )[0]


def write_file(filename: TensorLike, contents: TensorLike) -> None:
    """Write a string to a file atomically; create missing folders.

    Args:
        filename: Path of a local file, a scalar string.
        contents: Scalar string to write.

    Raises:
        ResourceExhaustedError: If the disk is full; an existing file is then kept.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "notes", "a.txt")
        >>> tw.io.write_file(path, "hello")
        >>> tw.io.read_file(path).numpy()
        b'hello'
    """

    def call(name, contents):
        path = as_path("write_file", name.item())
        with file_errors(path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with writing_whole(path) as temporary, open(temporary, "wb") as file:
                file.write(contents.item())

    inputs = [
        scalar_text("write_file", "filename", filename),
        scalar_text("write_file", "contents", contents),
    ]
    host_op("write_file", call, inputs, [])


def matching_files(pattern: TensorLike) -> Tensor:
    """Return the sorted names of the files that match patterns, a vector of strings.

    The result is empty if no file matches.

    Args:
        pattern: Pattern with ``*``, ``?`` and ``[...]`` for local files, or a vector of
            patterns.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> tw.io.write_file(os.path.join(folder, "a.txt"), "hello")
        >>> [os.path.basename(path) for path in tw.io.matching_files(folder + "/*.txt").numpy()]
        [b'a.txt']
    """

    def call(patterns):
        paths = set()
        for each in texts(patterns):
            paths.update(expand_pattern("matching_files", each))
        names = [to_bytes(name) for name in sorted(paths)]
        return [make_text(names, (len(names),))]

    inputs = [text_tensor("matching_files", "pattern", pattern)]
    return host_op("matching_files", call, inputs, [TensorSpec([None], "string")])[0]
