"""Slow, independent references: exp by integer Taylor series, ChaCha20 and HKDF written from their RFCs.

None of it uses `decimal`, floating point or the `cryptography` package, on which the tested code rests.
"""

from __future__ import annotations

import hashlib
import hmac
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.stream import KeyedStream

HALVINGS = 32


def exponential(x: Fraction, bits: int = 400) -> Fraction:
    """exp(x) for |x| <= 2^17 to a relative error below 2^-(bits - 60): the series of x / 2^32, squared 32 times.

    Taylor's series is summed in integers of `bits` + 2 |x| bits; each squaring doubles the relative error.
    """
    kept = bits + 2 * (abs(x.numerator) // x.denominator)
    small = (abs(x.numerator) << kept) // (x.denominator << HALVINGS)
    term = total = 1 << kept
    n = 0
    while term:
        n += 1
        term = (term * small >> kept) // n
        total += term
    for _ in range(HALVINGS):
        total = total * total >> kept
    value = Fraction(total, 1 << kept)
    return value if x >= 0 else 1 / value


def _quarter(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for left, right, other, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] = (state[left] + state[right]) & 0xFFFFFFFF
        mixed = state[other] ^ state[left]
        state[other] = ((mixed << turn) | (mixed >> (32 - turn))) & 0xFFFFFFFF


def chacha20_block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """RFC 8439, section 2.3."""
    words = b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce
    start = [int.from_bytes(words[i : i + 4], "little") for i in range(0, 64, 4)]
    state = list(start)
    for _ in range(10):
        for a in range(4):
            _quarter(state, a, a + 4, a + 8, a + 12)
        for a in range(4):
            _quarter(state, a, 4 + (a + 1) % 4, 8 + (a + 2) % 4, 12 + (a + 3) % 4)
    return b"".join(((x + y) & 0xFFFFFFFF).to_bytes(4, "little") for x, y in zip(state, start, strict=True))


def hkdf_32(seed: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt and 32 bytes of output: one block of the expansion."""
    extracted = hmac.new(bytes(32), seed, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


class ScriptedStream(KeyedStream):
    """A stream that returns given words, then zeros; `read` counts what was asked for."""

    def __init__(self, words: list[int]) -> None:
        self._script = list(words)
        self.read = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        script = (self._script[self.read : self.read + count] + [0] * count)[:count]
        self.read += count
        return np.array(script, dtype=np.uint64)
