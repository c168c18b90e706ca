"""Download a data file once: cache folder, mirrors, size and checksum.

A file is written under a temporary name in the same folder and renamed only after every
check has passed, so that files in the cache are complete. Uses the standard library,
and tqdm during a download; both are imported only then.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

CHUNK = 1 << 16
FORGOTTEN = 86400  # seconds after which a part of a file is no longer being written
LARGEST = 1 << 30  # no file of unknown size may grow beyond this


class RemoteFile(NamedTuple):
    """The name of a file on its mirrors and in the cache, with its checksum and size.

    ``checksum`` is ``"md5:<hex>"`` or ``"sha256:<hex>"``; ``size`` is in bytes, if
    known, otherwise the maximum that is accepted.
    """

    name: str
    checksum: str
    size: int | None = None
    largest: int | None = None


class DownloadError(OSError):
    """Error if all mirrors fail; ``failures`` lists pairs (URL or path, reason)."""

    def __init__(self, failures: Sequence[tuple[str, str]], advice: str = ""):
        self.failures = list(failures)
        lines = [f"  {where}: {reason}" for where, reason in self.failures]
        message = "\n".join(["no mirror has a valid copy of the file:", *lines, advice])
        super().__init__(message.rstrip())


def cache_folder() -> Path:
    """Return ``$TAPEWRIGHT_HOME/datasets``, by default ``~/.cache/tapewright/datasets``."""
    home = os.environ.get("TAPEWRIGHT_HOME") or "~/.cache/tapewright"
    return Path(home).expanduser() / "datasets"


def cached(file: RemoteFile, folder: Path) -> Path | None:
    """Return the path of the file in ``folder`` if it exists with the right checksum."""
    path = Path(folder) / file.name
    return path if path.is_file() and not _why_invalid(path, file) else None


def download(
    file: RemoteFile, mirrors: Sequence[str], folder: Path, *, timeout: float = 30.0
) -> Path:
    """Download a file to ``folder`` unless it exists already, and return its path.

    Args:
        file: File to download.
        mirrors: URLs of folders, ending in "/", tried in order.
        folder: Folder, created if needed.
        timeout: Seconds without data after which a mirror is given up.

    Raises:
        DownloadError: If all mirrors fail; it lists them with their reasons. A download
            that ends early for any reason, Ctrl-C included, leaves no partial file
            behind.
    """
    folder = Path(folder)
    path = folder / file.name
    failures = []
    if path.is_file():
        reason = _why_invalid(path, file)
        if not reason:
            return path
        failures.append((str(path), reason))
    folder.mkdir(parents=True, exist_ok=True)
    for mirror in mirrors:
        try:
            _transfer(mirror + file.name, file, path, timeout)
            return path
        except _Refused as refused:
            failures.append((mirror + file.name, str(refused)))
    advice = f"Without a network, copy the file to {path}."
    raise DownloadError(failures, advice)


def fetch(url: str, path: Path, checksum: str = "", *, timeout: float = 30.0) -> None:
    """Download ``url`` to ``path``, completely or not at all.

    Without a checksum, any size is accepted.

    Raises:
        DownloadError: If the download fails; an existing file at ``path`` is kept.
    """
    path = Path(path)
    try:
        _transfer(url, RemoteFile(path.name, checksum, None, 1 << 50), path, timeout)
    except _Refused as refused:
        advice = f"Without a network, copy the file to {path}."
        raise DownloadError([(url, str(refused))], advice) from None


def has_checksum(path: Path, checksum: str) -> bool:
    """Return whether the file has this checksum; the empty string matches any file."""
    path = Path(path)
    return not _why_invalid(path, RemoteFile(path.name, checksum))


class _Refused(Exception):
    """Failure of one mirror, as a message."""


def _transfer(url, file, path, timeout):
    """Download ``url`` to ``path``, all or nothing."""
    _clear_parts(path)
    part = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        with open(part, "xb") as out:
            _receive(url, file, out, timeout)
            reason = _why_invalid(part, file)
            if reason:
                raise _Refused(reason)
            os.fsync(out.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _clear_parts(path):
    """Remove old partial files of this file, left by killed processes."""
    start = f".{path.name}."
    for name in os.listdir(path.parent):
        if name.startswith(start) and name.endswith(".part"):
            part = path.with_name(name)
            with suppress(OSError):
                if time.time() - part.lstat().st_mtime > FORGOTTEN:
                    part.unlink()


def _receive(url, file, out, timeout):
    """Copy the body of ``url`` to ``out`` under a progress bar, up to its size."""
    import http.client
    import urllib.error
    import urllib.request

    from tqdm import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "tapewright"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            limit = _announced_size(response, file)
            # disable=None: no bar where stderr is not a terminal.
            with tqdm(
                total=limit, unit="B", unit_scale=True, desc=file.name, disable=None
            ) as bar:
                received = _copy(
                    response, out, _most(file) if limit is None else limit, bar
                )
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the answer's body
        raise _Refused(f"{type(error).__name__}: {error}") from error
    if limit is not None and received != limit:
        raise _Refused(f"the connection ended after {received} of {limit} bytes")


def _announced_size(response, file):
    """Return the number of bytes to expect, or None; raise if the mirror's size is wrong."""
    header = response.headers.get("Content-Length", "")
    announced = int(header) if header.isdecimal() else None
    if file.size is not None and announced not in (None, file.size):
        raise _Refused(f"it announces {announced} bytes, expected {file.size}")
    if announced is not None and announced > _most(file):
        raise _Refused(
            f"it announces {announced} bytes, at most {_most(file)} are accepted"
        )
    return announced if file.size is None else file.size


def _most(file):
    return LARGEST if file.largest is None else file.largest


def _copy(response, out, limit, bar):
    """Copy ``response`` to ``out``, at most ``limit`` bytes, and count them."""
    received = 0
    while chunk := response.read(min(CHUNK, limit + 1 - received)):
        received += len(chunk)
        if received > limit:
            raise _Refused(f"it sends more than the expected {limit} bytes")
        out.write(chunk)
        bar.update(len(chunk))
    out.flush()
    return received


def _why_invalid(path, file):
    """Return how size or checksum of the file at ``path`` are wrong, or None."""
    import hashlib

    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"it has {size} bytes, expected {file.size}"
    if not file.checksum:
        return None
    kind, _, right = file.checksum.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    with open(path, "rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != right:
        return f"its {kind} is {digest.hexdigest()}, expected {right}"
    return None


def _sync_folder(folder):
    """Make a rename in ``folder`` survive a power failure, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
