"""The random streams of a session, each bound to its statement and to everything that was learnt before it.

If the whole state directory is restored from a copy, including the guard, nothing in it shows that the session had
gone on. If a slot's noise depended on the seed and the slot alone, another statement in that slot would then get
the same noise, and the difference of the two answers would have none. So the noise of a slot is a function of the
seed, the slot, the statement, and the statements of all analysts that got fresh answers before, in their order.
(The score of a test depends on the hypothesis, which is made from these.) If all of these are the same, so is the
answer; if any of them differs, the noise is independent, as in two sessions.

Statements that were answered from the hypothesis are not included: they change nothing for anybody, and so they do
not change the randomness of others.
"""

from __future__ import annotations

import hashlib

from equipoise_server.randomness.stream import KeyedStream

_START = hashlib.sha256(b"equipoise session history v1\n").digest()


class SessionStreams:
    """The streams of one session. They are the same again when the same statements are asked and learnt again."""

    def __init__(self, seed: bytes) -> None:
        """`seed`: the session's, bound to its table and plan."""
        self._seed = seed
        self._history = _START
        self._asked = b""

    @property
    def history(self) -> bytes:
        """The digest of everything that was learnt."""
        return self._history

    def ask(self, slot: int, statement: bytes) -> None:
        """Begin to answer a statement, by the bytes of what it asks, in a slot."""
        self._asked = hashlib.sha256(slot.to_bytes(8, "big") + statement).digest()

    def learn(self) -> None:
        """Bind all further streams to the current statement, which gets a fresh answer."""
        self._history = hashlib.sha256(self._history + self._asked).digest()

    def derive(self, *labels: str) -> KeyedStream:
        """Derive the stream for the purpose that the labels name, after what was learnt."""
        return KeyedStream.derive(self._seed, *labels, self._history.hex())

    def derive_asked(self, *labels: str) -> KeyedStream:
        """Derive the stream for the purpose that the labels name, of the statement that is being answered."""
        return self.derive(*labels, self._asked.hex())
