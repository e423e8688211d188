"""What a session draws from: streams that are bound to the statement and to all that was learnt before it.

A state directory that is restored whole, guard and all, is the server that it was: nothing inside it tells that the
session had gone on. Were a slot's noise a function of the seed and the slot, another statement in that slot would
be answered with the same noise, and the difference of the two answers would have none. So the noise of a slot is a
function of the seed, the slot, the statement, and of the statements that were answered afresh before, of all
analysts and in their order: a test's score depends on the hypothesis, which is made of these. Where all of it is
the same, so is the answer; where anything differs, the noise is independent, as in two sessions.

Statements that the hypothesis served are not in it: they change nothing for anybody, and so they do not change what
others draw.
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
        """The digest of all that was learnt."""
        return self._history

    def ask(self, slot: int, statement: bytes) -> None:
        """Begin to answer a statement, by its exact bytes, in a slot."""
        self._asked = hashlib.sha256(slot.to_bytes(8, "big") + statement).digest()

    def learn(self) -> None:
        """Bind all streams from here on to the statement that is being answered: it is answered afresh."""
        self._history = hashlib.sha256(self._history + self._asked).digest()

    def derive(self, *labels: str) -> KeyedStream:
        """Derive the stream for the purpose that the labels name, after what was learnt."""
        return KeyedStream.derive(self._seed, *labels, self._history.hex())

    def derive_asked(self, *labels: str) -> KeyedStream:
        """Derive the stream for the purpose that the labels name, of the statement that is being answered."""
        return self.derive(*labels, self._asked.hex())
