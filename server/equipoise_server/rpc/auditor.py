"""What auditors may call: every record, and no change."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.v1 import auditor_pb2
from equipoise_server.identity.names import Caller
from equipoise_server.rounds.service import Rounds
from equipoise_server.rpc import messages


@dataclass(frozen=True)
class AuditorMethods:
    """The served methods of `AuditorService`, bound by `rpc.methods`."""

    rounds: Rounds

    def list_audit_rounds(
        self, _: Caller, request: auditor_pb2.ListAuditRoundsRequest
    ) -> auditor_pb2.ListAuditRoundsResponse:
        """Lists every round, newest first."""
        records, token = self.rounds.list(request.page_size, request.page_token)
        details = [messages.round_detail(record, self.rounds.progress(record.id)) for record in records]
        return auditor_pb2.ListAuditRoundsResponse(details=details, next_page_token=token)

    def list_journal(self, _: Caller, request: auditor_pb2.ListJournalRequest) -> auditor_pb2.ListJournalResponse:
        """Lists the budget journal from the beginning."""
        records, token = self.rounds.journal(request.page_size, request.page_token)
        entries = [messages.journal_entry(record) for record in records]
        return auditor_pb2.ListJournalResponse(entries=entries, next_page_token=token)

    def set_audit_nonce(
        self, caller: Caller, request: auditor_pb2.SetAuditNonceRequest
    ) -> auditor_pb2.SetAuditNonceResponse:
        """Adds the auditor's own randomness to a round's."""
        self.rounds.set_audit_nonce(request.round_id, request.nonce, request.request_id, caller.name)
        return auditor_pb2.SetAuditNonceResponse()

    def get_sealed_seed(
        self, caller: Caller, request: auditor_pb2.GetSealedSeedRequest
    ) -> auditor_pb2.GetSealedSeedResponse:
        """Gives a round's seed, sealed to the auditors' keys, once that is in the log."""
        found = self.rounds.sealed_seed(request.round_id, caller.name)
        seeds = [auditor_pb2.SealedSeed(key_id=key_id, sealed=sealed) for key_id, sealed in found.items()]
        return auditor_pb2.GetSealedSeedResponse(seeds=seeds)
