"""Files in the format of safetensors: a JSON header, then the bytes of the arrays.

Only this file imports the package safetensors, which checks the header of each file that
is read or written. The arrays are mapped or written here: its functions copy an array to
read it, ignore strides in what they write, and leave temporary files if they are killed.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from tapewright.core.dtypes import bfloat16, is_bfloat16
from tapewright.core.errors import SavingError, as_saving_error, saving_error
from tapewright.core.hardware.devices import is_array, to_numpy

from . import strict_json
from .atomic import replacing
from .reader import regular_file
from .shard_index import MAX_SHARDS, read_index

SUFFIX, INDEX_SUFFIX = ".safetensors", ".safetensors.index.json"
METADATA = "__metadata__"
BFLOAT16 = "BF16"  # NumPy lacks it
DTYPES = {
    "BOOL": "bool",
    "U8": "u1", "U16": "u2", "U32": "u4", "U64": "u8",
    "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8",
    "F16": "f2", "F32": "f4", "F64": "f8",
    "C64": "c8",
}  # fmt: skip
NAMES = {np.dtype(dtype).newbyteorder("<"): name for name, dtype in DTYPES.items()}


def _require_safetensors(who: str) -> Any:
    """Return the package safetensors; raise ``ImportError`` for ``who`` without it."""
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(
            f"{who} needs the package safetensors: pip install 'tapewright[safetensors]'"
        ) from error
    return safetensors


# ------------------------------------------------------------------------------- reading


def load_safetensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a safetensors file, without reading them.

    They are read-only views of the file, which the system reads when they are used; copy
    those that must outlive a change of the file. A file that is replaced, as
    `save_safetensors` does, is no problem; one that another program shortens ends the
    process when the missing part is used. bfloat16 needs the extra ``bfloat16``.

    Args:
        path: Path of a file; or of the index ``name.safetensors.index.json`` of several;
            or ``name.safetensors``, if only the index exists.

    Returns:
        Dict from names to arrays.

    Raises:
        SavingError: If the file is invalid or has a dtype that NumPy lacks; a
            ``ValueError``, and for a missing file also a ``FileNotFoundError``.
        ImportError: If the package safetensors is not installed.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
        >>> tw.io.save_safetensors(path, {"a": np.arange(3)})
        >>> tw.io.load_safetensors(path)
        {'a': array([0, 1, 2])}
    """
    package = _require_safetensors("load_safetensors")
    path = os.fspath(path)
    index = path + INDEX_SUFFIX.removeprefix(SUFFIX)
    if not os.path.lexists(path) and os.path.lexists(index):
        path = index
    if not path.endswith(INDEX_SUFFIX):
        return _read(package, regular_file(path))
    files, arrays = {}, {}
    for name, shards in read_index(path).items():
        for shard in shards:
            if shard not in files:
                files[shard] = _read(package, regular_file(shard))
        if len(shards) != 1 or name not in files[shards[0]]:
            raise SavingError(path, f"lists {shards}, which must have the array", name)
        arrays[name] = files[shards[0]][name]
    return arrays


def _read(package, path):
    _check(package, path)
    with as_saving_error(path, "cannot be read", errors=OSError):
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    content = np.frombuffer(mapped, np.uint8)
    start = 8 + int.from_bytes(mapped[:8], "little")
    # Parsed again for keys that occur twice, of which the package keeps the last.
    header = strict_json.loads(mapped[8:start].decode(), path)
    header.pop(METADATA, None)
    return {
        name: _array(content[start:], entry, path, name)
        for name, entry in header.items()
    }


def _check(package, path, named=None):
    """Raise `SavingError` for an invalid file; ``named``: its path in the error."""
    try:
        with package.safe_open(path, framework="np"):
            pass
    except package.SafetensorError as error:
        reason = f"is not a valid safetensors file: {error}"
        raise SavingError(named or path, reason) from None


def _array(content, entry, path, name):
    if not isinstance(entry, dict):  # a list is the same to the package
        raise SavingError(path, f"has {type(entry).__name__}, not an object", name)
    code, shape = entry["dtype"], entry["shape"]
    begin, end = entry["data_offsets"]
    if code != BFLOAT16 and code not in DTYPES:
        raise SavingError(path, f"holds {code}, a dtype that NumPy lacks", name)
    dtype = bfloat16.dtype if code == BFLOAT16 else np.dtype(DTYPES[code])
    data = content[begin:end]
    if code == "BOOL" and data.max(initial=0) > 1:
        raise SavingError(path, "holds bytes other than 0 and 1 as bool", name)
    try:
        array = data.view(dtype.newbyteorder("<")).reshape(shape)
    except ValueError as error:  # too many axes; zero times a number that is too large
        raise SavingError(
            path, f"has a shape that NumPy lacks: {error}", name
        ) from None
    if not array.flags.aligned:  # compiled code expects that it is
        array = array.copy()
        array.flags.writeable = False
    return array


# ------------------------------------------------------------------------------- writing


def save_safetensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = True,
    max_shard_size: float | None = None,
) -> None:
    """Write arrays to a safetensors file, completely or not at all.

    Args:
        path: Path, usually ``name.safetensors``.
        arrays: Dict from names to arrays, tensors or variables of numbers.
        metadata: Dict of texts to store with them.
        overwrite: If False, an existing file is an error.
        max_shard_size: Largest size of a file in GB (2^30 bytes) without its header: write
            ``name-00001-of-00002.safetensors`` and so on, and then their index
            ``name.safetensors.index.json``, in Hugging Face's layout. It replaces a
            single file at ``path``. None for a single file.

    Raises:
        ValueError: If a name, dtype or text cannot be stored, or an array is larger than
            ``max_shard_size``.
        SavingError: If the file cannot be written; older files are then unchanged.
        FileExistsError: If the file exists and ``overwrite`` is False.
        ImportError: If the package safetensors is not installed.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
        >>> tw.io.save_safetensors(path, {"a": tw.eye(2)}, {"author": "me"})
    """
    package = _require_safetensors("save_safetensors")
    path = os.fspath(path)
    arrays = {name: _checked(name, value) for name, value in arrays.items()}
    _check_texts("a name of arrays", arrays)
    _check_texts("a text of metadata", [*(metadata or {}), *(metadata or {}).values()])
    if path.endswith(INDEX_SUFFIX) and max_shard_size is None:
        raise ValueError(
            f"save_safetensors: path must not be that of an index, {path!r}, without "
            "max_shard_size"
        )
    if METADATA in arrays:
        raise ValueError(f"save_safetensors: {METADATA!r} is a reserved name")
    # Larger items first, so that all are aligned.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    arrays = {name: arrays[name] for name in order}
    if max_shard_size is None:
        with replacing(path, overwrite) as temporary:
            _write(package, temporary, path, arrays, metadata)
    else:
        _write_shards(package, path, arrays, metadata, overwrite, max_shard_size)


def _checked(name, value):
    if not is_array(value):
        value = np.asarray(value)
    value = np.asarray(to_numpy(value), order="C")
    value = value.astype(value.dtype.newbyteorder("<"), copy=False)
    if not (is_bfloat16(value.dtype) or value.dtype in NAMES):
        raise ValueError(
            f"save_safetensors: {name!r} must have one of the dtypes "
            f"{', '.join([dtype.name for dtype in NAMES])}, bfloat16, got {value.dtype}"
        )
    return value


def _check_texts(what, texts):
    for text in texts:
        if not (isinstance(text, str) and strict_json.is_whole(text)):
            raise ValueError(
                f"save_safetensors: {what} must be a str without lone surrogates, "
                f"got {text!r}"
            )


def _write(package, temporary, path, arrays, metadata):
    header, end = {METADATA: dict(metadata)} if metadata else {}, 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        code = BFLOAT16 if is_bfloat16(array.dtype) else NAMES[array.dtype]
        entry = {"dtype": code, "shape": array.shape, "data_offsets": (begin, end)}
        header[name] = entry
    text = strict_json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the first array is aligned
    with open(temporary, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(array.reshape(-1).view(np.uint8))
    _check(package, temporary, path)


def _write_shards(package, path, arrays, metadata, overwrite, max_shard_size):
    stem = path.removesuffix(INDEX_SUFFIX).removesuffix(SUFFIX)
    shards = _split(arrays, max_shard_size)
    total = sum([array.nbytes for array in arrays.values()])
    index = {"metadata": {"total_size": total}, "weight_map": {}}
    single = stem + SUFFIX  # which would be found in place of the index
    if not overwrite and os.path.lexists(single):
        reason = "exists already, and overwrite is False"
        raise saving_error(single, reason, cause=FileExistsError())
    with ExitStack() as stack:
        # The first to be entered is the last to be put in place.
        last = stack.enter_context(replacing(stem + INDEX_SUFFIX, overwrite))
        for i, shard in enumerate(shards, 1):
            each = f"{stem}-{i:05}-of-{len(shards):05}{SUFFIX}"
            temporary = stack.enter_context(replacing(each, overwrite))
            _write(package, temporary, each, shard, metadata)
            index["weight_map"] |= dict.fromkeys(shard, os.path.basename(each))
        with open(last, "w", encoding="utf-8") as file:
            file.write(strict_json.dumps(index))
    if os.path.lexists(single):
        with as_saving_error(single, "cannot be removed", errors=OSError):
            os.unlink(single)


def _split(arrays, max_shard_size):
    """Return dicts of consecutive arrays, each of at most this size in GB."""
    if not max_shard_size > 0:
        raise ValueError(
            f"save_safetensors: max_shard_size must be positive, got {max_shard_size!r}"
        )
    shards, size = [{}], 0
    for name, array in arrays.items():
        if array.nbytes > max_shard_size * 2**30:
            raise ValueError(
                "save_safetensors: max_shard_size must be at least the size of each "
                f"array: {name!r} has {array.nbytes} bytes, more than "
                f"{max_shard_size * 2**30:.0f}"
            )
        if size + array.nbytes > max_shard_size * 2**30:
            shards.append({})
            size = 0
        shards[-1][name] = array
        size += array.nbytes
    if len(shards) > MAX_SHARDS:
        raise ValueError(
            f"save_safetensors: max_shard_size needs more than {MAX_SHARDS} files; "
            "increase it"
        )
    return shards
