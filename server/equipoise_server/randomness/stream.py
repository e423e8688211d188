"""A keyed stream of random words. All randomness of a round is read from such streams.

A round has one secret seed. Each purpose, and each analyst within a purpose, reads a stream of its own, so
that what one of them consumes never shifts what another one sees, and an auditor with the seed can replay
each alone.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

_DOMAIN = b"equipoise keyed stream 1"
_MIN_SEED_BYTES = 16
_LAST_WORD = np.uint64(2**64 - 1)
# ChaCha20 numbers its 64-byte blocks with 32 bits. Beyond that implementations differ, so replay would not
# hold.
_WORDS_IN_STREAM = 2**32 * 8
_WORDS_AT_ONCE = 1 << 20


class KeyedStream:
    """An endless-looking sequence of uniform 64-bit words, fixed by a seed and a list of labels.

    The key is HKDF-SHA256(seed, info = labels) (RFC 5869) and the words are the ChaCha20 keystream (RFC 8439)
    from block 0 with a zero nonce, eight bytes a word, little endian. A key is used for one stream only,
    which is why a constant nonce is safe. Deriving twice with equal arguments gives the *same* words: that is
    what replay needs, and it is why a label must name one purpose and be derived once in a round.

    The sequence does not depend on how it is cut: `words(a)` then `words(b)` is `words(a + b)`.
    """

    def __init__(self, key: bytes) -> None:
        """A stream from a 32-byte key that is used for nothing else. Callers use `derive`."""
        self._keystream: CipherContext = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._words_left = _WORDS_IN_STREAM

    @classmethod
    def derive(cls, seed: bytes, *labels: str) -> KeyedStream:
        """The stream of `seed` for the purpose that the labels name. Raises ValueError for a seed below 16 bytes.

        Labels are encoded with their number and lengths, so no two lists of labels give the same key:
        ("ab", "c"), ("a", "bc") and ("abc",) are three streams.

        >>> KeyedStream.derive(bytes(32), "example").words(2).tolist()
        [15343447514100347416, 4842539219861204482]
        """
        if len(seed) < _MIN_SEED_BYTES:
            raise ValueError(f"a seed has at least {_MIN_SEED_BYTES} bytes, this one has {len(seed)}")
        info = [_DOMAIN, len(labels).to_bytes(4, "big")]
        for label in labels:
            encoded = label.encode("utf-8")
            info += [len(encoded).to_bytes(4, "big"), encoded]
        return cls(HKDF(algorithm=SHA256(), length=32, salt=None, info=b"".join(info)).derive(seed))

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` words, each uniform on 0..2^64-1. Raises OverflowError after 2^35 words (256 GiB)."""
        if count < 0:
            raise ValueError(f"count: {count} is negative")
        if count > self._words_left:
            raise OverflowError("this stream is used up; derive another one")
        self._words_left -= count
        words = np.empty(count, dtype=np.uint64)
        for start in range(0, count, _WORDS_AT_ONCE):
            part = words[start : start + _WORDS_AT_ONCE]
            part[:] = np.frombuffer(self._keystream.update(bytes(8 * part.size)), dtype="<u8")
        return words

    def below(self, bound: int) -> int:
        """Return a uniform integer in 0..bound-1, exactly, for a bound of any size. Raises ValueError if bound < 1.

        Numbers of as many bits as `bound - 1` has are read (the low bits of the fewest whole words, first
        word lowest) until one is below the bound: less than two on average.
        """
        if bound < 1:
            raise ValueError(f"bound: {bound} is below 1")
        bits = (bound - 1).bit_length()
        mask = (1 << bits) - 1
        words = -(-bits // 64)
        while True:
            value = int.from_bytes(self.words(words).astype("<u8").tobytes(), "little") & mask
            if value < bound:
                return value

    def below_each(self, bounds: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Independent uniform integers, the i-th in 0..bounds[i]-1, exactly; bounds are at least 1. Same shape.

        A word w gives w mod bound unless it lies in the incomplete last run of `bound` words, the top
        (2^64 mod bound) ones; those few are read again, in order, until none is left.
        """
        if bounds.size and int(bounds.min()) < 1:
            raise ValueError("bounds: one is below 1")
        incomplete = (_LAST_WORD % bounds + np.uint64(1)) % bounds
        drawn = self.words(bounds.size)
        while True:
            again = np.flatnonzero(drawn > _LAST_WORD - incomplete)
            if again.size == 0:
                return drawn % bounds
            drawn[again] = self.words(again.size)

    def permutation(self, size: int) -> NDArray[np.int64]:
        """A uniform permutation of 0..size-1, exactly, by the shuffle of Fisher and Yates (Durstenfeld 1964)."""
        if size < 0:
            raise ValueError(f"size: {size} is negative")
        order = list(range(size))
        choices = self.below_each(np.arange(size, 1, -1, dtype=np.uint64)).tolist()
        for last, choice in zip(range(size - 1, 0, -1), choices, strict=True):
            order[last], order[choice] = order[choice], order[last]
        return np.array(order, dtype=np.int64)
