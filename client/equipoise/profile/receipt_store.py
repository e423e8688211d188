"""What an analyst keeps in its profile of what the custodian has signed: it cannot be taken back afterwards.

    receipts/ROUND              the newest receipt of each round, an envelope
    session-receipts/SESSION    that of the newest answer of each session, an envelope
    refused-receipts/ID.HASH    receipts that were refused, each with the start of its SHA-256: evidence of a fault
    checkpoint                  the newest checkpoint of the log that was verified, a signed note

Trusted: what is removed here is not compared any more, and nothing else is lost; a copy elsewhere serves as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.rounds import Round
from equipoise.model.submissions import Receipt
from equipoise.profile.profile import LOG_KEYS, read_file, read_log_keys, read_settings
from equipoise.records.canonical import from_base64, parse_canonical_json
from equipoise.records.envelopes import open_cosigned
from equipoise.records.evidence import log_origin
from equipoise.records.promises import check_shown
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, ReceiptPayload, SessionReceiptPayload
from equipoise.records.record import questions_commitment, workload_commitment
from equipoise.records.signed_notes import VerifierKey

RECEIPTS, SESSION_RECEIPTS, REFUSED_RECEIPTS = "receipts", "session-receipts", "refused-receipts"
CHECKPOINT = "checkpoint"
_HASH_DIGITS = 16


@dataclass(frozen=True)
class ReceiptHolder:
    """Whom receipts must be for, and the custodian's keys, one of which must have signed each."""

    analyst: str
    keys: Sequence[VerifierKey]

    def check(self, envelope: bytes, payload_type: str) -> None:
        """Checks that a receipt of this type is signed, and for this analyst in the keys' deployment.

        With a receipt in another name its holder could prove nothing later.

        Raises `VerificationFailed`.
        """
        try:
            payload = open_cosigned(envelope, payload_type, self.keys)
        except VerificationFailed as error:
            problem = f"the receipt is not signed by the custodian's key in {LOG_KEYS}, so it proves nothing"
            raise VerificationFailed(f"{problem}: {error.message}") from None
        kind = SessionReceiptPayload if payload_type == SESSION_RECEIPT_TYPE else ReceiptPayload
        signed = kind.from_bytes(payload)
        if signed.analyst != self.analyst:
            problem = f"the receipt is for {signed.analyst!a}, not for you, {self.analyst!a}"
            raise VerificationFailed(f"{problem}: with it you could prove nothing")
        if log_origin(signed.deployment) not in {key.name for key in self.keys}:
            problem = f"the receipt is of the deployment {signed.deployment!a}, which is not that of {LOG_KEYS}"
            raise VerificationFailed(f"{problem}: with it you could prove nothing")


@dataclass(frozen=True)
class ReceiptStore:
    """The files of one profile's directory. Each appears whole, or not at all."""

    directory: Path

    def holder(self) -> ReceiptHolder:
        """Returns the profile's name, and the custodian's keys in it. Raises `InvalidArgument` naming the file."""
        keys = read_log_keys(self.directory / LOG_KEYS)
        _, name = read_settings(self.directory)
        return ReceiptHolder(name, keys)

    @contextlib.contextmanager
    def keeping_refused(self, round_id: str, envelope: bytes) -> Iterator[None]:
        """Keeps the envelope aside where what is done within refuses it, and says where.

        Whatever the custodian has sent in place of a receipt is evidence, and must not be lost with the error.
        """
        try:
            yield
        except VerificationFailed as error:
            path = self.file(REFUSED_RECEIPTS, round_id)
            path = path.with_name(f"{path.name}.{sha256(envelope).hexdigest()[:_HASH_DIGITS]}")
            write_whole(path, envelope)
            raise VerificationFailed(f"{error.message}; what was sent is kept as evidence in {path}") from None

    def receipt(self, round_id: str) -> bytes | None:
        """Returns the newest receipt of a round; None where none was kept.

        Raises `InvalidArgument` naming the file.
        """
        return _read(self.file(RECEIPTS, round_id))

    def keep_receipt(self, round_id: str, envelope: bytes, *, repeated: bool = True) -> None:
        """Keeps a receipt, unless a newer one is there: a repeated request gets its first receipt again.

        Args:
            round_id: the round.
            envelope: the signed receipt.
            repeated: whether the request may have been sent before. If not, the receipt must be newer than the one
                that is kept: else the workload before could be passed off as the last.

        Raises:
            InvalidArgument: the file cannot be read or written.
            VerificationFailed: it is no receipt, or not newer.
        """
        path = self.file(RECEIPTS, round_id)
        kept = _read(path)
        time = read_receipt(envelope).accept_time
        if kept is None or read_receipt(kept).accept_time < time:
            write_whole(path, envelope)
        elif kept != envelope and (not repeated or read_receipt(kept).accept_time == time):
            raise VerificationFailed(
                f"the receipt is not newer than the one in {path}: the custodian could show that one as your last"
            )

    def session_receipt(self, session_id: str) -> bytes | None:
        """Returns the receipt of a session's newest answer; None where none was kept. Raises `InvalidArgument`."""
        return _read(self.file(SESSION_RECEIPTS, session_id))

    def keep_session_receipt(self, session_id: str, envelope: bytes) -> None:
        """Keeps an answer's receipt, unless that of a later answer is there: stored answers can be read again.

        Raises `InvalidArgument` naming the file, `VerificationFailed` for what is no receipt, or is that of an
        answer that has one with another chain already: then the custodian has answered twice, and differently.
        """
        path = self.file(SESSION_RECEIPTS, session_id)
        kept = _read(path)
        answered = read_session_receipt(envelope)
        before = None if kept is None else read_session_receipt(kept)
        if before is None or before.sequence < answered.sequence:
            write_whole(path, envelope)
        elif before.sequence == answered.sequence and before.chain != answered.chain:
            problem = f"answer {answered.sequence} has another receipt in {path}"
            raise VerificationFailed(f"{problem}: the custodian has told you two different things")

    def newest(self, round_id: str) -> bytes | None:
        """Returns the newest receipt of a round or session; None where none was kept. Raises `InvalidArgument`."""
        return self.receipt(round_id) or self.session_receipt(round_id)

    def checkpoint(self) -> bytes | None:
        """Returns the newest checkpoint; None where none was kept. Raises `InvalidArgument` naming the file."""
        return _read(self.directory / CHECKPOINT)

    def keep_checkpoint(self, note: bytes) -> None:
        """Keeps a checkpoint that was verified against the one before. Raises `InvalidArgument` naming the file."""
        write_whole(self.directory / CHECKPOINT, note)

    def file(self, kind: str, round_id: str) -> Path:
        """Returns the file of a round in the folder of its kind. Raises `InvalidArgument` for what is no round."""
        if not re.fullmatch(r"[0-9a-zA-Z]{1,64}", round_id):
            raise InvalidArgument("round", "is not the identifier of a round")
        return self.directory / kind / round_id


def check_accepted(receipt: Receipt, workload: bytes, questions: bytes | None, shown: Round) -> None:
    """Checks that a receipt commits to the bytes that were sent, and to the terms that were shown.

    Args:
        receipt: as it was received. `ReceiptHolder.check` looks at its signature and at whom it is for.
        workload: the bytes that were sent.
        questions: what was understood of the questions; None where the statements were given themselves.
        shown: the round as the server showed it.

    Raises:
        VerificationFailed: it commits to anything else.
    """
    signed = read_receipt(receipt.envelope)
    if signed.round_id != receipt.round_id or signed.commitment != workload_commitment(receipt.salt, workload):
        raise VerificationFailed("the receipt is for another workload than the one that was sent")
    if signed.questions != (None if questions is None else questions_commitment(receipt.salt, questions)):
        raise VerificationFailed("the receipt does not commit to the questions that were committed to")
    check_shown(signed.promise, shown)


def check_withdrawn(envelope: bytes, round_id: str) -> None:
    """Raises `VerificationFailed` unless the signed receipt that the server sent says that nothing is in force.

    Args:
        envelope: the signed receipt.
        round_id: the round.
    """
    signed = read_receipt(envelope)
    if signed.round_id != round_id or signed.commitment is not None:
        raise VerificationFailed("the receipt does not say that your workload of this round was withdrawn")


def check_answered(envelope: bytes, session_id: str, analyst: str, sequence: int, chain: bytes) -> None:
    """Checks that a session's receipt is of one answer and of all before it.

    Args:
        envelope: the signed receipt. `ReceiptHolder.check` looks at its signature.
        session_id: the session.
        analyst: whose answers they are.
        sequence: the number of the answer among the analyst's, from 1.
        chain: what `equipoise.records.receipts.chain_step` makes of the bytes sent and of the answers that came.

    Raises:
        VerificationFailed: it is of another answer, or of other statements or answers.
    """
    signed = read_session_receipt(envelope)
    about = (signed.session, signed.analyst, signed.sequence)
    if about != (session_id, analyst, sequence) or signed.chain != chain:
        raise VerificationFailed(f"the receipt of answer {sequence} is for other statements or answers than yours")


def read_session_receipt(envelope: bytes) -> SessionReceiptPayload:
    """Returns what the envelope says, whoever has signed it. Raises `VerificationFailed` for what is none."""
    return SessionReceiptPayload.from_bytes(_unverified(envelope))


def read_receipt(envelope: bytes) -> ReceiptPayload:
    """Returns what the envelope says, whoever has signed it. Raises `VerificationFailed` for what is no receipt."""
    return ReceiptPayload.from_bytes(_unverified(envelope))


@lru_cache(maxsize=8)  # as for the payload: each who checks a receipt reads it
def _unverified(envelope: bytes) -> bytes:
    fields = parse_canonical_json(envelope, "a receipt")
    try:
        return from_base64(fields["payload"], "a receipt")
    except (TypeError, KeyError):
        raise VerificationFailed("a receipt is not an envelope with a payload") from None


def _read(path: Path) -> bytes | None:
    return read_file(path) if path.exists() else None


def write_whole(path: Path, content: bytes) -> None:
    """A file of a profile, as it was or with this content, whatever happens. Raises `InvalidArgument` naming it."""
    try:
        path.parent.mkdir(exist_ok=True)
        # Under a name of its own first: several programs may use one profile.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            prepared = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        prepared.replace(path)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
