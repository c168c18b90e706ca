"""Read IDX files, the format of MNIST: a header with the sizes, then the bytes.

Files may be gzipped, as detected from their first bytes, not their name. A file that
differs from its header is rejected, and no more than the announced size is
decompressed. Uses NumPy and, for gzipped files, the standard library's gzip.

References:
    LeCun, Cortes & Burges, "The MNIST database of handwritten digits".
"""

import os
from contextlib import contextmanager

import numpy as np

LABELS, IMAGES = 2049, 2051  # magic numbers: uint8 with one axis, uint8 with three
KINDS = {LABELS: "labels", IMAGES: "images"}
LARGEST = 1 << 30  # bytes of data; 17 times those of the MNIST training images


class DataFileError(ValueError):
    """Error for an invalid data file; the message names the file and the reason."""

    def __init__(self, path, problem: str):
        super().__init__(f"{os.fspath(path)}: {problem}")


def read_images(path: str | os.PathLike) -> np.ndarray:
    """Return the images of an IDX file: uint8 ``[n, rows, columns]``.

    Raises:
        DataFileError: If the file has another format, is truncated, too long or
            corrupt, or has implausible sizes; a ``ValueError`` that names the file and
            the fault.
    """
    return _read(path, IMAGES)


def read_labels(path: str | os.PathLike) -> np.ndarray:
    """Return the labels of an IDX file: uint8 ``[n]``; raise like `read_images`."""
    return _read(path, LABELS)


def read_pair(
    images: str | os.PathLike, labels: str | os.PathLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels from two IDX files, which must have the same length."""
    x, y = read_images(images), read_labels(labels)
    if len(x) != len(y):
        raise DataFileError(
            labels,
            f"it holds {len(y)} labels, but {os.fspath(images)} holds {len(x)} images; "
            "both must come from the same set.",
        )
    return x, y


def _read(path, magic):
    with _opened(path) as source:
        shape = _header(path, source, magic)
        data = np.empty(shape, np.uint8)
        got = _fill(source, memoryview(data).cast("B")) if data.size else 0
        if got < data.size:
            raise DataFileError(
                path,
                f"truncated: the header announces {data.size} bytes of {KINDS[magic]}, "
                f"the file has {got}. Download the file again.",
            )
        if source.read(1):
            raise DataFileError(
                path,
                f"too long: more data follows the {data.size} bytes of {KINDS[magic]} "
                "that the header announces. Download the file again.",
            )
    return data


@contextmanager
def _opened(path):
    """Open a file; a gzipped file is decompressed while it is read."""
    with open(path, "rb") as raw:
        start = raw.read(512)
        raw.seek(0)
        if start.startswith(b"\x1f\x8b"):
            import gzip
            import zlib

            try:
                with gzip.GzipFile(fileobj=raw) as inflated:
                    yield inflated
            except EOFError as error:
                raise DataFileError(
                    path,
                    "truncated: its gzip data ends early. Download the file again.",
                ) from error
            except (gzip.BadGzipFile, zlib.error) as error:
                raise DataFileError(
                    path, f"corrupt gzip data ({error}). Download the file again."
                ) from error
        else:
            _refuse_web_page(path, start)
            yield raw


def _refuse_web_page(path, start):
    """Raise for an HTML page, which servers send for a missing file or a required login."""
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        raise DataFileError(
            path,
            "it starts with '<': a web page, not the data. Read it for the reason, "
            "then download the file again.",
        )


def _header(path, source, magic):
    """Check the header of an IDX file, and return the shape that it announces."""
    wanted = f"{KINDS[magic]} start with the magic number {magic}"
    start = source.read(4)
    found = int.from_bytes(start, "big")
    if len(start) < 4:
        raise DataFileError(path, f"only {len(start)} bytes; IDX {wanted}.")
    if found != magic and found in KINDS:
        raise DataFileError(
            path,
            f"it holds {KINDS[found]} (magic number {found}), but {wanted}. Are two "
            "files swapped?",
        )
    if found != magic:
        raise DataFileError(
            path, f"not an IDX file: it starts with {found}; IDX {wanted}."
        )
    axes = magic & 0xFF
    sizes = source.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise DataFileError(
            path, f"truncated: the header has {4 + len(sizes)} of {4 + 4 * axes} bytes."
        )
    shape = tuple(int(size) for size in np.frombuffer(sizes, ">u4"))
    _check_shape(path, shape)
    return shape


def _check_shape(path, shape):
    """Reject implausible sizes before memory is allocated for them."""
    total = 1
    for size in shape:
        total *= size
    if total > LARGEST or 0 in shape[1:]:
        raise DataFileError(
            path,
            f"its header announces the shape {shape}, {total} bytes. Images must have "
            f"at least one pixel, and {LARGEST} bytes at most.",
        )


def _fill(source, buffer):
    """Read into ``buffer`` until it is full or the file ends; return the number of bytes."""
    got = 0
    while got < len(buffer) and (count := source.readinto(buffer[got:])):
        got += count
    return got
