"""What an analyst does: look, submit, wait, read results."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from equipoise.clients.connection import Connection
from equipoise.clients.explaining import ExplainingClient, pieces_of
from equipoise.local.client import LocalClient
from equipoise.local.noise import Noise
from equipoise.model.submissions import Receipt, Withdrawal
from equipoise.profile.kept_dry_runs import kept_dry_run
from equipoise.profile.receipt_store import (
    ReceiptHolder,
    ReceiptStore,
    check_accepted,
    check_withdrawn,
    read_receipt,
)
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.questions.questions import Questions
from equipoise.records.promises import check_told
from equipoise.records.receipts import RECEIPT_TYPE
from equipoise.records.record import SALT_BYTES, questions_commitment
from equipoise.v1 import analyst_pb2
from equipoise.wire import workloads
from equipoise.wire.submissions import receipt_from_message


class Client(ExplainingClient):
    """An analyst's client of a server. Thread-safe; every method may raise `equipoise.errors.EquipoiseError`.

    Args:
        connection: the connection, which the client closes.
        keepsakes: where signed receipts are kept; None: nowhere, and the caller keeps what it is given.
    """

    @classmethod
    def from_profile(cls, directory: str | Path) -> Self:
        """Makes a client with the certificate of a profile. Nothing is sent before the first call.

        Receipts are kept in the profile (`equipoise.profile.receipt_store`), so that nobody can deny them later.

        Raises:
            InvalidArgument: a file of the profile is missing or malformed.
        """
        return cls(Connection.from_profile(directory), ReceiptStore(Path(directory)))

    @staticmethod
    def local(
        table: object,
        schema: Schema | str | Path,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-9,
        beta: float = 0.05,
        seed: int = 0,
    ) -> LocalClient:
        """Makes a client that needs no server, to try questions on a table of one's own. Nothing is protected.

        Args:
            table: a CSV or Parquet file, columns by name, or a data frame.
            schema: of the table, or its file.
            epsilon: of the people in the table, as a round's `data_budget` would have; answers get as much noise.
            delta: the same budget's.
            beta: with probability `1 - beta` all intervals of one workload hold at once.
            seed: of the noise.

        Raises:
            InvalidArgument: the table has a value that the schema has no category for, or cannot be read.
        """
        return LocalClient(table, schema, Noise(epsilon, delta, beta, seed))

    def submit(
        self, round_id: str, asked: Sequence[Statement] | Questions, request_id: str | None = None
    ) -> Receipt:
        """Submits the caller's workload. Until the round is sealed, submitting again replaces it.

        A workload that is refused leaves the one that was accepted before in force.

        Args:
            round_id: the round.
            asked: the workload, in the order in which results will come; or questions, whose statements are the
                workload. Of questions the receipt commits to what was understood of them, too. The server does not
                see them.
            request_id: makes the call safe to repeat: the same one gets the first answer again. None: a fresh one.

        Returns:
            The custodian's receipt, which commits to the workload.

        Raises:
            InvalidArgument: a statement is malformed; `field` names it.
            BudgetExhausted: the workload is larger than the caller's share.
            WrongState: the round is sealed.
            VerificationFailed: the receipt is not for what was sent, shown and told by the newest dry run, is in
                another name, or is not signed by the custodian. It is then kept aside in the profile.
        """
        holder, shown = self._holder(), self.round(round_id)
        # Read before anything is sent: a damaged file is no fault of the custodian's.
        told = None if self._keepsakes is None else kept_dry_run(self._keepsakes, round_id)
        questions = asked.as_comments.encode() if isinstance(asked, Questions) else None
        workload = workloads.workload_to_bytes(asked.statements if isinstance(asked, Questions) else asked)
        salt = secrets.token_bytes(SALT_BYTES)
        header = analyst_pb2.SubmitHeader(
            round_id=round_id,
            request_id=request_id or fresh_request_id(),
            commitment_salt=salt,
            workload_bytes=len(workload),
            questions_commitment=b"" if questions is None else questions_commitment(salt, questions),
        )

        def requests() -> Iterator[analyst_pb2.SubmitWorkloadRequest]:
            yield analyst_pb2.SubmitWorkloadRequest(header=header)
            for piece in pieces_of(workload):
                yield analyst_pb2.SubmitWorkloadRequest(piece=piece)

        receipt = receipt_from_message(self._connection.upload(self._service.SubmitWorkload, requests).receipt)
        with self._judging(round_id, receipt.envelope, holder, repeated=request_id is not None):
            check_accepted(receipt, workload, questions, shown)
            check_told(read_receipt(receipt.envelope).promise, told)
        return receipt

    def withdraw(self, round_id: str, request_id: str | None = None) -> Withdrawal:
        """Withdraws the caller's workload and returns the custodian's receipt for that.

        Args:
            round_id: the round.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            NotFound: there is no workload.
            WrongState: the round is sealed.
            VerificationFailed: the receipt says anything else, is in another name, or not signed by the custodian.
        """
        holder = self._holder()
        request = analyst_pb2.WithdrawWorkloadRequest(
            round_id=round_id, request_id=request_id or fresh_request_id()
        )
        envelope = self._connection.call(self._service.WithdrawWorkload, request).envelope
        with self._judging(round_id, envelope, holder, repeated=request_id is not None):
            check_withdrawn(envelope, round_id)
        return Withdrawal(round_id, envelope)

    @contextlib.contextmanager
    def _judging(
        self, round_id: str, envelope: bytes, holder: ReceiptHolder | None, *, repeated: bool
    ) -> Iterator[None]:
        """Keeps a receipt that is the custodian's and passes what is checked within; one that is refused, aside."""
        if self._keepsakes is None or holder is None:
            yield
            return
        with self._keepsakes.keeping_refused(round_id, envelope):
            holder.check(envelope, RECEIPT_TYPE)
            yield
            self._keepsakes.keep_receipt(round_id, envelope, repeated=repeated)


def fresh_request_id() -> str:
    """Returns a request_id that nobody has used."""
    return secrets.token_hex(16)
