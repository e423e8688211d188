"""What a custodian signs for analysts: receipts of the workloads of rounds, and of the answers of sessions.

A round's receipt says which workload of an analyst is in force from then on. Its commitment is
`equipoise.records.record.workload_commitment`, under the salt that the analyst has drawn. The newest one counts.
Where the analyst asked in SQL or put questions together, it commits to what was understood of them, too
(`equipoise.records.record.questions_commitment`): the custodian signs that without ever seeing the questions.
Both kinds of receipts carry the terms that the round has promised (`equipoise.records.promises`).

A session's receipt comes with each answer and stands for all that its analyst has asked and been answered so far. A
chain of hashes goes over the exact bytes of every statement, its slot and its answers, under the analyst's salt. So
an answer given while the session was open cannot differ from what is released at its end:
`equipoise.verification.checks` computes the chain again from the two. `docs/formats.md` has all byte for byte.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from equipoise.errors import VerificationFailed
from equipoise.model.results import Answers
from equipoise.records.canonical import canonical_json
from equipoise.records.codec import COUNT, HASH, POSITIVE, TEXT, Codec, canonical_object, codec_of, key, optional
from equipoise.records.promises import PROMISE, Promise
from equipoise.records.record import SALT_BYTES

RECEIPT_TYPE = "application/vnd.equipoise.receipt+json"
SESSION_RECEIPT_TYPE = "application/vnd.equipoise.session-receipt+json"
VERSION = 1


@canonical_object
class ReceiptPayload:
    """The payload of a round's receipt. `commitment` is None, and both numbers are 0, for a workload withdrawn.

    `questions`: what commits to the questions that the workload was translated from; None where the analyst gave
    none. `accept_time`: microseconds since 1970, UTC.
    """

    deployment: str = key("deployment", TEXT)
    round_id: str = key("round", TEXT)
    analyst: str = key("analyst", TEXT)
    commitment: bytes | None = key("commitment", optional(HASH))
    statements: int = key("statements", COUNT)
    queries: int = key("queries", COUNT)
    accept_time: int = key("accept_time", COUNT)
    promise: Promise = key("promise", PROMISE)
    questions: bytes | None = key("questions", optional(HASH))

    def to_bytes(self) -> bytes:
        """Returns the exact bytes that are signed: canonical JSON."""
        return RECEIPT.to_bytes(self)

    @classmethod
    def from_bytes(cls, payload: bytes) -> ReceiptPayload:
        """Returns the inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        receipt = RECEIPT.from_bytes(payload, "a receipt")
        if receipt.commitment is None and (receipt.statements or receipt.queries or receipt.questions is not None):
            raise VerificationFailed("a receipt for nothing counts statements or queries, or has questions")
        return receipt


@canonical_object
class SessionReceiptPayload:
    """The payload of a session's receipt: `chain` after the analyst's `sequence`-th answer, counted from 1.

    `time`: microseconds since 1970, UTC.
    """

    deployment: str = key("deployment", TEXT)
    session: str = key("session", TEXT)
    analyst: str = key("analyst", TEXT)
    sequence: int = key("sequence", POSITIVE)
    chain: bytes = key("chain", HASH)
    time: int = key("time", COUNT)
    promise: Promise = key("promise", PROMISE)

    def to_bytes(self) -> bytes:
        """Returns the exact bytes that are signed: canonical JSON."""
        return SESSION_RECEIPT.to_bytes(self)

    @classmethod
    def from_bytes(cls, payload: bytes) -> SessionReceiptPayload:
        """Returns the inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        return _session_receipt(payload)


RECEIPT: Codec[ReceiptPayload] = codec_of(ReceiptPayload, {"version": VERSION})
SESSION_RECEIPT: Codec[SessionReceiptPayload] = codec_of(SessionReceiptPayload, {"version": VERSION})


@lru_cache(maxsize=8)  # a receipt that arrives is read by each who checks it
def _session_receipt(payload: bytes) -> SessionReceiptPayload:
    return SESSION_RECEIPT.from_bytes(payload, "a session's receipt")


def chain_start(deployment: str, session: str, analyst: str, salt: bytes) -> bytes:
    """Returns the chain of a session in which nothing was asked yet, 32 bytes.

    Args:
        deployment: the deployment's name.
        session: the session's id.
        analyst: the analyst's name.
        salt: the analyst's own, 32 bytes, without which nobody can guess the statements.

    Raises:
        ValueError: the salt has another length.
    """
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    names = canonical_json({"deployment": deployment, "session": session, "analyst": analyst})
    return hashlib.sha256(b"equipoise session v2\n" + salt + names).digest()


def chain_step(
    chain: bytes,
    sequence: int,
    slot: int,
    statement: bytes,
    answers: Answers,
) -> bytes:
    """Returns the chain after the analyst's next statement, 32 bytes.

    Args:
        chain: the chain before it.
        sequence: which of the analyst's statements it is, from 1.
        slot: the session's slot in which it was answered.
        statement: its exact bytes, as they were sent.
        answers: the answers to its cells, as `equipoise.wire.results` reads them.
    """
    # All parts but the columns have a fixed length, and the number of cells gives those: so nothing is ambiguous.
    numbers = b"".join(number.to_bytes(8, "little") for number in (sequence, slot, len(answers)))
    columns = b"".join(column.astype(column.dtype.newbyteorder("<")).tobytes() for column in answers.columns)
    return hashlib.sha256(chain + numbers + hashlib.sha256(statement).digest() + columns).digest()
