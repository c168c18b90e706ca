"""`get_file`: a file from the network, kept in a cache folder, unpacked if wanted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tapewright.datasets.fetch import cache_folder, fetch, has_checksum

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

__all__ = ["get_file"]


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
    """Return the path of a file, or of its unpacked folder, downloaded if it is missing.

    The file is ``cache_dir/cache_subdir/fname``, which is written as a whole or not at
    all. ``extract`` unpacks it to a folder beside it. Archives with members outside of
    that folder, links that lead out of it or nowhere, or devices are refused.

    Args: ``origin``: the URL; ``fname``: by default its last part; ``file_hash``: hex
    digits, sha256 or md5, told apart by length or ``hash_algorithm``; ``untar``,
    ``md5_hash``: older forms of ``extract`` and ``file_hash``; ``archive_format``:
    ``"auto"``, ``"tar"``, ``"zip"`` or a list of these; ``cache_dir``: by default
    ``$TAPEWRIGHT_HOME`` or ``~/.cache/tapewright``; ``force_download``: download it
    even if it exists.

    Raises: ``DownloadError`` (an ``OSError``) if no download has the right checksum;
    ``ValueError`` without ``origin``, for a name with folders, or a file that is no
    archive.
    """
    if not origin:
        raise ValueError("get_file: origin, the URL, is missing")
    name = _name(fname, origin)
    folder = Path(cache_dir or cache_folder().parent).expanduser() / cache_subdir
    extract = extract or untar
    path, target = folder / name, folder / name
    if extract:
        path, target = _places(folder, name, named=fname is not None)
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


def _places(folder, name, named):
    """Paths of the archive and of the folder it fills, named as in Keras."""
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
    """Unpack into a new folder, then rename it to ``target``."""
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
