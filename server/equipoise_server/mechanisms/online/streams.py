"""What a session draws from: streams that are bound to all that was asked before them.

A state directory that is restored whole, guard and all, is the server that it was: nothing inside it tells that the
session had gone on. Were a slot's noise a function of the seed and the slot, another statement in that slot would be
answered with the same noise, and the difference of the two answers would have none. So each stream is a function of
the seed and of the statements so far, with their slots. From the first statement that differs on, both histories
draw independent noise, as two sessions do; up to there they are one session, with the same answers.

All analysts' statements are in it, also where analysts are protected from one another: a test's score depends on the
hypothesis, which depends on what all have asked, and the same noise on two scores of one statement would protect
nobody. That tells nobody anything. For a secret seed, the streams of any list of statements cannot feasibly be told
from uniform bytes, so replacing a statement changes the law of no noise.
"""

from __future__ import annotations

import hashlib

from equipoise_server.randomness.stream import KeyedStream

_START = hashlib.sha256(b"equipoise session transcript v1\n").digest()


class SessionStreams:
    """The streams of one session. They are the same again when the same statements are taken again."""

    def __init__(self, seed: bytes) -> None:
        """`seed`: the session's, bound to its table and plan."""
        self._seed = seed
        self._transcript = _START

    @property
    def transcript(self) -> bytes:
        """The digest of all statements that were taken."""
        return self._transcript

    def take(self, slot: int, statement: bytes) -> None:
        """Bind all streams from here on to a statement's exact bytes and its slot."""
        taken = self._transcript + slot.to_bytes(8, "big") + hashlib.sha256(statement).digest()
        self._transcript = hashlib.sha256(taken).digest()

    def derive(self, *labels: str) -> KeyedStream:
        """Derive the stream for the purpose that the labels name, after the statements that were taken."""
        return KeyedStream.derive(self._seed, *labels, self._transcript.hex())
