"""Hash functions of bytes whose values files and models rely on, as in TensorFlow.

- `farm`: FarmHash's Fingerprint64 (the class ``farmhashna``), Google, 2014.
- `sip`: SipHash-2-4 with a key (Aumasson & Bernstein, "SipHash: a fast short-input PRF",
  2012), for which nobody without the key finds collisions.
- `murmur`: MurmurHash64A (Appleby, 2008) with TensorFlow's seed.
- `cat`: one fingerprint of two, which TensorFlow's crosses of features use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import unpack_from

__all__ = ["CROSS_KEY", "bucket_table", "cat", "farm", "murmur", "sip"]

MASK = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
MUL = 0xC6A4A7935BD1E995  # of MurmurHash
CROSS_KEY = 0xDECAFCAFFE


def _rotate(x, bits):
    """Rotate 64 bits to the right."""
    return (x >> bits | x << (64 - bits)) & MASK


def _mix(x):
    return x ^ x >> 47


def _word(text, at):
    return int.from_bytes(text[at : at + 8], "little")


# -------------------------------------------------------------------------- FarmHash


def farm(text: bytes) -> int:
    """The 64 bits of FarmHash's Fingerprint64."""
    size = len(text)
    if size > 64:
        return _farm_long(text)
    mul = (K2 + 2 * size) & MASK
    if size > 16:
        return _farm_of_64(text, mul)
    if size >= 8:
        a, b = _word(text, 0) + K2 & MASK, _word(text, size - 8)
        c, d = _rotate(b, 37) * mul + a, (_rotate(a, 25) + b) * mul
        return _of_two(c & MASK, d & MASK, mul)
    if size >= 4:
        a = int.from_bytes(text[:4], "little")
        return _of_two(size + (a << 3), int.from_bytes(text[-4:], "little"), mul)
    if size:
        y = text[0] + (text[size >> 1] << 8)
        z = size + (text[-1] << 2)
        return _mix((y * K2 ^ z * K0) & MASK) * K2 & MASK
    return K2


def _of_two(u, v, mul):
    a = _mix((u ^ v) * mul & MASK)
    return _mix((v ^ a) * mul & MASK) * mul & MASK


def _farm_of_64(text, mul):
    """For 17 to 64 bytes."""
    short = len(text) <= 32
    a, b = _word(text, 0) * (K1 if short else K2) & MASK, _word(text, 8)
    c, d = _word(text, len(text) - 8) * mul & MASK, _word(text, len(text) - 16) * K2
    y = _rotate(a + b & MASK, 43) + _rotate(c, 30) + d & MASK
    z = _of_two(y, a + _rotate(b + K2 & MASK, 18) + c & MASK, mul)
    if short:
        return z
    e, f = _word(text, 16) * mul & MASK, _word(text, 24)
    g = (y + _word(text, len(text) - 32)) * mul & MASK
    h = (z + _word(text, len(text) - 24)) * mul
    u = _rotate(e + f & MASK, 43) + _rotate(g, 30) + h & MASK
    return _of_two(u, e + _rotate(f + a & MASK, 18) + g & MASK, mul)


def _farm_long(text):
    rest = (len(text) - 1) % 64
    x, y = 81, 81 * K1 + 113 & MASK
    z = _mix(y * K2 + 113 & MASK) * K2 & MASK
    v = w = (0, 0)
    x = x * K2 + _word(text, 0) & MASK
    for start in range(0, len(text) - 1 - rest, 64):
        block = unpack_from("<8Q", text, start)
        x, y, z, v, w = _round(block, x, y, z, v, w, K1, 1)
    mul = K1 + ((z & 0xFF) << 1)
    w = (w[0] + rest, w[1])
    v = (v[0] + w[0] & MASK, v[1])
    w = (w[0] + v[0] & MASK, w[1])
    block = unpack_from("<8Q", text, len(text) - 64)
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


def sip(text: bytes, key: tuple[int, int]) -> int:
    """The 64 bits of SipHash-2-4 under a key of two words."""
    k0, k1 = key[0] & MASK, key[1] & MASK
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    whole = len(text) // 8 * 8
    tail = text[whole:].ljust(7, b"\0") + bytes([len(text) & 0xFF])
    for at in range(0, whole + 8, 8):
        word = _word(text, at) if at < whole else _word(tail, 0)
        a, b, c, d = _sip_round(*_sip_round(*state[:3], state[3] ^ word))
        state = a ^ word, b, c, d
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


def murmur(text: bytes) -> int:
    """The 64 bits of MurmurHash64A with TensorFlow's seed."""
    h = 0xDECAFCAFFE ^ len(text) * MUL & MASK
    whole = len(text) // 8 * 8
    for at in range(0, whole, 8):
        k = _mix(_word(text, at) * MUL & MASK) * MUL & MASK
        h = (h ^ k) * MUL & MASK
    if whole < len(text):
        h = (h ^ _word(text, whole)) * MUL & MASK
    return _mix(_mix(h) * MUL & MASK)


def cat(first: int, second: int) -> int:
    """One fingerprint of two."""
    mixed = _mix(second * MUL & MASK) * MUL & MASK
    result = (first ^ MUL ^ mixed) * MUL & MASK
    return _mix(_mix(result) * MUL & MASK)


# --------------------------------------------------------------------------- buckets


def bucket_table(
    hashed: Callable[[bytes], int], texts: Iterable[bytes], num_buckets: int
) -> dict[bytes, int]:
    """Text -> its hash modulo ``num_buckets``.

    Texts repeat, and to hash one takes a hundred times as long as to find it in a table.
    """
    return {text: hashed(text) % num_buckets for text in set(texts)}
