"""What an analyst does: look, submit, wait, read results.

with Client.from_profile("profiles/AA") as client:
    receipt = client.submit(round_id, statements)
    client.wait(round_id)
    for answer in client.results(round_id, statements):
        print(answer.value, "+-", answer.bound)
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from equipoise.clients.connection import Connection, ServerClient
from equipoise.clients.session_stream import Asking, StatementAnswer
from equipoise.errors import DataLoss
from equipoise.model.datasets import Dataset
from equipoise.model.identities import Caller
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import Round
from equipoise.model.submissions import DryRun, Receipt, Withdrawal
from equipoise.model.synopsis import Synopsis, SynopsisPart
from equipoise.profile.receipt_store import ReceiptStore, check_accepted, check_signer, check_withdrawn
from equipoise.queries.statements import Statement
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.proven_round import proven_round
from equipoise.records.receipts import RECEIPT_TYPE
from equipoise.records.record import SALT_BYTES
from equipoise.records.signed_notes import VerifierKey
from equipoise.results import Labels, Results
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise.wire import workloads
from equipoise.wire.datasets import dataset_from_message
from equipoise.wire.identities import caller_from_message
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.rounds import round_from_message
from equipoise.wire.statements import statement_from_bytes
from equipoise.wire.submissions import dry_run_from_message, receipt_from_message
from equipoise.wire.synopsis import synopsis_part_from_message

PIECE_BYTES = 1 << 20  # of a workload in one message; servers receive at most 4 MiB


class Client(ServerClient):
    """An analyst's way to a server. Thread-safe; every method may raise `equipoise.errors.EquipoiseError`.

    `keepsakes`: where signed receipts are kept; None: nowhere, and the caller keeps what it is given.
    """

    def __init__(self, connection: Connection, keepsakes: ReceiptStore | None = None) -> None:
        super().__init__(connection)
        self._service = analyst_pb2_grpc.AnalystServiceStub(connection.channel)
        self._keepsakes = keepsakes

    @classmethod
    def from_profile(cls, directory: str | Path) -> Self:
        """A client with the profile that the operator handed over. Nothing is sent before the first call.

        Receipts are kept in the profile (`equipoise.profile.receipt_store`), so that nobody can deny them later.
        """
        return cls(Connection.from_profile(directory), ReceiptStore(Path(directory)))

    def identity(self) -> Caller:
        """Who the server says the caller is."""
        request = analyst_pb2.GetIdentityRequest()
        response = self._connection.call(self._service.GetIdentity, request)
        return caller_from_message(response)

    def rounds(self) -> Iterator[Round]:
        """The rounds in which the caller has a share, newest first."""
        for page in self._connection.pages(
            self._service.ListAnalystRounds, lambda token: analyst_pb2.ListAnalystRoundsRequest(page_token=token)
        ):
            yield from map(round_from_message, page.rounds)

    def round(self, round_id: str) -> Round:
        """One round. Raises `NotFound` where the caller has no share in it."""
        request = analyst_pb2.GetAnalystRoundRequest(round_id=round_id)
        return round_from_message(self._connection.call(self._service.GetAnalystRound, request).round)

    def dataset(self, name: str) -> Dataset:
        """The schema and size of a dataset of a round the caller has a share in."""
        request = analyst_pb2.GetDatasetRequest(name=name)
        return dataset_from_message(self._connection.call(self._service.GetDataset, request).dataset)

    def submit(self, round_id: str, statements: Sequence[Statement], request_id: str | None = None) -> Receipt:
        """Submits, or until the round is sealed replaces, the caller's workload.

        A `request_id` of one's own makes the call safe to repeat: the same one gets the first answer again.
        Raises `InvalidArgument` naming the statement, `BudgetExhausted` beyond the share, `WrongState` after
        sealing; the workload that was accepted before, if any, then stays in force. `VerificationFailed` where the
        receipt is not for what was sent and shown, or is not signed by the custodian: it is then kept aside in the
        profile.
        """
        keys, shown = self._keys(), self.round(round_id)
        workload = workloads.workload_to_bytes(statements)
        header = analyst_pb2.SubmitHeader(
            round_id=round_id,
            request_id=request_id or fresh_request_id(),
            commitment_salt=secrets.token_bytes(SALT_BYTES),
            workload_bytes=len(workload),
        )

        def requests() -> Iterator[analyst_pb2.SubmitWorkloadRequest]:
            yield analyst_pb2.SubmitWorkloadRequest(header=header)
            for piece in _pieces(workload):
                yield analyst_pb2.SubmitWorkloadRequest(piece=piece)

        receipt = receipt_from_message(self._connection.upload(self._service.SubmitWorkload, requests).receipt)
        with self._judging(round_id, receipt.envelope, keys, repeated=request_id is not None):
            check_accepted(receipt, workload, shown)
        return receipt

    def withdraw(self, round_id: str, request_id: str | None = None) -> Withdrawal:
        """Takes the caller's workload back. Raises `NotFound` where there is none, `WrongState` after sealing.

        `VerificationFailed` where the receipt says anything else, or is not signed by the custodian.
        """
        keys = self._keys()
        request = analyst_pb2.WithdrawWorkloadRequest(
            round_id=round_id, request_id=request_id or fresh_request_id()
        )
        envelope = self._connection.call(self._service.WithdrawWorkload, request).envelope
        with self._judging(round_id, envelope, keys, repeated=request_id is not None):
            check_withdrawn(envelope, round_id)
        return Withdrawal(round_id, envelope)

    def dry_run(self, round_id: str, statements: Sequence[Statement]) -> DryRun:
        """Checks a workload and predicts its error, without leaving a trace."""
        workload = workloads.workload_to_bytes(statements)
        header = analyst_pb2.SubmitHeader(round_id=round_id, workload_bytes=len(workload))

        def requests() -> Iterator[analyst_pb2.DryRunWorkloadRequest]:
            yield analyst_pb2.DryRunWorkloadRequest(header=header)
            for piece in _pieces(workload):
                yield analyst_pb2.DryRunWorkloadRequest(piece=piece)

        response = self._connection.upload(self._service.DryRunWorkload, requests)
        return dry_run_from_message(response)

    def wait(self, round_id: str, on_change: Callable[[Round], None] | None = None) -> Round:
        """Waits until the round has ended and its results, if any, can be read; returns it as it then is.

        `on_change` is told of every visible state. Look at the `state` of what is returned: a round may have been
        aborted.
        """
        request = analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)
        shown = None
        for response in self._connection.stream(self._service.WatchAnalystRound, lambda: request):
            shown = round_from_message(response.round)
            if on_change is not None:
                on_change(shown)
        return shown if shown is not None else self.round(round_id)

    def stream(self, round_id: str, after: int = 0) -> Iterator[ResultColumns]:
        """The caller's results, message by message, after sequence number `after` (0: all).

        A broken stream is resumed where it broke. Raises `WrongState` before the release time, `OutOfRange`
        beyond the end, `DataLoss` where a message is not the next one.
        """
        for _, columns in self._messages(round_id, after):
            yield columns

    def _messages(self, round_id: str, after: int = 0) -> Iterator[tuple[bytes, ResultColumns]]:
        """Each result message as it was sent, and as it is read."""
        received = after

        def request() -> analyst_pb2.StreamResultsRequest:
            return analyst_pb2.StreamResultsRequest(round_id=round_id, after_sequence=received)

        for response in self._connection.stream(self._service.StreamResults, request):
            columns = chunk_from_bytes(response.chunk)
            if columns.round_id != round_id or columns.sequence != received + 1:
                raise DataLoss("a result message is not the next one of this round")
            received = columns.sequence
            yield response.chunk, columns

    def results(self, round_id: str, statements: Sequence[Statement] = ()) -> Results:
        """All results of the caller. Reading them again costs nothing and gives the same bytes.

        With the `statements` that were submitted, or `session_statements`, every answer is labelled with its
        statement and cell.
        """
        labels = None
        if statements:
            labels = Labels(self.dataset(self.round(round_id).terms.dataset).schema, tuple(statements))
        return Results.collect(round_id, self.stream(round_id), labels)

    def stream_synopsis(self, round_id: str) -> Iterator[SynopsisPart]:
        """The released synopsis, a few thousand records at a time. A broken stream is resumed where it broke.

        Raises `WrongState` before the release time and where the round's mechanism makes no synopsis, `DataLoss`
        where records are missing.
        """
        sizes = self.dataset(self.round(round_id).terms.dataset).schema.sizes
        received, missing = 0, 1

        def request() -> analyst_pb2.DownloadSynopsisRequest:
            return analyst_pb2.DownloadSynopsisRequest(round_id=round_id, after_records=received)

        for response in self._connection.stream(self._service.DownloadSynopsis, request):
            part = synopsis_part_from_message(response, sizes)
            received += len(part.synopsis)
            missing = part.total - received
            yield part
        if missing:
            raise DataLoss("the synopsis is not as long as it should be")

    def synopsis(self, round_id: str) -> Synopsis:
        """Returns the released synopsis. Raises as `stream_synopsis`."""
        return Synopsis(np.concatenate([part.synopsis.cells for part in self.stream_synopsis(round_id)]))

    def evidence(self, round_id: str, since_size: int = 0) -> tuple[Evidence, bytes | None]:
        """What the custodian gives to verify a round with, and the workload that it used; None: none.

        `since_size`: of a checkpoint that the caller holds, to have a proof that the log has only grown since.
        Raises `WrongState` before the round has ended, `OutOfRange` for a size that no checkpoint had,
        `VerificationFailed` where it cannot be read. Nothing else of it is checked here.
        """
        evidence, workload = bytearray(), bytearray()

        def request() -> analyst_pb2.DownloadEvidenceRequest:
            # Resumed from the beginning: it is small beside the results.
            evidence.clear()
            workload.clear()
            return analyst_pb2.DownloadEvidenceRequest(round_id=round_id, since_size=since_size)

        for response in self._connection.stream(self._service.DownloadEvidence, request):
            evidence += response.evidence
            workload += response.workload
        return Evidence.from_bytes(bytes(evidence)), bytes(workload) or None

    def bundle(self, round_id: str, since_size: int = 0) -> Bundle:
        """All that `equipoise.verification.checks` needs for the caller's part in a round that has ended, in one.

        Raises as `evidence`, and `WrongState` where results are no longer kept. Nothing of it is verified yet.
        """
        evidence, workload = self.evidence(round_id, since_size)
        proven = proven_round(evidence)
        stream: list[bytes] = []
        if proven.result is not None and proven.result.stream is not None:
            stream = [chunk for chunk, _ in self._messages(round_id)]
        synopsis = None
        if proven.release is not None and proven.release.synopsis is not None:
            synopsis = self.synopsis(round_id).to_bytes()
        return Bundle(evidence, workload, tuple(stream), synopsis)

    def sessions(self) -> Iterator[Round]:
        """The online sessions in which the caller has a share, newest first."""
        for page in self._connection.pages(
            self._service.ListSessions, lambda token: analyst_pb2.ListSessionsRequest(page_token=token)
        ):
            yield from map(round_from_message, page.sessions)

    def session_statements(self, session_id: str) -> tuple[Statement, ...]:
        """Returns the caller's statements of a session that has ended, in order, as the custodian has stored them.

        They are not verified: `equipoise.verification.checks` compares them with the signed receipts.

        Raises:
            WrongState: the session has not ended.
        """
        _, workload = self.evidence(session_id)
        encoded = () if workload is None else asked_from_bytes(workload)[0]
        return tuple(map(statement_from_bytes, encoded))

    def ask(
        self,
        session_id: str,
        statements: Iterable[Statement],
        *,
        after: int | None = 0,
        window: int = 1,
        accept_unprotected: bool = False,
    ) -> Iterator[StatementAnswer]:
        """Asks in a session, one statement after the other; the answers in the same order, as they come.

        `statements` are taken one at a time: with a `window` of 1, none before the answers to all others are there,
        so that they may depend on them; with a wider one, so many are on their way at once. They count from the
        first of the session on, and what was asked before gets its answer again: so the same program, started
        again, goes on where it was. `after`: how many others come before them; None: all that have an answer.

        A stream that breaks is resumed. Every receipt is checked against statements and answers, and the newest
        kept in the profile. Raises `InvalidArgument` naming the statement, `BudgetExhausted` beyond the share,
        `WrongState` where the session takes no more statements, is attached to from elsewhere, or does not protect
        its analysts from one another and `accept_unprotected` does not say that this is known; `AlreadyExists`
        where something else was asked before; `OutOfRange` where `after` is beyond what was answered;
        `VerificationFailed` where a receipt is not for what was asked and answered. Whatever is refused was neither
        answered nor charged, and all answers before it have been given.
        """
        keys = self._keys()
        shown = self.round(session_id)
        schema = self.dataset(shown.terms.dataset).schema
        asking = Asking(shown, schema, after, window, accept_unprotected, self._keepsakes, keys)
        yield from asking.answers(self._connection, self._service, statements)

    def _keys(self) -> tuple[VerifierKey, ...]:
        """The custodian's, read before anything is sent; none where the caller keeps receipts itself."""
        return () if self._keepsakes is None else self._keepsakes.keys()

    @contextlib.contextmanager
    def _judging(
        self, round_id: str, envelope: bytes, keys: Sequence[VerifierKey], *, repeated: bool
    ) -> Iterator[None]:
        """Keeps a receipt that is the custodian's and passes what is checked within; one that is refused, aside."""
        if self._keepsakes is None:
            yield
            return
        with self._keepsakes.keeping_refused(round_id, envelope):
            check_signer(envelope, RECEIPT_TYPE, keys)
            yield
            self._keepsakes.keep_receipt(round_id, envelope, repeated=repeated)


def fresh_request_id() -> str:
    """A request_id that nobody has used."""
    return secrets.token_hex(16)


def _pieces(workload: bytes) -> Iterator[bytes]:
    for start in range(0, len(workload), PIECE_BYTES):
        yield workload[start : start + PIECE_BYTES]
