"""Read untrusted HDF5 files.

Everything that tapewright reads goes through `opened` and the two classes here, which
check before they read: the seal, then that names stay inside the file, and that an
array is stored as large as declared before memory is allocated for it. Every failure is
a `SavingError` with the file, the location in it, and the reason.
"""

import itertools
import os
import stat
from contextlib import contextmanager

from tapewright.core.errors import SavingError, as_saving_error, saving_error

from .checked_array import Array
from .checksum import check_seal
from .file_objects import Progress, Window
from .global_heap import largest_text
from .items import MAX_NAMES, Item, Source

MAX_DEPTH = 100  # of groups in groups
MAX_HOLES = 100  # a file larger than LARGE may be this much larger than on its disk
LARGE = 1 << 30  # bytes
MAX_KEPT = 5000  # items of a file that are at hand when they are looked up again
MAX_TRIES = 10  # while other processes replace the file


def regular_file(path):
    """Return ``path`` as text; raise `SavingError` unless it is a regular file."""
    path = os.fspath(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else f"cannot be read: {error}"
        raise saving_error(path, reason, cause=error) from None
    if stat.S_ISDIR(status.st_mode):
        raise saving_error(path, "is a folder, not a file", cause=IsADirectoryError())
    if not stat.S_ISREG(status.st_mode):
        raise SavingError(path, "is a pipe or device, not a file")
    size, on_disk = status.st_size, getattr(status, "st_blocks", 0) * 512
    if on_disk and size > max(MAX_HOLES * on_disk, LARGE):
        raise SavingError(path, f"has {size} bytes, nearly all of them holes")
    if not os.access(path, os.R_OK):
        reason = "may not be read: permission denied"
        raise saving_error(path, reason, cause=PermissionError())
    return path


@contextmanager
def opened(path, check=True):
    """Yield the root `Group` of an HDF5 file while the context is active.

    If ``check`` is True, the seal, if there is one, is compared with the content.

    Raises:
        SavingError: If it is not an HDF5 file, or damaged.
    """
    path = regular_file(path)
    for _ in range(MAX_TRIES):
        with opened_window(path) as window:
            sealed = check and check_seal(window)
            if check and not sealed:
                largest_text(window, path)
            with _parsed(path, window) as file:
                if not _is_same(file, window):
                    continue  # replaced since the seal was looked at
                with _root(file, path, window, sealed) as root:
                    yield root
                return
    raise SavingError(path, "is replaced repeatedly while it is read")


@contextmanager
def opened_inside(window, path, member, check=True):
    """Yield the root `Group` of HDF5 in a `Window`; errors name ``member`` of ``path``."""
    sealed = False
    try:
        sealed = check and check_seal(window)
    except SavingError as error:
        raise SavingError(path, error.reason, member) from None
    if check and not sealed:
        largest_text(window, path, member)
    with _parsed(path, window, window, member) as file:
        with _root(file, path, window, sealed, member) as root:
            yield root


def opened_window(path):
    """Return the `Window` of a whole file; raise `SavingError` if it cannot be opened."""
    with as_saving_error(path, "cannot be read", errors=OSError):
        return Window(path)


@contextmanager
def _parsed(path, window, source=None, member=None):
    """Yield the h5py file, at ``path`` or in a file object."""
    import h5py

    try:
        file = h5py.File(path if source is None else source, "r")
    except BlockingIOError as error:
        reason = "is being written by another process; try again when it is done"
        raise saving_error(path, reason, cause=error) from None
    except Exception as error:
        reason = _no_hdf5(window.read_at(0, 512), error)
        raise SavingError(path, reason, member) from None
    try:
        yield file
    finally:
        file.close()


def _is_same(file, window):
    """Return True if HDF5 and the window have the same file open."""
    try:
        theirs = os.fstat(file.id.get_vfd_handle())
    except (OSError, ValueError, TypeError, NotImplementedError):
        return True  # a driver without a handle of the system
    ours = window.stat()
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


@contextmanager
def _root(file, path, window, sealed, member=None):
    progress = Progress(f"loading {os.path.basename(path)}", window.size)
    try:
        yield Group(file, Source(path, window, member, sealed, progress))
    finally:
        progress.close()


def _no_hdf5(head, error):
    if not head:
        return "is empty"
    if head.startswith((b"\x89HDF\r\n\x1a\n", b"TAPEWRIGHT")):
        return f"is a damaged or incomplete HDF5 file: {error}"
    if head.lstrip()[:1] == b"<":
        return "is not an HDF5 file: it is HTML or XML"
    return f"is not an HDF5 file: it begins with {head[:8]!r}"


def file_format(path):
    """Detect the format of a file from its content, as names may mislead.

    Returns ``"zip"``, ``"json"``, or ``"hdf5"`` for anything else, which HDF5 then
    rejects.

    Raises:
        SavingError: If there is no file that can be read.
    """
    with opened_window(regular_file(path)) as window:
        head = window.read_at(0, 64)
    if head.startswith(b"PK\3\4"):
        return "zip"
    return "json" if head.lstrip()[:1] == b"{" else "hdf5"


class Group(Item):
    """A group of a file: named groups and arrays, see `opened`."""

    def __init__(self, node, source, name="/"):
        super().__init__(node, source, name)
        self._children = {}  # name -> item, or None, of those that were looked up

    def keys(self):
        """Return the names in the group."""
        with self._guarded("cannot be listed"):
            names = list(itertools.islice(self._node, MAX_NAMES))
        for name in names:
            if not isinstance(name, str):  # h5py leaves what it cannot decode
                self.fail(f"holds a name that is not UTF-8 text: {name!r:.80}")
        return names

    def __contains__(self, path):
        return self.find(path) is not None

    def find(self, path):
        """Return the `Group` or `Array` at a path below, ``"layers/dense/vars"``, or None.

        Raises:
            SavingError: If the path leads out of the group, or follows a link.
        """
        item, parts = self, path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            self.fail(f"the name {path!r} leads out of the group")
        for part in parts:
            item = item._child(part, path) if isinstance(item, Group) else None
            if item is None:
                return None
        return item

    def _child(self, part, path):
        """Look up a name; the first `MAX_KEPT` items of a file are cached."""
        if part in self._children:
            return self._children[part]
        with self._guarded(f"{path!r} cannot be looked up"):
            item = self._step(part)
        if self._source.kept < MAX_KEPT:
            self._source.kept += 1
            self._children[part] = item
        return item

    def _step(self, part):
        """Return the `Item` with that name, or None, by h5py's faster low-level API."""
        import h5py

        here, name = self._node.id, part.encode(errors="surrogateescape")
        if not here.links.exists(name):
            return None
        link = here.links.get_info(name).type
        if link != h5py.h5l.TYPE_HARD:
            link = {
                h5py.h5l.TYPE_SOFT: "SoftLink",
                h5py.h5l.TYPE_EXTERNAL: "ExternalLink",
            }.get(link, "a user-defined link")
            self.fail(f"{part!r} is a link ({link}); links are not allowed")
        opened_id, path = h5py.h5o.open(here, name), f"{self.name.rstrip('/')}/{part}"
        if isinstance(opened_id, h5py.h5g.GroupID):
            return Group(h5py.Group(opened_id), self._source, path)
        if isinstance(opened_id, h5py.h5d.DatasetID):
            return Array(h5py.Dataset(opened_id, readonly=True), self._source, path)
        return self.fail(f"{part!r} is neither a group nor an array")

    def find_group(self, path):
        """Return the group at a path below, or None; raise `SavingError` for an array."""
        item = self.find(path)
        if isinstance(item, Array):
            item.fail("must be a group, got an array")
        return item

    def group(self, path):
        """Return the group at a path below; raise `SavingError` if it does not exist."""
        item = self.find_group(path)
        if item is None:
            self.fail(f"has no group {path!r}")
        return item

    def array(self, path):
        """Return the array at a path below; raise `SavingError` if it does not exist."""
        item = self.find(path)
        if not isinstance(item, Array):
            self.fail(f"has no array {path!r}")
        return item

    def numbered(self):
        """Return the arrays ``0``, ``1``, ... of the group, in that order."""
        keys = self.keys()
        if set(keys) != {str(i) for i in range(len(keys))}:
            self.fail(
                f"must hold 0, 1, 2, ... without a gap, holds {sorted(keys)[:20]}"
            )
        return [self.array(str(i)) for i in range(len(keys))]

    def arrays(self):
        """Yield all arrays below, each once."""
        return (item for item in self.walk() if isinstance(item, Array))

    def walk(self):
        """Yield all groups and arrays below, this one first; each object once."""
        import h5py

        seen, ahead = set(), [iter([self])]
        while ahead:
            item = next(ahead[-1], None)
            if item is None:
                ahead.pop()
                continue
            with self._guarded("cannot be traversed"):
                at = h5py.h5o.get_info(item._node.id).addr
            if at in seen:
                continue
            seen.add(at)
            yield item
            if isinstance(item, Group):
                if len(ahead) > MAX_DEPTH:
                    item.fail(f"is nested deeper than {MAX_DEPTH} groups")
                ahead.append(map(item.find, item.keys()))


class MergedGroup(Group):
    """Groups of several files as one; each name in it is the name of a group or array."""

    def __init__(self, groups):
        super().__init__(groups[0]._node, groups[0]._source, groups[0].name)
        self.groups = groups

    @property
    def sealed(self):
        return all([group.sealed for group in self.groups])

    def keys(self):
        return list(dict.fromkeys(key for group in self.groups for key in group.keys()))

    def _child(self, part, path):
        items = [group._child(part, path) for group in self.groups]
        items = [item for item in items if item is not None]
        if len(items) < 2:
            return items[0] if items else None
        for item in items:
            if isinstance(item, Array):
                item.fail("is in several files")
        return MergedGroup(items)

    def walk(self):
        return itertools.chain.from_iterable(group.walk() for group in self.groups)


def is_format(root, name):
    """Return True if `write_format` stored this name."""
    return root.has("format") and root.text("format") == name


def check_format(root, name, version, writer):
    """Check the format stored in a file; raise `SavingError` for other formats or versions."""
    if not is_format(root, name):
        root.fail(f"is not a {name}: it must be a file written by {writer}")
    stored = root.integer("version")
    if stored != version:
        root.fail(
            f"is a {name} of version {stored}, but this tapewright reads version "
            f"{version}: use a newer one",
            "version",
        )
