"""The all-reduce and its two halves: the same sums, bit for bit, on every rank.

Each rank sums one piece of the data, with the contributions in the order of the ranks
(`reduce_scatter`), and all ranks gather the pieces: ``2 (size - 1) / size`` of the data
leave a rank, as in the best algorithms of MPI, and no choice made by MPI changes a bit.
Small data are gathered whole.

Functions here are generators: they yield MPI requests and resume once these are done.
``bounds`` are the beginning and the end of the piece of each rank in a flat array, in
the order of the ranks.

References:
    Thakur et al., "Optimization of collective communication operations in MPICH"
    (2005), on reduce-scatter and allgather.
"""

import numpy as np

from ..hardware.devices import array_module

SMALL = 1 << 15  # bytes of all ranks, up to which all gather whole contributions
ALONE = 1 << 18  # bytes from which an array travels alone: copying it costs more
CHUNK = 1 << 24  # bytes to exchange at once, few enough to stay in caches
FARTHEST = (1 << 31) - 1  # bytes that all versions of MPI can count


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
    size, xp = channel.size, array_module(type(flat))
    out = xp.empty_like(flat)
    is_small = compression is None and flat.nbytes * size <= SMALL
    divided = 0 if is_small else flat.size - flat.size % size
    step = max(CHUNK // flat.itemsize // size, 1) * size
    for start in range(0, divided, step):
        part = slice(start, min(start + step, divided))
        chunk, result = flat[part], out[part]
        bounds = equal_bounds(0, chunk.size, size)
        if compression is not None:
            yield from _compressed(channel, chunk, bounds, op, compression, result)
            continue
        own = slice(*bounds[channel.rank])
        yield from _reduced(channel, chunk, bounds, op, None, result[own])
        yield channel.all_gather_in_place(result, bounds)
    if divided < flat.size:
        rest = flat[divided:]
        gathered = xp.empty((size, rest.size), flat.dtype)
        yield channel.all_gather_bytes(as_bytes(rest), as_bytes(gathered))
        _combined(gathered, op, out[divided:])
    return out


def equal_bounds(start, stop, size):
    """Return the bounds of equal pieces for ``size`` ranks; the last may be longer."""
    step = (stop - start) // size
    edges = [*range(start, start + step * size, step)] if step else [start] * size
    return [*zip(edges, [*edges[1:], stop])]


def reduce_scatter(channel, flat, bounds, op, compression):
    """Return the piece of this rank of the reduction over all ranks, a new array."""
    start, stop = bounds[channel.rank]
    out = array_module(type(flat)).empty(stop - start, flat.dtype)
    for parts in _chunks(flat, bounds):
        first, last = parts[channel.rank]
        into = out[first - start : last - start]
        sent, places = (flat, parts) if _is_near(flat) else _packed(flat, parts)
        yield from _reduced(channel, sent, places, op, compression, into)
    return out


def all_gather_pieces(channel, flat, bounds):
    """Fill a flat array, in place, with the pieces of all other ranks."""
    if _is_near(flat):
        yield channel.all_gather_in_place(flat, bounds)
        return
    for parts in _chunks(flat, bounds):
        chunk, places = _packed(flat, parts)
        yield channel.all_gather_in_place(chunk, places)
        for part, place in zip(parts, places):
            flat[slice(*part)] = chunk[slice(*place)]


def _chunks(flat, bounds):
    """Yield the bounds of parts of all pieces, few enough bytes to exchange at once."""
    longest = max([last - first for first, last in bounds])
    step = max(CHUNK // flat.itemsize // len(bounds), 1)
    for offset in range(0, longest, step):
        ends = offset, offset + step
        yield [[min(a + n, b) for n in ends] for a, b in bounds]


def _is_near(flat):
    """Check that MPI can address each byte of an array by a 32-bit offset."""
    return flat.nbytes <= FARTHEST


def _packed(flat, parts):
    """Return parts of a flat array in a new one, and their bounds there."""
    ends = np.cumsum([stop - start for start, stop in parts]).tolist()
    joined = [flat[start:stop] for start, stop in parts]
    chunk = array_module(type(flat)).concatenate(joined)
    return chunk, [*zip([0, *ends[:-1]], ends)]


def _reduced(channel, flat, bounds, op, compression, out):
    """Reduce the piece of this rank into ``out``."""
    rank, xp = channel.rank, array_module(type(flat))
    sent, parts = flat, bounds
    if compression is not None:
        sent, parts = _encoded_pieces(flat, bounds)
    first, last = parts[rank]
    received = xp.empty((channel.size, last - first), sent.dtype)
    yield channel.all_to_all(sent, parts, received)
    if compression is None:
        _combined([*received[:rank], sent[first:last], *received[rank + 1 :]], op, out)
        return
    received[rank] = sent[first:last]
    wide = np.result_type(out.dtype, np.float32)
    rows = _decoded(received, wide)
    with np.errstate(all="ignore"):
        out[...] = _combined(rows, op, xp.empty(rows.shape[1:], wide))


def _compressed(channel, flat, bounds, op, compression, out):
    """Reduce pieces of one length into ``out``, sent in half precision both ways."""
    xp = array_module(type(flat))
    first, last = bounds[channel.rank]
    own = xp.empty(last - first, np.result_type(flat.dtype, np.float32))
    yield from _reduced(channel, flat, bounds, op, compression, own)
    sent = _encoded(own[None])
    received = xp.empty((channel.size, sent.shape[1]), sent.dtype)
    yield channel.all_gather_bytes(as_bytes(sent), as_bytes(received))
    reduced = _decoded(received, flat.dtype)
    out[bounds[0][0] : bounds[-1][1]] = reduced.reshape(-1)


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


def pieces_of(flat, bounds, leaving_out=None):
    """Return the pieces of a flat array as a buffer for MPI, nothing for one rank."""
    counts = [(stop - start) * flat.itemsize for start, stop in bounds]
    if leaving_out is not None:
        counts[leaving_out] = 0
    return [as_bytes(flat), (counts, [start * flat.itemsize for start, _ in bounds])]


def rows_of(rows, leaving_out):
    """Return rows as a buffer for MPI: row i from rank i, nothing from one rank."""
    bounds = equal_bounds(0, rows.size, len(rows))
    return pieces_of(rows.reshape(-1), bounds, leaving_out)


# --- half precision, with a scale for each row

LARGEST = 2.0**15  # below the largest float16, 65504


def _encoded(rows):
    """Return rows of float16, each preceded by its scale, a float32 in two entries.

    The scale is the power of two that scales the largest entry to at least 2**14.
    """
    xp = array_module(type(rows))
    if not rows.size:
        return xp.zeros((len(rows), 2), np.float16)
    out = xp.empty((len(rows), rows.shape[1] + 2), np.float16)
    with np.errstate(all="ignore"):
        largest = xp.max(xp.abs(rows), axis=1).astype(np.float64)
        exponent = xp.where(xp.isfinite(largest) & (largest > 0), largest, LARGEST)
        exponent = xp.clip(15 - xp.frexp(exponent)[1], -126, 126)
        scale = xp.ldexp(np.float32(1), exponent).astype(np.float32)
        out[:, 2:] = rows * scale[:, None]
    out[:, :2] = scale.view(np.float16).reshape(-1, 2)
    return out


def _encoded_pieces(flat, bounds):
    """Return the encoded pieces in a flat array, and their bounds there."""
    xp = array_module(type(flat))
    rows = [_encoded(flat[start:stop][None])[0] for start, stop in bounds]
    ends = np.cumsum([row.size for row in rows]).tolist()
    return xp.concatenate(rows), [*zip([0, *ends[:-1]], ends)]


def _decoded(rows, dtype):
    xp = array_module(type(rows))
    scale = xp.ascontiguousarray(rows[:, :2]).view(np.float32)
    with np.errstate(all="ignore"):
        return rows[:, 2:].astype(np.result_type(dtype, np.float32)) / scale
