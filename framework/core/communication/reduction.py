"""The all-reduce: the same sums, bit for bit, on every rank.

Each rank sums one piece of the data, with the contributions in the order of the ranks,
and all ranks gather the pieces: ``2 (size - 1) / size`` of the data leave a rank, as in
the best algorithms of MPI, and no choice made by MPI changes a bit. Small data are
gathered whole.

Functions here are generators: they yield MPI requests and resume once these are done.

References:
    Thakur et al., "Optimization of collective communication operations in MPICH"
    (2005), on reduce-scatter and allgather.
"""

import numpy as np

from ..hardware.devices import array_module

SMALL = 1 << 15  # bytes of all ranks, up to which all gather whole contributions
ALONE = 1 << 18  # bytes from which an array travels alone: copying it costs more
CHUNK = 1 << 24  # bytes to exchange at once, few enough to stay in caches


def packed_all_reduce(channel, arrays, op, compression):
    """Pack arrays of one module; return a function that exchanges their messages."""
    packed = _pack(arrays)

    def messages():
        flats = []
        for _, flat in packed:
            flats.append((yield from _all_reduce(channel, flat, op, compression)))
        return _unpack(arrays, packed, flats)

    return messages


def _pack(arrays):
    """Return pairs: positions of arrays of one dtype, and one flat array of them.

    Large arrays are not packed: copying takes longer than an additional message.
    """
    numbers = {}
    for i, array in enumerate(arrays):
        key = array.dtype if array.nbytes < ALONE else i
        numbers.setdefault(key, []).append(i)
    packed = []
    for group in numbers.values():
        xp = array_module(type(arrays[group[0]]))
        parts = [xp.ravel(arrays[i]) for i in group]
        flat = parts[0] if len(parts) == 1 else xp.concatenate(parts)
        packed.append((group, xp.ascontiguousarray(flat)))
    return packed


def _unpack(arrays, packed, flats):
    """Return views of the flat results in the shapes of the arrays."""
    results = [None] * len(arrays)
    for (group, _), flat in zip(packed, flats):
        start = 0
        for i in group:
            stop = start + arrays[i].size
            results[i] = flat[start:stop].reshape(arrays[i].shape)
            start = stop
    return results


def _all_reduce(channel, flat, op, compression):
    """Return the element-wise reduction of a flat array over all ranks, a new array."""
    rank, size, xp = channel.rank, channel.size, array_module(type(flat))
    out = xp.empty_like(flat)
    is_small = compression is None and flat.nbytes * size <= SMALL
    divided = 0 if is_small else flat.size - flat.size % size
    step = max(CHUNK // flat.itemsize // size, 1) * size
    for start in range(0, divided, step):
        part = slice(start, min(start + step, divided))
        pieces = flat[part].reshape(size, -1)
        if compression is not None:
            out[part] = (yield from _compressed(channel, pieces, op)).reshape(-1)
            continue
        received, results = xp.empty_like(pieces), out[part].reshape(size, -1)
        yield channel.all_to_all(pieces, received)
        parts = [*received[:rank], pieces[rank], *received[rank + 1 :]]
        _combined(parts, op, results[rank])
        yield channel.all_gather_in_place(results)
    if divided < flat.size:
        rest = flat[divided:]
        gathered = xp.empty((size, rest.size), flat.dtype)
        yield channel.all_gather_bytes(as_bytes(rest), as_bytes(gathered))
        _combined(gathered, op, out[divided:])
    return out


def _compressed(channel, pieces, op):
    """Reduce pieces sent in half precision; sum in at least single precision."""
    xp = array_module(type(pieces))
    sent = _encoded(pieces)
    received = xp.empty_like(sent)
    yield channel.all_to_all(sent, received)
    received[channel.rank] = sent[channel.rank]
    dtype = np.result_type(pieces.dtype, np.float32)
    own = _combined(_decoded(received, dtype), op, xp.empty(pieces.shape[1:], dtype))
    yield channel.all_gather_bytes(as_bytes(_encoded(own[None])), as_bytes(received))
    return _decoded(received, pieces.dtype)


def _combined(parts, op, out):
    """Reduce arrays, or the rows of an array, in order into ``out``."""
    xp = array_module(type(out))
    combine = {"max": xp.maximum, "min": xp.minimum}.get(op, xp.add)
    with np.errstate(all="ignore"):
        if len(parts) == 1:
            out[...] = parts[0]
        else:
            combine(parts[0], parts[1], out=out)
        for part in parts[2:]:
            combine(out, part, out=out)
        if op == "mean":
            xp.divide(out, len(parts), out=out)
    return out


def as_bytes(array):
    """Return the bytes of a contiguous array as a buffer for MPI."""
    return array.reshape(-1).view(np.uint8)


def parts_for_others(rows, rank):
    """Return rows as buffers for MPI: row i for or from rank i, nothing for ``rank``."""
    counts, offsets = (
        [rows[0].nbytes] * len(rows),
        np.arange(len(rows)) * rows[0].nbytes,
    )
    counts[rank] = 0
    return [as_bytes(rows), (counts, offsets.tolist())]


# --- half precision, with a scale for each row

LARGEST = 2.0**15  # below the largest float16, 65504


def _encoded(rows):
    """Return rows of float16, each preceded by its scale, a float32 in two entries.

    The scale is the power of two that scales the largest entry to at least 2**14.
    """
    xp = array_module(type(rows))
    out = xp.empty((len(rows), rows.shape[1] + 2), np.float16)
    with np.errstate(all="ignore"):
        largest = xp.max(xp.abs(rows), axis=1).astype(np.float64)
        exponent = xp.where(xp.isfinite(largest) & (largest > 0), largest, LARGEST)
        exponent = xp.clip(15 - xp.frexp(exponent)[1], -126, 126)
        scale = xp.ldexp(np.float32(1), exponent).astype(np.float32)
        out[:, 2:] = rows * scale[:, None]
    out[:, :2] = scale.view(np.float16).reshape(-1, 2)
    return out


def _decoded(rows, dtype):
    xp = array_module(type(rows))
    scale = xp.ascontiguousarray(rows[:, :2]).view(np.float32)
    with np.errstate(all="ignore"):
        return rows[:, 2:].astype(np.result_type(dtype, np.float32)) / scale
