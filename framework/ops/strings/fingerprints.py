"""Hash functions of bytes with values that files and models rely on, as in TensorFlow.

- `farm`: FarmHash's Fingerprint64 (the class ``farmhashna``), Google, 2014.
- `sip`: SipHash-2-4 with a key (Aumasson & Bernstein,
  "SipHash: a fast short-input PRF", 2012); finding collisions requires the key.
- `murmur`: MurmurHash64A (Appleby, 2008) with TensorFlow's seed.
- `cat`: combines two fingerprints into one, for TensorFlow's feature crosses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapewright.core.typing import Array

MASK = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
MUL = 0xC6A4A7935BD1E995  # of MurmurHash
CROSS_KEY = 0xDECAFCAFFE
FEW = 24  # strings for which Python's integers are faster than arrays


def _hashes(function, texts, paths_of):
    """Compute ``function(like, size, word)`` for each string: uint64 ``[n]``.

    The functions compute with the integers of one string, or with arrays of many:
    strings of one path, a number that ``paths_of(sizes)`` returns, follow the same
    steps. ``like`` is therefore the size of any of them, ``size`` the size of each, and
    ``word(at)`` the 8 bytes at a position as a little-endian number, with arbitrary
    bytes past the end of the string.
    """
    if len(texts) < FEW:
        return np.array([_of_one(function, text) for text in texts], np.uint64)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    paths = paths_of(sizes)
    order = np.argsort(paths, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(paths[order])) + 1)
    buffer = b"".join([*texts, bytes(8)])
    words = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))
    starts = (np.cumsum(sizes) - sizes).astype(np.uint64)
    hashes = np.empty(len(texts), np.uint64)
    for group in groups:
        if len(group) < FEW:
            hashes[group] = [_of_one(function, texts[i]) for i in group]
        else:
            at, size = starts[group], sizes[group].astype(np.uint64)
            word = lambda offset, at=at: words[at + offset]  # noqa: E731
            hashes[group] = function(int(size[0]), size, word)
    return hashes


def _of_one(function, text):
    word = lambda at: int.from_bytes(text[at : at + 8], "little")  # noqa: E731
    return function(len(text), len(text), word)


def _rotate(x, bits):
    """Rotate 64 bits to the right."""
    return (x >> bits | x << (64 - bits)) & MASK


def _mix(x):
    return x ^ x >> 47


# -------------------------------------------------------------------------- FarmHash


def farm(texts: Sequence[bytes]) -> Array:
    """Compute the 64-bit FarmHash Fingerprint64 of each string: uint64 ``[n]``."""
    return _hashes(_farm, texts, _farm_paths)


def _farm_paths(sizes):
    """Return one path for each of the short forms, and for each number of 64-byte blocks."""
    return np.digitize(sizes, [1, 4, 8, 17, 33]) + np.maximum(sizes - 1, 0) // 64


def _farm(like, size, word):
    if like > 64:
        return _farm_long(like, size, word)
    if not like:
        return K2 + 0 * size
    mul = K2 + 2 * size & MASK
    if like > 16:
        return _farm_of_64(like, size, word, mul)
    if like >= 8:
        a, b = word(0) + K2 & MASK, word(size - 8)
        c, d = _rotate(b, 37) * mul + a, (_rotate(a, 25) + b) * mul
        return _of_two(c & MASK, d & MASK, mul)
    if like >= 4:
        a, b = word(0) & 0xFFFFFFFF, word(size - 4) & 0xFFFFFFFF
        return _of_two(size + (a << 3), b, mul)
    y = (word(0) & 0xFF) + ((word(size >> 1) & 0xFF) << 8)
    z = size + ((word(size - 1) & 0xFF) << 2)
    return _mix((y * K2 ^ z * K0) & MASK) * K2 & MASK


def _of_two(u, v, mul):
    a = _mix((u ^ v) * mul & MASK)
    return _mix((v ^ a) * mul & MASK) * mul & MASK


def _farm_of_64(like, size, word, mul):
    """Hash 17 to 64 bytes."""
    short = like <= 32
    a, b = word(0) * (K1 if short else K2) & MASK, word(8)
    c, d = word(size - 8) * mul & MASK, word(size - 16) * K2
    y = _rotate(a + b & MASK, 43) + _rotate(c, 30) + d & MASK
    z = _of_two(y, a + _rotate(b + K2 & MASK, 18) + c & MASK, mul)
    if short:
        return z
    e, f = word(16) * mul & MASK, word(24)
    g = (y + word(size - 32)) * mul & MASK
    h = (z + word(size - 24)) * mul
    u = _rotate(e + f & MASK, 43) + _rotate(g, 30) + h & MASK
    return _of_two(u, e + _rotate(f + a & MASK, 18) + g & MASK, mul)


def _farm_long(like, size, word):
    x, y = 81, 81 * K1 + 113 & MASK
    z = _mix(y * K2 + 113 & MASK) * K2 & MASK
    v = w = (0, 0)
    x = (x * K2 & MASK) + word(0) & MASK
    for start in range(0, (like - 1) // 64 * 64, 64):
        block = [word(start + at) for at in range(0, 64, 8)]
        x, y, z, v, w = _round(block, x, y, z, v, w, K1, 1)
    mul = K1 + ((z & 0xFF) << 1)
    w = (w[0] + (size - 1) % 64, w[1])
    v = (v[0] + w[0] & MASK, v[1])
    w = (w[0] + v[0] & MASK, w[1])
    block = [word(size - 64 + at) for at in range(0, 64, 8)]
    x, y, z, v, w = _round(block, x, y, z, v, w, mul, 9)
    first = _of_two(v[0], w[0], mul) + _mix(y) * K0 + z & MASK
    return _of_two(first, _of_two(v[1], w[1], mul) + x & MASK, mul)


def _round(block, x, y, z, v, w, mul, times):
    """Mix 64 bytes, as 8 words, into the state."""
    x = _rotate(x + y + v[0] + block[1] & MASK, 37) * mul & MASK
    y = _rotate(y + v[1] + block[6] & MASK, 42) * mul & MASK
    x ^= w[1] * times & MASK
    y = y + v[0] * times + block[5] & MASK
    z = _rotate(z + w[0] & MASK, 33) * mul & MASK
    v = _weak(block[:4], v[1] * mul, x + w[0])
    w = _weak(block[4:], z + w[1], y + block[2])
    return z, y, x, v, w


def _weak(words, a, b):
    a = a + words[0] & MASK
    b = _rotate(b + a + words[3] & MASK, 21)
    c = a + words[1] + words[2] & MASK
    return c + words[3] & MASK, b + _rotate(c, 44) + a & MASK


# --------------------------------------------------------------------------- SipHash


def sip(texts: Sequence[bytes], key: Sequence[int]) -> Array:
    """Compute the 64-bit SipHash-2-4 of each string: uint64 ``[n]``.

    The key consists of two words.
    """
    k0, k1 = key[0] & MASK, key[1] & MASK
    first = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    return _hashes(
        lambda like, size, word: _sip(first, like, size, word),
        texts,
        lambda sizes: sizes // 8,
    )


def _sip(state, like, size, word):
    whole = like // 8 * 8
    tail = word(whole) & (1 << 8 * (size & 7)) - 1 | (size & 0xFF) << 56
    for at in range(0, whole + 8, 8):
        each = word(at) if at < whole else tail
        a, b, c, d = _sip_round(*_sip_round(*state[:3], state[3] ^ each))
        state = a ^ each, b, c, d
    a, b, c, d = state
    state = a, b, c ^ 0xFF, d
    for _ in range(4):
        state = _sip_round(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(a, b, c, d):
    a, c = a + b & MASK, c + d & MASK
    b, d = _rotate(b, 51) ^ a, _rotate(d, 48) ^ c
    a, c = _rotate(a, 32) + d & MASK, c + b & MASK
    d, b = _rotate(d, 43) ^ a, _rotate(b, 47) ^ c
    return a, b, _rotate(c, 32), d


# ------------------------------------------------------------------- MurmurHash, pairs


def murmur(texts: Sequence[bytes]) -> Array:
    """Compute the 64-bit MurmurHash64A of each string: uint64 ``[n]``.

    The seed is TensorFlow's.
    """
    return _hashes(_murmur, texts, lambda sizes: sizes // 8 * 2 + (sizes % 8 > 0))


def _murmur(like, size, word):
    h = 0xDECAFCAFFE ^ size * MUL & MASK
    whole = like // 8 * 8
    for at in range(0, whole, 8):
        k = _mix(word(at) * MUL & MASK) * MUL & MASK
        h = (h ^ k) * MUL & MASK
    if whole < like:
        h = (h ^ word(whole) & (1 << 8 * (size & 7)) - 1) * MUL & MASK
    return _mix(_mix(h) * MUL & MASK)


def cat(first: Any, second: Any) -> Any:
    """Combine two fingerprints, integers or arrays of uint64, into one."""
    mixed = _mix(second * MUL & MASK) * MUL & MASK
    result = (first ^ MUL ^ mixed) * MUL & MASK
    return _mix(_mix(result) * MUL & MASK)
