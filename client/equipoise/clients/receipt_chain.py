"""The chain of a session's receipts: each covers an answer and all answers before it."""

from __future__ import annotations

import math
import threading
import time
from contextlib import AbstractContextManager, nullcontext, suppress

from equipoise.errors import (
    AlreadyExists,
    EquipoiseError,
    VerificationFailed,
)
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import Round
from equipoise.profile.kept_dry_runs import kept_dry_run
from equipoise.profile.receipt_store import ReceiptHolder, ReceiptStore, check_answered, read_session_receipt
from equipoise.records.promises import check_shown, check_told
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step

KEEP_SECONDS = 1.0  # between two receipts that are kept, besides the last


class ReceiptChain:
    """The receipts of one analyst in one session, as far as they were received.

    Args:
        shown: the session as it was shown to the analyst, which each receipt must promise.
        after: how many answers were received before, whose receipts may not be known; None: those of the newest
            receipt that was kept.
        keepsakes: where the newest receipt is kept; None: nowhere.
        holder: whom each receipt must be for, and who must have signed it; None: neither is checked.

    Attributes:
        received: the sequence number of the last answer that was received.
    """

    def __init__(
        self,
        shown: Round,
        after: int | None,
        keepsakes: ReceiptStore | None,
        holder: ReceiptHolder | None,
    ) -> None:
        self._shown, self._keepsakes, self._holder = shown, keepsakes, holder
        self._told = None if keepsakes is None else kept_dry_run(keepsakes, shown.id)
        envelope = None if keepsakes is None else keepsakes.session_receipt(shown.id)
        kept = None if envelope is None else read_session_receipt(envelope)
        self._signed = 0 if kept is None else kept.sequence  # answers, by the receipt that was kept before
        self.received = self._signed if after is None else after
        self._digest = kept.chain if kept is not None and kept.sequence == self.received else None
        self._analyst = "" if kept is None else kept.analyst
        self._newest: bytes | None = None  # the last receipt
        self._kept: bytes | None = None  # the one of these that was kept last
        self._kept_time = -math.inf
        self._keeping = threading.Lock()
        self._later: threading.Timer | None = None

    @property
    def known(self) -> bool:
        """Whether the digest of all answers received so far is known, so that the next receipt can be checked."""
        return self._digest is not None

    def check_count(self, answered: int) -> None:
        """Raises `VerificationFailed` where the custodian says that it gave fewer answers than it signed."""
        if answered < self._signed:
            problem = f"{self._signed:,} answers, but says that there are {answered:,}"
            raise VerificationFailed(f"the custodian signed {problem}")

    def check(
        self, envelope: bytes, slot: int, statement: bytes | None, columns: ResultColumns, salt: bytes, stored: int
    ) -> None:
        """Checks that the next receipt covers this answer and all answers before it, and keeps it.

        Answers that were not received here are taken as the receipt says. A receipt that is refused is kept aside.

        Args:
            envelope: the receipt.
            slot: the statement's place in the order of all statements of the session.
            statement: the bytes that were sent; None where they are not known any more.
            columns: the answer; its sequence number must be the next one.
            salt: the analyst's, with which the chain begins.
            stored: how many statements had an answer before this client asked.

        Raises:
            AlreadyExists: another statement was answered before under this number.
            VerificationFailed: the receipt is not for what was asked and answered, or not the custodian's.
        """
        with self._keeping_refused(envelope):
            self._check(envelope, slot, statement, columns, salt, stored)
        self._newest = envelope
        if time.monotonic() - self._kept_time >= KEEP_SECONDS or self.received == self._signed:
            self.keep()

    def _check(
        self, envelope: bytes, slot: int, statement: bytes | None, columns: ResultColumns, salt: bytes, stored: int
    ) -> None:
        if self._holder is not None:
            self._holder.check(envelope, SESSION_RECEIPT_TYPE)
        receipt, sequence = read_session_receipt(envelope), columns.sequence
        check_shown(receipt.promise, self._shown)
        check_told(receipt.promise, self._told)
        self._analyst = self._analyst or receipt.analyst
        before = self._digest_before(receipt, sequence, salt)
        after = receipt.chain
        if before is not None and statement is not None:
            after = chain_step(before, sequence, slot, statement, columns.answers)
        try:
            check_answered(envelope, self._shown.id, self._analyst, sequence, after)
        except VerificationFailed:
            if receipt.chain == after or sequence > stored:
                raise
            problem = f"statement {sequence} of this session was asked before, and not with these words"
            raise AlreadyExists(f"{problem}; or its stored answer was changed") from None
        self._digest, self.received = receipt.chain, sequence

    def covers(
        self, envelope: bytes, slot: int, statement: bytes | None, columns: ResultColumns, salt: bytes
    ) -> bool:
        """Tells whether the next receipt is known to be for this statement.

        Args:
            envelope: the signed receipt.
            slot: at which place of the session the statement stands.
            statement: its exact bytes; no receipt is for None.
            columns: the answers that came with the receipt.
            salt: the analyst's, which the chain begins with.

        Raises:
            VerificationFailed: the envelope is no receipt.
        """
        receipt = read_session_receipt(envelope)
        before = self._digest_before(receipt, columns.sequence, salt)
        if before is None or statement is None:
            return False
        return receipt.chain == chain_step(before, columns.sequence, slot, statement, columns.answers)

    def _digest_before(self, receipt: SessionReceiptPayload, sequence: int, salt: bytes) -> bytes | None:
        """Returns the digest of all answers before this one; None where it is not known here."""
        if sequence == 1:
            return chain_start(receipt.deployment, receipt.session, receipt.analyst, salt)
        return self._digest

    def keep(self) -> None:
        """Keeps the newest receipt, if it is not kept yet. Raises as `ReceiptStore.keep_session_receipt` does."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        self._keep()

    def keep_soon(self) -> None:
        """Has the newest receipt kept within a second, also where nothing more is asked. Does not wait for a disk.

        A program that ends before then waits for it. What cannot be kept then is said by the next `keep`.
        """
        kept = self._keepsakes is None or self._newest is self._kept
        if kept or (self._later is not None and self._later.is_alive()):
            return
        self._later = threading.Timer(KEEP_SECONDS, self._keep_late)
        self._later.start()

    def _keep_late(self) -> None:
        with suppress(EquipoiseError):
            self._keep()

    def _keep(self) -> None:
        with self._keeping:
            newest = self._newest
            if self._keepsakes is not None and newest is not None and newest is not self._kept:
                self._keepsakes.keep_session_receipt(self._shown.id, newest)
                self._kept, self._kept_time = newest, time.monotonic()

    def _keeping_refused(self, envelope: bytes) -> AbstractContextManager[None]:
        store = self._keepsakes
        return nullcontext() if store is None else store.keeping_refused(self._shown.id, envelope)
