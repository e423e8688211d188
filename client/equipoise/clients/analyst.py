"""What an analyst does: look, submit, wait, read results."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from equipoise.clients.asked_questions import AskingClient
from equipoise.clients.connection import Connection
from equipoise.frames import Frame
from equipoise.local.client import LocalClient
from equipoise.local.noise import Noise
from equipoise.model.submissions import DryRun, Receipt, Withdrawal
from equipoise.profile.receipt_store import ReceiptHolder, ReceiptStore, check_accepted, check_withdrawn
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.questions.questions import Questions
from equipoise.records.receipts import RECEIPT_TYPE
from equipoise.records.record import SALT_BYTES, questions_commitment
from equipoise.v1 import analyst_pb2
from equipoise.wire import workloads
from equipoise.wire.submissions import dry_run_from_message, receipt_from_message

PIECE_BYTES = 1 << 20  # of a workload in one message; servers receive at most 4 MiB


class Client(AskingClient):
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
            VerificationFailed: the receipt is not for what was sent and shown, is in another name, or is not signed
                by the custodian. It is then kept aside in the profile.
        """
        holder, shown = self._holder(), self.round(round_id)
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
            for piece in _pieces(workload):
                yield analyst_pb2.SubmitWorkloadRequest(piece=piece)

        receipt = receipt_from_message(self._connection.upload(self._service.SubmitWorkload, requests).receipt)
        with self._judging(round_id, receipt.envelope, holder, repeated=request_id is not None):
            check_accepted(receipt, workload, questions, shown)
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

    def dry_run(self, round_id: str, statements: Sequence[Statement]) -> DryRun:
        """Checks a workload against a round and returns its predicted error. Costs nothing and leaves no trace.

        Args:
            round_id: the round; or a session that is no grant.
            statements: the workload that would be submitted, or what would be asked.

        Raises:
            InvalidArgument: a statement is malformed; `field` names it.
            BudgetExhausted: the workload is larger than the caller's share.
        """
        workload = workloads.workload_to_bytes(statements)
        header = analyst_pb2.SubmitHeader(round_id=round_id, workload_bytes=len(workload))

        def requests() -> Iterator[analyst_pb2.DryRunWorkloadRequest]:
            yield analyst_pb2.DryRunWorkloadRequest(header=header)
            for piece in _pieces(workload):
                yield analyst_pb2.DryRunWorkloadRequest(piece=piece)

        response = self._connection.upload(self._service.DryRunWorkload, requests)
        return dry_run_from_message(response)

    def explain(
        self, round_id: str, questions: Questions, *, rho: float | None = None, error: float | None = None
    ) -> Frame:
        """Returns the error that each statement of questions is expected to have. Costs nothing, leaves no trace.

        The numbers are the round's or session's, from public facts: what is expected on average, and the most that
        an interval can reach to either side. A synopsis or a narrower interval may do better. Those of a grant are
        each statement's own, after all that was asked of it.

        Args:
            round_id: the round or session, or a grant, also by the name of its dataset.
            questions: those that would be submitted or asked.
            rho: of a grant: as for `ask`.
            error: of a grant: as for `ask`.

        Returns:
            A row for each statement, as `Questions.expected` has it.

        Raises:
            BudgetExhausted: the statements are more than the caller's share.
            InvalidArgument: it is a grant, and neither `rho` nor `error` is given.
        """
        return questions.expected(*self._expected(round_id, questions, rho, error))

    def explain_numbers(
        self, round_id: str, questions: Questions, *, rho: float | None = None, error: float | None = None
    ) -> Frame:
        """Returns the error that each number which questions show, such as a mean, is expected to have.

        Args:
            round_id: as for `explain`.
            questions: as for `explain`.
            rho: as for `explain`.
            error: as for `explain`.

        Returns:
            A row for each column of numbers, as `Questions.expected_numbers` has it. Raises as `explain`.
        """
        return questions.expected_numbers(*self._expected(round_id, questions, rho, error))

    def _expected(
        self, round_id: str, questions: Questions, rho: float | None, error: float | None
    ) -> tuple[NDArray[np.float64] | float, NDArray[np.float64] | float, int]:
        """The mean errors and half-widths of statements, as fractions of the records, and how many these are."""
        shown, statements = self.session(round_id), questions.statements
        records = self.dataset(shown.terms.dataset, shown.dataset_version).records
        if shown.grant is None:
            dry = self.dry_run(shown.id, statements)
            return dry.expected_error, dry.max_half_width, records
        costs = self.grant_costs(shown.id, statements, rho=rho, error=error).statements
        # The mean error of noise of a Gaussian law, by its standard error.
        errors = np.array([each.standard_error for each in costs]) * math.sqrt(2 / math.pi)
        reaches = np.array([np.nan if each.half_width is None else each.half_width for each in costs])
        return errors / records, reaches / records, records

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


def _pieces(workload: bytes) -> Iterator[bytes]:
    for start in range(0, len(workload), PIECE_BYTES):
        yield workload[start : start + PIECE_BYTES]
