"""The methods that analysts may call. Every method answers about the caller and about nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from equipoise.model.identities import Caller
from equipoise.model.rounds import RoundState
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.datasets import dataset_to_message
from equipoise.wire.identities import caller_to_message
from equipoise.wire.rounds import round_to_message
from equipoise.wire.submissions import dry_run_to_message, receipt_to_message
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.succession import certificates_of
from equipoise_server.rounds.analyst_views import AnalystViews
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.rpc.services.evidence_stream import awaited, evidence_pieces, workload_pieces
from equipoise_server.rpc.services.own_world import OwnWorldMethods
from equipoise_server.rpc.services.session_stream import SessionStreams
from equipoise_server.rpc.services.synopsis_stream import Synopses
from equipoise_server.rpc.services.uploads import Uploads
from equipoise_server.rpc.services.watch import watch
from equipoise_server.rpc.shown_rounds import shown_to_analyst
from equipoise_server.rpc.threads import Threads

CHUNKS_AT_ONCE = 8  # read from the store together, about 300 KiB


@dataclass(frozen=True)
class AnalystMethods(OwnWorldMethods):
    """The served methods of `AnalystService`, bound by `rpc.methods`."""

    datasets: Datasets
    submissions: Submissions
    views: AnalystViews
    session_streams: SessionStreams
    synopses: Synopses
    uploads: Uploads
    threads: Threads
    stopping: asyncio.Event
    admission: Admission

    def get_identity(self, caller: Caller, _: analyst_pb2.GetIdentityRequest) -> analyst_pb2.GetIdentityResponse:
        """Shows the caller's own name and role."""
        return caller_to_message(caller)

    def get_authority(self, caller: Caller, _: analyst_pb2.GetAuthorityRequest) -> analyst_pb2.GetAuthorityResponse:
        """Shows the authority, the link from the one before, and the caller's own certificates of it."""
        authority, operations = self.admission.authority(), self.admission.registry.operations
        with operations.store.read() as connection:
            held = certificates_of(connection, authority, caller.name, operations.clock())
        return analyst_pb2.GetAuthorityResponse(authority=authority.pem, link=authority.link_pem, certificates=held)

    def get_dataset(self, caller: Caller, request: analyst_pb2.GetDatasetRequest) -> analyst_pb2.GetDatasetResponse:
        """Shows a version of a dataset, if the caller has a share in a round on it."""
        record = self.views.dataset(caller.name, request.name, request.version)
        return analyst_pb2.GetDatasetResponse(dataset=dataset_to_message(record))

    def list_analyst_rounds(
        self, caller: Caller, request: analyst_pb2.ListAnalystRoundsRequest
    ) -> analyst_pb2.ListAnalystRoundsResponse:
        """Lists the rounds in which the caller has a share, newest first."""
        records, token = self.views.page(caller.name, request.page_size, request.page_token)
        return analyst_pb2.ListAnalystRoundsResponse(
            rounds=[round_to_message(shown_to_analyst(record, caller.name)) for record in records],
            next_page_token=token,
        )

    def get_analyst_round(
        self, caller: Caller, request: analyst_pb2.GetAnalystRoundRequest
    ) -> analyst_pb2.GetAnalystRoundResponse:
        """Shows one round."""
        record = self.views.get(caller.name, request.round_id)
        return analyst_pb2.GetAnalystRoundResponse(round=self._session(caller, record, whole=True))

    async def watch_analyst_round(
        self, caller: Caller, request: analyst_pb2.WatchAnalystRoundRequest
    ) -> AsyncIterator[analyst_pb2.WatchAnalystRoundResponse]:
        """Streams a round whenever its visible state changes; ends when its results can be read."""
        async for shown in watch(
            lambda: self.threads.reading.run(caller.name, self._look, caller, request.round_id), self.stopping
        ):
            yield analyst_pb2.WatchAnalystRoundResponse(round=shown)

    async def submit_workload(
        self, caller: Caller, requests: AsyncIterator[analyst_pb2.SubmitWorkloadRequest]
    ) -> analyst_pb2.SubmitWorkloadResponse:
        """Submits, or until sealing replaces, the caller's workload."""
        async with self.uploads.collected(caller.name, requests) as (header, workload):
            record = await self.threads.working.run(
                caller.name,
                self.submissions.submit,
                caller.name,
                header.round_id,
                header.request_id,
                workload,
                header.commitment_salt,
                header.questions_commitment or None,
            )
        return analyst_pb2.SubmitWorkloadResponse(receipt=receipt_to_message(record))

    async def dry_run_workload(
        self, caller: Caller, requests: AsyncIterator[analyst_pb2.DryRunWorkloadRequest]
    ) -> analyst_pb2.DryRunWorkloadResponse:
        """Checks a workload and predicts its error without leaving a trace."""
        async with self.uploads.collected(caller.name, requests) as (header, workload):
            record = await self.threads.working.run(
                caller.name, self.submissions.dry_run, caller.name, header.round_id, workload
            )
        return dry_run_to_message(record)

    def withdraw_workload(
        self, caller: Caller, request: analyst_pb2.WithdrawWorkloadRequest
    ) -> analyst_pb2.WithdrawWorkloadResponse:
        """Withdraws the caller's workload before sealing."""
        envelope = self.submissions.withdraw(caller.name, request.round_id, request.request_id)
        return analyst_pb2.WithdrawWorkloadResponse(envelope=envelope)

    async def stream_results(
        self, caller: Caller, request: analyst_pb2.StreamResultsRequest
    ) -> AsyncIterator[analyst_pb2.StreamResultsResponse]:
        """Streams the caller's results after a sequence number, from the store, byte for byte."""
        after = request.after_sequence
        # Nothing stays open between pages, so a reader that stops reading costs the memory of one page only.
        while chunks := await self.threads.reading.run(
            caller.name, self.views.results, caller.name, request.round_id, after, CHUNKS_AT_ONCE
        ):
            for chunk in chunks:
                yield analyst_pb2.StreamResultsResponse(chunk=chunk)
            after += len(chunks)

    async def download_synopsis(
        self, caller: Caller, request: analyst_pb2.DownloadSynopsisRequest
    ) -> AsyncIterator[analyst_pb2.DownloadSynopsisResponse]:
        """Streams the round's synopsis after a number of records."""
        pages = self.synopses.pages(caller.name, request.round_id, request.after_records)
        while (page := await self.threads.reading.run(caller.name, next, pages, None)) is not None:
            yield page

    async def download_evidence(
        self, caller: Caller, request: analyst_pb2.DownloadEvidenceRequest
    ) -> AsyncIterator[analyst_pb2.DownloadEvidenceResponse]:
        """Streams what the caller needs to verify a round offline: evidence, then workload; or the losses alone."""
        reading, round_id = self.threads.reading, request.round_id
        if request.losses:
            losses = await awaited(lambda: reading.run(caller.name, self.views.losses, caller.name, round_id))
            for piece in evidence_pieces(losses):
                yield analyst_pb2.DownloadEvidenceResponse(losses=piece)
            return
        evidence = await awaited(
            lambda: reading.run(caller.name, self.views.evidence, caller.name, round_id, request.since_size)
        )
        for piece in evidence_pieces(evidence):
            yield analyst_pb2.DownloadEvidenceResponse(evidence=piece)
        workload = workload_pieces(self.views, caller.name, round_id)
        while (some := await reading.run(caller.name, next, workload, None)) is not None:
            yield analyst_pb2.DownloadEvidenceResponse(workload=some)

    def list_sessions(
        self, caller: Caller, request: analyst_pb2.ListSessionsRequest
    ) -> analyst_pb2.ListSessionsResponse:
        """Lists the online sessions in which the caller has a share, newest first."""
        records, token = self.session_streams.sessions.list_for_analyst(
            caller.name, request.page_size, request.page_token
        )
        return analyst_pb2.ListSessionsResponse(
            sessions=[self._session(caller, record) for record in records],
            next_page_token=token,
        )

    def ask_queries(
        self, caller: Caller, requests: AsyncIterator[analyst_pb2.AskQueriesRequest]
    ) -> AsyncIterator[analyst_pb2.AskQueriesResponse]:
        """Answers statements one at a time, in order."""
        return self.session_streams.answers(caller.name, requests)

    def _session(self, caller: Caller, record: RoundRecord, *, whole: bool = False) -> types_pb2.Round:
        """Return a round; a session with how many of the caller's statements have answers, and what they cost."""
        if record.terms.session is None:
            return round_to_message(shown_to_analyst(record, caller.name))
        sessions = self.session_streams.sessions
        answered, grant = sessions.answered(caller.name, record.id), sessions.grant(record, whole=whole)
        return round_to_message(shown_to_analyst(record, caller.name, answered, grant))

    def _look(self, caller: Caller, round_id: str) -> tuple[types_pb2.Round, bool]:
        record = self.views.get(caller.name, round_id)
        # Analysts see RELEASED only from the release time on, so RELEASED means that streams are open.
        last = record.state in (RoundState.RELEASED, RoundState.ABORTED)
        return round_to_message(shown_to_analyst(record, caller.name)), last
