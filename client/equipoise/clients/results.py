"""How an analyst reads what there is: rounds, results, synopses, and the evidence for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from equipoise.clients.connection import Connection, ServerClient
from equipoise.errors import DataLoss
from equipoise.model.datasets import Dataset
from equipoise.model.identities import Caller
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import Round
from equipoise.model.synopsis import Synopsis, SynopsisPart
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.proven_round import proven_round
from equipoise.results import Labels, Results
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise.wire.datasets import dataset_from_message
from equipoise.wire.identities import caller_from_message
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.rounds import round_from_message
from equipoise.wire.synopsis import synopsis_part_from_message


class ResultsClient(ServerClient):
    """The part of an analyst's client that reads, and changes nothing. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._service = analyst_pb2_grpc.AnalystServiceStub(connection.channel)

    def identity(self) -> Caller:
        """Returns the name and role by which the server knows the caller."""
        request = analyst_pb2.GetIdentityRequest()
        response = self._connection.call(self._service.GetIdentity, request)
        return caller_from_message(response)

    def authority(self) -> tuple[bytes, bytes, tuple[bytes, ...]]:
        """Returns the deployment's authority, the link from the one before, and the caller's certificates of it.

        All are PEM; the link is empty where there is none. `profile.succession.follow_authority` says whether to
        trust them.
        """
        response = self._connection.call(self._service.GetAuthority, analyst_pb2.GetAuthorityRequest())
        return response.authority, response.link, tuple(response.certificates)

    def rounds(self, after: str = "", page: int = 0) -> Iterator[Round]:
        """Yields the rounds in which the caller has a share, newest first.

        Args:
            after: only those that were opened before this round; empty: all.
            page: how many are asked for at a time; 0: 100.
        """
        for found in self._connection.pages(
            self._service.ListAnalystRounds,
            lambda token: analyst_pb2.ListAnalystRoundsRequest(page_size=page, page_token=token),
            after,
        ):
            yield from map(round_from_message, found.rounds)

    def round(self, round_id: str) -> Round:
        """Returns one round or session. Raises `NotFound` where the caller has no share in it."""
        request = analyst_pb2.GetAnalystRoundRequest(round_id=round_id)
        return round_from_message(self._connection.call(self._service.GetAnalystRound, request).round)

    def dataset(self, name: str, version: int = 0) -> Dataset:
        """Returns the schema and the number of records of a dataset.

        Args:
            name: the dataset's name.
            version: which version of it; 0: the newest one that a round of the caller's is about.

        Raises:
            NotFound: the caller has no share in any round on it.
        """
        request = analyst_pb2.GetDatasetRequest(name=name, version=version)
        return dataset_from_message(self._connection.call(self._service.GetDataset, request).dataset)

    def schema_of(self, shown: Round) -> Schema:
        """Returns the schema of the table that a round is about. Raises `NotFound`."""
        return self.dataset(shown.terms.dataset, shown.dataset_version).schema

    def wait(self, round_id: str, on_change: Callable[[Round], None] | None = None) -> Round:
        """Waits until the round has ended and its results, if any, can be read.

        Args:
            round_id: the round.
            on_change: called with the round whenever what the caller sees of it changes.

        Returns:
            The round as it then is. Look at its `state`: it may have been aborted.

        Raises:
            NotFound: the caller has no share in the round.
        """
        request = analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)
        shown = None
        for response in self._connection.stream(self._service.WatchAnalystRound, lambda: request):
            shown = round_from_message(response.round)
            if on_change is not None:
                on_change(shown)
        return shown if shown is not None else self.round(round_id)

    def stream(self, round_id: str, after: int = 0) -> Iterator[ResultColumns]:
        """Yields the caller's results message by message. A broken stream is resumed where it broke.

        Args:
            round_id: the round.
            after: the sequence number of the last message that the caller has; 0: none.

        Raises:
            WrongState: the release time has not come, or results are no longer kept.
            OutOfRange: `after` is beyond the last message.
            DataLoss: a message is not the next one.
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
        """Returns all results of the caller. Reading them again costs nothing and gives the same bytes.

        Args:
            round_id: the round or session.
            statements: what was submitted, or `session_statements`, so that each answer is labelled with its
                statement and cell. Without them answers have no labels.

        Raises:
            InvalidArgument: the statements have another number of queries than there are results.
            WrongState: the release time has not come, or results are no longer kept.
            DataLoss: a message of the stream is missing.
        """
        labels = None
        if statements:
            labels = Labels(self.schema_of(self.round(round_id)), tuple(statements))
        return Results.collect(round_id, self.stream(round_id), labels)

    def stream_synopsis(self, round_id: str) -> Iterator[SynopsisPart]:
        """Yields the released synopsis, a few thousand records at a time. A broken stream is resumed.

        Raises:
            WrongState: the release time has not come, or the round's mechanism makes no synopsis.
            DataLoss: records are missing.
        """
        sizes = self.schema_of(self.round(round_id)).sizes
        received, missing = 0, 1

        def request() -> analyst_pb2.DownloadSynopsisRequest:
            return analyst_pb2.DownloadSynopsisRequest(round_id=round_id, after_records=received)

        for response in self._connection.stream(self._service.DownloadSynopsis, request):
            part = synopsis_part_from_message(response, sizes)
            received += len(part.synopsis)
            missing = part.total - received
            yield part
        if missing:
            raise DataLoss(f"the synopsis has {received:,} records, but {received + missing:,} were announced")

    def synopsis(self, round_id: str) -> Synopsis:
        """Returns the released synopsis. Raises as `stream_synopsis`."""
        parts = [part.synopsis for part in self.stream_synopsis(round_id)]
        return Synopsis(parts[0].sizes, np.concatenate([part.codes for part in parts], axis=1))

    def evidence(self, round_id: str, since_size: int = 0) -> tuple[Evidence, bytes | None]:
        """Returns the evidence for a round that has ended, and the workload that the custodian used.

        Nothing of it is verified here, but that it can be read.

        Args:
            round_id: the round or session.
            since_size: the size of a checkpoint that the caller has, to get a proof that the log has only grown
                since then; 0: no proof.

        Returns:
            The evidence, and the exact bytes of the caller's workload; None where it had none.

        Raises:
            WrongState: the round has not ended.
            OutOfRange: no checkpoint had this size.
            VerificationFailed: the evidence cannot be read.
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

    def losses(self, round_id: str) -> AdmittedLosses:
        """Returns what the log admits to be lost. Nothing of it is verified here, but that it can be read.

        Args:
            round_id: a round or session of the caller's that has ended.

        Raises:
            WrongState, VerificationFailed: as `evidence`.
        """
        data = bytearray()

        def request() -> analyst_pb2.DownloadEvidenceRequest:
            data.clear()
            return analyst_pb2.DownloadEvidenceRequest(round_id=round_id, losses=True)

        for response in self._connection.stream(self._service.DownloadEvidence, request):
            data += response.losses
        return AdmittedLosses.from_bytes(bytes(data))

    def bundle(self, round_id: str, since_size: int = 0) -> Bundle:
        """Returns all that `equipoise.verification.checks` needs for the caller's part in a round that has ended.

        Nothing of it is verified yet. Raises as `evidence`, and `WrongState` where results are no longer kept.

        Args:
            round_id: the round or session.
            since_size: of the log at a checkpoint that the caller keeps; 0: none.
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
