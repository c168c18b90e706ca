"""Unpack untrusted tar and zip archives into a new folder.

On several Python versions, the filters of `tarfile` have let archives write outside
their folder, by links in paths of ``PATH_MAX`` bytes. Here no filter has to follow a
link: files and folders are written first, by names without ``..``, into a folder
without links. Links are created afterwards, in folders that are not links, and each
must then lead to a file inside.
"""

import os
import shutil
import stat
import tarfile
import zipfile

# Bytes of a long name, or of the attributes in front of a member: these go through regular
# expressions that take quadratic time on some Pythons.
MAX_HEADER = 8 << 10
PIECE = 1 << 20


def is_unpacked(path, folder, kind):
    """Unpack ``path`` into an empty folder; return False if it is no such archive.

    Args:
        path: The file.
        folder: An existing, empty folder to which no other user can write.
        kind: "tar", uncompressed or compressed by gzip, bzip2 or xz; or "zip".

    Raises:
        ValueError: If the archive is damaged, or a member is a device, has a name that
            leads out of the folder, or is a link that leads out of it or nowhere.
        OSError: If the disk has less space than the members need.
    """
    unpack = _unpack_tar if kind == "tar" else _unpack_zip
    try:
        return unpack(path, os.path.realpath(folder))
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        reason = f"has a file where another member needs a folder: {error.filename}"
        raise ValueError(f"{path} {reason}") from error
    except (MemoryError, OSError, ValueError):
        raise
    except Exception as error:  # each compression has errors of its own
        raise ValueError(f"{path} is a damaged {kind} archive: {error}") from error


def _unpack_tar(path, folder):
    try:
        # A stream cannot go back, so no offset in a header makes an endless loop.
        archive = tarfile.open(path, "r|*", tarinfo=_Header)
    except tarfile.ReadError:
        return False
    links = []
    with archive:
        for member in archive:
            if member.islnk() or member.issym():
                links.append(member)
            elif member.isdir():
                os.makedirs(_path_below(folder, member.name), exist_ok=True)
            elif member.isreg():
                content = archive.extractfile(member)
                _write(_path_below(folder, member.name), content, member.size)
                if member.mode & stat.S_IXUSR:
                    os.chmod(_path_below(folder, member.name), 0o755)
            else:
                raise ValueError(f"the member {member.name!r} is a device or pipe")
    for member in sorted(links, key=tarfile.TarInfo.issym):  # hard links come first
        (_symlink if member.issym() else _hard_link)(folder, member)
    for member in links:
        _check_inside(folder, member)
    return True


_EXTENDED = (
    tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_LONGNAME, tarfile.SOLARIS_XHDTYPE,
    tarfile.XGLTYPE, tarfile.XHDTYPE,
)  # fmt: skip


class _Header(tarfile.TarInfo):
    """The header of a member, whose sizes are checked before they are used for reading."""

    @classmethod
    def frombuf(cls, buf, encoding, errors):
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.InvalidHeaderError as error:  # else taken for the end
            raise tarfile.ReadError(str(error)) from error
        largest = MAX_HEADER if header.type in _EXTENDED else header.size
        if not 0 <= header.size <= largest:
            raise ValueError(
                f"the header of {header.name!r} declares {header.size} bytes"
            )
        return header


def _unpack_zip(path, folder):
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _check_space(folder, sum([member.file_size for member in members]))
        for member in members:
            target = _path_below(folder, member.filename)
            if member.is_dir():
                os.makedirs(target, exist_ok=True)
            else:  # of a link its target, as text
                with archive.open(member) as content:
                    _write(target, content, member.file_size)
    return True


def _path_below(folder, name):
    """Return the path of a member below the folder; raise if it lies outside."""
    parts = name.split("/")
    is_odd = os.name == "nt" and any(mark in name for mark in "\\:")
    if os.path.isabs(name) or ".." in parts or "\0" in name or is_odd:
        raise ValueError(f"the archive's member {name!r} is outside its folder")
    return os.path.join(folder, *[part for part in parts if part not in ("", ".")])


def _write(path, content, size):
    """Write a file with ``size`` bytes of ``content``, creating folders as needed."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _check_space(os.path.dirname(path), size)
    with open(path, "wb") as file:
        shutil.copyfileobj(content, file, PIECE)


def _check_space(folder, size):
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(f"the archive unpacks to {size} bytes, but {free} are free there")


def _hard_link(folder, member):
    """Link to an unpacked file, before there are any symbolic links."""
    source, path = (
        _path_below(folder, member.linkname),
        _path_below(folder, member.name),
    )
    if not os.path.isfile(source):
        raise ValueError(
            f"the member {member.name!r} is a link to {member.linkname!r}, which is not a "
            "file of the archive"
        )
    _make_link(os.link, source, path)


def _symlink(folder, member):
    path = _path_below(folder, member.name)
    _make_link(os.symlink, member.linkname, path)


def _make_link(make, source, path):
    """Create a link in folders that are not links."""
    parent = os.path.dirname(path)
    try:
        os.makedirs(parent, exist_ok=True)
        if os.path.realpath(parent, strict=True) == parent:
            return make(source, path)
        reason = "is below a link"
    except OSError as error:
        reason = f"cannot be made: {error.strerror}"
    raise ValueError(f"the member {path!r}, a link, {reason}")


def _check_inside(folder, member):
    path = _path_below(folder, member.name)
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:  # nothing is there, a loop, or a path too long to follow
        target, reason = "", f"which cannot be followed: {error.strerror}"
    else:
        reason = "which is outside its folder"
    if not target.startswith(folder + os.sep) and target != folder:
        raise ValueError(
            f"the archive's member {member.name!r} is a link to {member.linkname!r}, "
            f"{reason}"
        )
