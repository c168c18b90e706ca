"""`get_file`: download a file to a cache folder, and extract it if requested."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tapewright.datasets.fetch import cache_folder, fetch, has_checksum

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike


def get_file(
    fname: str | None = None,
    origin: str | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str | Sequence[str] = "auto",
    cache_dir: str | PathLike[str] | None = None,
    force_download: bool = False,
) -> str:
    """Download a file if it is not in the cache, and return its path.

    The file is ``cache_dir/cache_subdir/fname``, written completely or not at all. With
    ``extract`` it is extracted to a folder next to it, whose path is returned. Archives
    with members outside of that folder, links that point outside or nowhere, or devices
    are rejected.

    Args:
        fname: Name of the file; by default the last part of ``origin``.
        origin: URL of the file.
        untar: Older form of ``extract``, for tar archives.
        md5_hash: Older form of ``file_hash``.
        file_hash: Expected checksum in hex digits, sha256 or md5.
        cache_subdir: Folder in ``cache_dir``.
        hash_algorithm: "sha256", "md5", or "auto" to select by the length of
            ``file_hash``.
        extract: If True, extract the archive.
        archive_format: "auto", "tar", "zip" or a list of these.
        cache_dir: Cache folder; by default ``$TAPEWRIGHT_HOME`` or
            ``~/.cache/tapewright``.
        force_download: If True, download the file even if it exists.

    Raises:
        DownloadError: If the download fails or has another checksum; an ``OSError``.
        ValueError: If ``origin`` is missing, ``fname`` contains folders, or the file is
            not an archive.

    Example:
        >>> keras.utils.get_file(origin="https://example.org/a.txt")  # doctest: +SKIP
        '/home/user/.cache/tapewright/datasets/a.txt'
    """
    if not origin:
        raise ValueError("get_file: origin, the URL, must be given")
    name = _name(fname, origin)
    folder = Path(cache_dir or cache_folder().parent).expanduser() / cache_subdir
    extract = extract or untar
    path, target = folder / name, folder / name
    if extract:
        path, target = _paths(folder, name, named=fname is not None)
    checksum = _checksum(file_hash or md5_hash, "md5" if md5_hash else hash_algorithm)
    fresh = force_download or not path.is_file() or not has_checksum(path, checksum)
    if fresh:
        folder.mkdir(parents=True, exist_ok=True)
        fetch(origin, path, checksum)
    if extract and (fresh or not target.is_dir()):
        _extract(path, target, "tar" if untar else archive_format)
    return str(target)


def _name(fname, origin):
    from urllib.parse import urlsplit

    name = os.fspath(fname) if fname else os.path.basename(urlsplit(origin).path)
    if not name or name in (".", "..") or "/" in name or os.sep in name:
        raise ValueError(
            "get_file: fname must be the name of a file, without folders (these are "
            f"cache_dir and cache_subdir); got {name!r} from fname={fname!r}, "
            f"origin={origin!r}"
        )
    return name


def _paths(folder, name, named):
    """Return the paths of the archive and of the extracted folder, named as in Keras."""
    if named and "." in name:
        return folder / name, folder / f"{name.partition('.')[0]}_extracted"
    return folder / f"{name}_archive", folder / name


def _checksum(digits, algorithm):
    if not digits:
        return ""
    if algorithm == "auto":
        algorithm = "sha256" if len(digits) == 64 else "md5"
    if algorithm not in ("sha256", "md5"):
        raise ValueError(
            f"get_file: hash_algorithm must be 'auto', 'sha256' or 'md5', got {algorithm!r}"
        )
    return f"{algorithm}:{digits.lower()}"


def _extract(path, target, archive_format):
    """Extract to a new folder, then rename it to ``target``."""
    # These take four milliseconds to import.
    from tapewright.storage.archives import is_unpacked
    from tapewright.storage.folders import replacing_folder

    formats = ("tar", "zip") if archive_format == "auto" else archive_format
    formats = (formats,) if isinstance(formats, str) else tuple(formats or ())
    for kind in formats:
        if kind not in ("tar", "zip"):
            raise ValueError(
                f"get_file: archive_format must be 'tar' or 'zip', got {kind!r}"
            )
    with replacing_folder(target, 0o700) as part:
        if not any(is_unpacked(path, part, kind) for kind in formats):
            raise ValueError(
                f"get_file: {path} is not an archive of the format {formats}"
            )
        os.chmod(part, 0o755)
